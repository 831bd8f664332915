"""The compiled loop: it equals its NumPy twin and the paper's rule, whichever way scores are computed."""

from __future__ import annotations

import numpy as np
import pytest

import reference
from isokern import IKOGDClassifier, IsolationKernel
from learning import LOSSES, PAPER, RATES, SMALL, assert_close, make_kernel, make_rows, one_row, weights_of


def signs(labels, n_classes):
    """Return the targets of each column, +1 or -1; two classes have one column, for the second."""
    targets = np.where(labels[:, None] == np.arange(n_classes), 1.0, -1.0)
    return targets if n_classes > 2 else targets[:, 1:]


# The loop equals its twin


def train_both(n_classes, weighted, n_cells=8, n=60, **options):
    X, y = make_rows(max(n, n_cells), n_classes)
    kernel = make_kernel(X, n_cells=n_cells)
    row_weights = np.random.default_rng(1).uniform(0, 2, n) if weighted else None
    cells, labels = kernel.apply(X)[:n], y[:n]
    rate = RATES[options["schedule"]]
    model = IKOGDClassifier(kernel=kernel, learning_rate=rate, **options)
    model.partial_fit_cells(cells, labels, classes=range(n_classes), sample_weight=row_weights)
    options |= {"rate": rate, "row_weights": row_weights}
    twin = reference.learn_online(cells, kernel.map_.starts, signs(labels, n_classes), **options)
    return model, twin


every_rule = pytest.mark.parametrize(
    ("loss", "schedule", "average", "shrinkage"),
    [(loss, s, a, k) for loss in LOSSES for s in RATES for a in (False, True) for k in (0.0, 0.1)],
)


@every_rule
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_weights_equal_those_of_the_twin(n_classes, weighted, loss, schedule, average, shrinkage):
    options = {"loss": loss, "schedule": schedule, "average": average, "shrinkage": shrinkage}
    model, (weights, _, _) = train_both(n_classes, weighted, **options)
    assert_close(weights_of(model), weights)


@every_rule
@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_scores_before_each_update_equal_those_of_the_twin(n_classes, loss, schedule, average, shrinkage):
    options = {"loss": loss, "schedule": schedule, "average": average, "shrinkage": shrinkage}
    model, (_, scores, _) = train_both(n_classes, True, **options)
    assert_close(model.learned_.window.scores[: len(scores)], scores)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_number_of_support_vectors_equals_that_of_the_twin(loss, n_classes):
    model, (_, _, n_support) = train_both(n_classes, False, n=200, loss=loss, schedule="constant")
    assert model.n_support_ == n_support


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("schedule", RATES)
def test_cells_of_two_bytes_teach_the_same_as_the_twin_s(schedule, n_classes):
    model, (weights, _, _) = train_both(n_classes, False, n_cells=300, loss="hinge", schedule=schedule)
    assert model.kernel_.apply(np.zeros((1, 3))).dtype == np.uint16
    assert_close(weights_of(model), weights)


