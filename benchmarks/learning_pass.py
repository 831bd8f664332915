"""Compare the learning pass on given cells, on one core, with the same loop compiled by numba."""

from __future__ import annotations

import numba
import numpy as np
from measuring import best_seconds

from isokern import IKOGDClassifier, IsolationKernel
from isokern.learners.steps import Steps
from isokern.learners.weights import CellWeights

N_ROWS, N_PARTITIONINGS, N_REPEATS = 300_000, 100, 5


@numba.njit
def learn(cells, targets, weights, rate):
    """Update the weights as the paper's learner: hinge loss, constant steps."""
    n, t = cells.shape
    for r in range(n):
        score = 0.0
        for i in range(t):
            score += weights[i, cells[r, i]]
        if targets[r] * score / t < 1.0:
            for i in range(t):
                weights[i, cells[r, i]] += rate * targets[r]


def compare(n_cells):
    """Print the throughput of both loops and their ratio."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N_ROWS, 20))
    y = np.where(np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * rng.standard_normal(N_ROWS) > 0, 1, -1)
    kernel = IsolationKernel(n_partitionings=N_PARTITIONINGS, n_cells=n_cells, random_state=0).fit(X)
    cells = kernel.apply(X)

    targets = np.where(y == 1, 0, -1).astype(np.int32)

    starts = kernel.map_.starts
    rules = {
        name: Steps.of(IKOGDClassifier(kernel=kernel, schedule=name)).rule([0]) for name in ("constant", "adagrad")
    }

    def ours(schedule):
        weights = CellWeights.zeros(starts, 1, average=False, adagrad=schedule == "adagrad", naive=False)
        weights.learn(cells, targets, None, rules[schedule])
        return weights.values

    def theirs():
        weights = np.zeros((N_PARTITIONINGS, n_cells))
        learn(cells, y, weights, 0.5)
        return weights

    same = np.allclose(theirs().ravel(), ours("constant").ravel())
    works = (theirs, lambda: ours("constant"), lambda: ours("adagrad"))
    numba_time, constant, adagrad = (best_seconds(work, N_REPEATS) for work in works)
    numba_rate, ours_rate, adagrad_rate = (N_ROWS / seconds / 1e6 for seconds in (numba_time, constant, adagrad))
    print(
        f"n_cells={n_cells:<6} million rows/s: numba {numba_rate:.2f}   isokern {ours_rate:.2f}   "
        f"ratio {numba_time / constant:.2f}   AdaGrad {adagrad_rate:.2f}   same weights: {same}"
    )


if __name__ == "__main__":
    for n_cells in (256, 4096):
        compare(n_cells)
