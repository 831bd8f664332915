"""Forge model files with a valid digest; load them, predict, learn, merge, save and show them."""

from __future__ import annotations

import contextlib
import io

import numpy as np
from scipy import sparse
from sklearn.base import clone

from forging import Forgery, is_array, nodes_of
from isokern import (
    IKSVC,
    AdaptiveIKClassifier,
    AdaptiveIKRegressor,
    AdaRakerClassifier,
    FOGDClassifier,
    IKOGDClassifier,
    IKOGDClassifierCV,
    IKOGDRegressor,
    IKOGDRegressorCV,
    IsolationKernel,
    NOGDClassifier,
    OGDClassifier,
    merge,
)
from isokern.cli.info import info
from isokern.inspection import SimilarRows
from isokern.learners.budgets import BUDGETS
from isokern.persistence import SAVED, load, save
from learning import SMALL, make_rows

MODELS = {
    "trees": IKOGDClassifier(**SMALL, scale="minmax", schedule="adagrad", n_initial=50),
    "race": IKOGDClassifier(n_partitionings=4, random_state=0, n_initial=50),
    "holding rows": IKOGDClassifier(**SMALL, n_initial=5000),
    "categories": IKOGDClassifier(**SMALL, categorical_features=[1], n_initial=50),
    "categories, holding rows": IKOGDClassifier(**SMALL, categorical_features=[1], n_initial=5000),
    "dual": IKOGDClassifier(evaluation="dual", schedule="constant", **SMALL, n_initial=50),
    "voronoi": IKOGDClassifier("voronoi", loss="logistic", average=True, **SMALL, n_initial=50),
    "adaptive": AdaptiveIKClassifier(4, random_state=0),
    "adaptive regressor": AdaptiveIKRegressor(4, random_state=0),
    "regressor": IKOGDRegressor(**SMALL, n_initial=50),
    "svc": IKSVC(**SMALL),
    "search": IKOGDClassifierCV(n_partitionings=6, n_cells=(2, 8), cv=3, random_state=0),
    "search for numbers": IKOGDRegressorCV(n_partitionings=6, n_cells=(2, 8), cv=3, random_state=0),
    "ogd": OGDClassifier(gamma=0.5, random_state=0),
    **{f"ogd, {name}": OGDClassifier(gamma=0.5, budget=10, strategy=name, random_state=0) for name in BUDGETS},
    "nogd": NOGDClassifier(gamma=0.5, n_landmarks=20, random_state=0),
    "nogd, before the switch": NOGDClassifier(gamma=0.5, n_landmarks=500, random_state=0),
    "fogd": FOGDClassifier(gamma=0.5, n_frequencies=5, random_state=np.random.RandomState(0)),
    "adaraker": AdaRakerClassifier([1.0, 2.0], n_directions=3, random_state=0),
}
SPARSE = ["adaptive", "holding rows", "ogd", "nogd", "ogd, random"]
X, y = make_rows(60, 3)


def write_seeds(folder):
    for name, model in MODELS.items():
        learn = clone(model).partial_fit if name not in ("svc", "search", "search for numbers") else clone(model).fit
        save(learn(X, y), folder / name)
    for name in SPARSE:
        save(clone(MODELS[name]).partial_fit(sparse.csr_array(X), y), folder / f"sparse {name}")
    save(IsolationKernel("voronoi", **SMALL).fit(sparse.csr_array(X)), folder / "sparse voronoi")
    save(IsolationKernel(**SMALL, sparse_output=False).fit(X), folder / "kernel")
    save(SimilarRows(IsolationKernel(**SMALL, n_scales=2).fit(X)).add(X), folder / "similar rows")


# Changes

NUMBERS = [-1, 0, 1, 2, 3, 255, 2**31 - 1, 2**31, 2**53, 2**62, 2**63 - 1, 2**63, 10**30, 0.5, -1e300, 1e300]
DTYPES = ["<f8", "<f4", "<f2", ">f8", "<i8", "<i4", "|i1", "|u1", "|b1", "<U1", "<U0", "|S0", "|S8", "<M8[s]", "|O"]
VALUES = [*NUMBERS, None, True, "x", "hinge", "IKSVC", *DTYPES, [], {"kind": "dict", "items": []}]


