"""Download files, with a progress bar on a terminal."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pooch
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

_log = logging.getLogger("isokern")
_CHUNK = 2**17  # bytes
_TIMEOUT = 30  # seconds without an answer


def download(url: str, folder: Path, sha256: str | None) -> Path:
    """Download a file into a folder under its own name; it appears there only when it is complete.

    A file with another SHA-256 is not kept. Without a SHA-256, a line in the log says so.
    """
    name = url.rsplit("/", 1)[-1]
    if sha256 is None:
        _log.warning("%s has no known checksum: only its format and number of rows are checked.", url)
    with _progress() as progress, _quiet_pooch():
        downloader = pooch.HTTPDownloader(progressbar=_Bar(progress, name), chunk_size=_CHUNK, timeout=_TIMEOUT)
        try:
            return Path(pooch.retrieve(url, known_hash=sha256, fname=name, path=folder, downloader=downloader))
        except ValueError as error:
            raise ValueError(
                f"{url} must have the SHA-256 {sha256}; got another file, which was deleted. Try again later, or put a "
                f"file that you trust into {folder}."
            ) from error


def _progress() -> Progress:
    console = Console(stderr=True)
    shown = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    return Progress(*shown, console=console, disable=not (console.is_terminal or console.is_jupyter))


@contextmanager
def _quiet_pooch() -> Iterator[None]:
    """Silence pooch's log, which repeats what the bar shows and adds advice for developers."""
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


class _Bar:
    """A rich progress bar with the interface that pooch expects."""

    def __init__(self, progress: Progress, name: str) -> None:
        self._progress = progress
        self._task = progress.add_task(name, total=None)

    @property
    def total(self) -> float | None:
        """The size of the file, or None if the server does not send it."""
        return self._progress.tasks[self._task].total

    @total.setter
    def total(self, n_bytes: int) -> None:
        self._progress.update(self._task, total=n_bytes or None)

    def update(self, n_bytes: int) -> None:
        """Add received bytes."""
        self._progress.advance(self._task, n_bytes)

    def reset(self) -> None:
        """Set the bar to 0; pooch does so at the end, then fills it exactly."""
        self._progress.update(self._task, completed=0)

    def close(self) -> None:
        """Do nothing: the bar ends with the download."""
