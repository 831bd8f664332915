"""Test which input is accepted as rows and which is rejected, and that large input is not copied."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from isokern import IsolationKernel, _core
from isokern.data import blocks

PARTITIONINGS = ["tree", "voronoi"]
BOTH = pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])


@pytest.fixture
def X():
    rng = np.random.default_rng(1)
    return rng.integers(-3, 4, (60, 6)) * (rng.random((60, 6)) < 0.5) * 1.0


def _strided(X):
    spaced = np.full((2 * X.shape[0], 2 * X.shape[1]), np.nan)
    spaced[::2, ::2] = X
    return spaced[::2, ::2]


def _read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


def _read_only_csr(X):
    table = sparse.csr_array(X)
    return sparse.csr_array(tuple(map(_read_only, (table.data, table.indices, table.indptr))), shape=X.shape)


def _frame(library):
    def make(X):
        return pytest.importorskip(library).DataFrame({f"column {j}": X[:, j] for j in range(X.shape[1])})

    return make


def _sparse_frame(X):
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame.sparse.from_spmatrix(sparse.csr_matrix(X), columns=list("abcdef"))


def _unsorted(X, index=np.int32):
    """Return X as CSR with the entries of each row in falling order of columns."""
    table = sparse.csr_array(X)
    order = np.concatenate([np.arange(b, a, -1) - 1 for a, b in zip(table.indptr, table.indptr[1:], strict=False)])
    arrays = (table.data[order], table.indices[order].astype(index), table.indptr.astype(index))
    return sparse.csr_array(arrays, shape=X.shape)


def _repeated(X):
    """Return X as CSR with each entry in two parts, one after all others of its row."""
    rows, columns = np.nonzero(X)
    order = np.argsort(np.concatenate([rows, rows]), kind="stable")
    values = np.concatenate([X[rows, columns] - 1.0, np.ones(len(rows))])[order]
    starts = np.concatenate([[0], np.cumsum(2 * np.bincount(rows, minlength=len(X)))])
    return sparse.csr_array((values, np.concatenate([columns, columns])[order], starts), shape=X.shape)


def _explicit_zeros(X):
    columns = np.tile(np.arange(X.shape[1]), len(X))
    return sparse.csr_array((X.ravel(), columns, np.arange(0, X.size + 1, X.shape[1])), shape=X.shape)


def _wide_indices(X):
    table = sparse.csr_array(X)
    table.indices, table.indptr = table.indices.astype(np.int64), table.indptr.astype(np.int64)
    return table


FORMS = {
    "float32": lambda X: X.astype(np.float32),
    "float16": lambda X: X.astype(np.float16),
    "long double": lambda X: X.astype(np.longdouble),
    "int64": lambda X: X.astype(np.int64),
    "int8": lambda X: X.astype(np.int8),
    "big-endian": lambda X: X.astype(">f8"),
    "objects": lambda X: X.astype(object),
    "Fortran": np.asfortranarray,
    "strided": _strided,
    "backwards": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": _read_only,
    "lists": lambda X: X.tolist(),
    "pandas": _frame("pandas"),
    "polars": _frame("polars"),
    "sparse pandas": _sparse_frame,
    "csr_array": sparse.csr_array,
    "csr_matrix": sparse.csr_matrix,
    "csc": sparse.csc_array,
    "coo": sparse.coo_array,
    "bsr": lambda X: sparse.bsr_array(X, blocksize=(3, 2)),
    "lil": sparse.lil_array,
    "dok": sparse.dok_array,
    "dia": sparse.dia_array,
    "csr float32": lambda X: sparse.csr_array(X.astype(np.float32)),
    "csr int8": lambda X: sparse.csr_array(X.astype(np.int8)),
    "csr int64 indices": _wide_indices,
    "csr unsorted": _unsorted,
    "csr unsorted int64 indices": lambda X: _unsorted(X, np.int64),
    "csr repeated": _repeated,
    "csr explicit zeros": _explicit_zeros,
    "csr read-only": _read_only_csr,
}


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_the_same_rows_falls_into_the_same_cells(form, partitioning, X):
    kernel = IsolationKernel(partitioning, 15, 16, random_state=0)
    expected = kernel.fit(X).apply(X)
    given = FORMS[form](X)
    np.testing.assert_array_equal(kernel.fit(given).apply(given), expected)


@pytest.mark.usefixtures("tiny_blocks")
@pytest.mark.parametrize("form", FORMS)
def test_every_form_may_be_cut_into_blocks(form, X):
    kernel = IsolationKernel("tree", 15, 16, random_state=0)
    given = FORMS[form](X)
    np.testing.assert_array_equal(kernel.fit(given).apply(given), kernel.fit(X).apply(X))


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
def test_bools_are_zero_and_one(partitioning, X):
    kernel = IsolationKernel(partitioning, 15, 4, random_state=0)
    np.testing.assert_array_equal(kernel.fit(X > 0).apply(X > 0), kernel.fit((X > 0) * 1.0).apply((X > 0) * 1.0))


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
@BOTH
def test_float32_values_are_not_rounded(form, partitioning):
    X = (1e4 + np.random.default_rng(0).normal(size=(200, 4))).astype(np.float32)
    kernel = IsolationKernel(partitioning, 15, 16, random_state=0)
    cells = kernel.fit(form(X)).apply(form(X))
    np.testing.assert_array_equal(cells, kernel.fit(X.astype(float)).apply(X.astype(float)))


@BOTH
@pytest.mark.parametrize("partitioning", PARTITIONINGS)
@pytest.mark.parametrize(("fitted", "mapped"), [(np.float32, np.float64), (np.float64, np.float32)])
def test_rows_to_map_may_have_another_dtype_than_the_fitted_rows(fitted, mapped, partitioning, form):
    X = np.random.default_rng(0).normal(size=(200, 4))
    D, X = X.astype(fitted), X.astype(mapped)
    kernel = IsolationKernel(partitioning, 15, 16, random_state=0)
    expected = kernel.fit(D.astype(float)).apply(X.astype(float))
    np.testing.assert_array_equal(kernel.fit(form(D)).apply(form(X)), expected)


@pytest.mark.parametrize("form", ["csr unsorted", "csr repeated", "csr explicit zeros", "csr int64 indices"])
def test_a_sparse_matrix_is_not_changed(form, X):
    given = FORMS[form](X)
    before = [array.copy() for array in (given.data, given.indices, given.indptr)]
    IsolationKernel(n_cells=8).fit(given).transform(given)
    for array, old in zip((given.data, given.indices, given.indptr), before, strict=True):
        np.testing.assert_array_equal(array, old)
        assert array.dtype == old.dtype


def test_a_dense_array_is_not_changed(X):
    before = X.copy()
    IsolationKernel(n_cells=8, scale="standard").fit(X).transform(X)
    np.testing.assert_array_equal(X, before)


# Blocks


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
@BOTH
def test_rows_one_by_one_fall_into_the_same_cells_as_all_at_once(form, partitioning, X):
    kernel = IsolationKernel(partitioning, 15, 16, random_state=0).fit(X)
    one_by_one = np.concatenate([kernel.apply(form(X[i : i + 1])) for i in range(len(X))])
    np.testing.assert_array_equal(one_by_one, kernel.apply(X))


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
@pytest.mark.parametrize("scale", [None, "maxabs"])
@BOTH
def test_cells_do_not_depend_on_the_size_of_blocks(form, scale, partitioning, X, monkeypatch):
    given = form(X)
    kernel = IsolationKernel(partitioning, 15, 16, scale=scale, random_state=0)
    expected = kernel.fit(given).apply(given)
    for size in (1, 7, 59, 60, 61):
        monkeypatch.setattr("isokern.rows._BLOCK_ROWS", size)
        monkeypatch.setattr("isokern.rows._VIEW_ROWS", size)
        np.testing.assert_array_equal(kernel.fit(given).apply(given), expected)


@BOTH
def test_more_rows_than_a_block_holds_fall_into_the_same_cells(form):
    X = form(np.random.default_rng(0).normal(size=(2**18 + 500, 2)))
    kernel = IsolationKernel("tree", 3, 64, random_state=0).fit(X)
    cells = kernel.apply(X)
    for some in (slice(8000, 8500), slice(2**18 - 250, 2**18 + 250)):
        np.testing.assert_array_equal(cells[some], kernel.apply(X[some]))


def test_rows_of_many_values_come_in_smaller_blocks(monkeypatch):
    X = np.random.default_rng(0).normal(size=(600, 3))
    kernel = IsolationKernel("voronoi", 3, 64, random_state=0).fit(X)
    expected = kernel.apply(X)
    monkeypatch.setattr("isokern.rows._BLOCK_VALUES", 10)
    np.testing.assert_array_equal(kernel.apply(X), expected)


# Memory

LARGE = {
    "float32": lambda X: X,
    "float64 Fortran": lambda X: np.asfortranarray(X, dtype=np.float64),
    "int64": lambda X: (100 * X).astype(np.int64),
    "strided float32": lambda X: np.repeat(X, 2, axis=0)[::2],
    "csr float32": sparse.csr_array,
    "csr float64 int64 indices": lambda X: _wide_indices(X.astype(float)),
}


@pytest.mark.parametrize("scale", [None, "maxabs"])
@pytest.mark.parametrize("form", LARGE)
def test_a_large_input_is_never_copied_whole(form, scale):
    X = LARGE[form](np.random.default_rng(0).random((300_000, 20), dtype=np.float32))
    kernel = IsolationKernel("tree", 2, 64, scale=scale, n_jobs=1)
    tracemalloc.start()
    kernel.fit(X).apply(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 12e6  # the smallest of the inputs is twice that


@pytest.mark.usefixtures("memory_is_known")
def test_mapping_a_million_rows_takes_the_output_and_at_most_256_megabytes(run_script):
    growth = run_script("""
