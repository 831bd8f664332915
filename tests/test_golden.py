"""Check that results do not change: cells and the paper's learner bit for bit, other learners within 1e-9.

The expected values are in ``golden.json``. To change results on purpose, and only then, rewrite them with
``python tests/test_golden.py``; the environment variable ISOKERN_DATA names the folder of the data sets.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from functools import cache, partial
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier

import isokern
from isokern import FOGDClassifier, IKOGDClassifier, IKOGDRegressor, IsolationKernel, NOGDClassifier, OGDClassifier
from isokern.data import read_libsvm

GOLDEN = Path(__file__).with_name("golden.json")
PARTITIONINGS = ["tree", "voronoi"]

# Rows: name -> (file, or None for generated rows; function that converts them)

LARGE = {
    "generated": (None, np.asarray),
    "generated CSR": (None, sparse.csr_array),
    "generated float32": (None, np.float32),
    "a9a": ("a9a", sparse.csr_array),
    "mnist": ("mnist.t", lambda X: X.toarray() / 255),
    "mnist CSR": ("mnist.t", lambda X: X / 255),
    "mnist float32": ("mnist.t", lambda X: np.float32(X.toarray() / 255)),
    "covertype": ("covtype.binary.scale.test", lambda X: X.toarray()),
    "ijcnn1": ("ijcnn1.tr", lambda X: X.toarray()),
    "rcv1": ("rcv1_subset.train", sparse.csr_array),
}


def generate(n, offset):
    """Return rows and labels 0 to 9, computed with integers, so that they are the same on every machine.

    Of the six columns, the second has only three values, the third is far from zero, and the fourth has a wider range.
    A tenth of the rows occur twice.
    """
    bits = np.arange(6 * n, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    table = (bits >> np.uint64(54)).astype(np.int64).reshape(n, 6)
    table[n // 2 : n // 2 + n // 10] = table[: n // 10]
    labels = (table[:, 0] + table[:, 3] // 4) // 128
    table[:, 1] = table[:, 1] % 3 * 512
    return table * [1, 1, 1, 4, 1, 1] / 1024 + [0, 0, offset, 0, 0, 0], labels


@cache
def read(path):
    X, y = read_libsvm(path)
    return X[:6000], y[:6000]


@cache
def large_rows(name, data_set):
    """Return rows and labels to learn, and other rows to test."""
    file, form = LARGE[name]
    X, y = read(data_set(file)) if file else generate(2500, offset=2**20)
    X, n_learn = form(X), 4000 if file else 2000
    return X[:n_learn], y[:n_learn], X[n_learn:]


def small_rows(name, data_set):
    """Return 408 rows and their labels or targets: 300 to learn, 100 to learn later, 8 to test."""
    task = name.split(",")[0]
    if task == "a9a":
        X, y = read(data_set("a9a"))
        return X[:408], y[:408]
    # No offset, because it would make the rounding errors of dot products larger than 1e-9.
    X, y = generate(408, offset=0)
    return X, {"two classes": y // 3 % 2, "ten classes": y, "numbers": y + X[:, 4]}[task]


def digest(values, dtype):
    return hashlib.blake2b(np.ascontiguousarray(values, dtype=dtype).tobytes(), digest_size=16).hexdigest()


# Cells: name -> (rows, kernel)

MAP = dict(n_partitionings=100, max_depth=None, scale=None, device=None, n_jobs=None, random_state=0)
CELLS = {
    " ".join(["cells,", rows, partitioning, str(n_cells), *options.values()]): (
        rows,
        IsolationKernel(**MAP | dict(partitioning=partitioning, n_cells=n_cells, sparse_output=True) | options),
    )
    for rows, partitioning, n_cells, options in [
        *product(LARGE, PARTITIONINGS, [16, 256], [{}]),
        *product(["generated", "a9a", "mnist", "covertype", "rcv1"], PARTITIONINGS, [1024], [{}]),
        *product(["generated", "a9a", "covertype"], ["tree"], [256], [{"max_depth": "log2"}]),
        *product(["generated", "mnist", "covertype"], ["voronoi"], [256], [{"scale": "minmax"}]),
    ]
}


def compute_cells(name, data_set):
    rows, kernel = CELLS[name]
    X, _, X_test = large_rows(rows, data_set)
    return digest(clone(kernel).fit(X).apply(X_test), "<u4")


# The paper's learner: name -> (rows, partitioning, fit or stream)

PAPER = MAP | dict(n_cells=256, kernel=None, loss="hinge", schedule="constant", learning_rate=0.5, shrinkage=0.0)
PAPER |= dict(average=False, n_passes=1, shuffle=False, class_weight=None, n_initial=None, evaluation="primal")


def fit(model, X, y):
    return clone(model).fit(X, y)


def stream(model, X, y):
    """Learn blocks of uneven sizes."""
    model, classes = clone(model), {"classes": np.unique(y)} if is_classifier(model) else {}
    for begin, end in pairwise([0, 70, 71, len(y) // 2, len(y) - 9, len(y)]):
        model.partial_fit(X[begin:end], y[begin:end], **classes)
    return model


PAPERS = {
    f"paper, {rows} {partitioning} {learn.__name__}": (rows, partitioning, learn)
    for rows in ["generated", "generated CSR", "a9a", "mnist", "covertype"]
    for partitioning in PARTITIONINGS
    for learn in (fit, stream)
}


def compute_paper(name, data_set):
    rows, partitioning, learn = PAPERS[name]
    X, y, X_test = large_rows(rows, data_set)
    return digest(learn(IKOGDClassifier(partitioning, **PAPER), X, y).decision_function(X_test), "<f8")


# Other learners, with all parameters: name, which starts with the task -> function that returns a fitted model
# The learning rates 1.7 and 0.47 avoid scores of exactly 1, where rounding decides whether a row violates the margin.

TREES = MAP | dict(partitioning="tree", n_cells=32)
ADAGRAD = dict(schedule="adagrad", learning_rate=1.7, n_passes=2, shuffle=True)
IKOGD = PAPER | ADAGRAD | dict(partitioning="tree", n_cells="auto", n_initial=100)
RIVAL = dict(scale=None, learning_rate=0.47, n_passes=1, shuffle=True, class_weight=None, n_initial=100)
RIVAL |= dict(n_jobs=None, random_state=0)
KERNELS = RIVAL | dict(kernel="laplacian", gamma="data", n_cells=None, coef0=1.0, degree=3, loss="hinge")


def without(parameters, *names):
    return {name: value for name, value in parameters.items() if name not in names}


ikogd = partial(IKOGDClassifier, **IKOGD)
regressor = partial(IKOGDRegressor, **without(IKOGD, "class_weight") | dict(epsilon=0.25, average=True))
regressor = partial(regressor, schedule="constant", learning_rate=0.47, n_passes=1)
search = partial(isokern.IKOGDClassifierCV, **without(IKOGD, "kernel") | dict(n_cells=(4, 16, 64), cv=3, scoring=None))
svc = partial(isokern.IKSVC, **TREES, kernel=None, linear=False, C=1.0, loss="squared_hinge", class_weight=None)
svc = partial(svc, tol=1e-4, max_iter=1000, fit_intercept=True, intercept_scaling=1.0)
ogd = partial(OGDClassifier, **KERNELS, budget=None, strategy="bpas", average=False, shrinkage=0.01)
nogd = partial(NOGDClassifier, **KERNELS, n_landmarks=40, rank=0.5, average=True)
fogd = partial(FOGDClassifier, **RIVAL, kernel="gaussian", gamma="data", loss="hinge", average=True, n_frequencies=40)
fogd = partial(fogd, features="plain")
raker = partial(isokern.AdaRakerClassifier, **RIVAL, bandwidths=(0.5, 1.0, 2.0), n_directions=10, shrinkage=5e-4)
raker = partial(raker, restart="warm")


def late_class(X, y):
    """Learn a stream of two classes in which a third one appears later."""
    three = np.minimum(y // 4, 2)
    return ikogd().partial_fit(X[:200], np.minimum(three[:200], 1)).partial_fit(X[200:], three[200:])


def merged(X, y):
    """Learn three parts on one map and merge them."""
    kernel = IsolationKernel(**TREES, sparse_output=True).fit(X)
    return isokern.merge(
        [ikogd(kernel=kernel, n_partitionings=200).partial_fit(X[k::3], y[k::3]) for k in range(3)], weights=[1, 2, 3]
    )


def distributed(X, y):
    """Learn from Dask arrays without a client."""
    da = pytest.importorskip("dask.array")
    from isokern.distributed import DaskIKOGDClassifier

    shared = without(IKOGD, "average", "n_passes", "shuffle", "n_initial", "evaluation") | dict(loss="squared_hinge")
    model = DaskIKOGDClassifier(**shared, n_rounds=2, n_steps=12, validation_fraction=0.1, client=None)
    return model.fit(da.from_array(X, chunks=(100, -1)), da.from_array(y, chunks=100)).to_local()


BUDGETS = ["random", "forgetron", "projectron", "projectron++", "bpas", "bogd"]
ONLINE = {
    "two classes, IKOGD": ikogd(learning_rate="auto"),
    "two classes, IKOGD voronoi": ikogd(partitioning="voronoi", scale="minmax"),
    "two classes, IKOGD logistic averaged": ikogd(loss="logistic", average=True),
    "two classes, IKOGD squared hinge, shrinkage": ikogd(loss="squared_hinge", shrinkage=0.01),
    "two classes, IKOGD decaying": ikogd(schedule="decaying"),
    "two classes, IKOGD balanced": ikogd(class_weight="balanced"),
    "two classes, IKOGD dual": ikogd(evaluation="dual", schedule="constant", learning_rate=0.47),
    "two classes, IKOGD naive": ikogd(evaluation="naive"),
    "two classes, OGD laplacian": ogd(),
    "two classes, OGD gaussian averaged": ogd(kernel="gaussian", average=True),
    "two classes, OGD isolation": ogd(kernel=IsolationKernel(**TREES, sparse_output=True)),
    **{f"two classes, OGD {strategy}": ogd(budget=30, strategy=strategy) for strategy in BUDGETS},
    "two classes, NOGD": nogd(),
    "two classes, FOGD": fogd(),
    "two classes, FOGD orthogonal": fogd(features="orthogonal"),
    "two classes, FOGD laplacian": fogd(kernel="laplacian"),
    "two classes, AdaRaker": raker(),
    "ten classes, IKOGD": ikogd(),
    "ten classes, OGD": ogd(),
    "ten classes, NOGD": nogd(),
    "numbers, squared": regressor(loss="squared"),
    "numbers, huber": regressor(loss="huber"),
    "numbers, epsilon-insensitive": regressor(loss="epsilon_insensitive"),
    "a9a, IKOGD": ikogd(),
    "a9a, FOGD": fogd(),
}
LEARNERS = {f"{name}, {learn.__name__}": partial(learn, ONLINE[name]) for name in ONLINE for learn in (fit, stream)}
LEARNERS |= {
    "two classes, CV tree": partial(fit, search()),
    "two classes, CV voronoi": partial(fit, search(partitioning="voronoi")),
    "ten classes, late class": late_class,
    "ten classes, merged": merged,
    "two classes, Dask": distributed,
    "ten classes, Dask": distributed,
}
BATCH = {f"{task}, IKSVC": partial(fit, svc()) for task in ("two classes", "ten classes", "a9a")}


def answers(model, X):
    """Return the predictions and counts of a model as JSON values."""
    methods = [name for name in ("decision_function", "predict_proba", "predict") if hasattr(model, name)]
    known = [name for name in ("n_support_", "best_params_") if hasattr(model, name)]
    return {name: getattr(model, name)(X).tolist() for name in methods} | {name: getattr(model, name) for name in known}


def compute_answers(name, data_set):
    X, y = small_rows(name, data_set)
    return answers((LEARNERS | BATCH)[name](X[:300], y[:300]), X[400:])


# Tests


@pytest.fixture(scope="module")
def golden():
    return json.loads(GOLDEN.read_text())


@pytest.mark.parametrize("name", CELLS)
def test_cells_are_the_golden_bytes(name, data_set, golden):
    assert compute_cells(name, data_set) == golden[name]


@pytest.mark.parametrize("name", PAPERS)
def test_scores_of_the_papers_learner_are_the_golden_bytes(name, data_set, golden):
    assert compute_paper(name, data_set) == golden[name]


@pytest.mark.parametrize("narrower", ["baseline", "avx2", "avx512"])
def test_narrower_instruction_sets_give_the_same_bytes(narrower):
    # Where the CPU lacks the set, the core falls back to the widest that it has.
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "golden_bytes", __file__]
    environment = os.environ | {"ISOKERN_ISA": narrower}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", LEARNERS | BATCH)
def test_other_learners_equal_the_golden_values_up_to_rounding(name, data_set, golden):
    actual, expected = compute_answers(name, data_set), golden[name]
    assert actual.keys() == expected.keys()
    for what, value in expected.items():
        if isinstance(value, list):
            np.testing.assert_allclose(actual[what], value, rtol=1e-9, atol=1e-9, err_msg=what)
        else:
            assert actual[what] == value


@pytest.mark.parametrize("name", LEARNERS)
def test_a_loaded_model_learns_on_like_the_saved_one(name, data_set, tmp_path):
    X, y = small_rows(name, data_set)
    model = LEARNERS[name](X[:300], y[:300])
    isokern.save(model, tmp_path / "model")
    loaded = isokern.load(tmp_path / "model")
    kept, reloaded = (answers(each.partial_fit(X[300:400], y[300:400]), X) for each in (model, loaded))
    assert reloaded == kept


def rewrite(data_set):
    """Compute all cases and write ``golden.json``, one case per line."""
    tables = {compute_cells: CELLS, compute_paper: PAPERS, compute_answers: LEARNERS | BATCH}
    values = {name: compute(name, data_set) for compute, names in tables.items() for name in names}
    lines = (f"{json.dumps(name)}: {json.dumps(value)}" for name, value in values.items())
    GOLDEN.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    rewrite(lambda name: Path(os.environ["ISOKERN_DATA"]) / f"{name}.xz")
