"""Test the Dask estimators on a real cluster of two worker processes, and what happens when workers fail."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager

import numpy as np
import pytest

from learning import make_rows

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
import dask.array as da  # noqa: E402

from isokern.distributed import DaskIKOGDClassifier, DaskIsolationKernel, classifier  # noqa: E402
from isokern.distributed import cluster as dask_cluster  # noqa: E402

SMALL = {"n_partitionings": 10, "n_steps": 2, "random_state": 0}
X, Y = make_rows(400, 3)
ROWS, LABELS = da.from_array(X, chunks=(100, 3)), da.from_array(Y, chunks=100)


@contextmanager
def started(n_workers, *, set_as_default=False, **options):
    """Start a cluster and give a client of it."""
    options |= {"n_workers": n_workers, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(**options) as cluster,
        distributed.Client(cluster, set_as_default=set_as_default) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client():
    """Return a client of two worker processes of one thread each, which is the current client."""
    with started(2, set_as_default=True, memory_limit=0) as client:
        yield client


@pytest.fixture(scope="module")
def expected():
    """Return the scores of a model that was fitted without a cluster, after a race of five candidates."""
    model = DaskIKOGDClassifier(**SMALL, client=NoCluster()).fit(ROWS, LABELS)
    assert len(model.selection_["candidates"]) == 5
    return model.to_local().decision_function(X)


class NoCluster:
    """A client that computes everything in this process."""

    def nthreads(self):
        return {"here": 1}

    def run(self, function, on_error):
        return {"here": function()}

    def persist(self, tasks):
        return dask.persist(*tasks, scheduler="synchronous")

    def compute(self, tasks):
        return dask.compute(*tasks, scheduler="synchronous")

    def gather(self, results):
        return results


def test_a_cluster_gives_the_result_of_one_process(client, expected):
    for model in (DaskIKOGDClassifier(**SMALL), DaskIKOGDClassifier(**SMALL, client=client)):
        model.fit(ROWS, LABELS)
        assert np.array_equal(model.to_local().decision_function(X), expected)
        assert np.array_equal(model.decision_function(ROWS).compute(), expected)
        assert model.score(ROWS, LABELS) == np.mean(model.to_local().predict(X) == Y)


def test_the_map_is_sent_to_the_workers_once_and_without_a_warning(client):
    rows = ROWS.persist()
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "100 kB"}):
        kernel = DaskIsolationKernel(n_partitionings=50, n_cells=100, random_state=0).fit(rows)
        cells = kernel.apply(rows)
        assert np.array_equal(cells.compute(), kernel.kernel_.apply(X))  # a second copy of the map would warn
        model = DaskIKOGDClassifier(kernel=kernel.to_local(), n_rounds=1, n_steps=1).fit(ROWS, LABELS)
        model.predict(rows).compute()


def test_cells_stay_on_the_workers(client, monkeypatch):
    kept, race = [], classifier.race
    monkeypatch.setattr(classifier, "race", lambda *given: kept.append(race(*given)) or kept[0])
    DaskIKOGDClassifier(**SMALL).fit(ROWS, LABELS)
    workers = client.who_has(kept[0].blocks)
    assert len(workers) == 4
    assert all(workers.values())


def test_an_error_on_a_worker_names_the_partition(client):
    bad = X.copy()
    bad[120, 2] = np.inf
    with pytest.raises(ValueError, match=r"partition 1: X must be finite; got infinity in column 2, first in row 20"):
        DaskIKOGDClassifier(**SMALL).fit(da.from_array(bad, chunks=(100, 3)), LABELS)


def test_the_error_for_a_worker_without_isokern_names_it_and_the_cure():
    def hide():
        sys.modules["isokern"] = None

    with started(1) as client:  # a cluster of its own, since a worker with other tasks would die
        (worker,) = client.nthreads()
        client.run(hide)
        with pytest.raises(ImportError, match=rf"on {worker} it cannot be imported .*pip install 'isokern\[dask\]"):
            DaskIKOGDClassifier(**SMALL, client=client).fit(ROWS, LABELS)


def test_a_worker_with_another_version_of_isokern_is_an_error(client, monkeypatch):
    monkeypatch.setattr(dask_cluster, "__version__", "9.9")
    with pytest.raises(ImportError, match=r"isokern 9\.9 must be installed on every worker; on .* got "):
        DaskIsolationKernel(n_cells=16).fit(ROWS)


def test_a_scheduler_that_does_not_answer_is_an_error(monkeypatch):
    monkeypatch.setattr(dask_cluster, "_TIMEOUT", "300ms")
    with (
        pytest.raises(OSError, match=r"nothing answers at tcp://127\.0\.0\.1:9\. Start a scheduler"),
        dask_cluster.connected("tcp://127.0.0.1:9"),
    ):
        pass


def test_a_cluster_without_workers_is_an_error(monkeypatch):
    monkeypatch.setattr(dask_cluster, "_WORKER_TIMEOUT", "200ms")
    message = r"must have a worker; none connected to .*Start one with: dask worker"
    with started(0, processes=False) as client, pytest.raises(TimeoutError, match=message):
        DaskIKOGDClassifier(**SMALL, client=client).fit(ROWS, LABELS)


@pytest.mark.parametrize("step", ["race", "learn_round"])
def test_a_worker_killed_during_fit_does_not_change_the_result(client, expected, monkeypatch, step):
    original, killed = getattr(classifier, step), []

    def kill_after(*arguments, **options):
        result = original(*arguments, **options)
        if not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)
        return result

    monkeypatch.setattr(classifier, step, kill_after)
    model = DaskIKOGDClassifier(**SMALL).fit(ROWS, LABELS)
    assert killed
    assert np.array_equal(model.to_local().decision_function(X), expected)
