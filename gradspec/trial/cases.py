"""What an emitted function must give, worked out without any framework.

The parent process evaluates a rule's own expressions by ball arithmetic, rounded
correctly to float64, at exactly representable points; a child process runs the emitted
function in its framework and compares.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from gradspec.ir import closed
from gradspec.ir.calls import expand, follows_surrogate
from gradspec.ir.expr import Expr
from gradspec.ir.rule import (
    CheckedRule,
    Declared,
    Example,
    Kind,
    Override,
    Rule,
    Value,
)
from gradspec.ir.walk import names
from gradspec.symbolic.compare import slope
from gradspec.symbolic.sampling import sample
from gradspec.symbolic.truth import nearest

Point = Mapping[str, Fraction]

POINTS = 48
"""Enough for the simple points, the thresholds and a spread of magnitudes."""

WIDEST = Fraction(64)
NARROWEST = Fraction(1, 1024)
"""Trials ask whether code computes the rule, not how far floating point carries it (the
audit's question), so they stay where any sensible evaluation keeps ten digits."""


def rule_cases(checked: CheckedRule) -> dict[str, Any]:
    """The job for one rule, as plain data for JSON."""
    rule = checked.rule
    values = {name: expand(e) for name, e in closed.outputs(rule).items()}
    gradients = {name: expand(e) for name, e in closed.cotangents(rule).items()}
    points = [p for p in sample(rule, POINTS) if _is_moderate(rule, p)]
    return {
        "rule": rule.name,
        "inputs": [[i.name, i.kind.value, i.shape.batch] for i in rule.tensor_inputs],
        "outputs": [[o.name, o.kind.value] for o in rule.outputs],
        "exact": _is_exact(rule),
        "groups": list(_groups(rule, points, values, gradients)),
        "examples": [example_case(rule, example) for example in rule.examples],
    }


def _is_exact(rule: Rule) -> bool:
    """The backward is the derivative of the forward: finite differences may judge it."""
    overridden = any(isinstance(entry, Override) for entry in rule.backward)
    return not overridden and not follows_surrogate(rule)


def _is_moderate(rule: Rule, point: Point) -> bool:
    return all(
        point[i.name] == 0 or NARROWEST <= abs(point[i.name]) <= WIDEST
        for i in rule.tensor_inputs
        if i.kind in (Kind.FLOAT, Kind.NOGRAD)
    )


def _groups(
    rule: Rule,
    points: list[dict[str, Fraction]],
    values: Mapping[str, Expr],
    gradients: Mapping[str, Expr],
) -> Iterator[dict[str, Any]]:
    """Points with equal statics are one call: statics are fixed for a call."""
    grouped: dict[tuple[Fraction, ...], list[dict[str, Fraction]]] = {}
    for point in points:
        statics = tuple(point[i.name] for i in rule.static_inputs)
        grouped.setdefault(statics, []).append(point)
    for statics, members in grouped.items():
        expected = {
            name: nearest(expression, members, "float64")
            for name, expression in (*values.items(), *gradients.items())
        }
        smooth = [
            None if _is_ambiguous(rule) else _second(rule, values, gradients, point)
            for point in members
        ]
        yield {
            "statics": _static_values(rule, statics),
            "points": [_floats(point) for point in members],
            "expected": expected,
            "second": smooth,
        }


def _is_ambiguous(rule: Rule) -> bool:
    """A surrogate that the backward names by its output, or that stands in a rule that
    is called, may be differentiated once more as the step or as the surrogate: both are
    right, so second derivatives are not compared.
    """
    if not follows_surrogate(rule):
        return False
    used = {n for e in rule.backward if isinstance(e, Declared) for n in names(e.value)}
    return not rule.surrogates or any(output.name in used for output in rule.outputs)


def _second(
    rule: Rule,
    values: Mapping[str, Expr],
    gradients: Mapping[str, Expr],
    point: Point,
) -> dict[str, float] | None:
    """∂(dx)/∂x of every float input, None where something has a kink nearby."""
    second: dict[str, float] = {}
    for variable in rule.inputs:
        name = f"d{variable.name}"
        if name not in gradients:
            continue
        slopes = [slope(value, point, variable.name) for value in values.values()]
        curvature = slope(gradients[name], point, variable.name)
        if curvature is None or None in slopes:
            return None
        second[name] = curvature
    return second


def _static_values(rule: Rule, values: tuple[Fraction, ...]) -> dict[str, float | int]:
    return {
        i.name: int(value) if i.kind is Kind.STATIC_INT else float(value)
        for i, value in zip(rule.static_inputs, values, strict=True)
    }


def _floats(point: Point) -> dict[str, float]:
    return {name: float(value) for name, value in point.items()}


def example_case(rule: Rule, example: Example) -> dict[str, Any]:
    """A worked example as data, its numbers as written."""
    line, _ = rule.source.position(example.span.start)
    return {
        "line": line,
        "given": {name: _plain(value) for name, value in example.given},
        "expected": {name: _plain(value) for name, value in example.expected},
    }


def _plain(value: Value) -> Any:
    """Texts stay texts: the digits written say how closely to agree."""
    return value if isinstance(value, str) else [_plain(item) for item in value]
