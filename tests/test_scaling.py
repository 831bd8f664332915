"""Test the scaling that a kernel learns with its map."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from isokern import IsolationKernel

PARTITIONINGS = ["tree", "voronoi"]
SCALERS = {"minmax": MinMaxScaler, "standard": StandardScaler, "maxabs": MaxAbsScaler}
every_scale = pytest.mark.parametrize("scale", SCALERS)


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(200, 5)) * 10.0 ** np.arange(-2, 3) + [5, -3, 0, 2, 100]


@pytest.fixture
def others():
    return np.random.default_rng(1).normal(size=(100, 5)) * 10.0 ** np.arange(2, -3, -1)


def make_kernel(partitioning, scale=None):
    return IsolationKernel(partitioning, 20, 32, scale=scale, random_state=0)


def assert_scaled_like_scikit_learn(partitioning, scale, X, others):
    """Compare the cells with those of rows that scikit-learn scaled in float64."""
    scaler = SCALERS[scale]().fit(X.astype(float))
    scaled, others_scaled = (scaler.transform(rows.astype(float)) for rows in (X, others))
    expected = make_kernel(partitioning).fit(scaled).apply(others_scaled)
    np.testing.assert_array_equal(make_kernel(partitioning, scale).fit(X).apply(others), expected)


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
@every_scale
def test_a_scale_equals_scikit_learn_s_scaler_before_the_kernel(scale, partitioning, X, others):
    assert_scaled_like_scikit_learn(partitioning, scale, X, X)
    assert_scaled_like_scikit_learn(partitioning, scale, X, others)
    X[:, 1:3] = [0.0, 3.0]  # constant columns
    assert_scaled_like_scikit_learn(partitioning, scale, X, X)


@pytest.mark.usefixtures("tiny_blocks")
@every_scale
def test_a_scale_is_learned_from_all_blocks(scale, X):
    assert_scaled_like_scikit_learn("voronoi", scale, X, X)


@every_scale
def test_float32_rows_are_scaled_in_float64(scale, X):
    # Next to the mean of the large values, float32 could not tell the small ones apart.
    single = (X * np.logspace(-6, 3, len(X))[:, None]).astype(np.float32)
    assert_scaled_like_scikit_learn("voronoi", scale, single, single)


@every_scale
def test_features_of_scaled_float32_rows_are_float32(scale, X):
    assert make_kernel("tree", scale).fit_transform(X.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("n_columns", [5, 3000])
@pytest.mark.parametrize("partitioning", PARTITIONINGS)
def test_maxabs_of_csr_equals_maxabs_of_dense_rows(partitioning, n_columns):
    X = sparse.random_array((100, n_columns), density=0.02, rng=0, format="csr")
    kernel = make_kernel(partitioning, "maxabs")
    expected = kernel.fit(X.toarray()).apply(X.toarray())
    np.testing.assert_array_equal(kernel.fit(X).apply(X), expected)


@every_scale
def test_scaling_makes_voronoi_cells_independent_of_units(scale, X):
    in_other_units = X * 2.0 ** np.array([10, -7, 0, 3, 1])
    kernel = make_kernel("voronoi", scale)
    np.testing.assert_array_equal(kernel.fit(in_other_units).apply(in_other_units), kernel.fit(X).apply(X))


@pytest.mark.parametrize("scale", ["minmax", "standard"])
def test_fitting_a_scale_that_shifts_zeros_to_sparse_rows_is_an_error(scale, X):
    message = f"scale must be None or \"maxabs\" for sparse X, which must keep its zeros; got '{scale}'"
    with pytest.raises(ValueError, match=message):
        make_kernel("tree", scale).fit(sparse.csr_array(X))


def test_applying_a_scale_that_shifts_zeros_to_sparse_rows_is_an_error(X):
    kernel = make_kernel("tree", "minmax").fit(X)
    with pytest.raises(ValueError, match="X must be dense: the scaling was fitted to dense rows and shifts zeros"):
        kernel.apply(sparse.csr_array(X))


def test_a_scale_without_offset_applies_to_sparse_rows(X):
    X = np.abs(X)
    X[0] = 0
    kernel = make_kernel("tree", "minmax").fit(X)
    np.testing.assert_array_equal(kernel.apply(sparse.csr_array(X)), kernel.apply(X))


@pytest.mark.parametrize(("scale", "size"), [("standard", 1e200), ("minmax", 1.7e308)])
def test_fitting_a_scale_to_values_that_overflow_is_an_error(scale, size):
    X = size * np.random.default_rng(0).uniform(-1, 1, (50, 2))
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="scale"):
        make_kernel("tree", scale).fit(X)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_scaled_values_that_overflow_are_an_error(form, X):
    kernel = make_kernel("tree", "maxabs").fit(1e-10 * X)
    with pytest.raises(ValueError, match="scale must leave X finite"):
        kernel.apply(form(1e300 * X))
