"""A progress bar that shows only when somebody waits: on a terminal, after a second."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

PATIENCE_SECONDS = 1.0


@contextmanager
def bar(what: str, total: int) -> Iterator[Callable[[str], None]]:
    """Gives a function to call after each of ``total`` pieces of work."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    shown = _Delayed(what, total)
    try:
        yield shown.advance
    finally:
        shown.close()


class _Delayed:
    """Starts rich only when the work turns out to be long."""

    def __init__(self, what: str, total: int) -> None:
        self._what, self._total, self._done = what, total, 0
        self._begun = time.monotonic()
        self._progress: Progress | None = None

    def advance(self, name: str) -> None:
        self._done += 1
        if self._progress is None and time.monotonic() - self._begun > PATIENCE_SECONDS:
            from rich.console import Console
            from rich.progress import Progress

            self._progress = Progress(console=Console(stderr=True), transient=True)
            self._task = self._progress.add_task(self._what, total=self._total)
            self._progress.start()
        if self._progress is not None:
            self._progress.update(self._task, completed=self._done)

    def close(self) -> None:
        if self._progress is not None:
            self._progress.stop()
