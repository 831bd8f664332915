"""Fit the kernel and its classifier on several machines with Dask. Needs the extra ``dask``."""

try:
    import dask.array  # noqa: F401
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError("isokern.distributed needs packages: pip install isokern[dask]") from error

from isokern.distributed.classifier import DaskIKOGDClassifier
from isokern.distributed.kernel import DaskIsolationKernel
from isokern.distributed.readers import read_csv, read_libsvm, read_parquet

__all__ = ["DaskIKOGDClassifier", "DaskIsolationKernel", "read_csv", "read_libsvm", "read_parquet"]
