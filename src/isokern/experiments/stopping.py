"""Train and test in blocks: a run that reaches the time limit tells how far it came, and what the whole would take."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from isokern.data.catalogue import Dataset
from isokern.evaluation import holdout
from isokern.experiments import settings
from isokern.experiments.measuring import Stopwatch
from isokern.kernels import gamma_from_data
from isokern.learners.rival import RivalClassifier

IsOver = Callable[[], bool]
Mark = tuple[int, float]  # rows done, and seconds so far


def hold_out(learner: Any, data: Dataset, is_over: IsOver) -> dict[str, Any]:
    """Train once and test once; rivals watch the clock, because their time per row can grow with the rows."""
    n_train, n_test = len(data.y_train), len(data.y_test)
    watch, sizes = Stopwatch(), {"n_train": n_train, "n_test": n_test, "n_rows": n_train + n_test}
    if not isinstance(learner, RivalClassifier):
        tested = holdout(learner, (data.X_train, data.y_train), (data.X_test, data.y_test))
        return watch.seconds() | sizes | {"accuracy": tested.accuracy, "n_support": tested.n_support}
    _fix_bandwidth(learner, data.X_train)
    marks: list[Mark] = [(0, 0.0)]
    n_correct, n_done = 0, 0
    for X, y in _short_blocks(data.X_train, data.y_train):
        if is_over():
            return watch.seconds() | sizes | stopped(marks, n_train, n_test)
        learner.partial_fit(X, y, classes=(0, 1))
        n_done += len(y)
        marks.append((n_done, watch.elapsed))
    for X, y in _short_blocks(data.X_test, data.y_test):
        if is_over():
            return watch.seconds() | sizes | stopped(marks, n_train, n_test)
        n_correct += int(np.sum(learner.predict(X) == y))
        n_done += len(y)
        marks.append((n_done, watch.elapsed))
    return watch.seconds() | sizes | {"accuracy": n_correct / n_test, "n_support": learner.n_support_}


def _short_blocks(X: Any, y: Any) -> Iterator[tuple[Any, Any]]:
    """Yield blocks that grow or shrink so that each takes about a second, and looks at the clock take no time."""
    begin, n = 0, settings.CLOCK_ROWS
    while begin < len(y):
        watch = Stopwatch()
        yield X[begin : begin + n], y[begin : begin + n]
        begin += n
        n = 2 * n if watch.elapsed < 1.0 else n if watch.elapsed < 4.0 else max(1, n // 2)


def _fix_bandwidth(learner: Any, X: Any) -> None:
    """Learn lambda from all rows as ``fit`` does, not from the first block."""
    if getattr(learner, "gamma", None) == "data" and learner.n_cells is None:
        learner.gamma = gamma_from_data(learner.kernel, X, np.random.RandomState(learner.random_state))


def stopped(marks: Sequence[Mark], n_learned: int, n_tested: int = 0) -> dict[str, Any]:
    """Return how far a run came, and what learning and testing all rows would take, if the marks allow to tell."""
    return {"stopped_at_row": marks[-1][0], "expected_seconds": expected_seconds(marks, n_learned, n_tested)}


def expected_seconds(marks: Sequence[Mark], n_learned: int, n_tested: int = 0) -> float | None:
    """Extrapolate the seconds of a run from those of its first rows, or return None if it had not begun.

    While rows are learned, the time is taken to grow as a power of their number, between 1 and 2, which the first and
    the second half of the rows give. A test row then takes as long as the last row that is learned, because scoring
    it is most of the work; if some were tested, all take as long as these.
    """
    done, seconds = zip(*marks, strict=True)
    if not done[-1]:
        return None
    if done[-1] > n_learned:
        learning = float(np.interp(n_learned, done, seconds))
        return learning + (seconds[-1] - learning) * n_tested / (done[-1] - n_learned)
    half = float(np.interp(done[-1] / 2, done, seconds))
    power = min(max(math.log2(seconds[-1] / half), 1.0), 2.0) if half else 1.0
    learning = seconds[-1] * (n_learned / done[-1]) ** power
    return learning * (1 + power * n_tested / n_learned)
