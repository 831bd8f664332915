"""LIBSVM text: what is a row and what is not, every number to the last bit, whole files and blocks of them."""

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


# ------------------------------------------------------------------------------------------- against other readers

SHARED = ["mnist.t", "rcv1_subset.test", "url_subset", "news20_rebuilt.test", "covtype.binary.scale.test"]


@pytest.mark.parametrize("name", SHARED)
def test_real_files_are_read_as_scikit_learn_reads_them(name, data_set, saved):
    with lzma.open(data_set(name)) as file:
        path = saved(file.read(2**20).rpartition(b"\n")[0])
    assert same(parts(*read_libsvm(path)), parts(*load_svmlight_file(str(path))))


def test_a_compressed_real_file_is_read_whole(data_set, saved):
    path = data_set("a9a")
    plain = saved(lzma.decompress(path.read_bytes()))
    assert same(parts(*read_libsvm(path)), parts(*load_svmlight_file(str(plain))))


def outcome_of_ours(path, options):
    try:
        return parts(*read_libsvm(path, **options))
    except ValueError as error:
        return int(re.match(r"rows.txt, line (\d+): ", str(error))[1])


def outcome_of_twin(text, options):
    try:
        return reference.as_csr(*reference.read(text, **options))
    except reference.WrongLineError as error:
        return error.args[0]


def agree(saved, text, options):
    ours, theirs = outcome_of_ours(saved(text), options), outcome_of_twin(text, options)
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
SNIPPETS += [
    b"2147483647:1",
    b"2147483648:1",
    b" 4294967297:1",
    b"99999999999999999999:1",
    b"1e-999",
    b"10e" + b"9" * 18,
]
GARBAGE = st.one_of(st.binary(max_size=20), st.lists(st.sampled_from(SNIPPETS), max_size=12).map(b"".join))


@st.composite
def damaged(draw):
    text = draw(VALID)
    begin = draw(st.integers(0, len(text)))
    return text[:begin] + draw(GARBAGE) + text[begin + draw(st.integers(0, 3)) :]


@settings(max_examples=150)
@given(text=VALID, options=st.sampled_from(LAYOUTS))
def test_rows_in_any_odd_form_are_read_as_the_twin_reads_them(saved, text, options):
    assert agree(saved, text, options)


@settings(max_examples=300)
@given(text=st.one_of(GARBAGE, damaged()), options=st.sampled_from(LAYOUTS))
@example(text=b"1 0:1\n1 3:1", options={"n_features": 3})
@example(text=b"1 0:1\n1 2147483647:1", options={})
@example(text=b"1 1:10e9223372036854775807", options={})
def test_anything_else_is_refused_at_the_line_where_the_twin_refuses_it(saved, text, options):
    assert agree(saved, text, options)


# -------------------------------------------------------------------------------------------------------- numbers


def midpoint(x):
    """Return, in full, the decimal number halfway between a double and the next."""
    exact = Context(prec=1200)
    return exact.divide(exact.add(Decimal(x), Decimal(math.nextafter(x, math.inf))), Decimal(2))


FINITE = st.floats(allow_nan=False, allow_infinity=False)
NUMBERS = st.one_of(
    FINITE.map(repr),
    FINITE.map("{:.16e}".format),
    FINITE.map("{:.30g}".format),
    FINITE.filter(lambda x: abs(x) < 1e300).map("{:f}".format),
    FINITE.filter(lambda x: abs(x) < 1e300).map(midpoint).map(str),
    FINITE.filter(lambda x: abs(x) < 1e300).map(lambda x: str(midpoint(x)).replace("E", "1E")),
    st.floats(-1e-300, 1e-300).map(repr),
    st.decimals(allow_nan=False, allow_infinity=False).map(str),
    st.from_regex(r"\A[+-]?[0-9]{1,25}\.?[0-9]{0,25}([eE][+-]?[0-9]{1,4})?\Z"),
).filter(lambda text: math.isfinite(float(text)))
ODD_NUMBERS = ["5.", ".5", "+3", "-0", "0e999", "-0e-999", "0e99999999999999999999", "1e-400", "-1e-400", "4.9e-324"]
ODD_NUMBERS += ["2.4e-324", "2.5e-324", "1e-99999999999999999999", "0.1e-9223372036854775808", "1.7976931348623157e308"]
ODD_NUMBERS += [
    "9007199254740992",
    "9007199254740993",
    "9007199254740992.5",
    "123456789012345678",
    "1234567890123456789",
]
ODD_NUMBERS += [f"1{'0' * 400}e-400", f"0.{'0' * 400}1e401", f"{'0' * 30}1", f"1.{'0' * 800}1"]


