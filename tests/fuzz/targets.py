"""List what is fuzzed: for each kind of file, the files to start from, how to change them, and how they are used."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from fuzz import checkpoints, models, tables


class Target(NamedTuple):
    write_seeds: Callable[[Path], None]  # writes valid files into an empty folder
    change: Callable[..., bytes]  # (rng, path of a seed, path for temporary files) -> a changed file
    use: Callable[[Path], None]  # raises ValueError or OSError if the file is refused
    is_named: bool = True  # whether these errors name the file


TARGETS = {
    "models": Target(models.write_seeds, models.change, models.use),
    "checkpoints": Target(checkpoints.write_seeds, models.change, checkpoints.use, is_named=False),
    "libsvm": Target(tables.write_libsvm_seeds, tables.change_text, tables.use_libsvm),
    "csv": Target(tables.write_csv_seeds, tables.change_text, tables.use_csv),
    "parquet": Target(tables.write_parquet_seeds, tables.change_bytes, tables.use_parquet),
    "archives": Target(tables.write_archives, tables.change_archive, tables.use_libsvm),
}
