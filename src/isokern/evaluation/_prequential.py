"""Evaluate a learner along a stream: predict each row or block, then learn it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import _num_samples

from isokern.checks import is_integer, one_of
from isokern.evaluation.labels import as_pair, checked_block
from isokern.evaluation.learner import (
    Block,
    Outputs,
    answered,
    answering_method,
    as_learner,
    leader_of,
    learns_numbers,
    map_of,
    mapped,
    n_drifts_of,
    n_support_of,
    outputs,
    timed,
)
from isokern.evaluation.metrics import CLASSIFICATION, Metrics
from isokern.evaluation.records import Record
from isokern.parts import is_count, need

PROTOCOLS = ("rows", "blocks")


class Prequential:
    """Evaluate a learner block by block; the evaluation can be saved and resumed between blocks.

    This is :func:`prequential` for callers that write the loop themselves.

    Parameters
    ----------
    learner, classes, delay, metrics, protocol
        See :func:`prequential`.

    Attributes
    ----------
    learner : estimator
    protocol : {"rows", "blocks"}
        The protocol in use.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import SGDClassifier
    >>> from isokern.evaluation import Prequential
    >>> X, y = np.array([[-1.0], [1.0], [-2.0], [2.0]]), np.array([0, 1, 0, 1])
    >>> run = Prequential(SGDClassifier(random_state=0), classes=[0, 1])
    >>> run.step(X[:2], y[:2]).n_seen  # the learner was not fitted yet
    0
    >>> state = run.state()  # save it together with run.learner
    >>> later = Prequential(run.learner, classes=[0, 1]).restore(state)
    >>> later.step(X[2:], y[2:]).accuracy
    1.0
    """

    _NEEDS, _CURE = "partial_fit", " Use holdout for learners that only have fit."

    def __init__(
        self,
        learner: Any,
        *,
        classes: ArrayLike | None = None,
        delay: int = 0,
        metrics: str | Iterable[str] = (),
        protocol: str = "rows",
    ) -> None:
        self.learner = as_learner(learner)
        if not hasattr(self.learner, self._NEEDS):
            raise ValueError(f"learner must have {self._NEEDS} or learn_one; got {type(learner).__name__}.{self._CURE}")
        if not is_integer(delay, at_least=0):
            raise ValueError(f"delay must be an integer of at least 0; got {delay!r}.")
        if protocol not in PROTOCOLS:
            raise ValueError(f"protocol must be {one_of(PROTOCOLS)}; got {protocol!r}.")
        can_answer_rows = hasattr(self.learner, "partial_fit_predict") and delay == 0
        self.protocol = protocol if can_answer_rows else "blocks"
        self._is_regressor = learns_numbers(self.learner)
        if self._is_regressor and classes is not None:
            raise ValueError(f"classes must be None for a regressor, {type(learner).__name__}; got {classes!r}.")
        self._classes, self._delay = classes, int(delay)
        self._metrics = Metrics(self.learner, metrics, classification=CLASSIFICATION)
        self._totals = {"n_seen": 0, "n_labelled": 0, "n_correct": 0}
        self._has_learned = False
        self._waiting: list[tuple[Block, NDArray[Any]]] = []

    def step(self, X: ArrayLike, y: ArrayLike | None) -> Record:
        """Predict and learn a block by the protocol, and measure the predictions.

        With a delay, the block that is learned is ``delay`` blocks older.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame} of shape (n, d)
            An empty block changes nothing.
        y : array-like of shape (n,) or None
            Labels; None, NaN or pandas' NA if one is missing.

        Returns
        -------
        record : Record
        """
        rows, labels, has_label = checked_block(X, y)
        if not len(has_label):
            return self._record()
        if self.protocol == "rows":
            return self._step_by_rows(rows, y, labels, has_label)
        return self._step_by_block(rows, labels, has_label)

    def learn(self, X: ArrayLike, y: ArrayLike | None) -> Record:
        """Learn a block without predicting it, as the first rows that a map is drawn from.

        Parameters
        ----------
        X, y
            See :meth:`step`.

        Returns
        -------
        record : Record
            Without predictions.
        """
        rows, labels, has_label = checked_block(X, y)
        if not len(has_label):
            return self._record()
        _, learn_seconds = timed(self._take_in, self._labelled(Block(rows), has_label), labels)
        return self._record(learn_seconds=learn_seconds)

    def _step_by_rows(
        self, rows: Any, y: ArrayLike | None, labels: NDArray[Any], has_label: NDArray[np.bool_]
    ) -> Record:
        """Predict each row right before it is learned."""
        method = answering_method(self.learner, labels, self._classes, self._metrics.needs)
        targets = np.full(len(has_label), np.nan) if y is None else y
        options = self._classes_if_first() | {"method": method}
        try:
            answers, seconds = timed(partial(self.learner.partial_fit_predict, rows, targets, **options))
        except NotFittedError:
            if len(labels):
                raise
            return self._record()  # neither labels nor classes so far
        self._has_learned |= bool(len(labels))
        given = answered(self.learner, np.asarray(answers), self._classes, method)
        block_accuracy = self._count(labels, given.of(has_label)) if len(labels) else math.nan
        self._totals["n_seen"] += len(has_label)
        return self._record(given.predictions, block_accuracy, learn_seconds=seconds)

    def _step_by_block(self, rows: Any, labels: NDArray[Any], has_label: NDArray[np.bool_]) -> Record:
        """Predict a block with what was learned before it, then learn it or an older one."""
        block, map_seconds = timed(mapped, self.learner, rows)
        predictions, predict_seconds = timed(self._predict, block)
        labelled = self._labelled(block, has_label)
        given = None
        if predictions is not None and len(labels):
            given = outputs(self.learner, labelled, predictions[has_label], self._metrics.needs)
        _, learn_seconds = timed(self._take_in, labelled, labels)
        # Counted last, so that a block that cannot be learned leaves the evaluation unchanged.
        block_accuracy = self._count(labels, given)
        self._totals["n_seen"] += 0 if predictions is None else len(predictions)
        map_seconds = map_seconds if block.is_mapped else 0.0
        return self._record(predictions, block_accuracy, map_seconds, predict_seconds, learn_seconds)

    def finish(self) -> Self:
        """Learn the blocks that still wait for their labels.

        Returns
        -------
        self
        """
        while self._waiting:
            self._learn(*self._waiting[0])
            del self._waiting[0]
        return self

    def state(self) -> dict[str, Any]:
        """Return the totals and the waiting blocks as numbers, strings, lists and arrays.

        Save the learner together with the state, which does not contain it.

        Returns
        -------
        state : dict
            For :meth:`restore`. Waiting rows that are sparse are CSR.
        """
        return {
            **self._totals,
            "has_learned": self._has_learned,
            "delay": self._delay,
            "protocol": self.protocol,
            "metrics": list(self._metrics.names),
            "counters": self._metrics.state(),
            "waiting": [{"block": block.state(), "labels": labels} for block, labels in self._waiting],
        }

    def restore(self, state: dict[str, Any]) -> Self:
        """Continue an evaluation of the same learner.

        Parameters
        ----------
        state : dict
            From :meth:`state`.

        Returns
        -------
        self
        """
        need(isinstance(state, dict) and state.keys() == self.state().keys(), "state must be that of an evaluation")
        for name, value in (("delay", self._delay), ("protocol", self.protocol), ("metrics", self._metrics.names)):
            if value != state[name]:
                raise ValueError(f"{name} must be {state[name]!r}, as in the saved evaluation; got {value!r}.")
        totals = {name: state[name] for name in self._totals}
        need(all(map(is_count, totals.values())), f"totals must be integers of at least 0; got {totals}")
        is_ordered = totals["n_correct"] <= totals["n_labelled"] <= totals["n_seen"]
        need(is_ordered, f"n_correct must be at most n_labelled, and that at most n_seen; got {totals}")
        need(type(state["has_learned"]) is bool, "has_learned must be true or false")
        waiting = state["waiting"]
        need(isinstance(waiting, list) and len(waiting) <= self._delay, "waiting must be at most delay blocks")
        waiting = [self._waiting_block(late) for late in waiting]
        self._metrics.restore(state["counters"], totals["n_labelled"])
        self._totals, self._has_learned, self._waiting = totals, state["has_learned"], waiting
        return self

    def _waiting_block(self, state: Any) -> tuple[Block, NDArray[Any]]:
        need(isinstance(state, dict) and state.keys() == {"block", "labels"}, "waiting must be blocks with labels")
        block, labels = Block.from_state(state["block"]), state["labels"]
        is_labelled = isinstance(labels, np.ndarray) and labels.shape == (block.rows.shape[0],)
        need(is_labelled, "waiting must have one label for each row")
        need(not block.are_cells or map_of(self.learner) is not None, "waiting cells must be those of a fitted map")
        return block, labels

    def _predict(self, block: Block) -> NDArray[Any] | None:
        try:
            return np.asarray(block.call(self.learner, "predict"))
        except NotFittedError:
            return None

    def _labelled(self, block: Block, has_label: NDArray[np.bool_]) -> Block:
        """Return the rows that have a label."""
        # A block that waits for its labels must be a copy: the caller may reuse the memory for the next block.
        return block.take(has_label) if self._delay or not has_label.all() else block

    def _take_in(self, block: Block, labels: NDArray[Any]) -> None:
        """Put a block in the queue, and learn the oldest one if its labels have arrived."""
        waiting = [*self._waiting, (block, labels)]
        if len(waiting) > self._delay:
            self._learn(*waiting.pop(0))
        self._waiting = waiting

    def _learn(self, block: Block, labels: NDArray[Any]) -> None:
        if not len(labels):
            return
        block.call(self.learner, "partial_fit", labels, **self._classes_if_first())
        self._has_learned = True

    def _classes_if_first(self) -> dict[str, Any]:
        return {} if self._has_learned or self._classes is None else {"classes": self._classes}

    def _count(self, labels: NDArray[Any], given: Outputs | None) -> float:
        """Add rows with labels to the totals, and return the accuracy of these rows."""
        if given is None:
            return math.nan
        self._metrics.add(labels, given)
        n_correct = int(np.count_nonzero(given.predictions == labels))
        self._totals["n_correct"] += n_correct
        self._totals["n_labelled"] += len(labels)
        return n_correct / len(labels)

    def _record(
        self,
        predictions: NDArray[Any] | None = None,
        block_accuracy: float = math.nan,
        map_seconds: float = 0.0,
        predict_seconds: float = 0.0,
        learn_seconds: float = 0.0,
    ) -> Record:
        n_labelled, n_correct = self._totals["n_labelled"], self._totals["n_correct"]
        accuracy = n_correct / n_labelled if n_labelled else math.nan
        return Record(
            n_seen=self._totals["n_seen"],
            n_labelled=n_labelled,
            n_correct=None if self._is_regressor else n_correct,
            accuracy=None if self._is_regressor else accuracy,
            block_accuracy=None if self._is_regressor else block_accuracy,
            map_seconds=map_seconds,
            predict_seconds=predict_seconds,
            learn_seconds=learn_seconds,
            n_support=n_support_of(self.learner),
            leader=leader_of(self.learner),
            n_drifts=n_drifts_of(self.learner),
            protocol=self.protocol,
            metrics=self._metrics.values(),
            predictions=predictions,
        )


class _Measured(Prequential):
    """Evaluate a fitted learner, which learns nothing more."""

    _NEEDS, _CURE = "predict", ""

    def __init__(self, learner: Any, *, metrics: str | Iterable[str]) -> None:
        super().__init__(learner, metrics=metrics, protocol="blocks")

    def _predict(self, block: Block) -> NDArray[Any]:
        predictions = super()._predict(block)
        if predictions is None:
            raise NotFittedError(f"learner must be fitted; got an unfitted {type(self.learner).__name__}.")
        return predictions

    def _take_in(self, block: Block, labels: NDArray[Any]) -> None:
        """Learn nothing."""


def measure(learner: Any, blocks: Iterable[tuple[Any, Any]], *, metrics: str | Iterable[str] = ()) -> Iterator[Record]:
    """Predict each block of a stream with a fitted learner, which learns nothing; yield one record per block.

    Use it to test a model on more rows than fit into memory.

    Parameters
    ----------
    learner : estimator
        A fitted learner with ``predict``.
    blocks, metrics
        See :func:`prequential`.

    Yields
    ------
    record : Record

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from isokern import IKSVC
    >>> from isokern.data import blocks
    >>> from isokern.evaluation import measure
    >>> X, y = load_digits(return_X_y=True)
    >>> model = IKSVC(random_state=0).fit(X[:1200], y[:1200])
    >>> [record.n_seen for record in measure(model, blocks(X[1200:], y[1200:], 500))]
    [500, 597]
    """
    return _records(_Measured(learner, metrics=metrics), blocks)


def prequential(
    learner: Any,
    blocks: Iterable[tuple[Any, Any]],
    *,
    classes: ArrayLike | None = None,
    delay: int = 0,
    metrics: str | Iterable[str] = (),
    protocol: str = "rows",
) -> Iterator[Record]:
    """Predict each row of a stream with what was learned before it, then learn it; yield one record per block.

    It stands for this loop, which is also called test-then-train::

        for X, y in blocks:
            n_correct += np.sum(learner.partial_fit_predict(X, y) == y)  # each row before it is learned
            n_labelled += len(y)
            yield n_correct / n_labelled

    With ``protocol="blocks"``, as in the paper, it stands for this one, in which a learner on the Isolation Kernel maps
    each row only once, and which tells less of a learner that adapts fast::

        for X, y in blocks:
            n_correct += np.sum(learner.predict(X) == y)
            n_labelled += len(y)
            learner.partial_fit(X, y)
            yield n_correct / n_labelled

    There, a block that comes before the learner is fitted is learned, but neither predicted nor counted; row by row,
    all rows are predicted. Rows without a label are predicted, but neither counted nor learned. Blocks of a classifier
    without any label are not even predicted before the first label, unless ``classes`` are given. Empty blocks are
    skipped.

    Parameters
    ----------
    learner : estimator
        A learner with ``partial_fit`` and ``predict``, or a model with ``learn_one`` and ``predict_one`` like those of
        river. It is changed in place.
    blocks : iterable of pairs (X, y)
        X is an array, CSR matrix or data frame. y is None if all labels are missing; single missing labels are None,
        NaN or pandas' NA.
    classes : array-like, default=None
        All classes, for learners whose first ``partial_fit`` needs them.
    delay : int, default=0
        The number of blocks by which labels are late: block i is learned after block i + delay is predicted. The
        record of block i counts its own rows nevertheless. After the last record, the waiting blocks are learned.
    metrics : str or iterable of str, default=()
        Metrics besides accuracy, all in constant memory. For classifiers:

        - "balanced_accuracy": the mean recall of the classes;
        - "f1", "auc" (area under the ROC curve) and "average_precision": of two classes, those of the second, which
          positive scores stand for; of more classes, the mean of each class against the rest. The last two may treat
          scores that differ by less than 0.4 % as ties, and take at most 100 classes;
        - "kappa": Cohen's kappa;
        - "log_loss" and "calibration_error", of probabilities. The latter is the expected calibration error in 15 bins
          of equal width: how far the probabilities of a class are from its frequency, of two classes for the second,
          of more classes the mean.

        For regressors: "mae", "rmse" and "r2", which are all measured if none is named.

        Row by row, one method of the learner answers for all metrics: if any of them needs probabilities, "auc" and
        "average_precision" are those of probabilities, and a class has probability 0 before its first row.
    protocol : {"rows", "blocks"}, default="rows"
        Whether to predict row by row or block by block. Learners without ``partial_fit_predict``, and those with a
        delay, are evaluated block by block; the records tell.

    Yields
    ------
    record : Record

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from isokern import IKOGDClassifier
    >>> from isokern.evaluation import prequential
    >>> X, y = load_digits(return_X_y=True)
    >>> blocks = ((X[i : i + 300], y[i : i + 300]) for i in range(0, 1500, 300))
    >>> learner = IKOGDClassifier(n_initial=300, random_state=0)
    >>> for record in prequential(learner, blocks, metrics="kappa", protocol="blocks"):
    ...     print(record.n_seen, record.accuracy > 0.7)
    0 False
    300 True
    600 True
    900 True
    1200 True

    Row by row, every row is predicted:

    >>> from isokern import FOGDClassifier
    >>> learner = FOGDClassifier(n_initial=100, random_state=0)
    >>> *_, record = prequential(learner, [(X[:900], y[:900]), (X[900:], y[900:])])
    >>> record.protocol, record.n_seen, record.accuracy > 0.7
    ('rows', 1797, True)
    """
    # Not a generator itself, so that wrong arguments raise at once.
    run = Prequential(learner, classes=classes, delay=delay, metrics=metrics, protocol=protocol)
    return _records(run, blocks)


def _records(run: Prequential, blocks: Iterable[tuple[Any, Any]]) -> Iterator[Record]:
    for block in blocks:
        X, y = as_pair(block, "each of blocks")
        if _num_samples(X):
            yield run.step(X, y)
    run.finish()
