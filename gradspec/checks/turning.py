"""Points where a declared cotangent changes its form and the derivative does not, or the
other way round.

A threshold that is off by a millionth is wrong on a strip that no sample meets. So each
threshold that only one of the two has is found by bisection, in one variable at a time,
and both of its sides are points to compare at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from fractions import Fraction

from gradspec.checks.subject import Point
from gradspec.ir.expr import Apply, Const, Expr
from gradspec.ir.walk import names, nodes
from gradspec.symbolic.enclose import Program, defined, enclose, program
from gradspec.symbolic.isolate import borders

_MOST = 12  # thresholds
_BASES = 3  # points from which a threshold is looked for
_ELEMENTS = 2  # of a ranked value, in which one is looked for
_HALVINGS = 40
_GRID = tuple(
    Fraction(s) for s in (0, *(x for k in range(-4, 9) for x in (2.0**k, -(2.0**k))))
)
_STEPS = {"round": Fraction(1, 2), "floor": Fraction(1), "ceil": Fraction(1)}


def probes(
    declared: Expr,
    derived: Expr,
    points: tuple[Point, ...],
    reals: tuple[str, ...],
    assumed: tuple[Expr, ...],
) -> Iterator[Point]:
    """Both sides of the thresholds that one of two expressions has in a real input."""
    one, two = _gaps(declared), _gaps(derived)
    apart = [gap for gap in (*one, *two) if (gap in one) != (gap in two)]
    for gap in apart[:_MOST]:
        compiled = program(gap)
        for point in points[:_BASES]:
            for name in _some(name for name in reals if name in names(gap)):
                for near in _sides(compiled, point, name):
                    if all(enclose(c, near) is True for c in assumed):
                        yield near


def _some(found: Iterable[str]) -> Iterator[str]:
    """All names, but of the elements of one vector or matrix only a few: they take the
    same part."""
    counts: Counter[str] = Counter()
    for name in found:
        stem, bracket, _ = name.partition("[")
        counts[stem] += 1
        if not bracket or counts[stem] <= _ELEMENTS:
            yield name


def _gaps(expr: Expr) -> dict[Expr, None]:
    """What is 0 where the expression changes its form; one jump of each step."""
    found: dict[Expr, None] = {}
    for left, right in borders(expr):
        found[Apply("sub", (left, right))] = None
    for node in nodes(expr):
        if isinstance(node, Apply) and node.op in _STEPS:
            found[Apply("sub", (node.args[0], Const(_STEPS[node.op])))] = None
    return found


def _sides(gap: Program, point: Point, name: str) -> Iterator[Point]:
    """Two points a hair apart between which the gap changes its sign, if there are."""
    bracket = _bracket(gap, point, name)
    if bracket is None:
        return
    low, high = bracket
    sign = _sign(gap, {**point, name: low})
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        seen = _sign(gap, {**point, name: middle})
        if seen is None or seen == 0:
            hair = max(abs(middle), Fraction(1)) / 2**_HALVINGS
            low, high = middle - hair, middle + hair
            break
        low, high = (middle, high) if seen == sign else (low, middle)
    yield {**point, name: low}
    yield {**point, name: high}


def _bracket(gap: Program, point: Point, name: str) -> tuple[Fraction, Fraction] | None:
    """Neighbours on a coarse grid between which the sign changes."""
    last: tuple[Fraction, int] | None = None
    for value in sorted(_GRID):
        sign = _sign(gap, {**point, name: value})
        if not sign:
            continue
        if last is not None and last[1] != sign:
            return last[0], value
        last = value, sign
    return None


def _sign(gap: Program, point: Point) -> int | None:
    """None where it is not defined or not decided."""
    ball = gap.run(point)[0]
    if not defined(ball) or ball is True or ball is False:
        return None
    if ball > 0:
        return 1
    return -1 if ball < 0 else (0 if ball.is_zero() else None)
