"""What holds for all rivals: streams cut anywhere, forms of input, threads, copies, files, bad input, real data."""

from __future__ import annotations

import copy
import itertools
import lzma
import pickle

import joblib
import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_svmlight_file
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

import reference_rivals
from isokern import AdaRakerClassifier, FOGDClassifier, NOGDClassifier, OGDClassifier
from learning import is_unfitted, make_kernel, make_rows
from test_estimator_checks_learners import weights_are_not_repetitions


def own_kernel(X, Z):
    X, Z = (table.toarray() if sparse.issparse(table) else table for table in (X, Z))
    return reference_rivals.kernel("laplacian", X, Z, 0.7)


G = {"gamma": 0.7, "random_state": 0}
BUDGETS = {
    f"OGD, {strategy}": OGDClassifier(budget=15, strategy=strategy, **G) for strategy in reference_rivals.BUDGETS
}
RIVALS = {
    "OGD": OGDClassifier(**G),
    "OGD, gaussian, logistic": OGDClassifier("gaussian", loss="logistic", **G),
    "OGD, polynomial, squared hinge": OGDClassifier(
        "polynomial", loss="squared_hinge", learning_rate=1e-3, gamma=0.1, degree=2, random_state=0
    ),
    "OGD, own kernel": OGDClassifier(own_kernel, random_state=0),
    **BUDGETS,
    "OGD, own kernel, budget": OGDClassifier(own_kernel, budget=15, random_state=0),
    "NOGD": NOGDClassifier(n_landmarks=60, **G),
    "NOGD, full rank": NOGDClassifier("gaussian", n_landmarks=60, rank=None, average=False, **G),
    "FOGD": FOGDClassifier(n_frequencies=30, **G),
    "FOGD, orthogonal": FOGDClassifier(n_frequencies=30, features="orthogonal", loss="logistic", **G),
    "FOGD, laplacian": FOGDClassifier("laplacian", n_frequencies=30, average=False, **G),
    "AdaRaker": AdaRakerClassifier((0.1, 0.5, 2.0), n_directions=7, random_state=0),
    "AdaRaker, cold": AdaRakerClassifier((0.1, 0.5, 2.0), n_directions=7, restart="cold", random_state=0),
}
FROM_DATA = {
    name: clone(RIVALS[name]).set_params(gamma="data", n_initial=50)
    for name in ("OGD", "OGD, gaussian, logistic", "OGD, bpas", "OGD, random", "NOGD", "FOGD", "FOGD, laplacian")
}
FOUR = {name: RIVALS[name] for name in ("OGD", "OGD, bpas", "NOGD", "FOGD", "AdaRaker")}
SAVED = {
    **RIVALS,
    "NOGD, before the switch": NOGDClassifier(n_landmarks=5000, **G),
    "OGD, gamma from data": OGDClassifier(n_initial=50, random_state=0),
    "OGD, holding rows": OGDClassifier(n_initial=5000, random_state=0),
}
del SAVED["OGD, own kernel, budget"]
SPLITS = {"one by one": 0, "random 1": 1, "random 2": 2}


def every(rivals):
    return pytest.mark.parametrize("rival", rivals.values(), ids=rivals)


def bounds_of(n, split):
    """Return where calls begin and end: one row each, or at random."""
    if split == 0:
        return range(n + 1)
    rng = np.random.default_rng(split)
    return [0, *np.sort(rng.choice(np.arange(1, n), rng.integers(1, 9), replace=False)), n]


def feed(model, bounds, X, y, weights):
    for begin, end in itertools.pairwise(bounds):
        part = slice(begin, end)
        model.partial_fit(X[part], y[part], classes=np.unique(y), sample_weight=weights[part])
    return model


def stream(n=400, n_classes=3):
    return *make_rows(n, n_classes), np.random.default_rng(1).uniform(0.5, 1.5, n)


def scores_after(rival, X, y, **options):
    return clone(rival).set_params(**options).fit(X, y).decision_function(X)


# Streams


@every(RIVALS)
@pytest.mark.parametrize(("split", "n_classes"), [(0, 3), (1, 2), (2, 3)])
def test_a_stream_cut_anywhere_gives_the_same_model(split, n_classes, rival):
    X, y, weights = stream(300, n_classes)
    parts = feed(clone(rival), bounds_of(len(y), split), X, y, weights)
    whole = clone(rival).partial_fit(X, y, sample_weight=weights)
    assert np.array_equal(parts.decision_function(X), whole.decision_function(X))
    assert parts.n_support_ == whole.n_support_


