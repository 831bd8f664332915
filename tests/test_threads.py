"""Threads and processes: cells never depend on them."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse

from isokern import IsolationKernel

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
