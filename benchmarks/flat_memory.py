"""Stream generated rows into ``isokern stream`` and print its resident memory along the way.

python benchmarks/flat_memory.py [millions of rows, 10 unless given]

All rows are different. The command learns with its default settings and writes records, predictions and checkpoints.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from measuring import circumstances, environment, table_head, table_line

from isokern.data import write_libsvm

N_ROWS, N_COLUMNS = 100_000, 10
COMMAND = [sys.executable, "-c", "from isokern.cli import main; main()", "stream", "-", "--quiet"]


def megabytes(process, field):
    """Return a field of the memory of a running process."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def write_rows(rng, file, path):
    """Write a block of new rows to a pipe; their class is the sign of the product of two columns."""
    X = rng.normal(size=(N_ROWS, N_COLUMNS)).round(4)
    write_libsvm(path, X, (X[:, 0] * X[:, 1] > 0).astype(int))
    file.write(path.read_bytes())


def main(millions):
    print(circumstances(environment()), table_head("million rows", "resident MB", "highest MB"), sep="\n\n")
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = [f"--{output}={folder / output}" for output in ("records", "predictions", "checkpoint")]
        with subprocess.Popen(COMMAND + files, stdin=subprocess.PIPE) as stream:
            for million in range(1, millions + 1):
                for _ in range(1_000_000 // N_ROWS):
                    write_rows(rng, stream.stdin, folder / "rows")
                print(table_line(million, *(round(megabytes(stream, field)) for field in ("VmRSS", "VmHWM"))))
            stream.stdin.close()
        sys.exit(stream.returncode)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10)
