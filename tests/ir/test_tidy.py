"""Folding is exact, harmless, idempotent, and leaves the author's order alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradspec.ir.expr import Apply, Expr, Select, const, show
from gradspec.ir.tidy import decide, tidy
from gradspec.primitives.lookup import formula
from gradspec.symbolic.enclose import enclose, is_defined


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("0 + x", "x"),
        ("x + 0", "x"),
        ("x - 0", "x"),
        ("0 - x", "-x"),
        ("1 * x", "x"),
        ("x * 1", "x"),
        ("x * -1", "-x"),
        ("-1 * x", "-x"),
        ("0 * x", "0"),
        ("x * 0", "0"),
        ("-(-x)", "x"),
        ("x / 1", "x"),
        ("x / -1", "-x"),
        ("x + -z", "x - z"),
        ("x - -z", "x + z"),
        ("x + -2", "x - 2"),
        ("-x * -z", "x * z"),
        ("-(2 * x)", "-2 * x"),
        ("-(-x / z)", "x / z"),
        ("2 + 3 * 4", "14"),
        ("x * log(exp(1))", "x"),
        ("1 / 3", "1 / 3"),
        ("2**10", "1024"),
        ("2**-2", "0.25"),
        ("sqrt(4 / 9)", "2 / 3"),
        ("sqrt(2)", "sqrt(2)"),
        ("x**2", "square(x)"),
        ("x**1", "x"),
        ("x**0", "1"),
        ("x**-1", "1 / x"),
        ("x**0.5", "sqrt(x)"),
        ("x**3", "x**3"),
        ("x if z > 0 else x", "x"),
        ("x if 1 > 0 else z", "x"),
        ("x if 1 > 2 else z", "z"),
        ("x if not 1 > 2 else z", "x"),
        ("x if z > 0 and 2 > 1 else 0", "x if z > 0 else 0"),
        ("x if z > 0 or 1 > 2 else 0", "x if z > 0 else 0"),
        ("0 * x + 1 * (z - 0)", "z"),
        ("-1 % 3 + floor(-1 / 2) + ceil(1 / 2) + trunc(-3 / 2)", "1"),
        ("x % 0", "x % 0"),
    ],
)
def test_folded(before: str, after: str) -> None:
    assert show(tidy(formula(before))) == after


@pytest.mark.parametrize(
    "text",
    [
        "z + x",
        "2 * (3 * x)",
        "x * 0.5 * 2",
        "x + 1 + 2",
        "x / x",
        "x - x",
        "0 / x",
        "1 / 0",
        "0 * inf",
        "x / 3",
        "-(x - z)",
    ],
)
def test_left_alone(text: str) -> None:
    assert show(tidy(formula(text))) == show(formula(text))


def test_a_sum_of_many_terms() -> None:
    expr: Expr = const(0)
    for k in range(3000):
        expr = Apply("add", (expr, Apply("mul", (const(1), formula(f"x + {k}")))))
    assert show(tidy(formula("x + 0"))) == "x"
    assert tidy(tidy(expr)) == tidy(expr)


def test_decided() -> None:
    assert decide(formula("1 < 2 and 2 < 3")) is True
    assert decide(formula("x > 0 and 2 < 1")) is False
    assert decide(formula("x > 0 or 2 < 1")) is None


_LEAVES = st.sampled_from([formula(t) for t in ("x", "z", "0", "1", "-1", "2", "0.5")])


def _grown(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    binary = st.sampled_from(["add", "sub", "mul", "div", "pow"])
    return st.one_of(
        st.builds(lambda a: Apply("neg", (a,)), inner),
        st.builds(lambda op, a, b: Apply(op, (a, b)), binary, inner, inner),
        st.builds(
            lambda a, b, t, o: Select(Apply("lt", (a, b)), t, o),
            _LEAVES, _LEAVES, inner, inner,
        ),
    )  # fmt: skip


@given(st.recursive(_LEAVES, _grown, max_leaves=15))
def test_the_value_is_the_same_and_twice_is_once(expr: Expr) -> None:
    folded = tidy(expr)
    assert tidy(folded) == folded
    for x, z in ((1.5, -0.75), (-2.0, 3.0), (0.25, 0.25)):
        before = enclose(expr, {"x": x, "z": z}, 200)
        after = enclose(folded, {"x": x, "z": z}, 200)
        if is_defined(before):
            assert is_defined(after) and before.overlaps(after)
