"""Test the types of columns in CSV and Parquet files: numbers, text, true and false, dates, and missing values."""

from __future__ import annotations

import datetime
import re

import numpy as np
import pytest

from isokern.data import iter_csv, read_csv, read_parquet

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

NAN = np.nan


@pytest.fixture
def csv_file(tmp_path):
    """Return a function that writes rows.csv and returns its path."""

    def write(text):
        (tmp_path / "rows.csv").write_text(text)
        return tmp_path / "rows.csv"

    return write


@pytest.fixture
def parquet_file(tmp_path):
    """Return a function that writes rows.parquet from columns and returns its path."""

    def write(columns):
        parquet.write_table(pyarrow.table(columns), tmp_path / "rows.parquet")
        return tmp_path / "rows.parquet"

    return write


@pytest.fixture
def tiny_pieces(monkeypatch):
    """Read files in pieces of few bytes."""
    monkeypatch.setattr("isokern.data.lines._PIECE", 16)


def as_dict(X):
    """Return the columns of X as lists; of an array, by position."""
    return X.to_pydict() if hasattr(X, "to_pydict") else dict(enumerate(X.T.tolist()))


# Text and missing values


def test_text_makes_a_table_of_floats_and_strings(csv_file):
    X, y = read_csv(csv_file('age,job,y\n39,"clerk, state",a\n,,b\n50,cook,\n'), label="y")
    assert X.schema == pyarrow.schema({"age": pyarrow.float64(), "job": pyarrow.string()})
    assert as_dict(X) == {"age": [39, None, 50], "job": ["clerk, state", None, "cook"]}
    assert y.tolist() == ["a", "b", None]


def test_numbers_with_holes_make_an_array_with_nan(csv_file):
    X, _ = read_csv(csv_file("a,b\n1,\nNA,2\n"))
    assert X.dtype == np.float64
    np.testing.assert_array_equal(X, [[1, NAN], [NAN, 2]])


def test_the_words_for_missing_values_are_those_of_pyarrow_and_one_space(csv_file):
    from pyarrow.csv import ConvertOptions

    words = [*ConvertOptions().null_values, " "]
    lines = "".join(f"{word},{word},1\n" for word in words)
    X, _ = read_csv(csv_file(f"a,b,c\n1,x,1\n{lines}"))
    assert as_dict(X) == {"a": [1] + [None] * 18, "b": ["x"] + [None] * 18, "c": [1] * 19}


def test_all_words_for_missing_values_are_documented():
    from isokern.data.csv import MISSING

    documented = re.sub(r"\s+", " ", read_csv.__doc__)
    assert all(f" {word}," in documented or f" {word} and" in documented for word in MISSING if word.strip())


@pytest.mark.usefixtures("tiny_pieces")
def test_a_quoted_word_is_text_in_a_column_of_text_and_missing_in_a_column_of_numbers(csv_file):
    X, _ = read_csv(csv_file('a,b\n1,x\n"2","NA"\n"","NA"\n"NA",""\n5,NA\n'))
    assert as_dict(X) == {"a": [1, 2, None, None, 5], "b": ["x", "NA", "NA", None, None]}


def test_text_is_kept_as_it_is_in_the_file(csv_file):
    X, _ = read_csv(csv_file("a\nx\n1.0\n007\n TRUE\n1e3\n"))
    assert as_dict(X) == {"a": ["x", "1.0", "007", " TRUE", "1e3"]}


def test_true_and_false_are_1_and_0(csv_file):
    X, _ = read_csv(csv_file("a,b,c\nTrue,true,FALSE\nFalse,,TRUE\n"))
    np.testing.assert_array_equal(X, [[1, 1, 0], [0, NAN, 1]])


def test_hexadecimal_digits_are_text(csv_file):
    X, _ = read_csv(csv_file("a,b\n0x10,1\n0xff,2\n"))
    assert as_dict(X) == {"a": ["0x10", "0xff"], "b": [1, 2]}


def test_numbers_beside_text_may_be_float32(csv_file):
    X, _ = read_csv(csv_file("a,b\n0.1,x\n"), dtype=np.float32)
    assert X.schema.types == [pyarrow.float32(), pyarrow.string()]
    with pytest.raises(ValueError, match=r'rows.csv, line 2: column "a" must be a finite number; got "1e300"'):
        read_csv(csv_file("a,b\n1e300,x\n"), dtype=np.float32)


