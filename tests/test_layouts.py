"""Test the separator and the header of CSV files."""

from __future__ import annotations

import gzip

import numpy as np
import pytest

from isokern.data import iter_csv, read_csv

pyarrow = pytest.importorskip("pyarrow")

ROWS = [["a", "b", "c"], ["1", "2.5", "3"], ["4", "5", "6"]]
X = [[1, 2.5, 3], [4, 5, 6]]


@pytest.fixture
def saved(tmp_path):
    """Return a function that writes a file and returns its path."""

    def save(text, name="rows.csv"):
        (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
        return tmp_path / name

    return save


def written(separator, rows=ROWS):
    return "".join(separator.join(row) + "\n" for row in rows)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("header", [True, False])
def test_the_separator_is_guessed(separator, header, saved):
    read, _ = read_csv(saved(written(separator, ROWS if header else ROWS[1:])), header=header)
    np.testing.assert_array_equal(read, X)


def test_a_separator_can_be_given(saved):
    np.testing.assert_array_equal(read_csv(saved(written(" ")), separator=" ")[0], X)
    assert read_csv(saved("a;b,c\nx;1,2\n"), separator=",")[0]["a;b"].to_pylist() == ["x;1"]


GUESSES = {
    "one that cuts all lines alike": ("a;b\n1,5;2\n3;4,5\n", ["a", "b"]),
    "the most fields": ("a|b;c|d\n1|2;3|4\n", ["a", "b;c", "d"]),
    "quoted separators do not count": ('"a,b,c";d\n"1,2,3";4\n', ["a,b,c", "d"]),
    "a bad line": ("a;b\n1;2\n3;4;5\n", ["a", "b"]),
    "only a header": ("a|b\n", ["a", "b"]),
    "one column": ("a\nx y\n", ["a"]),
    "CRLF and blank lines": ("a;b\r\n\r\n1;x\r\n", ["a", "b"]),
}


@pytest.mark.parametrize("kind", GUESSES)
def test_a_guess_takes(kind, saved):
    text, names = GUESSES[kind]
    try:
        assert read_csv(saved(text), types=dict.fromkeys(names, "text"))[0].column_names == names
    except ValueError as error:
        assert kind == "a bad line"
        assert "line 3: a row must have 2 fields like the header; got 3" in str(error)


@pytest.mark.parametrize("name", ["rows.tsv", "rows.tsv.gz"])
def test_tsv_has_tabs(name, saved):
    text = b"a,b,c\td,e,f\n1\t2\n"
    assert read_csv(saved(gzip.compress(text) if name.endswith("gz") else text, name))[0].tolist() == [[1, 2]]


def test_without_a_header_columns_are_named_by_position(saved):
    path = saved("1,x,0\n2,y,1\n")
    table, y = read_csv(path, header=False, label="2")
    assert table.to_pydict() == {"0": [1, 2], "1": ["x", "y"]}
    assert y.tolist() == [0, 1]
    assert [X.tolist() for X, _ in iter_csv(path, 1, header=False, columns=["2", "0"])] == [[[0, 1]], [[1, 2]]]


def test_without_a_header_errors_count_from_the_first_line(saved):
    with pytest.raises(ValueError, match=r"rows.csv, line 2: a row must have 2 fields like the first row; got 1"):
        read_csv(saved("1,2\n3\n"), header=False)


def test_a_byte_order_mark_is_no_part_of_the_first_row(saved):
    np.testing.assert_array_equal(read_csv(saved("\ufeff1,2\n"), header=False)[0], [[1, 2]])


@pytest.mark.parametrize("separator", ["", ",,", "é", '"', "\n", 1])
def test_a_separator_must_be_one_character(separator, saved):
    with pytest.raises(ValueError, match="separator must be None or one character of ASCII; got"):
        read_csv(saved(written(",")), separator=separator)


def test_header_must_be_true_or_false(saved):
    with pytest.raises(TypeError, match="header must be True or False; got 0"):
        read_csv(saved(written(",")), header=0)
