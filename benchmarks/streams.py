"""Measure learners along streams that change: isokern's, LightGBM on a window, and those of CapyMOA and river.

python benchmarks/streams.py                              all streams and learners on standard output
python benchmarks/streams.py --quick                      few rows and streams, one seed, no CapyMOA, to try it out
python benchmarks/streams.py --streams SEA LED            only some streams; also --learners and --seeds
python benchmarks/streams.py --rows 25000                 only the first rows of each stream
python benchmarks/streams.py --save docs/results/streams  add each run, once measured, to the records (.jsonl) there,
                                                          and write the page (.md) and figure (.png) at the end
python benchmarks/streams.py --save ... --resume          leave out what is recorded there already
python benchmarks/streams.py --save ... --page            only write the page and figure from the records

CapyMOA gets an environment of its own in --cache, made at first use; it needs Java 17 or newer.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pooch
import stream_data
from measuring import environment, warn_if_busy
from sklearn.metrics import cohen_kappa_score
from stream_data import THROUGHPUT
from stream_peers import ADAPTIVE, BLOCK, FIXED, GROWING, LEARNERS, MOA_ARF, RIVER_ARF, TIMED
from streams_page import latest, page_of

import isokern

FULL = {"n_rows": 100_000, "seeds": 3, "streams": list(stream_data.STREAMS)}
QUICK = {"n_rows": 2000, "seeds": 1, "streams": ["SEA", "RBF, drifting", *THROUGHPUT]}
ON_THROUGHPUT = (FIXED, GROWING, ADAPTIVE, MOA_ARF, RIVER_ARF, *TIMED)
JVM = "-Xmx4g -Xss10M"  # CapyMOA's default, but half of its heap
WORKER = Path(__file__).parent / "stream_peers.py"
SMALLEST = np.finfo(np.float64).eps  # probability, as in isokern's log-loss


def progress(*words):
    print(time.strftime("%H:%M:%S"), *words, file=sys.stderr, flush=True)


# -- environments


def capymoa_python(cache):
    """Return the interpreter of CapyMOA's environment, which is made if it is not there."""
    folder = Path(cache) / "capymoa"
    python = folder / "bin" / "python"
    is_complete = folder / ".complete"
    if not is_complete.exists():
        progress("making an environment for CapyMOA in", folder)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "-qq", "capymoa"], check=True)
        is_complete.touch()
    return python


def is_missing(name):
    """Say why a learner cannot run; None if it can."""
    package = (LEARNERS | TIMED)[name].package
    if name.startswith(ADAPTIVE):
        return None if hasattr(isokern, "AdaptiveIKClassifier") else "isokern has no AdaptiveIKClassifier"
    return None if package == "capymoa" or find_spec(package) else f"{package} is not installed"


# -- measuring


def measure(learner, seed, stream_path, options, plan):
    """Return what a learner reaches along a saved stream, in a process of its own; None if it fails."""
    is_capymoa = (LEARNERS | TIMED)[learner].package == "capymoa"
    python = capymoa_python(options.cache) if is_capymoa else sys.executable
    with tempfile.TemporaryDirectory() as folder:
        answers_path = Path(folder) / "answers.npz"
        arguments = learner, seed, plan["n_rows"], options.limit, stream_path, answers_path
        # Standard output is the page's; libraries write their notes to standard error.
        command = [python, WORKER, *map(str, arguments)]
        done = subprocess.run(command, stdout=sys.stderr, env={**os.environ, "CAPYMOA_JVM_ARGS": JVM}, check=False)
        if done.returncode:
            return None
        with np.load(answers_path) as answers:
            return summary(dict(answers), stream_data.Stream.load(stream_path))


