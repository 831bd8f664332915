"""Threads and processes: cells never depend on them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import linalg, sparse
from threadpoolctl import threadpool_info, threadpool_limits

from isokern import IsolationKernel, NOGDClassifier
from isokern.checks import one_thread_if_small

PARTITIONINGS = ["tree", "voronoi"]


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(1500, 4))


def _wide(X):
    columns = np.tile([3, 700, 2100, 2999], len(X))
    return sparse.csr_array((X.ravel(), columns, np.arange(0, X.size + 1, 4)), shape=(len(X), 3000))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, _wide], ids=["dense", "csr", "wide csr"])
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
def test_two_python_threads_may_map_with_one_kernel(partitioning, n_jobs, X):
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


def test_two_python_threads_may_fit_at_the_same_time(X):
    expected = IsolationKernel("tree", 20, 64, random_state=0).fit(X).apply(X)

    def fit_and_apply(_):
        return IsolationKernel("tree", 20, 64, random_state=0).fit(X).apply(X)

    with ThreadPoolExecutor(2) as pool:
        for cells in pool.map(fit_and_apply, range(6)):
            np.testing.assert_array_equal(cells, expected)


USE_IT_IN_THREADS = """
import sys
X = np.random.default_rng(0).normal(size=(1500, 4))
kernel = IsolationKernel(sys.argv[1], 20, 64, n_jobs=2, random_state=0).fit(X)
expected = kernel.apply(X)
"""


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
def test_a_forked_process_maps_with_the_kernel_of_its_parent(partitioning, run_script):
    code = """
import multiprocessing

def work(_):
    return kernel.apply(X)

with multiprocessing.get_context("fork").Pool(2) as pool:
    print(all(np.array_equal(cells, expected) for cells in pool.map(work, range(4))))
print(np.array_equal(kernel.apply(X), expected))
"""
    assert run_script(USE_IT_IN_THREADS + code, partitioning) == "True\nTrue"


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
def test_a_forked_process_fits_a_kernel_of_its_own(partitioning, run_script):
    code = """
import multiprocessing

def work(_):
    return IsolationKernel(sys.argv[1], 20, 64, random_state=0).fit(X).apply(X)

with multiprocessing.get_context("fork").Pool(1) as pool:
    print(np.array_equal(pool.map(work, [0])[0], expected))
"""
    assert run_script(USE_IT_IN_THREADS + code, partitioning) == "True"


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
def test_a_process_forked_before_the_first_use_may_use_threads(partitioning, run_script):
    code = """
import multiprocessing, sys
X = np.random.default_rng(0).normal(size=(1500, 4))

def work(n_jobs):
    return IsolationKernel(sys.argv[1], 20, 64, n_jobs=n_jobs, random_state=0).fit(X).apply(X)

with multiprocessing.get_context("fork").Pool(1) as pool:
    print(np.array_equal(*pool.map(work, [1, 2])))
"""
    assert run_script(code, partitioning) == "True"


def test_a_process_forked_by_a_forked_process_maps_too(run_script):
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
    assert run_script(USE_IT_IN_THREADS + code, "tree") == "True"


@pytest.mark.parametrize("backend", ["multiprocessing", "loky", "threading"])
def test_joblib_maps_with_one_kernel_in_many_workers(backend, run_script):
    code = """
import joblib

if __name__ == "__main__":
    work = [joblib.delayed(kernel.apply)(X) for _ in range(4)]
    found = joblib.Parallel(2, backend=sys.argv[2])(work)
    print(all(np.array_equal(cells, expected) for cells in found))
"""
    assert run_script(USE_IT_IN_THREADS + code, "voronoi", backend) == "True"


# -- matrix libraries


def blas_threads():
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture
def two_blas_threads():
    with threadpool_limits(2, user_api="blas"):
        if blas_threads() != {2}:
            pytest.skip("matrix libraries have but one thread here")
        yield


@pytest.mark.usefixtures("two_blas_threads")
def test_eigenvectors_of_small_matrices_take_one_thread_and_others_stay_as_they_are(X, monkeypatch):
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
def test_threads_that_limit_each_other_leave_the_number_of_threads_as_it_was():
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
