"""Work that stops when its time is up, whatever it is doing."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic, process_time
from types import FrameType
from typing import TypeVar

from gradspec.symbolic import attempts

T = TypeVar("T")

_IDLE = 6.0
"""The wall's time for a second of the processor's: a busy machine is no fault of a rule."""

_AGAIN = 0.05
"""Seconds after which the alarm rings again: an exception raised inside a destructor or a
callback of the garbage collector is swallowed by Python, and the work would go on."""


class _TimeUp(BaseException):
    """Not an Exception, so that no handler inside the work takes it for one."""


def can_interrupt() -> bool:
    """Alarms reach only the main thread, and only where there are signals."""
    main = threading.current_thread() is threading.main_thread()
    return main and hasattr(signal, "setitimer")


def within(seconds: float, work: Callable[[], T]) -> T | None:
    """The result of ``work``, or None if it has not ended in so many seconds of the
    processor's time (or a multiple of the wall's, for what sleeps).

    Only where :func:`can_interrupt`. Timers that were running are set again afterwards.
    """
    from flint import ctx

    precision = ctx.prec
    busy = _Timer(signal.ITIMER_PROF, signal.SIGPROF, process_time)
    idle = _Timer(signal.ITIMER_REAL, signal.SIGALRM, monotonic)
    found = busy.limit(seconds, lambda: idle.limit(_IDLE * seconds, work))
    ctx.prec = precision  # the alarm may have rung where the work was to set it back
    return found


_set_aside = [0.0]


@dataclass(frozen=True, slots=True)
class _Timer:
    which: int
    alarm: signal.Signals
    time: Callable[[], float]

    def limit(self, seconds: float, work: Callable[[], T]) -> T | None:
        armed = True

        def ring(number: int, frame: FrameType | None) -> None:
            if armed and not _is_telling(frame):
                raise _TimeUp

        start = self._now()
        handler = signal.signal(self.alarm, ring)
        delay, interval = signal.setitimer(self.which, max(seconds, 1e-3), _AGAIN)
        try:
            with _swallowed_in_silence():
                return work()
        except _TimeUp:
            armed = False
            return None
        finally:
            armed = False
            signal.setitimer(self.which, 0)
            signal.signal(self.alarm, handler)
            if delay:
                left = max(delay - (self._now() - start), 1e-3)
                signal.setitimer(self.which, left, interval)

    def _now(self) -> float:
        return self.time() - _set_aside[0]


@dataclass(frozen=True, slots=True)
class _Silence:
    """Python tells on stderr what it swallows; an alarm that rings again is no fault.

    What else is swallowed is told as before.
    """

    told: Callable[[sys.UnraisableHookArgs], object]

    def __call__(self, swallowed: sys.UnraisableHookArgs) -> None:
        if swallowed.exc_type is not _TimeUp:
            self.told(swallowed)


@contextmanager
def _swallowed_in_silence() -> Iterator[None]:
    told = sys.unraisablehook
    sys.unraisablehook = _Silence(told)
    try:
        yield
    finally:
        sys.unraisablehook = told


def _is_telling(frame: FrameType | None) -> bool:
    """An alarm inside the hook would be swallowed, and told, in its turn."""
    while frame is not None:
        if frame.f_code is _Silence.__call__.__code__:
            return True
        frame = frame.f_back
    return False


@contextmanager
def unhurried() -> Iterator[None]:
    """For what is done once and must not be cut short: imports. The time does not count."""
    begun = monotonic()
    which = (signal.ITIMER_REAL, signal.ITIMER_PROF) if can_interrupt() else ()
    running = [(timer, *signal.setitimer(timer, 0)) for timer in which]
    with attempts.set_aside():
        yield
    _set_aside[0] += monotonic() - begun
    for timer, delay, interval in running:
        if delay:
            signal.setitimer(timer, delay, interval)


def in_time(seconds: float, work: Callable[[], T]) -> T | None:
    """:func:`within` where alarms can be set, and without a limit elsewhere."""
    return within(seconds, work) if can_interrupt() else work()
