"""Check that bad input raises an error that names the cause, and leaves a learner as it was."""

from __future__ import annotations

import itertools
import pickle
import re
from functools import partial

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError

from isokern import (
    IKSVC,
    AdaptiveIKClassifier,
    AdaRakerClassifier,
    FOGDClassifier,
    IKOGDClassifier,
    IKOGDRegressor,
    IsolationKernel,
    NOGDClassifier,
    OGDClassifier,
)
from learning import (
    BATCH,
    FEW_RIVALS,
    IKOGD,
    SMALL,
    answers,
    custom_kernel,
    every,
    is_unfitted,
    make_kernel,
    make_rows,
    spoiled,
)

# Parameters: (what makes the learner, parameter, rule, bad values)

POSITIVE, COUNT = "a positive number", "an integer of at least 1"
SCHEDULES, SCALES = '"constant", "decaying" or "adagrad"', 'None, "minmax", "standard" or "maxabs"'
LOSSES = '"hinge", "squared_hinge" or "logistic"'
CLASS_WEIGHTS = r'None, "balanced" or a dict of numbers from 0 to 1e\+50'
BELOW_RATE = "at least 0 and below 1 / learning_rate"
BUDGETED = partial(OGDClassifier, budget=20)
RIVALS = (OGDClassifier, NOGDClassifier, FOGDClassifier, AdaRakerClassifier)
AVERAGING = (IKOGDClassifier, *RIVALS[:3])
BAD_PARAMETERS = [
    *[
        (learner, name, rule, values)
        for learner in (IKOGDClassifier, IKOGDRegressor)
        for name, rule, values in [
            ("schedule", SCHEDULES, ["optimal"]),
            ("evaluation", '"primal", "naive" or "dual"', ["fast"]),
            ("learning_rate", POSITIVE, [0.0, -0.5, np.nan, np.inf, True, "fast"]),
            ("shrinkage", BELOW_RATE, [-0.1, 2.0, np.nan, "none"]),
            ("n_passes", COUNT, [0, 1.5, True]),
            ("n_initial", "None or an integer of at least 2", [1, 10.0, "auto"]),
            ("n_partitionings", "an integer from 1 to 1,000,000", [0]),
            ("n_cells", '"auto" or an integer of at least 2', [1]),
            ("partitioning", '"tree" or "voronoi" or an object', ["grid"]),
            ("max_depth", 'None, "log2" or an integer of at least 1', [0]),
            ("scale", SCALES, ["log"]),
        ]
    ],
    (IKOGDClassifier, "loss", f'"auto", {LOSSES}', ["squared", None]),
    (AdaptiveIKClassifier, "loss", f'"auto", {LOSSES}', ["squared"]),
    (IKOGDClassifier, "class_weight", CLASS_WEIGHTS, ["equal", 2.0]),
    (IKOGDClassifier, "class_weight", CLASS_WEIGHTS, [{0: value} for value in (-1.0, np.nan, np.inf, "heavy", None)]),
    (IKOGDRegressor, "loss", '"squared", "huber", "epsilon_insensitive" or "quantile"', ["hinge"]),
    *[(learner, "average", "True or False", ["auto", None]) for learner in AVERAGING],
    *[(IKOGDClassifier, name, "True or False", ["no"]) for name in ("shuffle", "growth")],
    (IKOGDRegressor, "average", 'True, False or "auto"', ["yes", None]),
    (IKOGDRegressor, "linear", 'True, False or "auto"', ["yes"]),
    (IKOGDRegressor, "max_model_size", "None or a positive integer", [0, 2.5]),
    (IKOGDRegressor, "n_scales", '"auto" or an integer of at least 1', [0]),
    (
        IKOGDRegressor,
        "quantiles",
        "one or several different numbers between 0 and 1",
        [0, 1.0, (), (0.1, 2), (0.1, 0.1)],
    ),
    (IKOGDRegressor, "epsilon", "a number of at least 0", [-0.1, np.nan, "small", None]),
    (IKSVC, "C", '"auto" or a positive number', [0.0, np.inf, "1"]),
    (IKSVC, "linear", 'True, False or "auto"', ["yes", None]),
    (IKSVC, "probability", "True or False", ["yes"]),
    (IKSVC, "fit_intercept", "True or False", [None]),
    (IKSVC, "loss", '"squared_hinge" or "hinge"', ["logistic"]),
    (IKSVC, "class_weight", CLASS_WEIGHTS, ["equal", {0: -1.0}]),
    (IKSVC, "intercept_scaling", r"a positive number of at most 1e\+100", [0.0, 1e200]),
    (IKSVC, "tol", '"auto" or a positive number', [-1.0]),
    (IKSVC, "max_iter", COUNT, [0, 1.5]),
    (IKSVC, "n_cells", '"auto" or an integer of at least 2', [1]),
    *[
        (rival, name, rule, values)
        for rival in RIVALS
        for name, rule, values in [
            ("learning_rate", POSITIVE, [0, "auto"]),
            ("n_passes", COUNT, [0]),
            ("shuffle", "True or False", ["yes", None]),
            ("class_weight", CLASS_WEIGHTS, ["even", {0: -1}]),
            ("scale", SCALES, ["max", 1]),
            ("n_initial", "None or an integer of at least 2", [1]),
        ]
    ],
    (OGDClassifier, "kernel", '"laplacian", .* or "intersection", an IsolationKernel or a function', ["rbf"]),
    (OGDClassifier, "kernel", "a name, an IsolationKernel or a function", [None]),
    (OGDClassifier, "gamma", '"data" or a positive number', [0, np.nan]),
    (OGDClassifier, "n_cells", "None, or at least 2 with .*", [1]),
    (partial(OGDClassifier, gamma=1.0), "n_cells", "None, or at least 2 with .*", [16]),
    (OGDClassifier, "coef0", "a number of at least 0", [-1]),
    (OGDClassifier, "degree", "an integer from 1 to 100", [1.5]),
    (OGDClassifier, "loss", LOSSES, ["squared"]),
    (OGDClassifier, "budget", "None or an integer of at least 2", [1, 2.5, True]),
    (BUDGETED, "loss", '"hinge" with a budget', ["logistic", "squared_hinge"]),
    (BUDGETED, "strategy", '"random", .* or "bogd"', ["best"]),
    (BUDGETED, "shrinkage", BELOW_RATE, [2.2, -0.1]),
    (partial(OGDClassifier, custom_kernel), "loss", '"hinge" for a custom kernel', ["logistic", "squared_hinge"]),
    (partial(OGDClassifier, custom_kernel), "average", "False with a budget or a custom kernel", [True]),
    (partial(OGDClassifier, budget=9), "average", "False with a budget or a custom kernel", [True]),
    (NOGDClassifier, "kernel", "a name for NOGD", [custom_kernel, IsolationKernel()]),
    (NOGDClassifier, "gamma", '"data" or a positive number', ["scale"]),
    (partial(NOGDClassifier, "gaussian"), "n_cells", "None, or at least 2 with .*", [16]),
    (NOGDClassifier, "degree", "an integer from 1 to 100", [0]),
    (NOGDClassifier, "n_landmarks", COUNT, [0, 10.5]),
    (NOGDClassifier, "rank", r"None, an integer of at least 1 or a number in \(0, 1\]", [0, 1.5, True]),
    (FOGDClassifier, "kernel", '"gaussian" or "laplacian"', ["chi2"]),
    (FOGDClassifier, "gamma", '"data" or a positive number', [0, np.inf]),
    (FOGDClassifier, "loss", LOSSES, ["squared"]),
    (FOGDClassifier, "n_frequencies", COUNT, [0]),
    (FOGDClassifier, "features", '"plain" or "orthogonal"', ["quasi"]),
    (partial(FOGDClassifier, "laplacian"), "features", '"plain" unless the kernel is Gaussian', ["orthogonal"]),
    (AdaRakerClassifier, "bandwidths", "positive numbers", [(), (1.0, -1.0), (np.inf,), "auto"]),
    (AdaRakerClassifier, "n_directions", COUNT, [0, 1.5]),
    (AdaRakerClassifier, "shrinkage", "at least 0 and below 1", [1, -0.1]),
    (AdaRakerClassifier, "restart", '"warm" or "cold"', ["hot"]),
]


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    ("make", "name", "rule", "value"),
    [(make, name, rule, value) for make, name, rule, values in BAD_PARAMETERS for value in values],
)
def test_a_bad_parameter_is_named_with_its_rule_and_value(make, name, rule, value, method):
    X, y = make_rows(60)
    model = make(**{name: value})
    if hasattr(model, method):
        with pytest.raises(ValueError, match=rf"^{name} must be {rule}; got {re.escape(repr(value))}\."):
            getattr(model, method)(X, y)
        assert is_unfitted(model)


