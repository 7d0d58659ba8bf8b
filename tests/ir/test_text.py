"""Expressions as text."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given

from gradspec.ir.expr import Apply, Const, Expr, Ref, const, show
from gradspec.primitives.lookup import formula
from tests.ir.expressions import expressions
from tests.lower.grad_text import forward


@given(expressions())
def test_what_is_shown_reads_back_as_the_same(expr: Expr) -> None:
    assert formula(show(expr)) == expr


@given(expressions())
def test_no_bracket_is_too_many(expr: Expr) -> None:
    """Without any one pair of grouping brackets the text means something else."""
    text = show(expr)
    for start, end in _groups(text):
        bare = f"{text[:start]} {text[start + 1 : end]} {text[end + 1 :]}"
        assert _read(bare) != expr, (text, bare)


def _read(text: str) -> Expr | None:
    try:
        return formula(text)
    except ValueError:
        return None


def _groups(text: str) -> list[tuple[int, int]]:
    """Bracket pairs that are not those of a call."""
    opened: list[int] = []
    found: list[tuple[int, int]] = []
    for place, char in enumerate(text):
        if char == "(":
            opened.append(place)
        elif char == ")":
            start = opened.pop()
            if start == 0 or not text[start - 1].isalnum():
                found.append((start, place))
    return found


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("0.1", "0.1"),
        ("-2", "-2"),
        ("100", "100"),
        ("1/3", "1 / 3"),
        ("-2/3", "-2 / 3"),
        ("1/1024", "0.0009765625"),
        ("1e-12", "1e-12"),
        ("2.5e30", "2.5e30"),
        ("0.00001", "0.00001"),
        ("12345678901234567890123", "12345678901234567890123"),
    ],
)
def test_constants(value: str, text: str) -> None:
    assert show(const(value)) == text


def test_a_quotient_is_bracketed_where_it_must_be() -> None:
    third = Const(Fraction(1, 3))
    assert show(Apply("pow", (third, Ref("x")))) == "(1 / 3)**x"
    assert show(Apply("mul", (Ref("x"), third))) == "x * (1 / 3)"
    assert show(Apply("mul", (third, Ref("x")))) == "1 / 3 * x"


def test_a_deep_sum_is_shown() -> None:
    expr: Expr = Ref("x")
    for _ in range(5000):
        expr = Apply("add", (expr, Ref("y")))
    assert show(expr).count("+") == 5000


@pytest.mark.parametrize(
    "expression",
    [
        "x[i] * sum(x[j] * w[i, j] for j)",
        "sum(x[j] for j if j <= i and w[j, i] > 0)",
        "max(x[j] * w[k, j] for j, k)",
        "x[n - 1 - i] + i * n",
        "(sum(x[j] for j) if i > 0 else x[0])**2",
    ],
)
def test_indexed_expressions_show_as_they_were_written(expression: str) -> None:
    header = "rule f(x[n], w[n, n]) -> y[n]:\n"
    assert forward(f"{header}    y[i] = {expression}\n")["y"] == expression
