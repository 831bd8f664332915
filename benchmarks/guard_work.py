"""Do short work in the interpreter whose isokern is measured; started by guard.py.

In: names of cases, one a line, on standard input. Out: the CPU seconds of one run of each. A case is prepared, and run
once, before its first measured run. Only public functions are called, so that builds of different age can be compared.
"""

from __future__ import annotations

import subprocess
import sys
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

import numpy as np
from generated_rows import clouds, labels, sparse_rows

from isokern import IKOGDClassifier, IsolationKernel


def fitted(X, partitioning, n_cells):
    return IsolationKernel(partitioning, 100, n_cells, random_state=0, n_jobs=1).fit(X)


def mapping(X, partitioning, n_cells):
    kernel = fitted(X, partitioning, n_cells)
    return lambda: kernel.apply(X)


def pixels(n, d):
    return np.clip(np.rint(255 * clouds(n, d)), 0, 255)


def classifier(**options):
    return IKOGDClassifier(random_state=0, n_jobs=1, **options)


def fitting(n):
    X = clouds(n, 20)
    return lambda: classifier().fit(X, labels(X))


def predicting(n_cells, n):
    X = clouds(n, 54)
    model = classifier(n_cells=n_cells).fit(X[:20_000], labels(X[:20_000]))
    return lambda: model.predict(X)


def learning_pass(n):
    X = clouds(n, 20)
    kernel, y = fitted(X[:4096], "tree", 4096), labels(X)
    cells = kernel.apply(X)
    return lambda: classifier(kernel=kernel).partial_fit_cells(cells, y, classes=[False, True])


def streaming(n):
    X = clouds(n, 20)
    y = labels(X)

    def learn():
        model = classifier()
        for k in range(0, n, 1000):
            model.partial_fit_predict(X[k : k + 1000], y[k : k + 1000], classes=[False, True])

    return learn


def importing():
    return lambda: subprocess.run([sys.executable, "-c", "import isokern"], check=True)


WORK = {
    "tree map, psi = 256": lambda: mapping(clouds(20_000, 54), "tree", 256),
    "tree map, psi = 4096": lambda: mapping(clouds(10_000, 54), "tree", 4096),
    "tree map, psi = 16,384": lambda: mapping(clouds(20_000, 54), "tree", 16_384),
    "tree map, CSR, psi = 256": lambda: mapping(sparse_rows(20_000, 10_000), "tree", 256),
    "Voronoi map, psi = 256": lambda: mapping(clouds(3000, 20), "voronoi", 256),
    "Voronoi map, pixels, psi = 256": lambda: mapping(pixels(1500, 784), "voronoi", 256),
    "Voronoi map, CSR, psi = 256": lambda: mapping(sparse_rows(2000, 10_000), "voronoi", 256),
    "fit, default": lambda: fitting(2000),
    "predict, psi = 256": lambda: predicting(256, 40_000),
    "predict, psi = 16,384": lambda: predicting(16_384, 30_000),
    "learning pass": lambda: learning_pass(20_000),
    "stream": lambda: streaming(5000),
    "import": importing,
}


def cpu_seconds():
    """Return the CPU time of this process and of those that it has started and that have ended."""
    return sum(used.ru_utime + used.ru_stime for used in map(getrusage, (RUSAGE_SELF, RUSAGE_CHILDREN)))


def answer(names):
    """Run each named case once and yield its CPU seconds."""
    last, work = None, None
    for name in names:
        if name != last:
            last, work = name, WORK[name]()
            work()
        before = cpu_seconds()
        work()
        yield cpu_seconds() - before


if __name__ == "__main__":
    for seconds in answer(map(str.strip, sys.stdin)):
        print(seconds, flush=True)
