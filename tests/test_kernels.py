"""Check the classic kernels: the values that the core computes, and the choice of gamma."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import pairwise

import reference_rivals
from isokern import NOGDClassifier, OGDClassifier
from isokern.kernels import KERNELS, NamedKernel
from isokern.rows import core_rows
from learning import FORMS, every, make_rows

GAMMA = {"laplacian": 0.05, "gaussian": 0.03, "polynomial": 0.2, "chi2": 1.0, "intersection": 1.0}
NORMALISED = ["polynomial", "chi2", "intersection"]

every_kernel = pytest.mark.parametrize("name", KERNELS)
every_form = every("form", FORMS)
narrow_and_wide = pytest.mark.parametrize("n_columns", [7, 5000])


def matrix(name, X, Z, *, gamma=None, normalised=False, threads=1):
    """Return the core's kernel matrix."""
    kernel = NamedKernel(name, GAMMA[name] if gamma is None else gamma, 1.0, 3, normalised=normalised)
    return kernel.matrix(core_rows(X, 0, X.shape[0]), core_rows(Z, 0, Z.shape[0]), threads)


def rows_of(n, n_columns, share=0.3, seed=0):
    """Return rows with values in [0, 1], most of them zero, the first row empty."""
    rng = np.random.default_rng(seed)
    n_few = min(n_columns, 40)
    few = rng.random((n, n_few)) * (rng.random((n, n_few)) < share)
    few[:1] = 0
    X = np.zeros((n, n_columns))
    X[:, np.linspace(0, n_columns - 1, n_few).astype(int)] = few
    return X


def assert_equal(actual, expected, rtol=1e-12):
    np.testing.assert_allclose(actual, expected, rtol=rtol, atol=1e-300)


@every_kernel
@every_form
@pytest.mark.parametrize("share", [0.3, 1.0])
@pytest.mark.parametrize("n_columns", [1, 7, 3000, 4096, 4097])
def test_a_kernel_equals_its_definition(n_columns, share, form, name):
    X, Z = rows_of(20, n_columns, share, seed=0), rows_of(21, n_columns, share, seed=1)
    assert_equal(matrix(name, form(X), form(Z)), reference_rivals.kernel(name, X, Z, GAMMA[name]))


@every_kernel
@every_form
@pytest.mark.parametrize("n_columns", [5000, 32_768, 32_769])
def test_a_kernel_of_dense_points_of_many_columns_equals_its_definition(n_columns, form, name):
    dense = np.random.default_rng(0).random((9, n_columns)) * (np.arange(n_columns) % 4 > 0)
    few = rows_of(10, n_columns, seed=1)
    for points in (np.vstack([dense, few]), np.vstack([few, dense])):  # the first point decides how points are stored
        expected = reference_rivals.kernel(name, points, points, 1 / n_columns)
        assert_equal(matrix(name, form(points), form(points), gamma=1 / n_columns), expected)


@pytest.mark.parametrize("name", NORMALISED)
@narrow_and_wide
def test_a_normalised_kernel_equals_its_definition(n_columns, name):
    X = rows_of(20, n_columns)[1:] + 0.01 * np.eye(1, n_columns)
    expected = reference_rivals.kernel(name, X, X, GAMMA[name], normalised=True)
    assert_equal(matrix(name, X, X, normalised=True), expected)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("laplacian", lambda X, Z: pairwise.laplacian_kernel(X, Z, gamma=0.05)),
        ("gaussian", lambda X, Z: pairwise.rbf_kernel(X, Z, gamma=0.03)),
        ("polynomial", lambda X, Z: pairwise.polynomial_kernel(X, Z, gamma=0.2, coef0=1.0, degree=3)),
    ],
)
def test_a_kernel_equals_that_of_scikit_learn(name, other):
    X, Z = np.random.default_rng(0).normal(size=(30, 6)), np.random.default_rng(1).normal(size=(25, 6))
    np.testing.assert_allclose(matrix(name, X, Z), other(X, Z), rtol=1e-11)


