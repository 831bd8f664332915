"""Test reading text: cut into pieces anywhere, compressed, corrupt, from pipes, and with very long lines."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import select
import subprocess
import sys
import zlib

import numpy as np
import pytest
from scipy import sparse

from isokern.data import iter_libsvm, read_libsvm, write_libsvm
from isokern.data.lines import open_lines

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    zstd = pytest.importorskip("backports.zstd")

CHECKED = {zstd.CompressionParameter.checksum_flag: 1}
COMPRESS = {
    "plain": bytes,
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda text: zstd.compress(text, options=CHECKED),
}
ARCHIVES = {name: compress for name, compress in COMPRESS.items() if name != "plain"}
TEXT = b"# a comment\r\n" + b"".join(b"%d %d:%d.5 9:1\n" % (i % 3, i % 7 + 1, i) for i in range(40)) + b"\n2 3:1\n"

every_kind = pytest.mark.parametrize("compress", COMPRESS.values(), ids=COMPRESS)
every_archive = pytest.mark.parametrize("compress", ARCHIVES.values(), ids=ARCHIVES)


def rows(X, y):
    return X.toarray().tolist(), y.tolist()


@pytest.fixture
def expected(tmp_path):
    """Return the rows of TEXT, read at once."""
    (tmp_path / "plain.txt").write_bytes(TEXT)
    return rows(*read_libsvm(tmp_path / "plain.txt"))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "rows"


@pytest.fixture
def piece(monkeypatch):
    """Return a function that sets how many bytes are read at a time."""
    return lambda size: monkeypatch.setattr("isokern.data.lines._PIECE", size)


def refusal(path):
    """Return the error message for a file that cannot be read, or None if it can."""
    try:
        return read_libsvm(path) and None
    except ValueError as error:
        return str(error)


# Pieces and archives


@every_kind
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_cut_into_pieces_changes_neither_rows_nor_errors(path, piece, expected, compress, size):
    piece(size)
    path.write_bytes(compress(TEXT))
    assert rows(*read_libsvm(path)) == expected
    path.write_bytes(compress(TEXT + b"1 2:x\n"))
    assert refusal(path) == 'rows, line 44: value must be a finite number; got "2:x".'


@every_archive
@pytest.mark.parametrize("between", [b"", b"\0" * 8])
@pytest.mark.parametrize("size", [1, 10, 2**20])
def test_concatenated_archives_are_one_text(path, piece, expected, compress, between, size):
    path.write_bytes(compress(TEXT[:100]) + between + compress(b"") + compress(TEXT[100:]) + between)
    piece(size)
    assert rows(*read_libsvm(path)) == expected


@every_archive
def test_an_empty_archive_has_no_rows(path, compress):
    path.write_bytes(compress(b""))
    assert read_libsvm(path)[0].shape == (0, 1)


@every_archive
def test_an_archive_truncated_anywhere_is_rejected(path, compress):
    archive = compress(TEXT)
    for n in range(1, len(archive)):
        path.write_bytes(archive[:n])
        assert re.match(r"rows, line \d+: ", refusal(path)), n
    assert re.fullmatch(r"rows, line \d+: the archive is truncated\.", refusal(path))


@every_archive
def test_an_archive_with_a_flipped_bit_is_rejected_or_gives_the_right_rows(path, expected, compress):
    archive = compress(TEXT)
    n_rejected = 0
    for i in range(len(archive)):
        path.write_bytes(archive[:i] + bytes([archive[i] ^ 1 << i % 8]) + archive[i + 1 :])
        message = refusal(path)
        assert message is None or re.match(r"rows, line \d+: ", message), i
        assert message is not None or rows(*read_libsvm(path)) == expected, i
        n_rejected += message is not None
    assert n_rejected > 0.9 * len(archive)


@every_archive
def test_trailing_data_after_an_archive_are_rejected(path, compress):
    archive = compress(b"1 1:1\n")
    second = archive[:1] + bytes([archive[1] ^ 1]) + archive[2:]
    for rest, what in (
        (b"garbage", "the archive is "),
        (b"\1", "the archive is "),
        (second, "the archive is corrupt: "),
    ):
        path.write_bytes(archive + rest)
        assert re.match(rf"rows, line \d+: {what}", refusal(path))


def greedy_xz(text):
    """Return an xz archive whose block header asks for a dictionary of 4 GiB."""
    archive = bytearray(lzma.compress(text))
    archive[16] = 40  # the code of the size; the block header is bytes 12 to 19, then comes its checksum
    archive[20:24] = zlib.crc32(archive[12:20]).to_bytes(4, "little")
    return bytes(archive)


def greedy_zst(text):
    """Return a Zstandard archive whose frame header asks for a window of 2 GiB."""
    compressor = zstd.ZstdCompressor()  # does not know the size of the content, so the header has a window
    archive = bytearray(compressor.compress(text) + compressor.flush())
    archive[5] = (31 - 10) << 3  # its exponent
    return bytes(archive)


TOO_MUCH = (
    "rows, line 1: the archive must need at most {} MiB of memory; it asks for more. "
    "If you trust it, set ISOKERN_ARCHIVE_MEMORY to a larger number of MiB."
)


@pytest.mark.parametrize("compress", [greedy_xz, greedy_zst])
def test_an_archive_that_asks_for_gigabytes_is_rejected(path, compress):
    path.write_bytes(compress(TEXT))
    assert refusal(path) == TOO_MUCH.format(256)


@pytest.mark.parametrize(("compress", "level"), [(lzma.compress, {"preset": 9}), (zstd.compress, {"level": 22})])
def test_the_memory_limit_can_be_set(path, monkeypatch, compress, level):
    path.write_bytes(compress(b"1 1:1\n" * 2**20, **level))
    monkeypatch.setenv("ISOKERN_ARCHIVE_MEMORY", "1")
    assert refusal(path) == TOO_MUCH.format(1)
    monkeypatch.setenv("ISOKERN_ARCHIVE_MEMORY", "128")
    assert refusal(path) is None


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "256M", ""])
def test_the_memory_limit_must_be_a_positive_integer(path, monkeypatch, value):
    monkeypatch.setenv("ISOKERN_ARCHIVE_MEMORY", value)
    path.write_bytes(COMPRESS["xz"](TEXT))
    assert refusal(path) == f"ISOKERN_ARCHIVE_MEMORY must be a positive integer, a number of MiB; got {value!r}."


def test_the_error_for_a_zstandard_file_names_the_missing_package(path, monkeypatch):
    path.write_bytes(COMPRESS["zst"](TEXT))
    for name in ("backports", "backports.zstd", "compression", "compression.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    for call in (lambda: read_libsvm(path), lambda: write_libsvm(path.with_suffix(".zst"), [[1.0]], [1])):
        with pytest.raises(ImportError, match=r"pip install isokern\[zstd\]"):
            call()
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("function", [read_libsvm, lambda path: list(iter_libsvm(path))])
def test_a_path_that_cannot_be_opened_gives_the_error_of_open(tmp_path, function):
    with pytest.raises(FileNotFoundError):
        function(tmp_path / "missing")
    with pytest.raises(IsADirectoryError):
        function(tmp_path)


# The end of the text

CUT_OFF = "does not end with a newline, so the file may have been cut off. Compare it with its source; if it is"


def all_rows(path):
    """Return the number of rows that each way to read a file finds."""
    known = {"n_features": 9, "zero_based": False}
    return [
        read_libsvm(path)[0].shape[0],
        *(sum(X.shape[0] for X, _ in iter_libsvm(path, 7, **options)) for options in ({}, known)),
    ]


@pytest.mark.parametrize("size", [7, 2**20])
def test_a_missing_newline_at_the_end_gives_one_warning_and_all_rows(path, piece, size):
    piece(size)
    path.write_bytes(TEXT.rstrip())
    with pytest.warns(UserWarning) as warned:
        assert all_rows(path) == [41] * 3
    assert [str(warning.message).partition(": ")[0] for warning in warned] == [str(path)] * 3
    assert all(CUT_OFF in str(warning.message) for warning in warned)


@every_archive
def test_a_compressed_text_may_lack_the_newline_at_its_end(path, compress):
    path.write_bytes(compress(TEXT.rstrip()))
    assert all_rows(path) == [41] * 3


def test_blanks_after_the_last_newline_give_no_warning(path):
    path.write_bytes(TEXT + b"  \r")
    assert all_rows(path) == [41] * 3


# Long lines


@every_kind
@pytest.mark.parametrize("size", [1, 7, 64])
def test_a_line_may_be_as_long_as_the_limit_but_not_longer(path, piece, monkeypatch, compress, size):
    monkeypatch.setattr("isokern.data.lines._LONGEST_LINE", 100)
    piece(size)
    path.write_bytes(compress(b"1 1:1\n" + b"1".ljust(100) + b"\n1\n" + b"1".ljust(100) + b"\n"))
    assert read_libsvm(path)[0].shape == (4, 1)
    path.write_bytes(compress(b"1 1:1\n" + b"1".ljust(100) + b"\n" + b"1".ljust(101) + b"\n1\n"))
    assert refusal(path) == "rows, line 3: must be at most 100 bytes long."


def test_a_line_of_two_gigabytes_is_rejected_before_it_fills_the_memory(tmp_path, run_script, memory_is_known):
    with open(tmp_path / "plain", "wb") as file:
        file.write(b"1 1:1\n1 1:")
        file.truncate(2**31)
    (tmp_path / "archive").write_bytes(gzip.compress(b"1 1:1\n1 1:") + gzip.compress(b"7" * 2**24) * 128)
    code = """
