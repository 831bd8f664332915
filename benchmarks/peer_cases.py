"""Define the work that is compared with peers, and how each peer does it."""

from __future__ import annotations

import functools
import lzma
import tempfile
from pathlib import Path

import datasets
import numpy as np
from joblib import Parallel, delayed
from peak import Mapping
from scipy import sparse

from isokern import IKSVC, IKOGDClassifier, IKOGDClassifierCV, IsolationKernel
from isokern.data import read_libsvm
from isokern.evaluation import prequential
from isokern.rows import as_scipy

THREADS = 2

load = functools.cache(datasets.load)

CASES = []


def case(name, peer, target):
    """Register a function that returns (ours, theirs): two functions without arguments that do the same work.

    A third value is a note for the table. The target is the ratio of their time to ours that we aim for.
    """

    def register(function):
        CASES.append((name, peer, target, function))
        return function

    return register


def covertype(n=100_000):
    return np.ascontiguousarray(load("covertype")[0][:n])


def shuffled_covertype(n=100_000):
    """Return random rows and their labels, in random order."""
    X, y = load("covertype")[:2]
    which = np.random.default_rng(0).permutation(len(y))[:n]
    return X[which], y[which]


def fitted(X, partitioning, n_cells, **options):
    return IsolationKernel(partitioning, 100, n_cells, random_state=0, n_jobs=THREADS, **options).fit(X)


# -- trees


def isotree(X, n_cells, max_depth=None):
    from isotree import IsolationForest

    options = {"ndim": 1, "max_depth": max_depth, "missing_action": "fail", "nthreads": THREADS, "random_seed": 1}
    return IsolationForest(ntrees=100, sample_size=n_cells, **options).fit(X)


def tree_map(n_cells, X, max_depth=None):
    kernel, forest = fitted(X, "tree", n_cells, max_depth=max_depth), isotree(X, n_cells, max_depth)
    return Mapping(kernel, X), lambda: forest.predict(X, output="tree_num")


def tree_map_sklearn(max_depth):
    """Compare with the trees of scikit-learn's IsolationForest, which is always capped at log2(psi), also uncapped."""
    from sklearn.tree import ExtraTreeRegressor

    X, rng = covertype(), np.random.default_rng(0)
    kernel, single, trees = fitted(X, "tree", 256, max_depth=max_depth), X.astype(np.float32), []
    for seed in range(100):
        sample = rng.choice(len(X), 256, replace=False)
        tree = ExtraTreeRegressor(max_features=1, max_depth=max_depth, random_state=seed)
        trees.append(tree.fit(single[sample], rng.random(256)).tree_)

    def theirs():
        Parallel(THREADS, prefer="threads")(delayed(tree.apply)(single) for tree in trees)

    return Mapping(kernel, X), theirs


@case("tree map, covertype 100,000 rows, psi = 256, uncapped", "isotree, tree_num", 8)
def tree_map_256():
    return tree_map(256, covertype())


@case("tree map, covertype 100,000 rows, psi = 256, capped", "isotree, same depth, tree_num", 8)
def tree_map_256_capped():
    return tree_map(256, covertype(), max_depth=8)


@case("tree map, covertype 100,000 rows, psi = 256, uncapped", "scikit-learn's isolation trees, in two threads", 3)
def tree_map_sklearn_uncapped():
    return tree_map_sklearn(None)


@case("tree map, covertype 100,000 rows, psi = 256, capped", "scikit-learn's isolation trees, in two threads", 3)
def tree_map_sklearn_capped():
    return tree_map_sklearn(8)


@case("tree map, covertype 100,000 rows, psi = 4096", "isotree, tree_num", 12)
def tree_map_4096():
    return tree_map(4096, covertype())


@case("tree map, covertype 100,000 rows in random order, psi = 16,384", "isotree, tree_num", 12)
def tree_map_16384():
    return tree_map(16_384, shuffled_covertype()[0])


@case("tree map, rcv1 subset (CSR), psi = 256, capped", "scikit-learn RandomTreesEmbedding, same depth", 10)
def sparse_tree_map():
    from sklearn.ensemble import RandomTreesEmbedding

    X = load("rcv1 subset")[0]
    kernel = fitted(X, "tree", 256, max_depth="log2")
    embedding = RandomTreesEmbedding(n_estimators=100, max_depth=8, random_state=0, n_jobs=THREADS).fit(X[:2000])
    return Mapping(kernel, X), lambda: embedding.transform(X)


@case("tree map, rcv1 subset (CSR), psi = 256, uncapped", "our own capped map", 1 / 3)
def sparse_tree_map_uncapped():
    X = load("rcv1 subset")[0]
    kernel, capped = fitted(X, "tree", 256), fitted(X, "tree", 256, max_depth="log2")
    return Mapping(kernel, X), lambda: capped.apply(X)


def growing(n_cells):
    X = covertype()
    return lambda: fitted(X, "tree", n_cells), lambda: isotree(X, n_cells)


