"""Settings and published figures of the experiments on machines, graphics cards and the shapes of kernels."""

from __future__ import annotations

from typing import Any

N_PARTITIONINGS = 100  # the paper's t
CANDIDATE_CELLS = tuple(2**m for m in range(2, 13))  # the paper's psi, searched by cross-validation
QUICK_CELLS = (4, 16, 64, 256)  # of them, for Voronoi cells at quick scale

# Machines.
N_FOLDS = 5
CROSS_VALIDATION_ROWS = {"quick": 1_000, "full": 5_120}  # with 5,120, folds leave 4,096 rows: as many as cells at most
SVM_ROWS = {"quick": (2_000, 1_000), "full": (None, None)}  # to learn from and to test on, at most
LIBSVM_ROWS = 20_000  # to learn from, at most: their Gram matrix takes 3.2 GB
LIBLINEAR_TOLERANCE = 0.1  # that program's own default

# Mapping on the CPU and on graphics cards.
PAPERS_OGD: dict[str, Any] = {"schedule": "constant", "learning_rate": 0.5, "n_passes": 1, "shuffle": False}

# The kernel on uniform data.
SHAPE_CELLS = 256
SHAPE_TABLE_CELLS = (16, 64, 256, 1024, 4096)
SHAPE_ROWS = 20_000
SHAPE_PARTITIONINGS = {"quick": 1_000, "full": 10_000}  # at most; as many as make no more than so many cells in all:
SHAPE_ALL_CELLS = {"quick": 1_024_000, "full": 10_240_000}

# Contours.
CONTOUR_CELLS, CONTOUR_PARTITIONINGS = 10, 1_000

# Accuracy and CPU seconds of training and testing; None where the paper has no figure.
SVM_PUBLISHED: dict[str, dict[str, tuple[float | None, float | str]]] = {
    "SVM": {
        "url": (0.67, 29_528),
        "news20.binary": (0.50, 684),
        "rcv1.binary": (0.54, 7_472),
        "real-sim": (0.75, 1_116),
        "smallNORB": (None, "> 12 hrs"),
        "cifar-10": (0.51, 3_703),
        "epsilon": (None, "> 12 hrs"),
        "mnist": (0.98, 919),
        "a9a": (0.85, 69),
        "covertype": (None, "> 12 hrs"),
        "ijcnn1": (0.99, 59),
    },
    "IK_a-SVM": {
        "url": (0.96, 1.3),
        "news20.binary": (0.92, 1.5),
        "rcv1.binary": (0.96, 0.6),
        "real-sim": (0.96, 1.2),
        "smallNORB": (0.88, 0.9),
        "cifar-10": (0.71, 1.2),
        "epsilon": (0.70, 90.0),
        "mnist": (0.99, 1.0),
        "a9a": (0.84, 0.5),
        "covertype": (0.93, 63.1),
        "ijcnn1": (0.98, 2.4),
    },
}

# Accuracy, or why there is none.
ADDITIVE_PUBLISHED: dict[str, dict[str, float | str]] = {
    "LIBSVM, IK_a": {
        "url": 0.96,
        "news20.binary": 0.89,
        "rcv1.binary": 0.96,
        "real-sim": 0.95,
        "smallNORB": 0.88,
        "cifar-10": 0.71,
        "epsilon": 0.72,
        "mnist": 0.98,
        "a9a": 0.84,
        "covertype": 0.93,
        "ijcnn1": 0.97,
    },
    "LIBSVM, chi2": {
        "url": 0.98,
        "news20.binary": 0.97,
        "rcv1.binary": 0.96,
        "real-sim": 0.97,
        "smallNORB": 0.81,
        "cifar-10": "> 1 week",
        "epsilon": "> 1 week",
        "mnist": 0.92,
        "a9a": 0.85,
        "covertype": 0.77,
        "ijcnn1": 0.90,
    },
    "LIBLINEAR, chi2": {
        "url": "> 64 GB",
        "news20.binary": 0.97,
        "rcv1.binary": 0.95,
        "real-sim": 0.97,
        "smallNORB": 0.81,
        "cifar-10": 0.67,
        "epsilon": 0.85,
        "mnist": 0.91,
        "a9a": 0.85,
        "covertype": 0.75,
        "ijcnn1": 0.91,
    },
    "LIBLINEAR, IK_a": {
        "url": 0.96,
        "news20.binary": 0.92,
        "rcv1.binary": 0.96,
        "real-sim": 0.96,
        "smallNORB": 0.88,
        "cifar-10": 0.71,
        "epsilon": 0.70,
        "mnist": 0.99,
        "a9a": 0.84,
        "covertype": 0.93,
        "ijcnn1": 0.98,
    },
}

# Columns of the chi-squared kernel's map.
CHI2_FEATURES_PUBLISHED: dict[str, int | None] = {
    "url": None,
    "news20.binary": 1_355_191,
    "rcv1.binary": 47_236,
    "real-sim": 20_958,
    "smallNORB": 18_432,
    "cifar-10": 3_072,
    "epsilon": 2_000,
    "mnist": 780,
    "a9a": 123,
    "covertype": 54,
    "ijcnn1": 22,
}

# Seconds of IK_a-OGD: nearly all of them go into mapping.
GPU_PUBLISHED = {
    "CPU": {
        "url": 1_527,
        "news20.binary": 1_079,
        "rcv1.binary": 100_247,
        "real-sim": 31_946,
        "smallNORB": 406_256,
        "cifar-10": 340_047,
        "epsilon": 1_029_092,
        "mnist": 56_774,
        "a9a": 5_589,
        "covertype": 100_081,
        "ijcnn1": 11_999,
    },
    "GPU": {
        "url": 65,
        "news20.binary": 10,
        "rcv1.binary": 67,
        "real-sim": 10,
        "smallNORB": 178,
        "cifar-10": 147,
        "epsilon": 458,
        "mnist": 45,
        "a9a": 3,
        "covertype": 42,
        "ijcnn1": 3,
    },
}
