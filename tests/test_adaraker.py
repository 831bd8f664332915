"""AdaRaker: experts over dyadic intervals, each with many kernels, equal their twin."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

import reference_rivals
from isokern import AdaRakerClassifier
from isokern.learners.adaraker import PAPERS_BANDWIDTHS
from learning import make_rows
from test_ogd import signs

FORMS = {"dense": np.asarray, "csr": sparse.csr_array}
BANDWIDTHS = (0.1, 0.5, 2.0)
SMALL = {"bandwidths": BANDWIDTHS, "n_directions": 10, "random_state": 0, "shuffle": False}

every_restart = pytest.mark.parametrize("restart", ["warm", "cold"])


def twin_scores(model, X, targets, shown, **options):
    """Return the scores of shown rows after a twin for each score has learned X."""
    scores = []
    for y in targets.T:
        twin = reference_rivals.AdaRaker(model.model_.directions, model.bandwidths, **options)
        for x, c in zip(X, y, strict=True):
            twin.learn(x, c)
        scores.append([twin.score(x) for x in shown])
    return np.array(scores).T


def assert_close(actual, expected):
    np.testing.assert_allclose(actual.reshape(expected.shape), expected, rtol=1e-4, atol=1e-4)


@every_restart
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("n", [2, 7, 8, 9, 100, 128])
def test_it_equals_its_twin(n, n_classes, form, restart):
    X, y = make_rows(140, n_classes)
    model = AdaRakerClassifier(restart=restart, **SMALL)
    model.partial_fit(form(X[:n]), y[:n], classes=np.arange(n_classes))
    expected = twin_scores(model, X[:n], signs(y[:n], n_classes), X[120:], cold=restart == "cold")
    assert_close(model.decision_function(form(X[120:])), expected)


@pytest.mark.parametrize(
    "options", [{"learning_rate": 2.0}, {"learning_rate": 0.1}, {"shrinkage": 0.1}, {"shrinkage": 0}], ids=str
)
def test_its_parameters_are_the_twin_s(options):
    X, y = make_rows(140)
    model = AdaRakerClassifier(**SMALL, **options).fit(X[:100], y[:100])
    names = {"learning_rate": "rate", "shrinkage": "shrinkage"}
    same = {names[name]: value for name, value in options.items()}
    assert_close(model.decision_function(X[100:]), twin_scores(model, X[:100], signs(y[:100], 2), X[100:], **same))


def test_the_paper_s_bandwidths_equal_the_twin():
    X, y = make_rows(140)
    model = AdaRakerClassifier(n_directions=10, random_state=0, shuffle=False).fit(X[:100], y[:100])
    assert model.bandwidths == PAPERS_BANDWIDTHS
    assert_close(model.decision_function(X[100:]), twin_scores(model, X[:100], signs(y[:100], 2), X[100:]))


@every_restart
def test_the_number_of_rounds_need_not_be_known_ahead(restart):
    X, y = make_rows(300)
    whole = AdaRakerClassifier(restart=restart, **SMALL).partial_fit(X, y)
    parts = AdaRakerClassifier(restart=restart, **SMALL)
    for begin, end in [(0, 1), (1, 100), (100, 128), (128, 129), (129, 300)]:
        parts.partial_fit(X[begin:end], y[begin:end], classes=[0, 1])
    assert np.array_equal(parts.decision_function(X), whole.decision_function(X))


def test_there_is_one_more_expert_whenever_the_rounds_double():
    X, y = make_rows(64)
    model, numbers = AdaRakerClassifier(**SMALL), []
    for r in range(64):
        model.partial_fit(X[r : r + 1], y[r : r + 1], classes=[0, 1])
        numbers.append(model.model_.theta.shape[1])
    assert numbers == [int(np.log2(r + 1)) + 1 for r in range(64)]


def test_directions_are_orthogonal_of_the_length_of_normal_ones():
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


@pytest.mark.parametrize("size", [1e-300, 1e10, 1e200])
def test_rows_of_any_size_leave_a_model_alive(size):
    X, y = make_rows(100)
    model = AdaRakerClassifier(n_directions=10, random_state=0).fit(X, y).partial_fit(size * X, y)
    scores = model.decision_function(X)
    assert np.isfinite(scores).all()
    assert scores.any()


@pytest.mark.parametrize("weight", [1e-300, 1e3, 1e5, 1e300])
def test_weights_of_any_size_leave_a_model_alive(weight):
    X, y = make_rows(300)
    model = AdaRakerClassifier(**SMALL).fit(X, y, sample_weight=np.append(np.ones(200), np.full(100, weight)))
    scores = model.decision_function(X)
    assert np.isfinite(scores).all()
    assert scores.any()


def test_a_long_stream_of_mistakes_leaves_scores_finite():
    X, _ = make_rows(3000)
    y = np.random.default_rng(0).integers(2, size=3000)
    model = AdaRakerClassifier(**SMALL).fit(np.zeros_like(X), y)
    assert np.isfinite(model.decision_function(X)).all()


BAD = {
    "no bandwidths": ({"bandwidths": ()}, r"^bandwidths must be positive numbers; got \(\)\."),
    "a negative bandwidth": ({"bandwidths": (1.0, -1.0)}, r"^bandwidths must be positive numbers; got \(1\.0, -1\.0\)"),
    "an infinite bandwidth": ({"bandwidths": (np.inf,)}, r"^bandwidths must be positive numbers; got \(inf,\)"),
    "a word as bandwidth": ({"bandwidths": "auto"}, r"^bandwidths must be positive numbers; got 'auto'"),
    "no directions": ({"n_directions": 0}, r"^n_directions must be an integer of at least 1; got 0\."),
    "half a direction": ({"n_directions": 1.5}, r"^n_directions must be an integer of at least 1; got 1\.5\."),
    "shrinkage of 1": ({"shrinkage": 1}, r"^shrinkage must be at least 0 and below 1; got 1\."),
    "negative shrinkage": ({"shrinkage": -0.1}, r"^shrinkage must be at least 0 and below 1; got -0\.1\."),
    "an unknown restart": ({"restart": "hot"}, r'^restart must be "warm" or "cold"; got \'hot\'\.'),
}


@pytest.mark.parametrize(("options", "message"), BAD.values(), ids=BAD)
def test_a_parameter_that_makes_no_sense_is_an_error(options, message):
    X, y = make_rows(50)
    with pytest.raises(ValueError, match=message):
        AdaRakerClassifier(**options).fit(X, y)
