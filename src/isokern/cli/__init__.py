"""The command line ``isokern``; each command has a module of its own.

This module imports next to nothing, so that Ctrl-C is handled while the commands are imported, which takes a second.
"""

import os
import signal
import sys


def main() -> None:
    """Run a command; exit with 2 for wrong options, 1 for wrong values or files, 130 after Ctrl-C."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored, for example by nohup
        signal.signal(signal.SIGINT, exit_at_once)
    from isokern.cli._standard_streams import replace_closed_streams

    replace_closed_streams()
    try:
        from isokern.cli import _app
    except ModuleNotFoundError as error:
        if str(error.name).partition(".")[0] not in {"typer", "rich"}:
            raise
        sys.exit("error: the command line needs packages: pip install isokern[cli]")
    sys.exit(_app.run())


def exit_at_once(number: int, frame: object) -> None:
    """Exit without unwinding; imports could turn a KeyboardInterrupt into another exception."""
    os._exit(128 + number)