@case("growing trees, covertype, psi = 256", "isotree's fit", 3)
def growing_256():
    return growing(256)


@case("growing trees, covertype, psi = 4096", "isotree's fit", 3)
def growing_4096():
    return growing(4096)


# -- predictions


def predicting(n_cells):
    from lightgbm import LGBMClassifier

    X, y = shuffled_covertype()
    ours = IKOGDClassifier(n_cells=n_cells, n_partitionings=100, random_state=0, n_jobs=THREADS).fit(X, y)
    theirs = LGBMClassifier(n_estimators=100, num_leaves=255, n_jobs=THREADS, verbose=-1).fit(X, y).booster_
    return lambda: ours.predict(X), lambda: theirs.predict(X, num_threads=THREADS)


@case("predict, covertype 100,000 rows in random order, tree, psi = 256", "LightGBM, 100 trees of 255 leaves", 2.5)
def predicting_256():
    return predicting(256)


@case("predict, covertype 100,000 rows in random order, tree, psi = 16,384", "LightGBM, 100 trees of 255 leaves", 1)
def predicting_16384():
    return predicting(16_384)


# -- Voronoi cells


def faiss_searches(kernel, rows):
    """Return a function that searches every sample with faiss."""
    import faiss

    faiss.omp_set_num_threads(THREADS)
    cells = kernel.map_.partitionings
    points = as_scipy(cells.points)
    points = np.ascontiguousarray(points.toarray() if sparse.issparse(points) else points, dtype=np.float32)
    rows = np.ascontiguousarray(rows, dtype=np.float32)

    def search():
        found = []
        for sample in cells.samples:
            index = faiss.IndexFlatL2(points.shape[1])
            index.add(points[sample])
            found.append(index.search(rows, 1)[1])
        return found

    return search


def voronoi_map(X, n_cells, n_rows, dense=None):
    kernel = fitted(X, "voronoi", n_cells)
    rows = X[:n_rows]
    return Mapping(kernel, rows), faiss_searches(kernel, rows if dense is None else dense[:n_rows])


@case("Voronoi map, mnist 4,000 rows, psi = 256", "faiss IndexFlatL2, a search per sample", 12)
def voronoi_mnist_256():
    return voronoi_map(load("mnist")[0], 256, 4000)


@case("Voronoi map, mnist 1,000 rows, psi = 4096", "faiss IndexFlatL2, a search per sample", 50)
def voronoi_mnist_4096():
    return voronoi_map(load("mnist")[0], 4096, 1000)


@case("Voronoi map, a9a 4,000 rows as CSR, psi = 4096", "faiss IndexFlatL2 on dense rows", 30)
def voronoi_a9a():
    X = load("a9a")[0]
    return voronoi_map(sparse.csr_matrix(X), 4096, 4000, dense=X)


@case("Voronoi map, covertype 8,000 rows, psi = 4096", "faiss IndexFlatL2, a search per sample", 10)
def voronoi_covertype():
    return voronoi_map(load("covertype")[0], 4096, 8000)


@case("Voronoi map, rcv1 subset 500 rows (CSR), psi = 1024", "scipy: X @ Z.T per sample, argmin", 10)
def voronoi_rcv1():
    X = load("rcv1 subset")[0]
    kernel = fitted(X, "voronoi", 1024)
    rows, cells = X[:500], kernel.map_.partitionings
    points = as_scipy(cells.points)

    def theirs():
        for sample in cells.samples:
            Z = points[sample]
            squares = np.asarray(Z.multiply(Z).sum(axis=1)).ravel()
            ((rows @ Z.T).toarray() * -2 + squares).argmin(axis=1)

    return Mapping(kernel, rows), theirs


@case("fitting Voronoi cells, covertype, psi = 4096", "one pass of mapping the same rows (1/50 of its time)", 50)
def fitting_voronoi():
    X = load("covertype")[0]
    kernel = fitted(X, "voronoi", 4096)
    return lambda: fitted(X, "voronoi", 4096), Scaled(lambda: kernel.apply(X[:8000]), len(X) / 8000)


@case(
    "IKOGDClassifierCV, eleven psi x 5 folds, Voronoi, mnist 20,000 rows", "one fit at psi = 4096 (2.5 times)", 1 / 2.5
)
def searching():
    X, y = (part[:20_000] for part in load("mnist")[:2])
    options = {"partitioning": "voronoi", "random_state": 0, "n_jobs": THREADS}
    one = IKOGDClassifier(n_cells=4096, **options)
    return lambda: IKOGDClassifierCV(**options).fit(X, y), lambda: one.fit(X, y)


class Scaled:
    """Work that is done in part; its time is extrapolated."""

    def __init__(self, work, factor):
        self.work, self.factor = work, factor

    def __call__(self):
        self.work()


# -- streams


def covertype_stream(n=200_000):
    X, y = load("covertype")[:2]
    return [(X[k : k + 1000], y[k : k + 1000]) for k in range(0, n, 1000)]


