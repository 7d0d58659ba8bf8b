"""What is being tried, told to whoever watches the clock; and what was given up before.

Strategies look at their deadlines, and an alarm stops Python code that does not. Neither
stops a library that does not come back. So whatever may take long says what it is and
when it should have ended; a watcher (`gradspec.driver.watch`) kills the process that is
overdue, and in the next one the step is not tried again. Nobody watching, it costs
a microsecond.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

Tell = Callable[[str, float], None]
"""Takes the step that is under way and the time by which it should have ended."""

NEVER = float("inf")

_tell: Tell | None = None
_given_up: frozenset[str] = frozenset()
_under_way: list[tuple[str, float]] = []


def watched(tell: Tell | None, given_up: frozenset[str] = frozenset()) -> None:
    """From now on ``tell`` hears of every step; those in ``given_up`` are not tried."""
    global _tell, _given_up
    _tell, _given_up = tell, given_up
    _under_way.clear()


@contextmanager
def attempt(step: str, seconds: float) -> Iterator[bool]:
    """Try something that should take so long at most (of the processor's time: twice as
    much of the wall's); False: it is not to be tried.

    Steps nest; the names of the outer ones belong to an inner one's.
    """
    if _tell is None:
        yield True
        return
    outer = f"{_under_way[-1][0]}: " if _under_way else ""
    name = outer + step
    if name in _given_up:
        yield False
        return
    _under_way.append((name, monotonic() + 2 * seconds))
    _tell(*_under_way[-1])
    try:
        yield True
    finally:
        if _under_way:
            _under_way.pop()
        _tell(*(_under_way[-1] if _under_way else ("", NEVER)))


@contextmanager
def set_aside() -> Iterator[None]:
    """What takes its time now is nobody's fault: all deadlines move."""
    if _tell is None:
        yield
        return
    begun = monotonic()
    _tell("", NEVER)
    yield
    later = monotonic() - begun
    _under_way[:] = [(name, deadline + later) for name, deadline in _under_way]
    _tell(*(_under_way[-1] if _under_way else ("", NEVER)))
