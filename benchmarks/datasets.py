"""Load the data sets that the benchmarks use."""

from __future__ import annotations

import os
from pathlib import Path

from isokern.data import load_dataset, read_libsvm

# The folder: $ISOKERN_DATA, or shared/data beside the checkout.
FOLDER = Path(os.environ.get("ISOKERN_DATA", Path(__file__).parents[2] / "shared" / "data"))

# Name in tables -> name for load_dataset.
NAMES = {
    "a9a": "a9a",
    "ijcnn1": "ijcnn1",
    "mnist": "mnist",
    "mnist, ten classes": "mnist",
    "covertype": "covertype",
    "rcv1 subset": "rcv1-subset",
    "news20 rebuilt": "news20-rebuilt",
}


def load(name):
    """Return X_train, y_train, X_test, y_test of a data set."""
    if name == "ijcnn1":  # the official split, under the names that the files have there
        parts = (read_libsvm(FOLDER / file, n_features=22) for file in ("ijcnn1.tr.xz", "ijcnn1.t.xz"))
        return tuple(array for part in parts for array in part)
    return load_dataset(NAMES[name], FOLDER, two_classes=not name.endswith("ten classes"), download=False)[:4]
