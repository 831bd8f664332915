"""Keep what searches chose, so that experiments that need the same search run it once."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from isokern.experiments.clocks import without_times
from isokern.experiments.experiment import Cell, Plan, Record
from isokern.experiments.measuring import Stopwatch
from isokern.experiments.records import Records
from isokern.system import processor


def searches_file(out: Path) -> Path:
    """Return the file of a folder of results in which searches are kept."""
    return out / "searches.jsonl"


def recall(search: Cell, y: NDArray[Any], plan: Plan, run: Callable[[], dict[str, Any]]) -> Record:
    """Return what ``run()`` found in an earlier run of the same search, or run it now; add its time, ``cv_seconds``.

    A search is known by ``search`` and the labels of its rows, whose order tells the seed and which rows they are. Its
    time is left out if another processor searched.
    """
    search = search | {"labels": f"{zlib.crc32(y.tobytes()):08x}"}
    kept = Records(plan.searches, plan)
    found = kept.find(search)
    if found is not None:
        return found if kept.runs(search)[-1].machine == processor() else without_times(found)
    watch = Stopwatch()
    chosen = run()
    return kept.add(search, chosen | watch.seconds("cv_"))
