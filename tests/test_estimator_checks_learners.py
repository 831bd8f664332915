"""The learners as scikit-learn estimators: its checks, kernels given to them, single rows, copies and files."""

from __future__ import annotations

import copy
import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from isokern import IKSVC, IKOGDClassifier, IKOGDRegressor, IsolationKernel
from isokern.learners import IKOGDClassifierCV
from learning import SMALL, make_kernel, make_rows, same_model

LEARNERS = [IKOGDClassifier, IKOGDRegressor, IKSVC]
ONLINE = [IKOGDClassifier, IKOGDRegressor]
every_learner = pytest.mark.parametrize("learner", LEARNERS)
every_online_learner = pytest.mark.parametrize("learner", ONLINE)


def weights_are_not_repetitions(_):
    reason = "rows are taken one after another and the map is drawn from rows: a weight of 2 is not two rows"
    return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}


def what_cannot_be(learner):
    failures = weights_are_not_repetitions(learner)
    if isinstance(learner, IKOGDClassifierCV):
        reason = "a search needs all its rows at once, so that partial_fit comes after fit"
        names = ("check_estimators_partial_fit_n_features", "check_n_features_in_after_fitting")
        failures |= dict.fromkeys(names, reason)
    return failures


@parametrize_with_checks(
    [
        IKOGDClassifier("tree", n_partitionings=10, random_state=0),
        IKOGDClassifier("voronoi", n_partitionings=10, random_state=0),
        IKOGDClassifier(loss="logistic", n_partitionings=10, random_state=0),
        IKOGDRegressor(n_partitionings=10, random_state=0),
        IKSVC(n_partitionings=10, random_state=0),
        IKOGDClassifierCV(n_partitionings=6, n_cells=(2, 4), learning_rate=[0.5, 2.0], cv=3, random_state=0),
    ],
    expected_failed_checks=what_cannot_be,
)
def test_scikit_learn_s_estimator_checks_pass(estimator, check):
    check(estimator)


def answers(model, X):
    """Return what a model says about rows, as finely as it can."""
    return model.predict(X) if isinstance(model, IKOGDRegressor) else model.decision_function(X)


# Kernels


@every_learner
def test_a_fitted_kernel_is_used_as_it_is(learner):
    X, y = make_rows(100)
    kernel = make_kernel(X)
    before = pickle.dumps(kernel)
    assert learner(kernel=kernel).fit(X[:50], y[:50]).kernel_ is kernel
    assert pickle.dumps(kernel) == before


@every_online_learner
def test_a_fitted_kernel_lets_a_stream_begin_at_once(learner):
    X, y = make_rows(100)
    kernel = make_kernel(X)
    assert learner(kernel=kernel).partial_fit(X[:1], y[:1]).kernel_ is kernel


def test_one_kernel_serves_many_learners():
    X, y = make_rows(100)
    kernel = make_kernel(X)
    assert len({id(learner(kernel=kernel).fit(X, y).kernel_) for learner in LEARNERS}) == 1


@every_learner
def test_an_unfitted_kernel_is_cloned_and_fitted(learner):
    X, y = make_rows(100)
    kernel = IsolationKernel(**SMALL)
    model = learner(kernel=kernel).fit(X, y)
    assert np.array_equal(model.kernel_.apply(X), make_kernel(X).apply(X))
    assert not hasattr(kernel, "n_cells_")


@every_online_learner
def test_a_stream_waits_for_the_rows_that_an_unfitted_kernel_needs(learner):
    X, y = make_rows(60)
    model = learner(kernel=IsolationKernel(**SMALL), n_initial=50).partial_fit(X[:49], y[:49])
    assert not hasattr(model, "kernel_")
    assert np.array_equal(model.partial_fit(X[49:], y[49:]).kernel_.apply(X), make_kernel(X[:50]).apply(X))


@every_learner
def test_a_frozen_kernel_survives_cloning(learner):
    X, y = make_rows(100)
    kernel = make_kernel(X)
    model = clone(learner(kernel=FrozenEstimator(kernel)))
    assert np.array_equal(model.fit(X[:50], y[:50]).kernel_.apply(X), kernel.apply(X))


FLAT = {
    "partitioning": "voronoi",
    "n_partitionings": 50,
    "n_cells": 8,
    "max_depth": "log2",
    "scale": "minmax",
    "device": "cpu",
}


@every_learner
@pytest.mark.parametrize("name", FLAT)
def test_a_parameter_of_the_kernel_along_with_a_kernel_is_an_error(name, learner):
    X, y = make_rows(50)
    with pytest.raises(ValueError, match=f"^{name} must not be given along with kernel"):
        learner(kernel=IsolationKernel(), **{name: FLAT[name]}).fit(X, y)


