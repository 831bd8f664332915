"""What IKOGDClassifier refuses: an error that says what is wrong, and a model as it was before."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from isokern import IKOGDClassifier
from learning import SMALL, is_unfitted, make_kernel, make_rows

BAD_PARAMETERS = [
    ("loss", "squared"),
    ("loss", None),
    ("schedule", "optimal"),
    ("evaluation", "fast"),
    ("learning_rate", 0.0),
    ("learning_rate", -0.5),
    ("learning_rate", np.nan),
    ("learning_rate", np.inf),
    ("learning_rate", True),
    ("learning_rate", "fast"),
    ("shrinkage", -0.1),
    ("shrinkage", 0.5),  # 1 - 2 * 0.5 leaves nothing
    ("shrinkage", np.nan),
    ("shrinkage", "none"),
    ("n_passes", 0),
    ("n_passes", 1.5),
    ("n_passes", True),
    ("n_initial", 1),
    ("n_initial", 10.0),
    ("n_initial", "auto"),
    ("class_weight", "equal"),
    ("class_weight", 2.0),
    ("class_weight", {0: -1.0}),
    ("class_weight", {0: np.nan}),
    ("class_weight", {0: np.inf}),
    ("class_weight", {0: "heavy"}),
    ("class_weight", {0: None}),
    ("n_partitionings", 0),
    ("n_cells", 1),
    ("partitioning", "grid"),
    ("max_depth", 0),
    ("scale", "log"),
    ("device", "abacus"),
]


def named(value):
    return repr(value) if not callable(value) else value.__name__


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize(("name", "value"), BAD_PARAMETERS, ids=named)
def test_a_bad_parameter_is_named_in_the_error_and_nothing_is_learned(name, value, method):
    X, y = make_rows(60)
    model = IKOGDClassifier(**{"n_partitionings": 6, "n_initial": 10, name: value})
    with pytest.raises(ValueError, match=f"^{name} must be"):
        getattr(model, method)(X, y)
    assert is_unfitted(model)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_adagrad_s_steps_have_no_dual_form(method):
    X, y = make_rows(60)
    with pytest.raises(ValueError, match=r'^schedule must be "constant" or "decaying" for evaluation="dual"'):
        getattr(IKOGDClassifier(evaluation="dual", schedule="adagrad"), method)(X, y)


@pytest.mark.parametrize(
    ("name", "value"),
    [("loss", "squared"), ("learning_rate", -1.0), ("schedule", "optimal"), ("shrinkage", 9.0), ("class_weight", "x")],
)
def test_a_parameter_set_badly_in_the_middle_of_a_stream_is_refused(name, value):
    X, y = make_rows(60)
    model = IKOGDClassifier(kernel=make_kernel(X)).partial_fit(X, y).set_params(**{name: value})
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=f"^{name} must be"):
        model.partial_fit(X, y)
    assert pickle.dumps(model) == before


def with_nan(X):
    X = X.copy()
    X[-1, 1] = np.nan
    return X


def with_infinity(X):
    X = X.copy()
    X[3, 2] = np.inf
    return X


BAD_ROWS = {  # (X, y, keywords) -> the same, spoiled; and the error
    "NaN": (lambda X, y: (with_nan(X), y, {}), "X must be finite; got NaN in column 1, first in row 19"),
    "sparse NaN": (lambda X, y: (sparse.csr_array(with_nan(X)), y, {}), "X must be finite; got NaN in column 1"),
    "infinity": (lambda X, y: (with_infinity(X), y, {}), "X must be finite; got infinity in column 2"),
    "text": (lambda X, y: (np.full(X.shape, "a"), y, {}), "dtype='numeric' is not compatible"),
    "one dimension": (lambda X, y: (X[:, 0], y, {}), "Expected 2D array, got 1D array"),
    "no rows": (lambda X, y: (X[:0], y[:0], {}), "Found array with 0 sample"),
    "continuous labels": (lambda X, y: (X, y + 0.5, {}), "Unknown label type: continuous"),
    "NaN among labels": (lambda X, y: (X, np.where(y == 0, np.nan, y), {}), "NaN"),
    "no labels": (lambda X, y: (X, None, {}), "requires y to be passed, but the target y is None"),
    "too few labels": (lambda X, y: (X, y[:-1], {}), "inconsistent numbers of samples"),
    "two columns of labels": (lambda X, y: (X, np.stack([y, y], axis=1), {}), "y should be a 1d array"),
    "negative weight": (lambda X, y: (X, y, {"sample_weight": np.r_[-1.0, np.ones(19)]}), "(?i)negative"),
    "zero weights": (lambda X, y: (X, y, {"sample_weight": np.zeros(20)}), "(?i)zero"),
    "NaN weight": (lambda X, y: (X, y, {"sample_weight": np.r_[np.nan, np.ones(19)]}), "NaN"),
    "too few weights": (lambda X, y: (X, y, {"sample_weight": np.ones(19)}), "sample_weight"),
}
LATER_BAD_ROWS = {
    **BAD_ROWS,
    "fewer columns": (lambda X, y: (X[:, :2], y, {}), "X has 2 features, but IKOGDClassifier is expecting 3 features"),
    "labels of another kind": (lambda X, y: (X, y.astype(str), {}), "(?i)label|class|y must"),
    "other classes": (lambda X, y: (X, y, {"classes": [0, 1, 7]}), "classes must be the same in every call"),
}
every_bad_row = pytest.mark.parametrize(("spoil", "message"), BAD_ROWS.values(), ids=BAD_ROWS)
every_later_bad_row = pytest.mark.parametrize(("spoil", "message"), LATER_BAD_ROWS.values(), ids=LATER_BAD_ROWS)


def call(model, method, spoil, message):
    X, y = make_rows(20, 3)
    X, y, keywords = spoil(X, y)
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(X, y, **keywords)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("given", ["kernel", "parameters"])
@every_bad_row
def test_a_rejected_first_call_leaves_the_model_unfitted(spoil, message, given, method):
    X, _ = make_rows(50)
    model = IKOGDClassifier(kernel=make_kernel(X)) if given == "kernel" else IKOGDClassifier(n_initial=15, **SMALL)
    call(model, method, spoil, message)
    assert is_unfitted(model)


STATES = {"holding rows": (10, 50), "about to draw the map": (10, 15), "learning": (60, 50)}  # rows, n_initial


@pytest.mark.parametrize(("n_rows", "n_initial"), STATES.values(), ids=STATES)
@every_later_bad_row
def test_a_rejected_later_call_leaves_the_model_as_it_was(spoil, message, n_rows, n_initial):
    X, y = make_rows(n_rows, 3)
    model = IKOGDClassifier(n_initial=n_initial, class_weight="balanced", **SMALL).partial_fit(X, y)
    before = pickle.dumps(model)
    call(model, "partial_fit", spoil, message)
    assert pickle.dumps(model) == before


@every_bad_row
def test_a_rejected_fit_leaves_a_fitted_model_as_it_was(spoil, message):
    X, y = make_rows(60, 3)
    model = IKOGDClassifier(**SMALL).fit(X, y)
    before = pickle.dumps(model)
    call(model, "fit", spoil, message)
    assert pickle.dumps(model) == before


def test_rows_that_no_map_can_be_drawn_from_are_not_held():
    X, y = make_rows(60)
    model = IKOGDClassifier(n_initial=50, **SMALL | {"scale": "minmax"}).partial_fit(X[:40], y[:40])
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="scale"):
        model.partial_fit(sparse.csr_array(X[40:]), y[40:])
    assert pickle.dumps(model) == before


def test_one_class_in_fit_is_an_error():
    X, _ = make_rows(20)
    model = IKOGDClassifier()
    with pytest.raises(ValueError, match=r"^y must have at least 2 classes in fit; got only one class, .*7"):
        model.fit(X, np.full(20, 7))
    assert is_unfitted(model)


@pytest.mark.parametrize("classes", [[], [1]], ids=str)
def test_fewer_than_two_classes_cannot_be_told(classes):
    X, y = make_rows(20)
    model = IKOGDClassifier()
    with pytest.raises(ValueError, match=r"^classes must be"):
        model.partial_fit(X, y, classes=classes)
    assert is_unfitted(model)


@pytest.mark.parametrize("n_before", [0, 20])
def test_a_label_outside_the_told_classes_is_an_error_and_changes_nothing(n_before):
    X, y = make_rows(60)
    model = IKOGDClassifier(kernel=make_kernel(X))
    if n_before:
        model.partial_fit(X[:n_before], y[:n_before], classes=[0, 1])
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=r"^y must be of the classes \[0 1\] that were given.*; got .*5"):
        model.partial_fit(X[20:], np.where(y[20:] == 1, 5, 0), classes=[0, 1])
    assert pickle.dumps(model) == before


BAD_CELLS = {
    "too few columns": lambda cells: cells[:, :-1],
    "too many columns": lambda cells: np.hstack([cells, cells]),
    "one dimension": lambda cells: cells[0],
    "floats": lambda cells: cells.astype(float),
    "bools": lambda cells: cells.astype(bool),
    "beyond the last cell": lambda cells: np.where(cells == cells[0, 0], 8, cells).astype(cells.dtype),
    "beyond the last cell and a byte": lambda cells: cells.astype(np.int64) + 256,
    "negative": lambda cells: cells.astype(np.int64) - 8,
}


@pytest.mark.parametrize("spoil", BAD_CELLS.values(), ids=BAD_CELLS)
def test_cells_that_the_kernel_cannot_have_made_are_not_scored(spoil):
    X, y = make_rows(60)
    model = IKOGDClassifier(**SMALL).fit(X, y)
    with pytest.raises(ValueError, match=r"^cells must be"):
        model.decision_function_cells(spoil(model.kernel_.apply(X)))


@pytest.mark.parametrize("n_before", [0, 60])
@pytest.mark.parametrize("spoil", BAD_CELLS.values(), ids=BAD_CELLS)
def test_cells_that_the_kernel_cannot_have_made_are_not_learned(spoil, n_before):
    X, y = make_rows(60)
    kernel = make_kernel(X)
    model = IKOGDClassifier(kernel=kernel)
    if n_before:
        model.partial_fit(X, y)
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=r"^cells must be"):
        model.partial_fit_cells(spoil(kernel.apply(X)), y)
    assert pickle.dumps(model) == before


def test_no_cells_at_all_are_an_error():
    X, _ = make_rows(60)
    kernel = make_kernel(X)
    model = IKOGDClassifier(kernel=kernel)
    with pytest.raises(ValueError):
        model.partial_fit_cells(kernel.apply(X)[:0], [])
    assert is_unfitted(model)


@pytest.mark.parametrize("n_before", [0, 20])
def test_cells_mean_nothing_before_there_is_a_map(n_before):
    X, y = make_rows(60)
    model = IKOGDClassifier(**SMALL)
    if n_before:
        model.partial_fit(X[:n_before], y[:n_before])
    before = pickle.dumps(model)
    with pytest.raises(NotFittedError, match="must know the map that made the cells"):
        model.partial_fit_cells(make_kernel(X).apply(X), y)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function", "decision_function_cells"])
def test_an_unfitted_model_says_so(method):
    X, _ = make_rows(20)
    with pytest.raises(NotFittedError):
        getattr(IKOGDClassifier(), method)(X)
