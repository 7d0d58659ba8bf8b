"""Derived cotangents against slopes of balls, for expressions that nobody thought of."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gradspec.ir.expr import Apply, Const, Expr, Ref, Select, show
from gradspec.primitives.lookup import ROWS
from gradspec.symbolic.enclose import enclose, is_defined
from tests.derive.rules import of

POINTS = tuple(
    {"x": Fraction(x), "z": Fraction(z), "dy": Fraction(1)}
    for x, z in (
        ("0.75", "1.25"),
        ("-0.375", "0.625"),
        ("1.875", "-1.125"),
        ("-2.25", "-0.25"),
    )
)

SMOOTH = [
    row.name
    for row in ROWS
    if row.arity and row.result == "real" and not row.is_step and not row.kinks
    and all(kind == "real" for kind in row.types)
]  # fmt: skip


STEP = Fraction(1, 2**60)


def slope_at(forward: Expr, point: dict[str, Fraction], name: str) -> float | None:
    """The central difference; None at a kink, or where a value is not defined."""
    values = []
    for shift in (-STEP, Fraction(0), STEP):
        ball = enclose(forward, {**point, name: point[name] + shift}, 400)
        if not is_defined(ball) or not float(ball.rad()) < 1e-60:
            return None  # a condition that is not decided gives the hull of branches
        values.append(ball)
    below, above = (values[1] - values[0]), (values[2] - values[1])
    low, high = float(below.mid() * 2**60), float(above.mid() * 2**60)
    return (low + high) / 2 if low == pytest.approx(high, rel=1e-9, abs=1e-9) else None


def close(expr: Expr, forward: Expr, name: str) -> int:
    """At how many points the derivative is the slope; wrong ones fail."""
    agreed = 0
    for point in POINTS:
        slope = slope_at(forward, point, name)
        ball = enclose(expr, point, 256)
        if slope is None or not is_defined(ball) or not float(ball.rad()) < 1e-60:
            continue
        message = f"{show(forward)} -> {show(expr)} at {point}"
        assert float(ball.mid()) == pytest.approx(slope, rel=1e-8, abs=1e-8), message
        agreed += 1
    return agreed


@pytest.mark.parametrize("op", SMOOTH)
def test_every_primitive(op: str) -> None:
    arity = next(row.arity for row in ROWS if row.name == op)
    inside = Apply("add", (Ref("x"), Apply("mul", (Ref("x"), Ref("z")))))
    args = (inside, Apply("square", (Ref("z"),)), Ref("x"))[:arity]
    forward = Apply(op, args)
    found = of(forward, "x", "z")
    for name in ("x", "z"):
        close(found[name], forward, name)


@pytest.mark.parametrize(
    "row", [r for r in ROWS if r.result == "real" and r.arity], ids=lambda r: r.name
)
def test_every_real_argument_has_a_partial(row) -> None:
    types = row.types or ("real",) * row.arity
    assert len(row.partials) == row.arity
    for partial, kind in zip(row.partials, types, strict=True):
        assert kind != "real" or partial is not None


_LEAVES = st.sampled_from(
    [Ref("x"), Ref("z"), Const(Fraction(2)), Const(Fraction(1, 4)), Const(Fraction(-1))]
)


def _grown(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    unary = st.sampled_from(
        "neg exp sin cos tanh sigmoid softplus square abs atan sqrt log relu".split()
    )
    binary = st.sampled_from("add sub mul div add mul max min hypot pow".split())
    compare = st.sampled_from(["lt", "gt"])
    return st.one_of(
        st.builds(lambda op, a: Apply(op, (a,)), unary, inner),
        st.builds(lambda op, a, b: Apply(op, (a, b)), binary, inner, inner),
        st.builds(
            lambda op, a, b, t, o: Select(Apply(op, (a, b)), t, o),
            compare, inner, inner, inner, inner,
        ),
    )  # fmt: skip


EXPRESSIONS = st.recursive(_LEAVES, _grown, max_leaves=12)


@settings(max_examples=250)
@given(EXPRESSIONS)
def test_any_expression(forward: Expr) -> None:
    found = of(forward, "x", "z")
    for name in ("x", "z"):
        close(found[name], forward, name)


@settings(max_examples=100)
@given(EXPRESSIONS, EXPRESSIONS)
def test_shared_parts(one: Expr, two: Expr) -> None:
    """The same part within a branch, in another branch and outside of both."""
    condition = Apply("gt", (Ref("x"), Ref("z")))
    product = Apply("mul", (one, two))
    forward = Apply("add", (Select(condition, product, Apply("sin", (one,))), one))
    found = of(forward, "x")
    close(found["x"], forward, "x")
