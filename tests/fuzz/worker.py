"""Use files whose paths arrive on standard input, within limits; answer each with a line: how it ended.

A process of its own, so that a crash ends only this one. Takes the name of a target and megabytes of memory.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import traceback
import warnings
from pathlib import Path

from fuzz.targets import TARGETS

SECONDS = 20  # of CPU time for one file, on any machine far more than it needs


def ending_of(target, path):
    """Return "accepted", "rejected", or "fault" and a description that is the same for the same fault."""
    try:
        target.use(path)
    except (ValueError, OSError) as error:
        return "rejected" if path.name in str(error) or not target.is_named else f"fault unnamed-{where(error)}"
    except Exception as error:
        return f"fault {where(error)}"
    return "accepted"


def where(error):
    """Return the type of an error and the innermost function of isokern that it passed."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f"{os.sep}isokern{os.sep}" in f.filename]
    place = f"{Path(frames[-1].filename).stem}.{frames[-1].name}" if frames else "outside"
    return f"{type(error).__name__.strip('_')}-{place}"


def main(name, megabytes):
    warnings.simplefilter("ignore")
    os.fsync = lambda handle: None  # files that are read at once need not be on a disk
    target = TARGETS[name]
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + int(megabytes) * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    for line in sys.stdin:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # a signal that nobody handles ends the process, also in the core
        ending = ending_of(target, Path(line.rstrip("\n")))
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(ending, flush=True, file=sys.__stdout__)


if __name__ == "__main__":
    main(*sys.argv[1:])
