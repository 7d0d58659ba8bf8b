"""The watcher: a process that waits, and kills the one that works if it is overdue.

Deadlines and alarms stop nearly everything; a call into a library's C code they do not.
So the command line runs in a child. What the child tries (`symbolic.attempts`) stands in
a small file, its own or that of a worker, with the time by which it should have ended.
When that has passed the child is killed and another begins, which is told what not to
try again: a proof that is given up leaves the verdict at "agrees", anything else is an
error of its rule. Files that were finished come from the cache.

Where there is no ``fork`` the child is a fresh interpreter.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from gradspec.symbolic import attempts

FOLDER = "GRADSPEC_WATCHED"
"""The environment variable that tells a child where to say what it does."""

GRACE = 0.75
"""Seconds beyond the deadline: what can stop by itself has then stopped."""

PATIENCE = 5.0
"""Seconds after an interrupt: Python loses one that comes while it clears up an object, and
C code takes none."""

_LOOK = 0.2
_COLLECT = (50_000, 20, 50)
"""Expressions hold no cycles: to look for some as often as Python does by itself (every
700 new objects) takes a tenth of a compile."""

_WIDTH = 600
_GIVEN_UP = "given-up.json"
_MOST = 500
"""Children: more than a run has steps to give up."""


def supervised(work: Callable[[], int]) -> int:
    """The exit code of ``work``, done in a child that no step can hang.

    Raises:
        KeyboardInterrupt: the child was told to end, did not, and was killed.
    """
    if os.environ.get(FOLDER):
        return work()
    with tempfile.TemporaryDirectory(prefix="gradspec-") as folder, _heard() as heard:
        given_up: list[str] = []
        for _ in range(_MOST):
            (Path(folder) / _GIVEN_UP).write_text(json.dumps(given_up), "utf-8")
            forks = hasattr(os, "fork")
            child = _Forked(work, folder, heard) if forks else _Spawned(folder)
            overdue = _wait(child, Path(folder), heard.signals)
            if overdue is None:
                return child.code()
            given_up.append(overdue)
    return 2


def join() -> None:
    """In a child: say from now on what is tried, collect garbage seldom. Once a process."""
    folder = os.environ.get(FOLDER)
    if not folder or _joined == [os.getpid()]:
        return
    gc.set_threshold(*_COLLECT)
    _joined[:] = [os.getpid()]
    try:
        text = (Path(folder) / _GIVEN_UP).read_text("utf-8")
        file = os.open(Path(folder) / str(os.getpid()), os.O_CREAT | os.O_WRONLY, 0o600)
    except (OSError, ValueError):
        return
    attempts.watched(_teller(file), frozenset(json.loads(text)))


_joined: list[int] = []


def _teller(file: int) -> attempts.Tell:
    def tell(step: str, deadline: float) -> None:
        line = f"{deadline!r} {step}".encode()[:_WIDTH]
        os.lseek(file, 0, os.SEEK_SET)
        os.write(file, line.ljust(_WIDTH))

    return tell


# --- the side that waits -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Heard:
    """Signals that came and are to be passed on, and what was done about each kind."""

    signals: list[int]
    before: dict[signal.Signals, Any]


@contextmanager
def _heard() -> Iterator[_Heard]:
    """Signals are kept for the child from before there is one. What is ignored, as an
    interrupt is by a job in the background, stays so.
    """
    heard = _Heard([], {})
    for kind in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(kind) is signal.SIG_IGN:
            continue
        heard.before[kind] = signal.signal(
            kind, lambda kind, _: heard.signals.append(kind)
        )
    try:
        yield heard
    finally:
        _restore(heard)


def _restore(heard: _Heard) -> None:
    for kind, handler in heard.before.items():
        signal.signal(kind, handler)


def _wait(child: _Forked | _Spawned, folder: Path, signals: list[int]) -> str | None:
    """None when the child has ended; otherwise the step at which it was killed."""
    asked: float | None = None
    while not child.has_ended(_LOOK):
        # An interrupt from a terminal reaches the child by itself; wait and see.
        if signals:
            child.send(signals.pop())
            asked = asked or monotonic()
        if asked is not None and monotonic() > asked + PATIENCE:
            child.kill()
            _clear(folder)
            raise KeyboardInterrupt
        overdue = _overdue(folder)
        if overdue is not None:
            child.kill()
            _clear(folder)
            return overdue
    return None


def _overdue(folder: Path) -> str | None:
    for path in _told(folder):
        deadline, _, step = _read(path).partition(" ")
        if _has_passed(deadline) and _read(path).partition(" ")[2] == step:
            return step.strip()
    return None


def _has_passed(deadline: str) -> bool:
    try:
        return monotonic() > float(deadline) + GRACE
    except ValueError:  # not written yet
        return False


def _told(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.name.isdigit())


def _read(path: Path) -> str:
    return path.read_text("utf-8", errors="replace")


def _clear(folder: Path) -> None:
    """End the workers of a child that was killed, and forget them all."""
    for path in _told(folder):
        _kill(int(path.name))
        path.unlink(missing_ok=True)


def _kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGTERM if os.name == "nt" else signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


class _Forked:
    """A copy of this process. The pipe is at its end when the child is."""

    def __init__(self, work: Callable[[], int], folder: str, heard: _Heard) -> None:
        self._end, held = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self._process = os.fork()
        if self._process == 0:
            _restore(heard)
            os.close(self._end)
            os.environ[FOLDER] = folder
            _run(work)
        os.close(held)

    def has_ended(self, seconds: float) -> bool:
        return bool(select.select([self._end], [], [], seconds)[0])

    def send(self, kind: int) -> None:
        os.kill(self._process, kind)

    def kill(self) -> None:
        _kill(self._process)
        os.waitpid(self._process, 0)
        os.close(self._end)

    def code(self) -> int:
        _, status = os.waitpid(self._process, 0)
        os.close(self._end)
        code = os.waitstatus_to_exitcode(status)
        return code if code >= 0 else 128 - code


def _run(work: Callable[[], int]) -> None:
    """In the child: nothing of the parent's own ending is done twice."""
    code = 2
    try:
        code = work()
    except SystemExit as done:
        code = done.code if isinstance(done.code, int) else int(done.code is not None)
    except KeyboardInterrupt:  # before the work could hear of it
        code = 128 + signal.SIGINT
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except OSError:
            code = code or 0
        os._exit(code)


class _Spawned:
    """The same command again, in a fresh interpreter."""

    def __init__(self, folder: str) -> None:
        import subprocess

        self._late = subprocess.TimeoutExpired
        command = [sys.executable, "-m", "gradspec", *sys.argv[1:]]
        self._child = subprocess.Popen(command, env={**os.environ, FOLDER: folder})

    def has_ended(self, seconds: float) -> bool:
        try:
            self._child.wait(seconds)
        except self._late:
            return False
        return True

    def send(self, kind: int) -> None:
        self._child.send_signal(kind)

    def kill(self) -> None:
        self._child.kill()
        self._child.wait()

    def code(self) -> int:
        return int(self._child.wait())
