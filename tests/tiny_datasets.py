"""Small data sets of known structure under the paper's names, for tests of the experiments."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from isokern.data import list_datasets, write_libsvm
from isokern.experiments.records import Records


def band(n, seed=0):
    """Return rows that no line separates: class 1 is where the first column lies in the middle half."""
    X = np.random.default_rng(seed).random((n, 3))
    return X, np.where(abs(X[:, 0] - 0.5) < 0.25, 1, -1)


def quadrants(n, seed=0):
    """Return rows whose class, the sign of the product of two columns, is not additive in the columns."""
    X = np.random.default_rng(seed).uniform(-1, 1, size=(n, 4)).round(4)
    X[:, 2:] /= 10
    return X, np.where(X[:, 0] * X[:, 1] > 0, 1, -1)


def half_zeros(n, seed=0):
    """Return rows around two centres; about half of their values are 0."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.repeat([-1, 1], n // 2))
    X = (rng.normal(size=(n, 6)) + 3 * y[:, None]) * (rng.uniform(size=(n, 6)) < 0.5)
    X[:, -1] = 1.0
    return X, y


def crowded_corner(n, seed=0):
    """Return rows of which four in five lie in a corner, and the rest anywhere."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 6))
    X[rng.permutation(n)[: 4 * n // 5]] /= 5
    return X.round(4), np.where(np.arange(n) % 2, 1, -1)


def write_tiny(monkeypatch, folder, *names, n_train=400, n_test=200, make=band):
    """Write data sets, the paper's or stand-ins, to a folder, and tell the catalogue how small they are."""
    X, y = make(n_train + n_test)
    sizes = {"n_train": n_train, "n_test": n_test, "n_features": X.shape[1]}
    small = [
        replace(info, **sizes, n_classes=2, second_class=(), divisor=1.0) for info in list_datasets(stand_ins=True)
    ]
    n_papers = len(list_datasets())
    monkeypatch.setattr("isokern.data.catalogue.PAPER", tuple(small[:n_papers]))
    monkeypatch.setattr("isokern.data.catalogue.STAND_INS", tuple(info for info in small[n_papers:] if info.files))
    monkeypatch.setattr("isokern.data.catalogue.GENERATED", ())
    for info in small:
        if info.name in names:
            *_, stems = info._stems()
            parts = [slice(None)] if len(stems) == 1 else [slice(n_train), slice(n_train, None)]
            for stem, rows in zip(stems, parts, strict=True):
                write_libsvm(folder / stem, X[rows], y[rows])
    return folder


def measured(experiment, plan):
    """Return the records of all cells, measured in this process."""
    records = Records(None, plan)
    return [records.add(cell, experiment.measure(cell, plan)) for cell in experiment.cells(plan)]


def column(table, name):
    """Return a column of a table."""
    return [row[table.columns.index(name)] for row in table.rows]


def lines(table):
    """Return the lines of a table by their first two cells, each as a dict by column."""
    return {row[:2]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
