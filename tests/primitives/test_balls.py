"""Every ball against mpmath, its row's meaning, its SymPy form and its float64 model."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy
from flint import arb

from gradspec.primitives.lookup import ROWS, primitive
from tests.primitives.mpmath_meanings import MPMATH
from tests.primitives.primitive_truth import (
    OPERATORS,
    Balls,
    exact,
    nearest,
    points,
    precision,
    sharpened,
    truth,
)

names = pytest.mark.parametrize("name", OPERATORS)


def _moderate(name: str, count: int) -> list[tuple[float, ...]]:
    """Where mpmath needs no thousand digits."""
    largest = 300.0 if name != "mod" else 1e3
    chosen = [
        p
        for p in points(name)
        if all(1e-5 < abs(v) < largest or name == "polygamma" for v in p)
    ]
    return chosen[:: max(1, len(chosen) // count)]


@names
def test_ball_is_mpmaths_value_to_thirty_digits(name: str) -> None:
    for point in _moderate(name, 9):
        ball = truth(name, point)
        with mpmath.workdps(60 if abs(point[0]) < 40 else 600):
            value = MPMATH[name](*map(mpmath.mpf, point))
            other = mpmath.mpf(ball.mid().str(45, radius=False))
            assert abs(value - other) <= abs(value) * mpmath.mpf(10) ** -30, point


@pytest.mark.parametrize("name", [r.name for r in ROWS if r.meaning and r.arity])
def test_meaning_is_the_ball(name: str) -> None:
    row = primitive(name)
    for point in points(name)[::7]:
        args = dict(zip(row.params, map(exact, point), strict=True))
        meant = sharpened(lambda args=args: Balls()(row.meaning, **args), 60)
        value = truth(name, point)
        if meant.is_finite() and meant.rel_accuracy_bits() > 40:
            assert meant.overlaps(value), (point, meant, value)


@names
def test_sympy_form_is_the_ball(name: str) -> None:
    row = primitive(name)
    if row.sympy is None:
        pytest.skip("a function without meaning, on purpose")
    for point in _moderate(name, 4):
        if any(abs(v) > 40 for v in point):
            continue
        symbols = sympy.symbols("x y z", real=True)[: row.arity]
        form = row.sympy(sympy, *symbols)
        exact_point = [sympy.Rational(*Fraction(v).as_integer_ratio()) for v in point]
        value = form.subs(dict(zip(symbols, exact_point, strict=True)))
        real = sympy.re(sympy.N(value.rewrite(sympy.erfinv), 30))
        assert math.isclose(float(real), nearest(truth(name, point)), rel_tol=1e-13)


@pytest.mark.parametrize(
    "name", [r.name for r in ROWS if r.model and r.name in OPERATORS]
)
def test_model_is_the_ball_to_a_few_units(name: str) -> None:
    row = primitive(name)
    assert row.model is not None
    chosen = points(name)[::3]
    columns = [np.array(column) for column in zip(*chosen, strict=True)]
    with np.errstate(all="ignore"):
        values = row.model(np, *columns)
    true = np.array([nearest(truth(name, p)) for p in chosen])
    ordinary = (np.abs(true) > 1e-300) & (np.abs(true) < 1e300)
    values, true = values[ordinary], true[ordinary]
    error = np.abs(values - true) / np.spacing(np.abs(true))
    assert error.max() <= (8.0 if name in ("logsigmoid", "softplus") else 4.0)


# --- enclosures ------------------------------------------------------------------------


def ball(middle: str, radius: str) -> Any:
    return arb(middle, radius)


SINGULAR = [
    ("div", (ball("1", "0.1"), ball("0", "1e-9"))),
    ("reciprocal", (ball("0", "1e-9"),)),
    ("log", (ball("0", "1e-9"),)),
    ("log1p", (ball("-1", "1e-9"),)),
    ("sqrt", (ball("-1", "1e-9"),)),
    ("rsqrt", (ball("0", "1e-9"),)),
    ("pow", (ball("-2", "1e-9"), ball("0.5", "1e-9"))),
    ("pow", (arb(0), arb(-1))),
    ("tan", (ball("1.5707963267948966", "1e-9"),)),
    ("atanh", (ball("1", "1e-9"),)),
    ("acosh", (ball("1", "1e-9"),)),
    ("asin", (ball("1", "1e-9"),)),
    ("logit", (ball("0", "1e-9"),)),
    ("logit", (ball("1", "1e-9"),)),
    ("xlogy", (arb(1), ball("0", "1e-9"))),
    ("xlogy", (arb(0), arb(-1))),
    ("xlog1py", (arb(0), arb(-2))),
    ("gamma", (ball("-3", "1e-9"),)),
    ("gamma", (arb(0),)),
    ("lgamma", (ball("-3", "1e-9"),)),
    ("lgamma", (ball("0", "1e-9"),)),
    ("digamma", (ball("-3", "1e-9"),)),
    ("polygamma", (arb(1), ball("0", "1e-9"))),
    ("erfinv", (ball("1", "1e-9"),)),
    ("erfcinv", (ball("0", "1e-9"),)),
    ("ndtri", (ball("0", "1e-9"),)),
    ("ndtri", (ball("1.5", "1e-9"),)),
]


@pytest.mark.parametrize(("name", "args"), SINGULAR)
def test_ball_with_a_singularity_is_not_finite(
    name: str, args: tuple[Any, ...]
) -> None:
    assert not primitive(name).ball(*args).is_finite()  # type: ignore[misc]


@names
def test_wide_ball_holds_the_values_inside(name: str) -> None:
    """Around each point a ball of a third of its size: the value at five points of it."""
    row = primitive(name)
    assert row.ball is not None
    for point in points(name)[::11]:
        order = name == "polygamma"
        wide = [
            exact(v) if order and k == 0 else arb(exact(v), exact(abs(v) / 3))
            for k, v in enumerate(point)
        ]
        with precision(120):
            enclosure = row.ball(*wide)
            if not enclosure.is_finite():
                continue
            for share in (-1.0, -0.5, 0.0, 0.5, 1.0):
                inside = [
                    v if order and k == 0 else v + share * (abs(v) / 3)
                    for k, v in enumerate(point)
                ]
                value = row.ball(*map(exact, inside))
                if value.is_finite():
                    assert enclosure.overlaps(value), (point, inside)


STRADDLING = {
    "abs": [0.0, 0.3, 1.0],
    "relu": [0.0, 1.0],
    "sign": [-1.0, 0.0, 1.0],
    "floor": [-1.0, 0.0, 1.0],
    "ceil": [-1.0, 0.0, 1.0],
    "round": [-1.0, 0.0, 1.0],
    "trunc": [-1.0, 0.0, 1.0],
    "cbrt": [-1.0, 0.0, 1.0],
    "i0e": [math.exp(-1) * float(mpmath.besseli(0, 1)), 1.0],
    "i1e": [0.0, math.exp(-1) * float(mpmath.besseli(1, 1))],
}


@pytest.mark.parametrize("name", STRADDLING)
def test_ball_about_zero_holds_both_sides(name: str) -> None:
    result = primitive(name).ball(arb(0, 1))  # type: ignore[misc]
    assert result.is_finite()
    for value in STRADDLING[name]:
        assert result.overlaps(arb(value, 1e-15)), value


def test_ball_about_a_tie_holds_both_sides() -> None:
    near, at = arb(1, "1e-5"), arb(1)
    for name in ("max", "min"):
        result = primitive(name).ball(near, at)  # type: ignore[misc]
        assert result.contains(1) and result.rad() < 1e-4
    clipped = primitive("clip").ball(arb(0, 3), arb(-1), arb(1))  # type: ignore[misc]
    assert clipped.contains(-1) and clipped.contains(1)
    assert primitive("heaviside").ball(arb(0, 1), arb(7)).contains(7)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("value", "rounded"),
    [(0.5, 0), (1.5, 2), (2.5, 2), (-0.5, 0), (-1.5, -2), (2.4, 2), (-2.6, -3), (3, 3)],
)
def test_ties_round_to_even(value: float, rounded: int) -> None:
    assert primitive("round").ball(exact(value)) == rounded  # type: ignore[misc]


@pytest.mark.parametrize(
    "name", ["sigmoid", "softplus", "logsigmoid", "tanh", "log_ndtr", "erfcx", "i0e"]
)
@pytest.mark.parametrize("x", [-1e4, 1e4, 3e5])
def test_far_tails_are_sharp(name: str, x: float) -> None:
    value = sharpened(lambda: primitive(name).ball(exact(x)))  # type: ignore[misc]
    assert value.rel_accuracy_bits() > 100
