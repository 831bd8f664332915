"""The command line: ``isokern fit``, ``isokern stream`` and the rest, one file each."""

from __future__ import annotations

import sys
import warnings
from typing import Annotated, Any

import typer

from isokern import __version__
from isokern.cli._show import print_remark, results
from isokern.cli.data import data
from isokern.cli.demo import demo
from isokern.cli.evaluate import evaluate
from isokern.cli.fit import fit
from isokern.cli.info import info
from isokern.cli.plot import plot
from isokern.cli.predict import predict
from isokern.cli.reproduce import reproduce
from isokern.cli.stream import stream

app = typer.Typer(
    help="Online kernel learning with the Isolation Kernel.",
    epilog="Begin with: isokern demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (demo, fit, predict, stream, evaluate, reproduce, data, info):
    app.command(no_args_is_help=command in {fit, predict, stream, evaluate, reproduce})(command)
app.add_typer(plot, name="plot")


def _show_version(asked: bool) -> None:
    if asked:
        results.print(f"isokern {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Say it.")] = False,
) -> None:
    pass


# Newer releases of typer have click's exceptions under a name of their own, and this one in common with older ones.
_UsageError: Any = typer.BadParameter.__base__


def main() -> None:
    """Run a command; what is wrong becomes one line and an exit code: 2 for the options, 1 for what they name."""
    warnings.showwarning = _show_warning
    try:
        code = app(prog_name="isokern", standalone_mode=False)
    except _UsageError as error:
        if text := error.format_message().rstrip("."):  # there is none if help was shown in place of it
            print_remark("error", f"{text}. See {error.ctx.command_path} --help.", "red")
        code = error.exit_code
    except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
        print_remark("error", str(error) or type(error).__name__, "red")
        code = 1
    except KeyboardInterrupt:  # so early that typer has not begun to look out for it
        code = 130
    sys.exit(code)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print_remark("warning", str(message), "yellow")
