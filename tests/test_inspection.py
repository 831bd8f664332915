"""Test explanations: equality with the definition of Shapley values, additivity, formats of rows, and mistakes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import forests
import reference_inspection as reference
from isokern import (
    IKSVC,
    AdaptiveIKClassifier,
    FOGDClassifier,
    IKOGDClassifier,
    IKOGDClassifierCV,
    IKOGDRegressor,
    IsolationKernel,
    _core,
)
from isokern.inspection import explain

N_COLUMNS = 4


def make_rows(n=300, n_columns=N_COLUMNS, seed=0):
    return np.random.default_rng(seed).normal(size=(n, n_columns))


def make_labels(X, n_classes=2):
    score = np.nan_to_num(X[:, 0]) + np.abs(np.nan_to_num(X[:, 1]))
    return np.digitize(score, np.quantile(score, np.linspace(0, 1, n_classes + 1)[1:-1]))


def with_holes(X):
    """Return rows with missing values, ties and duplicates."""
    X = X.round(1)
    X[::7, 0] = np.nan
    X[1::11, 2] = np.nan
    X[5:20] = X[5]
    return X


def make_people(n=300):
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 60, n)
    age[::9] = np.nan
    jobs = rng.choice(["cook", "baker", "smith", "tailor"], n).astype(object)
    jobs[::13] = None
    return pd.DataFrame({"age": age, "job": jobs, "height": rng.normal(size=n)})


def assert_additive(explanation, scores):
    np.testing.assert_allclose(explanation.scores, scores, rtol=0, atol=1e-9)


TREES = {"n_partitionings": 5, "n_cells": 16, "linear": False, "random_state": 0}
MODELS = {
    "constant steps": IKOGDClassifier(schedule="constant", **TREES),
    "race of all scales": IKOGDClassifier(n_scales="auto", **TREES | {"n_cells": "auto"}),
    "with a linear term": IKOGDClassifier(**TREES | {"linear": True}),
    "linear alone": IKOGDClassifier(n_partitionings=5, random_state=0),
    "support vectors": IKSVC(n_partitionings=5, random_state=0),
    "adaptive": AdaptiveIKClassifier(n_partitionings=10, random_state=0),
}


def fitted(name, X, n_classes=2):
    return clone(MODELS[name]).fit(X, make_labels(X.toarray() if sparse.issparse(X) else X, n_classes))


# -- equality with the definition


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("has_holes", [False, True])
def test_path_dependent_values_are_shapley_values_over_all_subsets(has_holes, n_classes):
    X = with_holes(make_rows()) if has_holes else make_rows()
    model = fitted("race of all scales", X, n_classes)
    leaves, explanation = model.forest().leaves, explain(model, X[:12])
    for x, values in zip(X[:12], explanation.values, strict=True):
        expected = reference.shapley_values(reference.path_dependent_game(leaves, x), N_COLUMNS)
        np.testing.assert_allclose(values.reshape(expected.shape), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("has_holes", [False, True])
def test_interventional_values_are_shapley_values_over_all_subsets(has_holes, n_classes):
    X = with_holes(make_rows()) if has_holes else make_rows()
    model = fitted("race of all scales", X, n_classes)
    leaves, explanation = model.forest().leaves, explain(model, X[:6], background=X[50:57])
    for x, values in zip(X[:6], explanation.values, strict=True):
        expected = reference.shapley_values(reference.interventional_game(leaves, x, X[50:57]), N_COLUMNS)
        np.testing.assert_allclose(values.reshape(expected.shape), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("background", [None, slice(50, 56)])
def test_a_categorical_column_is_one_player(background):
    people = make_people()
    model = IKOGDClassifier(**TREES).fit(people, make_labels(people[["age", "height"]].to_numpy()))
    others = None if background is None else people[background]
    explanation = explain(model, people[:9], background=others)
    leaves, table = model.forest().leaves, encoded(people)
    for x, values in zip(table[:9], explanation.values, strict=True):
        if background is None:
            game = reference.path_dependent_game(leaves, x)
        else:
            game = reference.interventional_game(leaves, x, table[background])
        np.testing.assert_allclose(values[:, None], reference.shapley_values(game, 3), rtol=0, atol=1e-12)
    assert explanation.feature_names == ["age", "job", "height"]
    assert explanation.data[1].tolist() == people.iloc[1].tolist()


def encoded(people):
    codes = _core.category_codes(people["job"].tolist(), lambda value: None)
    return np.column_stack([people["age"], codes, people["height"]])


@pytest.mark.parametrize("n_columns", [12, 40])
def test_values_of_deep_trees_are_those_of_their_leaves_one_by_one(n_columns):
    rng = np.random.default_rng(1)
    X = (
        rng.normal(size=(400, n_columns))
        * (rng.random((400, n_columns)) < 0.2)
        * np.exp(3 * rng.normal(size=n_columns))
    )
    options = TREES | {"n_partitionings": 2, "n_cells": 256}
    model = IKOGDClassifier(schedule="constant", **options).fit(X, make_labels(X))
    leaves = model.forest().leaves
    explanation = explain(model, X[:3])
    for x, values in zip(X[:3], explanation.values, strict=True):
        expected = reference.path_dependent_by_leaves(leaves, x)
        np.testing.assert_allclose(values[:, None], expected, rtol=0, atol=1e-12)


def test_the_twins_agree():
    X = make_rows()
    leaves = fitted("constant steps", X).forest().leaves
    by_subsets = reference.shapley_values(reference.path_dependent_game(leaves, X[0]), N_COLUMNS)
    np.testing.assert_allclose(by_subsets, reference.path_dependent_by_leaves(leaves, X[0]), rtol=0, atol=1e-14)


# -- additivity


@pytest.mark.parametrize("n_background", [None, 7])
@pytest.mark.parametrize("name", forests.MODELS | forests.ROUNDED)
def test_base_value_and_values_sum_to_the_score(name, n_background):
    model = forests.fitted(name)
    rows = forests.hard_rows(model, n=60)
    found = explain(model, rows[:40], background=None if n_background is None else rows[40 : 40 + n_background])
    expected = forests.model_scores(model, rows[:40])
    scores = found.scores.reshape(expected.shape)
    largest = max(1.0, np.abs(expected).max())  # regressors have targets of up to 1e9
    ordered = np.sort(scores, axis=1) if name == "quantiles" else scores
    np.testing.assert_allclose(ordered, expected, rtol=0, atol=1e-9 * largest)


@pytest.mark.parametrize("name", ["race of all scales", "with a linear term", "support vectors", "adaptive"])
def test_classes_are_the_last_axis(name):
    X = make_rows(600)
    model = fitted(name, X, n_classes=4)
    explanation = explain(model, X[:10])
    assert explanation.values.shape == (10, N_COLUMNS, 4)
    assert explanation.base_values.shape == (10, 4)
    assert explanation.output_names == model.classes_.tolist()
    assert_additive(explanation, model.decision_function(X[:10]))
    one = explanation.of(model.classes_[2])
    assert one.values.shape == (10, N_COLUMNS)
    np.testing.assert_array_equal(one.values, explanation.values[:, :, 2])


def test_several_outputs_are_explained():
    X = make_rows()
    model = IKOGDRegressor(n_partitionings=5, random_state=0).fit(X, X[:, :3] * X[:, 1:])
    explanation = explain(model, X[:5])
    assert explanation.output_names is None
    assert_additive(explanation, model.predict(X[:5]))
    assert_additive(explanation.of(1), model.predict(X[:5])[:, 1])


def test_values_of_trees_with_long_paths_sum_to_the_score():
    rng = np.random.default_rng(0)
    X = sparse.random(1500, 3000, density=0.01, random_state=rng, format="csr")
    y = np.asarray(X[:, :1500].sum(axis=1)).ravel() > np.asarray(X[:, 1500:].sum(axis=1)).ravel()
    options = TREES | {"n_partitionings": 3, "n_cells": 1024}
    model = IKOGDClassifier(schedule="constant", **options).fit(X, y)
    assert longest_path(model.forest().leaves.trees) > 100
    assert_additive(explain(model, X[:4]), model.decision_function(X[:4]))
    assert_additive(explain(model, X[:2], background=X[10:13]), model.decision_function(X[:2]))


def longest_path(trees):
    depths = np.zeros(len(trees.left), dtype=int)
    for node in np.flatnonzero(~trees.is_leaf):
        depths[trees.left[node] : trees.left[node] + 2] = depths[node] + 1
    return depths.max()


def test_a_growing_model_is_explained_as_it_is_at_the_moment():
    X = make_rows(3000)
    y = make_labels(X)
    model = IKOGDClassifier(n_partitionings=5, random_state=0)
    for begin in range(0, 3000, 1000):
        model.partial_fit(X[begin : begin + 1000], y[begin : begin + 1000], classes=[0, 1])
        assert_additive(explain(model, X[:20]), model.decision_function(X[:20]))


def test_an_explanation_does_not_change_when_the_model_learns_on():
    X = make_rows(2000)
    y = make_labels(X)
    model = AdaptiveIKClassifier(n_partitionings=10, random_state=0).fit(X[:1000], y[:1000])
    before, scores = explain(model, X[:5]), model.decision_function(X[:5])
    model.partial_fit(X[1000:], y[1000:])
    assert_additive(before, scores)


# -- formats


@pytest.mark.parametrize("name", ["race of all scales", "with a linear term", "linear alone", "support vectors"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_values_of_sparse_rows_are_sparse_and_equal_to_those_of_dense_ones(name, n_classes):
    X = make_rows(400, 30) * (np.random.default_rng(2).random((400, 30)) < 0.2)
    rows = sparse.csr_array(X)
    model = fitted(name, rows, n_classes)
    for background in (None, slice(100, 110)):
        others = None if background is None else rows[background]
        found = explain(model, rows[:20], background=others)
        assert_additive(found, model.decision_function(rows[:20]))
        parts = found.values if isinstance(found.values, list) else [found.values]
        assert all(sparse.issparse(part) and part.shape == (20, 30) for part in parts)
        dense = explain(model, X[:20], background=None if background is None else X[background])
        together = np.stack([part.toarray() for part in parts], axis=-1).reshape(dense.values.shape)
        np.testing.assert_allclose(together, dense.values, rtol=0, atol=1e-12)
        np.testing.assert_allclose(found.importance, dense.importance, rtol=0, atol=1e-12)


def test_an_empty_sparse_row_and_a_single_row_are_explained():
    X = sparse.random(300, 50, density=0.1, random_state=np.random.default_rng(0), format="csr")
    model = IKOGDClassifier(**TREES).fit(X, np.asarray(X[:, 0].toarray()).ravel() > 0)
    empty = sparse.csr_array((1, 50))
    assert_additive(explain(model, empty), model.decision_function(empty))


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_other_dtypes_are_explained(dtype):
    X = (10 * make_rows()).astype(dtype)
    model = fitted("constant steps", X)
    assert_additive(explain(model, X[:10]), model.decision_function(X[:10]))


@pytest.mark.parametrize("background", [None, slice(50, 60)])
def test_neither_the_other_rows_nor_the_number_of_threads_changes_a_value(background):
    X = with_holes(make_rows())
    others = None if background is None else X[background]
    one, two = (IKOGDClassifier(n_jobs=n_jobs, **TREES).fit(X, make_labels(X)) for n_jobs in (1, 3))
    whole = explain(one, X[:150], background=others).values
    assert explain(two, X[:150], background=others).values.tobytes() == whole.tobytes()
    assert explain(two, X[141:142], background=others).values.tobytes() == whole[141:142].tobytes()


def test_columns_that_trees_do_not_use_have_the_value_zero():
    X = make_rows()
    X[:, 2] = 1.0
    model = fitted("constant steps", X)
    assert not explain(model, X[:5]).values[:, 2].any()


def test_a_column_that_decides_alone_is_the_most_important_one():
    X = make_rows(1000)
    model = IKOGDClassifier(random_state=0).fit(X, X[:, 2] > 0)
    importance = explain(model, X[:100]).importance
    assert importance.argmax() == 2
    assert importance[2] > 2 * np.delete(importance, 2).max()


def test_frames_in_another_order_are_put_right():
    people = make_people()
    model = IKOGDClassifier(**TREES).fit(people, make_labels(people[["age", "height"]].to_numpy()))
    one, other = explain(model, people[:5]), explain(model, people[["height", "job", "age"]][:5])
    np.testing.assert_array_equal(one.values, other.values)
    assert one.data[1].tolist() == other.data[1].tolist()


def test_dicts_are_explained():
    people = make_people()
    model = IKOGDClassifier(**TREES).fit(people, make_labels(people[["age", "height"]].to_numpy()))
    found = explain(model, [{"job": "cook", "age": 30.0, "height": 0.5}])
    assert found.data.tolist() == [[30.0, "cook", 0.5]]
    assert_additive(found, model.decision_function([{"job": "cook", "age": 30.0, "height": 0.5}]))


def test_a_linear_term_with_categories_starts_from_their_mean():
    people = make_people()
    y = (people["job"] == "cook").to_numpy()
    model = IKOGDClassifier(**TREES | {"linear": True}).fit(people, y)
    explanation = explain(model, people)
    assert_additive(explanation, model.decision_function(people))
    is_cook = explanation.values[y, 1]
    assert is_cook.mean() > 0 > explanation.values[~y, 1].mean()


# -- mistakes


@pytest.mark.parametrize(
    ("model", "error", "rule"),
    [
        (IKOGDClassifier(partitioning="voronoi", n_cells=8), ValueError, "partitioning must be"),
        (IKOGDClassifier(evaluation="dual", n_cells=8), ValueError, "evaluation must be"),
        (FOGDClassifier(), TypeError, "model must be a classifier or regressor on isolation trees"),
        (IsolationKernel(n_cells=8), TypeError, "model must be a classifier or regressor on isolation trees"),
    ],
)
def test_models_that_are_no_forests_are_refused(model, error, rule):
    X = make_rows()
    model.fit(X, make_labels(X))
    with pytest.raises(error, match=rule):
        explain(model, X)


@pytest.mark.parametrize("model", [IKOGDClassifier(), IKSVC(), IKOGDRegressor(), IKOGDClassifierCV()])
def test_unfitted_models_are_refused(model):
    with pytest.raises(NotFittedError):
        explain(model, make_rows())


def test_a_model_in_its_warm_up_is_refused():
    X = make_rows(50)
    model = IKOGDClassifier(growth=False).partial_fit(X, make_labels(X))
    with pytest.raises(ValueError, match="model must"):
        explain(model, X)


@pytest.mark.parametrize("argument", ["X", "background"])
def test_rows_with_other_columns_are_refused(argument):
    X = make_rows()
    model = fitted("constant steps", X)
    rows = {"X": X[:5], "background": X[:5]} | {argument: X[:5, :2]}
    with pytest.raises(ValueError, match="features"):
        explain(model, **rows)


def test_an_unknown_output_is_refused():
    X = make_rows()
    explanation = explain(fitted("constant steps", X, n_classes=3), X[:2])
    with pytest.raises(ValueError, match=r"output must be one of \[0, 1, 2\]; got 7"):
        explanation.of(7)
