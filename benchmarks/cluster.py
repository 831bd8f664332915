"""Measure accuracy by number of partitions and speed by number of workers, on a cluster of local processes.

python benchmarks/cluster.py covertype > docs/results/distributed.md
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from datasets import load
from distributed import Client, LocalCluster
from measuring import circumstances, environment

from isokern import IKOGDClassifier
from isokern.data import write_libsvm
from isokern.distributed import DaskIKOGDClassifier, DaskIsolationKernel, read_libsvm

PARTITIONS = (2, 8, 32)
CASES = (("squared_hinge", 0), ("squared_hinge", 12), ("logistic", 12), ("hinge", 0))  # loss, steps
FEWER_CELLS = 1024  # for speed, where the rounds' messages should not be larger than the work
TURNS = 3


def blocks(path, n_features, n_blocks):
    """Load a file's rows and labels onto the workers, in ``n_blocks`` blocks."""
    size = -(-path.stat().st_size // n_blocks)
    X, y = read_libsvm(path, n_features=n_features, zero_based=False, block_bytes=size)
    assert X.numblocks[0] == n_blocks
    return X.persist(), y.persist()


def print_accuracies(path, data):
    """Print a table of test accuracies: one machine, rounds alone, rounds and steps."""
    X, y, X_test, y_test = data
    kernel = DaskIsolationKernel(random_state=0).fit(blocks(path, X.shape[1], 8)[0]).to_local()
    psi = kernel.n_cells_
    print(
        f"## Accuracy\n\npsi = {psi} (auto), t = 100, one seed. One machine makes two passes over all rows. Steps are "
        "up to a dozen more,\nso where they beat one machine, it is by more work, not by being apart.\n"
    )
    heads = ["loss", "one machine", *(f"{p} partitions" for p in PARTITIONS), "the least of them and one machine"]
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|", flush=True)
    for loss, n_steps in CASES:
        one = IKOGDClassifier(kernel=kernel, loss=loss, random_state=0).fit(X, y).score(X_test, y_test)
        model = DaskIKOGDClassifier(kernel=kernel, loss=loss, n_steps=n_steps, random_state=0)
        found = [model.fit(*blocks(path, X.shape[1], p)).to_local().score(X_test, y_test) for p in PARTITIONS]
        name = f"{loss}, {'rounds and steps' if n_steps else 'rounds alone'}"
        cells = [f"{one:.4f}", *(f"{value:.4f}" for value in found), f"{100 * (min(found) - one):+.2f} points"]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def seconds(path, n_features, n_workers):
    """Return the wall-clock time of a fit with ``n_workers`` one-thread workers, and the busiest one's CPU time."""
    options = {"n_workers": n_workers, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        rows = blocks(path, n_features, 8)
        model = DaskIKOGDClassifier(n_cells=FEWER_CELLS, n_jobs=1, validation_fraction=0, random_state=0)
        model.set_params(n_rounds=1, n_steps=1).fit(*rows)  # so that all is imported and the rows are there
        before, started = client.run(time.process_time), time.perf_counter()
        model.set_params(n_rounds=2, n_steps=8).fit(*rows)
        took, after = time.perf_counter() - started, client.run(time.process_time)
    return took, max(after[worker] - before[worker] for worker in before)


def print_speeds(path, n_features):
    """Print the times with one and with two workers, measured alternately, and their ratio."""
    print(
        f"\n## One worker and two\n\nSeconds of `fit` with psi = {FEWER_CELLS}, 8 partitions, 2 rounds and 8 steps; a "
        "worker is a process of one thread.\nThe CPU time of the busiest worker is given too, because it depends less "
        "on the machine's other load.\n"
    )
    print("| turn | 1 worker | 2 workers | speed-up | busiest of 1 worker | of 2 workers | speed-up |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for turn in range(TURNS):
        (took_1, busy_1), (took_2, busy_2) = (seconds(path, n_features, n) for n in (1, 2))
        print(
            f"| {turn + 1} | {took_1:.1f} | {took_2:.1f} | {took_1 / took_2:.2f} | {busy_1:.1f} | {busy_2:.1f} | "
            f"{busy_1 / busy_2:.2f} |",
            flush=True,
        )


def main(name):
    """Measure on one data set."""
    data = load(name)
    n, d = data[0].shape
    print(f"# Learning on a cluster: {name}\n\n{circumstances(environment())} {n:,} training rows of {d} columns;")
    print(f"`python benchmarks/cluster.py {name}`.\n")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.txt"
        write_libsvm(path, data[0], data[1])
        with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster):
            print_accuracies(path, data)
        print_speeds(path, d)


if __name__ == "__main__":
    main(sys.argv[1])
