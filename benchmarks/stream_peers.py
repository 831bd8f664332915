"""Run one learner of benchmarks/streams.py along a saved stream, predicting each row before it is learned.

python benchmarks/stream_peers.py LEARNER SEED N_ROWS LIMIT stream.npz answers.npz

It runs in an environment with isokern, LightGBM and river, or in that of CapyMOA: packages are imported where they are
used. The limit is in seconds of CPU time, so that how far a learner comes does not depend on what else is running.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from stream_data import Stream

BLOCK, WINDOW, RIVER_ROWS, ONE_ROW_CALLS, LONG_CALL = 1000, 5000, 25_000, 20_000, 10_000
FIXED, GROWING, ADAPTIVE = "isokern, fixed", "isokern, growing", "isokern, adaptive"
LAST_LABEL, MAJORITY, WINDOWED = "NoChange", "majority", "LightGBM, window"
ONE_ROW = ", one-row calls"


# A learner is made from a stream and a seed. It is a function that predicts the rows of a slice, then learns them, and
# returns the predicted classes and, where they are cheap to get, the probabilities of the true classes.


# -- baselines


def no_change(stream, seed):
    before = np.concatenate([[0], stream.y[:-1]])
    return lambda part: (before[part], None)


def majority(stream, seed):
    counts = np.zeros(stream.n_classes)

    def step(part):
        predicted = counts.argmax()
        counts[stream.y[part]] += 1
        return predicted, None

    return step


# -- isokern


def fixed(seed):
    from isokern import IKOGDClassifier

    return IKOGDClassifier(growth=False, random_state=seed)


def growing(seed):
    from isokern import IKOGDClassifier

    return IKOGDClassifier(random_state=seed)


def adaptive(seed, **options):
    from isokern import AdaptiveIKClassifier

    return AdaptiveIKClassifier(**options, random_state=seed)


def as_frame(stream):
    """Return the rows; those with categories as a frame."""
    if not stream.levels:
        return stream.X
    import pandas as pd

    columns = {str(column): values for column, values in enumerate(stream.X.T)}
    for column, names in stream.levels.items():
        columns[str(column)] = pd.Categorical.from_codes(stream.X[:, column].astype(int), names)
    return pd.DataFrame(columns)


def predicting(make):
    def start(stream, seed):
        model, rows = make(seed), as_frame(stream)
        return lambda part: (model.partial_fit_predict(rows[part], stream.y[part]), None)

    return start


def with_probabilities(make):
    """Return the learner that gives the true classes' probabilities, and no predictions."""

    def start(stream, seed):
        model, rows = make(seed), as_frame(stream)

        def step(part):
            y = stream.y[part]
            shares = model.partial_fit_predict(rows[part], y, method="predict_proba")
            return -1, shares[np.arange(len(y)), np.searchsorted(model.classes_, y)]

        return step

    return start


# -- LightGBM


def windowed(stream, seed):
    """Retrain on the last rows after each block; the first block is predicted by its majority so far."""
    from lightgbm import LGBMClassifier

    first, model = majority(stream, seed), None

    def step(part):
        nonlocal model
        if model is None:
            rows = range(part.start, min(part.stop, len(stream.y)))
            answers = np.array([first(slice(i, i + 1))[0] for i in rows]), None
        else:
            answers = answers_of(model, stream.X[part], stream.y[part])
        recent = slice(max(0, part.stop - WINDOW), part.stop)
        model = LGBMClassifier(random_state=seed, verbose=-1)
        model.fit(stream.X[recent], stream.y[recent], categorical_feature=list(stream.levels))
        return answers

    return step


def answers_of(model, X, y):
    """Return the predictions and the true classes' probabilities; a class outside the window has probability 0."""
    shares = model.predict_proba(X)
    places = np.searchsorted(model.classes_, y).clip(max=len(model.classes_) - 1)
    of_truth = np.where(model.classes_[places] == y, shares[np.arange(len(y)), places], 0.0)
    return model.classes_[shares.argmax(axis=1)], of_truth


