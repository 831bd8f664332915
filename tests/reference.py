"""Reimplement the compiled core in slow and obvious NumPy, from the definitions; the core must equal it."""

from __future__ import annotations

import copy
from itertools import pairwise
from typing import NamedTuple

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


def grow_tree(points, key, max_depth=None, depth=0, columns=None, names=None, categorical=(), column_weights=None):
    """Return a tree of nested (column, split, missing_right, left, right); a leaf is the index of its first point."""
    columns = nonzero_columns(points) if columns is None else columns
    names = np.arange(len(points)) if names is None else names
    draws = Draws(key)
    if len(points) == 1 or (max_depth is not None and depth >= max_depth):
        return int(names[0])
    while columns:
        k = draws.below(len(columns))
        weight = 1.0 if column_weights is None else column_weights[columns[k]]
        if 0.0 < weight < 1.0 and draws.unit() > weight:
            continue
        values = points[:, columns[k]].astype(float)
        chosen = choose_split(values, columns[k] in categorical, draws) if weight > 0.0 else None
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
        grow_tree(
            points[side],
            mix(key ^ child_key),
            max_depth,
            depth + 1,
            child_columns,
            names[side],
            categorical,
            column_weights,
        )
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


def tree_cells(X, D, n_partitionings, n_cells, seed, max_depth=None, categorical=(), column_weights=None):
    """Return the cells of the rows of X in isolation trees grown on samples of D."""
    samples = draw_samples(len(D), n_partitionings, n_cells, seed)
    how = {"categorical": categorical, "column_weights": column_weights}
    trees = [grow_tree(D[rows], stream_key(seed, 2, i), max_depth, **how) for i, rows in enumerate(samples)]
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


def grown_cells(arrays, X, D, samples, seed, max_depth=None, categorical=()):
    """Return, for each tree and row of X, its former leaf (as a node) and its leaf among the samples of D inside it."""
    found = []
    for i, (begin, end) in enumerate(pairwise(arrays["starts"])):
        tree = {name: values[begin:end] for name, values in arrays.items() if name != "starts"}
        key, points = stream_key(seed, 2, i), D[samples[i]]
        leaves = np.array([tree_path(tree, point, categorical)[-1] for point in points])
        subtrees = {}
        for path in (tree_path(tree, point, categorical) for point in points):
            leaf = path[-1]
            own = key if leaf == 0 else mix((key + leaf * STEP) & MASK)
            names = np.flatnonzero(leaves == leaf)
            subtrees[leaf] = grow_tree(
                points[names], own, max_depth, len(path) - 1, names=names, categorical=categorical
            )
        paths = [tree_path(tree, row, categorical)[-1] for row in X]
        found.append(
            [
                (leaf, descend(subtrees[leaf], row, categorical) if leaf in subtrees else -1)
                for leaf, row in zip(paths, X, strict=True)
            ]
        )
    return found


def split_gains(arrays, X, targets, n_columns, categorical=()):
    """Return by column how much its splits reduce the targets' sum of squares beyond chance, and the rows at them."""
    gains, visits = np.zeros(n_columns), np.zeros(n_columns)

    def spread(rows):
        return ((targets[rows] - targets[rows].mean(axis=0)) ** 2).sum()

    for begin, end in pairwise(arrays["starts"]):
        tree = {name: values[begin:end] for name, values in arrays.items() if name != "starts"}
        paths = [tree_path(tree, row, categorical) for row in X]
        for node in np.flatnonzero(tree["left"] >= 0):
            here, left, right = (
                np.array([k in path for path in paths]) for k in (node, tree["left"][node], tree["left"][node] + 1)
            )
            if left.any() and right.any():
                chance = spread(here) / (here.sum() - 1)
                gains[tree["column"][node]] += spread(here) - spread(left) - spread(right) - chance
                visits[tree["column"][node]] += here.sum()
    return gains, visits


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


def derivative(loss, f, target, epsilon=0.1, quantiles=0.5):
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
            "quantile": np.where(error < 0, -np.asarray(quantiles), (1.0 - np.asarray(quantiles)) * (error > 0)),
        }[loss]


