"""Time work, describe the machine, and write Markdown pages and JSON records for the benchmarks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import date
from importlib import metadata
from pathlib import Path

from isokern import __version__, _core
from isokern.system import processor

PACKAGES = ("numpy", "scipy", "scikit-learn", "isotree", "faiss-cpu", "river", "pandas", "polars", "lightgbm", "shap")


def elapsed(work):
    """Return the seconds of one run; work that does only a part has a ``factor`` to extrapolate by."""
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * getattr(work, "factor", 1.0)


def best_seconds(work, repeats=3, at_least=0.2):
    """Return the shortest of several runs; short work is repeated for at least ``at_least`` seconds in total."""
    times = []
    while len(times) < repeats or sum(times) < at_least:
        times.append(elapsed(work))
    return min(times)


# -- environment


def environment():
    """Return the version, machine and packages that results depend on."""
    return {
        "version": __version__,
        "commit": _commit(),
        "date": date.today().isoformat(),
        "machine": f"{os.cpu_count()} cores of {processor()} with {_core.instruction_set()}",
        "load": round(os.getloadavg()[0], 2),
        "packages": {name: found for name in PACKAGES if (found := _installed(name))},
    }


def circumstances(record):
    """Return an environment as a sentence."""
    packages = ", ".join(f"{name} {version}" for name, version in record["packages"].items())
    origin = f"isokern {record['version']} ({record['commit']}, {record['date']})"
    return f"Measured with {origin} on {record['machine']}; {packages}."


def warn_if_busy(record):
    """Print a warning to standard error if the machine is busy."""
    if record["load"] > 0.5:
        print(f"The machine is busy (load {record['load']}): do not keep these results.", file=sys.stderr)


def _commit():
    command = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "no commit"


def _installed(package):
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


# -- pages and records


def table_line(*values):
    """Return one line of a Markdown table."""
    return "| " + " | ".join(map(str, values)) + " |"


def table_head(*columns):
    """Return the first two lines of a Markdown table."""
    return table_line(*columns) + "\n" + "|---" * len(columns) + "|"


class Page:
    """Lines that are printed at once and can be saved at the end."""

    def __init__(self):
        self.lines = []

    def add(self, text=""):
        print(text, flush=True)
        self.lines.append(text)

    def save(self, stem, record):
        """Write the page to stem.md and its numbers to stem.json."""
        Path(f"{stem}.md").write_text("\n".join(self.lines) + "\n")
        Path(f"{stem}.json").write_text(json.dumps(record, indent=1) + "\n")


def kept_rows(path, keys):
    """Return the rows of a saved record, indexed by the values of some keys."""
    return {tuple(row[key] for key in keys): row for row in json.loads(Path(path).read_text())["rows"]}
