"""Keep two runs from writing to the same folder."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class FolderLock:
    """A lock on a folder; the system releases it when the process ends, however it ends."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._path = folder, folder / "lock"
        self._file = open(self._path, "ab")  # noqa: SIM115
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise ValueError(f"{folder} is in use by another run. Wait for its end, or change the folder.") from None
        except OSError:  # some network file systems have no locks
            pass

    def check(self) -> None:
        """Raise if the folder was removed; another run may have made it anew."""
        try:
            is_same = os.path.samestat(os.fstat(self._file.fileno()), os.stat(self._path))
        except FileNotFoundError:
            is_same = False
        if not is_same:
            raise ValueError(f"{self._folder} must stay until the end of the run; it was removed. Start the run anew.")

    def close(self) -> None:
        """Release the lock. Its file stays: another run may already have opened it."""
        self._file.close()
