"""Measure how time and memory grow with n, d, t, psi and threads, with exponents.

python benchmarks/scaling.py                              the tables on standard output
python benchmarks/scaling.py --quick                      small sizes, to try it out
python benchmarks/scaling.py --save docs/results/scaling  also save the page (.md), numbers (.json) and figure (.png)
python benchmarks/scaling.py --compare old.json           compare with the numbers of another commit
"""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from generated_rows import STORED
from measuring import Page, best_seconds, circumstances, environment, kept_rows, table_head, table_line, warn_if_busy
from peak import share_columns
from scaling_work import MAPS, MEMORY_WORK, WORK, peak_megabytes

from isokern import plotting

THREADS = tuple(2**k for k in range(os.cpu_count().bit_length()))
FULL = {
    "base": {"n": 10_000, "d": 20, "t": 100, "psi": 256, "threads": THREADS[-1], "n_fit": 100_000},
    "n": (1000, 3162, 10_000, 31_623, 100_000),
    "d": (2, 5, 16, 50, 158, 500),
    "t": (1, 3, 10, 32, 100, 316),
    "psi": (16, 64, 256, 1024, 2048, 4096, 8192, 16_384),
    "threads": THREADS,
}
QUICK = {
    "base": {"n": 1000, "d": 10, "t": 20, "psi": 64, "threads": THREADS[-1], "n_fit": 5000},
    "n": (300, 1000, 3000, 10_000),
    "d": (5, 16, 50),
    "t": (3, 10, 30, 100),
    "psi": (16, 64, 128, 256),
    "threads": THREADS,
}
NAMES = {"n": "rows, n", "d": "columns, d", "t": "partitionings, t", "psi": "cells, psi", "threads": "threads"}
DENSE = ("tree map", "Voronoi map", "learning pass")

# One panel each: cost, size, work.
SWEEPS = (
    ("seconds", "n", DENSE),
    ("megabytes", "n", DENSE),
    ("seconds", "t", DENSE),
    ("megabytes", "t", DENSE),
    ("seconds", "psi", DENSE),
    ("megabytes", "psi", DENSE),
    ("seconds", "d", tuple(MAPS)),
    ("seconds", "threads", DENSE[:2]),
)
KEYS = ("cost", "against", "work")
EXPLANATION = f"""\
Rows form ten Gaussian clusters; sparse rows (CSR) have {STORED} values each, for any number of columns. Kernels are
fitted to {{n_fit:,}} rows and map others. By default, n = {{n:,}}, d = {{d}}, t = {{t}}, psi = {{psi}}, threads =
{{threads}}; the sweep of threads has {{thrice:,}} rows. The learning pass starts from cells, so it does not depend on
d, and it uses one thread, because each row is learned after the one before it. An exponent is the least-squares slope
of log cost against log size in the upper decade. Memory is the peak of a separate process, without its input and
output: kernel and temporary memory for maps, model and temporary memory for the learning pass."""
PEAK_EXPLANATION = """\
Operations per second are in billions. For Voronoi cells they are products (rows x distinct sampled points x columns,
also those skipped by pruning), and the peak is a float32 matrix product by BLAS. For trees they are visits of nodes,
compared with random gathers by NumPy from a table of a tree's size: a yardstick, not a peak."""


# -- measuring


def seconds_of(work, sizes):
    return best_seconds(WORK[work](**sizes))


def megabytes_of(work, sizes):
    """Return the peak memory of a new process, in which no freed memory can be reused."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
        return process.submit(peak_megabytes, MEMORY_WORK[work], sizes).result()


COSTS = {"seconds": seconds_of, "megabytes": megabytes_of}


def sizes_for(plan, against, value):
    """Return the plan's sizes with one replaced; the sweep of threads has more rows."""
    base = plan["base"]
    return {**base, "n": 3 * base["n"] if against == "threads" else base["n"], against: value}


def sweep(plan, cost, against, works):
    """Return a row for each work: its cost at each size, and the exponent."""
    points = {work: [] for work in works}
    # Each point of memory needs a process, but there is little noise: every other size is enough.
    for value in plan[against][::-2][::-1] if cost == "megabytes" else plan[against]:
        for work in works:
            points[work].append((value, COSTS[cost](work, sizes_for(plan, against, value))))
    return [
        {"cost": cost, "against": against, "work": work, "points": found, "exponent": exponent(found)}
        for work, found in points.items()
    ]


