"""Models as JSON: a reader in plain Python predicts from the documented format."""

from __future__ import annotations

import json
import math
import struct

import numpy as np
import pandas as pd
import pytest

from forests import FEW, KERNELS, MODELS, ROUNDED, fitted, hard_rows, model_scores, sides, words
from isokern import IKOGDClassifier, IsolationKernel
from isokern.export import estimate_size, to_json

# -- a reader; it uses nothing but the standard library

MASK = 2**64 - 1
STEP = 0x9E3779B97F4A7C15


def mix(z):
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


def code(name):
    """Return the number of a category."""
    text = name.encode()
    value = len(text) * STEP & MASK
    for begin in range(0, len(text), 8):
        value = mix(value ^ int.from_bytes(text[begin : begin + 8], "little")) + STEP & MASK
    return max(1, mix(value) >> 32)


def category_goes_right(number, seed):
    value = number ^ seed
    for factor in (0x9E3779B1, 0xB5D1E46B, 0xD6E8FEB9):
        value = value * factor & 0xFFFFFFFF
        value ^= value >> 15
    return value & 1


def leaf(model, root, row):
    """Return the leaf of a row in the tree with this root; None is a missing value."""
    trees, node = model["trees"], root
    while trees["left"][node] >= 0:
        column, threshold = trees["column"][node], trees["threshold"][node]
        value = row[column]
        if column in model["categorical"]:
            right = category_goes_right(0 if value is None else code(value), int(threshold))
        elif value is None:
            right = trees["missing_right"][node]
        else:
            right = threshold is not None and value >= threshold
        node = trees["left"][node] + right
    return -1 - trees["left"][node]


def added(terms):
    """Return a sum in the order of the format: four partial sums."""
    parts = [0.0] * 4
    for i, term in enumerate(terms):
        parts[i % 4] += term
    return (parts[0] + parts[1]) + (parts[2] + parts[3])


def single(number):
    """Return a number rounded to float32."""
    return struct.unpack("f", struct.pack("f", number))[0]


def features(model, row):
    """Yield the features of the linear part and the numbers of their weights."""
    linear, d = model["linear"], model["n_columns"]
    for j, value in enumerate(row):
        is_number = value is not None and j not in model["categorical"]
        scaled = (value - linear["offset"][j]) * linear["factor"][j] if is_number else 0.0
        yield single(min(max(scaled, -linear["limit"]), linear["limit"])), j
    for i, j in enumerate(model["categorical"]):
        bucket = 0 if row[j] is None else (code(row[j]) * STEP & MASK) // 2**32 % linear["n_buckets"]
        yield 0.0 if row[j] is None else linear["constant"], d + i * linear["n_buckets"] + bucket
    yield linear["constant"], len(linear["weights"]) - 1


def scores(model, row):
    """Return the scores of a row."""
    found = [0.0] * len(model["intercept"])
    leaves, linear = model["leaves"], model["linear"]
    for k in range(len(found)):
        if leaves is not None:
            values = (leaves["values"][leaf(model, root, row)][k] for root in model["trees"]["roots"])
            found[k] = added(values) * leaves["multiplier"] / leaves["divisor"]
        if linear is not None:
            found[k] += added(z * linear["weights"][place][k] for z, place in features(model, row))
        found[k] += model["intercept"][k]
    return found


def answer(model, row):
    """Return the label, or the predicted numbers, of a row."""
    found = scores(model, row)
    if model["kind"] == "regressor":
        return sorted(found) if model["ascending"] else found
    return model["labels"][int(found[0] > 0) if len(found) == 1 else found.index(max(found))]


def probabilities(model, row):
    """Return the probability of each class of a row."""
    found = scores(model, row)
    if model["link"] == "sigmoid":
        found = [1.0 / (1.0 + math.exp(-score)) for score in found]
    else:
        found = [math.exp(model["factor"] * score) for score in ([0.0, *found] if len(found) == 1 else found)]
    return [part / sum(found) for part in found]


def cells(model, row):
    """Return the cells of a row."""
    return [cell for root in model["trees"]["roots"] for cell in model["cells"][leaf(model, root, row)]]


# -- tests


def plain(X):
    """Return rows as lists, with None for missing values."""
    return [[None if pd.isna(value) else value for value in row] for row in np.asarray(X).tolist()]


def no_constants(text):
    raise AssertionError(f"{text} is not JSON")


def read(model):
    return json.loads(to_json(model), parse_constant=no_constants)


@pytest.mark.parametrize("name", MODELS)
def test_plain_python_predicts_like_the_model_bit_for_bit(name):
    model, document = fitted(name), read(fitted(name))
    X = hard_rows(model, n=60)
    if document["kind"] == "regressor":
        assert [answer(document, row) for row in plain(X)] == model_scores(model, X).tolist()
        return
    assert [scores(document, row) for row in plain(X)] == model_scores(model, X).tolist()
    assert [answer(document, row) for row in plain(X)] == model.predict(X).tolist()
    if document["link"] is not None:
        found = [probabilities(document, row) for row in plain(X)]
        np.testing.assert_allclose(found, model.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("name", ROUNDED)
def test_plain_python_predicts_like_folded_models_up_to_rounding(name):
    X = hard_rows(fitted(name), n=60)
    found = [scores(read(fitted(name)), row) for row in plain(X)]
    np.testing.assert_allclose(found, model_scores(fitted(name), X), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_plain_python_finds_the_cells_of_the_kernel(name):
    X, document = hard_rows(fitted(name), n=60), read(fitted(name))
    assert document["kind"] == "kernel"
    assert [cells(document, row) for row in plain(X)] == fitted(name).apply(X).tolist()


@pytest.mark.parametrize("linear", [True, False])
def test_plain_python_takes_categories_by_name(linear):
    frame = words()
    model = IKOGDClassifier(linear=linear, schedule="adagrad", **FEW).fit(frame, sides())
    document = read(model)
    assert (document["categorical"], document["names"]) == ([4], ["a", "b", "c", "d", "job"])
    frame = frame.assign(job=frame["job"].where(np.arange(len(frame)) % 5 > 0, "astronaut"))[:100]
    rows = plain(frame.astype(object).to_numpy())
    assert [scores(document, row) for row in rows] == model_scores(model, frame).tolist()


def test_plain_python_finds_the_cells_of_categories():
    kernel = IsolationKernel(n_cells=16, **FEW).fit(words())
    document, rows = read(kernel), plain(words().astype(object).to_numpy())
    assert [cells(document, row) for row in rows[:50]] == kernel.apply(words()[:50]).tolist()


def test_the_document_names_its_format_and_version():
    text = to_json(fitted("two classes"))
    assert text.startswith('{"format":"isokern forest","version":1,') and text.endswith("}\n")


@pytest.mark.parametrize("name", ["two classes", "many classes", "linear alone", "deep trees", "kernel, one scale"])
def test_the_estimated_size_is_near_the_real_one(name):
    assert 2 / 3 < estimate_size(fitted(name), "json") / len(to_json(fitted(name))) < 3 / 2
