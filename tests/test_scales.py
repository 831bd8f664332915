"""Test the cells and the kernel at several scales against the NumPy twin."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.estimator_checks import parametrize_with_checks

import isokern
import reference
import tables
from isokern import IsolationKernel, _core
from isokern.fitted_map import FittedMap
from isokern.partitionings import most_scales

T, N_CELLS, N_SCALES = 4, 48, 3
every_method = pytest.mark.parametrize("method", tables.METHODS)
TREES = [method for method in tables.METHODS if method != "voronoi"]


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(90, 3)).round(1)


def make_kernel(method, **options):
    parameters = {"n_partitionings": T, "n_cells": N_CELLS, "n_scales": "auto", "random_state": tables.SEED}
    return IsolationKernel(**parameters | tables.METHODS[method] | options)


def expected_cells(kernel, X, categorical=()):
    """Return the cells of rows and the number of cells, by walking the arrays of a kernel's trees."""
    trees = kernel.map_.partitionings
    return reference.tree_scales(trees.arrays, np.asarray(X), trees.n_cells, kernel.n_scales_, categorical)


# The number of scales


@pytest.mark.parametrize(
    ("n_cells", "n_scales"),
    [(1, 1), (2, 1), (4, 1), (5, 2), (16, 2), (17, 3), (64, 3), (65, 4), (4**7, 7)],
)
def test_there_are_at_most_as_many_scales_as_the_logarithm_of_the_cells_to_base_four(n_cells, n_scales):
    assert most_scales(n_cells) == n_scales


@pytest.mark.parametrize(("given", "n_scales"), [(1, 1), (2, 2), (3, 3), (4, 3), (1000, 3), ("auto", 3)])
@every_method
def test_a_larger_number_of_scales_is_limited(method, given, n_scales, X):
    assert make_kernel(method, n_scales=given).fit(X).n_scales_ == n_scales


@pytest.mark.parametrize("n_scales", [0, -1, 1.5, True, None, "all"])
def test_a_bad_number_of_scales_is_an_error(n_scales):
    with pytest.raises(ValueError, match='n_scales must be "auto" or an integer of at least 1; got '):
        IsolationKernel(n_scales=n_scales).fit(np.eye(3))


# Trees


@pytest.mark.parametrize("method", TREES)
@pytest.mark.parametrize("name", tables.TABLES)
def test_nodes_hold_the_sampled_points_that_reach_them(name, method):
    D, _ = tables.table(name)
    kernel = make_kernel(method).fit(D)
    arrays, samples = kernel.map_.partitionings.arrays, reference.draw_samples(50, T, N_CELLS, reference.seed_of(3))
    for i, sample in enumerate(samples):
        tree = {key: values[slice(*arrays["starts"][i : i + 2])] for key, values in arrays.items() if key != "starts"}
        visited = np.concatenate([reference.tree_path(tree, row) for row in D[sample]])
        np.testing.assert_array_equal(np.bincount(visited), tree["n_points"])


@pytest.mark.parametrize("n_scales", [2, N_SCALES])
@pytest.mark.parametrize("form", tables.FORMS)
@pytest.mark.parametrize("method", TREES)
@pytest.mark.parametrize("name", tables.TABLES)
def test_cells_of_trees_equal_the_numpy_twin(name, method, form, n_scales):
    D, X = tables.table(name)
    kernel = make_kernel(method, n_scales=n_scales).fit(tables.FORMS[form](D))
    expected, sizes = expected_cells(kernel, X)
    np.testing.assert_array_equal(kernel.apply(tables.FORMS[form](X)), expected)
    np.testing.assert_array_equal(np.diff(kernel.map_.starts).reshape(sizes.shape), sizes)


@pytest.mark.parametrize("n_cells", [2, 17, 256, 257])
def test_cells_of_trees_of_any_size_equal_the_numpy_twin(n_cells):
    X = np.random.default_rng(0).normal(size=(300, 3)).round(1)
    kernel = make_kernel("tree", n_cells=n_cells).fit(X)
    np.testing.assert_array_equal(kernel.apply(X[:100]), expected_cells(kernel, X[:100])[0])


def test_cells_of_single_rows_and_of_any_number_of_threads_are_the_same():
    X = np.random.default_rng(0).normal(size=(700, 3))
    kernel = make_kernel("tree", n_cells=300, n_jobs=1).fit(X)
    cells = kernel.apply(X)
    np.testing.assert_array_equal(kernel.set_params(n_jobs=3).apply(X), cells)
    np.testing.assert_array_equal(np.concatenate([kernel.apply(X[k : k + 1]) for k in range(20)]), cells[:20])
    assert kernel.apply(X[:1]).shape == (1, T * 5)


