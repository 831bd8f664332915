"""Check that tables with words and missing values are read alike, whatever library they come from."""

from __future__ import annotations

import datetime
import decimal
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone

import isokern
from isokern import (
    IKSVC,
    IKOGDClassifier,
    IKOGDClassifierCV,
    IKOGDRegressor,
    IKOGDRegressorCV,
    IsolationKernel,
    OGDClassifier,
)
from isokern.frames import Columns

SMALL = {"n_partitionings": 10, "n_cells": 16, "random_state": 0}
N = 200
NAMES = ["age", "job", "member", "city"]


def make_columns(n=N, seed=0):
    """Return lists of numbers, words and truth values, each with missing ones."""
    rng = np.random.default_rng(seed)
    columns = {
        "age": np.round(rng.normal(40, 10, n), 1).tolist(),
        "job": rng.choice(["cook", "baker", "Müller"], n).tolist(),
        "member": (rng.random(n) < 0.5).tolist(),
        "city": rng.choice(["Rome", "Oslo", ""], n).tolist(),
    }
    for k, column in enumerate(columns.values()):
        column[k::11] = [None] * len(column[k::11])
    return columns


def as_dicts(columns):
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def as_categories(columns):
    words = {name: pd.Categorical(columns[name]) for name in ("job", "city")}
    return pd.DataFrame(columns | words).astype({"member": "boolean"})


def as_arrow_backed(columns):
    return pa.table(columns).to_pandas(types_mapper=pd.ArrowDtype)


def as_encoded_polars(columns):
    frame = pl.DataFrame(columns)
    return frame.with_columns(
        pl.col("job").cast(pl.Categorical), pl.col("city").cast(pl.Enum(["Oslo", "", "Rome", *"abcd"]))
    )


def as_dictionaries(columns):
    table = pa.table(columns)
    for name in ("job", "city"):
        table = table.set_column(table.column_names.index(name), name, table[name].dictionary_encode())
    return table


FORMS = {
    "pandas": pd.DataFrame,
    "pandas, object": lambda columns: pd.DataFrame(columns, dtype=object),
    "pandas, string": lambda columns: pd.DataFrame(columns).astype(
        {"job": "string", "city": "string", "age": "Float64"}
    ),
    "pandas, category": as_categories,
    "pandas, Arrow": as_arrow_backed,
    "polars": pl.DataFrame,
    "polars, Categorical and Enum": as_encoded_polars,
    "pyarrow": pa.table,
    "pyarrow, dictionaries": as_dictionaries,
    "pyarrow, chunks": lambda columns: pa.concat_tables([pa.table(columns)[:50], pa.table(columns)[50:]]),
    "dicts": as_dicts,
    "objects": lambda columns: np.array(list(columns.values()), dtype=object).T,
    "lists": lambda columns: [list(row) for row in zip(*columns.values(), strict=True)],
}
every_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


@pytest.fixture(scope="module")
def columns():
    return make_columns()


@every_form
def test_every_library_gives_the_same_cells(form, columns):
    expected = IsolationKernel(**SMALL).fit(pd.DataFrame(columns))
    found = IsolationKernel(**SMALL).fit(form(columns))
    np.testing.assert_array_equal(found.is_categorical_, [False, True, False, True])
    np.testing.assert_array_equal(found.apply(form(columns)), expected.apply(pd.DataFrame(columns)))
    if hasattr(found, "feature_names_in_"):
        assert found.feature_names_in_.tolist() == NAMES
        np.testing.assert_array_equal(expected.apply(form(columns)), found.apply(form(columns)))


