"""Resume ``isokern stream`` and ``Prequential`` from forged checkpoints."""

from __future__ import annotations

import contextlib
import io
import shutil

import typer

from isokern import IKOGDClassifier
from isokern.cli.stream import stream as command
from isokern.data import write_libsvm
from isokern.evaluation import Prequential
from isokern.persistence import read_file, write_file
from learning import SMALL, make_rows

app = typer.Typer()
app.command()(command)
X, y = make_rows(60, 3)
OPTIONS = ["--initial", "20", "--block", "10", "--threads", "1", "--partitionings", "6", "--cells", "8", "--every", "0"]


def stream(folder, *options):
    """Run ``isokern stream`` in a folder that holds its input, its outputs and its checkpoint."""
    names = ["--records", "records", "--predictions", "predictions", "--checkpoint", "."]
    with contextlib.chdir(folder), contextlib.redirect_stdout(io.StringIO()):
        app(["rows.txt", *OPTIONS, *names, "--quiet", *options], standalone_mode=False)


def evaluation():
    """Return a prequential evaluation whose labels are a block late."""
    return Prequential(IKOGDClassifier(**SMALL, n_initial=20), delay=1, metrics=("kappa", "f1"))


def write_seeds(folder):
    work = folder / "work"
    for name, n_rows in (("warm-up", 20), ("stream", 60)):
        work.mkdir()
        write_libsvm(work / "rows.txt", X[:n_rows], y[:n_rows])
        stream(work)
        (work / "checkpoint.isokern").rename(folder / name)
        shutil.rmtree(work)
    run = evaluation()
    for part in (slice(0, 20), slice(20, 30), slice(30, 40)):
        run.step(X[part], y[part])
    write_file(folder / "prequential", {"learner": run.learner, "state": run.state()})


def use(path):
    """Read a checkpoint and continue from it as the state has it, in the way in which it was written."""
    state = read_file(path)
    if isinstance(state, dict) and state.keys() == {"learner", "state"}:
        run = evaluation()
        run.learner = state["learner"]
        run.restore(state["state"])
        run.step(X[40:], y[40:])
        run.finish()
        return
    folder = path.with_name("resumed")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    write_libsvm(folder / "rows.txt", X, y)
    for name in ("records", "predictions"):
        (folder / name).write_bytes(bytes(10**5))
    shutil.copy(path, folder / "checkpoint.isokern")
    stream(folder, "--resume", "--out", "model")
