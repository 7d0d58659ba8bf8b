"""Where the evaluation that was chosen still goes wrong, and at which operation.

Only what is grave is looked at: an infinity, a NaN or a 0 where the true value is an
ordinary number. The operation to blame is the first, from the leaves up, whose operands
are right and whose result is not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np

from gradspec.ir.calls import expand
from gradspec.ir.expr import Apply, Const, Expr
from gradspec.ir.rule import Harm
from gradspec.ir.walk import children, names, nodes
from gradspec.stabilise.measure import Score, Trial
from gradspec.stabilise.model import Machine
from gradspec.symbolic.enclose import program
from gradspec.symbolic.values import floats

_WRONG = 2.0**-8
"""Relative error beyond which a value is wrong, and not merely inexact."""

_IN_SUMS = ("exp", "add", "sub", "neg")
_LARGEST = float(np.finfo(np.float32).max)
_SMALLEST = float(np.finfo(np.float32).tiny)
_INEXACT = 2.0**-15
"""The same for an exponential: what its argument lost, it has lost for good."""

_MANY = 2.0**9  # ULP
_ORDINARY, _FADED, _HUGE = 1e4, 1e-6, 1e30
_MOST = 200  # nodes of a form that is searched


def harm(
    name: str, trial: Trial, machine: Machine, closed: Expr, score: Score
) -> Harm | None:
    """What is still wrong, in one of the ways that are known, where it shows first."""
    form = expand(closed)
    for index, kinds, limit in _suspicious(score, trial.points.size):
        if sum(1 for _ in islice(nodes(form), _MOST + 1)) > _MOST:
            return None
        found = _blamed(form, machine, trial, index, limit)
        if found is not None and found[0] in kinds:
            row = trial.points.rows[index]
            point = tuple((n, row[n]) for n in row if n in names(form))
            value, true = float(machine.run(form)[index]), trial.true(index)
            if found[0] != "square" or _is_plain(point, value, true):
                return Harm(name, *found, point, value, true)
    return None


def _suspicious(
    score: Score, sizes: Any
) -> Iterator[tuple[int, tuple[str, ...], float]]:
    """Points at which something may be wrong, what would be worth telling there, and the
    relative error that counts as wrong.

    A difference that saturates loses its last digits sooner or later in any form: it is
    told of where the inputs are ordinary. Squares overflow only where they are not.
    """
    if score.core.bad:
        yield score.core.at, ("saturation", "guard", "square"), _WRONG
    if score.whole.bad:
        yield score.whole.at, ("guard", "square"), _WRONG
    for stratum in (score.core, score.whole):
        if stratum.worst > _MANY:
            many = np.isfinite(stratum.errors) & (stratum.errors > _MANY)
            size = np.where(many, sizes, np.inf)
            yield int(np.argmin(size)), ("exponent",), _INEXACT


def _is_plain(point: tuple[tuple[str, float], ...], value: float, true: float) -> bool:
    """One input is large and the rest are ordinary; and what is lost is not just the
    last of a value that fades away."""
    odd = [v for _, v in point if v and not 1 / _ORDINARY < abs(v) < _ORDINARY]
    fades = math.isfinite(value) and abs(true) < _FADED
    return len(odd) <= 1 and not fades and abs(true) < _HUGE


def _blamed(
    form: Expr, machine: Machine, trial: Trial, index: int, limit: float
) -> tuple[str, Expr] | None:
    order = tuple(nodes(form))
    machine.run(form)
    truths = floats(program(*order), trial.points.rows[index])
    true = dict(zip(order, truths, strict=True))
    held = {node: _at(machine, node, index) for node in order}
    exponents = _exponents(order)
    for node in order:
        if not isinstance(node, Apply) or not names(node):
            continue
        if _is_right(held[node], true[node], limit):
            continue
        if all(_is_fair(held[part], true[part], limit) for part in children(node)):
            kind = _kind(node, held, true, exponents)
            return None if kind is None else (kind, node)
    return None


def _exponents(order: tuple[Expr, ...]) -> frozenset[Expr]:
    """The exponentials of sums, and those sums with their parts."""
    found: set[Expr] = set()
    for node in reversed(order):
        match node:
            case Apply(op="exp", args=(Apply(op="add" | "sub") as arg,)):
                found |= {node, arg}
            case Apply(op="add" | "sub" | "neg", args=args) if node in found:
                found |= {a for a in args if isinstance(a, Apply)}
            case _:
                continue
    return frozenset(n for n in found if isinstance(n, Apply) and n.op in _IN_SUMS)


def _at(machine: Machine, node: Expr, index: int) -> float:
    return float(machine.run(node)[index])


def _is_right(held: float, true: float | None, limit: float) -> bool:
    """Nearly the true value, as far as float32 holds it."""
    if true is None:
        return True
    if abs(true) > _LARGEST:
        return math.isinf(held) and (held > 0) == (true > 0)
    if abs(true) < _SMALLEST:
        return abs(held) <= 2 * _SMALLEST
    return math.isfinite(held) and abs(held - true) <= limit * abs(true)


def _is_fair(held: float, true: float | None, limit: float) -> bool:
    """Right, and known to be."""
    return true is not None and _is_right(held, true, limit)


# --- the ways that are known ----------------------------------------------------------


def _kind(
    node: Apply,
    held: dict[Expr, float],
    true: dict[Expr, float | None],
    exponents: frozenset[Expr],
) -> str | None:
    """A word for how an operation fails."""
    numbers = (part for part in nodes(node) if isinstance(part, Const))
    if any(_is_lost_guard(number) for number in numbers):
        return "guard"
    match node:
        case Apply(op="add" | "sub", args=(left, right)) if held[node] == 0:
            if _is_saturated(left, right) or _is_saturated(right, left):
                return "saturation"
        case Apply() if node in exponents:
            return "exponent"
        case Apply(op="sqrt" | "rsqrt" | "div" | "log", args=args):
            if any(_has_overflown_square(arg, true) for arg in args):
                return "square"
    return None


def _is_lost_guard(number: Const) -> bool:
    """``1 - 1e-15``: in float32 it is 1. (A coefficient of a series has many bits.)"""
    denominator = number.value.denominator
    if denominator == 1 or denominator & (denominator - 1) == 0:
        return False
    return (
        float(np.float32(float(number.value))).is_integer()
        and abs(number.value) >= 1 / 2
    )


def _is_saturated(constant: Expr, other: Expr) -> bool:
    return isinstance(constant, Const) and bool(names(other))


def _has_overflown_square(expr: Expr, true: dict[Expr, float | None]) -> bool:
    """Some square below (through sums) is beyond the range of float32."""
    value = true.get(expr)
    if value is None or abs(value) <= _LARGEST:
        return False
    match expr:
        case Apply(op="square" | "pow"):
            return True
        case Apply(op="mul", args=(a, b)):
            return a == b or any(_has_overflown_square(p, true) for p in (a, b))
        case Apply(op="add" | "sub", args=args):
            return any(_has_overflown_square(p, true) for p in args)
        case _:
            return False
