"""Check FOGD: random Fourier features that approximate the kernel, and a linear model on them."""

from __future__ import annotations

import numpy as np
import pytest

import reference_rivals
from isokern import FOGDClassifier
from learning import LOSSES, every, make_rows, signs

KINDS = {
    "gaussian": {"kernel": "gaussian"},
    "gaussian, orthogonal": {"kernel": "gaussian", "features": "orthogonal"},
    "laplacian": {"kernel": "laplacian"},
}
every_kind = every("kind", KINDS)


@every_kind
@pytest.mark.parametrize("n_columns", [1, 6])
@pytest.mark.parametrize("gamma", [0.1, 0.7])
def test_products_of_features_approximate_the_kernel(gamma, n_columns, kind):
    X = np.random.default_rng(0).normal(size=(30, n_columns))
    model = FOGDClassifier(gamma=gamma, n_frequencies=20_000, random_state=0, **kind).fit(X, np.arange(30) % 2)
    features = model.model_.features(X, 1)
    expected = reference_rivals.kernel(kind["kernel"], X, X, gamma)
    assert np.abs(features @ features.T - expected).max() < 0.03


def test_orthogonal_features_approximate_better_than_plain_ones():
    X = np.random.default_rng(0).normal(size=(30, 40))
    expected = reference_rivals.kernel("gaussian", X, X, 0.01)
    errors = {}
    for kind in ("plain", "orthogonal"):
        model = FOGDClassifier(gamma=0.01, n_frequencies=40, features=kind, random_state=0).fit(X, np.arange(30) % 2)
        features = model.model_.features(X, 1)
        errors[kind] = np.square(features @ features.T - expected).mean()
    assert errors["orthogonal"] < errors["plain"]


@pytest.mark.parametrize("n_frequencies", [3, 6, 15])
def test_orthogonal_frequencies_are_orthogonal_in_groups_of_columns(n_frequencies):
    X, y = np.random.default_rng(0).normal(size=(20, 6)), np.arange(20) % 2
    model = FOGDClassifier(gamma=0.5, n_frequencies=n_frequencies, features="orthogonal", random_state=0).fit(X, y)
    frequencies = model.model_.frequencies
    assert frequencies.shape == (6, n_frequencies)
    for begin in range(0, n_frequencies, 6):
        products = frequencies[:, begin : begin + 6].T @ frequencies[:, begin : begin + 6]
        assert np.abs(products - np.diag(products.diagonal())).max() < 1e-12 * products.max()


@every_kind
@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_equal_the_reference(n_classes, loss, average, kind):
    X, y = make_rows(200, n_classes)
    options = {"loss": loss, "average": average, "learning_rate": 0.47, "shuffle": False, "random_state": 0}
    model = FOGDClassifier(gamma=0.3, n_frequencies=25, **kind, **options).fit(X, y)
    features = reference_rivals.fourier_features(X, model.model_.frequencies)
    targets = signs(y, n_classes)
    first = np.zeros((50, targets.shape[1]))
    w = reference_rivals.linear(features, targets, first, loss=loss, rate=0.47, average=average)
    np.testing.assert_allclose(model.decision_function(X).reshape(200, -1), features @ w, rtol=1e-9, atol=1e-10)


def test_without_averaging_it_approximates_ogd():
    X, y = make_rows(100)
    model = FOGDClassifier(gamma=0.3, n_frequencies=20_000, average=False, loss="logistic", shuffle=False)
    K = reference_rivals.kernel("gaussian", X, X, 0.3)
    alpha, _ = reference_rivals.ogd(K, signs(y, 2), loss="logistic")
    scores = model.set_params(random_state=0).fit(X, y).decision_function(X)
    assert np.abs(scores - (K @ alpha)[:, 0]).max() < 0.1