@pytest.mark.parametrize(("row", "got"), [("x,1", '"x"'), (",1", "an empty field")])
def test_sparse_rows_cannot_have_text_or_missing_values(row, got, csv_file):
    path = csv_file(f"age,b\n1,2\n{row}\n")
    message = (
        f'rows.csv, line 3: column "age" must be a number; got {got}. Fill or encode it, or leave the column out w'
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        read_csv(path, sparse=True)


# The first rows settle the types


@pytest.mark.usefixtures("tiny_pieces")
@pytest.mark.parametrize(
    ("first", "later", "rule"),
    [("1", "x", "a number"), ("", "x", "a number"), ("true", "2", "true or false"), ("true", "x", "true or false")],
)
def test_a_later_field_that_does_not_fit_is_an_error_with_the_cure(first, later, rule, csv_file):
    path = csv_file("a,b\n" + f"{first},1\n" * 20 + f"{later},1\n")
    cure = "Read the column as text with types={'a': 'text'}, or leave the column out with drop=['a']."
    message = f'rows.csv, line 22: column "a" must be {rule}, as in the first rows; got "{later}". {cure}'
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        read_csv(path)
    assert as_dict(read_csv(path, types={"a": "text"})[0])["a"] == [first or None] * 20 + [later]
    assert read_csv(path, drop=["a"])[0].shape == (21, 1)


@pytest.mark.usefixtures("tiny_pieces")
def test_the_first_block_settles_the_types(csv_file):
    path = csv_file("a,b\n" + "1,1\n" * 20 + "x,1\n")
    tables = [X for X, _ in iter_csv(path, 8, initial=21)]
    assert tables[0]["a"].to_pylist() == ["1"] * 20 + ["x"]


@pytest.mark.usefixtures("tiny_pieces")
def test_text_comes_in_blocks_with_the_same_types(csv_file):
    path = csv_file("a,b\n" + "".join(f"{k},w{k}\n" for k in range(25)))
    tables = [X for X, _ in iter_csv(path, 10, initial=3)]
    assert [X.shape for X in tables] == [(3, 2), (10, 2), (10, 2), (2, 2)]
    assert pyarrow.concat_tables(tables)["b"].to_pylist() == [f"w{k}" for k in range(25)]


def test_a_file_without_rows_has_columns_of_numbers(csv_file):
    X, y = read_csv(csv_file("a,b,y\n"), label="y")
    assert (X.shape, X.dtype, y.shape) == ((0, 2), np.float64, (0,))


# Types that are told


def test_told_types_are_kept_whatever_the_rows_hold(csv_file):
    path = csv_file("zip,age,y\n01,7,1\n02,,0\n")
    X, y = read_csv(path, label="y", types={"zip": "text", "y": "text"})
    assert as_dict(X) == {"zip": ["01", "02"], "age": [7, None]}
    assert y.tolist() == ["1", "0"]


def test_a_word_in_a_column_told_to_be_of_numbers_is_an_error(csv_file):
    path = csv_file("a,b\n1,true\n2,false\nthree,true\n")
    with pytest.raises(ValueError, match=r'rows.csv, line 4: column "a" must be a number; got "three"\. Correct the f'):
        read_csv(path, types={"a": "number"})
    np.testing.assert_array_equal(read_csv(path, columns=["b"], types={"b": "number"})[0], [[1], [0], [1]])


# Dates

DATES = {
    "dates": ("2020-01-02", 1577923200),
    "dates and times": ("1970-01-01 00:01:30.5", 90.5),
    "with a zone": ("1970-01-01T02:00:00+01:00", 3600),
    "times": ("01:00:05", 3605),
}


@pytest.mark.parametrize("kind", DATES)
def test_dates_and_times_are_refused_or_read_as_seconds(kind, csv_file):
    text, seconds = DATES[kind]
    path = csv_file(f"a,when\n1,{text}\n2,\n")
    message = f'rows.csv: column "when" must hold numbers or text; got dates or times, such as "{text}". Leave it out '
    for options in ({}, {"types": {"when": "number"}}):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
            read_csv(path, **options)
        X, _ = read_csv(path, dates="number", **options)
        np.testing.assert_array_equal(X, [[1, seconds], [2, NAN]])
    assert read_csv(path, types={"when": "text"})[0]["when"].to_pylist() == [text, None]


def test_dates_may_come_before_dates_with_times(csv_file):
    X, _ = read_csv(csv_file("when\n1970-01-02\n1970-01-01T00:00:01\n"), dates="number")
    np.testing.assert_array_equal(X, [[86400], [1]])


@pytest.mark.usefixtures("tiny_pieces")
def test_a_word_after_dates_is_an_error(csv_file):
    path = csv_file("when\n" + "2020-01-02\n" * 5 + "soon\n")
    with pytest.raises(
        ValueError, match=r'line 7: column "when" must be a date or time, as in the first rows; got "soo'
    ):
        read_csv(path, dates="number")


def test_dates_as_labels_are_text(csv_file):
    assert read_csv(csv_file("a,y\n1,2020-01-02\n"), label="y")[1].tolist() == ["2020-01-02"]


# Parquet


def test_parquet_text_dictionaries_and_nulls(parquet_file):
    columns = {
        "number": [1.5, None],
        "bool": [True, None],
        "nothing": pyarrow.nulls(2),
        "text": ["u", None],
        "large": pyarrow.array(["u", None], pyarrow.large_string()),
        "dictionary": pyarrow.array(["u", None]).dictionary_encode(),
    }
    X, _ = read_parquet(parquet_file(columns))
    assert X.schema.types == [pyarrow.float64()] * 3 + [pyarrow.string()] * 3
    assert [X[name].to_pylist() for name in columns] == [[1.5, None], [1, None], [None, None], *[["u", None]] * 3]


def test_parquet_numbers_with_nulls_make_an_array_with_nan(parquet_file):
    np.testing.assert_array_equal(
        read_parquet(parquet_file({"a": [1, None], "b": [NAN, 2.0]}))[0], [[1, NAN], [NAN, 2]]
    )


def test_parquet_columns_have_the_types_that_are_told(parquet_file):
    columns = {"int": [1, None], "float": [1.0, NAN], "bool": [True, False], "y": [0, 1]}
    types = dict.fromkeys(columns, "text")
    X, y = read_parquet(parquet_file(columns), label="y", types=types)
    assert as_dict(X) == {"int": ["1", None], "float": ["1", None], "bool": ["true", "false"]}
    assert y.tolist() == ["0", "1"]
    with pytest.raises(
        ValueError, match=r'rows.parquet: column "a" must hold numbers; got string\. Encode it, or leave'
    ):
        read_parquet(parquet_file({"a": ["x"]}), types={"a": "number"})
    with pytest.raises(ValueError, match=r'rows.parquet: column "a" must hold numbers; got string'):
        read_parquet(parquet_file({"a": ["x"]}), sparse=True)


def test_parquet_dates_and_times_are_refused_or_read_as_seconds(parquet_file):
    moment = datetime.datetime(1970, 1, 1, 0, 1, 30, 500_000)
    columns = {"moment": [moment, None], "day": [moment.date(), None], "time": [moment.time(), None]}
    columns["zone"] = pyarrow.array([moment, None], pyarrow.timestamp("ns", "Europe/Berlin"))
    path = parquet_file(columns)
    for name in columns:
        with pytest.raises(
            ValueError, match=f'rows.parquet: column "{name}" must hold numbers or text; got dates or ti'
        ):
            read_parquet(path, columns=[name])
    X, _ = read_parquet(path, dates="number")
    np.testing.assert_array_equal(X, [[90.5, 0, 90.5, 90.5], [NAN] * 4])


def test_an_infinite_number_beside_text_is_an_error(parquet_file, csv_file):
    with pytest.raises(ValueError, match=r'rows.parquet: column "b" must hold finite numbers; got infinity in row 1 '):
        read_parquet(parquet_file({"a": ["x", "y"], "b": [1.0, np.inf]}))
    with pytest.raises(ValueError, match=r'rows.csv, line 3: column "b" must be a finite number; got "inf"'):
        read_csv(csv_file("a,b\nx,1\ny,inf\n"))
