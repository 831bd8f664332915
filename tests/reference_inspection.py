"""Twins of cpp/inspection in slow, obvious NumPy: Shapley values from their definition, and searches by sorting."""

from __future__ import annotations

import itertools
import math

import numpy as np

from reference import category_goes_right


def goes_right(trees, node, value):
    """Return whether a node of a forest sends a value to the right."""
    if trees.column[node] in trees.categorical:
        return bool(category_goes_right(0 if np.isnan(value) else int(value), int(trees.threshold[node])))
    return bool(trees.missing_right[node]) if np.isnan(value) else not value < trees.threshold[node]


def shapley_values(game, n_columns):
    """Return the Shapley values of a game, (n_columns, n_outputs), from all subsets of columns."""
    columns = range(n_columns)
    worth = {s: game(s) for size in range(n_columns + 1) for s in map(frozenset, itertools.combinations(columns, size))}
    values = np.zeros((n_columns, len(worth[frozenset()])))
    for subset, value in worth.items():
        for j in set(columns) - subset:
            weight = 1.0 / (n_columns * math.comb(n_columns - 1, len(subset)))
            values[j] += weight * (worth[subset | {j}] - value)
    return values


def path_dependent_game(leaves, x):
    """Return the game of a row: both children, weighted by their points, where a column is not known."""
    trees = leaves.trees

    def value(node, known):
        left = trees.left[node]
        if left < 0:
            return leaves.values[-1 - left]
        if trees.column[node] in known:
            return value(left + goes_right(trees, node, x[trees.column[node]]), known)
        return sum(trees.n_points[child] / trees.n_points[node] * value(child, known) for child in (left, left + 1))

    return lambda known: sum(value(root, known) for root in trees.starts[:-1]) * leaves.multiplier / leaves.divisor


def leaf_sum(leaves, x):
    """Return the sum of the values of a row's leaves."""
    trees, total = leaves.trees, 0.0
    for root in trees.starts[:-1]:
        node = root
        while trees.left[node] >= 0:
            node = trees.left[node] + goes_right(trees, node, x[trees.column[node]])
        total = total + leaves.values[-1 - trees.left[node]]
    return total * leaves.multiplier / leaves.divisor


def interventional_game(leaves, x, background):
    """Return the game of a row: the mean over background rows, of which it takes the columns that are not known."""

    def hybrid(z, known):
        return [x[j] if j in known else z[j] for j in range(len(x))]

    return lambda known: np.mean([leaf_sum(leaves, hybrid(z, known)) for z in background], axis=0)


def path_dependent_by_leaves(leaves, x):
    """Return path-dependent values, (n_columns, n_outputs), leaf by leaf: for paths with too many columns for subsets.

    A leaf is a game of the columns on its path, prod over S of o_j times prod over the others of p_j. The mean of that
    product over subsets of one size comes from a table of sums, in which all terms are positive.
    """
    trees, values = leaves.trees, np.zeros((leaves.trees.n_columns, leaves.values.shape[1]))
    stack = [(root, {}) for root in trees.starts[:-1]]
    while stack:
        node, path = stack.pop()
        left = trees.left[node]
        if left >= 0:
            column = trees.column[node]
            p, o = path.get(column, (1.0, 1.0))
            for child in (left, left + 1):
                is_taken = goes_right(trees, node, x[column]) == (child > left)
                share = trees.n_points[child] / trees.n_points[node]
                stack.append((child, path | {column: (p * share, o * is_taken)}))
            continue
        for i, (p, o) in path.items():
            others = [pair for j, pair in path.items() if j != i]
            values[i] += leaves.values[-1 - left] * (o - p) * _mean_product(others)
    return values * leaves.multiplier / leaves.divisor


def _mean_product(pairs):
    """Return the mean over sizes, and over the subsets of a size, of prod in it of o times prod outside of p."""
    n = len(pairs)
    sums = [1.0]  # by size, divided by the number of subsets of that size
    for k, (p, o) in enumerate(pairs):
        size = k + 1
        sums = [
            (sums[m] * p * (size - m) if m < size else 0.0) / size + (sums[m - 1] * o * m if m else 0.0) / size
            for m in range(size + 1)
        ]
    return sum(sums) / (n + 1)


def similar_rows(similarities, k):
    """Return the indices and similarities of the k largest of each row, the earlier first of equal ones."""
    order = np.argsort(-similarities, axis=1, kind="stable")[:, :k]
    return order, np.take_along_axis(similarities, order, axis=1)
