"""Load the data sets that the benchmarks use."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import sklearn.datasets
from sklearn.model_selection import train_test_split

from isokern.data import load_dataset, read_csv, read_libsvm

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
# Random training rows of covertype, with all of its test rows.
SAMPLES = {"covertype, 10,000 rows": 10_000, "covertype, 100,000 rows": 100_000}
# Name in tables -> file beside the folder, label column, columns to leave out.
TABLES = {
    "adult": ("tables/adult.csv.xz", "income", []),
    "churn": ("tables/churn.csv.xz", "Churn?", []),
    "letter": ("tables/letter.csv.xz", "y", []),
    "gas_sensor": ("streams/gas_sensor.csv.xz", "gas", ["concentration"]),
    "kddcup99": ("streams/kddcup99_10.csv.xz", "label", []),
}
BUNDLED = {name: getattr(sklearn.datasets, f"load_{name}") for name in ("digits", "breast_cancer", "wine", "iris")}
MOST_ROWS = 50_000  # of a table; of more, a random sample
FEWEST_ROWS = 5  # of a class of a table, so that each part of a split, and of a peer's own split, has some of them


def load(name):
    """Return X_train, y_train, X_test, y_test of a data set; without an official split, 80 % of the rows are to train.

    Text columns make X a pandas frame.
    """
    if name in NAMES:
        return load_dataset(NAMES[name], FOLDER, two_classes=not name.endswith("ten classes"), download=False)[:4]
    if name in SAMPLES:
        return some_rows(load("covertype"), SAMPLES[name])
    X, y = _read(name)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, stratify=y, random_state=0)
    return X_train, y_train, X_test, y_test


def some_rows(data, n_train, n_test=None):
    """Return random training and test rows; None means all."""
    X, y, X_test, y_test = data
    return *_sample(X, y, n_train), *_sample(X_test, y_test, n_test)


def _read(name):
    """Return all rows and labels of a data set without an official split."""
    if name in BUNDLED:
        return BUNDLED[name](return_X_y=True)
    if name == "url subset":
        X, y = read_libsvm(FOLDER / "url_subset.xz", n_features=3_231_961)
        return X, y.astype(int)
    file, label, drop = TABLES[name]
    X, y = read_csv(FOLDER.parent / file, label=label, drop=drop)
    X = X if isinstance(X, np.ndarray) else X.to_pandas()
    y = y.astype(int if y.dtype == float else str)
    X, y = _sample(X, y, MOST_ROWS)
    classes, counts = np.unique(y, return_counts=True)
    return take(X, y, np.isin(y, classes[counts >= FEWEST_ROWS]))


def _sample(X, y, n):
    """Return n random rows in their order, or all if there are not more."""
    if n is None or n >= len(y):
        return X, y
    return take(X, y, np.sort(np.random.RandomState(0).permutation(len(y))[:n]))


def take(X, y, rows):
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows], y[rows]
