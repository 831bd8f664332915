"""The application of docs/serving.md, on a real server: it answers while it learns."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import isokern
from isokern import IKOGDClassifier

httpx = pytest.importorskip("httpx")
pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")
FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def serving(monkeypatch):
    """Return the module that starts a server and asks it."""
    if not FOLDER.exists():
        pytest.skip("there are no benchmarks beside the tests")
    monkeypatch.syspath_prepend(FOLDER)
    return import_module("serving")


@pytest.fixture(scope="module")
def rows():
    X = np.random.default_rng(0).normal(size=(2000, 3))
    return X, np.where(X[:, 0] * X[:, 1] > 0, "same", "other")


@pytest.fixture
def model_path(rows, tmp_path):
    X, y = rows
    isokern.save(IKOGDClassifier(n_partitionings=20, random_state=0).fit(X[:500], y[:500]), tmp_path / "model.isokern")
    return tmp_path / "model.isokern"


def test_a_served_model_answers_like_the_model(serving, rows, model_path):
    X, _ = rows
    with serving.served(model_path) as url:
        _, labels = serving.ask(url, X[:20])
        answer = httpx.get(f"{url}/predict", params={"row": ["nan", "0", "1"]}).json()
    model = isokern.load(model_path)
    assert labels == model.predict(X[:20]).tolist()
    assert answer["probability"] == model.predict_proba([[np.nan, 0.0, 1.0]]).max()


def test_many_readers_are_answered_while_the_model_learns(serving, rows, model_path):
    X, y = rows
    with serving.served(model_path) as url:
        times, n_seen = serving.latencies(url, np.split(X[:80], 4), (X[500:], y[500:]))
    assert len(times) == 80
    assert n_seen == 2000
    twin = IKOGDClassifier(n_partitionings=20, random_state=0).fit(X[:500], y[:500]).partial_fit(X[500:], y[500:])
    saved = isokern.load(model_path)  # the server has saved what it learned
    assert np.array_equal(saved.decision_function(X), twin.decision_function(X))


def test_wrong_requests_get_the_message_of_the_library(serving, rows, model_path):
    with serving.served(model_path) as url:
        short = httpx.get(f"{url}/predict", params={"row": [1.0]})
        infinite = httpx.get(f"{url}/predict", params={"row": ["inf", "0", "1"]})
        unequal = httpx.post(f"{url}/learn", json={"rows": [[1.0, None, 2.0]], "labels": ["same", "other"]})
        right = httpx.post(f"{url}/learn", json={"rows": [[1.0, None, 2.0]], "labels": ["same"]})
    assert {short.status_code, infinite.status_code, unequal.status_code} == {422}
    assert "3 features" in short.json()["detail"]
    assert right.json() == {"n_rows_seen": 501}
