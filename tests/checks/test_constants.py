"""Constants that a target could not compute are found before it meets them."""

from __future__ import annotations

import pytest

import gradspec


def _faults(expression: str) -> list[tuple[str, str]]:
    text = f"rule f(x) -> y:\n    y = {expression}\n"
    try:
        gradspec.compile_text(text)
    except gradspec.CompileError as failure:
        return [
            (d.code, text[d.labels[0].span.start : d.labels[0].span.end])
            for d in failure.diagnostics
            if d.is_error
        ]
    return []


@pytest.mark.parametrize(
    ("expression", "piece"),
    [
        ("x * 10**10**10", "10**10**10"),
        ("x + gamma(1e10)", "gamma(1e10)"),
        ("x * log(0)", "log(0)"),
        ("x + 1 / (2 - 2)", "1 / (2 - 2)"),
        ("x + sqrt(exp(1000) + 1)", "exp(1000)"),
        ("x if x > sqrt(-1) else 0", "sqrt(-1)"),
    ],
)
def test_a_constant_without_a_value_is_refused(expression: str, piece: str) -> None:
    assert _faults(expression) == [("GS414", piece)]


@pytest.mark.parametrize(
    "expression", ["x * 10**300", "x if x < inf else -inf", "pi * x"]
)
def test_numbers_and_infinity_are_fine(expression: str) -> None:
    assert _faults(expression) == []
