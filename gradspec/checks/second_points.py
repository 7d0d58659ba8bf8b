"""Borders of expressions as points, and limits at them from several directions."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from gradspec.checks.subject import Point, Subject
from gradspec.ir.expr import Const, Expr
from gradspec.ir.rule import Kind
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import substitute
from gradspec.symbolic.enclose import defined, enclose, program
from gradspec.symbolic.isolate import thresholds
from gradspec.symbolic.neighbours import FINE

_BASES = 3
_STEP = Fraction(1, 2**120)

_REAL = (Kind.FLOAT, Kind.NOGRAD)


def at_borders(subject: Subject, exprs: tuple[Expr, ...]) -> Iterator[Point]:
    """Points on the thresholds of the expressions, and where inputs are 0."""
    seen: set[tuple[Fraction, ...]] = set()
    for point in _candidates(subject, exprs):
        key = tuple(point.values())
        if key not in seen and _is_inside(subject, point):
            seen.add(key)
            yield point


def _is_inside(subject: Subject, point: Point) -> bool:
    return all(enclose(c, point) is True for c in subject.assumed)


def _candidates(subject: Subject, exprs: tuple[Expr, ...]) -> Iterator[Point]:
    bases = [dict(p) for p in subject.points[:_BASES]]
    reals = [i.name for i in subject.rule.inputs if i.kind in _REAL]
    for base in bases[:1]:
        yield {**base, **dict.fromkeys(reals, Fraction(0))}
    for base in bases:
        for name in reals:
            yield {**base, name: Fraction(0)}
        for bound in dict.fromkeys(b for e in exprs for b in thresholds(e)):
            values = {n: Const(v) for n, v in base.items() if n != bound.variable}
            value = tidy(substitute(bound.value, values))
            if bound.variable in reals and isinstance(value, Const):
                yield {**base, bound.variable: value.value}


def approaches(expr: Expr, point: Point, subject: Subject) -> tuple[Any, ...]:
    """The values of an expression close to a point, on lines that no patch lies on."""
    found = []
    names = [i.name for i in subject.rule.inputs if i.kind in _REAL]
    for direction in _directions(len(names)):
        near = dict(point)
        for name, way in zip(names, direction, strict=True):
            near[name] += way * _STEP * max(abs(point[name]), Fraction(1))
        if not all(enclose(c, near, FINE) is True for c in subject.assumed):
            continue
        value = program(expr).run(near, FINE)[0]
        if not defined(value):
            return ()
        found.append(value)
    return tuple(found)


def _directions(count: int) -> Iterator[tuple[Fraction, ...]]:
    """To and fro, with steps that have no simple ratio; and a slanting one."""
    forth = tuple(Fraction(7 + 3 * k * k + k, 7) for k in range(count))
    yield forth
    yield tuple(-step for step in forth)
    if count > 1:
        yield tuple(step if k % 2 else -step for k, step in enumerate(forth))
        yield tuple(-step if k % 2 else step for k, step in enumerate(forth))
