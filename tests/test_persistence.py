"""Check that saved models load unchanged and learn on, and which values cannot be saved."""

from __future__ import annotations

import copy
import os
import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
import skops.io as skops
from scipy import sparse
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.svm import SVC

from isokern import (
    IKSVC,
    AdaptiveIKClassifier,
    AdaptiveIKRegressor,
    AdaRakerClassifier,
    FOGDClassifier,
    IKOGDClassifier,
    IKOGDClassifierCV,
    IKOGDRegressor,
    IKOGDRegressorCV,
    IsolationKernel,
    NOGDClassifier,
    OGDClassifier,
)
from isokern.learners.budgets import BUDGETS
from isokern.persistence import ESTIMATORS, load, read_file, save, write_file
from learning import LOSSES, SMALL, every, make_kernel, make_rows

SOON = {"n_initial": 50, "random_state": 0}
TREE = {**SMALL, "n_initial": 50}
KERNELS = {
    "trees": IsolationKernel(**SMALL),
    "capped trees": IsolationKernel(**SMALL, max_depth="log2", scale="standard", sparse_output=False),
    "Voronoi cells": IsolationKernel("voronoi", **SMALL, scale="minmax"),
    "many cells": IsolationKernel("tree", 2, 300, random_state=0),
}
ONLINE = {
    **{f"IKOGD, {loss}": IKOGDClassifier(loss=loss, **TREE) for loss in LOSSES},
    **{f"IKOGD, {how}": IKOGDClassifier(schedule=how, average=True, **TREE) for how in ("constant", "decaying")},
    "IKOGD, naive": IKOGDClassifier(evaluation="naive", shrinkage=0.1, **TREE),
    "IKOGD, dual": IKOGDClassifier(evaluation="dual", schedule="constant", average=True, **TREE),
    "IKOGD, Voronoi": IKOGDClassifier("voronoi", scale="maxabs", class_weight="balanced", **TREE),
    "IKOGD, class weights": IKOGDClassifier(class_weight={0: 2.0, 1: 0.5, np.int64(2): 1}, **TREE),
    "Adaptive": AdaptiveIKClassifier(6, random_state=0),
    "Adaptive regressor": AdaptiveIKRegressor(6, random_state=0),
    "IKOGDRegressor": IKOGDRegressor(**TREE),
    "IKOGDRegressor, averaged": IKOGDRegressor(average=True, **TREE),
    "IKOGDRegressor, quantiles": IKOGDRegressor(loss="quantile", quantiles=[0.2, 0.7], **TREE),
    "IKOGDRegressor, huber": IKOGDRegressor(loss="huber", epsilon=0.3, schedule="adagrad", average=False, **TREE),
    "OGD": OGDClassifier(**SOON),
    "OGD, averaged": OGDClassifier("gaussian", average=True, loss="logistic", **SOON),
    "OGD, polynomial": OGDClassifier("polynomial", degree=2, gamma=0.1, learning_rate=1e-3, random_state=0),
    "OGD, isolation": OGDClassifier(IsolationKernel(**SMALL), **SOON),
    **{f"OGD, {name}": OGDClassifier(budget=15, strategy=name, **SOON) for name in BUDGETS},
    "NOGD": NOGDClassifier(n_landmarks=20, **SOON),
    "NOGD, before the switch": NOGDClassifier(n_landmarks=500, rank=5, n_cells=16, random_state=0),
    "FOGD": FOGDClassifier(n_frequencies=20, **SOON),
    "FOGD, orthogonal": FOGDClassifier(n_frequencies=20, features="orthogonal", average=False, **SOON),
    "FOGD, laplacian": FOGDClassifier("laplacian", gamma=0.5, n_frequencies=20, random_state=0),
    "AdaRaker": AdaRakerClassifier(n_directions=4, random_state=0),
    "AdaRaker, cold": AdaRakerClassifier([0.5, 1, 2], n_directions=4, restart="cold", random_state=0),
}
STAGES = {"holding rows": 30, "learning": 120}
FORMS = {"dense": np.asarray, "float32": np.float32, "csr_array": sparse.csr_array, "csr_matrix": sparse.csr_matrix}

