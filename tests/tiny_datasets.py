"""Small data sets under the paper's names, for experiments on them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from isokern.data import list_datasets, write_libsvm

N_TRAIN, N_TEST = 60, 40


def write_tiny(monkeypatch, folder, *names, n_features=6):
    """Write a file of two separable classes for each name, and let the catalogue expect its size; return the folder."""
    known = list_datasets(stand_ins=True)
    for part in ("PAPER", "STAND_INS"):
        infos = [_resized(info, n_features) if info.name in names else info for info in known]
        wanted = tuple(info for info in infos if (info.stands_for is None) == (part == "PAPER"))
        monkeypatch.setattr(f"isokern.data.catalogue.{part}", wanted)
    for info in (info for info in known if info.name in names):
        X, y = rows(n_features)
        stems = [file.removesuffix(".bz2").removesuffix(".xz") for file in info.files]
        parts = [slice(0, N_TRAIN), slice(N_TRAIN, None)] if len(stems) == 2 else [slice(None)]
        for stem, part in zip(stems, parts, strict=True):
            write_libsvm(folder / stem, X[part], y[part])
    return folder


def rows(n_features):
    """Return rows around two centres; half of their values, on average, are 0."""
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([-1, 1], (N_TRAIN + N_TEST) // 2))
    X = rng.normal(size=(len(y), n_features)) + 3 * y[:, None]
    X *= rng.uniform(size=X.shape) < 0.5
    X[:, -1] = 1.0
    return X, y


def _resized(info, n_features):
    return replace(info, n_train=N_TRAIN, n_test=N_TEST, n_features=n_features, divisor=1.0, second_class=())
