"""``--device``: the same results as without, and clear errors."""

from __future__ import annotations

import numpy as np
import pytest

import isokern
from arrays import needs_torch
from command_line import SMALL, fail, succeed, write_files

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
@pytest.mark.parametrize("command", ["fit rows.txt", "stream rows.txt --initial 50"])
def test_a_device_does_not_change_what_is_learned(command, folder):
    for name, device in (("plain", ()), ("moved", THERE)):
        succeed(folder, *command.split(), *SMALL, "--partitioning", "voronoi", "--out", name, *device)
    plain, moved = (isokern.load(folder / name) for name in ("plain", "moved"))
    assert moved.kernel_.device == "torch:cpu"
    np.testing.assert_array_equal(moved.learned_.model.values, plain.learned_.model.values)


@pytest.mark.parametrize("command", ["predict model", "evaluate model", "fit", "stream"])
def test_an_unknown_device_is_an_error(command, folder):
    assert "device must be None" in fail(folder, *command.split(), "rows.txt", "--device", "abacus")


def test_a_device_needs_a_model_with_an_isolation_kernel(folder):
    error = fail(folder, "fit", "rows.txt", "--method", "ogd", "--device", "cpu")
    assert "--device is not an option of --method ogd" in error
    succeed(folder, "fit", "rows.txt", "--method", "ogd", "--out", "rival")
    error = fail(folder, "predict", "rival", "rows.txt", "--device", "cpu")
    assert "--device must be for a model with an Isolation Kernel; got one of class OGDClassifier" in error
