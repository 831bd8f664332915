"""Write a forest as C99 source: constant tables, and a few short functions that read them."""

from __future__ import annotations

from collections.abc import Iterable
from string import Template
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isokern import __version__
from isokern.export import c_templates as templates
from isokern.forest import N_PARTS, CellForest, Classes, Forest, LinearSum, Numbers, Trees

FIRST_LINE = "/* Written by isokern"  # how a file of this format begins
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-+.,:;()=<>")
_MOST_NAMES = 1000  # columns that are listed
_INNER_BYTES, _LEAF_BYTES, _VALUE_BYTES, _WEIGHT_BYTES = 34, 14, 24, 16  # of text, about


def c_source(forest: Forest | CellForest, prefix: str) -> str:
    """Return the source of a forest; all names of functions and tables begin with ``prefix``."""
    parts = _kernel(forest) if isinstance(forest, CellForest) else _model(forest)
    head = Template(templates.HEAD).substitute(parts | {"first": FIRST_LINE, "version": __version__})
    return "".join([head, *(text for text in parts["texts"])]).replace("@", prefix)


def c_size(forest: Forest | CellForest) -> int:
    """Estimate the size of the source."""
    if isinstance(forest, CellForest):
        return 3000 + _trees_size(forest.trees) + forest.cells.size * 5
    size = 5000
    if forest.leaves is not None:
        size += _trees_size(forest.leaves.trees) + forest.leaves.values.size * _VALUE_BYTES
    if forest.linear is not None:
        size += int(np.count_nonzero(forest.linear.weights)) * _WEIGHT_BYTES + forest.linear.weights.size * 2
        size += 2 * forest.n_columns * _VALUE_BYTES
    return size


def _trees_size(trees: Trees) -> int:
    return (len(trees.left) - trees.n_leaves) * _INNER_BYTES + trees.n_leaves * _LEAF_BYTES


def _kernel(forest: CellForest) -> dict[str, Any]:
    n_cells = forest.trees.n_trees * forest.cells.shape[1]
    texts = [*_tree_tables(forest.trees), _table("int32_t", "cells", forest.cells)]
    apply = Template(templates.APPLY).substitute(n_trees=forest.trees.n_trees, n_scales=forest.cells.shape[1])
    facts = _facts("an Isolation Kernel", forest.trees.n_columns, forest.names, forest.trees.categorical)
    prototypes = f"void @_apply(const double *row, int32_t *cells); /* cells: {n_cells} */"
    n_bytes = 16 * len(forest.trees.left) + 4 * forest.cells.size
    return facts | {"prototypes": prototypes, "n_bytes": n_bytes, "texts": [*texts, apply]}


def _model(forest: Forest) -> dict[str, Any]:
    texts, n_bytes = [], 0
    if forest.leaves is not None:
        texts += [*_tree_tables(forest.leaves.trees), _table("double", "values", forest.leaves.values)]
        n_bytes += 16 * len(forest.leaves.trees.left) + 8 * forest.leaves.values.size
    if forest.linear is not None:
        texts += _linear_tables(forest.linear, forest.n_columns)
        n_bytes += 4 * forest.linear.weights.size + 16 * forest.n_columns
    texts.append(_scores(forest))
    answer = _class_answer(forest.answer) if isinstance(forest.answer, Classes) else _number_answer(forest)
    kind = "classifier" if isinstance(forest.answer, Classes) else "regressor"
    facts = _facts(f"a {kind}", forest.n_columns, forest.names, forest.categorical)
    return facts | answer | {"n_bytes": n_bytes, "texts": [*texts, *answer["texts"]]}


def _facts(kind: str, n_columns: int, names: list[str] | None, categorical: NDArray[Any]) -> dict[str, Any]:
    """Return what the comment at the top says about rows, and the function for categories if there are any."""
    listed = ""
    if names is not None and n_columns <= _MOST_NAMES:
        listed = "\n\n   Columns:" + "".join(f"\n   {k} {_string(name)}" for k, name in enumerate(names))
    if len(categorical):
        listed += f"\n\n   Categories, as @_category(name), are in columns: {', '.join(map(str, categorical))}."
    return {
        "kind": kind,
        "n_columns": n_columns,
        "columns": listed,
        "categories": Template(templates.CATEGORIES).substitute() if len(categorical) else "",
        "category_prototype": "double @_category(const char *name);\n" if len(categorical) else "",
    }


# -- tables


def _tree_tables(trees: Trees) -> list[str]:
    """Return the nodes, the roots, and the function that finds a leaf."""
    columns = trees.column.astype(np.int64) * 2 + trees.missing_right
    nodes = (
        f"{{0,{left},0}}" if left < 0 else f"{{{_double(threshold)},{left},{column}}}"
        for threshold, left, column in zip(trees.threshold.tolist(), trees.left.tolist(), columns.tolist(), strict=True)
    )
    text = f"static const struct @_node @_nodes[{len(trees.left)}] = {{\n{_lines(nodes)}\n}};\n"
    goes_right = templates.GOES_RIGHT
    if len(trees.categorical):
        is_categorical = np.isin(np.arange(trees.n_columns), trees.categorical)
        text += _table("unsigned char", "is_categorical", is_categorical.astype(int))
        goes_right = templates.CATEGORY_GOES_RIGHT
    return [templates.NODE, text, _table("int32_t", "roots", trees.starts[:-1]), goes_right + templates.LEAF]


