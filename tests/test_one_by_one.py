"""OneByOne: models that learn one row at a time, as learners of blocks."""

from __future__ import annotations

import math
from unittest.mock import Mock, call

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import is_classifier, is_regressor
from sklearn.exceptions import NotFittedError

from isokern.data import blocks
from isokern.evaluation import OneByOne, Prequential, holdout, prequential
from learning import make_rows


class NearestMean:
    """A classifier like those of river: it predicts the class whose mean is nearest."""

    def __init__(self):
        self.sums, self.counts = {}, {}

    def learn_one(self, x, y):
        sums = self.sums.setdefault(y, {})
        for name, value in x.items():
            sums[name] = sums.get(name, 0.0) + value
        self.counts[y] = self.counts.get(y, 0) + 1

    def predict_proba_one(self, x):
        nearness = {y: math.exp(-self._distance(x, y)) for y in self.counts}
        return {y: value / sum(nearness.values()) for y, value in nearness.items()}

    def predict_one(self, x):
        shares = self.predict_proba_one(x)
        return max(shares, key=shares.get, default=None)

    def _distance(self, x, y):
        means = {name: value / self.counts[y] for name, value in self.sums[y].items()}
        return sum((x.get(name, 0.0) - means.get(name, 0.0)) ** 2 for name in {*x, *means})


class Mean:
    """A regressor like those of river, without probabilities."""

    def __init__(self):
        self.n, self.mean = 0, 0.0

    def learn_one(self, x, y):
        self.n += 1
        self.mean += (y - self.mean) / self.n

    def predict_one(self, x):
        return self.mean


def make_blocks():
    return list(blocks(*make_rows(120), 20))


def test_prequential_wraps_such_a_model():
    twin, n_correct, counts = NearestMean(), 0, []
    for k, (X, y) in enumerate(make_blocks()):
        rows = [dict(enumerate(row)) for row in X.tolist()]
        if k > 0:
            n_correct += sum(twin.predict_one(x) == label for x, label in zip(rows, y, strict=True))
        counts.append(n_correct)
        for x, label in zip(rows, y.tolist(), strict=True):
            twin.learn_one(x, label)
    model = NearestMean()
    records = list(prequential(model, make_blocks()))
    assert [r.n_correct for r in records] == counts
    assert [r.n_seen for r in records] == list(range(0, 120, 20))
    assert model.counts == twin.counts


def test_holdout_wraps_such_a_model():
    X, y = make_rows(120)
    record = holdout(NearestMean(), (X[:60], y[:60]), (X[60:], y[60:]), metrics=["auc", "log_loss", "f1"])
    assert record.accuracy > 0.6 and record.metrics["auc"] > 0.7 and record.metrics["log_loss"] < math.log(2)


FRAME = {"height": [1.5, 2.5], "name": ["x", "y"]}
FRAME_DICTS = [{"height": 1.5, "name": "x"}, {"height": 2.5, "name": "y"}]
ROWS = {
    "dense": (np.array([[0.0, 2.0], [5.0, 6.0]], dtype=np.float32), [{0: 0.0, 1: 2.0}, {0: 5.0, 1: 6.0}]),
    "list": ([[5, 6], [7, 8]], [{0: 5, 1: 6}, {0: 7, 1: 8}]),
    "sparse": (sparse.csr_array([[0.0, 2.0], [0.0, 0.0]]), [{1: 2.0}, {}]),
    "pandas": (pd.DataFrame(FRAME), FRAME_DICTS),
    "polars": (pl.DataFrame(FRAME), FRAME_DICTS),
    "pyarrow": (pa.table(FRAME), FRAME_DICTS),
}


