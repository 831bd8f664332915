"""Measure streams from their first row: a map that grows, a fixed one, and learners of river, row by row.

python benchmarks/growth.py                               all data sets on standard output
python benchmarks/growth.py --data letter adult           only some
python benchmarks/growth.py --save docs/results/growth    add each data set, once measured, to the page (.md) and
                                                          numbers (.json) there; --resume leaves out those saved before
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import datasets
import numpy as np
from measuring import Page, circumstances, environment, table_head, table_line, warn_if_busy

from isokern import IKOGDClassifier
from isokern.evaluation import OneByOne

DATA = (
    "covertype",
    "mnist, ten classes",
    "a9a",
    "ijcnn1",
    "adult",
    "letter",
    "kddcup99",
    "churn",
    "gas_sensor",
    "digits",
)
DATA += ("rcv1 subset", "news20 rebuilt", "url subset")
MARKS = (100, 1000, 10_000)  # rows after which the accuracy so far is told, besides the end
BLOCK, MOST_RIVER_ROWS, MOST_RIVER_COLUMNS, TEST_ROWS, TURN_ROWS = 1000, 10_000, 200, 20_000, 50_000
INTRODUCTION = """\
Training rows in random order, in blocks of {block:,}; each row is predicted before it is learned. *So far* is the
accuracy of all rows from the first one on. *Growing* is `IKOGDClassifier()`, *fixed* `IKOGDClassifier(growth=False)`,
whose map is drawn from the first 1,000 rows. *Test* is the accuracy on test rows after the stream, beside that of `fit`
with one pass over the same rows. River's learners see the first {river:,} rows, numbers in at most {columns:,} columns;
*growing, start* is the growing map on the same rows. Memory is that of the model's arrays at the end.
*Time / blocks* is the CPU time divided by that of predicting and then learning whole blocks, for {turn:,} rows or
fewer."""


def growing(n_classes):
    return IKOGDClassifier(random_state=0)


def fixed(n_classes):
    return IKOGDClassifier(growth=False, random_state=0)


def forest(n_classes):
    from river.forest import AMFClassifier

    return OneByOne(AMFClassifier(seed=0))


def hoeffding(n_classes):
    from river.tree import HoeffdingTreeClassifier

    return OneByOne(HoeffdingTreeClassifier())


OURS = {"growing": growing, "fixed": fixed}
RIVER = {"growing, start": growing, "river AMF": forest, "river Hoeffding tree": hoeffding}


def answers(model, X, y):
    """Return the labels that a model predicts for rows before it learns them."""
    if hasattr(model, "partial_fit_predict"):
        return model.partial_fit_predict(X, y)
    found = []
    for i in range(len(y)):
        row = X.iloc[i : i + 1] if hasattr(X, "iloc") else X[i : i + 1]
        found.append(model.predict(row)[0] if hasattr(model, "classes_") else None)
        model.partial_fit(row, y[i : i + 1])
    return np.array(found, dtype=object)


def stream(make, X, y):
    """Return a model after a stream, its accuracies so far, and rows per second."""
    model, right, seconds = make(len(np.unique(y))), [], 0.0
    for begin in range(0, len(y), BLOCK):
        part = slice(begin, begin + BLOCK)
        rows = X.iloc[part] if hasattr(X, "iloc") else X[part]
        started = time.perf_counter()
        found = answers(model, rows, y[part])
        seconds += time.perf_counter() - started
        right.append(found == y[part])
    right = np.concatenate(right)
    so_far = [float(right[:mark].mean()) for mark in MARKS if mark < len(y)] + [float(right.mean())]
    return model, {"rows": len(y), "accuracy": so_far, "rows_per_second": len(y) / seconds}


def cost_of_rows(X, y):
    """Return the CPU time of answering row by row, divided by that of predicting a block and then learning it.

    The minima of three runs in turns on at most TURN_ROWS rows, because the first run of a process is slower.
    """
    X, y = datasets.take(X, y, np.arange(min(TURN_ROWS, len(y))))
    seconds = [[cpu_seconds(X, y, one_by_one) for one_by_one in (True, False)] for _ in range(3)]
    by_rows, by_blocks = np.min(seconds, axis=0)
    return float(by_rows / by_blocks)


def cpu_seconds(X, y, one_by_one):
    model, started = growing(None), time.process_time()
    for begin in range(0, len(y), BLOCK):
        rows, labels = datasets.take(X, y, slice(begin, begin + BLOCK))
        if one_by_one:
            model.partial_fit_predict(rows, labels)
            continue
        if begin:
            model.predict(rows)
        model.partial_fit(rows, labels)
    return time.process_time() - started


def measure(name):
    """Return what all learners reach on a data set."""
    from defaults import array_bytes

    X, y, X_test, y_test = datasets.load(name)
    order = np.random.RandomState(0).permutation(len(y))
    X, y = datasets.take(X, y, order)
    X_test, y_test = datasets.some_rows((X_test, y_test, X_test, y_test), TEST_ROWS)[:2]
    found = {}
    for learner, make in OURS.items():
        model, found[learner] = stream(make, X, y)
        found[learner] |= {"test": float(model.score(X_test, y_test)), "memory": array_bytes(model)}
    found["growing"]["blocks"] = cost_of_rows(X, y)
    found["fit, one pass"] = {
        "test": float(IKOGDClassifier(n_passes=1, shuffle=False, random_state=0).fit(X, y).score(X_test, y_test))
    }
    if isinstance(X, np.ndarray) and X.shape[1] <= MOST_RIVER_COLUMNS:
        first = datasets.take(X, y, np.arange(min(MOST_RIVER_ROWS, len(y))))
        for learner, make in RIVER.items():
            found[learner] = stream(make, *first)[1]
    return {"data": name, "learners": found}


def lines(rows):
    """Yield the table."""
    marks = [f"so far at {mark:,}" for mark in MARKS]
    yield table_head(
        "data", "learner", "rows", *marks, "so far at the end", "test", "rows / s", "time / blocks", "memory, MB"
    )
    for row in rows:
        for learner, found in row["learners"].items():
            accuracies = found.get("accuracy", [])
            so_far = [*(f"{value:.3f}" for value in accuracies[:-1]), *["–"] * len(MARKS)][: len(MARKS)]
            end = f"{accuracies[-1]:.3f}" if accuracies else "–"
            numbers = (
                f"{found[key]:,.{digits}f}" if key in found else "–"
                for key, digits in (("test", 4), ("rows_per_second", 0))
            )
            ratio = f"{found['blocks']:.2f}" if "blocks" in found else "–"
            memory = f"{found['memory'] / 1e6:.0f}" if "memory" in found else "–"
            n_rows = f"{found['rows']:,}" if "rows" in found else "–"
            yield table_line(row["data"], learner, n_rows, *so_far, end, *numbers, ratio, memory)


def page_of(record):
    page = Page()
    text = INTRODUCTION.format(block=BLOCK, river=MOST_RIVER_ROWS, columns=MOST_RIVER_COLUMNS, turn=TURN_ROWS)
    page.lines = [
        "# Streams from their first row",
        "",
        "Learners on streams that do not change, from the first row on: `python benchmarks/growth.py`.",
        "",
        text,
        "",
        circumstances(record),
    ]
    page.lines += ["", *lines(record["rows"].values())]
    return page


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", metavar="NAME", default=DATA)
    parser.add_argument("--save", metavar="STEM")
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args()
    where = environment()
    warn_if_busy(where)
    path = Path(f"{options.save}.json")
    rows = json.loads(path.read_text())["rows"] if options.save and options.resume and path.exists() else {}
    for name in options.data:
        if name not in rows:
            rows[name] = measure(name)
        record = where | {"rows": {known: rows[known] for known in (*DATA, *rows) if known in rows}}
        if options.save:
            page_of(record).save(options.save, record)
    print(*page_of(record).lines, sep="\n")


if __name__ == "__main__":
    main()
