"""Provide IKOGDClassifier: online gradient descent for classification with the Isolation Kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from isokern.checks import all_or_nothing, warn_user
from isokern.engines import engine_of
from isokern.feature_map import IsolationKernel
from isokern.learners.answers import check_method, given_classes
from isokern.learners.candidates import FADE, LINEAR_PASSES, Candidate, candidates_of, grows, has_linear_term
from isokern.learners.classes import ClassBook
from isokern.learners.commits import BLOCK, commit, one_at_a_time, one_view
from isokern.learners.growth import FirstRows
from isokern.learners.kernel_source import KernelSource, read_cells, take_columns
from isokern.learners.linear_term import NO_LINEAR_TERM, LinearTerm
from isokern.learners.on_cells import OnCells
from isokern.learners.one_vs_rest import OneVsRest
from isokern.learners.parameters import check_class_weight
from isokern.learners.race import Race
from isokern.learners.row_answers import ClassAnswers, labelled_runs
from isokern.learners.steps import CLASSIFIER_LOSSES, Steps
from isokern.learners.targets import Weights, mean_weights, pass_orders, read_all_weights, read_labels, read_weights
from isokern.learners.warm_up import Batch, WarmUp
from isokern.parts import need
from isokern.progress import Bar
from isokern.rows import read_rows

_MANY_CLASSES = 100  # integers beyond look like a regression


class IKOGDClassifier(OnCells, ClassifierMixin, BaseEstimator):
    """Online classifier with the Isolation Kernel: nonlinear boundaries in constant memory and constant time per row.

    The kernel's feature map assigns each row to one cell in each of t random partitionings. The score of a class is the
    mean of the weights of these t cells. A row that violates the margin takes one gradient step on the weights of its
    own cells. More than two classes are learned one-vs-rest.

    Nothing needs to be tuned: by default, several candidates learn at once, on cells of all sizes from coarse to fine,
    on a linear term, or on both. Each row is predicted by all before they learn it, and the one with the fewest errors
    wins; see ``selection_`` and the notes.

    Choose it for tables and streams, also large ones. Choose :class:`IKSVC` instead if all rows fit into memory and you
    want the optimum of the SVM objective.

    ``IKOGDClassifier(schedule="constant", average=False, n_passes=1, shuffle=False)`` is the learner of the paper [1]_.

    Parameters
    ----------
    partitioning, max_depth, scale, categorical_features, device
        Parameters of the kernel, see :class:`IsolationKernel`.
    n_partitionings : int, default=200
        Number of partitionings, the paper's t. Time and memory are proportional to it. 100 loses up to half a point of
        accuracy, 400 rarely gains more than a tenth.
    n_cells : int or "auto", default="auto"
        Number of cells of a partitioning, the paper's psi. "auto" is n / 16 rounded to a power of two, at most 32,768,
        of which the race also uses coarser scales; without a race it is n / 32. A number means these cells alone.
    n_scales : int or "auto", default="auto"
        Number of scales of each partitioning, see :class:`IsolationKernel`. "auto" leaves them to the race; without a
        race it is 1.
    linear : bool or "auto", default="auto"
        Whether to add a linear term to the kernel: standardised columns (sparse rows are only divided), hashed
        categories and an intercept. "auto" leaves it to the race; without a race it is False.
    column_weights : "auto", array-like of shape (d,) or None, default="auto"
        How often trees split each column, see :class:`IsolationKernel`. "auto" learns this from the targets of up to
        8,192 rows, if it helps, so that columns that tell nothing about the target do little harm;
        ``kernel_.column_weights`` has the result. A map that grows learns it anew each time. Without a race, with fewer
        than 1,000 rows and with more than 4,096 columns, "auto" is None: all alike.
    kernel : IsolationKernel or None, default=None
        Kernel to use instead of these parameters. A fitted kernel is used as is, so that many estimators can share one
        feature map; wrap it in ``sklearn.frozen.FrozenEstimator`` to keep it fitted through ``clone``.
    loss : {"auto", "hinge", "squared_hinge", "logistic"}, default="auto"
        Loss function of a score. "auto" leaves it to the race: candidates for data with little noise have squared hinge
        loss, the others logistic loss; without a race it is the paper's hinge loss.
    schedule : {"auto", "adagrad", "constant", "decaying"}, default="auto"
        Step sizes. "auto" leaves them to the race; without a race it is "adagrad". "adagrad" [2]_ divides the learning
        rate of each cell by the root of the cell's summed squared gradients; "decaying" divides it by the root of the
        number of rows seen.
    learning_rate : float or "auto", default="auto"
        Step size, eta in the paper. "auto" leaves it to the race; without a race it is 2 for "adagrad", 0.5 for
        "constant" and 1 for "decaying".
    shrinkage : float, default=0.0
        Strength of the L2 penalty: each row multiplies all weights by 1 - learning_rate * shrinkage.
    average : bool, default=False
        Whether to predict with the mean of the weights over all steps instead of the latest weights.
    n_passes : int, default=2
        Number of passes of ``fit`` over the rows; ``partial_fit`` always makes one. Passes after the first are nine
        times as many for a linear winner, to which they cost little.
    shuffle : bool, default=True
        Whether ``fit`` visits the rows in a new random order in each pass. ``partial_fit`` keeps their order.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply the steps of their rows. "balanced" weights are inversely proportional to
        the class counts so far. A class missing in the dict has weight 1.
    growth : bool, default=True
        Whether a map that ``partial_fit`` begins grows with the stream. Its trees are then drawn from the first 16
        rows, anew from the first 64 and 256, and split their leaves at each fourfold number of rows, up to 16,384
        cells. Only trees grow, and only if there is a race and ``n_cells``, ``n_scales`` and ``n_initial`` are left
        open. The map of ``fit`` does not grow.
    n_initial : int or None, default=None
        Number of rows that ``partial_fit`` buffers before it draws the map from them and learns them. Until then the
        majority class is predicted. None means 16 for a map that grows, else 1000, or ``n_cells`` if that is larger. A
        fitted ``kernel`` needs no buffer.
    max_model_size : int or None, default=2**28
        Limit of the weights of all candidates in bytes, 256 MiB by default. A model that would be larger gets fewer
        candidates or, with ``n_cells="auto"``, fewer cells; fewer cells, and a limit that classes of later rows
        exceed, give a warning. None means no limit.
    evaluation : {"primal", "naive", "dual"}, default="primal"
        How to compute scores: from t weights, from all t * n_cells products, or from all support vectors. Scores are
        the same; "naive" and "dual" are slow and exist for comparison.
    n_jobs : int, default=None
        Number of threads for mapping and prediction; see :class:`IsolationKernel`. Results do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the map and of the order of rows.
    verbose : {0, 1}, default=0
        1 prints the steps of learning on standard error, with a bar on a terminal. Results do not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Classes seen so far, sorted.
    kernel_ : IsolationKernel
        Fitted kernel. Missing until the warm-up is over.
    learned_ : OneVsRest or Race
        Learned state: class counts, weights and calibration. Missing until the warm-up is over.
    linear_term_ : LinearTerm or None
        Statistics of the columns for the linear term, if a candidate has one.
    selection_ : dict or None
        The race: ``candidates``, their ``errors`` (shares of rows missed before they were learned, when last
        compared), those still ``running``, and the ``leader``. None if the parameters left nothing to choose.
    warm_up_ : WarmUp
        Buffered rows. Present during the warm-up only.
    growth_ : FirstRows, Growth or None
        Rows of a stream from which its map is drawn or grows next, at most 16,384 and about 64 MiB. None once growth
        has ended.
    n_support_ : int
        Number of support vectors: rows that changed the weights.
    n_rows_seen_ : int
        Number of rows learned so far, buffered ones included; further passes over the same rows do not count.
    n_features_in_ : int
        Number of columns.

    Notes
    -----
    Giving ``schedule``, ``learning_rate``, ``kernel``, ``average``, ``shrinkage``, another ``evaluation`` or your own
    partitioning ends the race: then the model is that of the given parameters. A number for ``n_cells`` or
    ``n_scales``, and ``linear``, leave the other choices to the race.

    In ``fit``, candidates race along the first pass. At most two are left after an eighth of the rows, and the winner
    is found after half of the rows, or at the end if there are fewer than 60,000. It alone makes the other passes. In a
    stream, errors fade by 0.2 % a row, and the candidate with the fewest predicts; two are left after 64,000 rows.
    Everything goes by the number of rows, so a stream gives the same model however it is split. Errors are weighted
    like the rows: with ``class_weight="balanced"``, the winner has the best balanced accuracy.

    References
    ----------
    .. [1] Ting, Wells and Washio, "Isolation Kernel: the X factor in efficient and effective large scale online kernel
       learning", Data Mining and Knowledge Discovery, 2021.
    .. [2] Duchi, Hazan and Singer, "Adaptive subgradient methods for online learning and stochastic optimization",
       Journal of Machine Learning Research, 2011.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from isokern import IKOGDClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = IKOGDClassifier(random_state=0).fit(X[:1200], y[:1200])
    >>> model.score(X[1200:], y[1200:]) > 0.9
    True
    >>> model.partial_fit(X[1200:], y[1200:]).predict(X[:1]).item()
    0
    """

    _losses: tuple[str, ...] = CLASSIFIER_LOSSES

    def __init__(
        self,
        partitioning: Any = "tree",
        n_partitionings: int = 200,
        n_cells: int | str = "auto",
        *,
        max_depth: int | str | None = None,
        n_scales: int | str = "auto",
        linear: bool | str = "auto",
        scale: str | None = None,
        categorical_features: Any = "from_dtype",
        column_weights: Any = "auto",
        kernel: IsolationKernel | None = None,
        loss: str = "auto",
        schedule: str = "auto",
        learning_rate: float | str = "auto",
        shrinkage: float = 0.0,
        average: bool = False,
        n_passes: int = 2,
        shuffle: bool = True,
        class_weight: dict[Any, float] | str | None = None,
        growth: bool = True,
        n_initial: int | None = None,
        max_model_size: int | None = 2**28,
        evaluation: str = "primal",
        device: str | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.partitioning = partitioning
        self.n_partitionings = n_partitionings
        self.n_cells = n_cells
        self.max_depth = max_depth
        self.n_scales = n_scales
        self.linear = linear
        self.scale = scale
        self.categorical_features = categorical_features
        self.column_weights = column_weights
        self.kernel = kernel
        self.loss = loss
        self.schedule = schedule
        self.learning_rate = learning_rate
        self.shrinkage = shrinkage
        self.average = average
        self.n_passes = n_passes
        self.shuffle = shuffle
        self.class_weight = class_weight
        self.growth = growth
        self.n_initial = n_initial
        self.max_model_size = max_model_size
        self.evaluation = evaluation
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    # -- learning

    @one_at_a_time
    @all_or_nothing
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Draw the map from the rows and learn them in ``n_passes`` passes; forget everything learned before.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame, list of dicts} of shape (n, d)
            Rows.
        y : array-like of shape (n,)
            Labels, numbers or strings.
        sample_weight : array-like of shape (n,), default=None
            Weights of at least 0, which multiply the steps of the rows.

        Returns
        -------
        self
        """
        self.check_parameters()
        table = read_rows(self, X, reset=True, kernel=KernelSource(self).kernel)
        labels, weights = read_labels(self, y, table), read_all_weights(sample_weight, table)
        rng = check_random_state(self.random_state)
        book = ClassBook.of_all(labels, takes_new=True, class_weight=self.class_weight)
        self._begin_on(table, labels, book, rng, fade=1.0)
        self._learn_passes(self._mapped(table), labels, weights, rng)
        return self

    @one_at_a_time
    def partial_fit(
        self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn the next rows of a stream, in order.

        The model does not depend on how the stream is split into calls. Rows are learned in blocks of at most 1,000; an
        interrupted or failed call leaves whole blocks, and ``n_rows_seen_`` tells how many rows were learned. Other
        threads may predict meanwhile.

        Parameters
        ----------
        X, y, sample_weight
            Like those of ``fit``.
        classes : array-like, default=None
            All classes of the stream, for the first call. If None, new classes may come in any call; the model is the
            same as if they had been given.

        Returns
        -------
        self
        """
        self.check_parameters()
        batch, has_new = self._read(X, y, classes, sample_weight)
        self._learn_stream(batch, has_new=has_new)
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

        The first row of a stream, and rows without a label before it, are answered by the first class. Without any
        label so far, ``classes`` must be given. Probabilities of a block of at most 1,000 rows are calibrated on the
        rows before the block.

        Parameters
        ----------
        X, classes, sample_weight
            Like those of ``partial_fit``.
        y : array-like of shape (n,) or None
            Labels. Rows whose label is missing (None, NaN or pandas' NA) are predicted, but not learned; if they take
            turns with others, this takes about as long as the loop.
        method : {"predict", "decision_function", "predict_proba"}, default="predict"
            Which answers to return.

        Returns
        -------
        answers : ndarray
            Those of ``method``, a row for each row of X, with ``classes_`` after the call as columns. A class that no
            row had before has a probability of 0; with more than two classes, its score is -inf.
        """
        self.check_parameters()
        check_method(self, method)
        answers = ClassAnswers(method, self.loss)
        for rows, labels, weights in labelled_runs(X, y, sample_weight, partial(self._read_ahead, classes)):
            if labels is not None:
                batch, has_new = self._read(rows, labels, classes, weights, answers)
                self._learn_stream(batch, has_new=has_new, answers=answers)
            elif self._is_begun:
                answers.add_answers(self.classes_, engine_of(rows).to_host(getattr(self, method)(rows)))
            else:
                answers.add_early(self._n_valid(rows))
        joined = answers.joined(self.classes_ if self._is_begun else given_classes(self, classes))
        return joined if method == "predict" else engine_of(X).to_library(joined, X)

    def _read_ahead(self, classes: Any, X: Any, labels: NDArray[Any]) -> NDArray[Any]:
        """Return the labels of some of the rows; raise if any row or label is invalid. Nothing changes."""
        self._n_valid(X)
        if not len(labels):
            return labels
        labels = read_labels(self, labels, labels)
        book = self._book if self._is_begun else ClassBook.of(labels, classes, takes_new=True)
        book.meet(labels, classes)
        return labels

    @all_or_nothing
    def _read(self, X: Any, y: Any, classes: Any, sample_weight: Any, answers: Any = None) -> tuple[Batch, bool]:
        """Return the rows still to be learned, and whether there may be new classes among them."""
        source, held = KernelSource(self), getattr(self, "warm_up_", WarmUp())
        n_counted = 0 if hasattr(self, "learned_") else max(0, self._n_initial - held.n)
        kernel = None if self._is_begun else source.kernel
        table = self._read_rows(X, reset=not self._is_begun, min_rows=1, kernel=kernel, n_counted=n_counted)
        batch = Batch(table, read_labels(self, y, table), read_weights(sample_weight, table))
        if not hasattr(self, "learned_"):
            return self._warm_up(batch, classes, answers), True
        return batch, self._has_new(batch.targets, classes)

    @one_at_a_time
    def partial_fit_cells(
        self, cells: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn rows given as ``cells``, an array of shape (n, n_partitionings) from ``kernel_.apply``.

        Otherwise like ``partial_fit``. The first call needs a fitted ``kernel``.
        """
        self.check_parameters()
        batch, has_new = self._read_cells(cells, y, classes, sample_weight)
        self._learn(*batch, has_new=has_new)
        return self

    @all_or_nothing
    def _read_cells(self, cells: Any, y: Any, classes: Any, sample_weight: Any) -> tuple[Batch, bool]:
        """Return the cells still to be learned, and whether there may be new classes among them."""
        kernel = KernelSource(self).for_cells()
        known = read_cells(kernel, cells)
        batch = Batch(known, read_labels(self, y, known), read_weights(sample_weight, known))
        if hasattr(self, "learned_"):
            return batch._replace(table=self._of_cells(known)), self._has_new(batch.targets, classes)
        if has_linear_term(self):
            raise ValueError(NO_LINEAR_TERM)
        take_columns(self, kernel)
        book = ClassBook.of(batch.targets, classes, takes_new=True)
        self.begin(self._first_book(batch, book, 1), kernel, candidates_of(self), fade=FADE)
        self._learn(*batch.some(slice(BLOCK))._replace(table=self._of_cells(known[:BLOCK])), has_new=True)
        rest = batch.some(slice(BLOCK, None))
        return rest._replace(table=self._of_cells(rest.table)), True

    def _has_new(self, labels: NDArray[Any], classes: ArrayLike | None) -> bool:
        """Return whether there are new classes; raise if there must be none."""
        return self.learned_.book.meet(labels, classes) is not self.learned_.book

    def _warm_up(self, batch: Batch, classes: ArrayLike | None, answers: Any) -> Batch:
        """Buffer the first rows of a stream; with enough, draw the map. Return the rows still to be learned."""
        n_initial, held = self._n_initial, getattr(self, "warm_up_", WarmUp())
        if held.book is None:
            book = ClassBook.of(batch.targets, classes, takes_new=True)
        else:
            book = held.book.meet(batch.targets, classes)
        if answers is not None and n_initial > 0:
            before = held.targets if held.n else batch.targets[:0]
            answers.add_majority(book, batch.targets, before, min(n_initial - held.n, len(batch.targets)))
        if held.n + len(batch.targets) < n_initial:
            self.warm_up_ = held.holding(batch, book)
            return batch.some(slice(0))
        batch = held.followed_by(batch)
        rng, first = check_random_state(self.random_state), self._first_book(batch, book, n_initial)
        rows = batch.some(slice(n_initial or None))
        self._begin_on(rows.table, rows.targets, first, rng, fade=FADE, is_growing=grows(self))
        return self._learn_first(batch, rng, answers, has_new=True)

    def _first_book(self, batch: Batch, book: ClassBook, n: int) -> ClassBook:
        """Return the classes of the first n rows, at least one, or all that were given."""
        return ClassBook.of(batch.targets[: max(1, n)], takes_new=True) if book.is_open else book

    def _begin_on(
        self,
        table: Any,
        labels: NDArray[Any],
        book: ClassBook,
        rng: np.random.RandomState,
        *,
        fade: float,
        is_growing: bool = False,
    ) -> None:
        """Forget everything, draw the map from a table and start with zero weights."""
        _hint_at_regression(book)
        kernel, candidates, term = self._drawn(table, labels, book.n_columns, rng, is_growing=is_growing)
        self.begin(book, kernel, candidates, term, fade)

    def _begin_again(self, batch: Batch, rng: np.random.RandomState) -> None:
        """Forget all rows, and draw a map that grows from a batch of them."""
        book = replace(self.learned_.book, counts=np.zeros_like(self.learned_.book.counts))
        self.begin(book, *self._drawn(batch.table, batch.targets, book.n_columns, rng, is_growing=True), FADE)

    def begin(
        self,
        book: ClassBook,
        kernel: IsolationKernel,
        candidates: Sequence[Candidate] = (),
        term: LinearTerm | None = None,
        fade: float = 1.0,
    ) -> None:
        """Forget everything and start with zero weights for the cells of a fitted kernel."""
        if candidates:
            learned: Any = Race.begun(candidates, book, kernel.map_, term, fade).within(self.max_model_size)
        else:
            learned = OneVsRest.begun(self, book, kernel.map_.starts)
        commit(self, "warm_up_", "growth_", kernel_=kernel, learned_=learned, linear_term_=term)

    def _learn_passes(self, rows: Any, labels: NDArray[Any], weights: Weights, rng: np.random.RandomState) -> None:
        """Learn validated and mapped rows in ``n_passes`` passes, in orders drawn from ``rng``.

        Candidates race in the first pass, and the winner alone goes on.
        """
        n, batch = len(labels), Batch(rows, labels, weights)
        first = np.arange(n)[next(pass_orders(n, 1, rng, shuffle=self.shuffle))]
        with self._pass("first pass", n) as bar:
            for part in self._raced(first, *self._mean_weights(labels, weights)):
                self._learn_in_order(batch, part, bar=bar)
        self._learn_again(batch, (self.n_passes - 1) * (LINEAR_PASSES if self._is_linear else 1), rng)

    def fit_mapped(
        self, kernel: IsolationKernel, cells: Any, labels: NDArray[Any], weights: Weights, rng: np.random.RandomState
    ) -> None:
        """Forget everything and learn rows whose cells are known, as ``fit`` does without a race."""
        self.begin(ClassBook.of_all(labels, takes_new=True), kernel)
        self._learn_passes(cells, labels, weights, rng)

    def _mean_weights(self, labels: NDArray[Any], weights: Weights) -> tuple[float, float]:
        """Return the mean weight of the rows, and that in which each row counts by its weight."""
        book = self.learned_.book
        numbers = book.numbers(labels)
        factors = book.counting(numbers).class_factors(self.class_weight)[numbers]
        return mean_weights(factors if weights is None else factors * weights)

    def _learn(
        self,
        rows: Any,
        labels: NDArray[Any],
        weights: Weights,
        *,
        is_new: bool = True,
        has_new: bool = False,
        answers: Any = None,
        bar: Bar | None = None,
    ) -> None:
        """Learn rows block by block: in place in one step, or in a copy of the state that is then committed.

        ``is_new`` tells whether the rows are learned for the first time, ``has_new`` whether there may be new classes.
        ``answers`` receives what is predicted for each row before it is learned, ``bar`` how many are learned.
        """
        steps, n, begin = Steps.of(self), len(labels), 0
        while begin < n:
            self._narrow()
            learned, end = self.learned_, min(begin + min(BLOCK, self.learned_.until_narrowed), n)
            if has_new:  # up to the next new class, so that calls of any size meet it in the same state
                learned = self._meeting(labels[begin : begin + 1])
                end = begin + int(np.argmin([*np.isin(labels[begin:end], learned.book.labels), False]))
            learned = learned.writable()
            block = Batch(rows, labels, weights).some(slice(begin, end))
            learned.learn(*block, steps, class_weight=self.class_weight, is_new=is_new, answers=answers)
            self._commit(learned)
            if bar is not None:
                bar.advance(end - begin)
            begin = end

    def _meeting(self, labels: NDArray[Any]) -> Any:
        """Return a state with the classes of further rows, in the limits of ``max_model_size``."""
        met = self.learned_.meet(labels)
        if met is self.learned_:
            return met
        _hint_at_regression(met.book, len(self.learned_.book.labels))
        return met.within(self.max_model_size)

    # -- prediction

    @one_view
    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the scores of rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame, list of dicts} of shape (n, d)

        Returns
        -------
        scores : ndarray of shape (n,) for two classes, else (n, n_classes)
            With two classes, a positive score means the second one.
        """
        return self._scores(X)

    def _scores(self, X: Any) -> Any:
        if hasattr(self, "learned_"):
            return self.learned_.scores(self._form_of(X), self.n_jobs)
        check_is_fitted(self)
        table = read_rows(self, X, reset=False)
        return engine_of(X).to_library(self._book.majority_scores(table.shape[0], self._frequencies()), X)

    @one_view
    def decision_function_cells(self, cells: ArrayLike) -> NDArray[np.float64]:
        """Return the scores of rows given as cells; see ``partial_fit_cells``."""
        known = self._known(cells)
        return self.learned_.scores(known, self.n_jobs)

    @one_view
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class of the highest score of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame, list of dicts} of shape (n, d)

        Returns
        -------
        labels : ndarray of shape (n,)
        """
        scores = self._scores(X)
        return engine_of(X).labels(scores, self.classes_)

    @one_view
    def predict_cells(self, cells: ArrayLike) -> NDArray[Any]:
        """Return the labels of rows given as cells; see ``partial_fit_cells``."""
        scores = self.decision_function_cells(cells)
        return engine_of(scores).labels(scores, self.classes_)

    @one_view
    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of each class.

        With ``loss="logistic"``, scores are logits. Else they are calibrated by a temperature, which is fitted to the
        scores that the 4096 most recent rows had before they were learned. The predicted class always has the highest
        probability.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame, list of dicts} of shape (n, d)

        Returns
        -------
        probabilities : ndarray of shape (n, n_classes)
        """
        if hasattr(self, "learned_"):
            return self.learned_.probabilities(self._form_of(X), self.loss, self.n_jobs)
        scores, counts = self._scores(X), self._frequencies()
        return engine_of(X).to_library(np.tile(counts / counts.sum(), (scores.shape[0], 1)), X)

    @one_view
    def predict_proba_cells(self, cells: ArrayLike) -> NDArray[np.float64]:
        """Return the class probabilities of rows given as cells; see ``partial_fit_cells``."""
        known = self._known(cells)
        return self.learned_.probabilities(known, self.loss, self.n_jobs)

    @property
    def classes_(self) -> NDArray[Any]:
        """Classes seen so far, sorted."""
        return self._book.labels

    @property
    def _book(self) -> ClassBook:
        return self.learned_.book if hasattr(self, "learned_") else self.warm_up_.book  # type: ignore[return-value]

    def _frequencies(self) -> NDArray[np.int64]:
        """Return the number of buffered rows of each class."""
        return self._book.frequencies(self._book.numbers(self.warm_up_.targets))

    # -- checks

    def check_parameters(self) -> None:
        """Raise ValueError if a parameter is invalid."""
        self._check_shared_parameters(self._losses)
        check_class_weight(self.class_weight)

    def check(self) -> None:
        """Raise ValueError if the learned state does not match the kernel; see :mod:`isokern.parts`."""
        if "warm_up_" in vars(self):
            is_buffer = isinstance(self.warm_up_, WarmUp) and self.warm_up_.book is not None
            need(is_buffer, "warm_up_ must be a WarmUp with classes")
        if "learned_" in vars(self):
            self._check_learned(OneVsRest, Race)
            first = vars(self).get("growth_")
            is_known = not isinstance(first, FirstRows) or np.isin(first.batch.targets, self.classes_).all()
            need(is_known, "growth_ must have known classes only")


def _hint_at_regression(book: ClassBook, n_before: int = 0) -> None:
    """Warn if there are now so many integers for classes that they look like numbers to predict."""
    if book.labels.dtype.kind in "iu" and n_before <= _MANY_CLASSES < len(book.labels):
        warn_user(
            f"y has {len(book.labels)} different integers, which looks like a regression: consider IKOGDRegressor. If "
            "they are classes, labels of text avoid this warning.",
        )