@every({name: rival for name, rival in RIVALS.items() if "own" not in name})
def test_a_sparse_stream_cut_anywhere_gives_the_same_model(rival):
    X, y, weights = stream(300)
    X = sparse.csr_array(X * (np.random.default_rng(3).random(X.shape) < 0.4))
    parts = feed(clone(rival), bounds_of(len(y), 1), X, y, weights)
    whole = clone(rival).partial_fit(X, y, sample_weight=weights)
    assert np.array_equal(parts.decision_function(X), whole.decision_function(X))


@every(FROM_DATA)
@pytest.mark.parametrize("split", SPLITS.values(), ids=SPLITS)
def test_a_stream_cut_anywhere_gives_the_same_gamma_and_model(split, rival):
    X, y, weights = stream(150)
    parts = feed(clone(rival), bounds_of(len(y), split), X, y, weights)
    whole = clone(rival).partial_fit(X, y, sample_weight=weights)
    assert parts.gamma_ == whole.gamma_
    assert np.array_equal(parts.decision_function(X), whole.decision_function(X))


@every(FROM_DATA)
def test_the_commonest_class_is_predicted_while_rows_are_held_back(rival):
    X, y = make_rows(60)
    model = clone(rival).partial_fit(X[:49], [*y[:9], *[1] * 40], classes=[0, 1])
    assert (model.predict(X) == 1).all()
    assert model.n_support_ == 0
    assert model.partial_fit(X[49:50], y[49:50]).n_support_ > 0


@every(RIVALS)
def test_fit_in_order_equals_a_stream(rival):
    X, y, _ = stream()
    expected = clone(rival).partial_fit(X, y).decision_function(X)
    assert np.array_equal(scores_after(rival, X, y, shuffle=False), expected)


@every(RIVALS)
def test_the_balanced_weights_of_a_stream_cut_anywhere_are_the_same(rival):
    X, y, weights = stream(150)
    rival = clone(rival).set_params(class_weight="balanced")
    parts = feed(clone(rival), bounds_of(len(y), 2), X, y, weights)
    whole = clone(rival).partial_fit(X, y, classes=[0, 1, 2], sample_weight=weights)
    assert np.array_equal(parts.decision_function(X), whole.decision_function(X))


# Forms of input, threads, seeds


@every(RIVALS)
@pytest.mark.parametrize("share", [0.4, 1.0])
def test_dense_equals_csr(share, rival):
    X, y, _ = stream()
    X = X * (np.random.default_rng(3).random(X.shape) < share)
    dense, csr = (clone(rival).fit(form(X), y).decision_function(form(X)) for form in (np.asarray, sparse.csr_array))
    np.testing.assert_allclose(csr, dense, rtol=1e-9, atol=1e-9)


@every(RIVALS)
def test_a_stream_may_change_between_dense_and_csr(rival):
    X, y, _ = stream()
    mixed = clone(rival).partial_fit(X[:100], y[:100], classes=[0, 1, 2])
    mixed.partial_fit(sparse.csr_array(X[100:350]), y[100:350]).partial_fit(X[350:], y[350:])
    expected = clone(rival).partial_fit(X, y).decision_function(X)
    np.testing.assert_allclose(mixed.decision_function(X), expected, rtol=1e-9, atol=1e-9)


@every(RIVALS)
def test_unsorted_and_repeated_entries_of_csr_are_understood(rival):
    X, y, _ = stream(100)
    repeated = sparse.csr_array(
        (np.repeat(X[:, ::-1] / 2, 2, axis=1).ravel(), np.tile([2, 2, 1, 1, 0, 0], 100), np.arange(0, 601, 6)),
        shape=X.shape,
    )
    np.testing.assert_allclose(
        clone(rival).fit(repeated, y).decision_function(repeated), scores_after(rival, X, y), rtol=1e-9, atol=1e-9
    )


