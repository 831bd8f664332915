"""Test the search for similar rows: equality with sorting the kernel matrix, ties, streams, files and mistakes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

import isokern
import reference_inspection as reference
from command_line import succeed
from isokern import IKSVC, AdaptiveIKClassifier, IKOGDClassifier, IsolationKernel
from isokern.inspection import SimilarRows, similar_rows


def make_rows(n=500, seed=0):
    """Return rows with ties and duplicates."""
    X = np.random.default_rng(seed).normal(size=(n, 3)).round(1)
    X[10:40] = X[10]
    return X


KERNELS = {
    "bytes": {"n_cells": 16},
    "two bytes": {"n_cells": 400},
    "more than 255 partitionings": {"n_cells": 4, "n_partitionings": 300},
    "several scales": {"n_cells": 400, "n_scales": "auto"},
    "Voronoi": {"partitioning": "voronoi", "n_cells": 16},
    "Voronoi, several scales": {"partitioning": "voronoi", "n_cells": 64, "n_scales": 3},
    "one partitioning": {"n_cells": 8, "n_partitionings": 1},
}


def fitted(name, X, **others):
    return IsolationKernel(**{"n_partitionings": 30, "random_state": 0} | KERNELS[name] | others).fit(X)


@pytest.mark.parametrize("k", [1, 7, 300])
@pytest.mark.parametrize("name", KERNELS)
def test_the_most_similar_rows_are_the_largest_entries_of_the_kernel_matrix(name, k):
    X = make_rows()
    kernel = fitted(name, X)
    found = similar_rows(kernel, X[:37], k, among=X[:300])
    expected = reference.similar_rows(kernel.similarity(X[:37], X[:300]), k)
    np.testing.assert_array_equal(found[0], expected[0])
    assert found[1].tobytes() == expected[1].tobytes()


@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
def test_rows_can_be_added_along_a_stream(n):
    X = make_rows()
    kernel = fitted("several scales", X)
    at_once, one_by_one = SimilarRows(kernel).add(X[:n]), SimilarRows(kernel)
    for row in X[:n]:
        one_by_one.add(row[None])
    k = min(n, 5)
    for first, second in zip(at_once.query(X[:20], k), one_by_one.query(X[:20], k), strict=True):
        np.testing.assert_array_equal(first, second)
    assert len(one_by_one) == one_by_one.n == n


def test_of_equally_similar_rows_the_earlier_is_first():
    X = np.repeat(make_rows(50)[:5], 40, axis=0)
    indices, similarities = similar_rows(fitted("bytes", X, n_cells=5), X[:1], 40, among=X)
    assert indices[0].tolist() == list(range(40))
    assert (similarities == 1.0).all()


@pytest.mark.parametrize("n_rows", [1, 3, 100])
def test_the_number_of_threads_changes_nothing(n_rows):
    X = make_rows(2000)
    expected = similar_rows(fitted("bytes", X, n_jobs=1), X[:n_rows], 9, among=X)
    found = similar_rows(fitted("bytes", X, n_jobs=5), X[:n_rows], 9, among=X)
    np.testing.assert_array_equal(found[0], expected[0])


def test_without_other_rows_a_row_finds_itself_first():
    X = np.random.default_rng(0).normal(size=(100, 3))
    indices, similarities = similar_rows(fitted("bytes", X, n_cells=100), X, 2)
    assert indices[:, 0].tolist() == list(range(100))
    assert (similarities[:, 0] == 1.0).all()


def test_sparse_rows_are_found_like_dense_ones():
    X = make_rows()
    kernel = fitted("bytes", X)
    dense, found = SimilarRows(kernel).add(X), SimilarRows(kernel).add(sparse.csr_array(X))
    np.testing.assert_array_equal(dense.query(X[:9], 3)[0], found.query(sparse.csr_array(X[:9]), 3)[0])


# Of the five scales, the last two have more than 256 cells.
BYTES = {"bytes": 30, "two bytes": 2 * 30, "several scales": (3 + 2 * 2) * 30}


@pytest.mark.parametrize(("name", "expected"), BYTES.items())
def test_a_row_takes_the_stated_number_of_bytes(name, expected):
    X = make_rows()
    index = SimilarRows(fitted(name, X)).add(X[:64])
    assert index.bytes_per_row == expected
    assert sum(panels.nbytes for panels in index.panels) == 64 * expected


@pytest.mark.parametrize("learner", [IKOGDClassifier(n_partitionings=10), IKSVC(n_partitionings=10)])
def test_a_learner_s_kernel_serves(learner):
    X = make_rows()
    learner.fit(X, X[:, 0] > 0)
    found = similar_rows(learner, X[:5], 3)
    np.testing.assert_array_equal(found[0], similar_rows(learner.kernel_, X[:5], 3)[0])


def test_an_index_is_saved_with_its_kernel(tmp_path):
    X = make_rows()
    index = SimilarRows(fitted("several scales", X)).add(X[:100])
    isokern.save(index, tmp_path / "index.isokern")
    loaded = isokern.load(tmp_path / "index.isokern")
    for one in (index, loaded):
        one.add(X[100:])
    for first, second in zip(index.query(X[:20], 5), loaded.query(X[:20], 5), strict=True):
        np.testing.assert_array_equal(first, second)


def test_the_command_info_describes_an_index(tmp_path):
    X = make_rows()
    isokern.save(SimilarRows(fitted("bytes", X)).add(X), tmp_path / "index.isokern")
    out = succeed(tmp_path, "info", "index.isokern").out
    assert out.startswith("stored rows    500\nbytes of each  30\nclass ")


# -- mistakes


@pytest.mark.parametrize("k", [0, 11, 2.5, True, "all"])
def test_k_is_a_number_of_stored_rows(k):
    X = make_rows()
    with pytest.raises(ValueError, match="k must be from 1 to the number of stored rows, 10; got"):
        SimilarRows(fitted("bytes", X)).add(X[:10]).query(X, k)


def test_an_empty_index_is_refused():
    X = make_rows()
    with pytest.raises(ValueError, match="number of stored rows, 0"):
        SimilarRows(fitted("bytes", X)).query(X, 1)


def test_maps_that_change_are_refused():
    X = make_rows(1000)
    y = X[:, 0] > 0
    growing = IKOGDClassifier(n_partitionings=10, random_state=0).partial_fit(X, y)
    adaptive = AdaptiveIKClassifier(n_partitionings=10, random_state=0).fit(X, y)
    for learner in (growing, adaptive):
        with pytest.raises(ValueError, match="kernel must have a map that stays as it is"):
            SimilarRows(learner)


def test_a_kernel_that_was_fitted_anew_is_refused():
    X = make_rows()
    kernel = fitted("bytes", X)
    index = SimilarRows(kernel).add(X)
    kernel.fit(X[:100])
    with pytest.raises(ValueError, match="kernel must not be fitted anew"):
        index.query(X, 1)


@pytest.mark.parametrize("kernel", [IsolationKernel(), IKOGDClassifier()])
def test_unfitted_kernels_are_refused(kernel):
    with pytest.raises(NotFittedError):
        similar_rows(kernel, make_rows(), 1)


def test_other_objects_are_refused():
    with pytest.raises(TypeError, match="kernel must be a fitted IsolationKernel or a learner that holds one; got str"):
        similar_rows("tree", make_rows(), 1)


def test_an_index_has_its_own_rows():
    X = make_rows()
    index = SimilarRows(fitted("bytes", X)).add(X)
    with pytest.raises(ValueError, match="among must be None"):
        similar_rows(index, X, 1, among=X)
    np.testing.assert_array_equal(similar_rows(index, X[:3], 2)[0], index.query(X[:3], 2)[0])
