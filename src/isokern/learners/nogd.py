"""Provide NOGDClassifier: online gradient descent on the Nyström approximation of a kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isokern import _core
from isokern.checks import is_integer, is_number, n_threads, one_thread_if_small, private
from isokern.kernels import NamedKernel, check_kernel, choose_kernel
from isokern.learners.clock import Clock
from isokern.learners.duals import KernelDual
from isokern.learners.linear import LinearModel, Scores, project
from isokern.learners.parameters import check_flag, check_integer
from isokern.learners.rival import RivalClassifier
from isokern.learners.targets import Weights, some
from isokern.partitionings import check_points
from isokern.parts import Part, is_count, need, need_array
from isokern.rows import n_rows

_SMALLEST = 1e-10  # eigenvalues below this fraction of the largest are rounding noise


class NOGDClassifier(RivalClassifier):
    """Nyström online gradient descent: the first support vectors become landmarks of a low-rank linear model.

    Until ``n_landmarks`` rows have violated the margin it is :class:`OGDClassifier`. From then on each row costs
    n_landmarks kernel values and n_landmarks * rank multiplications, and memory is constant.

    Choose it if the kernel is given and speed matters more than the last points of accuracy. Choose
    :class:`FOGDClassifier` for the Gaussian kernel on dense data of moderate width.

    Parameters
    ----------
    kernel, gamma, n_cells, coef0, degree
        The kernel, see :class:`OGDClassifier`; it must be a name.
    n_landmarks : int, default=100
        Number of landmarks, b in the paper.
    rank : int, float or None, default=0.2
        Number of features, r in the paper: a count, or a fraction of n_landmarks. None means all.
    average : bool, default=True
        Whether to predict with the mean of the weights over all updates instead of the latest weights.
    scale, loss, learning_rate, n_passes, shuffle, class_weight, n_initial, n_jobs, random_state
        See :class:`OGDClassifier`.

    Attributes
    ----------
    classes_, gamma_, n_support_, n_rows_seen_
        See :class:`OGDClassifier`.

    References
    ----------
    Lu, Hoi, Wang, Zhao and Liu, "Large scale online kernel learning", JMLR, 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from isokern import NOGDClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> NOGDClassifier(random_state=0).fit(X[:1200], y[:1200]).score(X[1200:], y[1200:]) > 0.7
    True
    """

    def __init__(
        self,
        kernel: str | Callable[[Any, Any], Any] = "laplacian",
        *,
        gamma: float | str = "data",
        n_cells: int | None = None,
        coef0: float = 1.0,
        degree: int = 3,
        scale: str | None = None,
        n_landmarks: int = 100,
        rank: float | None = 0.2,
        average: bool = True,
        loss: str = "hinge",
        learning_rate: float = 0.5,
        n_passes: int = 1,
        shuffle: bool = True,
        class_weight: dict[Any, float] | str | None = None,
        n_initial: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.n_cells = n_cells
        self.coef0 = coef0
        self.degree = degree
        self.scale = scale
        self.n_landmarks = n_landmarks
        self.rank = rank
        self.average = average
        self.loss = loss
        self.learning_rate = learning_rate
        self.n_passes = n_passes
        self.shuffle = shuffle
        self.class_weight = class_weight
        self.n_initial = n_initial
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _new_model(self, table: Any, rng: np.random.RandomState) -> NystromModel:
        kernel: Any = choose_kernel(self, self._mapped(table), rng)
        first = KernelDual(kernel, self.n_features_in_, self.class_book_.n_columns, n_threads(self.n_jobs))
        rank = 1.0 if self.rank is None else self.rank
        rank = int(rank) if is_integer(rank, at_least=1) else max(1, round(rank * self.n_landmarks))
        return NystromModel(first, self.n_landmarks, rank, bool(self.average))

    def check_parameters(self) -> None:
        """Raise ValueError if a parameter is invalid."""
        if not isinstance(self.kernel, str):
            raise ValueError(f"kernel must be a name for NOGD; got {self.kernel!r}.")
        super().check_parameters()
        check_kernel(self.kernel, self.gamma, self.n_cells, self.coef0, self.degree)
        check_flag(self, "average")
        check_integer(self, "n_landmarks", at_least=1)
        is_fraction = is_number(self.rank) and 0 < self.rank <= 1
        if not (self.rank is None or is_fraction or is_integer(self.rank, at_least=1)):
            raise ValueError(f"rank must be None, an integer of at least 1 or a number in (0, 1]; got {self.rank!r}.")


@dataclass(eq=False)
class NystromModel(Part):
    """Dual model until it has enough support vectors, then a linear model on their Nyström features.

    With the eigendecomposition K_b = V A V' of the landmarks' kernel matrix, the features are z(x) = A^(-1/2) V' k(x),
    and the coefficients alpha of the dual model become the weights w = A^(1/2) V' alpha.
    """

    first: KernelDual
    n_landmarks: int
    rank: int
    average: bool
    linear: LinearModel | None = None
    landmarks: Any = None
    projection: Any = None

    @property
    def n_columns(self) -> int:
        """Number of scores."""
        return self.first.n_columns

    @property
    def clock(self) -> Clock:
        """Number of rows and support vectors so far."""
        return self.first.clock

    @property
    def kernel(self) -> NamedKernel:
        """Kernel of both models."""
        return self.first.kernel

    def learn(
        self, table: Any, targets: Any, factors: Weights, rule: _core.Rule, *, scores: Scores | None = None
    ) -> None:
        """Learn rows in order; ``scores`` receives each row's scores before its update."""
        begin, n, self.first = 0, table.shape[0], private(self.first)
        while self.linear is None and begin < n:
            # No more rows than missing landmarks, so that the switch comes right after the last landmark.
            end = min(n, begin + self.n_landmarks - self.first.size)
            part = slice(begin, end)
            self.first.learn(table[part], targets[part], some(factors, part), rule, scores=some(scores, part))
            begin = end
            if self.first.size == self.n_landmarks:
                self._switch()
        if self.linear is not None and begin < n:
            part, self.linear, self.first.clock = slice(begin, n), private(self.linear), Clock.of(self.clock)
            rest = table[part], targets[part], some(factors, part), rule
            self.linear.learn(self._learned_features, *rest, clock=self.clock, scores=some(scores, part))

    def score(self, table: Any, threads: int) -> NDArray[np.float64]:
        """Return the scores of rows, (n, n_columns)."""
        if self.linear is None:
            return self.first.score(table, threads)
        return self.linear.score(lambda rows: self._features(rows, threads), table, threads)

    def _switch(self) -> None:
        """Replace the dual model by a linear one that gives the landmarks the same scores, but for the lower rank."""
        self.landmarks, alpha, _ = self.first.support()
        matrix = self.kernel.matrix(self.landmarks, self.landmarks, self.first.n_jobs)
        with one_thread_if_small(self.n_landmarks):
            eigenvalues, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
        order = np.argsort(eigenvalues)[::-1][: self.rank]
        order = order[eigenvalues[order] > _SMALLEST * eigenvalues.max()]
        roots, vectors = np.sqrt(eigenvalues[order]), vectors[:, order]
        self.projection = vectors / roots
        self.linear = LinearModel.begun((vectors * roots).T @ alpha, average=self.average)

    def _learned_features(self, rows: Any) -> NDArray[np.float64]:
        return self._features(rows, self.first.n_jobs)

    def _features(self, rows: Any, threads: int) -> NDArray[np.float64]:
        return project(self.kernel.matrix(rows, self.landmarks, threads), self.projection, threads)

    def check(self) -> None:
        """Raise ValueError if landmarks, projection and weights do not match."""
        need(isinstance(self.first, KernelDual), "first must be a KernelDual")
        need(is_count(self.n_landmarks, at_least=1), "n_landmarks must be a positive integer")
        need(is_count(self.rank, at_least=1), "rank must be a positive integer")
        if self.linear is None:
            need(self.first.size < self.n_landmarks, "first must have fewer support vectors than n_landmarks")
            return
        need(isinstance(self.linear, LinearModel), "linear must be None or a LinearModel")
        need(self.linear.n_columns == self.n_columns, "linear must have the scores of first")
        check_points(self.landmarks)
        need_array(self.projection, np.float64, 2, "projection")
        shape = (n_rows(self.landmarks), len(self.linear.values))
        need(self.projection.shape == shape, "projection must have a row per landmark and a column per weight")
