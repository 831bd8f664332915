"""Read the input files of commands: find the format and the columns, then read all rows or blocks of them."""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from scipy import sparse

from isokern import data
from isokern.checks import one_of
from isokern.cli._options import panel
from isokern.data.archives import ArchiveError, decompressed
from isokern.data.columns import TYPES, TableOptions
from isokern.data.layouts import Layout
from isokern.data.lines import STDIN, is_stream
from isokern.data.tables import feature_names
from isokern.evaluation.labels import checked_block
from isokern.evaluation.learner import Block

KINDS = ("libsvm", "csv", "parquet")
_SUFFIXES = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet"}  # all other files are LIBSVM text
_COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")
_LIBSVM_ROW = re.compile(rb"\s*(#|$|(\?|[-+]?[\d.][^\s,;|:]*)(\s+\d+:|\s*(#|$)))")
_option = panel("Input file")

File = Annotated[str, typer.Argument(help="LIBSVM text, CSV or Parquet; - is standard input.")]


class Input(NamedTuple):
    """An input file, and the options that say how to read it."""

    path: str = ""
    format: Annotated[
        str | None, _option(help="libsvm, csv or parquet. Default: by the file name; standard input by its first line.")
    ] = None
    label: Annotated[str | None, _option(help="Label column (CSV, Parquet).")] = None
    columns: Annotated[
        str | None, _option(help="Feature columns, as a,b,c (CSV, Parquet). Default: all but the label.")
    ] = None
    drop: Annotated[str | None, _option(help="Columns to leave out, as a,b,c (CSV, Parquet).")] = None
    types: Annotated[
        str | None,
        _option(help="Types of columns, as zip=text,age=number (CSV, Parquet). Default: those of the first rows."),
    ] = None
    dates: Annotated[
        str | None, _option(help="number: read dates as seconds since 1970 (CSV, Parquet). Default: refuse them.")
    ] = None
    separator: Annotated[
        str | None, _option(help="Character between fields, or tab (CSV). Default: guessed from the first lines.")
    ] = None
    header: Annotated[
        bool, _option("--header/--no-header", help="Whether a header names the columns (CSV). If not: 0, 1, 2, ...")
    ] = True
    features: Annotated[int | None, _option(min=1, help="Number of features (LIBSVM). Default: largest index.")] = None
    zero_based: Annotated[
        bool | None, _option("--zero-based/--one-based", help="First feature index (LIBSVM). Default: detected.")
    ] = None
    dense: Annotated[
        bool | None, _option("--dense/--sparse", help="How to store rows. Default: sparse for LIBSVM, else dense.")
    ] = None
    model_types: dict[str, str] | None = None  # of the columns that a model was fitted to
    label_type: str | None = None  # that of a model

    def at(self, path: str) -> Input:
        """Return the input at a path; the first line tells the format of standard input."""
        given = self._replace(path=path)
        return given._replace(format=_format_of_stdin()) if path == STDIN and self.format is None else given

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
        if self.columns is not None:
            return listed(self.columns)
        return None if self.model_types is None else list(self.model_types)

    @property
    def text_settings(self) -> list[Any]:
        """The other options that change what is read from a table."""
        return [self.drop, self.types, self.dates, self.separator, self.header]

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
        options = self._table_options()
        layout = Layout.checked(options.pop("separator", None), options.pop("header", True))
        return feature_names(self.path, self.kind, layout, TableOptions(**options).checked())

    def with_columns_of(self, model: Any) -> Input:
        """Return the input with the columns of a model and their types, unless the user asks for others.

        A model of numbers will get arrays, whose columns have no names: this removes the names from it.
        """
        names, is_text = (getattr(model, name, None) for name in ("feature_names_in_", "is_categorical_"))
        if is_text is None:
            vars(model).pop("feature_names_in_", None)
        if self.kind == "libsvm":
            return self._replace(features=self.features or getattr(model, "n_features_in_", None))
        classes = getattr(model, "classes_", None)
        typed = self if classes is None else self._replace(label_type=TYPES[int(classes.dtype.kind in "OUT")])
        if names is None:
            return typed
        are_text = np.zeros(len(names), dtype=bool) if is_text is None else is_text
        return typed._replace(model_types=dict(zip(names, (TYPES[int(text)] for text in are_text), strict=True)))

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
        return self._table_options()

    def _table_options(self) -> dict[str, Any]:
        """Return the options of readers of tables."""
        columns = self.chosen_columns
        told = {} if self.label is None or self.label_type is None else {self.label: self.label_type}
        told |= (self.model_types or {}) | _parsed_types(self.types)
        options: dict[str, Any] = {
            "label": self.label,
            "columns": columns,
            # A model has left these columns out already, and the types of others are not asked for.
            "drop": None if self.drop is None or self.model_types else listed(self.drop) or [""],
            "types": told if columns is None else {n: kind for n, kind in told.items() if n in (*columns, self.label)},
            "dates": self.dates,
            "sparse": not self.is_dense,
        }
        if self.kind == "csv":
            options |= {"separator": "\t" if self.separator == "tab" else self.separator, "header": self.header}
        return options


def _format_of_stdin() -> str:
    """Return the format of standard input, which stays unread."""
    file = sys.stdin.buffer
    text = file.peek() if hasattr(file, "peek") else b""
    with suppress(ArchiveError):  # the beginning of an archive is cut off
        text = next(decompressed(iter([text]), 2**16)[0], b"")
    return "libsvm" if _LIBSVM_ROW.match(text.partition(b"\n")[0]) else "csv"


def _parsed_types(types: str | None) -> dict[str, str]:
    """Return types given as a=text,b=number."""
    parsed = {}
    for pair in listed(types or ""):
        name, equals, kind = pair.rpartition("=")
        if not equals or kind not in TYPES:
            raise ValueError(f"--types must be name=text or name=number; got {pair!r}.")
        parsed[name] = kind
    return parsed


def listed(names: str) -> list[str]:
    """Split names given as a,b,c; a name that has a comma is quoted, as in CSV."""
    return next(csv.reader([names]), [])


def labelled(X: Any, y: Any) -> tuple[Any, Any]:
    """Return the rows that have a label, and their labels."""
    rows, labels, has_label = checked_block(X, y)
    if not len(has_label):
        raise ValueError("there must be rows to learn from; got none.")
    if not len(labels):
        raise ValueError("rows to learn from must have labels; got none.")
    return (rows if has_label.all() else Block(rows).take(has_label).rows), labels


def label_text(label: Any) -> str:
    """Return a label as text; whole numbers have no decimal point."""
    if isinstance(label, float | np.floating):
        return str(int(label)) if float(label).is_integer() else repr(float(label))
    return str(label)