def exponent(points):
    """Return b of the least-squares fit a * x**b to the upper decade, in logarithms."""
    x, y = np.array(points, dtype=float).T
    upper = x >= 0.099 * x.max()  # sizes are rounded
    if upper.sum() < 2:
        return None
    return float(np.polyfit(np.log(x[upper]), np.log(y[upper]), 1)[0])


# -- tables and figures


def line(row, before=None):
    """Return a row as Markdown; with the same row of another commit, also the change at the largest size."""
    (first, at_first), (last, at_last) = row["points"][0], row["points"][-1]
    sizes = f"{row['against']} = {first:,} – {last:,}"
    slope = "" if row["exponent"] is None else f"{row['exponent']:.2f}"
    values = [row["work"], sizes, f"{at_first:.3g} – {at_last:.3g} {row['cost']}", slope]
    return table_line(*values, *([_change(row, before)] if before else []))


def _change(row, before):
    old = dict(map(tuple, before["points"]))
    size, cost = row["points"][-1]
    return f"{old[size]:.3g} {row['cost']}, {cost / old[size]:.2f} times now" if size in old else "other sizes"


def thread_lines(plan, row):
    """Yield table lines of a map's speed-up by threads, with its share of the peak."""
    alone = row["points"][0][1]
    for threads, seconds in row["points"]:
        mapping = WORK[row["work"]](**sizes_for(plan, "threads", threads))
        share = mapping.share_of_peak(seconds, threads)
        short = " **short of 1.8**" if threads == 2 and alone / seconds < 1.8 else ""
        times = f"{alone / seconds:.2f}{short}"
        yield table_line(row["work"], threads, f"{seconds:.3f}", times, *share_columns(share))


def draw(rows, path):
    """Draw a panel for each sweep."""
    sweeps = list(dict.fromkeys((row["cost"], row["against"]) for row in rows))
    figure, panels = plotting.new_figure(len(sweeps), n_lines=-(-len(sweeps) // 2))
    for panel, (cost, against) in zip(panels, sweeps, strict=True):
        shown = {row["work"]: row for row in rows if (row["cost"], row["against"]) == (cost, against)}
        runs = {work: row["points"] for work, row in shown.items()}
        labels = {work: _label(row) for work, row in shown.items()}
        plotting.cost_growth(panel, runs, labels, xlabel=NAMES[against], ylabel=cost)
    figure.savefig(path, dpi=100)


def _label(row):
    size = {"psi": r"\psi", "threads": r"\mathrm{threads}"}.get(row["against"], row["against"])
    return row["work"] if row["exponent"] is None else rf"{row['work']} $\propto {size}^{{{row['exponent']:.2f}}}$"


# -- main


def measure(plan, page, before):
    """Return the rows of all sweeps; each is printed at once."""
    page.add(table_head("work", "against", "cost", "exponent", *(["before"] if before else [])))
    rows = []
    for cost, against, works in SWEEPS:
        if cost == "megabytes" and not Path("/proc/self/clear_refs").exists():
            continue  # memory is read from Linux's /proc
        for row in sweep(plan, cost, against, works):
            page.add(line(row, before.get(tuple(row[key] for key in KEYS))))
            rows.append(row)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--save", metavar="STEM")
    parser.add_argument("--compare", metavar="JSON")
    options = parser.parse_args()
    plan, record, page = QUICK if options.quick else FULL, environment(), Page()
    before = kept_rows(options.compare, KEYS) if options.compare else {}
    warn_if_busy(record)

    page.add("# How time and memory grow\n\nWith rows, columns, partitionings, cells and threads:")
    page.add(f"`python benchmarks/scaling.py{' --quick' if options.quick else ''}`. {circumstances(record)}")
    page.add("Best of 3 or more.\n")
    page.add(EXPLANATION.format(**plan["base"], thrice=3 * plan["base"]["n"]) + "\n")
    if options.save:
        page.add(f"![Cost against size]({Path(options.save).name}.png)\n")
    record["rows"] = measure(plan, page, before)

    page.add(f"\n## Threads, and share of the peak\n\n{PEAK_EXPLANATION}\n")
    page.add(table_head("work", "threads", "seconds", "speed-up", "operations/s", "share of peak"))
    for row in record["rows"]:
        if row["against"] == "threads":
            for text in thread_lines(plan, row):
                page.add(text)
    if options.save:
        page.save(options.save, record)
        draw(record["rows"], f"{options.save}.png")


if __name__ == "__main__":
    main()
