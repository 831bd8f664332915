"""Test reading LIBSVM text: its grammar, exact numbers, error messages, layouts and blocks."""

from __future__ import annotations

import lzma
import math
import re
from decimal import Context, Decimal

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn import config_context
from sklearn.datasets import load_svmlight_file

import reference_libsvm as reference
from isokern.data import iter_libsvm, read_libsvm
from reference_libsvm import parts, same

# test_lines.py tests the warning.
pytestmark = pytest.mark.filterwarnings("ignore:.*does not end with a newline")

LAYOUTS = [{"zero_based": z, "n_features": n} for z in ("auto", True, False) for n in (None, 3)]


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    """Return a function that writes bytes to a file and returns its path."""
    path = tmp_path_factory.mktemp("libsvm") / "rows.txt"

    def save(content):
        path.write_bytes(content)
        return path

    return save


def message_of(path, **options):
    with pytest.raises(ValueError, match=r".") as error:
        read_libsvm(path, **options)
    return str(error.value)


# Against other readers

SHARED = ["mnist.t", "rcv1_subset.test", "url_subset", "news20_rebuilt.test", "covtype.binary.scale.test"]


@pytest.mark.parametrize("name", SHARED)
def test_real_files_are_read_as_by_scikit_learn(name, data_set, saved):
    with lzma.open(data_set(name)) as file:
        path = saved(file.read(2**20).rpartition(b"\n")[0])
    assert same(parts(*read_libsvm(path)), parts(*load_svmlight_file(str(path))))


def test_a_compressed_real_file_is_read_completely(data_set, saved):
    path = data_set("a9a")
    plain = saved(lzma.decompress(path.read_bytes()))
    assert same(parts(*read_libsvm(path)), parts(*load_svmlight_file(str(plain))))


def agree(path, text, options):
    """Return whether our reader and the reference give the same rows, or an error at the same line."""
    try:
        ours = parts(*read_libsvm(path, **options))
    except ValueError as error:
        ours = int(re.match(r"rows.txt, line (\d+): ", str(error))[1])
    try:
        theirs = reference.as_csr(*reference.read(text, **options))
    except reference.WrongLineError as error:
        theirs = error.args[0]
    return ours == theirs if isinstance(ours, int) or isinstance(theirs, int) else same(ours, theirs)


def joined(*strategies):
    return st.tuples(*strategies).map(b"".join)


BLANK = st.text(" \t\r\v\f", min_size=1, max_size=3).map(str.encode)
MAYBE_BLANK = st.one_of(st.just(b""), BLANK)
LABEL = st.sampled_from([b"1", b"-1", b"+1", b"0", b"-0", b"3.5", b"1e3", b"?", b"nan", b"NaN"])
VALUE = st.sampled_from([b"1", b"-0", b"+.5", b"5.", b"1e-400", b"0E999", b"-2.5e+3", b"0.1", b"00012.50"])
COMMENT = st.one_of(st.just(b""), st.binary(max_size=5).map(lambda c: b"#" + c.replace(b"\n", b"")))
END = st.sampled_from([b"\n", b"\r\n", b"\n\n", b" \n"])


@st.composite
def valid_line(draw):
    indices = sorted(draw(st.sets(st.integers(0, 4), max_size=4)))
    qid = [b"qid:7"] if draw(st.booleans()) else []
    tokens = [draw(LABEL), *qid, *(b"%d:%s" % (i, draw(VALUE)) for i in indices)]
    blanks = [draw(MAYBE_BLANK), *(draw(BLANK) for _ in tokens[1:])]
    return b"".join(b + t for b, t in zip(blanks, tokens, strict=True)) + draw(MAYBE_BLANK) + draw(COMMENT)


VALID = joined(st.lists(joined(valid_line(), END), max_size=4).map(b"".join), st.one_of(st.just(b""), valid_line()))
SNIPPETS = [b" ", b" ", b"\n", b"\t", b"\r", b":", b"#", b"\0", b"\xff", b".", b"e", b"-", b"+", b"?", b"qid:", b"nan"]
SNIPPETS += [b"0", b"1", b"2", b"3", b"1 1:1", b"1:1", b" 2:1", b" 3:1e9", b" 0:1", b"1e999", b"inf", b"0x1p3", b"1_0"]
SNIPPETS += [b"2147483647:1", b"2147483648:1", b" 4294967297:1", b"9" * 20 + b":1", b"1e-999", b"10e" + b"9" * 18]
GARBAGE = st.one_of(st.binary(max_size=20), st.lists(st.sampled_from(SNIPPETS), max_size=12).map(b"".join))