every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
every_online = pytest.mark.parametrize("learner", ONLINE.values(), ids=ONLINE)
every_stage = pytest.mark.parametrize("n_rows", STAGES.values(), ids=STAGES)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.isokern"


@pytest.fixture
def again(path):
    """Return a function that saves a value and loads it."""

    def save_and_load(value):
        write_file(path, value)
        return read_file(path)

    return save_and_load


def answers(model, X):
    """Return all that a model says about rows."""
    methods = ("transform", "decision_function", "predict", "predict_proba")
    found = [getattr(model, name)(X) for name in methods if hasattr(model, name)]
    return [table.toarray() if sparse.issparse(table) else table for table in found]


def assert_same(one, other, X):
    for a, b in zip(answers(one, X), answers(other, X), strict=True):
        np.testing.assert_array_equal(a, b, strict=True)
    assert getattr(one, "n_support_", None) == getattr(other, "n_support_", None)


def begun(learner, X, y, n_rows):
    """Return a model that has seen the first rows of a stream, and has been told of all classes."""
    classes = {} if isinstance(learner, IKOGDRegressor) else {"classes": np.unique(y)}
    return clone(learner).partial_fit(X[:n_rows], y[:n_rows], **classes)


# What comes back


@every_kernel
def test_a_loaded_kernel_gives_the_same_map(kernel, again):
    X, _ = make_rows(400)
    fitted = clone(kernel).fit(X)
    assert_same(again(fitted), fitted, X)


@every_online
@every_stage
def test_a_loaded_model_answers_and_learns_on_as_if_it_had_not_been_saved(n_rows, learner, again):
    X, y = make_rows(200, 3)
    model = begun(learner, X, y, n_rows)
    loaded = again(model)
    assert_same(loaded, model, X)
    assert_same(loaded.partial_fit(X[n_rows:], y[n_rows:]), model.partial_fit(X[n_rows:], y[n_rows:]), X)


@every_online
def test_a_loaded_model_that_was_fitted_gives_the_same_answers(learner, again):
    X, y = make_rows(200, 3)
    model = clone(learner).fit(X, y)
    assert_same(again(model), model, X)


MACHINES = {
    "given": {"C": 1.0, "linear": False},
    "chosen": {},
    "scales and linear": {"n_scales": 2, "linear": True},
}


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("options", MACHINES.values(), ids=MACHINES)
def test_a_loaded_svc_gives_the_same_answers(options, n_classes, again):
    X, y = make_rows(200, n_classes)
    model = IKSVC(**SMALL, class_weight={0: 2.0}, **options).fit(X, y)
    loaded = again(model)
    assert_same(loaded, model, X)
    assert (loaded.n_iter_, loaded.C_, loaded.selection_) == (model.n_iter_, model.C_, model.selection_)
    if options != MACHINES["given"]:
        assert np.array_equal(loaded.predict_proba(X), model.predict_proba(X))


@every_stage
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("name", ["IKOGD, hinge", "IKOGD, dual", "OGD", "OGD, random", "NOGD", "FOGD", "AdaRaker"])
def test_rows_of_every_form_are_learned_on(name, form, n_rows, again):
    X, y = make_rows(200)
    X = form(X)
    model = begun(ONLINE[name], X, y, n_rows)
    assert_same(again(model).partial_fit(X[n_rows:], y[n_rows:]), model.partial_fit(X[n_rows:], y[n_rows:]), X)


@pytest.mark.parametrize("partitioning", ["tree", "voronoi"])
@pytest.mark.parametrize("n_columns", [40, 4000])
def test_a_loaded_kernel_of_sparse_rows_gives_the_same_map(n_columns, partitioning, again):
    X = sparse.random_array((90, n_columns), density=0.02, rng=0, format="csr")
    kernel = IsolationKernel(partitioning, 10, 8, random_state=0).fit(X)
    assert_same(again(kernel), kernel, X)


