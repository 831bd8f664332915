"""Rows from files, in memory or block by block."""

from isokern.data._blocks import blocks
from isokern.data.libsvm import iter_libsvm, read_libsvm, write_libsvm

__all__ = ["blocks", "iter_libsvm", "read_libsvm", "write_libsvm"]