def regression_error(loss, f, target, epsilon=0.1, quantiles=0.5):
    """Return the error of predictions: the whole square, or the loss."""
    error = f - target
    size, beyond = np.abs(error), np.abs(error) > epsilon
    return {
        "squared": error**2,
        "huber": np.where(beyond, epsilon * size - epsilon**2 / 2, error**2 / 2),
        "epsilon_insensitive": np.where(beyond, size - epsilon, 0.0),
        "quantile": np.maximum(np.asarray(quantiles) * -error, (1.0 - np.asarray(quantiles)) * error),
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
    cells,
    starts,
    targets,
    *,
    loss,
    schedule,
    rate,
    shrinkage=0.0,
    average=False,
    row_weights=None,
    epsilon=0.1,
    units=None,
    quantiles=0.5,
):
    """Return (weights to predict with, scores of each row before its update, number of support vectors).

    Targets are (n, n_columns). In each round all weights shrink, then those of the row's cells take a gradient step;
    averaged weights are the mean of the weights after each round. Losses are those of scores and targets divided by
    ``units``, (n, n_columns), and steps are multiplied by them.
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
        unit = np.ones(n_columns) if units is None else units[r]
        f, y = features @ w / t / unit, targets[r] / unit
        g = derivative(loss, f, y, epsilon, quantiles)
        for k in np.flatnonzero(g):
            far = distance(loss, f[k], y[k], epsilon)
            if schedule != "adagrad":
                g[k] *= limited(loss, factors[r], eta * abs(g[k]), far)
            elif factors[r] <= 1:
                g[k] *= factors[r]
            else:
                in_cells = squares[features > 0, k]
                move = np.mean(eta * abs(g[k]) / np.sqrt(in_cells + g[k] ** 2))
                g[k] *= min(factors[r], 10 * max(far, eta) / move) if far > 0 else 1.0
        n_support += g.any()
        gradient = np.outer(features, g)
        squares = squares + gradient**2
        if schedule == "adagrad":
            gradient = gradient / np.sqrt(np.where(squares > 0, squares, 1.0))
        w = (1 - eta * shrinkage) * w - eta * gradient * unit
        if average:
            history.append(w)
    return (np.mean(history, axis=0) if average else w), np.array(scores), int(n_support)


class ScaleTwin:
    """Weights of the cells of several scales and of a linear term; all operations as in the core, bit by bit.

    ``places`` are the rows of the table of weights that a row's cells have, (n, t, n_scales), and ``linear`` the
    columns and values of each row's features, the constant among them; either may be None.
    """

    def __init__(self, places, shares, n_values, linear, n_linear, n_columns, *, is_adagrad):
        self.places, self.shares, self.linear, self.is_adagrad = places, shares, linear, is_adagrad
        self.w, self.squares = np.zeros((2, n_values, n_columns), dtype=np.float32)
        self.v, self.linear_squares = np.zeros((2, n_linear, n_columns), dtype=np.float32)

    def score(self, r, k):
        total = 0.0
        if self.places is not None:
            paths = [sum(path, 0.0) for path in self.w[self.places[r], k].astype(float).tolist()]
            total += in_four_parts(paths) / len(paths)
        if self.linear is not None:
            columns, z = self.linear[r]
            total += in_four_parts((z.astype(float) * self.v[columns, k]).tolist())
        return total

    def move(self, r, k, g):
        """Return how far a step of rate 1 moves the score."""
        total = 0.0
        if self.places is not None:
            a = np.tile(self.shares, self.places.shape[1]).astype(float)
            root = np.maximum(np.sqrt(self.squares[self.places[r].ravel(), k].astype(float) + g * g), abs(g))
            moves = a * abs(g) / root if self.is_adagrad else a * a * abs(g)
            total += sum(moves.tolist(), 0.0) / self.places.shape[1]
        if self.linear is not None:
            columns, z = self.linear[r]
            own = g * z.astype(float)
            root = np.sqrt(self.linear_squares[columns, k].astype(float) + own**2) if self.is_adagrad else 1.0
            total += sum((abs(own * z) / np.where(root > 0, root, 1.0)).tolist(), 0.0)
        return total

    def step_cells(self, r, k, g, eta):
        at, a, step = self.places[r].ravel(), np.tile(self.shares, self.places.shape[1]), np.float32(-eta * g)
        if self.is_adagrad:
            self.squares[at, k] += np.float32(g * g)
            self.w[at, k] += step * a / np.maximum(np.sqrt(self.squares[at, k]), np.float32(max(abs(g), 1e-30)))
        else:
            self.w[at, k] += step * a * a

    def step_linear(self, r, k, g, eta, reach):
        columns, z = self.linear[r]
        moves = np.float32(g) * z
        if self.is_adagrad:
            self.linear_squares[columns, k] += moves * moves
            moves = moves / np.maximum(np.sqrt(self.linear_squares[columns, k]), np.float32(1e-18))
        moved = eta * abs(in_four_parts((moves.astype(float) * z).tolist()))
        self.v[columns, k] += np.float32(-eta * reach / moved if moved > reach else -eta) * moves


def learn_scales(
    places,
    shares,
    n_values,
    linear,
    n_linear,
    targets,
    *,
    loss,
    schedule,
    rate,
    row_weights=None,
    counted_from=None,
    units=None,
    first_square=0.0,
    epsilon=0.1,
    quantiles=0.5,
    renewals=(),
):
    """Return (the twin after learning, scores of each row before its step, number of support vectors).

    Targets are (n, n_columns), for classes +1 and -1. Rows count as support vectors of column k from
    ``counted_from[k]`` on. Losses are those of scores and targets divided by ``units``; steps are multiplied by them.
    """
    n, n_columns = targets.shape
    first = np.zeros(n_columns) if counted_from is None else np.asarray(counted_from)
    is_adagrad = schedule == "adagrad"
    model = ScaleTwin(places, shares, n_values, linear, n_linear, n_columns, is_adagrad=is_adagrad)
    model.squares += np.float32(first_square)
    how = {"loss": loss, "schedule": schedule, "rate": rate, "epsilon": epsilon, "quantiles": quantiles}
    scores, gradients = np.zeros(targets.shape), np.zeros(targets.shape)
    after = {renewal.row: renewal for renewal in renewals}
    for r in range(n):
        scores[r], gradients[r] = _learn_row(model, r, targets, row_weights, units, **how)
        if r + 1 in after:
            _renew(model, after[r + 1], first_square, **how)
    n_support = sum((gradients[r, first <= r] != 0).any() for r in range(n))
    return model, scores, int(n_support)


class RenewedTwin(NamedTuple):
    """A tree that is renewed after some rows: its part of the table, and past rows with their places there."""

    row: int
    part: slice
    places: np.ndarray
    targets: np.ndarray
    row_weights: np.ndarray | None = None
    units: np.ndarray | None = None


def _renew(model, renewal, first_square, **how):
    """Forget the weights of a tree, and learn them from past rows as if the tree were a model of its own."""
    model.w[renewal.part], model.squares[renewal.part] = 0, first_square
    tree = copy.copy(model)
    tree.places, tree.linear, tree.shares = renewal.places, None, np.ones(1, dtype=np.float32)
    for r in range(len(renewal.targets)):
        _learn_row(tree, r, renewal.targets, renewal.row_weights, renewal.units, **how)


def _learn_row(model, r, targets, row_weights, units, *, loss, schedule, rate, epsilon, quantiles):
    """Learn a row, and return its scores before the step and the gradients."""
    n, n_columns = targets.shape
    units = np.ones(targets.shape) if units is None else units
    factor, eta = _or_ones(row_weights, n)[r], list(steps(schedule, rate, n))[r]
    scores = np.array([model.score(r, k) for k in range(n_columns)])
    f, y = scores / units[r], targets[r] / units[r]
    gradients = derivative(loss, f, y, epsilon, quantiles) * (factor > 0)
    for k in np.flatnonzero(gradients):
        g, weight, unit = float(gradients[k]), factor, float(units[r, k])
        far = max(0.0, distance(loss, f[k], y[k], epsilon))
        if model.is_adagrad and weight > 1:
            weight = min(weight, 10 * max(far, eta) / (eta * model.move(r, k, g))) if far > 0 else 1.0
        elif not model.is_adagrad:
            weight = limited(loss, weight, eta * model.move(r, k, g), far)
        g = min(max(g * weight, -1e15), 1e15)  # so that sums of squares stay finite as floats
        if model.places is not None:
            model.step_cells(r, k, g, eta * unit)
        if model.linear is not None:
            model.step_linear(r, k, g, eta * unit, far * unit + eta * unit)
    return scores, gradients


def in_four_parts(values):
    """Return the sum of numbers in four partial sums, as the core adds."""
    parts = [sum(values[i::4], 0.0) for i in range(4)]
    return (parts[0] + parts[1]) + (parts[2] + parts[3])


def standardised(table, is_categorical=None):
    """Return the features of a dense table's linear term, without those of categories, and the constant."""
    numbers = np.array(table, dtype=float)
    if is_categorical is not None:
        numbers[:, is_categorical] = np.nan
    n_categorical = 0 if is_categorical is None else sum(is_categorical)
    present = ~np.isnan(numbers)
    typical = present & np.stack([is_typical(column) for column in numbers.T], axis=1)
    count = np.maximum(1, typical.sum(axis=0))
    mean = np.where(typical, numbers, 0).sum(axis=0) / count
    deviation = np.sqrt((np.where(typical, numbers - mean, 0) ** 2).sum(axis=0) / count)
    varies = deviation > 1e-12 * abs(mean)
    constant = 1 / np.sqrt(varies.sum() + n_categorical + 1)
    features = np.where(present & varies, (numbers - mean) / np.where(varies, deviation, 1), 0)
    return np.clip(features, -30, 30) * constant, constant


