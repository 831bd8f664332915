"""``isokern data``."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.text import Text
from scipy.sparse import issparse

from isokern.cli._show import print_facts, print_table, results, working
from isokern.data import DatasetInfo, list_datasets, load_dataset
from isokern.data.datasets import SHA256


def data(
    name: Annotated[str | None, typer.Argument(help="Data set to read, and to download if it is missing.")] = None,
    folder: Annotated[
        str | None, typer.Option(help="Folder to search first, before $ISOKERN_DATA and the cache.")
    ] = None,
) -> None:
    """List the data sets of the paper, or read one.

    Example: isokern data a9a
    """
    if name is None:
        print_table(_row(entry, folder) for entry in list_datasets())
        known = f"SHA-256 is known, and checked when downloading, for {', '.join(SHA256)}; for no other file."
        results.print(Text(known), soft_wrap=True)
        return
    with working(f"Reading {name}"):
        found = load_dataset(name, folder)
    X = found.X_train
    print_facts(
        {
            "name": found.name,
            "training rows": X.shape[0],
            "test rows": found.X_test.shape[0],
            "columns": X.shape[1],
            "stored as": f"{'CSR' if issparse(X) else 'dense'} {X.dtype}",
            "share of the second class": float(found.y_train.mean()),
        }
    )


def _row(info: DatasetInfo, folder: str | None) -> dict[str, Any]:
    return {
        "name": info.name,
        "train": info.n_train,
        "test": info.n_test,
        "columns": info.n_features,
        "nonzero (%)": f"{100 * info.density:.4g}",
        "classes": info.n_classes,
        "files": "here" if info.find(folder) else "to download",
    }
