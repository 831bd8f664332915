"""Test reading CSV and Parquet files."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from isokern import data
from isokern.data import iter_csv, read_csv, read_parquet, write_libsvm
from isokern.data.columns import TableOptions
from isokern.data.csv import Reader
from isokern.data.layouts import Layout

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


@pytest.fixture(params=["csv", "parquet"])
def written(request, csv_file, parquet_file):
    """Return a function that writes columns in either format and returns how to read, to iterate, and the path."""

    def write(columns, **options):
        read, iterate = (getattr(data, f"{name}_{request.param}") for name in ("read", "iter"))
        if request.param == "parquet":
            return read, iterate, parquet_file(columns, **options)
        lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
        return read, iterate, csv_file("\n".join([*lines, ""]))

    return write


@pytest.fixture
def tiny_pieces(monkeypatch):
    """Read files in pieces of few bytes and few rows."""
    monkeypatch.setattr("isokern.data.lines._PIECE", 16)
    monkeypatch.setattr("isokern.data.parquet._PIECE_VALUES", 6)


def assert_rows(read, X=ROWS, y=LABELS):
    np.testing.assert_array_equal(read[0], X)
    np.testing.assert_array_equal(read[1], y)


# CSV: rows


def test_columns_are_selected_by_name_in_the_order_given(csv_file):
    path = csv_file(TEXT)
    assert_rows(read_csv(path, label="y"))
    assert_rows(read_csv(path, label="a", columns=["y", "b"]), [[0, 2.5], [1, 400], [1, 0]], [1, -3, 0])
    X, y = read_csv(path)
    assert (X.shape, X.dtype, y) == ((3, 3), np.float64, None)


def test_columns_that_are_left_out_may_hold_anything(csv_file):
    path = csv_file('a,note,y\n1,"x, ""y""",0\n2,,1\n')
    np.testing.assert_array_equal(read_csv(path, label="y", columns=["a"])[0], [[1], [2]])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_equal_dense_rows(dtype, csv_file):
    X, _ = read_csv(csv_file(TEXT), label="y", sparse=True, dtype=dtype)
    assert sparse.issparse(X)
    assert (X.format, X.dtype, X.nnz) == ("csr", dtype, 4)
    np.testing.assert_array_equal(X.toarray(), ROWS)


TEXTS = {
    "CRLF": TEXT.replace("\n", "\r\n"),
    "blank lines": TEXT.replace("\n", "\n\n") + "\r\n\n",
    "quoted": '"a","b",y\n"1","2.5",0\n-3,"4e2","1"\n0,0,1\n',
    "spaces": "a,b,y\n 1,2.5 ,0\n-3, 4e2,1\n0,0, 1\n",
    "byte order mark": "\ufeff" + TEXT,
    "a byte order mark before quotes": '\ufeff"a",b,y' + TEXT[5:],
    "gz": gzip.compress(TEXT.encode()),
    "bz2": bz2.compress(TEXT.encode()),
    "xz": lzma.compress(TEXT.encode()),
}


@pytest.mark.usefixtures("tiny_pieces")
@pytest.mark.parametrize("form", TEXTS)
def test_every_form_of_the_same_text_gives_the_same_rows(form, csv_file):
    assert_rows(read_csv(csv_file(TEXTS[form]), label="y", columns=["a", "b"]))


def test_a_missing_newline_at_the_end_gives_one_warning_and_all_rows(csv_file):
    path = csv_file(TEXT.rstrip())
    with pytest.warns(UserWarning) as warned:
        assert_rows(read_csv(path, label="y"))
    assert [str(warning.message).partition(" so ")[0] for warning in warned] == [
        f"{path}: the last line does not end with a newline,"
    ]


def test_standard_input_is_read(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(TEXT.encode()))))
    assert_rows(read_csv("-", label="y"))


