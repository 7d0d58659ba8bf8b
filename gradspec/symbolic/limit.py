"""Work that stops when its time is up, whatever it is doing."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from time import monotonic
from types import FrameType
from typing import TypeVar

T = TypeVar("T")

_AGAIN = 0.05
"""Seconds after which the alarm rings again: an exception raised inside a destructor is
swallowed by Python, and the work would go on."""


class _TimeUp(BaseException):
    """Not an Exception, so that no handler inside the work takes it for one."""


def can_interrupt() -> bool:
    """Alarms reach only the main thread, and only where there are signals."""
    main = threading.current_thread() is threading.main_thread()
    return main and hasattr(signal, "setitimer")


def within(seconds: float, work: Callable[[], T]) -> T | None:
    """The result of ``work``, or None if it has not ended in time.

    Only where :func:`can_interrupt`. A timer that was running is set again afterwards.
    """
    armed = True

    def ring(number: int, frame: FrameType | None) -> None:
        if armed:
            raise _TimeUp

    start = monotonic()
    handler = signal.signal(signal.SIGALRM, ring)
    delay, interval = signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3), _AGAIN)
    try:
        return work()
    except _TimeUp:
        armed = False
        return None
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if delay:
            left = max(delay - (monotonic() - start), 1e-3)
            signal.setitimer(signal.ITIMER_REAL, left, interval)
