"""Measure IKSVC() as it is, beside other support vector machines, LightGBM and IKOGDClassifier().

python benchmarks/svc.py                              all data sets on standard output
python benchmarks/svc.py --quick                      few rows and data sets, one seed, to try it out
python benchmarks/svc.py --data churn letter          only some data sets
python benchmarks/svc.py --save docs/results/svc      add each data set, once measured, to the page (.md) and the
                                                      numbers (.json) saved there
python benchmarks/svc.py --save ... --resume          leave out what is saved there already
"""

from __future__ import annotations

import argparse
from contextlib import closing

import contenders
import datasets
from contenders import MACHINES, MOST_COLUMNS, MOST_SVC_ROWS, ON_MAP
from defaults import COMMON, averaged, progress, saved_record
from measuring import Page, circumstances, environment, table_head, table_line, warn_if_busy

DATA = (*COMMON, "covertype, 10,000 rows", "covertype")
QUICK_DATA = ("churn", "iris")
# n_rows: most training and test rows; slow: seconds after which one seed is enough; limit: seconds of a learner
FULL = {"n_rows": None, "seeds": 3, "slow": 2, "limit": 40}
QUICK = {"n_rows": 3000, "seeds": 1, "slow": 2, "limit": 60}
INTRODUCTION = f"""\
# Support vector machines

`IKSVC()` with its defaults: C and features are chosen by held-out rows, which is part of the time to fit. *LinearSVC on
the map* is LIBLINEAR on `IsolationKernel().transform(X)`, with C = 1. SVC with the RBF kernel runs on standardised
dense tables of at most {MOST_SVC_ROWS:,} rows; LightGBM is left out on more than {MOST_COLUMNS:,} columns. A learner
that takes more than {FULL["limit"]} seconds is stopped. Means over three seeds, where one takes up to {FULL["slow"]}
seconds, else one seed; all from one run."""


def measure(name, plan):
    """Return what each machine that can take the data set reaches."""
    X, found = datasets.load(name)[0], {}
    for learner, contender in MACHINES.items():
        if contender.takes(X):
            progress(name, "by", learner)
            with closing(contenders.runs(learner, name, plan["n_rows"], plan["limit"], plan["seeds"])) as runs:
                found[learner] = averaged(runs, plan["slow"])
    return found


# -- page


def page_of(record):
    page = Page()
    page.lines = [INTRODUCTION, "", circumstances(record), ""]
    for title, text in (("Accuracy", accuracy), ("Seconds to fit + to predict the test rows", seconds)):
        page.lines += [f"## {title}", "", table_head("data", *MACHINES)]
        page.lines += [table_line(name, *texts(found, text)) for name, found in record["rows"].items()] + [""]
    page.lines += [f"## IKSVC beside {ON_MAP}", ""] + [compared(name, found) for name, found in record["rows"].items()]
    return page


def texts(found, text):
    """Return the entries of a line; a learner that was left out is a dash, one that failed the reason."""
    runs = (found.get(learner) for learner in MACHINES)
    return ["-" if run is None else run.get("failed") or text(run) for run in runs]


def accuracy(run):
    return f"{run['accuracy']:.4f}"


def seconds(run):
    return f"{run['fit']:.2f} + {run['predict']:.2f}"


def compared(name, found):
    own, other = found["IKSVC"], found[ON_MAP]
    if "failed" in own or "failed" in other:
        return f"- {name}: not both finished."
    gain = 100 * (own["accuracy"] - other["accuracy"])
    return f"- {name}: {gain:+.2f} points, {own['fit'] / other['fit']:.2f} times the seconds to fit."


# -- main


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for flag in ("--quick", "--resume"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--data", nargs="+", metavar="NAME")
    parser.add_argument("--save", metavar="STEM")
    options = parser.parse_args(arguments)
    plan, names = (QUICK, QUICK_DATA) if options.quick else (FULL, DATA)
    where, rows = environment(), saved_record(options.save).get("rows", {})
    warn_if_busy(where)
    record = {**where, "plan": plan, "rows": rows}
    for name in options.data or names:
        if not (options.resume and name in rows):
            rows[name] = measure(name, plan)
            record["rows"] = {known: rows[known] for known in (*DATA, *rows) if known in rows}
            if options.save:
                page_of(record).save(options.save, record)
    print(*page_of(record).lines, sep="\n")


if __name__ == "__main__":
    main()
