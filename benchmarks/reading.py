"""Measure how fast LIBSVM files are read, compared with scikit-learn's reader.

python benchmarks/reading.py > docs/results/reading.md
"""

from __future__ import annotations

import lzma
import tempfile
import time
from pathlib import Path

from datasets import FOLDER
from measuring import circumstances, environment
from sklearn.datasets import load_svmlight_file

from isokern.data import read_libsvm

FILES = ("a9a", "mnist", "covtype.binary.scale.train", "rcv1_subset.train", "news20_rebuilt.train", "ijcnn1.tr")
REPEATS = 3


def best_seconds(read, path):
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        read(path)
        times.append(time.perf_counter() - started)
    return min(times)


def read_xz_by_sklearn(path):
    with lzma.open(path) as file:
        return load_svmlight_file(file)


def decompress(path):
    with lzma.open(path) as file:
        while file.read(2**22):
            pass


def main():
    print("# Reading LIBSVM files\n")
    print(f"{circumstances(environment())} Best of {REPEATS}; `python benchmarks/reading.py`.\n")
    print("Ratios are scikit-learn's time (`load_svmlight_file`) over ours, for plain text and for the same file")
    print("compressed by xz. The last column compares decompression alone, by Python's lzma, with our total time.\n")
    print("| file | megabytes | seconds | megabytes a second | ratio, plain | ratio, xz | xz alone / all, s |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in FILES:
            packed, plain = FOLDER / f"{name}.xz", Path(folder) / name
            plain.write_bytes(lzma.decompress(packed.read_bytes()))
            size = plain.stat().st_size / 1e6
            ours, theirs = best_seconds(read_libsvm, plain), best_seconds(load_svmlight_file, plain)
            ours_xz, theirs_xz = best_seconds(read_libsvm, packed), best_seconds(read_xz_by_sklearn, packed)
            print(
                f"| {name} | {size:.0f} | {ours:.3f} | {size / ours:.0f} | {theirs / ours:.1f} | "
                f"{theirs_xz / ours_xz:.1f} | {best_seconds(decompress, packed):.2f} / {ours_xz:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
