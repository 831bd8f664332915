"""Files of rows as commands take them: which format, which columns, whole or in blocks."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

from isokern import data
from isokern.checks import one_of
from isokern.cli._options import panel
from isokern.data.lines import is_stream
from isokern.data.tables import column_names
from isokern.evaluation.labels import checked_block

FORMATS = {".csv": "csv", ".parquet": "parquet", ".pq": "parquet"}  # all other files are LIBSVM text
_COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")
_option = panel("What the file holds")

File = Annotated[str, typer.Argument(help="LIBSVM text, CSV or Parquet; - is standard input.")]
Format = Annotated[
    str | None,
    _option(help="libsvm, csv or parquet; otherwise the name tells."),
]
Label = Annotated[str | None, _option(help="CSV, Parquet: the column of labels.")]
Columns = Annotated[
    str | None,
    _option(help="CSV, Parquet: the columns to learn from, as a,b,c; otherwise all others."),
]
Features = Annotated[
    int | None,
    _option(min=1, help="LIBSVM: number of columns; otherwise the largest index."),
]
ZeroBased = Annotated[
    bool | None,
    _option("--zero-based/--one-based", help="LIBSVM: what indices count from; otherwise found out."),
]
Dense = Annotated[
    bool | None,
    _option("--dense/--sparse", help="How to hold rows; otherwise LIBSVM rows are sparse, others dense."),
]


class Input(NamedTuple):
    """A file of rows and how to read it."""

    path: str
    format: str | None = None
    label: str | None = None
    columns: list[str] | None = None
    features: int | None = None
    zero_based: bool | None = None
    dense: bool | None = None

    @property
    def kind(self) -> str:
        """The file's format, said or told by its name."""
        if self.format is not None:
            if self.format not in {"libsvm", "csv", "parquet"}:
                raise ValueError(f"--format must be {one_of(['libsvm', 'csv', 'parquet'])}; got {self.format!r}.")
            return self.format
        suffixes = [suffix for suffix in Path(self.path.lower()).suffixes if suffix not in _COMPRESSIONS]
        return FORMATS.get(suffixes[-1] if suffixes else "", "libsvm")

    @property
    def is_dense(self) -> bool:
        """Whether rows are held as dense arrays."""
        return self.kind != "libsvm" if self.dense is None else self.dense

    def check_labelled(self) -> None:
        """Raise if it is not known where the labels are."""
        if self.kind != "libsvm" and self.label is None:
            raise ValueError(f"--label must name the column of labels in {self.path}.")

    def feature_names(self) -> list[str] | None:
        """Return the names of the columns to learn from, where the file has names and can be looked at beforehand."""
        if self.kind == "libsvm" or (self.columns is None and is_stream(self.path)):
            return None
        if self.columns is not None:
            return self.columns
        return [name for name in column_names(self.path, self.kind) if name != self.label]

    def with_columns_of(self, model: Any) -> Input:
        """Return the input with the columns that a model was fitted to, by name, unless others are asked for.

        The model forgets the names, since rows will come to it in their order, as arrays.
        """
        names = vars(model).pop("feature_names_in_", None)
        if self.kind == "libsvm":
            return self._replace(features=self.features or getattr(model, "n_features_in_", None))
        return self._replace(columns=list(names) if self.columns is None and names is not None else self.columns)

    def whole(self) -> tuple[Any, Any]:
        """Return all rows and labels."""
        if self.kind == "libsvm":
            X, y = data.read_libsvm(self.path, **self._libsvm_options())
            return (X.toarray() if self.is_dense else X), y
        read = {"csv": data.read_csv, "parquet": data.read_parquet}[self.kind]
        return read(self.path, **self._table_options())

    def blocks(self, size: int, initial: int | None = None) -> Iterator[tuple[Any, Any]]:
        """Yield (rows, labels) in constant memory."""
        if self.kind == "libsvm":
            blocks = data.iter_libsvm(self.path, size, initial=initial, **self._libsvm_options())
            return ((X.toarray(), y) for X, y in blocks) if self.is_dense else blocks
        iterate = {"csv": data.iter_csv, "parquet": data.iter_parquet}[self.kind]
        return iterate(self.path, size, initial=initial, **self._table_options())

    def collections(self) -> tuple[Any, Any]:
        """Return all rows and labels as Dask collections."""
        from isokern import distributed

        if self.kind == "libsvm":
            X, y = distributed.read_libsvm(self.path, **self._libsvm_options())
            return (X.map_blocks(lambda block: block.toarray(), meta=np.empty((0, 0))) if self.is_dense else X), y
        read = {"csv": distributed.read_csv, "parquet": distributed.read_parquet}[self.kind]
        return read(self.path, **self._table_options())

    def labels_of(self, classes: str) -> list[Any]:
        """Return classes given as a,b,c in the form that the file's labels have."""
        names = listed(classes) or []
        try:
            return [float(name) for name in names]
        except ValueError:
            return list(names)

    def _libsvm_options(self) -> dict[str, Any]:
        return {"n_features": self.features, "zero_based": "auto" if self.zero_based is None else self.zero_based}

    def _table_options(self) -> dict[str, Any]:
        return {"label": self.label, "columns": self.columns, "sparse": not self.is_dense}


def listed(names: str | None) -> list[str] | None:
    """Return names given as a,b,c; one that has a comma itself is quoted, as in CSV."""
    return None if names is None else next(csv.reader([names]), [])


def labelled(X: Any, y: Any) -> tuple[Any, Any]:
    """Return the rows that have a label, and those."""
    rows, labels, has_label = checked_block(X, y)
    if not len(labels):
        raise ValueError("rows to learn from must have labels; got none.")
    return (rows if has_label.all() else rows[np.flatnonzero(has_label)]), labels


def label_text(label: Any) -> str:
    """Return a label as it is written to files: whole numbers without a point."""
    if isinstance(label, float | np.floating):
        return str(int(label)) if float(label).is_integer() else repr(float(label))
    return str(label)


def label_lines(labels: NDArray[Any]) -> str:
    """Return labels as text, a line for each."""
    names = labels.tolist()
    lines = {name: f"{label_text(name)}\n" for name in set(names)}  # a long stream has few
    return "".join(lines[name] for name in names)
