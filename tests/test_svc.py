"""IKSVC: the linear machine on the map, and how it compares with LIBSVM on the kernel."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.svm import SVC

from isokern import IKSVC, IsolationKernel
from learning import SMALL, is_unfitted, make_kernel, make_rows, make_stream


@pytest.fixture(scope="module", params=[16, 64], ids="n_cells={}".format)
def machines(request):
    """Return the scores of odd and even digits by our machine on the map and by LIBSVM on the precomputed kernel."""
    rows, digits = load_digits(return_X_y=True)
    X, y = rows[:600], digits[:600] % 2
    kernel = IsolationKernel(n_cells=request.param, random_state=0).fit(X)
    # It takes the more passes the larger the scaling; at 10 the intercept is as good as free.
    options = {"loss": "hinge", "C": 1.0, "intercept_scaling": 10.0, "tol": 1e-4, "max_iter": 100_000}
    linear = IKSVC(kernel=kernel, random_state=0, **options).fit(X, y)
    libsvm = SVC(kernel="precomputed", C=1.0, tol=1e-6).fit(kernel.similarity(X), y)
    return linear.decision_function(rows), libsvm.decision_function(kernel.similarity(rows, X))


def test_scores_are_within_two_hundredths_of_libsvm_s_on_the_precomputed_kernel(machines):
    linear, libsvm = machines
    assert np.abs(linear - libsvm).max() < 0.02


def test_labels_are_those_of_libsvm_on_the_precomputed_kernel(machines):
    linear, libsvm = machines
    assert np.mean((linear > 0) == (libsvm > 0)) >= 0.999


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("partitioning", ["tree", "voronoi"])
def test_scores_are_those_of_the_linear_machine_on_the_map(partitioning, n_classes):
    X, y = make_rows(150, n_classes)
    model = IKSVC(partitioning, **SMALL).fit(X, y)
    expected = model.kernel_.transform(X) @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), expected if n_classes > 2 else expected[:, 0], atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_scores_of_cells_are_those_of_their_rows(n_classes):
    X, y = make_rows(150, n_classes)
    model = IKSVC(**SMALL).fit(X, y)
    assert np.array_equal(model.decision_function_cells(model.kernel_.apply(X)), model.decision_function(X))


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


def test_a_factor_of_a_class_is_one_of_its_rows():
    X, y, weights = make_stream(150, 3)
    kernel = make_kernel(X)
    by_class = IKSVC(kernel=kernel, class_weight={1: 5.0}, random_state=0).fit(X, y, weights)
    by_row = IKSVC(kernel=kernel, random_state=0).fit(X, y, weights * np.where(y == 1, 5.0, 1.0))
    assert np.array_equal(by_class.coef_, by_row.coef_)


def test_without_an_intercept_there_is_none():
    X, y = make_rows(100)
    assert IKSVC(**SMALL, fit_intercept=False).fit(X, y).intercept_.tolist() == [0.0]


def test_training_that_does_not_converge_warns_and_leaves_a_model():
    X, y = make_rows(100)
    with pytest.warns(ConvergenceWarning, match=r"IKSVC has not converged after max_iter=2 passes\. Raise max_iter"):
        model = IKSVC(**SMALL, max_iter=2).fit(X, y)
    assert model.n_iter_ == 2
    assert model.predict(X).shape == (100,)


@pytest.mark.parametrize("n_classes", [2, 3, 20])
def test_training_on_cells_is_training_on_their_rows(n_classes):
    X, y, weights = make_stream(150, n_classes)
    kernel = make_kernel(X)
    rows = IKSVC(kernel=kernel, random_state=0, C=0.1).fit(X, y, weights)
    cells = IKSVC(kernel=kernel, random_state=0, C=0.1).fit_cells(kernel.apply(X), y, weights)
    assert np.array_equal(cells.decision_function(X), rows.decision_function(X))
    assert cells.n_features_in_ == 3


def test_training_on_cells_asks_for_the_columns_of_the_kernel():
    pandas = pytest.importorskip("pandas")
    X, y = make_rows(100)
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    kernel = IsolationKernel(**SMALL).fit(frame)
    model = IKSVC(kernel=kernel).fit_cells(kernel.apply(frame), y)
    assert model.predict(frame).shape == (100,)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["c", "b", "a"]])


def test_training_on_cells_needs_a_fitted_kernel():
    X, y = make_rows(50)
    cells = make_kernel(X).apply(X)
    for model in (IKSVC(**SMALL), IKSVC(**SMALL).fit(X, y), IKSVC(kernel=IsolationKernel(**SMALL))):
        with pytest.raises(NotFittedError, match="give a fitted kernel"):
            model.fit_cells(cells, y)


BAD_CELLS = {
    "no rows": (lambda cells, y: (cells[:0], y[:0]), "cells must have at least 1 row; got 0"),
    "too few columns": (lambda cells, y: (cells[:, 1:], y), "cells must be integers of shape"),
    "too large": (lambda cells, y: (cells + 8, y), "cells must be"),
    "too few labels": (lambda cells, y: (cells, y[1:]), "inconsistent numbers of samples"),
    "one class": (lambda cells, y: (cells, 0 * y), "one class"),
    "zero weights": (lambda cells, y: (cells, y, 0.0 * y), "(?i)zero"),
}


@pytest.mark.parametrize(("spoil", "message"), BAD_CELLS.values(), ids=BAD_CELLS)
def test_bad_cells_are_refused_and_nothing_is_learned(spoil, message):
    X, y = make_rows(50)
    kernel = make_kernel(X)
    model = IKSVC(kernel=kernel)
    with pytest.raises(ValueError, match=message):
        model.fit_cells(*spoil(kernel.apply(X), y))
    assert is_unfitted(model)


def test_threads_do_not_change_the_machines():
    X, y = make_rows(200, 5)
    one, two = (IKSVC(**SMALL, n_jobs=n).fit(X, y).coef_ for n in (1, 2))
    assert np.array_equal(one, two)


@pytest.mark.parametrize("class_weight", [{1: 10.0}, "balanced"], ids=str)
def test_a_rare_class_of_more_weight_is_predicted_more_often(class_weight):
    X, y = make_rows(300)
    y = y * (np.arange(300) % 5 == 0)
    plain, weighted = (IKSVC(class_weight=w, **SMALL).fit(X, y).predict(X).sum() for w in (None, class_weight))
    assert weighted > plain


def test_three_classes_have_three_scores():
    X, y = make_rows(150, 3)
    assert IKSVC(**SMALL).fit(X, y).decision_function(X).shape == (150, 3)


def test_digits_are_recognised():
    X, y = load_digits(return_X_y=True)
    assert IKSVC(random_state=0).fit(X[:1200], y[:1200]).score(X[1200:], y[1200:]) > 0.93


@pytest.mark.parametrize("labels", [["no", "yes"], [-1, 1], [False, True]], ids=str)
def test_two_classes_of_any_name_give_the_same_scores(labels):
    X, y = make_rows(100)
    expected = IKSVC(**SMALL).fit(X, y).decision_function(X)
    model = IKSVC(**SMALL).fit(X, np.array(labels)[y])
    assert np.array_equal(model.decision_function(X), expected)
    assert set(model.predict(X)) == set(labels)


def test_dense_and_sparse_rows_give_the_same_machine():
    X, y = make_rows(100)
    X = np.where(X > 0, X, 0.0)
    dense, csr = (IKSVC(**SMALL).fit(form(X), y) for form in (np.asarray, sparse.csr_array))
    assert np.array_equal(dense.decision_function(X), csr.decision_function(sparse.csr_array(X)))


def test_the_same_seed_gives_the_same_machine():
    X, y = make_rows(100)
    one, other = (IKSVC(**SMALL).fit(X, y).decision_function(X) for _ in range(2))
    assert np.array_equal(one, other)


def nan_in_row_3(X):
    X = X.copy()
    X[3, 1] = np.nan
    return X


BAD_INPUT = {
    "NaN": (lambda X, y: (nan_in_row_3(X), y), "X must be finite; got NaN in column 1, first in row 3"),
    "one class": (lambda X, y: (X, 0 * y), "one class|1 class"),
    "continuous labels": (lambda X, y: (X, y + 0.5), "Unknown label type"),
    "no labels": (lambda X, y: (X, None), "requires y to be passed, but the target y is None"),
    "too few labels": (lambda X, y: (X, y[:-1]), "inconsistent numbers of samples"),
    "zero weights": (lambda X, y: (X, y, np.zeros(len(y))), "(?i)zero"),
    "too few weights": (lambda X, y: (X, y, np.ones(3)), "sample_weight"),
}


@pytest.mark.parametrize(("spoil", "message"), BAD_INPUT.values(), ids=BAD_INPUT)
def test_a_rejected_first_fit_leaves_the_model_unfitted(spoil, message):
    model = IKSVC(**SMALL)
    with pytest.raises(ValueError, match=message):
        model.fit(*spoil(*make_rows(50)))
    assert is_unfitted(model)


@pytest.mark.parametrize(("spoil", "message"), BAD_INPUT.values(), ids=BAD_INPUT)
def test_a_rejected_fit_leaves_a_fitted_model_as_it_was(spoil, message):
    model = IKSVC(**SMALL).fit(*make_rows(50, 3))
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=message):
        model.fit(*spoil(*make_rows(50)))
    assert pickle.dumps(model) == before


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("C", 0.0),
        ("C", np.inf),
        ("C", "1"),
        ("loss", "logistic"),
        ("class_weight", "equal"),
        ("class_weight", {0: -1.0}),
        ("intercept_scaling", 0.0),
        ("intercept_scaling", 1e200),
        ("tol", -1.0),
        ("max_iter", 0),
        ("max_iter", 1.5),
        ("n_cells", 1),
    ],
)
def test_a_bad_parameter_is_named_in_the_error_and_nothing_is_learned(name, value):
    X, y = make_rows(50)
    model = IKSVC(**{name: value})
    with pytest.raises(ValueError, match=f"^{name} must be"):
        model.fit(X, y)
    assert is_unfitted(model)


def test_cells_that_the_kernel_cannot_have_made_are_not_scored():
    X, y = make_rows(50)
    model = IKSVC(**SMALL).fit(X, y)
    with pytest.raises(ValueError, match=r"^cells must be from 0 to 7; got 8 to 15\."):
        model.decision_function_cells(np.repeat(np.arange(8, 16), 6).reshape(-1, 6))


@pytest.mark.parametrize("method", ["predict", "decision_function", "decision_function_cells"])
def test_an_unfitted_model_says_so(method):
    with pytest.raises(NotFittedError):
        getattr(IKSVC(), method)(np.zeros((2, 3)))
