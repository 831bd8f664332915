"""Explain the linear part of scores: what each column adds, beside its mean."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from isokern import _core
from isokern.forest import LinearSum
from isokern.learners.linear_term import LinearTerm
from isokern.rows import as_scipy

Table = NDArray[np.float64]


class LinearPart:
    """The linear part of scores as a sum over columns; a categorical column adds the weight of its category."""

    def __init__(self, term: LinearTerm, linear: LinearSum) -> None:
        self._term, self._weights = term, linear.weights.astype(np.float64)
        d, n_buckets = term.n_columns, linear.n_buckets
        columns = np.concatenate([np.arange(d), np.repeat(term.categorical, n_buckets)])
        ones = np.ones(len(columns))
        self._columns = sparse.csr_array((ones, columns, np.arange(len(columns) + 1)), shape=(len(columns), d))
        self.intercept: Table = float(linear.constant) * self._weights[-1]

    def terms(self, table: Any) -> list[Any]:
        """Return what each column of rows adds to each score: (n, d) for each score, CSR for sparse rows."""
        rows = as_scipy(self._term.rows(table)).astype(np.float64)
        if not sparse.issparse(rows):
            terms = [rows * w for w in self._weights[:-1].T]
        else:
            terms = [(rows * w[None]).tocsr() @ self._columns for w in self._weights[:-1].T]
        if sparse.issparse(table):
            return [sparse.csr_array(part) for part in terms]
        return [part.toarray() if sparse.issparse(part) else part for part in terms]

    def typical_terms(self, categories: dict[int, Any]) -> Table:
        """Return the mean of the terms over the rows that the map was drawn from, (n_scores, d).

        It is 0 for numbers: they are centred or, in sparse rows, compared with 0. For categories it comes from their
        counts.
        """
        means = np.zeros((self._weights.shape[1], self._term.n_columns))
        for j in self._term.categorical:
            known = categories.get(int(j))
            if known is not None and known.counts.sum() > 0:
                rows = np.full((len(known.names), self._term.n_columns), np.nan)
                rows[:, j] = _core.category_codes(list(known.names), str)
                means[:, j] = [np.average(part[:, j], weights=known.counts) for part in self.terms(rows)]
        return means