@every_form
def test_every_library_has_the_same_codes_for_numbers_and_truth_values(form):
    """The category 1 is "1", also as 1.0 beside a missing value, and True is "true"."""
    values = {
        "age": [1, 2, None, 10],
        "job": ["1", "2", None, "10"],
        "member": [True, False, None, True],
        "city": list("abcd"),
    }
    table = Columns.of(form(values), NAMES).encoded(np.array([True, True, True, True]))
    np.testing.assert_array_equal(table[:, 0], table[:, 1])
    words = Columns.of([["true"], ["false"], [None], ["true"]]).encoded(np.array([True]))
    np.testing.assert_array_equal(table[:, 2], words[:, 0])


def test_names_of_numbers():
    numbers = [1, 1.0, np.float32(1), np.int8(1), decimal.Decimal("1.00"), "1", b"1"]
    codes = Columns.of([[number] for number in numbers]).encoded(np.array([True]))
    assert len(set(codes.ravel())) == 1
    others = [[0.5], ["0.5"], [np.float64(0.5)], [True], ["true"], ["True"], ["1.0"], ["01"]]
    assert len(set(Columns.of(others).encoded(np.array([True])).ravel())) == 5


def test_codes_are_the_same_everywhere():
    codes = Columns.of([["a"], [""], ["Müller"], ["a category of more than 16 bytes"], [None]]).encoded(
        np.array([True])
    )
    assert codes[:4, 0].tolist() == EXPECTED_CODES
    assert np.isnan(codes[4, 0])


EXPECTED_CODES = [338570173, 1, 319879008, 2274404381]


# What trees do with them


def test_a_category_not_seen_in_fit_is_mapped_and_the_order_of_categories_is_irrelevant(columns):
    kernel = IsolationKernel(**SMALL).fit(as_categories(columns))
    frame = as_categories(columns)
    frame["job"] = frame["job"].cat.reorder_categories(["cook", "Müller", "baker"])
    np.testing.assert_array_equal(kernel.apply(frame), kernel.apply(as_categories(columns)))
    new = pd.DataFrame(columns).assign(job="smith")
    assert kernel.apply(new).shape == (N, 10)
    assert (kernel.similarity(new[:1], new[:1]) == 1).all()


@pytest.mark.parametrize("scale", [None, "minmax", "standard", "maxabs"])
def test_scaling_leaves_categories_and_empty_columns_alone(scale, columns):
    frame = pd.DataFrame(columns).assign(empty=np.nan)
    kernel = IsolationKernel(**SMALL, scale=scale).fit(frame)
    if scale is not None:
        assert kernel.map_.scaling.offset[[1, 3, 4]].tolist() == [0, 0, 0]
        assert kernel.map_.scaling.divisor[[1, 3, 4]].tolist() == [1, 1, 1]
    assert (np.diag(kernel.similarity(frame)) == 1).all()


ODD = {
    "one category only": lambda frame: frame.assign(job="cook"),
    "a column without values": lambda frame: frame.assign(age=np.nan),
    "words without values": lambda frame: frame.assign(job=pd.Series([None] * len(frame), dtype="string")),
    "nothing but missing values": lambda frame: frame.assign(age=np.nan, job=np.nan, member=np.nan, city=np.nan),
}


@pytest.mark.parametrize("change", ODD.values(), ids=ODD)
@pytest.mark.parametrize("where", ["train", "test", "both"])
def test_missing_values_and_single_categories_in_train_or_test(change, where, columns):
    frame = pd.DataFrame(columns).astype({"job": "category", "city": "category"})
    odd = change(frame).astype({"job": "category", "city": "category"})
    train, test = (odd if where in (part, "both") else frame for part in ("train", "test"))
    model = IKOGDClassifier(**SMALL).fit(train, np.arange(N) % 2)
    assert set(model.predict(test)) <= {0, 1}
    assert np.isfinite(model.decision_function(test)).all()


