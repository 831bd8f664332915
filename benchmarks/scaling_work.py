"""Define the work, on generated rows, whose cost is measured against its size."""

from __future__ import annotations

import ctypes
from functools import partial
from pathlib import Path

from generated_rows import clouds, labels, sparse_rows
from peak import Mapping

from isokern import IKOGDClassifier, IsolationKernel

# -- work: functions of the sizes that return the function to be timed


def mapping(partitioning, rows, *, n, d, t, psi, threads, n_fit):
    X = rows(n_fit + n, d)
    return Mapping(_fitted(partitioning, X[:n_fit], t, psi, threads), X[n_fit:])


def fitting_and_mapping(partitioning, *, n, d, t, psi, threads, n_fit):
    X = clouds(n_fit + n, d)
    return lambda: _fitted(partitioning, X[:n_fit], t, psi, threads).apply(X[n_fit:])


def learning(*, n, d, t, psi, threads, n_fit):
    X = clouds(n_fit + n, d)
    kernel = _fitted("tree", X[:n_fit], t, psi, threads)
    cells = kernel.apply(X[n_fit:])
    y = labels(X[n_fit:])
    return lambda: IKOGDClassifier(kernel=kernel).partial_fit_cells(cells, y, classes=[False, True])


def _fitted(partitioning, X, t, psi, threads):
    return IsolationKernel(partitioning, t, psi, n_jobs=threads, random_state=0).fit(X)


MAPS = {
    "tree map": partial(mapping, "tree", clouds),
    "Voronoi map": partial(mapping, "voronoi", clouds),
    "tree map, CSR": partial(mapping, "tree", sparse_rows),
    "Voronoi map, CSR": partial(mapping, "voronoi", sparse_rows),
}
WORK = {**MAPS, "learning pass": learning}
MEMORY_WORK = {
    "tree map": partial(fitting_and_mapping, "tree"),
    "Voronoi map": partial(fitting_and_mapping, "voronoi"),
    "learning pass": learning,
}


# -- memory


def peak_megabytes(prepare, sizes):
    """Return the peak memory of some work, without its input and output."""
    prepare(n=100, d=2, t=2, psi=4, threads=sizes["threads"], n_fit=100)()  # loads what is loaded only once
    work = prepare(**sizes)
    ctypes.CDLL(None).malloc_trim(0)  # memory freed by the preparation would be reused unseen
    Path("/proc/self/clear_refs").write_text("5")  # resets the peak
    before = _megabytes("VmRSS")
    result = work()
    return _megabytes("VmHWM") - before - getattr(result, "nbytes", 0) / 2**20


def _megabytes(field):
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines[field].split()[0]) / 1024
