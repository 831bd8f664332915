"""Measure the latency of a served model: p50 and p99 of GET requests, alone and while the model learns.

python benchmarks/serving.py

It starts docs/serving_app.py on 127.0.0.1, asks it a bounded number of times, and stops it.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
from measuring import circumstances, environment, table_head, table_line, warn_if_busy

import isokern
from isokern import IKOGDClassifier

APP = Path(__file__).parents[1] / "docs" / "serving_app.py"
N_ROWS, N_COLUMNS, BLOCK = 20_000, 20, 500
N_READERS, N_REQUESTS = 4, 500  # requests of each reader
PATIENCE = 120  # seconds to wait for a server that starts on a busy machine


@contextmanager
def served(model_path):
    """Run the application in a process of its own, and yield its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = [
        "--factory",
        "serving_app:make_app",
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--log-level",
        "warning",
    ]
    path = os.pathsep.join([str(APP.parent), str(Path(isokern.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    there = os.environ | {"MODEL": str(model_path), "PYTHONPATH": path}
    process = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", *options], env=there, stderr=subprocess.PIPE, text=True
    )
    try:
        yield _once_it_answers(process, f"http://127.0.0.1:{port}")
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)


def _once_it_answers(process, url):
    for _ in range(PATIENCE * 10):
        if process.poll() is not None:
            raise RuntimeError(f"The server has stopped: {process.stderr.read()}")
        try:
            httpx.get(f"{url}/docs")
        except httpx.TransportError:
            time.sleep(0.1)
        else:
            return url
    raise TimeoutError(f"The server must answer within {PATIENCE} seconds.")


def ask(url, rows):
    """Ask for the label of each row; return the milliseconds of each request, and the labels."""
    times, labels = [], []
    with httpx.Client(base_url=url, timeout=PATIENCE) as client:
        for row in rows.tolist():
            started = time.perf_counter()
            answer = client.get("/predict", params={"row": row}).raise_for_status()
            times.append(1000.0 * (time.perf_counter() - started))
            labels.append(answer.json()["label"])
    return times, labels


def teach(url, X, y):
    """Let the model learn blocks of rows, one after the other; return how many it has learned in all."""
    with httpx.Client(base_url=url, timeout=PATIENCE) as client:
        for begin in range(0, len(X), BLOCK):
            block = {"rows": X[begin : begin + BLOCK].tolist(), "labels": y[begin : begin + BLOCK].tolist()}
            answer = client.post("/learn", json=block).raise_for_status()
    return answer.json()["n_rows_seen"]


def latencies(url, parts, lesson=None):
    """Let readers ask for the rows of their parts at the same time, while a lesson, (X, y), is learned."""
    with ThreadPoolExecutor(len(parts) + 1) as pool:
        learning = pool.submit(teach, url, *lesson) if lesson is not None else None
        times = [time for of_reader, _ in pool.map(lambda rows: ask(url, rows), parts) for time in of_reader]
        return times, learning.result() if learning is not None else None


def main():
    """Print a table."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, N_COLUMNS))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    record = environment()
    warn_if_busy(record)
    print(circumstances(record), end="\n\n")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.isokern"
        half = N_ROWS // 2
        isokern.save(IKOGDClassifier(random_state=0).fit(X[:half], y[:half]), path)
        parts = np.split(X[: N_READERS * N_REQUESTS], N_READERS)
        print(table_head(f"{N_READERS} readers", "p50, ms", "p99, ms"))
        with served(path) as url:
            for name, lesson in (("alone", None), ("while it learns", (X[half:], y[half:]))):
                times, _ = latencies(url, parts, lesson)
                print(table_line(name, *(f"{q:.1f}" for q in np.percentile(times, [50, 99]))))


if __name__ == "__main__":
    main()
