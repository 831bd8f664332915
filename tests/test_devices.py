"""Test mapping and scoring on devices: results equal those of the compiled core, in the rows' own library."""

from __future__ import annotations

import array_api_strict
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from sklearn.base import clone

from arrays import LIBRARIES, array_of, assert_same_cells, csr_tensor, needs_jax, needs_torch, to_numpy
from isokern import (
    IKSVC,
    IKOGDClassifier,
    IKOGDClassifierCV,
    IKOGDRegressor,
    IKOGDRegressorCV,
    IsolationKernel,
    OGDClassifier,
    load,
    save,
)
from isokern.devices import cells as device_cells
from isokern.devices import voronoi
from isokern.devices.trees import ordered_integers
from test_voronoi import make_points

KINDS = ["clustered", "tied", "offset", "repeated", "one large column", "single", "binary", "mixed"]
PARTITIONINGS = ["voronoi", "tree"]
SECOND = array_api_strict.Device("device1")


@pytest.fixture(scope="session", params=LIBRARIES)
def library(request):
    return request.param


@pytest.fixture(scope="session", params=PARTITIONINGS)
def partitioning(request):
    return request.param


@pytest.fixture(scope="session", params=[np.float32, np.float64])
def dtype(request):
    return request.param


@pytest.fixture(scope="session", params=KINDS)
def kind(request):
    return request.param


def make_table(kind, n, d):
    rng = np.random.default_rng(0)
    if kind == "binary":
        return (rng.random((n, d)) < 0.3).astype(np.float64)
    if kind == "mixed":  # the points are integers, the rows are not
        return rng.integers(-4, 5, size=(n, d)).astype(np.float64)
    return make_points(kind, n, d)


def some_rows(X, kind):
    rows = np.vstack([X[:60], (X[:30] + X[30:60]) / 2, X[:5] + 1e3, np.zeros_like(X[:1])])
    return rows + 1e-9 if kind == "mixed" else rows


@pytest.fixture
def n_undecided(monkeypatch):
    """Return a list of the numbers of rows that devices leave to the core, call by call."""
    counts, decided = [], device_cells._decided

    def counting(source, fitted, numbers, threads):
        counts.append(len(numbers))
        return decided(source, fitted, numbers, threads)

    monkeypatch.setattr(device_cells, "_decided", counting)
    return counts


@pytest.fixture
def small_blocks(monkeypatch):
    """Give devices memory for few rows at a time."""
    monkeypatch.setattr("isokern.devices.operations._BUDGET", 2**19)


@pytest.fixture(scope="module")
def table():
    return np.random.default_rng(0).normal(size=(400, 6))


@pytest.fixture(scope="module")
def kernel(table):
    return IsolationKernel("voronoi", 15, 32, random_state=0).fit(table)


@pytest.fixture(scope="module")
def model(table):
    return IKOGDClassifier(n_cells=16, random_state=0).fit(table, table[:, 0] > 0)


# The same cells


def test_cells_are_those_of_the_core(partitioning, kind, dtype, library, small_blocks):
    for d in (4, 200):
        X = make_table(kind, 900, d)
        kernel = IsolationKernel(partitioning, 8, 120, random_state=0).fit(X)
        assert_same_cells(kernel, some_rows(X, kind).astype(dtype), library)


@needs_jax
def test_jax_arrays_give_the_same_results_without_float64(partitioning, kind):
    X = make_table(kind, 900, 40).astype(np.float32)
    rows = some_rows(X, kind).astype(np.float32)
    model = IKOGDClassifier(partitioning, 8, 120, random_state=0).fit(X, np.arange(900) % 2)
    assert_same_cells(model.kernel_, rows, "jax")
    there = array_of("jax", rows)
    np.testing.assert_array_equal(to_numpy(model.kernel_.similarity(there)), model.kernel_.similarity(rows))
    np.testing.assert_allclose(to_numpy(model.decision_function(there)), model.decision_function(rows), atol=1e-5)