import sys
from isokern.data import read_libsvm
before = megabytes("VmRSS")
for path in sys.argv[1:]:
    try:
        read_libsvm(path)
    except ValueError as error:
        print(error)
print(megabytes("VmHWM") - before)
"""
    *messages, grown = run_script(code, tmp_path / "plain", tmp_path / "archive", timeout=600).split("\n")
    assert messages == [f"{name}, line 2: must be at most 268,435,456 bytes long." for name in ("plain", "archive")]
    assert float(grown) < 400


# Pipes


@pytest.fixture
def standard_input(monkeypatch):
    """Return a function that replaces this process's standard input by bytes."""
    return lambda content: monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))


@every_kind
def test_standard_input_may_be_compressed(standard_input, expected, compress):
    standard_input(compress(TEXT))
    assert rows(*read_libsvm("-")) == expected


@every_archive
def test_a_truncated_archive_on_standard_input_is_rejected(standard_input, compress):
    standard_input(compress(TEXT)[:-1])
    assert re.match(r"standard input, line \d+: the archive is truncated", refusal("-"))


def test_a_missing_newline_at_the_end_of_standard_input_gives_a_warning(standard_input):
    standard_input(b"1 1:1\n1 1:1")
    with pytest.warns(UserWarning, match=f"^standard input: the last line {CUT_OFF}"):
        assert len(list(iter_libsvm("-", 1))) == 2


