"""CSV and Parquet files."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from isokern.data import iter_csv, iter_parquet, read_csv, read_parquet

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

TEXT = "a,b,y\n1,2.5,0\n-3,4e2,1\n0,0,1\n"
ROWS, LABELS = [[1, 2.5], [-3, 400], [0, 0]], [0, 1, 1]


@pytest.fixture
def csv_file(tmp_path):
    """Return a function that writes rows.csv and returns its path."""

    def write(content):
        path = tmp_path / "rows.csv"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture
def parquet_file(tmp_path):
    """Return a function that writes rows.parquet from columns and returns its path."""

    def write(columns, **options):
        parquet.write_table(pyarrow.table(columns), tmp_path / "rows.parquet", **options)
        return tmp_path / "rows.parquet"

    return write


@pytest.fixture
def tiny_pieces(monkeypatch):
    """Let files be read in pieces of few bytes and few rows."""
    monkeypatch.setattr("isokern.data.lines._PIECE", 16)
    monkeypatch.setattr("isokern.data.parquet._PIECE_VALUES", 6)


# CSV: what is read


def test_columns_of_numbers_and_a_label_are_read_by_name(csv_file):
    X, y = read_csv(csv_file(TEXT), label="y")
    np.testing.assert_array_equal(X, ROWS)
    np.testing.assert_array_equal(y, LABELS)
    assert X.dtype == y.dtype == np.float64


def test_without_a_label_all_columns_are_features(csv_file):
    X, y = read_csv(csv_file(TEXT))
    assert X.shape == (3, 3)
    assert y is None


def test_columns_come_in_the_order_asked_for(csv_file):
    X, y = read_csv(csv_file(TEXT), label="a", columns=["y", "b"])
    np.testing.assert_array_equal(X, [[0, 2.5], [1, 400], [1, 0]])
    np.testing.assert_array_equal(y, [1, -3, 0])


def test_columns_that_are_left_out_may_hold_anything(csv_file):
    path = csv_file('a,note,y\n1,"x, ""y""",0\n2,,1\n')
    np.testing.assert_array_equal(read_csv(path, label="y", columns=["a"])[0], [[1], [2]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_equal_dense_ones(dtype, csv_file):
    X, _ = read_csv(csv_file(TEXT), label="y", sparse=True, dtype=dtype)
    assert sparse.issparse(X)
    assert X.format == "csr"
    assert X.dtype == dtype
    assert X.nnz == 4
    np.testing.assert_array_equal(X.toarray(), ROWS)


TEXTS = {
    "CRLF": TEXT.replace("\n", "\r\n"),
    "no newline at the end": TEXT.rstrip(),
    "blank lines": TEXT.replace("\n", "\n\n") + "\r\n\n",
    "quoted": '"a","b",y\n"1","2.5",0\n-3,"4e2","1"\n0,0,1\n',
    "spaces": "a,b,y\n 1,2.5 ,0\n-3, 4e2,1\n0,0, 1\n",
    "byte order mark": "\ufeff" + TEXT,
    "a byte order mark before quotes": '\ufeff"a",b,y' + TEXT[5:],
}


@pytest.mark.usefixtures("tiny_pieces")
@pytest.mark.parametrize("form", TEXTS)
def test_the_same_rows_are_read_from_every_way_to_write_them(form, csv_file):
    X, y = read_csv(csv_file(TEXTS[form]), label="y", columns=["a", "b"])
    np.testing.assert_array_equal(X, ROWS)
    np.testing.assert_array_equal(y, LABELS)


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress], ids=["gz", "bz2", "xz"])
def test_compressed_files_are_read(compress, csv_file):
    np.testing.assert_array_equal(read_csv(csv_file(compress(TEXT.encode())), label="y")[0], ROWS)


def test_a_file_of_only_a_header_has_no_rows(csv_file):
    X, y = read_csv(csv_file("a,b,y\n"), label="y")
    assert X.shape == (0, 2)
    assert y.shape == (0,)
    assert list(iter_csv(csv_file("a,b,y"), label="y")) == []


