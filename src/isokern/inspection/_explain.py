"""Explain the scores of tree models by exact SHAP values."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from isokern import _core
from isokern.arrays import is_foreign
from isokern.checks import n_threads, private
from isokern.forest import Classes, Forest, LeafSum
from isokern.frames import are_dicts, in_order, is_frame
from isokern.inspection._linear import LinearPart
from isokern.inspection.explanation import Explanation, stacked
from isokern.rows import core_rows, read_rows

Table = NDArray[np.float64]
_BLOCK_VALUES = 2**24  # SHAP values of a block of rows


def explain(model: Any, X: ArrayLike, background: ArrayLike | None = None) -> Explanation:
    """Return exact SHAP values: what each column adds to the scores of rows.

    A score is explained as it is: ``decision_function`` of a classifier, ``predict`` of a regressor. Base value and
    values of a row sum to its score. A categorical column has one value, as any other.

    Parameters
    ----------
    model : fitted estimator on isolation trees
        An online or adaptive learner, a search or an IKSVC. It is explained as it is at the moment of the call.
    X : {array-like, sparse matrix, data frame, list of dicts} of shape (n, d)
        Rows to explain.
    background : {array-like, sparse matrix, data frame, list of dicts} of shape (m, d), default=None
        Rows that others are compared with: "interventional" values, for which columns that are not known yet come from
        the background rows. Time is proportional to their number; about 100 suffice. None gives "path-dependent"
        values, for which trees weight their branches by the points that they were grown from.

    Returns
    -------
    explanation : Explanation
        With several classes, outputs or quantiles as the last axis of ``values``. Quantiles are explained one by one,
        before they are sorted.

    Notes
    -----
    Time grows with the number of rows times the number of nodes of all trees, and hardly with their depth. The linear
    term of a model adds ``v_j (z_j - mean)``: without background rows, the mean is that of the rows that the map was
    drawn from, and 0 for sparse rows.

    Examples
    --------
    >>> import numpy as np
    >>> from isokern import IKOGDClassifier
    >>> from isokern.inspection import explain
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> model = IKOGDClassifier(random_state=0).fit(X, X[:, 0] > 0)
    >>> explanation = explain(model, X[:5])
    >>> explanation.values.shape
    (5, 3)
    >>> bool(np.allclose(explanation.scores, model.decision_function(X[:5])))
    True
    >>> int(explanation.importance.argmax())
    0
    """
    view = _view(model)
    forest, table = view.forest(), read_rows(view, X, reset=False)
    others = None if background is None else read_rows(view, background, reset=False)
    threads = n_threads(getattr(view, "n_jobs", None))
    parts = [_trees_part(forest.leaves, table, others, threads)] if forest.leaves is not None else []
    parts += [_linear_part(view, forest, table, others)] if forest.linear is not None else []
    values = [sum(of_part[1:], start=of_part[0]) for of_part in zip(*(part[0] for part in parts), strict=True)]
    base = forest.intercept + np.sum([part[1] for part in parts], axis=0)
    bases = np.tile(base, (table.shape[0], 1))
    return Explanation(
        stacked(values),
        bases if len(base) > 1 else bases[:, 0],
        _shown(view, X, table),
        forest.names or [f"column {j}" for j in range(forest.n_columns)],
        forest.answer.labels.tolist() if isinstance(forest.answer, Classes) and len(base) > 1 else None,
    )


def _view(model: Any) -> Any:
    """Return a copy of a model that nobody changes; raise if it has no scores that trees can explain."""
    model = getattr(model, "best_estimator_", model)
    if not (hasattr(model, "forest") and hasattr(model, "predict")):
        raise TypeError(
            f"model must be a classifier or regressor on isolation trees; got {type(model).__name__}. "
            "For other models, use the package shap."
        )
    check_is_fitted(model)
    view = private(model)
    if hasattr(view, "learned_"):
        view.learned_ = view.learned_.snapshot()
    return view


def _trees_part(leaves: LeafSum, table: Any, others: Any, threads: int) -> tuple[list[Any], Table]:
    """Return the values of the trees, for each score, and their base values."""
    trees, values = leaves.trees, leaves.values * (leaves.multiplier / leaves.divisor)
    used = np.unique(trees.column[~trees.is_leaf])
    core = _core.ExplainedTrees(
        split=trees.threshold,
        column=trees.column,
        left=trees.left,
        missing_right=trees.missing_right.view(np.uint8),
        n_points=trees.n_points,
        starts=trees.starts,
        values=values,
        categorical=trees.categorical,
        used=used,
        n_columns=trees.n_columns,
    )
    background = None if others is None else core_rows(others, 0, others.shape[0])
    size = max(1, _BLOCK_VALUES // max(1, len(used) * values.shape[1]))
    blocks: list[list[Any]] = []
    for begin in range(0, table.shape[0], size):
        rows = core_rows(table, begin, min(begin + size, table.shape[0]))
        shapley = np.zeros((min(size, table.shape[0] - begin), len(used), values.shape[1]))
        if background is None:
            core.add_path_dependent(rows, shapley, threads)
        else:
            core.add_interventional(rows, background, shapley, threads)
        blocks.append([_spread(shapley[:, :, k], used, table) for k in range(values.shape[1])])
    if background is None:
        return _joined(blocks), _expected(leaves, values)
    scores = np.empty((others.shape[0], values.shape[1]))
    core.sum_leaves(background, scores, threads)
    return _joined(blocks), scores.mean(axis=0)


def _expected(leaves: LeafSum, values: Table) -> Table:
    """Return the mean of the trees' sums over the points that they were grown from."""
    trees = leaves.trees
    is_leaf = trees.is_leaf
    shares = trees.n_points[is_leaf] / trees.n_points[trees.starts[:-1]][trees.tree_of_leaf]
    return shares @ values[-1 - trees.left[is_leaf]]


