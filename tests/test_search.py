"""Check IKOGDClassifierCV: its results equal those of scikit-learn's GridSearchCV."""

from __future__ import annotations

import functools
import logging

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedKFold

from isokern import IKOGDClassifier, IsolationKernel
from isokern.learners import IKOGDClassifierCV, search
from learning import every, is_unfitted, make_rows, make_stream, same_model

CELLS = (2, 8, 32)
SEED = np.random.RandomState(0).randint(2**31 - 1)  # drawn from random_state=0


def make_search(**options):
    return IKOGDClassifierCV(**{"n_partitionings": 6, "n_cells": CELLS, "cv": 3, "random_state": 0} | options)


def plain_learner(**options):
    return IKOGDClassifier(**{"n_partitionings": 6, "schedule": "adagrad", "random_state": SEED} | options)


def check_against_grid_search(X, y, *, cv=3, scoring=None, rates=None, **options):
    """Check the results of a search against scikit-learn's, and return the fitted search."""
    grid = {"n_cells": CELLS} | ({} if rates is None else {"learning_rate": rates})
    expected = GridSearchCV(plain_learner(**options), grid, cv=cv, scoring=scoring).fit(X, y)
    model = make_search(cv=cv, scoring=scoring, learning_rate="auto" if rates is None else rates, **options)
    check_results(model.fit(X, y), expected)
    return model


def check_results(model, expected):
    """Check the results of a fitted search against those of a fitted GridSearchCV, except for times."""
    names = [name for name in expected.cv_results_ if not name.endswith("_time")]
    assert sorted(model.cv_results_) == sorted(names)
    order = [expected.cv_results_["params"].index(params) for params in model.cv_results_["params"]]
    for name in names:
        ours, theirs = model.cv_results_[name], np.asarray(expected.cv_results_[name])[order]
        assert np.array_equal(ours, theirs), name
        assert name == "params" or ours.dtype == theirs.dtype
    assert model.n_splits_ == expected.n_splits_
    assert model.best_score_ == expected.best_score_


# Results


OPTIONS = {
    "default": {},
    "voronoi, scaled": {"partitioning": "voronoi", "scale": "standard"},
    "log2 depth": {"max_depth": "log2"},
    "paper": {"schedule": "constant", "n_passes": 1, "shuffle": False},
    "averaged": {"schedule": "decaying", "average": True, "n_passes": 3, "shrinkage": 0.01},
    "dual": {"schedule": "constant", "evaluation": "dual"},
    "balanced, logistic": {"loss": "logistic", "class_weight": "balanced"},
}


@pytest.mark.parametrize("n_classes", [2, 3])
@every("options", OPTIONS)
def test_results_equal_those_of_a_grid_search(options, n_classes):
    check_against_grid_search(*make_rows(120, n_classes), **options)


def test_voronoi_maps_of_many_rows_are_searched_one_by_one_with_the_same_results(monkeypatch):
    monkeypatch.setattr("isokern.learners.nested._MANY_ROWS", 100)
    check_against_grid_search(*make_rows(120, 2), partitioning="voronoi")


@pytest.mark.parametrize("rates", [[0.5, 2.0], [0.1, "auto", 5]], ids=str)
def test_learning_rates_are_combined_with_every_number_of_cells(rates):
    model = check_against_grid_search(*make_rows(120, 3), rates=rates)
    assert model.cv_results_["params"] == [{"n_cells": psi, "learning_rate": rate} for psi in CELLS for rate in rates]


def test_sample_weights_are_used_in_the_folds_and_in_the_refit():
    X, y, weights = make_stream()
    model = make_search().fit(X, y, weights)
    for k, (train, test) in enumerate(StratifiedKFold(3).split(X, y)):
        learners = [plain_learner(n_cells=psi).fit(X[train], y[train], weights[train]) for psi in CELLS]
        expected = [learner.score(X[test], y[test]) for learner in learners]  # GridSearchCV may weight scores, too
        assert model.cv_results_[f"split{k}_test_score"].tolist() == expected
    assert same_model(model.best_estimator_, plain_learner(**model.best_params_).fit(X, y, weights))


