"""OGD: the core's dual form equals its twin, whatever the kernel, and the Isolation Kernel's learner."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import reference_rivals
from isokern import IKOGDClassifier, IsolationKernel, OGDClassifier
from isokern.kernels import KERNELS
from learning import LOSSES, SMALL, assert_close, make_kernel, make_rows

FORMS = {"dense": np.asarray, "csr": sparse.csr_array}
IN_ORDER = {"shuffle": False, "learning_rate": 0.47}
GAMMA = 0.83

every_kernel = pytest.mark.parametrize("name", KERNELS)
every_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


def rows_of(n=150, n_classes=2):
    """Return rows that suit every kernel, some values zero, and labels."""
    X, y = make_rows(n, n_classes)
    X = X - X.min(axis=0)
    X[np.random.default_rng(5).random(X.shape) < 0.3] = 0
    return X / X.max(), y


def signs(y, n_classes):
    """Return the targets of the scores, (n, n_scores), +1 or -1."""
    columns = np.arange(n_classes) if n_classes > 2 else np.array([1])
    return np.where(y[:, None] == columns, 1.0, -1.0)


def by_hand(X, Z):
    """Compute the Laplacian kernel as a user might."""
    X, Z = (table.toarray() if sparse.issparse(table) else table for table in (X, Z))
    return reference_rivals.kernel("laplacian", X, Z, GAMMA)


def scores_of(model, X):
    return model.decision_function(X).reshape(X.shape[0], -1)


@every_kernel
@every_form
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_it_equals_its_twin(n_classes, loss, form, name):
    X, y = rows_of(n_classes=n_classes)
    K = reference_rivals.kernel(name, X, X, GAMMA)
    alpha, n_support = reference_rivals.ogd(K, signs(y, n_classes), loss=loss, rate=0.23)
    model = OGDClassifier(name, gamma=GAMMA, loss=loss, shuffle=False, learning_rate=0.23)
    model.fit(form(X), y)
    assert_close(scores_of(model, form(X)), K @ alpha)
    assert model.n_support_ == n_support


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_weighted_rows_equal_the_twin_s(n_classes, loss):
    X, y = rows_of(n_classes=n_classes)
    weights = np.random.default_rng(1).uniform(0, 2, len(y)).round(1)
    K = reference_rivals.kernel("laplacian", X, X, GAMMA)
    targets = signs(y, n_classes)
    alpha, n_support = reference_rivals.ogd(K, targets, loss=loss, rate=0.47, row_weights=weights)
    model = OGDClassifier(gamma=GAMMA, loss=loss, **IN_ORDER).fit(X, y, sample_weight=weights)
    assert_close(scores_of(model, X), K @ alpha)
    assert model.n_support_ == n_support


@every_form
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_kernel_of_one_s_own_equals_the_named_one(n_classes, form):
    X, y = rows_of(400, n_classes)
    named = OGDClassifier(gamma=GAMMA, **IN_ORDER).fit(form(X), y)
    own = OGDClassifier(by_hand, **IN_ORDER).fit(form(X), y)
    assert_close(own.decision_function(form(X)), named.decision_function(form(X)))
    assert own.n_support_ == named.n_support_


def test_a_kernel_of_one_s_own_may_return_a_sparse_matrix():
    X, y = rows_of(100)
    sparse_kernel = OGDClassifier(lambda X, Z: sparse.csr_array(by_hand(X, Z)), **IN_ORDER).fit(X, y)
    expected = OGDClassifier(by_hand, **IN_ORDER).fit(X, y).decision_function(X)
    assert np.array_equal(sparse_kernel.decision_function(X), expected)


def test_several_passes_go_on_where_the_last_one_ended():
    X, y = rows_of()
    twice = OGDClassifier(gamma=GAMMA, n_passes=2, **IN_ORDER).fit(X, y)
    again = OGDClassifier(gamma=GAMMA, **IN_ORDER).fit(X, y).partial_fit(X, y)
    assert np.array_equal(twice.decision_function(X), again.decision_function(X))


def test_class_weights_are_factors_of_the_steps():
    X, y = rows_of()
    by_class = OGDClassifier(gamma=GAMMA, class_weight={0: 0.3}, **IN_ORDER).fit(X, y)
    by_row = OGDClassifier(gamma=GAMMA, **IN_ORDER).fit(X, y, sample_weight=np.where(y == 0, 0.3, 1.0))
    assert np.array_equal(by_class.decision_function(X), by_row.decision_function(X))


@pytest.mark.parametrize("evaluation", ["dual", "primal"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_with_an_isolation_kernel_it_equals_its_learner(n_classes, loss, evaluation):
    X, y = make_rows(200, n_classes)
    kernel = make_kernel(X)
    options = {"kernel": kernel, "loss": loss, **IN_ORDER}
    model = OGDClassifier(**options).fit(X, y)
    other = IKOGDClassifier(evaluation=evaluation, schedule="constant", average=False, n_passes=1, **options).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), other.decision_function(X), rtol=1e-10, atol=1e-10)
    assert model.n_support_ == other.n_support_


@pytest.mark.parametrize("is_fitted", [True, False])
def test_with_an_isolation_kernel_calls_may_be_cut_anywhere(is_fitted):
    X, y = make_rows(200)
    kernel = make_kernel(X) if is_fitted else IsolationKernel(**SMALL)
    whole, parts = (OGDClassifier(kernel, n_initial=50) for _ in range(2))
    whole.partial_fit(X, y)
    for begin in range(0, 200, 7):
        parts.partial_fit(X[begin : begin + 7], y[begin : begin + 7], classes=[0, 1])
    assert np.array_equal(parts.decision_function(X), whole.decision_function(X))


def test_a_fitted_isolation_kernel_is_used_as_it_is():
    X, y = make_rows(200)
    kernel = make_kernel(X)
    assert OGDClassifier(kernel).fit(X[:50], y[:50]).kernel_ is kernel


@pytest.mark.parametrize("name", ["laplacian", "gaussian", "chi2"])
@pytest.mark.parametrize("budget", [None, 20])
def test_a_million_columns_cost_no_more_than_the_stored_values(budget, name):
    X = sparse.random_array((200, 1_000_000), density=2e-5, format="csr", rng=np.random.default_rng(0))
    y = np.arange(200) % 2
    few = X[:, np.unique(X.indices)]
    options = {"gamma": 0.2, "budget": budget, **IN_ORDER}
    scores = OGDClassifier(name, **options).fit(X, y).decision_function(X)
    assert_close(scores, OGDClassifier(name, **options).fit(few, y).decision_function(few))


def test_an_unfitted_isolation_kernel_is_cloned_and_fitted():
    X, y = make_rows(200)
    kernel = IsolationKernel(**SMALL)
    model = OGDClassifier(kernel, shuffle=False).fit(X, y)
    expected = OGDClassifier(make_kernel(X), shuffle=False).fit(X, y)
    assert np.array_equal(model.decision_function(X), expected.decision_function(X))
    assert not hasattr(kernel, "n_cells_")


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("n_columns", [2, 4])
def test_an_isolation_kernel_of_other_columns_is_an_error(n_columns, method):
    X, y = make_rows(50)
    kernel = make_kernel(np.random.default_rng(0).normal(size=(50, n_columns)))
    with pytest.raises(ValueError, match=rf"^X must have the {n_columns} columns of kernel; got 3\."):
        getattr(OGDClassifier(kernel), method)(X, y)


BAD_KERNELS = {
    "another shape": lambda X, Z: np.ones((X.shape[0], 1)),
    "NaN": lambda X, Z: np.full((X.shape[0], Z.shape[0]), np.nan),
}


@pytest.mark.parametrize("kernel", BAD_KERNELS.values(), ids=BAD_KERNELS)
def test_a_kernel_of_one_s_own_that_returns_nonsense_is_an_error(kernel):
    X, y = make_rows(50)
    with pytest.raises(ValueError, match=r"^kernel must return finite values of shape \(50, 50\)"):
        OGDClassifier(kernel).fit(X, y)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_a_kernel_of_one_s_own_knows_the_hinge_loss_only(loss):
    X, y = make_rows(50)
    with pytest.raises(ValueError, match=r'^loss must be "hinge" for a kernel of your own; got'):
        OGDClassifier(by_hand, loss=loss).fit(X, y)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_many_blocks_and_threads_give_the_model_of_single_rows(n_jobs):
    X, y = rows_of(1500, 3)
    model = OGDClassifier(gamma=GAMMA, n_jobs=n_jobs).partial_fit(X, y)
    single = OGDClassifier(gamma=GAMMA, n_jobs=1)
    for r in range(len(y)):
        single.partial_fit(X[r : r + 1], y[r : r + 1], classes=[0, 1, 2])
    assert np.array_equal(model.decision_function(X), single.decision_function(X))
