"""The paper's settings, and the figures that it published."""

from __future__ import annotations

from isokern.data import list_datasets

# -- the paper's defaults

LEARNING_RATE = 0.5  # eta, of all learners
N_PARTITIONINGS = 100  # t
N_LANDMARKS = 100  # b
RANK = 20  # r = 0.2 b
BLOCK = 1000  # rows of a stream that are predicted, then learned
N_FOLDS = 5

# -- what is searched by cross-validation, and AdaRaker's kernels

N_CELLS_SEARCHED = tuple(2**m for m in range(2, 13))  # psi; the Laplacian kernel's lambda is ln(psi) / d
ADARAKER_LAMBDAS_SEARCHED = tuple(10.0**m / part for m in (-2, -3, -4, -5) for part in (1, 2))
ADARAKER_SIGMAS = tuple(2.0**m for m in range(-10, 6))

# -- ours

N_THREADS = 2  # of each measurement; the paper reports CPU seconds
FEATURE_MAP_CELLS = (16, 1024)  # psi of the maps whose sizes are measured
FEATURE_MAP_ROWS = 1_000  # that are mapped for it
POLYNOMIAL_DEGREE = 2  # h
TIME_LIMITS = {"quick": 120.0, "full": 3600.0}  # seconds for one cell, unless told otherwise

# -- published

# Rows to learn from and to test on, columns, per cent of values that are not 0. They are the catalogue's, too.
DATASETS_PUBLISHED = {
    info.name: (info.n_train, info.n_test, info.n_features, round(100 * info.density, 4)) for info in list_datasets()
}
DATASETS = tuple(DATASETS_PUBLISHED)

# How many dimensions a kernel's feature map has; an Isolation Kernel's t * psi have t that are not 0.
FEATURE_MAP_SIZE_PUBLISHED = {"Gaussian": "infinite", "Polynomial": "C(d+h,h)", "Isolation": "t psi -> t"}
