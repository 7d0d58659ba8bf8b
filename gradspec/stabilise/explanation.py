"""Reports of the selection: reasons for the selected forms, and the accuracy that no
form keeps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from gradspec.ir.expr import Apply, Const, Expr, const
from gradspec.ir.rule import (
    AccuracyLoss,
)
from gradspec.ir.walk import children, expand, names, nodes, size, transform
from gradspec.stabilise.accuracy_model import GOOD, Score, Trial
from gradspec.stabilise.arithmetic_model import Machine, rounded
from gradspec.stabilise.choice import Candidate, Choice
from gradspec.symbolic.enclose import program
from gradspec.symbolic.truth import floats

# --- why a form was selected ---------------------------------------------------------------


_WIDTH = 70  # characters of a reason, which stands in a line of a module


def reason(trials: tuple[Trial, ...], choice: Choice) -> str:
    """One line: the fault of the written form, in float32, else in float64."""
    before, after = choice.written, choice.selected
    for trial, was, now in zip(trials, before.scores, after.scores, strict=True):
        if was.faults > now.faults:
            where = "in float64, " if trial.machine.work is np.float64 else ""
            fault, at = _fault(trial, before.form, was, now)
            text = f"{where}as written, {fault}"
            return f"{text} {at}" if len(text) + len(at) < _WIDTH else text
    return "as accurate, and simpler"


def _fault(trial: Trial, form: Expr, was: Score, now: Score) -> tuple[str, str]:
    values = trial.values(form)
    if was.bad > now.bad:
        row = trial.worst_row(was)
        fault = "is 0" if values[row] == 0 else "loses digits"
        return fault if np.isfinite(values[row]) else "overflows", _place(trial, row)
    if was.gaps > now.gaps:
        row = int(np.argmax(trial.undefined & ~np.isfinite(values)))
        return "has no value", _place(trial, row)
    return "passes through an infinity", ""


def _place(trial: Trial, row: int) -> str:
    """An approximate description of a point, without cotangents: ``for large x``."""
    point = trial.points.rows[row]
    shown = sorted(names(trial.meaning) - trial.points.upstream)
    return "for " + ", ".join(_about(name, point[name]) for name in shown)


def _about(name: str, value: float) -> str:
    if abs(value) >= _FAR:
        return f"large {name}" if value > 0 else f"large -{name}"
    near = float(f"{value:.1g}") if abs(value) > 1 / _FAR else 0
    return f"{name} near {near:g}"


# --- what no form mends ----------------------------------------------------------------------

_WRONG = 2.0**-8
"""Relative error beyond which a value is reported as wrong, not merely inexact."""

_INEXACT = 2.0**-15
"""The same for an exponential: digits lost in its argument cannot be recovered."""

_LARGEST = float(np.finfo(np.float32).max)
_SMALLEST = float(np.finfo(np.float32).tiny)
_ORDINARY, _FADED, _HUGE = 1e4, 1e-6, 1e30
_MOST = 200  # nodes of a form that is searched
_SHOWN = 12  # points tried, the most moderate ones first
_FAR = 30.0
"""An input beyond this is large, and one below its inverse is near 0."""


def accuracy_loss(
    name: str, trials: tuple[Trial, ...], selected: Candidate, is_wide: bool = False
) -> list[AccuracyLoss]:
    """Accuracy loss of the selected form in float32 (computed in float64 and rounded if
    it ``is_wide``; a guard that float32 cannot represent is a fault all the same).

    The cause is the first operation, from the leaves up, whose operands are right and
    whose result is not. Nothing is reported where the inputs are extreme, or where the
    failure is of no known kind.
    """
    trial, score = trials[0], selected.scores[0]
    form = expand(trial.close(selected.form))
    if not score.bad or size(form) > _MOST:
        return []
    machine = trial.machine
    if is_wide and not any(map(_is_lost_guard, nodes(form))):
        machine, score = machine.in_double(), trial.score_in_double(selected.form)
    bad, points = np.flatnonzero(score.errors > GOOD), trial.points
    values, exacts = machine.run(form), trial.condition.value
    with np.errstate(all="ignore"):
        is_mild = np.abs(values - exacts) <= _INEXACT * np.abs(exacts)
    order = np.lexsort((points.size[bad], is_mild[bad], ~points.core[bad]))
    for row in bad[order][:_SHOWN].tolist():
        value, exact, point = float(values[row]), float(exacts[row]), points.rows[row]
        shown = tuple((n, point[n]) for n in point if n in names(form))
        if not points.core[row] and not _is_plain(shown, value, exact):
            continue
        if _is_of_literals(form, machine, point, value, exact):
            continue
        for limit in (_WRONG, _INEXACT):
            found = _blamed(form, machine, point, limit, row)
            if found is not None and (limit == _WRONG or found[0] == "exponent"):
                return [AccuracyLoss(name, *found, shown, value, exact)]
    return []


def _is_plain(point: tuple[tuple[str, float], ...], value: float, exact: float) -> bool:
    """True if at most one input is large and the rest are ordinary, and the loss is
    more than the last digits of a vanishing value.
    """
    if any(abs(v) > _HUGE for _, v in point):
        return False
    odd = [v for _, v in point if v and not 1 / _ORDINARY < abs(v) < _ORDINARY]
    fades = math.isfinite(value) and abs(exact) < _FADED
    return len(odd) <= 1 and not fades and abs(exact) < _HUGE


def _is_of_literals(
    form: Expr, machine: Machine, point: Mapping[str, Any], value: float, exact: float
) -> bool:
    """True if a value that should be (nearly) 0 comes from the rounding of the literals
    (and of an operation or two): `0.3 * x - (0.1 * x + 0.2 * x)` is no difference that
    could be written with more digits.
    """
    if any(map(_is_lost_guard, nodes(form))):
        return False

    def with_rounded_literal(node: Expr) -> Expr:
        if not isinstance(node, Const):
            return node
        number = float(rounded(node.value, machine.work))
        return const(Fraction(number)) if math.isfinite(number) else node

    (with_literals,) = floats(program(transform(form, with_rounded_literal)), point)
    if with_literals is None:
        return False
    moved = abs(with_literals - exact)
    return abs(exact) < _FADED * moved and _WRONG * abs(value - exact) <= moved


def _blamed(
    form: Expr, machine: Machine, point: Mapping[str, Any], limit: float, row: int
) -> tuple[str, Expr] | None:
    order = tuple(nodes(form))
    truths = floats(program(*order), point)
    true = dict(zip(order, truths, strict=True))
    held = {node: float(machine.run(node)[row]) for node in order}
    exponents = _exponents(order)
    for node in order:
        if not isinstance(node, Apply) or not names(node):
            continue
        if _is_right(held[node], true[node], limit):
            continue
        parts = children(node)
        is_known = all(true[part] is not None for part in parts)
        if is_known and all(_is_right(held[p], true[p], limit) for p in parts):
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
                sums = ("exp", "add", "sub", "neg")
                found |= {a for a in args if isinstance(a, Apply) and a.op in sums}
    return frozenset(found)


def _is_right(held: float, true: float | None, limit: float) -> bool:
    """True if nearly the true value, as far as float32 represents it."""
    if true is None:
        return True
    if abs(true) > _LARGEST:
        return math.isinf(held) and (held > 0) == (true > 0)
    if abs(true) < _SMALLEST:
        return abs(held) <= 2 * _SMALLEST
    return math.isfinite(held) and abs(held - true) <= limit * abs(true)


def _kind(
    node: Apply,
    held: dict[Expr, float],
    true: dict[Expr, float | None],
    exponents: frozenset[Expr],
) -> str | None:
    """The kind of failure of an operation; None for one of no known kind."""
    if any(map(_is_lost_guard, nodes(node))):
        return "guard"
    if node in exponents:
        return "exponent"
    if node.op in ("add", "sub") and math.isfinite(held[node]):
        return "saturation"
    beyond = (abs(true[part] or 0.0) > _LARGEST for part in children(node))
    return "overflow" if not math.isfinite(held[node]) or any(beyond) else None


def _is_lost_guard(number: Expr) -> bool:
    """True for ``1 - 1e-15``: in float32 it is 1. (A coefficient of a series has many
    bits.)
    """
    if not isinstance(number, Const):
        return False
    denominator = number.value.denominator
    if denominator == 1 or denominator & (denominator - 1) == 0:
        return False
    return (
        float(np.float32(float(number.value))).is_integer()
        and abs(number.value) >= 1 / 2
    )
