"""The public names of emitted modules, and how they may be called."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any

ABSENT = "-"


def names(module: ModuleType) -> dict[str, str]:
    """Parameters by name of function or class."""
    return dict(_names(module))


def _names(module: ModuleType) -> Iterator[tuple[str, str]]:
    for name, value in vars(module).items():
        own = getattr(value, "__module__", None) == module.__name__
        if own and not name.startswith("_") and callable(value):
            yield name, ", ".join(_parameters(value))


def _parameters(value: Any) -> Iterator[str]:
    called = value.__init__ if inspect.isclass(value) else value
    given = inspect.signature(called).parameters.values()
    is_marked = False
    for one in given:
        if one.name == "self":
            continue
        if one.kind is one.KEYWORD_ONLY and not is_marked:
            is_marked = True
            yield "*"
        yield one.name if one.default is one.empty else f"{one.name}={one.default!r}"


def row(file: str, name: str, by_target: dict[str, dict[str, str]]) -> dict[str, str]:
    """A name of a file, on every target."""
    told = {target: found.get(name, ABSENT) for target, found in by_target.items()}
    return {"file": file, "name": name, **told}
