"""Provide AdaRakerClassifier: online multi-kernel learning with random features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isokern import _core
from isokern.checks import is_number, n_threads, own_arrays
from isokern.learners.clock import Clock
from isokern.learners.linear import Scores, learning_blocks, project, random_directions
from isokern.learners.parameters import check_choice, check_integer
from isokern.learners.rival import RivalClassifier
from isokern.learners.targets import Weights
from isokern.parts import Part, need, need_array
from isokern.rows import CoreRows, n_rows, row_blocks

PAPERS_BANDWIDTHS = tuple(2.0**m for m in range(-10, 6))


class AdaRakerClassifier(RivalClassifier):
    """Online multi-kernel learning: an adaptive mixture of Gaussian kernels by random features, with logistic loss.

    Experts learn on intervals of length 1, 2, 4, ... and are weighted by their recent losses, so that the model follows
    slow and fast changes. Each row costs n_directions multiplications per non-zero value, n_kernels * n_directions
    sines and cosines, and 2 * n_kernels * n_directions multiplications for each of log2(rows) experts. Memory is
    n_columns * n_directions values plus the experts.

    Choose it if nothing is known about the bandwidth and the data drift. It is slow, and gets slower as the stream
    grows.

    Parameters
    ----------
    bandwidths : sequence of float, default=(2**-10, ..., 2**5)
        sigma of the kernels ``exp(-sigma^2 |x - z|^2 / 2)``. All kernels share the random directions.
    n_directions : int, default=50
        Number D of orthogonal random directions; each kernel has 2 D features.
    learning_rate : float, default=0.5
        eta_0: the expert of intervals of length L takes steps of eta_0 / sqrt(L), at most 0.5.
    shrinkage : float, default=5e-4
        Strength lambda of the L2 penalty ``lambda |theta|^2``.
    restart : {"warm", "cold"}, default="warm"
        Whether an expert keeps its weights when a new interval starts.
    scale, n_passes, shuffle, class_weight, n_initial, n_jobs, random_state
        See :class:`OGDClassifier`.

    Attributes
    ----------
    classes_, n_support_
        See :class:`OGDClassifier`. Every row changes the model.

    References
    ----------
    Shen, Chen and Giannakis, "Random feature-based online multi-kernel learning in environments with unknown dynamics",
    JMLR, 2019.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from isokern import AdaRakerClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> AdaRakerClassifier(scale="standard", random_state=0).fit(X[:400], y[:400]).score(X[400:], y[400:]) > 0.8
    True
    """

    losses = ("logistic",)
    loss = "logistic"
    kernel = gamma = n_cells = None

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
        directions = np.ascontiguousarray(random_directions(self.n_features_in_, self.n_directions, rng))
        bandwidths = np.array(self.bandwidths, dtype=np.float64)
        rates = (float(self.learning_rate), float(self.shrinkage), self.restart == "cold")
        shape = (self.class_book_.n_columns, 0, len(bandwidths))  # no experts yet
        theta = np.zeros((*shape, 2 * self.n_directions), dtype=np.float32)
        experts = theta, np.zeros(shape), np.zeros(shape[:2])
        return AdaRakerModel(directions, bandwidths, shape[0], rates, n_threads(self.n_jobs), *experts)

    def check_parameters(self) -> None:
        """Raise ValueError if a parameter is invalid."""
        super().check_parameters()
        bandwidths = np.asarray(self.bandwidths, dtype=object).ravel()
        if not len(bandwidths) or not all(is_number(value) and value > 0 for value in bandwidths):
            raise ValueError(f"bandwidths must be positive numbers; got {self.bandwidths!r}.")
        check_integer(self, "n_directions", at_least=1)
        if not (is_number(self.shrinkage) and 0 <= self.shrinkage < 1):
            raise ValueError(f"shrinkage must be at least 0 and below 1; got {self.shrinkage!r}.")
        check_choice(self, "restart", ("warm", "cold"))


@dataclass(eq=False)
class AdaRakerModel(Part):
    """Random directions and the weights of the experts; the number of experts is log2(rounds) + 1."""

    directions: NDArray[np.float64]
    bandwidths: NDArray[np.float64]
    n_columns: int
    rates: tuple[float, float, bool]  # learning rate, shrinkage, and whether experts restart from zero weights
    n_jobs: int
    theta: NDArray[np.float32]  # weights of the features, of shape (n_columns, n_experts, n_kernels, n_features)
    weights: NDArray[np.float64]  # weights of the kernels, of shape (n_columns, n_experts, n_kernels)
    confidences: NDArray[np.float64]  # weights of the experts, of shape (n_columns, n_experts)
    clock: Clock = field(default_factory=Clock)

    def learn(
        self, table: Any, targets: Any, factors: Weights, rule: _core.Rule, *, scores: Scores | None = None
    ) -> None:
        """Learn rows in order; ``scores`` receives each row's scores before its update."""
        for rows, part, weights, out in learning_blocks(table, targets, factors, scores):
            n, projections = n_rows(rows), self._projections(rows, self.n_jobs)
            later = self.clock.later(n, n, is_new=rule.is_new)
            self._make_room(later.rounds.bit_length())
            self._core().learn(projections, part, weights, self.clock.rounds, out)
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
            raise ValueError("X must be smaller; got values whose products with the directions overflow. Scale X.")
        return projections

    def _core(self) -> _core.AdaRaker:
        own_arrays(self)
        return _core.AdaRaker(self.bandwidths, self.theta, self.weights, self.confidences, *self.rates)

    def _make_room(self, n_experts: int) -> None:
        """Copy the arrays, with zero weights for new experts."""
        missing = max(0, n_experts - self.theta.shape[1])
        for name in ("theta", "weights", "confidences"):
            array = getattr(self, name)
            room = np.zeros((array.shape[0], missing, *array.shape[2:]), dtype=array.dtype)
            setattr(self, name, np.concatenate([array, room], axis=1))

    def check(self) -> None:
        """Raise ValueError if the arrays of the experts do not match the kernels and the number of rounds."""
        need(isinstance(self.clock, Clock), "clock must be a Clock")
        need_array(self.directions, np.float64, 2, "directions")
        need_array(self.bandwidths, np.float64, 1, "bandwidths")
        shape = (self.n_columns, self.clock.rounds.bit_length(), len(self.bandwidths))
        need(self.theta.shape == (*shape, 2 * self.directions.shape[1]), "theta must have a row per expert and kernel")
        need(self.weights.shape == shape, "weights must have one per expert and kernel")
        need(self.confidences.shape == shape[:2], "confidences must have one per expert")
