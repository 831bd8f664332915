"""A slow reference reader of LIBSVM text, written from the definition of the format."""

from __future__ import annotations

import math
import re

import numpy as np

NUMBER = rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
LARGEST_INDEX = 2**31 - 1


class WrongLineError(Exception):
    """Raised with the number of the first line that is not a row, a comment or blank."""


def read(text, *, n_features=None, zero_based="auto"):
    """Return (width, labels, [[(column, value), ...], ...])."""
    first = 1 if zero_based is False else 0
    last = (n_features or LARGEST_INDEX) - (zero_based is True)
    labels, rows = [], []
    for i, line in enumerate(text.split(b"\n")):
        tokens = line.partition(b"#")[0].split()
        try:
            if tokens:
                rows.append(list(features(tokens[1:], first, last)))
                labels.append(math.nan if tokens[0] in {b"?", b"nan", b"NaN"} else number(tokens[0]))
        except ValueError as error:
            raise WrongLineError(i + 1) from error
    indices = [index for row in rows for index, _ in row]
    if zero_based == "auto":
        zero_based = 0 in indices
        if zero_based and max(indices) >= (n_features or LARGEST_INDEX):
            return read(text, n_features=n_features, zero_based=True)
    width = n_features or max([1, *(index + zero_based for index in indices)])
    return width, labels, [[(index - (not zero_based), value) for index, value in row] for row in rows]


def features(tokens, first, last):
    before = first - 1
    for token in tokens:
        if token.startswith(b"qid:"):
            continue
        match = re.fullmatch(rb"([0-9]+):(.*)", token, re.DOTALL)
        if not match or not before < int(match[1]) <= last:
            raise ValueError
        before = int(match[1])
        yield before, number(match[2])


def number(token):
    if not re.fullmatch(NUMBER, token) or math.isinf(float(token)):
        raise ValueError
    return float(token)


def as_csr(width, labels, rows):
    """Return the result of ``read`` in the form of ``parts``."""
    entries = [entry for row in rows for entry in row]
    columns, values = np.array([c for c, _ in entries], np.int64), np.array([v for _, v in entries], np.float64)
    return (len(rows), width), columns, values, np.cumsum([0, *map(len, rows)]), np.array(labels, np.float64)


def parts(X, y):
    """Return the shape and arrays of a CSR table and its labels."""
    return X.shape, X.indices, X.data, X.indptr, y


def same(ours, theirs):
    """Return whether two results of ``parts`` are equal bit for bit, including NaN and the sign of zero."""
    (shape, *arrays), (other_shape, *others) = ours, theirs
    bits = [[a.view(np.int64) if a.dtype == np.float64 else a for a in part] for part in (arrays, others)]
    return shape == other_shape and all(map(np.array_equal, *bits))
