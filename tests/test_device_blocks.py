"""Test blocks on a device: their size, their cost, running out of memory, precision and copies."""

from __future__ import annotations

import warnings
from collections import Counter
from contextlib import contextmanager
from types import SimpleNamespace

import array_api_strict
import numpy as np
import pytest

from arrays import LIBRARIES, array_of, assert_same_cells, csr_tensor, needs_torch, to_numpy
from isokern import IKOGDClassifier, IsolationKernel
from isokern.arrays import namespace
from isokern.devices import blocks as device_blocks
from isokern.devices import pytorch
from isokern.devices.blocks import Blocks, lagging
from isokern.devices.operations import check_products, memory_budget
from isokern.devices.trees import TreesOnDevice
from isokern.devices.voronoi import VoronoiOnDevice

MAPPERS = {"voronoi": VoronoiOnDevice, "tree": TreesOnDevice}
WAITS = {"_local_scalar_dense", "nonzero", "item", "equal", "is_nonzero", "unique", "_unique2", "masked_select"}


@pytest.fixture(scope="module")
def table():
    return np.random.default_rng(0).normal(size=(3000, 7))


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="PyTorch is not installed; make test-gpu installs it")


def small_kernel(table, partitioning="voronoi", n_partitionings=5, n_cells=8, **options):
    return IsolationKernel(partitioning, n_partitionings, n_cells, random_state=0, **options).fit(table)


# Size of blocks


@pytest.mark.parametrize(("bytes_per_row", "budget", "n_rows"), [(10, 1000, 100), (10, 5, 1), (1, 2**40, 8192)])
def test_a_block_has_as_many_rows_as_fit_within_limits(bytes_per_row, budget, n_rows):
    assert Blocks(bytes_per_row, budget).n_rows == n_rows


@pytest.mark.parametrize("partitioning", MAPPERS)
def test_blocks_for_more_partitionings_have_fewer_rows(partitioning, table):
    rows = []
    for n_partitionings in (10, 1000):
        kernel = small_kernel(table, partitioning, n_partitionings, 128)
        kernel.apply(array_api_strict.asarray(table[:2]))
        rows += [blocks.n_rows for _, blocks in kernel.map_.partitionings.on_devices.values()]
    assert rows[1] < rows[0]


def test_a_gpu_s_blocks_take_half_of_the_free_memory(torch, monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (3_000_000, 9_000_000))
    monkeypatch.setattr(torch.mps, "recommended_max_memory", lambda: 5_000_000, raising=False)
    monkeypatch.setattr(torch.mps, "driver_allocated_memory", lambda: 1_000_000, raising=False)
    xp = namespace(torch.zeros(1))
    assert memory_budget(xp, torch.device("cuda:1")) == 1_500_000
    assert memory_budget(xp, torch.device("mps")) == 2_000_000


@needs_torch
def test_memory_stays_within_the_budget_of_a_block(run_script, memory_is_known):
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

OUT_OF_MEMORY = [
    MemoryError(),
    RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    RuntimeError("MPS backend out of memory (MPS allocated: 8 GB)"),
    RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate"),
    RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate"),
    RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
]


def fill_device(kernel, monkeypatch, n_rows, error):
    """Let a kernel's mapper run out of memory beyond n_rows rows; return a list of the sizes of its blocks."""
    ((mapper, _),) = kernel.map_.partitionings.on_devices.values()
    find, sizes = mapper.find, []

    def find_few(rows):
        sizes.append(rows[0].shape[0])
        if sizes[-1] > n_rows:
            raise error
        return find(rows)

    monkeypatch.setattr(mapper, "find", find_few)
    return sizes


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("error", OUT_OF_MEMORY, ids=range(len(OUT_OF_MEMORY)))
def test_blocks_are_halved_until_they_fit_with_one_warning(error, library, table, monkeypatch):
    kernel = small_kernel(table)
    kernel.apply(array_of(library, table[:2]))
    sizes = fill_device(kernel, monkeypatch, 1000, error)
    with pytest.warns(UserWarning, match="The device is out of memory: blocks now have 1500 rows or fewer"):
        assert_same_cells(kernel, table, library)
    assert sizes == [3000, 1500, 750, 750, 750, 750]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel.apply(array_of(library, table))  # the size of blocks is remembered


