"""Measure how long the import of an estimator takes, relative to one of scikit-learn. The limit is 1.2.

python benchmarks/imports.py
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

OURS = "from isokern import IKOGDClassifier"
THEIRS = "from sklearn.linear_model import SGDClassifier"
N_REPEATS = 15


def seconds(code):
    """Return the CPU time of a new interpreter that runs the code; other processes disturb it less than wall time."""
    before = os.times()
    subprocess.run([sys.executable, "-c", code], check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


if __name__ == "__main__":
    seconds(OURS)  # compiles modules and fills the page cache
    pairs = [(seconds(OURS), seconds(THEIRS)) for _ in range(N_REPEATS)]
    ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
    ratio = statistics.median(one / other for one, other in pairs)
    print(f"isokern: {ours:.2f} s, scikit-learn: {theirs:.2f} s, ratio {ratio:.2f}")