@given(
    table=st.lists(st.tuples(st.floats(allow_nan=False, allow_infinity=False), st.integers(-3, 3)), min_size=1),
    size=st.integers(1, 7),
)
def test_numbers_are_read_as_they_were_written(table, size, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "numbers.csv"
    path.write_text("x,y\n" + "".join(f"{x!r},{y}\n" for x, y in table))
    got = list(iter_csv(path, size, label="y"))
    np.testing.assert_array_equal(np.concatenate([X for X, _ in got])[:, 0], [x for x, _ in table])
    np.testing.assert_array_equal(np.concatenate([y for _, y in got]), [y for _, y in table])


# CSV: labels


def test_labels_that_are_not_all_numbers_are_text(csv_file):
    y = read_csv(csv_file("a,y\n1,spam\n2,1\n3,\n"), label="y")[1]
    assert y.dtype == object
    assert y.tolist() == ["spam", "1", None]


def test_only_an_empty_label_is_missing(csv_file):
    y = read_csv(csv_file("a,y\n1,NA\n2,null\n3,\n"), label="y")[1]
    assert y.tolist() == ["NA", "null", None]


def test_a_missing_label_among_numbers_is_nan(csv_file):
    y = read_csv(csv_file("a,y\n1,1\n2,\n3,-1\n"), label="y")[1]
    np.testing.assert_array_equal(y, [1, np.nan, -1])


@pytest.mark.usefixtures("tiny_pieces")
def test_labels_that_began_as_text_stay_text(csv_file):
    y = read_csv(csv_file("a,y\n1,spam\n2,ham\n" + "3,7\n" * 20), label="y")[1]
    assert y.tolist() == ["spam", "ham", *["7"] * 20]


@pytest.mark.usefixtures("tiny_pieces")
def test_text_after_labels_that_began_as_numbers_is_an_error(csv_file):
    path = csv_file("a,y\n" + "3,7\n" * 20 + "1,spam\n")
    with pytest.raises(
        ValueError, match=r'rows.csv, line 22: label column "y" must be a number, as in the first rows; got "spam"'
    ):
        read_csv(path, label="y")


# CSV: blocks


def numbered(n):
    return "x,y\n" + "".join(f"{k},{k % 2}\n" for k in range(n))


@pytest.mark.usefixtures("tiny_pieces")
@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_csv_file_comes_in_blocks(is_sparse, csv_file):
    got = list(iter_csv(csv_file(numbered(25)), 10, label="y", initial=3, sparse=is_sparse))
    assert [X.shape[0] for X, _ in got] == [3, 10, 10, 2]
    np.testing.assert_array_equal(np.concatenate([y for _, y in got]), np.arange(25) % 2)
    rows = np.concatenate([X.toarray() if is_sparse else X for X, _ in got])
    np.testing.assert_array_equal(rows[:, 0], np.arange(25))


def test_standard_input_is_read(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(TEXT.encode()))))
    np.testing.assert_array_equal(read_csv("-", label="y")[0], ROWS)


def test_a_block_is_there_as_soon_as_its_lines_are(run_script):
    # The script writes a row into its own standard input only after it has got the rows before.
    printed = run_script("""
import os, sys
from isokern.data import iter_csv
end, start = os.pipe()
os.dup2(end, 0)
pipe = os.fdopen(start, "w", buffering=1)
pipe.write("x,y\\n1,0\\n2,1\\n")
for X, y in iter_csv("-", 2, label="y"):
    print(X.ravel().tolist(), flush=True)
    if X[0, 0] < 5:
        pipe.write(f"{X[0, 0] + 2},0\\n{X[0, 0] + 3},1\\n")
    else:
        pipe.close()
""")
    assert printed.splitlines() == ["[1.0, 2.0]", "[3.0, 4.0]", "[5.0, 6.0]"]


@pytest.mark.usefixtures("memory_is_known")
@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_memory_does_not_follow_the_length_of_the_file(form, run_script, tmp_path):
    growth = run_script(
        """
import sys
import pyarrow, pyarrow.csv, pyarrow.parquet
from isokern.data import iter_csv, iter_parquet
form, path = sys.argv[1:]
table = pyarrow.table({f"x{k}": np.random.default_rng(k).random(20_000) for k in range(20)})
if form == "csv":
    with pyarrow.csv.CSVWriter(path, table.schema) as file:
        for _ in range(8):
            file.write(table)
else:
    with pyarrow.parquet.ParquetWriter(path, table.schema) as file:
        for _ in range(20):
            file.write(table)
iterate, n_rows = (iter_csv, 160_000) if form == "csv" else (iter_parquet, 400_000)
n = 0
for X, y in iterate(path):
    n += len(X)
    if n == n_rows // 2:
        before = megabytes("VmHWM")
assert n == n_rows
print(megabytes("VmHWM") - before)
""",
        form,
        tmp_path / f"rows.{form}",
    )
    assert float(growth) < 8  # the second half of the rows takes 13 MB and more


