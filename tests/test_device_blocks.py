"""Blocks on a device: how many rows they have, what they cost, what happens when memory runs out, how they travel."""

from __future__ import annotations

import warnings
from collections import Counter
from contextlib import contextmanager
from types import SimpleNamespace

import array_api_strict
import numpy as np
import pytest

from arrays import LIBRARIES, array_of, csr_tensor, needs_torch, to_numpy
from isokern import IKOGDClassifier, IsolationKernel
from isokern.devices import blocks as device_blocks
from isokern.devices import pytorch
from isokern.devices.blocks import Blocks, Pending
from isokern.devices.operations import check_products, memory_budget
from isokern.devices.trees import TreesOnDevice
from isokern.devices.voronoi import VoronoiOnDevice

PARTITIONINGS = ["voronoi", "tree"]
WAITS = {"_local_scalar_dense", "nonzero", "item", "equal", "is_nonzero", "unique", "_unique2", "masked_select"}


@pytest.fixture(scope="module")
def table():
    return np.random.default_rng(0).normal(size=(3000, 7))


@pytest.fixture
def rows_a_block(monkeypatch):
    """Return a function that sets how many rows blocks have at most."""
    return lambda n: monkeypatch.setattr(device_blocks, "_MOST_ROWS", n)


# How large blocks are


@pytest.mark.parametrize(("bytes_per_row", "budget", "n_rows"), [(10, 1000, 100), (10, 5, 1), (1, 2**40, 8192)])
def test_a_block_has_as_many_rows_as_fit_but_neither_none_nor_too_many(bytes_per_row, budget, n_rows):
    assert Blocks(bytes_per_row, budget).n_rows == n_rows


@pytest.mark.parametrize("partitioning", PARTITIONINGS)
def test_blocks_for_more_partitionings_have_fewer_rows(partitioning, table):
    rows = []
    for n_partitionings in (10, 1000):
        kernel = IsolationKernel(partitioning, n_partitionings, 128, random_state=0).fit(table)
        kernel.apply(array_api_strict.asarray(table[:2]))
        rows += [blocks.n_rows for _, blocks in kernel.map_.partitionings.on_devices.values()]
    assert rows[1] < rows[0]


@needs_torch
def test_a_gpu_s_blocks_take_half_of_what_is_free(monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (3_000_000, 9_000_000))
    monkeypatch.setattr(torch.mps, "recommended_max_memory", lambda: 5_000_000, raising=False)
    monkeypatch.setattr(torch.mps, "driver_allocated_memory", lambda: 1_000_000, raising=False)
    xp = _torch_namespace()
    assert memory_budget(xp, torch.device("cuda:1")) == 1_500_000
    assert memory_budget(xp, torch.device("mps")) == 2_000_000


@needs_torch
def test_memory_stays_within_what_blocks_may_take(run_script, memory_is_known):
    code = """
import torch
X = np.random.default_rng(0).normal(size=(2000, 5)).astype(np.float32)
kernel = IsolationKernel("voronoi", 100, 1024, random_state=0).fit(X)
rows = torch.from_numpy(np.tile(X, (2, 1)))
kernel.apply(rows[:2])
before = megabytes("VmHWM")
kernel.apply(rows)
print(megabytes("VmHWM") - before)
"""
    assert float(run_script(code)) < 1.5 * 2**28 / 2**20  # all scores at once would take 1,600


# Out of memory


class FullDevice:
    """A mapper on a device that has memory for few rows."""

    def __init__(self, find, n_rows, error):
        self.find_all, self.n_rows, self.error, self.sizes = find, n_rows, error, []

    def find(self, rows):
        self.sizes.append(rows[0].shape[0])
        if rows[0].shape[0] > self.n_rows:
            raise self.error
        return self.find_all(rows)


OUT_OF_MEMORY = [
    MemoryError(),
    RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    RuntimeError("MPS backend out of memory (MPS allocated: 8 GB)"),
    RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate"),
    RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate"),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
]


