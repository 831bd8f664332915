"""Test the kernel on real data sets, as a user would."""

from __future__ import annotations

import lzma

import pytest
from sklearn.datasets import load_svmlight_file
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from isokern import IsolationKernel


@pytest.fixture(scope="module")
def a9a(data_set):
    def load(name):
        with lzma.open(data_set(name)) as file:
            return load_svmlight_file(file, n_features=123)

    (X, y), (X_test, y_test) = load("a9a"), load("a9a.t")
    return X[:5000], y[:5000], X_test[:2000], y_test[:2000]


def test_a_precomputed_kernel_classifies_a9a(a9a):
    X, y, X_test, y_test = a9a
    X, y = X[:1500], y[:1500]
    kernel = IsolationKernel(random_state=0).fit(X)
    model = SVC(kernel="precomputed").fit(kernel.similarity(X), y)
    assert model.score(kernel.similarity(X_test, X), y_test) > 0.8


@pytest.mark.parametrize("partitioning", ["tree", "voronoi"])
def test_a_pipeline_with_a_linear_classifier_classifies_a9a(partitioning, a9a):
    X, y, X_test, y_test = a9a
    model = make_pipeline(IsolationKernel(partitioning, random_state=0), LinearSVC()).fit(X, y)
    assert model.score(X_test, y_test) > 0.8


@pytest.mark.usefixtures("memory_is_known")
@pytest.mark.parametrize("partitioning", ["tree", "voronoi"])
def test_three_million_columns_are_mapped_in_memory_that_follows_the_stored_values(partitioning, data_set, run_script):
    code = """
import lzma, sys
from sklearn.datasets import load_svmlight_file
with lzma.open(sys.argv[1]) as file:
    X, y = load_svmlight_file(file, n_features=3_231_961)
before = megabytes("VmRSS")
cells = IsolationKernel(sys.argv[2], 20, 64, random_state=0).fit(X).apply(X)
assert cells.shape == (3000, 20)
print(megabytes("VmHWM") - before)
"""
    assert float(run_script(code, data_set("url_subset"), partitioning)) < 600