@st.composite
def damaged(draw):
    text = draw(VALID)
    begin = draw(st.integers(0, len(text)))
    return text[:begin] + draw(GARBAGE) + text[begin + draw(st.integers(0, 3)) :]


@settings(max_examples=150)
@given(text=VALID, options=st.sampled_from(LAYOUTS))
def test_valid_text_of_any_form_is_read_as_by_the_reference(saved, text, options):
    assert agree(saved(text), text, options)


@settings(max_examples=300)
@given(text=st.one_of(GARBAGE, damaged()), options=st.sampled_from(LAYOUTS))
@example(text=b"1 0:1\n1 3:1", options={"n_features": 3})
@example(text=b"1 0:1\n1 2147483647:1", options={})
@example(text=b"1 1:10e9223372036854775807", options={})
def test_invalid_text_is_rejected_at_the_line_where_the_reference_rejects_it(saved, text, options):
    assert agree(saved(text), text, options)


# Numbers


def midpoint(x):
    """Return all decimal digits of the number halfway between a double and the next."""
    exact = Context(prec=1200)
    return exact.divide(exact.add(Decimal(x), Decimal(math.nextafter(x, math.inf))), Decimal(2))


FINITE = st.floats(allow_nan=False, allow_infinity=False)
MODERATE = FINITE.filter(lambda x: abs(x) < 1e300)
NUMBERS = st.one_of(
    FINITE.map(repr),
    FINITE.map("{:.16e}".format),
    FINITE.map("{:.30g}".format),
    MODERATE.map("{:f}".format),
    MODERATE.map(midpoint).map(str),
    MODERATE.map(lambda x: str(midpoint(x)).replace("E", "1E")),
    st.floats(-1e-300, 1e-300).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False).map(str),
    st.from_regex(r"\A[+-]?[0-9]{1,25}\.?[0-9]{0,25}([eE][+-]?[0-9]{1,4})?\Z"),
).filter(lambda text: math.isfinite(float(text)))
ODD_NUMBERS = ["5.", ".5", "+3", "-0", "0e999", "-0e-999", "0e99999999999999999999", "1e-400", "-1e-400", "4.9e-324"]
ODD_NUMBERS += ["2.4e-324", "2.5e-324", "1e-99999999999999999999", "0.1e-9223372036854775808", "1.7976931348623157e308"]
ODD_NUMBERS += ["9007199254740992", "9007199254740993", "9007199254740992.5", "123456789012345678", f"{'0' * 30}1"]
ODD_NUMBERS += ["1234567890123456789", f"1{'0' * 400}e-400", f"0.{'0' * 400}1e401", f"1.{'0' * 800}1"]


@settings(max_examples=100)
@given(numbers=st.lists(NUMBERS, min_size=1, max_size=10))
@example(numbers=ODD_NUMBERS)
def test_every_value_and_label_is_the_nearest_double(saved, numbers):
    X, y = read_libsvm(saved("\n".join(f"{number} 1:{number}" for number in numbers).encode()))
    expected = np.array([float(number) for number in numbers])
    assert X.data.tobytes() == y.tobytes() == expected.tobytes()


TOO_LARGE = ["1e309", "-1e309", "1.7976931348623159e308", "1e99999999999999999999", "10e9223372036854775807", "9" * 400]


@pytest.mark.parametrize("text", TOO_LARGE)
def test_a_number_too_large_for_float64_is_rejected(saved, text):
    for line, what in ((f"1 1:{text}", "value"), (text, "label")):
        message = message_of(saved(f"1 1:1\n{line}".encode()))
        assert message.startswith(f"rows.txt, line 2: {what} must be a finite number")


@pytest.mark.parametrize("text", ["3.5e38", "-1e39", "1e308"])
def test_a_value_too_large_for_float32_is_rejected_for_that_dtype_only(saved, text):
    path = saved(f"1 1:1\n1 1:{text}".encode())
    assert message_of(path, dtype=np.float32) == f'rows.txt, line 2: value must fit the dtype; got "1:{text}".'
    assert read_libsvm(path)[0].data[1] == float(text)


