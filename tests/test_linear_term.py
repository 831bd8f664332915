"""Check the features of the linear term against a NumPy twin, and its steps on rows of all kinds."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import reference
from isokern import IKOGDClassifier, IsolationKernel
from isokern.learners.candidates import Candidate
from isokern.learners.linear_term import LinearTerm
from isokern.learners.steps import Steps
from isokern.rows import as_scipy
from learning import LOSSES, RATES, every, make_rows
from test_scale_weights import begun, make_features

SMALL = {"n_partitionings": 6, "random_state": 0}
ALONE = {**SMALL, "n_cells": 2, "n_partitionings": 1, "linear": True}


def tables():
    """Return dense tables of all kinds."""
    rng = np.random.default_rng(0)
    normal = rng.normal(size=(200, 5))
    missing = np.where(rng.random((200, 5)) < 0.2, np.nan, normal)
    missing[:, 2] = np.nan
    outlier = normal.copy()
    outlier[7] = [1e3, -1e6, 1e30, -1e100, 1e150]
    constant = normal.copy()
    constant[:, [0, 3]] = 3.7, 0.0
    return {
        "normal": normal,
        "offset and scale": 1e6 + normal * 10.0 ** np.arange(-3, 2),
        "missing": missing,
        "outlier": outlier,
        "constant columns": constant,
        "only constant columns": np.full((200, 3), 2.5),
        "one column": normal[:, :1],
        "float32": normal.astype(np.float32),
        "integers": rng.integers(-5, 5, (200, 4)),
        "zero or one": rng.integers(0, 2, (200, 4)).astype(bool),
        "large": 1e140 * normal,
        "small": 1e-140 * normal,
    }


@every("table", tables())
def test_dense_features_equal_the_numpy_twin(table):
    term = LinearTerm.learn(table, None)
    expected, constant = reference.standardised(table)
    rows = term.rows(table)
    assert rows.dtype == np.float32
    assert term.constant == pytest.approx(constant)
    np.testing.assert_allclose(rows, expected, rtol=2e-5, atol=2e-6)


def test_the_mean_diagonal_of_the_kernel_is_one():
    for table in (
        tables()["normal"],
        tables()["offset and scale"],
        sparse.random_array((200, 50), rng=0, format="csr"),
    ):
        term = LinearTerm.learn(table, None)
        rows = term.rows(table)
        rows = rows if isinstance(rows, np.ndarray) else as_scipy(rows).toarray()
        assert (rows**2).sum(axis=1).mean() + term.constant**2 == pytest.approx(1, rel=1e-3)


def test_sparse_rows_are_divided_by_the_root_of_their_mean_square():
    table = sparse.random_array((300, 40), density=0.1, rng=0, format="csr")
    table = sparse.vstack([table[1:100], sparse.csr_array((20, 40)), table[100:]], format="csr")
    term = LinearTerm.learn(table, None)
    expected = table.toarray() * np.sqrt(0.5) / np.sqrt((table.toarray() ** 2).sum(axis=1).mean())
    np.testing.assert_allclose(as_scipy(term.rows(table)).toarray(), expected, rtol=1e-6)
    assert term.constant == np.sqrt(0.5)


def test_sparse_and_dense_rows_of_one_table_have_the_same_features():
    table = sparse.random_array((100, 20), density=0.2, rng=0, format="csr")
    for learned_from in (table, table.toarray()):
        term = LinearTerm.learn(learned_from, None)
        found = [term.rows(table), term.rows(table.toarray())]
        found = [rows if isinstance(rows, np.ndarray) else as_scipy(rows).toarray() for rows in found]
        np.testing.assert_array_equal(*found)


def test_columns_in_any_order_and_stored_zeros_do_not_change_scores():
    table = sparse.random_array((200, 30), density=0.2, rng=0, format="csr")
    model = IKOGDClassifier(**ALONE).fit(table, np.arange(200) % 3)
    turned = sparse.csr_array(
        (table.data[::-1], table.indices[::-1], table.nnz - table.indptr[::-1]), shape=table.shape
    )  # the rows in reverse, with descending columns
    assert model.decision_function(turned).tobytes() == model.decision_function(table)[::-1].tobytes()
    stored = table.copy()
    stored.data[::4] = 0
    clean = stored.copy()
    clean.eliminate_zeros()
    np.testing.assert_allclose(model.decision_function(stored), model.decision_function(clean), rtol=1e-12, atol=1e-15)


def test_sparse_rows_for_a_model_of_dense_ones_and_the_other_way_round():
    X, y = make_rows(300, 3)
    X[X < 0] = 0
    of_dense = IKOGDClassifier(**SMALL, linear=True).fit(X, y)
    assert of_dense.decision_function(sparse.csr_array(X)).tobytes() == of_dense.decision_function(X).tobytes()
    twin = copy.deepcopy(of_dense).partial_fit(X, y)
    of_dense.partial_fit(sparse.csr_array(X), y)
    assert of_dense.decision_function(X).tobytes() == twin.decision_function(X).tobytes()
    of_csr = IKOGDClassifier(**SMALL, linear=True).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(of_csr.decision_function(X), of_csr.decision_function(sparse.csr_array(X)), rtol=1e-9)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_tables_of_zeros_have_a_constant_only(form):
    table = form(np.zeros((30, 4)))
    term = LinearTerm.learn(table, None)
    assert not term.factor.any()
    model = IKOGDClassifier(**ALONE).fit(table, np.arange(30) % 3 == 0)
    assert (model.predict(table) == model.predict(table)[0]).all()
    assert np.isfinite(model.decision_function(form(np.ones((30, 4))))).all()


def test_later_rows_are_clipped_at_thirty_deviations():
    X = tables()["normal"]
    term = LinearTerm.learn(X, None)
    far = np.array([[1e300, -1e300, 20.0, 40.0, np.nan]])
    rows = term.rows(far)[0] / term.constant
    assert rows[0] == pytest.approx(30)
    assert rows[1] == pytest.approx(-30)
    assert rows[2] < 29
    assert rows[3] == pytest.approx(30)
    assert rows[4] == 0


# Categories


def test_a_category_has_one_weight_of_its_column():
    rng = np.random.default_rng(0)
    numbers, codes = rng.normal(size=100), rng.integers(0, 2**32, size=(100, 2))
    table = np.column_stack([codes[:, 0], numbers, codes[:, 1]]).astype(float)
    table[3, 0] = table[4, 2] = np.nan
    is_categorical = np.array([True, False, True])
    term = LinearTerm.learn(table, is_categorical)
    rows = term.rows(table)
    dense = as_scipy(rows).toarray()
    n_buckets = 2**18 // 2
    assert dense.shape == (100, 3 + 2 * n_buckets)
    assert term.n_weights == dense.shape[1] + 1
    expected, constant = reference.standardised(table, is_categorical)
    np.testing.assert_allclose(dense[:, :3], expected, rtol=1e-5, atol=1e-6)
    for column, first in ((0, 3), (2, 3 + n_buckets)):
        for row in range(100):
            found = np.flatnonzero(dense[row, first : first + n_buckets])
            if np.isnan(table[row, column]):
                assert len(found) == 0
                continue
            hashed = int(table[row, column]) * 0x9E3779B97F4A7C15 % 2**64 >> 32
            assert found.tolist() == [hashed % n_buckets]
            assert dense[row, first + found[0]] == np.float32(constant)


def test_categories_alone_are_learned_by_the_linear_term():
    rng = np.random.default_rng(0)
    words = np.array([f"word {k}" for k in range(60)])
    which = rng.integers(60, size=3000)
    frame = pd.DataFrame({"word": pd.Categorical(words[which]), "noise": rng.normal(size=3000)})
    model = IKOGDClassifier(**ALONE).fit(frame[:2000], which[:2000] % 2)
    assert model.score(frame[2000:], which[2000:] % 2) > 0.95
    unseen = pd.DataFrame({"word": ["another", None], "noise": [0.0, 1.0]})
    assert np.isfinite(model.decision_function(unseen)).all()


def test_categories_as_text_categories_and_codes_give_the_same_scores():
    rng = np.random.default_rng(0)
    words = rng.choice(["a", "b", "c"], 200)
    frame = pd.DataFrame({"word": pd.Categorical(words), "number": rng.normal(size=200)})
    other = frame.assign(word=words.astype(object))
    model = IKOGDClassifier(**SMALL, linear=True).fit(frame, words == "a")
    assert model.decision_function(frame).tobytes() == model.decision_function(other).tobytes()


# Steps


@pytest.mark.parametrize("schedule", RATES)
@pytest.mark.parametrize("loss", LOSSES)
def test_no_step_carries_a_score_past_its_target_by_more_than_the_rate(loss, schedule):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4)) * rng.choice([1.0, 100.0], (120, 1))
    y = rng.integers(0, 2, 120)
    features, rate = make_features(X), 3 * RATES[schedule]
    race = begun([Candidate("", linear=True, schedule=schedule, rate=rate)], y, features)
    target, n_limited = 5.0 if loss == "logistic" else 1.0, 0
    for k, sign in enumerate(2 * y - 1):
        before = sign * race.model.score(features[k : k + 1], race.clock)[0, 0]
        race.learn(features[k : k + 1], y[k : k + 1], np.array([rng.choice([1.0, 1e9])]), Steps(loss, "", 0.0, 0.0))
        after = sign * race.model.score(features[k : k + 1], race.clock)[0, 0]
        assert after <= max(before, target) + rate * (1 + 1e-5)
        n_limited += after > max(before, target) + rate * (1 - 1e-5)
    assert n_limited > 0 or (loss, schedule) != ("hinge", "constant")


def test_late_outliers_do_not_ruin_the_linear_term():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 5))
    y = (X.sum(axis=1) > 0).astype(int)
    model = IKOGDClassifier(**ALONE).fit(X[:1000], y[:1000])
    wild = 10.0 ** rng.uniform(0, 300, size=(100, 5)) * rng.choice([-1, 1], (100, 5))
    model.partial_fit(wild, rng.integers(0, 2, 100)).partial_fit(X[1000:2000], y[1000:2000])
    assert model.score(X[2000:], y[2000:]) > 0.9


# Values at the limits of float64

LIMITS = {
    "1e200": lambda X: 1e200 * X,
    "one of 1e200": lambda X: np.r_[X[:-1], np.full((1, X.shape[1]), 1e200)],
    "as large as it gets": lambda X: 1.7e308 * np.clip(X, -1, 1),
}


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
@every("change", LIMITS)
def test_huge_values_are_learned_without_an_error_or_a_warning(change, form):
    X, y = make_rows(200)
    X = form(change(X))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = IKOGDClassifier(**SMALL).fit(X, y)
        expected = IKOGDClassifier(**SMALL, linear=False).fit(X, y)
    assert model.score(X, y) >= expected.score(X, y) - 0.1


@every("change", LIMITS)
def test_huge_values_are_predicted_and_learned_later(change):
    X, y = make_rows(200)
    model = IKOGDClassifier(**SMALL, linear=True).fit(X, y)
    assert np.isfinite(model.decision_function(change(X))).all()
    model.partial_fit(change(X), y)
    assert np.isfinite(model.decision_function(X)).all()


# Parameters


TRUTHS = {"np.True_": (np.True_, True), "np.False_": (np.False_, False), "1": (1, True), "0": (0, False)}


@pytest.mark.parametrize(("given", "meant"), TRUTHS.values(), ids=TRUTHS)
def test_truth_values_of_numpy_are_taken_for_linear_or_refused(given, meant):
    X, y = make_rows(100)
    expected = IKOGDClassifier(**SMALL, linear=meant).fit(X, y).selection_["candidates"]
    try:
        found = IKOGDClassifier(**SMALL, linear=given).fit(X, y).selection_["candidates"]
    except ValueError:
        return
    assert found == expected


@pytest.mark.parametrize("linear", ["yes", None, 2, "True", [True]])
def test_other_values_of_linear_are_an_error(linear):
    with pytest.raises(ValueError, match='linear must be True, False or "auto"; got'):
        IKOGDClassifier(linear=linear).fit(*make_rows(50))


def test_the_linear_term_on_a_fitted_kernel_does_not_depend_on_how_a_stream_is_split():
    X, y = make_rows(300)
    kernel = IsolationKernel(n_partitionings=6, n_cells=16, random_state=0).fit(X)
    whole = IKOGDClassifier(kernel=kernel, linear=True).partial_fit(X, y)
    parts = IKOGDClassifier(kernel=kernel, linear=True).partial_fit(X[:1], y[:1]).partial_fit(X[1:], y[1:])
    assert whole.decision_function(X).tobytes() == parts.decision_function(X).tobytes()


def test_cells_for_an_untrained_model_with_a_linear_term_are_an_error():
    X, y = make_rows(100)
    kernel = IsolationKernel(n_partitionings=6, n_cells=16, random_state=0).fit(X)
    with pytest.raises(ValueError, match="linear must be False for cells"):
        IKOGDClassifier(kernel=kernel, linear=True).partial_fit_cells(kernel.apply(X), y)


# Files


BAD = {
    "offset of another length": {"offset": np.zeros(4)},
    "offset NaN": {"offset": np.array([0.0, np.nan, 0.0])},
    "factor infinite": {"factor": np.array([0.0, np.inf, 0.0])},
    "factor of float32": {"factor": np.zeros(3, dtype=np.float32)},
    "a categorical column beyond": {"categorical": np.array([3])},
    "categorical columns that descend": {"categorical": np.array([1, 0])},
    "a categorical column twice": {"categorical": np.array([1, 1])},
    "a negative column": {"categorical": np.array([-1])},
    "constant 0": {"constant": 0.0},
    "constant NaN": {"constant": np.nan},
    "constant above 1": {"constant": 1.5},
}


@every("change", BAD)
def test_a_term_with_wrong_statistics_is_refused(change):
    term = LinearTerm.learn(make_rows(50)[0], None)
    term.check()
    with pytest.raises(ValueError, match="must"):
        LinearTerm(**term.state() | change).check()