@needs_torch
def test_numpy_and_scipy_rows_fall_into_the_same_cells_on_a_device(partitioning, kind, dtype, small_blocks):
    X = make_table(kind, 900, 30)
    X[:, ::3] = 0
    kernel = IsolationKernel(partitioning, 8, 300, random_state=0).fit(X)
    rows = some_rows(X, kind).astype(dtype)
    expected = kernel.apply(rows)
    kernel.set_params(device="torch:cpu")
    for given_rows in (rows, sparse.csr_array(rows), np.asfortranarray(rows)):
        cells = kernel.apply(given_rows)
        assert cells.dtype == expected.dtype
        np.testing.assert_array_equal(cells, expected)
    np.testing.assert_array_equal(to_numpy(kernel.apply(csr_tensor(rows))), expected)


@given(
    X=arrays(
        np.float64,
        st.tuples(st.integers(3, 12), st.integers(1, 4)),
        elements=st.sampled_from([0.0, -0.0, 1.0, 0.5, 1e6, 1e6 + 2**-10, 1e-30]) | st.floats(-1e6, 1e6),
    ),
    partitioning=st.sampled_from(PARTITIONINGS),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_cells_are_those_of_the_core_for_any_table(library, X, partitioning, dtype):
    kernel = IsolationKernel(partitioning, 20, 3, random_state=0).fit(X)
    assert_same_cells(kernel, X.astype(dtype), library)


@pytest.mark.parametrize("factor", [1e-200, 1e-35, 1e35, 1e200])
def test_the_core_decides_magnitudes_beyond_float32(factor, library, table):
    X = table * factor
    assert_same_cells(IsolationKernel("voronoi", 10, 40, random_state=0).fit(X), X, library)


def test_the_core_decides_rows_far_from_all_points(library, kernel, n_undecided):
    assert_same_cells(kernel, np.array([[1e200] * 6, [1e18] * 6, [0.0] * 6]), library)
    assert n_undecided[0] >= 2


@pytest.mark.parametrize("scale", ["minmax", "standard", "maxabs"])
def test_scaled_rows_fall_into_the_same_cells(partitioning, scale, library, table):
    kernel = IsolationKernel(partitioning, 10, 64, scale=scale, random_state=0).fit(table * 10.0 ** np.arange(6))
    for rows in (table * 3, table.astype(np.float32)):
        assert_same_cells(kernel, rows, library)


@needs_torch
@pytest.mark.parametrize("scale", ["minmax", "maxabs"])
def test_scaling_is_the_same_on_a_device_and_for_csr(scale, table):
    kernel = IsolationKernel("voronoi", 10, 64, scale=scale, random_state=0).fit(table)
    expected = kernel.apply(table)
    np.testing.assert_array_equal(kernel.set_params(device="torch:cpu").apply(table), expected)
    if scale == "maxabs":
        np.testing.assert_array_equal(kernel.apply(sparse.csr_array(table)), expected)
        np.testing.assert_array_equal(to_numpy(kernel.apply(csr_tensor(table))), expected)
        single = table.astype(np.float32)
        np.testing.assert_array_equal(to_numpy(kernel.apply(csr_tensor(single))), kernel.apply(single))
    else:
        with pytest.raises(ValueError, match="X must be dense: the scaling was fitted to dense rows"):
            kernel.apply(csr_tensor(table))


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8, np.float16, bool])
def test_rows_of_any_real_dtype_fall_into_the_same_cells(dtype, library, partitioning):
    rows = np.random.default_rng(0).integers(0, 50, size=(80, 3)).astype(dtype)
    if library == "array-api-strict" and dtype == np.float16:
        pytest.skip("array-api-strict has no float16")
    assert_same_cells(IsolationKernel(partitioning, 10, 16, random_state=0).fit(rows.astype(float)), rows, library)


def test_trees_of_limited_depth_and_of_one_leaf_are_descended(library, table):
    for max_depth, X in (("log2", table), (1, table), (None, np.ones((20, 6)))):
        kernel = IsolationKernel("tree", 10, 16, max_depth=max_depth, random_state=0).fit(X)
        assert_same_cells(kernel, table, library)


