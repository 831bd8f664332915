"""What the benchmarks share: clocks, the machine, Markdown, and figures kept as JSON."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from datetime import date
from importlib import metadata
from pathlib import Path

from isokern import __version__, _core

PACKAGES = ("numpy", "scipy", "scikit-learn", "isotree", "faiss-cpu", "river")


def elapsed(work):
    """Return the seconds that a run takes; work of which only a part is done says by what factor it is more."""
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * getattr(work, "factor", 1.0)


def best_seconds(work, repeats=3, at_least=0.2):
    """Return the shortest of so many times, and of more where they are so short that a clock tick counts."""
    times = []
    while len(times) < repeats or sum(times) < at_least:
        times.append(elapsed(work))
    return min(times)


# -- the circumstances


def environment():
    """Return what figures depend on besides the code: kept with them."""
    return {
        "version": __version__,
        "commit": _commit(),
        "date": date.today().isoformat(),
        "machine": f"{os.cpu_count()} cores of {_cpu()} with {_core.instruction_set()}",
        "load": round(os.getloadavg()[0], 2),
        "packages": {name: found for name in PACKAGES if (found := _installed(name))},
    }


def circumstances(record):
    """Return the same as a sentence."""
    packages = ", ".join(f"{name} {version}" for name, version in record["packages"].items())
    return f"isokern {record['version']} ({record['commit']}, {record['date']}), {record['machine']}; {packages}."


def warn_if_busy(record):
    """Say so on standard error if others are at work on the machine."""
    if record["load"] > 0.5:
        print(f"The machine is busy (load {record['load']}): do not keep these figures.", file=sys.stderr)


def _cpu():
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


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
    """Lines that are printed as they come, and can be written to a file when all have come."""

    def __init__(self):
        self.lines = []

    def add(self, text=""):
        print(text, flush=True)
        self.lines.append(text)

    def save(self, stem, record):
        """Write the page to stem.md, its figures to stem.json."""
        Path(f"{stem}.md").write_text("\n".join(self.lines) + "\n")
        Path(f"{stem}.json").write_text(json.dumps(record, indent=1) + "\n")


def kept_rows(path, keys):
    """Return the rows of a record that was kept, found by the values of some keys."""
    return {tuple(row[key] for key in keys): row for row in json.loads(Path(path).read_text())["rows"]}
