"""``isokern explain``."""

from __future__ import annotations

import csv
import io
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from scipy import sparse

import isokern
from isokern import inspection, plotting
from isokern.cli._input import File, Input, label_text
from isokern.cli._options import Model, Quiet, check_target, with_groups
from isokern.cli._show import print_facts, print_table, replaced_text, with_progress
from isokern.cli.plot import check_figure, save_figure
from isokern.files import replacing
from isokern.inspection import Explanation

_BLOCK = 256  # rows between two steps of the progress bar
_MOST_BACKGROUND = 100  # rows
_MOST_WRITTEN = 10**8  # values of a file


@with_groups(without=("label",))
def explain(
    model: Model,
    file: File,
    *,
    rows: Annotated[int, typer.Option(min=1, help="Number of rows to explain, from the start of the file.")] = 1000,
    top: Annotated[int, typer.Option(min=1, help="Number of columns to show.")] = 20,
    background: Annotated[
        str | None,
        typer.Option(help="Compare with the first 100 rows of this file: interventional values, not path-dependent."),
    ] = None,
    out: Annotated[
        str | None, typer.Option("--out", "-o", help="Write the values of all rows and columns here: .csv or .npy.")
    ] = None,
    plot: Annotated[str | None, typer.Option(help="Draw the columns here: .png, .pdf or .svg.")] = None,
    quiet: Quiet = False,
    source: Input,
) -> None:
    """Show which columns a model's scores depend on, by exact SHAP values; labels in the file are ignored.

    A column's importance is the mean of the absolute values. With more than two classes, each is explained separately.

    Example: isokern explain a9a.isokern a9a.t --plot a9a.png
    """
    is_replaced = _check_targets(out, plot, model, file)
    learner = isokern.load(model)
    names = getattr(learner, "feature_names_in_", None)
    source = source.at(file).with_columns_of(learner)
    others = None if background is None else _first_rows(source._replace(path=background), _MOST_BACKGROUND)
    parts = [
        inspection.explain(learner, X, background=others)
        for X, _ in with_progress(_blocks(source, rows), "Explaining", quiet=quiet)
    ]
    if not parts:
        raise ValueError(f"{file} must have rows; got none.")
    explanation = joined(parts, None if names is None else [str(name) for name in names])
    columns = np.argsort(-explanation.importance, kind="stable")[:top]
    print_table(_table(explanation, columns))
    facts: dict[str, Any] = {"rows": len(explanation.base_values)}
    if out is not None:
        _write_values(explanation, out)
        facts["values"] = replaced_text(out, is_replaced)
    if plot is not None:
        save_figure(_figure(explanation, columns), plot)
        facts["figure"] = plot
    print_facts(facts)


def _check_targets(out: str | None, plot: str | None, *inputs: str) -> bool:
    """Return whether --out will be replaced; raise if outputs cannot be written."""
    if out is not None and Path(out).suffix.lower() not in (".csv", ".npy"):
        raise ValueError(f"--out must end in .csv or .npy; got {out}.")
    if plot is not None:
        check_figure("--plot", plot)
    return check_target("--out", out, *inputs)


def _blocks(source: Input, n_rows: int) -> Any:
    """Yield the first rows of a file in blocks."""
    for X, y in source.blocks(min(_BLOCK, n_rows)):
        yield X[:n_rows], y
        n_rows -= X.shape[0]
        if n_rows <= 0:
            return


def _first_rows(source: Input, n_rows: int) -> Any:
    """Return the first rows of a file."""
    for X, _ in islice(source.blocks(n_rows), 1):
        return X
    raise ValueError(f"{source.path} must have rows; got none.")


def joined(parts: list[Explanation], names: list[str] | None) -> Explanation:
    """Return the explanation of the rows of all parts."""
    first = parts[0]
    if isinstance(first.values, list):
        values: Any = [sparse.vstack(of_output) for of_output in zip(*(part.values for part in parts), strict=True)]
    else:
        values = _stack([part.values for part in parts])
    bases, rows = np.concatenate([part.base_values for part in parts]), _stack([part.data for part in parts])
    return Explanation(values, bases, rows, names or first.feature_names, first.output_names)


def _stack(tables: list[Any]) -> Any:
    return sparse.vstack(tables, format="csr") if sparse.issparse(tables[0]) else np.concatenate(tables)


def _some_columns(table: Any, columns: NDArray[np.intp]) -> NDArray[Any]:
    some = table[:, columns]
    return some.toarray() if sparse.issparse(some) else some


def _outputs(explanation: Explanation) -> list[Any]:
    """Return the names or numbers of the outputs."""
    return explanation.output_names or list(range(explanation.n_outputs))


def _output_names(explanation: Explanation) -> list[str]:
    return [label_text(output) for output in _outputs(explanation)]


def _values(explanation: Explanation, columns: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the values of some columns, (n, n_columns, n_outputs)."""
    parts = [explanation.of(output).values for output in _outputs(explanation)]
    return np.stack([_some_columns(part, columns) for part in parts], axis=2)


def _table(explanation: Explanation, columns: NDArray[np.intp]) -> list[dict[str, Any]]:
    """Return a row for each column: its importance, its share of all importance, and how it acts."""
    importance, values = explanation.importance, _values(explanation, columns)
    total = float(importance.sum()) or 1.0
    rows = []
    for k, column in enumerate(columns):
        row: dict[str, Any] = {"column": explanation.feature_names[column], "importance": float(importance[column])}
        row["share"] = f"{importance[column] / total:.1%}"
        if explanation.n_outputs == 1:
            row["mean value"] = float(values[:, k].mean())
        else:
            row["most for"] = _output_names(explanation)[int(np.abs(values[:, k]).mean(axis=0).argmax())]
        rows.append(row)
    return rows


def _figure(explanation: Explanation, columns: NDArray[np.intp]) -> Any:
    values, rows = _values(explanation, columns), _some_columns(explanation.data, columns)
    names = [explanation.feature_names[column] for column in columns]
    if explanation.n_outputs == 1:
        return plotting.explanation_figure(values[:, :, 0], rows, names)
    return plotting.explanation_figure(values, rows, names, _output_names(explanation))


def _write_values(explanation: Explanation, out: str) -> None:
    """Write all values: an array as ``explain`` returns it, or lines of CSV, one for each row and output."""
    n, d = explanation.data.shape
    if n * d * explanation.n_outputs > _MOST_WRITTEN:
        raise ValueError(f"--out must get at most {_MOST_WRITTEN:,} values; got {n:,} rows of {d:,}. Lower --rows.")
    values = _values(explanation, np.arange(d))
    with replacing(out) as file:
        if out.lower().endswith(".npy"):
            np.save(file, values if explanation.n_outputs > 1 else values[:, :, 0])
        else:
            file.write(_csv_text(explanation, values).encode())


def _csv_text(explanation: Explanation, values: NDArray[np.float64]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    outputs = _output_names(explanation)
    has_several = len(outputs) > 1
    writer.writerow([*(["output"] if has_several else []), "base value", *explanation.feature_names])
    bases = explanation.base_values.reshape(len(values), -1)
    for of_row, base in zip(values, bases, strict=True):
        for k, output in enumerate(outputs):
            writer.writerow([*([output] if has_several else []), float(base[k]), *of_row[:, k].tolist()])
    return text.getvalue()
