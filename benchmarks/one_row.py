"""Measure the latency of predicting one row, relative to scikit-learn's validate_data alone.

python benchmarks/one_row.py
"""

from __future__ import annotations

import timeit

import numpy as np
from sklearn.utils.validation import validate_data

from isokern import IKOGDClassifier

N_CALLS, N_REPEATS = 2000, 7


def microseconds(call):
    """Return the mean time of a call in the fastest repetition."""
    return min(timeit.repeat(call, number=N_CALLS, repeat=N_REPEATS)) / N_CALLS * 1e6


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 54))
    model = IKOGDClassifier(n_cells=256, random_state=0).fit(X, X[:, 0] * X[:, 1] > 0)
    row = X[:1].copy()
    check = microseconds(lambda: validate_data(model, row, reset=False, dtype=[np.float64, np.float32]))
    for name in ("decision_function", "predict", "predict_proba"):
        seconds = microseconds(lambda name=name: getattr(model, name)(row))
        print(f"{name}: {seconds:.1f} microseconds, {seconds / check:.2f} of validate_data's {check:.1f}")
