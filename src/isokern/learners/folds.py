"""Cross-validate a learner over numbers of cells, mapping the rows of a fold as rarely as possible."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from joblib import cpu_count
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_classifier
from sklearn.metrics._scorer import _BaseScorer, _PassthroughScorer
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing, check_random_state

from isokern.checks import is_number, n_threads
from isokern.feature_map import IsolationKernel
from isokern.fitted_map import LateMap
from isokern.learners.kernel_source import KernelSource
from isokern.learners.nested import can_share, nested_cells
from isokern.learners.targets import Weights, read_all_weights, some
from isokern.progress import Bar

Split = tuple[NDArray[np.intp], NDArray[np.intp]]
Scorer = Callable[[Any, Any, NDArray[Any]], Any]


class Rows(NamedTuple):
    """Rows in the user's own indexable form and as a table, with their targets and weights."""

    X: Any
    table: Any
    targets: NDArray[Any]
    weights: Weights


class MappedPart(NamedTuple):
    """Kernel drawn from the training rows of a fold, and the cells of its training and test rows."""

    kernel: IsolationKernel
    train: NDArray[Any]
    test: NDArray[Any]


class NumbersOnCells(RegressorMixin, BaseEstimator):
    """Fitted regressor that takes cells instead of rows, so that scorers need not map rows again."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def predict(self, cells: NDArray[Any]) -> NDArray[np.float64]:
        """Return the prediction for each row."""
        return self.model.predict_cells(cells)


class ClassesOnCells(ClassifierMixin, BaseEstimator):
    """Fitted classifier that takes cells instead of rows, so that scorers need not map rows again."""

    def __init__(self, model: Any) -> None:
        self.model = model

    @property
    def classes_(self) -> NDArray[Any]:
        """Classes, sorted."""
        return self.model.classes_

    def predict(self, cells: NDArray[Any]) -> NDArray[Any]:
        """Return the class of each row."""
        return self.model.predict_cells(cells)

    def predict_proba(self, cells: NDArray[Any]) -> NDArray[np.float64]:
        """Return the probability of each class."""
        return self.model.predict_proba_cells(cells)

    def decision_function(self, cells: NDArray[Any]) -> NDArray[np.float64]:
        """Return the scores of rows."""
        return self.model.decision_function_cells(cells)


def map_folds(
    kernel: IsolationKernel,
    table: Any,
    splits: Sequence[Split],
    sizes: Sequence[int],
    is_categorical: NDArray[np.bool_] | None = None,
) -> Iterator[list[Callable[[], MappedPart]]]:
    """Yield for each fold a list of functions, one per number of cells, that return the mapped part."""
    members = [clone(kernel).set_params(n_cells=n_cells) for n_cells in sizes]
    if not can_share(kernel, table, len(splits), sizes):
        for train, test in splits:
            rows = table[train], table[test]
            yield [functools.partial(_map_alone, member, *rows, is_categorical) for member in members]
        return
    shared = nested_cells(kernel, table, [train for train, _ in splits], sizes)
    for split, cells in zip(splits, shared, strict=True):
        pairs = zip(members, cells, strict=True)
        yield [functools.partial(_cut_out, member, table, split, of_size) for member, of_size in pairs]


def _map_alone(kernel: IsolationKernel, train: Any, test: Any, is_categorical: NDArray[np.bool_] | None) -> MappedPart:
    fitted = clone(kernel).fit_rows(train, is_categorical)
    return MappedPart(fitted, fitted.apply_rows(train), fitted.apply_rows(test))


def _cut_out(kernel: IsolationKernel, table: Any, split: Split, cells: NDArray[Any]) -> MappedPart:
    train, test = split
    late = clone(kernel)
    late.n_features_in_, late.is_categorical_ = table.shape[1], None  # Voronoi cells
    late.map_ = LateMap(kernel.n_partitionings, int(kernel.n_cells), lambda: clone(kernel).fit_rows(table[train]).map_)
    return MappedPart(late, cells[train], cells[test])


class Folds:
    """Folds of a search over numbers of cells, followed by the refit to all rows; mapped together where that is faster.

    ``base`` has the parameters that are not searched, a seed, and the number and names of the columns. ``sizes`` holds
    the numbers of cells, ascending.
    """

    def __init__(self, base: Any, rows: Rows, splits: Sequence[Split], sizes: Sequence[int]) -> None:
        self._base, self._rows, self._splits, self._sizes = base, rows, splits, sizes
        self._rng = check_random_state(base.random_state)
        kernel = KernelSource(base).unfitted(self._rng)
        self._is_shared = can_share(kernel, rows.table, len(splits) + 1, sizes)
        everything = np.arange(len(rows.targets)), np.arange(0)
        parts = [*splits, everything] if self._is_shared else splits
        self._maps = map_folds(kernel, rows.table, parts, sizes, base.is_categorical_)

    def scores(self, scorer: Scorer, rates: Sequence[Any], bar: Bar) -> Iterator[NDArray[np.float64]]:
        """Yield for each fold the scores on its test part, (len(sizes), len(rates)); ``bar`` counts the models.

        They equal those of ``clone(base).set_params(n_cells=..., learning_rate=...).fit(X[train], y[train])``.
        """
        # Without a shared map, mapping itself uses all threads.
        threads = (n_threads(self._base.n_jobs) or cpu_count()) if self._is_shared else 1
        with ThreadPoolExecutor(threads) as pool:
            for train, test in self._splits:
                learn = functools.partial(self._learn, train=train, rates=rates)
                learned = (pool.map if threads > 1 else map)(learn, next(self._maps))
                score = functools.partial(_score, scorer, _safe_indexing(self._rows.X, test), self._rows.targets[test])
                scores = []
                for models, cells in learned:
                    scores.append([score(model, cells) for model in models])
                    bar.advance(len(models))
                yield np.array(scores)

    def refit(self, parameters: dict[str, Any]) -> Any:
        """Return ``base`` with these parameters, fitted to all rows. Call it after ``scores``."""
        _, table, targets, weights = self._rows
        best = copy.copy(self._base).set_params(**parameters)
        rng = check_random_state(best.random_state)
        kernel = KernelSource(best).fit(table, rng)
        if self._is_shared:
            cells = next(self._maps)[list(self._sizes).index(parameters["n_cells"])]().train
        else:
            cells = kernel.apply_rows(table)
        best.fit_mapped(kernel, cells, targets, weights, rng)
        return best

    def _learn(
        self, make_part: Callable[[], MappedPart], train: NDArray[np.intp], rates: Sequence[Any]
    ) -> tuple[list[Any], NDArray[Any]]:
        """Return a model per learning rate, fitted to the training rows of a fold, and the cells of its test rows."""
        kernel, cells, test = make_part()
        targets = self._rows.targets[train]
        weights = read_all_weights(some(self._rows.weights, train), targets)
        models = []
        for rate in rates:
            model = copy.copy(self._base).set_params(n_cells=kernel.n_cells, learning_rate=rate)
            model.fit_mapped(kernel, cells, targets, weights, copy.deepcopy(self._rng))
            models.append(model)
        return models, test


def _score(scorer: Scorer, X: Any, targets: NDArray[Any], model: Any, cells: NDArray[Any]) -> float:
    """Return the score of a model on test rows."""
    # scikit-learn's scorers only pass rows on to the model, so they can be given the known cells instead.
    if isinstance(scorer, _BaseScorer | _PassthroughScorer):
        on_cells = ClassesOnCells(model) if is_classifier(model) else NumbersOnCells(model)
        score = scorer(on_cells, cells, targets)
    else:
        score = scorer(model, X, targets)
    if not is_number(score):
        raise ValueError(f"scoring must give one finite number for each fold; got {score!r}.")
    return float(score)


def split_rows(cv: Any, X: Any, targets: NDArray[Any], *, classifier: bool) -> list[Split]:
    """Return the training and test rows of each fold, by number; those of a classifier are stratified by default."""
    numbers = np.arange(len(targets))
    folds = check_cv(cv, targets, classifier=classifier).split(X, targets)
    splits = [(numbers[np.asarray(train)], numbers[np.asarray(test)]) for train, test in folds]
    if not splits:
        raise ValueError(f"cv must give at least one fold; got {cv!r}.")
    if classifier:
        _check_classes(splits, targets)
    return splits


def _check_classes(splits: list[Split], labels: NDArray[Any]) -> None:
    """Raise ValueError if the training part of a fold has a single class."""
    for k, (train, _) in enumerate(splits):
        classes = np.unique(labels[train])
        if len(classes) < 2:
            raise ValueError(
                f"cv must leave at least 2 classes in every training part; got {classes} in fold {k}. "
                "Use a StratifiedKFold, or fewer folds."
            )


def table_of_results(candidates: list[dict[str, Any]], scores: NDArray[np.float64]) -> dict[str, Any]:
    """Return scores, (len(candidates), number of folds), in the format of scikit-learn's ``GridSearchCV``."""
    results: dict[str, Any] = {}
    for name in candidates[0]:
        values = [candidate[name] for candidate in candidates]
        dtype = None if all(map(is_number, values)) else object
        results[f"param_{name}"] = np.ma.masked_array(values, mask=False, dtype=dtype)
    results["params"] = candidates
    results |= {f"split{k}_test_score": column for k, column in enumerate(scores.T)}
    means = scores.mean(axis=1)
    results |= {"mean_test_score": means, "std_test_score": scores.std(axis=1)}
    results["rank_test_score"] = rankdata(-means, method="min").astype(np.int32)
    return results
