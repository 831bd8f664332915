"""Provide the base class of the rivals: the online kernel learners that the paper compares IK-OGD with."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.validation import _num_samples, check_is_fitted

from isokern import _core
from isokern.checks import all_or_nothing, n_threads, private
from isokern.engines import engine_of
from isokern.kernels import check_defined, needs_rows
from isokern.learners.answers import Answers, check_method, given_classes, present_labels, spread
from isokern.learners.classes import ClassBook
from isokern.learners.commits import BLOCK, blocks, commit, one_at_a_time, one_view
from isokern.learners.linear import finite_scores
from isokern.learners.parameters import check_class_weight, check_flag, check_n_initial
from isokern.learners.steps import MARGIN_LOSSES, check_steps
from isokern.learners.targets import Weights, pass_orders, read_all_weights, read_labels, read_weights, some
from isokern.learners.warm_up import BUFFERED_ROWS, Batch, WarmUp
from isokern.parts import need
from isokern.rows import input_tags, read_rows
from isokern.scaling import Scaling, check_scale


class RivalClassifier(ClassifierMixin, BaseEstimator):
    """Online classifier of known classes that scales rows if asked and passes them to a model.

    A subclass returns its model from ``_new_model``: an object with ``learn``, ``score``, ``n_columns`` and ``clock``.
    ``learn`` writes each row's scores before it is learned into the array ``scores``, if given. It replaces attributes
    of the model and never changes what they refer to, so that a shallow copy can learn a block before it is committed,
    while other threads score the original.
    Its ``kernel``, ``gamma`` and ``n_cells`` tell whether gamma must be learned from the first rows of a stream.
    """

    losses: tuple[str, ...] = MARGIN_LOSSES
    class_book_: ClassBook
    scaling_: Scaling | None
    model_: Any
    warm_up_: WarmUp

    # -- learning

    @one_at_a_time
    @all_or_nothing
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn rows in ``n_passes`` passes; forget everything learned before. See :meth:`IKOGDClassifier.fit`."""
        self.check_parameters()
        table = read_rows(self, X, reset=True)
        labels, weights = read_labels(self, y, table), read_all_weights(sample_weight, table)
        rng = check_random_state(self.random_state)
        book = ClassBook.of_all(labels, takes_new=False, class_weight=self.class_weight)
        self._begin(book, table, rng)
        rows = self._mapped(table)
        for k, order in enumerate(pass_orders(len(labels), self.n_passes, rng, shuffle=self.shuffle)):
            self._learn(rows[order], labels[order], some(weights, order), is_new=k == 0)
        return self

    @one_at_a_time
    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn the next rows of a stream, in order; see :meth:`IKOGDClassifier.partial_fit`.

        Unlike there, the classes are fixed by the first call: ``classes``, or those of its y.
        """
        self.check_parameters()
        self._learn(*self._read(X, y, classes, sample_weight))
        return self

    @one_at_a_time
    def partial_fit_predict(
        self,
        X: ArrayLike,
        y: ArrayLike | None,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        method: str = "predict",
    ) -> NDArray[Any]:
        """Learn the next rows of a stream, and return what was predicted for each of them before it was learned.

        It stands for this loop, which is slow, and leaves the model of ``partial_fit``::

            for i in range(len(X)):
                answers.append(getattr(self, method)(X[i : i + 1]))
                if y[i] is not None:
                    self.partial_fit(X[i : i + 1], y[i : i + 1], classes)

        Before the first row is learned, all scores are 0, and the answer is the first class. While rows are buffered
        for ``n_initial``, it is the most frequent class so far.

        Parameters
        ----------
        X, classes, sample_weight
            Like those of ``partial_fit``.
        y : array-like of shape (n,) or None
            Labels. Rows whose label is missing (None, NaN or pandas' NA) are predicted, but not learned; if they take
            turns with others, this takes about as long as the loop.
        method : {"predict", "decision_function"}, default="predict"
            Which answers to return.

        Returns
        -------
        answers : ndarray
            Those of ``method``, a row for each row of X.
        """
        self.check_parameters()
        check_method(self, method)
        labels, has_label = present_labels([None] * _num_samples(X) if y is None else y)
        if not len(labels):
            return self._answer_only(X, classes, method)
        batch, answers, scores = self._read_to_answer(X, labels, has_label, classes, sample_weight)
        self._learn(*batch, answers=answers)
        return self._as_answers(scores, X, method)

    @all_or_nothing
    def _read(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> Batch:
        """Return the rows still to be learned, in the form that the model takes."""
        table = self._table(X)
        batch = Batch(table, read_labels(self, y, table), read_weights(sample_weight, table))
        self._meet(batch.targets, classes)
        is_begun = hasattr(self, "model_")
        return batch._replace(table=self._mapped(table)) if is_begun else self._warm_up(batch)

    @all_or_nothing
    def _read_to_answer(
        self, X: Any, labels: NDArray[Any], has_label: NDArray[np.bool_], classes: Any, sample_weight: Any
    ) -> tuple[Batch, Answers, NDArray[np.float64]]:
        """Return the rows still to be answered, in the form that the model takes, and all scores."""
        table = self._table(X)
        check_consistent_length(table, has_label)
        targets, weights = read_labels(self, labels, table[has_label]), read_weights(sample_weight, table)
        self._meet(targets, classes)
        batch = Batch(table, spread(targets, has_label), weights)
        answers = Answers.none(has_label, self.class_book_.n_columns)
        n = 0 if hasattr(self, "model_") else self._answer_first(batch, answers)
        rest = batch.some(slice(n, None))
        if n < len(has_label):  # so there is a model now
            rest = rest._replace(table=self._mapped(rest.table))
        return rest, answers.after(n), answers.scores

    def _answer_first(self, batch: Batch, answers: Answers) -> int:
        """Answer the rows that come before there is a model, and warm up with them; return their number."""
        book, held = self.class_book_, getattr(self, "warm_up_", WarmUp())
        # A model without rows would answer 0, as the majority of no rows does.
        n = answers.n_until(max(1, self._n_initial()) - held.n)
        counts = book.frequencies(book.numbers(held.targets)) if held.n else np.zeros_like(book.counts)
        answers.take_majority(book, book.numbers(batch.targets[:n]), counts)
        self._warm_up(batch.some(slice(n)).some(answers.has_label[:n]))
        return n

    def _answer_only(self, X: Any, classes: Any, method: str) -> NDArray[Any]:
        """Answer rows none of which is learned."""
        if hasattr(self, "class_book_"):
            return getattr(self, method)(X)
        view: Self = private(self)
        known = given_classes(self, classes)
        view.class_book_ = ClassBook.of(known, known, takes_new=False)
        n = read_rows(view, X, reset=True, min_rows=1).shape[0]
        return view._as_answers(np.zeros((n, view.class_book_.n_columns)), X, method)

    def _table(self, X: Any) -> Any:
        """Return the validated rows of a stream."""
        return read_rows(self, X, reset=not hasattr(self, "n_features_in_"), min_rows=1)

    def _meet(self, labels: NDArray[Any], classes: Any) -> None:
        """Keep the classes of the first rows of a stream; raise if later ones have others."""
        is_first = not hasattr(self, "class_book_")
        book = ClassBook.of(labels, classes, takes_new=False) if is_first else self.class_book_
        self.class_book_ = book.meet(labels, classes)

    def _warm_up(self, batch: Batch) -> Batch:
        """Buffer the first rows of a stream; with enough, make the model. Return the rows still to be learned."""
        n_initial, held = self._n_initial(), getattr(self, "warm_up_", WarmUp())
        if held.n + len(batch.targets) < n_initial:
            self.warm_up_ = held.holding(batch)
            return batch.some(slice(0))
        batch = held.followed_by(batch)
        self._begin(self.class_book_, batch.table[: n_initial or None], check_random_state(self.random_state))
        batch, n = batch._replace(table=self._mapped(batch.table)), max(n_initial, BLOCK)
        self._learn(*batch.some(slice(n)))  # so that no model is committed without its first rows
        return batch.some(slice(n, None))

    def _begin(self, book: ClassBook, table: Any, rng: np.random.RandomState) -> None:
        """Forget everything, learn the scaling from the first rows, and make the model."""
        for name in ("warm_up_", "gamma_", "kernel_"):
            self.__dict__.pop(name, None)
        self.class_book_, self.scaling_ = book, Scaling.learn(self.scale, table)
        self.model_ = self._new_model(table, rng)

    def _new_model(self, table: Any, rng: np.random.RandomState) -> Any:
        """Return an untrained model, given the first rows before scaling."""
        raise NotImplementedError

    def _mapped(self, table: Any) -> Any:
        """Return a table in the form that the model takes."""
        return check_defined(self, table if self.scaling_ is None else self.scaling_.apply_table(table))

    def _learn(
        self,
        rows: Any,
        labels: NDArray[Any],
        weights: Weights,
        *,
        is_new: bool = True,
        answers: Answers | None = None,
    ) -> None:
        """Learn rows block by block, each in a copy that is then committed.

        ``is_new`` tells whether the rows are learned for the first time; ``answers`` receives their scores before that.
        """
        for part in blocks(len(labels)) if answers is None else answers.runs():
            scores = None if answers is None else answers.scores[part]
            if answers is not None and not answers.has_label[part.start]:
                answers.scores[part] = self.model_.score(rows[part], n_threads(self.n_jobs))
                continue
            book, model = self.class_book_, private(self.model_)
            numbers = book.numbers(labels[part])
            factors = book.row_factors(numbers, some(weights, part), self.class_weight)
            rule = _core.Rule(self.loss, 0.0, "constant", self.learning_rate, 0.0, [0] * book.n_columns, is_new)
            model.learn(rows[part], book.targets(numbers), factors, rule, scores=scores)
            if scores is not None:
                finite_scores(scores)
            commit(self, model_=model, class_book_=book.counting(numbers))

    def _n_initial(self) -> int:
        """Return the number of rows to buffer before the model is made."""
        if self.scale is None and not needs_rows(self):
            return 0
        return BUFFERED_ROWS if self.n_initial is None else int(self.n_initial)

    # -- prediction

    @one_view
    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the scores of rows; see :meth:`IKOGDClassifier.decision_function`."""
        check_is_fitted(self)
        table, book = read_rows(self, X, reset=False), self.class_book_
        if hasattr(self, "model_"):
            scores = book.of_classes(self.model_.score(self._mapped(table), n_threads(self.n_jobs)))
        else:
            held = book.numbers(self.warm_up_.targets)
            scores = book.majority_scores(table.shape[0], book.frequencies(held))
        return engine_of(X).to_library(scores, X)

    def _as_answers(self, scores: NDArray[np.float64], X: Any, method: str) -> Any:
        """Return what ``method`` returns for rows of these scores, (n, n_columns)."""
        engine = engine_of(X)
        answers = engine.to_library(self.class_book_.of_classes(scores), X)
        return engine.labels(answers, self.classes_) if method == "predict" else answers

    @one_view
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class of each row, an array of shape (n,)."""
        scores = self.decision_function(X)
        return engine_of(X).labels(scores, self.classes_)

    @property
    def classes_(self) -> NDArray[Any]:
        """Classes, sorted."""
        return self.class_book_.labels

    @property
    def n_support_(self) -> int:
        """Number of support vectors: rows that changed the model."""
        check_is_fitted(self)
        return self.model_.clock.n_support if hasattr(self, "model_") else 0

    @property
    def n_rows_seen_(self) -> int:
        """Number of rows learned so far, buffered ones included; further passes over the same rows do not count."""
        check_is_fitted(self)
        return self.model_.clock.n_rows if hasattr(self, "model_") else self.warm_up_.n

    # -- checks

    def check_parameters(self) -> None:
        """Raise ValueError if a parameter is invalid."""
        check_steps(self, self.losses, self.learning_rate)
        check_n_initial(self.n_initial)
        check_flag(self, "shuffle")
        check_class_weight(self.class_weight)
        check_scale(self.scale)

    def check(self) -> None:
        """Raise ValueError if classes, scaling and model do not match; see :mod:`isokern.parts`."""
        if "class_book_" not in vars(self):
            return
        need(isinstance(self.class_book_, ClassBook), "class_book_ must be a ClassBook")
        if "model_" not in vars(self):
            need(isinstance(self.warm_up_, WarmUp), "warm_up_ must be a WarmUp")
            return
        need(self.scaling_ is None or isinstance(self.scaling_, Scaling), "scaling_ must be None or a Scaling")
        need(hasattr(type(self.model_), "learn"), "model_ must have learn")
        need(self.model_.n_columns == self.class_book_.n_columns > 0, "model_ must have the scores of the classes")

    def __sklearn_tags__(self) -> Any:
        return input_tags(super().__sklearn_tags__())
