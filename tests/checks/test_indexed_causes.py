"""What is said of a wrong gradient over named axes besides that it is wrong.

Each row is a mistake as it is made, and the sentence that tells it.
"""

from __future__ import annotations

import pytest

from tests.checks.written import checked

SOFTMAX = """
rule softmax(x[..., n]) -> y[..., n]:
    e[i] = exp(x[i] - max(x[j] for j))
    y[i] = e[i] / sum(e[j] for j)
    dx[i] = {}
"""
NORM = """
rule layer_norm(x[..., n], eps: static = 1e-5) -> y[..., n]:
    assume eps > 0
    mu = mean(x[j] for j)
    r = rsqrt(mean((x[j] - mu)**2 for j) + eps)
    y[i] = (x[i] - mu) * r
    dx[i] = {}
"""
UNIT = """
rule l2_normalize(x[..., n]) -> y[..., n]:
    s = sqrt(sum(x[j]**2 for j))
    y[i] = x[i] / s
    dx[i] = {}
"""
PRODUCT = """
rule product(a[n, n], b[n, n]) -> y[n, n]:
    y[i, j] = sum(a[i, l] * b[l, j] for l)
    d{}
"""
ERROR = """
rule mse(x[n, m], t[n, m]: nograd) -> loss[]:
    loss = mean((x[i, j] - t[i, j])**2 for i, j)
    dx[i, j] = {}
"""
ROWS = """
rule rows(x[n, m]) -> y[n]:
    y[i] = sum(x[i, j]**2 for j)
    dx[i, j] = {}
"""
SCALE = """
rule scale(x[n, m], c[m]) -> y[n, m]:
    y[i, j] = x[i, j] * c[j]
    dc[j] = {}
"""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        # a sum that is missing, or too many, or over the wrong index
        (
            SOFTMAX.format("y[i] * (dy[i] - dy[i] * y[i])"),
            "of `sum(dy[j] * y[j] for j)` only the term with j = i is there",
        ),
        (
            SCALE.format("dy[0, j] * x[0, j]"),
            "of `sum(dy[i, j] * x[i, j] for i)` only the term with i = 0 is there",
        ),
        (
            ROWS.format("2 * x[i, j] * sum(dy[k] for k)"),
            "`sum(dy[k] for k)` should be `dy[i]`: nothing is summed",
        ),
        (
            ROWS.format("2 * sum(x[i, k] for k) * dy[i]"),
            "`sum(x[i, k] for k)` should be `x[i, j]`: nothing is summed",
        ),
        (
            SCALE.format("sum(dy[i, j] for i) * sum(x[i, j] for i)"),
            "the sum of products `sum(dy[i, j] * x[i, j] for i)` is meant",
        ),
        # 1/n
        (
            SOFTMAX.format("y[i] * (dy[i] - mean(dy[j] * y[j] for j))"),
            "`mean(dy[j] * y[j] for j)` should be a sum",
        ),
        (
            SCALE.format("mean(dy[i, j] * x[i, j] for i)"),
            "it is the derivative divided by n",
        ),
        (
            ERROR.format("2 * dloss * (x[i, j] - t[i, j])"),
            "it is n * m times the derivative: divide by (n * m)",
        ),
        (
            ERROR.format("2 * dloss * (x[i, j] - t[i, j]) / n"),
            "it is m times the derivative: divide by m",
        ),
        # a transposed product
        (
            PRODUCT.format("a[i, l] = sum(dy[i, j] * b[j, l] for j)"),
            "the indices of `b[j, l]` are exchanged",
        ),
        # a term of the norm's gradient
        (NORM.format("r * dy[i]"), "a term of it is missing"),
        (NORM.format("r * (dy[i] - mean(dy[j] for j))"), "is missing"),
        (
            UNIT.format("dy[i] / s"),
            "the term `-sum(dy[j] * y[j] for j) * y[i]` is missing",
        ),
        # a factor, a sign
        (
            ERROR.format("dloss * (x[i, j] - t[i, j]) / (n * m)"),
            "it is 0.5 times the derivative everywhere",
        ),
        (
            SOFTMAX.format("-y[i] * (dy[i] - sum(dy[j] * y[j] for j))"),
            "its sign is wrong everywhere",
        ),
        (
            SOFTMAX.format("y[i] * (dy[i] + sum(dy[j] * y[j] for j))"),
            "the sign of `sum(dy[j] * y[j] for j)` is wrong",
        ),
    ],
)
def test_the_cause_is_told(text: str, cause: str) -> None:
    (found,) = checked(text).diagnostics
    assert found.code == "GS401"
    (told,) = found.notes
    assert cause in told
    assert "factor" not in told or "factor" in cause