@given(
    table=st.lists(st.tuples(st.floats(allow_nan=False, allow_infinity=False), st.integers(-3, 3)), min_size=1),
    size=st.integers(1, 7),
)
def test_numbers_are_read_as_they_were_written(table, size, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "numbers.csv"
    path.write_text("x,y\n" + "".join(f"{x!r},{y}\n" for x, y in table))
    tables, labels = zip(*iter_csv(path, size, label="y"), strict=True)
    assert_rows((np.concatenate(tables)[:, 0], np.concatenate(labels)), *zip(*table, strict=True))


# CSV: labels

LABEL_TEXTS = {
    "not all numbers": ("1,spam\n2,1\n3,\n", ["spam", "1", None]),
    "missing": ('1,NA\n2,spam\n3,\n4,"NA"\n', [None, "spam", None, "NA"]),
    "true and false": ("1,True\n2,False\n", ["True", "False"]),
    "text at first": ("1,spam\n2,ham\n" + "3,7\n" * 20, ["spam", "ham", *["7"] * 20]),
    "numbers": ("1,1\n2,\n3,-1\n", [1, np.nan, -1]),
}


@pytest.mark.usefixtures("tiny_pieces")
@pytest.mark.parametrize("kind", LABEL_TEXTS)
def test_labels_are_numbers_if_all_of_the_first_lines_are_else_text(kind, csv_file):
    lines, expected = LABEL_TEXTS[kind]
    y = read_csv(csv_file("a,y\n" + lines), label="y")[1]
    assert y.dtype == (np.float64 if kind == "numbers" else object)
    np.testing.assert_array_equal(y, np.array(expected, dtype=y.dtype))


@pytest.mark.usefixtures("tiny_pieces")
def test_text_after_labels_that_began_as_numbers_is_an_error(csv_file):
    path = csv_file("a,y\n" + "3,7\n" * 20 + "1,spam\n")
    message = 'rows.csv, line 22: label column "y" must be a number, as in the first rows; got "spam"'
    with pytest.raises(ValueError, match=message):
        read_csv(path, label="y")


# CSV: errors

NOT_ONE_ROW = "a line must hold one row; got a quoted field that does not end on it, or a stray"
BAD_LINES = {
    "a word": ("1,abc,0", 'column "age" must be a number; got "abc". Correct the field, or leave it empty.'),
    "infinite": ("1,-inf,0", 'column "age" must be a finite number; got "-inf"'),
    "too large": ("1,1e999,0", 'column "age" must be a finite number; got "1e999"'),
    "quoted": ('1,"4,5",0', 'column "age" must be a number; got "4,5"'),
    "too few": ("1,2", "a row must have 3 fields like the header; got 2"),
    "too many": ("1,2,3,4", "a row must have 3 fields like the header; got 4"),
    "only spaces": ("  ", "a row must have 3 fields like the header; got 1"),
    "an open quote": ('1,"2,3', NOT_ONE_ROW),
    "an open quote at the end": ('1,2,"3', NOT_ONE_ROW),
    "a quoted newline": ('1,2,"3\n4"', NOT_ONE_ROW),
    "a stray \\r": ("1,2,3\r4,5,6", NOT_ONE_ROW),
    "not UTF-8": (b"1,\xff,3", "text must be UTF-8; got the byte 0xff. Convert the file to UTF-8"),
}


@pytest.mark.parametrize(("before", "after"), [(0, 0), (1, 14), (200, 14)])
@pytest.mark.parametrize("kind", BAD_LINES)
def test_an_error_names_the_line_and_the_reason(kind, before, after, csv_file):
    line, message = BAD_LINES[kind]
    line = line if isinstance(line, bytes) else line.encode()
    path = csv_file(b"x,age,y\n" + b"1,2,3\n" * before + line + b"\n" + b"1,2,3\n" * after)
    with pytest.raises(ValueError, match=f"^{re.escape(f'rows.csv, line {before + 2}: {message}')}"):
        read_csv(path, label="y", types={"age": "number"})


@pytest.mark.usefixtures("tiny_pieces")
def test_line_numbers_count_blank_lines(csv_file):
    path = csv_file("x,age\n\n1,2\n\r\n\n3,4\n5,abc\n")
    with pytest.raises(ValueError, match=r'rows.csv, line 7: column "age" must be a number, as in the first rows; got'):
        read_csv(path)


@pytest.mark.usefixtures("tiny_pieces")
def test_rows_before_a_bad_piece_are_still_returned(csv_file):
    stream = iter_csv(csv_file("x,y\n" + "1,2\n" * 50 + "1,abc\n"), 10)
    assert [len(next(stream)[0]) for _ in range(4)] == [10] * 4
    with pytest.raises(ValueError, match=r"rows.csv, line 52: "):
        list(stream)


def test_a_thread_of_pyarrow_never_holds_memory_of_python(monkeypatch):
    """Such a thread would abort the process if it released that memory while Python exits."""
    held = []

    class Held(pyarrow.BufferReader):
        def __init__(self, *_):
            held.append(self)

    monkeypatch.setattr(pyarrow, "BufferReader", Held)
    chunk = b"1,2\n3,x\n" * 100
    before = sys.getrefcount(chunk)
    reader = Reader("rows.csv", ["a", "b"], TableOptions(types={"b": "number"}), Layout(","))
    with pytest.raises(ValueError, match=r'rows.csv, line 3: column "b" must be a number; got "x"'):
        list(reader.pieces([chunk], 2))
    assert len(held) > 1
    assert sys.getrefcount(chunk) == before


def test_a_value_too_large_for_float32_is_an_error(csv_file):
    path = csv_file("x,y\n1,2\n1e300,4\n")
    assert read_csv(path)[0][1, 0] == 1e300
    with pytest.raises(ValueError, match=r'rows.csv, line 3: column "x" must be a finite number; got "1e300"'):
        read_csv(path, dtype=np.float32)


HEADERS = {
    "empty": ("", "rows.csv, line 1: the header must name the columns; got nothing"),
    "blank": ("\n1,2\n", "rows.csv, line 1: the header must name the columns; got nothing"),
    "numbers": ("1,2\n3,4\n", 'rows.csv, line 1: the header must name the columns; got "1,2". Without a header, pass'),
    "repeated": ("a,b,a\n1,2,3\n", 'rows.csv: column names must be unique; got "a" twice'),
    "nameless": ("a,\n1,2\n", "rows.csv, line 1: column 2 must have a name. Give it one, or leave it out with drop="),
    "not UTF-8": (b"\xff\xfea\x00\n", "rows.csv, line 1: text must be UTF-8; got the byte 0xff. Convert the file"),
}


@pytest.mark.parametrize("kind", HEADERS)
def test_a_header_that_does_not_name_the_columns_is_an_error(kind, csv_file):
    content, message = HEADERS[kind]
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        read_csv(csv_file(content))


def test_a_nameless_first_column_is_an_index_and_no_feature(csv_file):
    path = csv_file(",a\n7,2\n")
    np.testing.assert_array_equal(read_csv(path)[0], [[2]])
    np.testing.assert_array_equal(read_csv(path, columns=["a", ""])[0], [[2, 7]])


def test_columns_can_be_dropped_even_nameless_ones_and_twins(csv_file):
    np.testing.assert_array_equal(read_csv(csv_file("a,b,b,c,\n1,2,3,4,\n"), drop=["b", ""])[0], [[1, 4]])


def test_an_error_lists_only_the_first_of_many_columns(csv_file):
    path = csv_file(",".join(f"x{k}" for k in range(100)) + "\n")
    with pytest.raises(ValueError, match='"x10", "x11" and 88 more; got "z"'):
        read_csv(path, label="z")


# Both formats


@pytest.mark.usefixtures("tiny_pieces")
@pytest.mark.parametrize("is_sparse", [False, True])
def test_a_file_is_read_in_blocks(is_sparse, written):
    columns = {"x": np.arange(25), "z": np.zeros(25), "y": np.arange(25) % 2}
    _, iterate, path = written(columns, row_group_size=7)
    tables, labels = zip(*iterate(path, 10, label="y", columns=["z", "x"], initial=3, sparse=is_sparse), strict=True)
    assert [X.shape[0] for X in tables] == [3, 10, 10, 2]
    X = np.concatenate([X.toarray() if is_sparse else X for X in tables])
    assert_rows((X, np.concatenate(labels)), np.column_stack([columns["z"], columns["x"]]), columns["y"])


def test_a_file_without_rows_has_no_blocks(written):
    read, iterate, path = written({"a": pyarrow.array([], pyarrow.int8()), "y": pyarrow.array([], "str")})
    X, y = read(path, label="y")
    assert (X.shape, y.shape) == ((0, 1), (0,))
    assert list(iterate(path, label="y")) == []


N_COPIES = {"libsvm": 16, "csv": 16, "parquet": 40}  # of 20,000 rows


def write_large(form, path):
    table = np.random.default_rng(0).random((20_000, 20))
    if form == "parquet":
        columns = pyarrow.table({f"x{k}": table[:, k] for k in range(20)})
        with parquet.ParquetWriter(path, columns.schema) as file:
            for _ in range(N_COPIES[form]):
                file.write(columns)
        return
    write_libsvm(path, table, np.zeros(len(table)))
    text = path.read_bytes()
    if form == "csv":  # the same text, without indices
        text = re.sub(rb" \d+:", b",", text)
        path.write_text(",".join(["y", *(f"x{k}" for k in range(20))]) + "\n")
    with open(path, "ab" if form == "csv" else "wb") as file:
        for _ in range(N_COPIES[form]):
            file.write(text)


@pytest.mark.usefixtures("memory_is_known")
@pytest.mark.parametrize("form", N_COPIES)
def test_iterating_needs_constant_memory(form, run_script, tmp_path):
    code = """
import sys
from isokern import data
form, path, n_rows = sys.argv[1], sys.argv[2], int(sys.argv[3])
n = 0
for X, y in getattr(data, f"iter_{form}")(path):
    n += X.shape[0]
    if n == n_rows // 2:
        before = megabytes("VmHWM")
assert n == n_rows
print(megabytes("VmHWM") - before)
"""
    write_large(form, tmp_path / "rows")
    n_rows = 20_000 * N_COPIES[form]
    grown = run_script(code, form, tmp_path / "rows", n_rows)
    second_half = n_rows // 2 * 20 * 8 / 2**20  # 24 MB and more, were it kept; allocators vary by up to 8 MB
    assert float(grown) < second_half / 2


CHOICES = {
    "no such label": ({"label": "z"}, ValueError, 'label must be one of "a", "b", "c"; got "z"'),
    "no such column": ({"columns": ["a", "z"]}, ValueError, 'there must be a column "z"; got "a", "b", "c"'),
    "label and column": ({"label": "a", "columns": ["a"]}, ValueError, "label must not be one of the feature columns"),
    "a column twice": ({"columns": ["a", "a"]}, ValueError, 'columns must be unique; got "a" twice'),
    "no columns": ({"columns": []}, ValueError, "there must be a feature column besides the label"),
    "a name alone": ({"columns": "abc"}, TypeError, "columns must be None or a list of column names; got 'abc'"),
    "numbers as columns": ({"columns": [0]}, TypeError, r"columns must be None or a list of column names; got \[0\]"),
    "no such column to drop": ({"drop": ["z"]}, ValueError, 'drop must be among "a", "b", "c"; got "z"'),
    "no such column to type": ({"types": {"z": "text"}}, ValueError, 'there must be a column "z"; got "a", "b", "c"'),
    "no such type": (
        {"types": {"a": "int"}},
        ValueError,
        'types must be "number" or "text"; got \'int\' for column "a"',
    ),
    "no dict of types": ({"types": ["a"]}, TypeError, "types must be None or a dict from column names to types; got"),
    "a dropped label": ({"label": "a", "drop": ["a"]}, ValueError, 'label must be one of "b", "c"; got "a"'),
    "no such use of dates": ({"dates": "text"}, ValueError, "dates must be None or \"number\"; got 'text'"),
    "a number as label": ({"label": 2}, TypeError, "label must be None or a column name; got 2"),
    "integers": ({"dtype": np.int64}, ValueError, "dtype must be float32 or float64; got int64"),
}


@pytest.fixture
def abc(written):
    return written({"a": [1, 4], "b": [2, 5], "c": [3, 6]})


@pytest.mark.parametrize("kind", CHOICES)
def test_an_impossible_choice_of_columns_is_an_error(kind, abc):
    options, error, message = CHOICES[kind]
    read, _, path = abc
    with pytest.raises(error, match=message):
        read(path, **options)


def test_sizes_are_checked_at_once(abc):
    _, iterate, path = abc
    with pytest.raises(ValueError, match="size must be an integer of at least 1; got 0"):
        iterate(path, 0)


def test_a_missing_file_is_an_error(abc):
    read, _, path = abc
    with pytest.raises(FileNotFoundError, match=r"missing\.csv"):
        read(path.with_name("missing.csv"))


def test_without_pyarrow_the_error_says_what_to_install(abc, monkeypatch):
    read, _, path = abc
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install isokern\[tables\]"):
        read(path)


# Parquet


@pytest.mark.parametrize("kind", ["int8", "uint64", "bool", "float32", "float64", pyarrow.decimal128(25, 2)], ids=str)
def test_parquet_columns_of_every_numeric_type_are_read(kind, parquet_file):
    column = pyarrow.array([1, 0, 1]).cast(kind)
    X, y = read_parquet(parquet_file({"a": column, "y": column}), label="y")
    assert_rows((X, y), [[1], [0], [1]], [1, 0, 1])
    assert X.dtype == y.dtype == np.float64


@pytest.mark.parametrize("encode", [False, True])
@pytest.mark.parametrize("labels", [["u", None, "v"], [3, None, 4]], ids=["text", "numbers"])
def test_parquet_labels_may_be_text_missing_or_dictionary_encoded(labels, encode, parquet_file):
    column = pyarrow.array(labels)
    path = parquet_file({"a": [1, 2, 3], "y": column.dictionary_encode() if encode else column})
    y = read_parquet(path, label="y")[1]
    assert y.dtype == (object if labels[0] == "u" else np.float64)
    np.testing.assert_array_equal(y, np.array(labels, dtype=y.dtype))


BAD_VALUES = {
    "inf": (np.inf, "infinity", False),
    "sparse inf": (-np.inf, "infinity", True),
    "sparse null": (None, "a missing value", True),
    "sparse nan": (np.nan, "a missing value", True),
}


@pytest.mark.usefixtures("tiny_pieces")
@pytest.mark.parametrize(("value", "word", "is_sparse"), BAD_VALUES.values(), ids=BAD_VALUES)
def test_an_error_names_the_row_and_column_of_a_bad_parquet_value(value, word, is_sparse, parquet_file):
    path = parquet_file({"a": [1.0] * 30, "b": [1.0] * 17 + [value] + [2.0] * 12})
    message = rf'rows.parquet: column "b" must hold finite numbers; got {word} in row 17 \('
    with pytest.raises(ValueError, match=message):
        read_parquet(path, sparse=is_sparse)


def test_the_index_of_a_data_frame_is_not_a_feature(tmp_path):
    pandas = pytest.importorskip("pandas")
    pandas.DataFrame({"a": [1, 3]}, index=["u", "v"]).to_parquet(tmp_path / "rows.parquet")
    assert "__index_level_0__" in parquet.read_schema(tmp_path / "rows.parquet").names
    np.testing.assert_array_equal(read_parquet(tmp_path / "rows.parquet")[0], [[1], [3]])


def test_parquet_columns_of_other_types_are_an_error(parquet_file):
    path = parquet_file({"a": [1], "b": [b"x"], "y": [[1]]})
    assert read_parquet(path, columns=["a"])[0].shape == (1, 1)
    with pytest.raises(
        ValueError, match=r'column "b" must hold numbers, bools or text; got binary. Encode it, or leav'
    ):
        read_parquet(path)
    with pytest.raises(ValueError, match='label column "y" must hold numbers, bools or text; got list'):
        read_parquet(path, columns=["a"], label="y")


@pytest.mark.parametrize("damage", ["empty", "text", "cut", "overwritten"])
def test_the_error_for_a_corrupt_parquet_file_names_it(damage, parquet_file):
    path = parquet_file({"a": np.random.default_rng(0).random(1000)})
    whole = path.read_bytes()
    overwritten = whole[:4] + bytes(60) + whole[64:]
    broken = {"empty": b"", "text": TEXT.encode(), "cut": whole[:500], "overwritten": overwritten}
    path.write_bytes(broken[damage])
    with pytest.raises(ValueError, match=r"rows.parquet: must be a valid Parquet file; "):
        read_parquet(path)


def test_the_checksums_of_parquet_pages_are_verified(parquet_file):
    path = parquet_file({"a": [1.0, 2.0]}, write_page_checksum=True, compression=None, use_dictionary=False)
    one, two = (np.float64(value).tobytes() for value in (1, 2))
    path.write_bytes(path.read_bytes().replace(one + two, two + one))
    with pytest.raises(ValueError, match=r"^rows.parquet: must be a valid Parquet file; .*CRC"):
        read_parquet(path)


def test_a_parquet_column_name_that_is_not_utf8_is_an_error_that_names_the_file(parquet_file):
    path = parquet_file({"name": [1.0]})
    path.write_bytes(path.read_bytes().replace(b"name", b"n\xffme"))
    with pytest.raises(ValueError, match=r"^rows.parquet: must be a valid Parquet file; .*can't decode byte 0xff"):
        read_parquet(path)


def test_parquet_from_standard_input_is_an_error():
    with pytest.raises(ValueError, match=r'path must be a file; got "-"\. Parquet cannot be read from a pipe'):
        read_parquet("-")


def test_decimal_commas_are_found_and_kept_to_the_end_of_a_file(tmp_path):
    rows = [(k / 8, k % 3, "ab"[k % 2]) for k in range(400)]
    path = tmp_path / "commas.csv"
    path.write_text("x;n;label\n" + "".join(f"{x:g};{n};{label}\n" for x, n, label in rows).replace(".", ","))
    X, y = read_csv(path, label="label")
    assert X.tolist() == [[x, n] for x, n, _ in rows]
    assert y.tolist() == [label for *_, label in rows]
    (first, _), *_ = iter_csv(path, 100, label="label", types={"x": "number"})
    assert np.array_equal(first, X[:100])


def test_text_with_commas_is_no_number(tmp_path):
    path = tmp_path / "text.csv"
    path.write_text('x;label\n"1,5";a\n"none, really";b\n"2,5";a\n')
    X, _ = read_csv(path, label="label")
    assert X.column("x").to_pylist() == ["1,5", "none, really", "2,5"]
    X, _ = read_csv(path, label="label", types={"x": "text"})
    assert X.column("x").to_pylist()[0] == "1,5"
