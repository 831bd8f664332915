"""Searches that experiments share."""

from __future__ import annotations

import numpy as np
import pytest

from isokern.experiments.experiment import Plan
from isokern.experiments.searches import recall, searches_file

SEARCH = {"dataset": "a9a", "seed": 0, "method": "NOGD", "candidates": (4, 8)}
LABELS = np.array([0, 1, 1])


@pytest.fixture
def plan(tmp_path):
    return Plan(folder=tmp_path, searches=searches_file(tmp_path / "results"))


def unexpected():
    raise AssertionError("searched again")


def test_a_search_runs_once_and_its_result_and_time_are_kept(plan):
    found = recall(SEARCH, LABELS, plan, lambda: {"best": {"n_cells": np.int64(8), "C": 0.1}})
    assert found["best"] == {"n_cells": 8, "C": 0.1}
    assert found["cv_seconds"] >= 0
    assert recall(SEARCH, LABELS, plan, unexpected) == found


def test_the_time_of_a_search_on_another_processor_is_left_out(plan, monkeypatch):
    recall(SEARCH, LABELS, plan, lambda: {"best": 4})
    monkeypatch.setattr("isokern.experiments.searches.processor", lambda: "another")
    found = recall(SEARCH, LABELS, plan, unexpected)
    assert (found["best"], "cv_seconds" in found) == (4, False)


@pytest.mark.parametrize(
    ("change", "labels"),
    [({"seed": 1}, LABELS), ({"method": "OGD"}, LABELS), ({"candidates": (4,)}, LABELS), ({}, LABELS[[1, 0, 2]])],
    ids=["seed", "method", "candidates", "order of rows"],
)
def test_another_search_runs_by_itself(plan, change, labels):
    recall(SEARCH, LABELS, plan, lambda: {"best": 4})
    assert recall(SEARCH | change, labels, plan, lambda: {"best": 8})["best"] == 8
    assert recall(SEARCH, LABELS, plan, unexpected)["best"] == 4


def test_nothing_is_kept_without_a_folder(tmp_path):
    plan = Plan(folder=tmp_path)
    assert [recall(SEARCH, LABELS, plan, lambda best=best: {"best": best})["best"] for best in (4, 8)] == [4, 8]


def test_a_search_that_fails_is_not_kept(plan):
    with pytest.raises(AssertionError):
        recall(SEARCH, LABELS, plan, unexpected)
    assert recall(SEARCH, LABELS, plan, lambda: {"best": 4})["best"] == 4
