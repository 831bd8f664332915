"""The estimators on a real cluster of two worker processes, and what happens when something there goes wrong."""

from __future__ import annotations

import os
import signal
import sys

import numpy as np
import pytest

from learning import make_rows

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
import dask.array as da  # noqa: E402

from isokern.distributed import DaskIKOGDClassifier, DaskIsolationKernel, classifier  # noqa: E402
from isokern.distributed import cluster as dask_cluster  # noqa: E402

SMALL = {"n_partitionings": 10, "n_cells": 16, "n_steps": 2, "random_state": 0}
MAP = {"n_partitionings": 10, "n_cells": 16, "random_state": 0}
X, Y = make_rows(400, 3)


@pytest.fixture(scope="module")
def client():
    """Return a client of two worker processes of one thread each."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": 0}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        yield client


def make_blocks(size=100):
    return da.from_array(X, chunks=(size, 3)), da.from_array(Y, chunks=size)


def expected_scores():
    """Return the scores of a model that was fitted without a cluster."""
    with dask.config.set(scheduler="synchronous"):
        return DaskIKOGDClassifier(**SMALL, client=NoCluster()).fit(*make_blocks()).to_local().decision_function(X)


class NoCluster:
    """A client that is none: all is computed in this process."""

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


def kill_a_worker(client):
    """Kill the process of one worker."""
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)


def after(function, deed):
    """Return a function that calls another and then does a deed."""

    def called(*arguments, **options):
        result = function(*arguments, **options)
        deed()
        return result

    return called


def test_a_cluster_gives_what_one_process_gives(client):
    model = DaskIKOGDClassifier(**SMALL).fit(*make_blocks())
    assert np.array_equal(model.to_local().decision_function(X), expected_scores())
    assert np.array_equal(model.decision_function(make_blocks()[0]).compute(), expected_scores())
    assert model.score(*make_blocks()) == np.mean(model.to_local().predict(X) == Y)


def test_the_map_goes_to_the_workers_once_and_without_a_warning(client):
    rows = make_blocks()[0].persist()
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "100 kB"}):
        kernel = DaskIsolationKernel(n_partitionings=50, n_cells=100, random_state=0).fit(rows)
        cells = kernel.apply(rows)
        assert np.array_equal(cells.compute(), kernel.kernel_.apply(X))  # a second copy of the map would warn
        model = DaskIKOGDClassifier(kernel=kernel.to_local(), n_rounds=1, n_steps=1).fit(*make_blocks())
        model.predict(rows).compute()


def test_cells_stay_on_the_workers(client, monkeypatch):
    kept = []
    mapped = classifier._mapped
    monkeypatch.setattr(classifier, "_mapped", lambda *given: kept.append(mapped(*given)) or kept[0])
    DaskIKOGDClassifier(**SMALL).fit(*make_blocks())
    places = client.who_has(kept[0])
    assert len(places) == 4
    assert all(places.values())


def test_the_client_can_be_given(client):
    model = DaskIKOGDClassifier(**SMALL, client=client)
    assert model.fit(*make_blocks()).score(*make_blocks()) > 0.5


def test_an_error_on_a_worker_names_the_partition(client):
    bad = X.copy()
    bad[120, 2] = np.inf
    with pytest.raises(ValueError, match=r"partition 1: X must be finite; got infinity in column 2, first in row 20"):
        DaskIKOGDClassifier(**SMALL).fit(da.from_array(bad, chunks=(100, 3)), make_blocks()[1])


def test_a_worker_without_isokern_is_named_with_the_cure():
    def hide():
        sys.modules["isokern"] = None

    # A cluster of its own: a worker that still had a task of another test to take in would die of it.
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(**options) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        (worker,) = client.nthreads()
        client.run(hide)
        with pytest.raises(ImportError, match=rf"on {worker} it cannot be imported .*pip install 'isokern\[dask\]"):
            DaskIKOGDClassifier(**SMALL, client=client).fit(*make_blocks())


def test_a_worker_with_another_isokern_is_refused(client, monkeypatch):
    monkeypatch.setattr(dask_cluster, "__version__", "9.9")
    with pytest.raises(ImportError, match=r"isokern 9\.9 must be installed on every worker; on .* got "):
        DaskIsolationKernel(**MAP).fit(make_blocks()[0])


def test_a_scheduler_that_does_not_answer_is_an_error_that_names_it(monkeypatch):
    monkeypatch.setattr(dask_cluster, "_TIMEOUT", "300ms")
    with (
        pytest.raises(OSError, match=r"nothing answers at tcp://127\.0\.0\.1:9\. Start one"),
        dask_cluster.connected("tcp://127.0.0.1:9"),
    ):
        pass


def test_a_cluster_without_workers_is_an_error(monkeypatch):
    monkeypatch.setattr(dask_cluster, "_PATIENCE", "200ms")
    options = {"n_workers": 0, "processes": False, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(**options) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        pytest.raises(TimeoutError, match=r"must have a worker; none came to .*Start one with: dask worker"),
    ):
        DaskIKOGDClassifier(**SMALL, client=client).fit(*make_blocks())


@pytest.mark.parametrize("step", ["_mapped", "learn_round"])
def test_a_worker_killed_in_the_middle_of_fit_changes_nothing(client, monkeypatch, step):
    killed = []

    def kill_once():
        if not killed:
            killed.append(kill_a_worker(client))

    monkeypatch.setattr(classifier, step, after(getattr(classifier, step), kill_once))
    model = DaskIKOGDClassifier(**SMALL).fit(*make_blocks())
    assert killed
    assert np.array_equal(model.to_local().decision_function(X), expected_scores())