def _spread(values: Table, used: NDArray[np.int32], table: Any) -> Any:
    """Return values of some columns as values of all columns of a table, in its format."""
    shape = (len(values), table.shape[1])
    if not sparse.issparse(table):
        spread = np.zeros(shape)
        spread[:, used] = values
        return spread
    places, columns = np.nonzero(values)
    return sparse.csr_array((values[places, columns], (places, used[columns])), shape=shape)


def _joined(blocks: list[list[Any]]) -> list[Any]:
    """Return the values of all blocks of rows, for each score."""
    stack = sparse.vstack if sparse.issparse(blocks[0][0]) else np.concatenate
    return [parts[0] if len(parts) == 1 else stack(parts) for parts in zip(*blocks, strict=True)]


def _linear_part(view: Any, forest: Forest, table: Any, others: Any) -> tuple[list[Any], Table]:
    """Return the values of the linear term, for each score, and their base values."""
    assert forest.linear is not None
    part = LinearPart(view.linear_term_, forest.linear)
    terms = part.terms(table)
    if others is None:
        means = part.typical_terms(getattr(view, "categories_", {}))
    else:
        means = np.array([np.asarray(of_score.mean(axis=0)).ravel() for of_score in part.terms(others)])
    base = part.intercept + means.sum(axis=1)
    return [_less(of_score, mean) for of_score, mean in zip(terms, means, strict=True)], base


def _less(rows: Any, mean: Table) -> Any:
    """Subtract a row from all rows; sparse rows stay sparse."""
    if not sparse.issparse(rows):
        return rows - mean
    return rows - sparse.csr_array(np.ones((rows.shape[0], 1))) @ sparse.csr_array(mean[None])


def _shown(view: Any, X: Any, table: Any) -> Any:
    """Return rows as users want to read them: with the categories themselves, not their codes."""
    names: Any = getattr(view, "feature_names_in_", None)
    if is_frame(X):
        return nw.from_native(X if names is None else in_order(X, names), eager_only=True).to_numpy()
    if are_dicts(X):
        return np.array([[row.get(name) for name in names] for row in X], dtype=object)
    if getattr(view, "is_categorical_", None) is not None and not is_foreign(X):
        return np.array(X, dtype=object)
    return table
