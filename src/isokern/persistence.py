"""Save and load models without pickle, so that a file from an untrusted source cannot run code.

A file contains a tree of plain values, arrays and objects of the classes listed in ``ESTIMATORS`` and ``PARTS``. A part
is saved as its state and rebuilt by its own ``from_state`` and ``check``, see ``isokern.parts``.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.frozen import FrozenEstimator

from isokern import learners
from isokern.adaptive_trees import AdaptiveTrees
from isokern.checks import MOST_JOBS
from isokern.container import ContainerReader, can_hold, describe_array, open_container, write_container
from isokern.feature_map import IsolationKernel
from isokern.fitted_map import FittedMap
from isokern.frames import Categories
from isokern.inspection import SimilarRows
from isokern.kernels import NamedKernel
from isokern.learners.adaraker import AdaRakerModel
from isokern.learners.base_race import Selection
from isokern.learners.budgets import BUDGETS, Budget
from isokern.learners.calibration import ScoreWindow
from isokern.learners.classes import ClassBook
from isokern.learners.clock import Clock
from isokern.learners.column_weights import StreamWeights
from isokern.learners.duals import BudgetedDual, KernelDual
from isokern.learners.fogd import FourierModel
from isokern.learners.growth import FirstRows, Growth
from isokern.learners.ladder import Ladder
from isokern.learners.linear import LinearModel
from isokern.learners.linear_term import LinearTerm
from isokern.learners.moments import Moments
from isokern.learners.nogd import NystromModel
from isokern.learners.number_race import NumberRace
from isokern.learners.one_vs_rest import OneVsRest
from isokern.learners.race import Race
from isokern.learners.recent import RecentRows
from isokern.learners.residuals import Residuals
from isokern.learners.scale_weights import ScaleWeights
from isokern.learners.svm_choice import Chosen
from isokern.learners.warm_up import WarmUp
from isokern.learners.weights import CellWeights, SupportVectors
from isokern.partitionings import IsolationTrees, VoronoiCells
from isokern.parts import State, check_types, is_count, need, restore_estimator
from isokern.rows import CsrRows
from isokern.scaling import Scaling

Path = str | os.PathLike[str]

ESTIMATORS: tuple[type, ...] = (IsolationKernel, *(getattr(learners, name) for name in learners.__all__))
PARTS: tuple[type, ...] = (
    *(FittedMap, IsolationTrees, AdaptiveTrees, VoronoiCells, CsrRows, Scaling, Categories),
    *(OneVsRest, Race, NumberRace, Selection, Chosen, ScaleWeights, LinearTerm),
    *(FirstRows, Growth, Ladder, StreamWeights, RecentRows),
    *(Residuals, Moments, ClassBook, ScoreWindow, WarmUp, Clock, CellWeights, SupportVectors),
    *(NamedKernel, KernelDual, BudgetedDual, Budget, *BUDGETS.values()),
    *(LinearModel, FourierModel, NystromModel, AdaRakerModel),
    SimilarRows,
)
SAVED = (*ESTIMATORS, SimilarRows)


def save(model: Any, path: Path, *, buffer: bool = True) -> None:
    """Save an estimator, fitted or not, or an index of rows to one file.

    An older file is replaced atomically. Your own partitionings and kernel functions cannot be saved, because that
    would require code in the file; use ``joblib.dump`` for such models.

    Parameters
    ----------
    model : estimator of isokern, or SimilarRows
    path : str or path
    buffer : bool, default=True
        Whether the file holds the rows that a model of a stream keeps to grow or renew its map from. Without them, the
        map stops growing, and an adaptive learner renews it from later rows. Predictions are the same.

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
    if type(model) not in SAVED:
        raise TypeError(f"model must be an estimator of isokern; got {_name(model)}. Use joblib.dump for others.")
    if not buffer and hasattr(model, "warm_up_"):
        raise ValueError("buffer must be True before the warm-up is over, because there are only buffered rows yet.")
    if not buffer and hasattr(model, "learned_"):
        model = model.without_rows()
    write_file(path, model)


def load(path: Path) -> Any:
    """Load an estimator or index saved by ``save``; it predicts and continues learning exactly like the saved one.

    Loading never runs code from the file and bounds its memory by the file's size. Truncated, altered and foreign
    files raise a ValueError.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    model : estimator or SimilarRows
    """
    model = read_file(path)
    if type(model) not in SAVED:
        raise ValueError(f"{os.fspath(path)}: it must contain an estimator; got {_name(model)}.")
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
    """Read a file written by ``write_file``.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    value : the value that was written
        Objects that occurred several times are shared again.
    """
    with open_container(path) as reader:
        value = _Decoder(reader).decode(reader.header)
        reader.check_all_read()
        return value


class _Kind(NamedTuple):
    """How objects of a class are converted to a state and rebuilt, see ``isokern.parts``."""

    cls: type
    state: Callable[[Any], State]
    make: Callable[[State], Any]
    check: Callable[[Any], None]


def _estimator(cls: Any) -> _Kind:
    return _Kind(cls, lambda value: dict(vars(value)), lambda state: restore_estimator(cls, state), cls.check)


def _part(cls: Any) -> _Kind:
    return _Kind(cls, cls.state, cls.from_state, _check_part)


def _check_part(part: Any) -> None:
    check_types(part)
    need(getattr(part, "n_jobs", 0) <= MOST_JOBS, "n_jobs must be a number of threads")
    part.check()


