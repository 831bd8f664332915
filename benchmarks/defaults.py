"""Measure IKOGDClassifier() as it is: against its best setting in hindsight, its peers, other t, and what it costs.

python benchmarks/defaults.py                               all sections on standard output
python benchmarks/defaults.py --quick                       few rows and data sets, one seed, to try it out
python benchmarks/defaults.py --only peers                  one section: hindsight, peers, partitionings or cost
python benchmarks/defaults.py --data churn letter           only some data sets
python benchmarks/defaults.py --save docs/results/defaults  add each data set, once measured, to the page (.md), numbers
                                                            (.json) and figures (.png) saved there
python benchmarks/defaults.py --save ... --resume           leave out what is saved there already
"""

from __future__ import annotations

import argparse
import gc
import inspect
import json
import math
import sys
import tempfile
import time
from contextlib import closing
from functools import cache, partial
from pathlib import Path

import contenders
import datasets
import numpy as np
from contenders import AT_100, BEFORE, CONTENDERS, DEFAULT
from defaults_page import BLOCK, N_TURNS, STREAM, page_of
from measuring import elapsed, environment, warn_if_busy

import isokern
from isokern import IKOGDClassifier, IsolationKernel

COMMON = ("a9a", "ijcnn1", "mnist", "mnist, ten classes", "rcv1 subset", "news20 rebuilt", "url subset")
COMMON += (*datasets.TABLES, *datasets.BUNDLED)
DATA = {
    "hindsight": (*COMMON, *datasets.SAMPLES),
    "peers": (*COMMON, "covertype, 10,000 rows", "covertype"),
    "partitionings": (
        "covertype, 100,000 rows",
        "mnist, ten classes",
        "letter",
        "a9a",
        "ijcnn1",
        "adult",
        "rcv1 subset",
    ),
    "cost": ("covertype", "mnist, ten classes", STREAM),
}
QUICK_DATA = {
    "hindsight": ("churn", "rcv1 subset", "iris"),
    "peers": ("churn", "rcv1 subset", "iris"),
    "partitionings": ("letter", "adult"),
    "cost": ("letter", STREAM),
}
# n_rows: most training and test rows; slow: seconds of a run, and slow_grid: seconds of CPU time of a grid, after which
# one seed is enough; limit: seconds of a peer
FULL = {"n_rows": None, "seeds": 3, "t": (25, 50, 100, 200, 400), "slow": 5, "slow_grid": 60, "limit": 60}
QUICK = {"n_rows": 3000, "seeds": 1, "t": (25, 50), "slow": 30, "slow_grid": 300, "limit": 60}
CELLS = (16, 64, 256, 1024, 4096, 16_384)
STEPS = (("adagrad", 0.5), ("adagrad", 2.0), ("constant", 0.5), ("constant", 2.0))
# Parameters that are set besides, with which numbers of cells; only AdaGrad's steps are tried with them.
VARIANTS = {("n_scales",): (256, 4096), ("linear",): (16, 256, 4096), ("n_scales", "linear"): (256, 4096)}


def progress(*words):
    print(time.strftime("%H:%M:%S"), *words, file=sys.stderr, flush=True)


# -- hindsight


def settings(n_rows):
    """Return the grid: cells and steps; also with all scales and the linear term if the classifier has them."""
    known = inspect.signature(IKOGDClassifier).parameters
    grid = [step_setting(psi, *step) for psi in capped(CELLS, n_rows) for step in STEPS]
    for names, cells in VARIANTS.items():
        if set(names) <= set(known):
            for psi in capped(cells, n_rows):
                values = {"n_scales": max(2, round(math.log(psi, 4))), "linear": True}
                grid += [step_setting(psi, *step) | {name: values[name] for name in names} for step in STEPS[:2]]
    return grid


def capped(cells, n_rows):
    return sorted({min(psi, n_rows) for psi in cells})


