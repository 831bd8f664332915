"""Reimplement the compiled core in slow and obvious NumPy, from the definitions; the core must equal it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from sklearn.utils import check_random_state

MASK = 2**64 - 1
STEP = 0x9E3779B97F4A7C15
LEFT_KEY, RIGHT_KEY = 0x8CB92BA72F3D8DD7, 0xD1B54A32D192ED03


def mix(z):
    """Return the SplitMix64 finaliser of a 64-bit number."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def stream_key(seed, purpose, partitioning):
    """Return the key of a random stream: purpose 1 draws samples, 2 grows trees, 3 orders the rows of an SVM."""
    key = mix((mix((seed + STEP) & MASK) + purpose * STEP) & MASK)
    return mix((key + partitioning * STEP) & MASK)


class Draws:
    """Random numbers of one stream."""

    def __init__(self, key):
        self.key, self.counter = key, 0

    def next(self):
        self.counter += 1
        return mix((self.key + self.counter * STEP) & MASK)

    def below(self, n):
        return (self.next() * n) >> 64

    def unit(self):
        return ((self.next() >> 11) + 1) * 2.0**-53


def draw_samples(n_rows, n_partitionings, sample_size, seed):
    """Return the first row numbers of a shuffle per partitioning, (n_partitionings, sample_size)."""
    samples = []
    for i in range(n_partitionings):
        draws, rows = Draws(stream_key(seed, 1, i)), list(range(n_rows))
        for k in range(sample_size):
            other = k + draws.below(n_rows - k)
            rows[k], rows[other] = rows[other], rows[k]
        samples.append(rows[:sample_size])
    return np.array(samples)


def seed_of(random_state):
    """Return the seed that a kernel draws from its random_state."""
    return int(check_random_state(random_state).randint(np.iinfo(np.int64).max, dtype=np.int64))


def nonzero_columns(points):
    """Return the columns in which any point is non-zero, in order of first appearance."""
    return list(dict.fromkeys(int(j) for point in points for j in np.flatnonzero(point)))


def category_goes_right(code, seed):
    """Return the side of a category: a bit of a hash."""
    hash_ = int(code) ^ int(seed)
    for factor in (0x9E3779B1, 0xB5D1E46B, 0xD6E8FEB9):
        hash_ = hash_ * factor & 0xFFFFFFFF
        hash_ ^= hash_ >> 15
    return bool(hash_ & 1)


def choose_split(values, is_categorical, draws):
    """Return the split of a column, whether missing numbers go right, and which values go left; None if constant."""
    is_missing = np.isnan(values)
    if is_categorical:
        codes = np.where(is_missing, 0, values)
        for _ in range(64 if len(set(codes)) > 1 else 0):
            seed = draws.next() >> 32
            goes_right = np.array([category_goes_right(code, seed) for code in codes])
            if 0 < goes_right.sum() < len(codes):
                return float(seed), False, ~goes_right
        return None
    present = values[~is_missing]
    if len(present) == 0 or (present.min() == present.max() and not is_missing.any()):
        return None
    lower, upper = present.min(), present.max()
    if lower == upper:
        split, missing_right = np.inf, True
    else:
        u = draws.unit()
        split = (1.0 - u) * lower + u * upper
        split = split if lower < split <= upper else upper
        missing_right = (present < split).sum() <= (present >= split).sum()
    return float(split), missing_right, np.where(is_missing, not missing_right, values < split)


def grow_tree(points, key, max_depth=None, depth=0, columns=None, names=None, categorical=()):
    """Return a tree of nested (column, split, missing_right, left, right); a leaf is the index of its first point."""
    columns = nonzero_columns(points) if columns is None else columns
    names = np.arange(len(points)) if names is None else names
    draws = Draws(key)
    if len(points) == 1 or (max_depth is not None and depth >= max_depth):
        return int(names[0])
    while columns:
        k = draws.below(len(columns))
        chosen = choose_split(points[:, columns[k]].astype(float), columns[k] in categorical, draws)
        if chosen is not None:
            break
        columns[k] = columns[-1]
        columns.pop()
    else:
        return int(names[0])
    column, (split, missing_right, goes_left) = columns[k], chosen
    left_is_larger = 2 * goes_left.sum() >= len(points)
    smaller = points[~goes_left] if left_is_larger else points[goes_left]
    own = nonzero_columns(smaller) if np.count_nonzero(smaller) < len(columns) else list(columns)
    # The larger child changes the shared list of columns, so the smaller child has a list of its own.
    children = [
        grow_tree(points[side], mix(key ^ child_key), max_depth, depth + 1, child_columns, names[side], categorical)
        for side, child_key, child_columns in (
            (goes_left, LEFT_KEY, columns if left_is_larger else own),
            (~goes_left, RIGHT_KEY, own if left_is_larger else columns),
        )
    ]
    return column, split, missing_right, *children


