"""Test writing LIBSVM files: they read back bit for bit, and a failed write leaves the old file."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from isokern.data import read_libsvm, write_libsvm
from reference_libsvm import parts, same

FINITE = st.floats(allow_nan=False, allow_infinity=False)
TABLE = [[0.1, 0, -3], [0, 0, 0], [1e-310, 5e-324, 1.7976931348623157e308], [-1 / 3, 1e22, 0]]

every_suffix = pytest.mark.parametrize("suffix", ["", ".gz", ".bz2", ".xz", ".zst"])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rows.txt"


@every_suffix
@pytest.mark.parametrize("zero_based", [False, True])
def test_files_read_back_bit_for_bit(tmp_path, suffix, zero_based):
    path, X, y = tmp_path / f"rows.txt{suffix}", sparse.csr_array(TABLE), np.array([1.0, np.nan, -0.0, 0.1])
    write_libsvm(path, X, y, zero_based=zero_based)
    assert same(parts(*read_libsvm(path, zero_based=zero_based)), parts(X, y))


@given(table=st.lists(st.lists(FINITE, min_size=3, max_size=3), min_size=1, max_size=5), label=FINITE)
def test_any_finite_numbers_read_back_bit_for_bit(tmp_path_factory, table, label):
    path, n = tmp_path_factory.getbasetemp() / "rows.txt", len(table)
    X = sparse.csr_array((np.ravel(table), np.tile(range(3), n), range(0, 3 * n + 1, 3)))
    write_libsvm(path, X, np.full(n, label))
    assert same(parts(*read_libsvm(path, n_features=3)), parts(X, np.full(n, label)))


def test_float32_reads_back_bit_for_bit(path):
    X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    write_libsvm(path, X, np.zeros(20))
    assert np.array_equal(read_libsvm(path, dtype=np.float32)[0].toarray(), X)


TEXTS = {
    "no zeros": ([[0, 2.0, 0.1], [0, 0, 0], [1e300, 0, -5]], [1, np.nan, -2.5], "1 2:2 3:0.1\n?\n-2.5 1:1e+300 3:-5\n"),
    "summed": (sparse.csr_array(([1.0, 2.0, 3.0], [2, 0, 2], [0, 3]), shape=(1, 3)), [1], "1 1:2 3:4\n"),
    "no rows": (np.zeros((0, 3)), [], ""),
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_text_is_short_and_sorted_by_column(path, name):
    X, y, text = TEXTS[name]
    write_libsvm(path, X, y)
    assert path.read_text() == text


@pytest.mark.parametrize("form", [sparse.coo_matrix, sparse.csc_array, np.asfortranarray, np.ndarray.tolist])
def test_rows_may_be_of_any_form(path, form):
    X = np.arange(6).reshape(3, 2)
    write_libsvm(path, form(X), [0, 1, 2])
    assert np.array_equal(read_libsvm(path)[0].toarray(), X)


@every_suffix
def test_the_same_rows_give_the_same_bytes(tmp_path, monkeypatch, suffix):
    paths = [tmp_path / f"{name}{suffix}" for name in "ab"]
    for path, time in zip(paths, [1e9, 2e9], strict=True):
        monkeypatch.setattr("time.time", lambda time=time: time)
        write_libsvm(path, TABLE, [1, 2, 3, 4])
    assert paths[0].read_bytes() == paths[1].read_bytes()


WRONG_TABLES = [
    ([[1.0]], [1, 2], "y must have one label for each of the 1 rows; got shape (2,)."),
    ([[1.0]], [[1]], "y must have one label for each of the 1 rows; got shape (1, 1)."),
    ([[1.0]], [np.inf], "y must not be infinite."),
    ([[1.0]], ["spam"], "y must be numbers: could not convert string to float: 'spam'. Encode the classes as numbers"),
    ([[1.0, np.nan]], [1], "X must be finite; got NaN in column 1"),
    (sparse.csr_array([[np.inf]]), [1], "X must be finite; got infinity in column 0"),
    (sparse.csr_array((1, 2**31)), [1], "X must have at most 2147483647 columns; got 2147483648."),
]


@pytest.mark.parametrize(("X", "y", "message"), WRONG_TABLES)
def test_bad_input_is_rejected_and_the_old_file_stays(path, X, y, message):
    path.write_text("before")
    with pytest.raises(ValueError, match=re.escape(message)):
        write_libsvm(path, X, y)
    assert path.read_text() == "before"
