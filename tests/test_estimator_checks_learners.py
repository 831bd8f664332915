"""Check what holds for all learners: scikit-learn's checks, given kernels, streams, forms of input, copies."""

from __future__ import annotations

import copy
import pickle

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from isokern import (
    IKSVC,
    AdaptiveIKClassifier,
    AdaptiveIKRegressor,
    AdaRakerClassifier,
    FOGDClassifier,
    IKOGDClassifier,
    IKOGDClassifierCV,
    IKOGDRegressor,
    IKOGDRegressorCV,
    IsolationKernel,
    NOGDClassifier,
    OGDClassifier,
)
from isokern.learners.rival import RivalClassifier
from learning import (
    BATCH,
    BUFFERED,
    FORMS,
    FROM_DATA,
    IKOGD,
    LEARNERS,
    ONLINE,
    RIVALS,
    SCALED,
    SMALL,
    G,
    answers,
    every,
    feed,
    is_unfitted,
    make_kernel,
    make_rows,
    make_stream,
)

ONLINE_CLASSES = [IKOGDClassifier, IKOGDRegressor]
every_class = pytest.mark.parametrize("learner", [*ONLINE_CLASSES, IKSVC])
every_online_class = pytest.mark.parametrize("learner", ONLINE_CLASSES)


def impossible_checks(learner):
    reason = "rows are learned one after another and the map is drawn from rows: a weight of 2 is not two rows"
    failures = {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}
    if isinstance(learner, IKOGDClassifierCV | IKOGDRegressorCV):
        names = ("check_estimators_partial_fit_n_features", "check_n_features_in_after_fitting")
        failures |= dict.fromkeys(names, "a search needs all rows at once, so partial_fit must come after fit")
    return failures


@parametrize_with_checks(
    [
        IKOGDClassifier("tree", n_partitionings=10, random_state=0),
        IKOGDClassifier("voronoi", n_partitionings=10, random_state=0),
        IKOGDClassifier(loss="logistic", n_partitionings=10, random_state=0),
        IKOGDRegressor(n_partitionings=10, random_state=0),
        AdaptiveIKClassifier(10, random_state=0),
        AdaptiveIKClassifier(10, loss="logistic", random_state=0),
        AdaptiveIKRegressor(10, random_state=0),
        IKSVC(n_partitionings=10, random_state=0),
        IKOGDClassifierCV(n_partitionings=6, n_cells=(2, 4), learning_rate=[0.5, 2.0], cv=3, random_state=0),
        IKOGDRegressorCV(n_partitionings=10, n_cells=(2, 16), cv=3, random_state=0),
        OGDClassifier(random_state=0),
        OGDClassifier(budget=20, random_state=0),
        NOGDClassifier(random_state=0),
        FOGDClassifier(random_state=0),
        AdaRakerClassifier(random_state=0),
        OGDClassifier(scale="maxabs", n_initial=10, random_state=0),
        FOGDClassifier(scale="maxabs", n_initial=10, random_state=0),
    ],
    expected_failed_checks=impossible_checks,
)
def test_scikit_learn_estimator_checks_pass(estimator, check):
    check(estimator)


# Kernels given by the user


@every_class
def test_a_fitted_kernel_is_used_as_is(learner):
    X, y = make_rows(100)
    kernel = make_kernel(X)
    before = pickle.dumps(kernel)
    assert learner(kernel=kernel).fit(X[:50], y[:50]).kernel_ is kernel
    if learner in ONLINE_CLASSES:
        assert learner(kernel=kernel).partial_fit(X[:1], y[:1]).kernel_ is kernel  # without a warm-up
    assert pickle.dumps(kernel) == before


@every_class
def test_an_unfitted_kernel_is_cloned_and_fitted_and_a_frozen_one_survives_cloning(learner):
    X, y = make_rows(100)
    unfitted, fitted = IsolationKernel(**SMALL), make_kernel(X)
    assert np.array_equal(learner(kernel=unfitted).fit(X, y).kernel_.apply(X), fitted.apply(X))
    assert not hasattr(unfitted, "n_cells_")
    assert clone(learner(kernel=FrozenEstimator(fitted))).fit(X[:50], y[:50]).kernel_ is fitted


@every_online_class
def test_a_stream_buffers_the_rows_that_an_unfitted_kernel_needs(learner):
    X, y = make_rows(60)
    model = learner(kernel=IsolationKernel(**SMALL), n_initial=50).partial_fit(X[:49], y[:49])
    assert not hasattr(model, "kernel_")
    assert np.array_equal(model.partial_fit(X[49:], y[49:]).kernel_.apply(X), make_kernel(X[:50]).apply(X))