@every_learner
@pytest.mark.parametrize("name", FLAT)
def test_a_parameter_of_the_kernel_reaches_it(name, learner):
    X, y = make_rows(300)
    model = learner(**{name: FLAT[name]}).fit(X, y)
    assert getattr(model.kernel_, name) == FLAT[name]


@every_learner
@pytest.mark.parametrize("kernel", ["rbf", IsolationKernel, FrozenEstimator(IKSVC())], ids=str)
def test_a_kernel_that_is_none_is_an_error(kernel, learner):
    X, y = make_rows(50)
    with pytest.raises(ValueError, match=r"^kernel must be an IsolationKernel or None"):
        learner(kernel=kernel).fit(X, y)


METHODS = [(learner, "fit") for learner in LEARNERS] + [(learner, "partial_fit") for learner in ONLINE]


@pytest.mark.parametrize(("learner", "method"), METHODS)
def test_a_kernel_of_other_columns_is_an_error(learner, method):
    X, y = make_rows(50)
    model = learner(kernel=make_kernel(X[:, :2]))
    with pytest.raises(ValueError, match=r"^X must have the 2 columns of kernel; got 3\."):
        getattr(model, method)(X, y)
    assert not hasattr(model, "kernel_")


@every_learner
def test_a_grid_search_reaches_the_kernel_s_parameters(learner):
    X, y = make_rows(120)
    grid = {"n_cells": [2, 16], "partitioning": ["tree", "voronoi"]}
    search = GridSearchCV(learner(n_partitionings=6, random_state=0), grid, cv=3).fit(X, y)
    assert search.best_estimator_.kernel_.n_cells_ == search.best_params_["n_cells"]


def test_a_grid_search_with_a_frozen_kernel_never_refits_it():
    X, y = make_rows(120)
    kernel = make_kernel(X)
    model = IKOGDClassifier(kernel=FrozenEstimator(kernel), random_state=0)
    search = GridSearchCV(model, {"learning_rate": [0.5, 2.0]}, cv=3).fit(X, y)
    assert search.best_estimator_.kernel_ is kernel


# One row at a time


def trained(learner, partitioning="tree"):
    X, y = make_rows(200, 3)
    return X, learner(partitioning, scale="standard", **SMALL).fit(X, y)


@every_learner
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("partitioning", ["tree", "voronoi"])
def test_one_row_gets_the_answer_it_gets_among_many(partitioning, dtype, learner):
    X, model = trained(learner, partitioning)
    X = X.astype(dtype)
    alone = np.concatenate([answers(model, X[r : r + 1]) for r in range(len(X))])
    assert np.array_equal(alone, answers(model, X))


FORMS = {
    "a list": np.ndarray.tolist,
    "column by column": np.asfortranarray,
    "every second column of more": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "the other byte order": lambda X: X.astype(">f8"),
    "long double": lambda X: X.astype(np.longdouble),
    "read-only": lambda X: np.frombuffer(X.tobytes()).reshape(X.shape),
}


@every_learner
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_few_rows_in_any_form_get_the_same_answer(form, learner):
    X, model = trained(learner)
    assert np.array_equal(answers(model, form(X[:3])), answers(model, X[:3]))


def message_of(model, X):
    with pytest.raises(ValueError) as raised:
        answers(model, X)
    return str(raised.value)


@every_learner
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_one_row_that_is_not_finite_is_refused_as_it_is_among_many(value, dtype, learner):
    X, model = trained(learner)
    many = X[:100].astype(dtype)
    many[0, 1] = value
    assert message_of(model, many[:1]) == message_of(model, many)


@every_learner
@pytest.mark.parametrize("n_columns", [2, 4])
def test_one_row_of_other_columns_is_refused_as_scikit_learn_does(n_columns, learner):
    _, model = trained(learner)
    expected = f"X has {n_columns} features, but {learner.__name__} is expecting 3 features as input."
    assert message_of(model, np.zeros((1, n_columns))) == expected


@every_learner
@pytest.mark.parametrize("X", [np.zeros(3), np.zeros((1, 1, 3)), np.zeros((0, 3))], ids=lambda X: str(X.shape))
def test_rows_of_another_shape_are_refused(X, learner):
    _, model = trained(learner)
    assert message_of(model, X)


def cell_answers(model, cells):
    return model.predict_cells(cells) if isinstance(model, IKOGDRegressor) else model.decision_function_cells(cells)


