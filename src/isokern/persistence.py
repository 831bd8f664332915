"""Models in files: no pickle inside, so that a file from a stranger can do nothing but be wrong.

A file holds a tree of plain values, arrays and objects of a closed list of classes, see :data:`PARTS`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.frozen import FrozenEstimator
from sklearn.svm import LinearSVC

from isokern import _core, _soundness, learners
from isokern._container import ContainerReader, can_hold, describe_array, open_container, write_container
from isokern._rows import CsrRows
from isokern._scaling import Scaling
from isokern.feature_map import IsolationKernel
from isokern.kernels import NamedKernel
from isokern.learners._calibration import ScoreWindow
from isokern.learners._dual import BudgetedDual, Counts, KernelDual
from isokern.learners._linear import LinearModel
from isokern.learners._online import HeldRows, OnlineLearner
from isokern.learners._weights import CellWeights, SupportVectors
from isokern.learners.adaraker import AdaRakerModel
from isokern.learners.budgets import BUDGETS, Budget
from isokern.learners.fogd import FourierModel
from isokern.learners.nogd import NystromModel
from isokern.learners.svc import IKSVC
from isokern.partitionings import IsolationTrees, VoronoiCells

State = dict[str, Any]
Path = str | os.PathLike[str]

ESTIMATORS: tuple[type, ...] = (IsolationKernel, *(getattr(learners, name) for name in learners.__all__))


def save(model: Any, path: Path) -> None:
    """Save an estimator, fitted or not, to one file.

    The file takes the place of an older one only when it is whole. A partitioning or kernel function of your own
    cannot be saved, since that would need code in the file; use ``joblib.dump`` for such a model.

    Parameters
    ----------
    model : estimator of isokern
    path : str or path

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from isokern import IKOGDClassifier
    >>> from isokern.persistence import load, save
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> model = IKOGDClassifier(random_state=0).fit(X, X[:, 0] > 0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/model.isokern")
    ...     loaded = load(f"{folder}/model.isokern")
    >>> bool((loaded.predict(X) == model.predict(X)).all())
    True
    """
    if type(model) not in ESTIMATORS:
        raise TypeError(f"model must be an estimator of isokern; got {_name(model)}. Use joblib.dump for others.")
    write_file(path, model)


def load(path: Path) -> Any:
    """Load an estimator that ``save`` has written; it predicts and learns on as the saved one would have.

    No file can run code, and none takes absurdly more memory than its own size; one that is truncated, changed or of
    another kind is an error.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    model : estimator
    """
    model = read_file(path)
    if type(model) not in ESTIMATORS:
        raise ValueError(f"{os.fspath(path)}: it must hold an estimator; got {_name(model)}.")
    return model


def write_file(path: Path, value: Any) -> None:
    """Write a tree of plain values, arrays, CSR tables and estimators to one file.

    Parameters
    ----------
    path : str or path
    value : None, bool, int, float, str, list, tuple, dict, ndarray, CSR array or estimator
    """
    from isokern import __version__

    encoder = _Encoder()
    header = encoder.encode(value, _name(value))
    write_container(path, header, encoder.arrays, __version__)


def read_file(path: Path) -> Any:
    """Return what ``write_file`` has written.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    value : what was written
        An object that was there twice is so again.
    """
    with open_container(path) as reader:
        value = _Decoder(reader).decode(reader.header)
        reader.check_all_read()
        return value


# ------------------------------------------------------------------------------------- the classes that a file may name


class Part(NamedTuple):
    """How objects of a class become a state, a dict by name, and a state an object."""

    cls: type
    take: Callable[[Any], State]
    make: Callable[[State], Any]
    check: Callable[[Any], None]


def _part(
    cls: type,
    check: Callable[[Any], None] = lambda _: None,
    take: Callable[[Any], State] = lambda value: dict(vars(value)),
    make: Callable[[State], Any] | None = None,
) -> Part:
    return Part(cls, take, make or (lambda state: _restored(cls, state)), check)


def _restored(cls: type, state: State) -> Any:
    """Return an object of such attributes, none of which hides a method."""
    for name in state:
        found = getattr(cls, name, None)
        if callable(found) or isinstance(found, property):
            raise ValueError(f"{cls.__name__} must not have an attribute {name}.")
    value: Any = object.__new__(cls)
    vars(value).update(state)
    return value


_ESTIMATOR_CHECKS: dict[type, Callable[[Any], None]] = {
    OnlineLearner: _soundness.check_learner,
    IsolationKernel: _soundness.check_isolation_kernel,
    IKSVC: _soundness.check_svc,
}


def _estimator_part(cls: type) -> Part:
    for base, check in _ESTIMATOR_CHECKS.items():
        if issubclass(cls, base):
            return _part(cls, check)
    return _part(cls)


def _make_voronoi(state: State) -> VoronoiCells:
    _soundness.check_points(state["points"], state["samples"].nbytes)
    return VoronoiCells(**state)


def _make_dual(state: State) -> KernelDual:
    _soundness.check_dual_state(state)
    model = KernelDual.__new__(KernelDual)
    model.__setstate__(state)
    return model


_BIT_GENERATORS = {name: getattr(np.random, name) for name in ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")}


def _make_bit_generator(state: State) -> Any:
    # NumPy does not check where in their numbers MT19937 and Philox stand.
    if not (0 <= state["state"].get("pos", 0) <= 624 and 0 <= state.get("buffer_pos", 0) <= 4):
        raise ValueError("the place of a bit generator must be within its numbers.")
    generator = _BIT_GENERATORS[state["bit_generator"]](0)
    generator.state = {key: value for key, value in state.items() if key not in ("has_gauss", "gauss")}
    return generator


def _make_random_state(state: State) -> np.random.RandomState:
    random_state = np.random.RandomState(_make_bit_generator(state))
    random_state.set_state(state)
    return random_state


_BUDGETS: tuple[type, ...] = (Budget, *BUDGETS.values())

PARTS: dict[str, Part] = {
    part.cls.__name__: part
    for part in (
        *map(_estimator_part, ESTIMATORS),
        _part(FrozenEstimator),
        _part(LinearSVC),
        _part(
            IsolationTrees,
            _soundness.check_trees,
            take=lambda trees: {"n_columns": trees.n_columns, "n_cells": trees.n_cells, "arrays": trees.arrays},
            make=lambda state: IsolationTrees(**state),
        ),
        _part(VoronoiCells, take=lambda v: {"points": v.points, "samples": v.samples}, make=_make_voronoi),
        _part(CsrRows, take=lambda rows: rows._asdict(), make=lambda state: CsrRows(**state)),
        _part(Scaling, _soundness.check_scaling),
        _part(NamedKernel, _soundness.check_named_kernel),
        _part(CellWeights, _soundness.check_coefficients),
        _part(SupportVectors, _soundness.check_coefficients),
        _part(LinearModel, _soundness.check_linear),
        _part(FourierModel, _soundness.check_fourier),
        _part(NystromModel, _soundness.check_nystrom),
        _part(KernelDual, take=lambda model: model.__getstate__(), make=_make_dual),
        _part(BudgetedDual, _soundness.check_budgeted),
        *map(_part, _BUDGETS),
        _part(AdaRakerModel, _soundness.check_adaraker),
        _part(ScoreWindow, _soundness.check_window),
        _part(HeldRows, _soundness.check_held_rows),
        _part(Counts, _soundness.check_counts),
        _part(
            _core.Clock,
            take=lambda clock: {name: getattr(clock, name) for name in ("rounds", "n_support", "scale", "scale_sum")},
            make=lambda state: _core.Clock(**state),
        ),
        _part(np.random.RandomState, take=lambda random: random.get_state(legacy=False), make=_make_random_state),
        _part(
            np.random.Generator,
            take=lambda generator: generator.bit_generator.state,
            make=lambda state: np.random.Generator(_make_bit_generator(state)),
        ),
    )
}
_PLAIN = (type(None), bool, int, str)
_CONTAINERS = (list, tuple, dict)
_TABLES = {cls.__name__: cls for cls in (sparse.csr_array, sparse.csr_matrix)}


# ------------------------------------------------------------------------------------------------- values and headers


class _Encoder:
    """Turns values into a header; arrays are put aside in the order of their descriptions."""

    def __init__(self) -> None:
        self.arrays: list[NDArray[Any]] = []
        self._done: list[Any] = []  # objects, kept alive so that no other gets the id of one of them
        self._numbers: dict[int, int] = {}  # id of an object -> its place among those

    def encode(self, value: Any, where: str) -> Any:
        """Return what stands for a value in the header; ``where`` names it in errors."""
        kind = type(value)
        if kind in _PLAIN or (kind is float and math.isfinite(value)):
            return value
        if kind in _CONTAINERS:
            return self._encode_items(value, where)
        if isinstance(value, np.ndarray | np.generic):
            return self._encode_array(value, where)
        return {"kind": "float", "value": repr(value)} if kind is float else self._encode_object(value, where)

    def _encode_items(self, value: Any, where: str) -> Any:
        if isinstance(value, dict):
            value, kind = [[key, item] for key, item in value.items()], "dict"
        else:
            kind = type(value).__name__
        items = [self.encode(item, f"{where}[{i}]") for i, item in enumerate(value)]
        return items if kind == "list" else {"kind": kind, "items": items}

    def _encode_array(self, value: Any, where: str) -> State:
        if isinstance(value, np.ma.MaskedArray):
            parts = [value.data, np.ma.getmaskarray(value)]
            return {"kind": "masked", "parts": self.encode(parts, where)}
        array = np.asarray(value)
        if array.dtype.kind in "OT" and array.ndim == 1:
            items = self.encode(array.tolist(), where)
            return {"kind": "objects" if array.dtype.kind == "O" else "texts", "items": items}
        if not can_hold(array.dtype):
            raise _cannot_save(f"an array of {array.dtype}", where)
        self.arrays.append(array)
        return {"kind": "scalar" if isinstance(value, np.generic) else "array", **describe_array(array)}

    def _encode_table(self, value: Any, where: str) -> State:
        parts = [self.encode(part, where) for part in (value.data, value.indices, value.indptr)]
        return {"kind": "table", "class": type(value).__name__, "shape": list(map(int, value.shape)), "parts": parts}

    def _encode_object(self, value: Any, where: str) -> State:
        if type(value) in _TABLES.values():
            return self._encode_table(value, where)
        if id(value) in self._numbers:
            return {"kind": "same", "as": self._numbers[id(value)]}
        name = type(value).__name__
        if name not in PARTS or PARTS[name].cls is not type(value):
            raise _cannot_save(_name(value), where)
        state = PARTS[name].take(value)
        encoded = {key: self.encode(item, f"{where}.{key}") for key, item in state.items()}
        self._numbers[id(value)] = len(self._done)
        self._done.append(value)
        return {"kind": "object", "class": name, "state": encoded}


class _Decoder:
    """Turns a header back into values. It knows all there can be, and calls nothing that the file names."""

    def __init__(self, reader: ContainerReader) -> None:
        self._reader = reader
        self._objects: list[Any] = []

    def decode(self, header: Any) -> Any:
        """Return the value that a header stands for."""
        if type(header) is list:
            return [self.decode(item) for item in header]
        if type(header) is not dict:
            return header
        kind = header["kind"]
        if kind in ("array", "scalar"):
            array = self._reader.read_array(header)
            return array if kind == "array" else array[()]
        if kind not in ("float", "tuple", "dict", "objects", "texts", "masked", "table", "object", "same"):
            raise ValueError(f"a value must be of a known kind; got {kind!r}.")
        return getattr(self, f"_decode_{kind}")(header)

    def _decode_float(self, header: State) -> float:
        return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[header["value"]]

    def _decode_tuple(self, header: State) -> tuple[Any, ...]:
        return tuple(self.decode(item) for item in header["items"])

    def _decode_dict(self, header: State) -> dict[Any, Any]:
        return dict(map(self.decode, header["items"]))

    def _decode_objects(self, header: State) -> NDArray[Any]:
        items = [self.decode(item) for item in header["items"]]
        array = np.empty(len(items), dtype=object)
        array[:] = items
        return array

    def _decode_texts(self, header: State) -> NDArray[Any]:
        return np.array([str(self.decode(item)) for item in header["items"]], dtype="T")

    def _decode_masked(self, header: State) -> NDArray[Any]:
        return np.ma.MaskedArray(*self.decode(header["parts"]))

    def _decode_table(self, header: State) -> Any:
        shape = tuple(self._reader.check_count(n) for n in header["shape"][:1]) + tuple(header["shape"][1:])
        table = _TABLES[header["class"]](tuple(self.decode(part) for part in header["parts"]), shape=shape)
        table.check_format(full_check=True)
        return table

    def _decode_object(self, header: State) -> Any:
        part = PARTS[header["class"]]
        value = part.make({name: self.decode(item) for name, item in header["state"].items()})
        part.check(value)
        self._objects.append(value)
        return value

    def _decode_same(self, header: State) -> Any:
        return self._objects[self._reader.check_count(header["as"])]


def _cannot_save(what: str, where: str) -> ValueError:
    return ValueError(
        f"model must be of isokern's own parts to be saved; got {what} in {where}. Use joblib.dump for it, and "
        "joblib.load only for files that you trust."
    )


def _name(value: Any) -> str:
    return getattr(value, "__qualname__", None) or type(value).__name__
