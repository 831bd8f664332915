"""Read the input files of commands: find the format and the columns, then read all rows or blocks of them."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from scipy import sparse

from isokern import data
from isokern.checks import one_of
from isokern.cli._options import panel
from isokern.data.columns import TableOptions
from isokern.data.layouts import Layout
from isokern.data.lines import is_stream
from isokern.data.tables import feature_names
from isokern.evaluation.labels import checked_block

KINDS = ("libsvm", "csv", "parquet")
_SUFFIXES = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}  # all other files are LIBSVM text
_COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")
_option = panel("Input file")

File = Annotated[str, typer.Argument(help="LIBSVM text, CSV or Parquet; - is standard input.")]


class Input(NamedTuple):
    """An input file, and the options that say how to read it."""

    path: str = ""
    format: Annotated[str | None, _option(help="libsvm, csv or parquet. Default: by the file name.")] = None
    label: Annotated[str | None, _option(help="Label column (CSV, Parquet).")] = None
    columns: Annotated[
        str | None, _option(help="Feature columns, as a,b,c (CSV, Parquet). Default: all but the label.")
    ] = None
    features: Annotated[int | None, _option(min=1, help="Number of features (LIBSVM). Default: largest index.")] = None
    zero_based: Annotated[
        bool | None, _option("--zero-based/--one-based", help="First feature index (LIBSVM). Default: detected.")
    ] = None
    dense: Annotated[
        bool | None, _option("--dense/--sparse", help="How to store rows. Default: sparse for LIBSVM, else dense.")
    ] = None
    model_columns: list[str] | None = None  # the columns that a model was fitted to

    @property
    def kind(self) -> str:
        """The format: the one asked for, else that of the file name."""
        if self.format is not None:
            if self.format not in KINDS:
                raise ValueError(f"--format must be {one_of(KINDS)}; got {self.format!r}.")
            return self.format
        suffixes = [suffix for suffix in Path(self.path.lower()).suffixes if suffix not in _COMPRESSIONS]
        return _SUFFIXES.get(suffixes[-1] if suffixes else "", "libsvm")

    @property
    def is_dense(self) -> bool:
        """Whether rows are dense arrays."""
        return self.kind != "libsvm" if self.dense is None else self.dense

    @property
    def chosen_columns(self) -> list[str] | None:
        """The columns asked for, else those of the model, else None for all."""
        return self.model_columns if self.columns is None else listed(self.columns)

    def check_labelled(self) -> None:
        """Raise if the label column is unknown."""
        if self.kind != "libsvm" and self.label is None:
            raise ValueError(f"--label must name the label column of {self.path}.")

    def feature_names(self) -> list[str] | None:
        """Return the names of the feature columns; None if the file has no names or is a stream."""
        if self.kind == "libsvm" or (self.chosen_columns is None and is_stream(self.path)):
            return None
        if self.chosen_columns is not None:
            return self.chosen_columns
        return feature_names(self.path, self.kind, Layout(), TableOptions(label=self.label).checked())

    def with_columns_of(self, model: Any) -> Input:
        """Return the input with the columns that a model was fitted to, unless the user asks for others.

        This removes the names from the model, because it will get arrays, whose columns have no names.
        """
        names = vars(model).pop("feature_names_in_", None)
        if self.kind == "libsvm":
            return self._replace(features=self.features or getattr(model, "n_features_in_", None))
        return self._replace(model_columns=None if names is None else list(names))

    def whole(self) -> tuple[Any, Any]:
        """Return all rows and labels."""
        X, y = getattr(data, f"read_{self.kind}")(self.path, **self._reader_options())
        return self._stored(X), y

    def blocks(self, size: int, initial: int | None = None) -> Iterator[tuple[Any, Any]]:
        """Return an iterator of (rows, labels), which needs constant memory."""
        read = getattr(data, f"iter_{self.kind}")
        return ((self._stored(X), y) for X, y in read(self.path, size, initial=initial, **self._reader_options()))

    def collections(self) -> tuple[Any, Any]:
        """Return all rows and labels as Dask collections."""
        from isokern import distributed

        X, y = getattr(distributed, f"read_{self.kind}")(self.path, **self._reader_options())
        if self.kind == "libsvm" and self.is_dense:
            X = X.map_blocks(lambda block: block.toarray(), meta=np.empty((0, 0)))
        return X, y

    def _stored(self, X: Any) -> Any:
        """Return rows as a dense array if wanted; rows of LIBSVM text are always read as CSR."""
        return X.toarray() if self.is_dense and sparse.issparse(X) else X

    def _reader_options(self) -> dict[str, Any]:
        if self.kind == "libsvm":
            return {"n_features": self.features, "zero_based": "auto" if self.zero_based is None else self.zero_based}
        return {"label": self.label, "columns": self.chosen_columns, "sparse": not self.is_dense}


def listed(names: str) -> list[str]:
    """Split names given as a,b,c; a name that has a comma is quoted, as in CSV."""
    return next(csv.reader([names]), [])


def labelled(X: Any, y: Any) -> tuple[Any, Any]:
    """Return the rows that have a label, and their labels."""
    rows, labels, has_label = checked_block(X, y)
    if not len(labels):
        raise ValueError("rows to learn from must have labels; got none.")
    return (rows if has_label.all() else rows[np.flatnonzero(has_label)]), labels


def label_text(label: Any) -> str:
    """Return a label as text; whole numbers have no decimal point."""
    if isinstance(label, float | np.floating):
        return str(int(label)) if float(label).is_integer() else repr(float(label))
    return str(label)
