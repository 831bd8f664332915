"""Test learners that learn in blocks until time is over, and what their whole time is expected to be."""

from __future__ import annotations

import pytest

from isokern.data.catalogue import Dataset
from isokern.evaluation import holdout
from isokern.experiments import settings
from isokern.experiments.measuring import Stopwatch
from isokern.experiments.methods import METHODS
from isokern.experiments.stopping import expected_seconds, hold_out
from tiny_datasets import band

X, Y = band(800)
DATA = Dataset(X[:500], (Y[:500] + 1) // 2, X[500:], (Y[500:] + 1) // 2, "band")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Let blocks be small, and the last of each part incomplete: 120, 240 and 140 rows, then 120 and 180."""
    monkeypatch.setattr(settings, "CLOCK_ROWS", 120)
    monkeypatch.setattr(Stopwatch, "elapsed", property(lambda watch: 0.5))


@pytest.mark.parametrize("name", METHODS)
def test_blocks_give_the_same_model_as_all_rows_at_once(name):
    learner, twin = (METHODS[name].make(3) for _ in range(2))
    measured = hold_out(learner, DATA, lambda: False)
    whole = holdout(twin, (DATA.X_train, DATA.y_train), (DATA.X_test, DATA.y_test))
    assert (measured["accuracy"], measured["n_support"]) == (whole.accuracy, whole.n_support)
    assert (measured["n_train"], measured["n_test"], measured["n_rows"]) == (500, 300, 800)
    assert "stopped_at_row" not in measured


@pytest.mark.parametrize(("n_looks", "n_rows"), [(0, 0), (2, 360), (3, 500), (4, 620)])
def test_a_rival_that_runs_out_of_time_tells_how_far_it_came(n_looks, n_rows):
    looks = iter([False] * n_looks)
    measured = hold_out(METHODS["OGD"].make(0, n_cells=16), DATA, lambda: next(looks, True))
    assert measured["stopped_at_row"] == n_rows
    assert "accuracy" not in measured
    assert (measured["expected_seconds"] is None) == (n_rows == 0)


def marks(power, n_rows):
    return [(n, 0.01 * n**power) for n in range(0, n_rows + 1, 10)]


@pytest.mark.parametrize("power", [1.0, 1.5, 2.0])
def test_time_is_extrapolated_by_the_power_law_of_the_marks(power):
    assert expected_seconds(marks(power, 200), 1000) == pytest.approx(0.01 * 1000**power, rel=0.02)


def test_test_rows_take_as_long_as_the_last_learned_row():
    # Learning n rows takes 0.01 n^2 seconds, so the last of 1,000 takes 20.
    assert expected_seconds(marks(2.0, 200), 1000, 50) == pytest.approx(10_000 + 50 * 20)


def test_time_of_testing_is_extrapolated_from_the_rows_that_were_tested():
    assert expected_seconds([(0, 0.0), (1000, 50.0), (1010, 60.0)], 1000, 200) == pytest.approx(50 + 200)


@pytest.mark.parametrize(("seconds", "expected"), [((0.0, 4.0, 5.0), 50.0), ((0.0, 0.1, 5.0), 500.0)])
def test_the_power_is_between_1_and_2(seconds, expected):
    assert expected_seconds(list(zip((0, 50, 100), seconds, strict=True)), 1000) == pytest.approx(expected)
