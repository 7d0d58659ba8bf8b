"""Ball evaluation: values are inside, conditions have three values, nothing raises."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st

from gradspec.ir.expr import Apply, Const, Expr, Ref, Select, apply
from gradspec.primitives.lookup import formula
from gradspec.symbolic.enclose import enclose, is_defined, middle, program

X = Ref("x")


@pytest.mark.parametrize(
    ("text", "x", "value"),
    [
        ("log(1 + exp(x))", 100, 100.0),
        ("exp(x)", Fraction(1, 3), math.exp(1 / 3)),
        ("x if x > 0 else -x", -3, 3.0),
        ("0.1 + 0 * x", 7, 0.1),
        ("pi * x", 1, math.pi),
        ("exp(-inf) + x", 2, 2.0),
        ("1 / x", math.inf, 0.0),
        ("tanh(x)", -math.inf, -1.0),
        ("floor(x)", Fraction(-1, 2), -1.0),
    ],
)
def test_values(text: str, x: object, value: float) -> None:
    ball = enclose(formula(text), {"x": x})
    assert float(ball.mid()) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    "text", ["log(x)", "sqrt(x)", "1 / (x + 1)", "x**0.5", "asin(x - 1)", "lgamma(x)"]
)
def test_domain_errors_are_not_finite(text: str) -> None:
    assert not enclose(formula(text), {"x": -1}).is_finite()


def test_not_a_number_in_not_a_number_out() -> None:
    for text in ("x + 1", "1 if x > 0 else 2", "x > 0", "max(x, 0)"):
        assert not is_defined(enclose(formula(text), {"x": math.nan}))


def test_a_branch_not_taken_has_no_say() -> None:
    guarded = formula("log(x) if x > 0 else 0")
    assert enclose(guarded, {"x": -1}) == 0


def test_conditions_have_three_values() -> None:
    third = formula("x * 3 > 1")
    assert enclose(third, {"x": Fraction(1, 3)}) is None
    assert enclose(third, {"x": 1}) is True
    assert enclose(third, {"x": 0}) is False
    either = formula("x * 3 > 1 or x > 0")
    assert enclose(either, {"x": Fraction(1, 3)}) is True
    both = formula("x * 3 > 1 and x < 0")
    assert enclose(both, {"x": Fraction(1, 3)}) is False
    assert enclose(formula("not x * 3 > 1"), {"x": Fraction(1, 3)}) is None


def test_an_undecided_condition_gives_the_hull() -> None:
    jump = formula("2 if x * 3 > 1 else 5")
    ball = enclose(jump, {"x": Fraction(1, 3)})
    assert ball.contains(2)
    assert ball.contains(5)
    half = formula("2 if x * 3 > 1 else log(-x)")
    assert not enclose(half, {"x": Fraction(1, 3)}).is_finite()
    ones = formula("1 if x * 3 > 1 else 1 + 0 * x")
    assert enclose(ones, {"x": Fraction(1, 3)}).contains(1)


def test_booleans_as_inputs() -> None:
    expr = Select(Ref("keep"), X, Const(Fraction(0)))
    assert enclose(expr, {"x": 3, "keep": True}) == 3
    assert enclose(expr, {"x": 3, "keep": Fraction(0)}) == 0


def test_the_precision_of_others_is_left_alone() -> None:
    before = ctx.prec
    enclose(formula("exp(x)"), {"x": 1}, 999)
    assert ctx.prec == before


def test_deep_expressions_do_not_recurse() -> None:
    expr: Expr = X
    for _ in range(20_000):
        expr = apply("add", expr, X)
    assert enclose(expr, {"x": 1}) == 20_001


def test_shared_nodes_are_evaluated_once() -> None:
    expr: Expr = X
    for _ in range(200):
        expr = apply("add", expr, expr)
    assert enclose(expr, {"x": 1}) == arb(2) ** 200


def test_singular_is_told_from_too_hard() -> None:
    assert program(formula("1 / x")).is_singular({"x": 0})
    assert program(formula("log(x)")).is_singular({"x": -1})
    assert not program(formula("1 / (sin(x)**2 + cos(x)**2 - 1)")).is_singular({"x": 1})
    assert not program(formula("exp(exp(exp(x)))")).is_singular({"x": 10**9})
    assert not program(formula("log(1 / x) if x > 0 else 0")).is_singular({"x": 0})


_NUMBERS = st.fractions(min_value=-8, max_value=8, max_denominator=64)
_OPERATIONS = ("add", "sub", "mul", "div")


@st.composite
def _rationals(draw: st.DrawFn, depth: int = 4) -> Expr:
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from([X, Ref("y"), Const(draw(_NUMBERS))]))
    op = draw(st.sampled_from(_OPERATIONS))
    return Apply(op, (draw(_rationals(depth - 1)), draw(_rationals(depth - 1))))


def _exact(expr: Expr, point: dict[str, Fraction]) -> Fraction:
    match expr:
        case Const(value=value):
            return value
        case Ref(name=name):
            return point[name]
        case Apply(op=op, args=(left, right)):
            a, b = _exact(left, point), _exact(right, point)
            match op:
                case "add":
                    return a + b
                case "sub":
                    return a - b
                case "mul":
                    return a * b
                case _:
                    return a / b
        case _:
            raise AssertionError(expr)


@settings(max_examples=120, deadline=None)
@given(_rationals(), _NUMBERS, _NUMBERS)
def test_the_exact_value_is_inside(expr: Expr, x: Fraction, y: Fraction) -> None:
    point = {"x": x, "y": y}
    ball = enclose(expr, point, 80)
    try:
        exact = _exact(expr, point)
    except ZeroDivisionError:
        assert not ball.is_finite()
        return
    if ball.is_finite():
        with ctx.workprec(2000):
            assert abs(ball - enclose(Const(exact), {}, 2000)).contains(0)


@pytest.mark.parametrize("power", [1e30, -1e30])
def test_the_middle_of_a_number_beyond_all_floats_is_near(power: float) -> None:
    """Its digits would fill the memory."""
    value = middle(arb(power).exp())
    assert (value > 2**1024) if power > 0 else (0 < value < Fraction(2) ** -1074)
