"""One factored fraction: the same value, and as one would write it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradspec.ir.expr import Apply, Expr, show
from gradspec.primitives.lookup import formula
from gradspec.symbolic.enclose import enclose, is_defined
from gradspec.symbolic.gather import factored_fraction


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("1 / (1 + x) - x / (1 + x) / (1 + x)", "1 / square(1 + x)"),
        ("(1 - t) / (1 - p) - t / p", "(t - p) / (p * (p - 1))"),
        ("2 / (2 * x) - z / x / x", "(x - z) / square(x)"),
        ("exp(-x) * exp(x)", "1"),
        ("x * sin(x) / x", "sin(x)"),
        ("sqrt(x) / x", "1 / sqrt(x)"),
        ("square(sqrt(x)) + x", "2 * x"),
        (
            "1 / sqrt(1 + a * x**2) - a * x**2 / sqrt(1 + a * x**2)**3",
            "1 / (sqrt(1 + a * x**2) * (1 + a * square(x)))",
        ),
        ("0.5 + 0.5 * x / sqrt(x**2 + b)", "0.5 * (x + sqrt(x**2 + b)) / sqrt(x**2 + b)"),
        ("x - x", "0"),
    ],
)  # fmt: skip
def test_gathered(before: str, after: str) -> None:
    found = factored_fraction(formula(before))
    assert found is not None
    assert show(found) == after


def test_too_large_and_undefined() -> None:
    assert factored_fraction(formula("1 / (x - x)")) is None
    long = formula(" * ".join(f"(x + z**{k} + sin({k} * x))" for k in range(2, 14)))
    assert factored_fraction(long) is None


_LEAVES = st.sampled_from(
    [formula(t) for t in ("x", "z", "1", "2", "exp(-x)", "sin(z)")]
)


def _grown(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    unary = st.sampled_from(["neg", "square", "sqrt", "rsqrt", "exp"])
    binary = st.sampled_from(["add", "sub", "mul", "div"])
    return st.one_of(
        st.builds(lambda op, a: Apply(op, (a,)), unary, inner),
        st.builds(lambda op, a, b: Apply(op, (a, b)), binary, inner, inner),
    )


@given(st.recursive(_LEAVES, _grown, max_leaves=10))
def test_the_value_is_the_same(expr: Expr) -> None:
    found = factored_fraction(expr)
    if found is None:
        return
    for x, z in ((1.5, 0.75), (0.25, 3.0), (-0.5, 1.25)):
        before = enclose(expr, {"x": x, "z": z}, 400)
        after = enclose(found, {"x": x, "z": z}, 400)
        if is_defined(before) and is_defined(after):
            assert before.overlaps(after), (show(expr), show(found))
