"""``isokern fit --dask``, on a cluster of one thread."""

from __future__ import annotations

import re

import numpy as np
import pytest

import isokern
from command_line import CELLS, fail, run, write_csv, write_files

distributed = pytest.importorskip("distributed")
from isokern.distributed import cluster as dask_cluster  # noqa: E402

IN_THIS_PROCESS = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}


@pytest.fixture(scope="module")
def address():
    """Return the address of a running scheduler."""
    with distributed.LocalCluster(**IN_THIS_PROCESS, protocol="tcp") as cluster:
        yield cluster.scheduler_address


@pytest.mark.parametrize("options", [("rows.txt",), ("rows.txt", "--dense"), ("rows.csv", "--label", "kind")])
def test_a_model_fitted_on_a_cluster_is_an_ordinary_one(tmp_path, address, options):
    write_files(tmp_path)
    done = run(tmp_path, "fit", *options, "--dask", address, *CELLS, "--test", options[0], "--out", "model")
    assert done.code == 0
    assert "Dask's dashboard: http" in done.err
    assert re.search("rows learned +600", done.out)
    assert float(done.facts["accuracy"]) > 0.85
    assert type(isokern.load(tmp_path / "model")) is isokern.IKOGDClassifier


def test_rows_without_a_label_are_not_learned(tmp_path, address):
    X = np.random.default_rng(0).normal(size=(100, 4))
    write_csv(tmp_path / "rows.csv", X, [None if k % 10 == 0 else "ab"[int(X[k, 0] > 0)] for k in range(100)])
    done = run(tmp_path, "fit", "rows.csv", "--label", "kind", "--dask", address, *CELLS)
    assert "rows learned      90" in done.out
    assert isokern.load(tmp_path / "model.isokern").classes_.tolist() == ["a", "b"]


def test_local_starts_a_cluster_on_this_machine(tmp_path, monkeypatch):
    cluster = distributed.LocalCluster
    monkeypatch.setattr(distributed, "LocalCluster", lambda **given: cluster(**IN_THIS_PROCESS | given))
    write_files(tmp_path)
    assert run(tmp_path, "fit", "rows.txt", "--dask", "local", *CELLS, "--set", "n_steps=1").code == 0


def test_parameters_of_the_distributed_learner_can_be_set(tmp_path, address):
    write_files(tmp_path)
    done = run(tmp_path, "fit", "rows.txt", "--dask", address, *CELLS, "--set", "n_rounds=0")
    assert (done.code, done.err.splitlines()[-1]) == (1, "error: n_rounds must be an integer of at least 1; got 0.")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--method", "ogd"), "error: --method must be \"ik-ogd\"; got 'ogd'."),
        (("--cells", "cv"), "error: --cells must be a number or auto with --dask; got cv."),
        ((), "nothing answers at tcp://127.0.0.1:9"),
    ],
)
def test_an_error_is_one_line(tmp_path, monkeypatch, options, message):
    monkeypatch.setattr(dask_cluster, "_TIMEOUT", "300ms")
    write_files(tmp_path)
    assert message in fail(tmp_path, "fit", "rows.txt", "--dask", "tcp://127.0.0.1:9", *options)
