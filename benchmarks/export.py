"""Compare exported models with the model they come from, on a million rows.

python benchmarks/export.py [--rows 1000000] [--save docs/results/export]

Models of two and of seven classes, and a regressor, learn synthetic rows. ONNX Runtime and the compiled C source
then answer all rows; a tenth of their numbers are thresholds of the trees or next to them. The script fails unless
labels are the same wherever the margin is above 1e-5, scores of ONNX agree to 1e-5, and those of C are the same bytes.
"""

from __future__ import annotations

import argparse
import ctypes
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
from measuring import Page, circumstances, environment, table_head, table_line

from isokern import IKOGDClassifier, IKOGDRegressor
from isokern.export import to_c, to_onnx

N_TRAIN, N_TREES, N_COLUMNS, BLOCK = 5_000, 25, 10, 50_000
TOLERANCE = 1e-5
MODELS = {
    "two classes": lambda X: IKOGDClassifier(n_partitionings=N_TREES, random_state=0).fit(X, X[:, 0] * X[:, 1] > 0),
    "seven classes": lambda X: IKOGDClassifier(n_partitionings=N_TREES, random_state=0).fit(
        X, np.digitize(X[:, 0] * X[:, 1], np.linspace(-1, 1, 6))
    ),
    "regressor": lambda X: IKOGDRegressor(n_partitionings=N_TREES, random_state=0).fit(
        X, 100 * np.sin(X[:, 0]) * X[:, 1]
    ),
}


def thresholds_of(model):
    """Return the thresholds of a model's trees as float32, by column."""
    trees = model.forest().leaves.trees
    return [trees.threshold[~trees.is_leaf & (trees.column == j)].astype(np.float32) for j in range(N_COLUMNS)]


def hard_rows(rng, thresholds, n):
    """Return float32 rows, a tenth of whose numbers are at thresholds of a model's trees or next to them."""
    X = rng.normal(size=(n, N_COLUMNS)).astype(np.float32)
    for j, at in enumerate(thresholds):
        rows = rng.choice(n, n // 10, replace=False)
        near = rng.choice(at, len(rows))
        X[rows, j] = np.nextafter(near, near + rng.integers(-1, 2, len(rows)).astype(np.float32))
    return X


ALL_SCORES = """
void isokern_scores(const double *row, double *scores);
void all_scores(const double *rows, long n_rows, long n_columns, double *scores, long n_scores) {
    for (long r = 0; r < n_rows; ++r)
        isokern_scores(rows + r * n_columns, scores + r * n_scores);
}
"""


def compiled(model, folder):
    """Return a function that computes the scores of rows by the C source, with one thread."""
    (folder / "model.c").write_text(to_c(model))
    (folder / "rows.c").write_text(ALL_SCORES)
    command = ["cc", "-std=c99", "-O2", "-ffp-contract=off", "-shared", "-fPIC", "-o", "model.so", "model.c", "rows.c"]
    subprocess.run([*command, "-lm"], cwd=folder, check=True)
    all_scores = ctypes.CDLL(str(folder / "model.so")).all_scores

    def scores_of(X, n_scores):
        rows, scores = X.astype(np.float64), np.empty((len(X), n_scores))
        sizes = [ctypes.c_long(n) for n in (*rows.shape, n_scores)]
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (rows, scores)]
        all_scores(pointers[0], *sizes[:2], pointers[1], sizes[2])
        return scores

    return scores_of


def margins(scores):
    """Return how far the best score is ahead, or the number itself for two classes."""
    if scores.shape[1] == 1:
        return np.abs(scores[:, 0])
    ordered = np.sort(scores, axis=1)
    return ordered[:, -1] - ordered[:, -2]