@every(RIVALS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_threads_change_nothing(n_classes, rival):
    X, y, _ = stream(700, n_classes)
    assert np.array_equal(scores_after(rival, X, y, n_jobs=1), scores_after(rival, X, y, n_jobs=2))


@every(RIVALS)
def test_blocks_change_nothing(rival, monkeypatch):
    X, y, _ = stream(100)
    expected = scores_after(rival, X, y)
    monkeypatch.setattr("isokern.rows._BLOCK_ROWS", 3)
    assert np.array_equal(scores_after(rival, X, y), expected)


@every(RIVALS)
def test_rows_that_change_after_they_were_learned_change_nothing(rival):
    X, y, _ = stream(100)
    given = X.copy()
    model = clone(rival).partial_fit(given, y)
    before = model.decision_function(X)
    given[:] = 7
    assert np.array_equal(model.decision_function(X), before)


@every(RIVALS)
def test_the_same_seed_gives_the_same_scores(rival):
    X, y, _ = stream()
    assert np.array_equal(scores_after(rival, X, y), scores_after(rival, X, y))


@every(RIVALS)
def test_another_seed_gives_other_scores(rival):
    X, y, _ = stream()
    assert not np.array_equal(scores_after(rival, X, y), scores_after(rival, X, y, random_state=1))


@every(RIVALS)
def test_one_row_gets_the_score_it_gets_among_many(rival):
    X, y, _ = stream(200)
    model = clone(rival).fit(X, y)
    alone = np.concatenate([model.decision_function(X[r : r + 1]) for r in range(len(X))])
    assert np.array_equal(alone, model.decision_function(X))


@every(RIVALS)
@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_values_of_any_type_are_taken_as_float64(dtype, rival):
    X, y, _ = stream(200)
    X = (5 * X).astype(dtype)
    assert np.array_equal(scores_after(rival, X, y), scores_after(rival, X.astype(float), y))


# Classes


@every(RIVALS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_labels_may_be_strings(n_classes, rival):
    X, y, _ = stream(200, n_classes)
    names = np.array(["ash", "beech", "cedar"])
    model, named = clone(rival).fit(X, y), clone(rival).fit(X, names[y])
    assert np.array_equal(named.predict(X), names[model.predict(X)])
    assert named.classes_.tolist() == names[:n_classes].tolist()


@every(RIVALS)
@pytest.mark.parametrize(("n_classes", "shape"), [(2, (50,)), (3, (50, 3)), (5, (50, 5))])
def test_two_classes_have_one_score_and_more_have_one_each(n_classes, shape, rival):
    X, y, _ = stream(200, n_classes)
    assert clone(rival).fit(X, y).decision_function(X[:50]).shape == shape


# Not the cold restart, which begins anew where the rounds are a power of two and knows little just after.
@every({name: rival for name, rival in RIVALS.items() if "cold" not in name})
def test_it_learns_which_side_of_a_line_rows_are_on(rival):
    X = np.random.default_rng(0).normal(size=(800, 2))
    y = (X[:, 0] > 0).astype(int)
    assert clone(rival).fit(X[:600], y[:600]).score(X[600:], y[600:]) > 0.8


@every(FOUR)
def test_a_class_that_was_given_may_come_late(rival):
    X, y, _ = stream(200)
    late = np.argsort(y == 2, kind="stable")
    model = clone(rival).partial_fit(X[late][:50], y[late][:50], classes=[0, 1, 2])
    assert 2 in model.partial_fit(X[late][50:], y[late][50:]).predict(X)


# Estimators


@parametrize_with_checks(
    [
        OGDClassifier(random_state=0),
        OGDClassifier(budget=20, random_state=0),
        NOGDClassifier(random_state=0),
        FOGDClassifier(random_state=0),
        AdaRakerClassifier(random_state=0),
        OGDClassifier(scale="maxabs", n_initial=10, random_state=0),
        FOGDClassifier(scale="maxabs", n_initial=10, random_state=0),
    ],
    expected_failed_checks=weights_are_not_repetitions,
)
def test_scikit_learn_s_estimator_checks_pass(estimator, check):
    check(estimator)


COPIES = {"pickle": lambda model: pickle.loads(pickle.dumps(model)), "deepcopy": copy.deepcopy}


@every(SAVED)
@pytest.mark.parametrize("duplicate", COPIES.values(), ids=COPIES)
def test_a_copy_goes_on_as_the_model_would(duplicate, rival):
    X, y, _ = stream(203)
    model = clone(rival).partial_fit(X[:99], y[:99])
    copied = duplicate(model)
    assert np.array_equal(copied.decision_function(X), model.decision_function(X))
    copied.partial_fit(X[99:], y[99:])
    assert np.array_equal(copied.decision_function(X), model.partial_fit(X[99:], y[99:]).decision_function(X))
    assert copied.n_support_ == model.n_support_


@every(SAVED)
def test_a_copy_that_goes_on_leaves_the_model_alone(rival):
    X, y, _ = stream(200)
    model = clone(rival).partial_fit(X[:99], y[:99])
    before = model.decision_function(X)
    copy.deepcopy(model).partial_fit(X[99:], y[99:])
    assert np.array_equal(model.decision_function(X), before)


@every(SAVED)
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_a_memory_mapped_model_predicts_and_goes_on(form, rival, tmp_path):
    X, y, _ = stream(200)
    X = form(X)
    model = clone(rival).partial_fit(X[:99], y[:99])
    joblib.dump(model, tmp_path / "model.joblib")
    loaded = joblib.load(tmp_path / "model.joblib", mmap_mode="r")
    assert np.array_equal(loaded.decision_function(X), model.decision_function(X))
    loaded.partial_fit(X[99:], y[99:])
    assert np.array_equal(loaded.decision_function(X), model.partial_fit(X[99:], y[99:]).decision_function(X))


@every(RIVALS)
def test_a_clone_has_learned_nothing_and_learns_the_same(rival):
    X, y, _ = stream(200)
    model = clone(rival).fit(X, y)
    other = clone(model)
    assert is_unfitted(other)
    assert np.array_equal(other.fit(X, y).decision_function(X), model.decision_function(X))


@every(RIVALS)
def test_fit_forgets_what_was_learned_before(rival):
    X, y, _ = stream(200)
    model = clone(rival).fit(-X[:150, :2], y[:150] == 0).fit(X, y)
    assert np.array_equal(model.decision_function(X), scores_after(rival, X, y))


def test_a_grid_search_reaches_the_kernel():
    X, y, _ = stream(120)
    search = GridSearchCV(OGDClassifier(random_state=0), {"kernel": ["laplacian", "gaussian"], "gamma": [0.1, 1]}, cv=3)
    assert search.fit(X, y).best_estimator_.gamma_ == search.best_params_["gamma"]


# Bad input


BAD_PARAMETERS = {
    "an unknown kernel": (OGDClassifier("rbf"), r'^kernel must be "laplacian", .*; got \'rbf\'\.'),
    "no kernel": (OGDClassifier(None), r"^kernel must be a name, an IsolationKernel or a function; got None\."),
    "gamma 0": (OGDClassifier(gamma=0), r'^gamma must be "data" or a positive number; got 0\.'),
    "gamma NaN": (OGDClassifier(gamma=np.nan), r'^gamma must be "data" or a positive number; got nan\.'),
    "gamma in words": (NOGDClassifier(gamma="scale"), r'^gamma must be "data" or a positive number; got \'scale\'\.'),
    "one cell": (OGDClassifier(n_cells=1), r"^n_cells must be None, or at least 2 .*; got 1\."),
    "cells and gamma": (OGDClassifier(n_cells=16, gamma=1.0), r"^n_cells must be None, or at least 2 .*; got 16\."),
    "cells for a Gaussian": (NOGDClassifier("gaussian", n_cells=16), r"^n_cells must be None, .*; got 16\."),
    "negative coef0": (OGDClassifier(coef0=-1), r"^coef0 must be a number of at least 0; got -1\."),
    "degree 0": (NOGDClassifier(degree=0), r"^degree must be an integer from 1 to 100; got 0\."),
    "degree 1.5": (OGDClassifier(degree=1.5), r"^degree must be an integer from 1 to 100; got 1\.5\."),
    "an unknown loss": (FOGDClassifier(loss="squared"), r'^loss must be "hinge", .*; got \'squared\'\.'),
}
for learner in (OGDClassifier, NOGDClassifier, FOGDClassifier, AdaRakerClassifier):
    for name, value, rule in [
        ("learning_rate", 0, "a positive number"),
        ("learning_rate", "auto", "a positive number"),
        ("n_passes", 0, "an integer of at least 1"),
        ("class_weight", "even", 'None, "balanced" or a dict of numbers of at least 0'),
        ("class_weight", {0: -1}, 'None, "balanced" or a dict of numbers of at least 0'),
        ("scale", "max", 'None, "minmax", "standard" or "maxabs"'),
        ("scale", 1, 'None, "minmax", "standard" or "maxabs"'),
        ("n_initial", 1, "None or an integer of at least 2"),
    ]:
        message = rf"^{name} must be {rule}; got {value!r}\."
        BAD_PARAMETERS[f"{learner.__name__}, {name}={value}"] = (learner(**{name: value}), message)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize(("model", "message"), BAD_PARAMETERS.values(), ids=BAD_PARAMETERS)
def test_a_bad_parameter_is_named(model, message, method):
    X, y = make_rows(50)
    with pytest.raises(ValueError, match=message):
        getattr(clone(model), method)(X, y)


def spoiled(X, value):
    X = X.copy()
    X[-1, 1] = value
    return X


BAD_ROWS = {
    "NaN": (lambda X, y: (spoiled(X, np.nan), y), r"^X must be finite; got NaN in column 1, first in row 49\."),
    "infinity": (lambda X, y: (spoiled(X, np.inf), y), r"^X must be finite; got infinity in column 1"),
    "sparse NaN": (lambda X, y: (sparse.csr_array(spoiled(X, np.nan)), y), r"^X must be finite; got NaN in column 1"),
    "continuous y": (lambda X, y: (X, y + 0.5 * X[:, 0]), r"^Unknown label type: continuous"),
    "NaN in y": (lambda X, y: (X, np.where(y == 0, np.nan, y)), r"contains NaN"),
    "too few y": (lambda X, y: (X, y[1:]), r"inconsistent numbers of samples"),
    "no y": (lambda X, y: (X, None), r"requires y to be passed"),
}
BAD_LATER_ROWS = {
    "other columns": (lambda X, y: (X[:, :2], y), r"^X has 2 features, but .* is expecting 3 features"),
    "a label outside the classes": (
        lambda X, y: (X, np.append(y[1:], 7)),
        r"^y must be of the classes \[0 1\].*got .*7",
    ),
    "labels of another kind": (
        lambda X, y: (X, np.where(y == 0, "a", "b")),
        r"^y must be of one kind with the classes",
    ),
}


@every(FOUR)
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize(("spoil", "message"), BAD_ROWS.values(), ids=BAD_ROWS)
def test_bad_rows_are_an_error_and_leave_nothing_behind(spoil, message, method, rival):
    model = clone(rival)
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(*spoil(*make_rows(50)))
    assert is_unfitted(model)


@every(FOUR)
@pytest.mark.parametrize(("spoil", "message"), (BAD_ROWS | BAD_LATER_ROWS).values(), ids=BAD_ROWS | BAD_LATER_ROWS)
def test_a_rejected_call_leaves_a_model_as_it_was(spoil, message, rival):
    X, y = make_rows(100)
    model = clone(rival).partial_fit(X[:50], y[:50])
    before, n_support = model.decision_function(X), model.n_support_
    with pytest.raises(ValueError, match=message):
        model.partial_fit(*spoil(*make_rows(50)))
    assert np.array_equal(model.decision_function(X), before)
    assert model.n_support_ == n_support


@every(FOUR)
def test_one_class_is_an_error_in_fit(rival):
    X, _ = make_rows(50)
    with pytest.raises(ValueError, match=r"^y must have at least 2 classes in fit; got only one class"):
        clone(rival).fit(X, np.ones(50))


@every(FOUR)
def test_one_class_is_an_error_in_a_stream_unless_classes_are_given(rival):
    X, _ = make_rows(50)
    with pytest.raises(ValueError, match=r"^classes must be at least 2; got \[1\.\]\. Give classes"):
        clone(rival).partial_fit(X, np.ones(50))
    assert (clone(rival).partial_fit(X, np.ones(50), classes=[0, 1]).predict(X) == 1).mean() > 0.9


@every(FOUR)
def test_weights_that_make_no_sense_are_an_error(rival):
    X, y = make_rows(50)
    for weights in (np.full(50, -1.0), np.full(50, np.nan), np.ones(49), np.zeros(50)):
        with pytest.raises(ValueError, match=r"(?i)weight"):
            clone(rival).fit(X, y, sample_weight=weights)


REFUSING = {
    "chi2": OGDClassifier("chi2", random_state=0),
    "chi2 in a budget": OGDClassifier("chi2", budget=20, random_state=0),
    "chi2, NOGD": NOGDClassifier("chi2", n_landmarks=50, random_state=0),
}


@every(REFUSING)
@pytest.mark.parametrize("n_learned", [0, 30, 600])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_values_that_a_kernel_refuses_leave_a_model_as_it_was(method, n_learned, rival, tiny_row_blocks):
    X, y = make_rows(1400)
    X = np.abs(X)
    model = clone(rival).set_params(gamma=1.0)
    if n_learned:
        model.partial_fit(X[:n_learned], y[:n_learned])
        before = model.decision_function(X)
    with pytest.raises(ValueError, match=r"^X must not be negative"):
        getattr(model, method)(spoiled(X[600:], -1), y[600:])
    assert is_unfitted(model) if not n_learned else np.array_equal(model.decision_function(X), before)


@pytest.fixture
def tiny_row_blocks(monkeypatch):
    """Let learners take rows in blocks of 256, the fewest there are."""
    monkeypatch.setattr("isokern.rows._BLOCK_ROWS", 256)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_kernel_of_one_s_own_that_fails_leaves_a_model_as_it_was(method):
    X, y = make_rows(700)

    def kernel(X, Z):
        if (X > 1e6).any():
            raise ZeroDivisionError
        return own_kernel(X, Z)

    model = OGDClassifier(kernel).partial_fit(X[:100], y[:100])
    before = model.decision_function(X)
    with pytest.raises(ZeroDivisionError):
        getattr(model, method)(spoiled(X[100:], 1e7), y[100:])
    assert np.array_equal(model.decision_function(X), before)


@pytest.mark.parametrize("n_columns", [2, 4])
def test_an_isolation_kernel_of_other_columns_leaves_nothing_behind(n_columns):
    X, y = make_rows(50)
    model = OGDClassifier(make_kernel(np.random.default_rng(0).normal(size=(50, n_columns))))
    with pytest.raises(ValueError, match="columns"):
        model.partial_fit(X, y)
    assert is_unfitted(model)


@every(FOUR)
@pytest.mark.parametrize("size", [1e-300, 1e100, 1e200])
def test_gamma_from_data_of_any_size_leaves_scores_finite(size, rival):
    X, y = make_rows(200)
    model = clone(rival)
    if "gamma" in model.get_params():
        model.set_params(gamma="data")
    assert np.isfinite(model.fit(size * X, y).decision_function(size * X)).all()


DIVERGING = {
    f"{learner.__name__}, {kernel}": learner(kernel, loss="squared_hinge", random_state=0)
    for learner in (OGDClassifier, NOGDClassifier)
    for kernel in ("polynomial", "chi2", "intersection")
}


@every(DIVERGING)
def test_kernels_of_large_values_give_no_nan_for_the_squared_hinge_loss(rival):
    X, y, _ = stream(1500, 2)
    try:
        scores = scores_after(rival, 10 * np.abs(X), y)
    except ValueError as error:
        assert "must" in str(error)
    else:
        assert np.isfinite(scores).all()


def test_a_learner_of_another_kernel_keeps_no_gamma():
    X, y = make_rows(50)
    model = OGDClassifier(gamma=0.5).fit(X, y).set_params(kernel=own_kernel)
    assert not hasattr(model.fit(X, y), "gamma_")


# Real data


@pytest.fixture(scope="module")
def a9a(data_set):
    def load(name):
        with lzma.open(data_set(name)) as file:
            return load_svmlight_file(file, n_features=123)

    return *load("a9a"), *load("a9a.t")


@pytest.mark.parametrize(
    ("model", "accuracy"),
    [
        (OGDClassifier(n_cells=16, random_state=0), 0.840),
        (NOGDClassifier(n_cells=16, random_state=0), 0.830),
        (FOGDClassifier(gamma=0.02, random_state=0), 0.843),
    ],
    ids=["OGD", "NOGD", "FOGD"],
)
def test_it_classifies_a9a(model, accuracy, a9a):
    X, y, X_test, y_test = a9a
    assert clone(model).fit(X, y).score(X_test, y_test) >= accuracy