def test_categories_by_name_position_and_mask(columns):
    frame = pd.DataFrame(columns)
    numbers = frame.assign(job=pd.factorize(frame["job"])[0], city=3)[["age", "job", "city"]].fillna(0)
    kernels = [
        IsolationKernel(**SMALL, categorical_features=given).fit(numbers)
        for given in (["job"], [1], [False, True, False], np.array([1]))
    ]
    cells = [kernel.apply(numbers) for kernel in kernels]
    assert all(kernel.is_categorical_.tolist() == [False, True, False] for kernel in kernels)
    assert all((other == cells[0]).all() for other in cells)
    array = IsolationKernel(**SMALL, categorical_features=[1]).fit(numbers.to_numpy())
    np.testing.assert_array_equal(array.apply(numbers.to_numpy()), cells[0])
    assert IsolationKernel(**SMALL).fit(numbers).is_categorical_ is None
    assert IsolationKernel(**SMALL, categorical_features=None).fit(numbers).is_categorical_ is None


def test_numbers_as_objects_are_numbers(columns):
    X = np.random.default_rng(0).normal(size=(50, 3))
    plain, objects = IsolationKernel(**SMALL).fit(X), IsolationKernel(**SMALL).fit(X.astype(object))
    assert objects.is_categorical_ is None
    np.testing.assert_array_equal(plain.apply(X), objects.apply(X.astype(object)))


# Estimators

LEARNERS = {
    "IKOGD": IKOGDClassifier(**SMALL),
    "IKOGD, kernel": IKOGDClassifier(kernel=IsolationKernel(**SMALL)),
    "IKSVC": IKSVC(**SMALL),
    "CV": IKOGDClassifierCV(n_partitionings=10, n_cells=[4, 16], cv=3, random_state=0),
    "CV of a regressor": IKOGDRegressorCV(n_partitionings=10, n_cells=[4, 16], cv=3, random_state=0),
    "regressor": IKOGDRegressor(**SMALL),
}


@pytest.mark.parametrize("learner", LEARNERS.values(), ids=LEARNERS)
def test_learners_take_them_and_learn_from_words(learner, columns, tmp_path):
    frame, y = pd.DataFrame(columns), (np.array(columns["job"]) == "cook").astype(int)
    model = clone(learner).fit(frame, y)
    assert model.score(frame, y) > 0.8
    np.testing.assert_array_equal(model.predict(frame[NAMES[::-1]]), model.predict(frame))
    np.testing.assert_array_equal(model.predict(as_dicts(columns)), model.predict(frame))
    isokern.save(model, tmp_path / "model")
    for again in (isokern.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict(pl.DataFrame(columns)), model.predict(frame))


def test_a_fitted_kernel_decides_on_categories_and_on_the_order_of_columns(columns):
    frame, y = pd.DataFrame(columns), np.arange(N) % 2
    kernel = IsolationKernel(**SMALL).fit(frame)
    model, other = (IKOGDClassifier(kernel=kernel, random_state=0) for _ in range(2))
    scores = model.fit(frame[NAMES[::-1]], y).decision_function(frame)
    np.testing.assert_array_equal(scores, other.fit(frame, y).decision_function(frame))
    by_cells = IKOGDClassifier(kernel=kernel).partial_fit_cells(kernel.apply(frame), y)
    assert by_cells.predict(frame).shape == (N,)


@pytest.mark.parametrize("size", [1, 7, 60])
def test_any_split_of_a_stream_gives_the_same_model(size, columns):
    frame, y = pd.DataFrame(columns), (np.array(columns["job"]) == "cook").astype(int)
    whole = IKOGDClassifier(**SMALL, n_initial=50).partial_fit(frame, y)
    parts = IKOGDClassifier(**SMALL, n_initial=50)
    for begin in range(0, N, size):
        parts.partial_fit(frame[begin : begin + size], y[begin : begin + size])
    np.testing.assert_array_equal(parts.decision_function(frame), whole.decision_function(frame))