CONFLICTS = {
    "AdaGrad in dual form": (
        IKOGDClassifier(evaluation="dual", schedule="adagrad"),
        r'^schedule must be "constant" or "decaying" for evaluation="dual"; got "adagrad"\.',
    ),
    "an unknown device": (IKOGDClassifier(device="abacus"), "^device must be"),
    "a budget for the Isolation Kernel": (
        OGDClassifier(IsolationKernel(), budget=20),
        "^budget must be None for an IsolationKernel",
    ),
}


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@every(("model", "message"), CONFLICTS)
def test_parameters_that_exclude_each_other_are_an_error(model, message, method):
    with pytest.raises(ValueError, match=message):
        getattr(clone(model), method)(*make_rows(60))


@pytest.mark.parametrize(
    ("name", "value"),
    [("loss", "squared"), ("learning_rate", -1.0), ("schedule", "optimal"), ("shrinkage", 9.0), ("class_weight", "x")],
)
def test_a_bad_parameter_set_during_a_stream_is_an_error(name, value):
    X, y = make_rows(60)
    model = IKOGDClassifier(kernel=make_kernel(X)).partial_fit(X, y).set_params(**{name: value})
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=f"^{name} must be"):
        model.partial_fit(X, y)
    assert pickle.dumps(model) == before


