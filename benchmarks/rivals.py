"""Measure the rivals on a9a: test accuracy after one pass, CPU seconds, and OGD against the same loop in NumPy.

python benchmarks/rivals.py > docs/results/rivals-a9a.md
"""

from __future__ import annotations

import time

import numpy as np
from datasets import load
from measuring import circumstances, environment
from scipy import sparse
from scipy.spatial.distance import cdist

from isokern import AdaRakerClassifier, FOGDClassifier, IKOGDClassifier, NOGDClassifier, OGDClassifier

N_SEEDS = 3
GAUSSIAN = {"kernel": "gaussian", "gamma": 0.01}
LEARNERS = {
    "OGD, Laplacian, psi = 16": lambda seed: OGDClassifier(n_cells=16, random_state=seed),
    "OGD, the same, averaged": lambda seed: OGDClassifier(n_cells=16, average=True, random_state=seed),
    "OGD, Laplacian, gamma from data": lambda seed: OGDClassifier(random_state=seed),
    "NOGD, Laplacian, psi = 16": lambda seed: NOGDClassifier(n_cells=16, random_state=seed),
    "NOGD, Laplacian, gamma from data": lambda seed: NOGDClassifier(random_state=seed),
    "FOGD, Gaussian, gamma = 0.02": lambda seed: FOGDClassifier(gamma=0.02, random_state=seed),
    "FOGD, the same, orthogonal": lambda seed: FOGDClassifier(gamma=0.02, features="orthogonal", random_state=seed),
    "AdaRaker, 16 kernels": lambda seed: AdaRakerClassifier(random_state=seed),
    "IK-OGD, trees, default": lambda seed: IKOGDClassifier(random_state=seed),
}
for strategy, rate in {"random": 1, "forgetron": 1, "projectron": 1, "projectron++": 1, "bpas": 1, "bogd": 0.5}.items():
    LEARNERS[f"OGD, Gaussian, budget 100, {strategy}"] = lambda seed, strategy=strategy, rate=rate: OGDClassifier(
        **GAUSSIAN, budget=100, strategy=strategy, learning_rate=rate, random_state=seed
    )


def numpy_ogd(X, y, gamma, rate=0.5):
    """Return the number of support vectors of dual OGD, one row after the other."""
    support, alpha = np.empty_like(X), np.empty(len(X))
    n = 0
    for x, c in zip(X, y, strict=True):
        f = alpha[:n] @ np.exp(-gamma * cdist(x[None], support[:n], "cityblock")[0])
        if c * f < 1:
            support[n], alpha[n] = x, rate * c
            n += 1
    return n


def print_ratio(X, y, n=8000):
    """Print how much faster the core's loop is than NumPy's on the first rows."""
    gamma = np.log(16) / X.shape[1]
    started = time.process_time()
    n_support = numpy_ogd(X[:n], y[:n], gamma)
    middle = time.process_time()
    model = OGDClassifier(gamma=gamma, shuffle=False, n_jobs=1).fit(sparse.csr_array(X[:n]), y[:n])
    ended = time.process_time()
    theirs, ours = middle - started, ended - middle
    print(f"\nDual OGD on the first {n:,} rows, one core: NumPy {theirs:.2f} CPU s, isokern {ours:.2f},")
    print(f"ratio {theirs / ours:.0f};", end=" ")
    print(f"{n_support} and {model.n_support_} support vectors.")


def main():
    """Print the table."""
    X, y, X_test, y_test = load("a9a")
    print(f"# Online kernel learners on a9a\n\n{circumstances(environment())} `python benchmarks/rivals.py`.\n")
    print(f"One pass in random order, {N_SEEDS} seeds, sparse input.\n")
    print("| learner | test accuracy | lowest | highest | support vectors | CPU s, train and test |")
    print("|---|---|---|---|---|---|")
    train, test = sparse.csr_array(X), sparse.csr_array(X_test)
    for name, make in LEARNERS.items():
        accuracies, started = [], time.process_time()
        for seed in range(N_SEEDS):
            model = make(seed).fit(train, y)
            accuracies.append(model.score(test, y_test))
        seconds = (time.process_time() - started) / N_SEEDS
        low, high = min(accuracies), max(accuracies)
        print(
            f"| {name} | {np.mean(accuracies):.4f} | {low:.4f} | {high:.4f} | {model.n_support_:,} | {seconds:.2f} |",
            flush=True,
        )
    print_ratio(X, y)


if __name__ == "__main__":
    main()