@pytest.mark.parametrize("max_depth", [None, 3])
def test_cells_of_missing_values_and_categories_equal_the_numpy_twin(max_depth):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4)).round(1)
    X[:, [0, 2]] = rng.integers(0, 9, size=(200, 2))
    X[rng.random(X.shape) < 0.2] = np.nan
    kernel = make_kernel("tree", n_cells=100, max_depth=max_depth, categorical_features=[0, 2]).fit(X[:150])
    codes = X.copy()
    for column in (0, 2):
        names = [None if np.isnan(value) else str(int(value)) for value in X[:, column]]
        codes[:, column] = _core.category_codes(names, lambda name: name)
    np.testing.assert_array_equal(kernel.apply(X), expected_cells(kernel, codes, (0, 2))[0])


# Voronoi cells


@pytest.mark.parametrize("n_scales", [2, N_SCALES])
@pytest.mark.parametrize("form", tables.FORMS)
@pytest.mark.parametrize("name", tables.TABLES)
def test_voronoi_cells_equal_the_numpy_twin(name, form, n_scales):
    D, X = tables.table(name)
    kernel = make_kernel("voronoi", n_scales=n_scales).fit(tables.FORMS[form](D))
    expected = reference.voronoi_scales(X, D, T, N_CELLS, n_scales, reference.seed_of(tables.SEED))
    np.testing.assert_array_equal(kernel.apply(tables.FORMS[form](X)), expected)
    assert list(np.diff(kernel.map_.starts)) == T * [3, 12, 48][-n_scales:]


# All partitionings


@every_method
def test_the_finest_scale_has_the_cells_of_a_kernel_with_one(method, X):
    kernel = make_kernel(method).fit(X)
    plain = make_kernel(method, n_scales=1).fit(X)
    assert kernel.n_cells_ == plain.n_cells_ == N_CELLS
    np.testing.assert_array_equal(kernel.apply(X)[:, N_SCALES - 1 :: N_SCALES], plain.apply(X))


def test_codes_of_trees_are_leaves_and_expand_to_cells(X):
    kernel = make_kernel("tree").fit(X)
    codes = kernel.map_.codes(X, 1)
    np.testing.assert_array_equal(codes, make_kernel("tree", n_scales=1).fit(X).apply(X))
    np.testing.assert_array_equal(kernel.map_.expand(codes, 2), kernel.apply(X))


def test_scale_weights_grow_from_coarse_to_fine_and_their_squares_sum_to_one(X):
    weights = make_kernel("tree").fit(X).map_.scale_weights
    np.testing.assert_allclose(weights[1:] / weights[:-1], 1.25)
    assert np.sum(weights**2) == pytest.approx(1)


# Features and similarities


@every_method
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sparse_output", [True, False])
def test_features_are_the_weights_of_the_scales_in_the_columns_of_the_cells(method, dtype, sparse_output, X):
    kernel = make_kernel(method, sparse_output=sparse_output).fit(X)
    cells, starts, width = kernel.apply(X.astype(dtype)), kernel.map_.starts, kernel.map_.width
    features = kernel.transform(X.astype(dtype))
    assert features.dtype == dtype
    assert features.shape == (len(X), width) == (len(X), len(kernel.get_feature_names_out()))
    weights = 1.25 ** np.arange(N_SCALES)
    expected = np.zeros((len(X), width))
    values = np.tile(weights / np.sqrt(T * np.sum(weights**2)), T)
    np.put_along_axis(expected, cells + starts[:-1], values[None], axis=1)
    np.testing.assert_allclose(features.toarray() if sparse_output else features, expected, rtol=1e-7, atol=0)


@every_method
def test_sparse_features_are_canonical_with_one_value_per_partitioning_and_scale(method, X):
    features = make_kernel(method).fit_transform(X)
    assert features.indices.dtype == features.indptr.dtype == np.int32
    assert (np.diff(features.indptr) == T * N_SCALES).all()
    assert (np.diff(features.indices.reshape(len(X), -1), axis=1) > 0).all()


@every_method
@pytest.mark.parametrize("n_scales", [2, N_SCALES])
@pytest.mark.parametrize(("dtype", "error"), [(np.float32, 1e-6), (np.float64, 1e-15)])
def test_the_kernel_is_the_product_of_features_and_exactly_one_on_the_diagonal(method, n_scales, dtype, error, X):
    kernel = make_kernel(method, n_partitionings=7, n_scales=n_scales).fit(X)
    rows = X.astype(dtype)
    K, features = kernel.similarity(rows), kernel.transform(rows).toarray()
    assert K.dtype == dtype
    np.testing.assert_array_equal(np.diag(K), 1.0)
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(kernel.similarity(rows[:9], sparse.csr_array(rows)), K[:9])
    np.testing.assert_allclose(K, features @ features.T, rtol=0, atol=error)
    assert np.linalg.eigvalsh(K.astype(float)).min() > -100 * error


