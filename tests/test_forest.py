"""A fitted tree model as a forest: the same scores from nodes, leaf values and a linear part."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from forests import FEW, KERNELS, MODELS, ROUNDED, fitted, hard_rows, leaves_of, model_scores, numbers, scores_of, sides
from isokern import IKSVC, IKOGDClassifier, IsolationKernel
from isokern.scaling import Scaling


def twin_scores(model, X):
    forest = model.forest()
    scores = scores_of(forest, X)
    return np.sort(scores, axis=1) if getattr(forest.answer, "ascending", False) else scores


@pytest.mark.parametrize("name", MODELS)
def test_the_scores_of_a_forest_equal_those_of_the_model_bit_for_bit(name):
    X = hard_rows(fitted(name))
    assert np.array_equal(twin_scores(fitted(name), X), model_scores(fitted(name), X))


@pytest.mark.parametrize("name", ROUNDED)
def test_the_scores_of_a_forest_that_folds_sums_equal_those_of_the_model_up_to_rounding(name):
    X = hard_rows(fitted(name))
    np.testing.assert_allclose(twin_scores(fitted(name), X), model_scores(fitted(name), X), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_the_cells_of_the_leaves_are_those_of_the_kernel(name):
    kernel, forest = fitted(name), fitted(name).forest()
    X = hard_rows(kernel)
    assert np.array_equal(forest.cells[leaves_of(forest.trees, X)].reshape(len(X), -1), kernel.apply(X))


def test_the_models_have_the_parts_that_their_names_promise():
    parts = {name: (fitted(name).forest().leaves, fitted(name).forest().linear) for name in MODELS}
    assert parts["linear alone"][0] is None and parts["linear alone"][1] is not None
    assert all(part is not None for name in ("linear and cells", "sparse rows") for part in parts[name])
    assert parts["paper's learner"][1] is None
    assert fitted("shrinking weights").forest().leaves.multiplier != 1.0
    deep = fitted("deep trees").forest().leaves.trees
    depth = np.zeros(len(deep.left), dtype=int)
    for node in np.flatnonzero(~deep.is_leaf):
        depth[deep.left[node] + np.arange(2)] = depth[node] + 1
    assert depth.max() > 25


@given(
    offset=st.floats(-1e6, 1e6),
    divisor=st.floats(1e-6, 1e6),
    split=st.floats(-1e9, 1e9),
    steps=st.integers(-3, 3),
)
def test_numbers_below_a_threshold_are_those_that_scaling_takes_below_the_split(offset, divisor, split, steps):
    scaling = Scaling(np.array([offset]), np.array([divisor]))
    (threshold,) = scaling.thresholds(np.zeros(1, dtype=np.int32), np.array([split]))
    x = threshold
    for _ in range(abs(steps)):
        x = np.nextafter(x, np.copysign(np.inf, steps))
    assert (x < threshold) == bool(scaling.apply(np.array([[x]]))[0, 0] < split)


def test_an_infinite_split_stays_infinite():
    scaling = Scaling(np.ones(1), np.full(1, 3.0))
    assert scaling.thresholds(np.zeros(1, dtype=np.int32), np.array([np.inf])) == np.inf


def test_later_rows_do_not_change_a_forest():
    model = IKOGDClassifier(linear=True, schedule="adagrad", n_cells=16, **FEW).fit(numbers(), sides())
    forest, X = model.forest(), numbers()[:20]
    before = scores_of(forest, X)
    model.partial_fit(numbers(), 1 - sides())
    assert np.array_equal(scores_of(forest, X), before)
    assert not np.array_equal(model_scores(model, X), before)


def test_a_forest_knows_the_names_of_its_columns():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(numbers(), columns=list("abcde"))
    assert IKSVC(n_cells=8, **FEW).fit(frame, sides()).forest().names == list("abcde")
    assert IsolationKernel(n_cells=8).fit(frame).forest().names == list("abcde")
    assert fitted("two classes").forest().names is None


@pytest.mark.parametrize("make", [IKOGDClassifier, IKSVC, IsolationKernel])
def test_a_model_that_is_not_fitted_is_no_forest(make):
    with pytest.raises(NotFittedError):
        make().forest()


class OwnCells:
    """A partitioning with one cell."""

    n_cells_ = 1

    def fit(self, X, rng):
        return self

    def apply(self, X):
        return np.zeros(X.shape[0], dtype=np.int64)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"partitioning": "voronoi"}, 'partitioning must be "tree", .* got Voronoi cells'),
        ({"partitioning": OwnCells()}, 'partitioning must be "tree", .* got your own partitionings'),
        ({"evaluation": "dual"}, 'evaluation must be "primal", .* got "dual"'),
    ],
)
def test_other_models_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        IKOGDClassifier(linear=False, **parameters, **FEW).fit(numbers(), sides()).forest()


def test_a_stream_that_only_buffers_rows_is_refused():
    model = IKOGDClassifier(n_initial=1000, **FEW).partial_fit(numbers(), sides())
    with pytest.raises(ValueError, match=r"model must have learned rows, not only buffered them; got .* 1000 rows"):
        model.forest()


def test_a_kernel_that_was_refitted_is_refused():
    kernel = IsolationKernel(n_cells=16, **FEW).fit(numbers())
    model = IKOGDClassifier(kernel=kernel).fit(numbers(), sides())
    kernel.set_params(n_cells=8).fit(numbers())
    with pytest.raises(ValueError, match="kernel must stay as it was when learning began; got one that was refitted"):
        model.forest()


def test_a_stream_of_one_class_is_refused():
    model = IKOGDClassifier(**FEW).partial_fit(numbers(), np.zeros(len(numbers())))
    with pytest.raises(ValueError, match="model must have learned at least 2 classes; got"):
        model.forest()


def test_the_map_of_an_adaptive_learner_is_refused():
    with pytest.raises(ValueError, match="kernel must be one that stays as it is; got the map of a learner"):
        fitted("adaptive classifier").kernel_.forest()
