"""A first look: the learners on handwritten digits, then on a long stream. Run by ``make demo``."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.model_selection import train_test_split
from sklearn.svm import LinearSVC

from isokern import IKSVC, IKOGDClassifier

_BLOCK = 1000
_N_BLOCKS = 300


def compare_on_digits() -> None:
    """Print the accuracy of linear and Isolation Kernel learners on scikit-learn's digits."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
    print(f"Handwritten digits: {len(X_train)} rows to learn from, {len(X_test)} to test on")
    models = {
        "LinearSVC": LinearSVC(C=0.01),
        "IKOGDClassifier": IKOGDClassifier(random_state=0),
        'IKOGDClassifier("voronoi")': IKOGDClassifier("voronoi", random_state=0),
        "IKSVC": IKSVC(random_state=0),
    }
    for name, model in models.items():
        started = time.perf_counter()
        accuracy = model.fit(X_train, y_train).score(X_test, y_test)
        print(f"  {name:<28} {accuracy:6.1%} correct  {time.perf_counter() - started:5.2f} s")


def draw_block(rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return rows of four columns, and whether the first two lie in an odd or even ring around the origin."""
    X = rng.uniform(-1, 1, size=(_BLOCK, 4)).astype(np.float32)
    return X, (np.floor(4 * np.hypot(X[:, 0], X[:, 1])) % 2).astype(int)


def follow_stream() -> None:
    """Print how learners do along a generated stream: each block is predicted, then learned."""
    print(f"\nA stream of {_BLOCK * _N_BLOCKS:,} rows in blocks of {_BLOCK}, each predicted before it is learned")
    print(f"  {'rows':>9}   {'IKOGDClassifier':^24}   {'SGDClassifier':^24}")
    rng = np.random.default_rng(0)
    models: list[Any] = [IKOGDClassifier(n_cells=256, random_state=0), SGDClassifier(random_state=0)]
    n_correct, seconds = [0, 0], [0.0, 0.0]
    for k in range(_N_BLOCKS + 1):
        X, y = draw_block(rng)
        for i, model in enumerate(models):
            started = time.perf_counter()
            if k > 0:
                n_correct[i] += int(np.sum(model.predict(X) == y))
            model.partial_fit(X, y, classes=[0, 1])
            seconds[i] += time.perf_counter() - started
        if k > 0 and k % (_N_BLOCKS // 6) == 0:
            n = k * _BLOCK
            states = [f"{c / n:6.1%} {(n + _BLOCK) / s:11,.0f} rows/s" for c, s in zip(n_correct, seconds, strict=True)]
            print(f"  {n:>9,}   {states[0]:^24}   {states[1]:^24}")
    print(f"  {models[0].n_support_:,} support vectors absorbed into a model of constant size")


if __name__ == "__main__":
    compare_on_digits()
    follow_stream()
