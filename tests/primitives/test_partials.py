"""Every partial against a difference quotient of the ball in 900 bits."""

from __future__ import annotations

import math

import pytest
from flint import arb

from gradspec.primitives.lookup import ROWS, primitive
from gradspec.primitives.row import Primitive
from tests.primitives.primitive_truth import (
    Balls,
    Point,
    exact,
    nearest,
    partial_truth,
    points,
    precision,
)

PARTIALS = [
    (row.name, position)
    for row in ROWS
    for position, text in enumerate(row.partials)
    if text is not None
]


def _quotient(row: Primitive, position: int, point: Point) -> arb:
    """A central difference; its step is 2**-200 of the argument, its error 2**-400."""
    assert row.ball is not None
    with precision(900):
        args = [exact(v) for v in point]
        step = args[position] * arb(2) ** -200
        if args[position].is_zero():
            step = arb(2) ** -200
        up, down = list(args), list(args)
        up[position] += step
        down[position] -= step
        return (row.ball(*up) - row.ball(*down)) / (2 * step)


@pytest.mark.parametrize(("name", "position"), PARTIALS)
def test_partial_is_the_slope_of_the_ball(name: str, position: int) -> None:
    row = primitive(name)
    count = 0
    for point in points(name)[::4]:
        with precision(900):
            quotient = _quotient(row, position, point)
        if not quotient.is_finite():
            continue
        partial = partial_truth(row, position, point)
        with precision(300):
            difference = abs(partial - quotient)
            bound = arb(2) ** -80 * abs(quotient) + arb(2) ** -250
            assert difference < bound or difference.contains(0), point
        count += 1
    assert count >= 5


# --- where a limit is taken ------------------------------------------------------------

LIMITS = [
    ("pow", 0, (0.0, 1.0), 1.0),
    ("pow", 0, (0.0, 2.0), 0.0),
    ("pow", 0, (-3.0, 2.0), -6.0),
    ("pow", 0, (-2.0, 3.0), 12.0),
    ("pow", 0, (0.0, 0.0), 0.0),
    ("pow", 1, (0.0, 2.0), 0.0),
    ("xlogy", 0, (0.0, 2.0), math.log(2)),
    ("xlogy", 1, (0.0, 2.0), 0.0),
    ("hypot", 0, (0.0, 0.0), 0.0),
    ("hypot", 1, (0.0, 0.0), 0.0),
    ("abs", 0, (0.0,), 0.0),
    ("max", 0, (1.0, 1.0), 0.5),
    ("max", 1, (1.0, 1.0), 0.5),
    ("min", 0, (1.0, 1.0), 0.5),
    ("min", 1, (1.0, 1.0), 0.5),
    ("clip", 0, (1.0, 1.0, 2.0), 1.0),
    ("clip", 0, (2.0, 1.0, 2.0), 1.0),
    ("clip", 1, (0.0, 1.0, 2.0), 1.0),
    ("clip", 2, (3.0, 1.0, 2.0), 1.0),
    ("clip", 2, (0.0, 3.0, 2.0), 1.0),
    ("relu", 0, (0.0,), 0.0),
    ("i1", 0, (0.0,), 0.5),
    ("i1e", 0, (0.0,), 0.5),
    ("i0e", 0, (0.0,), 0.0),
    ("i0e_slope", 0, (0.0,), 1.5),
    ("i1e_slope", 0, (0.0,), 0.0),
    ("sinc", 0, (0.0,), 0.0),
    ("sinc_slope", 0, (0.0,), -(math.pi**2) / 3),
    ("logaddexp", 0, (1.0, 1.0), 0.5),
    ("sigmoid", 0, (800.0,), math.exp(-800.0)),
    ("digamma", 0, (-0.5,), math.pi**2 / 2 + 4.0),  # DLMF 5.15.2 and 5.15.5
]


@pytest.mark.parametrize(("name", "position", "point", "value"), LIMITS)
def test_partial_where_a_limit_is_taken(
    name: str, position: int, point: Point, value: float
) -> None:
    found = nearest(partial_truth(primitive(name), position, point))
    assert found == pytest.approx(value, rel=1e-14, abs=1e-300)


@pytest.mark.parametrize("row", [r for r in ROWS if r.kinks], ids=lambda r: r.name)
def test_partials_are_finite_at_kinks(row: Primitive) -> None:
    """Somewhere on each kink the partials are numbers (but for an upright tangent)."""
    candidates: list[Point] = [(0.0,), (1.0,), (0.5,)]
    if row.arity == 2:
        candidates = [(0.0, 0.0), (1.0, 1.0), (2.0, 1.0), (0.0, 1.0)]
    if row.arity == 3:
        candidates = [(1.0, 1.0, 2.0), (2.0, 1.0, 2.0)]
    for condition, reason in row.kinks:
        assert reason
        on_it = [p for p in candidates if _holds(row, condition, p)]
        assert on_it, condition
        for position, text in enumerate(row.partials):
            if text is not None and row.name != "cbrt":
                assert partial_truth(row, position, on_it[0]).is_finite()


def _holds(row: Primitive, condition: str, point: Point) -> bool:
    names = dict(zip(row.params, map(exact, point), strict=True))
    return bool(Balls()(condition, **names))