def change(rng, path, work):
    """Return a model file with a few changes and a valid digest."""
    forgery = Forgery(path)
    for _ in range(rng.choice([1, 1, 2, 3])):
        rng.choice(CHANGES)(rng, forgery)
    forgery.write(work)
    return work.read_bytes()


def change_value(rng, forgery):
    nodes = list(nodes_of(forgery.header))
    node, key = rng.choice([(n, k) for n in nodes for k in (n if isinstance(n, dict) else range(len(n)))])
    node[key] = rng.choice(NUMBERS if type(node[key]) in (int, float) and rng.random() < 0.8 else VALUES)


def swap_values(rng, forgery):
    nodes = [node for node in nodes_of(forgery.header) if isinstance(node, dict) and not is_array(node)]
    (one, key), (other, name) = (rng.choice([(node, key) for node in nodes for key in node]) for _ in range(2))
    one[key], other[name] = other[name], one[key]


def drop_value(rng, forgery):
    node = rng.choice([node for node in nodes_of(forgery.header) if len(node)])
    del node[rng.choice(list(node) if isinstance(node, dict) else range(len(node)))]


def change_array(rng, forgery):
    array = rng.choice([array for array in forgery.arrays if array.nbytes])
    values = array.reshape(-1, 1).view(np.uint8)
    values[rng.randrange(len(values)), rng.randrange(values.shape[1]) if rng.random() < 0.5 else slice(None)] = (
        rng.choice([0, 1, 127, 128, 255, rng.randrange(256)])
    )


def fill_array(rng, forgery):
    array = rng.choice(forgery.arrays)
    numbers = [number for number in (*NUMBERS, np.nan, np.inf) if np.can_cast(np.min_scalar_type(number), array.dtype)]
    if numbers:
        array[...] = rng.choice(numbers)


def change_shape(rng, forgery):
    shape = rng.choice([node["shape"] for node in nodes_of(forgery.header) if is_array(node)])
    changes = [shape[::-1], [*shape, 1], [0, *shape], [*shape, 0], [*shape[:-1], rng.choice(NUMBERS)]]
    shape[:] = rng.choice(changes)


def change_dtype(rng, forgery):
    rng.choice([node for node in nodes_of(forgery.header) if is_array(node)])["dtype"] = rng.choice(DTYPES)


def resize_array(rng, forgery):
    node = rng.choice([node for node in nodes_of(forgery.header) if is_array(node) and id(node) in forgery.places])
    place = forgery.places[id(node)]
    sizes = [rng.choice([0, 1, n, n, n + 1, 2 * n]) for n in forgery.arrays[place].shape]
    forgery.arrays[place] = np.resize(forgery.arrays[place], sizes)
    node["shape"] = sizes


CHANGES = [change_value] * 3 + [change_array] * 2
CHANGES += [swap_values, drop_value, fill_array, change_shape, change_dtype, resize_array]


# Uses

METHODS = [("apply", X), ("transform", X), ("decision_function", X), ("predict", X), ("predict_proba", X)]
METHODS += [("query", X, 3), ("add", X)]


def use(path):
    """Load a model and use it in every way; errors of a loaded model are ValueErrors too."""
    model = load(path)
    again = path.with_name("again.isokern")
    save(model, again)
    assert type(load(again)) in SAVED
    show(path)
    if hasattr(model, "learned_") and not hasattr(model, "ladder_"):
        attempt(merge, [model, model])
    for _ in range(2):
        for name, *arguments in METHODS:
            if hasattr(model, name):
                attempt(getattr(model, name), *arguments)
        if hasattr(model, "partial_fit"):
            attempt(model.partial_fit, X, y)
    save(model, again)


def show(path):
    """Run ``isokern info``."""
    with contextlib.redirect_stdout(io.StringIO()):
        info(str(path))


def attempt(call, *arguments):
    with contextlib.suppress(ValueError):
        call(*arguments)