def step_setting(n_cells, schedule, learning_rate):
    return {"n_cells": n_cells, "schedule": schedule, "learning_rate": learning_rate}


def is_right(learner, data):
    """Return for each test row whether its prediction is right."""
    X, y, X_test, y_test = data
    return learner.fit(X, y).predict(X_test) == y_test


def grid_results(grid, data, seed):
    """Yield for each setting whether predictions are right; settings that differ in steps alone share a map."""

    @cache
    def kernel(n_cells):
        return IsolationKernel(n_cells=n_cells, random_state=seed).fit(data[0])

    for setting in grid:
        has_own = not {"n_scales", "linear"}.isdisjoint(setting)
        options = setting if has_own else setting | {"n_cells": "auto", "kernel": kernel(setting["n_cells"])}
        yield is_right(IKOGDClassifier(**options, random_state=seed), data)


def measure_hindsight(name, plan):
    """Return the accuracies of the default, the former one and the best setting, and the loss."""
    data = datasets.some_rows(datasets.load(name), plan["n_rows"], plan["n_rows"])
    n_rows, n_test = len(data[1]), len(data[3])
    grid, right, defaults = settings(n_rows), [], {DEFAULT: [], BEFORE: []}
    begun = time.process_time()
    for seed in range(plan["seeds"]):
        if seed and time.process_time() - begun > plan["slow_grid"] * seed:
            break
        progress("hindsight:", name, "seed", seed)
        for learner, results in defaults.items():
            results.append(is_right(CONTENDERS[learner].make(data[0], seed), data))
        right.append(list(grid_results(grid, data, seed)))
    is_chosen_on = np.random.RandomState(0).permutation(n_test) < n_test // 2
    means = [np.mean(found, axis=0) for found in (right, defaults[DEFAULT], defaults[BEFORE])]  # over seeds
    return {"data": name, "rows": [n_rows, n_test], "seeds": len(right), **judged(grid, *means, is_chosen_on)}


def judged(grid, shares, default, before, is_chosen_on):
    """Choose the best setting on some rows and compare it with the defaults on the others.

    ``shares``, of shape (settings, rows), ``default`` and ``before`` are the shares of seeds that are right.
    """
    best = int(np.argmax(shares[:, is_chosen_on].mean(axis=1)))
    is_measured = ~is_chosen_on
    differences = (shares[best] - default)[is_measured]
    return {
        "default": float(default[is_measured].mean()),
        "before": float(before[is_measured].mean()),
        "best": float(shares[best][is_measured].mean()),
        "setting": grid[best],
        "loss": float(differences.mean()),
        "error": float(differences.std() / math.sqrt(len(differences))),
        "grid": [setting | {"accuracy": float(found.mean())} for setting, found in zip(grid, shares, strict=True)],
    }


# -- peers


def averaged(runs, slow):
    """Return the mean of each value over the runs, of the first run alone if it is slow; a failed run as it is."""
    done = []
    for run in runs:
        if "failed" in run:
            return run
        done.append(run)
        if run["fit"] + run.get("predict", 0) > slow:
            break
    return {key: float(np.mean([run[key] for run in done])) for key in done[0]} | {"seeds": len(done)}


def measure_peers(name, plan):
    """Return what each learner that can take the data set reaches."""
    X, found = datasets.load(name)[0], {}
    for learner, contender in CONTENDERS.items():
        if contender.takes(X):
            progress("peers:", name, "by", learner)
            with closing(contenders.runs(learner, name, plan["n_rows"], plan["limit"], plan["seeds"])) as runs:
                found[learner] = averaged(runs, plan["slow"])
    return {"data": name, "learners": found}


# -- partitionings


