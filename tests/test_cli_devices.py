"""The command line on devices: the same answers, and clear words where there is none."""

from __future__ import annotations

import numpy as np
import pytest

import isokern
from arrays import needs_torch
from command_line import run, succeed, write_files

SMALL = ("--partitionings", 10, "--threads", 1)
THERE = ("--device", "torch:cpu")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with small files and a model."""
    folder = tmp_path_factory.mktemp("models")
    write_files(folder)
    succeed(folder, "fit", "rows.txt", *SMALL, "--out", "model")
    return folder


@needs_torch
def test_a_device_changes_no_prediction(folder):
    plain, moved = (succeed(folder, "predict", "model", "rows.txt", "--scores", *device) for device in ((), THERE))
    assert moved.out == plain.out
    plain, moved = (succeed(folder, "evaluate", "model", "rows.txt", *device) for device in ((), THERE))
    assert moved.facts["n_correct"] == plain.facts["n_correct"]


@needs_torch
@pytest.mark.parametrize(
    "command", [("fit", "rows.txt"), ("stream", "rows.txt", "--initial", 50)], ids=["fit", "stream"]
)
def test_a_device_changes_nothing_that_is_learned(command, folder):
    for name, device in (("plain", ()), ("moved", THERE)):
        succeed(folder, *command, *SMALL, "--partitioning", "voronoi", "--out", name, *device)
    plain, moved = (isokern.load(folder / name) for name in ("plain", "moved"))
    assert moved.kernel_.device == "torch:cpu"
    np.testing.assert_array_equal(moved.learned_.model.values, plain.learned_.model.values)


@pytest.mark.parametrize(
    "command", [("predict", "model"), ("evaluate", "model"), ("fit",), ("stream",)], ids=lambda c: c[0]
)
def test_a_device_that_nobody_knows_is_an_error(command, folder):
    done = run(folder, *command, "rows.txt", "--device", "abacus")
    assert done.code == 1
    assert "device must be None" in " ".join(done.err.split())


def test_a_device_is_for_models_with_a_map(folder):
    done = run(folder, "fit", "rows.txt", "--method", "ogd", "--device", "cpu")
    assert "--device is not an option of --method ogd" in " ".join(done.err.split())
    succeed(folder, "fit", "rows.txt", "--method", "ogd", "--out", "rival")
    done = run(folder, "predict", "rival", "rows.txt", "--device", "cpu")
    assert "--device must be for a model with a map; got one of class OGDClassifier" in " ".join(done.err.split())