def is_typical(column):
    """Return which of up to 512 values are within 100 typical distances of their median."""
    values = sorted(column[~np.isnan(column)])
    if not values:
        return np.zeros(len(column), dtype=bool)
    distances = np.abs(column - values[len(values) // 2])
    different = sorted(distances[distances > 0])
    return distances <= (100 * different[len(different) // 2] if different else 0)


def faded_errors(scores, numbers, n_classes, fade, row_weights=None):
    """Return the weights of the rows that are missed, faded by ``fade`` a row.

    The class with the highest score is predicted, the first of equal ones, among those seen up to the row itself.
    """
    error, seen = 0.0, set()
    for row, number, weight in zip(scores, numbers, _or_ones(row_weights, len(numbers)), strict=True):
        seen.add(int(number))
        by_class = row[:n_classes] if n_classes > 2 else [0.0, row[0]]
        error = error * fade + weight * (max(sorted(seen), key=by_class.__getitem__) != number)
    return error


def faded_total(n, fade, row_weights=None):
    """Return the weights of all rows, faded by ``fade`` a row."""
    return _or_ones(row_weights, n) @ fade ** np.arange(n - 1.0, -1.0, -1.0)


def _or_ones(row_weights, n):
    return np.ones(n) if row_weights is None else row_weights


def faded_losses(scores, targets, units, fade, row_weights=None, **loss):
    """Return the weighted errors of rows, mean over the columns, faded by ``fade`` a row."""
    total, weights = 0.0, _or_ones(row_weights, len(targets))
    for f, y, weight in zip(scores / units, targets / units, weights, strict=True):
        total = total * fade + weight * regression_error(f=f, target=y, **loss).mean()
    return total


def standardised_targets(y, weights, first=None):
    """Return (targets less the mean of those before, deviations up to each row, whether targets are beyond limits).

    Targets are those of one output; ``first`` is a first batch of them, which gives limits.
    """
    residuals, units, is_beyond = np.zeros(len(y)), np.ones(len(y)), np.zeros(len(y), dtype=bool)
    centre, spread = (0.0, 0.0) if first is None else centre_and_spread(first)
    counted, recent, lead = [], [], 0  # targets with their weights
    for r, (target, weight) in enumerate(zip(y, weights, strict=True)):
        reach = _reach(counted, centre, spread)
        is_beyond[r] = abs(target - centre) > reach
        value = np.clip(target, centre - reach, centre + reach)
        if counted:
            residuals[r] = value - _mean(counted)
        if weight > 0:
            if not counted and spread == 0:
                centre = target
            largest = np.mean([w for _, w in counted]) if counted and is_beyond[r] else np.inf
            counted.append((value, min(weight, largest)))
            if len(counted) == 16 and spread == 0:
                spread = _rms(counted, _mean(counted))
            lead = max(0, lead + (1 if is_beyond[r] else -1))
            recent = [*recent, (target, weight)] if lead > 0 else []
            if lead >= 16:
                spread = _rms(recent, _mean(recent)) or _rms(counted, centre)
                counted, centre, recent, lead = recent, _mean(recent), [], 0
        units[r] = _rms(counted, _mean(counted)) if counted else 0.0
        if units[r] == 0:
            units[r] = abs(residuals[r]) or 1.0
    return residuals, units, is_beyond


def centre_and_spread(targets):
    """Return the median of targets, and the largest distance to it of those that are left without the farthest few."""
    centre, n = np.median(targets), len(targets)
    distances = sorted(np.abs(targets - centre))
    n_few = n // 2 if n <= 256 else max(32768 // n, n // 1000)
    return centre, distances[: n - n_few][-1]


def _mean(counted):
    targets, weights = zip(*counted, strict=True)
    return np.average(targets, weights=weights)


def _rms(counted, centre):
    targets, weights = zip(*counted, strict=True)
    return np.sqrt(np.average((np.array(targets) - centre) ** 2, weights=weights))


def _reach(counted, centre, spread):
    """Return how far from the centre the limits are."""
    n, n_first = len(counted), 1000 if spread > 0 else 0
    if spread == 0 and (n < 16 or len({target for target, _ in counted}) == 1):
        return np.inf
    square = n * (20 * _rms(counted, centre)) ** 2 if counted else 0.0
    return np.sqrt((square + n_first * (10 * spread) ** 2) / (n + n_first))


def solve_svm(
    cells,
    starts,
    y,
    costs,
    *,
    is_squared,
    intercept,
    tolerance,
    max_iter,
    seed,
    column=0,
    shares=(1.0,),
    linear=None,
    which=None,
    start=None,
    gain=0.0,
    dtype=np.float64,
):
    """Return (weights, intercept, alpha, number of passes) of an SVM by dual coordinate descent; y is -1 or +1.

    ``shares`` are those of the scales; weights of ``linear`` columns follow those of the cells. ``which`` are the rows
    that take part, and ``start`` is (weights, intercept, alpha) of another solution. ``gain`` of the objective stops.
    Weights have a ``dtype``, to which steps are rounded before they are added; all else is in double precision.
    """
    (n, width), draws = cells.shape, Draws(stream_key(seed, 3, column))
    shares = np.asarray(shares, dtype=np.float32).astype(float)
    t, linear = width // len(shares), np.zeros((n, 0)) if linear is None else linear.astype(float)
    start = (np.zeros(starts[-1] + linear.shape[1]), 0.0, np.zeros(n)) if start is None else start
    w, b, alpha = start[0].astype(dtype), start[1], start[2].copy()
    rows = [r for r in (range(n) if which is None else which) if costs[r] > 0]
    squares = np.tile(shares**2, t)
    sizes = [sum([*(shares**2 if t else []), *linear[r] ** 2]) for r in range(n)]  # K(x, x)
    n_active, below, above, total = len(rows), -np.inf, np.inf, sum(alpha[rows].tolist())
    for n_iter in range(1, max_iter + 1):
        for k in range(n_active):
            other = k + draws.below(n_active - k)
            rows[k], rows[other] = rows[other], rows[k]
        projected, k, gained = [], 0, 0.0
        while k < n_active:
            r = rows[k]
            diagonal, upper = (0.5 / costs[r], np.inf) if is_squared else (0.0, costs[r])
            places = starts[:-1] + cells[r]
            paths = [sum(path) for path in w[places].reshape(t, len(shares)).tolist()]
            f = in_four_parts(paths) * (1.0 / t if t else 0.0) + in_four_parts(linear[r] * w[starts[-1] :]) + b
            gradient = y[r] * f - 1.0 + diagonal * alpha[r]
            if (alpha[r] == 0 and gradient > above) or (alpha[r] == upper and gradient < below):
                n_active -= 1
                rows[k], rows[n_active] = rows[n_active], rows[k]
                continue
            is_stuck = (alpha[r] == 0 and gradient > 0) or (alpha[r] == upper and gradient < 0)
            projected.append(0.0 if is_stuck else gradient)
            if abs(projected[-1]) > 1e-12:
                before, curvature = alpha[r], sizes[r] + intercept + diagonal
                alpha[r] = min(max(before - gradient / curvature, 0.0), upper)
                change = alpha[r] - before
                total += change
                gained -= change * (gradient + 0.5 * curvature * change)
                w[places] += (change * y[r] * squares).astype(dtype)
                w[starts[-1] :] += (change * y[r] * linear[r]).astype(dtype)
                b += change * y[r] * intercept
            k += 1
        if gained < gain * 0.5 * total:
            return w, b, alpha, n_iter
        lowest, highest = min(projected, default=np.inf), max(projected, default=-np.inf)
        if highest - lowest > tolerance:
            below, above = lowest if lowest < 0 else -np.inf, highest if highest > 0 else np.inf
        elif n_active == len(rows):
            return w, b, alpha, n_iter
        else:
            n_active, below, above = len(rows), -np.inf, np.inf
    return w, b, alpha, max_iter
