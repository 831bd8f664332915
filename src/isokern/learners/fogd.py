"""Provide FOGDClassifier: online gradient descent on random Fourier features."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isokern import _core
from isokern.checks import n_threads, private
from isokern.kernels import check_gamma, gamma_from_data
from isokern.learners.clock import Clock
from isokern.learners.linear import LinearModel, Scores, project, random_directions
from isokern.learners.parameters import check_choice, check_flag, check_integer
from isokern.learners.rival import RivalClassifier
from isokern.learners.targets import Weights
from isokern.parts import Part, need, need_array
from isokern.rows import CoreRows


class FOGDClassifier(RivalClassifier):
    """Fourier online gradient descent: a linear model on random Fourier features of a Gaussian or Laplacian kernel.

    Each row costs n_frequencies multiplications per non-zero value, plus n_frequencies sines and cosines. Memory is
    constant, but the frequencies take n_columns * n_frequencies values.

    Choose it for dense data of moderate width if a smooth kernel suits them. Do not choose it for millions of columns,
    or where the bandwidth should adapt to the local density; :class:`IKOGDClassifier` handles both.

    Parameters
    ----------
    kernel : {"gaussian", "laplacian"}, default="gaussian"
        Kernel to approximate.
    gamma : float or "data", default="data"
        Inverse bandwidth: ``exp(-gamma |x - z|^2)`` or ``exp(-gamma |x - z|_1)``. "data" means one over the mean of
        that distance over random pairs of rows.
    n_frequencies : int, default=400
        Number of frequencies; there are twice as many features.
    features : {"plain", "orthogonal"}, default="plain"
        Whether frequencies are drawn independently or, for the Gaussian kernel only, orthogonal to each other.
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
    Lu, Hoi, Wang, Zhao and Liu, "Large scale online kernel learning", JMLR, 2016; Rahimi and Recht, "Random features
    for large-scale kernel machines", NIPS, 2007; Yu, Suresh, Choromanski, Holtmann-Rice and Kumar, "Orthogonal random
    features", NIPS, 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from isokern import FOGDClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> FOGDClassifier(random_state=0).fit(X[:1200], y[:1200]).score(X[1200:], y[1200:]) > 0.8
    True
    """

    n_cells = None

    def __init__(
        self,
        kernel: str = "gaussian",
        *,
        gamma: float | str = "data",
        scale: str | None = None,
        n_frequencies: int = 400,
        features: str = "plain",
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
        self.scale = scale
        self.n_frequencies = n_frequencies
        self.features = features
        self.average = average
        self.loss = loss
        self.learning_rate = learning_rate
        self.n_passes = n_passes
        self.shuffle = shuffle
        self.class_weight = class_weight
        self.n_initial = n_initial
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _new_model(self, table: Any, rng: np.random.RandomState) -> FourierModel:
        is_given = self.gamma != "data"
        self.gamma_ = float(self.gamma) if is_given else gamma_from_data(self.kernel, self._mapped(table), rng)
        shape = (self.n_features_in_, self.n_frequencies)
        if self.kernel == "laplacian":
            frequencies = self.gamma_ * rng.standard_cauchy(shape)
        elif self.features == "orthogonal":
            frequencies = np.sqrt(2 * self.gamma_) * random_directions(*shape, rng)
        else:
            frequencies = np.sqrt(2 * self.gamma_) * rng.standard_normal(shape)
        values = np.zeros((2 * self.n_frequencies, self.class_book_.n_columns))
        linear = LinearModel.begun(values, average=bool(self.average))
        return FourierModel(np.ascontiguousarray(frequencies), linear, n_threads(self.n_jobs))

    def check_parameters(self) -> None:
        """Raise ValueError if a parameter is invalid."""
        super().check_parameters()
        check_choice(self, "kernel", ("gaussian", "laplacian"))
        check_gamma(self.gamma)
        check_flag(self, "average")
        check_integer(self, "n_frequencies", at_least=1)
        check_choice(self, "features", ("plain", "orthogonal"))
        if self.features == "orthogonal" and self.kernel != "gaussian":
            raise ValueError(f'features must be "plain" unless the kernel is Gaussian; got {self.features!r}.')


@dataclass(eq=False)
class FourierModel(Part):
    """Linear model on the features z(x) = [cos(x' Omega), sin(x' Omega)] / sqrt(D)."""

    frequencies: NDArray[np.float64]  # Omega, of shape (n_columns of X, D)
    linear: LinearModel
    n_jobs: int
    clock: Clock = field(default_factory=Clock)

    @property
    def n_columns(self) -> int:
        """Number of scores."""
        return self.linear.n_columns

    def learn(
        self, table: Any, targets: Any, factors: Weights, rule: _core.Rule, *, scores: Scores | None = None
    ) -> None:
        """Learn rows in order; ``scores`` receives each row's scores before its update."""
        self.linear, self.clock = private(self.linear), Clock.of(self.clock)
        given = table, targets, factors, rule
        self.linear.learn(lambda rows: self.features(rows, self.n_jobs), *given, clock=self.clock, scores=scores)

    def score(self, table: Any, threads: int) -> NDArray[np.float64]:
        """Return the scores of rows, (n, n_columns)."""
        return self.linear.score(lambda rows: self.features(rows, threads), table, threads)

    def features(self, rows: CoreRows, threads: int) -> NDArray[np.float64]:
        """Return the features z of rows, (n, 2 D)."""
        angles = project(rows, self.frequencies, threads)
        if not np.isfinite(angles).all():
            raise ValueError(
                "X must be smaller; got values whose products with the frequencies overflow. Scale X or lower gamma."
            )
        return np.hstack([np.cos(angles), np.sin(angles)]) / np.sqrt(angles.shape[1])

    def check(self) -> None:
        """Raise ValueError if weights and frequencies do not match."""
        need_array(self.frequencies, np.float64, 2, "frequencies")
        need(isinstance(self.linear, LinearModel), "linear must be a LinearModel")
        need(isinstance(self.clock, Clock), "clock must be a Clock")
        need(len(self.linear.values) == 2 * self.frequencies.shape[1], "linear must have two weights per frequency")