def test_values_may_be_float32(saved):
    X, y = read_libsvm(saved(b"0.1 1:0.1 2:3.4028234663852886e38 3:1e-50"), dtype="float32")
    assert (X.dtype, y.dtype) == (np.float32, np.float64)
    assert X.data.tolist() == [np.float32(0.1), np.finfo(np.float32).max, 0.0]


# Errors

MESSAGES = {
    b"x 1:1": 'label must be a finite number, or ? if unknown; got "x".',
    b"1,2 1:1": 'label must be a finite number, or ? if unknown; got "1,2".',
    b"1:1": 'label must be a finite number, or ? if unknown; got "1:1".',
    b"inf": 'label must be a finite number, or ? if unknown; got "inf".',
    b"1 1": 'feature must be written index:value; got "1".',
    b"1 -1:1": 'feature must be written index:value; got "-1:1".',
    b"1 1:": 'value must be a finite number; got "1:".',
    b"1 1: 2": 'value must be a finite number; got "1:".',
    b"1 1:nan": 'value must be a finite number; got "1:nan".',
    b"1 1:2:3": 'value must be a finite number; got "1:2:3".',
    b"1 1:1\0": 'value must be a finite number; got "1:1\\x00".',
    b"\xef\xbb\xbf1": 'label must be a finite number, or ? if unknown; got "\\xef\\xbb\\xbf1".',
    b"1 2:1 2:1": "feature index 2 must be larger than the one before it, 2.",
    b"1 3:1 2:1": "feature index 2 must be larger than the one before it, 3.",
    b"1 2147483648:1": "feature index 2147483648 must be at most 2147483647.",
    b"1 %s:1" % (b"9" * 50): f'feature index "{"9" * 40}..." must be at most 2147483647.',
    b"1 1:%s" % (b"x" * 50): f'value must be a finite number; got "1:{"x" * 38}...".',
}


@pytest.mark.parametrize(("line", "what"), MESSAGES.items())
def test_an_error_names_the_file_the_line_and_the_reason(saved, line, what):
    assert message_of(saved(b"# a comment\n\n1 1:1\n" + line + b"\n1 1:1\n")) == f"rows.txt, line 4: {what}"


LAYOUT_MESSAGES = [
    (b"1 1:1\n1 0:1", {"zero_based": False}, "line 2: feature index 0 must be at least 1."),
    (b"1 1:1\n1 4:1", {"n_features": 3}, "line 2: feature index 4 must be at most 3."),
    (b"1 1:1\n1 3:1", {"n_features": 3, "zero_based": True}, "line 2: feature index 3 must be at most 2."),
    (b"1 3:1\n1 0:1", {"n_features": 3}, "line 1: feature index 3 must be at most 2. Index 0 occurs, so indices count"),
    (b"1 2147483647:1", {"zero_based": True}, "line 1: feature index 2147483647 must be at most 2147483646."),
]


@pytest.mark.parametrize(("text", "options", "message"), LAYOUT_MESSAGES)
def test_an_index_that_contradicts_the_options_is_an_error(saved, text, options, message):
    path = saved(text)
    for read in (read_libsvm, lambda path, **options: list(iter_libsvm(path, **options))):
        with pytest.raises(ValueError, match=re.escape(f"rows.txt, {message}")):
            read(path, **options)


WRONG_OPTIONS = [
    ({"n_features": 0}, "n_features must be None or an integer from 1 to 2147483647; got 0."),
    ({"n_features": 2**31}, "n_features must be None or an integer from 1 to 2147483647; got 2147483648."),
    ({"n_features": 2.0}, "n_features must be None or an integer from 1 to 2147483647; got 2.0."),
    ({"zero_based": 1}, 'zero_based must be True, False or "auto"; got 1.'),
    ({"zero_based": "yes"}, "zero_based must be True, False or \"auto\"; got 'yes'."),
    ({"dtype": np.int64}, "dtype must be numpy.float64 or numpy.float32; got <class 'numpy.int64'>."),
    ({"dtype": "float16"}, "dtype must be numpy.float64 or numpy.float32; got 'float16'."),
]
WRONG_SIZES = [
    ({"size": 0}, "size must be an integer of at least 1; got 0."),
    ({"initial": 0}, "initial must be None or an integer of at least 1; got 0."),
]
WRONG_CALLS = [(read_libsvm, *wrong) for wrong in WRONG_OPTIONS]
WRONG_CALLS += [(iter_libsvm, *wrong) for wrong in WRONG_OPTIONS + WRONG_SIZES]