def summary(answers, stream):
    """Return the measures of predictions; a run that was stopped has those of its rows so far."""
    predictions, seconds, shares = answers["predictions"], answers["seconds"], answers["shares"]
    n_rows = len(predictions)
    y = stream.y[:n_rows]
    right = predictions == y
    found = {
        "rows": n_rows,
        "columns": stream.X.shape[1],
        "classes": stream.n_classes,
        "accuracy": round(float(right.mean()), 6),
        "kappa": round(float(cohen_kappa_score(y, predictions)), 6),
        "seconds": round(float(answers["elapsed"]), 6),
        "cpu": round(float(answers["cpu"]), 6),
        "megabytes": round(float(answers["megabytes"]), 1),
        "package": str(answers["version"]),
        "right": [int(part.sum()) for part in np.split(right, range(BLOCK, n_rows, BLOCK))],
    }
    if not np.isnan(shares).all():
        of_truth = shares[~np.isnan(shares)].clip(SMALLEST, 1 - SMALLEST)
        found["log_loss"] = round(float(-np.log(of_truth).mean()), 6)
    if len(seconds) == n_rows:
        latencies = 1e6 * np.array([*np.quantile(seconds, [0.5, 0.99]), seconds.max()])
        found["microseconds"] = [round(float(value), 1) for value in latencies]
    return found


# -- records


class Records:
    """Measured runs, appended to a file as they come, so that a run can be stopped and continued, also elsewhere."""

    def __init__(self, stem):
        self.path = Path(f"{stem}.jsonl") if stem else None
        has_file = self.path is not None and self.path.exists()
        self.runs = [json.loads(line) for line in self.path.read_text().splitlines()] if has_file else []

    def add(self, record):
        self.runs.append(record)
        if self.path:
            with self.path.open("a") as file:
                file.write(json.dumps(record) + "\n")


def wanted(options, plan):
    """Yield the seed, stream and learners to run: one seed of everything comes first."""
    for seed in range(options.seeds or plan["seeds"]):
        for stream in options.streams or plan["streams"]:
            learners = ON_THROUGHPUT if stream in THROUGHPUT else LEARNERS
            chosen = [name for name in learners if not options.learners or name in options.learners]
            yield seed, stream, [name for name in chosen if seed < (LEARNERS | TIMED)[name].n_seeds]


def measure_all(options, plan, records):
    """Measure what is wanted and not yet recorded."""
    known = (
        {key for key, run in latest(records.runs).items() if run["plan"] == plan["n_rows"]} if options.resume else set()
    )
    for seed, name, learners in wanted(options, plan):
        left = [
            learner for learner in learners if (name, learner, seed) not in known and not options.missing.get(learner)
        ]
        if not left:
            continue
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "stream.npz"
            stream_data.make(name, plan["n_rows"]).save(path)
            for learner in left:
                progress(f"{name}: {learner}, seed {seed}")
                where = environment()
                if found := measure(learner, seed, path, options, plan):
                    key = {"stream": name, "learner": learner, "seed": seed, "plan": plan["n_rows"]}
                    records.add(key | found | where | {"limit": options.limit})
                else:
                    progress(f"{name}: {learner} failed; --resume tries it again")


def read_options(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--streams", nargs="+", metavar="NAME", choices=stream_data.STREAMS)
    parser.add_argument("--learners", nargs="+", metavar="NAME", choices=LEARNERS | TIMED)
    parser.add_argument("--seeds", type=int, metavar="N")
    parser.add_argument("--rows", type=int, metavar="N")
    parser.add_argument("--limit", type=float, default=900, metavar="S", help="seconds of CPU time for a run")
    parser.add_argument("--cache", default=pooch.os_cache("isokern-benchmarks"), metavar="FOLDER")
    parser.add_argument("--save", metavar="STEM")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--page", action="store_true")
    return parser.parse_args(arguments)


def main(arguments=None):
    options = read_options(arguments)
    plan, records = QUICK if options.quick else FULL, Records(options.save)
    plan = plan | ({"n_rows": options.rows} if options.rows else {})
    options.missing = {name: reason for name in LEARNERS | TIMED if (reason := is_missing(name))}
    for name, reason in options.missing.items():
        progress(f"left out: {name}, because {reason}")
    if options.quick:
        options.missing |= {name: "quick" for name, of in (LEARNERS | TIMED).items() if of.package == "capymoa"}
    if not options.page:
        warn_if_busy(environment())
        measure_all(options, plan, records)
    page = page_of(records.runs, options.save)
    if options.save:
        Path(f"{options.save}.md").write_text("\n".join(page.lines) + "\n")
    print(*page.lines, sep="\n")


if __name__ == "__main__":
    main()
