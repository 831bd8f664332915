"""Make the streams of benchmarks/streams.py: files in the order of time, and generators of the literature.

The environment of CapyMOA has no isokern, so packages besides NumPy are imported where they are used.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any, NamedTuple

import numpy as np

N_PARTS = 4  # concepts of SEA, LED and Agrawal, of equal length
SEA_THRESHOLDS = (8.0, 9.0, 7.0, 9.5)
LED_SWAPPED = (0, 3, 5, 7)  # relevant columns that change places with irrelevant ones, in each part
# Segments of a seven-segment display that light up for the digits 0 to 9.
LED_DIGITS = (
    "1110111",
    "0010010",
    "1011101",
    "1011011",
    "0111010",
    "1101011",
    "1101111",
    "1010010",
    "1111111",
    "1111011",
)


class Stream(NamedTuple):
    """Rows of numbers (n, d), labels as codes (n,), and the levels of columns whose numbers are codes of categories."""

    X: Any
    y: Any
    levels: dict[int, list[str]]

    @property
    def n_classes(self):
        return int(self.y.max()) + 1

    def first(self, n_rows):
        return Stream(self.X[:n_rows], self.y[:n_rows], self.levels)

    def save(self, path):
        np.savez(path, X=self.X, y=self.y, levels=json.dumps(self.levels))

    @classmethod
    def load(cls, path):
        with np.load(path) as parts:
            levels = {int(column): names for column, names in json.loads(str(parts["levels"])).items()}
            return cls(parts["X"], parts["y"], levels)


# -- files


def from_file(n_rows, rng, name, label, drop=()):
    """Read the first rows of a CSV file; text becomes codes."""
    import datasets
    import pandas as pd

    table = pd.read_csv(datasets.FOLDER.parent / "streams" / f"{name}.csv.xz", nrows=n_rows).drop(columns=list(drop))
    y, levels = pd.factorize(table.pop(label), sort=True)[0], {}
    for column, title in enumerate(table):
        if not pd.api.types.is_numeric_dtype(table[title]):
            table[title], names = pd.factorize(table[title], sort=True)
            levels[column] = names.tolist()
    return Stream(table.to_numpy(dtype=np.float64), y, levels)


def covertype(n_rows, rng):
    import datasets

    X, y = datasets.load("covertype")[:2]
    chosen = rng.permutation(len(y))[:n_rows]
    return Stream(np.ascontiguousarray(X[chosen]), np.unique(y[chosen], return_inverse=True)[1], {})


# -- generators


def parts_of(n_rows):
    """Return the number of the part, 0 to 3, of each row."""
    return np.arange(n_rows) * N_PARTS // n_rows


def with_noise(y, share, rng):
    """Invert a share of 0/1 labels."""
    return np.where(rng.random(len(y)) < share, 1 - y, y)


def sea(n_rows, rng):
    """Compare the sum of two of three columns with a threshold (Street and Kim, 2001)."""
    X = rng.uniform(0, 10, (n_rows, 3))
    y = (X[:, 0] + X[:, 1] <= np.array(SEA_THRESHOLDS)[parts_of(n_rows)]).astype(int)
    return Stream(X, with_noise(y, 0.1, rng), {})


def hyperplane(n_rows, rng, n_columns=10, n_classes=2):
    """Cut the unit cube by a hyperplane that turns (Hulten, Spencer and Domingos, 2001).

    More classes are slices of equal probability that are parallel to it.
    """
    from scipy.special import ndtr

    X = rng.random((n_rows, n_columns))
    n_drifting = n_columns // 2
    turns = np.where(rng.random((n_rows, n_drifting)) < 0.1, -1, 1)
    weights = np.repeat(rng.random((1, n_columns)), n_rows, axis=0)
    weights[:, :n_drifting] += 0.001 * np.cumsum(np.cumprod(turns, axis=0), axis=0)
    distance = np.sum(weights * (X - 0.5), axis=1) / np.sqrt(np.sum(weights**2, axis=1) / 12)
    y = np.minimum(n_classes * ndtr(distance), n_classes - 1).astype(int)
    is_noise = rng.random(n_rows) < 0.05
    return Stream(X, np.where(is_noise, (y + 1) % n_classes, y), {})


def led(n_rows, rng):
    """Show digits on seven noisy segments, among 24 columns (Breiman et al., 1984)."""
    y = rng.integers(10, size=n_rows)
    segments = np.array([list(map(int, digit)) for digit in LED_DIGITS])[y]
    X = rng.integers(2, size=(n_rows, 24))
    X[:, :7] = segments ^ (rng.random(segments.shape) < 0.1)
    parts = parts_of(n_rows)
    for part, n_swapped in enumerate(LED_SWAPPED):
        order, others = np.arange(24), 7 + rng.permutation(17)[:n_swapped]
        swapped = rng.permutation(7)[:n_swapped]
        order[swapped], order[others] = others, swapped
        X[parts == part] = X[parts == part][:, order]
    return Stream(X.astype(np.float64), y, {})


def agrawal(n_rows, rng):
    """Draw people who ask for a loan, by functions 1, 4, 7 and 3 of Agrawal, Imielinski and Swami (1993)."""
    salary, loan = rng.uniform(20_000, 150_000, n_rows), rng.uniform(0, 500_000, n_rows)
    commission = np.where(salary >= 75_000, 0, rng.uniform(10_000, 75_000, n_rows))
    age, education, car, zipcode, years = (
        rng.integers(low, high + 1, n_rows) for low, high in ((20, 80), (0, 4), (1, 20), (0, 8), (1, 30))
    )
    house = (9 - zipcode) * 100_000 * rng.uniform(0.5, 1.5, n_rows)
    by_part = (
        (age < 40) | (age >= 60),
        salary_suits(age, education, salary),
        2 / 3 * (salary + commission) - loan / 5 - 20_000 > 0,
        education_suits(age, education),
    )
    is_first = np.choose(parts_of(n_rows), by_part)
    X = np.stack([salary, commission, age, education, car, zipcode, house, years, loan], axis=1)
    # The labels are those of the values before they are perturbed, by at most 5 % of a column's range.
    for column, width in (
        (0, 130_000),
        (1, 65_000 * (commission > 0)),
        (2, 60),
        (6, 100_000 * (9 - zipcode)),
        (7, 29),
        (8, 500_000),
    ):
        X[:, column] += 0.05 * width * rng.uniform(-1, 1, n_rows)
    return Stream(X, 1 - is_first.astype(int), {})


def education_suits(age, education):
    """Return function 3 of Agrawal et al.: the levels of education that count differ by age."""
    lowest = np.select([age < 40, age < 60], [0, 1], 2)
    highest = np.select([age < 40, age < 60], [1, 3], 4)
    return (lowest <= education) & (education <= highest)


def salary_suits(age, education, salary):
    """Return function 4 of Agrawal et al.: the salaries that count differ by age and education."""
    suits = education_suits(age, education)
    lowest = np.select(
        [age < 40, age < 60],
        [np.where(suits, 25_000, 50_000), np.where(suits, 50_000, 75_000)],
        np.where(suits, 50_000, 25_000),
    )
    return (lowest <= salary) & (salary <= lowest + 50_000)


def random_rbf(n_rows, rng, speed=0.0, n_columns=10, n_classes=4, n_centres=50):
    """Draw rows around centres of random class, weight and width (MOA's RandomRBFGenerator).

    Each centre moves by ``speed`` per row in a direction of its own, and is reflected by the sides of the unit cube.
    """
    centres, directions = rng.random((n_centres, n_columns)), unit(rng.normal(size=(n_centres, n_columns)))
    classes, widths, weights = rng.integers(n_classes, size=n_centres), rng.random(n_centres), rng.random(n_centres)
    chosen = rng.choice(n_centres, size=n_rows, p=weights / weights.sum())
    moved = centres[chosen] + speed * np.arange(n_rows)[:, None] * directions[chosen]
    reflected = 1 - np.abs(1 - moved % 2)
    lengths = (widths[chosen] * rng.normal(size=n_rows))[:, None]
    return Stream(reflected + lengths * unit(rng.uniform(-1, 1, (n_rows, n_columns))), classes[chosen], {})


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


# -- all streams


class Source(NamedTuple):
    """How to make a stream from a number of rows and a generator, and what the page says of it."""

    make: Any
    text: str


STREAMS = {
    "gas_sensor": Source(
        partial(from_file, name="gas_sensor", label="gas", drop=["concentration"]),
        "file; sensors that age; without `concentration`",
    ),
    "kddcup99": Source(
        partial(from_file, name="kddcup99_10", label="label"), "file; abrupt changes; three categorical columns"
    ),
    "moving squares": Source(partial(from_file, name="moving_squares", label="label"), "file; steady drift"),
    "chessboard": Source(partial(from_file, name="chessboard", label="label"), "file; fields that come and go"),
    "covertype, shuffled": Source(covertype, "file, class 2 against the rest, in random order; stationary"),
    "SEA": Source(sea, "thresholds 8, 9, 7 and 9.5, each for a quarter of the rows; 10 % label noise"),
    "hyperplane": Source(
        hyperplane,
        "five of ten weights drift by 0.001 a row, each turns back with probability 0.1; 5 % label noise",
    ),
    "LED": Source(
        led,
        "7 segments, each inverted with probability 0.1, and 17 irrelevant columns; "
        "0, 3, 5 and 7 segments change places with irrelevant columns, each for a quarter of the rows",
    ),
    "Agrawal": Source(
        agrawal, "functions 1, 4, 7 and 3, each for a quarter of the rows; values perturbed by at most 5 % of the range"
    ),
    "RBF": Source(random_rbf, "50 centres; stationary"),
    "RBF, drifting": Source(partial(random_rbf, speed=0.001), "50 centres that all move by 0.001 a row"),
    "50 columns, two classes": Source(partial(hyperplane, n_columns=50), "hyperplane, 25 of 50 weights drift"),
    "50 columns, eight classes": Source(
        partial(hyperplane, n_columns=50, n_classes=8), "hyperplane, eight parallel slices"
    ),
}
STATIONARY = ("covertype, shuffled", "RBF")
THROUGHPUT = ("50 columns, two classes", "50 columns, eight classes")  # for speed alone, not for ranks


def make(name, n_rows, seed=0):
    """Return the first rows of a stream."""
    return STREAMS[name].make(n_rows, np.random.default_rng(seed))