_BIT_GENERATORS = {name: getattr(np.random, name) for name in ("MT19937", "PCG64", "PCG64DXSM", "Philox", "SFC64")}


def _make_bit_generator(state: State) -> Any:
    # NumPy does not validate the position in the buffers of MT19937 and Philox.
    if not (0 <= state["state"].get("pos", 0) <= 624 and 0 <= state.get("buffer_pos", 0) <= 4):
        raise ValueError("the position of a bit generator must be within its buffer.")
    generator = _BIT_GENERATORS[state["bit_generator"]](0)
    generator.state = {key: value for key, value in state.items() if key not in ("has_gauss", "gauss")}
    return generator


def _make_random_state(state: State) -> np.random.RandomState:
    random_state = np.random.RandomState(_make_bit_generator(state))
    random_state.set_state(state)
    return random_state


def _unchecked(value: Any) -> None:
    """Accept any value."""


_OTHERS = (  # classes of other libraries that occur in parameters and parts
    _Kind(FrozenEstimator, vars, functools.partial(restore_estimator, FrozenEstimator), _unchecked),
    _Kind(np.random.RandomState, lambda rng: rng.get_state(legacy=False), _make_random_state, _unchecked),
    _Kind(
        np.random.Generator,
        lambda rng: rng.bit_generator.state,
        lambda state: np.random.Generator(_make_bit_generator(state)),
        _unchecked,
    ),
)
_KINDS = {kind.cls.__name__: kind for kind in (*map(_estimator, ESTIMATORS), *map(_part, PARTS), *_OTHERS)}
_PLAIN = (type(None), bool, int, str)
_CONTAINERS = (list, tuple, dict)
_TABLES = {cls.__name__: cls for cls in (sparse.csr_array, sparse.csr_matrix)}


class _Encoder:
    """Encode values as a JSON header; collect arrays in the order of their descriptions."""

    def __init__(self) -> None:
        self.arrays: list[NDArray[Any]] = []
        self._done: list[Any] = []  # encoded objects, kept alive so that ids stay unique
        self._numbers: dict[int, int] = {}  # id of an object -> its index in _done

    def encode(self, value: Any, where: str) -> Any:
        """Return the header entry of a value; ``where`` names the value in errors."""
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
        if name not in _KINDS or _KINDS[name].cls is not type(value):
            raise _cannot_save(_name(value), where)
        state = _KINDS[name].state(value)
        encoded = {key: self.encode(item, f"{where}.{key}") for key, item in state.items()}
        self._numbers[id(value)] = len(self._done)
        self._done.append(value)
        return {"kind": "object", "class": name, "state": encoded}


class _Decoder:
    """Decode a header. Only known kinds and classes are decoded; nothing named by the file is called."""

    def __init__(self, reader: ContainerReader) -> None:
        self._reader = reader
        self._objects: list[tuple[Any, int]] = []  # and the number of objects that each contains, itself included
        self._n_objects = 0

    def decode(self, header: Any) -> Any:
        """Return the value of a header entry."""
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

    def _decode_items(self, header: State, kind: str = "items") -> list[Any]:
        need(type(header[kind]) is list, f"{kind} must be a list")
        return [self.decode(item) for item in header[kind]]

    def _decode_float(self, header: State) -> float:
        return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[header["value"]]

    def _decode_tuple(self, header: State) -> tuple[Any, ...]:
        return tuple(self._decode_items(header))

    def _decode_dict(self, header: State) -> dict[Any, Any]:
        items = self._decode_items(header)
        need(all(type(item) is list for item in items), "items must be lists of a key and a value")
        return dict(items)

    def _decode_objects(self, header: State) -> NDArray[Any]:
        return np.fromiter(self._decode_items(header), dtype=object)

    def _decode_texts(self, header: State) -> NDArray[Any]:
        items = self._decode_items(header)
        need(all(type(item) is str for item in items), "texts must be strings")
        return np.array(items, dtype="T")

    def _decode_masked(self, header: State) -> NDArray[Any]:
        data, mask = self._decode_items(header, "parts")
        need(isinstance(data, np.ndarray) and isinstance(mask, np.ndarray), "parts must be arrays")
        return np.ma.MaskedArray(data, mask)

    def _decode_table(self, header: State) -> Any:
        n_rows, n_columns = header["shape"]
        need(is_count(n_columns), "the number of columns must be a count")
        parts = self._decode_items(header, "parts")
        table = _TABLES[header["class"]](tuple(parts), shape=(self._reader.check_count(n_rows), n_columns))
        table.check_format(full_check=True)
        return table

    def _decode_object(self, header: State) -> Any:
        n_before = self._n_objects
        kind = _KINDS[header["class"]]
        value = kind.make({name: self.decode(item) for name, item in header["state"].items()})
        kind.check(value)
        self._count_objects(1)
        self._objects.append((value, self._n_objects - n_before))
        return value

    def _decode_same(self, header: State) -> Any:
        value, n_objects = self._objects[self._reader.check_count(header["as"])]
        self._count_objects(n_objects)
        return value

    def _count_objects(self, n: int) -> None:
        """Count objects as often as they occur: code that walks a model, for example ``repr``, meets them as often."""
        self._n_objects += n
        self._reader.check_count(self._n_objects)


def _cannot_save(what: str, where: str) -> ValueError:
    return ValueError(
        f"model must consist of isokern's own parts to be saved; got {what} in {where}. Use joblib.dump for it, and "
        "joblib.load only for files that you trust."
    )


def _name(value: Any) -> str:
    return getattr(value, "__qualname__", None) or type(value).__name__