def descend(tree, row, categorical=()):
    """Return the leaf of a row."""
    while not isinstance(tree, int):
        column, split, missing_right, left, right = tree
        value = float(row[column])
        if column in categorical:
            goes_right = category_goes_right(0 if np.isnan(value) else value, split)
        else:
            goes_right = missing_right if np.isnan(value) else not value < split
        tree = right if goes_right else left
    return tree


def tree_cells(X, D, n_partitionings, n_cells, seed, max_depth=None, categorical=()):
    """Return the cells of the rows of X in isolation trees grown on samples of D."""
    samples = draw_samples(len(D), n_partitionings, n_cells, seed)
    trees = [
        grow_tree(D[rows], stream_key(seed, 2, i), max_depth, categorical=categorical) for i, rows in enumerate(samples)
    ]
    return np.array([[descend(tree, row, categorical) for tree in trees] for row in X])


def tree_path(tree, row, categorical=()):
    """Return the nodes that a row visits in a tree given by its arrays, from the root to a leaf."""
    path = [0]
    while tree["left"][path[-1]] >= 0:
        k = path[-1]
        column, value = tree["column"][k], float(row[tree["column"][k]])
        if column in categorical:
            goes_right = category_goes_right(0 if np.isnan(value) else value, tree["split"][k])
        else:
            goes_right = tree["missing_right"][k] if np.isnan(value) else not value < tree["split"][k]
        path.append(int(tree["left"][k] + goes_right))
    return path


def tree_scales(arrays, X, n_cells, n_scales, categorical=()):
    """Return the cells of rows at all scales, (len(X), t * n_scales), and the number of cells, (t, n_scales)."""
    cells, sizes = [], []
    for begin, end in pairwise(arrays["starts"]):
        tree = {name: values[begin:end] for name, values in arrays.items() if name != "starts"}
        parents = {int(child): k for k, left in enumerate(tree["left"]) if left >= 0 for child in (left, left + 1)}
        paths = [tree_path(tree, row, categorical) for row in X]
        for scale in range(n_scales - 1):

            def ends(k, limit=n_cells / 4 ** (scale + 1), tree=tree):
                return tree["n_points"][k] <= limit or tree["left"][k] < 0

            def is_cell(k, ends=ends, parents=parents):
                above = [k]
                while above[-1] in parents:
                    above.append(parents[above[-1]])
                return ends(k) and not any(ends(v) for v in above[1:])

            nodes = [k for k in range(end - begin) if is_cell(k)]
            cells.append([nodes.index(next(k for k in path if ends(k))) for path in paths])
            sizes.append(len(nodes))
        cells.append([-1 - int(tree["left"][path[-1]]) for path in paths])
        sizes.append(n_cells)
    return np.array(cells).T.reshape(len(X), -1), np.reshape(sizes, (-1, n_scales))


def squared_distances(X, D):
    """Return the squared distances of all pairs, summed column by column in float64."""
    totals = np.zeros((len(X), len(D)))
    with np.errstate(over="ignore", under="ignore"):
        for x, z in zip(np.asarray(X, float).T, np.asarray(D, float).T, strict=True):
            differences = x[:, None] - z[None, :]
            totals += differences * differences
    return totals


def voronoi_cells(X, D, n_partitionings, n_cells, seed):
    """Return the index of the nearest point in each sample of D, the first in case of ties, (len(X), t)."""
    samples = draw_samples(len(D), n_partitionings, n_cells, seed)
    distances = squared_distances(X, D)
    return np.stack([distances[:, rows].argmin(axis=1) for rows in samples], axis=1)


