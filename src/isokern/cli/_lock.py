"""Keep two runs from writing to the same folder."""

from __future__ import annotations

import os
from pathlib import Path

from isokern.system import try_lock


class FolderLock:
    """A lock on a folder; the system releases it when the process ends, however it ends."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._path = folder, folder / "lock"
        self._file = open(self._path, "ab")  # noqa: SIM115
        if not try_lock(self._file):
            self._file.close()
            raise ValueError(f"{folder} is in use by another run. Wait for its end, or change the folder.")

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
