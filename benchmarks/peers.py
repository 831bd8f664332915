"""Compare isokern with its peers: the same work, data and threads in one process; ratios and their range.

python benchmarks/peers.py                            all cases, a table on standard output
python benchmarks/peers.py --only tree                cases whose name contains this
python benchmarks/peers.py --save docs/results/peers  also save the page (.md) and the numbers (.json)
python benchmarks/peers.py --compare old.json         compare with the numbers of another commit
"""

from __future__ import annotations

import argparse
import sys

import peak
from measuring import Page, circumstances, elapsed, environment, kept_rows, table_head, table_line, warn_if_busy
from peer_cases import CASES, THREADS
from threadpoolctl import threadpool_limits

KEYS = ("work", "against")
COLUMNS = ["work", "against", "ours, s", "theirs, s", "ratio", "aim", "operations/s", "share of peak"]
EXPLANATION = """\
A ratio is their shortest time divided by ours, with its range over the turns; in each turn both run one after the
other. Ratios below the aim are marked **short**. The last columns are the operations per second of our map, in
billions, and their share of the machine's peak. For Voronoi cells these are products (also those skipped by pruning;
for sparse rows, of values stored in the same column), and the peak is a float32 matrix product by BLAS. For trees these
are visits of nodes (also those that sparse rows skip), compared with random gathers by NumPy from a table of a tree's
size: a yardstick, not a peak."""


def measure(name, peer, target, prepare, repeats):
    """Return one row of the table."""
    ours, theirs, *note = prepare()
    # The limit is set after all libraries are loaded, so that it holds for each. Turns spread noise over both.
    with threadpool_limits(THREADS):
        turns = [(elapsed(ours), elapsed(theirs)) for _ in range(repeats)]
    share = ours.share_of_peak(min(mine for mine, _ in turns), THREADS) if isinstance(ours, peak.Mapping) else None
    return {**summary(turns), "work": name, "against": peer, "aim": target, "note": "".join(note), "peak": share}


def summary(turns):
    """Return the shortest times of (ours, theirs), their ratio and its range."""
    mine, other = (min(times) for times in zip(*turns, strict=True))
    ratios = [b / a for a, b in turns]
    return {"ours": mine, "theirs": other, "ratio": other / mine, "lowest": min(ratios), "highest": max(ratios)}


def line(row, before=None):
    """Return a row as Markdown; with the same row of another commit, also the change."""
    against = row["against"] + (f"; {row['note']}" if row["note"] else "")
    ratio = f"{row['ratio']:.3g} ({row['lowest']:.3g}–{row['highest']:.3g})"
    verdict = " **short**" if is_short(row) else ""
    values = [row["work"], against, f"{row['ours']:.3f}", f"{row['theirs']:.3f}", ratio + verdict, f"{row['aim']:.3g}"]
    return table_line(*values, *peak.share_columns(row["peak"]), *([_change(row, before)] if before else []))


def is_short(row):
    return row["ratio"] < row["aim"]


def missed_aims(rows):
    """Return the aims that rows miss, as Markdown."""
    short = [row for row in rows if is_short(row)]
    lines = [f"- {r['work']}, against {r['against']}: {r['ratio']:.3g}, aim {r['aim']:.3g}" for r in short]
    head = f"Aims missed on this machine: {len(short)} of {len(rows)}."
    return "\n".join(["", head, *([""] if short else []), *lines])


def _change(row, before):
    return f"{before['ours']:.3f} s, ratio {before['ratio']:.3g}; now {before['ours'] / row['ours']:.2f} times as fast"


def read_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", metavar="TEXT")
    parser.add_argument("--repeats", type=int, default=3, help="number of turns; the best counts (default: 3)")
    parser.add_argument("--save", metavar="STEM")
    parser.add_argument("--compare", metavar="JSON")
    options = parser.parse_args()
    if options.repeats < 1:
        parser.error(f"--repeats must be at least 1; got {options.repeats}.")
    return options


def main():
    options, record, page = read_options(), environment(), Page()
    before = kept_rows(options.compare, KEYS) if options.compare else {}
    warn_if_busy(record)
    page.add("# Speed beside other libraries\n")
    page.add("The same work by isokern and by another library: `python benchmarks/peers.py`.")
    page.add(f"{circumstances(record)} {THREADS} threads, t = 100, best of {options.repeats}.\n\n{EXPLANATION}\n")
    page.add(table_head(*COLUMNS, *(["before"] if before else [])))
    record["rows"] = []
    for case in CASES:
        if options.only in case[0]:
            try:
                row = measure(*case, options.repeats)
            except ImportError as error:
                print(f"Left out: {case[0]}: {error}. Needed: pip install isokern[bench]", file=sys.stderr)
                continue
            record["rows"].append(row)
            page.add(line(row, before.get((row["work"], row["against"]))))
    page.add(missed_aims(record["rows"]))
    if options.save:
        page.save(options.save, record)


if __name__ == "__main__":
    main()