@pytest.mark.parametrize(("t", "n_cells"), [(1, 17), (191, 5), (193, 20), (100, 90)])
def test_the_diagonal_is_exactly_one_for_any_number_of_partitionings_and_scales(t, n_cells, X):
    K = make_kernel("tree", n_partitionings=t, n_cells=n_cells).fit(X).similarity(X)
    np.testing.assert_array_equal(np.diag(K), 1.0)
    assert K.max() == 1.0
    assert K.min() >= 0.0


def test_names_of_features_give_partitioning_scale_and_cell(X):
    names = make_kernel("voronoi", n_partitionings=2, n_cells=5).fit(X).get_feature_names_out()
    cells = [(scale, cell) for scale, size in enumerate([2, 5]) for cell in range(size)]
    assert list(names) == [f"partitioning{i}_scale{scale}_cell{cell}" for i in range(2) for scale, cell in cells]


def test_too_many_stored_values_are_an_error(X, monkeypatch):
    kernel = make_kernel("tree").fit(X)
    monkeypatch.setattr("isokern.feature_map._INT32_MAX", 90 * T * N_SCALES - 1)
    with pytest.raises(ValueError, match=r"got 90 rows x 4 partitionings x 3 scales, \d+ columns\. Use apply"):
        kernel.transform(X)


@every_method
def test_one_scale_is_the_plain_kernel(method, X):
    kernel = make_kernel(method, n_scales=1).fit(X)
    cells = kernel.apply(X)
    assert kernel.map_.scale_weights.tolist() == [1.0]
    np.testing.assert_array_equal(kernel.similarity(X), (cells[:, None] == cells[None]).mean(axis=2))
    assert set(kernel.transform(X).data) == {1 / np.sqrt(T)}


@every_method
def test_columns_are_scaled_before_they_are_mapped(method, X):
    scaled = (X - X.min(axis=0)) / (X.max(axis=0) - X.min(axis=0))
    kernel = make_kernel(method, scale="minmax").fit(X)
    np.testing.assert_array_equal(kernel.apply(X), make_kernel(method).fit(scaled).apply(scaled))


def test_voronoi_samples_too_large_for_a_nested_search_have_the_same_cells(X, monkeypatch):
    expected = make_kernel("voronoi").fit(X).apply(X)
    monkeypatch.setattr("isokern.partitionings._LARGEST_NESTED", N_CELLS - 1)
    np.testing.assert_array_equal(make_kernel("voronoi").fit(X).apply(X), expected)


@parametrize_with_checks(
    [IsolationKernel(name, n_partitionings=10, n_scales="auto", random_state=0) for name in ("tree", "voronoi")]
)
def test_scikit_learn_s_estimator_checks_pass(estimator, check):
    check(estimator)


# Copies, files, and cells given by the user


def by_file(kernel, path):
    isokern.save(kernel, path)
    return isokern.load(path)


COPIES = {"pickle": lambda kernel, path: pickle.loads(pickle.dumps(kernel)), "file": by_file}


@every_method
@pytest.mark.parametrize("copied", COPIES)
def test_a_copy_has_the_same_scales(method, copied, X, tmp_path):
    kernel = make_kernel(method).fit(X)
    again = COPIES[copied](kernel, tmp_path / "kernel")
    assert again.n_scales_ == N_SCALES
    assert again.map_.difference(kernel.map_) is None
    np.testing.assert_array_equal(again.similarity(X), kernel.similarity(X))


@every_method
def test_mapping_rows_does_not_change_a_kernel(method, X):
    kernel = make_kernel(method).fit(X)
    before = pickle.dumps(kernel)
    kernel.similarity(X)
    assert pickle.dumps(kernel) == before


@every_method
@pytest.mark.parametrize("n_scales", [0, 4, 2**40, -1, 1.5, True, "auto", None])
def test_a_map_with_an_impossible_number_of_scales_is_an_error(method, n_scales, X):
    partitionings = make_kernel(method).fit(X).map_.partitionings
    with pytest.raises(ValueError, match="n_scales must be from 1 to 3; got "):
        FittedMap(partitionings, None, n_scales)


@every_method
def test_maps_of_the_same_partitionings_differ_by_the_number_of_scales(method, X):
    fitted = make_kernel(method).fit(X).map_
    assert fitted.difference(FittedMap(fitted.partitionings, None, 2)) == "the number of scales"
    assert fitted.difference(FittedMap(fitted.partitionings, None, 3)) is None


