"""Provide IKOGDRegressor: online gradient descent for regression with the Isolation Kernel."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from isokern.arrays import is_foreign, namespace
from isokern.checks import all_or_nothing
from isokern.engines import engine_of
from isokern.feature_map import IsolationKernel
from isokern.learners.answers import check_method
from isokern.learners.candidates import FADE, candidates_of, grows, has_linear_term
from isokern.learners.commits import BLOCK, commit, one_at_a_time, one_view
from isokern.learners.kernel_source import KernelSource, read_cells, take_columns
from isokern.learners.linear_term import NO_LINEAR_TERM
from isokern.learners.moments import Moments
from isokern.learners.number_race import NumberRace
from isokern.learners.on_cells import OnCells
from isokern.learners.parameters import check_non_negative, check_quantiles
from isokern.learners.residuals import Residuals
from isokern.learners.row_answers import labelled_runs
from isokern.learners.steps import REGRESSOR_LOSSES, Steps, quantiles_of
from isokern.learners.targets import (
    Weights,
    mean_weights,
    pass_orders,
    read_all_weights,
    read_numbers,
    read_outputs,
    read_weights,
    some,
)
from isokern.learners.warm_up import Batch, WarmUp
from isokern.parts import need
from isokern.progress import Bar, tell
from isokern.rows import read_rows

_MOST_PASSES, _FEWEST_PASSES, _ROWS_OF_ALL_PASSES = 10, 3, 1_000_000  # of fit, which may make fewer
_LINEAR_PASSES = 5  # times as many for a linear model, to which they cost little
# ``fit`` ends after so many passes that do not lower the error by this share; few held-out rows make it uneven.
_PATIENCE, _LEAST_GAIN = 3, 0.002


class IKOGDRegressor(OnCells, RegressorMixin, BaseEstimator):
    """Online regressor with the Isolation Kernel: nonlinear functions in constant memory and constant time per row.

    A prediction is the running mean of the targets plus the mean of the weights of the row's cells, one cell in each of
    t random partitionings. See :class:`IKOGDClassifier` for the method.

    Nothing needs to be tuned: by default, several candidates learn at once, on cells of all sizes, on a linear term, or
    on both. Each row is predicted by all before they learn it, and the one with the least loss wins; see
    ``selection_``. ``fit`` makes as many passes as lower the loss on rows held out. Targets may have any offset and
    scale: their running standard deviation is the unit of errors and steps.

    One extreme target cannot ruin a model. A row whose target is more than about 20 standard deviations from the others
    (fewer in the first thousand rows) is not learned; if most targets of some rows are, the level or scale has changed,
    and the model follows it after 16 rows.

    ``IKOGDRegressor(schedule="constant", average=True, n_passes=1)`` is the learner of the paper with another loss,
    averaged. With a given schedule of "constant" or "decaying", steps and ``epsilon`` are in units of the target.

    Choose it for large data sets and streams that a linear model underfits. What it learns on cells is constant within
    them, so it extrapolates beyond the range of the rows it has learned only by a linear term.

    Parameters
    ----------
    partitioning, n_cells, n_scales, max_depth, linear, scale, categorical_features, column_weights, kernel,
    max_model_size, device
        See :class:`IKOGDClassifier`.
    n_partitionings : int, default=200
        Number of partitionings. Time and memory are proportional to it. 100 loses up to two points of R², 400 gains
        another half.
    loss : {"squared", "huber", "epsilon_insensitive", "quantile"}, default="squared"
        Loss function of an error. "huber" is linear beyond ``epsilon``; "epsilon_insensitive" is zero up to it;
        "quantile" is the pinball loss, whose minimum is a quantile of the target.
    epsilon : float, default=0.1
        Threshold of these two losses, in standard deviations of the targets so far.
    quantiles : float or sequence of floats, default=0.5
        For ``loss="quantile"``: what to predict, for example ``(0.1, 0.5, 0.9)``. Several quantiles are learned at once
        and never cross.
    schedule : {"auto", "adagrad", "constant", "decaying"}, default="auto"
        Step sizes, see :class:`IKOGDClassifier`. "auto" leaves them to the race; without a race it is "constant".
    average : bool or "auto", default="auto"
        Whether to predict with the mean of the weights over all steps instead of the latest weights. "auto" leaves it
        to the race, whose candidates do not average; without a race it is True.
    n_passes : int or "auto", default="auto"
        Number of passes of ``fit`` over the rows. "auto" makes up to ten (three of more than 250,000 rows), keeps the
        weights with the least loss on a tenth of the rows, learns these, and makes one more pass over all; without a
        race it is 1.
    learning_rate, shrinkage, shuffle, growth, n_initial, evaluation, n_jobs, random_state, verbose
        See :class:`IKOGDClassifier`. During the warm-up the mean target is predicted, or its quantiles.

    Attributes
    ----------
    mean_ : float or ndarray of shape (n_outputs,)
        Weighted mean of the targets so far; extreme ones count as less extreme, and it starts anew at a new level.
    learned_ : NumberRace or Residuals
        Learned state: the weights and the moments of the targets. Missing until the warm-up is over.
    selection_ : dict or None
        The race, see :class:`IKOGDClassifier`. ``errors`` are mean losses in units of the targets' standard deviation:
        about 1 - R² for "squared".
    kernel_, linear_term_, warm_up_, growth_, n_support_, n_rows_seen_, n_features_in_
        See :class:`IKOGDClassifier`.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from isokern import IKOGDRegressor
    >>> X, y = make_friedman1(2000, random_state=0)
    >>> model = IKOGDRegressor(random_state=0).fit(X[:1500], y[:1500])
    >>> model.score(X[1500:], y[1500:]) > 0.9
    True

    Intervals that hold 80 % of the targets:

    >>> model = IKOGDRegressor(loss="quantile", quantiles=(0.1, 0.9), random_state=0).fit(X[:1500], y[:1500])
    >>> lower, upper = model.predict(X[1500:]).T
    >>> bool((lower <= upper).all())
    True
    """

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
        kernel: Any = None,
        loss: str = "squared",
        epsilon: float = 0.1,
        quantiles: Any = 0.5,
        schedule: str = "auto",
        learning_rate: float | str = "auto",
        shrinkage: float = 0.0,
        average: bool | str = "auto",
        n_passes: int | str = "auto",
        shuffle: bool = True,
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
        self.epsilon = epsilon
        self.quantiles = quantiles
        self.schedule = schedule
        self.learning_rate = learning_rate
        self.shrinkage = shrinkage
        self.average = average
        self.n_passes = n_passes
        self.shuffle = shuffle
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
        """Draw the map from the rows and learn their targets; forget everything learned before.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame, list of dicts} of shape (n, d)
            Rows.
        y : array-like of shape (n,) or (n, n_outputs)
            Targets. Several outputs are learned on one map; quantiles are those of a single output.
        sample_weight : array-like of shape (n,), default=None
            Weights of at least 0, which multiply the steps of the rows.

        Returns
        -------
        self
        """
        self.check_parameters()
        table = read_rows(self, X, reset=True, kernel=KernelSource(self).kernel)
        targets, weights = self.read_targets(y, table), read_all_weights(sample_weight, table)
        rng = check_random_state(self.random_state)
        self._begin_on(table, targets, Moments.begun(targets), rng, fade=1.0)
        self._learn_passes(self._mapped(table), targets, weights, rng)
        return self

    @one_at_a_time
    def partial_fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn the next rows of a stream, in order; see :meth:`IKOGDClassifier.partial_fit`."""
        self.check_parameters()
        self._learn_stream(self._read(X, y, sample_weight))
        return self

    @one_at_a_time
    def partial_fit_predict(
        self,
        X: ArrayLike,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None = None,
        *,
        method: str = "predict",
    ) -> NDArray[np.float64]:
        """Learn the next rows of a stream, and return what was predicted for each of them before it was learned.

        See :meth:`IKOGDClassifier.partial_fit_predict`. Rows whose target is missing are predicted, but not learned;
        with several outputs, no target may be missing. Before the first target, 0 is predicted.

        Parameters
        ----------
        X, sample_weight
            Like those of ``partial_fit``.
        y : array-like of shape (n,) or (n, n_outputs), or None
            Targets.
        method : {"predict"}, default="predict"
            For scikit-learn's sake.

        Returns
        -------
        predictions : ndarray
            Like those of ``predict``.
        """
        self.check_parameters()
        check_method(self, method)
        parts: list[NDArray[np.float64]] = []
        has_one = y is None or np.ndim(y) < 2
        runs: Any = labelled_runs(X, y, sample_weight, self._read_ahead) if has_one else [(X, y, sample_weight)]
        for rows, targets, weights in runs:
            if targets is None:
                parts.append(self._answer_only(rows))
                continue
            answers: list[NDArray[np.float64]] = []
            self._learn_stream(self._read(rows, targets, weights, answers), answers=answers)
            parts.append(self._shaped(np.concatenate(answers)))
        return engine_of(X).to_library(np.concatenate(parts), X)

    def _answer_only(self, X: Any) -> NDArray[np.float64]:
        """Predict rows none of which is learned; 0 before the first target."""
        if self._is_begun:
            return engine_of(X).to_host(self.predict(X))
        return self._shaped(np.zeros((self._n_valid(X), max(1, len(quantiles_of(self))))))

    def _read_ahead(self, X: Any, targets: NDArray[Any]) -> NDArray[np.float64]:
        """Return the targets of some of the rows; raise if any row or target is invalid. Nothing changes."""
        self._n_valid(X)
        return read_numbers(self, targets, targets)

    @all_or_nothing
    def _read(self, X: Any, y: Any, sample_weight: Any, answers: Any = None) -> Batch:
        """Return the rows still to be learned."""
        source, held = KernelSource(self), getattr(self, "warm_up_", WarmUp())
        n_counted = 0 if hasattr(self, "learned_") else max(0, self._n_initial - held.n)
        kernel = None if self._is_begun else source.kernel
        table = self._read_rows(X, reset=not self._is_begun, min_rows=1, kernel=kernel, n_counted=n_counted)
        batch = Batch(table, self.read_targets(y, table, self._n_outputs), read_weights(sample_weight, table))
        return batch if hasattr(self, "learned_") else self._warm_up(batch, answers)

    def read_targets(self, y: Any, rows: Any, expected: int | None = None) -> NDArray[np.float64]:
        """Return the targets as (n, n_outputs); raise unless there are as many outputs as expected."""
        targets = read_outputs(self, y, rows)
        if expected is not None and targets.shape[1] != expected:
            raise ValueError(f"y must have the {expected} outputs of the rows before; got {targets.shape[1]}.")
        if self.loss == "quantile" and targets.shape[1] > 1:
            cure = "Use sklearn.multioutput.MultiOutputRegressor."
            raise ValueError(f'y must be one output for loss="quantile"; got {targets.shape[1]}. {cure}')
        return targets

    @property
    def _n_outputs(self) -> int | None:
        """Number of outputs, None before the first rows."""
        if hasattr(self, "learned_"):
            return int(self.learned_.moments.sums.shape[1])
        return self.warm_up_.batches[0].targets.shape[1] if hasattr(self, "warm_up_") else None

    @one_at_a_time
    def partial_fit_cells(self, cells: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn rows given as cells; see :meth:`IKOGDClassifier.partial_fit_cells`."""
        self.check_parameters()
        self._learn(*self._read_cells(cells, y, sample_weight))
        return self

    @all_or_nothing
    def _read_cells(self, cells: Any, y: Any, sample_weight: Any) -> Batch:
        """Return the rows still to be learned."""
        kernel = KernelSource(self).for_cells()
        known = read_cells(kernel, cells)
        batch = Batch(known, self.read_targets(y, known, self._n_outputs), read_weights(sample_weight, known))
        if hasattr(self, "learned_"):
            return batch._replace(table=self._of_cells(known))
        if has_linear_term(self):
            raise ValueError(NO_LINEAR_TERM)
        take_columns(self, kernel)
        self._begin(Moments.none(batch.targets.shape[1]), kernel, candidates_of(self), None, FADE)
        self._learn(*batch.some(slice(BLOCK))._replace(table=self._of_cells(known[:BLOCK])))
        rest = batch.some(slice(BLOCK, None))
        return rest._replace(table=self._of_cells(rest.table))

    def _warm_up(self, batch: Batch, answers: Any) -> Batch:
        """Buffer the first rows of a stream; with enough, draw the map. Return the rows still to be learned."""
        n_initial, held = self._n_initial, getattr(self, "warm_up_", WarmUp())
        if answers is not None:
            known = held.followed_by(batch)
            for end in range(held.n, min(n_initial, len(known.targets))):
                answers.append(self._buffered_answer(known.targets[:end], some(known.weights, slice(end)))[None])
        if held.n + len(batch.targets) < n_initial:
            self.warm_up_ = held.holding(batch)
            return batch.some(slice(0))
        batch = held.followed_by(batch)
        rng, moments = check_random_state(self.random_state), Moments.begun(batch.targets[:n_initial])
        first = batch.table[: n_initial or None]
        self._begin_on(first, batch.targets, moments, rng, fade=FADE, is_growing=grows(self))
        return self._learn_first(batch, rng, answers)

    def _begin_on(
        self,
        table: Any,
        targets: Any,
        moments: Moments,
        rng: np.random.RandomState,
        *,
        fade: float,
        is_growing: bool = False,
    ) -> None:
        """Forget everything, draw the map from a table and start with zero weights."""
        n_columns = max(targets.shape[1], len(quantiles_of(self)))
        self._begin(moments, *self._drawn(table, targets, n_columns, rng, is_growing=is_growing), fade)

    def _begin_again(self, batch: Batch, rng: np.random.RandomState) -> None:
        """Forget all rows, and draw a map that grows from a batch of them."""
        moments = Moments.begun(batch.targets)
        self._begin_on(batch.table, batch.targets, moments, rng, fade=FADE, is_growing=True)

    def _begin(self, moments: Moments, kernel: Any, candidates: Any, term: Any, fade: float) -> None:
        """Forget everything and start with zero weights for the cells of a fitted kernel."""
        n_columns = max(moments.sums.shape[1], len(quantiles_of(self)))
        if candidates:
            race = NumberRace.begun(candidates, kernel.map_, term, fade, moments=moments, n_columns=n_columns)
            learned: Any = race.within(self.max_model_size)
        else:
            learned = Residuals.begun(self, kernel.map_.starts, moments, n_columns)
        commit(self, "warm_up_", "growth_", kernel_=kernel, learned_=learned, linear_term_=term)

    def _learn_passes(self, rows: Any, targets: Any, weights: Weights, rng: np.random.RandomState) -> None:
        """Learn validated and mapped rows: candidates race in the first pass, and the winner alone goes on."""
        n, batch, is_racing = len(targets), Batch(rows, targets, weights), isinstance(self.learned_, NumberRace)
        n_held = _n_held(n) if self.n_passes == "auto" and is_racing else 0
        first = np.arange(n)[next(pass_orders(n, 1, rng, shuffle=self.shuffle))]
        learned, held = first[: n - n_held], first[n - n_held :]
        with self._pass("first pass", len(learned)) as bar:
            for part in self._raced(learned, *((1.0, 1.0) if weights is None else mean_weights(weights))):
                self._learn_in_order(batch, part, bar=bar)
        if n_held:
            self._learn_while_better(batch, learned, held, rng)
        n_further = int(n_held > 0) if self.n_passes == "auto" else int(self.n_passes) - 1
        self._learn_again(batch, n_further, rng)  # in which held-out rows are mixed with all others

    def fit_mapped(
        self, kernel: IsolationKernel, cells: Any, targets: Any, weights: Weights, rng: np.random.RandomState
    ) -> None:
        """Forget everything and learn rows whose cells are known, as ``fit`` does without a race."""
        outputs = targets.reshape(len(targets), -1)
        self._begin(Moments.begun(outputs), kernel, [], None, fade=1.0)
        self._learn_passes(cells, outputs, weights, rng)

    def _learn_while_better(self, batch: Batch, learned: Any, held: Any, rng: np.random.RandomState) -> None:
        """Learn rows again, as long as that lowers the error on rows held out; then learn these."""
        steps, test, n_stale = Steps.of(self), batch.some(held), 0
        least, best = self.learned_.error(*test, steps), self.learned_.snapshot()
        most = min(_MOST_PASSES, max(_FEWEST_PASSES, _ROWS_OF_ALL_PASSES // len(learned)))
        most *= _LINEAR_PASSES if self._is_linear else 1
        for k, order in enumerate(pass_orders(len(learned), most - 1, rng, shuffle=self.shuffle), start=2):
            with Bar(self, f"pass {k} of at most {most}", len(learned)) as bar:
                self._learn_in_order(batch, learned[order], is_new=False, bar=bar)
            error = self.learned_.error(*test, steps)
            tell(self, f"pass {k}: error of {error:.4f} on held-out rows, {least:.4f} at best before")
            n_stale = 0 if error < (1.0 - _LEAST_GAIN) * least else n_stale + 1
            if error < least:
                least, best = error, self.learned_.snapshot()
            if n_stale == _PATIENCE:
                break
        commit(self, learned_=best)
        self._learn_in_order(batch, held)

    def _learn(
        self,
        rows: Any,
        targets: Any,
        weights: Weights,
        *,
        is_new: bool = True,
        answers: Any = None,
        bar: Bar | None = None,
    ) -> None:
        """Learn rows block by block: in place in one step, or in a copy of the state that is then committed."""
        steps, n, begin = Steps.of(self), len(targets), 0
        while begin < n:
            self._narrow()
            end = min(begin + min(BLOCK, self.learned_.until_narrowed), n)
            learned = self.learned_.writable()
            block = Batch(rows, targets, weights).some(slice(begin, end))
            learned.learn(*block, steps, is_new=is_new, answers=answers)
            self._commit(learned)
            if bar is not None:
                bar.advance(end - begin)
            begin = end

    # -- prediction

    @one_view
    def predict(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the predicted targets of rows.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame, list of dicts} of shape (n, d)

        Returns
        -------
        predictions : ndarray of shape (n,), or (n, n_quantiles) or (n, n_outputs) for several
            Quantiles ascend.
        """
        if hasattr(self, "learned_"):
            return self._shaped(self.learned_.predictions(self._form_of(X), self.n_jobs))
        check_is_fitted(self)
        table, held = read_rows(self, X, reset=False), self.warm_up_.joined()
        answer = self._buffered_answer(held.targets, held.weights)
        return engine_of(X).to_library(self._shaped(np.tile(answer, (table.shape[0], 1))), X)

    def _buffered_answer(self, targets: NDArray[np.float64], weights: Weights) -> NDArray[np.float64]:
        """Return what is predicted for any row after some rows have been buffered: their means or quantiles."""
        if not len(targets):
            return np.zeros(max(targets.shape[1], len(quantiles_of(self))))
        if self.loss == "quantile":
            return _quantiles(targets[:, 0], weights, quantiles_of(self))
        return Moments.mean_of(targets, weights)

    @one_view
    def predict_cells(self, cells: ArrayLike) -> NDArray[np.float64]:
        """Return the predicted targets of rows given as cells."""
        known = self._known(cells)
        return self._shaped(self.learned_.predictions(known, self.n_jobs))

    def _shaped(self, predictions: Any) -> Any:
        """Return predictions as users see them: sorted quantiles, and (n,) for one output."""
        if predictions.shape[1] == 1:
            return predictions[:, 0]
        if self.loss != "quantile":
            return predictions
        xp = namespace(predictions) if is_foreign(predictions) else np  # array-api-compat may not be installed
        return xp.sort(predictions, axis=1)

    @property
    @one_view
    def mean_(self) -> Any:
        """Weighted mean of the targets so far, buffered ones included; an array for several outputs."""
        check_is_fitted(self)
        if hasattr(self, "learned_"):
            means = self.learned_.means
        else:
            held = self.warm_up_.joined()
            means = Moments.mean_of(held.targets, held.weights)
        return float(means[0]) if len(means) == 1 else means

    # -- checks

    def check_parameters(self) -> None:
        """Raise ValueError if a parameter is invalid."""
        self._check_shared_parameters(REGRESSOR_LOSSES)
        check_non_negative(self, "epsilon")
        check_quantiles(self.quantiles)

    def check(self) -> None:
        """Raise ValueError if the learned state does not match the kernel; see :mod:`isokern.parts`."""
        if "warm_up_" in vars(self):
            need(isinstance(self.warm_up_, WarmUp), "warm_up_ must be a WarmUp")
            need(all(batch.targets.ndim == 2 for batch in self.warm_up_.batches), "targets must have columns")
        if "learned_" in vars(self):
            self._check_learned(Residuals, NumberRace)


def _n_held(n: int) -> int:
    """Return how many of n rows tell when to stop: a tenth, more of few rows."""
    return min(max(n // 10, 200), n // 4, 10_000)


def _quantiles(targets: NDArray[np.float64], weights: Weights, quantiles: tuple[float, ...]) -> NDArray[np.float64]:
    """Return quantiles of buffered targets, each row counted by its weight."""
    order = np.argsort(targets, kind="stable")
    mass = np.cumsum(np.ones(len(order)) if weights is None else weights[order])
    places = np.searchsorted(mass, np.array(quantiles) * mass[-1])
    return targets[order[np.minimum(places, len(order) - 1)]]