# CSV: errors

BAD_LINES = {
    "a word": (
        "1,abc,0",
        'column "age" must be a number; got "abc". Fill or encode it, or leave the column out with c',
    ),
    "empty": ("1,,0", 'column "age" must be a number; got an empty field. Fill or encode it, or leave the'),
    "blank": ("1, ,0", 'column "age" must be a number; got an empty field. Fill or'),
    "nan": ("1,nan,0", 'column "age" must be a finite number; got "nan"'),
    "infinite": ("1,-inf,0", 'column "age" must be a finite number; got "-inf"'),
    "too large": ("1,1e999,0", 'column "age" must be a finite number; got "1e999"'),
    "quoted": ('1,"4,5",0', 'column "age" must be a number; got "4,5"'),
    "too few": ("1,2", "a row must have 3 fields, as the header has; got 2"),
    "too many": ("1,2,3,4", "a row must have 3 fields, as the header has; got 4"),
    "only spaces": ("  ", "a row must have 3 fields, as the header has; got 1"),
    "an open quote": ('1,"2,3', "a line must be one row; got a quoted field that does not end on it"),
    "an open quote at the end": ('1,2,"3', "a line must be one row; got a quoted field that does not end on it"),
    "a quoted line end": ('1,2,"3\n4"', "a line must be one row; got a quoted field that does not end on it"),
    "a stray \\r": ("1,2,3\r4,5,6", "a line must be one row; got a quoted field that does not end on it, or a stray"),
    "not UTF-8": (b"1,\xff,3", "text must be UTF-8; got the byte 0xff. Convert the file to UTF-8"),
}


@pytest.mark.parametrize("before", [0, 1, 15, 200])
@pytest.mark.parametrize("after", [0, 1, 14])
@pytest.mark.parametrize("kind", BAD_LINES)
def test_the_line_that_makes_no_row_is_named_and_why(kind, before, after, csv_file):
    line, message = BAD_LINES[kind]
    line = line if isinstance(line, bytes) else line.encode()
    path = csv_file(b"x,age,y\n" + b"1,2,3\n" * before + line + b"\n" + b"1,2,3\n" * after)
    with pytest.raises(ValueError) as error:
        read_csv(path, label="y")
    assert str(error.value).startswith(f"rows.csv, line {before + 2}: {message}")


@pytest.mark.usefixtures("tiny_pieces")
def test_blank_lines_count_when_a_line_is_named(csv_file):
    path = csv_file("x,age\n\n1,2\n\r\n\n3,4\n5,abc\n")
    with pytest.raises(ValueError, match=r'rows.csv, line 7: column "age" must be a number; got "abc"'):
        read_csv(path)


def test_the_rows_before_a_bad_piece_are_still_given(csv_file, monkeypatch):
    monkeypatch.setattr("isokern.data.lines._PIECE", 16)
    stream = iter_csv(csv_file("x,y\n" + "1,2\n" * 50 + "1,abc\n"), 10)
    assert [len(next(stream)[0]) for _ in range(4)] == [10] * 4
    with pytest.raises(ValueError, match=r"rows.csv, line 52: "):
        list(stream)


def test_what_is_too_large_for_float32_is_an_error(csv_file):
    path = csv_file("x,y\n1,2\n1e300,4\n")
    assert read_csv(path)[0][1, 0] == 1e300
    with pytest.raises(ValueError, match=r'rows.csv, line 3: column "x" must be a finite number; got "1e300"'):
        read_csv(path, dtype=np.float32)


HEADERS = {
    "empty": ("", "rows.csv, line 1: the first line must hold the names of the columns; got nothing"),
    "blank": ("\n1,2\n", "rows.csv, line 1: the first line must hold the names of the columns; got nothing"),
    "numbers": ("1,2\n3,4\n", 'rows.csv, line 1: the first line must hold the names of the columns; got "1,2"'),
    "repeated": ("a,b,a\n1,2,3\n", 'rows.csv: the names of columns must differ; got "a" twice'),
    "nameless": (",a\n1,2\n", "rows.csv, line 1: column 1 must have a name. Give it one, or choose the columns to le"),
    "not UTF-8": (b"\xff\xfea\x00\n", "rows.csv, line 1: text must be UTF-8; got the byte 0xff. Convert the file"),
}