@pytest.mark.parametrize(("read", "options", "message"), WRONG_CALLS)
def test_options_are_checked_before_the_file_is_opened(read, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        read("no such file", **options)


# Layout

FORMS = {
    "empty": (b"", (0, 1)),
    "comments": (b"# one\n\n  # two", (0, 1)),
    "label only": (b"1\n-1\n", (2, 1)),
    "no last newline": (b"1 2:1\n1 1:1", (2, 2)),
    "from one": (b"1 2:1\n1 4:1\n", (2, 4)),
    "from zero": (b"1 2:1\n1 0:1\n", (2, 3)),
    "comment at once": (b"1 2:1#c\n?#c", (2, 2)),
}


@pytest.mark.parametrize(("text", "shape"), FORMS.values(), ids=FORMS)
def test_the_shape_follows_from_the_lines_and_the_largest_index(saved, text, shape):
    X, y = read_libsvm(saved(text))
    assert X.shape == shape
    assert y.shape == shape[:1]
    assert [X.shape for X, _ in iter_libsvm(saved(text), 1)] == [(1, shape[1])] * shape[0]


@pytest.mark.parametrize("zero_based", [False, True])
def test_a_file_may_have_fewer_columns_than_n_features(saved, zero_based):
    X, _ = read_libsvm(saved(b"1 2:1"), n_features=np.int64(10), zero_based=zero_based)
    assert X.shape == (1, 10)
    assert X.indices.tolist() == [2 if zero_based else 1]


@pytest.mark.parametrize(("setting", "kind"), [("sparray", sparse.csr_array), ("spmatrix", sparse.csr_matrix)])
def test_the_sparse_type_is_that_of_scikit_learn_s_configuration(saved, setting, kind):
    path = saved(b"1 1:1")
    try:
        context = config_context(sparse_interface=setting)
    except TypeError:
        pytest.skip("this scikit-learn has no such setting")
    with context:
        assert type(read_libsvm(path)[0]) is kind


# Threads


def long_text(n_rows=40_000):
    values = np.random.default_rng(0).normal(size=(n_rows, 2)).tolist()
    return b"".join(b"%d 1:%r 3:%.3f # row\n" % (i % 3, a, b) for i, (a, b) in enumerate(values))


@pytest.mark.parametrize("n_jobs", [2, 3, None])
def test_any_number_of_threads_reads_the_same_rows(saved, n_jobs):
    path = saved(long_text())
    assert same(parts(*read_libsvm(path, n_jobs=n_jobs)), parts(*read_libsvm(path, n_jobs=1)))


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
@pytest.mark.parametrize("line", [1, 9_000, 20_001, 39_999, 40_000])
def test_any_number_of_threads_names_the_first_wrong_line(saved, n_jobs, line):
    lines = long_text().split(b"\n")
    lines[39_999] = b"wrong, too"
    lines[line - 1] = b"1 2:1 1:1"
    assert message_of(saved(b"\n".join(lines)), n_jobs=n_jobs).startswith(f"rows.txt, line {line}: feature index 1 ")


# Blocks


@given(
    size=st.integers(1, 30),
    initial=st.one_of(st.none(), st.integers(1, 30)),
    piece=st.sampled_from([1, 7, 64, 10_000]),
    options=st.sampled_from([{}, {"zero_based": False}, {"n_features": 5, "zero_based": False}, {"dtype": np.float32}]),
)
def test_blocks_are_slices_of_the_whole_file(saved, size, initial, piece, options):
    path = saved(b"".join(b"%d %d:%d\n" % (i, i % 4 + 1, i) for i in range(25)))
    X, y = read_libsvm(path, **options)
    bounds = [0, *range(min(25, initial or size), 25, size), 25]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("isokern.data.lines._PIECE", piece)
        blocks = list(iter_libsvm(path, size, initial=initial, **options))
    assert len(blocks) == len(bounds) - 1
    for (part, labels), begin, end in zip(blocks, bounds, bounds[1:], strict=False):
        assert part.dtype == X.dtype
        assert same(parts(part, labels), parts(X[begin:end], y[begin:end]))