class Difference:
    """The differences between an export and its model so far."""

    def __init__(self):
        self.n_rows = self.n_unequal = self.n_close = self.n_labels = self.n_close_labels = 0
        self.largest = 0.0

    def add(self, model, scores, labels, expected):
        """Count a block of rows."""
        self.n_rows += len(scores)
        self.n_unequal += int((scores != expected).sum())
        self.largest = max(self.largest, float(np.abs(scores - expected).max() / max(1.0, expected.std())))
        if labels is not None:
            is_close = margins(expected) <= TOLERANCE
            is_other = labels != model.predict_scores(expected)
            self.n_close += int(is_close.sum())
            self.n_labels += int((is_other & ~is_close).sum())
            self.n_close_labels += int((is_other & is_close).sum())


class Model:
    """A model with its rows' scores as (n, n_scores)."""

    def __init__(self, model):
        self.model, self.is_classifier = model, hasattr(model, "classes_")

    def scores(self, X):
        scores = self.model.decision_function(X) if self.is_classifier else self.model.predict(X)
        return scores.reshape(len(X), -1)

    def predict_scores(self, scores):
        numbers = scores.argmax(axis=1) if scores.shape[1] > 1 else (scores[:, 0] > 0).astype(int)
        return self.model.classes_[numbers]


def compare(name, n_rows, page):
    """Compare the exports of one model; return the rows of the table."""
    rng = np.random.default_rng(0)
    model = Model(MODELS[name](rng.normal(size=(N_TRAIN, N_COLUMNS)).astype(np.float32)))
    sessions, thresholds = {}, thresholds_of(model.model)
    for dtype in ("float32", "float64"):
        content = to_onnx(model.model, dtype=dtype).SerializeToString()
        sessions[dtype] = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    found = {f"ONNX, {dtype}": Difference() for dtype in sessions} | {"C": Difference()}
    with tempfile.TemporaryDirectory() as folder:
        c_scores = compiled(model.model, Path(folder))
        for begin in range(0, n_rows, BLOCK):
            X = hard_rows(rng, thresholds, min(BLOCK, n_rows - begin))
            expected = model.scores(X)
            for dtype, session in sessions.items():
                scores, labels = run_onnx(session, X.astype(dtype), model.is_classifier)
                found[f"ONNX, {dtype}"].add(model, scores, labels, expected)
            scores = c_scores(X, expected.shape[1])
            found["C"].add(model, scores, model.predict_scores(scores) if model.is_classifier else None, expected)
    for form, difference in found.items():
        shown = (difference.n_unequal, f"{difference.largest:.1e}", difference.n_labels, difference.n_close_labels)
        page.add(table_line(name, form, f"{difference.n_rows:,}", *shown, difference.n_close))
    return found


def run_onnx(session, X, is_classifier):
    """Return scores, (n, n_scores), and labels or None."""
    names = ["scores", "label"] if is_classifier else ["prediction"]
    scores, *labels = session.run(names, {"X": X})
    return scores.reshape(len(X), -1), labels[0] if labels else None


def main():
    """Print a table, and fail if an export differs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--save", help="write this file, with .md and .json")
    options = parser.parse_args()
    record, page = environment(), Page()
    page.add("# Exported models beside the model they come from\n")
    page.add("Labels and scores of exported models and of the model: `python benchmarks/export.py`.")
    page.add(f"{circumstances(record)} ONNX Runtime {onnxruntime.__version__}.\n")
    unequal, close = "scores not the same bytes", "rows with a margin up to 1e-5"
    labels = ("other labels, margin above 1e-5", "other labels, margin up to 1e-5")
    page.add(table_head("model", "export", "rows", unequal, "largest difference", *labels, close))
    found = {name: compare(name, options.rows, page) for name in MODELS}
    page.add("\nDifferences of the regressor are in standard deviations of its predictions.")
    if options.save:
        rows = [vars(part) | {"model": m, "export": form} for m, forms in found.items() for form, part in forms.items()]
        page.save(options.save, record | {"rows": rows})
    all_found = [part for forms in found.values() for part in forms.values()]
    is_same = all(part.n_labels == 0 and part.largest <= TOLERANCE for part in all_found)
    return 0 if is_same and all(forms["C"].n_unequal == 0 for forms in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
