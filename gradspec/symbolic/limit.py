"""Limits on steps, processor time and memory.

Searches and proofs count their own steps (`Effort`), so that what they find is the same
on any machine, whatever else it does. The clock decides nothing: an alarm stops what
takes many times as long as all its steps should (`BRAKE`), and the rule has an error.
An alarm raises an exception, which Python sees when C code has returned; a process that
may be lost (`expendable`: a worker of `gradspec.driver.workers`) is ended by the system
soon after.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from time import process_time
from typing import TypeVar

from gradspec.ir.walk import forget

T = TypeVar("T")

MEMORY = 1 << 30
"""Bytes that an expendable process may have."""

GRACE = 0.75
"""Seconds after its limit until a process is ended: interruptible work has stopped."""

_AGAIN = 0.05
"""Seconds after which the alarm rings again: an exception raised inside a destructor or
a callback of the garbage collector is swallowed by Python, and the work would go on."""


STEPS = 10_000
"""Steps for each unit of the budget: about a second of a proof, a third of a second of
a search for evaluations."""

BRAKE = 30
"""Seconds of the processor's time for each unit of the budget: no rule comes near it
that counts its steps, on a machine ten times slower, with threads beside."""


@dataclass(slots=True)
class Effort:
    """Steps that a search may still take."""

    steps: int

    @classmethod
    def of(cls, budget: float) -> Effort:
        """The effort that a budget permits."""
        return cls(int(STEPS * budget))

    def take(self, steps: int) -> bool:
        """Count steps that are about to be taken; False if they are too many."""
        self.steps -= steps
        return self.steps >= 0

    def need(self, steps: int) -> None:
        """Count steps that are about to be taken; OutOfSteps if they are too many."""
        if not self.take(steps):
            raise OutOfSteps


class OutOfSteps(Exception):
    """A search has taken all steps that it may take."""


class _TimeUp(BaseException):
    """Not an Exception, so that no handler inside the work catches it."""


@dataclass(slots=True)
class _State:
    """``held`` counts the sections that must not be interrupted now."""

    is_expendable: bool = False
    held: int = 0


_state = _State()


def expendable() -> None:
    """Declare that this process may be lost: to its memory, or to C code that does not
    return."""
    _state.is_expendable = True
    try:
        import resource
    except ImportError:  # no such limits on this system
        return
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = MEMORY if most == resource.RLIM_INFINITY else min(MEMORY, most)
    resource.setrlimit(resource.RLIMIT_DATA, (wanted, most))


def can_interrupt() -> bool:
    """True in the main thread of a system with signals, which alone receives alarms."""
    main = threading.current_thread() is threading.main_thread()
    return main and hasattr(signal, "setitimer")


def in_time(seconds: float, work: Callable[[], T]) -> T | None:
    """The result of ``work``, or None if it has not ended in so many seconds of the
    processor's time. Without a limit where no alarm can be set.
    """
    if not can_interrupt():
        return work()
    from flint import ctx

    precision = ctx.prec
    alarm = _Alarm()
    handler = signal.signal(signal.SIGPROF, alarm.ring)
    hook, sys.unraisablehook = sys.unraisablehook, _silent(sys.unraisablehook)
    running = alarm.set(max(seconds, 1e-3))
    try:
        return work()
    except _TimeUp:
        alarm.is_on = False
        return None
    finally:
        alarm.is_on = False
        alarm.put_back(running)
        sys.unraisablehook = hook
        signal.signal(signal.SIGPROF, handler)
        ctx.prec = precision  # it may have rung where the work was to set it back


class Shortage(Enum):
    """The reason why work was stopped."""

    TIME = "time"
    MEMORY = "memory"
    STEPS = "steps"

    def sentence(self, what: str, budget: float) -> str:
        """The message that the work ``what``, limited to this budget, was stopped."""
        if self is Shortage.TIME:
            return f"{what} was stopped after {BRAKE * budget:g} s"
        if self is Shortage.STEPS:
            return f"{what} takes more steps than a budget of {budget:g} permits"
        return f"{what} was stopped: it needs more than {MEMORY >> 30} GB of memory"


def run_limited(budget: float, work: Callable[[], T]) -> T | Shortage:
    """The result of ``work``, if steps, memory and many times the time that its budget
    should take suffice for it. What was kept of other work plays no part in it."""
    forget()
    try:
        found = in_time(BRAKE * budget, work)
    except MemoryError:
        return Shortage.MEMORY
    except OutOfSteps:
        return Shortage.STEPS
    return Shortage.TIME if found is None else found


@contextmanager
def hold_alarm() -> Iterator[None]:
    """Context that must not be cut short, such as imports: the alarm rings
    afterwards."""
    _state.held += 1
    try:
        yield
    finally:
        _state.held -= 1


@dataclass(slots=True)
class _Alarm:
    begun: float = field(default_factory=process_time)
    is_on: bool = True

    def ring(self, *_: object) -> None:
        if self.is_on and not _state.held:
            raise _TimeUp

    def set(self, seconds: float) -> dict[int, tuple[float, float]]:
        """Start the timers; returns the remainder of those that were running. The timer
        of user time ends the process: its signal has no handler."""
        running = {
            signal.ITIMER_PROF: signal.setitimer(signal.ITIMER_PROF, seconds, _AGAIN)
        }
        if _state.is_expendable:
            which = signal.ITIMER_VIRTUAL
            running[which] = signal.setitimer(which, seconds + GRACE)
        return running

    def put_back(self, running: dict[int, tuple[float, float]]) -> None:
        gone = process_time() - self.begun
        for which, (left, interval) in running.items():
            signal.setitimer(which, left and max(left - gone, 1e-3), interval)


def _silent(
    told: Callable[[sys.UnraisableHookArgs], object],
) -> Callable[[sys.UnraisableHookArgs], None]:
    """Python tells on stderr what it swallows; an alarm that rings again is no
    fault."""

    def hook(swallowed: sys.UnraisableHookArgs) -> None:
        if swallowed.exc_type is not _TimeUp:
            with hold_alarm():
                told(swallowed)

    return hook