def _linear_tables(linear: LinearSum, n_columns: int) -> list[str]:
    """Return the statistics of the columns, the weights, and the function that adds the linear part."""
    n_scores = linear.weights.shape[1]
    sizes = {"n_columns": n_columns, "n_scores": n_scores, "last": len(linear.weights) - 1}
    sizes |= {"n_parts": N_PARTS, "limit": _double(linear.limit), "constant": _float(float(linear.constant))}
    categories = ""
    tables = [_table("double", "offset", linear.offset), _table("double", "factor", linear.factor)]
    if len(linear.categorical):
        tables.append(_table("int32_t", "categorical", linear.categorical))
        counts = {"n_categorical": len(linear.categorical), "n_buckets": linear.n_buckets}
        categories = Template(templates.LINEAR_CATEGORIES).substitute(sizes | counts)
    place = n_columns + len(linear.categorical)
    text = Template(templates.LINEAR).substitute(sizes, categories=categories, place=place)
    return [*tables, _table("float", "weights", linear.weights), text]


def _table(kind: str, name: str, values: NDArray[Any]) -> str:
    """Return a constant table of one or two dimensions."""
    write = {"double": _double, "float": _float}.get(kind, str)
    shape = "".join(f"[{n}]" for n in values.shape)
    rows: Iterable[str] = map(write, values.tolist()) if values.ndim == 1 else _rows(write, values)
    return f"static const {kind} @_{name}{shape} = {{\n{_lines(rows)}\n}};\n"


def _rows(write: Any, values: NDArray[Any]) -> Iterable[str]:
    return (f"{{{','.join(map(write, row))}}}" for row in values.tolist())


def _lines(entries: Iterable[str]) -> str:
    """Join the entries of a table, several to a line."""
    lines, line, width = [], [], 0
    for entry in entries:
        line.append(entry)
        width += len(entry) + 1
        if width > 100:
            lines.append(",".join(line))
            line, width = [], 0
    return ",\n".join([*lines, ",".join(line)] if line else lines)


def _double(value: float) -> str:
    """Return a number as a hexadecimal constant, which every compiler reads alike; integers as they are."""
    if np.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    if value == int(value) and abs(value) < 2**31:
        return str(int(value)) if value or not np.signbit(value) else "-0.0"
    mantissa, exponent = value.hex().split("p")
    return f"{mantissa.rstrip('0').rstrip('.')}p{exponent}"


def _float(value: float) -> str:
    text = _double(value)
    return f"{text}f" if "p" in text or "." in text else text


def _string(text: str) -> str:
    """Return text as a C string in UTF-8; characters that may mean something else are octal."""
    return '"' + "".join(chr(byte) if chr(byte) in _PLAIN else f"\\{byte:03o}" for byte in text.encode()) + '"'


# -- functions


def _scores(forest: Forest) -> str:
    sizes = {"n_scores": forest.n_scores, "n_parts": N_PARTS}
    tables = _table("double", "intercept", forest.intercept)
    if forest.leaves is None:
        start = Template(templates.NO_TREES).substitute(sizes)
    else:
        leaves = forest.leaves
        factors = {"multiplier": _double(leaves.multiplier), "divisor": _double(leaves.divisor)}
        start = Template(templates.TREES).substitute(sizes, n_trees=leaves.trees.n_trees, **factors)
    linear = "    @_add_linear(row, scores);\n" if forest.linear is not None else ""
    return tables + Template(templates.SCORES).substitute(sizes, start=start, linear=linear)


def _class_answer(answer: Classes) -> dict[str, Any]:
    n_classes = len(answer.labels)
    n_scores = 1 if n_classes == 2 else n_classes
    kind, labels = _label_table(answer.labels)
    sizes = {"n_classes": n_classes, "n_scores": n_scores, "factor": _double(answer.factor)}
    texts = [labels, Template(templates.PREDICT_TWO if n_scores == 1 else templates.PREDICT_MORE).substitute(sizes)]
    prototypes = [
        f"extern const {kind}@_labels[{n_classes}];",
        f"void @_scores(const double *row, double *scores); /* scores: {n_scores} */",
        "int @_predict(const double *row); /* index of the class in @_labels */",
    ]
    if answer.link is not None:
        prototypes.append(f"void @_probabilities(const double *row, double *probabilities); /* {n_classes} */")
        logits = templates.LOGITS_TWO if n_scores == 1 else templates.LOGITS_MORE[answer.link]
        texts.append(Template(templates.PROBABILITIES).substitute(sizes, logits=Template(logits).substitute(sizes)))
    return {"prototypes": "\n".join(prototypes), "texts": texts}


def _label_table(labels: NDArray[Any]) -> tuple[str, str]:
    """Return the type of labels, and their table."""
    kind = labels.dtype.kind
    if kind in "OUT":
        name, entries = "char *const ", [_string(str(label)) for label in labels]
    elif kind == "f":
        name, entries = "double ", [_double(label) for label in labels.tolist()]
    else:
        name, entries = "int64_t ", [f"INT64_C({int(label)})" for label in labels]
    return name, f"const {name}@_labels[{len(labels)}] = {{\n{_lines(entries)}\n}};\n"


def _number_answer(forest: Forest) -> dict[str, Any]:
    n = forest.n_scores
    is_sorted = n > 1 and isinstance(forest.answer, Numbers) and forest.answer.ascending
    predict = templates.PREDICT_QUANTILES if is_sorted else templates.PREDICT_NUMBERS
    prototypes = [
        f"void @_scores(const double *row, double *scores); /* scores: {n} */",
        f"void @_predict(const double *row, double *predictions); /* predictions: {n} */",
    ]
    texts = [Template(predict).substitute(n_scores=n)]
    return {"prototypes": "\n".join(prototypes), "texts": texts}
