"""Outputs with and without batch axes in one rule."""

from __future__ import annotations

from gradspec.lower.lowering import lower
from gradspec.options import Options
from gradspec.pipeline import compile_module
from gradspec.source import Source
from gradspec.syntax.parse import parse


def codes(text: str) -> list[str]:
    source = Source("t.grad", text)
    parsed = parse(source)
    assert parsed.value is not None
    lowered = lower(parsed.value, {})
    assert lowered.value is not None
    compiled = compile_module(lowered.value, source, Options(targets=("numpy",)))
    return [found.code for found in compiled.diagnostics]


def test_a_gradient_that_must_count_one_output_once_is_not_emitted() -> None:
    """``ds`` in ``dx = sum over the batch of dy * w, + ds`` is not of the batch."""
    text = """rule both(x[n], w[{}n]) -> (y[{}n], s[]):
    y[i] = x[i] * w[i]
    s = sum(x[i] for i)
"""
    assert codes(text.format("..., ", "..., ")) == ["GS502"]
    assert codes(text.format("", "")) == []