@settings(max_examples=100)
@given(numbers=st.lists(NUMBERS, min_size=1, max_size=10))
@example(numbers=ODD_NUMBERS)
def test_every_number_is_the_double_nearest_to_it(saved, numbers):
    X, _ = read_libsvm(saved(" ".join(["1", *(f"{i}:{n}" for i, n in enumerate(numbers, 1))]).encode()))
    assert X.data.tobytes() == np.array([float(n) for n in numbers]).tobytes()


@given(numbers=st.lists(NUMBERS, min_size=1, max_size=10))
def test_labels_are_numbers_as_values_are(saved, numbers):
    _, y = read_libsvm(saved("\n".join(numbers).encode()))
    assert y.tobytes() == np.array([float(n) for n in numbers]).tobytes()


TOO_LARGE = ["1e309", "-1e309", "1.7976931348623159e308", "1e99999999999999999999", "10e9223372036854775807", "9" * 400]


@pytest.mark.parametrize("text", TOO_LARGE)
def test_a_number_too_large_for_a_double_is_refused(saved, text):
    assert message_of(saved(f"1 1:1\n1 1:{text}".encode())).startswith(
        "rows.txt, line 2: value must be a finite number"
    )
    assert message_of(saved(f"1 1:1\n{text}".encode())).startswith("rows.txt, line 2: label must be a finite number")


@pytest.mark.parametrize("text", ["3.5e38", "-1e39", "1e308"])
def test_a_value_too_large_for_float32_is_refused_if_that_is_what_values_are_to_be(saved, text):
    path = saved(f"1 1:1\n1 1:{text}".encode())
    assert message_of(path, dtype=np.float32) == f'rows.txt, line 2: value must fit the dtype; got "1:{text}".'
    assert read_libsvm(path)[0].data[1] == float(text)


def test_values_may_be_float32(saved):
    X, y = read_libsvm(saved(b"0.1 1:0.1 2:3.4028234663852886e38 3:1e-50"), dtype="float32")
    assert (X.dtype, y.dtype) == (np.float32, np.float64)
    assert X.data.tolist() == [np.float32(0.1), np.finfo(np.float32).max, 0.0]


# --------------------------------------------------------------------------------------------------------- errors

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
def test_an_error_says_the_file_the_line_and_what_is_wrong_there(saved, line, what):
    assert message_of(saved(b"# a comment\n\n1 1:1\n" + line + b"\n1 1:1\n")) == f"rows.txt, line 4: {what}"


LAYOUT_MESSAGES = [
    (b"1 1:1\n1 0:1", {"zero_based": False}, "rows.txt, line 2: feature index 0 must be at least 1."),
    (b"1 1:1\n1 4:1", {"n_features": 3}, "rows.txt, line 2: feature index 4 must be at most 3."),
    (b"1 1:1\n1 3:1", {"n_features": 3, "zero_based": True}, "rows.txt, line 2: feature index 3 must be at most 2."),
    (
        b"1 3:1\n1 0:1",
        {"n_features": 3},
        "rows.txt, line 1: feature index 3 must be at most 2. There is an index 0, so they count from 0.",
    ),
    (
        b"1 2147483647:1",
        {"zero_based": True},
        "rows.txt, line 1: feature index 2147483647 must be at most 2147483646.",
    ),
]


@pytest.mark.parametrize(("text", "options", "message"), LAYOUT_MESSAGES)
def test_an_index_that_contradicts_what_was_said_is_an_error(saved, text, options, message):
    path = saved(text)
    assert message_of(path, **options) == message
    with pytest.raises(ValueError, match=re.escape(message)):
        list(iter_libsvm(path, **options))


WRONG_OPTIONS = [
    ({"n_features": 0}, "n_features must be None or an integer from 1 to 2147483647; got 0."),
    ({"n_features": 2**31}, "n_features must be None or an integer from 1 to 2147483647; got 2147483648."),
    ({"n_features": 2.0}, "n_features must be None or an integer from 1 to 2147483647; got 2.0."),
    ({"zero_based": 1}, 'zero_based must be True, False or "auto"; got 1.'),
    ({"zero_based": "yes"}, "zero_based must be True, False or \"auto\"; got 'yes'."),
    ({"dtype": np.int64}, "dtype must be numpy.float64 or numpy.float32; got <class 'numpy.int64'>."),
    ({"dtype": "float16"}, "dtype must be numpy.float64 or numpy.float32; got 'float16'."),
]


