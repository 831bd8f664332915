"""Provide IKSVC: a support vector classifier with the Isolation Kernel."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from isokern.arrays import ForeignRows
from isokern.checks import all_or_nothing, is_number, n_threads, warn_user
from isokern.engines import engine_of, host_table
from isokern.feature_map import IsolationKernel
from isokern.forest import Classes, Forest
from isokern.learners.as_forest import as_forest
from isokern.learners.calibration import probabilities
from isokern.learners.classes import ClassBook
from isokern.learners.clock import Clock
from isokern.learners.column_weights import chosen_weights
from isokern.learners.commits import one_view
from isokern.learners.features import Features
from isokern.learners.kernel_source import KernelSource, draw_seed, read_cells, share_starts, take_columns
from isokern.learners.linear_term import NO_LINEAR_TERM, LinearTerm
from isokern.learners.parameters import check_choice, check_class_weight, check_flag, check_integer
from isokern.learners.scale_weights import ScaleWeights
from isokern.learners.svm import Problem, Stop
from isokern.learners.svm_choice import Chosen, choose, is_open, kinds_of, map_choice, without_choice
from isokern.learners.targets import Weights, read_all_weights, read_labels
from isokern.learners.weights import CellWeights
from isokern.notebooks import repr_html, repr_mimebundle
from isokern.parts import need, need_array
from isokern.progress import check_verbose, tell
from isokern.rows import input_tags, read_rows

LOSSES = ("squared_hinge", "hinge")
# Of tol="auto". Less takes more passes, and made test accuracies better or worse by little.
_GAIN = 0.01
_LARGEST_SCALING = 1e100  # so that its square is finite


def _is_calibrated(learner: IKSVC) -> bool:
    """Return whether a learner has probabilities; raise an AttributeError with the cure otherwise."""
    if not learner.holds_out:
        raise AttributeError(
            "predict_proba needs held-out rows, but C, n_scales and linear leave nothing to choose. Give "
            "probability=True to hold some out."
        )
    return True


class IKSVC(ClassifierMixin, BaseEstimator):
    """Support vector classifier with the Isolation Kernel, trained by dual coordinate descent on cell numbers.

    It solves the problem of ``LinearSVC(dual=True)`` on ``IsolationKernel.transform(X)`` without building that matrix.
    Except for its regularised intercept, this is also the problem of ``SVC(kernel="precomputed")`` on
    ``IsolationKernel.similarity(X)``, but training time grows linearly with the number of rows instead of
    quadratically. More than two classes are learned one-vs-rest.

    Nothing needs to be tuned: by default, C and the features are chosen by the accuracy on held-out rows: cells, cells
    and a linear term, or the linear term alone. See ``selection_`` and the notes.

    Choose it for batch learning, if all rows fit into memory and you want the optimum of the SVM objective. Choose
    :class:`IKOGDClassifier` for streams, for many classes, or if training time matters more.

    Parameters
    ----------
    partitioning, n_partitionings, max_depth, scale, categorical_features, kernel, device
        The kernel, see :class:`IKOGDClassifier`.
    n_cells : int or "auto", default="auto"
        Number of cells of a partitioning. "auto" is n / 16 rounded to a power of two, at most 16,384; n / 32 if C,
        ``n_scales`` and ``linear`` are given.
    n_scales : int or "auto", default="auto"
        Number of scales of each partitioning, see :class:`IsolationKernel`. "auto" uses two, a middle one and the
        finest; with a number for ``n_cells`` or your own partitioning it is 1.
    linear : bool or "auto", default="auto"
        Whether to add a linear term to the kernel, see :class:`IKOGDClassifier`. "auto" chooses by held-out rows, also
        the linear term alone; with ``kernel`` or your own partitioning it is False.
    column_weights : "auto", array-like of shape (d,) or None, default="auto"
        How often trees split each column, see :class:`IKOGDClassifier`. If C, ``n_scales`` and ``linear`` leave nothing
        to choose, "auto" is None.
    C : float or "auto", default="auto"
        Weight of the loss relative to the L2 penalty of the weights. "auto" chooses among 0.03, 0.1, 0.3, 1 and 3.
    loss : {"squared_hinge", "hinge"}, default="squared_hinge"
        Loss function of a score.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, which multiply C for their rows in all one-vs-rest problems. (``LinearSVC`` applies the
        weight of a class in the problem of that class only.)
    fit_intercept : bool, default=True
        Whether scores have an intercept.
    intercept_scaling : float, default=1.0
        The larger, the weaker the penalty of the intercept and the longer the training; 10 makes it nearly free.
    tol : float or "auto", default="auto"
        When training stops. "auto": when a pass over the rows improves the dual objective by less than 1 %. A number,
        as in ``LinearSVC``: when the projected gradients span less than this. 1e-4 takes several times as long as
        "auto", also because weights are then in double precision, and predicts no better; it suits comparisons of
        solutions.
    max_iter : int, default=1000
        Maximum number of passes over the rows.
    probability : bool, default=False
        Whether to hold out rows for ``predict_proba`` even if nothing is left to choose, which costs another training
        on four fifths of at most 40,000 rows. It does not change scores.
    n_jobs : int, default=None
        Number of threads for mapping and prediction, and for training with more than two classes; see
        :class:`IsolationKernel`. Results do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the map, of the held-out rows and of the order in which training visits the rows.
    verbose : {0, 1}, default=0
        1 prints the steps of training on standard error. Results do not depend on it.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Classes, sorted.
    C_ : float
        The C that the model was trained with.
    selection_ : dict or None
        What was compared: ``candidates``, their ``accuracies`` on held-out rows, and the ``chosen`` one. None if the
        parameters left nothing to choose, or if no class had five rows to hold one out.
    kernel_ : IsolationKernel
        Fitted kernel.
    linear_term_ : LinearTerm or None
        Statistics of the columns for the linear term, if the model has one.
    class_book_ : ClassBook
        Classes and the columns of scores they use.
    model_ : CellWeights or ScaleWeights
        Weights of the cells and of the linear term.
    cell_weights_ : ndarray of shape (1, n_columns) for two classes, else (n_classes, n_columns)
        Weights of the cells, which are the columns of ``kernel_.transform``, of a model on one scale without a linear
        term. They are not called ``coef_``, because scikit-learn expects that to have one value per input column.
    intercept_ : ndarray of shape (1,) for two classes, else (n_classes,)
        Intercepts.
    inverse_temperature_ : float or None
        Factor of the scores in ``predict_proba``.
    n_iter_ : int
        Number of passes over all rows, the maximum over the one-vs-rest problems.
    n_features_in_ : int
        Number of columns.

    Notes
    -----
    A fifth of the rows is held out, of each class alike; of more than 40,000 rows, a random sample of that size serves
    to choose. Up to 4,000 rows, all folds are held out in turn. Values of C are tried from small to large, each
    training starting from the last solution with a loose tolerance, until two in succession have not improved the
    accuracy; features after the first begin near the best C of the first. The final training on all rows starts from
    the chosen solution. The map is drawn from all rows, without labels. Rows count by their weights and class weights:
    with ``class_weight="balanced"``, the chosen model has the best balanced accuracy.

    References
    ----------
    Hsieh, Chang, Lin, Keerthi and Sundararajan, "A dual coordinate descent method for large-scale linear SVM", ICML,
    2008.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from isokern import IKSVC
    >>> X, y = load_digits(return_X_y=True)
    >>> model = IKSVC(random_state=0).fit(X[:1200], y[:1200])
    >>> model.score(X[1200:], y[1200:]) > 0.9
    True
    >>> model.predict_proba(X[1200:]).shape
    (597, 10)
    """

    _repr_html_inner, _repr_mimebundle_ = repr_html, repr_mimebundle

    def __init__(
        self,
        partitioning: Any = "tree",
        n_partitionings: int = 100,
        n_cells: int | str = "auto",
        *,
        max_depth: int | str | None = None,
        n_scales: int | str = "auto",
        linear: bool | str = "auto",
        scale: str | None = None,
        categorical_features: Any = "from_dtype",
        column_weights: Any = "auto",
        kernel: IsolationKernel | None = None,
        C: float | str = "auto",
        loss: str = "squared_hinge",
        class_weight: dict[Any, float] | str | None = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        tol: float | str = "auto",
        max_iter: int = 1000,
        probability: bool = False,
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
        self.C = C
        self.loss = loss
        self.class_weight = class_weight
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.tol = tol
        self.max_iter = max_iter
        self.probability = probability
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @all_or_nothing
    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Draw the map from the rows, choose features and C, and train.

        Parameters
        ----------
        X : {array-like, sparse matrix, data frame, list of dicts} of shape (n, d)
            Rows.
        y : array-like of shape (n,)
            Labels, numbers or strings.
        sample_weight : array-like of shape (n,), default=None
            Weights of at least 0, which multiply C.

        Returns
        -------
        self
        """
        self.check_parameters()
        table = read_rows(self, X, reset=True, kernel=KernelSource(self).kernel)
        labels, weights = read_labels(self, y, table), read_all_weights(sample_weight, table)
        rng = check_random_state(self.random_state)
        book = ClassBook.of_all(labels, takes_new=False)
        chosen = map_choice(self, table.shape[0])
        if is_open(self):
            chosen |= chosen_weights(self, table, labels, rng)
        self.kernel_ = KernelSource(self).fit(table, rng, **chosen)
        tell(self, f"map for {table.shape[0]:,} rows: {self.kernel_.map_.summary}")
        self.linear_term_ = LinearTerm.learn(table, self.is_categorical_) if self._may_be_linear else None
        self._train(book, self._features(table, self.kernel_.code_rows(table)), labels, weights, rng)
        return self

    @all_or_nothing
    def fit_cells(self, cells: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on rows given as ``cells``, an array of shape (n, n_partitionings) from the ``apply`` of ``kernel``.

        ``kernel`` must be a fitted kernel. Otherwise like ``fit``; there is no linear term.
        """
        self.check_parameters()
        if self.linear not in (False, "auto"):
            raise ValueError(NO_LINEAR_TERM)
        for name in ("kernel_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        self.kernel_ = KernelSource(self).for_cells()
        take_columns(self, self.kernel_)
        known = read_cells(self.kernel_, cells)
        labels, weights = read_labels(self, y, known), read_all_weights(sample_weight, known)
        book = ClassBook.of_all(labels, takes_new=False)
        self.linear_term_ = None
        rng = check_random_state(self.random_state)
        self._train(book, Features.of_cells(self.kernel_.map_, known, n_threads(self.n_jobs)), labels, weights, rng)
        return self

    def _train(
        self, book: ClassBook, features: Features, labels: NDArray[Any], weights: Weights, rng: np.random.RandomState
    ) -> None:
        """Choose C and linear term, as far as they are open, and solve one SVM problem per score on all rows."""
        numbers = book.numbers(labels)
        self.class_book_ = book.counting(numbers)
        square = float(self.intercept_scaling) ** 2 if self.fit_intercept else 0.0
        row_costs, is_squared = self._row_costs(labels, numbers, weights), self.loss == "squared_hinge"
        targets, seed = book.targets(numbers), draw_seed(rng)
        problem = Problem(features, targets, row_costs, book.n_columns, is_squared, square, seed)
        choice = choose(problem, self, numbers, rng) if self.holds_out else without_choice(self)
        solution = choice.start or problem.start(choice.kind, keeps_alpha=False)
        if not isinstance(self.tol, str):
            solution = solution.in_precision(np.float64)
        everything = np.arange(len(labels), dtype=np.int32)
        self.n_iter_ = problem.solve(solution, everything, choice.C, self._stop)
        tell(self, f"{choice.kind.name}, C = {choice.C:g}: trained on {len(labels):,} rows in {self.n_iter_} passes")
        self.model_, self.intercept_ = solution.model(features), solution.intercepts[0]
        self.C_, self.choice_, self.inverse_temperature_ = choice.C, choice.chosen, choice.inverse_temperature
        self.linear_term_ = self.linear_term_ if choice.kind.linear else None
        if self.n_iter_ >= self.max_iter:
            warn_user(
                f"IKSVC has not converged after max_iter={self.max_iter} passes. Raise max_iter or tol, or lower C or "
                "intercept_scaling.",
                ConvergenceWarning,
            )

    def _row_costs(self, labels: NDArray[Any], numbers: NDArray[np.intp], weights: Weights) -> Weights:
        """Return the factor of C of each row, or None if all are 1."""
        if self.class_weight is None:
            return weights
        factors: NDArray[np.float64] = compute_class_weight(self.class_weight, classes=self.classes_, y=labels)[numbers]
        return factors if weights is None else factors * weights

    @property
    def _stop(self) -> Stop:
        if isinstance(self.tol, str):
            return Stop(0.0, _GAIN, int(self.max_iter))
        return Stop(float(self.tol), 0.0, int(self.max_iter))

    # -- prediction

    @property
    def cell_weights_(self) -> NDArray[np.float64]:
        """Weights of the cells, the columns of ``kernel_.transform``, one row per score."""
        check_is_fitted(self, "kernel_")
        if not isinstance(self.model_, CellWeights):
            raise AttributeError("cell_weights_ are those of n_scales=1 and linear=False; see model_.")
        # The map's values are 1/sqrt(t), a score is a mean over t: (1/t) sum of sqrt(t) * weight.
        return np.ascontiguousarray(self.model_.values.T) / math.sqrt(self.kernel_.map_.n_partitionings)

    @one_view
    def decision_function(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the scores of rows; see :meth:`IKOGDClassifier.decision_function`."""
        check_is_fitted(self, "kernel_")
        rows = engine_of(X).read(self, X)
        has_cells = isinstance(self.model_, CellWeights) or bool(self.model_.scales)
        return self._scores(self._features(rows, self.kernel_.code_rows(rows) if has_cells else None))

    @one_view
    def decision_function_cells(self, cells: ArrayLike) -> NDArray[np.float64]:
        """Return the scores of rows given as cells of shape (n, n_partitionings) from ``kernel_.apply``."""
        check_is_fitted(self, "kernel_")
        if self.linear_term_ is not None:
            raise ValueError(NO_LINEAR_TERM)
        fitted = self.kernel_.map_
        known = engine_of(cells).check_cells(fitted, cells)
        return self._scores(Features.of_cells(fitted, known, n_threads(self.n_jobs)))

    @one_view
    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Return the class of each row, an array of shape (n,)."""
        scores = self.decision_function(X)
        return engine_of(X).labels(scores, self.classes_)

    @available_if(_is_calibrated)
    @one_view
    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of each class, an array of shape (n, n_classes).

        Scores are calibrated by a temperature, which is fitted to the scores of rows that were held out while features
        and C were chosen. The predicted class always has the highest probability. If nothing is left to choose, there
        are no such rows: then ``probability=True`` holds some out, and trains twice.
        """
        scores = self.decision_function(X)
        if self.inverse_temperature_ is None:
            raise ValueError(
                "y must have a class of at least 5 rows in fit, so that some can be held out to calibrate "
                "probabilities; got fewer of each."
            )
        engine = engine_of(X)
        found = probabilities(engine.to_host(scores), len(self.classes_), self.inverse_temperature_)
        return engine.to_library(found, scores)

    @one_view
    def forest(self) -> Forest:
        """Return the model as a forest; see :mod:`isokern.forest`."""
        check_is_fitted(self, "kernel_")
        factor = self.inverse_temperature_
        answer = Classes(self.classes_, None) if factor is None else Classes(self.classes_, "softmax", factor)
        return as_forest(self, self.model_, self.intercept_, answer)

    @property
    def classes_(self) -> NDArray[Any]:
        """Classes, sorted."""
        return self.class_book_.labels

    @property
    def selection_(self) -> dict[str, Any] | None:
        """Machines that were compared and their accuracies on held-out rows; None if nothing was left to choose."""
        check_is_fitted(self, "kernel_")
        return None if self.choice_ is None else self.choice_.report()

    @property
    def holds_out(self) -> bool:
        """Whether ``fit`` holds rows out: to choose, or for probabilities."""
        return bool(self.probability) or is_open(self)

    @property
    def _may_be_linear(self) -> bool:
        """Whether ``fit`` tries a linear term."""
        return any(kind.linear for kind in kinds_of(self))

    def _features(self, rows: Any, codes: Any) -> Features:
        """Return validated rows in the form that machines take."""
        source = rows.X if isinstance(rows, ForeignRows) else None
        has_linear = self.linear_term_ is not None
        table = host_table(rows) if source is not None and has_linear else rows
        return Features(self.kernel_.map_, self.linear_term_, codes, table, n_threads(self.n_jobs), source=source)

    def _scores(self, features: Features) -> Any:
        if isinstance(self.model_, CellWeights):
            scores = engine_of(features.codes).scores(features.codes, self.model_, self.n_jobs)
        elif features.source is not None:
            scores = self.model_.foreign_score(features, Clock())
        else:
            scores = self.model_.score(features, Clock())
        return self.class_book_.of_classes(scores + engine_of(scores).to_library(self.intercept_, scores))

    # -- checks

    def check_parameters(self) -> None:
        """Raise ValueError if a parameter is invalid."""
        KernelSource(self).check()
        check_verbose(self.verbose)
        check_class_weight(self.class_weight)
        check_choice(self, "loss", LOSSES)
        if not (self.C == "auto" or (is_number(self.C) and self.C > 0)):
            raise ValueError(f'C must be "auto" or a positive number; got {self.C!r}.')
        if not (self.tol == "auto" or (is_number(self.tol) and self.tol > 0)):
            raise ValueError(f'tol must be "auto" or a positive number; got {self.tol!r}.')
        check_flag(self, "linear", may_be_auto=True)
        check_flag(self, "probability")
        check_flag(self, "fit_intercept")
        if not (is_number(self.intercept_scaling) and 0 < self.intercept_scaling <= _LARGEST_SCALING):
            raise ValueError(
                f"intercept_scaling must be a positive number of at most {_LARGEST_SCALING:g}; "
                f"got {self.intercept_scaling!r}. For no intercept, set fit_intercept=False."
            )
        check_integer(self, "max_iter", at_least=1)

    def check(self) -> None:
        """Raise ValueError if classes, weights, intercepts and kernel do not match; see :mod:`isokern.parts`."""
        if "kernel_" not in vars(self):
            return
        need(isinstance(self.kernel_, IsolationKernel), "kernel_ must be an IsolationKernel")
        need(isinstance(self.class_book_, ClassBook), "class_book_ must be a ClassBook")
        need(isinstance(self.linear_term_, LinearTerm | None), "linear_term_ must be a LinearTerm or None")
        need(isinstance(self.choice_, Chosen | None), "choice_ must be a Chosen or None")
        if isinstance(self.model_, CellWeights):
            share_starts(self.kernel_, self.model_)
        else:
            need(isinstance(self.model_, ScaleWeights), "model_ must be a CellWeights or a ScaleWeights")
            term = self.linear_term_
            self.model_.check_map(self.kernel_.map_, 0 if term is None else term.n_weights)
            d = self.n_features_in_ if term is None else term.n_columns
            need(d == self.n_features_in_, "linear_term_ must have one entry for each column")
        need_array(self.intercept_, np.float64, 1, "intercept_")
        n_scores = self.class_book_.n_columns
        is_matched = self.model_.n_columns == len(self.intercept_) == n_scores > 0
        need(is_matched, "model_ and intercept_ must have one column per score")
        factor = self.inverse_temperature_
        need(factor is None or (is_number(factor) and factor > 0), "inverse_temperature_ must be a positive number")

    def __sklearn_tags__(self) -> Any:
        return input_tags(super().__sklearn_tags__(), trees=KernelSource(self).has_trees)
