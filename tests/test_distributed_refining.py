"""Test the L-BFGS steps of DaskIKOGDClassifier: their features, their objective and its gradient, for every model."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import check_grad

from isokern.learners import candidates
from isokern.learners.candidates import CANDIDATES
from learning import make_rows

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
from isokern.distributed import DaskIKOGDClassifier, design, refining  # noqa: E402

SMALL = {"n_partitionings": 2, "n_cells": 8, "validation_fraction": 0, "random_state": 0}
# Parameters, and the candidate that they leave, if there is a race.
MODELS = {
    "one scale": ({"schedule": "adagrad", "shrinkage": 0.02}, None),
    "all scales": ({"n_cells": "auto"}, CANDIDATES[0]),
    "a coarse scale": ({"n_cells": "auto"}, CANDIDATES[1]),
    "all scales, linear": ({"n_cells": "auto"}, CANDIDATES[3]),
    "linear": ({"n_cells": "auto"}, CANDIDATES[4]),
    "every scale, linear": ({"n_scales": "auto", "linear": True, "schedule": "constant"}, None),
    "voronoi, every scale, linear": ({"partitioning": "voronoi", "n_scales": 2, "linear": True}, CANDIDATES[3]),
    "voronoi, a coarse scale": ({"partitioning": "voronoi", "n_cells": "auto"}, CANDIDATES[1]),
}
FORMS = {"dense": np.asarray, "CSR": sparse.csr_matrix}


@pytest.fixture(params=MODELS)
def make(request, monkeypatch):
    """Give a function that makes a classifier of one model."""
    options, candidate = MODELS[request.param]
    monkeypatch.setattr(candidates, "auto_n_cells", lambda n_rows: 4)  # so that there are two scales
    if candidate is not None:
        monkeypatch.setattr(candidates, "CANDIDATES", (candidate,))
    with dask.config.set(scheduler="synchronous"):  # threads take longer to start than these tasks to run
        yield lambda **others: DaskIKOGDClassifier(**SMALL | options | others)


def make_blocks(n_classes, form):
    X, y = make_rows(40, n_classes)
    X = FORMS[form](X * (np.abs(X) > 0.3))
    weights = np.random.default_rng(0).uniform(0, 2, 40)
    blocks = [da.from_array(X[k : k + 20], chunks=(20, 3)) for k in (0, 20)]
    return X, y, weights, (da.concatenate(blocks), *(da.from_array(column, chunks=20) for column in (y, weights)))


@pytest.mark.parametrize(("loss", "n_classes", "form"), [("squared_hinge", 2, "CSR"), ("logistic", 3, "dense")])
def test_the_objective_is_the_loss_of_the_model_and_has_its_gradient(make, loss, n_classes, form, monkeypatch):
    X, y, weights, given = make_blocks(n_classes, form)
    class_weight = {0: 1.0, 1: 2.0, 2: 3.0}
    found = []

    def look(objective, start, **options):
        found.append(objective(start)[0])
        z = start + 0.1 * np.random.default_rng(1).normal(size=len(start))
        assert check_grad(lambda z: objective(z)[0], lambda z: objective(z)[1], z) < 1e-5

    monkeypatch.setattr(refining, "minimize", look)
    make(loss=loss, class_weight=class_weight).fit(*given)
    local = make(loss=loss, class_weight=class_weight, n_steps=0).fit(*given).to_local()
    scores = local.decision_function(X).reshape(40, -1)
    signs = np.where(y[:, None] == (np.arange(3) if n_classes > 2 else [1]), 1, -1)
    losses = refining.SMOOTH[loss](signs * scores)[0].sum(axis=1)
    model = local.learned_.model
    penalty = 0.5 * local.shrinkage / 2 * (model.current() ** 2).sum()
    assert found[0] == pytest.approx((weights * (1 + y) * losses).mean() + penalty, rel=1e-5)
    assert len(found) == 1


def test_steps_lower_the_loss_of_every_model(make):
    X, y, _, (rows, labels, _) = make_blocks(2, "dense")

    def total_loss(n_steps):
        scores = make(n_steps=n_steps).fit(rows, labels).to_local().decision_function(X)
        return refining.SMOOTH["squared_hinge"]((2 * y - 1) * scores)[0].mean()

    losses = [total_loss(n_steps) for n_steps in (0, 3, 12)]
    assert losses[2] < losses[1] < losses[0]


@pytest.mark.parametrize("starts", [[0, 5, 10, 15], [0, 5, 7, 300]], ids=["uniform", "not uniform"])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_sums_by_cell_equal_those_of_a_loop(dtype, starts):
    rng = np.random.default_rng(0)
    starts, values, expected = np.array(starts), rng.normal(size=(50, 2)), np.zeros((starts[-1], 2))
    cells = np.column_stack([rng.integers(size, size=50) for size in np.minimum(np.diff(starts), 256)]).astype(dtype)
    for row, value in zip(cells, values, strict=True):
        for start, cell in zip(starts, row, strict=False):
            expected[start + int(cell)] += value
    assert np.array_equal(design.CellFeatures(cells, starts, 1).transposed_times(values), expected)


def as_matrix(features, n):
    return np.column_stack([features.times(column[:, None])[:, 0] for column in np.eye(n)])


@pytest.mark.parametrize("form", FORMS)
def test_products_with_features_are_those_of_one_matrix(form):
    rng = np.random.default_rng(0)
    cells = design.CellFeatures(rng.integers(4, size=(30, 6)).astype(np.uint8), np.arange(0, 28, 4), 3)
    rows = rng.normal(size=(30, 5)).astype(np.float32)
    linear = design.LinearFeatures(rows if form == "dense" else sparse.csr_array(rows), 0.4, 3)
    both = design.Design([cells, linear])
    matrix = as_matrix(both, 30)
    assert np.allclose(matrix[:, :24].sum(axis=1), 2)  # a third for each of two scales in each of three partitionings
    assert np.allclose(matrix[:, 24:29], rows)
    assert (matrix[:, 29] == 0.4).all()
    values = rng.normal(size=(30, 2))
    np.testing.assert_allclose(both.transposed_times(values), matrix.T @ values, atol=1e-12)
    np.testing.assert_allclose(both.squares(), 9 * (matrix**2).sum(axis=0), atol=1e-6)
