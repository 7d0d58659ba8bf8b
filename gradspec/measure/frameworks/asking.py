"""Asking a framework through a feature, and comparing what it gives with the truth."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from gradspec.measure.frameworks.setting import Case, Run

Listed = Sequence[Any]
"""[shape, elements] of a tensor."""


def ask(make: Callable[[], Any], run: Run) -> list[Listed] | None:
    """The tensors that a feature gives in a setting that is made for it; None if it has
    checked what there is to check."""
    s = make()
    found = run(s)
    return None if found is None else s.listed(found)


def truths(case: Case, order: int) -> dict[str, Listed] | None:
    """By name, what a feature is to give: of order 0 the values of the outputs that take
    a cotangent, of order 1 the gradients, and so on; None if nothing is known."""
    if order:
        return case.get(("first", "second", "third")[order - 1])
    floats = {name for name, kind in case["outputs"] if kind == "float"}
    return {name: value for name, value in case["values"].items() if name in floats}


@dataclass(frozen=True, slots=True)
class Gap:
    """A difference from the truth: in the shape, or in one element."""

    got: Any
    expected: Any
    element: int | None = None


def gaps(got: Listed, expected: Listed, rooms: Sequence[float]) -> Iterator[Gap]:
    """The differences of a tensor from the true one, whose elements have ``rooms``.
    NaN and infinities agree with themselves, and where the truth is NaN
    nothing is compared."""
    shape, true = expected
    if list(got[0]) != list(shape) or len(got[1]) != len(true):
        yield Gap(got[0], shape)
        return
    for k, (a, b, room) in enumerate(zip(got[1], true, rooms, strict=True)):
        if not math.isnan(b) and not is_close(a, b, room):
            yield Gap(a, b, k)


def is_close(got: float, expected: float, room: float) -> bool:
    """True if a number is within ``room`` of another, or is the same infinity or NaN."""
    if math.isfinite(expected):
        return abs(got - expected) <= room
    return repr(float(got)) == repr(float(expected))


def fault_line(fault: Exception) -> str:
    """The first line of what an exception says of itself, before notes on it."""
    told = traceback.format_exception_only(fault)[0].strip()
    return told.splitlines()[0] if told else repr(fault)
