"""The experiments that count: data sets, and feature maps."""

from __future__ import annotations

import numpy as np
import pytest

from isokern import experiments
from isokern.experiments import Plan, settings
from tiny_datasets import half_zeros, measured, write_tiny

N_TRAIN, N_TEST = 60, 40
NONZERO = 100 * np.count_nonzero(half_zeros(N_TRAIN + N_TEST)[0]) / ((N_TRAIN + N_TEST) * 6)


@pytest.fixture
def plan(tmp_path, monkeypatch):
    """Return a plan on a small a9a, and a small stand-in for rcv1.binary."""
    return Plan(
        folder=write_tiny(monkeypatch, tmp_path, "a9a", "rcv1-subset", n_train=N_TRAIN, n_test=N_TEST, make=half_zeros)
    )


# -- datasets


def test_data_sets_are_counted_and_stand_beside_the_published_counts(plan):
    experiment = experiments.find("datasets")
    records = measured(experiment, plan)
    table = experiment.table(records, plan)
    assert [row[0] for row in table.rows] == [
        "url (not at hand)",
        "news20.binary (not at hand)",
        "rcv1.binary (rcv1-subset)",
        *(f"{name} (not at hand)" for name in ("real-sim", "smallNORB", "cifar-10", "epsilon", "mnist")),
        "a9a",
        *(f"{name} (not at hand)" for name in ("covertype", "ijcnn1")),
    ]
    for row, published in zip(table.rows, settings.DATASETS_PUBLISHED.values(), strict=True):
        assert row[2:9:2] == published
        is_there = row[0] in {"a9a", "rcv1.binary (rcv1-subset)"}
        assert row[1:8:2] == ((N_TRAIN, N_TEST, 6, pytest.approx(NONZERO)) if is_there else (None,) * 4)
    assert [f"{column}, paper" for column in table.columns[1:8:2]] == list(table.columns[2:9:2])
    assert any("rcv1.binary (rcv1-subset) is not the paper's file" in note for note in table.notes)


def test_only_the_data_sets_asked_for_are_shown(plan):
    asked = Plan(folder=plan.folder, datasets=("a9a", "url"))
    experiment = experiments.find("datasets")
    records = measured(experiment, asked)
    assert [record["dataset"] for record in records] == ["a9a"]
    assert [row[0] for row in experiment.table(records, asked).rows] == ["url (not at hand)", "a9a"]


def as_published(name, **other):
    n_train, n_test, n_features, nonzero = settings.DATASETS_PUBLISHED[name]
    counts = {"n_train": n_train, "n_test": n_test, "n_features": n_features, "nonzero": nonzero}
    return {"dataset": name, "source": name} | counts | other


@pytest.mark.parametrize(
    ("other", "holds"),
    [
        ({}, True),
        ({"nonzero": 11.26}, True),
        ({"nonzero": 11.5}, False),
        ({"n_test": 16280}, False),
        ({"n_test": 16280, "source": "a9a-subset"}, None),
    ],
)
def test_files_are_the_papers_if_they_have_its_counts(other, holds):
    verdict, _ = experiments.find("datasets").verdicts([as_published("a9a", **other)])
    assert verdict.holds is holds
    assert ("a9a (32,561" in verdict.found) == (holds is False)


@pytest.mark.parametrize(
    ("names", "holds"),
    [
        (["url", "a9a"], True),
        (["mnist", "a9a"], False),  # both dense
        (["real-sim", "mnist"], False),  # of about as many rows
        (["a9a"], None),
    ],
)
def test_data_sets_are_diverse_if_they_differ_in_all_respects(names, holds):
    _, verdict = experiments.find("datasets").verdicts([as_published(name) for name in names])
    assert verdict.holds is holds


# -- feature-map-size


def test_sizes_of_maps_are_counted_and_stand_beside_the_published_formulas(plan):
    experiment = experiments.find("feature-map-size")
    records = measured(experiment, plan)
    assert len(records) == 2 * 2 * len(settings.FEATURE_MAP_CELLS)
    table = experiment.table(records, plan)
    row = dict(zip(table.columns, next(row for row in table.rows if row[0] == "a9a"), strict=True))
    assert row == {
        "data set": "a9a",
        "d": 6,
        "Gaussian": "infinite",
        "Gaussian, paper": "infinite",
        "Polynomial, h = 2": 28,  # (6 + 2) * (6 + 1) / 2
        "Polynomial, paper": "C(d+h,h)",
        "Isolation, psi = 16: features": 1600,
        "psi = 16: nonzero in each row": 100,
        "Isolation, psi = 1,024: features": 6000,  # there are but 60 rows
        "psi = 1,024: nonzero in each row": 100,
        "Isolation, paper": "t psi -> t",
    }
    assert [verdict.holds for verdict in experiment.verdicts(records)] == [True, True]
    assert any("5,000 rows" in note for note in table.notes)


@pytest.mark.parametrize(
    ("change", "holds"),
    [
        ({}, [True, True]),
        ({"n_features": 1599}, [False, True]),
        ({"fewest_nonzero": 99}, [False, True]),
        ({"kernel_error": 0.01}, [True, False]),
    ],
)
def test_maps_are_judged_by_their_counts_and_products(change, holds):
    record = {"dataset": "a9a", "partitioning": "tree", "psi": 16, "n_partitionings": 100, "n_cells": 16}
    record |= {"n_features": 1600, "fewest_nonzero": 100, "most_nonzero": 100, "kernel_error": 0.0} | change
    verdicts = experiments.find("feature-map-size").verdicts([record])
    assert [verdict.holds for verdict in verdicts] == holds
    assert any("not on a9a (tree, psi = 16)" in verdict.found for verdict in verdicts) == (False in holds)


def test_maps_that_were_not_measured_are_not_judged():
    record = {"dataset": "a9a", "partitioning": "tree", "psi": 16, "stopped": "time limit of 1 s"}
    for verdict in experiments.find("feature-map-size").verdicts([record]):
        assert verdict.holds is None
        assert verdict.found == "nothing to judge by; stopped before it could be judged on a9a"


def test_a_map_whose_rows_differ_shows_the_range(plan):
    experiment = experiments.find("feature-map-size")
    records = measured(experiment, plan)
    records[0]["fewest_nonzero"] = 90
    row = next(row for row in experiment.table(records, plan).rows if row[0] == "rcv1.binary (rcv1-subset)")
    assert "90 to 100" in row