@pytest.mark.parametrize("kind", HEADERS)
def test_a_first_line_that_names_no_columns_is_an_error(kind, csv_file):
    content, message = HEADERS[kind]
    with pytest.raises(ValueError) as error:
        read_csv(csv_file(content))
    assert str(error.value).startswith(message)


def test_a_nameless_column_may_be_left_out(csv_file):
    np.testing.assert_array_equal(read_csv(csv_file(",a\n7,2\n"), columns=["a"])[0], [[2]])


# Both


@pytest.fixture(params=["csv", "parquet"])
def abc(request, csv_file, parquet_file):
    """Return how to read, and a file with the columns a, b and c."""
    if request.param == "csv":
        return read_csv, iter_csv, csv_file("a,b,c\n1,2,3\n4,5,6\n")
    return read_parquet, iter_parquet, parquet_file({"a": [1, 4], "b": [2, 5], "c": [3, 6]})


CHOICES = {
    "no such label": ({"label": "z"}, ValueError, 'label must be one of "a", "b", "c"; got "z"'),
    "no such column": ({"columns": ["a", "z"]}, ValueError, 'columns must be among "a", "b", "c"; got "z"'),
    "label and column": ({"label": "a", "columns": ["a"]}, ValueError, 'columns must not hold the label; got "a"'),
    "a column twice": ({"columns": ["a", "a"]}, ValueError, 'columns must differ; got "a" twice'),
    "no columns": ({"columns": []}, ValueError, "there must be a column of features besides the label"),
    "a name alone": ({"columns": "abc"}, TypeError, "columns must be None or a list of names; got 'abc'"),
    "numbers as columns": ({"columns": [0]}, TypeError, r"columns must be None or a list of names; got \[0\]"),
    "a number as label": ({"label": 2}, TypeError, "label must be None or the name of a column; got 2"),
    "integers": ({"dtype": np.int64}, ValueError, "dtype must be float32 or float64; got int64"),
}


@pytest.mark.parametrize("kind", CHOICES)
def test_columns_that_cannot_be_are_an_error(kind, abc):
    options, error, message = CHOICES[kind]
    read, _, path = abc
    with pytest.raises(error, match=message):
        read(path, **options)


def test_only_the_first_of_many_columns_are_listed(csv_file):
    path = csv_file(",".join(f"x{k}" for k in range(100)) + "\n")
    with pytest.raises(ValueError, match='"x10", "x11" and 88 more; got "z"'):
        read_csv(path, label="z")


def test_sizes_are_checked_at_once(abc):
    _, iterate, path = abc
    with pytest.raises(ValueError, match="size must be an integer of at least 1; got 0"):
        iterate(path, 0)


def test_a_file_that_is_not_there_is_an_error(abc):
    read, _, path = abc
    with pytest.raises(FileNotFoundError, match=r"missing\.csv"):
        read(path.with_name("missing.csv"))


def test_without_pyarrow_the_error_says_what_to_install(abc, monkeypatch):
    read, _, path = abc
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install isokern\[tables\]"):
        read(path)


# Parquet

KINDS = {
    "int8": pyarrow.int8(),
    "uint64": pyarrow.uint64(),
    "bool": pyarrow.bool_(),
    "float32": pyarrow.float32(),
    "float64": pyarrow.float64(),
    "decimal": pyarrow.decimal128(25, 2),
}


@pytest.mark.parametrize("kind", KINDS)
def test_parquet_columns_of_every_kind_of_number_are_read(kind, parquet_file):
    column = pyarrow.array([1, 0, 1]).cast(KINDS[kind])
    X, y = read_parquet(parquet_file({"a": column, "y": column}), label="y")
    np.testing.assert_array_equal(X, [[1], [0], [1]])
    np.testing.assert_array_equal(y, [1, 0, 1])
    assert X.dtype == y.dtype == np.float64


