"""The data sets that figures in the docs are measured on, read from a folder of LIBSVM files."""

from __future__ import annotations

import lzma
import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_svmlight_file

# The folder: $ISOKERN_DATA, or shared/data beside the checkout.
FOLDER = Path(os.environ.get("ISOKERN_DATA", Path(__file__).parents[2] / "shared" / "data"))


class Source(NamedTuple):
    """Where a data set comes from and how it is prepared."""

    files: tuple[str, ...]  # train and test; one file is cut 80:20 at random
    n_columns: int
    is_dense: bool
    divisor: float = 1.0
    positive: tuple[int, ...] = ()  # the labels of the second of two classes, where there are more


SOURCES = {
    "a9a": Source(("a9a.xz", "a9a.t.xz"), 123, True),
    "ijcnn1": Source(("ijcnn1.tr.xz",), 22, True),
    "mnist": Source(("mnist.xz", "mnist.t.xz"), 780, True, divisor=255.0, positive=(3, 4, 6, 7, 9)),
    "mnist, ten classes": Source(("mnist.xz", "mnist.t.xz"), 780, True, divisor=255.0),
    "covertype": Source(("covtype.binary.scale.train.xz", "covtype.binary.scale.test.xz"), 54, True),
    "rcv1 subset": Source(("rcv1_subset.train.xz", "rcv1_subset.test.xz"), 47_236, False),
    "news20 rebuilt": Source(("news20_rebuilt.train.xz", "news20_rebuilt.test.xz"), 1_350_639, False),
}


def load(name):
    """Return X_train, y_train, X_test, y_test of a data set."""
    source = SOURCES[name]
    parts = []
    for file in source.files:
        with lzma.open(FOLDER / file) as stream:
            X, y = load_svmlight_file(stream, n_features=source.n_columns)
        X = X.toarray() if source.is_dense else X
        X /= source.divisor
        parts += [X, np.isin(y, source.positive).astype(int) if source.positive else y.astype(int)]
    if len(parts) == 4:
        return parts
    X, y = parts
    order = np.random.RandomState(0).permutation(len(y))
    train, test = order[: int(0.8 * len(y))], order[int(0.8 * len(y)) :]
    return [X[train], y[train], X[test], y[test]]
