"""DaskIKOGDClassifier: what it learns, from what, and what it says of mistakes. No cluster is needed here."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import check_grad
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import isokern
from isokern import IKOGDClassifier, IsolationKernel, merge
from learning import assert_close, make_rows

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")
from isokern.distributed import DaskIKOGDClassifier, refining  # noqa: E402
from isokern.distributed.rounds import Rows  # noqa: E402

SMALL = {"n_partitionings": 10, "n_cells": 16, "random_state": 0}
N = 300
LOSSES = ["hinge", "squared_hinge", "logistic"]


def make_blocks(n_classes=2, n=N, size=75):
    """Return rows and labels, in memory and as Dask arrays."""
    X, y = make_rows(n, n_classes)
    return X, y, da.from_array(X, chunks=(size, 3)), da.from_array(y, chunks=size)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", LOSSES)
def test_it_learns_about_as_well_as_one_machine(loss, n_classes):
    X, y, rows, labels = make_blocks(n_classes, 2000, 250)
    local = IKOGDClassifier(**SMALL, loss=loss).fit(X[:1500], y[:1500])
    model = DaskIKOGDClassifier(**SMALL, loss=loss).fit(rows[:1500], labels[:1500])
    assert model.score(rows[1500:], labels[1500:]) > local.score(X[1500:], y[1500:]) - 0.03


def test_one_partition_and_one_round_is_one_pass_of_one_machine():
    X, y, rows, labels = make_blocks(size=N)
    model = DaskIKOGDClassifier(**SMALL, n_rounds=1, n_steps=0).fit(rows, labels)
    assert np.array_equal(model.kernel_.apply(X), IKOGDClassifier(**SMALL).fit(X, y).kernel_.apply(X))
    seed = np.random.RandomState(0).randint(np.iinfo(np.int32).max, size=2)[1]
    order = np.random.default_rng([seed, 0, 0]).permutation(N)
    local = IKOGDClassifier(kernel=model.kernel_, loss="squared_hinge")
    local.partial_fit(X[order], y[order], classes=[0, 1])
    assert np.array_equal(model.decision_function(rows).compute(), local.decision_function(X))


def test_a_round_is_the_mean_of_what_partitions_learn_by_themselves():
    X, y, rows, labels = make_blocks(3)
    kernel = IsolationKernel(**SMALL).fit(X)
    model = DaskIKOGDClassifier(kernel=kernel, loss="hinge", n_rounds=1, random_state=0).fit(rows, labels)
    seed = np.random.RandomState(0).randint(np.iinfo(np.int32).max)
    parts = []
    for k in range(4):
        part = 75 * k + np.random.default_rng([seed, 0, k]).permutation(75)
        parts.append(IKOGDClassifier(kernel=kernel).partial_fit(X[part], y[part], classes=[0, 1, 2]))
    assert_close(model.decision_function(rows).compute(), merge(parts).decision_function(X))


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_steps_lower_the_loss_of_all_rows(loss):
    X, y, rows, labels = make_blocks()

    def total_loss(n_steps):
        model = DaskIKOGDClassifier(**SMALL, loss=loss, n_steps=n_steps, validation_fraction=0).fit(rows, labels)
        return refining.SMOOTH[loss]((2 * y - 1) * model.to_local().decision_function(X))[0].mean()

    losses = [total_loss(n_steps) for n_steps in (0, 2, 8)]
    assert losses == sorted(losses, reverse=True)
    assert losses[2] < losses[0]


@pytest.mark.parametrize("starts", [[0, 5, 10, 15], [0, 5, 7, 300]], ids=["uniform", "not uniform"])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
def test_sums_by_cell_are_those_of_a_loop(dtype, starts):
    rng = np.random.default_rng(0)
    starts, values, expected = np.array(starts), rng.normal(size=(50, 2)), np.zeros((starts[-1], 2))
    cells = np.column_stack([rng.integers(size, size=50) for size in np.minimum(np.diff(starts), 256)]).astype(dtype)
    for row, value in zip(cells, values, strict=True):
        for start, cell in zip(starts, row, strict=False):
            expected[start + int(cell)] += value
    assert np.array_equal(refining._sum_by_cell(cells, starts, values), expected)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_the_gradient_is_that_of_the_loss(loss, n_classes):
    X, y = make_rows(40, n_classes)
    kernel = IsolationKernel(n_partitionings=3, n_cells=4, random_state=0).fit(X)
    rows = Rows(kernel.apply(X), y, np.random.default_rng(0).uniform(0, 2, 40))
    problem = refining.Problem(loss, kernel.map_.starts, np.arange(n_classes), np.arange(1.0, n_classes + 1))

    def sums(w):
        return refining._loss_and_gradient(rows, w.reshape(12, problem.n_columns), problem)

    w = np.random.default_rng(1).normal(size=12 * problem.n_columns)
    assert check_grad(lambda w: sums(w)[0], lambda w: sums(w)[1].ravel(), w) < 1e-4


def test_shrinkage_keeps_weights_small_in_steps_too():
    _, _, rows, labels = make_blocks()
    sizes = [
        np.abs(
            DaskIKOGDClassifier(**SMALL, shrinkage=s, n_steps=20).fit(rows, labels).to_local().learned_.model.values
        ).sum()
        for s in (0.0, 0.1)
    ]
    assert sizes[1] < 0.5 * sizes[0]


def test_steps_end_where_held_out_rows_are_right_most_often():
    X, y = make_rows(2000)
    y = np.where(np.random.default_rng(5).uniform(size=2000) < 0.3, 1 - y, y)  # so noisy that many steps do harm
    rows, labels = da.from_array(X, chunks=(250, 3)), da.from_array(y, chunks=250)
    options = {"n_partitionings": 30, "n_cells": 256, "n_steps": 30, "random_state": 0}
    stopped, went_on = (
        DaskIKOGDClassifier(**options, validation_fraction=share).fit(rows[:1500], labels[:1500]) for share in (0.2, 0)
    )
    assert stopped.score(rows[1500:], labels[1500:]) > went_on.score(rows[1500:], labels[1500:]) + 0.02


def test_probabilities_rest_on_rows_held_out():
    _, _, rows, labels = make_blocks(n=1000, size=100)
    assert fitted(rows, labels).to_local().learned_.window.n_seen == 100
    assert fitted(rows, labels, validation_fraction=0).to_local().learned_.window.n_seen == 1000


# Partitions of all kinds


def fitted(rows, labels, **options):
    return DaskIKOGDClassifier(**SMALL, **options).fit(rows, labels)


def test_the_same_partitions_give_the_same_model():
    X, _, rows, labels = make_blocks()
    scores = [fitted(rows, labels).to_local().decision_function(X) for _ in range(2)]
    assert np.array_equal(*scores)


def test_empty_partitions_and_unknown_lengths_change_nothing():
    X, _, rows, labels = make_blocks()
    expected = fitted(rows, labels).to_local().decision_function(X)
    holes = rows.rechunk(((0, 75, 75, 0, 75, 75), 3)), labels.rechunk(((0, 75, 75, 0, 75, 75),))
    assert np.array_equal(fitted(*holes).to_local().decision_function(X), expected)
    is_any = rows[:, 0] > -np.inf
    assert np.array_equal(fitted(rows[is_any], labels[is_any]).to_local().decision_function(X), expected)


def test_labels_need_not_be_cut_as_the_rows_are():
    X, _, rows, labels = make_blocks()
    expected = fitted(rows, labels).to_local().decision_function(X)
    assert np.array_equal(fitted(rows, labels.rechunk(31)).to_local().decision_function(X), expected)


def test_sparse_blocks_and_frames_are_learned_as_dense_arrays_are():
    X, y, rows, labels = make_blocks()
    expected = fitted(rows, labels).to_local().decision_function(X)
    csr = rows.map_blocks(sparse.csr_matrix, dtype=float, meta=sparse.csr_matrix((0, 0)))
    assert np.array_equal(fitted(csr, labels).decision_function(csr).compute(), expected)
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abc")).assign(y=y), npartitions=4)
    model = fitted(frame[list("abc")], frame["y"])
    assert np.array_equal(model.decision_function(frame[list("abc")]).compute(), expected)
    assert model.to_local().feature_names_in_.tolist() == ["a", "b", "c"]


def test_a_partition_may_lack_a_class():
    X, y, _, _ = make_blocks(3)
    order = np.argsort(y, kind="stable")
    rows, labels = (
        da.from_array(X[order], chunks=(60, 3)),
        da.from_array(np.array(["a", "b", "c"])[y[order]], chunks=60),
    )
    model = fitted(rows, labels)
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.score(rows, labels) > 0.8


def test_rows_without_weight_are_not_learned():
    _, y, rows, labels = make_blocks()
    only = da.from_array((y == 1).astype(float), chunks=75)
    assert (fitted(rows, labels).predict(rows).compute() == 0).any()
    model = DaskIKOGDClassifier(**SMALL).fit(rows, labels, only)
    assert (model.predict(rows).compute() == 1).all()
    assert model.score(rows, labels, only) == 1.0


def test_balanced_classes_find_more_of_the_rare_one():
    X, y, _, _ = make_blocks(n=1000)
    y = ((X[:, 0] + np.random.default_rng(3).normal(size=1000)) > 2).astype(int)
    rows, labels = da.from_array(X, chunks=(250, 3)), da.from_array(y, chunks=250)
    found = [
        fitted(rows, labels, loss="logistic", class_weight=w).predict(rows).sum().compute() for w in (None, "balanced")
    ]
    assert found[1] > 2 * found[0]
    as_dict = fitted(rows, labels, loss="logistic", class_weight={1: 10.0})
    assert as_dict.predict(rows).sum().compute() > 2 * found[0]


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


def test_the_local_model_is_an_ordinary_one_that_is_saved_and_learns_on(tmp_path):
    X, y, rows, labels = make_blocks()
    local = fitted(rows, labels).to_local()
    isokern.save(local, tmp_path / "model")
    loaded = isokern.load(tmp_path / "model")
    assert type(loaded) is IKOGDClassifier
    assert np.array_equal(loaded.predict_proba(X), local.predict_proba(X))
    assert np.array_equal(loaded.partial_fit(X, y).predict(X), local.partial_fit(X, y).predict(X))


def test_what_the_local_model_learns_leaves_the_other_alone():
    X, y, rows, labels = make_blocks()
    model = fitted(rows, labels)
    before = model.decision_function(rows).compute()
    model.to_local().partial_fit(X, 1 - y)
    assert np.array_equal(model.decision_function(rows).compute(), before)


def test_a_pickled_model_predicts_as_before():
    _, _, rows, labels = make_blocks()
    model = fitted(rows, labels)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(rows).compute(), model.predict(rows).compute())


# Streams


def test_partial_fit_goes_on_with_the_map_and_the_weights():
    X, _, rows, labels = make_blocks(n=1200, size=100)
    model = DaskIKOGDClassifier(**SMALL).partial_fit(rows[:200], labels[:200])
    cells, first = model.kernel_.apply(X), model.score(rows[800:], labels[800:])
    for begin in range(200, 800, 200):
        model.partial_fit(rows[begin : begin + 200], labels[begin : begin + 200])
    assert np.array_equal(model.kernel_.apply(X), cells)
    assert model.score(rows[800:], labels[800:]) >= first
    assert model.to_local().learned_.model.clock.rounds == 4 * 100


def test_partial_fit_is_told_of_classes_at_the_start_or_finds_them():
    _, _, rows, labels = make_blocks()
    model = DaskIKOGDClassifier(**SMALL).partial_fit(rows, labels, classes=[0, 1, 2])
    assert model.classes_.tolist() == [0, 1, 2]
    model.partial_fit(rows, labels + 1)
    with pytest.raises(ValueError, match=r"y must be of the classes \[0 1\].*got np.int64\(2\)"):
        DaskIKOGDClassifier(**SMALL).partial_fit(rows, labels).partial_fit(rows, labels + 1)


def test_an_unfitted_kernel_is_fitted_with_its_own_scaling():
    X, _, rows, labels = make_blocks()
    kernel = IsolationKernel(n_partitionings=5, n_cells=8, scale="minmax", random_state=3)
    model = DaskIKOGDClassifier(kernel=kernel).fit(rows, labels)
    assert np.array_equal(model.kernel_.apply(X), IsolationKernel(**kernel.get_params()).fit(X).apply(X))
    assert not hasattr(kernel, "n_cells_")


# Mistakes


def test_one_class_is_an_error():
    _, _, rows, labels = make_blocks()
    with pytest.raises(ValueError, match="y must have at least 2 classes"):
        fitted(rows, labels * 0)


def test_labels_must_be_as_many_as_rows():
    _, _, rows, labels = make_blocks()
    with pytest.raises(ValueError, match="y must be as long as X, 300; got 250"):
        fitted(rows, labels[:250])
    some = labels[labels >= 0]
    with pytest.raises(ValueError, match=r"y must have the 3 partitions of X, whose lengths are unknown; got 4\. Make"):
        fitted(rows.rechunk((100, 3)), some)
    with pytest.raises(ValueError, match=r"partition 3: y must be as long as X, 74; got 75"):
        fitted(rows[:299], some)


def test_labels_of_memory_are_refused():
    _, y, rows, _ = make_blocks()
    with pytest.raises(TypeError, match="y must be a Dask series or a Dask array of 1 dimension; got ndarray"):
        fitted(rows, y)


def test_labels_that_are_missing_are_refused_and_their_partition_is_named():
    _, y, rows, _ = make_blocks()
    labels = y.astype(float)
    labels[100] = np.nan
    with pytest.raises(ValueError, match="partition 1: Input y contains NaN"):
        fitted(rows, da.from_array(labels, chunks=75))


@pytest.mark.parametrize("bad", [-1.0, np.inf])
def test_weights_must_be_finite_and_not_negative(bad):
    _, _, rows, labels = make_blocks()
    with pytest.raises(ValueError, match=r"partition [0-3]: sample_weight must be finite and at least 0"):
        DaskIKOGDClassifier(**SMALL).fit(rows, labels, da.full(N, bad, chunks=75))
    with pytest.raises(ValueError, match="sample_weight must not be zero for all rows"):
        DaskIKOGDClassifier(**SMALL).fit(rows, labels, da.zeros(N, chunks=75))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_rounds": 0}, "n_rounds must be an integer of at least 1; got 0"),
        ({"n_steps": -1}, "n_steps must be an integer of at least 0; got -1"),
        ({"validation_fraction": 1.0}, "validation_fraction must be at least 0 and below 1; got 1.0"),
        ({"loss": "squared"}, "loss must be"),
        ({"n_cells": 1}, "n_cells must be"),
    ],
)
def test_parameters_are_checked_before_any_work(options, message):
    with pytest.raises(ValueError, match=message):
        DaskIKOGDClassifier(**options).fit(None, None)


def test_an_unfitted_model_says_so():
    _, _, rows, labels = make_blocks()
    for call in (lambda m: m.predict(rows), lambda m: m.score(rows, labels), lambda m: m.to_local()):
        with pytest.raises(NotFittedError):
            call(DaskIKOGDClassifier())


def test_a_clone_is_unfitted():
    _, _, rows, labels = make_blocks()
    with pytest.raises(NotFittedError):
        clone(fitted(rows, labels)).predict(rows)


# The page


def test_the_example_of_the_page_on_dask_runs_and_learns(capsys):
    page = Path(__file__).parents[1] / "docs" / "distributed.md"
    if not page.exists():
        pytest.skip("there are no docs beside the tests")
    (example,) = re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL)
    exec(compile(example, page.name, "exec"), {})
    assert float(capsys.readouterr().out) > 0.9