def short_indptr(X):
    table = sparse.csr_array(X)
    table.indptr = table.indptr[:-1]
    return table


# Rows: name -> (function of 20 rows, labels and weights that spoils them, error)

BAD_ROWS = {
    "infinity": (lambda X, y, w: (spoiled(X, np.inf), y), "^X must be finite; got infinity in column 1"),
    "sparse NaN": (lambda X, y, w: (sparse.csr_array(spoiled(X, np.nan)), y), "^X must be finite; got NaN in column 1"),
    "broken CSR": (lambda X, y, w: (short_indptr(X), y), r"^X.indptr must have the shape \(21,\); got \(20,\)\."),
    "text": (
        lambda X, y, w: (np.full(X.shape, "a"), y),
        "^X must (not be an array of text|be a number in column 0; got .*'a'.* in row 0)",
    ),
    "one dimension": (lambda X, y, w: (X[:, 0], y), "Expected 2D array, got 1D array"),
    "no rows": (lambda X, y, w: (X[:0], y[:0]), "Found array with 0 sample"),
    "NaN in y": (lambda X, y, w: (X, np.where(y == 0, np.nan, y)), "NaN"),
    "no y": (lambda X, y, w: (X, None), "requires y to be passed, but the target y is None"),
    "too few y": (lambda X, y, w: (X, y[:-1]), "inconsistent numbers of samples"),
    "a negative weight": (lambda X, y, w: (X, y, spoiled(w, -1.0)), "(?i)negative"),
    "a weight of NaN": (lambda X, y, w: (X, y, spoiled(w, np.nan)), "NaN"),
    "too few weights": (lambda X, y, w: (X, y, w[1:]), "sample_weight"),
}
ONLY_FOR_FIT = {"weights of zero": (lambda X, y, w: (X, y, 0 * w), "(?i)zero")}
BAD_FOR_RIVALS = {
    "NaN": (lambda X, y, w: (spoiled(X, np.nan), y), r"^X must be finite; got NaN in column 1, first in row 19\."),
    "words": (lambda X, y, w: (spoiled(X.astype(object), "a"), y), "^X must (hold numbers|be a number in column 1)"),
}
BAD_LABELS = {
    "continuous": (lambda X, y, w: (X, y + 0.5), "Unknown label type: continuous"),
    "two columns of y": (lambda X, y, w: (X, np.stack([y, y], axis=1)), "y should be a 1d array"),
}
BAD_TARGETS = {
    "infinite": (lambda X, y, w: (X, spoiled(1.0 * y, np.inf)), "^y must be finite; got inf first in row"),
    "text as targets": (lambda X, y, w: (X, np.full(len(y), "a")), "^y must be numbers for a regressor; got 'a'"),
}
BAD_LATER_ROWS = {"other columns": (lambda X, y, w: (X[:, :2], y), "^X has 2 features, but .* is expecting 3 features")}
BAD_LATER_LABELS = {
    "text after numbers": (lambda X, y, w: (X, y.astype(str)), "^y must be of the type of the classes"),
    "dates after numbers": (lambda X, y, w: (X, y.astype("M8[D]")), "^y must be numbers or text; got dates"),
}
NEW_LABELS = {"new": (lambda X, y, w: (X, spoiled(y, 7)), r"^y must be of the classes \[0 1 2\].*; got .*7")}

CLASSIFIERS = {name: learner for name, learner in IKOGD.items() if is_classifier(learner)}
REGRESSORS = {name: learner for name, learner in IKOGD.items() if not is_classifier(learner)}
BATCH_CLASSIFIERS = {name: learner for name, learner in BATCH.items() if is_classifier(learner)}
BATCH_REGRESSORS = {name: learner for name, learner in BATCH.items() if not is_classifier(learner)}
STAGES = {"unfitted": 0, "buffering": 20, "about to draw the map": 40, "learning": 60}  # rows before the bad ones


