"""Check OGD: its dual form equals the reference for every kernel, and IKOGDClassifier for the Isolation Kernel."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy import sparse

import reference_rivals
from isokern import IKOGDClassifier, IsolationKernel, OGDClassifier
from isokern.kernels import KERNELS
from learning import FORMS, LOSSES, SMALL, assert_close, custom_kernel, every, feed, make_kernel, make_rows, signs

IN_ORDER = {"shuffle": False, "learning_rate": 0.47}
GAMMA = 0.83
by_hand = partial(custom_kernel, gamma=GAMMA)

every_form = every("form", FORMS)
every_loss = pytest.mark.parametrize("loss", LOSSES)
every_number_of_classes = pytest.mark.parametrize("n_classes", [2, 3])


def rows_of(n=150, n_classes=2):
    """Return rows for which every kernel is defined, some values zero, and labels."""
    X, y = make_rows(n, n_classes)
    X = X - X.min(axis=0)
    X[np.random.default_rng(5).random(X.shape) < 0.3] = 0
    return X / X.max(), y


def scores_of(model, X):
    return model.decision_function(X).reshape(X.shape[0], -1)


# Named kernels


@pytest.mark.parametrize("name", KERNELS)
@every_form
@every_loss
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@every_number_of_classes
def test_scores_and_support_vectors_equal_the_reference(n_classes, weighted, loss, form, name):
    X, y = rows_of(n_classes=n_classes)
    weights = np.random.default_rng(1).uniform(0, 2, len(y)).round(1) if weighted else None
    K = reference_rivals.kernel(name, X, X, GAMMA)
    alpha, n_support = reference_rivals.ogd(K, signs(y, n_classes), loss=loss, rate=0.23, row_weights=weights)
    model = OGDClassifier(name, gamma=GAMMA, loss=loss, shuffle=False, learning_rate=0.23)
    model.fit(form(X), y, sample_weight=weights)
    assert_close(scores_of(model, form(X)), K @ alpha)
    assert model.n_support_ == n_support


def test_a_second_pass_continues_the_first():
    X, y = rows_of()
    twice = OGDClassifier(gamma=GAMMA, n_passes=2, **IN_ORDER).fit(X, y)
    again = OGDClassifier(gamma=GAMMA, **IN_ORDER).fit(X, y).partial_fit(X, y)
    assert np.array_equal(twice.decision_function(X), again.decision_function(X))


def test_class_weights_multiply_the_steps():
    X, y = rows_of()
    by_class = OGDClassifier(gamma=GAMMA, class_weight={0: 0.3}, **IN_ORDER).fit(X, y)
    by_row = OGDClassifier(gamma=GAMMA, **IN_ORDER).fit(X, y, sample_weight=np.where(y == 0, 0.3, 1.0))
    assert np.array_equal(by_class.decision_function(X), by_row.decision_function(X))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_many_blocks_and_threads_give_the_model_of_single_rows(n_jobs):
    X, y = rows_of(1500, 3)
    model = OGDClassifier(gamma=GAMMA, n_jobs=n_jobs).partial_fit(X, y)
    single = feed(OGDClassifier(gamma=GAMMA, n_jobs=1), [1] * 1500, X, y)
    assert np.array_equal(model.decision_function(X), single.decision_function(X))


@pytest.mark.parametrize("name", ["laplacian", "gaussian", "chi2"])
@pytest.mark.parametrize("budget", [None, 20])
def test_a_million_columns_cost_no_more_than_the_stored_values(budget, name):
    X = sparse.random_array((200, 1_000_000), density=2e-5, format="csr", rng=np.random.default_rng(0))
    y = np.arange(200) % 2
    few = X[:, np.unique(X.indices)]
    options = {"gamma": 0.2, "budget": budget, **IN_ORDER}
    scores = OGDClassifier(name, **options).fit(X, y).decision_function(X)
    assert_close(scores, OGDClassifier(name, **options).fit(few, y).decision_function(few))


# Custom kernels


@every_form
@every_number_of_classes
def test_a_custom_kernel_equals_the_named_one(n_classes, form):
    X, y = rows_of(400, n_classes)
    named = OGDClassifier(gamma=GAMMA, **IN_ORDER).fit(form(X), y)
    custom = OGDClassifier(by_hand, **IN_ORDER).fit(form(X), y)
    assert_close(custom.decision_function(form(X)), named.decision_function(form(X)))
    assert custom.n_support_ == named.n_support_


def test_a_custom_kernel_may_return_a_sparse_matrix():
    X, y = rows_of(100)
    sparse_kernel = OGDClassifier(lambda X, Z: sparse.csr_array(by_hand(X, Z)), **IN_ORDER).fit(X, y)
    expected = OGDClassifier(by_hand, **IN_ORDER).fit(X, y).decision_function(X)
    assert np.array_equal(sparse_kernel.decision_function(X), expected)


BAD_KERNELS = {
    "another shape": (lambda X, Z: np.ones((X.shape[0], 1)), r"values of shape \(50, 50\); got \(50, 1\)"),
    "NaN": (lambda X, Z: np.full((X.shape[0], Z.shape[0]), np.nan), "finite values; got NaN or infinity"),
}


@every(("kernel", "rule"), BAD_KERNELS)
def test_a_custom_kernel_that_returns_invalid_values_is_an_error(kernel, rule):
    X, y = make_rows(50)
    with pytest.raises(ValueError, match=rf"^kernel must return {rule}"):
        OGDClassifier(kernel).fit(X, y)


# The Isolation Kernel


@pytest.mark.parametrize("evaluation", ["dual", "primal"])
@every_loss
@every_number_of_classes
def test_with_the_isolation_kernel_it_equals_ikogd(n_classes, loss, evaluation):
    X, y = make_rows(200, n_classes)
    options = {"kernel": make_kernel(X), "loss": loss, **IN_ORDER}
    model = OGDClassifier(**options).fit(X, y)
    other = IKOGDClassifier(evaluation=evaluation, schedule="constant", average=False, n_passes=1, **options).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), other.decision_function(X), rtol=1e-10, atol=1e-10)
    assert model.n_support_ == other.n_support_


@pytest.mark.parametrize("is_fitted", [True, False])
def test_with_the_isolation_kernel_a_stream_may_be_split_anywhere(is_fitted):
    X, y = make_rows(200)
    kernel = make_kernel(X) if is_fitted else IsolationKernel(**SMALL)
    whole, parts = (feed(OGDClassifier(kernel, n_initial=50), sizes, X, y) for sizes in ([], [7] * 28))
    assert np.array_equal(parts.decision_function(X), whole.decision_function(X))


def test_a_fitted_isolation_kernel_is_used_as_is_and_an_unfitted_one_cloned_and_fitted():
    X, y = make_rows(200)
    fitted, unfitted = make_kernel(X), IsolationKernel(**SMALL)
    expected, model = (OGDClassifier(kernel, shuffle=False).fit(X, y) for kernel in (fitted, unfitted))
    assert np.array_equal(model.decision_function(X), expected.decision_function(X))
    assert expected.kernel_ is fitted
    assert not hasattr(unfitted, "n_cells_")
