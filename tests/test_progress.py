"""Check that verbose tells the steps of long work and changes no result, and that the logger tells them without it."""

from __future__ import annotations

import io
import logging
import sys
import warnings
from unittest.mock import patch

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_friedman1

import isokern
from isokern import (
    IKSVC,
    AdaptiveIKClassifier,
    AdaptiveIKRegressor,
    IKOGDClassifier,
    IKOGDClassifierCV,
    IKOGDRegressor,
    IKOGDRegressorCV,
    progress,
)
from learning import answers, every, make_rows
from test_interrupts import state_of

FEW = {"n_partitionings": 5, "random_state": 0}
VERBOSE = {
    "classifier": IKOGDClassifier(linear=False, **FEW),  # a linear winner makes more passes
    "classifier without a race": IKOGDClassifier(schedule="constant", n_passes=3, **FEW),
    "regressor": IKOGDRegressor(**FEW),
    "regressor of two passes": IKOGDRegressor(n_passes=2, **FEW),
    "svm": IKSVC(**FEW),
    "search": IKOGDClassifierCV(n_cells=(2, 8), cv=2, **FEW),
    "search of a regressor": IKOGDRegressorCV(n_cells=(2, 8), cv=2, **FEW),
    "adaptive": AdaptiveIKClassifier(**FEW),
    "adaptive regressor": AdaptiveIKRegressor(**FEW),
}
X, Y = make_rows(300)


class Terminal(io.StringIO):
    """Standard error that is a terminal."""

    def isatty(self):
        return True


def told(model, method="fit", stream=None):
    """Return what a verbose copy of a model writes while it learns, line by line."""
    model = clone(model).set_params(verbose=1)
    with patch.object(sys, "stderr", stream or io.StringIO()):
        getattr(model, method)(X, Y)
        return sys.stderr.getvalue().splitlines()


@every("model", VERBOSE)
def test_verbose_changes_no_result(model, capsys):
    quiet, verbose = clone(model).fit(X, Y), clone(model).set_params(verbose=1).fit(X, Y)
    assert np.array_equal(answers(quiet, X), answers(verbose, X))
    if not hasattr(model, "cv"):  # their models are told to be quiet while they are compared
        verbose.verbose = 0
        assert state_of(quiet) == state_of(verbose)
    assert capsys.readouterr().out == ""


@every("model", VERBOSE)
def test_nothing_is_printed_unless_asked(model, capsys):
    model = clone(model).fit(X, Y)
    if hasattr(model, "partial_fit"):
        model.partial_fit(X, Y)
    assert capsys.readouterr() == ("", "")


@every("model", VERBOSE)
def test_every_line_names_the_estimator(model):
    names = {type(model).__name__, getattr(model, "_learner", type(model)).__name__}  # a search fits its best learner
    lines = told(model)
    assert lines
    assert {line.partition(": ")[0] for line in lines} <= names


def test_a_classifier_tells_its_map_its_race_and_its_passes():
    model = VERBOSE["classifier"]
    drawn, race, first, second = told(model)
    assert drawn == "IKOGDClassifier: map for 300 rows: 5 trees of up to 16 cells, 2 scales; 3 candidates learn"
    winner = clone(model).fit(X, Y).selection_["leader"]
    assert race.startswith(f"IKOGDClassifier: race after 300 rows: 1 of 3 left, winner {winner!r}, error 0.")
    assert first.startswith("IKOGDClassifier: first pass: ") and first.endswith("% of 300 rows changed the weights")
    assert second.startswith("IKOGDClassifier: pass 2 of 2: ")


def test_the_rows_that_change_the_weights_are_those_of_each_pass():
    model = IKOGDClassifier(schedule="constant", n_passes=2, shuffle=False, **FEW)
    once = clone(model).set_params(n_passes=1).fit(X, Y).n_support_
    twice = clone(model).fit(X, Y).n_support_
    _, first, second = told(model)
    assert f"first pass: {once / 300:.1%} of" in first
    assert f"pass 2 of 2: {(twice - once) / 300:.1%} of" in second


def test_a_regressor_tells_the_error_of_each_pass():
    rows, y = make_friedman1(600, random_state=0)
    stream = io.StringIO()
    with patch.object(sys, "stderr", stream):
        IKOGDRegressor(verbose=1, **FEW).fit(rows, y)
    assert "IKOGDRegressor: pass 2: error of 0." in stream.getvalue()


def test_a_machine_tells_each_accuracy_and_its_training():
    model = clone(VERBOSE["svm"]).fit(X, Y)
    _, *compared, trained = told(model)
    pairs = zip(model.selection_["candidates"], model.selection_["accuracies"], strict=True)
    assert compared == [f"IKSVC: {name}: accuracy of {value:.4f} on held-out rows" for name, value in pairs]
    assert trained == f"IKSVC: {model.selection_['chosen']}: trained on 300 rows in {model.n_iter_} passes"


def test_a_search_tells_each_fold_and_the_best():
    lines = [line for line in told(VERBOSE["search"]) if line.startswith("IKOGDClassifierCV")]
    assert [line.split(":")[1] for line in lines[:2]] == [" fold 1 of 2", " fold 2 of 2"]
    assert "is best, with a mean score of" in lines[2]


def test_the_best_learner_of_a_search_stays_verbose():
    model = clone(VERBOSE["search"]).set_params(verbose=1)
    with patch.object(sys, "stderr", io.StringIO()):
        assert model.fit(X, Y).best_estimator_.verbose == 1


