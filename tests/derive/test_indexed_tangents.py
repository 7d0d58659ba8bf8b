"""Tangents of ranked rules: cotangents transposed, as one would write them."""

from __future__ import annotations

import pytest

from gradspec.derive.indexed import NotLinear, indexed_tangents
from gradspec.ir.expr import show
from tests.derive.rules import completed


def _tangents(text: str) -> dict[str, str]:
    found = indexed_tangents(completed(text))
    return {name: show(entry.value) for name, entry in found.items()}


SOFTMAX = "y[i] = exp(x[i]) / sum(exp(x[j]) for j)"
LINEAR = "y[i] = sum(x[l] * w[i, l] for l) + b[i]"
CASES = [
    (
        *("f(x[..., n]) -> y[..., n]", SOFTMAX),
        "y[i] * (x_dot[i] - sum(x_dot[j] * y[j] for j))",
    ),
    (
        *("f(x[..., k], w[m, k], b[m]) -> y[..., m]", LINEAR),
        "sum(x_dot[j] * w[i, j] for j) + sum(w_dot[i, j] * x[j] for j) + b_dot[i]",
    ),
    ("f(a[..., n, n]) -> y", "y = sum(a[i, i] for i)", "sum(a_dot[j, j] for j)"),
    ("f(w[m, k], t: int) -> y[..., k]", "y[i] = w[t, i]", "w_dot[t, i]"),
    ("f(x[..., 3]) -> y", "y = x[1]", "x_dot[1]"),
    (
        "f(x[..., n]) -> y[..., n]",
        "y[i] = 1 if x[i] > 0 else 0\n    surrogate y[i] = x[i] * x[i]",
        "2 * x_dot[i] * x[i]",
    ),
    (
        "f(x[..., n]) -> y[..., n]",
        'y[i] = x[i]\n    override dx[i] = -3 * dy[i] because "reversal"',
        "-3 * x_dot[i]",
    ),
    # beyond the axis there is no such element: the sum is 0, no error
    (
        *("f(x[..., n], t: int) -> y", "y = sum(x[i] if i == t else 0 for i)"),
        "x_dot[t] if t >= 0 and t < n else 0",
    ),
]


@pytest.mark.parametrize(("header", "body", "tangent"), CASES)
def test_a_tangent_reads_as_one_would_write_it(
    header: str, body: str, tangent: str
) -> None:
    assert _tangents(f"rule {header}:\n    {body}\n") == {"y": tangent}


def test_a_declared_gradient_and_its_locals_are_transposed() -> None:
    rule = """\
rule f(v[m, k], g[m]) -> w[m, k]:
    w[i, j] = g[i] * v[i, j]
    h[i] = sum(dw[i, l] * v[i, l] for l)
    dg[i] = h[i]
    dv[i, j] = g[i] * dw[i, j]
"""
    assert _tangents(rule) == {"w": "g_dot[i] * v[i, j] + v_dot[i, j] * g[i]"}


def test_an_override_that_is_not_linear_has_no_tangent() -> None:
    rule = """\
rule f(x[..., n]) -> y[..., n]:
    y[i] = x[i]
    override dx[i] = clip(dy[i], -1, 1) because "clipping"
"""
    with pytest.raises(NotLinear):
        indexed_tangents(completed(rule))
