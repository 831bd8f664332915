"""Check AdaRaker: its experts over dyadic intervals, each with many kernels, equal the reference."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import reference_rivals
from isokern import AdaRakerClassifier
from isokern.learners.adaraker import PAPERS_BANDWIDTHS
from learning import FORMS, every, feed, make_rows, signs

BANDWIDTHS = (0.1, 0.5, 2.0)
SMALL = {"bandwidths": BANDWIDTHS, "n_directions": 10, "random_state": 0, "shuffle": False}

every_restart = pytest.mark.parametrize("restart", ["warm", "cold"])


def check_against_reference(model, X, y, n=100, n_classes=2, form=np.asarray, **options):
    """Check scores of the last rows of X, after the model and a reference for each score have learned the first n."""
    model.partial_fit(form(X[:n]), y[:n], classes=np.arange(n_classes))
    expected = []
    for targets in signs(y[:n], n_classes).T:
        one = reference_rivals.AdaRaker(model.model_.directions, model.bandwidths, **options)
        for x, c in zip(X[:n], targets, strict=True):
            one.learn(x, c)
        expected.append([one.score(x) for x in X[-20:]])
    scores = model.decision_function(form(X[-20:])).reshape(20, -1)
    np.testing.assert_allclose(scores, np.transpose(expected), rtol=1e-4, atol=1e-4)


@every_restart
@every("form", FORMS)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n", [2, 7, 8, 9, 100, 128])
def test_scores_equal_the_reference(n, n_classes, form, restart):
    X, y = make_rows(150, n_classes)
    model = AdaRakerClassifier(restart=restart, **SMALL)
    check_against_reference(model, X, y, n, n_classes, form, cold=restart == "cold")


@pytest.mark.parametrize(("rate", "shrinkage"), [(2.0, 5e-4), (0.1, 5e-4), (0.5, 0.1), (0.5, 0)])
def test_parameters_have_the_meaning_of_the_reference(rate, shrinkage):
    model = AdaRakerClassifier(learning_rate=rate, shrinkage=shrinkage, **SMALL)
    check_against_reference(model, *make_rows(150), rate=rate, shrinkage=shrinkage)


def test_the_default_bandwidths_are_the_paper_s():
    model = AdaRakerClassifier(n_directions=10, random_state=0)
    assert model.bandwidths == PAPERS_BANDWIDTHS == tuple(2.0**m for m in range(-10, 6))
    check_against_reference(model, *make_rows(150))


@every_restart
def test_a_stream_may_be_split_anywhere(restart):
    X, y = make_rows(300)
    whole, parts = (feed(AdaRakerClassifier(restart=restart, **SMALL), sizes, X, y) for sizes in ([], [1, 99, 28, 1]))
    assert np.array_equal(parts.decision_function(X), whole.decision_function(X))


def test_an_expert_is_added_whenever_the_number_of_rounds_doubles():
    X, y = make_rows(64)
    model, numbers = AdaRakerClassifier(**SMALL), []
    for r in range(64):
        model.partial_fit(X[r : r + 1], y[r : r + 1], classes=[0, 1])
        numbers.append(model.model_.theta.shape[1])
    assert numbers == [int(np.log2(r + 1)) + 1 for r in range(64)]


def test_directions_are_orthogonal_and_as_long_as_gaussian_vectors():
    X, y = np.random.default_rng(0).normal(size=(20, 400)), np.arange(20) % 2
    directions = AdaRakerClassifier(n_directions=50, random_state=0).fit(X, y).model_.directions
    products = directions.T @ directions
    assert np.abs(products - np.diag(products.diagonal())).max() < 1e-9
    assert products.diagonal().mean() == pytest.approx(400, rel=0.05)  # chi-squared of 400 degrees


def test_wide_sparse_rows_need_no_square_matrix():
    X = sparse.random_array((200, 100_000), density=1e-4, format="csr", rng=np.random.default_rng(0))
    y = np.arange(200) % 2
    model = AdaRakerClassifier(bandwidths=BANDWIDTHS, n_directions=5, random_state=0).fit(X, y)
    assert model.model_.directions.shape == (100_000, 5)
    assert np.isfinite(model.decision_function(X)).all()


def test_rows_too_large_to_be_projected_are_an_error_and_leave_the_model_as_it_was():
    X, y = make_rows(100)
    model = AdaRakerClassifier(n_directions=10, random_state=0).fit(X, y)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="X must be smaller"):
        model.partial_fit(1e307 * X, y)
    assert np.array_equal(model.decision_function(X), before)


@pytest.mark.parametrize(
    ("size", "weight"), [*((size, 1) for size in (1e-300, 1e10, 1e200)), *((1, w) for w in (1e-300, 1e3, 1e5, 1e300))]
)
def test_rows_and_weights_of_any_size_leave_scores_finite_and_not_all_zero(size, weight):
    X, y = make_rows(300)
    model = AdaRakerClassifier(n_directions=10, random_state=0).fit(X[:200], y[:200])
    scores = model.partial_fit(size * X[200:], y[200:], sample_weight=np.full(100, weight)).decision_function(X)
    assert np.isfinite(scores).all()
    assert scores.any()


def test_a_long_stream_of_mistakes_leaves_scores_finite():
    X, _ = make_rows(3000)
    y = np.random.default_rng(0).integers(2, size=3000)
    model = AdaRakerClassifier(**SMALL).fit(np.zeros_like(X), y)
    assert np.isfinite(model.decision_function(X)).all()