FLAT = {
    "partitioning": "voronoi",
    "n_partitionings": 50,
    "n_cells": 8,
    "max_depth": "log2",
    "scale": "minmax",
    "device": "cpu",
}


@every_class
@pytest.mark.parametrize("name", FLAT)
def test_a_kernel_parameter_is_passed_to_the_kernel_and_excludes_a_given_kernel(name, learner):
    X, y = make_rows(300)
    assert getattr(learner(**{name: FLAT[name]}).fit(X, y).kernel_, name) == FLAT[name]
    with pytest.raises(ValueError, match=f"^{name} must not be given along with kernel"):
        learner(kernel=IsolationKernel(), **{name: FLAT[name]}).fit(X, y)


@every_class
@pytest.mark.parametrize("kernel", ["rbf", IsolationKernel, FrozenEstimator(IKSVC())], ids=str)
def test_a_kernel_of_another_class_is_an_error(kernel, learner):
    X, y = make_rows(50)
    with pytest.raises(ValueError, match=r"^kernel must be an IsolationKernel or None"):
        learner(kernel=kernel).fit(X, y)


@pytest.mark.parametrize("n_columns", [2, 4])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("learner", [IKOGDClassifier, IKOGDRegressor, IKSVC, OGDClassifier])
def test_a_fitted_kernel_with_other_columns_is_an_error(learner, method, n_columns):
    X, y = make_rows(50)
    model = learner(kernel=make_kernel(np.random.default_rng(0).normal(size=(50, n_columns))))
    if hasattr(model, method):
        with pytest.raises(ValueError, match=rf"^X must have the {n_columns} columns of kernel; got 3\."):
            getattr(model, method)(X, y)
        assert is_unfitted(model)


@every_class
def test_a_grid_search_reaches_the_kernel_parameters_and_does_not_refit_a_frozen_kernel(learner):
    X, y = make_rows(120)
    grid = {"n_cells": [2, 16], "partitioning": ["tree", "voronoi"]}
    search = GridSearchCV(learner(n_partitionings=6, random_state=0), grid, cv=3).fit(X, y)
    assert search.best_estimator_.kernel_.n_cells_ == search.best_params_["n_cells"]
    frozen = learner(kernel=FrozenEstimator(make_kernel(X)), random_state=0)
    search = GridSearchCV(frozen, {"random_state": [0, 1]}, cv=3).fit(X, y)
    assert search.best_estimator_.kernel_ is make_kernel(X)


def cell_answers(model, cells):
    return model.predict_cells(cells) if isinstance(model, IKOGDRegressor) else model.decision_function_cells(cells)


USES = {
    "predict": lambda model, X, y, cells: model.predict(X),
    "predict from cells": lambda model, X, y, cells: cell_answers(model, cells),
    "learn": lambda model, X, y, cells: model.partial_fit(X, y),
    "learn from cells": lambda model, X, y, cells: model.partial_fit_cells(cells, y),
}


@every_online_class
@every("use", USES)
def test_a_kernel_refitted_to_other_cells_is_an_error(use, learner):
    X, y = make_rows(200)
    kernel = IsolationKernel(**SMALL).fit(X)
    model = learner(kernel=kernel).fit(X, y)
    kernel.set_params(n_cells=100).fit(X)
    with pytest.raises(ValueError, match="kernel must stay as it was when learning began"):
        use(model, X, y, kernel.apply(X))


# Streams


SPLITS = {"row by row": ([1] * 300, 3), "uneven": ([40, 1, 130, 7], 2), "in three": ([99, 30], 3)}  # and classes


@every("learner", ONLINE | FROM_DATA)
@every("split", SPLITS)
@every("form", FORMS)
def test_a_model_does_not_depend_on_how_its_stream_is_split(form, split, learner):
    sizes, n_classes = split
    X, y, weights = make_stream(300, n_classes)
    X = form(X * (np.random.default_rng(3).random(X.shape) < 0.6))
    parts, whole = (feed(clone(learner), cut, X, y, weights) for cut in (sizes, []))
    assert np.array_equal(answers(parts, X), answers(whole, X))
    assert parts.n_support_ == whole.n_support_ > 0
    assert getattr(parts, "gamma_", None) == getattr(whole, "gamma_", None)


