"""Provide AdaptiveIKClassifier and AdaptiveIKRegressor: online learners for streams that change."""

from __future__ import annotations

from typing import Any, Self

from numpy.typing import ArrayLike

from isokern.checks import all_or_nothing
from isokern.learners.classes import ClassBook
from isokern.learners.classifier import IKOGDClassifier
from isokern.learners.commits import one_at_a_time
from isokern.learners.regressor import IKOGDRegressor
from isokern.learners.renewing import Renewing
from isokern.learners.targets import read_all_weights


class AdaptiveIKClassifier(Renewing, IKOGDClassifier):
    """Online classifier for streams that change: the map of the Isolation Kernel renews itself.

    Two fifths of the trees live for a limited number of rows, from 512 to 32,768; then they are drawn anew from recent
    rows, with more splits of the columns that tell the target. The others grow with the stream and are kept. Several
    experts learn at once: with AdaGrad's steps, which suit streams that do not change, with constant steps, which
    follow changes, and on a linear term. Each row is predicted by the expert with the fewest recent errors. Nothing
    needs to be tuned, and memory is bounded.

    Choose it for streams whose rows change their meaning, or if you do not know. Choose :class:`IKOGDClassifier` for
    tables, and for streams in random order.

    Parameters
    ----------
    n_partitionings : int, default=150
        Number of trees; two fifths of them are renewed. Time and memory are proportional to it.
    linear : bool or "auto", default="auto"
        Whether experts have a linear term: "auto" is one expert with nothing else, True means all of them.
    categorical_features : default="from_dtype"
        Columns of categories, see :class:`IsolationKernel`.
    loss : {"auto", "hinge", "squared_hinge", "logistic"}, default="auto"
        Loss function of a score. "auto" is squared hinge loss for the experts on cells, hinge loss for the linear one.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, see :class:`IKOGDClassifier`.
    max_model_size : int or None, default=2**28
        Limit of the weights of all experts in bytes: lasting trees that would exceed it stop growing, and experts are
        left out, with a warning.
    n_jobs : int, default=None
        Number of threads. Results do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of all trees.
    verbose : {0, 1}, default=0
        1 prints the steps of learning on standard error, with a bar on a terminal. Results do not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Classes seen so far, sorted.
    selection_ : dict
        The experts: ``candidates``, their recent ``errors``, those still ``running``, and the ``leader``.
    error_ : float
        Mean error of the leading expert before learning, over all rows so far.
    n_drifts_ : int
        How often the error of the leading expert was found to have risen.
    drifts_ : ndarray of int
        Numbers of rows after which it was; at most the latest 64.
    n_rows_seen_ : int
        Number of rows learned so far.
    n_features_in_ : int
        Number of columns.

    Notes
    -----
    The model and its file hold the last 2,000 rows and, until the lasting trees have grown up, a sample of up to 4,096
    older ones. ``isokern.save(model, path, buffer=False)`` leaves them out.

    Everything goes by the number of rows: a stream gives the same model however it is split into calls, and a saved
    model goes on as if it had not been saved.

    Examples
    --------
    >>> import numpy as np
    >>> from isokern import AdaptiveIKClassifier
    >>> X = np.random.default_rng(0).uniform(size=(4000, 2))
    >>> y = (X[:, 0] < X[:, 1]) ^ (np.arange(4000) > 2000)  # the classes change their places
    >>> answers = AdaptiveIKClassifier(random_state=0).partial_fit_predict(X, y)
    >>> bool((answers[-1000:] == y[-1000:]).mean() > 0.9)
    True
    """

    n_passes, shuffle, average = 1, False, False

    def __init__(
        self,
        n_partitionings: int = 150,
        *,
        linear: bool | str = "auto",
        categorical_features: Any = "from_dtype",
        loss: str = "auto",
        class_weight: dict[Any, float] | str | None = None,
        max_model_size: int | None = 2**28,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_partitionings = n_partitionings
        self.linear = linear
        self.categorical_features = categorical_features
        self.loss = loss
        self.class_weight = class_weight
        self.max_model_size = max_model_size
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @one_at_a_time
    @all_or_nothing
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Forget everything, then learn the rows in order, in one pass; see :meth:`IKOGDClassifier.fit`."""
        self.check_parameters()
        read_all_weights(sample_weight, X)
        self._forget()
        self.partial_fit(X, y, sample_weight=sample_weight)
        ClassBook.of_all(self.classes_, takes_new=True)  # raises unless there are two
        return self


class AdaptiveIKRegressor(Renewing, IKOGDRegressor):
    """Online regressor for streams that change: the map of the Isolation Kernel renews itself.

    See :class:`AdaptiveIKClassifier` for how it works, and :class:`IKOGDRegressor` for losses, quantiles and several
    outputs. Experts are compared by their loss.

    Parameters
    ----------
    n_partitionings, linear, categorical_features, max_model_size, n_jobs, random_state, verbose
        Like those of :class:`AdaptiveIKClassifier`.
    loss, epsilon, quantiles
        Like those of :class:`IKOGDRegressor`.

    Attributes
    ----------
    selection_ : dict
        The experts: ``candidates``, their recent ``errors``, those still ``running``, and the ``leader``.
    error_ : float
        Mean error of the leading expert before learning, over all rows so far.
    n_drifts_ : int
        How often the error of the leading expert was found to have risen.
    drifts_ : ndarray of int
        Numbers of rows after which it was; at most the latest 64.
    n_rows_seen_ : int
        Number of rows learned so far.
    n_features_in_ : int
        Number of columns.

    Examples
    --------
    >>> import numpy as np
    >>> from isokern import AdaptiveIKRegressor
    >>> X = np.random.default_rng(0).uniform(size=(4000, 2))
    >>> y = X[:, 0] * X[:, 1]
    >>> answers = AdaptiveIKRegressor(random_state=0).partial_fit_predict(X, y)
    >>> bool(np.abs(answers[-1000:] - y[-1000:]).mean() < 0.05)
    True
    """

    n_passes, shuffle, average = 1, False, "auto"

    def __init__(
        self,
        n_partitionings: int = 150,
        *,
        linear: bool | str = "auto",
        categorical_features: Any = "from_dtype",
        loss: str = "squared",
        epsilon: float = 0.1,
        quantiles: Any = 0.5,
        max_model_size: int | None = 2**28,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_partitionings = n_partitionings
        self.linear = linear
        self.categorical_features = categorical_features
        self.loss = loss
        self.epsilon = epsilon
        self.quantiles = quantiles
        self.max_model_size = max_model_size
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @one_at_a_time
    @all_or_nothing
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Forget everything, then learn the rows in order, in one pass; see :meth:`IKOGDRegressor.fit`."""
        self.check_parameters()
        read_all_weights(sample_weight, X)
        self._forget()
        return self.partial_fit(X, y, sample_weight=sample_weight)