@every_kind
def test_a_named_pipe_is_read_once_and_completely(expected, compress):
    end, start = os.pipe()
    os.write(start, compress(TEXT))
    os.close(start)
    tables, labels = zip(*iter_libsvm(f"/dev/fd/{end}", 20), strict=True)
    os.close(end)
    assert rows(sparse.vstack(tables), np.concatenate(labels)) == expected


CURE = " The first lines suggest so; pass n_features and zero_based if they mislead."
LATE = [
    (b"1 1:1\n1 2:1\n1 0:1\n", "line 3: feature index 0 must be at least 1." + CURE),
    (b"1 1:1\n1 2:1\n\n1 3:1\n", "line 4: feature index 3 must be at most 2." + CURE),
    (b"1 1:1\n1 2:1\n1 index\n", 'line 3: feature must be written index:value; got "index".'),
]


@pytest.mark.parametrize(("text", "message"), LATE)
def test_later_lines_of_standard_input_must_fit_the_layout_of_the_first(standard_input, piece, text, message):
    piece(6)
    standard_input(text)
    blocks = iter_libsvm("-", 2)
    assert next(blocks)[0].shape == (2, 2)
    with pytest.raises(ValueError, match=f"^{re.escape('standard input, ' + message)}$"):
        next(blocks)


def test_standard_input_with_index_0_and_an_index_of_n_features_is_rejected(standard_input):
    standard_input(b"1 3:1\n1 0:1\n")
    with pytest.raises(ValueError, match=r"standard input: feature indices must be at most 2\. Index 0 occurs"):
        read_libsvm("-", n_features=3)


LIVE = """
import sys
from isokern import data
print("ready", flush=True)
options = {"label": "y"} if sys.argv[1] == "csv" else {}
for X, y in getattr(data, f"iter_{sys.argv[1]}")("-", 2, initial=3, **options):
    print(X.shape, y.tolist(), flush=True)
"""
LIVE_TEXTS = {
    "libsvm": [b"1 1:1\n2 2:1\n3 1", b":1\n4 1:1\n", b"5 1:1\n6 1:1\n"],
    "csv": [b"y,a,b\n1,1,0\n2,0,1\n3,", b"1,0\n4,1,0\n", b"5,1,0\n6,1,0\n"],
}


@pytest.mark.parametrize(("form", "kind"), [("libsvm", "plain"), ("libsvm", "gz"), ("csv", "plain")])
def test_a_block_is_returned_as_soon_as_its_rows_arrive(form, kind):
    def answer():
        ready, _, _ = select.select([process.stdout], [], [], 600)
        return process.stdout.readline().decode().strip() if ready else "no answer"

    def give(text):
        process.stdin.write(COMPRESS[kind](text))
        process.stdin.flush()

    command = [sys.executable, "-c", LIVE, form]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert answer() == "ready"
        for text in LIVE_TEXTS[form][:2]:
            give(text)
        assert answer() == "(3, 2) [1.0, 2.0, 3.0]"
        give(LIVE_TEXTS[form][2])
        assert answer() == "(2, 2) [4.0, 5.0]"
        process.stdin.close()
        assert answer() == "(1, 2) [6.0]"


def test_a_file_abandoned_before_its_end_is_closed(path):
    path.write_bytes(TEXT * 10)
    before = set(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else pytest.skip("needs Linux's /proc")
    blocks = iter_libsvm(path, 1, n_features=9, zero_based=False)
    assert np.array_equal(next(blocks)[1], [0.0])
    blocks.close()
    assert set(os.listdir("/proc/self/fd")) == before


def test_an_abandoned_reader_waits_for_no_thread(path, piece, monkeypatch):
    def wait(*_):
        raise AssertionError("the garbage collector must not wait")

    path.write_bytes(b"1 1:1\n" * 1000)
    piece(64)
    with monkeypatch.context() as patch, open_lines(path) as chunks:
        next(chunks)
        patch.setattr("threading.Thread.join", wait)
        patch.setattr("concurrent.futures.Future.result", wait)
        chunks.close()
