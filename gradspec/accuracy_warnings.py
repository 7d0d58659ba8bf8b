"""Warnings about what the selected forms leave: lost accuracy, and NaN at removable
singularities.

The checks find the singularities (`Hole`); the forms that stabilising selects decide
what the program gives there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from gradspec.checks.diagnosis.places import as_written
from gradspec.checks.instances import number, said
from gradspec.diagnostics import Diagnostic, Fix, warning
from gradspec.ir.expr import Apply, Expr, Ref, Select
from gradspec.ir.rule import (
    AccuracyLoss,
    CheckedRule,
    Declared,
    Hole,
    Kind,
    Override,
    Rule,
)
from gradspec.ir.text import show
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import names, nodes
from gradspec.source import Span
from gradspec.stabilise.arithmetic_model import Machine
from gradspec.stabilise.names import Names

_LONGEST = 60  # characters of an operation that are shown


@dataclass(frozen=True, slots=True)
class _Words:
    code: str
    what: str
    why: str
    cure: str


_WORDS = {
    "saturation": _Words(
        "GS441",
        "a difference that loses its digits",
        "its sides are nearly equal, and were rounded before",
        "a difference that is small has to be a function of its own: `1 / cosh(x)**2` for"
        " `1 - tanh(x)**2`, `sigmoid(-x)` for `1 - sigmoid(x)`, `-expm1(x)` for"
        " `1 - exp(x)`, `erfc(x)` for `1 - erf(x)`; a polynomial is multiplied out",
    ),
    "overflow": _Words(
        "GS442",
        "a part that overflows though the result would not",
        "a part of it is beyond the range of float32",
        "divide by the largest part before squaring: `hypot(a, b)` for"
        " `sqrt(a**2 + b**2)`, `1 / (1 + (b / a)**2)` for `a**2 / (a**2 + b**2)`; take"
        " the logarithm of exponentials: `sigmoid(a - b)` for"
        " `exp(a) / (exp(a) + exp(b))`",
    ),
    "undefined": _Words(
        "GS433",
        "a point at which it is NaN and the output is a number",
        "a root or a power has a tip there, and its gradient is 0 / 0",
        "choose the gradient there, `… if s > 0 else 0` (0 is a subgradient of a norm at"
        " the vector 0), or leave the line out: a derived gradient is 0 there",
    ),
    "exponent": _Words(
        "GS443",
        "an exponential of a difference of large terms",
        "the large terms have lost the digits that their difference needs",
        "give the logarithm as the output and leave the exponential out, or bring the"
        " large terms together first",
    ),
    "guard": _Words(
        "GS444",
        "a guard that float32 does not hold",
        "the number next to 1 is 1 in float32",
        "guard the difference itself, `max(1 - p, 1e-15)`, or take a guard that float32"
        " holds, `1 - 1e-6`",
    ),
}


def unmended(checked: CheckedRule) -> Iterator[Diagnostic]:
    """One diagnostic for each kind of failure of a rule: the first."""
    first: dict[str, AccuracyLoss] = {}
    for loss in checked.losses:
        first.setdefault(loss.kind, loss)
    for loss in first.values():
        yield _finding(checked.rule, loss)


def _finding(rule: Rule, loss: AccuracyLoss) -> Diagnostic:
    words = _WORDS[loss.kind]
    code = words.code
    if loss.kind == "undefined" and loss.name in _texts(rule):
        code = "GS403"  # it is declared
    place = ", ".join(f"{name} = {value:.6g}" for name, value in loss.point)
    right = "" if math.isnan(loss.true) else f", where {_number(loss.true)} is right"
    return warning(
        code,
        f"{loss.name} of {rule.name} has {words.what}",
        rule.source,
        _span(rule, loss),
        label=f"gives {_number(loss.value)} at {place}{right}",
        notes=(f"the cause is `{_text(loss.culprit)}`: {words.why}",),
        help=words.cure,
    )


def _number(value: float) -> str:
    return f"{value + 0.0:.6g}"  # -0 is shown as 0


def _text(expr: Expr) -> str:
    text = as_written(tidy(expr))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _span(rule: Rule, loss: AccuracyLoss) -> Span:
    """The span of the operation at fault, else of the value that it belongs to."""
    text = _texts(rule).get(loss.name)
    if text is None:
        return next(
            let.span for let in rule.forward if let.name == rule.outputs[0].name
        )
    value, span = text
    same = (n.span for n in nodes(value) if n == loss.culprit and n.span is not None)
    return next(same, span)


def _texts(rule: Rule) -> dict[str, tuple[Expr, Span]]:
    """The author's expressions, by name."""
    found = {let.name: (let.value, let.span) for let in rule.forward}
    for variable, entry in zip(rule.inputs, rule.backward, strict=True):
        if isinstance(entry, Declared | Override):
            found[f"d{variable.name}"] = entry.value, entry.span
    return found


