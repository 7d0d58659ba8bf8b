"""Foreign functions as they are: trials call them, and compare the derivatives that are
given for them with differences of their values.

The compiler never does: what it says of a rule that calls one holds whatever the
function is.
"""

from __future__ import annotations

import math
import random
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from gradspec.diagnostics import Diagnostic, error, warning
from gradspec.ir.expr import spoken
from gradspec.ir.rule import Rule
from gradspec.ir.walk import expressions
from gradspec.primitives.foreign import (
    definition,
    foreign_operations,
    members,
    operation,
)
from gradspec.primitives.foreign import foreign_row as row_of
from gradspec.primitives.lookup import partial
from gradspec.primitives.row import TARGETS, Foreign
from gradspec.runtime._named import call_by_name, named_function
from gradspec.source import Span
from gradspec.symbolic.enclose import enclose

_PLACES = (0.3, 1.1, 0.7, 2.6, 0.05, 4.3, -0.4, -1.3, 7.9, -3.2)
_POINTS = 40
_WEIGHTS = ((1, 4 / 5), (2, -1 / 5), (3, 4 / 105), (4, -1 / 280))
"""The central difference of order 8."""

_STEP = 2.0**-6
_ROOM = 1e-6
"""Relative difference between a slope and the given derivative that is no error."""


def real(op: str, args: tuple[float, ...]) -> float:
    """The value of a foreign function; nan where it fails or has none."""
    try:
        with warnings.catch_warnings(action="ignore"):
            return float(_function(op)(*args))
    except (ArithmeticError, ValueError, TypeError):
        return math.nan


def function_of_names(call: str) -> Callable[[Mapping[str, Any]], Any]:
    """The call of a kernel as a function of the values of its names."""
    _search_here()
    return call_by_name(call)


def _search_here() -> None:
    """Find modules in the folder of the command, too."""
    if str(Path.cwd()) not in sys.path:
        sys.path.append(str(Path.cwd()))


@cache
def _function(op: str) -> Callable[..., Any]:
    """The function of Python numbers, that of NumPy if there is one."""
    one, spellings = definition(op), row_of(op).spellings
    _search_here()
    for target in TARGETS:
        how = spellings.get(target)
        if isinstance(how, Foreign):
            home = target if how.is_own else "numpy"
            function, _ = named_function(f"{how.path}({', '.join(how.arguments)})")
            order = [one.params.index(a) for a in how.arguments if a in one.params]
            made = _array_of(home)
            return lambda *args: function(*(made(args[k]) for k in order))
    raise ImportError(f"no target has the foreign function {one.name}")


def _array_of(target: str) -> Callable[[float], Any]:
    """An array of a number in float64."""
    match target:
        case "torch":
            torch = import_module("torch")
            return lambda x: torch.tensor(x, dtype=torch.float64)
        case "tf":
            tf = import_module("tensorflow")
            return lambda x: tf.constant(x, tf.float64)
        case "jax":
            import_module("jax").config.update("jax_enable_x64", True)
            jnp = import_module("jax.numpy")
            return lambda x: jnp.asarray(x, jnp.float64)
        case _:
            np = import_module("numpy")
            return lambda x: np.asarray(x, np.float64)


def faults(rules: Iterable[Rule]) -> Iterator[Diagnostic]:
    """Errors in the foreign functions that the rules of a text call, and with
    the derivatives that are given for them."""
    callers: dict[str, Rule] = {}
    for rule in rules:
        for op in foreign_operations(expressions(rule)):
            for name in members(op):
                callers.setdefault(operation(name, members(op)), rule)
    for op, caller in callers.items():
        try:
            _function(op)
        except ImportError as fault:
            yield error(
                "GS618",
                f"the foreign function {spoken(op)} cannot be called",
                caller.source,
                _place(op, caller),
                notes=(str(fault),),
                help="install its module, or run the command where Python finds it",
            )
            continue
        for position in range(len(definition(op).derivatives)):
            yield from _difference(op, position, caller)


def _difference(op: str, position: int, caller: Rule) -> Iterator[Diagnostic]:
    """An error if a given derivative is not the slope of the function."""
    one = definition(op)
    formula = partial(op, position)
    assert formula is not None
    place, compared = (caller.source, _place(op, caller)), 0
    for point in _points(op):
        slope, doubt = _slope(op, point, position)
        numbers = dict(zip(one.params, map(Fraction, point), strict=True))
        ball = enclose(formula, numbers)
        stated = (
            float(ball.mid()) if ball is not None and ball.is_finite() else math.nan
        )
        if not math.isfinite(slope) or not math.isfinite(stated):
            continue
        compared += 1
        room = _ROOM * max(abs(slope), abs(stated), 1e-3) + 16 * doubt
        if abs(slope - stated) > room:
            where = ", ".join(f"{name} = {float(x):g}" for name, x in numbers.items())
            yield error(
                "GS617",
                f"the derivative that is given for {one.name} is not its slope",
                *place,
                label=f"given is {stated:.7g} at {where}, where the slope is {slope:.7g}",
                help="every verdict on a rule that calls it rests on this derivative",
            )
            return
    if not compared:
        yield warning(
            "GS617",
            f"the derivative that is given for {one.name} is not compared with it",
            *place,
            label="no point was found at which both have values",
        )


def _points(op: str) -> Iterator[tuple[float, ...]]:
    count = len(definition(op).params)
    rng = random.Random(spoken(op))
    if count == 1:
        yield from ((x,) for x in _PLACES)
        return
    for _ in range(_POINTS):
        yield tuple(rng.choice(_PLACES) for _ in range(count))


def _slope(op: str, point: tuple[float, ...], position: int) -> tuple[float, float]:
    """The slope along one argument, and how far two steps disagree on it."""

    def value(moved: float) -> float:
        return real(op, (*point[:position], moved, *point[position + 1 :]))

    x = point[position]
    found = []
    for step in (_STEP * abs(x), _STEP * abs(x) / 2):
        rise = (w * (value(x + k * step) - value(x - k * step)) for k, w in _WEIGHTS)
        found.append(sum(rise) / step)
    return found[1], abs(found[0] - found[1])


def _place(op: str, caller: Rule) -> Span:
    """The place at which a function is defined, or the rule that calls it."""
    text = caller.source.text
    found = re.search(rf"extern\s+def\s+({re.escape(spoken(op))})\b", text)
    return caller.name_span if found is None else Span(found.start(1), found.end(1))
