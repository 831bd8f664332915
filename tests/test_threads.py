"""Check threads and processes: cells never depend on them, and models can be read while they are learned."""

from __future__ import annotations

import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import linalg, sparse
from sklearn.base import clone
from threadpoolctl import threadpool_info, threadpool_limits

from isokern import (
    AdaptiveIKClassifier,
    AdaptiveIKRegressor,
    IKOGDClassifier,
    IKOGDRegressor,
    IsolationKernel,
    NOGDClassifier,
    OGDClassifier,
)
from isokern.checks import one_thread_if_small
from isokern.learners import classifier, commits, regressor, rival
from learning import DUAL, FEW_RIVALS, IKOGD, RIVALS, answers, every, make_stream, stream_learner

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


# Models that one thread learns while others read them

READ = {
    **IKOGD,
    "adaptive": AdaptiveIKClassifier(6, random_state=0),
    "adaptive regressor": AdaptiveIKRegressor(6, random_state=0),
    **FEW_RIVALS,
    "late classes": stream_learner(average=True),
    "naive": stream_learner(evaluation="naive", schedule="decaying", shrinkage=0.1),
    "late classes, dual": stream_learner(**DUAL),
    "OGD, random": RIVALS["OGD, random"],
    "OGD, isolation kernel": OGDClassifier(IsolationKernel(n_partitionings=6, n_cells=8, random_state=0), n_initial=50),
}


def read(model, X):
    """Return the probabilities of a model, or its scores, as bytes."""
    found = model.predict_proba(X) if hasattr(model, "predict_proba") else answers(model, X)
    return found.tobytes()


@pytest.fixture
def busy_threads(monkeypatch):
    """Let Python switch threads often, and learn small blocks."""
    for module in (commits, classifier, regressor, rival):
        monkeypatch.setattr(module, "BLOCK", 20)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("busy_threads")
@every("model", READ)
def test_a_model_is_read_before_or_after_a_block_never_between(model):
    X, y, weights = make_stream(600)
    y = np.where(np.arange(600) < 300, np.minimum(y, 1), y)
    y[300] = 2  # the third class comes late, with the first row of a block, which it always begins
    model = clone(model).set_params(n_jobs=1)
    is_open = isinstance(model, IKOGDClassifier | IKOGDRegressor)
    options = {} if is_open else {"classes": np.unique(y)}
    first = 260  # maps of streams are not drawn anew any more
    model.partial_fit(X[:first], y[:first], sample_weight=weights[:first], **options)
    twin = pickle.loads(pickle.dumps(model))
    expected = {read(twin, X[:3])}
    size = 1 if hasattr(model, "ladder_") else 20  # a map that grows or is renewed ends blocks, too
    for begin in range(first, 600, size):
        part = slice(begin, begin + size)
        expected.add(read(twin.partial_fit(X[part], y[part], sample_weight=weights[part]), X[:3]))
    is_over, found = threading.Event(), []

    def read_often(get):
        together.wait(timeout=60)
        seen = {read(get(), X[:3])}
        while not is_over.is_set():
            seen.add(read(get(), X[:3]))
        return seen

    def learn():
        together.wait(timeout=60)
        try:
            model.partial_fit(X[first:], y[first:], sample_weight=weights[first:])
        finally:
            is_over.set()

    together = threading.Barrier(3)
    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read_often, get) for get in (lambda: model, lambda: pickle.loads(pickle.dumps(model)))]
        pool.submit(learn).result()
        found = [reader.result() for reader in readers]
    assert found[0] <= expected
    assert found[1] <= expected
    assert read(model, X[:3]) == read(twin, X[:3])


@pytest.mark.usefixtures("busy_threads")
@every("model", READ)
def test_two_threads_that_learn_take_turns(model):
    X, y, _ = make_stream(300)
    model = clone(model)
    options = {} if isinstance(model, IKOGDClassifier | IKOGDRegressor) else {"classes": np.unique(y)}
    together = threading.Barrier(2)

    def learn(half):
        together.wait(timeout=60)
        model.partial_fit(X[half], y[half], **options)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(learn, [slice(150), slice(150, 300)]))
    assert model.n_rows_seen_ == 300
    assert np.isfinite(answers(model, X)).all()


