"""Change files of models at random, load them, predict and learn: a script, so that a crash is seen as such.

Arguments: the folder of the tests, the first and the last seed, where to write, and the files to change. Prints how
many changed files could be loaded, and the most memory taken.
"""

import contextlib
import os
import random
import resource
import sys
import warnings

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])

from forging import Forgery, is_array, nodes_of
from isokern.persistence import read_file

NUMBERS = [-1, 0, 1, 2, 3, 255, 2**31 - 1, 2**31, 2**62, 2**63 - 1, 2**63, 10**30, 0.5, -1e300, 1e300]
VALUES = [*NUMBERS, None, True, "x", "hinge", "IKSVC", "<f8", [], {"kind": "dict", "items": []}]
X = np.random.default_rng(0).normal(size=(60, 3))
y = np.searchsorted([-0.4, 0.4], X[:, 0])
USES = [("apply", X), ("transform", X), ("predict", X), ("predict_proba", X), ("partial_fit", X, y)] * 2


def change_value(rng, forgery):
    nodes = list(nodes_of(forgery.header))
    node, key = rng.choice([(n, k) for n in nodes for k in (n if isinstance(n, dict) else range(len(n)))])
    node[key] = rng.choice(NUMBERS if type(node[key]) in (int, float) and rng.random() < 0.8 else VALUES)


def swap_values(rng, forgery):
    nodes = [node for node in nodes_of(forgery.header) if isinstance(node, dict) and not is_array(node)]
    (one, key), (other, name) = (rng.choice([(node, key) for node in nodes for key in node]) for _ in range(2))
    one[key], other[name] = other[name], one[key]


def change_array(rng, forgery):
    array = rng.choice([array for array in forgery.arrays if array.nbytes])
    values = array.reshape(-1, 1).view(np.uint8)
    values[rng.randrange(len(values)), rng.randrange(values.shape[1]) if rng.random() < 0.5 else slice(None)] = (
        rng.choice([0, 1, 127, 128, 255, rng.randrange(256)])
    )


def change_shape(rng, forgery):
    shape = rng.choice([node["shape"] for node in nodes_of(forgery.header) if is_array(node)])
    changes = [shape[::-1], [*shape, 1], [0, *shape], [*shape[:-1], rng.choice(NUMBERS)]]
    shape[:] = rng.choice(changes)


def forge(seed, files, path):
    rng = random.Random(seed)
    forgery = Forgery(files[seed % len(files)])
    for _ in range(rng.choice([1, 1, 2, 3])):
        rng.choice([change_value, change_value, swap_values, change_array, change_array, change_shape])(rng, forgery)
    forgery.write(path)


def use(model):
    for name, *arguments in USES:
        with contextlib.suppress(Exception):
            getattr(model, name)(*arguments)


def run(first, last, path, *files):
    n_loaded = 0
    for seed in range(int(first), int(last)):
        try:
            forge(seed, files, path)
        except (LookupError, RecursionError, TypeError, ValueError):
            continue  # two changes that spoil each other
        try:
            model = read_file(path)
        except ValueError:
            continue
        n_loaded += 1
        use(model)
    return n_loaded


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    os.fsync = lambda handle: None  # files that are read at once need not be on a disk
    resource.setrlimit(resource.RLIMIT_AS, (4 * 2**30, 4 * 2**30))
    print(run(*sys.argv[2:]), megabytes("VmHWM"))  # noqa: F821 (the tests put megabytes in front)
