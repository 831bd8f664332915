"""The command export: formats by their ending, sizes, and files that must not be replaced."""

from __future__ import annotations

import json

import numpy as np
import pytest

import isokern
from command_line import SMALL, fail, make_table, succeed, write_files
from isokern.export import to_c, to_json, to_onnx


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with small files and a model."""
    folder = tmp_path_factory.mktemp("export")
    write_files(folder)
    succeed(folder, "fit", "rows.txt", *SMALL, "--out", "model.isokern")
    return folder


def exported(folder, *arguments):
    return succeed(folder, "export", "model.isokern", *arguments).out


def test_the_ending_chooses_the_format(folder):
    model = isokern.load(folder / "model.isokern")
    for name, content in (("a.c", to_c(model)), ("a.json", to_json(model)), ("a.JSON", to_json(model))):
        shown = exported(folder, "--to", name)
        assert (folder / name).read_text() == content
        assert f"{len(content):,}" in shown and name in shown
    onnx = pytest.importorskip("onnx")
    exported(folder, "--to", "a.onnx")
    assert onnx.load(folder / "a.onnx") == to_onnx(model)
    exported(folder, "--to", "b.onnx", "--float64")
    assert onnx.load(folder / "b.onnx") == to_onnx(model, dtype="float64")


def test_an_exported_model_predicts(folder):
    onnxruntime = pytest.importorskip("onnxruntime")
    exported(folder, "--to", "c.onnx", "--float64")
    session = onnxruntime.InferenceSession(folder / "c.onnx", providers=["CPUExecutionProvider"])
    X, _ = make_table()
    (labels,) = session.run(["label"], {"X": X})
    assert np.array_equal(labels, isokern.load(folder / "model.isokern").predict(X))


def test_the_prefix_is_that_of_the_names(folder):
    exported(folder, "--to", "p.c", "--prefix", "spam")
    assert "int spam_predict(const double *row);" in (folder / "p.c").read_text()
    line = fail(folder, "export", "model.isokern", "--to", "p.c", "--prefix", "a b")
    assert "--prefix must be an identifier of C; got 'a b'" in line


def test_an_estimate_writes_nothing(folder):
    shown = exported(folder, "--to", "e.c", "--estimate")
    assert "bytes, about" in shown
    assert not (folder / "e.c").exists()


def test_an_exported_model_is_replaced_with_a_word(folder):
    for name in ("r.onnx", "r.c", "r.json"):
        assert "replaced" not in exported(folder, "--to", name)
        assert f"{name} (replaced)" in exported(folder, "--to", name)


@pytest.mark.parametrize("name", ["mine.c", "mine.json", "mine.onnx"])
def test_other_files_are_not_replaced(name, folder):
    (folder / name).write_text(json.dumps({"my": "work"}))
    line = fail(folder, "export", "model.isokern", "--to", name)
    assert f"--to must be a new file, or an exported model to replace; got {name}" in line
    assert (folder / name).read_text() == json.dumps({"my": "work"})


def test_an_export_of_another_format_is_not_replaced(folder):
    exported(folder, "--to", "s.json")
    (folder / "s.json").rename(folder / "s.c")
    assert "which is neither" in fail(folder, "export", "model.isokern", "--to", "s.c")


def test_mistakes_are_named(folder):
    assert '--to must end in ".onnx", ".c" or ".json"; got x.txt' in fail(
        folder, "export", "model.isokern", "--to", "x.txt"
    )
    assert "--to must be in a folder that exists" in fail(folder, "export", "model.isokern", "--to", "no/x.c")
    assert "--to" in fail(folder, "export", "model.isokern", code=2)
    succeed(folder, "fit", "rows.txt", "--partitioning", "voronoi", "--cells", 8, *SMALL, "--out", "voronoi.isokern")
    assert '--partitioning must be "tree"' in fail(folder, "export", "voronoi.isokern", "--to", "v.c")
    succeed(folder, "fit", "rows.txt", "--method", "ogd", "--out", "ogd.isokern")
    assert "model must be an estimator of isokern on isolation trees; got a OGD" in fail(
        folder, "export", "ogd.isokern", "--to", "v.json"
    )
    assert not (folder / "v.c").exists() and not (folder / "v.json").exists()