SEARCH = {"n_partitionings": 6, "n_cells": (4, 8), "cv": 3, "random_state": 0}
SEARCHES = {"search": IKOGDClassifierCV(**SEARCH), "search for numbers": IKOGDRegressorCV(**SEARCH)}
UNFITTED = {**KERNELS, **ONLINE, "IKSVC": IKSVC(C=2.0), **SEARCHES}


@pytest.mark.parametrize("model", UNFITTED.values(), ids=UNFITTED)
def test_parameters_come_back(model, again):
    loaded = again(model)
    assert type(loaded) is type(model)
    assert repr(loaded.get_params()) == repr(model.get_params())
    assert not [name for name in vars(loaded) if name.endswith("_")]


LABELS = {
    "text": np.array(["no", "yes"]),
    "objects": np.array(["no", "yes"], dtype=object),
    "floats": np.array([1.0, 2.0]),
    "truth values": np.array([False, True]),
    "bytes": np.array([0, 255], dtype=np.uint8),
}


@every_stage
@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("name", ["IKOGD, hinge", "OGD", "AdaRaker"])
def test_classes_of_every_kind_come_back(name, labels, n_rows, again):
    X, y = make_rows(200)
    model = begun(ONLINE[name], X, labels[y], n_rows)
    loaded = again(model)
    assert loaded.classes_.dtype == model.classes_.dtype
    assert_same(
        loaded.partial_fit(X[n_rows:], labels[y[n_rows:]]), model.partial_fit(X[n_rows:], labels[y[n_rows:]]), X
    )


def test_names_of_columns_come_back(again):
    X, y = make_rows(200)
    frame = pd.DataFrame(X, columns=["a", "b", "ü"])
    model = IKOGDClassifier(**SMALL).fit(frame, y)
    loaded = again(model)
    np.testing.assert_array_equal(loaded.feature_names_in_, model.feature_names_in_, strict=True)
    np.testing.assert_array_equal(loaded.predict(frame[["b", "a", "ü"]]), model.predict(frame))
    with pytest.raises(ValueError, match="feature names should match"):
        loaded.predict(frame.rename(columns={"a": "c"}))


def test_a_class_that_comes_after_loading_is_learned_as_without(again):
    X, y = make_rows(200, 3)
    model = IKOGDClassifier(**TREE).partial_fit(X[:100], np.minimum(y[:100], 1))
    assert_same(again(model).partial_fit(X[100:], y[100:]), model.partial_fit(X[100:], y[100:]), X)


@pytest.mark.parametrize("wrap", [lambda kernel: kernel, FrozenEstimator], ids=["bare", "frozen"])
@pytest.mark.parametrize("learner", [IKOGDClassifier, IKOGDRegressor, IKSVC, OGDClassifier])
def test_a_given_kernel_is_saved_once_and_shared_again(learner, wrap, path):
    X, y = make_rows(2000)
    kernel = IsolationKernel(n_partitionings=50, n_cells=256, random_state=0).fit(X)
    save(kernel, path)
    size = path.stat().st_size
    model = learner(kernel=wrap(kernel)).fit(X, y)
    save(model, path)
    loaded = load(path)
    inner = loaded.kernel.estimator if isinstance(loaded.kernel, FrozenEstimator) else loaded.kernel
    assert inner is loaded.kernel_
    assert_same(loaded, model, X)
    state = len(pickle.dumps(model)) - len(pickle.dumps(kernel))
    assert path.stat().st_size < size + state + 20_000


RANDOM_STATES = {
    "none": lambda: None,
    "integer": lambda: 7,
    "NumPy's integer": lambda: np.int64(7),
    "RandomState": lambda: np.random.RandomState(7),
    "RandomState of PCG64": lambda: np.random.RandomState(np.random.PCG64(7)),
}