def rejections(rows, learners, method, stages=tuple(STAGES)):
    """Yield (learner, method, rows before, function, error) for all combinations."""
    for (name, learner), stage, (what, bad) in itertools.product(learners.items(), stages, rows.items()):
        yield pytest.param(learner, method, STAGES[stage], *bad, id=f"{name}, {method}, {stage}, {what}")


@pytest.mark.parametrize(
    ("learner", "method", "n_before", "spoil", "message"),
    [
        *rejections(BAD_ROWS | ONLY_FOR_FIT, BATCH | IKOGD | FEW_RIVALS, "fit"),
        *rejections(BAD_ROWS, IKOGD | FEW_RIVALS, "partial_fit"),
        *rejections(BAD_FOR_RIVALS, FEW_RIVALS, "fit"),
        *rejections(BAD_FOR_RIVALS, FEW_RIVALS, "partial_fit"),
        *rejections(BAD_LABELS, BATCH_CLASSIFIERS | CLASSIFIERS | FEW_RIVALS, "fit"),
        *rejections(BAD_LABELS, CLASSIFIERS | FEW_RIVALS, "partial_fit"),
        *rejections(BAD_TARGETS, BATCH_REGRESSORS | REGRESSORS, "fit"),
        *rejections(BAD_TARGETS, REGRESSORS, "partial_fit"),
        *rejections(BAD_LATER_ROWS, IKOGD | FEW_RIVALS, "partial_fit", ["buffering", "learning"]),
        *rejections(BAD_LATER_LABELS, CLASSIFIERS | FEW_RIVALS, "partial_fit", ["buffering", "learning"]),
        *rejections(NEW_LABELS, FEW_RIVALS, "partial_fit", ["learning"]),
    ],
)
def test_bad_rows_are_an_error_and_leave_a_learner_as_it_was(learner, method, n_before, spoil, message):
    X, y = make_rows(80, 3)
    model = clone(learner)
    if n_before:
        getattr(model, "fit" if learner in BATCH.values() else "partial_fit")(X[:n_before], y[:n_before])
    before = pickle.dumps(model)
    X, y, *weights = spoil(X[60:], y[60:], np.ones(20))
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(X, y, sample_weight=weights[0] if weights else None)
    assert pickle.dumps(model) == before
    assert n_before or is_unfitted(model)


@every("learner", BATCH_CLASSIFIERS | CLASSIFIERS | FEW_RIVALS)
def test_one_class_in_fit_is_an_error(learner):
    model = clone(learner)
    with pytest.raises(ValueError, match=r"^y must have at least 2 classes in fit; got only one class, .*7"):
        model.fit(make_rows(50)[0], np.full(50, 7))
    assert is_unfitted(model)


@every("rival", FEW_RIVALS)
def test_a_rival_s_stream_of_one_class_is_an_error_unless_classes_are_given(rival):
    X, _ = make_rows(50)
    with pytest.raises(ValueError, match=r"^classes must be at least 2; got \[1\.\]\. Give classes"):
        clone(rival).partial_fit(X, np.ones(50))
    assert (clone(rival).partial_fit(X, np.ones(50), classes=[0, 1]).predict(X) == 1).mean() > 0.9


@pytest.mark.parametrize("n_before", [0, 20])
@pytest.mark.parametrize(
    ("label", "classes", "message"),
    [
        (5, [0, 1], r"^y must be of the classes \[0 1\] that were given.*; got .*5"),
        (1, [], "^classes must be"),
        (1, [1], "^classes must be"),
    ],
)
def test_labels_outside_the_given_classes_and_fewer_than_two_classes_are_errors(label, classes, message, n_before):
    X, y = make_rows(60)
    model = IKOGDClassifier(kernel=make_kernel(X))
    if n_before:
        model.partial_fit(X[:n_before], y[:n_before], classes=[0, 1])
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=message):
        model.partial_fit(X[20:], np.where(y[20:] == 1, label, 0), classes=classes)
    assert pickle.dumps(model) == before


def test_classes_that_change_between_calls_are_an_error():
    X, y = make_rows(60, 3)
    model = IKOGDClassifier(n_initial=50, **SMALL).partial_fit(X, y)
    with pytest.raises(ValueError, match=r"^classes must be the same in every call"):
        model.partial_fit(X, y, classes=[0, 1, 7])


