"""Damage LIBSVM, CSV and Parquet files and archives, and read them whole and block by block."""

from __future__ import annotations

import numpy as np

from isokern.data import iter_csv, iter_libsvm, iter_parquet, read_csv, read_libsvm, read_parquet, write_libsvm
from isokern.data.archives import compressing
from learning import make_rows

X, y = make_rows(30, 3)
TOKENS = [
    *b"nan inf -1 + - . e 1e999 1e-999 0x10 0:1 -1:1 1: :1 : 2147483647:1 9999999999999999999:1 qid:1 ? #".split(),
    *[b'"', b'""', b",", b",,", b"\n", b"\r", b"\r\n", b"\t", b"\v", b"\0", b"\xff", b"\xc3", b"\xef\xbb\xbf"],
    *[b"." + b"0" * 400 + b"1", b" " * 5000, b"1:1 " * 3000, b"1," * 3000, b"9" * 10**5, b"\n" * 10**4],
]


def write_libsvm_seeds(folder):
    write_libsvm(folder / "rows.txt", X, y)
    (folder / "few.txt").write_bytes(b"+1 1:0.5 3:2e-3\r\n? 2:1 # a comment\n\n-1\n0.5 4:1")


def write_csv_seeds(folder):
    rows = "".join(",".join(map(str, [*row, label])) + "\n" for row, label in zip(X.tolist(), y, strict=True))
    (folder / "rows.csv").write_text("a,b,c,y\n" + rows)
    (folder / "texts.csv").write_bytes(b'\xef\xbb\xbf"a","b ""c""",y\r\n1,2,"yes"\r\n3.5,-4e3,no\r\n,5,\r\n')
    (folder / "words.csv").write_bytes(b"a;b;c;y\n1;cook;True;0\n;NA;False;1\n2.5;\xc3\xbc;;1\n")


def write_parquet_seeds(folder):
    import pyarrow
    from pyarrow import parquet

    table = pyarrow.table({"a": X[:, 0], "b": X[:, 1].astype(np.float32), "c": y, "y": [f"{k}" for k in y]})
    for codec in ("none", "snappy", "zstd"):
        parquet.write_table(table, folder / f"{codec}.parquet", compression=codec, row_group_size=10)
    words = pyarrow.table({"a": ["cook", None, "baker"], "b": [1.0, None, 2.0], "y": [0, 1, 1]})
    parquet.write_table(words, folder / "words.parquet")
    nested = pyarrow.table({"a": [[1], [2, 3]], "y": [True, None]})
    parquet.write_table(nested, folder / "nested.parquet", version="1.0")


def write_archives(folder):
    write_libsvm(folder / "rows.txt", X, y)
    text = (folder / "rows.txt").read_bytes()
    for suffix in (".gz", ".bz2", ".xz", ".zst"):
        with open(folder / f"rows{suffix}", "wb") as file, compressing(file, suffix) as archive:
            archive.write(text)


# Changes


def change_bytes(rng, path, work):
    """Return a file with a few changed, removed, repeated or inserted bytes."""
    return _changed(rng, path.read_bytes(), [bytes([k]) for k in (0, 1, 127, 128, 255)])


def change_text(rng, path, work):
    """Return a file with a few changes, most of them of tokens that mean something."""
    return _changed(rng, path.read_bytes(), TOKENS)


def change_archive(rng, path, work):
    """Return a damaged archive, or a whole archive of damaged text."""
    if path.suffix != ".txt":
        return _changed(rng, path.read_bytes(), [bytes([k]) for k in (0, 1, 127, 128, 255)])
    text = _changed(rng, path.read_bytes(), TOKENS)
    with open(work, "wb") as file, compressing(file, rng.choice([".gz", ".bz2", ".xz", ".zst"])) as archive:
        archive.write(text)
    return work.read_bytes()


def _changed(rng, data, tokens):
    for _ in range(rng.choice([1, 1, 2, 4])):
        begin, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        end = min(end, begin + rng.choice([0, 1, 1, 8, 100]))
        new = rng.choice([rng.choice(tokens), rng.choice(tokens), rng.randbytes(1), data[begin:end] * 2, b""])
        data = data[:begin] + new + data[end:]
    return data[: rng.randrange(len(data) + 1)] if rng.random() < 0.05 else data


# Uses


def use_libsvm(path):
    read_libsvm(path, n_jobs=1)
    list(iter_libsvm(path, 7, n_jobs=1))


def use_csv(path):
    _use_table(path, read_csv, iter_csv)


def use_parquet(path):
    _use_table(path, read_parquet, iter_parquet)


def _use_table(path, read, blocks):
    read(path, label="y")
    read(path, label="y", sparse=True, dtype=np.float32)
    list(blocks(path, 7, columns=["a"]))
