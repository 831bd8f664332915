"""Put the commands together, run one of them and print its error on one line."""

from __future__ import annotations

import sys
import warnings
from typing import Annotated, Any

import typer

from isokern import __version__
from isokern.cli._options import in_options
from isokern.cli._show import print_remark, results
from isokern.cli._signals import keyboard_interrupts
from isokern.cli._standard_streams import discard_unwritten
from isokern.cli.data import data
from isokern.cli.demo import demo
from isokern.cli.evaluate import evaluate
from isokern.cli.explain import explain
from isokern.cli.export import export
from isokern.cli.fit import fit
from isokern.cli.info import info
from isokern.cli.plot import plot
from isokern.cli.predict import predict
from isokern.cli.reproduce import reproduce
from isokern.cli.stream import stream

app = typer.Typer(
    help="Online kernel learning with the Isolation Kernel.",
    epilog="Start with: isokern demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (demo, fit, predict, stream, evaluate, explain, export, reproduce, data, info):
    app.command(no_args_is_help=command in {fit, predict, stream, evaluate, explain, export, reproduce})(command)
app.add_typer(plot, name="plot")


def _show_version(is_asked: bool) -> None:
    if is_asked:
        results.print(f"isokern {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


# typer.BadParameter is public in all releases of Typer; its base class is click's in some and Typer's own in others.
_UsageError: Any = typer.BadParameter.__base__


def run() -> int | None:
    """Run the command that ``sys.argv`` names and return its exit code."""
    warnings.showwarning = _show_warning
    try:
        with keyboard_interrupts():
            code: int | None = app(prog_name="isokern", standalone_mode=False)
            sys.stdout.flush()
    except _UsageError as error:
        if text := error.format_message().rstrip("."):  # empty if the help was shown instead
            print_remark("error", f"{text}. See {error.ctx.command_path} --help.", "red")
        code = error.exit_code
    except (ValueError, TypeError, OverflowError, OSError, ImportError, MemoryError) as error:
        # The compiled core's error has the name of a C++ class as its message.
        text = in_options(str(error).replace("std::bad_alloc", "not enough memory."))
        print_remark("error", text or type(error).__name__, "red")
        code = 1
    except KeyboardInterrupt:  # before Typer handles it
        code = 130
    discard_unwritten()
    return code


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print_remark("warning", in_options(str(message)), "yellow")
