"""Check the compiled loop: it equals the NumPy reference and the paper's rule, in primal, naive and dual form."""

from __future__ import annotations

import numpy as np
import pytest

import reference
from isokern import IKOGDClassifier, IsolationKernel
from learning import LOSSES, PAPER, RATES, SMALL, assert_close, make_kernel, make_rows, one_row, signs, weights_of

every_number_of_classes = pytest.mark.parametrize("n_classes", [2, 3])


def combinations(schedules):
    """Parametrise a test by all losses, these schedules, averaging and shrinkage."""
    options = [
        {"loss": loss, "schedule": schedule, "average": average, "shrinkage": shrinkage}
        for loss in LOSSES
        for schedule in schedules
        for average in (False, True)
        for shrinkage in (0.0, 0.1)
    ]
    return pytest.mark.parametrize("options", options, ids=lambda options: "-".join(map(str, options.values())))


# The loop equals the reference


def check_against_reference(n_classes, weighted=False, n_cells=8, n=60, **options):
    """Check weights, scores and support vectors of a model against the reference, and return the model."""
    X, y = make_rows(max(n, n_cells), n_classes)
    kernel = make_kernel(X, n_cells=n_cells)
    row_weights = np.random.default_rng(1).uniform(0, 2, n) if weighted else None
    cells, labels, rate = kernel.apply(X)[:n], y[:n], RATES[options["schedule"]]
    model = IKOGDClassifier(kernel=kernel, learning_rate=rate, **options)
    model.partial_fit_cells(cells, labels, classes=range(n_classes), sample_weight=row_weights)
    weights, scores, n_support = reference.learn_online(
        cells, kernel.map_.starts, signs(labels, n_classes), rate=rate, row_weights=row_weights, **options
    )
    assert_close(weights_of(model), weights)
    assert_close(model.learned_.window.scores[:n], scores)
    assert model.n_support_ == n_support
    return model


@combinations(RATES)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@every_number_of_classes
def test_weights_scores_and_support_vectors_equal_the_reference(n_classes, weighted, options):
    check_against_reference(n_classes, weighted, **options)


@every_number_of_classes
@pytest.mark.parametrize("schedule", RATES)
def test_two_byte_cells_equal_the_reference(schedule, n_classes):
    model = check_against_reference(n_classes, n_cells=300, loss="hinge", schedule=schedule)
    assert model.kernel_.apply(np.zeros((1, 3))).dtype == np.uint16


@pytest.mark.parametrize("schedule", RATES)
@pytest.mark.parametrize("average", [False, True])
def test_strong_shrinkage_over_many_rows_equals_the_reference(average, schedule):
    shrinkage = 0.9 / RATES[schedule]
    check_against_reference(2, n=200, loss="hinge", schedule=schedule, average=average, shrinkage=shrinkage)


def test_the_average_under_shrinkage_stays_finite_on_a_long_stream():
    X, y = make_rows(3000)
    model = IKOGDClassifier(kernel=make_kernel(X), schedule="constant", average=True, shrinkage=1.0).partial_fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()


