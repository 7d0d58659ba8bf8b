"""What a choice of evaluations has looked at, for `gradspec audit --explain`.

Nothing is kept unless someone listens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from gradspec.ir.expr import Expr
from gradspec.stabilise.measure import Score


@dataclass(frozen=True, slots=True)
class Tried:
    """One choice: the form written, the one taken, all others with their errors in
    float32 (None: worse than what is written somewhere), and before and after by format.
    """

    written: Expr
    taken: Expr
    others: tuple[tuple[Expr, float | None], ...]
    formats: tuple[tuple[str, Score, Score], ...]


_listener: ContextVar[list[Tried] | None] = ContextVar("tried", default=None)


@contextmanager
def listening() -> Iterator[list[Tried]]:
    """The choices that are made inside, in order."""
    heard: list[Tried] = []
    token = _listener.set(heard)
    try:
        yield heard
    finally:
        _listener.reset(token)


@contextmanager
def overhearing() -> Iterator[list[Tried]]:
    """The choices that are made inside; whoever else listens hears them too."""
    with listening() as heard:
        yield heard
    for tried in heard:
        note(tried)


def note(tried: Tried) -> None:
    """Tell whoever listens."""
    heard = _listener.get()
    if heard is not None:
        heard.append(tried)


def forms_of(heard: Iterable[Tried], close: Callable[[Expr], Expr]) -> tuple[Expr, ...]:
    """The closed forms that were looked at, each once."""
    forms = (
        form
        for tried in heard
        for form in (tried.taken, tried.written, *(form for form, _ in tried.others))
    )
    return tuple(dict.fromkeys(map(close, forms)))
