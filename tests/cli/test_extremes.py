"""Valid rules of extreme size: each compiles, or is refused in words."""

from __future__ import annotations

import warnings

import pytest

import gradspec


def nested(levels: int, start: str = "x") -> str:
    return "1 / (1 + " * levels + start + ")" * levels


HEAD, AXES = "rule f(x) -> y:\n    ", "rule f(x[n]) -> y[n]:\n    "
EXTREMES = {
    "gamma and lgamma": HEAD + "y = x * gamma(170) / lgamma(1e300)\n",
    "factorials": HEAD + "y = x + gamma(1e300) + digamma(1e9) * lgamma(-3)\n",
    "powers": HEAD + "y = x * 1e300**1e300 + exp(1e300) - 0.5**1e9\n",
    "a fraction 90 deep": HEAD + f"y = {nested(90)}\n",
    "declared": HEAD + f"y = {nested(90)}\n    dx = dy\n",
    "of a constant": HEAD + f"y = x * {nested(148, '1')}\n",
    "as deep as it may be": HEAD + f"y = {nested(148)}\n",
    "calls": HEAD + f"y = {'sin(' * 290}x{')' * 290}\n",
    "cases": HEAD + f"y = {'x if x > 0 else -' * 140}x\n",
    "over axes": AXES + f"y[i] = {nested(148, 'x[i]')}\n",
}


@pytest.mark.parametrize("name", EXTREMES)
def test_an_extreme_rule_compiles_or_is_refused(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            text = gradspec.compile_text(EXTREMES[name], budget=3)
        except gradspec.CompileError as refused:
            codes = {d.code for d in refused.diagnostics if d.is_error}
            assert codes <= {"GS224", "GS401", "GS414", "GS461"}, refused
            assert name not in ("gamma and lgamma", "a fraction 90 deep")
        else:
            compile(text, name, "exec")
