"""Check IKSVC: the linear SVM on the map, compared with LIBSVM on the kernel matrix."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.svm import SVC

from isokern import IKSVC, IsolationKernel
from learning import SMALL, make_kernel, make_rows, make_stream


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
    model = IKSVC(partitioning, **SMALL).fit(X, y)
    expected = model.kernel_.transform(X) @ model.cell_weights_.T + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), expected if n_classes > 2 else expected[:, 0], atol=1e-12)
    assert np.array_equal(model.decision_function_cells(model.kernel_.apply(X)), model.decision_function(X))


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
    plain, other = ({"random_state": 0} | options for options in ({}, {name: PARAMETERS[name]}))
    one, two = (IKSVC(kernel=kernel, **options).fit(X, y).decision_function(X) for options in (plain, other))
    assert not np.array_equal(one, two)


def test_a_class_weight_multiplies_row_weights():
    X, y, weights = make_stream(150, 3)
    kernel = make_kernel(X)
    by_class = IKSVC(kernel=kernel, class_weight={1: 5.0}, random_state=0).fit(X, y, weights)
    by_row = IKSVC(kernel=kernel, random_state=0).fit(X, y, weights * np.where(y == 1, 5.0, 1.0))
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
        model = IKSVC(**SMALL, max_iter=2).fit(X, y)
    assert model.n_iter_ == 2
    assert model.predict(X).shape == (100,)


def test_digits_are_recognised():
    X, y = load_digits(return_X_y=True)
    assert IKSVC(random_state=0).fit(X[:1200], y[:1200]).score(X[1200:], y[1200:]) > 0.93


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