X = np.empty((1_000_000, 54), dtype=np.float32)
np.random.default_rng(0).random(out=X, dtype=np.float32)
kernel = IsolationKernel("tree", 100, 256, random_state=0).fit(X[:10_000])
before = megabytes("VmRSS")
cells = kernel.apply(X)
print(megabytes("VmHWM") - before - cells.nbytes / 2**20)
""")
    assert float(growth) < 256


# Bad input


def put(X, row, column, value, form):
    bad = np.array(X, dtype=float)
    bad[row, column] = value
    return form(bad)


NOT_FINITE = pytest.mark.parametrize(
    ("value", "name"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")], ids=["NaN", "inf", "-inf"]
)


@BOTH
@NOT_FINITE
def test_the_error_says_where_a_value_is_not_finite(value, name, form, X):
    kernel = IsolationKernel("voronoi").fit(X)
    for call in (kernel.apply, IsolationKernel("voronoi").fit):
        with pytest.raises(
            ValueError, match=rf"^X must be finite; got {name} in column 4, first in row 33\. .*Fill or"
        ):
            call(put(X, 33, 4, value, form))


@BOTH
@pytest.mark.usefixtures("tiny_blocks")
def test_the_row_of_a_value_that_is_not_finite_is_counted_across_blocks(form, X):
    kernel = IsolationKernel("voronoi").fit(X)
    with pytest.raises(ValueError, match="NaN in column 4, first in row 33"):
        kernel.apply(put(X, 33, 4, np.nan, form))


@BOTH
def test_the_first_of_several_rows_that_are_not_finite_is_named(form, X):
    bad = put(put(put(X, 50, 0, np.nan, np.asarray), 7, 5, np.inf, np.asarray), 7, 3, np.nan, form)
    with pytest.raises(ValueError, match="NaN in column 3, first in row 7"):
        IsolationKernel("voronoi").fit(bad)


@pytest.mark.parametrize("place", [0, 15, 16, 1023, 1024, 59_999])
@pytest.mark.parametrize(("value", "partitioning"), [(np.nan, "voronoi"), (np.inf, "voronoi"), (np.inf, "tree")])
def test_a_value_that_is_not_finite_is_found_wherever_it_is(value, partitioning, place):
    X = np.zeros(60_000)
    X[place] = value
    if partitioning == "tree":
        X[[3, 1030]] = np.nan  # which trees take
    with pytest.raises(ValueError, match=f"column {place % 6}, first in row {place // 6}[.]"):
        IsolationKernel(partitioning).fit(X.reshape(10_000, 6))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_largest_finite_values_are_fine(dtype):
    X = np.array([[1.0, -1.0], [-1.0, 1.0], [0.0, 0.0]], dtype=dtype) * np.finfo(dtype).max
    assert IsolationKernel(n_cells=3, n_partitionings=5).fit(X).apply(X).shape == (3, 5)


def test_a_long_double_beyond_float64_is_not_finite():
    X = np.ones((5, 2), dtype=np.longdouble)
    X[3, 1] = np.finfo(np.longdouble).max
    if X[3, 1] == np.finfo(np.float64).max:
        pytest.skip("long double is float64 here")
    with np.errstate(over="ignore"), pytest.raises(ValueError, match="infinity in column 1, first in row 3"):
        IsolationKernel().fit(X)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_the_column_of_a_data_frame_that_is_not_finite_is_named(library, X):
    frame = _frame(library)(put(X, 33, 4, np.nan, np.asarray))
    with pytest.raises(ValueError, match=r"NaN in column 4 \('column 4'\), first in row 33"):
        IsolationKernel("voronoi").fit(frame)


def test_a_missing_value_of_a_data_frame_is_not_finite(X):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcdef")).astype("Int64")
    frame.loc[33, "e"] = pandas.NA
    with pytest.raises(ValueError, match=r"NaN in column 4 \('e'\), first in row 33"):
        IsolationKernel("voronoi").fit(frame)


def test_repeated_entries_that_add_up_to_infinity_are_not_finite():
    X = sparse.csr_array(([1e308, 1e308, 1.0], [1, 1, 0], [0, 2, 3]), shape=(2, 2))
    with pytest.raises(ValueError, match="infinity in column 1, first in row 0"):
        IsolationKernel().fit(X)


@BOTH
@pytest.mark.parametrize("method", ["apply", "transform", "similarity"])
def test_another_number_of_columns_is_an_error(method, form, X):
    kernel = IsolationKernel().fit(X)
    with pytest.raises(ValueError, match="X has 5 features, but IsolationKernel is expecting 6"):
        getattr(kernel, method)(form(X[:, :5]))


def test_another_number_of_columns_in_the_second_table_is_an_error(X):
    kernel = IsolationKernel().fit(X)
    with pytest.raises(ValueError, match="X has 5 features, but IsolationKernel is expecting 6"):
        kernel.similarity(X, X[:, :5])


def test_other_columns_of_a_data_frame_are_an_error(X):
    frame = _frame("pandas")(X)
    kernel = IsolationKernel().fit(frame)
    with pytest.raises(ValueError, match="feature names should match"):
        kernel.apply(frame.rename(columns={"column 3": "another"}))


BAD_ROWS = {
    "no rows": (lambda X: X[:0], r"Found array with 0 sample\(s\).*minimum of 2 is required"),
    "one row": (lambda X: X[:1], r"Found array with 1 sample\(s\).*minimum of 2 is required"),
    "no columns": (lambda X: X[:, :0], r"0 feature\(s\)"),
    "complex numbers": (lambda X: X * 1j, "Complex data not supported"),
    "sparse, no rows": (lambda X: sparse.csr_array(X[:0]), r"Found array with 0 sample\(s\).*minimum of 2 is required"),
    "sparse, one row": (lambda X: sparse.csr_array(X[:1]), r"Found array with 1 sample\(s\).*minimum of 2 is required"),
    "sparse, no columns": (lambda X: sparse.csr_array(X[:, :0]), r"0 feature\(s\)"),
    "sparse, complex numbers": (lambda X: sparse.csr_array(X * 1j), "Complex data not supported"),
    "one dimension": (lambda X: X[:, 0], "Expected 2D array, got 1D array instead"),
    "three dimensions": (lambda X: X[None], "dim 3"),
    "sparse, one dimension": (lambda X: sparse.coo_array(X[0]), r"^X must have 2 dimensions; got 1\.$"),
    "strings": (
        lambda X: X.astype(str),
        r"^X must not be an array of text, in which .*; got dtype <U\d+\. Pass a data",
    ),
}


@pytest.mark.parametrize(("spoil", "message"), BAD_ROWS.values(), ids=BAD_ROWS)
def test_rows_of_another_shape_or_type_are_an_error(spoil, message, X):
    with pytest.raises(ValueError, match=message):
        IsolationKernel().fit(spoil(X))


@BOTH
def test_mapping_no_rows_is_an_error(form, X):
    with pytest.raises(ValueError, match=r"Found array with 0 sample\(s\).*minimum of 1 is required"):
        IsolationKernel().fit(X).apply(form(X[:0]))


def test_columns_beyond_31_bits_are_an_error():
    X = sparse.csr_array((np.ones(2), np.array([0, 2**31], dtype=np.int64), np.array([0, 1, 2])), shape=(2, 2**31 + 1))
    with pytest.raises(ValueError, match=r"X must have fewer than 2\^31 columns; got 2147483649"):
        IsolationKernel().fit(X)


# Arrays of sparse matrices of 60 rows and 6 columns: name -> (array, function that spoils it, error)

BROKEN_COMPRESSED = {
    "short indptr": ("indptr", lambda a: a[:-1], r"^X.indptr must have the shape \(\d+,\); got \(\d+,\)\.$"),
    "long indptr": ("indptr", lambda a: np.append(a, a[-1]), "^X.indptr must have the shape"),
    "two-dimensional indptr": ("indptr", lambda a: a[None], "^X.indptr must have the shape"),
    "indptr of floats": ("indptr", lambda a: a * 1.0, r"^X.indptr must be an array of integers; got float64\.$"),
    "indptr as a list": ("indptr", list, r"^X.indptr must be an array of integers; got list\.$"),
    "decreasing indptr": ("indptr", lambda a: np.sort(a)[[0, *range(len(a) - 1, 0, -1)]], "and never decrease"),
    "negative indptr": ("indptr", lambda a: a - 1, r"^X.indptr must begin with 0 and never decrease\.$"),
    "indptr beyond the end": ("indptr", lambda a: a * 5, "^X.data must have at least .* values, the last of X.indptr"),
    "negative indices": ("indices", lambda a: a - 1, r"^X.indices must be from 0 to \d+; got -1 to \d+\.$"),
    "indices out of range": ("indices", lambda a: a + 1, "^X.indices must be from 0 to"),
    "short indices": ("indices", lambda a: a[:-1], "^X.indices must have the shape"),
    "indices of bools": ("indices", lambda a: a > 0, "^X.indices must be an array of integers; got bool"),
    "short data": ("data", lambda a: a[:-1], "^X.data must have at least"),
    "data of other dimensions": ("data", lambda a: a[None], "^X.data must be an array of values; got ndarray of shape"),
}
BROKEN_COO = {
    "negative rows": ("row", lambda a: a - 1, "^X.row must be from 0 to 59; got -1 to 58"),
    "columns out of range": ("col", lambda a: a + 1, "^X.col must be from 0 to 5; got 1 to 6"),
    "short columns": ("col", lambda a: a[:-1], "^X.col must have the shape"),
    "short data": ("data", lambda a: a[:-1], "^X.row must have the shape"),
}
BROKEN = {
    f"{form}, {name}": (make, *broken)
    for forms, table in [
        ({"csr": sparse.csr_array, "csc": sparse.csc_matrix, "bsr": sparse.bsr_array}, BROKEN_COMPRESSED),
        ({"coo": sparse.coo_matrix}, BROKEN_COO),
    ]
    for form, make in forms.items()
    for name, broken in table.items()
}


@pytest.mark.parametrize(("make", "name", "spoil", "message"), BROKEN.values(), ids=BROKEN)
def test_a_broken_sparse_matrix_is_an_error(make, name, spoil, message, X):
    kernel = IsolationKernel(n_cells=2).fit(X)
    broken = make(X.astype(np.int8))  # integers are not searched for NaN
    setattr(broken, name, spoil(getattr(broken, name)))
    for call in (kernel.fit, kernel.apply, blocks):
        with pytest.raises(ValueError, match=message):
            call(broken)


def test_a_sparse_matrix_may_have_space_behind_its_last_value(X):
    table = sparse.csr_array(X)
    table.data, table.indices = np.append(table.data, np.nan), np.append(table.indices, np.int32(-7))
    kernel = IsolationKernel(random_state=0)
    np.testing.assert_array_equal(kernel.fit(table).apply(table), kernel.fit(X).apply(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_first_of_many_bad_values_is_found_by_several_threads(dtype):
    values = np.ones(3_000_000, dtype=dtype)
    assert _core.find_nonfinite(values) == -1
    for place in [2_999_999, 2_100_000, 65_537, 65_535]:
        values[place] = np.nan if place % 2 else np.inf
        assert _core.find_nonfinite(values) == place
