"""IK-OGD on Dask collections: online rounds on the workers, averaged, then a few steps on exact gradients."""

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
from isokern.distributed.cluster import Cluster
from isokern.distributed.collections import as_column, as_rows, blocks_of, check_columns
from isokern.distributed.kernel import check_drawn, sent_kernel
from isokern.distributed.predicting import count_right, decision_function_block, predict_block, predict_proba_block
from isokern.distributed.refining import SMOOTH, refine
from isokern.distributed.remote import RemoteEstimator
from isokern.distributed.rounds import learn_round, make_block
from isokern.distributed.survey import Survey
from isokern.feature_map import IsolationKernel
from isokern.learners import IKOGDClassifier
from isokern.learners.classes import ClassBook
from isokern.learners.kernel_source import KernelSource, draw_seed

_MOST_HELD_OUT = 10_000
_logger = logging.getLogger("isokern.distributed")


class DaskIKOGDClassifier(ClassifierMixin, RemoteEstimator):
    """Classifier on the Isolation Kernel that learns from Dask arrays and data frames.

    ``fit`` maps each row once and keeps its cells on the workers. Then come ``n_rounds`` rounds: every partition goes
    on from the same weights by an online pass over its own rows, and the results are averaged. That alone loses
    accuracy as partitions grow in number, so at most ``n_steps`` steps of L-BFGS follow, on the loss of all rows. The
    answer depends on the seed and on how the data are partitioned, not on the workers, their number or their fate.

    Parameters
    ----------
    partitioning, n_partitionings, n_cells, max_depth, scale, kernel, schedule, learning_rate, shrinkage, device
        As of :class:`isokern.IKOGDClassifier`.
    loss : {"squared_hinge", "logistic", "hinge"}, default="squared_hinge"
        What a score costs. With "hinge", which is not smooth, there are rounds only.
    n_rounds : int, default=2
        Rounds of online learning in ``fit``; ``partial_fit`` makes one.
    n_steps : int, default=12
        Most steps of L-BFGS in ``fit``; 0 means none.
    validation_fraction : float, default=0.1
        Share of the rows, at most 10,000 of them, that ``fit`` keeps from learning where it makes steps. They tell
        which step is the last, since later ones fit the noise, and probabilities rest on them. 0 means all steps.
    class_weight : dict, "balanced" or None, default=None
        Factors of the rows by class.
    n_jobs : int, default=None
        Threads of a task that maps rows; None means 1, since Dask runs many tasks at once.
    random_state : int, RandomState instance or None, default=None
        Seed of the map and of the order of rows.
    client : distributed.Client or None, default=None
        The cluster. None means the current client, or threads of this process if there is none.

    Attributes
    ----------
    classes_ : ndarray
        The classes, sorted: those of all partitions in the first call.
    kernel_ : IsolationKernel
        The map.
    n_features_in_ : int
        Number of columns.
    n_rows_ : int
        Number of rows that the last call was given.

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
    dask.array<predict_block, shape=(1797,), dtype=int64, chunksize=(300,), chunktype=numpy.ndarray>
    >>> model.to_local()
    IKOGDClassifier(loss='squared_hinge', random_state=0)
    """

    def __init__(
        self,
        partitioning: str = "tree",
        n_partitionings: int = 100,
        n_cells: int | str = "auto",
        *,
        max_depth: int | str | None = None,
        scale: str | None = None,
        kernel: IsolationKernel | None = None,
        loss: str = "squared_hinge",
        schedule: str = "adagrad",
        learning_rate: float | str = "auto",
        shrinkage: float = 0.0,
        n_rounds: int = 2,
        n_steps: int = 12,
        validation_fraction: float = 0.1,
        class_weight: dict[Any, float] | str | None = None,
        device: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        client: Any = None,
    ) -> None:
        self.partitioning = partitioning
        self.n_partitionings = n_partitionings
        self.n_cells = n_cells
        self.max_depth = max_depth
        self.scale = scale
        self.kernel = kernel
        self.loss = loss
        self.schedule = schedule
        self.learning_rate = learning_rate
        self.shrinkage = shrinkage
        self.n_rounds = n_rounds
        self.n_steps = n_steps
        self.validation_fraction = validation_fraction
        self.class_weight = class_weight
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.client = client

    # -- learning

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from rows, forgetting what was learned before.

        Parameters
        ----------
        X : Dask array or data frame of shape (n, d)
            Blocks may be dense or CSR, empty, of unknown length, and lack classes.
        y : Dask array or series of shape (n,)
            In the partitions of X, if lengths are unknown.
        sample_weight : Dask array or series of shape (n,), default=None
            Factors of the rows, not negative.

        Returns
        -------
        self
        """
        learner, cluster = self._new_learner(), Cluster(self.client)
        _logger.info("a look at all partitions")
        survey = Survey(cluster, X, y, sample_weight, KernelSource(learner).scale)
        book = ClassBook.of_all(survey.labels, takes_new=False)
        rng = check_random_state(self.random_state)
        _logger.info("the map, from rows of %d partitions", len(survey.blocks))
        self._begin(learner, survey, book, rng)
        seed, makes_steps = draw_seed(rng), self.loss in SMOOTH and self.n_steps > 0
        share = min(self.validation_fraction, _MOST_HELD_OUT / survey.n) if makes_steps else 0.0
        blocks = _mapped(survey, learner, share, seed)
        for k in range(self.n_rounds):
            _logger.info("round %d of %d", k + 1, self.n_rounds)
            learner = learn_round(cluster, blocks, learner, (seed, k), is_new=k == 0)
        if makes_steps:
            refine(cluster, blocks, learner, self.n_steps)
        return self._take(learner, survey.n)

    def partial_fit(self, X: Any, y: Any, classes: ArrayLike | None = None, sample_weight: Any = None) -> Self:
        """Learn from further rows by one round of online learning; the map stays that of the first call.

        Parameters
        ----------
        X : Dask array or data frame of shape (n, d)
        y : Dask array or series of shape (n,)
        classes : array-like, default=None
            All classes there will be, in the first call. If not given, they are those of its y.
        sample_weight : Dask array or series of shape (n,), default=None

        Returns
        -------
        self
        """
        is_first = not hasattr(self, "_learner")
        learner = self._new_learner() if is_first else copy.copy(self._learner)
        cluster = Cluster(self.client)
        survey = Survey(cluster, X, y, sample_weight, KernelSource(learner).scale if is_first else None)
        if is_first:
            book = ClassBook.of(survey.labels, classes, takes_new=False)
            self._begin(learner, survey, book, check_random_state(self.random_state))
        else:
            check_columns(survey.rows, survey.names, learner)
            learner.learned_ = learner.learned_.meet(survey.labels, classes)
        seed = (draw_seed(check_random_state(self.random_state)), learner.learned_.model.clock.rounds)
        learner = learn_round(cluster, _mapped(survey, learner, 0.0, 0), learner, seed, is_new=True)
        return self._take(learner, survey.n)

    # -- predicting

    def predict(self, X: Any) -> Any:
        """Return the class of each row.

        Parameters
        ----------
        X : Dask array or data frame of shape (n, d)

        Returns
        -------
        labels : Dask array of shape (n,)
            Lazy.
        """
        check_is_fitted(self)
        return self._over_blocks(predict_block, X, None, self.classes_.dtype)

    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each class.

        Parameters
        ----------
        X : Dask array or data frame of shape (n, d)

        Returns
        -------
        probabilities : Dask array of shape (n, n_classes)
            Lazy.
        """
        check_is_fitted(self)
        return self._over_blocks(predict_proba_block, X, len(self.classes_), np.dtype(np.float64))

    def decision_function(self, X: Any) -> Any:
        """Return the scores of rows.

        Parameters
        ----------
        X : Dask array or data frame of shape (n, d)

        Returns
        -------
        scores : Dask array of shape (n,) for two classes, else (n, n_classes)
            Lazy.
        """
        check_is_fitted(self)
        width = len(self.classes_) if len(self.classes_) > 2 else None
        return self._over_blocks(decision_function_block, X, width, np.dtype(np.float64))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose class is predicted right.

        Parameters
        ----------
        X : Dask array or data frame of shape (n, d)
        y : Dask array or series of shape (n,)
        sample_weight : Dask array or series of shape (n,), default=None

        Returns
        -------
        accuracy : float
        """
        check_is_fitted(self)
        rows, _ = as_rows(X)
        columns = [blocks_of(self.predict(X)), blocks_of(as_column(y, rows, "y"))]
        if sample_weight is not None:
            columns.append(blocks_of(as_column(sample_weight, rows, "sample_weight")))
        counts = [delayed(count_right)(*parts) for parts in zip(*columns, strict=True)]
        right, total = np.sum(Cluster(self.client).compute(counts), axis=0)
        return float(right / total)

    def to_local(self) -> IKOGDClassifier:
        """Return what was learned as an ordinary classifier, which can be saved, and predicts and learns on by itself.

        Returns
        -------
        model : IKOGDClassifier
        """
        check_is_fitted(self)
        return copy.deepcopy(self._learner)

    @property
    def classes_(self) -> NDArray[Any]:
        """The classes, sorted."""
        return self._learner.classes_

    @property
    def kernel_(self) -> IsolationKernel:
        """The map."""
        return self._learner.kernel_

    @property
    def n_features_in_(self) -> int:
        """The number of columns."""
        return self._learner.n_features_in_

    def __sklearn_is_fitted__(self) -> bool:
        """Return whether there is something to predict with."""
        return hasattr(self, "_learner")

    # -- within

    def _new_learner(self) -> IKOGDClassifier:
        """Check the parameters and return the ordinary classifier that has them, as yet unfitted."""
        for name, least in (("n_rounds", 1), ("n_steps", 0)):
            if not is_integer(getattr(self, name), at_least=least):
                raise ValueError(f"{name} must be an integer of at least {least}; got {getattr(self, name)!r}.")
        if not (is_number(self.validation_fraction) and 0 <= self.validation_fraction < 1):
            raise ValueError(f"validation_fraction must be at least 0 and below 1; got {self.validation_fraction!r}.")
        shared = inspect.signature(IKOGDClassifier).parameters.keys() & self.get_params(deep=False).keys()
        learner = IKOGDClassifier(**{name: getattr(self, name) for name in shared})
        learner.check_parameters()
        return learner

    def _begin(self, learner: IKOGDClassifier, survey: Survey, book: ClassBook, rng: np.random.RandomState) -> None:
        """Give a learner its classes and its map."""
        source = KernelSource(learner)
        kernel = source.fitted
        if kernel is None:
            kernel = source.unfitted(rng)
            check_drawn(kernel)
            survey.fit_kernel(kernel)
        else:
            check_columns(survey.rows, survey.names, kernel)
        learner.n_features_in_ = kernel.n_features_in_
        if survey.names is not None:
            learner.feature_names_in_ = survey.names
        learner.begin(book, kernel)

    def _take(self, learner: IKOGDClassifier, n_rows: int) -> Self:
        self._learner, self.n_rows_ = learner, n_rows
        self._forget_remote()
        return self

    def _over_blocks(self, work: Any, X: Any, width: int | None, dtype: Any) -> Any:
        rows, names = as_rows(X)
        check_columns(rows, names, self._learner)
        model = self._remote(_sent_learner, self._learner)
        if width is None:
            return rows.map_blocks(work, model=model, dtype=dtype, drop_axis=1, meta=np.empty(0, dtype=dtype))
        chunks = (rows.chunks[0], (width,))
        return rows.map_blocks(work, model=model, dtype=dtype, chunks=chunks, meta=np.empty((0, 0), dtype=dtype))


def _mapped(survey: Survey, learner: IKOGDClassifier, share: float, seed: int) -> list[Any]:
    """Have all partitions mapped, and return what stands for their cells, which stay on the workers."""
    kernel = delayed(sent_kernel(learner.kernel_), traverse=False)
    tasks = [delayed(make_block)(block, k, kernel, share, seed) for k, block in enumerate(survey.blocks)]
    return survey.cluster.persist(tasks)


def _sent_learner(learner: IKOGDClassifier) -> IKOGDClassifier:
    """Return a learner as workers need it to predict."""
    sent = copy.copy(learner)
    sent.__dict__.pop("feature_names_in_", None)
    sent.kernel, sent.kernel_ = None, sent_kernel(learner.kernel_)
    sent.n_jobs = learner.n_jobs or 1
    return sent