class Slices:
    """Partitioning of a random number of cells, between random cuts of the first column."""

    def __init__(self, at_most):
        self.at_most = at_most

    def fit(self, X, rng):
        self.n_cells_ = int(rng.integers(self.at_most // 2, self.at_most))
        self.cuts = np.sort(rng.uniform(-2, 2, self.n_cells_ - 1))
        return self

    def apply(self, X):
        return np.searchsorted(self.cuts, X[:, 0])


@pytest.mark.parametrize("evaluation", ["primal", "naive", "dual"])
@every_number_of_classes
@pytest.mark.parametrize(("at_most", "dtype"), [(20, np.uint8), (2000, np.uint16), (140_000, np.uint32)])
def test_partitionings_of_different_sizes_equal_the_reference(at_most, dtype, n_classes, evaluation):
    X, y = make_rows(15, n_classes)
    kernel = IsolationKernel(Slices(at_most), n_partitionings=3, random_state=0).fit(X)
    cells = kernel.apply(X)
    assert cells.dtype == dtype
    model = IKOGDClassifier(kernel=kernel, evaluation=evaluation, schedule="constant")
    model.partial_fit_cells(cells, y, classes=range(n_classes))
    _, scores, _ = reference.learn_online(
        cells, kernel.map_.starts, signs(y, n_classes), loss="hinge", schedule="constant", rate=0.5
    )
    assert_close(model.learned_.window.scores[:15], scores)


# The paper's rule


def learn(model, cells, label):
    return model.partial_fit_cells(cells, [label] * len(cells), classes=[-1, 1])


@pytest.mark.parametrize("label", [-1, 1])
@pytest.mark.parametrize("rate", [0.25, 0.5])
def test_a_margin_violation_adds_eta_c_to_the_row_s_cells_only(rate, label):
    model, cells = one_row(learning_rate=rate)
    learn(model, cells, label)
    expected = np.zeros(4 * 8)
    expected[np.arange(4) * 8 + cells[0]] = rate * label
    assert np.array_equal(weights_of(model)[:, 0], expected)
    assert model.decision_function_cells(cells) == [rate * label]


def test_a_row_inside_the_margin_on_the_right_side_is_learned():
    model, cells = one_row()
    learn(learn(model, cells, 1), cells, 1)
    assert model.decision_function_cells(cells) == [1.0]


@pytest.mark.parametrize("n_partitionings", [1, 3, 7, 10, 49, 98, 100, 103, 161])
def test_a_row_exactly_on_the_margin_changes_nothing(n_partitionings):
    model, cells = one_row(n_partitionings)
    learn(model, np.repeat(cells, 2, axis=0), 1)
    before = weights_of(model)
    learn(model, cells, 1)
    assert np.array_equal(weights_of(model), before)


def test_a_row_beyond_the_margin_is_not_a_support_vector():
    model, cells = one_row(learning_rate=2.0)
    learn(model, np.repeat(cells, 5, axis=0), 1)
    assert model.n_support_ == 1


def test_the_documented_parameters_give_the_learner_of_the_paper():
    X, y = make_rows(300)
    paper = IKOGDClassifier(schedule="constant", average=False, n_passes=1, shuffle=False, **SMALL).fit(X, y)
    kernel = paper.kernel_
    weights, _, _ = reference.learn_online(
        kernel.apply(X), kernel.map_.starts, signs(y, 2), loss="hinge", schedule="constant", rate=0.5
    )
    assert_close(paper.decision_function(X), (kernel.transform(X) @ weights)[:, 0] / np.sqrt(6))


# Three evaluations of the same scores


def train(evaluation, n_classes, **options):
    X, y = make_rows(200, n_classes)
    options |= {"kernel": make_kernel(X), "learning_rate": RATES[options["schedule"]], "random_state": 0}
    model = IKOGDClassifier(evaluation=evaluation, **options).fit(X, y)
    return model, model.decision_function(X)


@combinations(["constant", "decaying"])
@every_number_of_classes
def test_primal_naive_and_dual_give_the_same_scores_and_support_vectors(n_classes, options):
    primal, scores = train("primal", n_classes, **options)
    for evaluation in ("naive", "dual"):
        other, other_scores = train(evaluation, n_classes, **options)
        np.testing.assert_allclose(other_scores, scores, rtol=0, atol=1e-10 * max(1.0, np.abs(scores).max()))
        assert other.n_support_ == primal.n_support_


@every_number_of_classes
def test_naive_agrees_with_primal_under_adagrad(n_classes):
    (_, primal), (_, naive) = (train(e, n_classes, schedule="adagrad") for e in ("primal", "naive"))
    assert np.abs(primal - naive).max() < 1e-10


def test_a_dual_model_keeps_one_row_per_support_vector():
    dual, _ = train("dual", 3, **PAPER)
    assert dual.learned_.model.n == dual.n_support_