def fill_device(kernel, monkeypatch, n_rows, error):
    """Let a kernel's mapper run out of memory beyond so many rows."""
    ((mapper, _),) = kernel.map_.partitionings.on_devices.values()
    full = FullDevice(mapper.find, n_rows, error)
    monkeypatch.setattr(mapper, "find", full.find)
    return full


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("error", OUT_OF_MEMORY, ids=range(len(OUT_OF_MEMORY)))
def test_blocks_are_halved_until_they_fit_and_that_is_said_once(error, library, table, monkeypatch):
    kernel = IsolationKernel("voronoi", 5, 8, random_state=0).fit(table)
    X = array_of(library, table)
    kernel.apply(X[:2, :])
    full = fill_device(kernel, monkeypatch, 1000, error)
    with pytest.warns(UserWarning, match="The device is out of memory: blocks now have 1500 rows or fewer"):
        cells = kernel.apply(X)
    np.testing.assert_array_equal(to_numpy(cells), kernel.apply(table))
    assert full.sizes == [3000, 1500, 750, 750, 750, 750]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel.apply(X)  # which remembers


@needs_torch
def test_numpy_rows_go_on_in_halved_blocks_too(table, monkeypatch):
    import torch

    kernel = IsolationKernel("voronoi", 5, 8, random_state=0).fit(table)
    expected = kernel.apply(table)
    kernel.set_params(device="torch:cpu").apply(table[:100])
    fill_device(kernel, monkeypatch, 700, torch.OutOfMemoryError("out of memory"))
    with pytest.warns(UserWarning, match="out of memory"):
        np.testing.assert_array_equal(kernel.apply(table), expected)


def test_a_device_without_memory_for_one_row_is_an_error_with_a_cure(table, monkeypatch):
    kernel, X = IsolationKernel("tree", 5, 8, random_state=0).fit(table), array_api_strict.asarray(table[:10])
    kernel.apply(X)
    fill_device(kernel, monkeypatch, 0, MemoryError())
    with (
        pytest.warns(UserWarning, match="out of memory"),
        pytest.raises(MemoryError, match=r'at least 1 row.*Use fewer cells or partitionings, or device="cpu"'),
    ):
        kernel.apply(X)


def test_other_errors_are_not_taken_for_a_lack_of_memory(table, monkeypatch):
    kernel, X = IsolationKernel("tree", 5, 8, random_state=0).fit(table), array_api_strict.asarray(table)
    kernel.apply(X)
    fill_device(kernel, monkeypatch, 0, RuntimeError("device-side assert triggered"))
    with pytest.raises(RuntimeError, match="device-side assert"):
        kernel.apply(X)


# What a block costs


def _torch_namespace():
    from isokern.arrays import namespace

    return namespace(array_of("torch", np.zeros(1)))