def test_rows_that_no_map_can_be_drawn_from_are_not_buffered():
    X, y = make_rows(60)
    model = IKOGDClassifier(n_initial=50, **SMALL | {"scale": "minmax"}).partial_fit(X[:40], y[:40])
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match="scale"):
        model.partial_fit(sparse.csr_array(X[40:]), y[40:])
    assert pickle.dumps(model) == before


# Rows to predict


def error_of(model, X):
    with pytest.raises(ValueError) as raised:
        answers(model, X)
    return str(raised.value)


@every("learner", BATCH | IKOGD)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_single_bad_row_raises_the_error_of_many(dtype, learner):
    X, y = make_rows(100, 3)
    model, many = clone(learner).fit(X, y), X.astype(dtype)
    for value in (np.inf, -np.inf):
        many[0, 1] = value
        assert error_of(model, many[:1]) == error_of(model, many)
    for n_columns in (2, 4):
        name = type(getattr(model, "best_estimator_", model)).__name__
        expected = f"X has {n_columns} features, but {name} is expecting 3 features as input."
        assert error_of(model, np.zeros((1, n_columns))) == expected
    for shape in ((3,), (1, 1, 3), (0, 3)):
        assert error_of(model, np.zeros(shape))


@every("learner", BATCH | IKOGD | FEW_RIVALS)
def test_an_unfitted_learner_raises_not_fitted_error(learner):
    methods = ["predict", "predict_proba", "decision_function", "predict_cells", "decision_function_cells"]
    for method in methods:
        if hasattr(learner, method):
            with pytest.raises(NotFittedError):
                getattr(clone(learner), method)(np.zeros((2, 3)))


# Cells


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


@every("spoil", BAD_CELLS)
@pytest.mark.parametrize("learner", [IKOGDClassifier, IKSVC])
def test_invalid_cells_are_neither_scored_nor_learned(learner, spoil):
    X, y = make_rows(60)
    kernel = make_kernel(X)
    cells = spoil(kernel.apply(X))
    learn = "fit_cells" if learner is IKSVC else "partial_fit_cells"
    with pytest.raises(ValueError, match=r"^cells must be"):
        learner(kernel=kernel).fit(X, y).decision_function_cells(cells)
    for model in (learner(kernel=kernel), learner(kernel=kernel).fit(X, y)):
        before = pickle.dumps(model)
        with pytest.raises(ValueError, match=r"^cells must be"):
            getattr(model, learn)(cells, y)
        assert pickle.dumps(model) == before


BAD_CELL_CALLS = {
    "no rows": (lambda cells, y: (cells[:0], y[:0]), "cells must have at least 1 row; got 0"),
    "too few labels": (lambda cells, y: (cells, y[1:]), "inconsistent numbers of samples"),
}


@every(("spoil", "message"), BAD_CELL_CALLS)
@pytest.mark.parametrize("learner", [IKOGDClassifier, IKSVC])
def test_cells_without_rows_labels_or_weights_are_not_learned(learner, spoil, message):
    X, y = make_rows(50)
    model = learner(kernel=make_kernel(X))
    cells, y, *weights = spoil(model.kernel.apply(X), y)
    learn = model.fit_cells if learner is IKSVC else model.partial_fit_cells
    with pytest.raises(ValueError, match=message):
        learn(cells, y, sample_weight=weights[0] if weights else None)
    assert is_unfitted(model)


@pytest.mark.parametrize("n_before", [0, 20])
def test_cells_cannot_be_learned_before_there_is_a_map(n_before):
    X, y = make_rows(60)
    model = IKOGDClassifier(**SMALL)
    if n_before:
        model.partial_fit(X[:n_before], y[:n_before])
    before = pickle.dumps(model)
    with pytest.raises(NotFittedError, match="must know the map of the cells; give a fitted kernel"):
        model.partial_fit_cells(make_kernel(X).apply(X), y)
    assert pickle.dumps(model) == before


@pytest.mark.parametrize("method", ["predict_cells", "predict_proba_cells"])
def test_cells_cannot_be_predicted_before_there_is_a_map(method):
    X, y = make_rows(20)
    with pytest.raises(NotFittedError):
        getattr(IKOGDClassifier().partial_fit(X[:10], y[:10]), method)(np.zeros((1, 100), dtype=np.uint8))


@pytest.mark.parametrize("learner", [IKOGDClassifier(), IKSVC(), OGDClassifier()])
def test_labels_of_bytes_are_an_error_with_the_cure(learner):
    X, y = make_rows(30)
    with pytest.raises(ValueError, match=r"y must be numbers or text; got bytes. Decode them first"):
        clone(learner).fit(X, y.astype("S"))