def voronoi_scales(X, D, n_partitionings, n_cells, n_scales, seed):
    """Return the cells of rows at all scales, (len(X), t * n_scales): the nearest of the sample's first points."""
    samples = draw_samples(len(D), n_partitionings, n_cells, seed)
    distances = squared_distances(X, D)
    sizes = [max(2, n_cells // 4**k) for k in range(n_scales)][::-1]
    return np.stack([distances[:, rows[:size]].argmin(axis=1) for rows in samples for size in sizes], axis=1)


def derivative(loss, f, target, epsilon=0.1):
    """Return dL/df; the target of a classifier is +1 or -1."""
    error, margin = f - target, target * f
    with np.errstate(over="ignore"):
        return {
            "hinge": np.where(margin < 1, -target, 0.0),
            "squared_hinge": -2 * target * np.maximum(0, 1 - margin),
            "logistic": -target / (1 + np.exp(margin)),
            "squared": error,
            "huber": np.clip(error, -epsilon, epsilon),
            "epsilon_insensitive": np.where(np.abs(error) > epsilon, np.sign(error), 0.0),
        }[loss]


def distance(loss, f, target, epsilon=0.1):
    """Return how far a score is from the nearest one with the least loss."""
    if loss in ("hinge", "squared_hinge"):
        return 1 - target * f
    return 5 - target * f if loss == "logistic" else np.abs(f - target) - epsilon * (loss == "epsilon_insensitive")


def limited(loss, weight, move, distance):
    """Return the weight of a step, given the move of an unweighted one and the distance to the minimum."""
    if move == 0:
        return weight
    if weight > 1:
        weight = min(weight, max(1, distance / move))
    return min(weight, 2 * distance / move) if loss in ("squared", "squared_hinge") else weight


def steps(schedule, rate, n_rounds):
    """Return the learning rate of each round."""
    rounds = np.arange(1, n_rounds + 1)
    return rate / np.sqrt(rounds) if schedule == "decaying" else np.full(n_rounds, rate)


def learn_online(
    cells, starts, targets, *, loss, schedule, rate, shrinkage=0.0, average=False, row_weights=None, epsilon=0.1
):
    """Return (weights to predict with, scores of each row before its update, number of support vectors).

    Targets are (n, n_columns). In each round all weights shrink, then those of the row's cells take a gradient step;
    averaged weights are the mean of the weights after each round.
    """
    (n, t), n_columns = cells.shape, targets.shape[1]
    factors = np.ones(n) if row_weights is None else row_weights
    w, squares = np.zeros((starts[-1], n_columns)), np.zeros((starts[-1], n_columns))
    history, scores, n_support = [], [], 0
    for r, eta in enumerate(steps(schedule, rate, n)):
        features = np.zeros(starts[-1])
        features[starts[:-1] + cells[r]] = 1.0
        shown = np.mean(history, axis=0) if average and history else w
        scores.append(features @ shown / t)
        f = features @ w / t
        g = derivative(loss, f, targets[r], epsilon)
        for k in np.flatnonzero(g):
            far = distance(loss, f[k], targets[r, k], epsilon)
            if schedule != "adagrad":
                g[k] *= limited(loss, factors[r], eta * abs(g[k]), far)
            elif factors[r] <= 1:
                g[k] *= factors[r]
            else:
                in_cells = squares[features > 0, k]
                move = np.mean(eta * abs(g[k]) / np.sqrt(in_cells + g[k] ** 2))
                g[k] *= min(factors[r], 10 * max(far, eta) / move)
        n_support += g.any()
        gradient = np.outer(features, g)
        squares = squares + gradient**2
        if schedule == "adagrad":
            gradient = gradient / np.sqrt(np.where(squares > 0, squares, 1.0))
        w = (1 - eta * shrinkage) * w - eta * gradient
        if average:
            history.append(w)
    return (np.mean(history, axis=0) if average else w), np.array(scores), int(n_support)


def solve_svm(cells, starts, y, costs, *, is_squared, intercept, tolerance, max_iter, seed, column=0):
    """Return (weights, intercept, alpha, number of passes) of an SVM by dual coordinate descent; y is -1 or +1."""
    (n, t), draws = cells.shape, Draws(stream_key(seed, 3, column))
    w, b, alpha = np.zeros(starts[-1]), 0.0, np.zeros(n)
    rows = [r for r in range(n) if costs[r] > 0]
    n_active, below, above = len(rows), -np.inf, np.inf
    for n_iter in range(1, max_iter + 1):
        for k in range(n_active):
            other = k + draws.below(n_active - k)
            rows[k], rows[other] = rows[other], rows[k]
        projected, k = [], 0
        while k < n_active:
            r = rows[k]
            diagonal, upper = (0.5 / costs[r], np.inf) if is_squared else (0.0, costs[r])
            places = starts[:-1] + cells[r]
            # Four partial sums, as in the core.
            parts = [sum(w[places[i::4]].tolist()) for i in range(4)]
            f = ((parts[0] + parts[1]) + (parts[2] + parts[3])) * (1.0 / t) + b
            gradient = y[r] * f - 1.0 + diagonal * alpha[r]
            if (alpha[r] == 0 and gradient > above) or (alpha[r] == upper and gradient < below):
                n_active -= 1
                rows[k], rows[n_active] = rows[n_active], rows[k]
                continue
            is_stuck = (alpha[r] == 0 and gradient > 0) or (alpha[r] == upper and gradient < 0)
            projected.append(0.0 if is_stuck else gradient)
            if abs(projected[-1]) > 1e-12:
                before = alpha[r]
                alpha[r] = min(max(before - gradient / (1.0 + intercept + diagonal), 0.0), upper)
                w[places] += (alpha[r] - before) * y[r]
                b += (alpha[r] - before) * y[r] * intercept
            k += 1
        lowest, highest = min(projected, default=np.inf), max(projected, default=-np.inf)
        if highest - lowest > tolerance:
            below, above = lowest if lowest < 0 else -np.inf, highest if highest > 0 else np.inf
        elif n_active == len(rows):
            return w, b, alpha, n_iter
        else:
            n_active, below, above = len(rows), -np.inf, np.inf
    return w, b, alpha, max_iter
