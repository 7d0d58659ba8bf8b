"""Holes that the chosen forms do not fill: where the emitted program is NaN though the
function has a limit.

The program is tried as it will be computed, in float32 and in float64, at the very point.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from gradspec.diagnostics import Diagnostic, warning
from gradspec.ir.expr import Expr, Ref
from gradspec.ir.rule import CheckedRule, Hole, Kind, Rule
from gradspec.ir.walk import names
from gradspec.source import Span
from gradspec.stabilise.model import Machine
from gradspec.stabilise.names import Names

FLOATS: Mapping[str, Any] = {"float32": np.float32, "float64": np.float64}


def check(checked: CheckedRule) -> Iterator[Diagnostic]:
    """What stays NaN after stabilising, told once for each value."""
    told: set[str] = set()
    for hole in checked.holes:
        if hole.name in told:
            continue
        left = unfilled(checked.rule, hole)
        if left:
            told.add(hole.name)
            yield _warning(checked.rule, hole, left)


def unfilled(rule: Rule, hole: Hole) -> tuple[str, ...]:
    """The formats in which the rule gives NaN at the hole."""
    form = Names(rule).close(Ref(hole.name))
    values = emitted(rule, form, dict(hole.point), hole.output)
    return tuple(name for name, value in values.items() if np.isnan(value))


def emitted(
    rule: Rule, form: Expr, point: Mapping[str, Fraction], output: str
) -> dict[str, float]:
    """What a closed form gives at a point with the upstream gradient 1 of one output, in
    each format that has the point's numbers (a static is a Python number anyway).
    """
    statics = {variable.name for variable in rule.static_inputs}
    found: dict[str, float] = {}
    for name, form_of in FLOATS.items():
        given = {
            n: value
            for n, value in point.items()
            if n in statics or Fraction(float(form_of(float(value)))) == value
        }
        if len(given) < len(point):
            continue
        columns = _columns(rule, form, point, output, form_of)
        machine = Machine(columns, form_of)
        try:
            found[name] = float(machine.run(form)[0])
        except NotImplementedError:  # a part that the model does not know
            continue
    return found


def _columns(
    rule: Rule, form: Expr, point: Mapping[str, Fraction], output: str, kind: Any
) -> dict[str, Any]:
    bools = {v.name for v in rule.inputs if v.kind is Kind.BOOL}
    columns = {
        name: np.array([float(value)], dtype=np.bool_ if name in bools else kind)
        for name, value in point.items()
    }
    for one in rule.outputs:
        upstream = 1.0 if one.name == output else 0.0
        columns[f"d{one.name}"] = np.array([upstream], dtype=kind)
    return {name: columns[name] for name in sorted(names(form))} or columns


def _warning(rule: Rule, hole: Hole, formats: tuple[str, ...]) -> Diagnostic:
    sides = tuple(dict.fromkeys((hole.left, hole.right)))
    limit = f"limit {sides[0]}" if len(sides) == 1 else f"slopes {' and '.join(sides)}"
    point = dict(hole.point)
    place = ", ".join(f"{name} = {_number(value)}" for name, value in point.items())
    first = next(iter(point))
    where = "" if len(formats) == len(FLOATS) else f" in {formats[0]}"
    return warning(
        "GS433",
        f"{hole.name} of {rule.name} is NaN where it has a limit",
        rule.source,
        _span(rule, hole.name),
        label=f"NaN{where} at {place}: {limit}",
        help=f"give this point a value, `… if {first} != {_number(point[first])} else …`,"
        " or use a built-in that has it (`sinc`, `xlogy`, `hypot`, `abs`)",
    )


def _number(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else repr(float(value))


def _span(rule: Rule, name: str) -> Span:
    for let in rule.forward:
        if let.name == name:
            return let.span
    pairs = zip(rule.inputs, rule.backward, strict=True)
    entry = next(entry for variable, entry in pairs if f"d{variable.name}" == name)
    span = getattr(entry, "span", None)
    return rule.name_span if span is None else span
