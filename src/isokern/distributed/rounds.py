"""Run rounds of online learning: each partition learns on its own, then the results are averaged."""

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
from isokern.learners.classes import ClassWeight
from isokern.learners.one_vs_rest import OneVsRest
from isokern.learners.steps import Steps
from isokern.learners.targets import some


class Rows(NamedTuple):
    """Cells of rows, with their labels and weights."""

    cells: NDArray[Any]
    labels: NDArray[Any]
    weights: NDArray[np.float64] | None

    def of(self, which: Any) -> Rows:
        """Return some of the rows."""
        return Rows(self.cells[which], self.labels[which], some(self.weights, which))


class Block(NamedTuple):
    """A mapped partition on a worker: training rows and validation rows."""

    learned: Rows
    held_out: Rows


def make_block(partition: tuple[Any, Any, Any], number: int, kernel: IsolationKernel, share: float, seed: int) -> Block:
    """Map a partition (rows, labels, weights) and hold out a share of its rows for validation."""
    rows, labels, weights = partition
    with in_partition(number):
        cells = kernel.apply(rows)
    every = Rows(cells, np.asarray(labels), None if weights is None else np.array(weights, dtype=np.float64))
    is_held_out = np.zeros(len(cells), dtype=bool)
    order = np.random.default_rng([seed, number]).permutation(len(cells))
    is_held_out[order[: int(share * len(cells))]] = True
    return Block(every.of(~is_held_out) if is_held_out.any() else every, every.of(is_held_out))


def learn_round(
    cluster: Cluster, blocks: Sequence[Any], learner: IKOGDClassifier, seed: tuple[int, int], *, is_new: bool
) -> IKOGDClassifier:
    """Return the learner after one pass over each block, averaged with weights proportional to the blocks' rows."""
    how = (Steps.of(learner), learner.class_weight, is_new)
    learned, _ = cluster.reduce(_learn_block, blocks, _join, learner.learned_, seed, how)
    learned.model.starts = learner.learned_.model.starts  # share one array instead of keeping a copy
    if not is_new:
        learned.window = learner.learned_.window  # unchanged in every part, so there is nothing to merge
    taught = copy.copy(learner)
    taught.learned_ = learned
    return taught


def _learn_block(
    block: Block, number: int, learned: OneVsRest, seed: tuple[int, int], how: tuple[Steps, ClassWeight, bool]
) -> tuple[OneVsRest, int]:
    n, (steps, class_weight, is_new) = len(block.learned.labels), how
    part = copy.deepcopy(learned)  # tasks on one worker share their arguments
    rows = block.learned.of(np.random.default_rng([*seed, number]).permutation(n))
    part.learn(*rows, steps, class_weight=class_weight, is_new=is_new)
    return part, n


def _join(parts: list[tuple[OneVsRest, int]]) -> tuple[OneVsRest, int]:
    learned, sizes = zip(*parts, strict=True)
    n = sum(sizes)
    return OneVsRest.merge(learned, np.array(sizes) / n), n
