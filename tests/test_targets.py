"""Test what labels and targets may be, and the errors that name the first bad one and the cure."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from isokern import IKSVC, IKOGDClassifier, IKOGDRegressor, OGDClassifier
from learning import make_rows

X = make_rows(6)[0]
SMALL = {"n_partitionings": 2, "n_cells": 2}
WORDS = ["a", "b", None, "a", None, "b"]
MISSING = {
    "list": (WORDS, "None"),
    "objects": (np.array(WORDS, dtype=object), "None"),
    "numbers and None": ([1, 0, None, 1, 0, 1], "None|NaN"),
    "NaN": ([1, 0, np.nan, 1, 0, 1], "NaN"),
    "NaN among objects": (np.array(["a", "b", np.nan, "a", "b", "a"], dtype=object), "nan"),
    "pandas": (pd.Series(WORDS, dtype="string"), "<NA>"),
    "pandas categories": (pd.Series(WORDS, dtype="category"), "nan"),
    "pandas integers": (pd.Series([1, 0, None, 1, 0, 1], dtype="Int64"), "NaN"),
    "polars": (pl.Series(WORDS), "None"),
    "pyarrow": (pa.chunked_array([WORDS]), "None"),
}


@pytest.mark.parametrize("make", [IKOGDClassifier, IKSVC, IKOGDRegressor])
@pytest.mark.parametrize(("y", "value"), MISSING.values(), ids=MISSING)
def test_a_missing_label_is_named_with_its_row_and_the_cure(y, value, make):
    message = rf"^y must not have missing values; got ({value}) first in row 2\. Drop those rows\.$"
    with pytest.raises(ValueError, match=message):
        make(**SMALL).fit(X, y)


def test_nan_among_text_is_not_a_class():
    with pytest.raises(ValueError, match="y must not have missing values; got nan first in row 1"):
        IKOGDClassifier(**SMALL).fit(X, ["a", np.nan, "b", "a", "b", "a"])


DATES = ["2024-02-28", "2024-02-29"] * 3
BAD_LABELS = {
    "text and numbers": (["a", 1, "b", 2, "a", 1], "all numbers or all text; got 'a' in row 0 and 1 in row 1"),
    "the same as objects": (
        np.array([1.5, "a"] * 3, dtype=object),
        "all numbers or all text; got 'a' in row 1 and 1.5 in",
    ),
    "dates": (np.array(DATES, dtype="M8[D]"), r"numbers or text; got dates or times \(datetime64\[D\]\)\. Convert"),
    "durations": (np.array([1, 2] * 3, dtype="m8[s]"), r"numbers or text; got dates or times \(timedelta64\[s\]\)"),
    "pandas dates": (pd.Series(pd.to_datetime(DATES)), "numbers or text; got dates or times"),
    "date objects": ([datetime.date(2024, 2, 29)] * 6, r"numbers or text; got datetime.date\(2024, 2, 29\) in row 0"),
    "bytes": (np.array([b"a", b"b"] * 3), "numbers or text; got bytes"),
    "lists": (np.array([[1], [1, 2], [2]] * 2, dtype=object), r"numbers or text; got \[1\] in row 0"),
    "infinite": ([0, 1, np.inf, 0, 1, 1], "finite; got inf first in row 2"),
}


@pytest.mark.parametrize(("y", "message"), BAD_LABELS.values(), ids=BAD_LABELS)
def test_labels_must_be_all_numbers_or_all_text(y, message):
    with pytest.raises(ValueError, match=f"^y must be {message}"):
        IKOGDClassifier(**SMALL).fit(X, y)


@pytest.mark.parametrize("y", [["1", "x", "2", "a", "b", "c"], np.array([1, "x", 2, 3, 4, 5], dtype=object)])
def test_text_as_a_target_is_named_with_its_row(y):
    with pytest.raises(ValueError, match=r"^y must be numbers for a regressor; got 'x' first in row 1\. Convert"):
        IKOGDRegressor(**SMALL).fit(X, y)


def test_dates_as_targets_are_refused():
    with pytest.raises(ValueError, match=r"^y must be numbers or text; got dates"):
        IKOGDRegressor(**SMALL).fit(X, np.array(DATES, dtype="M8[D]"))


GOOD_LABELS = {
    "objects": np.array([1, 0] * 3, dtype=object),
    "booleans": np.array([True, False] * 3, dtype=object),
    "nullable": pd.Series([1, 0] * 3, dtype="Int64"),
    "polars": pl.Series(["b", "a"] * 3),
    "NumPy strings": np.array(["b", "a"] * 3, dtype=np.dtypes.StringDType()),
}


@pytest.mark.parametrize("y", GOOD_LABELS.values(), ids=GOOD_LABELS)
def test_numbers_and_text_of_any_library_are_labels(y):
    expected = sorted(set(np.asarray(y).tolist()))
    assert IKOGDClassifier(**SMALL).fit(X, y).classes_.tolist() == expected


# Labels that float64 cannot tell apart

LARGE = 2**60 + np.arange(3)


def large_labels(n=90):
    return np.random.default_rng(0).normal(size=(n, 2)), np.resize(LARGE, n)


def test_nullable_integers_of_any_size_are_classes():
    X, y = large_labels()
    model = IKOGDClassifier(n_partitionings=5, random_state=0).fit(X, pd.Series(y, dtype="Int64"))
    assert model.classes_.tolist() == LARGE.tolist()


def test_large_labels_that_are_floats_are_refused():
    X, y = large_labels()
    with pytest.raises(ValueError, match=r"^y must be below 2\^53 .* Give such classes as integers or text"):
        IKOGDClassifier().fit(X, y.astype(float))


@pytest.mark.parametrize(("first", "later"), [(2**63, -1), (2**60, 1.0), (1.0, 2**60)])
def test_later_labels_are_refused_if_their_common_type_rounds_them(first, later):
    X, _ = large_labels()
    model = IKOGDClassifier(n_partitionings=5, n_initial=16, random_state=0)
    model.partial_fit(X, np.resize(np.array([first, first + 1]), len(X)))
    with pytest.raises(ValueError, match=r"^y must be of the type of the classes"):
        model.partial_fit(X, np.full(len(X), later))


def test_small_labels_may_change_their_type_of_number():
    X, y = large_labels()
    model = IKOGDClassifier(n_partitionings=5, random_state=0).partial_fit(X, y - 2**60)
    for dtype in (np.uint8, np.float64, np.int64):
        model.partial_fit(X, (y - 2**60).astype(dtype))
    assert model.classes_.tolist() == [0, 1, 2]


@pytest.mark.parametrize("classes", [[0, 1, np.nan], ["a", "b", None], ["a", np.nan], np.array([0.0, np.nan])], ids=str)
@pytest.mark.parametrize("learner", [IKOGDClassifier, OGDClassifier])
def test_classes_must_not_be_missing(learner, classes):
    X, _ = large_labels()
    with pytest.raises(ValueError, match=r"^classes must not have missing values"):
        learner().partial_fit(X, np.resize([0, 1], len(X)), classes=classes)


@pytest.mark.parametrize("learner", [IKOGDClassifier, IKSVC, OGDClassifier])
def test_class_weights_for_none_of_the_classes_are_an_error(learner):
    X, y = large_labels()
    with pytest.raises(ValueError, match=r"class_weight must have classes of y|are not in class_weight"):
        learner(class_weight={"a": 2.0}).fit(X, y)
