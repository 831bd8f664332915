"""OGD: kernel online gradient descent with any kernel, with or without a budget of support vectors."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from isokern.checks import is_integer, is_number, n_threads, one_of, unchanged_on_error
from isokern.feature_map import IsolationKernel
from isokern.kernels import NON_NEGATIVE, NamedKernel, OwnKernel, check_kernel, gamma_from_data, gamma_from_psi
from isokern.learners.budgets import BUDGETS, Budget
from isokern.learners.duals import BudgetedDual, KernelDual
from isokern.learners.kernel_source import unwrapped
from isokern.learners.rival import RivalClassifier
from isokern.learners.weights import SupportVectors

_UNIT_KERNELS = ("laplacian", "gaussian")


class KernelRival(RivalClassifier):
    """Base of the rivals that choose a kernel."""

    _LEARNED = (*RivalClassifier._LEARNED, "gamma_", "kernel_")

    def _make_kernel(self, table: Any, rng: np.random.RandomState, *, normalised: bool = False) -> Any:
        """Return the kernel to use, its gamma learned from rows if it is not given."""
        if not isinstance(self.kernel, str):
            return OwnKernel(self.kernel)
        if self.n_cells is not None:
            gamma = gamma_from_psi(self.n_cells, self.n_features_in_)
        elif self.gamma == "data":
            gamma = gamma_from_data(self.kernel, table, rng)
        else:
            gamma = float(self.gamma)
        self.gamma_ = gamma
        is_normalised = normalised and self.kernel not in _UNIT_KERNELS
        return NamedKernel(self.kernel, gamma, float(self.coef0), int(self.degree), normalised=is_normalised)

    def _mapped(self, table: Any) -> Any:
        """Return rows, scaled, if the kernel is defined for them."""
        rows = super()._mapped(table)
        values = rows.data if sparse.issparse(rows) else rows
        if self.kernel in NON_NEGATIVE and values.size and values.min() < 0:
            where = "" if self.scale is None else " after scaling"
            cure = 'Give scale="minmax"' if self.scale != "minmax" else "Clip it to the range that scale has learned"
            raise ValueError(f'X must not be negative for kernel="{self.kernel}"; got {values.min():g}{where}. {cure}.')
        return rows

    def _needs_rows(self) -> bool:
        return isinstance(self.kernel, str) and self.n_cells is None and self.gamma == "data"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if isinstance(unwrapped(self.kernel), IsolationKernel):
            if self.scale is not None:
                raise ValueError(f"scale must be None for an IsolationKernel, which has its own; got {self.scale!r}.")
        else:
            check_kernel(self.kernel, self.gamma, self.n_cells, self.coef0, self.degree)


class OGDClassifier(KernelRival):
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

    def _make_model(self, X: Any, table: Any, rng: np.random.RandomState) -> None:
        isolation = self._isolation_kernel()
        if isolation is not None:
            self.kernel_ = isolation if hasattr(isolation, "n_cells_") else clone(isolation).fit(X)
            starts, dtype = self.kernel_._cell_starts, self.kernel_._cell_dtype
            if self.kernel_.n_features_in_ != self.n_features_in_:
                n_columns = self.kernel_.n_features_in_
                raise ValueError(f"X must have the {n_columns} columns of kernel; got {self.n_features_in_}.")
            self._model = SupportVectors(starts, self._n_columns(), dtype, average=self.average)
            return
        kernel = self._make_kernel(table, rng, normalised=self.budget is not None)
        threads = n_threads(self.n_jobs)
        if self.budget is None and isinstance(kernel, NamedKernel):
            self._model = KernelDual(kernel, self.n_features_in_, self._n_columns(), threads, average=self.average)
            return
        make = Budget if self.budget is None else BUDGETS[self.strategy]
        generators = np.random.default_rng(int(rng.randint(2**31 - 1))).spawn(self._n_columns())
        size = self.budget if self.budget is not None else 0
        budgets = [make(size, self.learning_rate, self.shrinkage, generator) for generator in generators]
        self._model = BudgetedDual(kernel, budgets, threads)

    def _mapped(self, table: Any) -> Any:
        return self.kernel_._apply(table) if hasattr(self, "kernel_") else super()._mapped(table)

    def _learn(self, *arguments: Any, **options: Any) -> None:
        if not self._is_own_kernel():
            return super()._learn(*arguments, **options)
        # A function of the user's own may fail at any row, so what it has learned before is kept apart.
        with unchanged_on_error(self):
            self._model = copy.deepcopy(self._model)
            return super()._learn(*arguments, **options)

    def _isolation_kernel(self) -> IsolationKernel | None:
        kernel = unwrapped(self.kernel)
        return kernel if isinstance(kernel, IsolationKernel) else None

    def _is_own_kernel(self) -> bool:
        return not isinstance(self.kernel, str) and self._isolation_kernel() is None

    def _n_initial(self) -> int:
        isolation = self._isolation_kernel()
        if isolation is not None and not hasattr(isolation, "n_cells_"):
            n_cells = isolation.n_cells
            return self.n_initial or (1000 if isinstance(n_cells, str) else max(1000, n_cells))
        return super()._n_initial()

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not (is_number(self.shrinkage) and 0 <= self.shrinkage * self.learning_rate < 1):
            raise ValueError(f"shrinkage must be at least 0 and below 1 / learning_rate; got {self.shrinkage!r}.")
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