@needs_torch
def test_sparse_rows_of_very_many_columns_fall_into_the_same_cells(partitioning):
    X = sparse.random_array((300, 200_000), density=1e-4, format="csr", rng=np.random.default_rng(0))
    kernel = IsolationKernel(partitioning, 5, 64, random_state=0).fit(X)
    expected = kernel.apply(X)
    np.testing.assert_array_equal(kernel.set_params(device="torch:cpu").apply(X), expected)
    bad = X.copy()
    bad.data[bad.indptr[9]] = np.nan
    with pytest.raises(ValueError, match=r"X must be finite; got NaN in column .*, first in row 9"):
        kernel.apply(bad)


@needs_torch
def test_sparse_rows_without_stored_values_have_cells(table, partitioning):
    X = sparse.csr_array((50, 6))
    kernel = IsolationKernel(partitioning, 5, 16, device="torch:cpu", random_state=0).fit(X)
    for rows in (X, sparse.vstack([X, X]), table):
        np.testing.assert_array_equal(kernel.apply(rows), 0)


def test_gathering_from_the_pool_and_multiplying_all_points_give_the_same_cells(library, table, monkeypatch):
    for lookup, pays in ((-1.0, True), (1e9, False)):
        monkeypatch.setattr(voronoi, "_LOOKUP", lookup)
        kernel = IsolationKernel("voronoi", 15, 100, random_state=0).fit(np.repeat(table, 2, axis=0))
        assert_same_cells(kernel, table, library)
        ((mapper, _),) = kernel.map_.partitionings.on_devices.values()
        assert (mapper._lookups is not None) == pays


# What devices decide themselves


def test_ties_of_small_integers_are_decided_on_the_device(library, n_undecided):
    X = make_table("binary", 900, 20)
    kernel = IsolationKernel("voronoi", 10, 200, random_state=0).fit(X)
    assert_same_cells(kernel, X, library)
    assert n_undecided == [0]
    assert_same_cells(kernel, X[:50] * (1.0 + 2.0**-40), library)  # integers in float32 only
    assert n_undecided[1] > 40


def test_few_rows_are_left_to_the_core_if_points_are_far_apart(library, table, kernel, n_undecided):
    kernel.apply(array_of(library, table))
    assert n_undecided[0] < 20


@needs_torch
def test_float64_products_leave_fewer_rows_to_the_core(monkeypatch, n_undecided):
    X = make_points("offset", 900, 130)
    kernel = IsolationKernel("voronoi", 10, 200, random_state=0).fit(X)
    expected = kernel.apply(X)
    for given_rows, device in ((array_of("torch", X), None), (X, "torch:cpu"), (csr_tensor(X), None)):
        kernel.set_params(device=device)
        n_undecided.clear()
        np.testing.assert_array_equal(to_numpy(kernel.apply(given_rows)), expected)
        with monkeypatch.context() as patch:
            patch.setattr(device_cells, "on_host", lambda xp, device: False)
            np.testing.assert_array_equal(to_numpy(kernel.apply(given_rows)), expected)
        assert n_undecided[0] > 200
        assert n_undecided[1] < 10


@needs_torch
def test_devices_without_float64_give_the_same_cells(partitioning, table, monkeypatch):
    import torch

    for module in ("sources", "trees", "voronoi"):
        monkeypatch.setattr(f"isokern.devices.{module}.has_float64", lambda xp, device: False)
    X = 1e6 + table
    kernel = IsolationKernel(partitioning, 10, 64, random_state=0).fit(X)
    for rows in (X, X.astype(np.float32), sparse.csr_array(X)):
        expected = kernel.set_params(device=None).apply(rows)
        np.testing.assert_array_equal(kernel.set_params(device="torch:cpu").apply(rows), expected)
    assert_same_cells(kernel, X, "torch")
    mappers = [mapper for mapper, _ in kernel.map_.partitionings.on_devices.values()]
    tensors = [value for mapper in mappers for value in vars(mapper).values() if isinstance(value, torch.Tensor)]
    assert tensors
    assert torch.float64 not in {tensor.dtype for tensor in tensors}


@given(st.lists(st.floats(allow_nan=False), min_size=2, max_size=8))
def test_ordered_integers_have_the_order_of_the_numbers(values):
    values = np.array(values)
    integers = ordered_integers(values)
    np.testing.assert_array_equal(integers[:, None] < integers, values[:, None] < values)


