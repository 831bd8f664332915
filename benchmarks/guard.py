"""Compare the speed of two builds of isokern: short work in turns, one thread, CPU time; ends with 1 if any is slower.

python benchmarks/guard.py OLD_PYTHON NEW_PYTHON    interpreters of two environments, each with its isokern
python benchmarks/guard.py OLD_PYTHON NEW_PYTHON --only tree --rounds 6
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from guard_work import WORK
from measuring import table_head, table_line

TOLERANCE = 0.03  # two processes of one build differ by about as much
COLUMNS = ("work", "old, ms", "new, ms", "new / old", "quartiles of turns", "")
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}


class Worker:
    """A process of an interpreter that runs cases on demand."""

    def __init__(self, python):
        command = [python, Path(__file__).with_name("guard_work.py")]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": os.environ | ONE_THREAD}
        self.python, self.process = python, subprocess.Popen(command, **pipes)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.__exit__(*error)

    def seconds(self, name):
        """Return the CPU seconds of one run of a case."""
        print(name, file=self.process.stdin, flush=True)
        found = self.process.stdout.readline()
        if not found:
            raise RuntimeError(f"{self.python} failed at: {name}.")
        return float(found)


def measure(pythons, names, rounds, turns):
    """Return the seconds of each case: (rounds x turns, 2). Each round has new processes, which differ a little."""
    found = {name: [] for name in names}
    for _ in range(rounds):
        with Worker(pythons[0]) as old, Worker(pythons[1]) as new:
            for name in names:
                found[name] += [(old.seconds(name), new.seconds(name)) for _ in range(turns)]
    return {name: np.array(times) for name, times in found.items()}


def compared(times):
    """Return the medians of old and new, their ratio, the quartiles of the turns' ratios, and a verdict."""
    old, new = np.median(times, axis=0)
    lower, upper = np.quantile(times[:, 1] / times[:, 0], [0.25, 0.75])
    verdict = "**slower**" if lower > 1 + TOLERANCE else "faster" if upper < 1 - TOLERANCE else ""
    return old, new, new / old, (lower, upper), verdict


def line(name, times):
    """Return a case as a line of a Markdown table."""
    old, new, ratio, (lower, upper), verdict = compared(times)
    return table_line(name, f"{1e3 * old:.1f}", f"{1e3 * new:.1f}", f"{ratio:.3f}", f"{lower:.3f}–{upper:.3f}", verdict)


def read_options(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose name contains this")
    parser.add_argument("--rounds", type=int, default=3, help="number of new processes (default: 3)")
    parser.add_argument("--turns", type=int, default=5, help="turns of each case in a round (default: 5)")
    return parser.parse_args(arguments)


def main(arguments=None):
    options = read_options(arguments)
    names = [name for name in WORK if options.only in name]
    found = measure((options.old, options.new), names, options.rounds, options.turns)
    print(table_head(*COLUMNS), *(line(name, times) for name, times in found.items()), sep="\n")
    slower = [name for name, times in found.items() if "slower" in compared(times)[-1]]
    print(f"\nSlower by more than {TOLERANCE:.0%} and the spread of turns: {'; '.join(slower) or 'none'}")
    return int(bool(slower))


if __name__ == "__main__":
    sys.exit(main())
