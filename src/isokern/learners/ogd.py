"""OGD: kernel online gradient descent with any kernel, with or without a budget of support vectors."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from isokern.checks import is_integer, n_threads, one_of, unchanged_on_error
from isokern.feature_map import IsolationKernel
from isokern.kernels import NamedKernel, check_kernel
from isokern.learners.budgets import BUDGETS, Budget
from isokern.learners.duals import BudgetedDual, KernelDual
from isokern.learners.kernel_choice import check_defined, choose_kernel, needs_rows
from isokern.learners.kernel_source import KernelSource, check_columns, share_starts, unwrapped
from isokern.learners.rival import RivalClassifier
from isokern.learners.steps import check_shrinkage
from isokern.learners.targets import Weights
from isokern.learners.weights import SupportVectors
from isokern.parts import need


class OGDClassifier(RivalClassifier):
    """Kernel online gradient descent in its dual form: every margin violation becomes a support vector.

    A row costs as many kernel values as there are support vectors, in time and, once it is one, in memory: fit and
    predict slow down as the stream goes on, unless ``budget`` limits them. Choose it as the yardstick that
    approximations are measured by, or for small data with a kernel you trust.

    Parameters
    ----------
    kernel : str, IsolationKernel or callable, default="laplacian"
        "laplacian", "gaussian", "polynomial", "chi2", "intersection", or a kernel of your own. A function is called as
        ``kernel(X, Z)`` and returns the matrix of all pairs. An IsolationKernel is used in its dual form, which gives
        the same scores as ``IKOGDClassifier`` at a higher price.
    gamma : float or "data", default="data"
        Sharpness: exp(-gamma |x - z|_1), exp(-gamma |x - z|^2), (gamma x.z + coef0)^degree. "data" means one over the
        mean distance of random pairs of rows (or their mean squared length, for the polynomial kernel).
    n_cells : int or None, default=None
        The paper's psi: gamma = ln(psi) / d for the Laplacian kernel. With very many columns that kernel is nearly
        constant; "data" serves better there.
    coef0 : float, default=1.0
        See ``gamma``.
    degree : int, default=3
        See ``gamma``.
    scale : {None, "minmax", "standard", "maxabs"}, default=None
        Scaling of the columns, learned from the rows of ``fit`` or the first ``n_initial`` rows of a stream and applied
        ever after, before anything else is learned. Sparse input takes None or "maxabs". Not with an IsolationKernel,
        which has its own.
    budget : int or None, default=None
        How many support vectors to keep for each score; None keeps all.
    strategy : {"random", "forgetron", "projectron", "projectron++", "bpas", "bogd"}, default="bpas"
        How to keep to the budget, see :mod:`isokern.learners.budgets`. Kernels other than the first two are then
        normalised to k(x, x) = 1, which budgets need; a function of your own has to see to it itself.
    loss : {"hinge", "squared_hinge", "logistic"}, default="hinge"
        What a score costs; budgets know the hinge loss only.
    learning_rate : float, default=0.5
        Size of a step, the paper's eta ("bpas": the largest step; "random" and the like always take steps of 1).
    average : bool, default=False
        Whether to predict with the mean of the coefficients over all rows instead of the last ones, which swing; not
        with a budget or a function.
    shrinkage : float, default=0.01
        For "bogd": each row multiplies all coefficients by 1 - learning_rate * shrinkage.
    n_passes : int, default=1
        Passes over the rows in ``fit``.
    shuffle : bool, default=True
        Whether ``fit`` takes the rows in random order.
    class_weight : dict, "balanced" or None, default=None
        Factors of the steps by class.
    n_initial : int or None, default=None
        Rows that ``partial_fit`` waits for to learn gamma and the scaling from; None means 1000. Not needed if gamma is
        given and scale is None.
    n_jobs : int, default=None
        Threads; None means as many as OpenMP allows.
    random_state : int, RandomState instance or None, default=None
        Seed of the order of rows, of pairs for gamma, and of what budgets drop.

    Attributes
    ----------
    classes_ : ndarray
        The classes, sorted.
    gamma_ : float
        The sharpness used.
    n_support_ : int
        How many rows have changed the model.

    References
    ----------
    Kivinen, Smola and Williamson, "Online learning with kernels", 2004; Lu, Hoi, Wang, Zhao and Liu, "Large scale
    online kernel learning", 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from isokern import OGDClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> OGDClassifier(random_state=0).fit(X[:1200], y[:1200]).score(X[1200:], y[1200:]) > 0.9
    True
    """

    def __init__(
        self,
        kernel: str | IsolationKernel | Callable[[Any, Any], Any] = "laplacian",
        *,
        gamma: float | str = "data",
        n_cells: int | None = None,
        coef0: float = 1.0,
        degree: int = 3,
        scale: str | None = None,
        budget: int | None = None,
        strategy: str = "bpas",
        loss: str = "hinge",
        learning_rate: float = 0.5,
        average: bool = False,
        shrinkage: float = 0.01,
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
        self.budget = budget
        self.strategy = strategy
        self.loss = loss
        self.learning_rate = learning_rate
        self.average = average
        self.shrinkage = shrinkage
        self.n_passes = n_passes
        self.shuffle = shuffle
        self.class_weight = class_weight
        self.n_initial = n_initial
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _new_model(self, table: Any, rng: np.random.RandomState) -> SupportVectors | KernelDual | BudgetedDual:
        n_columns, threads = self.class_book_.n_columns, n_threads(self.n_jobs)
        isolation = self._isolation_kernel()
        if isolation is not None:
            self.kernel_ = self._fitted(isolation, table)
            fitted = self.kernel_.map_
            return SupportVectors.none(fitted.starts, n_columns, fitted.cell_dtype, average=self.average)
        kernel = choose_kernel(self, self._mapped(table), rng, normalised=self.budget is not None)
        if self.budget is None and isinstance(kernel, NamedKernel):
            return KernelDual(kernel, self.n_features_in_, n_columns, threads, self.average)
        make = Budget if self.budget is None else BUDGETS[self.strategy]
        generators = np.random.default_rng(int(rng.randint(2**31 - 1))).spawn(n_columns)
        size = self.budget if self.budget is not None else 0
        budgets = [make(size, self.learning_rate, self.shrinkage, generator) for generator in generators]
        return BudgetedDual(kernel, budgets, threads)

    def _fitted(self, isolation: IsolationKernel, table: Any) -> IsolationKernel:
        if hasattr(isolation, "map_"):
            check_columns(isolation, self.n_features_in_)
            return isolation
        isolation.check_parameters()
        return clone(isolation).fit_rows(table)

    def _mapped(self, table: Any) -> Any:
        if hasattr(self, "kernel_"):
            return self.kernel_.apply_rows(table)
        return check_defined(self, super()._mapped(table))

    def _learn(self, rows: Any, labels: NDArray[Any], weights: Weights) -> None:
        if not self._is_own_kernel():
            super()._learn(rows, labels, weights)
            return
        # A function of the user's own may fail at any row, so what it has learned before is kept apart.
        with unchanged_on_error(self):
            self.model_ = copy.deepcopy(self.model_)
            super()._learn(rows, labels, weights)

    def _isolation_kernel(self) -> IsolationKernel | None:
        kernel = unwrapped(self.kernel)
        return kernel if isinstance(kernel, IsolationKernel) else None

    def _is_own_kernel(self) -> bool:
        return not isinstance(self.kernel, str) and self._isolation_kernel() is None

    def _needs_rows(self) -> bool:
        return needs_rows(self)

    def _n_initial(self) -> int:
        return super()._n_initial() if self._isolation_kernel() is None else KernelSource(self).n_initial

    def check(self) -> None:
        """Raise unless classes, scaling, model and kernel fit each other."""
        super().check()
        if isinstance(getattr(self, "model_", None), SupportVectors):
            share_starts(self.kernel_, self.model_)
        else:
            need("kernel_" not in vars(self), "the model must be one of the kernel's cells")

    def check_parameters(self) -> None:
        """Raise unless all parameters are what they may be."""
        super().check_parameters()
        if self._isolation_kernel() is None:
            check_kernel(self.kernel, self.gamma, self.n_cells, self.coef0, self.degree)
        elif self.scale is not None:
            raise ValueError(f"scale must be None for an IsolationKernel, which has its own; got {self.scale!r}.")
        check_shrinkage(self.shrinkage, self.learning_rate)
        if self.strategy not in BUDGETS:
            raise ValueError(f"strategy must be {one_of(BUDGETS)}; got {self.strategy!r}.")
        if self.average and (self.budget is not None or self._is_own_kernel()):
            raise ValueError("average must be False with a budget or a kernel of your own; got True.")
        if self.budget is None:
            if self._is_own_kernel() and self.loss != "hinge":
                raise ValueError(f'loss must be "hinge" for a kernel of your own; got {self.loss!r}.')
            return
        if not is_integer(self.budget, at_least=2):
            raise ValueError(f"budget must be None or an integer of at least 2; got {self.budget!r}.")
        if self._isolation_kernel() is not None:
            raise ValueError("budget must be None for an IsolationKernel, which needs none; use IKOGDClassifier.")
        if self.loss != "hinge":
            raise ValueError(f'loss must be "hinge" with a budget; got {self.loss!r}.')