# -- river


def river(make, takes_text=True):
    """Return a learner of river; it gets categories as text, or as codes."""

    def start(stream, seed):
        model, levels = make(seed), stream.levels if takes_text else {}

        def step(part):
            x, y = dict(enumerate(stream.X[part.start].tolist())), int(stream.y[part.start])
            x |= {column: names[int(x[column])] for column, names in levels.items()}
            shares = model.predict_proba_one(x)
            model.learn_one(x, y)
            return max(shares, key=shares.get, default=0), shares.get(y, 0.0)

        return step

    return start


def river_hat(seed):
    from river.tree import HoeffdingAdaptiveTreeClassifier

    return HoeffdingAdaptiveTreeClassifier(seed=seed)


def river_arf(seed):
    from river.forest import ARFClassifier

    return ARFClassifier(n_models=10, seed=seed)


def river_amf(seed):
    from river.forest import AMFClassifier

    return AMFClassifier(seed=seed)


# -- CapyMOA


def capymoa(name, **options):
    """Return a learner of CapyMOA; without votes the first class is predicted, as by CapyMOA's evaluation."""

    def start(stream, seed):
        from capymoa.core import LabeledInstance

        schema = schema_of(stream)
        learner = capymoa_learner(name, schema, seed, options)

        def step(part):
            i = part.start
            instance = LabeledInstance.from_array(schema, stream.X[i], stream.y[i])
            shares = learner.predict_proba(instance)
            learner.train(instance)
            return (0, 0.0) if shares is None else (shares.argmax(), shares[stream.y[i]])

        return step

    return start


def capymoa_in_java(name, **options):
    """Return a learner whose stream is an ARFF file, read and evaluated in Java without Python's overhead."""

    def start(stream, seed):
        import tempfile

        from capymoa.evaluation import prequential_evaluation
        from capymoa.stream import ARFFStream

        def step(part):
            columns, formats = stream.X[part], ["%.9g"] * stream.X.shape[1] + ["%d"]
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "stream.arff"
                with path.open("w") as file:
                    file.write(f"{schema_of(stream)}\n")
                    np.savetxt(file, np.column_stack([columns, stream.y[part]]), fmt=formats, delimiter=",")
                source = ARFFStream(str(path))
                learner = capymoa_learner(name, source.get_schema(), seed, options)
                results = prequential_evaluation(source, learner, store_predictions=True)
            return np.array(results.predictions()), None, results.wallclock()

        return step

    return start


def capymoa_learner(name, schema, seed, options):
    import capymoa.classifier

    return getattr(capymoa.classifier, name)(schema, random_seed=seed + 1, **options)


def schema_of(stream):
    from capymoa.stream import Schema

    columns = [f"x{column}" for column in range(stream.X.shape[1])]
    categories = {columns[column]: names for column, names in stream.levels.items()}
    categories["class"] = [str(label) for label in range(stream.n_classes)]
    return Schema.from_custom(features=[*columns, "class"], target="class", categories=categories, name="stream")


# -- all learners


class Learner(NamedTuple):
    """How to start a learner, its package, rows of a call, rows in all, seeds, and how to start it for log-loss."""

    start: Any
    package: str = "isokern"
    block: int = 1
    n_rows: int | None = None
    n_seeds: int = 3
    probabilities: Any = None


def of_isokern(make):
    return Learner(predicting(make), block=BLOCK, probabilities=with_probabilities(make))


def of_capymoa(name, n_seeds=3, **options):
    return Learner(capymoa(name, **options), package="capymoa", n_seeds=n_seeds)


def of_river(make, **options):
    return Learner(river(make, **options), package="river", n_rows=RIVER_ROWS, n_seeds=1)