# Features, similarities, predictions


def test_all_scales_are_those_of_the_core(partitioning, dtype, library, table, small_blocks):
    rows = table.astype(dtype)
    kernel = IsolationKernel(partitioning, 10, 40, n_scales="auto", sparse_output=False, random_state=0).fit(table)
    assert_same_cells(kernel, rows, library)
    X, Y = array_of(library, rows[:50]), array_of(library, rows[50:90])
    np.testing.assert_allclose(to_numpy(kernel.similarity(X, Y)), kernel.similarity(rows[:50], rows[50:90]), rtol=1e-6)
    np.testing.assert_array_equal(np.diag(to_numpy(kernel.similarity(X))), 1.0)
    expected = kernel.transform(rows[:50])
    for form in (True, False):
        np.testing.assert_array_equal(to_numpy(kernel.set_params(sparse_output=form).transform(X)), expected)


@needs_torch
def test_numpy_rows_have_the_same_cells_at_all_scales_on_a_device(partitioning, table):
    kernel = IsolationKernel(partitioning, 10, 300, n_scales="auto", random_state=0).fit(table)
    expected = kernel.apply(table)
    cells = kernel.set_params(device="torch:cpu").apply(table)
    assert cells.dtype == expected.dtype
    np.testing.assert_array_equal(cells, expected)


def test_features_and_similarities_are_those_of_the_core(partitioning, dtype, library, table, small_blocks):
    rows = table.astype(dtype)
    X, Y = array_of(library, rows[:50]), array_of(library, rows[50:90])
    kernel = IsolationKernel(partitioning, 10, 16, sparse_output=False, random_state=0).fit(table)
    cases = [(kernel.similarity(X), kernel.similarity(rows[:50]))]
    cases += [(kernel.similarity(X, Y), kernel.similarity(rows[:50], rows[50:90]))]
    expected = kernel.transform(rows[:50])
    cases += [(kernel.set_params(sparse_output=form).transform(X), expected) for form in (True, False)]
    for result, expected in cases:
        np.testing.assert_array_equal(to_numpy(result), expected)
        assert to_numpy(result).dtype == expected.dtype


@needs_torch
def test_sparse_features_of_tensors_are_csr_tensors(table):
    features = IsolationKernel("tree", 10, 16, random_state=0).fit(table).transform(array_of("torch", table))
    assert str(features.layout) == "torch.sparse_csr"
    assert features.shape == (400, 160)
    assert features.values().shape == (4000,)


SMALL = {"n_partitionings": 10, "n_cells": 32, "random_state": 0}
LEARNERS = {
    "classes": IKOGDClassifier(**SMALL),
    "averaged": IKOGDClassifier(**SMALL, average=True, schedule="constant", shrinkage=1e-3),
    "logistic": IKOGDClassifier(**SMALL, loss="logistic", partitioning="voronoi"),
    "dual": IKOGDClassifier(**SMALL, evaluation="dual", schedule="constant"),
    "search": IKOGDClassifierCV(n_partitionings=10, n_cells=[8, 16], random_state=0),
    "search for numbers": IKOGDRegressorCV(n_partitionings=10, n_cells=[8, 16], random_state=0),
    "numbers": IKOGDRegressor(**SMALL),
    "numbers, averaged": IKOGDRegressor(**SMALL, average=True),
    "quantiles": IKOGDRegressor(**SMALL, loss="quantile", quantiles=(0.2, 0.7)),
    "machine": IKSVC(**SMALL, C=1.0, linear=False, probability=True),
    "machine, scales and linear": IKSVC(**SMALL, n_scales=2, linear=True),
    "machine, chosen": IKSVC(**SMALL),
    "rival": OGDClassifier(),
}


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", LEARNERS)
def test_predictions_are_those_for_numpy_rows(name, n_classes, library, table):
    y = (table[:, 0] * table[:, 1] > 0).astype(int) + (n_classes - 2) * (table[:, 2] > 0.5)
    learner = clone(LEARNERS[name]).fit(table, y)
    X = array_of(library, table[:100])
    for method in ("decision_function", "predict_proba", "predict"):
        if hasattr(learner, method):
            answer = getattr(learner, method)(X)
            assert type(answer) is type(X)
            expected = getattr(learner, method)(table[:100])
            np.testing.assert_allclose(to_numpy(answer), expected, rtol=1e-12, atol=1e-12)


