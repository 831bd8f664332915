"""Take fitted tree models out of Python: as ONNX models, as C source, and as JSON.

A fitted tree model is a forest with values in its leaves; all formats are written from the same
:class:`~isokern.forest.Forest`.

Examples
--------
>>> from sklearn.datasets import load_iris
>>> from isokern import IKOGDClassifier
>>> from isokern.export import estimate_size, to_c
>>> X, y = load_iris(return_X_y=True)
>>> model = IKOGDClassifier(n_partitionings=20, random_state=0).fit(X, y)
>>> source = to_c(model, prefix="iris")
>>> "int iris_predict(const double *row);" in source
True
>>> 0.5 < estimate_size(model, "c") / len(source) < 2
True
"""

from __future__ import annotations

import os
from typing import Any

from isokern.checks import one_of
from isokern.export.c_writer import FIRST_LINE, c_size, c_source
from isokern.export.json_writer import JSON_BEGINNING, json_document, json_size
from isokern.export.onnx_writer import ONNX_BEGINNING, onnx_model, onnx_size
from isokern.forest import CellForest, Forest

__all__ = ["estimate_size", "to_c", "to_json", "to_onnx"]

_SIZES = {"onnx": onnx_size, "c": c_size, "json": json_size}
_BEGINNINGS = {"onnx": ONNX_BEGINNING, "c": FIRST_LINE.encode(), "json": JSON_BEGINNING.encode()}


def to_onnx(model: Any, *, dtype: str = "float32") -> Any:
    """Return a fitted tree model as an ONNX model, for ONNX Runtime and others.

    Parameters
    ----------
    model : estimator
        A fitted classifier, regressor or :class:`isokern.IsolationKernel` on trees, without categories.
    dtype : {"float32", "float64"}, default="float32"
        Type of the input. Every row of this type takes the way down the trees that it takes in the model; float32
        scores are rounded to it.

    Returns
    -------
    onnx.ModelProto
        Its input is ``X`` of shape (n, n_columns). Its outputs are ``label``, ``scores`` and, if the model has them,
        ``probabilities``; ``prediction`` of a regressor; ``cells`` of a kernel.
    """
    if dtype not in ("float32", "float64"):
        raise ValueError(f'dtype must be "float32" or "float64"; got {dtype!r}.')
    return onnx_model(_forest_of(model), dtype)


def to_c(model: Any, *, prefix: str = "isokern") -> str:
    """Return a fitted tree model as one C99 source that needs no other file and allocates no memory.

    Parameters
    ----------
    model : estimator
        A fitted classifier, regressor or :class:`isokern.IsolationKernel` on trees.
    prefix : str, default="isokern"
        Beginning of all names, so that several models can be linked into one program.

    Returns
    -------
    str
        The source. A comment at its top tells how to compile and call it.
    """
    if not (isinstance(prefix, str) and prefix.isidentifier() and prefix.isascii()):
        raise ValueError(f"prefix must be an identifier of C; got {prefix!r}.")
    return c_source(_forest_of(model), prefix)


def to_json(model: Any) -> str:
    """Return a fitted tree model as JSON, in the format that ``docs/export.md`` describes.

    Parameters
    ----------
    model : estimator
        A fitted classifier, regressor or :class:`isokern.IsolationKernel` on trees.

    Returns
    -------
    str
        One line of JSON. Numbers are written so that reading them gives the same float64.
    """
    return json_document(_forest_of(model))


def estimate_size(model: Any, form: str) -> int:
    """Estimate how many bytes a model takes in one of the formats, without writing it.

    Parameters
    ----------
    model : estimator
        A fitted classifier, regressor or :class:`isokern.IsolationKernel` on trees.
    form : {"onnx", "c", "json"}
        The format; "onnx" is that of float32 input.

    Returns
    -------
    int
        Number of bytes; the real one is rarely more than a third smaller or larger.
    """
    if form not in _SIZES:
        raise ValueError(f"form must be {one_of(_SIZES)}; got {form!r}.")
    return int(_SIZES[form](_forest_of(model)))


def is_export(path: str | os.PathLike[str], form: str) -> bool:
    """Return whether a file begins like one of ours in this format."""
    beginning = _BEGINNINGS[form]
    with open(path, "rb") as file:
        return file.read(len(beginning)) == beginning


def _forest_of(model: Any) -> Forest | CellForest:
    if not hasattr(model, "forest"):
        cure = " Export what its to_local returns." if hasattr(model, "to_local") else ""
        rule = "an estimator of isokern on isolation trees"
        raise ValueError(f"model must be {rule}; got a {type(model).__name__}.{cure}")
    found: Forest | CellForest = model.forest()
    return found
