"""Test maps that grow with a stream: the trees, the rows that are kept, and the classifier."""

from __future__ import annotations

import copy
import itertools
import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.model_selection import learning_curve

import isokern
import reference
from isokern import IKOGDClassifier, IKOGDRegressor, IsolationKernel
from isokern.learners import growth
from isokern.learners.growth import SQUARES_SHARE, FirstRows, Growth, Heirs
from isokern.learners.linear_term import LinearTerm
from isokern.learners.warm_up import Batch
from isokern.partitionings import IsolationTrees
from learning import every, feed, make_rows, make_stream
from test_interrupts import interrupted, plain, state_of

T = 7
SMALL = {"n_partitionings": T, "random_state": 0}


def rows_of(kind, n, seed=0):
    """Return rows with ties and duplicates, and the numbers of categorical columns."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[:, 1] = rng.integers(0, 4, n)
    X[rng.integers(0, n, n // 5)] = X[0]
    if kind == "offset":
        X += 1e6
    if kind == "missing":
        X[rng.random(X.shape) < 0.2] = np.nan
    if kind == "sparse":
        X[X < 0.3] = 0
    return X, (1,) if kind == "categories" else ()


def grown_trees(kind, max_depth=None, n_cells=6, n_more=40):
    """Return trees, a map grown from them, the former leaves, and what the twin needs."""
    D, categorical = rows_of(kind, 90)
    rows = sparse.csr_array(D) if kind == "sparse" else D
    mask = np.isin(np.arange(D.shape[1]), categorical)
    kernel = IsolationKernel(n_partitionings=T, n_cells=n_cells, max_depth=max_depth, random_state=0)
    former = kernel.fit_rows(rows[:30], mask if categorical else None).map_
    grown, parents = former.grown(rows, n_more, 5, 2, max_depth=max_depth)
    samples = reference.draw_samples(len(D), T, n_more, 5)
    return former, grown, parents, (D, samples, categorical)


# Trees


@pytest.mark.parametrize("max_depth", [None, 5])
@pytest.mark.parametrize("kind", ["plain", "offset", "missing", "categories", "sparse"])
def test_grown_trees_equal_their_numpy_twin(kind, max_depth):
    former, grown, parents, (D, samples, categorical) = grown_trees(kind, max_depth)
    X = np.concatenate([rows_of(kind, 120, 1)[0], D])
    arrays = former.partitionings.arrays
    twin = reference.grown_cells(arrays, X, D, samples, 5, max_depth, categorical)
    rows = sparse.csr_array(X) if kind == "sparse" else X
    cells, before = grown.codes(rows, 2), former.codes(rows, 2)
    for i, of_tree in enumerate(twin):
        pairs = set(zip(of_tree, cells[:, i].tolist(), strict=True))
        assert len(pairs) == len(set(of_tree)) == len(set(cells[:, i].tolist()))
        assert np.array_equal(parents[i, cells[:, i]], before[:, i])


def test_growth_of_dense_and_sparse_rows_is_the_same():
    D, _ = rows_of("sparse", 90)
    former = IsolationKernel(n_partitionings=T, n_cells=6, random_state=0).fit(D[:30]).map_
    dense, csr = (former.grown(rows, 40, 5, 1, max_depth=None) for rows in (D, sparse.csr_array(D)))
    assert plain(dense[0]) == plain(csr[0])
    assert np.array_equal(dense[1], csr[1])


def test_nodes_keep_their_place_and_count_the_points_of_the_new_sample():
    former, grown, _, _ = grown_trees("plain")
    before, after = former.partitionings.arrays, grown.partitionings.arrays
    for i in range(T):
        old = slice(before["starts"][i], before["starts"][i + 1])
        new = slice(after["starts"][i], after["starts"][i] + old.stop - old.start)
        is_inner = before["left"][old] >= 0
        for name in ("split", "column", "left"):
            assert np.array_equal(before[name][old][is_inner], after[name][new][is_inner])
        whole = slice(after["starts"][i], after["starts"][i + 1])
        left, n_points = after["left"][whole], after["n_points"][whole]
        assert n_points[left < 0].min() == 1
        assert n_points[0] == n_points[left < 0].sum() >= 40
        assert sorted(-1 - left[left < 0]) == list(range((left < 0).sum()))


def test_the_coarse_scale_stays_when_only_leaves_grow():
    D, _ = rows_of("plain", 90)
    former = IsolationKernel(n_partitionings=T, n_cells=20, random_state=0).fit(D).map_.growing()
    grown, parents = former.grown(D, 60, 6, 1, max_depth=None)
    coarse, fine = (former.apply(D, 1).reshape(len(D), T, 2)[:, :, scale] for scale in (0, 1))
    for of_tree in zip(coarse.T, fine.T, strict=True):  # the same cells, by other numbers
        assert len(set(zip(*of_tree, strict=True))) == len(set(of_tree[0])) == len(set(of_tree[1]))
    cells = grown.apply(D, 1).reshape(len(D), T, 2)
    assert np.array_equal(cells[:, :, 0], coarse)
    assert np.array_equal(parents[np.arange(T), cells[:, :, 1]], fine)
    assert grown.n_cells > former.n_cells


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"samples": np.zeros((1, 2), dtype=np.int64)}, "a row for each tree"),
        ({"samples": np.full((T, 3), 90)}, "row numbers"),
        ({"cells": np.full((T, 3), 6, dtype=np.int32)}, "those of leaves"),
        ({"cells": np.full((T, 3), -1, dtype=np.int32)}, "those of leaves"),
        ({"categorical": np.array([9], dtype=np.int32)}, "numbers of columns"),
    ],
)
def test_the_core_refuses_to_grow_from_arguments_that_do_not_match(changes, rule):
    D, _ = rows_of("plain", 90)
    arrays = dict(IsolationKernel(n_partitionings=T, n_cells=6, random_state=0).fit(D).map_.partitionings.arrays)
    arrays.pop("n_points")
    arguments = {
        **arrays,
        "n_cells": 6,
        "rows": D,
        "samples": np.zeros((T, 3), dtype=np.int64),
        "cells": np.zeros((T, 3), dtype=np.int32),
        "max_depth": -1,
        "seed": 1,
        "categorical": np.empty(0, dtype=np.int32),
        "threads": 1,
    }
    with pytest.raises(ValueError, match=rule):
        isokern._core.grow_further(**arguments | changes)


@pytest.mark.parametrize("n_first", [[1] * (T - 1), [2] * T, [10**6 + 1] * T, [-1] * T])
def test_forged_numbers_of_first_nodes_are_refused(n_first):
    D, _ = rows_of("plain", 90)
    trees = IsolationKernel(n_partitionings=T, n_cells=6, random_state=0).fit(D).map_.partitionings
    forged = IsolationTrees(trees.n_columns, 6, trees.arrays, trees.categorical, np.array(n_first))
    with pytest.raises(ValueError, match="n_first"):
        forged.check()


# Rows that are kept


def batch_of(X):
    """Return rows whose target is their first column."""
    return Batch(X, X[:, 0], None)


FEW = 50  # rows to keep, so that growth ends at 1,024 rows


@pytest.mark.parametrize("size", [1, 7, 240])
def test_the_rows_with_the_smallest_hashes_are_kept_however_the_stream_is_cut(size):
    X = np.arange(256.0)[:, None]
    kept = Growth.begun(batch_of(X[:16]), 3, FEW)
    for begin in range(16, 256, size):
        if begin >= kept.n_next:
            kept = kept.further()
        kept = kept.keeping(batch_of(X[begin : min(begin + size, kept.n_next if size == 240 else 256)]), begin)
    if size != 240:
        expected = np.sort(np.argsort(growth._hashes(np.arange(256), 3))[:50])
        assert np.array_equal(kept.numbers, expected)
        assert np.array_equal(kept.batch.table[:, 0], expected)
        assert np.array_equal(kept.batch.targets, expected)


def test_hashes_are_uniform():
    hashes = growth._hashes(np.arange(100_000), 12345) / 2**53
    assert len(np.unique(hashes)) == 100_000
    counts, _ = np.histogram(hashes, bins=50, range=(0, 1))
    assert abs(counts - 2000).max() < 5 * np.sqrt(2000)


def test_rows_that_were_never_learned_are_kept_only_once():
    X = np.arange(60.0)[:, None]
    for begun in (Growth.begun(batch_of(X[:16]), 0, growth.MOST_CELLS), FirstRows.begun(batch_of(X[:16]), 0)):
        once = begun.keeping(batch_of(X[16:40]), 16)
        again = begun.keeping(batch_of(-X[16:50]), 16).keeping(batch_of(X[16:40]), 16)
        assert plain(once) == plain(again)


def test_of_the_rows_before_the_first_growth_those_with_the_smallest_hashes_are_kept():
    X = np.arange(256.0)[:, None]
    kept = Growth.begun(batch_of(X), 3, FEW)
    limit = np.sort(growth._hashes(np.arange(1024), 3))[49]
    assert np.array_equal(kept.batch.table[:, 0], np.flatnonzero(growth._hashes(np.arange(256), 3) <= limit))


def test_large_rows_are_kept_in_bounded_memory(monkeypatch):
    monkeypatch.setattr("isokern.learners.warm_up._MOST_BYTES", 16 * 8 * 1000)
    assert Growth.begun(batch_of(np.zeros((16, 16))), 0, growth.MOST_CELLS).n_most == 1000
    assert Growth.begun(batch_of(np.zeros((16, 16), dtype=np.float32)), 0, growth.MOST_CELLS).n_most == 2000


# Heirs


def test_heirs_take_the_weights_of_their_cell_and_a_share_of_its_squares():
    D, _ = rows_of("plain", 90)
    former = IsolationKernel(n_partitionings=T, n_cells=6, random_state=0).fit(D[:30]).map_.growing()
    grown, parents = former.grown(D, 40, 5, 1, max_depth=None)
    heirs = Heirs(former, grown, parents)
    for scale in (0, 1):
        sizes = np.diff(former.starts).reshape(T, 2)[:, scale]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        cells = np.random.default_rng(0).normal(size=(starts[-1], 2, 3)).astype(np.float32)
        taken = heirs.take((scale,), cells)
        before, after = (fitted.apply(D, 1).reshape(len(D), T, 2)[:, :, scale] for fitted in (former, grown))
        ends = np.concatenate([[0], np.cumsum(np.diff(grown.starts).reshape(T, 2)[:, scale])])
        for i in range(T):
            expected = cells[starts[i] + before[:, i]]
            assert np.array_equal(taken[ends[i] + after[:, i], 0], expected[:, 0])
            parts = {cell: len(set(after[before[:, i] == cell, i])) for cell in set(before[:, i])}
            for r in range(len(D)):
                share = SQUARES_SHARE if parts[before[r, i]] > 1 else 1.0
                assert np.array_equal(taken[ends[i] + after[r, i], 1], share * expected[r, 1])


# The classifier

STREAMS = {
    "default": {},
    "logistic": {"loss": "logistic"},
    "balanced": {"class_weight": "balanced"},
    "capped": {"max_depth": "log2"},
    "kernel": {"linear": False},
    "linear": {"linear": True},
    "scaled": {"scale": "standard"},
}


@every("options", STREAMS)
def test_any_split_of_a_stream_gives_the_same_bytes(options):
    X, y, weights = make_stream(300)
    whole = IKOGDClassifier(**SMALL, **options).partial_fit(X, y, sample_weight=weights)
    assert whole.kernel_.n_cells_ > 64
    for sizes in ([1] * 70, [16, 48, 192], [15, 50, 200]):
        cut = feed(IKOGDClassifier(**SMALL, **options), sizes, X, y, weights)
        assert state_of(cut) == state_of(whole)
        assert cut.decision_function(X).tobytes() == whole.decision_function(X).tobytes()


@pytest.mark.parametrize("n_rows", [64, 256])
def test_the_map_is_drawn_anew_from_64_and_256_rows(n_rows):
    X, y, _ = make_stream(300)
    model = IKOGDClassifier(**SMALL).partial_fit(X[: n_rows + 1], y[: n_rows + 1])
    arrays = model.kernel_.map_.partitionings.arrays
    assert set(arrays["n_points"][arrays["starts"][:-1]]) == {n_rows // 2}
    assert model.linear_term_.equals(LinearTerm.learn(X[:n_rows], None))
    assert model.n_rows_seen_ == n_rows + 1


def test_growth_changes_no_score():
    X, y, _ = make_stream(1024)
    model = IKOGDClassifier(**SMALL).partial_fit(X, y)
    before = model.decision_function(X)
    n_cells = model.kernel_.n_cells_
    model.partial_fit(X[:1], y[:1], sample_weight=[1e-300])  # grows first, then learns next to nothing
    assert model.kernel_.n_cells_ > n_cells
    assert model.decision_function(X).tobytes() == before.tobytes()


def test_dense_and_sparse_streams_give_the_same_model_without_a_linear_term():
    X, y = make_rows(300, 3)
    X[X < 0.2] = 0
    dense, csr = (feed(IKOGDClassifier(**SMALL, linear=False), [40, 100], rows, y) for rows in (X, sparse.csr_array(X)))
    assert plain(dense.learned_) == plain(csr.learned_)
    assert dense.decision_function(X).tobytes() == csr.decision_function(sparse.csr_array(X)).tobytes()


@pytest.mark.parametrize("make", [IKOGDClassifier, IKOGDRegressor])
@pytest.mark.parametrize("n_rows", [10, 16, 64, 100, 256, 290])
def test_a_saved_stream_goes_on_as_if_it_had_not_been_saved(tmp_path, n_rows, make):
    X, y, _ = make_stream(300)
    model = make(**SMALL).partial_fit(X[:n_rows], y[:n_rows])
    isokern.save(model, tmp_path / "model.isokern")
    twins = [isokern.load(tmp_path / "model.isokern"), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
    model.partial_fit(X[n_rows:], y[n_rows:])
    for twin in twins:
        assert state_of(twin.partial_fit(X[n_rows:], y[n_rows:])) == state_of(model)


@pytest.mark.parametrize("method", ["partial_fit", "partial_fit_predict"])
def test_an_interrupted_stream_goes_on_as_if_nothing_had_happened(method):
    X, y, _ = make_stream(80)
    first = IKOGDClassifier(**SMALL).partial_fit(X[:30], y[:30])
    expected = copy.deepcopy(first).partial_fit(X[30:], y[30:])
    n_met = set()
    for k in itertools.count(1, 17):
        torn = copy.deepcopy(first)
        if not interrupted(k, lambda torn=torn: getattr(torn, method)(X[30:], y[30:])):
            break
        n = torn.n_rows_seen_
        n_met.add(n)
        assert np.isfinite(torn.decision_function(X)).all()
        if n < 80:
            torn.partial_fit(X[n:], y[n:])
        assert state_of(torn) == state_of(expected), k
    assert n_met >= {30, 64}


def test_predict_never_changes_a_model():
    X, y, _ = make_stream(300)
    for n_rows in (1, 10, 64, 300):
        model = IKOGDClassifier(**SMALL).partial_fit(X[:n_rows], y[:n_rows])
        before = state_of(model)
        for method in (model.predict, model.predict_proba, model.decision_function):
            method(X)
        assert state_of(model) == before


def test_classes_that_come_late_equal_classes_that_were_told():
    X, y, _ = make_stream(300, 3)
    y = np.where(np.arange(300) < 150, np.minimum(y, 1), y)
    late = feed(IKOGDClassifier(**SMALL), [20, 100], X, y)
    told = IKOGDClassifier(**SMALL).partial_fit(X, y, classes=[0, 1, 2])
    assert np.array_equal(late.decision_function(X), told.decision_function(X))


def test_a_model_that_would_be_too_large_stops_growing_with_a_warning():
    X, y, _ = make_stream(300)
    small = IKOGDClassifier(**SMALL, linear=False, max_model_size=20_000)
    with pytest.warns(UserWarning, match="max_model_size=20,000"):
        small.partial_fit(X, y)
    assert small.growth_ is None
    assert sum(model.n_bytes for model in small.learned_.models) <= 20_000
    with warnings.catch_warnings(action="error"):
        small.partial_fit(X, y)
    assert IKOGDClassifier(**SMALL, max_model_size=None).partial_fit(X, y).kernel_.n_cells_ > small.kernel_.n_cells_


def test_a_stream_that_stops_growing_does_not_depend_on_its_split():
    X, y, _ = make_stream(300)
    small = IKOGDClassifier(**SMALL, linear=False, max_model_size=20_000)
    with pytest.warns(UserWarning, match="max_model_size=20,000"):
        whole = copy.deepcopy(small).partial_fit(X, y)
    with pytest.warns(UserWarning, match="max_model_size=20,000"):
        assert state_of(feed(small, [1] * 70, X, y)) == state_of(whole)


@pytest.mark.parametrize("make", [IKOGDClassifier, IKOGDRegressor])
def test_rows_that_were_mapped_to_predict_them_give_the_same_model_also_where_the_map_grows(make):
    X, y, weights = make_stream(1100)
    by_rows, mapped_once = (make(**SMALL).partial_fit(X[:30], y[:30]) for _ in range(2))
    for part in (slice(begin, begin + 130) for begin in range(30, 1100, 130)):
        features = mapped_once.features(X[part])
        assert np.array_equal(mapped_once.predict(features), by_rows.predict(X[part]))
        mapped_once.partial_fit(features, y[part], sample_weight=weights[part])
        by_rows.partial_fit(X[part], y[part], sample_weight=weights[part])
    assert state_of(mapped_once) == state_of(by_rows)


def test_growth_ends_and_the_rows_are_dropped(monkeypatch):
    monkeypatch.setattr(IKOGDClassifier, "_most_cells", FEW)
    X, y, _ = make_stream(1030)
    model = IKOGDClassifier(**SMALL).partial_fit(X, y)
    assert model.growth_ is None
    assert model.takes_cells == all(candidate.linear_values is None for candidate in model.learned_.models)


@pytest.mark.parametrize(
    "options",
    [
        {"growth": False},
        {"n_cells": 8},
        {"n_initial": 50},
        {"n_scales": 1},
        {"partitioning": "voronoi"},
        {"schedule": "adagrad"},
        {"average": True},
    ],
)
def test_given_parameters_mean_a_map_that_does_not_grow(options):
    X, y, _ = make_stream(120)
    model = IKOGDClassifier(**SMALL, **options).partial_fit(X, y)
    assert not hasattr(model, "growth_")


def test_fit_begins_a_map_that_does_not_grow():
    X, y, _ = make_stream(300)
    model = IKOGDClassifier(**SMALL).partial_fit(X[:100], y[:100]).fit(X, y)
    kernel = model.kernel_
    assert model.partial_fit(X, y).kernel_ is kernel
    assert not hasattr(model, "growth_")


def test_cells_for_a_map_that_grows_are_a_clear_error():
    X, y, _ = make_stream(100)
    model = IKOGDClassifier(**SMALL, linear=False).partial_fit(X, y)
    with pytest.raises(ValueError, match="growth must be False"):
        model.partial_fit_cells(model.map_rows(X), y)


def test_tables_with_words_and_missing_values_grow_a_map():
    pd = pytest.importorskip("pandas")
    X, y, _ = make_stream(300)
    frame = pd.DataFrame(X, columns=list("abc"))
    frame["word"] = np.where(y == 1, "one", "other")
    frame.loc[::7, "a"] = np.nan
    model = IKOGDClassifier(**SMALL)
    for begin in range(0, 300, 50):
        model.partial_fit(frame[begin : begin + 50], y[begin : begin + 50])
    assert model.kernel_.n_cells_ > 64
    assert np.mean(model.predict(frame) == y) > 0.8


def test_columns_that_vary_later_join_the_linear_term():
    X, y, _ = make_stream(1030, 2)
    X[:256, 0] = 1.0
    model = IKOGDClassifier(**SMALL).partial_fit(X[:257], y[:257])
    assert model.linear_term_.factor[0] == 0
    model.partial_fit(X[257:], y[257:])
    assert model.linear_term_.factor[0] > 0


def test_digits_in_nine_blocks_of_100_are_learned():
    X, y = load_digits(return_X_y=True)
    model = IKOGDClassifier(random_state=0)
    for begin in range(0, 900, 100):
        model.partial_fit(X[begin : begin + 100], y[begin : begin + 100])
    assert model.score(X[900:], y[900:]) > 0.9


def test_a_learning_curve_rises_from_the_first_rows():
    X, y = load_digits(return_X_y=True)
    model = IKOGDClassifier(n_partitionings=50, random_state=0)
    scores = learning_curve(
        model, X, y, train_sizes=[50, 200, 1000], cv=3, exploit_incremental_learning=True, shuffle=True, random_state=0
    )
    means = scores[2].mean(axis=1)
    assert (np.diff(means) > 0).all()
    assert means[0] > 0.4
    assert means[-1] > 0.85


# The regressor


def make_numbers(n):
    """Return rows, targets and weights of a regression."""
    X, _, weights = make_stream(n)
    return X, 3.0 * X[:, 0] + np.sin(2 * X[:, 1]), weights


@every(
    "options", {"default": {}, "quantiles": {"loss": "quantile", "quantiles": (0.1, 0.9)}, "huber": {"loss": "huber"}}
)
def test_any_split_of_a_stream_of_numbers_gives_the_same_bytes(options):
    X, y, weights = make_numbers(300)
    whole = IKOGDRegressor(**SMALL, **options).partial_fit(X, y, sample_weight=weights)
    assert whole.kernel_.n_cells_ > 64
    for sizes in ([1] * 70, [15, 50, 200]):
        cut = feed(IKOGDRegressor(**SMALL, **options), sizes, X, y, weights)
        assert state_of(cut) == state_of(whole)


def test_growth_changes_no_predicted_number():
    X, y, _ = make_numbers(1024)
    model = IKOGDRegressor(**SMALL).partial_fit(X, y)
    before = model.learned_.leader_scores(model._mapped(X), [])
    model._grow(model.growth_)
    assert model.learned_.leader_scores(model._mapped(X), []).tobytes() == before.tobytes()


def test_a_stream_of_numbers_is_learned_from_its_first_rows():
    X, y, _ = make_numbers(2000)
    model = IKOGDRegressor(n_partitionings=50, random_state=0)
    scores = []
    for begin in range(0, 2000, 100):
        if begin:
            scores.append(model.score(X[begin : begin + 100], y[begin : begin + 100]))
        model.partial_fit(X[begin : begin + 100], y[begin : begin + 100])
    assert scores[0] > 0.5
    assert np.mean(scores[-5:]) > 0.9