@pytest.mark.parametrize("make", RANDOM_STATES.values(), ids=RANDOM_STATES)
@pytest.mark.parametrize("name", ["IKOGD, hinge", "OGD, random", "FOGD"])
def test_a_random_state_goes_on_where_it_was(name, make, again):
    X, y = make_rows(200)
    model = begun(clone(ONLINE[name]).set_params(random_state=make()), X, y, 30)
    loaded = again(model)
    if make() is None:
        assert loaded.random_state is None
        return
    assert_same(loaded.partial_fit(X[30:], y[30:]), model.partial_fit(X[30:], y[30:]), X)
    assert_same(loaded.fit(X, y), model.fit(X, y), X)


@pytest.mark.parametrize(
    "bits", [np.random.PCG64, np.random.PCG64DXSM, np.random.MT19937, np.random.SFC64, np.random.Philox]
)
def test_a_generator_goes_on_where_it_was(bits, again):
    generator = np.random.Generator(bits(7))
    generator.random(5, dtype=np.float32)
    assert again(generator).random(9).tolist() == generator.random(9).tolist()


def test_a_normal_number_that_a_random_state_has_left_over_is_kept(again):
    random_state = np.random.RandomState(7)
    random_state.standard_normal()
    assert again(random_state).standard_normal() == random_state.standard_normal()