@every("learner", ONLINE | FROM_DATA)
def test_fit_in_order_equals_a_stream(learner):
    X, y, weights = make_stream(200)
    model = clone(learner).set_params(n_initial=200, n_passes=1)
    if getattr(model, "schedule", None) == "auto":
        model.set_params(schedule="adagrad")  # in a race, fit compares candidates differently
    fitted = clone(model).set_params(shuffle=False).fit(X, y, weights)
    assert np.array_equal(answers(fitted, X), answers(model.partial_fit(X, y, sample_weight=weights), X))


@every("learner", {name: learner for name, learner in (IKOGD | FROM_DATA | SCALED).items() if is_classifier(learner)})
def test_the_majority_class_is_predicted_during_the_warm_up(learner):
    X, y = make_rows(60)
    model = clone(learner).partial_fit(X[:49], [*y[:9], *[1] * 40], classes=[0, 1])
    assert (model.predict(X) == 1).all()
    assert model.n_support_ == 0
    assert model.partial_fit(X[49:50], y[49:50]).n_support_ > 0


@every("learner", ONLINE)
def test_a_stream_may_alternate_between_dense_and_sparse_rows(learner):
    X, y, _ = make_stream(200)
    learner = without_linear_term(learner)
    mixed = clone(learner).partial_fit(X[:30], y[:30])
    mixed.partial_fit(sparse.csr_array(X[30:150]), y[30:150]).partial_fit(X[150:], y[150:])
    expected = answers(clone(learner).partial_fit(X, y), X)
    np.testing.assert_allclose(answers(mixed, X), expected, rtol=1e-9, atol=1e-9)


# Forms of input, threads, seeds


def without_linear_term(learner):
    """Return a learner that treats dense and sparse rows alike; a linear term standardises dense ones only."""
    return clone(learner).set_params(linear=False) if hasattr(learner, "linear") else clone(learner)


def unsorted_and_repeated(X):
    """Return CSR rows whose columns descend, each value in two halves."""
    starts = np.arange(0, 6 * len(X) + 1, 6)
    return sparse.csr_array((np.repeat(X[:, ::-1] / 2, 2), np.tile([2, 2, 1, 1, 0, 0], len(X)), starts), shape=X.shape)


@every("learner", LEARNERS)
@pytest.mark.parametrize("form", [sparse.csr_array, unsorted_and_repeated])
@pytest.mark.parametrize("share", [0.4, 1.0])
def test_dense_and_sparse_rows_give_the_same_model(share, form, learner):
    X, y, _ = make_stream(200)
    X = X * (np.random.default_rng(3).random(X.shape) < share)
    model = without_linear_term(learner)
    dense, csr = answers(clone(model).fit(X, y), X), answers(model.fit(form(X), y), form(X))
    tolerance = 1e-9 if isinstance(learner, RivalClassifier) else 0.0  # cells are the same bit for bit
    np.testing.assert_allclose(csr, dense, rtol=tolerance, atol=tolerance)


