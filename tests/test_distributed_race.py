"""Test the race of DaskIKOGDClassifier: who wins, by which errors, and the model of the winner."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

import isokern
from isokern import IKOGDClassifier, IsolationKernel
from isokern.learners import candidates
from isokern.learners.candidates import CANDIDATES, candidates_of
from isokern.learners.classes import ClassBook
from isokern.learners.kernel_source import take_columns
from isokern.learners.one_vs_rest import OneVsRest
from learning import LOSSES, make_rows

da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")
from isokern.distributed import DaskIKOGDClassifier, classifier, rounds  # noqa: E402
from isokern.distributed.blocks import Block, Rows  # noqa: E402

SMALL = {"n_partitionings": 6, "random_state": 0}
ONLINE = {**SMALL, "n_steps": 0, "n_rounds": 1}
NAMES = [candidate._replace(loss="").name for candidate in CANDIDATES]
N = 300


@pytest.fixture(autouse=True)
def several_scales(monkeypatch):
    """Give few rows as many cells as 1,000 rows get, so that there are three scales."""
    monkeypatch.setattr(candidates, "auto_n_cells", lambda n_rows: 32)


@pytest.fixture(params=range(len(CANDIDATES)), ids=NAMES)
def candidate(request, monkeypatch):
    """Leave one candidate."""
    monkeypatch.setattr(candidates, "CANDIDATES", (CANDIDATES[request.param],))
    return CANDIDATES[request.param]._replace(loss="")


def blocks(X, y, size=75, weights=None):
    columns = [da.from_array(column, chunks=size) for column in (y, weights) if column is not None]
    return da.from_array(X, chunks=(size, X.shape[1])), *columns


def untrained(model, y, **options):
    """Return a local learner with the map, the linear term and the candidates of a model."""
    learner = IKOGDClassifier(**SMALL, loss="squared_hinge", shuffle=False, n_passes=1, **options)
    take_columns(learner, model.kernel_)
    left = candidates_of(learner, model.kernel_)
    learner.begin(ClassBook.of_all(y, takes_new=False), model.kernel_, left, model.to_local().linear_term_)
    return learner


def orders_of(sizes):
    """Return the rows of each race in the order of ``random_state=0``; a race has ``sizes`` rows."""
    seed = np.random.RandomState(0).randint(np.iinfo(np.int32).max, size=2)[1]
    firsts = np.cumsum([0, *sizes])
    return [
        first + np.random.default_rng([seed, 0, k]).permutation(n)
        for k, (first, n) in enumerate(zip(firsts, sizes, strict=False))
    ]


X, Y = make_rows(N, 3)
CLEAR = np.searchsorted(np.quantile(X[:, 0], [1 / 3, 2 / 3]), X[:, 0])  # without noise
WEIGHTS = np.random.default_rng(5).uniform(0, 3, N)


# The decision


@pytest.mark.parametrize(("raced_rows", "sizes"), [(75, [75] * 4), (150, [150] * 2), (20_000, [300])])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_errors_are_the_sums_over_races_of_one_or_more_partitions(raced_rows, sizes, class_weight, monkeypatch):
    monkeypatch.setattr(rounds, "RACED_ROWS", raced_rows)
    model = DaskIKOGDClassifier(**ONLINE, class_weight=class_weight).fit(*blocks(X, Y, weights=WEIGHTS))
    total = np.zeros(len(NAMES) + 1)
    for order in orders_of(sizes):
        learner = untrained(model, Y, class_weight=class_weight)
        learner._learn(learner._mapped(X[order]), Y[order], WEIGHTS[order])
        total += learner.learned_.errors
    np.testing.assert_allclose(model.selection_["errors"], total[:-1] / total[-1], rtol=1e-12)
    assert model.selection_["leader"] == NAMES[total[:-1].argmin()]
    assert model.selection_["running"] == [model.selection_["leader"]]
    assert len(np.unique(total)) > 4


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [
        ([10], [[0]]),
        ([30, 40, 20], [[0, 1, 2]]),
        ([100, 100, 500], [[0], [1], [2]]),
        ([50, 50, 50, 50], [[0, 1], [2, 3]]),
        ([1, 1000, 1], [[0, 1], [2]]),
    ],
)
def test_small_neighbouring_partitions_race_together(sizes, groups, monkeypatch):
    monkeypatch.setattr(rounds, "RACED_ROWS", 100)
    assert rounds._groups(sizes) == groups


def test_at_most_so_many_random_rows_of_a_partition_race(monkeypatch):
    monkeypatch.setattr(rounds, "RACED_ROWS", 40)
    model = DaskIKOGDClassifier(**ONLINE).fit(*blocks(X, Y, N))
    shares = model.selection_["errors"] * 40
    np.testing.assert_allclose(shares, np.rint(shares), atol=1e-9)  # whole numbers of 40 rows
    block = Block(Rows(None, None, np.arange(N), None), None)
    raced = rounds._raced_rows(block, 0, rounds.Lesson(None, None, (1, 0), True))
    assert len(set(raced.labels)) == 40
    assert raced.labels.max() > 200


def chessboard():
    X = np.random.default_rng(0).uniform(0, 4, (2000, 2))
    return X, (np.floor(X).sum(axis=1) % 2).astype(int)


def text():
    rng = np.random.default_rng(0)
    X = sparse.random_array((2000, 400), density=0.03, rng=rng, format="csr")
    return X, (X @ rng.normal(size=400) > 0).astype(int)


@pytest.mark.parametrize(("make", "has_cells"), [(chessboard, True), (text, False)], ids=["chessboard", "text"])
def test_the_winner_of_clear_cases_is_that_of_one_machine(make, has_cells):
    X, y = make()
    how = {"n_partitionings": 20, "random_state": 0}
    local = IKOGDClassifier(loss="squared_hinge", column_weights=None, **how).fit(X[:1500], y[:1500])
    if sparse.issparse(X):
        X = da.concatenate(
            [da.from_array(sparse.csr_matrix(X[k : k + 250]), chunks=(250, 400)) for k in range(0, 2000, 250)]
        )
    rows, labels = X if isinstance(X, da.Array) else da.from_array(X, chunks=(250, 2)), da.from_array(y, chunks=250)
    model = DaskIKOGDClassifier(**how).fit(rows[:1500], labels[:1500])
    assert model.selection_["leader"] == local.selection_["leader"]
    assert ("cells" in model.selection_["leader"]) == has_cells
    assert model.score(rows[1500:], labels[1500:]) > 0.8


def test_one_partition_and_one_round_are_the_race_of_one_machine():
    model = DaskIKOGDClassifier(**ONLINE).fit(*blocks(X, Y, N))
    (order,), local = orders_of([N]), untrained(model, Y)
    local._learn_passes(local._mapped(X[order]), Y[order], None, np.random.RandomState(0))
    assert np.array_equal(model.to_local().decision_function(X), local.decision_function(X))
    assert np.array_equal(model.to_local().predict_proba(X), local.predict_proba(X))
    np.testing.assert_array_equal(model.selection_["errors"], local.selection_["errors"])
    assert model.selection_["leader"] == local.selection_["leader"]


def test_the_map_is_that_of_one_machine():
    local = IKOGDClassifier(column_weights=None, **SMALL).fit(X, Y)
    model = DaskIKOGDClassifier(**ONLINE).fit(*blocks(X, Y))
    assert (local.kernel_.n_cells_, local.kernel_.n_scales_) == (64, 3)
    assert np.array_equal(model.kernel_.apply(X), local.kernel_.apply(X))


def test_a_limit_of_size_leaves_fewer_candidates_and_cells():
    with pytest.warns(UserWarning, match="16 cells per partitioning instead of 64"):
        model = DaskIKOGDClassifier(**ONLINE, max_model_size=5000).fit(*blocks(X, Y))
    assert model.kernel_.n_cells_ == 16
    assert np.isnan(model.selection_["errors"]).sum() > 1
    assert not np.isnan(model.selection_["errors"]).all()


# The model of the winner


def test_every_winner_predicts_and_is_pickled_saved_and_taught_like_a_local_model(candidate, tmp_path):
    rows, labels = blocks(X, Y)
    model = DaskIKOGDClassifier(**SMALL, n_steps=3).fit(rows, labels)
    assert model.selection_["leader"] == candidate.name
    local = model.to_local()
    for method in ("predict", "predict_proba", "decision_function"):
        assert np.array_equal(getattr(model, method)(rows).compute(), getattr(local, method)(X))
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_proba(rows).compute(), local.predict_proba(X))
    isokern.save(local, tmp_path / "model")
    loaded = isokern.load(tmp_path / "model")
    assert np.array_equal(loaded.predict_proba(X), local.predict_proba(X))
    before = model.decision_function(rows).compute()
    assert np.array_equal(*(each.partial_fit(X, 2 - Y).predict_proba(X) for each in (loaded, local)))
    assert np.array_equal(model.decision_function(rows).compute(), before)  # the local model is a copy
    assert not np.array_equal(local.decision_function(X), before)


@pytest.mark.parametrize("loss", LOSSES)
def test_it_learns_about_as_well_as_one_machine(loss):
    X, y = make_rows(2000)
    local = IKOGDClassifier(**SMALL, loss=loss).fit(X[:1500], y[:1500])
    model = DaskIKOGDClassifier(**SMALL, loss=loss).fit(*blocks(X[:1500], y[:1500], 250))
    assert model.score(*blocks(X[1500:], y[1500:])) > local.score(X[1500:], y[1500:]) - 0.03


def test_probabilities_are_calibrated_on_held_out_rows():
    X, y = make_rows(1000)
    learned = DaskIKOGDClassifier(**SMALL).fit(*blocks(X, y, 100)).to_local().learned_
    assert [window.n_seen for window in learned.windows] == [100]


def test_workers_keep_what_the_winner_needs(candidate, monkeypatch):
    twin = candidate._replace(rate=(1 + 1e-12) * candidate.rate)  # loses the tie
    monkeypatch.setattr(candidates, "CANDIDATES", (candidate, twin))
    kept = []
    monkeypatch.setattr(classifier, "race", lambda *given: kept.append(rounds.race(*given)) or kept[0])
    model = DaskIKOGDClassifier(**SMALL, n_steps=1).fit(*blocks(X, Y))
    assert model.selection_["leader"] == candidate.name
    for block in kept[0].blocks:
        for rows in block.compute():
            assert (rows.codes is not None, rows.table is not None) == (bool(candidate.scales), candidate.linear)


# Input


def test_rows_of_weight_zero_do_not_count():
    weights = (np.arange(N) % 2).astype(float)
    y = np.where(weights == 0, 2 - CLEAR, CLEAR)  # wrong labels of no weight
    model = DaskIKOGDClassifier(**SMALL).fit(*blocks(X, y, weights=weights))
    assert model.score(*blocks(X[1::2], CLEAR[1::2])) > 0.9
    assert min(model.selection_["errors"]) < 0.4


def test_partitions_may_be_empty_and_lack_classes():
    order = np.argsort(CLEAR, kind="stable")
    rows, labels = (
        array.rechunk(((0, 120, 0, 80, 100), *rest))
        for array, rest in zip(blocks(X[order], CLEAR[order]), ((3,), ()), strict=True)
    )
    assert DaskIKOGDClassifier(**SMALL).fit(rows, labels).score(rows, labels) > 0.85


def test_the_map_and_linear_term_of_csr_blocks_are_those_of_csr_rows():
    csr = sparse.csr_matrix(X * (X > 0))
    rows = da.from_array(csr, chunks=(75, 3))
    model = DaskIKOGDClassifier(**SMALL, linear=True).fit(rows, da.from_array(Y, chunks=75))
    local = model.to_local()
    assert not local.linear_term_.offset.any()  # sparse rows stay sparse
    assert np.array_equal(model.decision_function(rows).compute(), local.decision_function(csr))


def test_frames_with_words_and_missing_values_race(candidate):
    frame = pd.DataFrame({"a": X[:, 0], "job": np.where(X[:, 1] > 0, "cook", "baker"), "b": X[:, 2]})
    frame.loc[::7, "a"] = np.nan
    y = (X[:, 1] > 0).astype(int)
    rows = dd.from_pandas(frame, npartitions=4)
    model = DaskIKOGDClassifier(**SMALL).fit(rows, dd.from_pandas(pd.Series(y), npartitions=4))
    local = model.to_local()
    assert local.is_categorical_.tolist() == [False, True, False]
    assert local.score(frame, y) > 0.9
    assert np.array_equal(model.predict(rows).compute(), local.predict(frame))


# Streams


def test_the_first_call_of_partial_fit_decides_for_all():
    X, y = chessboard()
    rows, labels = blocks(X, y, 250)
    model = DaskIKOGDClassifier(n_partitionings=20, random_state=0).partial_fit(rows[:1000], labels[:1000])
    decided = model.selection_
    cells, first = model.kernel_.apply(X), model.score(rows[1500:], labels[1500:])
    straight = (X[:, 0] > 2).astype(int)  # of another shape, for which the linear term would win
    model.partial_fit(rows[1000:1500], da.from_array(straight[1000:1500], chunks=250))
    for _ in range(3):
        model.partial_fit(rows[:1500], labels[:1500])
    np.testing.assert_equal(model.selection_, decided)
    assert np.array_equal(model.kernel_.apply(X), cells)
    assert model.score(rows[1500:], labels[1500:]) >= first
    assert model.to_local().n_rows_seen_ == 5 * 250  # a mean over partitions


def test_partial_fit_takes_classes_that_come_later():
    early, given = CLEAR < 2, blocks(X, CLEAR)
    model = DaskIKOGDClassifier(**SMALL).partial_fit(*blocks(X[early], CLEAR[early]), classes=[0, 1, 2])
    assert (model.predict(given[0]).compute() < 2).all()
    for _ in range(3):
        model.partial_fit(*given)
    assert model.score(*given) > 0.8


# Parameters that end the race


@pytest.mark.parametrize(
    "options",
    [{"schedule": "adagrad"}, {"learning_rate": 1.0}, {"shrinkage": 0.01}, {"kernel": IsolationKernel(n_cells=16)}],
    ids=str,
)
def test_parameters_that_leave_no_choice_end_the_race(options):
    options = {"random_state": 0, "n_steps": 1} | options
    model = DaskIKOGDClassifier(**options).fit(*blocks(X, Y))
    assert model.selection_ is None
    assert isinstance(model.to_local().learned_, OneVsRest)
    assert model.kernel_.n_scales_ == 1


def test_a_linear_term_beside_a_given_map_is_learned_from_rows_of_all_partitions():
    kernel = IsolationKernel(n_partitionings=5, n_cells=16, n_scales=2, random_state=0).fit(X)
    model = DaskIKOGDClassifier(kernel=kernel, linear=True, random_state=0).fit(*blocks(X, CLEAR))
    assert model.selection_["candidates"] == ["every cells + linear, adagrad 2"]
    np.testing.assert_allclose(model.to_local().linear_term_.offset, X.mean(axis=0))
    assert model.score(*blocks(X, CLEAR)) > 0.85


def test_a_clone_has_the_parameters_of_the_race():
    model = DaskIKOGDClassifier(n_scales=3, linear=False, max_model_size=10**6)
    parameters = clone(model).get_params()
    assert (parameters["n_scales"], parameters["linear"], parameters["max_model_size"]) == (3, False, 10**6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"linear": "yes"}, "linear must be True, False or \"auto\"; got 'yes'"),
        ({"n_scales": 0}, "n_scales must be"),
        ({"max_model_size": 0}, "max_model_size must be None or a positive integer; got 0"),
        ({"linear": True, "shrinkage": 0.1}, "shrinkage=0 .*must be kept with several scales or a linear term"),
    ],
)
def test_parameters_of_the_race_are_checked_before_any_work(options, message):
    with pytest.raises(ValueError, match=message):
        DaskIKOGDClassifier(**options).fit(None, None)
