"""Models as ONNX: ONNX Runtime gives the labels, scores, probabilities, numbers and cells of the model."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from forests import FEW, KERNELS, MODELS, ROUNDED, fitted, hard_rows, numbers, sides, words
from isokern import IKOGDClassifier, IKOGDRegressor, IsolationKernel, OGDClassifier
from isokern.export import estimate_size, onnx_writer, to_onnx
from isokern.export.onnx_writer import rounded_up

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

TOLERANCE = 1e-5
TYPES = {"float32": np.float32, "float64": np.float64}


def run(model, X):
    """Return the outputs of ONNX Runtime by name, for rows whose type is that of the graph."""
    exported = to_onnx(model, dtype=X.dtype.name)
    onnx.checker.check_model(exported, full_check=True)
    session = onnxruntime.InferenceSession(exported.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": X}), strict=True))


def assert_same_labels(model, X, labels):
    """Compare labels wherever the margin is not within the tolerance."""
    scores = model.decision_function(X)
    ordered = np.sort(scores, axis=1) if scores.ndim == 2 else np.column_stack([np.zeros(len(X)), np.abs(scores)])
    is_clear = ordered[:, -1] - ordered[:, -2] > TOLERANCE
    assert is_clear.mean() > 0.9
    assert np.array_equal(labels[is_clear], model.predict(X)[is_clear])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", [*MODELS, *ROUNDED])
def test_onnx_runtime_predicts_like_the_model(name, dtype):
    model = fitted(name)
    X = hard_rows(model, TYPES[dtype])
    found = run(model, X)
    if "prediction" in found:
        expected = model.predict(X)
        assert list(found) == ["prediction"] and found["prediction"].dtype == dtype
        assert found["prediction"].shape == expected.shape
        np.testing.assert_allclose(found["prediction"], expected, rtol=TOLERANCE, atol=TOLERANCE)
        return
    assert_same_labels(model, X, found["label"])
    np.testing.assert_allclose(found["scores"], model.decision_function(X), rtol=TOLERANCE, atol=TOLERANCE)
    assert ("probabilities" in found) == (name != "machine on one scale")
    if "probabilities" in found:
        np.testing.assert_allclose(found["probabilities"], model.predict_proba(X), atol=TOLERANCE)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", KERNELS)
def test_onnx_runtime_finds_the_cells_of_the_kernel(name, dtype):
    X = hard_rows(fitted(name), TYPES[dtype])
    assert np.array_equal(run(fitted(name), X)["cells"], fitted(name).apply(X))


def test_float64_input_takes_float64_ways():
    kernel = fitted("kernel, one scale")
    X = hard_rows(kernel)
    assert not np.array_equal(kernel.apply(X), kernel.apply(X.astype(np.float32)))  # so the types matter here


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(-2, 2))
def test_float32_numbers_compare_alike_with_a_threshold_and_with_it_rounded_up(threshold, steps):
    (rounded,) = rounded_up(np.array([threshold]), np.float32)
    x = np.float32(np.clip(threshold, -3e38, 3e38))
    for _ in range(abs(steps)):
        x = np.nextafter(x, np.float32(np.copysign(np.inf, steps)))
    assert (x < rounded) == (float(x) < threshold)


def test_thresholds_beyond_float32_are_rounded_to_infinity():
    assert rounded_up(np.array([1e300, -1e300]), np.float32).tolist() == [np.inf, -float(np.finfo(np.float32).max)]


@pytest.mark.parametrize("name", ["two classes", "many classes", "quantiles", "linear alone", "kernel, all scales"])
def test_no_rows_give_no_answers(name):
    outputs = run(fitted(name), np.empty((0, fitted(name).n_features_in_), dtype=np.float32))
    assert all(len(values) == 0 for values in outputs.values())


def test_labels_keep_their_type():
    rows = {name: run(fitted(name), hard_rows(fitted(name)))["label"] for name in MODELS if "labels" in name}
    assert {name: labels.dtype.kind for name, labels in rows.items()} == {
        "text labels": "O",
        "truth labels": "b",
        "float labels": "f",
    }
    assert run(fitted("many classes"), hard_rows(fitted("many classes")))["label"].dtype == np.int64


def test_a_sparse_winner_scores_dense_rows():
    model = fitted("sparse rows")
    X = np.maximum(numbers(), 0)
    np.testing.assert_allclose(run(model, X)["scores"], model.decision_function(X), atol=TOLERANCE)


def test_ties_of_the_paper_s_learner_stay_ties():
    model = IKOGDClassifier(schedule="constant", average=False, n_partitionings=8, n_cells=4, random_state=0)
    model.fit(numbers()[:20], sides()[:20])
    X = np.random.default_rng(0).normal(size=(2000, 5))
    assert (model.decision_function(X) == 0).any()
    found = run(model, X)
    assert np.array_equal(found["label"], model.predict(X))


def test_the_names_of_the_columns_are_kept():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(numbers(), columns=list("abcde"))
    exported = to_onnx(IsolationKernel(n_cells=8, **FEW).fit(frame))
    (entry,) = exported.metadata_props
    assert (entry.key, json.loads(entry.value)) == ("column_names", list("abcde"))
    assert exported.producer_name == "isokern"


@pytest.mark.parametrize("name", ["two classes", "many classes", "linear alone", "deep trees", "kernel, one scale"])
def test_the_estimated_size_is_near_the_real_one(name):
    assert 2 / 3 < estimate_size(fitted(name), "onnx") / to_onnx(fitted(name)).ByteSize() < 3 / 2


# -- errors


def test_categories_are_refused_with_a_cure():
    for model in (
        IKOGDClassifier(**FEW).fit(words(), sides()),
        IKOGDRegressor(n_cells=8, linear=False, **FEW).fit(words(), sides()),
        IsolationKernel(n_cells=8, **FEW).fit(words()),
    ):
        with pytest.raises(ValueError, match=r"model must have no categorical columns for ONNX.* got 1 .* Use to_c or"):
            to_onnx(model)


def test_rivals_and_other_objects_are_refused():
    for model in (OGDClassifier().fit(numbers(), sides()), object()):
        with pytest.raises(ValueError, match=f"model must be an estimator of isokern.*; got a {type(model).__name__}"):
            to_onnx(model)


def test_a_model_on_a_cluster_is_refused_with_a_cure():
    distributed = pytest.importorskip("isokern.distributed")
    with pytest.raises(ValueError, match=r"got a DaskIKOGDClassifier. Export what its to_local returns\."):
        to_onnx(distributed.DaskIKOGDClassifier())


def test_models_beyond_the_limit_of_the_format_are_refused(monkeypatch):
    monkeypatch.setattr(onnx_writer, "_LARGEST_FILE", 1000)
    with pytest.raises(ValueError, match="model must take less than 2 GiB as ONNX; it would take about"):
        to_onnx(fitted("two classes"))


def test_wrong_types_are_refused():
    with pytest.raises(ValueError, match='dtype must be "float32" or "float64"; got'):
        to_onnx(fitted("two classes"), dtype="float16")
    with pytest.raises(ValueError, match='form must be "onnx", "c" or "json"; got'):
        estimate_size(fitted("two classes"), "xml")


def test_without_the_package_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install isokern\[onnx\]"):
        to_onnx(fitted("two classes"))