@every_kernel
@narrow_and_wide
def test_values_do_not_depend_on_forms_dtypes_threads_or_other_points(n_columns, name):
    X, Z = (rows_of(n, n_columns, seed=n).astype(np.float32).astype(float) for n in (100, 21))
    expected = matrix(name, X, Z)
    assert np.array_equal(matrix(name, X, sparse.csr_array(Z)), expected)
    assert np.array_equal(matrix(name, sparse.csr_array(X), Z), expected)
    assert np.array_equal(matrix(name, np.float32(X), np.float32(Z)), expected)
    assert np.array_equal(matrix(name, X, Z, threads=2), expected)
    for n_points in (1, 7, 8, 9, 15, 16, 17):
        assert np.array_equal(matrix(name, X, Z[:n_points]), expected[:, :n_points])


OFFSETS = {
    "all columns": lambda rng: 1e6 + rng.normal(size=(20, 6)),
    "few of many columns": lambda rng: np.hstack([1e6 + rng.normal(size=(20, 3)), np.zeros((20, 7))]),
    "few of very many columns": lambda rng: np.hstack([1e6 + rng.normal(size=(20, 3)), np.zeros((20, 2997))]),
}


@pytest.mark.parametrize("name", ["laplacian", "gaussian"])
@pytest.mark.parametrize("where", OFFSETS)
def test_a_large_offset_loses_no_precision(where, name):
    X = OFFSETS[where](np.random.default_rng(0))
    assert_equal(matrix(name, X, X), reference_rivals.kernel(name, X, X, GAMMA[name]), rtol=1e-9)


@pytest.mark.parametrize("name", ["laplacian", "gaussian"])
@pytest.mark.parametrize("share", [0.3, 1.0])
@narrow_and_wide
@pytest.mark.parametrize("size", [1e-200, 1.0, 1e10, 1e200])
def test_the_kernel_of_a_row_with_itself_is_one(size, n_columns, share, name):
    X = size * rows_of(20, n_columns, share)
    gamma = 1 / size if name == "laplacian" else 10.0 ** np.clip(-2 * np.log10(size), -300, 300)
    np.testing.assert_allclose(matrix(name, X, X, gamma=gamma).diagonal(), 1.0, rtol=1e-12)


SIZES = [(name, size) for name in NORMALISED for size in (1e-200, 1.0, 1e10)]
SIZES += [("chi2", 1e200), ("intersection", 1e200)]


@narrow_and_wide
@pytest.mark.parametrize(("name", "size"), SIZES)
def test_a_normalised_kernel_of_a_row_with_itself_is_one(name, size, n_columns):
    X = rows_of(20, n_columns)
    X = size * X[X.any(axis=1)]
    np.testing.assert_allclose(matrix(name, X, X, normalised=True).diagonal(), 1.0, rtol=1e-12)


# Kernels of learners


@pytest.mark.parametrize("learner", [OGDClassifier, NOGDClassifier])
def test_gamma_from_psi_is_its_logarithm_over_the_number_of_columns(learner):
    X, y = make_rows(50)
    assert learner(n_cells=16).fit(X, y).gamma_ == np.log(16) / 3


DISTANCES = {
    "laplacian": lambda X: np.abs(X[:, None] - X).sum(axis=2).mean(),
    "gaussian": lambda X: ((X[:, None] - X) ** 2).sum(axis=2).mean(),
    "polynomial": lambda X: (X**2).sum(axis=1).mean(),
}


@every_form
@pytest.mark.parametrize("name", DISTANCES)
def test_gamma_from_data_is_one_over_the_mean_distance(name, form):
    X, y = make_rows(300)
    gamma = OGDClassifier(name, random_state=0).fit(form(X), y).gamma_
    assert gamma == pytest.approx(1 / DISTANCES[name](X), rel=0.15)  # it draws 1000 pairs


def test_gamma_from_data_of_equal_rows_is_one():
    assert OGDClassifier().fit(np.ones((10, 3)), np.arange(10) % 2).gamma_ == 1.0


@every_form
@pytest.mark.parametrize("name", ["chi2", "intersection"])
@pytest.mark.parametrize("learner", [OGDClassifier, NOGDClassifier])
def test_negative_values_are_an_error_for_kernels_that_are_not_defined_for_them(learner, name, form):
    X, y = make_rows(200)
    message = rf'^X must not be negative for kernel="{name}"; got -'
    with pytest.raises(ValueError, match=message):
        learner(name).fit(form(X), y)
    model = learner(name).fit(form(np.abs(X)), y)
    with pytest.raises(ValueError, match=message):
        model.predict(form(X))
