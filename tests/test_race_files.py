"""Check that a race is copied, saved, loaded and merged in any moment, and that forged files of one are refused."""

from __future__ import annotations

import copy
import io
import pickle

import joblib
import numpy as np
import pytest
import skops.io as skops

from forging import Forgery
from isokern import IKOGDClassifier, merge
from isokern.learners import base_race, candidates, linear_term
from isokern.learners.race import Race
from isokern.persistence import load, save
from learning import every, make_rows
from test_interrupts import state_of
from test_race import SMALL, STAGES, STREAM, halves


@pytest.fixture(autouse=True, scope="module")
def small_race():
    """Race on three scales, with few weights of categories."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidates, "auto_n_cells", lambda n_rows: 32)
        patch.setattr(linear_term, "_N_BUCKETS", 64)
        yield


@pytest.fixture
def early_stages(monkeypatch):
    """Drop candidates after few rows."""
    monkeypatch.setattr(base_race, "STREAM_STAGES", STAGES)


def by_skops(model):
    data = skops.dumps(model)
    return skops.loads(data, trusted=skops.get_untrusted_types(data=data))


def by_joblib(model):
    joblib.dump(model, buffer := io.BytesIO())
    buffer.seek(0)
    return joblib.load(buffer)


@pytest.fixture
def by_file(tmp_path):
    def save_and_load(model):
        save(model, tmp_path / "model")
        return load(tmp_path / "model")

    return save_and_load


WAYS = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "joblib": by_joblib,
    "skops": by_skops,
    "file": None,
}
MOMENTS = {
    "holding rows": lambda model, X, y: model.partial_fit(X[:40], y[:40]),
    "in the race": lambda model, X, y: model.partial_fit(X[:90], y[:90]),
    "at the end of a stage": lambda model, X, y: model.partial_fit(X[:100], y[:100]),
    "two left": lambda model, X, y: model.partial_fit(X[:250], y[:250]),
    "after fit": lambda model, X, y: model.fit(X[:250], y[:250]),
}


@pytest.mark.usefixtures("early_stages")
@every("way", WAYS)
@every("begin", MOMENTS)
@pytest.mark.parametrize("options", [{}, {"partitioning": "voronoi", "loss": "logistic"}], ids=["tree", "voronoi"])
def test_copied_and_saved_models_learn_on_with_the_same_bytes(options, begin, way, by_file):
    X, y = make_rows(400, 3)
    model = begin(IKOGDClassifier(**STREAM, **options), X, y)
    again = (way or by_file)(model)
    n = model.n_rows_seen_
    assert state_of(again) == state_of(model)
    assert again.predict_proba(X).tobytes() == model.predict_proba(X).tobytes()
    assert repr(again.selection_) == repr(model.selection_)
    before = copy.deepcopy(model)
    model.partial_fit(X[n:], y[n:])
    if way is not copy.copy:
        assert state_of(again) == state_of(before)
        assert state_of(again.partial_fit(X[n:], y[n:])) == state_of(model)


def test_a_model_with_categories_is_saved(by_file):
    X, y = make_rows(200, 3)
    X[:, 1] = np.arange(200) % 5
    model = IKOGDClassifier(**STREAM, linear=True, categorical_features=[1]).partial_fit(X[:100], y[:100])
    again = by_file(model)
    assert state_of(again.partial_fit(X[100:], y[100:])) == state_of(model.partial_fit(X[100:], y[100:]))


def test_a_memory_mapped_model_learns_in_a_copy(tmp_path):
    X, y = make_rows(300, 3)
    model = IKOGDClassifier(**STREAM).partial_fit(X[:200], y[:200])
    joblib.dump(model, tmp_path / "model")
    mapped = joblib.load(tmp_path / "model", mmap_mode="r")
    assert mapped.decision_function(X).tobytes() == model.decision_function(X).tobytes()
    assert not mapped.learned_.models[0].cells.flags.writeable
    mapped.partial_fit(X[200:], y[200:])
    assert state_of(mapped) == state_of(model.partial_fit(X[200:], y[200:]))


def test_models_with_one_winner_are_merged():
    X, y = halves(900)
    first = IKOGDClassifier(**SMALL).fit(X, y)
    second = copy.deepcopy(first).partial_fit(X[:300], y[:300])
    merged = merge([first, second])
    assert merged.score(X, y) > 0.9
    assert merged.selection_["running"] == first.selection_["running"]
    second.learned_.models[0].rate = 3.0
    with pytest.raises(ValueError, match="models must have one winner of the race"):
        merge([first, second])


# Files that were forged


@pytest.fixture(scope="module")
def stream_file(tmp_path_factory):
    X, y = make_rows(120, 3)
    X[:, 1] = np.arange(120) % 5
    path = tmp_path_factory.mktemp("race") / "model"
    save(IKOGDClassifier(**STREAM, categorical_features=[1]).partial_fit(X, y), path)
    return path


def model_node(forgery, k, name=None):
    node = forgery.node("learned_", "models")[k]
    return node if name is None else node["state"][name]


def put_array(change, *names, k=None):
    """Return a change of an array of the learned state, or of model k."""

    def forge(forgery):
        node = forgery.node(*names) if k is None else model_node(forgery, k, *names)
        place = forgery.places[id(node)]
        array = np.ascontiguousarray(change(forgery.arrays[place]))
        forgery.arrays[place], node["dtype"], node["shape"] = array, array.dtype.str, list(array.shape)

    return forge


def put_value(value, *names, k=None):
    """Return a change of a plain value of the learned state, or of model k."""

    def forge(forgery):
        node = forgery.node(*names[:-1]) if k is None else model_node(forgery, k)
        node["state"][names[-1]] = value

    return forge


def last(value):
    return lambda array: np.r_[array[:-1], np.full((1, *array.shape[1:]), value, array.dtype)]


def as_tuple(*items):
    return {"kind": "tuple", "items": list(items)}


ERRORS, FOUND, TERM = ("learned_", "errors"), ("learned_", "selection", "errors"), ("linear_term_",)
FORGED = {
    "an error less": put_array(lambda a: a[:-1], *ERRORS),
    "an error more": put_array(lambda a: np.r_[a, 0.0], *ERRORS),
    "errors of float32": put_array(np.float32, *ERRORS),
    "errors of two dimensions": put_array(lambda a: a[:, None], *ERRORS),
    "an error below 0": put_array(last(-1.0), *ERRORS),
    "an error NaN": put_array(last(np.nan), *ERRORS),
    "fewer errors than candidates": put_array(lambda a: a[:-1], *FOUND),
    "errors of candidates as integers": put_array(lambda a: np.zeros(5, np.int64), *FOUND),
    "fade 0": put_value(0.0, "learned_", "fade"),
    "fade NaN": put_value({"kind": "float", "value": "nan"}, "learned_", "fade"),
    "fade above 1": put_value(1.001, "learned_", "fade"),
    "fade below 0": put_value(-0.5, "learned_", "fade"),
    "fade that is text": put_value("x", "learned_", "fade"),
    "running beyond the candidates": put_value([0, 1, 2, 3, 5], "learned_", "selection", "running"),
    "running below 0": put_value([0, 1, 2, 3, -1], "learned_", "selection", "running"),
    "running twice": put_value([0, 1, 2, 3, 3], "learned_", "selection", "running"),
    "nobody running": put_value([], "learned_", "selection", "running"),
    "fewer running than models": put_value([0, 1], "learned_", "selection", "running"),
    "candidates that are numbers": put_value([1, 2, 3, 4, 5], "learned_", "selection", "candidates"),
    "no candidates": put_value([], "learned_", "selection", "candidates"),
    "scales beyond the map": put_value(as_tuple(0, 2, 9), "scales", k=0),
    "scales below 0": put_value(as_tuple(-1), "scales", k=1),
    "scales that descend": put_value(as_tuple(2, 0), "scales", k=0),
    "other scales": put_value(as_tuple(0, 1), "scales", k=0),
    "no scales": put_value(as_tuple(), "scales", k=0),
    "scales of a linear model": put_value(as_tuple(0), "scales", k=4),
    "scales that are text": put_value("x", "scales", k=0),
    "an unknown schedule": put_value("x", "schedule", k=0),
    "a schedule without squares": put_value("constant", "schedule", k=0),
    "rate 0": put_value(0.0, "rate", k=0),
    "an infinite rate": put_value({"kind": "float", "value": "inf"}, "rate", k=0),
    "a huge rate": put_value(1e300, "rate", k=0),
    "fewer weights than cells": put_array(lambda a: a[:-1], "values", k=0),
    "more weights than cells": put_array(lambda a: np.r_[a, a[:1]], "values", k=0),
    "weights of more scores": put_array(lambda a: np.hstack([a, a[:, :1]]), "values", k=0),
    "weights of no scores": put_array(lambda a: a[:, :0], "values", k=0),
    "weights of float64": put_array(np.float64, "values", k=0),
    "weights of integers": put_array(lambda a: a.view(np.int32), "values", k=0),
    "weights of one dimension": put_array(np.ravel, "values", k=0),
    "fewer squares": put_array(lambda a: a[:-1], "squares", k=0),
    "squares of float64": put_array(np.float64, "squares", k=0),
    "no squares": put_value(None, "squares", k=0),
    "no weights": put_value(None, "values", k=0),
    "fewer linear weights": put_array(lambda a: a[:-1], "linear_values", k=3),
    "linear weights of other scores": put_array(lambda a: a[:, 1:], "linear_values", k=3),
    "fewer linear squares": put_array(lambda a: a[:-1], "linear_squares", k=4),
    "linear weights without a term": lambda f: f.node()["state"].update(linear_term_=None),
    "a term of another type": lambda f: f.node()["state"].update(linear_term_=1),
    "NaN in the term's offset": put_array(last(np.nan), *TERM, "offset"),
    "NaN in the term's factor": put_array(last(np.nan), *TERM, "factor"),
    "infinity in the term's factor": put_array(last(np.inf), *TERM, "factor"),
    "a term of fewer columns": put_array(lambda a: a[:-1], *TERM, "offset"),
    "a categorical column beyond": put_array(last(3), *TERM, "categorical"),
    "a categorical column below 0": put_array(last(-1), *TERM, "categorical"),
    "a NaN constant": put_value({"kind": "float", "value": "nan"}, *TERM, "constant"),
    "a constant of 0": put_value(0.0, *TERM, "constant"),
    "no models": put_value([], "learned_", "models"),
    "no windows": put_value([], "learned_", "windows"),
    "a window less": lambda f: f.node("learned_", "windows").pop(),
    "a model of another type": lambda f: f.node("learned_", "models").__setitem__(0, None),
    "a book of another type": put_value(None, "learned_", "book"),
    "a clock of another type": put_value(None, "learned_", "clock"),
    "a clock of a model below 0": lambda f: model_node(f, 0, "clock")["state"].update(n_rows=-1),
    "other scales of the map": put_value(1, "kernel_", "map_", "n_scales"),
}


@every("change", FORGED)
def test_a_forged_race_is_refused(change, stream_file, tmp_path):
    forgery = Forgery(stream_file)
    change(forgery)
    forgery.write(tmp_path / "forged")
    with pytest.raises(ValueError, match="damaged"):
        load(tmp_path / "forged")


def test_a_forgery_of_a_race_that_changes_nothing_is_loaded(stream_file, tmp_path):
    Forgery(stream_file).write(tmp_path / "same")
    assert state_of(load(tmp_path / "same")) == state_of(load(stream_file))


@pytest.mark.parametrize("what", ["models", "windows"])
def test_candidates_that_are_one_object_are_refused(what, tmp_path, monkeypatch):
    X, y = make_rows(120, 3)
    model = IKOGDClassifier(**STREAM, linear=False).partial_fit(X, y)
    parts = getattr(model.learned_, what)
    parts[2] = parts[0]
    monkeypatch.setattr(Race, "snapshot", lambda self: self)  # which would copy it
    save(model, tmp_path / "model")
    with pytest.raises(ValueError, match="damaged"):
        load(tmp_path / "model")


def test_a_term_of_other_columns_is_refused(tmp_path):
    X, y = make_rows(120)
    model = IKOGDClassifier(**SMALL, linear=True, n_cells=16).fit(X, y)
    term, weights = model.linear_term_, model.learned_.model
    model.linear_term_ = type(term)(np.zeros(4), np.ones(4), term.categorical, term.constant)
    for name in ("linear_values", "linear_squares"):
        setattr(weights, name, np.zeros((5, weights.n_columns), dtype=np.float32))
    save(model, tmp_path / "model")
    with pytest.raises(ValueError, match="damaged"):
        load(tmp_path / "model")
