"""``isokern stream``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from itertools import chain
from math import isnan
from typing import Annotated, Any

import numpy as np
import typer
from rich.text import Text

import isokern
from isokern.cli._input import File, Input, listed
from isokern.cli._method import Learning
from isokern.cli._options import Block, Metrics, Quiet, check_model_target, check_target, panel, with_groups
from isokern.cli._outputs import Outputs
from isokern.cli._run import Run
from isokern.cli._show import as_text, drifts_text, errors, print_facts, print_remark, rows_progress
from isokern.cli._signals import Interrupts
from isokern.cli.fit import name_columns
from isokern.data.lines import is_stream
from isokern.evaluation import Record
from isokern.learners.candidates import grows

Blocks = Iterator[tuple[Any, Any]]
_option = panel("Stream")


@with_groups()
def stream(
    file: File,
    *,
    out: Annotated[str | None, _option("--out", "-o", help="Save the model here at the end.")] = None,
    initial: Annotated[
        int | None,
        _option(
            min=2,
            help="First rows, which fit a map that does not grow; they are learned, not predicted. Default: none, "
            "10,000 for --cells cv.",
        ),
    ] = None,
    block: Block = 1000,
    delay: Annotated[int, _option(min=0, help="Number of blocks after which labels arrive.")] = 0,
    protocol: Annotated[
        str,
        _option(help="rows: predict each row right before it is learned; blocks: a block at a time, as in the paper."),
    ] = "rows",
    metrics: Metrics = "",
    classes: Annotated[str | None, _option(help="All classes, as a,b,c, if the initial rows may lack one.")] = None,
    records: Annotated[
        str | None,
        _option(help="Write a record per block: CSV if the name ends in .csv, else JSON lines; - is standard output."),
    ] = None,
    predictions: Annotated[
        str | None, _option(help="Write the predicted label of each row after the initial ones, one per line.")
    ] = None,
    checkpoint: Annotated[str | None, _option(help="Folder for checkpoints, to continue from after a crash.")] = None,
    every: Annotated[float, _option(min=0, help="Seconds between checkpoints.")] = 10.0,
    resume: Annotated[bool, _option("--resume", help="Continue from the checkpoint, if there is one.")] = False,
    quiet: Quiet = False,
    learning: Learning,
    source: Input,
) -> None:
    """Predict each row of a stream, then learn it (prequential evaluation, test-then-train).

    Example: isokern stream covtype.xz --checkpoint run1 --out covtype.isokern

    Rows without a label (? in LIBSVM text, an empty field in CSV) are predicted, but not learned.
    """
    source = source.at(file)
    source.check_labelled()
    outputs = {"records": records, "predictions": predictions}
    _check_options(file, checkpoint=checkpoint, resume=resume, method=learning.method, outputs=[*outputs.values()])
    replaced = {"model": out} if check_model_target(out, file) else {}
    for name, path in outputs.items():
        if check_target(f"--{name}", path, file) and not resume:
            replaced[name] = path
    learning, method = learning.for_stream(initial)
    initial = 10_000 if initial is None and learning.cells == "cv" else initial
    learning.make_learner(initial=initial)  # wrong options raise before rows are read
    blocks = source.blocks(block, initial)
    # The results of a finished run can be shown again without its input.
    first = None if resume and not os.path.exists(file) else next(blocks, None)
    learning, kind = learning.guessed(np.empty(0) if first is None else first[1])
    learner = learning.make_learner(initial=initial)
    settings = {  # what --resume must not change
        "learner": type(learner).__name__,
        **{name: repr(value) for name, value in learner.get_params(deep=False).items()},
        "initial": initial,
        "block": block,
        "delay": delay,
        "protocol": protocol,
        "metrics": listed(metrics),
        "classes": None if classes is None else _parsed_labels(classes),
        "input": [source.kind, source.label, source.chosen_columns, source.is_dense],
        "table": source.text_settings,
        "records": records,
        "predictions": predictions,
    }
    run = Run(learner, settings, Outputs(records, predictions), folder=checkpoint, every=every)
    said = {"method": method + _map_text(learning.method, learner)} | ({} if first is None else {"kind": kind})
    said |= {name: f"{path} (replaced)" for name, path in replaced.items()}
    _stream(run, source, chain([] if first is None else [first], blocks), said, out=out, resume=resume, quiet=quiet)


def _stream(
    run: Run,
    source: Input,
    blocks: Blocks,
    said: dict[str, Any],
    *,
    out: str | None,
    resume: bool,
    quiet: bool,
) -> None:
    """Process a stream to its end or to an interrupt, save the model, and print the results and what else is said."""
    names = source.feature_names()
    with closing(run), Interrupts().handled() as interrupts:
        run.start(resume=resume)
        try:
            if not run.is_done or os.path.exists(source.path):
                _take_blocks(run, source, blocks, interrupts, quiet=quiet)
        except KeyboardInterrupt:
            run.save()
            _save_and_print(run, names, out, said)
            errors.print(f"stopped after {run.n_rows:,} rows", style="yellow")
            raise typer.Exit(128 + (interrupts.number or 2)) from None
        _save_and_print(run, names, out, said)


def _take_blocks(run: Run, source: Input, blocks: Blocks, interrupts: Interrupts, *, quiet: bool) -> None:
    """Predict and learn all blocks after the checkpoint."""
    with rows_progress("Streaming", quiet=quiet) as advance:
        for X, y in run.skip(blocks):
            if run.is_done:
                errors.print(Text(f"{source.path} has grown: continuing after row {run.n_rows:,}"), soft_wrap=True)
            with interrupts.deferred():
                if run.n_rows == 0 and X.shape[0] < (getattr(run.learner, "n_initial", None) or 0):
                    run.learner.set_params(n_initial=max(2, X.shape[0]))  # the stream has no more rows to wait for
                record = run.take(X, y)
                run.save_if_due()
            advance(X.shape[0], _note(record))
    if not run.n_rows:
        raise ValueError(f"{source.path} must have rows; got none.")
    if run.n_rows < (run.settings["initial"] or 0):
        cure = f"Choose a smaller --initial to measure the learner; got {run.settings['initial']:,}."
        remark = f"{source.path} has only {run.n_rows:,} rows, which were all learned, but not predicted. {cure}"
        print_remark("warning", remark, "yellow")
    if not run.is_done:
        with interrupts.deferred():
            run.finish()
            run.save()


def _note(record: Record) -> str:
    """Return what the progress shows of a record: accuracies, the leader without its steps, and the changes found."""
    accuracies = {"accuracy": record.accuracy, "now": record.block_accuracy}
    parts = [f"{name} {value:.3f}" for name, value in accuracies.items() if not (value is None or isnan(value))]
    parts += [] if record.leader is None else [record.leader.partition(",")[0]]
    parts += [f"drifts {record.n_drifts:,}"] if record.n_drifts else []
    return ", ".join(parts)


def _map_text(method: str, learner: Any) -> str:
    """Return what becomes of the map of a learner along a stream, if it has one."""
    if method == "adaptive":
        return " (its map renews itself; --method ik-ogd for one that only grows)"
    if method == "ik-ogd":
        return " (its map only grows)" if hasattr(learner, "growth") and grows(learner) else " (its map is fixed)"
    return ""


def _save_and_print(run: Run, names: list[str] | None, out: str | None, said: dict[str, Any]) -> None:
    """Save the model and print the results; on standard error if standard output has records or predictions."""
    if out is not None and run.n_rows:
        name_columns(run.learner, names)
        isokern.save(run.learner, out)
    # A regressor has no accuracy, and some learners have no support vectors.
    result = {name: value for name, value in run.result.items() if value is not None} if run.n_rows else {}
    if "n_drifts" in result:
        result["n_drifts"] = drifts_text(run.learner)
    facts = {"rows": run.n_rows, **result, **run.seconds} | ({} if out is None else {"model": out}) | said
    if "-" in (run.settings["records"], run.settings["predictions"]):
        lines = (f"{name}: {as_text(value)}" for name, value in facts.items())
        errors.print("\n".join(lines), markup=False, soft_wrap=True)
    else:
        print_facts(facts)


def _parsed_labels(classes: str) -> list[Any]:
    """Return labels given as a,b,c as input files have them: numbers if all are numbers, else strings."""
    names = listed(classes)
    try:
        return [float(name) for name in names]
    except ValueError:
        return list(names)


def _check_options(file: str, *, checkpoint: str | None, resume: bool, method: str, outputs: list[str | None]) -> None:
    if method == "ik-svm":
        raise ValueError("--method must be an online learner; got ik-svm. Use isokern fit for ik-svm.")
    if resume and checkpoint is None:
        raise ValueError("--resume must come with --checkpoint, the folder to continue from.")
    if resume and is_stream(file) and (file == "-" or os.path.exists(file)):
        raise ValueError(f"--resume must come with a file; got {file}. A pipe cannot be rewound.")
    if outputs.count("-") > 1:
        raise ValueError("--records and --predictions must not both be -.")
    if checkpoint is not None and "-" in outputs:
        raise ValueError("--records and --predictions must be files with --checkpoint, to be truncated; got -.")