def learn_along(learner, stream):
    """Return the accuracy of predicting each block before learning it."""
    n_correct = 0
    for k, (X, y) in enumerate(stream):
        if k:
            n_correct += np.sum(learner.predict(X) == y)
        learner.partial_fit(X, y, classes=[0, 1])
    return n_correct / (1000 * (len(stream) - 1))


def our_stream(stream, seed=0):
    learner = IKOGDClassifier(n_cells=256, n_initial=1000, n_jobs=THREADS, random_state=seed)
    *_, last = prequential(learner, stream, protocol="blocks")
    return last.accuracy


@case("prequential stream, covertype 200,000 rows, tree, psi = 256", "RBFSampler(1000) + SGDClassifier", 4)
def streaming_rbf():
    from sklearn.kernel_approximation import RBFSampler
    from sklearn.linear_model import SGDClassifier

    stream = covertype_stream()

    def theirs(seed=0):
        sampler = RBFSampler(gamma="scale", n_components=1000, random_state=seed).fit(stream[0][0])
        learner = SGDClassifier(random_state=seed)
        return learn_along(_Mapped(sampler, learner), stream)

    ours = [our_stream(stream, seed) for seed in range(3)]
    others = [theirs(seed) for seed in range(3)]
    note = f"accuracy {np.mean(ours):.3f} against {np.mean(others):.3f}, means of 3 seeds"
    return lambda: our_stream(stream), theirs, note


class _Mapped:
    """A learner on the features of a map."""

    def __init__(self, sampler, learner):
        self.sampler, self.learner = sampler, learner

    def predict(self, X):
        self.cells = self.sampler.transform(X)
        return self.learner.predict(self.cells)

    def partial_fit(self, X, y, classes):
        cells = getattr(self, "cells", None)
        self.learner.partial_fit(self.sampler.transform(X) if cells is None else cells, y, classes=classes)


@case("the same, rows per second", "river's Hoeffding adaptive tree", 100)
def streaming_river():
    from river.tree import HoeffdingAdaptiveTreeClassifier

    stream = covertype_stream()
    few = [
        ({j: float(x) for j, x in enumerate(row)}, int(label))
        for X, y in stream[:3]
        for row, label in zip(X, y, strict=True)
    ]

    def theirs():
        model = HoeffdingAdaptiveTreeClassifier(seed=0)
        for x, y in few:
            model.predict_one(x)
            model.learn_one(x, y)

    return lambda: our_stream(stream), Scaled(theirs, len(stream) / 3)


# -- support vector machines


def svm_objective(weights, intercept, features, signs):
    """Return the objective of an SVM with squared hinge loss and C = 1."""
    margins = signs * (features @ weights + intercept)
    return (weights @ weights + intercept**2) / 2 + np.sum(np.maximum(0, 1 - margins) ** 2)


@case(
    "IKSVC's solver, covertype 100,000 rows (cells given), psi = 1024",
    "scikit-learn LinearSVC on the CSR, same loss, C and objective",
    3,
)
def support_vectors():
    from sklearn.svm import LinearSVC

    X, y = covertype(), load("covertype")[1][:100_000]
    kernel = fitted(X, "tree", 1024)
    cells, features = kernel.apply(X), kernel.transform(X)
    ours = IKSVC(kernel=kernel, C=1.0, tol=0.1, random_state=0, n_jobs=THREADS)
    theirs = LinearSVC(tol=0.1, dual=True, random_state=0)
    signs = np.where(y == np.unique(y)[1], 1.0, -1.0)
    ours.fit_cells(cells, y)
    theirs.fit(features, y)
    mine = svm_objective(ours.cell_weights_[0], ours.intercept_[0], features, signs)
    other = svm_objective(theirs.coef_[0], theirs.intercept_[0], features, signs)
    if abs(mine / other - 1) > 1e-3:
        raise RuntimeError(f"the objectives must be within 0.1 %; got {mine} and {other}.")
    both = 8 * (features.shape[1] + len(y))  # weights and dual variables
    bytes_ours = cells.nbytes + both + 8 * len(y)  # the order of rows, and their classes
    bytes_theirs = features.data.nbytes + features.indices.nbytes + features.indptr.nbytes + both
    note = f"objective {mine:.1f} against {other:.1f}, {bytes_theirs / bytes_ours:.1f} times smaller arrays"
    return lambda: ours.fit_cells(cells, y), lambda: theirs.fit(features, y), note


# -- files


@case("reading mnist, plain LIBSVM text", "scikit-learn load_svmlight_file", 5)
def reading():
    from sklearn.datasets import load_svmlight_file

    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "mnist"
    path.write_bytes(lzma.decompress((datasets.FOLDER / "mnist.xz").read_bytes()))

    def ours():
        assert folder  # keeps the folder as long as this function
        return read_libsvm(path, n_jobs=THREADS)

    return ours, lambda: load_svmlight_file(path)
