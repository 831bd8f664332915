"""Interrupt learning at many points; what is left must be a whole number of blocks."""

from __future__ import annotations

import copy
import itertools
import sys

import numpy as np
import pytest
from sklearn.base import clone

from isokern import AdaRakerClassifier, IKOGDClassifier, IKOGDRegressor
from isokern.learners import classifier, commits, regressor, rival
from learning import BATCH, DUAL, IKOGD, RIVALS, SCALED, answers, every, is_unfitted, make_stream, stream_learner

BLOCK = 20
LATE = {  # the third class comes in row 80, where a block ends for that
    "late classes": stream_learner(),
    "late classes, dual": stream_learner(**DUAL),
    "late classes, balanced": stream_learner(class_weight="balanced", loss="logistic"),
}
FEW = {name: RIVALS[name] for name in ("OGD", "OGD, forgetron", "OGD, random", "NOGD", "FOGD", "AdaRaker")}
STREAMS = IKOGD | LATE | FEW | {"OGD, scaled": SCALED["OGD, scaled"]}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    for module in (commits, classifier, regressor, rival):
        monkeypatch.setattr(module, "BLOCK", BLOCK)


class Stopped(BaseException):
    """What the tests raise, as Python raises KeyboardInterrupt."""


def interrupted(k, call):
    """Call and raise Stopped before the k-th line of isokern's learners; return whether there were so many lines."""
    n_lines = itertools.count(1)

    def trace(frame, event, _):
        if "learners" not in frame.f_code.co_filename or frame.f_code.co_name == "call":
            return None  # "call" takes locks in a with statement, which Python never interrupts in between
        if event == "line" and next(n_lines) == k:
            sys.settrace(None)
            raise Stopped
        return trace

    sys.settrace(trace)
    try:
        call()
    except Stopped:
        return True
    finally:
        sys.settrace(None)
    return False


def state_of(model):
    """Return all that a model has learned, as plain values that can be compared."""
    if is_unfitted(model):
        return "unfitted"
    return plain({name: value for name, value in vars(model).items() if name.endswith("_")})


def plain(value):
    if isinstance(value, np.ndarray):
        return (str(value.dtype), value.shape, value.tolist() if value.dtype.kind == "O" else value.tobytes())
    if isinstance(value, np.random.Generator):
        return repr(value.bit_generator.state)
    if hasattr(value, "state"):
        return {name: plain(part) for name, part in value.state().items() if name not in ("starts", "kernel")}
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return repr(value) if not hasattr(value, "get_params") else type(value).__name__


@every("model", STREAMS)
def test_an_interrupted_call_leaves_whole_blocks(model):
    X, y, weights = make_stream(90, 2 if isinstance(model, AdaRakerClassifier) else 3)
    ends = (50, 70, 90)
    if model in LATE.values():
        ends = (50, 70, 80, 90)
        y = np.where(np.arange(90) < 80, np.minimum(y, 1), 2)
    options = {} if isinstance(model, IKOGDClassifier | IKOGDRegressor) else {"classes": np.unique(y)}
    first = copy.deepcopy(model).partial_fit(X[:30], y[:30], sample_weight=weights[:30], **options)

    def learn(rows, upto):
        rows.partial_fit(X[30:upto], y[30:upto], sample_weight=weights[30:upto])

    whole = {30: state_of(first)}
    for upto in ends:
        prefix = copy.deepcopy(first)
        learn(prefix, upto)
        whole[prefix.n_rows_seen_] = state_of(prefix)
    met = set()
    step = 307 if "budget" in repr(model) else 31 if isinstance(model, IKOGDClassifier) else 13  # some have many lines
    for k in itertools.count(1, step):
        torn = copy.deepcopy(first)
        if not interrupted(k, lambda torn=torn: learn(torn, 90)):
            break
        met.add(torn.n_rows_seen_)
        assert state_of(torn) == whole[torn.n_rows_seen_], k
        assert np.isfinite(answers(torn, X)).all()
        n = torn.n_rows_seen_
        if k % 5 == 0 and n < 90:  # it learns on as if nothing had happened
            torn.partial_fit(X[n:], y[n:], sample_weight=weights[n:])
            assert state_of(torn) == whole[90], k
    assert met >= {30, *ends[:-1]}


@every("model", BATCH | STREAMS)
def test_an_interrupted_fit_leaves_the_estimator_as_it_was(model):
    X, y, _ = make_stream(60)
    for before in (clone(model), clone(model).fit(X[:40], y[:40])):
        expected = state_of(before)
        for k in (5, 20, 40):
            assert interrupted(k, lambda before=before: before.fit(X, y))
            assert state_of(before) == expected
