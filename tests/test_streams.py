"""Streams: they may be cut anywhere, come as rows or cells, wait for their map, and go on after fit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import NotFittedError

from isokern import IKOGDClassifier, IsolationKernel
from learning import LOSSES, PAPER, SMALL, feed, make_kernel, make_rows, make_stream, same_model, stream_learner

STREAM_OPTIONS = {
    "default": {},
    "paper": PAPER,
    "average": {"average": True, "shrinkage": 0.01},
    "decaying": {"schedule": "decaying", "loss": "logistic"},
    "balanced": {"class_weight": "balanced"},
    "balanced average": {"class_weight": "balanced", "average": True, "loss": "squared_hinge"},
}


@given(
    options=st.sampled_from(list(STREAM_OPTIONS.values())),
    sizes=st.lists(st.integers(1, 70), max_size=6),
    n_classes=st.sampled_from([2, 3]),
)
def test_any_cut_of_a_stream_gives_the_same_weights(options, sizes, n_classes):
    stream = make_stream(n_classes=n_classes)
    whole, parts = feed(stream_learner(**options), [], *stream), feed(stream_learner(**options), sizes, *stream)
    assert same_model(whole, parts)


@given(sizes=st.lists(st.integers(1, 70), max_size=6))
def test_any_cut_of_a_stream_gives_the_same_probabilities(sizes):
    stream = make_stream()
    whole, parts = feed(stream_learner(), [], *stream), feed(stream_learner(), sizes, *stream)
    assert np.array_equal(whole.predict_proba(stream[0]), parts.predict_proba(stream[0]))


@pytest.mark.parametrize("options", STREAM_OPTIONS.values(), ids=STREAM_OPTIONS)
def test_one_row_at_a_time_gives_the_same_weights(options):
    stream = make_stream()
    whole = feed(stream_learner(**options), [], *stream)
    assert same_model(whole, feed(stream_learner(**options), [1] * 120, *stream))


@pytest.mark.parametrize("n_rows", [49, 50, 51])
def test_the_map_is_drawn_when_n_initial_rows_have_come(n_rows):
    X, y, _ = make_stream()
    model = stream_learner().partial_fit(X[:n_rows], y[:n_rows])
    assert hasattr(model, "kernel_") == (n_rows >= 50)


def test_the_map_is_drawn_from_the_first_rows_alone():
    X, y, _ = make_stream()
    model = stream_learner().partial_fit(X, y)
    first = stream_learner(n_passes=1).fit(X[:50], y[:50])
    assert np.array_equal(model.kernel_.apply(X), first.kernel_.apply(X))


@pytest.mark.parametrize(("n_cells", "n_initial"), [("auto", 1000), (8, 1000), (1024, 1024)])
def test_unless_told_otherwise_a_stream_waits_for_1000_rows_or_n_cells(n_cells, n_initial):
    X, y = make_rows(n_initial)
    model = IKOGDClassifier(n_partitionings=2, n_cells=n_cells, random_state=0).partial_fit(X[:-1], y[:-1])
    assert not hasattr(model, "kernel_")
    assert hasattr(model.partial_fit(X[-1:], y[-1:]), "kernel_")


def test_n_initial_may_be_lowered_while_rows_are_held():
    X, y, _ = make_stream()
    model = stream_learner().partial_fit(X[:40], y[:40]).set_params(n_initial=30)
    assert hasattr(model.partial_fit(X[40:], y[40:]), "kernel_")


def test_held_rows_may_be_changed_by_their_owner_afterwards():
    X, y, _ = make_stream()
    buffer, labels = X[:30].copy(), y[:30].copy()
    model = stream_learner().partial_fit(buffer, labels)
    buffer[:], labels[:] = 0, 0
    assert same_model(model.partial_fit(X[30:], y[30:]), stream_learner().partial_fit(X, y))


def test_held_rows_may_be_dense_and_sparse_by_turns():
    X, y, _ = make_stream()
    mixed = stream_learner().partial_fit(X[:20], y[:20]).partial_fit(sparse.csr_array(X[20:40]), y[20:40])
    assert same_model(mixed.partial_fit(X[40:], y[40:]), stream_learner().partial_fit(X, y))


def test_a_call_without_weights_is_one_with_weights_of_one():
    X, y, weights = make_stream()
    mixed = stream_learner().partial_fit(X[:20], y[:20]).partial_fit(X[20:], y[20:], sample_weight=weights[20:])
    weights[:20] = 1.0
    assert same_model(mixed, stream_learner().partial_fit(X, y, sample_weight=weights))


EARLY_LABELS = {"two classes": ["b"] * 5 + ["a"] * 3, "three": ["a", "c", "c", "b"], "one": ["a"] * 3}


@pytest.mark.parametrize("labels", EARLY_LABELS.values(), ids=EARLY_LABELS)
def test_while_rows_are_held_the_commonest_class_is_predicted(labels):
    X, _ = make_rows(len(labels))
    model = IKOGDClassifier().partial_fit(X, labels)
    assert set(model.predict(X)) == {max(labels, key=labels.count)}


@pytest.mark.parametrize("labels", EARLY_LABELS.values(), ids=EARLY_LABELS)
def test_while_rows_are_held_probabilities_are_frequencies(labels):
    X, _ = make_rows(len(labels))
    model = IKOGDClassifier().partial_fit(X, labels)
    frequencies = [labels.count(label) / len(labels) for label in sorted(set(labels))]
    assert np.array_equal(model.predict_proba(X[:2]), [frequencies] * 2)


def test_while_rows_are_held_there_are_no_support_vectors():
    X, y = make_rows(20)
    assert IKOGDClassifier().partial_fit(X, y).n_support_ == 0


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("options", STREAM_OPTIONS.values(), ids=STREAM_OPTIONS)
def test_with_a_fitted_kernel_partial_fit_equals_one_pass_of_fit_in_order(options, n_classes):
    X, y, weights = make_stream(n_classes=n_classes)
    kernel = make_kernel(X)
    fitted = IKOGDClassifier(kernel=kernel, n_passes=1, shuffle=False, **options).fit(X, y, weights)
    streamed = IKOGDClassifier(kernel=kernel, **options).partial_fit(X, y, sample_weight=weights)
    assert same_model(fitted, streamed)


def test_partial_fit_goes_on_after_fit():
    X, y, _ = make_stream()
    kernel = make_kernel(X)
    model = IKOGDClassifier(kernel=kernel, n_passes=1, shuffle=False).fit(X[:60], y[:60]).partial_fit(X[60:], y[60:])
    assert same_model(model, IKOGDClassifier(kernel=kernel).partial_fit(X, y))


def test_fit_forgets_what_was_learned_before():
    X, y, _ = make_stream()
    model = stream_learner().partial_fit(X, y).fit(X[:60], y[:60] % 2)
    assert same_model(model, stream_learner().fit(X[:60], y[:60] % 2))


@pytest.mark.parametrize("shuffle", [False, True])
def test_every_pass_learns_every_row_once(shuffle):
    X, y = make_rows(100)
    model = IKOGDClassifier(n_passes=3, shuffle=shuffle, **SMALL).fit(X, y)
    assert model.learned_.model.clock.rounds == 300


def test_passes_in_order_equal_the_rows_one_after_another_again():
    X, y = make_rows(100)
    kernel = make_kernel(X)
    fitted = IKOGDClassifier(kernel=kernel, n_passes=2, shuffle=False).fit(X, y)
    assert same_model(fitted, IKOGDClassifier(kernel=kernel).partial_fit(X, y).partial_fit(X, y))


def test_shuffling_changes_the_order_of_rows():
    X, y = make_rows(100)
    kernel = make_kernel(X)
    models = [IKOGDClassifier(kernel=kernel, shuffle=s, random_state=0).fit(X, y) for s in (False, True)]
    assert not same_model(*models)


@pytest.mark.parametrize("evaluation", ["primal", "naive", "dual"])
def test_training_from_cells_equals_training_from_rows(evaluation):
    X, y, weights = make_stream()
    kernel = make_kernel(X)
    rows, cells = (IKOGDClassifier(kernel=kernel, evaluation=evaluation, schedule="constant") for _ in range(2))
    rows.partial_fit(X, y, sample_weight=weights)
    cells.partial_fit_cells(kernel.apply(X), y, sample_weight=weights)
    assert np.array_equal(rows.decision_function(X), cells.decision_function(X))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("evaluation", ["primal", "naive", "dual"])
def test_the_scores_of_cells_are_those_of_their_rows(evaluation, n_classes):
    X, y = make_rows(100, n_classes)
    model = IKOGDClassifier(evaluation=evaluation, schedule="constant", **SMALL).fit(X, y)
    assert np.array_equal(model.decision_function_cells(model.kernel_.apply(X)), model.decision_function(X))


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_labels_and_probabilities_of_cells_are_those_of_their_rows(loss, n_classes):
    X, y = make_rows(100, n_classes)
    model = IKOGDClassifier(loss=loss, **SMALL).fit(X, y)
    cells = model.kernel_.apply(X)
    assert np.array_equal(model.predict_cells(cells), model.predict(X))
    assert np.array_equal(model.predict_proba_cells(cells), model.predict_proba(X))


@pytest.mark.parametrize("method", ["predict_cells", "predict_proba_cells"])
def test_cells_cannot_be_predicted_while_there_is_no_map(method):
    X, y = make_rows(20)
    with pytest.raises(NotFittedError):
        getattr(IKOGDClassifier().partial_fit(X, y), method)(np.zeros((1, 100), dtype=np.uint8))


@pytest.mark.parametrize("form", [np.int64, np.uint16, np.ndarray.tolist, np.asfortranarray], ids=lambda f: f.__name__)
def test_cells_may_be_integers_of_any_form(form):
    X, y = make_rows(100)
    kernel = make_kernel(X)
    cells = kernel.apply(X)
    same = form(cells)
    models = [IKOGDClassifier(kernel=kernel).partial_fit_cells(c, y) for c in (cells, same)]
    assert same_model(*models)


def test_dense_and_sparse_rows_teach_the_same():
    X, y = make_rows(100)
    X = np.where(X > 0, X, 0.0)
    dense, csr = (IKOGDClassifier(**SMALL).fit(form(X), y) for form in (np.asarray, sparse.csr_array))
    assert same_model(dense, csr)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_same_seed_gives_the_same_weights(n_jobs):
    X, y = make_rows(300, 3)
    models = [IKOGDClassifier(n_jobs=n, **SMALL).fit(X, y) for n in (None, n_jobs)]
    assert same_model(*models)


def test_another_seed_gives_other_weights():
    X, y = make_rows(300)
    models = [IKOGDClassifier(**SMALL | {"random_state": seed}).fit(X, y) for seed in (0, 1)]
    assert not same_model(*models)


def test_rows_that_cannot_be_mapped_leave_the_model_as_it_was_even_if_they_bring_a_new_class():
    X = np.random.default_rng(0).normal(size=(60, 3))
    model = IKOGDClassifier(scale="minmax", n_cells=8, n_initial=50, random_state=0).partial_fit(X, np.arange(60) % 2)
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="X must be dense"):
        model.partial_fit(sparse.csr_array(X), np.arange(60) % 3)
    assert np.array_equal(model.decision_function(X), before)


@pytest.mark.parametrize("options", [SMALL, {"kernel": IsolationKernel(**SMALL)}], ids=["flat", "kernel"])
def test_the_map_of_a_stream_of_data_frames_knows_their_columns(options):
    X, y, _ = make_stream()
    frame = pytest.importorskip("pandas").DataFrame(X, columns=["a", "b", "c"])
    model = IKOGDClassifier(n_initial=50, **options).partial_fit(frame, y)
    assert len(model.kernel_.apply(frame)) == len(frame)  # without a warning
    with pytest.raises(ValueError, match="feature names"):
        model.kernel_.apply(frame[["b", "a", "c"]])