class Slices:
    """Cells between random cuts of the first column, as many as chance has it but at most so many."""

    def __init__(self, at_most):
        self.at_most = at_most

    def fit(self, X, rng):
        self.n_cells_ = int(rng.integers(self.at_most // 2, self.at_most))
        self.cuts = np.sort(rng.uniform(-2, 2, self.n_cells_ - 1))
        return self

    def apply(self, X):
        return np.searchsorted(self.cuts, X[:, 0])


@pytest.mark.parametrize("evaluation", ["primal", "naive", "dual"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("at_most", "dtype"), [(20, np.uint8), (2000, np.uint16), (140_000, np.uint32)])
def test_partitionings_of_different_sizes_teach_the_same_as_the_twin_s(at_most, dtype, n_classes, evaluation):
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


@pytest.mark.parametrize("schedule", RATES)
@pytest.mark.parametrize("average", [False, True])
def test_strong_shrinkage_over_many_rows_equals_the_twin(average, schedule):
    shrinkage = 0.9 / RATES[schedule]
    model, (weights, _, _) = train_both(
        2, False, n=200, loss="hinge", schedule=schedule, average=average, shrinkage=shrinkage
    )
    assert_close(weights_of(model), weights)


def test_the_average_under_shrinkage_stays_finite_on_a_long_stream():
    X, y = make_rows(3000)
    model = IKOGDClassifier(kernel=make_kernel(X), schedule="constant", average=True, shrinkage=1.0).partial_fit(X, y)
    assert np.isfinite(model.decision_function(X)).all()


# The paper's rule


def learn(model, cells, label):
    return model.partial_fit_cells(cells, [label] * len(cells), classes=[-1, 1])


@pytest.mark.parametrize("label", [-1, 1])
def test_a_row_that_violates_the_margin_adds_eta_c_to_its_cells_and_to_no_other(label):
    model, cells = one_row()
    learn(model, cells, label)
    expected = np.zeros(4 * 8)
    expected[np.arange(4) * 8 + cells[0]] = 0.5 * label
    assert np.array_equal(weights_of(model)[:, 0], expected)


@pytest.mark.parametrize("label", [-1, 1])
def test_a_row_that_violates_the_margin_moves_its_score_by_eta(label):
    model, cells = one_row(learning_rate=0.25)
    learn(model, cells, label)
    assert model.decision_function_cells(cells) == [0.25 * label]


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


def test_a_row_beyond_the_margin_is_no_support_vector():
    model, cells = one_row(learning_rate=2.0)
    learn(model, np.repeat(cells, 5, axis=0), 1)
    assert model.n_support_ == 1


def test_the_paper_s_learner_is_one_documented_line():
    X, y = make_rows(300)
    paper = IKOGDClassifier(schedule="constant", average=False, n_passes=1, shuffle=False, **SMALL).fit(X, y)
    kernel = paper.kernel_
    targets = signs(y, 2)
    weights, _, _ = reference.learn_online(
        kernel.apply(X), kernel.map_.starts, targets, loss="hinge", schedule="constant", rate=0.5
    )
    assert_close(paper.decision_function(X), (kernel.transform(X) @ weights)[:, 0] / np.sqrt(6))


# Three ways to compute the same scores


def train_three(n_classes, **options):
    X, y = make_rows(200, n_classes)
    options |= {"kernel": make_kernel(X), "learning_rate": RATES[options["schedule"]], "random_state": 0}
    return X, [IKOGDClassifier(evaluation=e, **options).fit(X, y) for e in ("primal", "naive", "dual")]


options_of_the_three = pytest.mark.parametrize(
    "options",
    [
        {"loss": loss, "schedule": schedule, "average": average, "shrinkage": shrinkage}
        for loss in LOSSES
        for schedule in ("constant", "decaying")
        for average in (False, True)
        for shrinkage in (0.0, 0.1)
    ],
    ids=lambda options: "-".join(map(str, options.values())),
)


@options_of_the_three
@pytest.mark.parametrize("n_classes", [2, 3])
def test_primal_naive_and_dual_give_the_same_scores(n_classes, options):
    X, (primal, naive, dual) = train_three(n_classes, **options)
    scores = primal.decision_function(X)
    size = max(1.0, np.abs(scores).max())
    np.testing.assert_allclose(naive.decision_function(X), scores, rtol=0, atol=1e-10 * size)
    np.testing.assert_allclose(dual.decision_function(X), scores, rtol=0, atol=1e-10 * size)


@options_of_the_three
@pytest.mark.parametrize("n_classes", [2, 3])
def test_primal_naive_and_dual_count_the_same_support_vectors(n_classes, options):
    _, models = train_three(n_classes, **options)
    assert len({model.n_support_ for model in models}) == 1


@pytest.mark.parametrize("n_classes", [2, 3])
def test_naive_agrees_with_primal_under_adagrad_s_steps(n_classes):
    X, y = make_rows(200, n_classes)
    kernel = make_kernel(X)
    primal, naive = (IKOGDClassifier(kernel=kernel, evaluation=e, random_state=0) for e in ("primal", "naive"))
    difference = primal.fit(X, y).decision_function(X) - naive.fit(X, y).decision_function(X)
    assert np.abs(difference).max() < 1e-10


def test_a_dual_model_keeps_as_many_rows_as_it_has_support_vectors():
    _, (_, _, dual) = train_three(3, **PAPER)
    assert dual.learned_.model.n == dual.n_support_