# --- what stays NaN --------------------------------------------------------------------

FLOATS: Mapping[str, Any] = {"float32": np.float32, "float64": np.float64}


def unfilled_holes(checked: CheckedRule, written: Rule) -> Iterator[Diagnostic]:
    """Removable singularities left NaN by stabilisation, reported once for each value.
    ``written``: the rule before that.
    """
    rule, told = checked.rule, set()
    for hole in checked.holes:
        form = Names(rule).close(Ref(hole.name))
        values = emitted(rule, form, dict(hole.point), hole.output)
        left = tuple(name for name, value in values.items() if np.isnan(value))
        if left and hole.name not in told:
            told.add(hole.name)
            yield _hole_warning(written, hole, left)


def emitted(
    rule: Rule, form: Expr, point: Mapping[str, Fraction], output: str
) -> dict[str, float]:
    """The values of a closed form at a point with the cotangent 1 of one output, in
    each format that represents the point (a static is a Python number anyway).
    """
    given = {
        **point,
        **{f"d{o.name}": Fraction(o.name == output) for o in rule.outputs},
    }
    statics = {variable.name for variable in rule.static_inputs}
    bools = {variable.name for variable in rule.inputs if variable.kind is Kind.BOOL}
    found: dict[str, float] = {}
    for name, work in FLOATS.items():
        exact = (v for n, v in given.items() if n not in statics)
        if all(Fraction(float(work(float(value)))) == value for value in exact):
            columns = {
                n: np.array([float(value)], np.bool_ if n in bools else work)
                for n, value in given.items()
            }
            with suppress(NotImplementedError):  # a part that the model does not know
                found[name] = float(Machine(columns, work).run(form)[0])
    return found


def _hole_warning(rule: Rule, hole: Hole, formats: tuple[str, ...]) -> Diagnostic:
    sides = tuple(dict.fromkeys((hole.left, hole.right)))
    limit = f"limit {sides[0]}" if len(sides) == 1 else f"slopes {' and '.join(sides)}"
    point = dict(hole.point)
    place = said(point, tuple(point))
    where = "" if len(formats) == len(FLOATS) else f" in {formats[0]}"
    return warning(
        "GS433",
        f"{hole.name} of {rule.name} is NaN where it has a limit",
        rule.source,
        _texts(rule).get(hole.name, (None, rule.name_span))[1],
        label=f"NaN{where} at {place}: {limit}",
        help="or use a built-in that has the limit (`sinc`, `xlogy`, `hypot`, `abs`), or a"
        " conditional that is false at this point only",
        fixes=(tuple(_fills(rule, hole)),),
    )


def _fills(rule: Rule, hole: Hole) -> Iterator[Fix]:
    """Suggested fixes: an output with its limit where a divisor is 0, or at the point
    itself.
    """
    let = next((let for let in rule.forward if let.name == hole.name), None)
    if let is None or let.value.span is None or hole.left != hole.right:
        return
    old = rule.source.slice(let.value.span)
    old = f"({old})" if isinstance(let.value, Select) else old
    for condition in dict.fromkeys(_conditions(rule, let.value, hole)):
        new = f"{old} if {condition} else {hole.left}"
        yield Fix(f"write `{hole.name} = {new}`", let.value.span, new)


def _conditions(rule: Rule, value: Expr, hole: Hole) -> Iterator[str]:
    for node in nodes(value):
        if isinstance(node, Apply) and node.op == "div" and names(node.args[1]):
            yield f"{show(node.args[1])} != 0"
    tensors = {variable.name for variable in rule.tensor_inputs}
    apart = [f"{n} != {number(v)}" for n, v in hole.point if n in tensors]
    yield from apart
    yield " or ".join(apart)
