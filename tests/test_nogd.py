"""Check NOGD: OGD until it has its landmarks, then a linear model on their Nyström features."""

from __future__ import annotations

import numpy as np
import pytest

import reference_rivals
from isokern import NOGDClassifier, OGDClassifier
from isokern.kernels import KERNELS
from learning import LOSSES, make_rows, signs
from test_ogd import GAMMA, IN_ORDER, rows_of, scores_of


def assert_close(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=1e-6)


def switched(model):
    return model.model_.linear is not None


@pytest.mark.parametrize("name", ["laplacian", "gaussian", "chi2"])
@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("rank", [1, 5, 0.2, None])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", LOSSES)
def test_scores_equal_the_reference(loss, n_classes, rank, average, name):
    X, y = rows_of(200, n_classes)
    gamma = 5.3
    model = NOGDClassifier(name, gamma=gamma, n_landmarks=20, rank=rank, average=average, loss=loss, **IN_ORDER)
    model.fit(X, y)
    K = reference_rivals.kernel(name, X, X, gamma)
    n_features = {1: 1, 5: 5, 0.2: 4, None: 20}[rank]
    expected = reference_rivals.nogd(K, signs(y, n_classes), 20, n_features, average=average, loss=loss, rate=0.47)
    assert_close(scores_of(model, X), expected)


def landmarks_then_repeats(n_landmarks, n_classes=2):
    """Return rows that all violate the margin, followed by many repeats of them."""
    X, y = make_rows(300, n_classes)
    model, kept = OGDClassifier(gamma=2.0, **IN_ORDER), []
    for r in range(len(y)):
        before = model.n_support_ if kept else 0
        model.partial_fit(X[r : r + 1], y[r : r + 1], classes=np.arange(n_classes))
        if not kept or model.n_support_ > before:
            kept.append(r)
        if len(kept) == n_landmarks:
            break
    again = np.random.default_rng(0).choice(kept, 200)
    return X[[*kept, *again]], y[[*kept, *again]]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_with_full_rank_it_equals_ogd_on_repeats_of_the_landmarks(n_classes, loss):
    X, y = landmarks_then_repeats(40, n_classes)
    y[40:] = np.random.default_rng(1).integers(n_classes, size=200)
    options = {"gamma": 2.0, "loss": loss, **IN_ORDER}
    model = NOGDClassifier(n_landmarks=40, rank=None, average=False, **options).fit(X, y)
    expected = OGDClassifier(**options).fit(X, y)
    assert switched(model)
    assert expected.n_support_ > 60
    assert_close(model.decision_function(X), expected.decision_function(X))


@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_with_full_rank_the_switch_changes_no_score_of_a_landmark(n_classes, average):
    X, y = landmarks_then_repeats(40, n_classes)
    X, y = X[:40], y[:40]
    after = NOGDClassifier(gamma=2.0, n_landmarks=40, rank=None, average=average, **IN_ORDER).fit(X, y)
    before = NOGDClassifier(gamma=2.0, n_landmarks=41, rank=None, average=average, **IN_ORDER).fit(X, y)
    assert (switched(after), switched(before)) == (True, False)
    assert_close(after.decision_function(X), before.decision_function(X))


def test_before_the_switch_it_is_ogd():
    X, y = make_rows(100)
    model = NOGDClassifier(gamma=GAMMA, n_landmarks=101, **IN_ORDER).fit(X, y)
    ogd = OGDClassifier(gamma=GAMMA, **IN_ORDER).fit(X, y)
    assert np.array_equal(model.decision_function(X), ogd.decision_function(X))


def test_features_are_the_eigenvectors_of_the_largest_eigenvalues():
    X, y = make_rows(300)
    model = NOGDClassifier(gamma=GAMMA, n_landmarks=50, rank=10, random_state=0).fit(X, y).model_
    K = model.kernel.matrix(model.landmarks, model.landmarks, 1)
    # The features of the landmarks are V A^(1/2), so the squared norms of their columns are the eigenvalues.
    features = K @ model.projection
    np.testing.assert_allclose((features**2).sum(axis=0), np.linalg.eigvalsh(K)[::-1][:10], rtol=1e-9)


def test_a_fraction_as_rank_is_a_fraction_of_the_landmarks():
    X, y = make_rows(300)
    model = NOGDClassifier(gamma=GAMMA, n_landmarks=30, rank=0.3).fit(X, y)
    assert model.model_.projection.shape == (30, 9)


def test_near_zero_eigenvalues_are_dropped():
    X, y = make_rows(5)
    X, y = np.tile(X, (60, 1)), np.random.default_rng(0).integers(2, size=300)
    model = NOGDClassifier(gamma=GAMMA, n_landmarks=50, rank=None).fit(X, y)
    assert model.model_.projection.shape == (50, 5)
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("name", KERNELS)
def test_rows_of_zeros_give_finite_scores(name):
    X, y = np.zeros((60, 3)), np.arange(60) % 2
    model = NOGDClassifier(name, n_landmarks=10, rank=None).fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()
