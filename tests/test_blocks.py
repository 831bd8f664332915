"""Test cutting arrays and streams into blocks of rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from isokern.data import blocks
from isokern.data.rebatching import rebatched

X = np.arange(75.0).reshape(25, 3)
Y = np.arange(25)
FORMS = {"dense": np.asarray, "csr_array": sparse.csr_array, "csr_matrix": sparse.csr_matrix}


def frame(library):
    return pytest.importorskip(library).DataFrame({name: X[:, k] for k, name in enumerate("abc")})


def dense(rows):
    return rows.toarray() if sparse.issparse(rows) else np.asarray(rows)


# Blocks of arrays

LENGTHS = [
    (25, {"size": 10}, [10, 10, 5]),
    (25, {"size": 5}, [5] * 5),
    (25, {}, [25]),
    (25, {"size": 10, "initial": 3}, [3, 10, 10, 2]),
    (25, {"size": 10, "initial": 25}, [25]),
    (25, {"size": 10, "initial": 40}, [25]),
    (25, {"size": 24, "initial": 1}, [1, 24]),
    (0, {"size": 10}, []),
]


@pytest.mark.parametrize(("n", "sizes", "lengths"), LENGTHS)
def test_the_first_block_has_initial_rows_the_others_size_and_the_last_the_rest(n, sizes, lengths):
    got = list(blocks(X[:n], Y[:n], **sizes))
    assert [len(rows) for rows, _ in got] == [len(labels) for _, labels in got] == lengths
    np.testing.assert_array_equal(np.concatenate([X[:0], *(rows for rows, _ in got)]), X[:n])


TABLES = {
    "array": lambda: X,
    "list": X.tolist,
    "csr_array": lambda: sparse.csr_array(X),
    "csr_matrix": lambda: sparse.csr_matrix(X),
    "csc_array": lambda: sparse.csc_array(X),
    "coo_array": lambda: sparse.coo_array(X),
    "pandas": lambda: frame("pandas"),
    "polars": lambda: frame("polars"),
    "pyarrow": lambda: pytest.importorskip("pyarrow").table(dict(zip("abc", X.T, strict=True))),
}


@pytest.mark.parametrize("form", TABLES)
def test_every_type_of_table_is_cut_into_the_same_blocks(form):
    table = TABLES[form]()
    got = [rows for rows, labels in blocks(table, size=10) if labels is None]
    for block, expected in zip(got, [X[:10], X[10:20], X[20:]], strict=True):
        np.testing.assert_array_equal(dense(block), expected)
        assert type(block) is type(table.tocsr() if sparse.issparse(table) else table)


def test_labels_may_be_a_list_or_a_series_of_any_index():
    y = pytest.importorskip("pandas").Series(Y, index=Y[::-1])
    assert [int(labels.iloc[0]) for _, labels in blocks(X, y, size=10)] == [0, 10, 20]
    assert [labels for _, labels in blocks(X[:3], ["a", "b", "c"], size=2)] == [["a", "b"], ["c"]]


def test_blocks_of_arrays_and_of_csr_are_views():
    assert all(np.shares_memory(rows, X) and np.shares_memory(labels, Y) for rows, labels in blocks(X, Y, size=10))
    table = sparse.csr_array(X)
    for rows, _ in blocks(table, size=10):
        assert np.shares_memory(rows.data, table.data)
        assert np.shares_memory(rows.indices, table.indices)


def test_labels_of_another_length_are_an_error():
    with pytest.raises(ValueError, match="y must have one label for each of the 25 rows of X; got 24"):
        blocks(X, Y[1:])


@pytest.mark.parametrize("size", [0, -1, 2.5, True, "10", None])
def test_a_size_must_be_a_positive_integer(size):
    for cut in (lambda **sizes: blocks(X, Y, **sizes), lambda **sizes: rebatched([], **{"size": 1} | sizes)):
        with pytest.raises(ValueError, match="size must be an integer of at least 1; got"):
            cut(size=size)
        if size is not None:
            with pytest.raises(ValueError, match="initial must be None or an integer of at least 1; got"):
                cut(initial=size)


@pytest.mark.parametrize("rows", [7, None, np.array(3.0), iter([])])
def test_input_without_rows_is_an_error(rows):
    with pytest.raises(TypeError, match="X must be an array, a sparse matrix, a data frame or a list; got"):
        blocks(rows)


# Blocks of a stream


def cut(table, labels, lengths):
    """Return pieces of the given lengths, then the rest."""
    ends = [min(25, end) for end in np.cumsum(lengths, dtype=int)]
    return [(table[a:b], None if labels is None else labels[a:b]) for a, b in zip([0, *ends], [*ends, 25], strict=True)]


@pytest.mark.parametrize("form", FORMS)
@given(
    lengths=st.lists(st.integers(0, 12), max_size=12),
    size=st.integers(1, 30),
    initial=st.none() | st.integers(1, 30),
    labelled=st.booleans(),
)
def test_a_stream_gives_the_blocks_of_the_whole_table_however_it_is_cut(form, lengths, size, initial, labelled):
    table, labels = FORMS[form](X), Y if labelled else None
    expected = list(blocks(table, labels, size, initial=initial))
    got = list(rebatched(cut(table, labels, lengths), size, initial))
    for (rows, y), (expected_rows, expected_y) in zip(got, expected, strict=True):
        assert type(rows) is type(table)
        np.testing.assert_array_equal(dense(rows), dense(expected_rows))
        np.testing.assert_array_equal(y, expected_y)


def test_a_block_is_returned_before_the_next_piece_is_requested():
    requested = []

    def pieces():
        for k in range(5):
            requested.append(k)
            yield X[5 * k : 5 * k + 5], Y[5 * k : 5 * k + 5]

    next(rebatched(pieces(), size=10))
    assert requested == [0, 1]


def test_a_block_of_many_pieces_is_concatenated_once(monkeypatch):
    joins = []
    join = np.concatenate
    monkeypatch.setattr("isokern.data.rebatching.np.concatenate", lambda parts: joins.append(len(parts)) or join(parts))
    list(rebatched(([X[k : k + 1], None] for k in range(25)), size=20))
    assert joins == [20, 5]


def test_a_stream_without_rows_gives_no_blocks():
    assert list(rebatched([], 10)) == list(rebatched([(X[:0], Y[:0])], 10)) == []
