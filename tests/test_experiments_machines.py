"""Test the measurements of experiments with support vector machines and GPUs: svm, additive and gpu."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.svm import SVC

from isokern import IsolationKernel
from isokern.data.catalogue import Dataset
from isokern.experiments import Plan, find, machines, settings
from isokern.experiments.paper import gpu
from tiny_datasets import measured, quadrants, write_tiny

SVM, ADDITIVE, GPU = find("svm"), find("additive"), find("gpu")


@pytest.fixture(autouse=True)
def few_candidates(monkeypatch):
    """Search less."""
    monkeypatch.setattr(settings, "N_CELLS_SEARCHED", {"quick": (2, 32)})
    monkeypatch.setattr(settings, "N_PARTITIONINGS", 50)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder with a data set, a9a, and a stand-in, rcv1-subset."""
    return write_tiny(monkeypatch, tmp_path, "a9a", "rcv1-subset", make=quadrants)


def test_all_machines_of_svm_learn_a_class_that_is_not_additive(folder):
    plan = Plan(folder=folder, datasets=("url", "a9a", "rcv1.binary"))
    records = measured(SVM, plan)
    assert len(records) == 8
    for record in records:
        assert record["accuracy"] > 0.8, record
        assert record["seconds"] > 0
        assert (record["n_train"], record["n_test"]) == (400, 200)
    assert {record["psi"] for record in records if record["method"].startswith("IK_a-SVM")} == {32}
    table = SVM.table(records, plan)
    assert any("rcv1.binary (rcv1-subset) is not the paper's file" in note for note in table.notes)
    assert any("at most 2,000 training and 1,000 test rows" in note for note in table.notes)


def test_only_isolation_kernels_learn_a_class_that_is_not_additive(folder):
    records = measured(ADDITIVE, Plan(folder=folder, datasets=("a9a",)))
    accuracy = {record["method"]: record["accuracy"] for record in records}
    assert accuracy["LIBSVM, chi2"] < 0.65 > accuracy["LIBLINEAR, chi2"]
    assert accuracy["LIBSVM, IK_a"] > 0.8 < accuracy["LIBLINEAR, IK_a"]
    assert all(record["seconds"] > record.get("map_seconds", 0) for record in records)  # mapping is included
    assert [record.get("n_columns") for record in records] == [None, None, 4, 50 * 32]


def test_mapping_is_timed_on_the_cpu_if_there_is_no_gpu(folder, monkeypatch):
    monkeypatch.setattr(gpu, "has_gpu", lambda: False)
    plan = Plan(folder=folder, datasets=("a9a", "rcv1.binary"))
    records = measured(GPU, plan)
    assert [record["method"] for record in records] == ["CPU", "CPU"]
    for record in records:
        assert record["seconds"] > record["map_seconds"] > 0
        assert record["accuracy"] > 0.7
    assert any("no GPU" in note for note in GPU.table(records, plan).notes)
    assert GPU.verdicts(records)[0].found == "no GPU here"


def test_the_gpu_is_measured_if_there_is_one(folder, monkeypatch):
    monkeypatch.setattr(gpu, "has_gpu", lambda: True)
    cells = GPU.cells(Plan(folder=folder, datasets=("a9a",)))
    assert [cell["method"] for cell in cells] == ["CPU", "GPU"]


# -- machines


def test_c_is_the_best_of_powers_of_two_at_full_scale_and_1_at_quick_scale(monkeypatch):
    X, y = quadrants(300)
    assert machines.liblinear_cost(X, y, Plan(), 0) == 1.0
    tried = []

    def accuracy(C, train, test):
        tried.append(C)
        return -abs(C - 4.0)

    assert machines._best_cost(accuracy, X, y, Plan(scale="full")) == 4.0
    assert sorted(set(tried)) == [2.0**m for m in range(-5, 8)]
    assert len(tried) == settings.N_FOLDS * 13


def test_psi_of_the_laplacian_kernel_is_the_best_in_cross_validation(monkeypatch):
    X, y = quadrants(300)
    monkeypatch.setattr(settings, "N_CELLS_SEARCHED", {"quick": (2, 64)})
    assert machines.laplacian_psi(Dataset(X, y, X, y, "a9a"), Plan(), 0) == 64


@pytest.mark.parametrize("n_learned", [300, 200])
def test_libsvm_tested_in_blocks_equals_scikit_learn_on_at_most_so_many_rows(n_learned, monkeypatch):
    monkeypatch.setattr(settings, "LIBSVM_ROWS", n_learned)
    X, y = quadrants(1500)
    machine = SVC(kernel=functools.partial(laplacian_kernel, gamma=0.7)).fit(X[:n_learned], y[:n_learned])
    data = Dataset(X[:300], y[:300], X[300:], y[300:], "")
    measured = machines.train_libsvm(machines.named_kernel("laplacian", 0.7), data)
    assert (measured["n_learned"], measured["accuracy"]) == (n_learned, machine.score(X[300:], y[300:]))


@pytest.mark.parametrize("make", [np.asarray, sparse.csr_matrix])
def test_rows_for_additive_kernels_are_scaled_by_the_training_rows_and_clipped_at_zero(make):
    data = machines.non_negative(Dataset(make([[0.0, 2.0], [4.0, 0.0]]), None, make([[-1.0, 4.0]]), None, ""))
    assert sparse.issparse(data.X_train) == (make is sparse.csr_matrix)
    train, test = (X.toarray() if sparse.issparse(X) else X for X in (data.X_train, data.X_test))
    np.testing.assert_array_equal(train, [[0, 1], [1, 0]])
    np.testing.assert_array_equal(test, [[0, 2]])


def test_the_kernel_of_cells_is_the_isolation_kernel():
    X, _ = quadrants(40)
    kernel = IsolationKernel("voronoi", 20, 8, random_state=0).fit(X)
    cells = kernel.apply(X)
    np.testing.assert_array_equal(machines.cells_kernel(cells[:15], cells), kernel.similarity(X[:15], X))
