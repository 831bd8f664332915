"""Represent a fitted tree model as a forest: nodes as arrays, a value for each leaf, and a linear part.

This is the form in which a model leaves the library (``isokern.export``). Estimators on isolation trees return it by
``forest()``: a copy of one moment, which later learning does not change.

The scores of a row x are computed in float64, in this order::

    sum_k    = sum over the trees of values[leaf of x in the tree, k]
    score_k  = sum_k * multiplier / divisor
    score_k += sum over the features z_j of weights[j, k] * z_j      if there is a linear part
    score_k += intercept_k

Sums are made of N_PARTS partial sums: term i goes to partial sum i % 4, and the four are added as (0 + 1) + (2 + 3). In
this order, scores of dense rows equal those of the model bit for bit. Three kinds of models differ by rounding:
averaged weights, naive evaluation, and maps that renew themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

N_PARTS = 4  # partial sums; kParts in cpp/online/cell_places.hpp


@dataclass(frozen=True, eq=False)
class Trees:
    """Nodes of trees, one tree after the other; nodes and leaves are numbered through all trees.

    Node k sends a row to node ``left[k]`` if its number in ``column[k]`` is below ``threshold[k]``, else to
    ``left[k] + 1``. A missing number goes to ``left[k] + 1`` if ``missing_right[k]``, else to ``left[k]``. If the
    column is one of ``categorical``, the threshold is a seed, and the side is one bit of a hash of seed and category
    (``cpp/trees/splits.hpp``). A leaf has ``-1 - leaf`` in ``left``. Children come after their parent.
    """

    n_columns: int
    column: NDArray[np.int32]
    threshold: NDArray[np.float64]  # a scaling of columns is folded in; infinite where only missing values go right
    left: NDArray[np.int64]
    missing_right: NDArray[np.bool_]
    n_points: NDArray[np.int32]  # number of sampled points that the node was grown from
    starts: NDArray[np.int64]  # index of each root, and the number of nodes
    cells: NDArray[np.int64]  # of each leaf, its number among the cells of its tree
    categorical: NDArray[np.int32]  # numbers of the columns that hold categories

    @property
    def n_trees(self) -> int:
        """Number of trees."""
        return len(self.starts) - 1

    @property
    def n_leaves(self) -> int:
        """Number of leaves of all trees."""
        return len(self.cells)

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Which nodes are leaves."""
        return self.left < 0

    @property
    def tree_of_node(self) -> NDArray[np.int64]:
        """Number of the tree of each node."""
        return np.repeat(np.arange(self.n_trees), np.diff(self.starts))

    @property
    def tree_of_leaf(self) -> NDArray[np.int64]:
        """Number of the tree of each leaf."""
        return self.tree_of_node[self.is_leaf]

    @classmethod
    def joined(cls, parts: Sequence[Trees]) -> Trees:
        """Return the trees of all parts, which have the same columns."""
        starts, left, n_nodes, n_leaves = [np.zeros(1, dtype=np.int64)], [], 0, 0
        for part in parts:
            left.append(np.where(part.is_leaf, part.left - n_leaves, part.left + n_nodes))
            starts.append(part.starts[1:] + n_nodes)
            n_nodes, n_leaves = n_nodes + len(part.left), n_leaves + part.n_leaves
        same = ("column", "threshold", "missing_right", "n_points", "cells")
        arrays: Any = {name: np.concatenate([getattr(part, name) for part in parts]) for name in same}
        arrays |= {"left": np.concatenate(left), "starts": np.concatenate(starts)}
        return cls(n_columns=parts[0].n_columns, categorical=parts[0].categorical, **arrays)


@dataclass(frozen=True, eq=False)
class LeafSum:
    """The part of scores that comes from trees."""

    trees: Trees
    values: NDArray[np.float64]  # (n_leaves, n_scores)
    multiplier: float
    divisor: float


@dataclass(frozen=True, eq=False)
class LinearSum:
    """The part of scores that is linear in the features z of a row: its columns, its categories, and a constant.

    The feature of a column is (x - offset) * factor in float64, cut to [-limit, limit] and rounded to float32; it is 0
    if x is missing. A category of code c in the i-th of the ``categorical`` columns is the constant, or 0 if it is
    missing; its weight has the number n_columns + i * n_buckets + (c * 0x9E3779B97F4A7C15 mod 2^64) // 2^32 mod
    n_buckets. The last feature is the constant, times the last weight.
    """

    offset: NDArray[np.float64]  # by column
    factor: NDArray[np.float64]  # by column; 0 for categorical ones
    limit: float
    constant: np.float32
    categorical: NDArray[np.int64]
    n_buckets: int
    weights: NDArray[np.float32]  # (n_columns + len(categorical) * n_buckets + 1, n_scores)


@dataclass(frozen=True, eq=False)
class Classes:
    """What the scores of a classifier mean.

    Two classes have one score, and the second is predicted if it is positive; more have one each, and the first of the
    largest is predicted. Probabilities by ``link``:

    - "softmax": the softmax of ``factor`` times the scores; of two classes, the first has the score 0.
    - "sigmoid": the sigmoid of each score, divided by their sum.
    - None: there are none.
    """

    labels: NDArray[Any]
    link: str | None
    factor: float = 1.0


@dataclass(frozen=True, eq=False)
class Numbers:
    """What the scores of a regressor mean: they are the predictions, sorted in each row if they are quantiles."""

    ascending: bool


@dataclass(frozen=True, eq=False)
class Forest:
    """A fitted model whose scores are sums; see the module for their order."""

    n_columns: int
    leaves: LeafSum | None
    linear: LinearSum | None
    intercept: NDArray[np.float64]  # (n_scores,)
    answer: Classes | Numbers
    names: list[str] | None  # of the columns

    @property
    def n_scores(self) -> int:
        """Number of scores of a row."""
        return len(self.intercept)

    @property
    def categorical(self) -> NDArray[Any]:
        """Numbers of the columns that hold categories."""
        part: Any = self.linear if self.leaves is None else self.leaves.trees
        return part.categorical


@dataclass(frozen=True, eq=False)
class CellForest:
    """A fitted kernel: the cells of each leaf, (n_leaves, n_scales), from coarse to fine."""

    trees: Trees
    cells: NDArray[np.int64]
    names: list[str] | None


def column_names(estimator: Any) -> list[str] | None:
    """Return the names of the columns that an estimator was fitted to, if they have names."""
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]
