"""Rows in blocks."""

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


@pytest.mark.parametrize(
    ("n", "sizes", "lengths"),
    [
        (25, {"size": 10}, [10, 10, 5]),
        (25, {"size": 5}, [5] * 5),
        (25, {"size": 25}, [25]),
        (25, {}, [25]),
        (25, {"size": 10, "initial": 3}, [3, 10, 10, 2]),
        (25, {"size": 10, "initial": 25}, [25]),
        (25, {"size": 10, "initial": 40}, [25]),
        (25, {"size": 24, "initial": 1}, [1, 24]),
        (0, {"size": 10}, []),
    ],
)
def test_the_first_block_has_initial_rows_and_the_others_size_and_the_last_what_is_left(n, sizes, lengths):
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
}


@pytest.mark.parametrize("form", TABLES)
def test_every_form_of_table_comes_in_the_same_blocks(form):
    got = [dense(rows) for rows, _ in blocks(TABLES[form](), size=10)]
    for block, expected in zip(got, [X[:10], X[10:20], X[20:]], strict=True):
        np.testing.assert_array_equal(block, expected)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_blocks_of_data_frames_are_data_frames(library):
    table = frame(library)
    assert all(type(rows) is type(table) for rows, _ in blocks(table, size=10))


def test_labels_of_a_series_go_by_position_not_by_index():
    pandas = pytest.importorskip("pandas")
    y = pandas.Series(Y, index=Y[::-1])
    assert [int(labels.iloc[0]) for _, labels in blocks(X, y, size=10)] == [0, 10, 20]


def test_labels_may_be_a_list():
    assert [labels for _, labels in blocks(X[:3], ["a", "b", "c"], size=2)] == [["a", "b"], ["c"]]


def test_without_labels_there_are_none():
    assert [labels for _, labels in blocks(X, size=10)] == [None, None, None]


def test_blocks_of_arrays_are_views():
    assert all(np.shares_memory(rows, X) and np.shares_memory(labels, Y) for rows, labels in blocks(X, Y, size=10))


@pytest.mark.parametrize("form", ["csr_array", "csr_matrix"])
def test_blocks_of_csr_are_views_of_the_same_type(form):
    table = FORMS[form](X)
    for rows, _ in blocks(table, size=10):
        assert type(rows) is type(table)
        assert np.shares_memory(rows.data, table.data)
        assert np.shares_memory(rows.indices, table.indices)


def test_labels_of_another_length_are_an_error():
    with pytest.raises(ValueError, match="y must have one label for each of the 25 rows of X; got 24"):
        blocks(X, Y[1:])


@pytest.mark.parametrize("size", [0, -1, 2.5, True, "10", None])
def test_a_size_that_is_no_positive_integer_is_an_error_at_once(size):
    with pytest.raises(ValueError, match="size must be an integer of at least 1; got"):
        blocks(X, Y, size)


@pytest.mark.parametrize("initial", [0, -1, 2.5, True, "10"])
def test_an_initial_number_that_is_no_positive_integer_is_an_error_at_once(initial):
    with pytest.raises(ValueError, match="initial must be None or an integer of at least 1; got"):
        blocks(X, Y, initial=initial)


@pytest.mark.parametrize("rows", [7, None, np.array(3.0), iter([])])
def test_what_has_no_rows_is_an_error(rows):
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
def test_a_stream_comes_in_the_blocks_of_the_whole_however_it_was_cut(form, lengths, size, initial, labelled):
    table, labels = FORMS[form](X), Y if labelled else None
    expected = list(blocks(table, labels, size, initial=initial))
    got = list(rebatched(cut(table, labels, lengths), size, initial))
    for (rows, y), (expected_rows, expected_y) in zip(got, expected, strict=True):
        assert type(rows) is type(table)
        np.testing.assert_array_equal(dense(rows), dense(expected_rows))
        np.testing.assert_array_equal(y, expected_y)


def test_a_block_is_there_before_the_next_piece_is_asked_for():
    asked = []

    def pieces():
        for k in range(5):
            asked.append(k)
            yield X[5 * k : 5 * k + 5], Y[5 * k : 5 * k + 5]

    stream = rebatched(pieces(), size=10)
    next(stream)
    assert asked == [0, 1]


def test_blocks_within_a_piece_are_views_of_it():
    assert all(np.shares_memory(rows, X) for rows, _ in rebatched([(X, Y)], size=10))


def test_a_block_of_many_pieces_is_joined_once(monkeypatch):
    joins = []
    join = np.concatenate
    monkeypatch.setattr("isokern.data.rebatching.np.concatenate", lambda parts: joins.append(len(parts)) or join(parts))
    list(rebatched(([X[k : k + 1], None] for k in range(25)), size=20))
    assert joins == [20, 5]


def test_a_stream_without_rows_gives_no_blocks():
    assert list(rebatched([], 10)) == list(rebatched([(X[:0], Y[:0])], 10)) == []


def test_sizes_of_a_stream_are_checked_at_once():
    with pytest.raises(ValueError, match="size must be an integer of at least 1; got 0"):
        rebatched([], 0)
