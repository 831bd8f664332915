"""Small data sets under the names of the paper's, for experiments to run on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from isokern.data import list_datasets, write_libsvm

N_TRAIN, N_TEST = 400, 200


@pytest.fixture
def small_data(tmp_path, monkeypatch):
    """Return a folder with a data set under its own name, a9a, and another by a stand-in, ijcnn1-train."""
    official = [replace(info, n_train=N_TRAIN, n_test=N_TEST, n_features=4) for info in list_datasets()]
    stand_ins = [replace(info, n_train=N_TRAIN, n_test=N_TEST, n_features=4) for info in list_datasets(stand_ins=True)]
    monkeypatch.setattr("isokern.data.catalogue.PAPER", tuple(official))
    monkeypatch.setattr("isokern.data.catalogue.STAND_INS", tuple(info for info in stand_ins if info.stands_for))
    write_libsvm(tmp_path / "a9a", *quadrants(0, N_TRAIN))
    write_libsvm(tmp_path / "a9a.t", *quadrants(1, N_TEST))
    write_libsvm(tmp_path / "ijcnn1.tr", *quadrants(2, N_TRAIN + N_TEST))
    return tmp_path


def quadrants(seed, n):
    """Return rows of four columns, and whether the first two have one sign: no sum of functions of single columns."""
    X = np.random.default_rng(seed).uniform(-1, 1, size=(n, 4)).round(4)
    X[:, 2:] /= 10
    return X, np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
