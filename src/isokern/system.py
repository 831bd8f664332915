"""Hide the differences between operating systems: locks and syncs of files, waiting for pipes, forks, processors.

What POSIX has and Windows has not is here, and nowhere else in the package; ``cpp/common/cpus.cpp`` is the compiled
core's counterpart.
"""

from __future__ import annotations

import os
import platform
import select
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO


def try_lock(file: BinaryIO) -> bool:
    """Lock an open file for this process; return whether no other process has it.

    The system releases the lock when the file is closed or the process ends. Where a file system has no locks, as some
    network file systems, nothing is locked.
    """
    try:
        if sys.platform == "win32":
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # the latter on Windows
        return False
    except OSError:
        pass
    return True


def sync_folder(folder: Path) -> None:
    """Flush a folder to the disk, so that a rename in it survives a power failure. Windows cannot do this."""
    if sys.platform == "win32":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def new_file_mode() -> int:
    """Return the permissions of a new file."""
    mask = os.umask(0o077)  # reading it means setting it; the strictest one is safe meanwhile
    os.umask(mask)
    return 0o666 & ~mask


def input_poll(file: Any) -> Any:
    """Return a poll object that waits for data of a file, or None where the system or the file has none."""
    try:
        poll = select.poll()
        poll.register(file.fileno(), select.POLLIN)
    except (AttributeError, OSError):
        return None
    return poll


def at_fork(*, before: Callable[[], None], in_parent: Callable[[], None], in_child: Callable[[], None]) -> None:
    """Call these functions around each fork of this process, on systems that fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=before, after_in_parent=in_parent, after_in_child=in_child)


def check_pipes_are_inherited() -> None:
    """Raise on a system whose child processes cannot use a pipe by its number."""
    if sys.platform == "win32":
        raise OSError("experiments must run on Linux or macOS; got Windows. Use the Windows Subsystem for Linux.")


def processor() -> str:
    """Return the model of the processor, or its architecture where the system does not tell more.

    Virtual machines often leave only the maker's name, so the numbers that x86 processors identify themselves by are
    added: "AMD EPYC (family 26, model 2)".
    """
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    known = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    numbers = ", ".join(f"{key.split()[-1]} {known[key]}" for key in ("cpu family", "model") if key in known)
    name = known.get("model name", platform.machine())
    return f"{name} ({numbers})" if numbers else name
