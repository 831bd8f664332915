"""Load the model files of each release, as docs/policy.md promises.

``files/<version>.zip`` holds small models and their answers. ``python tests/test_older_files.py`` writes that of the
current version. Until the version is released, do so after a change of the files; afterwards never again.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pytest
from sklearn.base import is_regressor

import isokern
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
from isokern.persistence import ESTIMATORS

FILES = Path(__file__).with_name("files")
VERSIONS = sorted(path.stem for path in FILES.glob("*.zip"))
SMALL = {"n_partitionings": 4, "n_cells": 8, "random_state": 0}
MODELS = {
    "kernel": IsolationKernel(**SMALL),
    "kernel-voronoi": IsolationKernel("voronoi", scale="minmax", **SMALL),
    "kernel-scales": IsolationKernel(n_scales="auto", **SMALL),
    "race": IKOGDClassifier(n_partitionings=4, max_model_size=2**12, random_state=0),
    "paper": IKOGDClassifier(schedule="constant", learning_rate=0.5, **SMALL),
    "average": IKOGDClassifier("voronoi", schedule="adagrad", average=True, **SMALL),
    "dual": IKOGDClassifier(schedule="constant", evaluation="dual", **SMALL),
    "regressor": IKOGDRegressor(n_partitionings=4, max_model_size=2**12, random_state=0),
    "quantiles": IKOGDRegressor(loss="quantile", quantiles=[0.1, 0.5], **SMALL),
    "search": IKOGDClassifierCV(n_partitionings=4, n_cells=[4, 8], random_state=0),
    "number-search": IKOGDRegressorCV(n_partitionings=4, n_cells=[4, 8], random_state=0),
    "svc": IKSVC(**SMALL),
    "svc-paper": IKSVC(n_scales=1, linear=False, **SMALL),
    "adaptive": AdaptiveIKClassifier(6, random_state=0),
    "adaptive-regressor": AdaptiveIKRegressor(6, random_state=0),
    "ogd": OGDClassifier(budget=15, random_state=0),
    "nogd": NOGDClassifier(n_landmarks=20, random_state=0),
    "fogd": FOGDClassifier(n_frequencies=8, random_state=0),
    "adaraker": AdaRakerClassifier(n_directions=4, random_state=0),
}


def make_rows(n=120):
    """Return rows of three columns, and labels 0 to 2."""
    X = np.arange(3 * n).reshape(n, 3) * [7, 11, 13] % 64 / 64.0
    return X, ((X[:, 0] > 0.5).astype(int) + (X[:, 1] > 0.6)).astype(int)


def answers(model, X):
    """Return the numbers that a model must not change: cells, predicted numbers or scores."""
    if isinstance(model, IsolationKernel):
        return model.apply(X)
    return model.predict(X) if is_regressor(model) else model.decision_function(X)


def write(path):
    """Fit, save and ask the models."""
    X, y = make_rows()
    expected = {}
    with tempfile.TemporaryDirectory() as folder, ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, model in MODELS.items():
            isokern.save(model.fit(X, y), Path(folder, name))
            archive.write(Path(folder, name), name)
            expected[name] = answers(model, X[:20]).tolist()
        archive.writestr("answers.json", json.dumps(expected))


@pytest.fixture(params=VERSIONS)
def loaded(request, tmp_path):
    """Return the models of a release and the answers that they gave, by name."""
    with ZipFile(FILES / f"{request.param}.zip") as archive:
        archive.extractall(tmp_path)
    expected = json.loads((tmp_path / "answers.json").read_text())
    return {name: (isokern.load(tmp_path / name), values) for name, values in expected.items()}


def test_there_are_files_of_this_release():
    assert isokern.__version__ in VERSIONS


def test_models_of_a_release_answer_as_they_did(loaded):
    X, _ = make_rows()
    for name, (model, values) in loaded.items():
        np.testing.assert_allclose(answers(model, X[:20]), values, rtol=1e-9, atol=1e-9, err_msg=name)


def test_models_of_a_release_learn_on(loaded):
    X, y = make_rows()
    for model, _ in loaded.values():
        (model.partial_fit if hasattr(model, "partial_fit") else model.fit)(X, y)
        assert np.isfinite(answers(model, X[:20])).all()


def test_every_kind_of_estimator_has_a_file():
    assert {type(model) for model in MODELS.values()} == set(ESTIMATORS)


if __name__ == "__main__":
    write(FILES / f"{isokern.__version__}.zip")
