"""What ranked rules can be made of besides vectors: masks, calls, labels, prefixes."""

from __future__ import annotations

import pytest

from gradspec.ir.rule import Status
from tests.checks.written import checked, codes

PROVED = [
    """
    rule act(x) -> y:
        y = tanh(x)
        override dx = 0.5 * dy because "test"
    rule r(x[..., n], w[n]) -> y[...]:
        y = sum(act(x[i]) * w[i] for i)
        dx[i] = dy * w[i] * 0.5
    """,
    """
    rule r(x[..., n], m[..., n]: bool, t[..., n]: nograd) -> (y[...], c[...]: int):
        y = sum((x[i] - t[i])**2 if m[i] else 0 for i)
        c = sum(1 if m[i] else 0 for i)
        dx[i] = 2 * dy * (x[i] - t[i]) if m[i] else 0
    """,
    """
    rule r(x[..., n], s) -> y[..., n]:
        y[i] = s * x[i]
        dx[i] = s * dy[i]
        ds = sum(dy[i] * x[i] for i)
    """,
    """
    rule r(x[n], t[b]: int) -> y[b]:
        y[i] = x[t[i]]
        dx[k] = sum(dy[i] for i if t[i] == k)
    """,
    """
    rule r(x[n, n]) -> y[]:
        y = prod(x[i, i] for i)
        dx[i, j] = dy * prod(x[l, l] for l if l != i) if i == j else 0
    """,
    """
    rule r(x[..., n]) -> y[..., n]:
        y[i] = sum(x[j] for j if j <= i)
        dx[j] = sum(dy[i] for i if i >= j)
    """,
    """
    rule r(x[..., n]) -> y[...]:
        y = sqrt(sum(x[i]**2 for i))
        dx[i] = dy * x[i] / y if y > 0 else 0
    """,
    """
    rule r(x[n]) -> y[n]:
        y[i] = x[n - 1 - i]
        dx[i] = dy[n - 1 - i]
    """,
]

REFUTED = [
    PROVED[0].replace("* 0.5\n", "* (1 - act(x[i])**2)\n"),  # the callee's own gradient
    PROVED[1].replace("if m[i] else 0\n    ", "\n    "),  # the mask forgotten
    PROVED[2].replace("ds = sum(dy[i] * x[i] for i)", "ds = mean(dy[i] * x[i] for i)"),
    PROVED[3].replace("if t[i] == k", "if t[i] <= k"),
    PROVED[4].replace("l != i", "l == i"),
    PROVED[5].replace("i >= j", "i > j"),
    PROVED[6].replace("* x[i] / y if", "* x[i] / y**2 if"),
    PROVED[7].replace("dy[n - 1 - i]", "dy[i]"),
    """
    rule unbiased(x[..., n]) -> v[...]:
        assume n > 1
        m = mean(x[i] for i)
        v = sum((x[i] - m)**2 for i) / (n - 1)
        dx[i] = dv * 2 * (x[i] - m) / n
    """,
]


@pytest.mark.parametrize("text", PROVED)
def test_proved(text: str) -> None:
    outcome = checked(text)
    assert outcome.diagnostics == ()
    assert outcome.value is not None
    assert outcome.value.verdicts[0].status is Status.PROVED


@pytest.mark.parametrize("text", REFUTED)
def test_refuted(text: str) -> None:
    assert codes(text) == ("GS401",)
