"""What the paper's rivals share: a classifier of known classes whose model takes rows as they are, or scaled."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from isokern import _core
from isokern.learners.classes import OnlineClassifier
from isokern.rows import as_scipy, row_blocks
from isokern.scaling import Scaling, check_scale

_FIRST_ROWS = 1000


class RivalClassifier(OnlineClassifier):
    """Base of the rivals: a subclass makes ``_model`` in ``_make_model``, with ``learn``, ``score`` and ``clock``."""

    _LOSSES: tuple[str, ...] = ("hinge", "squared_hinge", "logistic")
    _LEARNED: tuple[str, ...] = (*OnlineClassifier._LEARNED, "_scaling")
    _scaling: Scaling | None

    def _prepare(self, X: Any, table: Any, rng: np.random.RandomState) -> None:
        """Learn the scaling, and make the model from scaled rows."""
        blocks = (rows for _, rows in row_blocks(table))
        self._scaling = None if self.scale is None else Scaling.learn(self.scale, blocks)
        self._make_model(X, self._mapped(table), rng)

    def _mapped(self, table: Any) -> Any:
        if self._scaling is None:
            return table
        blocks = [as_scipy(self._scaling.apply(rows)) for _, rows in row_blocks(table)]
        return sparse.vstack(blocks, format="csr") if sparse.issparse(table) else np.concatenate(blocks)

    def _rate(self) -> Any:
        return self.learning_rate

    def _rule(self, counted_from: list[int]) -> _core.Rule:
        return _core.Rule(self.loss, 0.0, "constant", self._rate(), 0.0, counted_from)

    def _counted_from(self, classes: NDArray[np.intp]) -> list[int]:
        return [0] * self._n_columns()

    def _n_initial(self) -> int:
        if self.scale is None and not self._needs_rows():
            return 0
        return _FIRST_ROWS if self.n_initial is None else int(self.n_initial)

    def _needs_rows(self) -> bool:
        """Return whether the model has to learn something from the first rows before it can begin."""
        return self.gamma == "data"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_scale(self.scale)
