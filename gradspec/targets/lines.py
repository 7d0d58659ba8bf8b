"""Source text as a list of logical lines, indented by four spaces a level."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from gradspec.plan.plan import Assign, Step
from gradspec.targets.expressions import Scope, render

Lines: TypeAlias = list[str]


def indented(lines: Iterable[str]) -> Lines:
    """One level deeper; empty lines stay empty."""
    return [f"    {line}" if line else line for line in lines]


def assignment(name: str, value: str, comment: str = "") -> Lines:
    """``name = value`` under its comment; nothing if the value is the name itself."""
    if name == value:
        return []
    return [*(f"# {line}" for line in comment.splitlines()), f"{name} = {value}"]


def assignments(statements: Iterable[Assign | Step], scope: Scope) -> Lines:
    """The statements of a pass, in order."""
    return [
        line
        for s in statements
        for line in assignment(s.name, render(s.value, scope), s.comment)
    ]


def unpacked(targets: list[str], source: str) -> Lines:
    """``a, _, b = source``; nothing if no part is wanted."""
    if set(targets) == {"_"}:
        return []
    left = ", ".join(targets)
    return [f"({left},) = {source}" if len(targets) == 1 else f"{left} = {source}"]


def tightened(lines: Lines) -> Lines:
    """``return f(x)`` where the last two lines are ``y = f(x)`` and ``return y``."""
    if len(lines) < 2 or not lines[-1].startswith("return "):
        return lines
    name = lines[-1].removeprefix("return ")
    before = lines[-2].removeprefix(f"{name} = ")
    if before == lines[-2] or not name.isidentifier():
        return lines
    return [*lines[:-2], f"return {before}"]
