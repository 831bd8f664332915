"""Rounds of online learning: each worker learns from its partitions, then all that was learned is averaged."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isokern.distributed.cluster import Cluster
from isokern.distributed.survey import in_partition
from isokern.feature_map import IsolationKernel
from isokern.learners import IKOGDClassifier
from isokern.merging import mean_learner


class Rows(NamedTuple):
    """Rows as cells, with their labels and weights."""

    cells: NDArray[Any]
    labels: NDArray[Any]
    weights: NDArray[np.float64] | None

    def of(self, which: Any) -> Rows:
        """Return some of the rows."""
        return Rows(self.cells[which], self.labels[which], None if self.weights is None else self.weights[which])


class Block(NamedTuple):
    """A partition on a worker: rows to learn from, and rows held out to see how well that went."""

    learned: Rows
    held_out: Rows


def make_block(partition: tuple[Any, Any, Any], number: int, kernel: IsolationKernel, share: float, seed: int) -> Block:
    """Map a partition (rows, labels, weights), and hold a share of its rows out."""
    rows, labels, weights = partition
    with in_partition(number):
        cells = kernel.apply(rows)
    every = Rows(cells, np.asarray(labels), None if weights is None else np.array(weights, dtype=np.float64))
    is_held_out = np.zeros(len(cells), dtype=bool)
    order = np.random.default_rng([seed, number]).permutation(len(cells))
    is_held_out[order[: int(share * len(cells))]] = True
    return Block(every.of(~is_held_out) if is_held_out.any() else every, every.of(is_held_out))


def without_map(learner: IKOGDClassifier) -> IKOGDClassifier:
    """Return a learner that knows how many cells there are, but not where: all it takes to learn from cells."""
    light, kernel = copy.copy(learner), copy.copy(learner.kernel_)
    for name in ("_partitionings", "_scaling"):
        kernel.__dict__.pop(name, None)
    light.kernel, light.kernel_ = None, kernel
    return light


def learn_round(
    cluster: Cluster, blocks: Sequence[Any], learner: IKOGDClassifier, seed: tuple[int, int], *, is_new: bool
) -> IKOGDClassifier:
    """Return what a learner becomes by one pass over all blocks, each on its own, averaged by their rows."""
    light, _ = cluster.reduce(_learn_block, blocks, _join_learners, without_map(learner), (seed, is_new))
    light.kernel, light.kernel_ = learner.kernel, learner.kernel_
    if not is_new:
        light._window = learner._window  # of which all parts were given a copy
    light._model.starts = learner.kernel_._cell_starts  # one array, as before
    return light


def _learn_block(
    block: Block, number: int, learner: IKOGDClassifier, how: tuple[tuple[int, int], bool]
) -> tuple[IKOGDClassifier, int]:
    seed, is_new = how
    n = len(block.learned.labels)
    part = copy.deepcopy(learner)  # which other tasks of this worker are given, too
    part._learn(*block.learned.of(np.random.default_rng([*seed, number]).permutation(n)), is_new=is_new)
    return part, n


def _join_learners(parts: list[tuple[IKOGDClassifier, int]]) -> tuple[IKOGDClassifier, int]:
    learners, sizes = zip(*parts, strict=True)
    n = sum(sizes)
    return mean_learner(learners, np.array(sizes) / n), n