@pytest.mark.parametrize("encode", [False, True])
@pytest.mark.parametrize(
    ("labels", "expected"),
    [(["u", None, "v"], ["u", None, "v"]), ([3, None, 4], [3.0, np.nan, 4.0])],
    ids=["text", "numbers"],
)
def test_parquet_labels_may_be_text_or_missing_or_encoded(labels, expected, encode, parquet_file):
    column = pyarrow.array(labels)
    path = parquet_file({"a": [1, 2, 3], "y": column.dictionary_encode() if encode else column})
    y = read_parquet(path, label="y")[1]
    np.testing.assert_array_equal(y, np.array(expected, dtype=y.dtype))
    assert y.dtype == (object if labels[0] == "u" else np.float64)


@pytest.mark.usefixtures("tiny_pieces")
@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_parquet_file_comes_in_blocks(is_sparse, parquet_file):
    path = parquet_file({"x": np.arange(25), "z": np.zeros(25), "y": np.arange(25) % 2}, row_group_size=7)
    got = list(iter_parquet(path, 10, label="y", columns=["z", "x"], initial=3, sparse=is_sparse))
    assert [X.shape[0] for X, _ in got] == [3, 10, 10, 2]
    rows = np.concatenate([X.toarray() if is_sparse else X for X, _ in got])
    np.testing.assert_array_equal(rows, np.column_stack([np.zeros(25), np.arange(25)]))
    np.testing.assert_array_equal(np.concatenate([y for _, y in got]), np.arange(25) % 2)


def test_a_parquet_file_without_rows_is_read(parquet_file):
    X, y = read_parquet(
        parquet_file({"a": pyarrow.array([], pyarrow.int8()), "y": pyarrow.array([], "str")}), label="y"
    )
    assert X.shape == (0, 1)
    assert y.shape == (0,)


@pytest.mark.usefixtures("tiny_pieces")
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize(
    ("value", "word"),
    [(None, "a missing value"), (np.nan, "a missing value"), (np.inf, "infinity")],
    ids=["null", "nan", "inf"],
)
def test_the_row_and_column_of_a_parquet_value_that_is_not_finite_are_named(value, word, is_sparse, parquet_file):
    path = parquet_file({"a": [1.0] * 30, "b": [1.0] * 17 + [value] + [2.0] * 12})
    with pytest.raises(
        ValueError, match=rf'rows.parquet: column "b" must hold finite numbers; got {word} in row 17 \('
    ):
        read_parquet(path, sparse=is_sparse)


def test_the_index_of_a_data_frame_is_no_feature(tmp_path):
    pandas = pytest.importorskip("pandas")
    pandas.DataFrame({"a": [1, 3]}, index=["u", "v"]).to_parquet(tmp_path / "rows.parquet")
    assert "__index_level_0__" in parquet.read_schema(tmp_path / "rows.parquet").names
    np.testing.assert_array_equal(read_parquet(tmp_path / "rows.parquet")[0], [[1], [3]])


def test_a_parquet_column_of_text_is_an_error(parquet_file):
    path = parquet_file({"a": [1], "b": ["x"]})
    with pytest.raises(
        ValueError, match=r'column "b" must hold numbers or bools; got string. Encode the column as numb'
    ):
        read_parquet(path)
    assert read_parquet(path, columns=["a"])[0].shape == (1, 1)


def test_a_parquet_label_column_of_lists_is_an_error(parquet_file):
    with pytest.raises(ValueError, match='label column "y" must hold numbers, bools or text; got list'):
        read_parquet(parquet_file({"a": [1], "y": [[1]]}), label="y")


@pytest.mark.parametrize("damage", ["empty", "text", "cut", "overwritten"])
def test_a_damaged_parquet_file_is_an_error_that_names_it(damage, parquet_file):
    path = parquet_file({"a": np.random.default_rng(0).random(1000)})
    whole = path.read_bytes()
    broken = {
        "empty": b"",
        "text": TEXT.encode(),
        "cut": whole[:500],
        "overwritten": whole[:4] + bytes(60) + whole[64:],
    }
    path.write_bytes(broken[damage])
    with pytest.raises(ValueError, match=r"rows.parquet: must be a whole Parquet file; "):
        read_parquet(path)


def test_parquet_from_standard_input_is_an_error():
    with pytest.raises(ValueError, match='path must be a file; got "-", and Parquet cannot be read from a pipe'):
        read_parquet("-")
