"""A first look: how the Isolation Kernel turns a linear learner into a nonlinear one."""

from __future__ import annotations

import time

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from isokern import IsolationKernel


def compare_on_digits() -> None:
    """Print the accuracy of LinearSVC alone and on the Isolation Kernel's map, on scikit-learn's digits."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.3, random_state=0)
    print(f"Handwritten digits: {len(X_train)} rows to learn from, {len(X_test)} to test on")
    linear = LinearSVC(C=0.01)
    for name, model in {
        "LinearSVC": linear,
        'IsolationKernel("tree") + LinearSVC': make_pipeline(IsolationKernel(random_state=0), LinearSVC()),
        'IsolationKernel("voronoi") + LinearSVC': make_pipeline(
            IsolationKernel("voronoi", random_state=0), LinearSVC()
        ),
    }.items():
        started = time.perf_counter()
        accuracy = model.fit(X_train, y_train).score(X_test, y_test)
        print(f"  {name:<40} {accuracy:.3f} correct, {time.perf_counter() - started:.2f} s")


def map_many_rows() -> None:
    """Print how fast rows are mapped."""
    X = np.random.default_rng(0).standard_normal((1_000_000, 54), dtype=np.float32)
    kernel = IsolationKernel(n_cells=256, random_state=0).fit(X[:100_000])
    started = time.perf_counter()
    cells = kernel.apply(X)
    seconds = time.perf_counter() - started
    print(
        f"Throughput: {len(X):,} rows of {X.shape[1]} columns mapped to {cells.shape[1]} cells each in {seconds:.1f} s,"
    )
    print(f"  {len(X) / seconds:,.0f} rows a second, {cells.nbytes / len(X):.0f} bytes a row")


if __name__ == "__main__":
    compare_on_digits()
    map_many_rows()
