"""Functions of other modules by the text of their call: ``scipy.special.gammaincc(2.5,
x)``. It is written once for all frameworks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def call_by_name(call: str) -> Callable[[Mapping[str, Any]], Any]:
    """The call as a function of the values of its names. ImportError that names the
    function if there is none."""
    path, parts = _parts(call)
    function = function_at(path)

    def apply(values: Mapping[str, Any]) -> Any:
        return function(*(values[p] if isinstance(p, str) else p for p in parts))

    return apply


def names_in(call: str) -> tuple[str, ...]:
    """The names that are passed, each once."""
    return tuple(dict.fromkeys(p for p in _parts(call)[1] if isinstance(p, str)))


def _parts(call: str) -> tuple[str, list[str | float]]:
    path, _, inside = call.removesuffix(")").partition("(")
    parts = [part.strip() for part in inside.split(",") if part.strip()]
    return path, [part if part.isidentifier() else float(part) for part in parts]


def named_function(call: str) -> tuple[Callable[..., Any], int]:
    """The function with its numbers call_with_numbers, and how many arrays it takes. ImportError
    that names it if there is no such module or function.
    """
    path, parts = _parts(call)
    function = function_at(path)
    numbers = [None if isinstance(part, str) else part for part in parts]
    if all(number is None for number in numbers):
        return function, len(parts)

    def call_with_numbers(*arrays: Any) -> Any:
        rest = iter(arrays)
        return function(*(next(rest) if n is None else n for n in numbers))

    return call_with_numbers, numbers.count(None)


def function_at(path: str) -> Callable[..., Any]:
    """The function at a path: a module, and names in it."""
    names = path.split(".")
    module, fault = None, ""
    for count in range(len(names) - 1, 0, -1):
        name = ".".join(names[:count])
        try:
            module = import_module(name)
        except ModuleNotFoundError as missing:
            if not name.startswith(f"{missing.name}"):
                raise ImportError(_told(path, str(missing))) from missing
            fault = str(missing)
            continue
        break
    value: Any = module
    for name in names[count:] if module is not None else ():
        if not hasattr(value, name):
            raise ImportError(_told(path, f"`{value.__name__}` has no `{name}`"))
        value = getattr(value, name)
    if module is None:
        raise ImportError(_told(path, fault))
    if not callable(value):
        raise ImportError(_told(path, "it is no function"))
    return value  # type: ignore[no-any-return]


def _told(path: str, fault: str) -> str:
    return f"this module calls the foreign function {path}, and cannot: {fault}"
