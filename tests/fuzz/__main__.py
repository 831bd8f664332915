"""Fuzz all targets for some minutes in all, print counts, and fail if there are faults."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from fuzz.driver import fuzz
from fuzz.targets import TARGETS

parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
parser.add_argument("targets", nargs="*", metavar="target", help=f"any of {', '.join(TARGETS)}; default: all")
parser.add_argument("--minutes", type=float, default=5)
parser.add_argument("--seed", type=int, help="the first input; default: other inputs in each run")
parser.add_argument("--found", type=Path, default=Path("fuzz-found"), help="folder for inputs that fail")
options = parser.parse_args()

names = options.targets or list(TARGETS)
if unknown := set(names) - set(TARGETS):
    parser.error(f"targets must be of {', '.join(TARGETS)}; got {', '.join(unknown)}")
first = time.time_ns() // 10**6 if options.seed is None else options.seed
print(f"first input: {first}")
print(f"{'target':12}{'tried':>9}{'accepted':>10}{'rejected':>10}{'faults':>8}")
n_faults = 0
for name in names:
    counts = fuzz(name, options.found, seed=first, seconds=60 * options.minutes / len(names))
    print(f"{name:12}{counts['tried']:9}{counts['accepted']:10}{counts['rejected']:10}{counts['fault']:8}", flush=True)
    n_faults += counts["fault"]
sys.exit(f"Inputs that failed are in {options.found}." if n_faults else 0)