@every_method
def test_cells_are_checked_scale_by_scale(method, X):
    kernel = make_kernel(method).fit(X)
    cells = kernel.apply(X)
    np.testing.assert_array_equal(kernel.map_.check_cells(cells.astype(np.int64)), cells)
    with pytest.raises(ValueError, match=r"cells must be integers of shape \(n, 12\)"):
        kernel.map_.check_cells(cells[:, :T])
    with pytest.raises(ValueError, match="cells must be from 0 to 47; got "):
        kernel.map_.check_cells(cells.astype(np.int64) + 48)
    cells[3, 0] = 47  # the coarsest scale has fewer cells
    with pytest.raises(ValueError, match="cells must be below the number of cells of their partitioning"):
        kernel.map_.check_cells(cells)


# User-defined partitionings


class Intervals:
    """Cuts the first column into 2 and into 8 intervals."""

    n_scales_ = 2
    n_cells_ = (2, 8)

    def fit(self, X, rng):
        self.shift = rng.random()
        return self

    def apply(self, X):
        fine = np.clip(np.floor(X[:, 0] + self.shift) + 4, 0, 7).astype(int)
        return np.stack([fine // 4, fine], axis=1)


class Plain(Intervals):
    n_scales_ = 1
    n_cells_ = 8

    def apply(self, X):
        return super().apply(X)[:, 1]


@pytest.mark.parametrize("n_scales", ["auto", 2])
def test_a_user_defined_partitioning_may_offer_scales(n_scales, X):
    kernel = IsolationKernel(Intervals(), 3, n_scales=n_scales, random_state=0).fit(X)
    cells, features = kernel.apply(X), kernel.transform(X)
    assert (kernel.n_scales_, kernel.n_cells_, kernel.map_.starts.tolist()) == (2, 8, [0, 2, 10, 12, 20, 22, 30])
    for i, member in enumerate(kernel.map_.partitionings.members):
        np.testing.assert_array_equal(cells[:, 2 * i : 2 * i + 2], member.apply(X))
    assert features.shape == (90, 30)
    np.testing.assert_allclose((features @ features.T).toarray(), kernel.similarity(X), rtol=0, atol=1e-15)


@pytest.mark.parametrize("n_scales", [1, 3])
def test_another_number_of_scales_than_a_partitioning_offers_is_an_error(n_scales, X):
    with pytest.raises(ValueError, match=rf'n_scales must be "auto" or 2, which Intervals offers; got {n_scales}'):
        IsolationKernel(Intervals(), 3, n_scales=n_scales).fit(X)


@pytest.mark.parametrize("n_scales", [1, "auto"])
def test_a_user_defined_partitioning_without_scales_has_one(n_scales, X):
    kernel = IsolationKernel(Plain(), 3, n_scales=n_scales).fit(X)
    assert kernel.n_scales_ == 1
    assert kernel.apply(X).shape == (90, 3)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"n_scales_": 0}, "fit of Own must set n_scales_, if at all, to an integer of at least 1"),
        ({"n_scales_": "2"}, "fit of Own must set n_scales_, if at all, to an integer of at least 1"),
        ({"n_cells_": 8}, "n_cells_, a sequence of 2 integers of at least 1; got 8"),
        ({"n_cells_": (2, 4, 8)}, r"n_cells_, a sequence of 2 integers of at least 1; got \(2, 4, 8\)"),
        ({"n_cells_": (0, 8)}, "n_cells_, a sequence of 2 integers"),
        ({"n_cells_": "28"}, "n_cells_, a sequence of 2 integers"),
        ({"n_cells_": (1, 8)}, "apply of Own must return cells from 0 to 0; got 0 to 1"),
        ({"apply": lambda self, X: np.zeros(90, int)}, "Own must return 2 integers for each of 90 rows; got shape"),
        ({"apply": lambda self, X: np.zeros((90, 2))}, "2 integers for each of 90 rows; got .* dtype float64"),
    ],
)
def test_a_user_defined_partitioning_with_faulty_scales_is_an_error(attributes, message, X):
    own = type("Own", (Intervals,), attributes)()
    with pytest.raises(ValueError, match=message):
        IsolationKernel(own, 3, n_scales="auto", random_state=0).fit(X).apply(X)


def test_clones_of_a_user_defined_partitioning_must_offer_equally_many_scales(X):
    class Fickle(Plain):
        def fit(self, X, rng):
            self.n_scales_ = int(rng.integers(1, 1000))
            self.n_cells_ = (8,) * self.n_scales_ if self.n_scales_ > 1 else 8
            return self

    with pytest.raises(ValueError, match=r"n_scales_, if at all, .* the same in each clone; got "):
        IsolationKernel(Fickle(), 3, n_scales="auto", random_state=0).fit(X)
