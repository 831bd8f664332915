"""Write a forest as an ONNX model: a tree ensemble, a linear part, and what scores mean."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isokern import __version__
from isokern.forest import CellForest, Classes, Forest, LeafSum, LinearSum, Trees

# The oldest versions that have all operators used here: TreeEnsembleRegressor takes doubles from 3 on.
_OPSETS = {"": 17, "ai.onnx.ml": 3}
_IR_VERSION = 8
ONNX_BEGINNING = b"\x08\x08\x12\x07isokern"  # of a file: the fields ir_version and producer_name
_LARGEST_FILE = 2**31 - 2**20  # protobuf's limit is 2 GiB
_LARGEST_FLOAT_INTEGER = 2**24  # up to here, all integers are float32


def onnx_model(forest: Forest | CellForest, dtype: str) -> Any:
    """Return a forest as an ``onnx.ModelProto`` with input of float32 or float64."""
    onnx = _import_onnx()
    is_kernel = isinstance(forest, CellForest)
    _check(forest)
    n_columns = forest.trees.n_columns if isinstance(forest, CellForest) else forest.n_columns
    graph = _Graph(onnx, np.dtype(dtype))
    graph.input("X", n_columns)
    _add_cells(graph, forest) if isinstance(forest, CellForest) else _add_model(graph, forest)
    model = onnx.helper.make_model(
        graph.proto("isokern_kernel" if is_kernel else "isokern_model"),
        producer_name="isokern",
        producer_version=__version__,
        ir_version=_IR_VERSION,
        opset_imports=[onnx.helper.make_opsetid(*opset) for opset in _OPSETS.items()],
    )
    if forest.names is not None:
        onnx.helper.set_model_props(model, {"column_names": json.dumps(forest.names)})
    onnx.checker.check_model(model)
    return model


def onnx_size(forest: Forest | CellForest) -> int:
    """Estimate the size of the model with float32 input."""
    if isinstance(forest, CellForest):
        return _trees_size(forest.trees, forest.cells.shape[1])
    n_bytes = 1000
    if forest.leaves is not None:
        n_bytes += _trees_size(forest.leaves.trees, forest.n_scores)
    if forest.linear is not None:
        n_bytes += forest.linear.weights.size * 8 + forest.n_columns * 16
    return n_bytes


def _trees_size(trees: Trees, n_targets: int) -> int:
    """Estimate the size of a tree ensemble: seven integers and a mode for a node, four numbers for a value."""
    of_id = 2 if trees.starts[-1] > 128 * trees.n_trees else 1
    return len(trees.left) * (17 + 4 * of_id) + trees.n_leaves * n_targets * (7 + 2 * of_id)


def _import_onnx() -> Any:
    try:
        import onnx
    except ImportError:
        raise ImportError("onnx must be installed for ONNX models; try pip install isokern[onnx].") from None
    return onnx


def _check(forest: Forest | CellForest) -> None:
    """Raise ValueError if ONNX cannot express a forest."""
    categorical = forest.trees.categorical if isinstance(forest, CellForest) else forest.categorical
    if len(categorical):
        raise ValueError(
            "model must have no categorical columns for ONNX, which has no hash of text; got "
            f"{len(categorical)} of them. Use to_c or to_json (.c or .json), or encode the categories as numbers "
            "before fit."
        )
    if isinstance(forest, CellForest) and forest.cells.max() > _LARGEST_FLOAT_INTEGER:
        raise ValueError(f"n_cells must be at most 2^24 for ONNX; got {int(forest.cells.max()) + 1}.")
    if onnx_size(forest) > _LARGEST_FILE:
        raise ValueError(
            f"model must take less than 2 GiB as ONNX; it would take about {onnx_size(forest):,} bytes. Use to_json "
            "(.json), or fewer cells or partitionings."
        )


# -- what the outputs are


def _add_cells(graph: _Graph, forest: CellForest) -> None:
    n_scales = forest.cells.shape[1]
    targets = forest.trees.tree_of_leaf[:, None] * n_scales + np.arange(n_scales)
    n_targets = forest.trees.n_trees * n_scales
    cells = _tree_ensemble(graph, forest.trees, targets, forest.cells.astype(np.float64), n_targets)
    graph.output("cells", graph.cast(cells, np.int32), np.int32, n_targets)


def _add_model(graph: _Graph, forest: Forest) -> None:
    scores = _scores(graph, forest)
    if isinstance(forest.answer, Classes):
        _add_classes(graph, forest.answer, scores, forest.n_scores)
    else:
        n = forest.n_scores
        if forest.answer.ascending and n > 1:
            scores, _ = graph.add("TopK", scores, graph.constant([n], np.int64), largest=0, n_outputs=2)
        if n == 1:
            scores = graph.squeezed(scores)
        graph.output("prediction", graph.cast(scores, graph.dtype), graph.dtype, *([] if n == 1 else [n]))


def _add_classes(graph: _Graph, answer: Classes, scores: str, n_scores: int) -> None:
    labels = _labels(answer)
    if n_scores == 1:
        shown = graph.squeezed(scores)
        number = graph.cast(graph.add("Greater", shown, graph.constant(0.0)), np.int64)
    else:
        shown, number = scores, graph.add("ArgMax", scores, axis=1, keepdims=0)
    graph.output("label", graph.add("Gather", graph.constant(labels, labels.dtype), number), labels.dtype)
    of_class = [] if n_scores == 1 else [n_scores]
    graph.output("scores", graph.cast(shown, graph.dtype), graph.dtype, *of_class)
    if answer.link is not None:
        probabilities = graph.add("Softmax", _logits(graph, answer, scores, n_scores), axis=1)
        graph.output("probabilities", graph.cast(probabilities, graph.dtype), graph.dtype, len(labels))


def _logits(graph: _Graph, answer: Classes, scores: str, n_scores: int) -> str:
    """Return numbers whose softmax is the probability of each class."""
    if n_scores == 1:
        return graph.add("Mul", scores, graph.constant([[0.0, answer.factor]]))
    if answer.link == "softmax":
        return graph.add("Mul", scores, graph.constant(answer.factor))
    # The logarithm of the sigmoid, min(s, 0) - log(1 + exp(-|s|)), which does not overflow.
    small = graph.add("Exp", graph.add("Neg", graph.add("Abs", scores)))
    rest = graph.add("Log", graph.add("Add", small, graph.constant(1.0)))
    return graph.add("Sub", graph.add("Min", scores, graph.constant(0.0)), rest)


def _labels(answer: Classes) -> NDArray[Any]:
    """Return labels of a type that ONNX has: text, int64, float64 or bool."""
    kind = answer.labels.dtype.kind
    if kind in "OUT":
        return np.array([str(label) for label in answer.labels], dtype=object)
    return answer.labels.astype({"b": np.bool_, "f": np.float64}.get(kind, np.int64))


# -- scores


def _scores(graph: _Graph, forest: Forest) -> str:
    """Return the scores, (n, n_scores), in float64."""
    parts, bias = [], forest.intercept.copy()
    if forest.leaves is not None:
        parts.append(_leaf_sum(graph, forest.leaves))
    if forest.linear is not None:
        parts.append(_linear_sum(graph, forest.linear))
        bias += np.float64(forest.linear.constant) * forest.linear.weights[-1].astype(np.float64)
    for part in parts[1:]:
        parts[0] = graph.add("Add", parts[0], part)
    return graph.add("Add", parts[0], graph.constant(bias)) if bias.any() else parts[0]


def _leaf_sum(graph: _Graph, leaves: LeafSum) -> str:
    n_leaves, n_scores = leaves.values.shape
    targets = np.broadcast_to(np.arange(n_scores), (n_leaves, n_scores))
    sums = graph.cast(_tree_ensemble(graph, leaves.trees, targets, leaves.values, n_scores), np.float64)
    multiplied = sums if leaves.multiplier == 1.0 else graph.add("Mul", sums, graph.constant(leaves.multiplier))
    return str(graph.add("Div", multiplied, graph.constant(leaves.divisor)))


def _tree_ensemble(
    graph: _Graph, trees: Trees, targets: NDArray[Any], values: NDArray[np.float64], n_targets: int
) -> str:
    """Add the trees: a leaf adds its values, (n_leaves, m), to the targets of these numbers. The sums are float32."""
    tree, node = trees.tree_of_node, np.arange(len(trees.left)) - trees.starts[trees.tree_of_node]
    is_leaf, m = trees.is_leaf, values.shape[1]
    left = np.where(is_leaf, 0, trees.left - trees.starts[tree])
    thresholds = rounded_up(trees.threshold, graph.dtype)
    return graph.add(
        "TreeEnsembleRegressor",
        "X",
        domain="ai.onnx.ml",
        n_targets=n_targets,
        nodes_treeids=tree,
        nodes_nodeids=node,
        nodes_featureids=trees.column,
        nodes_modes=np.where(is_leaf, b"LEAF", b"BRANCH_LT"),
        nodes_truenodeids=left,
        nodes_falsenodeids=np.where(is_leaf, 0, left + 1),
        nodes_missing_value_tracks_true=1 - (trees.missing_right | is_leaf),
        **graph.numbers("nodes_values", np.where(is_leaf, 0, thresholds)),
        target_treeids=np.repeat(tree[is_leaf], m),
        target_nodeids=np.repeat(node[is_leaf], m),
        target_ids=targets.ravel(),
        **graph.numbers("target_weights", values.ravel()),
    )


def rounded_up(thresholds: NDArray[np.float64], dtype: Any) -> NDArray[Any]:
    """Return the smallest numbers of a dtype that are not below thresholds: those that its numbers compare alike with.

    Of a float32 x, x < threshold holds if and only if x is below the threshold rounded up to float32.
    """
    with np.errstate(over="ignore"):
        rounded: NDArray[Any] = thresholds.astype(dtype)
        return np.where(rounded < thresholds, np.nextafter(rounded, np.array(np.inf, dtype)), rounded)


def _linear_sum(graph: _Graph, linear: LinearSum) -> str:
    """Add the linear part without its constant: the features of the model, to the bit, times its weights."""
    X = graph.cast("X", np.float64)
    centred = graph.add("Sub", X, graph.constant(linear.offset)) if linear.offset.any() else X
    scaled = graph.add("Mul", centred, graph.constant(linear.factor))
    clipped = graph.add("Clip", scaled, graph.constant(-linear.limit), graph.constant(linear.limit))
    features = graph.add("Where", graph.add("IsNaN", X), graph.constant(0.0), clipped)
    rounded = graph.cast(graph.cast(features, np.float32), np.float64)
    return graph.add("MatMul", rounded, graph.constant(linear.weights[:-1]))


class _Graph:
    """A graph in the making; its methods return the names of values."""

    def __init__(self, onnx: Any, dtype: np.dtype[Any]) -> None:
        self._onnx, self.dtype = onnx, dtype
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._types: dict[str, np.dtype[Any]] = {}  # of values that were cast, or given

    def input(self, name: str, n_columns: int) -> None:
        """Declare the input."""
        self._inputs.append(self._value_info(name, self.dtype, ["n", n_columns]))
        self._types[name] = self.dtype

    def output(self, name: str, value: str, dtype: Any, *shape: int) -> None:
        """Declare an output of n rows."""
        self._nodes.append(self._onnx.helper.make_node("Identity", [value], [name]))
        self._outputs.append(self._value_info(name, dtype, ["n", *shape]))

    def _value_info(self, name: str, dtype: Any, shape: list[Any]) -> Any:
        return self._onnx.helper.make_tensor_value_info(name, self._type(dtype), shape)

    def _type(self, dtype: Any) -> int:
        return int(self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))

    def constant(self, value: Any, dtype: Any = np.float64) -> str:
        """Add a constant."""
        name = f"constant{len(self._constants)}"
        self._constants.append(self._onnx.numpy_helper.from_array(np.asarray(value, dtype=dtype), name))
        return name

    def add(self, operator: str, *inputs: str, domain: str = "", n_outputs: int = 1, **attributes: Any) -> Any:
        """Add an operator; return the names of its outputs, or of the only one."""
        names = [f"{operator}{len(self._nodes)}_{k}" for k in range(n_outputs)]
        node = self._onnx.helper.make_node(operator, inputs, names, domain=domain)
        node.attribute.extend([self._attribute(name, value) for name, value in attributes.items()])
        self._nodes.append(node)
        return names[0] if n_outputs == 1 else names

    def _attribute(self, name: str, value: Any) -> Any:
        """Return an attribute; ``make_attribute`` would look at each of millions of numbers."""
        if not isinstance(value, np.ndarray):
            return self._onnx.helper.make_attribute(name, value)
        kinds = {"S": ("STRINGS", "strings"), "f": ("FLOATS", "floats")}
        kind, field = kinds.get(value.dtype.kind, ("INTS", "ints"))
        attribute = self._onnx.AttributeProto(name=name, type=getattr(self._onnx.AttributeProto, kind))
        getattr(attribute, field).extend(value.tolist())
        return attribute

    def numbers(self, name: str, values: NDArray[Any]) -> dict[str, Any]:
        """Return an attribute of numbers of the input's type; float64 numbers must be a tensor."""
        values = values.astype(self.dtype)
        if self.dtype == np.float32:
            return {name: values}
        return {f"{name}_as_tensor": self._onnx.numpy_helper.from_array(values, name)}

    def cast(self, value: str, dtype: Any) -> str:
        """Return a value in another type."""
        dtype = np.dtype(dtype)
        if value in self._types and self._types[value] == dtype:  # None would be float64
            return value
        name = str(self.add("Cast", value, to=self._type(dtype)))
        self._types[name] = dtype
        return name

    def squeezed(self, value: str) -> str:
        """Return a value of shape (n, 1) as (n,)."""
        return str(self.add("Squeeze", value, self.constant([1], np.int64)))

    def proto(self, name: str) -> Any:
        """Return the finished graph."""
        return self._onnx.helper.make_graph(self._nodes, name, self._inputs, self._outputs, self._constants)
