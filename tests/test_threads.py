"""Check threads and processes: cells never depend on them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import linalg, sparse
from threadpoolctl import threadpool_info, threadpool_limits

from isokern import IsolationKernel, NOGDClassifier
from isokern.checks import one_thread_if_small
from learning import every

PARTITIONINGS = ["tree", "voronoi"]


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(1500, 4))


def wide(X):
    columns = np.tile([3, 700, 2100, 2999], len(X))
    return sparse.csr_array((X.ravel(), columns, np.arange(0, X.size + 1, 4)), shape=(len(X), 3000))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, wide], ids=["dense", "csr", "wide csr"])
@pytest.mark.parametrize("partitioning", PARTITIONINGS)
@pytest.mark.parametrize("n_jobs", [None, 1, 2, 7, -1])
def test_cells_do_not_depend_on_the_number_of_threads(n_jobs, partitioning, form, X):
    X = form(X)
    expected = IsolationKernel(partitioning, 20, 64, n_jobs=3, random_state=0).fit(X).apply(X)
    kernel = IsolationKernel(partitioning, 20, 64, n_jobs=n_jobs, random_state=0).fit(X)
    np.testing.assert_array_equal(kernel.apply(X), expected)


@pytest.mark.parametrize("n_jobs", [None, 1, 2, -1])
def test_similarity_does_not_depend_on_the_number_of_threads(n_jobs, X):
    kernel = IsolationKernel(n_jobs=3, random_state=0).fit(X)
    expected = kernel.similarity(X[:700])
    np.testing.assert_array_equal(kernel.set_params(n_jobs=n_jobs).similarity(X[:700]), expected)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("partitioning", PARTITIONINGS)
def test_two_python_threads_may_share_a_kernel(partitioning, n_jobs, X):
    kernel = IsolationKernel(partitioning, 20, 64, n_jobs=n_jobs, random_state=0).fit(X)
    halves = [X[:750], X[750:]]
    expected = [kernel.apply(half) for half in halves]
    together = threading.Barrier(2)

    def apply_often(half):
        together.wait(timeout=30)
        return [kernel.apply(half) for _ in range(10)]

    with ThreadPoolExecutor(2) as pool:
        for found, cells in zip(pool.map(apply_often, halves), expected, strict=True):
            np.testing.assert_array_equal(found, [cells] * 10)


def test_two_python_threads_may_fit_kernels_at_the_same_time(X):
    expected = IsolationKernel("tree", 20, 64, random_state=0).fit(X).apply(X)

    def fit_and_apply(_):
        return IsolationKernel("tree", 20, 64, random_state=0).fit(X).apply(X)

    with ThreadPoolExecutor(2) as pool:
        for cells in pool.map(fit_and_apply, range(6)):
            np.testing.assert_array_equal(cells, expected)


FORK = """
import multiprocessing, sys
X = np.random.default_rng(0).normal(size=(1500, 4))

def fit(n_jobs=2):
    return IsolationKernel(sys.argv[1], 20, 64, n_jobs=n_jobs, random_state=0).fit(X)

def fit_and_apply(n_jobs):
    return fit(n_jobs).apply(X)

def in_processes(n, work, inputs):
    with multiprocessing.get_context("fork").Pool(n) as pool:
        return pool.map(work, inputs)

"""
USE_THREADS = """
kernel = fit()
expected = kernel.apply(X)
"""
FORKS = {
    "map with the kernel of the parent": USE_THREADS
    + """
print(all(np.array_equal(cells, expected) for cells in in_processes(2, kernel.apply, [X] * 4)))
print(np.array_equal(kernel.apply(X), expected))
""",
    "fit a kernel": USE_THREADS + "print(np.array_equal(in_processes(1, fit_and_apply, [None])[0], expected))",
    "use threads before the parent does": "print(np.array_equal(*in_processes(1, fit_and_apply, [1, 2])))",
}


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
@every("code", FORKS)
def test_a_forked_process_may(code, partitioning, run_script):
    assert set(run_script(FORK + code, partitioning).split()) == {"True"}


def test_a_process_forked_by_a_forked_process_may_map(run_script):
    code = """
import os

def in_a_child(work):
    child = os.fork()
    if child == 0:
        os._exit(0 if work() else 1)
    return os.waitpid(child, 0)[1] == 0

def is_right():
    return np.array_equal(kernel.apply(X), expected)

print(in_a_child(lambda: is_right() and in_a_child(is_right)))
"""
    assert run_script(FORK + USE_THREADS + code, "tree") == "True"


@pytest.mark.parametrize("backend", ["multiprocessing", "loky", "threading"])
def test_joblib_workers_may_share_a_kernel(backend, run_script):
    code = """
import joblib

if __name__ == "__main__":
    work = [joblib.delayed(kernel.apply)(X) for _ in range(4)]
    found = joblib.Parallel(2, backend=sys.argv[2])(work)
    print(all(np.array_equal(cells, expected) for cells in found))
"""
    assert run_script(FORK + USE_THREADS + code, "voronoi", backend) == "True"


# BLAS


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture
def two_blas_threads():
    with threadpool_limits(2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("BLAS has only one thread here")
        yield


@pytest.mark.usefixtures("two_blas_threads")
def test_eigenvectors_of_small_matrices_use_one_blas_thread(X, monkeypatch):
    seen = []
    for module in (np.linalg, linalg):
        eigh = module.eigh
        monkeypatch.setattr(module, "eigh", lambda *a, eigh=eigh, **k: seen.append(blas_threads()) or eigh(*a, **k))
    NOGDClassifier(n_landmarks=20, random_state=0).fit(X, X[:, 0] * X[:, 1] > 0)
    IsolationKernel("voronoi", 10, 64, random_state=0).fit(np.tile(X, 8) + X[:, [0]])
    assert seen == [{1}, {1}]
    assert blas_threads() == {2}
    with one_thread_if_small(3000):
        assert blas_threads() == {2}


@pytest.mark.usefixtures("two_blas_threads")
def test_concurrent_limits_leave_the_number_of_blas_threads_as_it_was():
    begun = threading.Event()

    def limit(wait):
        with one_thread_if_small(10):
            begun.set()
            wait()

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(limit, lambda: threading.Event().wait(0.05))
        begun.wait()
        pool.submit(limit, first.result).result()
    assert blas_threads() == {2}
