"""Check that damaged, foreign and forged model files raise a ValueError that names them, and do no harm."""

from __future__ import annotations

import os
import pickle
import struct

import numpy as np
import pytest
from scipy import sparse

from forging import Forgery
from fuzz.models import write_seeds
from isokern import IKSVC, IsolationKernel, OGDClassifier
from isokern.container import write_container
from isokern.persistence import load, read_file, save, write_file
from learning import make_rows


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return a folder with saved models."""
    folder = tmp_path_factory.mktemp("models")
    write_seeds(folder)
    return folder


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.isokern"


def assert_refused(path, match):
    with pytest.raises(ValueError, match=match) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}: ")


# Damage


def small_file(path):
    X, _ = make_rows(20)
    save(IsolationKernel(n_partitionings=2, n_cells=4, random_state=0).fit(X), path)
    return path.read_bytes()


def test_a_byte_changed_anywhere_is_noticed(path):
    whole = small_file(path)
    for k in range(len(whole)):
        path.write_bytes(whole[:k] + bytes([whole[k] ^ 1 << k % 8]) + whole[k + 1 :])
        assert_refused(path, r"not an isokern file|format must be 2|truncated|damaged: it|checksum does not match")


def test_a_byte_changed_in_header_array_or_digest_is_a_wrong_checksum(path):
    whole = small_file(path)
    for k in (64, 200, len(whole) - 100, len(whole) - 1):
        path.write_bytes(whole[:k] + bytes([whole[k] ^ 255]) + whole[k + 1 :])
        assert_refused(path, "damaged: its checksum does not match")


def test_a_file_cut_anywhere_is_noticed(path):
    whole = small_file(path)
    for k in range(1, len(whole)):
        path.write_bytes(whole[:k])
        assert_refused(path, "truncated")


def test_bytes_after_the_end_are_noticed(path):
    path.write_bytes(small_file(path) + b"\0")
    assert_refused(path, r"damaged: it has \d+ bytes in place of \d+")


FOREIGN = {
    "nothing": b"",
    "text": b"isokern, a library",
    "pickle": pickle.dumps(IKSVC()),
    "zip": b"PK\3\4" + bytes(500),
    "zeros": bytes(1000),
}


@pytest.mark.parametrize("content", FOREIGN.values(), ids=FOREIGN)
def test_a_foreign_file_is_not_an_isokern_file(content, path):
    path.write_bytes(content)
    assert_refused(path, "not an isokern file")


def test_a_pickle_is_never_loaded(path, tmp_path):
    class Harm:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "harm"),)

    path.write_bytes(pickle.dumps(Harm()))
    assert_refused(path, "not an isokern file")
    assert not (tmp_path / "harm").exists()


def test_a_newer_format_is_refused_and_its_writer_named(path):
    whole = bytearray(small_file(path))
    whole[8:20] = struct.pack("<I8s", 7, b"12.3\0\0\0\0")
    path.write_bytes(whole)
    assert_refused(path, r"format must be 2; got 7, written by isokern 12.3")


def test_a_missing_file_raises_file_not_found(path):
    with pytest.raises(FileNotFoundError, match="No such file"):
        load(path)


def test_a_file_without_an_estimator_is_refused(path):
    write_file(path, {"model": IKSVC()})
    assert_refused(path, "it must contain an estimator; got dict")


# Invalid headers with a valid digest


def an_array(dtype="<f8", shape=(2,)):
    return {"kind": "array", "dtype": dtype, "shape": list(shape)}


def deep(n):
    header = []
    for _ in range(n):
        header = [header]
    return header


def repeated(n):
    """Return the header of n models, each of which contains the one before it twice."""
    models = [{"kind": "object", "class": "IKSVC", "state": {}}]
    for k in range(n):
        one = {"kind": "same", "as": k}
        models.append({"kind": "object", "class": "IKSVC", "state": {"kernel": one, "C": one}})
    return models


BAD_HEADERS = {
    "an unknown kind": ({"kind": "call"}, "a value must be of a known kind; got 'call'"),
    "a kind of another name": ({"kind": "__init__"}, "a value must be of a known kind"),
    "no kind": ({}, "damaged"),
    "an unknown class": ({"kind": "object", "class": "os.system", "state": {}}, "damaged"),
    "a class that is not a string": ({"kind": "object", "class": [], "state": {}}, "damaged"),
    "objects": (an_array("|O"), "a dtype must be of numbers or text; got '|O'"),
    "a structure": (an_array("f8,f8"), "a dtype must be of numbers or text"),
    "a dtype by its other name": (an_array("float64"), "a dtype must be of numbers or text"),
    "an unknown dtype": (an_array("<f3"), "damaged"),
    "text of width 0": (an_array("<U0", (10,)), "a dtype must be of numbers or text; got '<U0'"),
    "bytes of width 0": (an_array("|S0", (10,)), "a dtype must be of numbers or text; got '|S0'"),
    "an integer of 3 bytes": (an_array("<i3"), "a dtype must be of numbers or text"),
    "an absurd length": (an_array(shape=(10**12,)), "a size must be a number"),
    "an absurd product": (an_array(shape=(90,) * 8), "an array is longer than the file"),
    "an absurd length of nothing": (an_array(shape=(0, 10**12)), "a size must be a number"),
    "more empty rows than bytes": (an_array(shape=(10_000, 0)), "a size must be a number"),
    "an absurd product of nothing": (an_array(shape=(0, 2**13, 2**13)), "a size must be a number"),
    "a length below 0": (an_array(shape=(-1,)), "a size must be a number"),
    "a length that is not an integer": (an_array(shape=(True,)), "a size must be a number"),
    "too many dimensions": (an_array(shape=(1,) * 9), "a shape must be a list of at most 8"),
    "a shape that is not a list": ({**an_array(), "shape": 2}, "a shape must be a list"),
    "more arrays than there are": ([an_array()] * 20, "an array is longer than the file"),
    "fewer arrays than there are": (None, "it holds more than its header describes"),
    "a wrong truth value": (an_array("|b1", (16,)), "a truth value must be 0 or 1"),
    "a wrong character": (an_array("<U4", (1,)), "text must be of Unicode characters"),
    "an object that comes later": ([{"kind": "same", "as": 0}, an_array()], "damaged"),
    "an object counted from the end": ([{"kind": "same", "as": -1}, an_array()], "a size must be a number"),
    "a float by name": ({"kind": "float", "value": "exit"}, "damaged"),
    "a dict with a list as key": ({"kind": "dict", "items": [[[], 1]]}, "damaged"),
    "a dict of arrays": ({"kind": "dict", "items": [an_array()]}, "items must be lists of a key and a value"),
    "items that are not a list": ({"kind": "tuple", "items": "text"}, "items must be a list"),
    "parts in an array": ({"kind": "masked", "parts": an_array()}, "parts must be a list"),
    "texts that are not strings": ({"kind": "texts", "items": [an_array()]}, "texts must be strings"),
    "a table of absurdly many columns": (
        {"kind": "table", "class": "csr_array", "shape": [0, 2**62], "parts": [an_array()] * 3},
        "the number of columns must be a count",
    ),
    "models that contain each other twice": (repeated(40), "a size must be a number"),
    "great depth": (deep(900), "damaged"),
    "an attribute that hides a method": (
        {"kind": "object", "class": "IKSVC", "state": {"predict": 1}},
        "IKSVC must not have an attribute predict",
    ),
    "an attribute that hides a property": (
        {"kind": "object", "class": "IKOGDRegressor", "state": {"mean_": 1.0}},
        "IKOGDRegressor must not have an attribute mean_",
    ),
}


@pytest.mark.parametrize(("header", "match"), BAD_HEADERS.values(), ids=BAD_HEADERS)
def test_an_invalid_header_is_an_error(header, match, path):
    write_container(path, header, [np.full(2, -1.5)], "0")
    with pytest.raises(ValueError, match=match.replace("|", r"\|")):
        read_file(path)


def test_parameters_that_are_missing_get_their_defaults(path):
    write_container(path, {"kind": "object", "class": "IKSVC", "state": {"C": 2.0}}, [], "0")
    assert load(path).get_params() == IKSVC(C=2.0).get_params()


def test_a_header_that_is_not_json_is_an_error(path, monkeypatch):
    monkeypatch.setattr("isokern.container.json.dumps", lambda *_, **__: "[" * 100_000)
    write_container(path, None, [], "0")
    assert_refused(path, "damaged")


# Models whose parts do not match, with a valid digest


def put(*names, value):
    def change(forgery):
        node = forgery.node(*names[:-1])
        node["state"][names[-1]] = value

    return change


def set_at(*names, at, value):
    def change(forgery):
        forgery.array(*names)[at] = value

    return change


def reshape(*names, to):
    def change(forgery):
        array = forgery.array(*names)
        forgery.replace(np.resize(array, to(array.shape)), *names)

    return change


def retype(*names, to):
    def change(forgery):
        forgery.replace(forgery.array(*names).view(to), *names)

    return change


def fewer(shape):
    return (shape[0] - 1, *shape[1:])


def wider(shape):
    return (*shape[:-1], shape[-1] + 1)


def points_outside(forgery):
    points = forgery.node("model_", "budgets")[0]["state"]["points"]
    forgery.arrays[forgery.places[id(points)]].fill(10**6)


def columns_outside(forgery):
    table = forgery.node("warm_up_", "batches")["items"][0]["items"][0]
    forgery.arrays[forgery.places[id(table["parts"][1])]].fill(10**6)


def rows_without_targets(forgery):
    targets = forgery.node("warm_up_", "batches")["items"][0]["items"][1]
    targets["shape"] = [1]
    place = forgery.places[id(targets)]
    forgery.arrays[place] = forgery.arrays[place][:1]


def unknown_targets(forgery):
    targets = forgery.node("warm_up_", "batches")["items"][0]["items"][1]
    forgery.arrays[forgery.places[id(targets)]].fill(99)


def position_outside(forgery):
    for item in forgery.node("random_state", "state")["items"]:
        if item[0] == "pos":
            item[1] = 10**6


TREES = ("kernel_", "map_", "partitionings", "arrays")
BAD_MODELS = {
    "a tree's child outside": ("trees", set_at(*TREES, "left", at=0, value=2**31 - 1)),
    "a leaf's column outside": ("trees", set_at(*TREES, "column", at=-1, value=2**31 - 1)),
    "trees without an array": ("trees", lambda f: f.node(*TREES)["items"].pop()),
    "cells that are not the trees'": ("trees", put("kernel_", "map_", "partitionings", "n_cells", value=2**40)),
    "more cells than nodes can explain": ("kernel", put("map_", "partitionings", "n_cells", value=2**30)),
    "children with more points than their parent": ("trees", set_at(*TREES, "n_points", at=1, value=100)),
    "a node without points": ("trees", set_at(*TREES, "n_points", at=-1, value=0)),
    "no scales": ("trees", put("kernel_", "map_", "n_scales", value=0)),
    "more scales than cells allow": ("kernel", put("map_", "n_scales", value=2**40)),
    "text as the number of scales": ("kernel", put("map_", "n_scales", value="auto")),
    "partitionings of another type": (
        "trees",
        put("kernel_", "map_", "partitionings", value={"kind": "same", "as": 0}),
    ),
    "a map of another type": ("trees", put("kernel_", "map_", value={"kind": "same", "as": 0})),
    "no number of columns": ("trees", lambda f: f.node()["state"].pop("n_features_in_")),
    "a map of other columns": ("trees", put("kernel_", "n_features_in_", value=7)),
    "a kernel of another type": ("trees", put("kernel_", value=1)),
    "a scaling of other columns": ("trees", reshape("kernel_", "map_", "scaling", "offset", to=lambda shape: (1,))),
    "weights for fewer cells": ("trees", reshape("learned_", "model", "values", to=fewer)),
    "weights of more scores": ("trees", reshape("learned_", "model", "values", to=wider)),
    "squares of another shape": ("trees", reshape("learned_", "model", "squares", to=fewer)),
    "starts that are not the kernel's": ("trees", set_at("learned_", "model", "starts", at=1, value=9)),
    "starts that descend": ("trees", set_at("learned_", "model", "starts", at=1, value=-9)),
    "a clock below 0": ("trees", put("learned_", "model", "clock", "rounds", value=-1)),
    "a clock with text": ("trees", put("learned_", "model", "clock", "rounds", value="x")),
    "a window of another size": ("trees", reshape("learned_", "window", "scores", to=fewer)),
    "a window of absurdly many rows": ("trees", put("learned_", "window", "n_seen", value=2**62)),
    "absurd counts": ("trees", set_at("learned_", "book", "counts", at=0, value=2**63 - 1)),
    "counts below 0": ("trees", set_at("learned_", "book", "counts", at=0, value=-1)),
    "a bool of another type": ("trees", put("learned_", "model", "naive", value=2)),
    "a window of other scores": ("trees", reshape("learned_", "window", "scores", to=wider)),
    "a window of other classes": ("trees", set_at("learned_", "window", "classes", at=0, value=99)),
    "classes that descend": ("trees", set_at("learned_", "book", "labels", at=0, value=99)),
    "fewer counts than classes": ("trees", reshape("learned_", "book", "counts", to=fewer)),
    "a list in place of a model": ("trees", put("learned_", "model", value={"kind": "list"})),
    "no model": ("trees", put("learned_", "model", value=None)),
    "rows without targets": ("holding rows", rows_without_targets),
    "rows of unknown classes": ("holding rows", unknown_targets),
    "classes of another type": ("holding rows", put("warm_up_", "book", value=1)),
    "more support vectors than there are": ("dual", put("learned_", "model", "n", value=2**62)),
    "support vectors of another kernel": ("dual", reshape("learned_", "model", "cells", to=wider)),
    "points beyond": ("voronoi", set_at("kernel_", "map_", "partitionings", "samples", at=(0, 0), value=10**6)),
    "points of other columns": ("voronoi", reshape("kernel_", "map_", "partitionings", "points", to=wider)),
    "sums of another shape": ("voronoi", reshape("learned_", "model", "sums", to=fewer)),
    "a machine of other weights": ("svc", reshape("model_", "values", to=fewer)),
    "a machine of other intercepts": ("svc", reshape("intercept_", to=lambda shape: (1,))),
    "a kernel of a high degree": ("ogd", put("model_", "kernel", "degree", value=2**30)),
    "a kernel of no name": ("ogd", put("model_", "kernel", "name", value="x")),
    "scores without coefficients": ("ogd", put("model_", "n_columns", value=10**9)),
    "other columns": ("ogd", put("model_", "n_features", value=1)),
    "points of three dimensions": ("ogd, random", reshape("model_", "points", to=lambda shape: (*shape, 1))),
    "a budget of nothing": ("ogd, projectron++", lambda f: f.node("model_", "budgets")[0]["state"].update(size=0)),
    "points that are dates": ("ogd, random", retype("model_", "points", to="<M8[s]")),
    "points that are not there": ("ogd, random", points_outside),
    "a projection of other landmarks": ("nogd", reshape("model_", "projection", to=fewer)),
    "other updates": ("nogd", reshape("model_", "linear", "n_updates", to=lambda shape: (50,))),
    "absurdly many updates": ("nogd", set_at("model_", "linear", "n_updates", at=0, value=2**63 - 1)),
    "absurdly many threads": ("adaraker", put("model_", "n_jobs", value=2**31)),
    "a negative number of threads": ("nogd", put("model_", "first", "n_jobs", value=-1)),
    "landmarks of two dimensions": (
        "sparse nogd",
        reshape("model_", "landmarks", "columns", to=lambda shape: (*shape, 1)),
    ),
    "landmarks that are integers": ("sparse nogd", retype("model_", "landmarks", "values", to="<i8")),
    "more landmarks than wanted": ("nogd, before the switch", put("model_", "n_landmarks", value=1)),
    "weights of fewer frequencies": ("fogd", reshape("model_", "linear", "values", to=fewer)),
    "a position outside of a generator's buffer": ("fogd", position_outside),
    "rates that are not a tuple": ("adaraker", put("model_", "rates", value=1)),
    "other experts": ("adaraker", reshape("model_", "theta", to=fewer)),
    "more rounds than experts": ("adaraker", put("model_", "clock", "rounds", value=2**40)),
    "absurdly many rounds": ("adaraker", put("model_", "clock", "rounds", value=10**3000)),
    "fewer confidences": ("adaraker", reshape("model_", "confidences", to=fewer)),
    "sparse rows that point outside": ("sparse holding rows", columns_outside),
    "sparse points that point outside": (
        "sparse voronoi",
        set_at("map_", "partitionings", "points", "columns", at=0, value=2**31 - 1),
    ),
    "sparse points of starts outside": (
        "sparse voronoi",
        set_at("map_", "partitionings", "points", "starts", at=1, value=2**62),
    ),
}


@pytest.mark.parametrize(("name", "change"), BAD_MODELS.values(), ids=BAD_MODELS)
def test_a_model_whose_parts_do_not_match_is_refused(name, change, files, path):
    forgery = Forgery(files / name)
    change(forgery)
    forgery.write(path)
    assert_refused(path, "damaged")


def test_budgets_that_are_one_object_are_refused(files, path):
    model = load(files / "ogd, random")
    model.model_.budgets = model.model_.budgets[:1] * 3
    save(model, path)
    assert_refused(path, "budgets must be different objects")


def test_a_forgery_that_changes_nothing_is_loaded(files, path):
    X, _ = make_rows(60, 3)
    for file in files.iterdir():
        Forgery(file).write(path)
        model = load(path)
        if hasattr(model, "predict"):
            assert np.array_equal(model.predict(X), load(file).predict(X))


@pytest.mark.parametrize("names", [["a"], [0, 1, 1], [[True]]])
@pytest.mark.parametrize("attribute", ["feature_names_in_", "is_categorical_"])
def test_names_and_types_must_be_one_per_column(attribute, names, path):
    model = IsolationKernel(n_partitionings=2, n_cells=2).fit(make_rows(20)[0])
    setattr(model, attribute, np.array(names))
    save(model, path)
    assert_refused(path, f"{attribute} must ")


# The first row decides how all are stored.
@pytest.mark.parametrize(("n_columns", "n_first"), [(4096, 1), (32_768, 20_000)])
def test_support_vectors_do_not_take_absurd_memory(n_columns, n_first):
    first = sparse.csr_array(np.ones((1, n_first)))
    first.resize((1, n_columns))
    model = OGDClassifier(gamma=1.0).partial_fit(sparse.vstack([first, 2 * first]), [0, 1]).model_
    rows, *_ = model.support()
    n, starts = 200_000, np.concatenate([rows.starts, np.full(200_000 - 2, rows.starts[-1])])
    support = (rows._replace(starts=starts), np.zeros((n, 1)), np.zeros(n, dtype=np.int64))
    with pytest.raises(ValueError, match="when densified"):
        type(model).from_state(model.state() | {"support": support})


def test_sparse_points_do_not_take_absurd_memory(files, path, run_script, memory_is_known):
    n = 200_000
    forgery = Forgery(files / "sparse voronoi")
    places = ("map_", "partitionings", "points")
    forgery.replace(np.zeros(n + 1, dtype=np.int64), *places, "starts")
    forgery.node(*places)["state"]["n_columns"] = 2048
    forgery.node()["state"]["n_features_in_"] = 2048
    forgery.write(path)
    found = run_script(
        """
import sys
from isokern.persistence import load
before = megabytes("VmHWM")
try:
    load(sys.argv[1])
except ValueError as error:
    print("when densified" in str(error), megabytes("VmHWM") - before < 100)
""",
        path,
    )
    assert found == "True True"
