"""The command line: ``isokern fit``, ``isokern stream`` and the rest, one file each."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from isokern import __version__
from isokern.cli._show import errors
from isokern.cli.data import data
from isokern.cli.demo import demo
from isokern.cli.evaluate import evaluate
from isokern.cli.fit import fit
from isokern.cli.info import info
from isokern.cli.predict import predict
from isokern.cli.stream import stream

app = typer.Typer(
    help="Online kernel learning with the Isolation Kernel.",
    epilog="Begin with: isokern demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (demo, fit, predict, stream, evaluate, data, info):
    app.command(no_args_is_help=command in {fit, predict, stream, evaluate})(command)


def _show_version(asked: bool) -> None:
    if asked:
        errors.print(f"isokern {__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Say it.")] = False,
) -> None:
    pass


def main() -> None:
    """Run a command; what is wrong with its input becomes one line and an exit code of 1."""
    try:
        app()
    except (ValueError, OSError, ImportError, MemoryError) as error:
        text = str(error) or type(error).__name__
        errors.print(f"[bold red]error:[/] {_escaped(text)}", soft_wrap=True, highlight=False)
        sys.exit(1)


def _escaped(text: str) -> str:
    return text.replace("[", r"\[")