VALUES = {
    "none": None,
    "truth": True,
    "large integer": 2**200,
    "float": 0.1,
    "infinity": -np.inf,
    "text": "ü \ud800 \0",
    "list": [1, [2.5, "three"], []],
    "tuple": (1, (), (2,)),
    "dict": {"a": 1, 2: "b", (1, 2): None, True: [0.5]},
    "dict that looks like a header": {"kind": "object", "class": "IKSVC"},
    "NumPy's float": np.float32(0.1),
    "NumPy's truth": np.True_,
    "NumPy's text": np.str_("ü"),
    "date": np.datetime64("2024-02-29", "D"),
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_plain_values_come_back_with_their_types(value, again):
    loaded = again({"value": value, "next": 1})["value"]
    assert type(loaded) is type(value)
    assert loaded == value


@pytest.mark.parametrize(
    "model",
    [
        OGDClassifier(budget=np.int32(15), strategy="forgetron", learning_rate=np.float32(0.5), gamma=np.float64(0.5)),
        OGDClassifier(average=np.True_, gamma=1, coef0=2),
        NOGDClassifier(n_landmarks=np.int64(20), rank=np.int64(5), average=np.False_, gamma=np.float64(0.5)),
        IKOGDClassifier(
            kernel=IsolationKernel(n_cells=np.int64(8)), schedule="decaying", average=np.True_, n_initial=50
        ),
    ],
)
def test_parameters_may_be_numpy_scalars(model, again):
    X, y = make_rows(200)
    fitted = clone(model).partial_fit(X, y)
    assert_same(again(fitted), fitted, X)


def test_not_a_number_comes_back(again):
    assert np.isnan(again([float("nan")])[0])


ARRAYS = {
    "empty": np.zeros((0, 3)),
    "empty and wide": np.zeros((0, 10**6)),
    "of no dimension": np.array(3),
    "Fortran's order": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "every other": np.arange(10)[::2],
    "bool": np.array([True, False]),
    "half": np.arange(3, dtype=np.float16),
    "other byte order": np.arange(3, dtype=">f8"),
    "text": np.array(["a", "bcd"]),
    "empty text": np.array([""]),
    "bytes of text": np.array([b"a", b"bcd"]),
    "dates": np.array(["2024-02-29"], dtype="M8[s]"),
    "objects": np.array(["a", None, 2, (1, 2)], dtype=object),
    "four dimensions": np.arange(16, dtype=np.float32).reshape(2, 2, 2, 2),
}

if hasattr(np.dtypes, "StringDType"):  # since NumPy 2
    ARRAYS["text of any length"] = np.array(["a", "bcd"], dtype=np.dtypes.StringDType())


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
def test_arrays_come_back_and_can_be_written_to(array, again):
    loaded = again([array, np.arange(3)])[0]
    np.testing.assert_array_equal(loaded, array)
    assert (loaded.dtype.kind, loaded.dtype.itemsize) == (array.dtype.kind, array.dtype.itemsize)
    assert loaded.dtype.isnative
    assert loaded.flags.c_contiguous
    assert loaded.flags.writeable
    assert loaded.flags.owndata


def test_the_results_of_a_search_come_back(again):
    found = {
        "mean_test_score": np.array([0.5, 0.75]),
        "param_n_cells": np.ma.MaskedArray([4, 8], [False, True]),
        "param_kernel": np.ma.MaskedArray(np.array(["a", None], dtype=object), [False, True]),
        "params": [{"n_cells": 4}, {"n_cells": 8, "scale": None}],
    }
    loaded = again(found)
    assert repr(loaded) == repr(found)


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_tables_come_back(form, again):
    table = form(sparse.random_array((9, 50), density=0.1, rng=0))
    loaded = again({"X": table})["X"]
    assert type(loaded) is form
    assert (loaded != table).nnz == 0


def test_a_checkpoint_of_many_things_comes_back(again):
    X, y = make_rows(200)
    model = begun(ONLINE["IKOGD, hinge"], X, y, 120)
    loaded = again({"model": model, "again": model, "n_rows": 120, "scores": [0.5, np.arange(3)], "rest": X[120:]})
    assert loaded["model"] is loaded["again"]
    assert loaded["n_rows"] == 120
    assert_same(loaded["model"].partial_fit(loaded["rest"], y[120:]), model.partial_fit(X[120:], y[120:]), X)


@every("search", SEARCHES)
def test_a_search_comes_back_and_its_stream_goes_on(search, again):
    X, y = make_rows(200)
    model = clone(search).fit(X[:120], y[:120])
    loaded = again(model)
    assert loaded.best_params_ == model.best_params_
    assert np.array_equal(loaded.cv_results_["mean_test_score"], model.cv_results_["mean_test_score"])
    assert_same(loaded.partial_fit(X[120:], y[120:]), model.partial_fit(X[120:], y[120:]), X)


def test_every_estimator_is_known():
    tested = {type(model) for model in UNFITTED.values()}
    assert tested == set(ESTIMATORS)


# What cannot be saved


class Hyperplane:
    n_cells_ = 2

    def fit(self, X, rng):
        self.normal = rng.standard_normal(X.shape[1])
        return self

    def apply(self, X):
        return (X @ self.normal > 0).astype(int)


def own_kernel(X, Z):
    return X @ Z.T


def test_a_partitioning_of_one_s_own_is_an_error_that_names_it(path):
    X, _ = make_rows(50)
    for kernel in (IsolationKernel(Hyperplane()), IsolationKernel(Hyperplane()).fit(X)):
        with pytest.raises(ValueError, match=r"got Hyperplane in IsolationKernel.partitioning. Use joblib.dump"):
            save(kernel, path)
    assert not list(path.parent.iterdir())


def test_a_kernel_function_of_one_s_own_is_an_error_that_names_it(path):
    with pytest.raises(ValueError, match=r"got own_kernel in OGDClassifier.kernel. Use joblib.dump"):
        save(OGDClassifier(own_kernel), path)


def test_an_estimator_of_one_s_own_is_an_error(path):
    class IKSVC(SVC):
        pass

    for model in (IKSVC(), SVC(), "text"):
        with pytest.raises(TypeError, match="model must be an estimator of isokern"):
            save(model, path)
    with pytest.raises(ValueError, match=r"got .*IKSVC in dict"):
        write_file(path, {"model": IKSVC()})


UNKNOWN = {
    "complex": np.zeros(2, complex),
    "structured": np.zeros(2, "f8,i4"),
    "object": object(),
    "class": IKSVC,
    "set": {1},
}


@pytest.mark.parametrize("value", UNKNOWN.values(), ids=UNKNOWN)
def test_values_of_other_kinds_are_an_error_that_says_where(value, path):
    with pytest.raises(ValueError, match=r"to be saved; got .* in dict\[0\]\[1\]\[1\]"):
        write_file(path, {"a": [0, value]})


def test_a_folder_that_is_not_there_is_a_clear_error(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"path must be in a folder that exists; got .*model.isokern"):
        save(IKSVC(), tmp_path / "none" / "model.isokern")
    with pytest.raises(IsADirectoryError, match="path must be that of a file"):
        save(IKSVC(), tmp_path)


def test_a_model_that_cannot_be_saved_leaves_the_older_file_alone(path):
    save(IKSVC(C=7.0), path)
    with pytest.raises(ValueError, match="to be saved"):
        save(IKSVC(Hyperplane()), path)
    assert load(path).C == 7.0
    assert os.listdir(path.parent) == [path.name]


def test_saving_does_not_change_the_model(path):
    X, y = make_rows(200)
    for learner in ONLINE.values():
        model = begun(learner, X, y, 120)
        before = pickle.dumps(model)
        save(model, path)
        assert pickle.dumps(model) == before


# Other ways to keep and copy a model, where the other tests have none

ONE_OF_EACH = ["IKOGD, hinge", "IKOGD, dual", "IKOGDRegressor", "OGD", "OGD, forgetron", "NOGD", "FOGD", "AdaRaker"]
FITTED = {"IsolationKernel": KERNELS["trees"], "IKSVC": IKSVC(**SMALL), **{name: ONLINE[name] for name in ONE_OF_EACH}}


def by_skops(model, path):
    skops.dump(model, path)
    return skops.load(path, trusted=skops.get_untrusted_types(file=path))


WAYS = {
    "skops": by_skops,
    "pickle": lambda model, path: pickle.loads(pickle.dumps(model)),
    "copy": lambda model, path: copy.copy(model),
    "deepcopy": lambda model, path: copy.deepcopy(model),
    "joblib": lambda model, path: joblib.load(joblib.dump(model, path)[0]),
    "joblib, memory-mapped": lambda model, path: joblib.load(joblib.dump(model, path)[0], mmap_mode="r"),
}


@pytest.mark.parametrize("model", FITTED.values(), ids=FITTED)
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_a_model_loaded_and_copied_by_other_means_can_be_saved_again(way, model, path):
    X, y = make_rows(200, 3)
    model = clone(model).fit(X, y)
    save(model, path)
    copied = way(load(path), path.with_suffix(".other"))
    assert_same(copied, model, X)
    save(copied, path)
    assert_same(load(path), model, X)


@every_online
@every_stage
def test_skops_keeps_every_online_learner_at_every_stage(n_rows, learner, path):
    X, y = make_rows(200, 3)
    model = begun(learner, X, y, n_rows)
    loaded = by_skops(model, path)
    assert_same(loaded, model, X)
    assert_same(loaded.partial_fit(X[n_rows:], y[n_rows:]), model.partial_fit(X[n_rows:], y[n_rows:]), X)


@every("search", SEARCHES)
def test_skops_keeps_a_search(search, path):
    X, y = make_rows(200)
    model = clone(search).fit(X[:120], y[:120])
    assert_same(by_skops(model, path), model, X)


@pytest.mark.parametrize("model", FITTED.values(), ids=FITTED)
def test_a_clone_of_a_loaded_model_learns_the_same(model, again):
    X, y = make_rows(200, 3)
    fitted = clone(model).fit(X, y)
    assert_same(clone(again(fitted)).fit(X, y), fitted, X)


def test_a_shared_kernel_of_two_models_stays_one(again):
    X, y = make_rows(200)
    kernel = make_kernel(X)
    first, second = again([IKOGDClassifier(kernel=kernel).fit(X, y), IKSVC(kernel=kernel).fit(X, y)])
    assert first.kernel_ is second.kernel_ is first.kernel
