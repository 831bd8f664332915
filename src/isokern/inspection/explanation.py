"""Hold what each column adds to the scores of rows, in the form that the plots of the package ``shap`` take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


@dataclass(frozen=True, eq=False)
class Explanation:
    """SHAP values of rows: what each column adds to a score, from the base value on.

    ``shap.Explanation(e.values, e.base_values, e.data, feature_names=e.feature_names)`` makes an object for the plots
    of ``shap`` from an explanation ``e``.

    Attributes
    ----------
    values : ndarray of shape (n, d), or (n, d, n_outputs) for several outputs
        What a column adds to a score. For sparse rows a CSR array of shape (n, d), or a list of them, one per output.
        It stores the values that are not 0: those of columns in which a tree splits, whether or not the row has them,
        and those of the linear term.
    base_values : ndarray of shape (n,) or (n, n_outputs)
        The score that values start from, the same for all rows. Base value and values of a row sum to its score.
    data : ndarray or CSR of shape (n, d)
        The rows, as they were given if they came as an array or data frame.
    feature_names : list of str
        Names of the columns.
    output_names : list or None
        Classes of a classifier with more than two of them, else None.
    """

    values: Any
    base_values: NDArray[np.float64]
    data: Any
    feature_names: list[str]
    output_names: list[Any] | None = None

    @property
    def n_outputs(self) -> int:
        """Number of outputs."""
        return 1 if self.base_values.ndim == 1 else self.base_values.shape[1]

    def of(self, output: Any) -> Explanation:
        """Return the explanation of one output.

        Parameters
        ----------
        output : label or int
            A class of ``output_names``, or the number of an output if they have no names.

        Returns
        -------
        explanation : Explanation
            With ``values`` of shape (n, d).
        """
        known = list(range(self.n_outputs)) if self.output_names is None else self.output_names
        if output not in known:
            raise ValueError(f"output must be one of {known}; got {output!r}.")
        if self.base_values.ndim == 1:
            return self
        k = known.index(output)
        values = self.values[k] if isinstance(self.values, list) else self.values[:, :, k]
        return Explanation(values, self.base_values[:, k], self.data, self.feature_names)

    @property
    def scores(self) -> NDArray[np.float64]:
        """Scores of the rows: base values plus the sums of values."""
        parts = self.values if isinstance(self.values, list) else [self.values]
        sums = np.stack([np.asarray(part.sum(axis=1)) for part in parts], axis=-1)
        return self.base_values + sums.reshape(self.base_values.shape)

    @property
    def importance(self) -> NDArray[np.float64]:
        """Global importance of the columns, (d,): the mean absolute value over the rows, summed over the outputs."""
        if not isinstance(self.values, np.ndarray):
            parts = self.values if isinstance(self.values, list) else [self.values]
            return np.sum([np.asarray(abs(part).mean(axis=0)).ravel() for part in parts], axis=0)
        return np.abs(self.values).mean(axis=0).reshape(len(self.feature_names), -1).sum(axis=1)

    def __repr__(self) -> str:
        n, d = self.data.shape
        outputs = f", {self.n_outputs} outputs" if self.n_outputs > 1 else ""
        return f"Explanation({n} rows, {d} columns{outputs})"


def stacked(parts: list[Any]) -> Any:
    """Return the values of several outputs as one array, or as a list if they are sparse."""
    if sparse.issparse(parts[0]):
        return parts[0] if len(parts) == 1 else parts
    return parts[0] if len(parts) == 1 else np.stack(parts, axis=2)
