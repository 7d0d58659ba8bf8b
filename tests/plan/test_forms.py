"""Equations of a known form, in any notation, and what is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from gradspec.ir.expr import Expr
from gradspec.ir.walk import names
from gradspec.plan.arrays import Factor, Name, Permute
from gradspec.plan.axes import Value
from gradspec.plan.forms import known_solution
from gradspec.plan.translation import Known
from tests.checks.written import written

PLAIN = """
rule factor(a[..., n, n], r[n]) -> x[..., n, n]:
    assume x[i, i] > 0
    solve x[i, j] if j <= i: sum(x[i, k] * x[j, k] for k) == a[i, j] + 0 * r[i]
"""

SAME = (
    ("x[i, i] > 0", "0 < x[p, p]"),
    ("x[i, i] > 0", "x[i, i] >= 0"),
    ("if j <= i", "if i >= j"),
    ("x[i, k] * x[j, k] for k)", "x[j, m] * x[i, m] for m if m <= j)"),
    ("x[j, k] for k)", "x[j, k] for k if i >= k)"),
    ("sum(x[i, k] * x[j, k] for k) ==", "r[i] + sum(x[i, k] * x[j, k] for k) =="),
    ("sum(x[i, k] * x[j, k] for k) ==", "r[j] - sum(x[i, k] * x[j, k] for k) =="),
    ("a[i, j] + 0 * r[i]", "r[i - j]"),
)

OTHERS = (
    ("    assume x[i, i] > 0\n", ""),
    ("x[i, i] > 0", "x[i, i] > 1"),
    ("x[i, i] > 0", "x[i, j] >= 0"),
    ("x[i, i] > 0", "a[i, i] > 0"),
    ("if j <= i", "if j >= i"),
    ("solve x[i, j]", "solve x[j, i]"),
    ("if j <= i", "if j < i"),
    (" if j <= i", ""),
    ("x[i, k] * x[j, k]", "x[k, i] * x[k, j]"),
    ("x[i, k] * x[j, k]", "x[i, k] * x[k, j]"),
    ("x[i, k] * x[j, k]", "x[i, k] * a[j, k]"),
    ("x[j, k] for k)", "x[j, k] for k if k < j)"),
    ("sum(x[i, k]", "2 * sum(x[i, k]"),
    ("== a[i, j]", "== a[i, j] * x[i, j]"),
)


def _translated(
    expr: Expr, indices: Sequence[str], _: object, __: Mapping[str, Known]
) -> Value:
    assert "x" not in names(expr)
    return Value(Name("right"), tuple(indices), False)


def _solution(text: str) -> Value | None:
    rule = written(text)
    return known_solution(rule.forward[0], rule.assumes, {}, _translated)


@pytest.mark.parametrize(("old", "new"), SAME)
def test_a_form_is_found_in_another_notation(old: str, new: str) -> None:
    assert old in PLAIN
    found = _solution(PLAIN.replace(old, new))
    assert found is not None
    assert found.expr == Factor(Name("right"), "cholesky")


@pytest.mark.parametrize(("old", "new"), OTHERS)
def test_another_equation_has_no_form(old: str, new: str) -> None:
    assert old in PLAIN
    assert _solution(PLAIN.replace(old, new)) is None


def test_the_upper_factor_is_transposed_also_with_a_named_batch() -> None:
    text = """
    rule upper(a[b, n, n]) -> x[b, n, n]:
        assume x[c, i, i] > 0
        solve x if i <= j: sum(x[c, k, i] * x[c, k, j] for k) == a[c, i, j]
    """
    found = _solution(text)
    assert found is not None
    assert found.expr == Permute(Factor(Name("right"), "cholesky"), (-1, -2))
