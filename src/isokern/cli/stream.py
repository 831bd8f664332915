"""``isokern stream``."""

from __future__ import annotations

import os
from contextlib import closing
from typing import Annotated, Any

import typer

import isokern
from isokern.cli import _input, _method, _options
from isokern.cli._input import Input, listed
from isokern.cli._options import panel
from isokern.cli._outputs import Outputs
from isokern.cli._run import Checkpoints, Run
from isokern.cli._show import as_text, errors, print_facts, rows_progress
from isokern.cli._signals import Interrupts
from isokern.cli.fit import name_columns
from isokern.data.lines import is_stream

_option = panel("The run")

Out = Annotated[str | None, _option("--out", "-o", help="Where to save the model at the end.")]
Initial = Annotated[
    int,
    typer.Option(min=2, help="Rows to begin with: the map is drawn from them; they are learned, not predicted."),
]
Delay = Annotated[int, _option(min=0, help="How many blocks late labels are.")]
Classes = Annotated[
    str | None,
    _option(help="All classes, as a,b,c, if the initial rows may lack one."),
]
Records = Annotated[
    str | None,
    _option(help="Write a record for each block: JSON lines, or CSV if the name ends so; - is standard output."),
]
Predictions = Annotated[
    str | None,
    _option(help="Write the predicted label of each row after the initial ones."),
]
Checkpoint = Annotated[
    str | None,
    _option(help="A folder for checkpoints, to go on from after a crash."),
]
Every = Annotated[float, _option("--every", min=0, help="Seconds between checkpoints.")]
Resume = Annotated[bool, _option("--resume", help="Go on from the checkpoint, if there is one.")]


def stream(
    file: _input.File,
    *,
    out: Out = None,
    initial: Initial = 10_000,
    block: _options.Block = 1000,
    delay: Delay = 0,
    metrics: _options.Metrics = "",
    classes: Classes = None,
    records: Records = None,
    predictions: Predictions = None,
    checkpoint: Checkpoint = None,
    every: Every = 10.0,
    resume: Resume = False,
    quiet: _options.Quiet = False,
    method: _method.Method = "ik-ogd",
    partitioning: _method.Partitioning = None,
    cells: _method.Cells = "auto",
    partitionings: _method.Partitionings = None,
    scale: _method.Scale = "auto",
    seed: _method.Seed = 0,
    settings: _method.Set = None,
    threads: _method.Threads = None,
    device: _options.Device = None,
    format: _input.Format = None,
    label: _input.Label = None,
    columns: _input.Columns = None,
    features: _input.Features = None,
    zero_based: _input.ZeroBased = None,
    dense: _input.Dense = None,
) -> None:
    """Predict each block of a stream with what was learned before it, then learn it.

    Example: isokern stream covtype.xz --checkpoint run1 --out covtype.isokern

    Rows without a label (? in LIBSVM text, an empty field in CSV) are predicted, but not learned.
    """
    source = Input(file, format, label, listed(columns), features, zero_based, dense)
    source.check_labelled()
    _options.check_target("--out", out)
    _check_options(file, checkpoint=checkpoint, resume=resume, method=method, outputs=[records, predictions])
    learner = _method.make_learner(
        method,
        is_dense=source.is_dense,
        partitioning=partitioning,
        cells=cells,
        partitionings=partitionings,
        scale=scale,
        seed=seed,
        threads=threads,
        device=device,
        initial=initial,
        settings=settings,
    )
    shaping = {
        "learner": type(learner).__name__,
        **{name: repr(value) for name, value in learner.get_params(deep=False).items()},
        "initial": initial,
        "block": block,
        "delay": delay,
        "metrics": listed(metrics),
        "classes": None if classes is None else source.labels_of(classes),
        "input": [source.kind, source.label, source.columns, source.is_dense],
        "records": records,
        "predictions": predictions,
    }
    run = Run(learner, shaping, Outputs(records, predictions))
    _stream(run, source, Checkpoints(checkpoint, every), out=out, resume=resume, quiet=quiet)


def _stream(run: Run, source: Input, checkpoints: Checkpoints, *, out: str | None, resume: bool, quiet: bool) -> None:
    """Lead a run to its end, or to where it is interrupted, and save what it has learned."""
    names = source.feature_names()
    with closing(run.outputs), Interrupts().heeded() as interrupts:
        checkpoints.begin(run, resume=resume)
        try:
            if not run.is_done:
                _follow(run, source, checkpoints, interrupts, quiet=quiet)
        except KeyboardInterrupt:
            checkpoints.save(run)
            _end(run, names, out)
            errors.print(f"stopped after {run.n_rows:,} rows", style="yellow")
            raise typer.Exit(128 + (interrupts.number or 2)) from None
        _end(run, names, out)


def _follow(run: Run, source: Input, checkpoints: Checkpoints, interrupts: Interrupts, *, quiet: bool) -> None:
    """Take in all blocks that there still are."""
    blocks = source.blocks(run.settings["block"], run.settings["initial"])
    run.skip(blocks)
    with rows_progress("Streaming", quiet=quiet) as advance:
        for X, y in blocks:
            with interrupts.put_off():
                if run.n_blocks == 0:
                    _shorten(run.learner, X.shape[0])
                record = run.take(X, y)
                checkpoints.save_if_due(run)
            advance(X.shape[0], f"accuracy {record.accuracy:.4f}" if record.n_labelled else "")
    if not run.n_rows:
        raise ValueError(f"{source.path} must have rows; got none.")
    with interrupts.put_off():
        run.finish()
        checkpoints.save(run)


def _shorten(learner: Any, n_rows: int) -> None:
    """Let a learner begin with the rows there are, if they are fewer than it was to wait for."""
    if getattr(learner, "n_initial", None) is not None and n_rows < learner.n_initial:
        learner.set_params(n_initial=max(2, n_rows))


def _end(run: Run, names: list[str] | None, out: str | None) -> None:
    """Save the model and print what came of it, but not among records or predictions."""
    if out is not None and run.n_rows:
        name_columns(run.learner, names)
        isokern.save(run.learner, out)
    facts = {"rows": run.n_rows, **run.result, **run.seconds} | ({} if out is None else {"model": out})
    if "-" in (run.settings["records"], run.settings["predictions"]):
        errors.print(
            "\n".join(f"{name}: {as_text(value)}" for name, value in facts.items()), markup=False, soft_wrap=True
        )
    else:
        print_facts(facts)


def _check_options(file: str, *, checkpoint: str | None, resume: bool, method: str, outputs: list[str | None]) -> None:
    if method == "ik-svm":
        raise ValueError("--method ik-svm cannot learn from a stream; use isokern fit, or another method.")
    if resume and checkpoint is None:
        raise ValueError("--resume must come with --checkpoint, the folder to go on from.")
    if resume and is_stream(file) and (file == "-" or os.path.exists(file)):
        raise ValueError(f"--resume must come with a file; got {file}. A pipe cannot be rewound to where the run was.")
    if outputs.count("-") > 1:
        raise ValueError("--records and --predictions must not both be -.")
    if checkpoint is not None and "-" in outputs:
        raise ValueError(
            "--records and --predictions must be files, not -, with --checkpoint, which may cut them back."
        )
