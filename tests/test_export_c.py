"""Models as C source: compiled without warnings, they compute the model's scores bit for bit."""

from __future__ import annotations

import ctypes
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

from forests import FEW, KERNELS, MODELS, ROUNDED, fitted, hard_rows, model_scores, numbers, sides, words
from isokern import IKOGDClassifier, IKOGDRegressor, IsolationKernel
from isokern.export import estimate_size, to_c

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
FLAGS = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1", "-ffp-contract=off")

if COMPILER is None:
    pytest.skip("there is no C compiler", allow_module_level=True)


def pointer(row):
    return row.ctypes.data_as(ctypes.c_void_p)


class Compiled:
    """A model as a library of functions on rows."""

    def __init__(self, model, folder, flags=FLAGS, prefix="isokern"):
        (folder / "model.c").write_text(to_c(model, prefix=prefix))
        command = [COMPILER, *flags, "-shared", "-fPIC", "-o", "model.so", "model.c", "-lm"]
        subprocess.run(command, cwd=folder, check=True)
        self.library, self.prefix = ctypes.CDLL(str(folder / "model.so")), prefix

    def __getattr__(self, name):
        return getattr(self.library, f"{self.prefix}_{name}")

    def each(self, name, X, n, dtype=np.float64):
        """Return what a function writes for each row, (n_rows, n)."""
        X, out = np.ascontiguousarray(X, dtype=np.float64), np.empty((len(X), n), dtype=dtype)
        for row, answer in zip(X, out, strict=True):
            getattr(self, name)(pointer(row), pointer(answer))
        return out

    def labels(self, X):
        """Return the number of the class of each row."""
        return np.array([self.predict(pointer(row)) for row in np.ascontiguousarray(X, dtype=np.float64)])


@pytest.mark.parametrize("name", MODELS)
def test_c_computes_the_scores_of_the_model_bit_for_bit(name, tmp_path):
    model = fitted(name)
    X, compiled = hard_rows(model), Compiled(model, tmp_path)
    expected = model_scores(model, X)
    is_classifier = hasattr(model, "classes_")
    assert np.array_equal(compiled.each("scores" if is_classifier else "predict", X, expected.shape[1]), expected)
    if is_classifier:
        assert np.array_equal(model.classes_[compiled.labels(X)], model.predict(X))
        if model.forest().answer.link is not None:
            found = compiled.each("probabilities", X, len(model.classes_))
            np.testing.assert_allclose(found, model.predict_proba(X), atol=1e-12)


@pytest.mark.parametrize("name", ROUNDED)
def test_c_computes_folded_scores_up_to_rounding(name, tmp_path):
    model = fitted(name)
    X, compiled = hard_rows(model), Compiled(model, tmp_path)
    expected = model_scores(model, X)
    found = compiled.each("scores", X, expected.shape[1])
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_c_finds_the_cells_of_the_kernel(name, tmp_path):
    X = hard_rows(fitted(name))
    expected = fitted(name).apply(X)
    found = Compiled(fitted(name), tmp_path).each("apply", X, expected.shape[1], np.int32)
    assert np.array_equal(found, expected)


def test_float32_rows_are_widened(tmp_path):
    model = fitted("linear and cells")
    X = hard_rows(model, np.float32)
    assert np.array_equal(Compiled(model, tmp_path).each("scores", X, 4), model.decision_function(X))


def test_optimised_code_with_fused_multiply_add_computes_the_same(tmp_path):
    # Products of two floats are exact doubles, so that fusing them with a sum changes nothing.
    model = fitted("linear and cells")
    X, flags = hard_rows(model), ("-std=c99", "-O3", "-march=native", "-ffp-contract=fast")
    assert np.array_equal(Compiled(model, tmp_path, flags).each("scores", X, 4), model.decision_function(X))


@pytest.mark.parametrize("linear", [True, False])
@pytest.mark.parametrize("kind", [IKOGDClassifier, IKOGDRegressor])
def test_c_takes_categories_by_name(kind, linear, tmp_path):
    frame = words()
    model = kind(n_cells=16, linear=linear, **FEW).fit(frame, sides())
    compiled = Compiled(model, tmp_path)
    frame = frame.assign(job=frame["job"].where(np.arange(len(frame)) % 5 > 0, "astronaut"))  # never seen
    X = frame.drop(columns="job").assign(job=[coded(compiled, name) for name in frame["job"]])
    assert np.array_equal(compiled.each("scores", X.to_numpy(), 1), model_scores(model, frame))


def coded(compiled, name):
    """Return a category as a number in a row."""
    compiled.category.restype = ctypes.c_double
    return np.nan if pd.isna(name) else compiled.category(name.encode())


def test_c_finds_the_cells_of_categories(tmp_path):
    kernel = IsolationKernel(n_cells=16, **FEW).fit(words())
    compiled = Compiled(kernel, tmp_path)
    X = words().drop(columns="job").assign(job=[coded(compiled, name) for name in words()["job"]])
    assert np.array_equal(compiled.each("apply", X.to_numpy(), 11, np.int32), kernel.apply(words()))


@pytest.mark.parametrize(
    ("name", "kind"),
    [("text labels", ctypes.c_char_p), ("many classes", ctypes.c_int64), ("float labels", ctypes.c_double)],
)
def test_labels_are_those_of_the_model(name, kind, tmp_path):
    classes = fitted(name).classes_.tolist()
    labels = list((kind * len(classes)).in_dll(Compiled(fitted(name), tmp_path).library, "isokern_labels"))
    assert [label.decode() if isinstance(label, bytes) else label for label in labels] == classes


def test_two_models_can_be_linked_into_one_program(tmp_path):
    for prefix, name in (("first", "two classes"), ("second", "many classes")):
        (tmp_path / f"{prefix}.c").write_text(to_c(fitted(name), prefix=prefix))
    (tmp_path / "main.c").write_text("int main(void) { return 0; }\n")
    command = [COMPILER, *FLAGS, "-o", "both", "main.c", "first.c", "second.c", "-lm"]
    subprocess.run(command, cwd=tmp_path, check=True)


def test_names_of_columns_cannot_end_the_comment_they_are_in(tmp_path):

    names = ["*/", "/*", "??/", 'a"b\\', "Größe\n"]
    frame = pd.DataFrame(numbers(), columns=names)
    model = IKOGDClassifier(n_cells=8, **FEW).fit(frame, sides())
    compiled = Compiled(model, tmp_path)
    assert np.array_equal(compiled.each("scores", frame.to_numpy(), 1)[:, 0], model.decision_function(frame))


@pytest.mark.parametrize("name", ["two classes", "many classes", "linear alone", "deep trees", "kernel, one scale"])
def test_the_estimated_size_is_near_the_real_one(name):
    assert 2 / 3 < estimate_size(fitted(name), "c") / len(to_c(fitted(name))) < 3 / 2


@pytest.mark.parametrize("prefix", ["", "a b", "1st", "é", None])
def test_prefixes_that_are_no_identifiers_are_refused(prefix):
    with pytest.raises(ValueError, match="prefix must be an identifier of C; got"):
        to_c(fitted("two classes"), prefix=prefix)