@pytest.mark.parametrize(("X", "dicts"), ROWS.values(), ids=ROWS)
def test_a_row_becomes_a_dict_of_plain_values(X, dicts):
    model = Mock(spec=["learn_one", "predict_one"])
    model.predict_one.return_value = 0
    OneByOne(model).partial_fit(X, ["a", "b"]).predict(X)
    assert model.learn_one.call_args_list == [call(dicts[0], "a"), call(dicts[1], "b")]
    assert model.predict_one.call_args_list == [call(dicts[0]), call(dicts[1])]
    values = [value for learned in model.learn_one.call_args_list for value in learned.args[0].values()]
    assert {type(value) for value in values} <= {int, float, str}


def test_probabilities_have_a_column_for_each_class_in_order():
    model = OneByOne(NearestMean()).partial_fit([[0.0], [3.0]], ["b", "a"], classes=["a", "b", "c"])
    assert model.classes_.tolist() == ["a", "b", "c"]
    shares = model.predict_proba([[0.1]])
    assert np.allclose(shares.sum(), 1) and shares[0, 1] > shares[0, 0] > shares[0, 2] == 0


def test_classes_of_a_fitted_model_are_found_in_its_probabilities():
    model = NearestMean()
    model.learn_one({0: 1.0}, "b")
    model.learn_one({0: 0.0}, "a")
    wrapped = OneByOne(model)
    assert wrapped.predict_proba([[0.0]]).shape == (1, 2)
    assert wrapped.classes_.tolist() == ["a", "b"]


def test_only_a_model_with_probabilities_has_predict_proba():
    assert hasattr(OneByOne(NearestMean()), "predict_proba")
    assert not hasattr(OneByOne(Mean()), "predict_proba")
    with pytest.raises(ValueError, match='must not name "log_loss" for Mean, which has no predict_proba'):
        prequential(Mean(), [], metrics="log_loss")


def test_a_model_that_predicts_none_is_not_fitted():
    with pytest.raises(NotFittedError, match="NearestMean predicts None"):
        OneByOne(NearestMean()).predict([[1.0]])


def test_a_fitted_model_predicts_the_first_block():
    X, y = make_rows(20)
    model = NearestMean()
    OneByOne(model).partial_fit(X, y)
    (record,) = prequential(model, [(X, y)])
    assert record.n_seen == 20


def test_a_model_is_a_classifier_by_default():
    assert is_classifier(OneByOne(Mean()))
    assert is_regressor(OneByOne(Mean(), kind="regressor"))
    with pytest.raises(ValueError, match='kind must be None, "classifier" or "regressor"; got \'both\''):
        OneByOne(Mean(), kind="both").partial_fit([[1.0]], [1.0])


def test_a_regressor_is_evaluated_as_one():
    X, _ = make_rows(40)
    learner, y = OneByOne(Mean(), kind="regressor").partial_fit(X[:20], X[:20, 0]), X[20:, 0]
    (record,) = prequential(learner, [(X[20:], y)])
    assert record.metrics["mae"] == pytest.approx(np.abs(y - X[:20, 0].mean()).mean())


def test_there_must_be_as_many_labels_as_rows():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        OneByOne(Mean()).partial_fit([[1.0], [2.0]], [0])


def test_the_evaluation_of_such_a_model_can_be_resumed():
    run = Prequential(NearestMean(), delay=1, metrics=["auc"])
    stream = make_blocks()
    for X, y in stream[:3]:
        run.step(X, y)
    later = Prequential(run.learner, delay=1, metrics=["auc"]).restore(run.state())
    assert later.step(*stream[3]).n_seen == 40


def test_models_of_river_are_evaluated():
    linear_model, preprocessing = (
        pytest.importorskip(f"river.{name}", reason="river is not installed")
        for name in ("linear_model", "preprocessing")
    )
    X, y = make_rows(200)
    classifier = preprocessing.StandardScaler() | linear_model.LogisticRegression()
    assert list(prequential(classifier, blocks(X, y == 1, 50), metrics=["auc", "log_loss"]))[-1].accuracy > 0.6
    regressor = preprocessing.StandardScaler() | linear_model.LinearRegression()
    assert list(prequential(regressor, [(X, X[:, 0])]))[-1].accuracy is None
