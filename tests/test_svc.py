"""Check IKSVC: the linear SVM on the map, compared with LIBSVM on the kernel matrix."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.svm import SVC, LinearSVC

from isokern import IKSVC, IsolationKernel
from isokern.learners import svm_choice
from isokern.learners.svm_choice import make_folds, sample_rows
from learning import SMALL, every, make_kernel, make_rows, make_stream


@pytest.mark.parametrize("n_cells", [16, 64])
def test_scores_and_labels_are_close_to_libsvm_on_the_precomputed_kernel(n_cells):
    rows, digits = load_digits(return_X_y=True)
    X, y = rows[:600], digits[:600] % 2
    kernel = IsolationKernel(n_cells=n_cells, random_state=0).fit(X)
    # A larger scaling takes more passes; at 10 the intercept is nearly free, as that of LIBSVM is.
    options = {"loss": "hinge", "C": 1.0, "intercept_scaling": 10.0, "tol": 1e-4, "max_iter": 100_000}
    linear = IKSVC(kernel=kernel, random_state=0, **options).fit(X, y).decision_function(rows)
    libsvm = SVC(kernel="precomputed", C=1.0, tol=1e-6).fit(kernel.similarity(X), y)
    expected = libsvm.decision_function(kernel.similarity(rows, X))
    assert np.abs(linear - expected).max() < 0.02
    assert np.mean((linear > 0) == (expected > 0)) >= 0.999


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("partitioning", ["tree", "voronoi"])
def test_scores_are_linear_in_the_features(partitioning, n_classes):
    X, y = make_rows(150, n_classes)
    model = IKSVC(partitioning, linear=False, **SMALL).fit(X, y)
    expected = model.kernel_.transform(X) @ model.cell_weights_.T + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), expected if n_classes > 2 else expected[:, 0], atol=1e-12)
    assert np.array_equal(model.decision_function_cells(model.kernel_.apply(X)), model.decision_function(X))


@pytest.mark.parametrize(("tol", "is_double"), [("auto", False), (1e-3, True)])
def test_weights_have_double_precision_if_tol_is_a_number(tol, is_double):
    X, y = make_rows(150)
    values = IKSVC(linear=False, tol=tol, **SMALL).fit(X, y).model_.values
    assert (values != values.astype(np.float32)).any() == is_double


@pytest.mark.parametrize("select", [RFE, SelectFromModel])
def test_feature_selection_says_that_the_weights_are_not_those_of_columns(select):
    X, y = make_rows(60)
    with pytest.raises(ValueError, match="IKSVC should have `coef_` or `feature_importances_` attribute"):
        select(IKSVC(**SMALL)).fit(X, y).transform(X)


def test_feature_selection_takes_importances_of_columns():
    X, y = make_rows(60)
    selector = RFE(IKSVC(**SMALL), n_features_to_select=1, importance_getter=lambda fit: np.arange(fit.n_features_in_))
    assert selector.fit(X, y).support_.tolist() == [False, False, True]


PARAMETERS = {
    "C": 0.1,
    "loss": "hinge",
    "class_weight": {0: 5.0},
    "fit_intercept": False,
    "intercept_scaling": 2.0,
    "tol": 0.5,
    "random_state": 1,
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_every_parameter_changes_what_is_learned(name):
    X, y = make_rows(100)
    kernel = make_kernel(X)
    plain, other = ({"C": 1.0, "tol": 1e-4, "random_state": 0} | options for options in ({}, {name: PARAMETERS[name]}))
    one, two = (IKSVC(kernel=kernel, **options).fit(X, y).decision_function(X) for options in (plain, other))
    assert not np.array_equal(one, two)


def test_a_class_weight_multiplies_row_weights():
    X, y, weights = make_stream(150, 3)
    kernel = make_kernel(X)
    by_class = IKSVC(kernel=kernel, C=1.0, class_weight={1: 5.0}, random_state=0).fit(X, y, weights)
    by_row = IKSVC(kernel=kernel, C=1.0, random_state=0).fit(X, y, weights * np.where(y == 1, 5.0, 1.0))
    assert np.array_equal(by_class.cell_weights_, by_row.cell_weights_)


@pytest.mark.parametrize("class_weight", [{1: 10.0}, "balanced"], ids=str)
def test_a_rare_class_of_more_weight_is_predicted_more_often(class_weight):
    X, y = make_rows(300)
    y = y * (np.arange(300) % 5 == 0)
    plain, weighted = (IKSVC(class_weight=w, **SMALL).fit(X, y).predict(X).sum() for w in (None, class_weight))
    assert weighted > plain


def test_without_fit_intercept_the_intercept_is_zero():
    X, y = make_rows(100)
    assert IKSVC(**SMALL, fit_intercept=False).fit(X, y).intercept_.tolist() == [0.0]


def test_training_that_does_not_converge_warns_and_leaves_a_model():
    X, y = make_rows(100)
    with pytest.warns(ConvergenceWarning, match=r"IKSVC has not converged after max_iter=2 passes\. Raise max_iter"):
        model = IKSVC(**SMALL, max_iter=2, tol=1e-6).fit(X, y)
    assert model.n_iter_ == 2
    assert model.predict(X).shape == (100,)


def test_digits_are_recognised():
    X, y = load_digits(return_X_y=True)
    assert IKSVC(random_state=0).fit(X[:1200], y[:1200]).score(X[1200:], y[1200:]) > 0.92


# Scales and a linear term

KINDS = {
    "several scales": {"n_scales": 2, "linear": False},
    "a linear term": {"n_scales": 1, "linear": True},
    "several scales and a linear term": {"n_scales": 2, "linear": True},
}


@every("options", KINDS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_are_linear_in_scales_and_columns(n_classes, options):
    X, y = make_rows(150, n_classes)
    model = IKSVC(**SMALL, **options, C=1.0).fit(X, y)
    weights = model.model_
    # The weights are stored times the share of their scale, a score is a mean over the trees.
    values = model.kernel_.map_.starts[:-1] + model.kernel_.apply(X)
    expected = weights.values.astype(float)[values].sum(axis=1) / SMALL["n_partitionings"] + model.intercept_
    if options["linear"]:
        expected += model.linear_term_.rows(X) @ weights.linear_values[:-1].astype(float)
    np.testing.assert_allclose(model.decision_function(X), expected if n_classes > 2 else expected[:, 0], atol=1e-6)


@every("options", KINDS)
def test_machines_on_scales_and_columns_agree_with_liblinear(options):
    X, y = make_rows(150)
    model = IKSVC(**SMALL, **options, C=1.0, tol=1e-6, max_iter=100_000).fit(X, y)
    features = model.kernel_.transform(X).toarray()
    if options["linear"]:
        features = np.hstack([features, model.linear_term_.rows(X)])
    peer = LinearSVC(C=1.0, dual=True, tol=1e-6, max_iter=100_000).fit(features, y)
    np.testing.assert_allclose(model.decision_function(X), peer.decision_function(features), atol=1e-3)


def test_sparse_rows_categories_and_missing_numbers_have_a_linear_term():
    X, y = make_rows(120)
    holes = np.where(np.arange(360).reshape(120, 3) % 7 == 0, np.nan, X)
    for rows in (sparse.csr_array(X), holes):
        model = IKSVC(**SMALL, linear=True).fit(rows, y)
        assert model.score(rows, y) > 0.8
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"number": X[:, 1], "word": pandas.Categorical(np.where(y == 1, "yes", "no"))})
    assert IKSVC(**SMALL, linear=True).fit(frame, y).score(frame, y) == 1.0


def test_cell_weights_belong_to_one_scale_without_a_linear_term():
    X, y = make_rows(100)
    model = IKSVC(**SMALL, linear=True).fit(X, y)
    with pytest.raises(AttributeError, match="n_scales=1 and linear=False"):
        _ = model.cell_weights_


# What is left to choose


ALL = {"cells", "cells + linear", "linear"}


def test_the_choice_tells_what_was_tried():
    X, y = make_rows(200)
    model = IKSVC(n_partitionings=10, random_state=0).fit(X, y)
    selection = model.selection_
    assert selection["candidates"][0] == "cells, C = 0.03"
    assert {name.split(",")[0] for name in selection["candidates"]} == ALL
    best = int(np.argmax(selection["accuracies"]))
    assert selection["chosen"] == selection["candidates"][best]
    assert f"C = {model.C_:g}" in selection["chosen"]


RESTRICTIONS = {
    "C": ({"C": 1.0}, ALL),
    "n_scales": ({"n_scales": 3}, ALL),
    "n_cells": ({"n_cells": 8}, ALL),
    "linear": ({"linear": True}, {"cells + linear"}),
    "no linear": ({"linear": False}, {"cells"}),
    "kernel": ({"kernel": IsolationKernel(n_partitionings=5)}, {"cells"}),
}


@every("case", RESTRICTIONS)
def test_given_parameters_restrict_the_choice(case):
    options, expected = case
    X, y = make_rows(200)
    size = {} if "kernel" in options else {"n_partitionings": 5}
    selection = IKSVC(random_state=0, **size, **options).fit(X, y).selection_
    assert {name.split(",")[0] for name in selection["candidates"]} == expected
    if "C" in options:
        assert all(name.endswith("C = 1") for name in selection["candidates"])


def test_linear_rows_choose_the_linear_term_and_noisy_ones_a_small_cost():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 8))
    linear = IKSVC(n_partitionings=20, random_state=0).fit(X, X.sum(axis=1) > 0)
    assert "linear" in linear.selection_["chosen"]
    noisy = IKSVC(n_partitionings=20, random_state=0).fit(X[:, :1], (X[:, 0] > 0) ^ (rng.uniform(size=600) < 0.3))
    assert noisy.C_ < 1.0


def test_given_parameters_give_the_solution_of_the_chosen_machine():
    X, y = make_rows(300)
    options = {"kernel": make_kernel(X), "tol": 1e-8, "max_iter": 100_000, "random_state": 0}
    chosen = IKSVC(**options).fit(X, y)
    given = IKSVC(**options, C=chosen.C_).fit(X, y)
    np.testing.assert_allclose(chosen.decision_function(X), given.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_choice_does_not_depend_on_the_number_of_threads(n_classes):
    X, y = make_rows(200, n_classes)
    one, two = (IKSVC(n_partitionings=10, n_jobs=n_jobs, random_state=0).fit(X, y) for n_jobs in (1, 2))
    assert one.selection_ == two.selection_
    assert np.array_equal(one.decision_function(X), two.decision_function(X))


def test_a_choice_by_a_sample_leads_to_the_optimum_for_all_rows(monkeypatch):
    X, y = make_rows(300)
    options = {"kernel": make_kernel(X), "tol": 1e-8, "max_iter": 100_000, "random_state": 0}
    monkeypatch.setattr(svm_choice, "_MOST_ROWS", 100)
    chosen = IKSVC(**options).fit(X, y)
    given = IKSVC(**options, C=chosen.C_).fit(X, y)
    np.testing.assert_allclose(chosen.decision_function(X), given.decision_function(X), atol=1e-5)


def test_the_choice_counts_rows_by_their_weights():
    X, y = make_rows(300)
    weights = np.where(np.arange(300) < 150, 1.0, 0.0)
    y = np.where(weights > 0, y, 1 - y)  # the other half is labelled the wrong way round
    accuracies = IKSVC(**SMALL).fit(X, y, weights).selection_["accuracies"]
    assert max(accuracies) > 0.8 > max(IKSVC(**SMALL).fit(X, y).selection_["accuracies"])


def test_classes_of_fewer_than_five_rows_leave_nothing_to_hold_out():
    X, y = make_rows(6)
    model = IKSVC(**SMALL, n_scales=1).set_params(n_cells=2).fit(X, y)
    assert model.selection_ is None
    assert model.C_ == 1.0
    with pytest.raises(ValueError, match="y must have a class of at least 5 rows"):
        model.predict_proba(X)


def test_folds_hold_out_a_fifth_of_each_class_and_never_all_of_it():
    numbers = np.repeat([0, 1, 2, 3], [50, 11, 4, 1])
    folds = make_folds(numbers, np.random.RandomState(0))
    held_out = np.concatenate([fold.held_out for fold in folds])
    assert len(folds) == 5
    assert np.bincount(numbers[held_out], minlength=4).tolist() == [50, 10, 0, 0]
    assert len(np.unique(held_out)) == len(held_out)
    for fold in folds:
        assert np.bincount(numbers[fold.held_out]).tolist() == [10, 2]
        assert sorted([*fold.train, *fold.held_out]) == list(range(66))


def test_many_rows_are_sampled_and_one_fold_is_held_out():
    rows = sample_rows(100_000, np.random.RandomState(0))
    assert len(np.unique(rows)) == 40_000
    folds = make_folds(np.arange(40_000) % 2, np.random.RandomState(0))
    assert [(len(fold.train), len(fold.held_out)) for fold in folds] == [(32_000, 8_000)]


def test_a_machine_that_was_linear_can_be_fitted_again():
    X = np.random.default_rng(0).normal(size=(300, 8))
    model = IKSVC(n_partitionings=5, random_state=0).fit(X, X.sum(axis=1) > 0)
    assert "linear" in model.selection_["chosen"]
    first = model.decision_function(X)
    assert np.array_equal(model.fit(X, X.sum(axis=1) > 0).decision_function(X), first)


# Probabilities


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("options", [{}, {"C": 1.0, "linear": False, "probability": True}], ids=["chosen", "given"])
def test_probabilities_are_calibrated_and_agree_with_labels(options, n_classes):
    X, y = make_rows(2000, n_classes)
    y = np.where(np.random.default_rng(0).uniform(size=2000) < 0.2, np.roll(y, 1), y)  # noise
    model = IKSVC(n_partitionings=20, n_cells=16, random_state=0, **options).fit(X[:1500], y[:1500])
    probabilities = model.predict_proba(X[1500:])
    assert np.array_equal(model.classes_[probabilities.argmax(axis=1)], model.predict(X[1500:]))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    is_right = model.predict(X[1500:]) == y[1500:]
    assert abs(probabilities.max(axis=1).mean() - is_right.mean()) < 0.06


def test_probabilities_do_not_change_what_given_parameters_lead_to():
    X, y = make_rows(200)
    plain, other = (IKSVC(**SMALL, linear=False, C=1.0, probability=p).fit(X, y) for p in (False, True))
    assert np.array_equal(plain.decision_function(X), other.decision_function(X))
    assert not hasattr(plain, "predict_proba")
    with pytest.raises(AttributeError) as error:
        _ = plain.predict_proba
    assert "probability=True" in str(error.value.__cause__ or error.value)


# Cells


@pytest.mark.parametrize("n_classes", [2, 3, 20])
def test_training_on_cells_equals_training_on_their_rows(n_classes):
    X, y, weights = make_stream(150, n_classes)
    kernel = make_kernel(X)
    rows = IKSVC(kernel=kernel, random_state=0, C=0.1).fit(X, y, weights)
    cells = IKSVC(kernel=kernel, random_state=0, C=0.1).fit_cells(kernel.apply(X), y, weights)
    assert np.array_equal(cells.decision_function(X), rows.decision_function(X))
    assert cells.n_features_in_ == 3


def test_a_model_trained_on_cells_has_the_columns_of_the_kernel():
    pandas = pytest.importorskip("pandas")
    X, y = make_rows(100)
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    kernel = IsolationKernel(**SMALL).fit(frame)
    model = IKSVC(kernel=kernel).fit_cells(kernel.apply(frame), y)
    assert model.predict(frame).shape == (100,)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"c": "d"}))


def test_training_on_cells_needs_a_fitted_kernel_and_two_classes():
    X, y = make_rows(50)
    kernel = make_kernel(X)
    for model in (IKSVC(**SMALL), IKSVC(**SMALL).fit(X, y), IKSVC(kernel=IsolationKernel(**SMALL))):
        with pytest.raises(NotFittedError, match="give a fitted kernel"):
            model.fit_cells(kernel.apply(X), y)
    with pytest.raises(ValueError, match="one class"):
        IKSVC(kernel=kernel).fit_cells(kernel.apply(X), 0 * y)


@pytest.mark.parametrize("partitioning", ["tree", "voronoi"])
def test_cells_of_several_scales_give_the_scores_of_their_rows(partitioning):
    X, y = make_rows(100)
    kernel = IsolationKernel(partitioning, n_scales=2, **SMALL).fit(X)
    rows, cells = IKSVC(kernel=kernel, random_state=0).fit(X, y), IKSVC(kernel=kernel, random_state=0)
    cells.fit_cells(kernel.apply(X), y)
    assert np.array_equal(cells.decision_function(X), rows.decision_function(X))
    assert np.array_equal(cells.decision_function_cells(kernel.apply(X)), rows.decision_function(X))


def test_a_linear_term_needs_rows():
    X, y = make_rows(50)
    kernel = make_kernel(X)
    with pytest.raises(ValueError, match="linear must be False for cells"):
        IKSVC(kernel=kernel, linear=True).fit_cells(kernel.apply(X), y)
    model = IKSVC(**SMALL, linear=True).fit(X, y)
    with pytest.raises(ValueError, match="linear must be False for cells"):
        model.decision_function_cells(model.kernel_.apply(X))