def test_a_stream_tells_when_its_map_grows():
    lines = told(IKOGDClassifier(**FEW), "partial_fit")
    assert [line.partition(": ")[2].partition(":")[0] for line in lines] == [f"map for {n} rows" for n in (16, 64, 256)]


def test_a_stream_tells_when_candidates_are_dropped():
    rows, labels = make_rows(4100)
    stream = io.StringIO()
    with patch.object(sys, "stderr", stream):
        IKOGDClassifier(verbose=1, **FEW).partial_fit(rows, labels)
    assert "race after 4,000 rows: 4 of 5 left, leader " in stream.getvalue()


# -- bars


@pytest.fixture
def clock(monkeypatch):
    """Let a second pass at each look at the clock."""
    seconds = iter(range(10**6))
    monkeypatch.setattr(progress, "monotonic", lambda: float(next(seconds)))


def test_a_terminal_shows_a_bar_that_is_erased(clock, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    terminal = Terminal()
    with patch.object(sys, "stderr", terminal), progress.Bar(IKSVC(verbose=1), "work", 4) as bar:
        bar.advance(1)
        drawn = terminal.getvalue()
        bar.advance(3)
    assert drawn.startswith("\rIKSVC: work [######..................] 25%, ")
    assert len(drawn) == 80
    assert "] 100%, 0 s left" in terminal.getvalue()
    assert terminal.getvalue().endswith("\r" + " " * 79 + "\r")


def test_a_narrow_terminal_gets_no_line_that_wraps(clock, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    terminal = Terminal()
    with patch.object(sys, "stderr", terminal), progress.Bar(IKSVC(verbose=1), "work", 4) as bar:
        bar.advance(1)
    assert all(len(line) <= 19 for line in terminal.getvalue().split("\r"))


def test_a_file_gets_lines_now_and_then(monkeypatch):
    seconds = iter([0.0, 1.0, 11.0, 11.0, 12.0])  # begin; too early; late enough; looked again; too early again
    monkeypatch.setattr(progress, "monotonic", lambda: next(seconds))
    stream = io.StringIO()
    with patch.object(sys, "stderr", stream), progress.Bar(IKSVC(verbose=1), "work", 4) as bar:
        for _ in range(3):
            bar.advance(1)
    assert stream.getvalue() == "IKSVC: work: 50%, 11 s left\n"


def test_steps_are_told_above_the_bar_of_a_terminal(clock, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    terminal = Terminal()
    shown = "\n".join(told(VERBOSE["classifier"], stream=terminal))
    assert "\rIKOGDClassifier: first pass [########################] 100%" in terminal.getvalue()
    assert "IKOGDClassifier: pass 2 of 2: " in shown
    assert "\x1b" not in shown  # works on any terminal


@pytest.mark.parametrize("stream", [None, "closed", "broken"])
def test_learning_goes_on_if_standard_error_cannot_be_written(stream):
    class Broken(io.StringIO):
        def write(self, text):
            raise BrokenPipeError

    given = {None: None, "closed": io.StringIO(), "broken": Broken()}[stream]
    if stream == "closed":
        given.close()
    with patch.object(sys, "stderr", given):
        model = IKOGDClassifier(verbose=1, **FEW).fit(X, Y)
    assert model.n_rows_seen_ == 300


# -- the logger


def test_the_logger_tells_the_steps_without_verbose(caplog):
    with caplog.at_level(logging.INFO, "isokern"):
        IKOGDClassifier(**FEW).fit(X, Y)
    assert [record.name for record in caplog.records] == ["isokern"] * len(caplog.records)
    messages = [record.getMessage() for record in caplog.records]
    assert messages[0].startswith("IKOGDClassifier: map for 300 rows")
    assert not any("pass" in message for message in messages)


def test_the_logger_tells_passes_at_the_level_of_debugging(caplog):
    with caplog.at_level(logging.DEBUG, "isokern"):
        clone(VERBOSE["classifier"]).fit(X, Y)
    assert [record.levelname for record in caplog.records if "pass" in record.getMessage()] == ["DEBUG"] * 2


def test_the_logger_has_no_handlers_and_no_level_of_its_own():
    logger = logging.getLogger("isokern")
    assert logger.handlers == [] and logger.level == logging.NOTSET


# -- the parameter


@every("model", VERBOSE)
@pytest.mark.parametrize("value", [2, -1, "yes", None, 0.5])
def test_verbose_is_0_or_1(model, value):
    with pytest.raises(ValueError, match=r"^verbose must be 0 or 1; got "):
        clone(model).set_params(verbose=value).fit(X, Y)


@every("model", VERBOSE)
def test_verbose_is_kept_by_clone_and_files(model, tmp_path):
    verbose = clone(model).set_params(verbose=1)
    assert clone(verbose).verbose == 1
    isokern.save(verbose, tmp_path / "model")
    assert isokern.load(tmp_path / "model").verbose == 1


def test_verbose_models_can_be_merged():
    kernel = isokern.IsolationKernel(**FEW, n_cells=8).fit(X)
    with patch.object(sys, "stderr", io.StringIO()), warnings.catch_warnings():
        models = [IKOGDClassifier(kernel=kernel, verbose=k).fit(X, Y) for k in (0, 1)]
    assert isokern.merge(models).score(X, Y) > 0.5
