"""Functions of other modules, and rules whose values or gradients they compute."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import unwrap
from typing import Any

import numpy as np

from .._named import call_by_name, named_function
from ._gradspec import Array


def foreign(call: str) -> Callable[..., Array]:
    """A function of arrays; its values have the arrays' floating type."""
    function, _ = named_function(call)

    def apply(*arrays: Any) -> Array:
        kind = np.result_type(*arrays)
        made: Array = np.asarray(function(*arrays)).astype(kind, copy=False)
        return made

    return apply


def computes(
    call: str, order: tuple[int, ...] = ()
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the call, of inputs by their names, computes the values in the place
    of the formula; ``order`` are the places of the outputs in its results."""

    def decorate(formula: Callable[..., Any]) -> Callable[..., Any]:
        names, kernel = _names(formula), call_by_name(call)

        @wraps(formula)
        def value(*given: Any) -> Any:
            made = kernel(dict(zip(names, given, strict=True)))
            return tuple(made[k] for k in order) if order else made

        return value

    return decorate


def differentiates(
    call: str, **places: int
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: the call computes these gradients, which have those places among all,
    in the place of the formula."""

    def decorate(formula: Callable[..., Any]) -> Callable[..., Any]:
        names, kernel = _names(formula), call_by_name(call)

        @wraps(formula)
        def pullback(*given: Any) -> Any:
            made = kernel(dict(zip(names, given, strict=True)))
            found = formula(*given)
            found = list(found) if isinstance(found, tuple) else [found]
            made = made if isinstance(made, tuple | list) else (made,)
            for place, gradient in zip(places.values(), made, strict=True):
                found[place] = gradient
            return tuple(found) if len(found) > 1 else found[0]

        return pullback

    return decorate


def _names(formula: Any) -> list[str]:
    """The names of what a formula takes; what it does not use begins with a line."""
    code = unwrap(formula).__code__
    return [name.lstrip("_") for name in code.co_varnames[: code.co_argcount]]
