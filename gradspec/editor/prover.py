"""The process that checks texts for the editor: one at a time, killed to cancel."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from gradspec.diagnostics import Outcome
from gradspec.driver.cache import worker_loss
from gradspec.driver.checking import CheckResult, check_source
from gradspec.driver.discover import read_imported
from gradspec.driver.load import Reader
from gradspec.driver.workers import Lost, Worker
from gradspec.options import Options
from gradspec.source import Source
from gradspec.symbolic.limit import expendable

PATIENCE = 1.0
"""Seconds that a check which nobody wants may go on when another is asked for. To start
a process takes about as long."""


@dataclass(frozen=True, slots=True)
class Request:
    """A text to check; ``open`` are the texts in the editor, by path, which stand for
    the files."""

    source: Source
    below: str
    options: Options
    open: dict[str, str] = field(default_factory=dict)


def check_request(request: Request) -> CheckResult:
    """The result of a check, in the process that does it."""
    expendable()
    return check_source(
        request.source, request.below, request.options, reader(request.open)
    )


def reader(open: dict[str, str]) -> Reader:
    """A reader of imported files, which has those that are open from the editor."""

    def read(path: str, root: str) -> Outcome[Source]:
        text = open.get(path)
        if text is None:
            return read_imported(path, root)
        return Outcome(Source(path, text))

    return read


class Prover:
    """A process that stays from one check to the next."""

    def __init__(self) -> None:
        self._worker: Worker[Request, CheckResult] | None = None
        self._free = asyncio.Lock()
        self._is_wanted: Callable[[], bool] = bool

    async def check(
        self, request: Request, is_wanted: Callable[[], bool]
    ) -> CheckResult | None:
        """The result; None if nobody wants it any more. A check that nobody wants is
        ended, if another waits for it."""
        while not await self._is_acquired():
            if not self._is_wanted():
                self.stop()
        try:
            self._is_wanted = is_wanted
            return await self._check(request) if is_wanted() else None
        finally:
            self._free.release()

    async def _is_acquired(self) -> bool:
        """True if the process is free within the time that one waits for it."""
        try:
            return await asyncio.wait_for(self._free.acquire(), PATIENCE)
        except TimeoutError:
            return False

    async def _check(self, request: Request) -> CheckResult | None:
        worker = self._worker = self._worker or Worker(check_request)
        worker.give(0, request)
        found = await asyncio.to_thread(worker.result)
        if not isinstance(found, Lost):
            return found
        if self._worker is not worker:  # it was ended
            return None
        self._worker = None
        return CheckResult((), (worker_loss(request.source.path, found),))

    def stop(self) -> None:
        """End the process, whatever it does; its check has no result."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.stop()
