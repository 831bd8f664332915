"""Learn IK-OGD from Dask collections: averaged online rounds on the workers, then L-BFGS on exact gradients."""

from __future__ import annotations

import copy
import inspect
import logging
from typing import Any, Self

import numpy as np
from dask import delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from isokern.checks import is_integer, is_number
from isokern.distributed.blocks import Mapped
from isokern.distributed.cluster import Cluster
from isokern.distributed.collections import as_column, as_rows, blocks_of, check_columns
from isokern.distributed.kernel import check_drawn
from isokern.distributed.refining import SMOOTH, refine
from isokern.distributed.remote import RemoteEstimator
from isokern.distributed.rounds import learn_round, race
from isokern.distributed.survey import Survey
from isokern.feature_map import IsolationKernel
from isokern.learners import IKOGDClassifier
from isokern.learners.candidates import candidates_of, kernel_choice
from isokern.learners.classes import ClassBook
from isokern.learners.kernel_source import KernelSource, draw_seed, take_columns
from isokern.learners.linear_term import LinearTerm
from isokern.learners.parameters import check_choice
from isokern.learners.steps import MARGIN_LOSSES

_MOST_HELD_OUT = 10_000
_MOST_FETCHED = 20_000  # rows, for the linear term beside a given map
_logger = logging.getLogger("isokern.distributed")