def test_categories_are_counted_in_the_rows_of_the_map(columns, tmp_path):
    frame, y = pd.DataFrame(columns), np.arange(N) % 2
    model = IKOGDClassifier(**SMALL).fit(frame, y)
    counts = frame["job"].value_counts()
    found = model.categories_[1]
    assert found.n == 3
    assert dict(zip(found.names, found.counts.tolist(), strict=True)) == counts.to_dict()
    assert (np.diff(found.counts) <= 0).all()
    isokern.save(model, tmp_path / "model")
    assert isokern.load(tmp_path / "model").categories_[3].names == model.categories_[3].names
    expected = IKOGDClassifier(**SMALL).fit(frame[:60], y[:60]).categories_
    for size in (7, 60, 200):
        stream = IKOGDClassifier(**SMALL, n_initial=60)
        for begin in range(0, N, size):
            stream.partial_fit(frame[begin : begin + size], y[begin : begin + size])
        for j in (1, 3):
            assert stream.categories_[j].names == expected[j].names
            assert stream.categories_[j].counts.tolist() == expected[j].counts.tolist()


# Errors: name -> (function of a frame of good columns, error)

BAD = {
    "dates": (
        lambda frame: frame.assign(age=pd.Timestamp("2020-01-01")),
        r"dates or times; got Datetime.* in column 0 \('age'\)",
    ),
    "dates in polars": (
        lambda frame: pl.from_pandas(frame).with_columns(age=datetime.date(2020, 1, 1)),
        r"dates or times; got Date in column 0 \('age'\)",
    ),
    "dates among objects": (
        lambda frame: frame.assign(job=[datetime.date(2020, 1, 1)] * len(frame)),
        r"dates or times; got datetime.date\(2020, 1, 1\) in column 1 \('job'\), row 0",
    ),
    "an array of dates": (
        lambda frame: np.full((N, 4), np.datetime64("2020-01-01")),
        "dates or times; got .* in column 0",
    ),
    "infinity": (lambda frame: frame.assign(age=np.inf), r"finite; got infinity in column 0 \('age'\), first in row 0"),
    "another name": (lambda frame: frame.rename(columns={"job": "work"}), "feature names should match"),
    "a column less": (lambda frame: frame[["age", "job"]], "feature names should match"),
    "sparse rows": (lambda frame: sparse.csr_array((N, 4)), "X must be dense, because it has categorical columns"),
    "words for numbers": (
        lambda frame: frame.assign(age="old"),
        r"^X must be a number in column 0 \('age'\); got 'old' in row 0\. .*categorical_features",
    ),
    "another key": (lambda frame: [{"age": 1, "shoe": 44}], "columns seen in fit; got 'shoe' besides them"),
    "half of a character": (lambda frame: [{"job": "\ud800"}], r"text in UTF-8; got '.ud800' in column 1"),
}


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
@pytest.mark.parametrize(("spoil", "message"), BAD.values(), ids=BAD)
def test_errors_name_the_column_and_the_cure(spoil, message, columns):
    frame = pd.DataFrame(columns)
    kernel = IsolationKernel(**SMALL).fit(frame)
    with pytest.raises(ValueError, match=message):
        kernel.apply(spoil(frame))


@pytest.mark.parametrize("value", [[1], {"a": 1}, 1j], ids=str)
def test_values_that_are_neither_numbers_nor_text_are_an_error(value, columns):
    frame = pd.DataFrame(columns).assign(job=[value] * N)
    with pytest.raises(TypeError, match=r"a string or a number in column 1 \('job'\); got .* in row 0"):
        IsolationKernel().fit(frame)


def test_a_list_of_dicts_and_other_things_is_an_error():
    with pytest.raises(TypeError, match="X must be a list of dicts only"):
        IsolationKernel().fit([{"a": 1}, 3])


@every_form
def test_a_column_without_values_counts_as_numbers(form):
    columns = make_columns(20) | {"age": [None] * 20}
    kernel = IsolationKernel(**SMALL).fit(form(columns))
    assert not kernel.is_categorical_[0]