USES = {
    "predict": lambda model, X, y, cells: model.predict(X),
    "predict from cells": lambda model, X, y, cells: cell_answers(model, cells),
    "learn": lambda model, X, y, cells: model.partial_fit(X, y),
    "learn from cells": lambda model, X, y, cells: model.partial_fit_cells(cells, y),
}


@every_online_learner
@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_kernel_that_was_fitted_again_to_other_cells_is_refused(use, learner):
    X, y = make_rows(200)
    kernel = IsolationKernel(**SMALL).fit(X)
    model = learner(kernel=kernel).fit(X, y)
    kernel.set_params(n_cells=100).fit(X)
    with pytest.raises(ValueError, match="kernel must stay as it was when learning began"):
        use(model, X, y, kernel.apply(X))


# Copies and files


COPIES = {
    "pickle": lambda model: pickle.loads(pickle.dumps(model)),
    "deepcopy": copy.deepcopy,
}
STAGES = {"holding rows": 30, "learning": 100}


@every_learner
@pytest.mark.parametrize("duplicate", COPIES.values(), ids=COPIES)
def test_a_copy_gives_the_same_answers(duplicate, learner):
    X, model = trained(learner)
    assert np.array_equal(answers(duplicate(model), X), answers(model, X))


@every_online_learner
@pytest.mark.parametrize("evaluation", ["primal", "dual"])
@pytest.mark.parametrize("n_rows", STAGES.values(), ids=STAGES)
@pytest.mark.parametrize("duplicate", COPIES.values(), ids=COPIES)
def test_a_copy_goes_on_as_the_model_would(duplicate, n_rows, evaluation, learner):
    X, y = make_rows(200, 3)
    options = {"evaluation": evaluation, "schedule": "constant", "average": True, "n_initial": 50}
    model = learner(**options, **SMALL).partial_fit(X[:n_rows], y[:n_rows])
    copied = duplicate(model).partial_fit(X[n_rows:], y[n_rows:])
    assert np.array_equal(answers(copied, X), answers(model.partial_fit(X[n_rows:], y[n_rows:]), X))


@every_online_learner
def test_a_copy_that_goes_on_leaves_the_model_alone(learner):
    X, y = make_rows(200, 3)
    model = learner(**SMALL).fit(X, y)
    before = answers(model, X)
    copy.deepcopy(model).partial_fit(X[::-1], y)
    assert np.array_equal(answers(model, X), before)


@every_learner
def test_a_clone_has_learned_nothing_and_learns_the_same(learner):
    X, y = make_rows(200, 3)
    model = learner(**SMALL).fit(X, y)
    other = clone(model)
    assert not hasattr(other, "kernel_")
    assert np.array_equal(answers(other.fit(X, y), X), answers(model, X))


@every_learner
@pytest.mark.parametrize("mmap_mode", [None, "r"])
def test_a_model_from_a_file_gives_the_same_answers(mmap_mode, learner, tmp_path):
    X, model = trained(learner)
    joblib.dump(model, tmp_path / "model.joblib")
    loaded = joblib.load(tmp_path / "model.joblib", mmap_mode=mmap_mode)
    assert np.array_equal(answers(loaded, X), answers(model, X))


def test_a_memory_mapped_model_gives_the_same_probabilities(tmp_path):
    X, model = trained(IKOGDClassifier)
    joblib.dump(model, tmp_path / "model.joblib")
    loaded = joblib.load(tmp_path / "model.joblib", mmap_mode="r")
    assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))


@every_online_learner
@pytest.mark.parametrize("evaluation", ["primal", "dual"])
@pytest.mark.parametrize("n_rows", STAGES.values(), ids=STAGES)
def test_a_memory_mapped_model_goes_on_learning(n_rows, evaluation, learner, tmp_path):
    X, y = make_rows(200, 3)
    options = {"evaluation": evaluation, "schedule": "constant", "average": True, "n_initial": 50}
    model = learner(**options, **SMALL).partial_fit(X[:n_rows], y[:n_rows])
    joblib.dump(model, tmp_path / "model.joblib")
    loaded = joblib.load(tmp_path / "model.joblib", mmap_mode="r").partial_fit(X[n_rows:], y[n_rows:])
    assert np.array_equal(answers(loaded, X), answers(model.partial_fit(X[n_rows:], y[n_rows:]), X))


def test_a_memory_mapped_model_takes_in_new_classes(tmp_path):
    X, y = make_rows(200, 3)
    model = IKOGDClassifier(kernel=make_kernel(X)).partial_fit(X, np.minimum(y, 1))
    joblib.dump(model, tmp_path / "model.joblib")
    loaded = joblib.load(tmp_path / "model.joblib", mmap_mode="r").partial_fit(X, y)
    assert same_model(loaded, model.partial_fit(X, y))
