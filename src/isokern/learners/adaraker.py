"""AdaRaker: many kernels by random features, and experts for what changes fast and slowly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from isokern import _core
from isokern.checks import is_integer, is_number, n_threads, one_of, own_arrays
from isokern.learners.clock import Clock
from isokern.learners.linear import learning_blocks, project, random_directions
from isokern.learners.rival import RivalClassifier
from isokern.learners.targets import Weights
from isokern.parts import Part, need, need_array
from isokern.rows import CoreRows, n_rows, row_blocks

PAPERS_BANDWIDTHS = tuple(2.0**m for m in range(-10, 6))
_RESTARTS = ("warm", "cold")


class AdaRakerClassifier(RivalClassifier):
    """Online learning with many Gaussian kernels at once, weighted by how well they do, on logistic loss.

    A row costs (number of non-zero values) * n_directions products, n_kernels * n_directions sines and cosines, and
    2 * n_kernels * n_directions products for each of log2(rounds) experts: slow, and the slower the longer the stream.
    Memory is columns * n_directions plus that of the experts. Choose it if nothing is known of the right bandwidth and
    the data drift.

    Parameters
    ----------
    bandwidths : sequence of float, default=2^-10, ..., 2^5
        sigma of the kernels exp(-sigma^2 |x - z|^2 / 2), all with the same random directions.
    n_directions : int, default=50
        Number of orthogonal random directions D; each kernel has 2 D features.
    learning_rate : float, default=0.5
        eta_0: the expert of intervals of length L takes steps of eta_0 / sqrt(L), at most 0.5.
    shrinkage : float, default=5e-4
        lambda of the penalty lambda |theta|^2.
    restart : {"warm", "cold"}, default="warm"
        Whether an expert keeps what it has learned when a new interval begins.
    scale, n_passes, shuffle, class_weight, n_initial, n_jobs, random_state
        See :class:`OGDClassifier`.

    Attributes
    ----------
    classes_ : ndarray
        The classes, sorted.

    References
    ----------
    Shen, Chen and Giannakis, "Random feature-based online multi-kernel learning in environments with unknown
    dynamics", 2019.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from isokern import AdaRakerClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> AdaRakerClassifier(random_state=0).fit(scale(X), y).score(scale(X), y) > 0.8
    True
    """

    losses = ("logistic",)
    loss = "logistic"
    gamma = None

    def __init__(
        self,
        bandwidths: Sequence[float] = PAPERS_BANDWIDTHS,
        *,
        n_directions: int = 50,
        scale: str | None = None,
        learning_rate: float = 0.5,
        shrinkage: float = 5e-4,
        restart: str = "warm",
        n_passes: int = 1,
        shuffle: bool = True,
        class_weight: dict[Any, float] | str | None = None,
        n_initial: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.bandwidths = bandwidths
        self.n_directions = n_directions
        self.scale = scale
        self.learning_rate = learning_rate
        self.shrinkage = shrinkage
        self.restart = restart
        self.n_passes = n_passes
        self.shuffle = shuffle
        self.class_weight = class_weight
        self.n_initial = n_initial
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _new_model(self, table: Any, rng: np.random.RandomState) -> AdaRakerModel:
        directions = random_directions(self.n_features_in_, self.n_directions, rng)
        bandwidths = np.array(self.bandwidths, dtype=np.float64)
        rates = (float(self.learning_rate), float(self.shrinkage), self.restart == "cold")
        n_columns, threads = self.class_book_.n_columns, n_threads(self.n_jobs)
        return AdaRakerModel.begun(directions, bandwidths, n_columns, rates, threads)

    def check_parameters(self) -> None:
        """Raise unless all parameters are what they may be."""
        super().check_parameters()
        bandwidths = np.asarray(self.bandwidths, dtype=object).ravel()
        if not len(bandwidths) or not all(is_number(value) and value > 0 for value in bandwidths):
            raise ValueError(f"bandwidths must be positive numbers; got {self.bandwidths!r}.")
        if not is_integer(self.n_directions, at_least=1):
            raise ValueError(f"n_directions must be an integer of at least 1; got {self.n_directions!r}.")
        if not (is_number(self.shrinkage) and 0 <= self.shrinkage < 1):
            raise ValueError(f"shrinkage must be at least 0 and below 1; got {self.shrinkage!r}.")
        if self.restart not in _RESTARTS:
            raise ValueError(f"restart must be {one_of(_RESTARTS)}; got {self.restart!r}.")


@dataclass(eq=False)
class AdaRakerModel(Part):
    """Random directions, and the experts' weights; there is one more expert whenever the rounds double."""

    directions: NDArray[np.float64]
    bandwidths: NDArray[np.float64]
    n_columns: int
    rates: tuple[float, float, bool]
    """Learning rate, shrinkage, and whether experts restart from nothing."""
    n_jobs: int
    theta: NDArray[np.float32]
    """Weights of the features, (n_columns, n_experts, n_kernels, n_features)."""
    weights: NDArray[np.float64]
    """Of the kernels, (n_columns, n_experts, n_kernels)."""
    confidences: NDArray[np.float64]
    """In the experts, (n_columns, n_experts)."""
    clock: Clock = field(default_factory=Clock)

    @classmethod
    def begun(
        cls,
        directions: NDArray[np.float64],
        bandwidths: NDArray[np.float64],
        n_columns: int,
        rates: tuple[float, float, bool],
        n_jobs: int,
    ) -> Self:
        """Return a model without experts."""
        n_kernels, n_features = len(bandwidths), 2 * directions.shape[1]
        theta = np.zeros((n_columns, 0, n_kernels, n_features), dtype=np.float32)
        weights, confidences = np.zeros((n_columns, 0, n_kernels)), np.zeros((n_columns, 0))
        directions = np.ascontiguousarray(directions)
        return cls(directions, bandwidths, n_columns, rates, n_jobs, theta, weights, confidences)

    def learn(self, table: Any, targets: Any, factors: Weights, rule: _core.Rule) -> None:
        """Learn from rows in order."""
        for rows, part, weights in learning_blocks(table, targets, factors):
            projections, later = self._projections(rows, self.n_jobs), self.clock.later(n_rows(rows), n_rows(rows))
            self._make_room(later.rounds.bit_length())
            self._core().learn(projections, part, weights, self.clock.rounds)
            self.clock = later

    def score(self, table: Any, threads: int) -> NDArray[np.float64]:
        """Return the scores of rows, (n, n_columns)."""
        scores = np.zeros((table.shape[0], self.n_columns))
        for begin, rows in row_blocks(table):
            out = scores[begin : begin + n_rows(rows)]
            self._core().score(self._projections(rows, threads), self.clock.rounds, out, threads)
        return scores

    def _projections(self, rows: CoreRows, threads: int) -> NDArray[np.float64]:
        projections = project(rows, self.directions, threads)
        if not np.isfinite(projections).all() or np.abs(projections).max() > 1e300 / self.bandwidths.max():
            raise ValueError("X must be smaller: its products with the directions overflow. Scale it first.")
        return projections

    def _core(self) -> _core.AdaRaker:
        own_arrays(self)
        return _core.AdaRaker(self.bandwidths, self.theta, self.weights, self.confidences, *self.rates)

    def _make_room(self, n_experts: int) -> None:
        missing = max(0, n_experts - self.theta.shape[1])
        for name in ("theta", "weights", "confidences"):
            array = getattr(self, name)
            room = np.zeros((array.shape[0], missing, *array.shape[2:]), dtype=array.dtype)
            setattr(self, name, np.concatenate([array, room], axis=1))

    def check(self) -> None:
        """Raise unless the experts' arrays fit the kernels and the rounds."""
        need(isinstance(self.clock, Clock), "the clock must be one")
        need_array(self.directions, np.float64, 2, "directions")
        need_array(self.bandwidths, np.float64, 1, "bandwidths")
        shape = (self.n_columns, self.clock.rounds.bit_length(), len(self.bandwidths))
        need(self.theta.shape == (*shape, 2 * self.directions.shape[1]), "theta must have a row for each kernel")
        need(self.weights.shape == shape, "weights must have one for each kernel")
        need(self.confidences.shape == shape[:2], "confidences must have one for each expert")
