"""``isokern fit --dask``: the command line on a cluster, here of one thread."""

from __future__ import annotations

import numpy as np
import pytest

import isokern
from command_line import run, write_csv, write_files

distributed = pytest.importorskip("distributed")
from isokern.distributed import cluster as dask_cluster  # noqa: E402

SMALL = ("--partitionings", 10, "--cells", 16)
IN_THIS_PROCESS = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}


@pytest.fixture(scope="module")
def address():
    """Return the address of a running scheduler."""
    with distributed.LocalCluster(**IN_THIS_PROCESS, protocol="tcp") as cluster:
        yield cluster.scheduler_address


@pytest.mark.parametrize("options", [("rows.txt",), ("rows.txt", "--dense"), ("rows.csv", "--label", "kind")])
def test_a_model_fitted_on_a_cluster_is_an_ordinary_one(tmp_path, address, options):
    write_files(tmp_path)
    done = run(tmp_path, "fit", *options, "--dask", address, *SMALL, "--test", options[0], "--out", "model")
    assert done.code == 0
    assert "Dask's dashboard: http" in done.err
    assert "rows learned      600" in done.out
    assert float(done.facts["accuracy"]) > 0.85
    assert type(isokern.load(tmp_path / "model")) is isokern.IKOGDClassifier


def test_rows_without_a_label_are_left_out(tmp_path, address):
    X = np.random.default_rng(0).normal(size=(100, 4))
    write_csv(tmp_path / "rows.csv", X, [None if k % 10 == 0 else "ab"[int(X[k, 0] > 0)] for k in range(100)])
    done = run(tmp_path, "fit", "rows.csv", "--label", "kind", "--dask", address, *SMALL)
    assert "rows learned      90" in done.out
    assert isokern.load(tmp_path / "model.isokern").classes_.tolist() == ["a", "b"]


def test_local_means_a_cluster_of_this_machine(tmp_path, monkeypatch):
    cluster = distributed.LocalCluster
    monkeypatch.setattr(distributed, "LocalCluster", lambda **given: cluster(**IN_THIS_PROCESS | given))
    write_files(tmp_path)
    assert run(tmp_path, "fit", "rows.txt", "--dask", "local", *SMALL, "--set", "n_steps=1").code == 0


def test_parameters_of_the_cluster_s_learner_can_be_set(tmp_path, address):
    write_files(tmp_path)
    done = run(tmp_path, "fit", "rows.txt", "--dask", address, *SMALL, "--set", "n_rounds=0")
    assert (done.code, done.err.splitlines()[-1]) == (1, "error: n_rounds must be an integer of at least 1; got 0.")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--method", "ogd"), "--method must be \"ik-ogd\"; got 'ogd'."),
        (("--cells", "cv"), "--cells must be a number or auto with --dask; got cv."),
    ],
)
def test_what_a_cluster_cannot_do_is_said_at_once(tmp_path, options, message):
    write_files(tmp_path)
    done = run(tmp_path, "fit", "rows.txt", "--dask", "tcp://127.0.0.1:9", *options)
    assert (done.code, done.err.strip()) == (1, f"error: {message}")


def test_a_scheduler_that_does_not_answer_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(dask_cluster, "_TIMEOUT", "300ms")
    write_files(tmp_path)
    done = run(tmp_path, "fit", "rows.txt", "--dask", "tcp://127.0.0.1:9")
    assert done.code == 1
    assert "nothing answers at tcp://127.0.0.1:9" in done.err