@every("learner", LEARNERS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_answers_depend_on_the_seed_but_not_on_threads_or_blocks(n_classes, learner, monkeypatch):
    X, y, _ = make_stream(700, n_classes)

    def scores_after(**options):
        return answers(clone(learner).set_params(**options).fit(X, y), X)

    expected = scores_after(n_jobs=1)
    assert np.array_equal(scores_after(n_jobs=2), expected)
    assert not np.array_equal(scores_after(random_state=1), expected)
    monkeypatch.setattr("isokern.rows._BLOCK_ROWS", 50)
    assert np.array_equal(scores_after(), expected)


@every("learner", ONLINE)
def test_a_model_keeps_no_reference_to_the_rows_it_was_given(learner):
    X, y, _ = make_stream(100)
    rows, labels = X.copy(), y.copy()
    model = clone(learner).partial_fit(rows[:30], labels[:30])
    rows[:30], labels[:30] = 7, 0
    model.partial_fit(rows[30:], labels[30:])
    before = answers(model, X)
    rows[:] = 7
    assert np.array_equal(answers(model, X), before)
    assert np.array_equal(before, answers(clone(learner).partial_fit(X, y), X))


@every("learner", LEARNERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_row_gets_the_answer_it_gets_among_many(dtype, learner):
    X, y, _ = make_stream(200)
    model, X = clone(learner).fit(X, y), X.astype(dtype)
    alone = np.concatenate([answers(model, X[r : r + 1]) for r in range(len(X))])
    assert np.array_equal(alone, answers(model, X))


ROW_FORMS = {
    "a list": np.ndarray.tolist,
    "column by column": np.asfortranarray,
    "every second column of more": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "the other byte order": lambda X: X.astype(">f8"),
    "long double": lambda X: X.astype(np.longdouble),
    "read-only": lambda X: np.frombuffer(X.tobytes()).reshape(X.shape),
    "float32": np.float32,
    "int8": np.int8,
}


@every("learner", LEARNERS)
@every("form", ROW_FORMS)
def test_rows_in_any_form_give_the_same_model(form, learner):
    X, y, _ = make_stream(100)
    X = np.round(5 * X)
    model = clone(learner).fit(X, y)
    assert np.array_equal(answers(model, form(X[:3])), answers(model, X[:3]))
    assert np.array_equal(answers(clone(learner).fit(form(X), y), X), answers(model, X))


# Classes


@every("learner", {name: learner for name, learner in LEARNERS.items() if is_classifier(learner)})
@pytest.mark.parametrize(("n_classes", "shape"), [(2, (50,)), (3, (50, 3)), (5, (50, 5))])
def test_labels_may_be_strings_and_scores_have_a_column_per_class(n_classes, shape, learner):
    X, y, _ = make_stream(200, n_classes)
    names = np.array(["ash", "beech", "cedar", "elm", "fir"])
    model, named = clone(learner).fit(X, y), clone(learner).fit(X, names[y])
    assert np.array_equal(named.predict(X), names[model.predict(X)])
    assert named.classes_.tolist() == names[:n_classes].tolist()
    assert model.decision_function(X[:50]).shape == shape


# Copies


def memory_mapped(model, folder):
    joblib.dump(model, folder / "model.joblib")
    return joblib.load(folder / "model.joblib", mmap_mode="r")


COPIES = {
    "pickle": lambda model, folder: pickle.loads(pickle.dumps(model)),
    "deepcopy": lambda model, folder: copy.deepcopy(model),
    "memory map": memory_mapped,
}
COPIED = {
    **LEARNERS,
    "IKOGD, buffering": IKOGDClassifier(**BUFFERED | {"n_initial": 5000}),
    "IKOGD regressor, buffering": IKOGDRegressor(**BUFFERED | {"n_initial": 5000}),
    "NOGD, before the switch": NOGDClassifier(n_landmarks=5000, **G),
    "OGD, gamma from data": OGDClassifier(n_initial=50, random_state=0),
    "OGD, buffering": OGDClassifier(n_initial=5000, random_state=0),
}


@every("learner", COPIED)
@every("form", FORMS)
@every("duplicate", COPIES)
def test_a_copy_predicts_and_learns_on_like_the_model(duplicate, form, learner, tmp_path):
    X, y, _ = make_stream(203)
    X, model = form(X), clone(learner)
    getattr(model, "fit" if learner in BATCH.values() else "partial_fit")(X[:99], y[:99])
    copied, before = duplicate(model, tmp_path), answers(model, X)
    assert np.array_equal(answers(copied, X), before)
    if hasattr(model, "predict_proba"):
        assert np.array_equal(copied.predict_proba(X), model.predict_proba(X))
    if hasattr(model, "partial_fit"):
        copied.partial_fit(X[99:], y[99:])
        assert np.array_equal(answers(model, X), before)
        assert np.array_equal(answers(copied, X), answers(model.partial_fit(X[99:], y[99:]), X))
        assert copied.n_support_ == model.n_support_


@every("learner", LEARNERS)
def test_a_clone_and_a_second_fit_start_afresh(learner):
    X, y, _ = make_stream(200)
    model = clone(learner).fit(X, y)
    other, expected = clone(model), answers(model, X)
    assert is_unfitted(other)
    assert np.array_equal(answers(other.fit(-X[:150, :2], y[:150] == 0).fit(X, y), X), expected)


def test_a_memory_mapped_model_takes_new_classes(tmp_path):
    X, y = make_rows(200, 3)
    model = IKOGDClassifier(kernel=make_kernel(X)).partial_fit(X, np.minimum(y, 1))
    loaded = memory_mapped(model, tmp_path).partial_fit(X, y)
    assert np.array_equal(answers(loaded, X), answers(model.partial_fit(X, y), X))


# Accuracy


# Not the cold restart, whose experts know little just after a new interval.
@every("rival", {name: rival for name, rival in RIVALS.items() if "cold" not in name})
def test_a_rival_learns_a_half_plane(rival):
    X = np.random.default_rng(0).normal(size=(800, 2))
    y = (X[:, 0] > 0).astype(int)
    assert clone(rival).fit(X[:600], y[:600]).score(X[600:], y[600:]) > 0.8