class DaskIKOGDClassifier(ClassifierMixin, RemoteEstimator[IKOGDClassifier]):
    """Classifier on the Isolation Kernel that learns from Dask arrays and data frames.

    ``fit`` maps each row once and keeps its cells on the workers. Each of ``n_rounds`` rounds starts every partition
    from the same weights, makes an online pass over the partition's rows, and averages the results. Averaging loses
    accuracy as the number of partitions grows, so up to ``n_steps`` steps of L-BFGS on the loss of all rows follow. The
    result depends on the seed and the partitions, not on the number of workers or their failures. Predictions are lazy.

    Parameters
    ----------
    partitioning, n_partitionings, n_cells, max_depth, n_scales, scale, categorical_features, kernel, device
        See :class:`isokern.IKOGDClassifier`. The map splits all columns alike.
    linear, schedule, learning_rate, shrinkage, class_weight, max_model_size, random_state
        See :class:`isokern.IKOGDClassifier`.
    loss : {"squared_hinge", "logistic", "hinge"}, default="squared_hinge"
        Loss function. "hinge" is not smooth, so L-BFGS is skipped.
    n_rounds : int, default=2
        Rounds of online learning in ``fit``; ``partial_fit`` makes one.
    n_steps : int, default=12
        Maximum number of L-BFGS steps in ``fit``.
    validation_fraction : float, default=0.1
        Fraction of the rows, at most 10,000 rows, held out for early stopping of L-BFGS and for the calibration of
        probabilities. 0 disables early stopping.
    n_jobs : int, default=None
        Threads per task; None means 1, since Dask runs many tasks at once.
    client : distributed.Client or None, default=None
        The cluster; None means the current client, or threads of this process if there is none.

    Attributes
    ----------
    classes_ : ndarray
        The classes of all partitions in the first call, sorted.
    kernel_ : IsolationKernel
        The map.
    selection_ : dict or None
        The race, see :class:`isokern.IKOGDClassifier`.
    n_features_in_ : int
        Number of columns.
    n_rows_ : int
        Number of rows in the last call.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import load_digits
    >>> from isokern.distributed import DaskIKOGDClassifier
    >>> X, y = (da.from_array(array, chunks=300) for array in load_digits(return_X_y=True))
    >>> model = DaskIKOGDClassifier(random_state=0).fit(X[:1200], y[:1200])
    >>> model.score(X[1200:], y[1200:]) > 0.9
    True
    >>> model.predict(X)
    dask.array<predict, shape=(1797,), dtype=int64, chunksize=(300,), chunktype=numpy.ndarray>
    >>> model.to_local()
    IKOGDClassifier(loss='squared_hinge', random_state=0)
    """

    def __init__(
        self,
        partitioning: str = "tree",
        n_partitionings: int = 200,
        n_cells: int | str = "auto",
        *,
        max_depth: int | str | None = None,
        n_scales: int | str = "auto",
        linear: bool | str = "auto",
        scale: str | None = None,
        categorical_features: Any = "from_dtype",
        kernel: IsolationKernel | None = None,
        loss: str = "squared_hinge",
        schedule: str = "auto",
        learning_rate: float | str = "auto",
        shrinkage: float = 0.0,
        n_rounds: int = 2,
        n_steps: int = 12,
        validation_fraction: float = 0.1,
        class_weight: dict[Any, float] | str | None = None,
        max_model_size: int | None = 2**28,
        device: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        client: Any = None,
    ) -> None:
        self.partitioning = partitioning
        self.n_partitionings = n_partitionings
        self.n_cells = n_cells
        self.max_depth = max_depth
        self.n_scales = n_scales
        self.linear = linear
        self.scale = scale
        self.categorical_features = categorical_features
        self.kernel = kernel
        self.loss = loss
        self.schedule = schedule
        self.learning_rate = learning_rate
        self.shrinkage = shrinkage
        self.n_rounds = n_rounds
        self.n_steps = n_steps
        self.validation_fraction = validation_fraction
        self.class_weight = class_weight
        self.max_model_size = max_model_size
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.client = client

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows, from scratch.

        Parameters
        ----------
        X : Dask array or data frame of shape (n, d)
            Blocks may be dense or CSR, empty, of unknown length, and lack classes.
        y : Dask array or series of shape (n,)
            In the partitions of X, if lengths are unknown.
        sample_weight : Dask array or series of shape (n,), default=None
            Weights of the rows, at least 0.

        Returns
        -------
        self
        """
        learner, cluster = self._new_learner(), Cluster(self.client)
        _logger.info("scanning the partitions")
        survey = _survey(cluster, X, y, sample_weight, learner)
        book = ClassBook.of_all(survey.labels, takes_new=False)
        rng = check_random_state(self.random_state)
        _logger.info("drawing the map from rows of %d partitions", len(survey.blocks))
        self._begin(learner, survey, book, rng)
        seed, makes_steps = draw_seed(rng), self.loss in SMOOTH and self.n_steps > 0
        share = min(self.validation_fraction, _MOST_HELD_OUT / survey.n) if makes_steps else 0.0
        mapped = race(Mapped.of(survey, learner, share, seed), learner, (seed, 0))
        for k in range(self.n_rounds):
            _logger.info("round %d of %d", k + 1, self.n_rounds)
            learner = learn_round(mapped, learner, (seed, k), is_new=k == 0)
        if makes_steps:
            refine(mapped, learner, self.n_steps)
        self.n_rows_ = survey.n
        return self._take(learner)

    def partial_fit(self, X: Any, y: Any, classes: ArrayLike | None = None, sample_weight: Any = None) -> Self:
        """Learn from more rows by one round of online learning; the first call draws the map.

        Parameters
        ----------
        X, y, sample_weight
            See ``fit``.
        classes : array-like, default=None
            All classes that will occur, in the first call; None means those in its y.

        Returns
        -------
        self
        """
        is_first = not hasattr(self, "_local")
        learner = self._new_learner() if is_first else copy.copy(self._local)
        survey = _survey(Cluster(self.client), X, y, sample_weight, learner)
        if is_first:
            book = ClassBook.of(survey.labels, classes, takes_new=False)
            self._begin(learner, survey, book, check_random_state(self.random_state))
        else:
            check_columns(survey.rows, survey.names, learner)
            learner.learned_ = learner.learned_.meet(survey.labels, classes)
        seed = (draw_seed(check_random_state(self.random_state)), learner.learned_.model.clock.rounds)
        mapped = race(Mapped.of(survey, learner, 0.0, 0), learner, seed)
        learner = learn_round(mapped, learner, seed, is_new=True)
        self.n_rows_ = survey.n
        return self._take(learner)

    def predict(self, X: Any) -> Any:
        """Return the class of each row, lazily; see :meth:`isokern.IKOGDClassifier.predict`."""
        check_is_fitted(self)
        return self._map_blocks("predict", X, self.classes_[:0])

    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each class, lazily; see :meth:`isokern.IKOGDClassifier.predict_proba`."""
        check_is_fitted(self)
        return self._map_blocks("predict_proba", X, np.empty((0, len(self.classes_))))

    def decision_function(self, X: Any) -> Any:
        """Return the scores of rows, lazily; see :meth:`isokern.IKOGDClassifier.decision_function`."""
        check_is_fitted(self)
        n_classes = len(self.classes_)
        return self._map_blocks("decision_function", X, np.empty((0, n_classes) if n_classes > 2 else 0))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy; arguments as in ``fit``."""
        check_is_fitted(self)
        rows, _ = as_rows(X)
        columns = [blocks_of(self.predict(X)), blocks_of(as_column(y, rows, "y"))]
        if sample_weight is not None:
            columns.append(blocks_of(as_column(sample_weight, rows, "sample_weight")))
        counts = [delayed(_count_correct)(*parts) for parts in zip(*columns, strict=True)]
        correct, total = np.sum(Cluster(self.client).compute(counts), axis=0)
        return float(correct / total)

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes, sorted."""
        return self._local.classes_

    @property
    def kernel_(self) -> IsolationKernel:
        """The map."""
        return self._local.kernel_

    @property
    def selection_(self) -> dict[str, Any] | None:
        """The race; see :class:`isokern.IKOGDClassifier`."""
        return self._local.selection_

    def _new_learner(self) -> IKOGDClassifier:
        """Check the parameters and return an unfitted local classifier that has them."""
        for name, least in (("n_rounds", 1), ("n_steps", 0)):
            if not is_integer(getattr(self, name), at_least=least):
                raise ValueError(f"{name} must be an integer of at least {least}; got {getattr(self, name)!r}.")
        if not (is_number(self.validation_fraction) and 0 <= self.validation_fraction < 1):
            raise ValueError(f"validation_fraction must be at least 0 and below 1; got {self.validation_fraction!r}.")
        check_choice(self, "loss", MARGIN_LOSSES)
        shared = inspect.signature(IKOGDClassifier).parameters.keys() & self.get_params(deep=False).keys()
        learner = IKOGDClassifier(**{name: getattr(self, name) for name in shared})
        learner.check_parameters()
        return learner

    def _begin(self, learner: IKOGDClassifier, survey: Survey, book: ClassBook, rng: np.random.RandomState) -> None:
        """Give a learner its classes, its map and its candidates."""
        source = KernelSource(learner)
        kernel, sampled = source.fitted, None
        if kernel is None:
            kernel = source.unfitted(rng, **kernel_choice(learner, survey.n, book.n_columns))
            check_drawn(kernel)
            sampled = survey.fit_kernel(kernel)
        else:
            check_columns(survey.rows, survey.names, kernel)
        take_columns(learner, kernel)
        candidates, term = candidates_of(learner, kernel), None
        if any(candidate.linear for candidate in candidates):
            if sampled is None:
                numbers = rng.choice(survey.n, min(survey.n, _MOST_FETCHED), replace=False)
                sampled = survey.fetch(np.sort(numbers))
            term = LinearTerm.learn(sampled, kernel.is_categorical_)
        learner.begin(book, kernel, candidates, term)


def _survey(cluster: Cluster, X: Any, y: Any, weights: Any, learner: IKOGDClassifier) -> Survey:
    """Scan the partitions for the kernel that a learner has, or will get."""
    source = KernelSource(learner)
    fitted = getattr(learner, "kernel_", None) or source.fitted
    kernel = fitted or source.unfitted(check_random_state(0))
    return Survey(cluster, X, y, weights, kernel=kernel, is_new=fitted is None)


def _count_correct(labels: NDArray[Any], truth: Any, weights: Any = None) -> tuple[float, float]:
    """Return the total weight of the rows that are classified correctly, and of all rows."""
    masses = np.ones(len(labels)) if weights is None else np.asarray(weights)
    return float(masses[labels == np.asarray(truth)].sum()), float(masses.sum())
