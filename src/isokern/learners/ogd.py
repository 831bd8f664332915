"""Provide OGDClassifier: kernel online gradient descent, with or without a budget of support vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from isokern.checks import is_integer, n_threads
from isokern.feature_map import IsolationKernel
from isokern.kernels import NamedKernel, check_kernel, choose_kernel
from isokern.learners.budgets import BUDGETS, Budget
from isokern.learners.duals import BudgetedDual, KernelDual
from isokern.learners.kernel_source import KernelSource, share_starts, unwrapped
from isokern.learners.parameters import check_choice, check_flag
from isokern.learners.rival import RivalClassifier
from isokern.learners.steps import check_shrinkage
from isokern.learners.weights import SupportVectors
from isokern.parts import need


class OGDClassifier(RivalClassifier):
    """Kernel online gradient descent in its dual form: every row that violates the margin becomes a support vector.

    Each row costs one kernel value per support vector, and each new support vector costs memory, so learning and
    prediction slow down as the stream grows unless ``budget`` limits them.

    Choose it as the exact baseline for approximations, or for small data with a kernel that you trust. Choose
    :class:`NOGDClassifier`, :class:`FOGDClassifier` or :class:`IKOGDClassifier` for long streams.

    Parameters
    ----------
    kernel : str, IsolationKernel or callable, default="laplacian"
        "laplacian", "gaussian", "polynomial", "chi2", "intersection", or a function that is called as ``kernel(X, Z)``
        and returns the kernel matrix. An IsolationKernel is used in its dual form: the scores of
        :class:`IKOGDClassifier` at a higher cost.
    gamma : float or "data", default="data"
        Inverse bandwidth: ``exp(-gamma |x - z|_1)``, ``exp(-gamma |x - z|^2)``, ``(gamma x.z + coef0)^degree``. "data"
        means one over the mean distance of random pairs of rows; for the polynomial kernel, over the mean squared norm.
    n_cells : int or None, default=None
        psi of the paper: gamma = ln(psi) / d for the Laplacian kernel. With very many columns d, that kernel is nearly
        constant, and "data" works better.
    coef0 : float, default=1.0
        Constant of the polynomial kernel, at least 0.
    degree : int, default=3
        Degree of the polynomial kernel.
    scale : {None, "minmax", "standard", "maxabs"}, default=None
        Scaling of the columns, learned from the rows of ``fit`` or from the first ``n_initial`` rows of a stream, and
        fixed from then on. Sparse input takes None or "maxabs". Must be None for an IsolationKernel, which has its own.
    budget : int or None, default=None
        Maximum number of support vectors per score; None keeps all.
    strategy : {"random", "forgetron", "projectron", "projectron++", "bpas", "bogd"}, default="bpas"
        How to stay within the budget, see the notes. Polynomial, chi2 and intersection kernels are then normalised to
        k(x, x) = 1, as budgets require; a function must do so itself.
    loss : {"hinge", "squared_hinge", "logistic"}, default="hinge"
        Loss function of a score; with a budget or a function, only "hinge".
    learning_rate : float, default=0.5
        Step size, eta in the paper. For "bpas" it is the maximum step; "random", "forgetron" and the projectrons take
        steps of 1.
    average : bool, default=False
        Whether to predict with the mean of the coefficients over all rows instead of the latest ones, which fluctuate.
        Not with a budget or a function.
    shrinkage : float, default=0.01
        For "bogd": each row multiplies all coefficients by 1 - learning_rate * shrinkage.
    n_passes : int, default=1
        Number of passes of ``fit`` over the rows.
    shuffle, class_weight, n_jobs
        See :class:`IKOGDClassifier`.
    n_initial : int or None, default=None
        Number of rows that ``partial_fit`` buffers to learn gamma and the scaling from; None means 1000. Not needed if
        gamma is given and scale is None.
    random_state : int, RandomState instance or None, default=None
        Seed of the order of rows, of the pairs for gamma, and of random budgets.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Classes, sorted.
    gamma_ : float
        Value of gamma in use. Missing for an IsolationKernel or a function.
    kernel_ : IsolationKernel
        Fitted kernel. Present for an IsolationKernel only.
    n_support_ : int
        Number of rows that changed the model.
    n_rows_seen_ : int
        Number of rows learned so far, buffered ones included; further passes over the same rows do not count.

    Notes
    -----
    With a budget, a full learner makes room in one of these ways. "random" (RBP) drops a random support vector.
    "forgetron" shrinks all coefficients and drops the oldest. "projectron" projects the new row onto the others instead
    of adding it; "projectron++" does so also for rows within the margin. "bpas" (BPA-S) replaces the support vector
    whose removal costs least. "bogd" shrinks all coefficients at each row and drops a random support vector.

    References
    ----------
    Kivinen, Smola and Williamson, "Online learning with kernels", IEEE Transactions on Signal Processing, 2004; Lu,
    Hoi, Wang, Zhao and Liu, "Large scale online kernel learning", JMLR, 2016.

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
        if self._isolation_kernel() is not None:
            self.kernel_ = KernelSource(self).fit(table, rng)
            fitted = self.kernel_.map_
            return SupportVectors.none(fitted.starts, n_columns, fitted.cell_dtype, average=self.average)
        kernel = choose_kernel(self, self._mapped(table), rng, normalised=self.budget is not None)
        if self.budget is None and isinstance(kernel, NamedKernel):
            return KernelDual(kernel, self.n_features_in_, n_columns, threads, bool(self.average))
        make = Budget if self.budget is None else BUDGETS[self.strategy]
        generators = np.random.default_rng(int(rng.randint(2**31 - 1))).spawn(n_columns)
        size = self.budget if self.budget is not None else 0
        budgets = [make(size, self.learning_rate, self.shrinkage, generator) for generator in generators]
        return BudgetedDual(kernel, budgets, threads)

    def _mapped(self, table: Any) -> Any:
        if hasattr(self, "kernel_"):
            return self.kernel_.apply_rows(table)
        return super()._mapped(table)

    def _isolation_kernel(self) -> IsolationKernel | None:
        kernel = unwrapped(self.kernel)
        return kernel if isinstance(kernel, IsolationKernel) else None

    def _is_custom_kernel(self) -> bool:
        return not isinstance(self.kernel, str) and self._isolation_kernel() is None

    def _n_initial(self) -> int:
        return super()._n_initial() if self._isolation_kernel() is None else KernelSource(self).n_initial

    def check(self) -> None:
        """Raise ValueError if classes, scaling, model and kernel do not match; see :mod:`isokern.parts`."""
        super().check()
        if isinstance(getattr(self, "model_", None), SupportVectors):
            share_starts(self.kernel_, self.model_)
        else:
            need("kernel_" not in vars(self), "model_ must be a SupportVectors if there is a kernel_")

    def check_parameters(self) -> None:
        """Raise ValueError if a parameter is invalid."""
        super().check_parameters()
        if self._isolation_kernel() is None:
            check_kernel(self.kernel, self.gamma, self.n_cells, self.coef0, self.degree)
        elif self.scale is not None:
            raise ValueError(f"scale must be None for an IsolationKernel, which has its own; got {self.scale!r}.")
        check_shrinkage(self.shrinkage, self.learning_rate)
        check_choice(self, "strategy", BUDGETS)
        check_flag(self, "average")
        if self.average and (self.budget is not None or self._is_custom_kernel()):
            raise ValueError("average must be False with a budget or a custom kernel; got True.")
        if self.budget is None:
            if self._is_custom_kernel() and self.loss != "hinge":
                raise ValueError(f'loss must be "hinge" for a custom kernel; got {self.loss!r}.')
            return
        if not is_integer(self.budget, at_least=2):
            raise ValueError(f"budget must be None or an integer of at least 2; got {self.budget!r}.")
        if self._isolation_kernel() is not None:
            raise ValueError("budget must be None for an IsolationKernel; use IKOGDClassifier, which needs none.")
        if self.loss != "hinge":
            raise ValueError(f'loss must be "hinge" with a budget; got {self.loss!r}.')