def log_loss_of_some_rows(model, X, y):
    part = X[:, 1] > 0
    return -log_loss(y[part], model.predict_proba(X[part]))


SCORERS = ["accuracy", "roc_auc", "neg_log_loss", "balanced_accuracy", log_loss_of_some_rows]


@pytest.mark.parametrize("scoring", SCORERS)
def test_scoring_may_be_the_name_of_a_scorer_or_a_function_of_rows(scoring):
    check_against_grid_search(*make_rows(120), scoring=scoring)


FOLDS = {
    "a number": 4,
    "none given": None,
    "a splitter": KFold(3, shuffle=True, random_state=1),
    "pairs": list(GroupKFold(3).split(np.zeros(120), groups=np.arange(120) // 10)),
    "pairs of lists": [(list(range(80)), list(range(80, 120)))],
    "masks": [(np.arange(120) < 80, np.arange(120) >= 80)],
}


@every("cv", FOLDS)
def test_folds_are_those_of_scikit_learn(cv):
    check_against_grid_search(*make_rows(120), cv=cv)


def test_the_best_candidate_is_fitted_to_all_rows():
    X, y = make_rows(120)
    model = make_search().fit(X, y)
    assert model.best_score_ == model.cv_results_["mean_test_score"].max()
    assert model.best_params_ == model.cv_results_["params"][model.best_index_]
    assert type(model.best_estimator_) is IKOGDClassifier
    assert same_model(model.best_estimator_, plain_learner(**model.best_params_).fit(X, y))


def test_ties_go_to_the_fewest_cells():
    X, y = make_rows(120)
    model = make_search(n_cells=(32, 8, 16), scoring=lambda model, X, y: min(model.n_cells, 16)).fit(X, y)
    assert model.best_params_ == {"n_cells": 16}
    assert model.cv_results_["rank_test_score"].tolist() == [3, 1, 1]


def test_maps_are_drawn_from_training_rows_only():
    X, y = make_rows(120)
    drawn_from = []

    def scoring(model, X, y):
        drawn_from.append(model.kernel_.map_.partitionings.points)
        return model.score(X, y)

    splits = list(KFold(3).split(X))
    make_search(partitioning="voronoi", cv=splits, n_cells=64, n_partitionings=20, scoring=scoring).fit(X, y)
    for points, (train, _) in zip(drawn_from, splits, strict=True):
        assert {tuple(row) for row in points} == {tuple(row) for row in X[train]}


def test_each_fold_is_mapped_once_for_each_number_of_cells(monkeypatch):
    X, y = make_rows(300)
    mapped, apply = [], IsolationKernel.apply_rows
    monkeypatch.setattr(IsolationKernel, "apply_rows", lambda kernel, X: mapped.append(len(X)) or apply(kernel, X))
    make_search(learning_rate=[0.5, 1.0, 2.0]).fit(X, y)
    assert mapped == [200, 100] * 3 * len(CELLS) + [300]


# Candidates


def test_the_default_candidates_are_those_of_the_paper():
    assert IKOGDClassifierCV().n_cells == tuple(2**m for m in range(2, 13)) == search.PAPERS_CELLS


def test_candidates_larger_than_the_smallest_training_part_are_left_out():
    X, y = make_rows(120)
    splits = [(np.arange(100), np.arange(100, 120)), (np.arange(60), np.arange(60, 120))]
    assert make_search(n_cells=(4, 60, 61, 100), cv=splits).fit(X, y).cv_results_["param_n_cells"].tolist() == [4, 60]
    message = r"^n_cells must have a candidate of at most 80, the rows of the smallest training part; got \(81, 128\)\."
    with pytest.raises(ValueError, match=message):
        make_search(n_cells=(81, 128)).fit(X, y)


@pytest.mark.parametrize("n_cells", [16, [16], np.array([16]), range(16, 17), (16, 16)], ids=repr)
def test_candidates_may_be_one_number_or_any_sequence(n_cells):
    X, y = make_rows(120)
    model = make_search(n_cells=n_cells).fit(X, y)
    assert model.cv_results_["params"] == [{"n_cells": 16}]
    assert type(model.best_params_["n_cells"]) is int


@pytest.mark.parametrize("random_state", [0, np.random.RandomState(0), None], ids=["an integer", "a generator", "none"])
def test_all_models_have_the_same_seed(random_state):
    X, y = make_rows(120)
    seeds = set()

    def scoring(model, X, y):
        seeds.add((model.random_state, model.kernel_.random_state))
        return model.score(X, y)

    model = make_search(random_state=random_state, scoring=scoring).fit(X, y)
    best = model.best_estimator_
    assert seeds == {(best.random_state, best.kernel_.random_state)}
    assert random_state is None or best.random_state == SEED


# Forms of input


FORMS = {
    "csc": sparse.csc_matrix,
    "coo": sparse.coo_array,
    "lists": np.ndarray.tolist,
    "pandas": pd.DataFrame,
    "polars": lambda X: pl.DataFrame(X, schema=["a", "b", "c"]),
}


@every("form", FORMS)
def test_rows_in_any_form_give_the_same_results(form):
    X, y = make_rows(120)
    X = np.where(X > 0, X, 0.0)
    model, plain = make_search().fit(form(X), y), make_search().fit(X, y)
    assert np.array_equal(model.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"])
    assert np.array_equal(model.decision_function(form(X)), plain.decision_function(X))


def test_data_frames_keep_their_names():
    X, y = make_rows(120)
    frame = pd.DataFrame(X, columns=["x", "y", "z"])

    def scoring(model, X, y):
        return model.score(X.iloc[::2], y[::2]) if list(X) == ["x", "y", "z"] else 0.0

    model = make_search(scoring=scoring).fit(frame, y)
    assert model.best_score_ > 0
    assert model.feature_names_in_.tolist() == model.best_estimator_.feature_names_in_.tolist() == ["x", "y", "z"]
    with pytest.raises(ValueError, match="feature names should match"):
        model.partial_fit(frame[["y", "x"]], y)


# After fit


def test_all_methods_are_those_of_the_best_candidate():
    X, y = make_rows(120, 3)
    model = make_search().fit(X, y)
    best, cells = model.best_estimator_, model.kernel_.apply(X)
    assert model.kernel_ is best.kernel_
    assert model.n_support_ == best.n_support_ > 0
    assert (model.n_features_in_, model.n_splits_) == (3, 3)
    assert np.array_equal(model.predict(X), best.predict(X))
    assert np.array_equal(model.predict_proba(X), best.predict_proba(X))
    assert np.array_equal(model.decision_function(X), best.decision_function(X))
    assert np.array_equal(model.decision_function_cells(cells), best.decision_function(X))


@pytest.mark.parametrize("as_cells", [False, True])
def test_partial_fit_continues_the_best_candidate(as_cells):
    X, y, weights = make_stream(200)
    model = make_search().fit(X[:120], y[:120])
    learner = plain_learner(**model.best_params_).fit(X[:120], y[:120])
    learner.partial_fit(X[120:], y[120:], sample_weight=weights[120:])
    if as_cells:
        model.partial_fit_cells(model.kernel_.apply(X[120:]), y[120:], sample_weight=weights[120:])
    else:
        model.partial_fit(X[120:], y[120:], sample_weight=weights[120:])
    assert same_model(model.best_estimator_, learner)


def test_partial_fit_takes_new_classes_but_not_other_columns():
    X, y = make_rows(150, 3)
    model = make_search().fit(X[y < 2], y[y < 2])
    assert model.classes_.tolist() == [0, 1]
    assert model.partial_fit(X, y).classes_.tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match=r"^X has 2 features, but IKOGDClassifier is expecting 3 features as input\."):
        model.partial_fit(X[:, :2], y)


def test_fit_must_come_first():
    X, y = make_rows(120)
    model = make_search()
    calls = [lambda: model.partial_fit(X, y), lambda: model.partial_fit_cells(X, y), lambda: model.n_support_]
    calls += [
        functools.partial(getattr(model, name), X) for name in ("predict", "predict_proba", "decision_function_cells")
    ]
    for call in calls:
        with pytest.raises(NotFittedError, match=r"^IKOGDClassifierCV is not fitted yet: call fit first"):
            call()
    assert not hasattr(model, "kernel_")


def test_every_fold_is_logged(caplog):
    X, y = make_rows(120)
    with caplog.at_level(logging.INFO, logger="isokern"):
        make_search().fit(X, y)
    *folds, best = [record.getMessage().partition(": ")[2] for record in caplog.records]
    assert [message[:11] for message in folds] == [f"fold {k} of 3" for k in (1, 2, 3)]
    assert best.startswith("{'n_cells': ")


# Bad input


class Halves:
    n_cells_ = 2

    def fit(self, X, rng):
        return self

    def apply(self, X):
        return (X[:, 0] > 0).astype(int)


BAD_PARAMETERS = {
    "no cells": ({"n_cells": ()}, r"^n_cells must be integers of at least 2; got \(\)\."),
    "one cell": ({"n_cells": (1, 4)}, r"^n_cells must be integers of at least 2; got \(1, 4\)\."),
    "half a cell": ({"n_cells": 2.5}, r"^n_cells must be integers of at least 2; got 2\.5\."),
    "auto": ({"n_cells": "auto"}, r"^n_cells must be integers of at least 2; got 'auto'\."),
    "a set": ({"n_cells": {4, 8}}, r"^n_cells must be integers of at least 2; got {"),
    "no rates": ({"learning_rate": []}, r'^learning_rate must be positive numbers or "auto"; got \[\]\.'),
    "a rate of 0": ({"learning_rate": [1, 0]}, r"^learning_rate must be a positive number; got 0\."),
    "an unknown rate": ({"learning_rate": "fast"}, r"^learning_rate must be a positive number; got 'fast'\."),
    "a rate too large": ({"learning_rate": [1, 9], "shrinkage": 0.2}, r"^shrinkage must be at least 0 and below 1 /"),
    "own partitioning": ({"partitioning": Halves()}, r"^partitioning must be a name, .* GridSearchCV\."),
    "unknown partitioning": ({"partitioning": "grid"}, r'^partitioning must be "tree" or "voronoi"'),
    "an unknown loss": ({"loss": "absolute"}, r'^loss must be "auto", "hinge", '),
    "an unknown scorer": ({"scoring": "best"}, r"'best' is not a valid scoring value|'scoring' parameter"),
    "a scorer of words": ({"scoring": lambda *_: "good"}, r"^scoring must give one finite number .*; got 'good'\."),
    "a scorer of NaN": ({"scoring": lambda *_: np.nan}, r"^scoring must give one finite number .*; got nan\."),
    "many scorers": ({"scoring": ["accuracy", "f1"]}, r"^scoring must give one finite number .*; got {'accuracy'"),
    "no folds": ({"cv": []}, r"^cv must give at least one fold; got \[\]\."),
    "one fold": ({"cv": 1}, r"got n_splits=1"),
    "folds as text": ({"cv": "five"}, r"Got five"),
    "folds of one class": (
        {"cv": [(np.flatnonzero(make_rows(120)[1] == 1), np.arange(5))]},
        r"^cv must leave at least 2 classes in every training part; got \[1\] in fold 0\.",
    ),
}


@every(("options", "message"), BAD_PARAMETERS)
def test_a_bad_parameter_is_an_error_and_leaves_a_fitted_search_as_it_was(options, message):
    X, y = make_rows(120)
    model = make_search(**options)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert is_unfitted(model)
    fitted = make_search().fit(X, y)
    before, results = fitted.decision_function(X), fitted.cv_results_
    with pytest.raises(ValueError, match=message):
        fitted.set_params(**options).fit(X, y)
    assert np.array_equal(fitted.decision_function(X), before)
    assert fitted.cv_results_ is results


def test_weights_that_are_zero_in_a_whole_fold_are_an_error():
    X, y = make_rows(120)
    with pytest.raises(ValueError, match=r"(?i)weight.*zero"):
        make_search(cv=KFold(3)).fit(X, y, (np.arange(120) < 30) * 1.0)
