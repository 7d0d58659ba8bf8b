"""Worker processes of the command: one that is killed costs its task, no more.

Each worker has a pipe to the command and shares nothing with the others, so that none
of them can be killed while it holds what the others wait for. At the pipe's other end
the death of a worker is the end of the file; a worker itself waits for the end of its
parent, and ends too. Processes are spawned, not forked: the parent may hold threads (a
progress bar).
"""

from __future__ import annotations

import gc
import os
import signal
import threading
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import connection, get_context, parent_process, resource_tracker
from typing import Any, Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")

_CONTEXT = get_context("spawn")
_ENDING = 5.0
"""Seconds in which a process that has closed its pipe ends by itself."""

_COLLECT = (2_000_000, 20, 50)
"""Expressions hold no cycles: to look for some as often as Python does by itself (every
700 new objects) takes a tenth of a compile. So many objects take some 300 MB."""


@dataclass(frozen=True, slots=True)
class Lost:
    """In place of a result: the worker has ended with ``code`` (a signal's is
    negative)."""

    code: int

    @property
    def is_late(self) -> bool:
        """True if the timer of `symbolic.limit` ended it."""
        return hasattr(signal, "SIGVTALRM") and self.code == -signal.SIGVTALRM

    @property
    def is_out_of_memory(self) -> bool:
        """True if a library aborted it for lack of memory."""
        return hasattr(signal, "SIGABRT") and self.code == -signal.SIGABRT

    @property
    def reason(self) -> str:
        """The reason why it ended, in words."""
        if self.code < 0:
            return signal.Signals(-self.code).name
        return f"exit code {self.code}"


class WorkFailed(RuntimeError):
    """A fault of ours in a worker; the message is its traceback."""


def each(
    work: Callable[[T], R], tasks: Sequence[T], jobs: int
) -> Generator[tuple[int, R | Lost], None, None]:
    """``work`` of each task, in at most ``jobs`` processes, with the task's number, as
    they are done. However it is left, no process stays behind.
    """
    waiting = list(enumerate(tasks))[::-1]
    idle: list[Worker[T, R]] = []
    busy: dict[Any, Worker[T, R]] = {}
    try:
        while waiting or busy:
            while waiting and len(busy) < jobs:
                worker = idle.pop() if idle else Worker(work)
                worker.give(*waiting.pop())
                busy[worker.end] = worker
            for end in connection.wait(list(busy)):
                worker = busy.pop(end)
                result = worker.result()
                if not isinstance(result, Lost):
                    idle.append(worker)
                yield worker.number, result
    finally:
        for worker in (*idle, *busy.values()):
            worker.kill()


class Worker(Generic[T, R]):
    """A process that does ``work``, one task after another."""

    def __init__(self, work: Callable[[T], R]) -> None:
        self.end, theirs = _CONTEXT.Pipe()
        self.number = -1
        self._process = _CONTEXT.Process(
            target=_serve, args=(work, theirs), daemon=True
        )
        with _interrupts_blocked():
            self._process.start()
        theirs.close()

    def give(self, number: int, task: T) -> None:
        """Begin a task, which has a number."""
        self.number = number
        try:
            self.end.send(task)
        except OSError:  # it has ended, as its result will show
            return

    def result(self) -> R | Lost:
        """Wait for the result of the task."""
        try:
            done, found = self.end.recv()
        except (EOFError, OSError):
            self._process.join(_ENDING)
            self.kill()
            return Lost(self._process.exitcode or 0)
        if not done:
            raise WorkFailed(found)
        result: R = found
        return result

    def stop(self) -> None:
        """End the process; who waits for the result is told that it is lost."""
        self._process.kill()

    def kill(self) -> None:
        """End the process, and free what belongs to it."""
        self.end.close()
        self._process.kill()
        self._process.join()


@contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """A new process has the signals blocked that its parent has: an interrupt from the
    terminal, which goes to all of them, is the parent's business from the first moment.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # which would unblock them when it starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# --- in the worker -----------------------------------------------------------------------


def _serve(work: Callable[[Any], Any], end: connection.Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    gc.set_threshold(*_COLLECT)
    while True:
        try:
            task = end.recv()
        except (EOFError, OSError):
            return
        try:
            answer = True, work(task)
        except Exception:
            answer = False, traceback.format_exc()
        try:
            end.send(answer)
        except OSError:  # the parent has gone
            return


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
