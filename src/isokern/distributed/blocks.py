"""Map the partitions of a survey and keep them on the workers, in the form that a model learns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from dask import delayed

from isokern.checks import n_threads
from isokern.distributed.cluster import Cluster
from isokern.distributed.remote import for_workers
from isokern.distributed.survey import Survey, in_partition, stacked
from isokern.engines import engine_of
from isokern.feature_map import IsolationKernel
from isokern.learners import IKOGDClassifier
from isokern.learners.features import Features
from isokern.learners.linear_term import LinearTerm
from isokern.learners.race import Race
from isokern.learners.targets import some


class Rows(NamedTuple):
    """Mapped rows with their labels and weights."""

    codes: Any  # cells or, with several scales, what determines them; None if no model has cells
    table: Any  # the rows themselves; None if no model has a linear term
    labels: Any
    weights: Any  # None if all rows count the same

    def of(self, which: Any) -> Rows:
        """Return some of the rows."""
        return Rows(*(some(values, which) for values in self))

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return the rows of several blocks."""
        return cls(*(None if values[0] is None else stacked(values) for values in zip(*parts, strict=True)))


class Block(NamedTuple):
    """A mapped partition on a worker: training rows and validation rows."""

    learned: Rows
    held_out: Rows


class Needs(NamedTuple):
    """What models learn from: cells, the rows' columns, or both."""

    cells: bool
    columns: bool

    @classmethod
    def of(cls, learned: Any) -> Self:
        """Return the needs of a learned state."""
        if not isinstance(learned, Race):
            return cls(cells=True, columns=False)
        models = learned.models
        return cls(any(model.scales for model in models), any(model.linear_values is not None for model in models))

    def trim(self, block: Block) -> Block:
        """Return a block without what no model needs."""
        kept = [(rows.codes if self.cells else None, rows.table if self.columns else None, *rows[2:]) for rows in block]
        return Block(*(Rows(*values) for values in kept))


class Ground(NamedTuple):
    """What workers need to compute features of rows."""

    kernel: IsolationKernel
    term: LinearTerm | None

    def features(self, rows: Rows, learned: Any) -> Any:
        """Return rows in the form that a learned state takes: cells, or features of several kinds."""
        if not isinstance(learned, Race):
            return rows.codes
        return Features(self.kernel.map_, self.term, rows.codes, rows.table, n_threads(self.kernel.n_jobs))


class Mapped(NamedTuple):
    """References to the mapped partitions and to their ground, which stay on the workers."""

    cluster: Cluster
    blocks: list[Any]
    sizes: list[int]  # rows of each partition
    ground: Any

    @classmethod
    def of(cls, survey: Survey, learner: IKOGDClassifier, share: float, seed: int) -> Self:
        """Map all partitions and hold out a share of their rows for validation."""
        ground = survey.cluster.send(Ground(for_workers(learner.kernel_), learner.linear_term_))
        needs, held_out = Needs.of(learner.learned_), (share, seed)
        tasks = [delayed(_map)(block, k, ground, needs, held_out) for k, block in enumerate(survey.blocks)]
        return cls(survey.cluster, survey.cluster.persist(tasks), [part.n for part in survey.seen], ground)

    def trimmed(self, learned: Any) -> Self:
        """Return the partitions without what a learned state does not need."""
        trim = delayed(Needs.of(learned).trim)
        return self._replace(blocks=self.cluster.persist([trim(block) for block in self.blocks]))

    def reduce(self, work: Callable[..., Any], join: Callable[..., Any], *shared: Any) -> Any:
        """Compute ``work(block, its number, ground, *shared)`` for every block, see :meth:`Cluster.reduce`."""
        return self.cluster.reduce(work, self.blocks, join, self.ground, *shared)


def _map(
    partition: tuple[Any, Any, Any], number: int, ground: Ground, needs: Needs, held_out: tuple[float, int]
) -> Block:
    """Map a partition (rows, labels, weights) and hold out rows: (share, seed)."""
    (rows, labels, weights), (share, seed) = partition, held_out
    with in_partition(number):
        table = engine_of(rows).read(ground.kernel, rows)
        codes = ground.kernel.code_rows(table) if needs.cells else None
    every = Rows(
        codes,
        table if needs.columns else None,
        np.asarray(labels),
        None if weights is None else np.array(weights, dtype=np.float64),
    )
    n = len(every.labels)
    is_held_out = np.zeros(n, dtype=bool)
    is_held_out[np.random.default_rng([seed, number]).permutation(n)[: int(share * n)]] = True
    return Block(every.of(~is_held_out) if is_held_out.any() else every, every.of(is_held_out))
