"""Inputs that are learned: `beta: param = 1.0`."""

from __future__ import annotations

from fractions import Fraction

import pytest

from gradspec.ir.rule import Kind, Shape
from gradspec.lower.lowering import lower
from gradspec.source import Source
from gradspec.syntax.parse import parse
from gradspec.syntax.printer import print_module


def lowered(text: str):
    parsed = parse(Source("f.grad", text))
    if parsed.value is None or parsed.diagnostics:
        return None, parsed.diagnostics
    made = lower(parsed.value, {})
    return made.value, made.diagnostics


def test_a_param_is_a_floating_input_with_an_initial_value():
    module, found = lowered(
        "rule f(x[..., n], w[n]: param = 1 / 3, s[]: param = -2) -> y[..., n]:\n"
        "    y[i] = s * w[i] * x[i]\n"
    )
    assert not found
    x, w, s = module.rules[0].inputs
    assert (x.is_param, w.is_param, s.is_param) == (False, True, True)
    assert (w.initial, s.initial) == (Fraction(1, 3), -2)
    assert w.kind is Kind.FLOAT
    assert w.takes_gradient
    assert w.default is None


def test_the_word_is_a_name_elsewhere():
    module, found = lowered("rule f(param: param = 2, x) -> y:\n    y = param * x\n")
    assert not found
    assert module.rules[0].inputs[0].is_param


def test_it_is_printed_as_it_is_written():
    text = "rule f(x, w[n, 3]: param = 1 / 3) -> y:\n    y = x * w\n"
    parsed = parse(Source("f.grad", text))
    assert parsed.value is not None
    assert print_module(parsed.value) == text


@pytest.mark.parametrize(
    ("header", "code", "guilty", "help"),
    [
        ("x, w: param", "GS260", "w: param", "`w: param = 1.0`"),
        ("x, w[n]: param", "GS260", "w[n]: param", "`w[n]: param = 1.0`"),
        ("x, w: param = x", "GS261", "x", "one finite number"),
        ("x, w: param = 1 / 0", "GS261", "1 / 0", "one finite number"),
        ("x, w[..., n]: param = 1", "GS262", "[..., n]", "`w[n]: param = …`"),
        ("w: param = 1", "GS263", "f", "add an input for the data"),
        ("x, param w = 1", "GS124", "w", "`w: param`"),
        ("x, static w = 1", "GS124", "w", "`w: static`"),
    ],
)
def test_what_is_wrong_is_told_where_it_stands(header, code, guilty, help):
    text = f"rule f({header}) -> y:\n    y = w\n"
    _, found = lowered(text)
    fault = next(d for d in found if d.code == code)
    span = fault.labels[0].span
    assert text[span.start : span.end] == guilty
    assert help in fault.help


def test_a_default_of_another_tensor_is_told_of_params():
    _, found = lowered("rule f(x, w = 1.0) -> y:\n    y = w * x\n")
    assert [d.code for d in found] == ["GS223"]
    assert "`w: param = …` if it is learned" in found[0].help


def test_a_bare_input_beside_axes_is_a_scalar_where_no_output_has_batch_axes() -> None:
    def shape(header: str, body: str) -> Shape:
        module = parse(Source("t.grad", f"rule f({header}:\n    {body}\n"))
        assert module.value is not None
        lowered = lower(module.value, {})
        assert lowered.value is not None
        assert not lowered.failed, lowered.diagnostics
        return lowered.value.rules[0].inputs[-1].shape

    scalar = Shape(batch=False)
    kernel = "k[i, j] = exp(-sum((x[i, a] - z[j, a])**2 for a) / ls)"
    assert shape("x[n, d], z[m, d], ls) -> k[n, m]", kernel) == scalar
    assert shape("x[n], t: int) -> y[]", "y = x[t]") == scalar
    assert shape("x[..., n], c) -> y[..., n]", "y[i] = c * x[i]") == Shape()
    assert shape("x[..., n], c) -> y", "y = c * x[0]") == Shape()