MOA_ARF, RIVER_ARF = "CapyMOA ARF(10)", "river ARF(10)"
LEARNERS = {
    LAST_LABEL: Learner(no_change, block=BLOCK, n_seeds=1),
    MAJORITY: Learner(majority, n_seeds=1),
    FIXED: of_isokern(fixed),
    GROWING: of_isokern(growing),
    ADAPTIVE: of_isokern(adaptive),
    WINDOWED: Learner(windowed, package="lightgbm", block=BLOCK, n_seeds=1),  # nothing in it is random
    "CapyMOA HAT": of_capymoa("HoeffdingAdaptiveTree"),
    MOA_ARF: of_capymoa("AdaptiveRandomForestClassifier", ensemble_size=10),
    "CapyMOA SRP(10)": of_capymoa("StreamingRandomPatches", ensemble_size=10),
    "CapyMOA KNN": of_capymoa("KNN", n_seeds=1),  # nothing in it is random
    "CapyMOA SGBT": of_capymoa("StreamingGradientBoostedTrees"),
    "river HAT": of_river(river_hat),
    RIVER_ARF: of_river(river_arf),
    "river AMF": of_river(river_amf, takes_text=False),
}
# On the streams for throughput, besides some of the others.
AT_100 = f"{ADAPTIVE}, t = 100, calls of {LONG_CALL:,} rows"
TIMED = {
    f"{ADAPTIVE}, t = 100": of_isokern(partial(adaptive, n_partitionings=100)),
    AT_100: Learner(predicting(partial(adaptive, n_partitionings=100)), block=LONG_CALL),
    f"{GROWING}{ONE_ROW}": Learner(predicting(growing), n_rows=ONE_ROW_CALLS, n_seeds=1),
    f"{ADAPTIVE}{ONE_ROW}": Learner(predicting(adaptive), n_rows=ONE_ROW_CALLS, n_seeds=1),
    f"{MOA_ARF}, Java loop": Learner(
        capymoa_in_java("AdaptiveRandomForestClassifier", ensemble_size=10),
        package="capymoa",
        block=sys.maxsize,
        n_seeds=1,
    ),
}


# -- running


def megabytes(field):
    """Return a field of the memory of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def run(step, n_rows, block, limit):
    """Return what a learner answers until the end of the stream or the limit, and the seconds of each call."""
    predictions, shares, seconds = np.full(n_rows, -1), np.full(n_rows, np.nan), []
    n_done, cpu, begun = 0, time.process_time(), time.perf_counter()
    while n_done < n_rows and time.process_time() - cpu < limit:
        part = slice(n_done, min(n_done + block, n_rows))
        started = time.perf_counter()
        predictions[part], of_truth, *inner = step(part)
        seconds.append(inner[0] if inner else time.perf_counter() - started)
        if of_truth is not None:
            shares[part] = of_truth
        n_done = part.stop
    times = {"cpu": time.process_time() - cpu, "elapsed": inner[0] if n_done and inner else time.perf_counter() - begun}
    return {"predictions": predictions[:n_done], "shares": shares[:n_done], "seconds": np.array(seconds), **times}


def main(learner, seed, n_rows, limit, stream_path, answers_path):
    chosen, stream = (LEARNERS | TIMED)[learner], Stream.load(stream_path)
    n_rows, limit = min(int(n_rows), chosen.n_rows or len(stream.y), len(stream.y)), float(limit)
    import_module(chosen.package)  # so that its memory is not counted as the learner's
    memory = megabytes("VmRSS")
    answers = run(chosen.start(stream, int(seed)), n_rows, chosen.block, limit)
    answers["megabytes"] = megabytes("VmHWM") - memory
    if chosen.probabilities:
        again = run(chosen.probabilities(stream, int(seed)), len(answers["predictions"]), chosen.block, np.inf)
        answers["shares"] = again["shares"]
    np.savez(answers_path, **answers, version=f"{chosen.package} {metadata.version(chosen.package)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