LEARN_AND_FORK = """
import os, signal, sys, threading
from isokern import IKOGDClassifier, OGDClassifier

X = np.random.default_rng(0).normal(size=(3000, 4))
y = (X[:, 0] * X[:, 1] > 0).astype(int)
model = {"IKOGD": IKOGDClassifier(n_cells=64), "OGD": OGDClassifier(gamma=0.1)}[sys.argv[1]].fit(X[:1500], y[:1500])
is_over = threading.Event()

def work(call):
    while not is_over.is_set():
        call()

def is_whole():
    signal.alarm(60)  # ends a child that hangs
    state = getattr(model, "learned_", None)
    book, clock = (state.book, state.model.clock) if state else (model.class_book_, model.model_.clock)
    rows = model.n_rows_seen_
    model.predict(X[:10])
    return book.counts.sum() == clock.rounds and model.partial_fit(X[:10], y[:10]).n_rows_seen_ == rows + 10

calls = lambda: model.partial_fit(X[:200], y[:200]), lambda: model.predict(X)
threads = [threading.Thread(target=work, args=(call,)) for call in calls]
for thread in threads:
    thread.start()
for _ in range(6):
    child = os.fork()
    if child == 0:
        os._exit(0 if is_whole() else 1)
    print(os.waitpid(child, 0)[1] == 0)
is_over.set()
"""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", ["IKOGD", "OGD"])
def test_a_process_forked_while_threads_learn_and_predict_has_a_whole_model(name, run_script):
    assert set(run_script(LEARN_AND_FORK, name).split()) == {"True"}


LEARN_AND_SHARE = """
import sys, threading
import joblib
from isokern import IKOGDClassifier, OGDClassifier

def prefixes(make):
    \"\"\"Return the scores of a model after each call of partial_fit.\"\"\"
    model = make().partial_fit(X[:100], y[:100], classes=[0, 1])
    found = [model.decision_function(X[:5]).tobytes()]
    for _ in range(20):
        found.append(model.partial_fit(X[100:], y[100:]).decision_function(X[:5]).tobytes())
    return found

if __name__ == "__main__":
    X = np.random.default_rng(0).normal(size=(200, 3))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    make = {
        "IKOGD": lambda: IKOGDClassifier(n_cells=8, n_initial=50, random_state=0),
        "OGD": lambda: OGDClassifier(gamma=0.1, n_initial=50),
    }[sys.argv[1]]
    expected, model = prefixes(make), make().partial_fit(X[:100], y[:100], classes=[0, 1])

    def learn():
        for _ in range(20):
            model.partial_fit(X[100:], y[100:])

    thread = threading.Thread(target=learn)
    thread.start()
    work = [joblib.delayed(model.decision_function)(X[:5]) for _ in range(20)]
    found = joblib.Parallel(2, backend=sys.argv[2])(work)
    thread.join()
    print(all(scores.tobytes() in expected for scores in found))
"""


@pytest.mark.parametrize("backend", ["loky", "threading"])
@pytest.mark.parametrize("name", ["IKOGD", "OGD"])
def test_joblib_workers_get_whole_models_while_a_thread_learns(name, backend, run_script):
    assert run_script(LEARN_AND_SHARE, name, backend) == "True"


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


def test_threads_that_cannot_be_started_are_done_without(run_script):
    code = """
import resource
kernel = fit(1)
expected = kernel.apply(X)
kernel.set_params(n_jobs=12)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 30 * 2**20,) * 2)  # a thread reserves 8 MB for its stack
print(all(np.array_equal(kernel.apply(X), expected) for _ in range(20)))
"""
    assert run_script(FORK + code, "tree") == "True"


@pytest.mark.parametrize("learner", [IKOGDClassifier, IKOGDRegressor])
@pytest.mark.parametrize("can_start", [True, False])
def test_a_fit_does_not_depend_on_the_thread_that_fetches_blocks(learner, can_start, monkeypatch):
    X = np.random.default_rng(0).normal(size=(2500, 3))
    y, started, start = (X[:, 0] * X[:, 1] > 0).astype(int), [], threading.Thread.start

    def try_to_start(thread):
        started.append(thread)
        if not can_start:
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", try_to_start)
    one, two = (learner(n_partitionings=10, n_jobs=n_jobs, random_state=0) for n_jobs in (1, 2))
    scores = one.fit(X, y).predict(X)
    assert not started
    assert two.fit(X, y).predict(X).tobytes() == scores.tobytes()
    assert started
    tables = zip(one.learned_.model.tables(), two.learned_.model.tables(), strict=True)
    assert all(a is b is None or a.tobytes() == b.tobytes() for a, b in tables)