def test_scores_follow_a_model_that_learns_on(library, table, model):
    model, X = clone(model).fit(table, table[:, 0] > 0), array_of(library, table)
    before = to_numpy(model.decision_function(X))
    model.partial_fit(table, table[:, 0] <= 0)
    np.testing.assert_allclose(to_numpy(model.decision_function(X)), model.decision_function(table), atol=1e-12)
    assert not np.allclose(to_numpy(model.decision_function(X)), before)


def test_the_majority_class_is_predicted_during_warm_up(library, table):
    model = IKOGDClassifier(growth=False, random_state=0).partial_fit(table[:50], [0] * 30 + [1] * 20)
    X = array_of(library, table[:3])
    assert to_numpy(model.predict(X)).tolist() == [0, 0, 0]
    np.testing.assert_allclose(to_numpy(model.predict_proba(X)), [[0.6, 0.4]] * 3)
    regressor = IKOGDRegressor(growth=False, random_state=0).partial_fit(table[:50], np.arange(50.0))
    np.testing.assert_allclose(to_numpy(regressor.predict(X)), [24.5] * 3)


def test_labels_that_are_not_numbers_are_numpy_arrays(library, table, model):
    model = clone(model).fit(table, np.where(table[:, 0] > 0, "yes", "no"))
    np.testing.assert_array_equal(model.predict(array_of(library, table)), model.predict(table))


def test_cells_of_a_device_are_scored_there_and_learned_on_the_host(library, table, model):
    y = table[:, 0] > 0
    model = clone(model).set_params(linear=False)
    model, twin = clone(model).fit(table, y), clone(model).fit(table, y).partial_fit(table, y)
    cells = model.kernel_.apply(array_of(library, table))
    scores = model.decision_function_cells(cells)
    assert type(scores) is type(cells)
    np.testing.assert_allclose(to_numpy(scores), model.decision_function(table), atol=1e-12)
    model.partial_fit_cells(cells, y)
    np.testing.assert_array_equal(model.decision_function(table), twin.decision_function(table))
    with pytest.raises(ValueError, match="cells must be from 0 to 15; got"):
        model.decision_function_cells(cells + 1)


def test_fit_copies_rows_of_other_libraries_to_the_host(library, table, kernel):
    fitted = clone(kernel).fit(array_of(library, table))
    np.testing.assert_array_equal(fitted.apply(table), kernel.apply(table))


def test_results_are_on_the_device_of_the_rows(table, kernel, model):
    X = array_api_strict.asarray(table, device=SECOND)
    answers = [method(X) for method in (kernel.apply, kernel.transform, kernel.similarity)]
    answers += [method(X) for method in (model.decision_function, model.predict, model.predict_proba)]
    assert {answer.device for answer in answers} == {SECOND}
    cells = array_api_strict.asarray(answers[0], device=array_api_strict.Device("CPU_DEVICE"))
    np.testing.assert_array_equal(np.asarray(cells), kernel.apply(table))


class Halves:
    """Two cells, by the sign of the first column."""

    n_cells_ = 2

    def fit(self, X, rng):
        return self

    def apply(self, X):
        return (X[:, 0] > 0).astype(int)


def test_user_defined_partitionings_get_rows_on_the_host(library, table):
    kernel, X = IsolationKernel(Halves(), 5, random_state=0).fit(table), array_of(library, table)
    assert_same_cells(kernel, table, library)
    np.testing.assert_array_equal(to_numpy(kernel.transform(X)), kernel.transform(table).toarray())
    np.testing.assert_array_equal(to_numpy(kernel.similarity(X)), kernel.similarity(table))


def test_copies_on_a_device_are_not_saved(library, table, kernel, tmp_path):
    kernel.apply(array_of(library, table))
    assert kernel.map_.partitionings.on_devices
    save(kernel, tmp_path / "kernel")
    loaded = load(tmp_path / "kernel")
    assert not loaded.map_.partitionings.on_devices
    np.testing.assert_array_equal(loaded.apply(table), kernel.apply(table))