def test_blocks_of_numpy_rows_are_halved_too(torch, table, monkeypatch):
    kernel = small_kernel(table)
    expected = kernel.apply(table)
    kernel.set_params(device="torch:cpu").apply(table[:100])
    fill_device(kernel, monkeypatch, 700, torch.OutOfMemoryError("out of memory"))
    with pytest.warns(UserWarning, match="out of memory"):
        np.testing.assert_array_equal(kernel.apply(table), expected)


def test_a_device_without_memory_for_one_row_is_an_error_with_a_cure(table, monkeypatch):
    kernel, X = small_kernel(table, "tree"), array_api_strict.asarray(table[:10])
    kernel.apply(X)
    fill_device(kernel, monkeypatch, 0, MemoryError())
    with (
        pytest.warns(UserWarning, match="out of memory"),
        pytest.raises(MemoryError, match=r'at least 1 row.*Use fewer cells or partitionings, or device="cpu"'),
    ):
        kernel.apply(X)


def test_other_errors_are_not_taken_for_a_lack_of_memory(table, monkeypatch):
    kernel, X = small_kernel(table, "tree"), array_api_strict.asarray(table)
    kernel.apply(X)
    fill_device(kernel, monkeypatch, 0, RuntimeError("device-side assert triggered"))
    with pytest.raises(RuntimeError, match="device-side assert"):
        kernel.apply(X)


# Cost of a block


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


def operations(kernel, X, monkeypatch):
    """Return the operations on all blocks, without those before and after."""
    kernel.apply(X)  # moves the map to the device
    counts, found = Counter(), Blocks.found

    def counting(self, source, mapper):
        assert isinstance(mapper, MAPPERS[kernel.partitioning])
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
@pytest.mark.parametrize("partitioning", MAPPERS)
@pytest.mark.parametrize("scale", [None, "maxabs"])
def test_the_number_of_operations_depends_on_blocks_not_on_rows(partitioning, kind, scale, table, monkeypatch):
    make = {"dense": lambda X: array_of("torch", X), "csr": csr_tensor, "numpy": lambda X: X}[kind]
    totals = []
    for n, size in ((100, 100), (1000, 1000), (3000, 1000), (300, 100)):
        monkeypatch.setattr(device_blocks, "_MOST_ROWS", size)
        device = "torch:cpu" if kind == "numpy" else None
        kernel = small_kernel(table, partitioning, 30, 64, scale=scale, device=device)
        totals.append(operations(kernel, make(table[:n]), monkeypatch))
    one, large, three_large, three = totals
    assert one == large
    assert three == three_large == Counter({name: 3 * count for name, count in one.items()})
    assert not WAITS & one.keys()


@needs_torch
def test_the_number_of_operations_does_not_depend_on_the_partitionings(table, monkeypatch):
    kernels = [small_kernel(table, n_partitionings=t, n_cells=64) for t in (10, 100)]
    few, many = (operations(kernel, array_of("torch", table), monkeypatch) for kernel in kernels)
    assert few == many
    assert few.total() < 40


@needs_torch
def test_the_number_of_operations_on_trees_is_linear_in_their_depth(table, monkeypatch):
    kernels = [small_kernel(table, "tree", 30, 600, max_depth=depth) for depth in (3, 6, 9)]
    totals = [operations(kernel, array_of("torch", table), monkeypatch).total() for kernel in kernels]
    assert totals[2] - totals[1] == totals[1] - totals[0] > 0


@needs_torch
def test_scores_are_computed_without_waiting_for_the_device(table):
    model = IKOGDClassifier(linear=False, n_cells=16, n_partitionings=10, random_state=0).fit(table, table[:, 0] > 0)
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


@pytest.mark.parametrize("precision", ["high", "medium"])
def test_low_precision_products_are_disabled_and_then_restored(precision, torch, table):
    kernel = small_kernel(table, n_cells=64)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        assert_same_cells(kernel, table, "torch")
        assert torch.get_float32_matmul_precision() == precision
    finally:
        torch.set_float32_matmul_precision(before)