@pytest.mark.parametrize("make", [lambda: IsolationKernel("voronoi"), OGDClassifier], ids=["Voronoi cells", "OGD"])
def test_only_trees_take_words_and_missing_values(make, columns):
    frame, y = pd.DataFrame(columns), np.arange(N) % 2
    with pytest.raises(
        ValueError, match=r'numbers; got text or categories in column 1 \(\'job\'\)\. .*partitioning="tree"'
    ):
        make().fit(frame, y)
    with pytest.raises(
        ValueError, match=r"got NaN in column 0 \('age'\), first in row 0\. Isolation trees.*SimpleImputer"
    ):
        make().fit(frame[["age"]], y)


@pytest.mark.parametrize("features", ["auto", 3, [[1]], [1, "a"], [None], {"a": 1}])
def test_wrong_categorical_features_are_an_error(features):
    with pytest.raises(ValueError, match='categorical_features must be "from_dtype", None, or a list'):
        IsolationKernel(categorical_features=features).fit(np.zeros((5, 2)))


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ([2], "positions below the number"),
        (["c"], "names of columns"),
        ([True], "2 booleans, one for each column; got 1"),
    ],
)
def test_categorical_features_that_are_not_there_are_an_error(features, message):
    with pytest.raises(ValueError, match=f"categorical_features must .*{message}"):
        IsolationKernel(categorical_features=features).fit(pd.DataFrame(np.zeros((5, 2)), columns=["a", "b"]))


def test_intervals_of_pandas_cut_are_categories():
    x = np.linspace(0, 1, 60)
    frame = pd.DataFrame({"x": pd.cut(x, 3)})
    names = pd.DataFrame({"x": frame.x.astype(str)})
    kernels = [IsolationKernel(n_partitionings=5, n_cells=4, random_state=0).fit(table) for table in (frame, names)]
    assert np.array_equal(kernels[0].apply(frame), kernels[1].apply(names))


TWICE = {
    "pandas": pd.DataFrame(np.zeros((3, 3)), columns=["a", "b", "a"]),
    "pyarrow": pa.table([[0.0], [1.0], [2.0]], names=["a", "b", "a"]),
}


@pytest.mark.parametrize("frame", TWICE.values(), ids=TWICE)
def test_columns_of_one_name_are_an_error(frame):
    with pytest.raises(ValueError, match="X must have columns of different names; got 'a' more than once"):
        IsolationKernel().fit(frame)


def test_periods_are_refused_like_dates():
    frame = pd.DataFrame({"x": pd.period_range("2020", periods=3)})
    with pytest.raises(ValueError, match="X must not hold dates or times; got Period"):
        IsolationKernel().fit(frame)


def test_a_record_batch_is_read_like_a_table(columns):
    table = pa.Table.from_pandas(pd.DataFrame(columns))
    (batch,) = table.to_batches()
    kernel = IsolationKernel(**SMALL).fit(batch)
    assert np.array_equal(kernel.apply(table), kernel.apply(batch.select(batch.schema.names[::-1])))
    assert kernel.is_categorical_.any()


def test_a_lazy_frame_is_an_error_with_the_cure():
    with pytest.raises(ValueError, match=r"X must be in memory; got a LazyFrame\. Call its method collect first"):
        IsolationKernel().fit(pl.DataFrame({"a": [1.0, 2.0]}).lazy())


def test_integers_of_any_size_are_categories_but_not_numbers():
    frame = pd.DataFrame({"a": [10**400, 1] * 10})
    assert IsolationKernel(n_partitionings=2, categorical_features=[0]).fit(frame).categories_[0].n == 2
    with pytest.raises(ValueError, match=r"X must fit into float64 in column 0 \('a'\); got 1000.* in row 0"):
        IsolationKernel().fit(frame)


def test_a_struct_is_not_a_category():
    with pytest.raises(TypeError, match=r"a string or a number in column 0 \('a'\)"):
        IsolationKernel().fit(pl.DataFrame({"a": [{"x": 1}] * 5}))
