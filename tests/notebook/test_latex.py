"""Formulas as LaTeX: the author's expression, with the brackets that it needs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gradspec.notebook import latex
from gradspec.source import Source
from gradspec.syntax import nodes
from gradspec.syntax.parse import parse, parse_expression

ROOT = Path(__file__).parents[2]

CASES = {
    "a + b - c": "a + b - c",
    "a - (b - c)": r"a - \left(b - c\right)",
    "a + -b": r"a + \left(-b\right)",
    "a * -b": r"a \, \left(-b\right)",
    "-a * b": r"-a \, b",
    "-(a + b)": r"-\left(a + b\right)",
    "2 * 3": r"2 \cdot 3",
    "2 * (a / b)": r"2 \cdot \frac{a}{b}",
    "a * (b / c)": r"a \, \frac{b}{c}",
    "(a / b)**2": r"\left(\frac{a}{b}\right)^{2}",
    "(a + b) / 2": r"\frac{a + b}{2}",
    "a % (b + c)": r"a \bmod \left(b + c\right)",
    "(-x)**2": r"\left(-x\right)^{2}",
    "2**-x": "2^{-x}",
    "x1**2": "x_{1}^{2}",
    "x_[0]": r"\mathit{x\_}_{0}",
    "w_2[i, j + 1]": "{w_{2}}_{i, j + 1}",
    "beta * dalpha": r"\beta \, d\alpha",
    "lambda_max": r"\mathit{lambda\_max}",
    "1.5e-7 * x": r"1.5 \cdot 10^{-7} \, x",
    "1e10": "10^{10}",
    "pi * inf": r"\pi \, \infty",
    "exp(-x**2)": "e^{-x^{2}}",
    "exp(x)**2": r"\left(e^{x}\right)^{2}",
    "tanh(x)**2": r"\tanh^{2}\left(x\right)",
    "atan(x) * max(x, 0)": r"\arctan\left(x\right) \, \max\left(x, 0\right)",
    "sqrt(abs(x))": r"\sqrt{\left|x\right|}",
    "hypot(x + 1, y) * rsqrt(x)": (
        r"\sqrt{\left(x + 1\right)^{2} + y^{2}} \, \frac{1}{\sqrt{x}}"
    ),
    "square(tanh(x)) + sigmoid(-x)**2": (
        r"\tanh^{2}\left(x\right) + \sigma^{2}\left(-x\right)"
    ),
    "lgamma(x)**2 + logsigmoid(x)": (
        r"\log\Gamma\left(x\right)^{2} + \log\sigma\left(x\right)"
    ),
    "square(square(x))": r"\left(x^{2}\right)^{2}",
    "gamma(x) + gamma": r"\Gamma\left(x\right) + \gamma",
    "my_rule.z(x, k=2)": r"\operatorname{my\_rule.z}\left(x, k = 2\right)",
    "0 < x <= 1 and not y >= 0": r"0 < x \le 1 \text{ and } \lnot \left(y \ge 0\right)",
    "a if x > 0 else b if x == 0 else c": (
        r"\begin{cases} a & \text{if } x > 0 \\ b & \text{if } x = 0 \\"
        r" c & \text{otherwise} \end{cases}"
    ),
    "2 * (a if x != 0 else b)": (
        r"2 \, \left(\begin{cases} a & \text{if } x \ne 0 \\ b & \text{otherwise}"
        r" \end{cases}\right)"
    ),
    "a - sum(x[j] for j) * b": r"a - \left(\sum_{j} x_{j}\right) \, b",
    "a * sum(x[j] * y[j] for j)": r"a \, \sum_{j} x_{j} \, y_{j}",
    "a * sum(x[j] for j) * b": r"\left(a \, \sum_{j} x_{j}\right) \, b",
    "-sum(x[j] for j) * b": r"\left(-\sum_{j} x_{j}\right) \, b",
    "sum(x[j] + 1 for j)": r"\sum_{j} \left(x_{j} + 1\right)",
    "max(x[i, j] for i, j if i <= j)": r"\max_{i, j \,:\, i \le j} x_{i, j}",
    "sum(x[i + j] for i in k, j)": r"\sum_{i < k, j} x_{i + j}",
    "mean(x[j] for j)": r"\operatorname*{mean}_{j} x_{j}",
}


@pytest.mark.parametrize("text", CASES)
def test_expressions(text: str) -> None:
    assert latex.expression(parse_expression(text)) == CASES[text]


def test_shipped_rules_are_balanced() -> None:
    """Brackets, environments and ``\\left`` close what they open, and no character that
    LaTeX or HTML reads in another way is left of a name."""
    seen = 0
    for path in sorted((ROOT / "rules").rglob("*.grad")):
        module = parse(Source(path.name, path.read_text("utf-8"))).value
        assert module is not None
        for item in module.items:
            values = [s.value for s in getattr(item, "body", ()) if _has_value(s)]
            for value in values:
                text = latex.expression(value)
                bare = re.sub(r"\\[A-Za-z]+|\\\\|\\[_,:{}|;!]", "", text)
                assert bare.count("{") == bare.count("}"), text
                for opened, closed in ((r"\left", r"\right"), (r"\begin", r"\end")):
                    found = [
                        len(re.findall(rf"\{w}\b", text)) for w in (opened, closed)
                    ]
                    assert found[0] == found[1], text
                assert not re.search(r"(?<!\\)[$#%~\"'\\]", bare), text
                seen += 1
    assert seen > 300


def _has_value(statement: object) -> bool:
    return isinstance(statement, nodes.Assign | nodes.Surrogate | nodes.Override)


def test_deep_sums() -> None:
    text = " + ".join(["x"] * 300)
    assert latex.expression(parse_expression(text)) == text
