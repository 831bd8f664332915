"""Test isolation trees, Voronoi cells, the samples they are drawn from, and user-defined partitionings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse, stats
from sklearn.base import BaseEstimator

import isokern
import reference
import tables
from isokern import IsolationKernel, _core

ANY_NUMBER = st.sampled_from([0.0, 0.0, 1.0, -1.0, 0.5]) | st.floats(allow_nan=False, allow_infinity=False)
EIGHTHS = st.integers(-40, 40).map(lambda k: k / 8)


def small_tables(elements):
    shapes = st.tuples(st.integers(2, 12), st.integers(1, 4))
    return arrays(np.float64, shapes, elements=elements)


def draw_samples(n_rows, n_partitionings, sample_size, seed):
    samples = _core.draw_samples(n_rows, n_partitionings, sample_size, seed)
    return samples.reshape(n_partitionings, sample_size)


def make_kernel(method):
    return IsolationKernel(
        n_partitionings=tables.N_PARTITIONINGS,
        n_cells=tables.N_CELLS,
        random_state=tables.SEED,
        **tables.METHODS[method],
    )


# Samples


@pytest.mark.parametrize("seed", [0, 1, 12345678901234567890])
@pytest.mark.parametrize(("n_rows", "sample_size"), [(1, 1), (2, 2), (50, 7), (130, 100), (1000, 1000)])
def test_samples_equal_the_numpy_twin(n_rows, sample_size, seed):
    expected = reference.draw_samples(n_rows, 3, sample_size, seed)
    np.testing.assert_array_equal(draw_samples(n_rows, 3, sample_size, seed), expected)


@given(n_rows=st.integers(1, 200), seed=st.integers(0, 2**64 - 1), data=st.data())
def test_a_sample_has_no_row_twice(n_rows, seed, data):
    samples = draw_samples(n_rows, 3, data.draw(st.integers(1, n_rows)), seed)
    assert all(len(np.unique(sample)) == len(sample) for sample in samples)


@given(n_rows=st.integers(1, 200), seed=st.integers(0, 2**64 - 1), data=st.data())
def test_a_smaller_sample_is_a_prefix_of_a_larger_one(n_rows, seed, data):
    large = data.draw(st.integers(1, n_rows))
    small = data.draw(st.integers(1, large))
    samples = draw_samples(n_rows, 3, large, seed)
    np.testing.assert_array_equal(draw_samples(n_rows, 3, small, seed), samples[:, :small])


@pytest.mark.parametrize("place", [0, 1, 9])
def test_every_place_of_a_sample_is_uniform_over_the_rows(place):
    chosen = draw_samples(20, 20_000, 10, seed=5)[:, place]
    assert stats.chisquare(np.bincount(chosen, minlength=20)).pvalue > 0.001


def test_every_pair_of_rows_is_sampled_equally_often():
    first, second = draw_samples(6, 30_000, 2, seed=5).T
    counts = np.bincount(6 * first + second, minlength=36).reshape(6, 6)
    assert stats.chisquare(counts[~np.eye(6, dtype=bool)]).pvalue > 0.001


@pytest.mark.parametrize(
    "first_rows",
    [
        lambda: draw_samples(6, 30_000, 1, seed=5)[:, 0],
        lambda: np.array([draw_samples(6, 1, 1, seed)[0, 0] for seed in range(30_000)]),
    ],
    ids=["partitionings", "seeds"],
)
def test_the_samples_of_consecutive_partitionings_and_seeds_are_independent(first_rows):
    first = first_rows()
    counts = np.bincount(6 * first[:-1] + first[1:], minlength=36)
    assert stats.chisquare(counts).pvalue > 0.001


# Cells equal the NumPy twin's


@pytest.mark.parametrize("apply_form", tables.FORMS)
@pytest.mark.parametrize("fit_form", tables.FORMS)
@pytest.mark.parametrize("method", tables.METHODS)
@pytest.mark.parametrize("name", tables.TABLES)
def test_cells_equal_the_numpy_twin(name, method, fit_form, apply_form):
    D, X = tables.table(name)
    kernel = make_kernel(method).fit(tables.FORMS[fit_form](D))
    cells = kernel.apply(tables.FORMS[apply_form](X))
    np.testing.assert_array_equal(cells, tables.expected_cells(name, method))


@pytest.mark.parametrize("method", tables.METHODS)
@pytest.mark.parametrize("form", tables.FORMS)
@pytest.mark.parametrize("wide", [False, True])
@given(rows=small_tables(ANY_NUMBER), random_state=st.integers(0, 1000), data=st.data())
def test_cells_equal_the_numpy_twin_on_any_numbers(method, form, wide, rows, random_state, data):
    if wide:
        spread = np.zeros((len(rows), tables.WIDE))
        spread[:, :: tables.WIDE // 4][:, : rows.shape[1]] = rows
        rows = spread
    n_fitted = data.draw(st.integers(2, len(rows)))
    n_cells = data.draw(st.integers(2, n_fitted))
    D, make = rows[:n_fitted], tables.FORMS[form]
    kernel = IsolationKernel(n_partitionings=4, n_cells=n_cells, random_state=random_state, **tables.METHODS[method])
    cells = kernel.fit(make(D)).apply(make(rows))
    seed = reference.seed_of(random_state)
    if method == "voronoi":
        expected = reference.voronoi_cells(rows, D, 4, n_cells, seed)
    else:
        depth = {"tree": None, "tree of log2 depth": int(np.ceil(np.log2(n_cells))), "tree of depth 2": 2}[method]
        expected = reference.tree_cells(rows, D, 4, n_cells, seed, depth)
    np.testing.assert_array_equal(cells, expected)


@pytest.mark.parametrize("method", tables.METHODS)
def test_a_map_from_a_file_does_not_differ_from_the_one_that_was_saved(method, tmp_path):
    kernel = make_kernel(method).fit(tables.table("normal")[0])
    isokern.save(kernel, tmp_path / "kernel")
    assert kernel.map_.difference(isokern.load(tmp_path / "kernel").map_) is None


MANY_POINTS = {
    "normal": lambda rng: rng.normal(size=(1500, 6)),
    "zero or one": lambda rng: rng.integers(0, 2, (1500, 9)).astype(float),
    "offset": lambda rng: 1e6 + 1e-3 * rng.normal(size=(1500, 6)),
    "almost equally far": lambda rng: 1.0 + 1e-9 * rng.normal(size=(1500, 6)),
    "on a circle around the rows": lambda rng: np.exp(2j * np.pi * rng.random((1500, 1))).view(float),
    "float32": lambda rng: rng.normal(size=(1500, 6)).astype(np.float32),
}


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("name", MANY_POINTS)
def test_voronoi_cells_among_many_points_equal_the_numpy_twin(name, wide):
    rng = np.random.default_rng(2)
    D = MANY_POINTS[name](rng)
    X = np.concatenate([D[:100] + 0.1 * D[100:200], D[200:251], np.zeros_like(D[:1])])
    expected = reference.voronoi_cells(X, D, 12, 150, reference.seed_of(0))
    if wide:
        shape = (tables.WIDE, D.shape[1])
        spread = sparse.csr_array((np.ones(shape[1]), (np.arange(shape[1]) * 300, np.arange(shape[1]))), shape=shape).T
        D, X = (sparse.csr_array(rows) @ spread.astype(rows.dtype) for rows in (D, X))
    cells = IsolationKernel("voronoi", 12, 150, random_state=0).fit(D).apply(X)
    np.testing.assert_array_equal(cells, expected)


def test_points_too_close_for_float32_beside_two_far_ones_equal_the_numpy_twin():
    D = np.random.default_rng(0).integers(-9, 10, (64, 3)) * 2.0**-73
    D[:2] = [[1, 0, 0], [-1, 0, 0]]
    X = D + 2.0**-74
    cells = IsolationKernel("voronoi", 4, 64, random_state=0).fit(D).apply(X)
    np.testing.assert_array_equal(cells, reference.voronoi_cells(X, D, 4, 64, reference.seed_of(0)))


@pytest.mark.parametrize("form", tables.FORMS)
def test_trees_on_many_points_equal_the_numpy_twin(form):
    rng = np.random.default_rng(2)
    D = rng.normal(size=(700, 40)).round(1) * (rng.random((700, 40)) < 0.2)
    make = tables.FORMS[form]
    cells = IsolationKernel("tree", 3, 500, random_state=0).fit(make(D)).apply(make(D[:150]))
    np.testing.assert_array_equal(cells, reference.tree_cells(D[:150], D, 3, 500, reference.seed_of(0)))


@pytest.mark.parametrize("n_columns", [63, 64, 65, 200])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_trees_on_many_columns_equal_the_numpy_twin(n_columns, dtype):
    rng = np.random.default_rng(3)
    D = (rng.normal(size=(90, n_columns)).round(1) * (rng.random((90, n_columns)) < 0.1)).astype(dtype)
    D[:, -1] = rng.integers(0, 2, 90)
    cells = IsolationKernel("tree", 4, 60, random_state=0).fit(D).apply(D)
    np.testing.assert_array_equal(cells, reference.tree_cells(D, D, 4, 60, reference.seed_of(0)))


@pytest.mark.parametrize("max_depth", [None, "log2", 40])
@pytest.mark.parametrize("n_columns", [200, 2500])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_deep_trees_on_rows_of_few_values_equal_the_numpy_twin(n_columns, dtype, max_depth):
    rng = np.random.default_rng(5)
    columns = (n_columns * rng.random((250, 6)) ** 4).astype(np.int32)  # some are in most rows, most in few
    values = rng.integers(-4, 9, columns.shape).astype(dtype)  # some are zeros that are stored
    X = sparse.csr_array((values.ravel(), columns.ravel(), np.arange(0, 1501, 6)), shape=(250, n_columns))
    cells = IsolationKernel("tree", 4, 150, max_depth=max_depth, random_state=0).fit(X).apply(X)
    depth = 8 if max_depth == "log2" else max_depth
    rows = X.toarray()
    np.testing.assert_array_equal(cells, reference.tree_cells(rows, rows, 4, 150, reference.seed_of(0), depth))


GROUPED = {  # many rows descend in groups of 64, compared as float32 first
    "ties": lambda rng, shape: rng.integers(0, 4, shape) / 2,
    "equal after rounding to float32": lambda rng, shape: 1e6 + rng.integers(0, 9, shape) / 1024,
    "beyond float32": lambda rng, shape: rng.normal(size=shape) * 10.0 ** rng.integers(-320, 300, shape),
    "the largest float32": lambda rng, shape: rng.normal(size=shape).clip(-1, 1) * float(np.finfo(np.float32).max),
    "mostly one row": lambda rng, shape: np.where(rng.random(shape) < 0.02, rng.normal(size=shape), -0.0),
}


@pytest.mark.parametrize("max_depth", [None, "log2"])
@pytest.mark.parametrize("n_columns", [3, 37])  # fewer and more than a vector holds
@pytest.mark.parametrize("name", GROUPED)
def test_many_rows_have_the_cells_of_the_numpy_twin_and_of_single_rows(name, n_columns, max_depth):
    X = GROUPED[name](np.random.default_rng(4), (300, n_columns))
    kernel = IsolationKernel("tree", 9, 100, max_depth=max_depth, random_state=0).fit(X)
    cells = kernel.apply(X)
    depth = 7 if max_depth else None
    np.testing.assert_array_equal(cells, reference.tree_cells(X, X, 9, 100, reference.seed_of(0), depth))
    np.testing.assert_array_equal(cells, np.vstack([kernel.apply(row) for row in X[:, np.newaxis]]))


@pytest.mark.parametrize("n_columns", [1, 4, 5, 8, 9, 16])  # as many as a vector holds, or a few more or less
@pytest.mark.parametrize("n_trees", [8, 17, 33, 37])  # 32 at a time, so 8, 17, 1 or 5 come last
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_groups_of_rows_have_the_cells_of_the_numpy_twin_for_any_shape(n_columns, n_trees, dtype):
    X = np.random.default_rng(6).normal(size=(64 + n_trees, n_columns)).astype(dtype)
    cells = IsolationKernel("tree", n_trees, 30, random_state=0).fit(X).apply(X)
    np.testing.assert_array_equal(cells, reference.tree_cells(X, X, n_trees, 30, reference.seed_of(0)))


@pytest.mark.parametrize(
    "copied", [np.asfortranarray, lambda rows: np.repeat(rows, 2, axis=1)[:, ::2], sparse.csr_array]
)
def test_trees_are_the_same_on_rows_read_in_place_and_on_copied_rows(copied):
    rows = np.random.default_rng(3).integers(-3, 4, (300, 5)) / 4
    in_place = IsolationKernel("tree", 10, 32, random_state=0).fit(rows)
    others = IsolationKernel("tree", 10, 32, random_state=0).fit(copied(rows))
    for name, array in in_place.map_.partitionings.arrays.items():
        np.testing.assert_array_equal(array, others.map_.partitionings.arrays[name], err_msg=name)


@pytest.mark.parametrize("method", tables.METHODS)
def test_empty_columns_of_a_wide_sparse_table_do_not_change_its_cells(method):
    rng = np.random.default_rng(4)
    narrow = sparse.csr_array(rng.normal(size=(60, 20)) * (rng.random((60, 20)) < 0.3))
    wide = sparse.csr_array((narrow.data, narrow.indices * 100_000, narrow.indptr), shape=(60, 2_000_000))
    kernel = make_kernel(method)
    np.testing.assert_array_equal(kernel.fit(wide).apply(wide), kernel.fit(narrow).apply(narrow))


# Each sampled point and its cell


def places_of_first_equal(points):
    first = {}
    return [first.setdefault(point.tobytes(), place) for place, point in enumerate(points + 0.0)]


def assert_sampled_points_fall_into_their_own_cells(partitioning, rows, n_cells, random_state):
    cells = IsolationKernel(partitioning, 5, n_cells, random_state=random_state).fit(rows).apply(rows)
    samples = reference.draw_samples(len(rows), 5, n_cells, reference.seed_of(random_state))
    for i, sample in enumerate(samples):
        np.testing.assert_array_equal(cells[sample, i], places_of_first_equal(rows[sample]))


@pytest.mark.parametrize("partitioning", ["tree", "voronoi"])
@given(rows=small_tables(EIGHTHS), random_state=st.integers(0, 1000), data=st.data())
def test_every_sampled_point_falls_into_its_own_cell(partitioning, rows, random_state, data):
    n_cells = data.draw(st.integers(2, len(rows)))
    assert_sampled_points_fall_into_their_own_cells(partitioning, rows, n_cells, random_state)


@given(rows=small_tables(ANY_NUMBER), random_state=st.integers(0, 1000), data=st.data())
def test_trees_separate_any_two_unequal_points(rows, random_state, data):
    n_cells = data.draw(st.integers(2, len(rows)))
    assert_sampled_points_fall_into_their_own_cells("tree", rows, n_cells, random_state)


@pytest.mark.parametrize(("max_depth", "most_leaves"), [(1, 2), (2, 4), (3, 8), ("log2", 16)])
def test_a_limit_on_depth_limits_the_number_of_leaves(max_depth, most_leaves):
    X = np.random.default_rng(0).normal(size=(500, 3))
    kernel = IsolationKernel("tree", 20, 16, max_depth=max_depth, random_state=0).fit(X)
    assert max(len(np.unique(column)) for column in kernel.apply(X).T) <= most_leaves


def test_log2_depth_is_rounded_up():
    X = np.random.default_rng(0).normal(size=(200, 3))
    capped = [IsolationKernel(n_cells=33, max_depth=depth, random_state=0).fit(X).apply(X) for depth in ("log2", 6)]
    np.testing.assert_array_equal(*capped)


def test_split_values_are_uniform_between_the_smallest_and_the_largest_value():
    X = np.array([[0.0], [1.0]])
    kernel = IsolationKernel("tree", 4000, 2, random_state=0).fit(X)
    ticks = np.linspace(0, 1, 21)[1:-1, None]
    is_right = kernel.apply(ticks) == kernel.apply(X[1:])
    np.testing.assert_allclose(is_right.mean(axis=1), ticks[:, 0], atol=0.03)


def test_every_column_that_is_not_constant_is_split_equally_often():
    X = np.array([[0.0, 0.0, 7.0, 0.0], [1.0, 1000.0, 7.0, 1e-6]])
    kernel = IsolationKernel("tree", 6000, 2, random_state=0).fit(X)
    at_first, at_second = kernel.apply(X)
    moved = np.repeat(X[:1], 4, axis=0) + np.diag([1.0, 1000.0, 7.0, 1e-6])
    n_turned = (kernel.apply(moved) == at_second).sum(axis=1)
    assert n_turned[2] == 0
    assert stats.chisquare(n_turned[[0, 1, 3]]).pvalue > 0.001
    assert (at_first != at_second).all()


# Seeds


@pytest.mark.parametrize("partitioning", ["tree", "voronoi"])
@pytest.mark.parametrize(
    "states", [(7, 8), (np.random.RandomState(0),) * 2], ids=["other seeds", "one generator twice"]
)
def test_other_random_numbers_give_other_cells(states, partitioning):
    X = np.random.default_rng(0).normal(size=(300, 4))
    first, second = (IsolationKernel(partitioning, random_state=state).fit(X).apply(X) for state in states)
    assert (first != second).mean() > 0.5


# User-defined partitionings


class Hyperplanes:
    """Cells by the signs of three random projections."""

    n_cells_ = 8

    def fit(self, X, rng):
        self.normals = rng.standard_normal((X.shape[1], 3))
        # Half of a projection, so that no row lies on a hyperplane, where rounding would decide.
        self.offsets = 0.5 * (X[[rng.integers(X.shape[0])]] @ self.normals)
        return self

    def apply(self, X):
        return (X @ self.normals > self.offsets) @ np.array([1, 2, 4])


class Grid(BaseEstimator):
    """Slices of one column, of a number that the generator decides."""

    def __init__(self, most=5):
        self.most = most

    def fit(self, X, rng):
        self.n_cells_ = int(rng.integers(2, self.most + 1))
        self.column_ = int(rng.integers(X.shape[1]))
        return self

    def apply(self, X):
        values = X[:, [self.column_]]
        values = values.toarray() if sparse.issparse(values) else values
        return np.floor(values[:, 0] * 10).astype(int) % self.n_cells_


class Faulty:
    """Returns whatever it is told to."""

    n_cells_ = 4

    def __init__(self, found):
        self.found = found

    def fit(self, X, rng):
        return self

    def apply(self, X):
        return self.found


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(90, 3))


every_own = pytest.mark.parametrize("own", [Hyperplanes, Grid], ids=["plain object", "estimator"])


@every_own
def test_user_defined_partitionings_are_copies_fitted_with_separate_generators(own, X):
    given_object = own()
    before = dict(vars(given_object))
    kernel = IsolationKernel(given_object, 20, random_state=0).fit(X)
    assert vars(given_object) == before
    fitted = [own().fit(X, rng) for rng in np.random.default_rng(reference.seed_of(0)).spawn(20)]
    cells = np.stack([member.apply(X) for member in fitted], axis=1)
    np.testing.assert_array_equal(kernel.apply(X), cells)
    assert len(np.unique(cells, axis=1).T) > 5
    from_csr = kernel.fit(sparse.csr_array(X)).apply(sparse.csr_array(X))
    np.testing.assert_array_equal(from_csr, cells)


@pytest.mark.parametrize("n_partitionings", [3, 30])
def test_n_partitionings_set_after_fit_does_not_change_user_defined_cells(n_partitionings, X):
    kernel = IsolationKernel(Hyperplanes(), 20, random_state=0).fit(X)
    before = kernel.apply(X)
    np.testing.assert_array_equal(kernel.set_params(n_partitionings=n_partitionings).apply(X), before)


def test_user_defined_partitionings_may_have_different_numbers_of_cells(X):
    kernel = IsolationKernel(Grid(most=5), 50, random_state=0).fit(X)
    sizes = [Grid(most=5).fit(X, rng).n_cells_ for rng in np.random.default_rng(reference.seed_of(0)).spawn(50)]
    assert kernel.n_cells_ == max(sizes) == 5 > min(sizes)
    features = kernel.transform(X)
    assert features.shape == (90, sum(sizes)) == (90, len(kernel.get_feature_names_out()))
    np.testing.assert_allclose((features @ features.T).toarray(), kernel.similarity(X), atol=1e-12)


@pytest.mark.usefixtures("tiny_blocks")
def test_a_user_defined_partitioning_is_fitted_to_all_rows_at_once(X):
    class CountRows(Grid):
        def fit(self, X, rng):
            super().fit(X, rng)
            assert X.shape[0] == 90
            return self

    IsolationKernel(CountRows(), 2).fit(X)


def test_a_user_defined_partitioning_gets_scaled_rows(X):
    class KeepRange(Grid):
        def fit(self, X, rng):
            super().fit(X, rng)
            assert X.min() == 0.0
            assert X.max() == 1.0
            return self

    IsolationKernel(KeepRange(), 2, scale="minmax").fit(X)


def test_a_user_defined_estimator_is_cloned_without_its_fitted_state(X):
    class Fresh(Grid):
        def fit(self, X, rng):
            assert not hasattr(self, "column_")
            return super().fit(X, rng)

    own = Fresh()
    own.column_ = 0
    IsolationKernel(own, 2).fit(X)


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (np.zeros((90, 1), int), r"Faulty must return one integer for each of 90 rows; got shape \(90, 1\)"),
        (np.zeros(89, int), r"one integer for each of 90 rows; got shape \(89,\)"),
        (np.zeros(90), "one integer for each of 90 rows; got shape .* dtype float64"),
        (np.zeros(90, bool), "one integer for each of 90 rows; got shape .* dtype bool"),
        (np.full(90, 4), "must return cells from 0 to 3; got 4 to 4"),
        (np.full(90, -1), "must return cells from 0 to 3; got -1 to -1"),
        (None, "one integer for each of 90 rows"),
    ],
    ids=["a table", "too few", "floats", "bools", "too large", "negative", "None"],
)
def test_wrong_cells_of_a_user_defined_partitioning_are_an_error(found, message, X):
    kernel = IsolationKernel(Faulty(found), 2).fit(X)
    with pytest.raises(ValueError, match=message):
        kernel.apply(X)


def test_a_user_defined_fit_that_does_not_return_self_is_an_error(X):
    class Forgetful(Grid):
        def fit(self, X, rng):
            super().fit(X, rng)

    with pytest.raises(ValueError, match=r"fit of Forgetful must return self with n_cells_.* of at least 1"):
        IsolationKernel(Forgetful()).fit(X)


@pytest.mark.parametrize("n_cells", [0, 2.5, "8", None])
def test_an_invalid_number_of_user_defined_cells_is_an_error(n_cells, X):
    class Strange(Faulty):
        n_cells_ = n_cells

    with pytest.raises(ValueError, match="fit of Strange must return self with n_cells_"):
        IsolationKernel(Strange(None)).fit(X)


@pytest.mark.parametrize(
    ("own", "options", "message"),
    [
        (object(), {}, "partitioning must be a name or have fit and apply; got <object"),
        (Hyperplanes(), {"n_cells": 8}, 'n_cells must be "auto" for your own partitioning; got 8'),
        (Hyperplanes(), {"max_depth": 3}, "max_depth must be None unless the partitioning is a tree; got 3"),
    ],
    ids=["no methods", "n_cells", "max_depth"],
)
def test_parameters_that_do_not_fit_a_user_defined_partitioning_are_an_error(own, options, message, X):
    with pytest.raises(ValueError, match=message):
        IsolationKernel(own, **options).fit(X)


@pytest.mark.parametrize("n_columns", [50, 40_000])  # every column has a number of its own, or only those in use
def test_trees_grow_alike_on_sparse_and_dense_rows_with_stored_zeros_and_negative_values(n_columns):
    rng = np.random.default_rng(4)
    n, n_stored = 300, 45 if n_columns == 50 else 120
    columns = np.stack([np.sort(rng.choice(n_columns, n_stored, replace=False)) for _ in range(n)])
    values = rng.integers(-2, 3, size=columns.shape).astype(np.float32)
    shape = (n, n_columns)
    X = sparse.csr_array((values.ravel(), columns.ravel(), np.arange(0, values.size + 1, n_stored)), shape=shape)
    kernel = IsolationKernel("tree", 5, 256, random_state=0)
    cells = kernel.fit(X.toarray()).apply(X)
    np.testing.assert_array_equal(kernel.fit(X).apply(X), cells)