def measure_partitionings(name, plan):
    """Return accuracy and seconds of both defaults by the number of partitionings."""
    data = datasets.some_rows(datasets.load(name), plan["n_rows"], plan["n_rows"])
    found = {DEFAULT: [], BEFORE: []}
    accuracy_of(DEFAULT, data, 1, 0)  # the first fit of a process also loads libraries and starts threads
    for t in plan["t"]:
        progress("partitionings:", name, "t =", t)
        for learner, of_learner in found.items():
            runs = (accuracy_of(learner, data, t, seed) for seed in range(plan["seeds"]))
            of_learner.append({"t": t} | averaged(runs, plan["slow"]))
    return {"data": name, "learners": found}


def accuracy_of(learner, data, t, seed):
    X, y, X_test, y_test = data
    model = CONTENDERS[learner].make(X, seed, n_partitionings=t)
    seconds = elapsed(partial(model.fit, X, y))
    return {"accuracy": float(np.mean(model.predict(X_test) == y_test)), "fit": seconds}


# -- cost


def measure_cost(name, plan):
    """Return the seconds and sizes of the defaults, medians of turns."""
    X, y, X_test, _ = datasets.some_rows(datasets.load("covertype" if name == STREAM else name), plan["n_rows"])
    turns = {DEFAULT: [], AT_100: [], BEFORE: []}
    for _ in range(N_TURNS):
        for learner, found in turns.items():
            progress("cost:", name, learner)
            model = (
                contenders.default(X, 0, n_partitionings=100) if learner == AT_100 else CONTENDERS[learner].make(X, 0)
            )
            seconds = elapsed(partial(learn_stream if name == STREAM else type(model).fit, model, X, y))
            found.append({"fit": seconds, "predict": elapsed(partial(model.predict, X_test)), **sizes(model)})
    return {"data": name, "learners": {learner: medians(found) for learner, found in turns.items()}}


def learn_stream(model, X, y):
    for start in range(0, len(y), BLOCK):
        model.partial_fit(X[start : start + BLOCK], y[start : start + BLOCK])


def medians(turns):
    return {key: float(np.median([turn[key] for turn in turns])) for key in turns[0]}


def sizes(model):
    """Return the bytes of a model's arrays and of its file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.isokern"
        isokern.save(model, path)
        return {"memory": array_bytes(model), "file": path.stat().st_size}


def array_bytes(model):
    """Return the bytes of all arrays that a model holds, caches included, each counted once."""
    seen, held, waiting = set(), {}, [vars(model)]
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or inspect.ismodule(thing) or isinstance(thing, type) or callable(thing):
            continue
        seen.add(id(thing))
        if isinstance(thing, np.ndarray):
            whole = thing.base if isinstance(thing.base, np.ndarray) else thing
            held[id(whole)] = whole.nbytes
        waiting += gc.get_referents(thing)
    return sum(held.values())


# -- main


SECTIONS = {
    "hindsight": measure_hindsight,
    "peers": measure_peers,
    "partitionings": measure_partitionings,
    "cost": measure_cost,
}


def read_options(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=SECTIONS)
    parser.add_argument("--data", nargs="+", metavar="NAME")
    parser.add_argument("--save", metavar="STEM")
    parser.add_argument("--resume", action="store_true")
    return parser.parse_args(arguments)


def saved_record(stem):
    """Return what was saved before."""
    path = Path(f"{stem}.json")
    return json.loads(path.read_text()) if stem and path.exists() else {}


def main(arguments=None):
    options = read_options(arguments)
    plan, data = (QUICK, QUICK_DATA) if options.quick else (FULL, DATA)
    record, where = saved_record(options.save), environment()
    warn_if_busy(where)
    for section in [options.only] if options.only else SECTIONS:
        rows = record.get(section, {}).get("rows", {})
        for name in data[section]:
            if (options.data and name not in options.data) or (options.resume and name in rows):
                continue
            rows[name] = {**SECTIONS[section](name, plan), "commit": where["commit"]}
            in_order = {known: rows[known] for known in data[section] if known in rows}
            record[section] = {**where, "plan": plan, "rows": in_order}
            if options.save:
                page_of(record, options.save).save(options.save, record)
    print(*page_of(record).lines, sep="\n")


if __name__ == "__main__":
    main()
