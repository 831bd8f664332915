"""Test generated data sets of the shape of files that are hard to get."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

import isokern.experiments  # noqa: F401, lists the paper's data sets before a test changes them
from isokern import IKOGDClassifier
from isokern.data import list_datasets, load_dataset

PAPERS = {info.name: info for info in list_datasets()}
GENERATED = {info.name: info for info in list_datasets(stand_ins=True) if not info.files}
N_TRAIN, N_TEST = 1_100, 200


@pytest.fixture(scope="module")
def few_rows():
    """Let data sets have few rows, in blocks of which the last is not complete."""
    with pytest.MonkeyPatch.context() as patch:
        small = tuple(replace(info, n_train=N_TRAIN, n_test=N_TEST) for info in GENERATED.values())
        patch.setattr("isokern.data.catalogue.GENERATED", small)
        yield


def test_generated_sets_have_the_shape_of_the_papers_sets():
    assert set(GENERATED) == {"real-sim-generated", "smallNORB-generated", "epsilon-generated"}
    for name, info in GENERATED.items():
        papers = PAPERS[name.removesuffix("-generated")]
        for key in ("n_train", "n_test", "n_features", "density", "is_sparse", "dtype"):
            assert getattr(info, key) == getattr(papers, key)
        assert info.note
        assert (info.find(), info.urls, info.stands_for) == ((), (), None)


@pytest.mark.usefixtures("few_rows")
@pytest.mark.parametrize("name", GENERATED)
def test_rows_have_their_density_and_are_always_the_same(name):
    data, again = (load_dataset(name, "nowhere", download=False) for _ in range(2))
    info = GENERATED[name]
    assert (data.X_train.shape, data.X_test.shape) == ((N_TRAIN, info.n_features), (N_TEST, info.n_features))
    X, others = (one.X_train.toarray() if info.is_sparse else one.X_train for one in (data, again))
    np.testing.assert_array_equal(X, others)
    np.testing.assert_array_equal(data.y_test, again.y_test)
    assert np.count_nonzero(X) / X.size == pytest.approx(info.density, rel=0.05)
    assert set(data.y_train) == {0, 1}
    assert sparse.issparse(data.X_train) == info.is_sparse
    if name == "smallNORB-generated":
        assert 0 <= X.min() < X.max() <= 1
        np.testing.assert_allclose(255 * X, np.round(255 * X), atol=1e-4)  # whole numbers, as in image files
    else:
        np.testing.assert_allclose(np.linalg.norm(X, axis=1), 1, rtol=1e-5)


@pytest.mark.usefixtures("few_rows")
@pytest.mark.parametrize("name", GENERATED)
def test_classes_can_be_learned(name):
    data = load_dataset(name, "nowhere", download=False)
    model = IKOGDClassifier(random_state=0).fit(data.X_train, data.y_train)
    assert model.score(data.X_test, data.y_test) > 0.6
