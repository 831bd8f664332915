"""Test DaskIKOGDClassifier without a cluster and without a race: what it learns, from which collections, its errors."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import isokern
from isokern import IKOGDClassifier, IsolationKernel, merge
from learning import LOSSES, assert_close, make_rows

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")
from isokern.distributed import DaskIKOGDClassifier, refining  # noqa: E402

CELLS = {"n_partitionings": 10, "n_cells": 16, "random_state": 0}
SMALL = {**CELLS, "schedule": "adagrad"}  # so that there is no race
N = 300


def blocks(X, y, size=75):
    """Return rows and labels as Dask arrays."""
    return da.from_array(X, chunks=(size, 3)), da.from_array(y, chunks=size)


def make_blocks(n_classes=2, n=N, size=75):
    """Return rows and labels, in memory and as Dask arrays."""
    X, y = make_rows(n, n_classes)
    return X, y, *blocks(X, y, size)


X, Y, ROWS, LABELS = make_blocks()


def fitted(rows=ROWS, labels=LABELS, **options):
    return DaskIKOGDClassifier(**SMALL, **options).fit(rows, labels)


def scores_of(model, X=X):
    return model.to_local().decision_function(X)


# Learning


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", LOSSES)
def test_it_learns_about_as_well_as_one_machine(loss, n_classes):
    X, y, rows, labels = make_blocks(n_classes, 2000, 250)
    local = IKOGDClassifier(**SMALL, loss=loss).fit(X[:1500], y[:1500])
    model = fitted(rows[:1500], labels[:1500], loss=loss)
    assert model.score(rows[1500:], labels[1500:]) > local.score(X[1500:], y[1500:]) - 0.03


def test_one_partition_and_one_round_equal_one_pass_on_one_machine():
    rows, labels = blocks(X, Y, N)
    model = fitted(rows, labels, n_rounds=1, n_steps=0)
    assert np.array_equal(model.kernel_.apply(X), IKOGDClassifier(**SMALL).fit(X, Y).kernel_.apply(X))
    seed = np.random.RandomState(0).randint(np.iinfo(np.int32).max, size=2)[1]
    order = np.random.default_rng([seed, 0, 0]).permutation(N)
    local = IKOGDClassifier(kernel=model.kernel_, loss="squared_hinge")
    local.partial_fit(X[order], Y[order], classes=[0, 1])
    assert np.array_equal(model.decision_function(rows).compute(), local.decision_function(X))


def test_a_round_is_the_mean_of_independently_learned_partitions():
    X, y, rows, labels = make_blocks(3)
    kernel = IsolationKernel(**CELLS).fit(X)
    model = DaskIKOGDClassifier(kernel=kernel, loss="hinge", n_rounds=1, random_state=0).fit(rows, labels)
    seed = np.random.RandomState(0).randint(np.iinfo(np.int32).max)
    parts = []
    for k in range(4):
        part = 75 * k + np.random.default_rng([seed, 0, k]).permutation(75)
        parts.append(IKOGDClassifier(kernel=kernel).partial_fit(X[part], y[part], classes=[0, 1, 2]))
    assert_close(model.decision_function(rows).compute(), merge(parts).decision_function(X))


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_steps_lower_the_loss_of_all_rows(loss):
    def total_loss(n_steps):
        model = fitted(loss=loss, n_steps=n_steps, validation_fraction=0)
        return refining.SMOOTH[loss]((2 * Y - 1) * scores_of(model))[0].mean()

    losses = [total_loss(n_steps) for n_steps in (0, 2, 8)]
    assert losses == sorted(losses, reverse=True)
    assert losses[2] < losses[0]


def test_shrinkage_keeps_weights_small_in_lbfgs_too():
    models = [fitted(shrinkage=shrinkage, n_steps=20).to_local() for shrinkage in (0.0, 0.1)]
    sizes = [np.abs(model.learned_.model.values).sum() for model in models]
    assert sizes[1] < 0.5 * sizes[0]


def test_early_stopping_on_held_out_rows_prevents_overfitting():
    X, y = make_rows(2000)
    y = np.where(np.random.default_rng(5).uniform(size=2000) < 0.3, 1 - y, y)  # so noisy that many steps overfit
    rows, labels = blocks(X, y, 250)
    options = {**SMALL, "n_partitionings": 30, "n_cells": 256, "n_steps": 30}
    stopped, went_on = (
        DaskIKOGDClassifier(**options, validation_fraction=share).fit(rows[:1500], labels[:1500]) for share in (0.2, 0)
    )
    assert stopped.score(rows[1500:], labels[1500:]) > went_on.score(rows[1500:], labels[1500:]) + 0.02


def test_probabilities_are_calibrated_on_held_out_rows():
    _, _, rows, labels = make_blocks(n=1000, size=100)
    assert fitted(rows, labels).to_local().learned_.window.n_seen == 100
    assert fitted(rows, labels, validation_fraction=0).to_local().learned_.window.n_seen == 1000


# Partitions

HOLES = (0, 75, 75, 0, 75, 75)
IS_ANY = ROWS[:, 0] > -np.inf
FRAME = dd.from_pandas(pd.DataFrame(X, columns=list("abc")).assign(y=Y), npartitions=4)
COLLECTIONS = {
    "the same": lambda: (ROWS, LABELS),
    "empty partitions": lambda: (ROWS.rechunk((HOLES, 3)), LABELS.rechunk((HOLES,))),
    "unknown lengths": lambda: (ROWS[IS_ANY], LABELS[IS_ANY]),
    "other blocks of labels": lambda: (ROWS, LABELS.rechunk(31)),
    "CSR": lambda: (ROWS.map_blocks(sparse.csr_matrix, dtype=float, meta=sparse.csr_matrix((0, 0))), LABELS),
    "frame": lambda: (FRAME[list("abc")], FRAME["y"]),
}


@pytest.mark.parametrize("form", COLLECTIONS)
def test_every_form_of_the_same_partitions_gives_the_same_model(form):
    rows, labels = COLLECTIONS[form]()
    model = fitted(rows, labels)
    assert np.array_equal(model.decision_function(rows).compute(), scores_of(fitted()))
    assert list(getattr(model.to_local(), "feature_names_in_", [])) == (["a", "b", "c"] if form == "frame" else [])


def test_a_partition_may_lack_a_class():
    X, y, _, _ = make_blocks(3)
    order = np.argsort(y, kind="stable")
    rows, labels = blocks(X[order], np.array(["a", "b", "c"])[y[order]], 60)
    model = fitted(rows, labels)
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.score(rows, labels) > 0.8


def test_rows_of_weight_zero_are_not_learned():
    only = da.from_array((Y == 1).astype(float), chunks=75)
    assert (fitted().predict(ROWS).compute() == 0).any()
    model = DaskIKOGDClassifier(**SMALL).fit(ROWS, LABELS, only)
    assert (model.predict(ROWS).compute() == 1).all()
    assert model.score(ROWS, LABELS, only) == 1.0


def test_class_weights_find_more_of_the_rare_class():
    X, _ = make_rows(1000)
    y = ((X[:, 0] + np.random.default_rng(3).normal(size=1000)) > 2).astype(int)
    rows, labels = blocks(X, y, 250)
    plain, balanced, by_dict = (
        fitted(rows, labels, loss="logistic", class_weight=weight).predict(rows).sum().compute()
        for weight in (None, "balanced", {1: 10.0})
    )
    assert min(balanced, by_dict) > 2 * plain


# Predictions


@pytest.mark.parametrize("n_classes", [2, 3])
def test_lazy_predictions_are_those_of_the_local_model(n_classes):
    X, _, rows, labels = make_blocks(n_classes)
    model = fitted(rows, labels, loss="logistic")
    local = model.to_local()
    for method in ("predict", "predict_proba", "decision_function"):
        lazy = getattr(model, method)(rows.rechunk(((100, 0, 200), 3)))
        expected = getattr(local, method)(X)
        assert (lazy.shape, lazy.dtype) == (expected.shape, expected.dtype)
        assert np.array_equal(lazy.compute(), expected)


def test_the_local_model_can_be_saved_and_learns_on(tmp_path):
    model = fitted()
    before, local = scores_of(model), model.to_local()
    isokern.save(local, tmp_path / "model")
    loaded = isokern.load(tmp_path / "model")
    assert type(loaded) is IKOGDClassifier
    assert np.array_equal(loaded.predict_proba(X), local.predict_proba(X))
    assert np.array_equal(loaded.partial_fit(X, 1 - Y).predict(X), local.partial_fit(X, 1 - Y).predict(X))
    assert np.array_equal(model.decision_function(ROWS).compute(), before)  # the local model is a copy


def test_a_pickled_model_predicts_as_before():
    model = fitted()
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(ROWS).compute(), model.predict(ROWS).compute())


# Streams


def test_partial_fit_keeps_the_map_and_continues_from_the_weights():
    X, _, rows, labels = make_blocks(n=1200, size=100)
    model = DaskIKOGDClassifier(**SMALL).partial_fit(rows[:200], labels[:200])
    cells, first = model.kernel_.apply(X), model.score(rows[800:], labels[800:])
    for begin in range(200, 800, 200):
        model.partial_fit(rows[begin : begin + 200], labels[begin : begin + 200])
    assert np.array_equal(model.kernel_.apply(X), cells)
    assert model.score(rows[800:], labels[800:]) >= first
    assert model.to_local().learned_.model.clock.rounds == 4 * 100


def test_partial_fit_takes_all_classes_from_its_first_call():
    model = DaskIKOGDClassifier(**SMALL).partial_fit(ROWS, LABELS, classes=[0, 1, 2])
    assert model.classes_.tolist() == [0, 1, 2]
    model.partial_fit(ROWS, LABELS + 1)
    with pytest.raises(ValueError, match=r"y must be of the classes \[0 1\].*got np.int64\(2\)"):
        DaskIKOGDClassifier(**SMALL).partial_fit(ROWS, LABELS).partial_fit(ROWS, LABELS + 1)


def test_an_unfitted_kernel_is_fitted_with_its_own_scaling():
    kernel = IsolationKernel(n_partitionings=5, n_cells=8, scale="minmax", random_state=3)
    model = DaskIKOGDClassifier(kernel=kernel).fit(ROWS, LABELS)
    assert np.array_equal(model.kernel_.apply(X), IsolationKernel(**kernel.get_params()).fit(X).apply(X))
    assert not hasattr(kernel, "n_cells_")


# Errors

SOME = LABELS[LABELS >= 0]  # of unknown length
MISSING = da.from_array(np.where(np.arange(N) == 100, np.nan, Y), chunks=75)
WRONG_INPUT = [
    (ROWS, LABELS * 0, ValueError, "y must have at least 2 classes"),
    (ROWS, LABELS[:250], ValueError, "y must be as long as X, 300; got 250"),
    (ROWS.rechunk((100, 3)), SOME, ValueError, r"y must have 3 partitions like X, since .*; got 4\. Make"),
    (ROWS[:299], SOME, ValueError, "partition 3: y must be as long as X, 74; got 75"),
    (ROWS, Y, TypeError, "y must be a Dask series or a Dask array of 1 dimension; got ndarray"),
    (ROWS, MISSING, ValueError, "partition 1: y must not have missing values; got NaN first in row 25"),
]


@pytest.mark.parametrize(("rows", "labels", "error", "message"), WRONG_INPUT, ids=[case[-1] for case in WRONG_INPUT])
def test_labels_that_do_not_fit_are_an_error(rows, labels, error, message):
    with pytest.raises(error, match=message):
        fitted(rows, labels)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (-1.0, r"partition [0-3]: sample_weight must be finite and at least 0"),
        (np.inf, r"partition [0-3]: sample_weight must be finite and at least 0"),
        (0.0, "sample_weight must not be zero for all rows"),
    ],
)
def test_weights_must_be_finite_not_negative_and_not_all_zero(weight, message):
    with pytest.raises(ValueError, match=message):
        DaskIKOGDClassifier(**SMALL).fit(ROWS, LABELS, da.full(N, weight, chunks=75))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_rounds": 0}, "n_rounds must be an integer of at least 1; got 0"),
        ({"n_steps": -1}, "n_steps must be an integer of at least 0; got -1"),
        ({"validation_fraction": 1.0}, "validation_fraction must be at least 0 and below 1; got 1.0"),
        ({"loss": "auto"}, "loss must be"),
        ({"n_cells": 1}, "n_cells must be"),
    ],
)
def test_parameters_are_checked_before_any_work(options, message):
    with pytest.raises(ValueError, match=message):
        DaskIKOGDClassifier(**options).fit(None, None)


def test_an_unfitted_model_and_a_clone_raise_not_fitted():
    for call in (lambda m: m.predict(ROWS), lambda m: m.score(ROWS, LABELS), lambda m: m.to_local()):
        for model in (DaskIKOGDClassifier(), clone(fitted())):
            with pytest.raises(NotFittedError):
                call(model)


def test_the_example_in_the_documentation_runs_and_learns(capsys):
    page = Path(__file__).parents[1] / "docs" / "distributed.md"
    if not page.exists():
        pytest.skip("there are no docs beside the tests")
    (example,) = re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)
    exec(compile(example, page.name, "exec"), {})
    assert float(capsys.readouterr().out) > 0.9