@contextmanager
def counted():
    """Count the operations that PyTorch dispatches, by name; views cost nothing."""
    from torch.utils._python_dispatch import TorchDispatchMode

    counts = Counter()

    class Counting(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            counts[function.overloadpacket.__name__] += not function.is_view
            return function(*args, **(kwargs or {}))

    with Counting():
        yield counts


def operations(mapper_class, kernel, X, monkeypatch):
    """Return the operations from the first block to the last, without what comes before and after."""
    counts, found = Counter(), Blocks.found

    def counting(self, source, mapper):
        assert isinstance(mapper, mapper_class)
        with counted() as ours:
            results = list(found(self, source, mapper))
        counts.update(ours)
        return iter(results)

    with monkeypatch.context() as patch:
        patch.setattr(Blocks, "found", counting)
        kernel.apply(X)
    return counts


@needs_torch
@pytest.mark.parametrize("kind", ["dense", "csr", "numpy"])
@pytest.mark.parametrize(("partitioning", "mapper"), [("voronoi", VoronoiOnDevice), ("tree", TreesOnDevice)])
@pytest.mark.parametrize("scale", [None, "maxabs"])
def test_operations_follow_the_blocks_and_not_the_rows(
    partitioning, mapper, kind, scale, table, monkeypatch, rows_a_block
):
    make = {"dense": lambda X: array_of("torch", X), "csr": csr_tensor, "numpy": lambda X: X}[kind]
    totals = []
    for n, size in ((100, 100), (1000, 1000), (3000, 1000), (300, 100)):
        rows_a_block(size)
        device = "torch:cpu" if kind == "numpy" else None
        kernel = IsolationKernel(partitioning, 30, 64, scale=scale, device=device, random_state=0).fit(table)
        kernel.apply(make(table[:2]))
        totals.append(operations(mapper, kernel, make(table[:n]), monkeypatch))
    one, large, three_large, three = totals
    assert one == large
    assert three == three_large == Counter({name: 3 * count for name, count in one.items()})
    assert not WAITS & one.keys()


@needs_torch
def test_operations_do_not_follow_the_partitionings(table, monkeypatch):
    totals = []
    for n_partitionings in (10, 100):
        kernel = IsolationKernel("voronoi", n_partitionings, 64, random_state=0).fit(table)
        X = array_of("torch", table)
        kernel.apply(X[:2])
        totals.append(operations(VoronoiOnDevice, kernel, X, monkeypatch))
    assert totals[0] == totals[1]
    assert totals[0].total() < 40


@needs_torch
def test_operations_on_trees_follow_their_depth(table, monkeypatch):
    totals = []
    for max_depth in (3, 6, 9):
        kernel = IsolationKernel("tree", 30, 600, max_depth=max_depth, random_state=0).fit(table)
        X = array_of("torch", table)
        kernel.apply(X[:2])
        totals.append(operations(TreesOnDevice, kernel, X, monkeypatch).total())
    assert totals[2] - totals[1] == totals[1] - totals[0] > 0


@needs_torch
def test_scores_are_found_without_asking_the_device(table):
    model = IKOGDClassifier(n_cells=16, n_partitionings=10, random_state=0).fit(table, table[:, 0] > 0)
    cells = model.kernel_.apply(array_of("torch", table))
    model.decision_function_cells(cells)
    totals = []
    for n in (100, 3000):
        with counted() as counts:
            model.decision_function_cells(cells[:n])
        totals.append(counts)
    assert totals[0] == totals[1]
    assert not WAITS & totals[0].keys()


# Precision


@needs_torch
@pytest.mark.parametrize("precision", ["high", "medium"])
def test_coarser_products_are_switched_off_and_left_as_they_were(precision, table):
    import torch

    kernel = IsolationKernel("voronoi", 10, 64, random_state=0).fit(table)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        np.testing.assert_array_equal(to_numpy(kernel.apply(array_of("torch", table))), kernel.apply(table))
        assert torch.get_float32_matmul_precision() == precision
    finally:
        torch.set_float32_matmul_precision(before)


@needs_torch
def test_autocast_changes_no_cell(table):
    import torch

    kernel = IsolationKernel("voronoi", 10, 64, random_state=0).fit(table)
    kernel.apply(array_of("torch", table[:2]))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        cells = kernel.apply(array_of("torch", table))
    np.testing.assert_array_equal(to_numpy(cells), kernel.apply(table))


def test_a_device_that_multiplies_with_fewer_bits_is_refused():
    coarse = SimpleNamespace(
        float32=None, full=lambda shape, value, dtype, device: np.full(shape, value, dtype=np.float16)
    )
    with pytest.raises(ValueError, match="device must multiply float32 matrices in full precision; here was off by"):
        check_products(coarse, "here")
    check_products(array_api_strict, array_api_strict.Device("CPU_DEVICE"))


# Travelling


def test_only_the_last_few_results_are_waited_for_late():
    done, pending = [], Pending()
    for k in range(10):
        pending.add(lambda k=k: done.append(k))
        assert len(done) == max(0, k - 3)
    pending.finish()
    assert done == list(range(10))


class FakeCuda:
    """What a link asks of CUDA, written down."""

    def __init__(self, log):
        self.log = log
        self.computing = SimpleNamespace(wait_stream=lambda stream: log.append(f"computing waits for {stream}"))

    def Stream(self, device):  # noqa: N802
        return "copying"

    @contextmanager
    def stream(self, stream):
        self.log.append(f"in {stream}")
        yield
        self.log.append(f"out of {stream}")

    def current_stream(self, device):
        return self.computing

    def Event(self):  # noqa: N802
        return SimpleNamespace(
            record=lambda stream: self.log.append("event recorded"),
            synchronize=lambda: self.log.append("event waited for"),
        )


@pytest.fixture
def cuda(monkeypatch):
    """Let PyTorch's CPU device pass for a GPU; return what is asked of it, in order."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed; make test-gpu installs it")
    log = []

    class Pinned:
        def __init__(self, tensor):
            self.tensor, self.shape, self.dtype = tensor, tensor.shape, tensor.dtype

        def to(self, device, non_blocking):
            log.append(f"copied there, waiting {not non_blocking}")
            return Moved(self.tensor)

        def copy_(self, tensor, non_blocking):
            log.append(f"copied back, waiting {not non_blocking}")
            self.tensor.copy_(tensor)

        def numpy(self):
            return self.tensor.numpy()

    class Moved:
        def __init__(self, tensor):
            self.tensor = tensor

        def record_stream(self, stream):
            log.append("memory kept until read")

    fake = SimpleNamespace(
        cuda=FakeCuda(log),
        from_numpy=lambda array: SimpleNamespace(pin_memory=lambda: Pinned(torch.from_numpy(array))),
        empty=lambda shape, dtype, device, pin_memory: Pinned(torch.empty(shape, dtype=dtype)),
    )
    monkeypatch.setattr(pytorch, "import_torch", lambda: fake)
    return log


def test_blocks_travel_to_a_gpu_by_a_stream_of_their_own_which_only_the_device_waits_for(cuda):
    link = pytorch.link_to(SimpleNamespace(type="cuda"))
    values = np.arange(6.0).reshape(2, 3)
    moved = link.send(values)
    assert cuda == [
        "in copying",
        "copied there, waiting False",
        "out of copying",
        "computing waits for copying",
        "memory kept until read",
    ]
    cuda.clear()
    fetched = link.fetch(moved.tensor)
    assert cuda == ["copied back, waiting False", "event recorded"]
    np.testing.assert_array_equal(fetched(), values)
    assert cuda[-1] == "event waited for"


# Bad input that only PyTorch has


@needs_torch
@pytest.mark.parametrize("device", ["cuda", "cuda:7", "mps", "xpu"])
def test_a_device_that_is_not_there_is_an_error_with_a_cure(device, table):
    import torch

    if getattr(torch, device.partition(":")[0]).is_available():
        pytest.skip(f"there is a device {device} here")
    with pytest.raises(
        ValueError, match=f"device must be one that PyTorch finds; got '{device}': .*Use device=\"cpu\""
    ):
        IsolationKernel(device=device).fit(table)
    kernel = IsolationKernel(n_cells=8).fit(table).set_params(device=device)
    with pytest.raises(ValueError, match="device must be one that PyTorch finds"):
        kernel.apply(table)


@needs_torch
def test_tensors_that_require_grad_are_refused(table):
    X = array_of("torch", table).requires_grad_()
    kernel = IsolationKernel(n_cells=8).fit(table)
    model = IKOGDClassifier(n_cells=8).fit(table, table[:, 0] > 0)
    for method in (kernel.apply, kernel.transform, kernel.similarity, kernel.fit, model.predict):
        with pytest.raises(ValueError, match=r"X must not require grad.*Give X.detach\(\) instead"):
            method(X)
    np.testing.assert_array_equal(to_numpy(kernel.apply(X.detach())), kernel.apply(table))


@needs_torch
def test_sparse_tensors_of_other_layouts_are_refused(table):
    kernel = IsolationKernel(n_cells=8).fit(table)
    with pytest.raises(ValueError, match=r"X must be dense or CSR; got torch.sparse_coo. Call X.to_sparse_csr\(\)"):
        kernel.apply(array_of("torch", table).to_sparse())


@needs_torch
def test_tensors_and_other_arrays_are_not_compared(table):
    kernel = IsolationKernel(n_cells=8).fit(table)
    with pytest.raises(ValueError, match="on the device of X, torch on cpu; got array_api_strict on"):
        kernel.similarity(array_of("torch", table), array_api_strict.asarray(table))