# Bad input


@pytest.mark.parametrize(("value", "what"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_an_error_names_values_that_are_not_finite(value, what, partitioning, library, table):
    kernel = IsolationKernel(partitioning, 5, 16, random_state=0).fit(table)
    rows = table.copy()
    rows[[77, 300], 4] = value
    takes_nan = partitioning == "tree" and what == "NaN"
    dense = [] if takes_nan else [array_of(library, rows)]
    for X in [*dense, *([csr_tensor(rows)] if library == "torch" else [])]:
        with pytest.raises(ValueError, match=f"X must be finite; got {what} in column 4, first in row 77"):
            kernel.apply(X)


def test_missing_values_give_the_cells_of_the_core(library, table):
    rows = table.copy()
    rows[::7, 4] = np.nan
    kernel = IsolationKernel("tree", 5, 16, random_state=0, scale="minmax").fit(rows)
    np.testing.assert_array_equal(to_numpy(kernel.apply(array_of(library, rows))), kernel.apply(rows))


def test_categories_are_refused(library, table):
    kernel = IsolationKernel("tree", 5, 16, categorical_features=[1]).fit(table)
    with pytest.raises(ValueError, match="X must be a data frame or an array of NumPy, since it has categories"):
        kernel.apply(array_of(library, table))


WRONG_ROWS = [
    (np.zeros(6), "X must have 2 dimensions; got 1"),
    (np.zeros((0, 6)), "X must have at least 1 row"),
    (np.zeros((3, 5)), "X has 5 features"),
    (np.ones((3, 6)) * 1j, "X must be of real numbers; got"),
]


@pytest.mark.parametrize(("rows", "message"), WRONG_ROWS, ids=[message for _, message in WRONG_ROWS])
def test_arrays_of_another_shape_or_type_are_an_error(rows, message, library, kernel):
    with pytest.raises(ValueError, match=message):
        kernel.apply(array_of(library, rows))


def test_rows_without_names_give_scikit_learn_s_warning(library, table):
    kernel = IsolationKernel(n_cells=16, random_state=0).fit(pd.DataFrame(table, columns=list("abcdef")))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        kernel.apply(array_of(library, table))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (array_api_strict.asarray, lambda X: array_api_strict.asarray(X, device=SECOND)),
        (array_api_strict.asarray, lambda X: X),
        (lambda X: X, array_api_strict.asarray),
    ],
    ids=["devices", "NumPy second", "NumPy first"],
)
def test_similarities_between_libraries_or_devices_are_an_error(first, second, kernel, table):
    with pytest.raises(ValueError, match=r"Y must have the library and the device of X, .* Move one of them first"):
        kernel.similarity(first(table), second(table))


@pytest.mark.parametrize("device", ["abacus", "cuda:x", "torch:cuda", "cpu:1", 0, "meta"])
def test_an_unknown_device_is_an_error_in_fit(device, table):
    with pytest.raises(ValueError, match='device must be None, "cpu" or a PyTorch device: "cuda"'):
        IsolationKernel(device=device).fit(table)


def test_a_device_for_user_defined_partitionings_is_an_error(table):
    with pytest.raises(ValueError, match=r"device must be None for your own partitioning; got 'cuda'"):
        IsolationKernel(Halves(), device="cuda").fit(table)


@pytest.mark.parametrize(("package", "work"), [("torch", "device"), ("array_api_compat", "array")])
def test_an_error_names_the_missing_package(package, work, table, kernel, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(ImportError, match=r"need a package: pip install isokern\[gpu\]"):
        if work == "device":
            IsolationKernel(device="cuda").fit(table)
        else:
            kernel.apply(array_api_strict.asarray(table))


def test_neither_pytorch_nor_array_libraries_are_imported_without_need(run_script):
    code = """
import sys
kernel = IsolationKernel(n_cells=4).fit(np.eye(9))
kernel.apply(np.eye(9))
print([name for name in ("torch", "array_api_compat", "array_api_strict", "jax", "cupy") if name in sys.modules])
"""
    assert run_script(code) == "[]"