@pytest.mark.parametrize(("options", "message"), WRONG_OPTIONS)
@pytest.mark.parametrize("function", [read_libsvm, iter_libsvm])
def test_wrong_options_are_named_before_the_file_is_opened(function, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        function("no such file", **options)


@pytest.mark.parametrize("options", [{"size": 0}, {"size": 1.5}, {"initial": 0}])
def test_sizes_of_blocks_are_checked_before_the_file_is_opened(options):
    with pytest.raises(ValueError, match=f"{next(iter(options))} must be"):
        iter_libsvm("no such file", **options)


# --------------------------------------------------------------------------------------------------------- layout

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
def test_the_shape_follows_the_rows_and_the_largest_index(saved, text, shape):
    X, y = read_libsvm(saved(text))
    assert X.shape == shape
    assert y.shape == shape[:1]


@pytest.mark.parametrize("zero_based", [False, True])
def test_a_file_may_have_fewer_columns_than_are_said(saved, zero_based):
    X, _ = read_libsvm(saved(b"1 2:1"), n_features=np.int64(10), zero_based=zero_based)
    assert X.shape == (1, 10)
    assert X.indices.tolist() == [2 if zero_based else 1]


@pytest.mark.parametrize(("setting", "kind"), [("sparray", sparse.csr_array), ("spmatrix", sparse.csr_matrix)])
def test_the_table_is_of_the_kind_that_scikit_learn_is_set_to(saved, setting, kind):
    path = saved(b"1 1:1")
    try:
        context = config_context(sparse_interface=setting)
    except TypeError:
        pytest.skip("this scikit-learn has no such setting")
    with context:
        assert type(read_libsvm(path)[0]) is kind


# -------------------------------------------------------------------------------------------------------- threads


def long_text(n_rows=40_000):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(n_rows, 2)).tolist()
    return b"".join(b"%d 1:%r 3:%.3f # row\n" % (i % 3, a, b) for i, (a, b) in enumerate(values))


@pytest.mark.parametrize("n_jobs", [2, 3, None])
def test_any_number_of_threads_reads_the_same(saved, n_jobs):
    path = saved(long_text())
    assert same(parts(*read_libsvm(path, n_jobs=n_jobs)), parts(*read_libsvm(path, n_jobs=1)))


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
@pytest.mark.parametrize("line", [1, 9_000, 20_001, 39_999, 40_000])
def test_any_number_of_threads_names_the_first_wrong_line(saved, n_jobs, line):
    lines = long_text().split(b"\n")
    lines[line - 1] = b"1 2:1 1:1"
    lines[39_999] = b"wrong, too" if line < 40_000 else lines[39_999]
    assert message_of(saved(b"\n".join(lines)), n_jobs=n_jobs).startswith(f"rows.txt, line {line}: feature index 1 ")


# --------------------------------------------------------------------------------------------------------- blocks


@given(
    size=st.integers(1, 30),
    initial=st.one_of(st.none(), st.integers(1, 30)),
    piece=st.sampled_from([1, 7, 64, 10_000]),
    options=st.sampled_from([{}, {"zero_based": False}, {"n_features": 5, "zero_based": False}, {"dtype": np.float32}]),
)
def test_blocks_are_slices_of_the_whole(saved, size, initial, piece, options):
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


def test_a_block_knows_of_columns_that_come_later(saved):
    shapes = [X.shape for X, _ in iter_libsvm(saved(b"1 1:1\n1 9:1\n1 0:1\n"), 1)]
    assert shapes == [(1, 10)] * 3


@pytest.mark.parametrize("text", [b"", b"# nothing\n\n"])
def test_a_file_without_rows_has_no_blocks(saved, text):
    assert list(iter_libsvm(saved(text))) == []


def test_iterating_needs_constant_memory(tmp_path, run_script, memory_is_known):
    path = tmp_path / "large.txt"
    row = " ".join(["1", *(f"{i}:0.{i}" for i in range(1, 60))]) + "\n"
    with open(path, "w") as file:
        for _ in range(100):
            file.write(row * 1500)
    assert path.stat().st_size > 60e6
    code = """
import sys
from isokern.data import iter_libsvm
for _ in iter_libsvm(sys.argv[1], 10, n_features=59, zero_based=False): break
before = megabytes("VmRSS")
print(sum(X.shape[0] for X, y in iter_libsvm(sys.argv[1])), megabytes("VmHWM") - before)
"""
    n_rows, grown = run_script(code, path).split()
    assert int(n_rows) == 150_000
    assert float(grown) < 80  # the rows would take 106
