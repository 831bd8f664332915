"""Read and write files of rows, whole or block by block, and load the paper's data sets."""

from isokern.data.catalogue import Dataset, list_datasets, load_dataset
from isokern.data.datasets import DatasetInfo
from isokern.data.libsvm import iter_libsvm, read_libsvm, write_libsvm
from isokern.data.rebatching import blocks
from isokern.data.tables import iter_csv, iter_parquet, read_csv, read_parquet

__all__ = [
    "Dataset",
    "DatasetInfo",
    "blocks",
    "iter_csv",
    "iter_libsvm",
    "iter_parquet",
    "list_datasets",
    "load_dataset",
    "read_csv",
    "read_libsvm",
    "read_parquet",
    "write_libsvm",
]
