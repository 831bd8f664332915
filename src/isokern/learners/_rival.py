"""What the paper's rivals share: a classifier of known classes whose model takes rows as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isokern import _core
from isokern.learners._classes import OnlineClassifier

_FIRST_ROWS = 1000


class RivalClassifier(OnlineClassifier):
    """Base of the rivals: a subclass makes ``_model`` in ``_prepare``, with ``learn``, ``score`` and ``clock``."""

    _LOSSES: tuple[str, ...] = ("hinge", "squared_hinge", "logistic")

    def _mapped(self, table: Any) -> Any:
        return table

    def _rate(self) -> Any:
        return self.learning_rate

    def _rule(self, counted_from: list[int]) -> _core.Rule:
        return _core.Rule(self.loss, 0.0, "constant", self._rate(), 0.0, counted_from)

    def _counted_from(self, classes: NDArray[np.intp]) -> list[int]:
        return [0] * self._n_columns()

    def _n_initial(self) -> int:
        if not self._needs_rows():
            return 0
        return _FIRST_ROWS if self.n_initial is None else int(self.n_initial)

    def _needs_rows(self) -> bool:
        """Return whether something has to be learned from the first rows before the model can begin."""
        return self.gamma == "data"
