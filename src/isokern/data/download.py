"""Download files, with a progress bar on a terminal."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pooch
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

_CHUNK = 2**17  # bytes
_TIMEOUT = 30  # seconds without an answer


def download(url: str, folder: Path) -> Path:
    """Download a file into a folder under its own name; it appears there only when it is complete."""
    name = url.rsplit("/", 1)[-1]
    with _progress() as progress, _quiet_pooch():
        downloader = pooch.HTTPDownloader(progressbar=_Bar(progress, name), chunk_size=_CHUNK, timeout=_TIMEOUT)
        return Path(pooch.retrieve(url, known_hash=None, fname=name, path=folder, downloader=downloader))


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
