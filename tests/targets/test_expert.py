"""What an expert would send back: outputs computed again, several exponentials of one
score, products with several constants, signs that meet."""

from __future__ import annotations

import re

import pytest

from gradspec.targets import TARGETS
from tests.targets.emission import text_of

MASKED = """
rule masked(x[..., n], keep[..., n]: bool) -> y[..., n]:
    y[i] = exp(x[i]) / sum(exp(x[j]) for j if keep[j]) if keep[i] else 0
"""
CAUSAL = """
rule causal(q[..., n, k], r[..., n, k], v[..., n, h]) -> y[..., n, h]:
    z[i, j] = sum(q[i, l] * r[j, l] for l) / sqrt(k)
    s[i] = sum(exp(z[i, j]) for j if j <= i)
    y[i, c] = sum(exp(z[i, j]) * v[j, c] for j if j <= i) / s[i]
"""
ARCTAN = """
rule arctan(v, alpha: static = 2.0) -> s:
    s = 1 if v > 0 else 0
    surrogate s = atan(pi / 2 * alpha * v) / pi + 1 / 2
"""
DENSITY = "rule density(x) -> y:\n    y = exp(-x**2 / 2) / sqrt(2 * pi)\n"
LOSS = """
rule loss(x, t: nograd) -> y:
    y = -(t * logsigmoid(x) + (1 - t) * logsigmoid(-x))
"""

HINGE = "rule hinge(x, t: nograd) -> y:\n    y = max(1 - t * x, 0)**2\n"

ABSENT = (
    (HINGE, r"where\("),
    (CAUSAL, r"tf\.einsum"),
    (MASKED, r"pullback[^@]*\.exp\("),  # the pullback uses y
    (CAUSAL, r"pullback(?:[^@]*\.exp\(){2}"),
    (CAUSAL, r"(?s)difference\.(?:mT|swapaxes)"),
    (ARCTAN, r"(?s)\bpi\b.*\bpi\b.*def arctan|0\.318"),
    (DENSITY, r"2\.506628274631000[0-6]"),
    (LOSS, r"-softplus|\* -"),
)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("rule", "pattern"), ABSENT)
def test_no_expert_writes_that(rule: str, pattern: str, target: str) -> None:
    code = re.sub(r'"""(?s:.*?)"""|#.*', "", text_of(rule, target))
    assert not re.search(pattern, code), code