def test_autocast_does_not_change_cells(torch, table):
    kernel = small_kernel(table, n_cells=64)
    kernel.apply(array_of("torch", table[:2]))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert_same_cells(kernel, table, "torch")


def test_a_device_with_low_precision_products_is_an_error():
    coarse = SimpleNamespace(
        float32=None, full=lambda shape, value, dtype, device: np.full(shape, value, dtype=np.float16)
    )
    with pytest.raises(ValueError, match="device must multiply float32 matrices in full precision; here was off by"):
        check_products(coarse, "here")
    check_products(array_api_strict, array_api_strict.Device("CPU_DEVICE"))


# Copies


def test_a_few_results_are_pending_while_the_next_are_computed():
    computed = []
    items = lagging((computed.append(k) or k for k in range(10)), 4)
    for k, item in enumerate(items):
        assert (item, len(computed)) == (k, min(10, k + 5))
    assert item == 9


class FakeCuda:
    """Log what a link asks of CUDA."""

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
def cuda(monkeypatch, torch):
    """Let PyTorch's CPU device pass for a GPU; return a log of what it is asked to do."""
    log = []

    class Pinned:
        def __init__(self, tensor):
            self.tensor = tensor

        def to(self, device, non_blocking):
            log.append(f"copied there, waiting {not non_blocking}")
            return SimpleNamespace(
                tensor=self.tensor, record_stream=lambda stream: log.append("memory kept until read")
            )

        def copy_(self, tensor, non_blocking):
            log.append(f"copied back, waiting {not non_blocking}")
            self.tensor.copy_(tensor)

        def numpy(self):
            return self.tensor.numpy()

    fake = SimpleNamespace(
        cuda=FakeCuda(log),
        from_numpy=lambda array: SimpleNamespace(pin_memory=lambda: Pinned(torch.from_numpy(array))),
        empty=lambda shape, dtype, device, pin_memory: Pinned(torch.empty(shape, dtype=dtype)),
    )
    monkeypatch.setattr(pytorch, "import_torch", lambda: fake)
    return log


def test_copies_to_and_from_a_gpu_are_asynchronous(cuda):
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


@pytest.mark.parametrize("device", ["cuda", "cuda:7", "mps", "xpu"])
def test_a_device_that_is_not_available_is_an_error_with_a_cure(device, torch, table):
    if getattr(torch, device.partition(":")[0]).is_available():
        pytest.skip(f"there is a device {device} here")
    message = f"device must be available to PyTorch; got '{device}': .*Use device=\"cpu\""
    with pytest.raises(ValueError, match=message):
        small_kernel(table, device=device)
    kernel = small_kernel(table).set_params(device=device)
    with pytest.raises(ValueError, match=message):
        kernel.apply(table)


@needs_torch
def test_tensors_that_require_grad_are_an_error(table):
    X = array_of("torch", table).requires_grad_()
    kernel = small_kernel(table)
    model = IKOGDClassifier(n_cells=8).fit(table, table[:, 0] > 0)
    for method in (kernel.apply, kernel.transform, kernel.similarity, kernel.fit, model.predict):
        with pytest.raises(ValueError, match=r"X must not require grad.*Pass X.detach\(\) instead"):
            method(X)
    np.testing.assert_array_equal(to_numpy(kernel.apply(X.detach())), kernel.apply(table))


@needs_torch
def test_sparse_tensors_of_other_layouts_are_an_error(table):
    with pytest.raises(ValueError, match=r"X must be dense or CSR; got torch.sparse_coo. Call X.to_sparse_csr\(\)"):
        small_kernel(table).apply(array_of("torch", table).to_sparse())


@needs_torch
def test_similarities_of_tensors_and_other_arrays_are_an_error(table):
    with pytest.raises(ValueError, match="the device of X, torch on cpu; got array_api_strict on"):
        small_kernel(table).similarity(array_of("torch", table), array_api_strict.asarray(table))
