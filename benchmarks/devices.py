"""Compare the Voronoi map on a device with t calls of torch.cdist(...).argmin on the same device.

python benchmarks/devices.py                    PyTorch's CPU device and, if available, a GPU
python benchmarks/devices.py --data mnist --cells 256 --rows 500 --device cuda

One-time preparation is not timed on either side. Both get float32 rows and points.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
import torch
from datasets import load
from measuring import circumstances, elapsed, environment, table_head, table_line, warn_if_busy
from scipy import sparse

from isokern import IsolationKernel

NAMES, SIZES = ("mnist", "covertype"), (256, 4096)


def found_devices():
    """Return the devices to measure: PyTorch's CPU device and, if available, a GPU."""
    gpus = [name for name in ("cuda", "mps", "xpu") if getattr(torch, name).is_available()]
    if not gpus:
        print("PyTorch finds no GPU here: only its CPU device is measured.", file=sys.stderr)
    return ["cpu", *gpus]


def synchronised(work, device):
    """Return work that waits for the device."""

    def run():
        work()
        if device != "cpu":
            getattr(torch, device.partition(":")[0]).synchronize()

    return run


def by_cdist(rows, centres):
    """Return the nearest point of each sample: one brute-force search per partitioning."""
    return torch.stack([torch.cdist(rows, points).argmin(dim=1) for points in centres], dim=1)


def compare(name, n_cells, n_rows, device, repeats):
    """Return one table line: seconds of both, the ratio, and the fraction of equal cells."""
    X, _, X_test, _ = load(name)
    X, rows = (_dense(table).astype(np.float32) for table in (X, X_test[:n_rows]))
    kernel = IsolationKernel("voronoi", n_cells=n_cells, scale=None, random_state=0).fit(X)
    points = torch.from_numpy(kernel.map_.partitionings.points).to(device)
    centres = [points[torch.from_numpy(sample).long()] for sample in kernel.map_.partitionings.samples]
    tensor = torch.from_numpy(rows).to(device)
    kernel.apply(tensor[:1])  # moves the points to the device
    works = [
        synchronised(lambda: kernel.apply(tensor), device),
        synchronised(lambda: by_cdist(tensor, centres), device),
        lambda: kernel.apply(rows),
    ]
    # Interleaved, so that noise affects all alike.
    turns = [[elapsed(work) for work in works] for _ in range(repeats)]
    ours, theirs, core = (min(times) for times in zip(*turns, strict=True))
    same = float((kernel.apply(tensor) == by_cdist(tensor, centres)).float().mean())
    assert (kernel.apply(tensor).cpu().numpy() == kernel.apply(rows)).all()
    return table_line(
        name, n_cells, device, f"{ours:.2f}", f"{theirs:.2f}", f"{theirs / ours:.2f}", f"{core:.2f}", f"{same:.5f}"
    )


def _dense(table):
    return table.toarray() if sparse.issparse(table) else np.asarray(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--data", nargs="+", default=NAMES)
    parser.add_argument("--cells", nargs="+", type=int, default=SIZES)
    parser.add_argument("--device", nargs="+", default=None)
    options = parser.parse_args()
    record = environment()
    warn_if_busy(record)
    print(f"{circumstances(record)} PyTorch {torch.__version__}; {options.rows} rows, t = 100.\n")
    print(
        table_head(
            "data", "psi", "device", "isokern, s", "cdist, s", "ratio", "compiled core, s", "cdist's cells right"
        )
    )
    for device in options.device or found_devices():
        for name in options.data:
            for n_cells in options.cells:
                print(compare(name, n_cells, options.rows, device, options.repeats), flush=True)
