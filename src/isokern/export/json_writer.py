"""Write a forest as JSON; ``docs/export.md`` describes the format."""

from __future__ import annotations

import json
import math
from typing import Any

from isokern import __version__
from isokern.forest import CellForest, Classes, Forest, LeafSum, LinearSum, Trees

FORMAT = "isokern forest"
JSON_BEGINNING = f'{{"format":"{FORMAT}"'  # of a file
VERSION = 1
_NODE_BYTES, _VALUE_BYTES = 28, 21  # of text, about


def json_document(forest: Forest | CellForest) -> str:
    """Return a forest as one line of JSON."""
    head = {"format": FORMAT, "version": VERSION, "written_by": f"isokern {__version__}"}
    body = _kernel(forest) if isinstance(forest, CellForest) else _model(forest)
    return json.dumps(head | body, allow_nan=False, separators=(",", ":")) + "\n"


def json_size(forest: Forest | CellForest) -> int:
    """Estimate the size of the text."""
    if isinstance(forest, CellForest):
        return len(forest.trees.left) * _NODE_BYTES + forest.cells.size * 5
    n_nodes = 0 if forest.leaves is None else len(forest.leaves.trees.left)
    n_values = 0 if forest.leaves is None else forest.leaves.values.size
    n_linear = 0 if forest.linear is None else forest.linear.weights.size + 2 * forest.n_columns
    return 300 + n_nodes * _NODE_BYTES + (n_values + n_linear) * _VALUE_BYTES


def _kernel(forest: CellForest) -> dict[str, Any]:
    cells = {"kind": "kernel", "n_columns": forest.trees.n_columns, "names": forest.names}
    cells["categorical"] = forest.trees.categorical.tolist()
    return cells | {"trees": _trees(forest.trees), "cells": forest.cells.tolist()}


def _model(forest: Forest) -> dict[str, Any]:
    answer = forest.answer
    is_classifier = isinstance(answer, Classes)
    meaning: dict[str, Any] = {"kind": "classifier" if is_classifier else "regressor"}
    meaning |= {"n_columns": forest.n_columns, "names": forest.names, "categorical": forest.categorical.tolist()}
    if isinstance(answer, Classes):
        meaning |= {"labels": answer.labels.tolist(), "link": answer.link, "factor": answer.factor}
    else:
        meaning["ascending"] = answer.ascending
    return meaning | {
        "intercept": forest.intercept.tolist(),
        "trees": None if forest.leaves is None else _trees(forest.leaves.trees),
        "leaves": None if forest.leaves is None else _leaves(forest.leaves),
        "linear": None if forest.linear is None else _linear(forest.linear),
    }


def _trees(trees: Trees) -> dict[str, Any]:
    return {
        "roots": trees.starts[:-1].tolist(),
        "column": trees.column.tolist(),
        "threshold": [None if math.isinf(threshold) else threshold for threshold in trees.threshold.tolist()],
        "left": trees.left.tolist(),
        "missing_right": trees.missing_right.astype(int).tolist(),
    }


def _leaves(leaves: LeafSum) -> dict[str, Any]:
    return {"values": leaves.values.tolist(), "multiplier": leaves.multiplier, "divisor": leaves.divisor}


def _linear(linear: LinearSum) -> dict[str, Any]:
    return {
        "offset": linear.offset.tolist(),
        "factor": linear.factor.tolist(),
        "limit": linear.limit,
        "constant": float(linear.constant),
        "n_buckets": linear.n_buckets,
        "weights": linear.weights.tolist(),
    }
