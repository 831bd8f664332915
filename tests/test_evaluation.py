"""Evaluation: what is counted when, what is learned when, and that it can be stopped and gone on with."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_friedman1
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression, SGDClassifier, SGDRegressor
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.svm import SVC, LinearSVC

from isokern import (
    IKSVC,
    AdaRakerClassifier,
    FOGDClassifier,
    IKOGDClassifier,
    IKOGDClassifierCV,
    IKOGDRegressor,
    IsolationKernel,
    NOGDClassifier,
    OGDClassifier,
)
from isokern.evaluation import Prequential, holdout, measure, prequential
from isokern.partitionings import IsolationTrees
from learning import SMALL, make_rows, same_model, stream_learner

LEARNERS = {
    "IK-OGD": stream_learner,
    "SGD": lambda: SGDClassifier(random_state=0),
    "naive Bayes": GaussianNB,
    "OGD": lambda: OGDClassifier(n_initial=50, random_state=0),
    "NOGD": lambda: NOGDClassifier(n_initial=50, n_landmarks=20, random_state=0),
    "FOGD": lambda: FOGDClassifier(n_initial=50, n_frequencies=20, random_state=0),
    "AdaRaker": lambda: AdaRakerClassifier(n_directions=5, random_state=0),
}


def cut(X, y, size=30):
    """Return rows and labels in blocks; labels may be None."""
    return [(X[i : i + size], None if y is None else y[i : i + size]) for i in range(0, X.shape[0], size)]


def make_blocks(n=240, n_classes=2, size=30):
    return cut(*make_rows(n, n_classes), size)


def run_loop(learner, blocks, delay=0, classes=None):
    """Return (rows seen, rows right) after each block, by predict and partial_fit alone; the first is only learned."""
    n_seen = n_correct = 0
    counts, late = [], []
    for X, y in blocks:
        if hasattr(learner, "classes_"):
            n_seen, n_correct = n_seen + len(y), n_correct + int(np.sum(learner.predict(X) == y))
        counts.append((n_seen, n_correct))
        late.append((X, y))
        if len(late) > delay:
            learner.partial_fit(*late.pop(0), **({} if hasattr(learner, "classes_") else {"classes": classes}))
    for X, y in late:
        learner.partial_fit(X, y, classes=classes)
    return counts


class CountedSides:
    """A partitioning of two cells, that counts the rows it is asked about."""

    n_cells_ = 2
    rows_applied = 0

    def fit(self, X, rng):
        self.edge = float(X[rng.integers(len(X)), 0])
        return self

    def apply(self, X):
        CountedSides.rows_applied += X.shape[0]
        return (X[:, 0] > self.edge).astype(int)


@pytest.fixture
def counted_rows(monkeypatch):
    """Return the class that counts, at zero."""
    monkeypatch.setattr(CountedSides, "rows_applied", 0)
    return CountedSides


# -- what a record says


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)
def test_it_is_the_loop_of_predict_and_partial_fit(make, n_classes):
    blocks, classes = make_blocks(n_classes=n_classes), list(range(n_classes))
    records = list(prequential(make(), blocks, classes=classes))
    assert [(r.n_seen, r.n_correct) for r in records] == run_loop(make(), blocks, classes=classes)


@pytest.mark.parametrize("delay", [0, 1, 3, 20])
@pytest.mark.parametrize("name", ["IK-OGD", "SGD"])
def test_labels_may_be_late(name, delay):
    blocks, (learner, twin) = make_blocks(), (LEARNERS[name]() for _ in range(2))
    records = list(prequential(learner, blocks, classes=[0, 1], delay=delay))
    assert [(r.n_seen, r.n_correct) for r in records] == run_loop(twin, blocks, delay, [0, 1])
    X, _ = make_rows(240)
    assert np.array_equal(learner.decision_function(X), twin.decision_function(X))


def test_accuracies_are_shares_of_the_rows_so_far_and_of_the_block():
    records = list(prequential(stream_learner(), make_blocks()))[1:]
    n_correct = np.array([r.n_correct for r in records])
    assert [r.accuracy for r in records] == (n_correct / np.arange(30, 240, 30)).tolist()
    assert [r.block_accuracy for r in records] == (np.diff(n_correct, prepend=0) / 30).tolist()


def test_predictions_are_those_made_before_the_block_was_learned():
    blocks, twin = make_blocks(), stream_learner()
    for (X, y), record in zip(blocks, prequential(stream_learner(), blocks), strict=True):
        if record.predictions is not None:
            assert np.array_equal(record.predictions, twin.predict(X))
        twin.partial_fit(X, y)


def test_a_learner_that_knows_nothing_yet_only_learns():
    first, second = list(prequential(GaussianNB(), make_blocks(60), classes=[0, 1]))
    assert (first.n_seen, first.n_correct, first.predictions) == (0, 0, None)
    assert np.isnan([first.accuracy, first.block_accuracy]).all()
    assert second.n_seen == second.n_labelled == 30


def test_a_learner_that_has_been_fitted_predicts_the_first_block():
    X, y = make_rows(60)
    (record,) = prequential(GaussianNB().fit(X[:30], y[:30]), [(X[30:], y[30:])])
    assert record.n_seen == 30


def test_a_record_as_a_dict_is_plain_numbers():
    *_, record = prequential(stream_learner(), make_blocks(), metrics=["kappa", "auc"])
    numbers = record.as_dict()
    assert json.loads(json.dumps(numbers)) == numbers
    assert list(numbers) == [
        *("n_seen", "n_labelled", "n_correct", "accuracy", "block_accuracy"),
        *("map_seconds", "predict_seconds", "learn_seconds", "n_support", "kappa", "auc"),
    ]


def test_support_vectors_are_counted_where_the_learner_has_them():
    learner = stream_learner()
    assert [r.n_support for r in prequential(learner, make_blocks())][-1] == learner.n_support_ > 0
    assert [r.n_support for r in prequential(GaussianNB(), make_blocks(60), classes=[0, 1])] == [None, None]
    X, y = make_rows(60)
    assert holdout(SVC(), (X, y), (X, y)).n_support is None  # it has one number for each class


def test_times_are_those_of_the_block_and_not_part_of_what_is_equal():
    one, other = (list(prequential(stream_learner(), make_blocks())) for _ in range(2))
    assert one[1:] == other[1:]  # the first has NaN for its accuracy
    assert one[0].map_seconds == 0
    assert all(min(r.map_seconds, r.predict_seconds, r.learn_seconds) > 0 for r in one[3:])


# -- mapping


@pytest.mark.parametrize("delay", [0, 1, 3])
def test_each_row_is_mapped_once(counted_rows, delay):
    learner = IKOGDClassifier(counted_rows(), n_partitionings=1, n_initial=50, random_state=0)
    metrics = ["auc", "log_loss", "f1"]
    for _ in prequential(learner, make_blocks(), delay=delay, metrics=metrics):
        pass
    assert counted_rows.rows_applied == 240


def test_each_row_without_a_label_is_mapped_once(counted_rows):
    learner = IKOGDClassifier(counted_rows(), n_partitionings=1, n_initial=50, random_state=0)
    X, y = make_rows(240)
    labels = np.where(np.arange(240) % 3 == 0, np.nan, y)
    run = Prequential(learner)
    for block in cut(X, labels):
        run.step(*block)
    n_held_without_label = sum(np.isnan(labels[:90]))  # predicted as the commonest class, which takes no map
    assert counted_rows.rows_applied == 240 - n_held_without_label


def test_a_regressor_s_rows_are_mapped_once(counted_rows):
    learner = IKOGDRegressor(counted_rows(), n_partitionings=1, n_initial=50, random_state=0)
    list(prequential(learner, cut(*make_friedman1(240, random_state=0)), delay=1))
    assert counted_rows.rows_applied == 240


# -- missing labels

FORMS_OF_MISSING = {
    "NaN": lambda y, gone: np.where(gone, np.nan, y),
    "list with None": lambda y, gone: [None if g else int(label) for label, g in zip(y, gone, strict=True)],
    "list of strings with NaN": lambda y, gone: [float("nan") if g else "ab"[k] for k, g in zip(y, gone, strict=True)],
    "objects": lambda y, gone: np.where(gone, None, np.array(["a", "b"], dtype=object)[y]),
    "pandas": lambda y, gone: pytest.importorskip("pandas").Series(y, dtype="Int64").mask(gone),
    "pandas strings": lambda y, gone: pytest.importorskip("pandas").Series(np.array(["a", "b"])[y]).mask(gone),
    "polars": lambda y, gone: pytest.importorskip("polars").Series([None if g else int(k) for k, g in zip(y, gone)]),  # noqa: B905
}


@pytest.mark.parametrize("form", FORMS_OF_MISSING.values(), ids=FORMS_OF_MISSING)
def test_rows_without_a_label_are_predicted_but_neither_counted_nor_learned(form):
    X, y = make_rows(240)
    gone = np.arange(240) % 4 == 1
    learner, twin = stream_learner(), stream_learner()
    blocks = [(X[i : i + 30], form(y[i : i + 30], gone[i : i + 30])) for i in range(0, 240, 30)]
    records = list(prequential(learner, blocks, metrics="kappa"))
    expected = list(prequential(twin, [(X[part][~gone[part]], y[part][~gone[part]]) for part in slices(240)]))
    assert [r.n_correct for r in records] == [r.n_correct for r in expected]
    assert [r.n_labelled for r in records] == [r.n_seen for r in expected]
    assert [r.n_seen for r in records] == list(range(0, 240, 30))
    assert same_model(learner, twin)


def slices(n, size=30):
    return [slice(i, i + size) for i in range(0, n, size)]


def test_a_block_may_have_no_labels_at_all():
    blocks = make_blocks()
    blocks[4] = (blocks[4][0], None)
    records = list(prequential(stream_learner(), blocks, delay=1))
    assert len(records[4].predictions) == 30
    assert np.isnan(records[4].block_accuracy)
    assert records[-1].n_seen == records[-1].n_labelled + 30 == 180


def test_a_learner_that_knows_nothing_can_meet_a_block_without_labels():
    X, y = make_rows(60)
    records = list(prequential(stream_learner(), [(X[:30], None), (X[30:], y[30:])]))
    assert [r.predictions for r in records] == [None, None]


# -- forms of input


@pytest.mark.parametrize("form", ["csr_array", "csc_matrix", "coo_array"])
def test_rows_may_be_sparse(form):
    X, y = make_rows(240)
    blocks = [(getattr(sparse, form)(rows), labels) for rows, labels in cut(X, y)]
    for delay in (0, 2):
        assert (
            list(prequential(stream_learner(), blocks, delay=delay))[1 + delay :]
            == (list(prequential(stream_learner(), cut(X, y), delay=delay))[1 + delay :])
        )


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("name", ["IK-OGD", "SGD"])
def test_rows_may_be_a_data_frame(library, name):
    frames = pytest.importorskip(library)
    X, y = make_rows(240)
    labels = np.where(np.arange(240) % 5 == 0, np.nan, y)
    blocks = [(frames.DataFrame(dict(zip("abc", rows.T, strict=True))), part) for rows, part in cut(X, labels)]
    records = list(prequential(LEARNERS[name](), blocks, classes=[0, 1], delay=1))
    expected = list(prequential(LEARNERS[name](), cut(X, labels), classes=[0, 1], delay=1))
    assert [r.n_correct for r in records] == [r.n_correct for r in expected]


def test_rows_and_labels_may_be_lists():
    blocks = [(X.tolist(), y.tolist()) for X, y in make_blocks()]
    assert list(prequential(stream_learner(), blocks))[1:] == list(prequential(stream_learner(), make_blocks()))[1:]


def test_blocks_may_be_single_rows():
    blocks = make_blocks(120, size=1)
    records = list(prequential(stream_learner(), blocks, delay=2, metrics="f1"))
    assert [(r.n_seen, r.n_correct) for r in records] == run_loop(stream_learner(), blocks, delay=2)


def test_empty_blocks_are_left_out():
    blocks = make_blocks()
    empty = (np.empty((0, 3)), np.empty(0))
    records = list(prequential(stream_learner(), [empty, *blocks[:4], empty, empty, *blocks[4:]], delay=1))
    assert records[2:] == list(prequential(stream_learner(), blocks, delay=1))[2:]


def test_an_empty_step_changes_nothing():
    run = Prequential(stream_learner(), delay=1)
    before = [run.step(X, y) for X, y in make_blocks()][-1]
    after = run.step(np.empty((0, 3)), [])
    assert (after.n_seen, after.accuracy, after.predictions) == (before.n_seen, before.accuracy, None)


def test_labels_may_be_strings_and_new_classes_may_come_later():
    X, y = make_rows(240, 3)
    names = np.array(["one", "three", "twenty"])[y]
    names[:100] = "one"
    records = list(prequential(stream_learner(), cut(X, names), metrics=["f1", "kappa", "balanced_accuracy"]))
    assert [(r.n_seen, r.n_correct) for r in records] == run_loop(stream_learner(), cut(X, names))
    assert 0 < records[-1].metrics["kappa"] < 1


def test_blocks_that_wait_may_be_changed_by_their_owner():
    buffer, labels = np.empty((30, 3)), np.empty(30)

    def reused():
        for X, y in make_blocks():
            buffer[:], labels[:] = X, y
            yield buffer, labels

    for name in ("IK-OGD", "SGD"):
        records = list(prequential(LEARNERS[name](), reused(), classes=[0, 1], delay=2))
        expected = list(prequential(LEARNERS[name](), make_blocks(), classes=[0, 1], delay=2))
        assert [r.n_correct for r in records] == [r.n_correct for r in expected]


# -- stopping and going on

STOPPED = {
    "IK-OGD": (stream_learner, {"metrics": ["f1", "kappa", "auc", "average_precision", "log_loss"]}),
    "IK-OGD, late labels": (stream_learner, {"delay": 3, "metrics": ["log_loss"]}),
    "naive Bayes": (GaussianNB, {"delay": 2, "classes": [0, 1], "metrics": ["auc", "balanced_accuracy"]}),
    "regressor": (lambda: IKOGDRegressor(n_initial=50, **SMALL), {"delay": 1}),
}


@pytest.mark.parametrize(("make", "options"), STOPPED.values(), ids=STOPPED)
@pytest.mark.parametrize("form", ["array", "csr", "data frame"])
def test_it_can_be_stopped_after_any_step(make, options, form):
    blocks = [(in_form(X, form), np.where(np.arange(30) % 7 == 0, np.nan, y)) for X, y in make_blocks()]
    if form == "csr" and make is GaussianNB:
        make = BernoulliNB
    whole, stopped = Prequential(make(), **options), Prequential(make(), **options)
    for X, y in blocks:
        expected = whole.step(X, y)
        learner, state = pickle.loads(pickle.dumps((stopped.learner, stopped.state())))
        stopped = Prequential(learner, **options).restore(state)
        assert_same_record(stopped.step(X, y), expected)
    X = blocks[0][0]
    assert np.array_equal(stopped.finish().learner.predict(X), whole.finish().learner.predict(X))


def in_form(X, form):
    if form == "data frame":
        return pytest.importorskip("pandas").DataFrame(X, columns=["a", "b", "c"])
    return sparse.csr_array(X) if form == "csr" else X


def assert_same_record(one, other):
    times = {"map_seconds": 0, "predict_seconds": 0, "learn_seconds": 0}
    np.testing.assert_equal(one.as_dict() | times, other.as_dict() | times)
    np.testing.assert_equal(one.predictions, other.predictions)


def test_a_state_is_of_plain_values_and_arrays():
    def check(value):
        if isinstance(value, dict):
            assert all(isinstance(key, str) for key in value)
            value = list(value.values())
        if isinstance(value, list):
            for part in value:
                check(part)
        elif isinstance(value, np.ndarray):
            assert value.dtype.kind != "O"
        else:
            assert isinstance(value, int | float | str | sparse.csr_array)

    for form in ("array", "csr", "data frame"):
        run = Prequential(stream_learner(), delay=3, metrics=["f1", "log_loss", "auc"])
        for X, y in make_blocks():
            run.step(in_form(X, form), np.array(["a", "b"], dtype=object)[y])
            check(run.state())


def test_a_state_does_not_change_while_the_evaluation_goes_on():
    run = Prequential(stream_learner(), delay=1, metrics=["f1", "log_loss", "auc"])
    blocks = make_blocks()
    for X, y in blocks[:4]:
        run.step(X, y)
    state = run.state()
    before = copy.deepcopy(state)
    for X, y in blocks[4:]:
        run.step(X, y)
    np.testing.assert_equal(state, before)


@pytest.mark.parametrize(("name", "value"), [("delay", 2), ("metrics", ["f1"])])
def test_an_evaluation_goes_on_only_as_it_was(name, value):
    state = Prequential(stream_learner(), delay=1, metrics=["kappa"]).state()
    options = {"delay": 1, "metrics": ["kappa"]} | {name: value}
    with pytest.raises(ValueError, match=f"{name} must be"):
        Prequential(stream_learner(), **options).restore(state)


def test_a_block_that_cannot_be_learned_leaves_the_evaluation_as_it_was():
    run = Prequential(LEARNERS["SGD"](), classes=[0, 1], metrics=["kappa"])
    blocks = make_blocks()
    for X, y in blocks[:3]:
        run.step(X, y)
    before = run.state()
    with pytest.raises(ValueError, match="classes"):
        run.step(blocks[3][0], np.full(30, 7))
    np.testing.assert_equal(run.state(), before)


# -- regressors


def test_a_regressor_has_errors_in_place_of_accuracy():
    X, y = make_friedman1(240, random_state=0)
    *_, record = prequential(SGDRegressor(random_state=0), cut(X, y))
    assert (record.n_correct, record.accuracy, record.block_accuracy) == (None, None, None)
    assert list(record.metrics) == ["mae", "rmse", "r2"]


def test_a_regressor_is_held_out_as_well():
    X, y = make_friedman1(240, random_state=0)
    record = holdout(IKOGDRegressor(**SMALL), (X[:120], y[:120]), (X[120:], y[120:]))
    assert record.accuracy is None
    assert record.metrics["mae"] == pytest.approx(np.abs(record.predictions - y[120:]).mean())


# -- rows held out


def test_holdout_fits_and_predicts():
    X, y = make_rows(240)
    record = holdout(IKOGDClassifier(**SMALL), (X[:150], y[:150]), (X[150:], y[150:]))
    twin = IKOGDClassifier(**SMALL).fit(X[:150], y[:150])
    assert np.array_equal(record.predictions, twin.predict(X[150:]))
    assert record.accuracy == twin.score(X[150:], y[150:])
    assert (record.n_train, record.n_test, record.n_support) == (150, 90, twin.n_support_)
    assert min(record.fit_seconds, record.predict_seconds) > 0


@pytest.mark.parametrize("make", [IKSVC, LinearSVC, RandomForestClassifier])
def test_holdout_takes_learners_of_batches(make):
    X, y = make_rows(240)
    learner = make(random_state=0)
    record = holdout(learner, (X[:150], y[:150]), (X[150:], y[150:]), metrics=["auc"])
    assert record.accuracy == learner.score(X[150:], y[150:])
    assert json.loads(json.dumps(record.as_dict()))["auc"] == record.metrics["auc"] > 0.5


def test_holdout_learns_and_measures_rows_with_labels():
    X, y = make_rows(240)
    gone = np.arange(240) % 3 == 0
    labels = np.where(gone, np.nan, y)
    record = holdout(GaussianNB(), (X[:150], labels[:150]), (X[150:], labels[150:]))
    twin = GaussianNB().fit(X[:150][~gone[:150]], y[:150][~gone[:150]])
    assert record.accuracy == twin.score(X[150:][~gone[150:]], y[150:][~gone[150:]])
    assert (record.n_train, record.n_test) == (100, 90)


def test_holdout_maps_each_test_row_once(counted_rows):
    X, y = make_rows(240)
    kernel = IsolationKernel(counted_rows(), n_partitionings=1, random_state=0).fit(X[:10])
    counted_rows.rows_applied = 0
    learner = IKOGDClassifier(kernel=kernel)
    holdout(learner, (X[:150], y[:150]), (X[150:], y[150:]), metrics=["auc", "log_loss"])
    assert counted_rows.rows_applied == 240


# -- a search, once it has chosen


@pytest.fixture
def mapped_rows(monkeypatch):
    """Return a list to which every map adds how many rows it was given."""
    mapped, apply = [], IsolationTrees.apply

    def counted(trees, rows, cells, threads):
        mapped.append(len(cells))
        apply(trees, rows, cells, threads)

    monkeypatch.setattr(IsolationTrees, "apply", counted)
    return mapped


def chosen():
    """Return a search that has chosen from the first 60 rows, and blocks of the others."""
    X, y = make_rows(240)
    search = IKOGDClassifierCV(n_partitionings=6, n_cells=(4, 8), cv=3, random_state=0)
    return search.fit(X[:60], y[:60]), cut(X[60:], y[60:])


@pytest.mark.parametrize("delay", [0, 2])
def test_a_search_s_rows_are_mapped_once(mapped_rows, delay):
    search, blocks = chosen()
    mapped_rows.clear()
    list(prequential(search, blocks, delay=delay, metrics=["auc", "log_loss", "f1"]))
    assert mapped_rows == [30] * 6


@pytest.mark.parametrize("delay", [0, 2])
def test_a_search_goes_on_as_what_it_has_chosen(delay):
    (search, blocks), (twin, _) = chosen(), chosen()
    records = list(prequential(search, blocks, delay=delay, metrics="log_loss"))
    assert records == list(prequential(twin.best_estimator_, blocks, delay=delay, metrics="log_loss"))
    assert records[0].n_seen == 30
    assert same_model(search.best_estimator_, twin.best_estimator_)


def test_a_search_that_has_not_chosen_says_so():
    search = IKOGDClassifierCV(random_state=0)
    with pytest.raises(NotFittedError, match="call fit first"):
        list(prequential(search, make_blocks()))


# -- measuring


def test_a_learner_that_is_measured_stays_as_it_is():
    X, y = make_rows(240)
    learner = stream_learner().fit(X, y)
    before = copy.deepcopy(learner)
    list(measure(learner, cut(X, y), metrics="auc"))
    assert same_model(learner, before)


MEASURED = {
    "IK-OGD": stream_learner,
    "IK-SVM": lambda: IKSVC(random_state=0),
    "naive Bayes": GaussianNB,
    "search": lambda: chosen()[0],
}


@pytest.mark.parametrize("make", MEASURED.values(), ids=MEASURED)
def test_it_measures_what_holdout_measures(make):
    X, y = make_rows(240)
    learner = make().fit(X, y)
    *_, last = measure(learner, cut(X, y), metrics=["f1", "kappa"])
    assert last.n_seen == last.n_labelled == 240
    assert last.accuracy == learner.score(X, y)
    expected = holdout(make(), (X, y), (X, y), metrics=["f1", "kappa"])
    assert last.metrics == pytest.approx(expected.metrics)


def test_its_predictions_are_those_of_the_learner():
    X, y = make_rows(240)
    learner = stream_learner().fit(X, y)
    records = list(measure(learner, cut(X, None)))
    assert np.array_equal(np.concatenate([record.predictions for record in records]), learner.predict(X))
    assert [(record.n_seen, record.n_labelled) for record in records] == [(n, 0) for n in range(30, 241, 30)]


def test_rows_without_a_label_are_not_measured():
    X, y = make_rows(240)
    learner, gone = stream_learner().fit(X, y), np.arange(240) % 3 == 0
    *_, last = measure(learner, cut(X, np.where(gone, np.nan, y)))
    assert (last.n_seen, last.n_labelled) == (240, 160)
    assert last.accuracy == learner.score(X[~gone], y[~gone])


@pytest.mark.parametrize("make", [stream_learner, lambda: chosen()[0]], ids=["IK-OGD", "search"])
def test_each_row_that_is_measured_is_mapped_once(make, mapped_rows):
    X, y = make_rows(240)
    learner = make().fit(X, y)
    mapped_rows.clear()
    list(measure(learner, cut(X, y), metrics=["auc", "log_loss", "f1"]))
    assert mapped_rows == [30] * 8


def test_a_regressor_is_measured_as_well():
    X, y = make_friedman1(240, random_state=0)
    learner = IKOGDRegressor(random_state=0).fit(X, y)
    *_, last = measure(learner, cut(X, y))
    assert last.metrics["r2"] == pytest.approx(learner.score(X, y))
    assert last.accuracy is None


def test_a_learner_that_is_not_fitted_cannot_be_measured():
    with pytest.raises(NotFittedError, match="learner must be fitted; got IKOGDClassifier that is not"):
        next(measure(stream_learner(), make_blocks()))


def test_what_cannot_predict_cannot_be_measured():
    with pytest.raises(ValueError, match="learner must have predict"):
        measure(IsolationKernel(), make_blocks())


# -- wrong arguments

BAD_ARGUMENTS = {
    "learner without partial_fit": (LinearSVC(), {}, "learner must have partial_fit or learn_one; got LinearSVC"),
    "negative delay": (GaussianNB(), {"delay": -1}, "delay must be an integer of at least 0; got -1"),
    "unknown metric": (GaussianNB(), {"metrics": "f2"}, "metrics must be .*for GaussianNB, a classifier; got 'f2'"),
    "classes of a regressor": (SGDRegressor(), {"classes": [0, 1]}, "classes must be None for a regressor"),
    "regressor's metric": (GaussianNB(), {"metrics": ["mae"]}, '"balanced_accuracy", "f1".* got \'mae\''),
    "classifier's metric": (SGDRegressor(), {"metrics": ["f1"]}, '"mae", "rmse" or "r2" for SGDRegressor'),
    "no probabilities": (SGDClassifier(), {"metrics": ["log_loss"]}, "SGDClassifier, which has no predict_proba"),
}


@pytest.mark.parametrize(("learner", "options", "message"), BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS)
def test_wrong_arguments_are_told_at_once(learner, options, message):
    with pytest.raises(ValueError, match=message):
        prequential(learner, [], **options)


@pytest.mark.parametrize("block", [np.zeros((3, 2)), (np.zeros((3, 2)),), "ab", {"X": 1, "y": 2}])
def test_a_block_that_is_no_pair_is_an_error(block):
    with pytest.raises(ValueError, match=r"must be a pair \(X, y\); got"):
        list(prequential(GaussianNB(), [block]))
    with pytest.raises(ValueError, match=r"train must be a pair"):
        holdout(GaussianNB(), block, block)


def test_holdout_needs_something_that_learns():
    with pytest.raises(ValueError, match="learner must have fit, partial_fit or learn_one; got object"):
        holdout(object(), ([[1.0]], [0]), ([[1.0]], [0]))


@pytest.mark.parametrize("n_labels", [29, 31])
def test_rows_and_labels_must_be_as_many(n_labels):
    X, _ = make_rows(30)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        list(prequential(stream_learner(), [(X, np.zeros(n_labels))]))


def test_a_learner_that_needs_classes_says_so():
    with pytest.raises(ValueError, match="classes must be passed"):
        list(prequential(GaussianNB(), make_blocks()))


def test_logistic_regression_s_probabilities_are_measured():
    X, y = make_rows(240)
    assert holdout(LogisticRegression(), (X, y), (X, y), metrics="log_loss").metrics["log_loss"] < np.log(2)
