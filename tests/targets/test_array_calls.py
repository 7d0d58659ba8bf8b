"""Modules of rules that call rules with axes are those of the formulas written out."""

from __future__ import annotations

import re

import pytest

from tests.targets.emission import text_of

CALLED = """\
from "gradspec:sequences/linear" import linear_rnn

rule coarse(x[..., n], s: static = 4.0) -> y[..., n]:
    y[i] = round(s * x[i]) / s
    surrogate y[i] = tanh(x[i])

rule held(x[n], w[n]: nograd) -> y:
    y = sum(x[i] * w[i]**2 for i)

rule with_surrogate(x[n], w[n]) -> y:
    y = sum(coarse(x)[i] * w[i] for i)

rule without_gradient(x[n], w[n]) -> y:
    y = held(x, w) + held(w, x)

rule of_states(a[..., n], x[..., n]) -> y[..., n]:
    y[i] = tanh(linear_rnn(a, x, 0)[i])
"""
WRITTEN = """\
rule rounded(v, s: static) -> y:
    y = round(s * v) / s
    surrogate y = tanh(v)

rule stop(x) -> y:
    y = x
    override dx = 0 because "a constant"

rule with_surrogate(x[n], w[n]) -> y:
    coarse[i] = rounded(x[i], s=4)
    y = sum(coarse[i] * w[i] for i)

rule without_gradient(x[n], w[n]) -> y:
    held = sum(x[i] * stop(w[i])**2 for i)
    held2 = sum(w[i] * stop(x[i])**2 for i)
    y = held + held2

rule of_states(a[..., n], x[..., n]) -> y[..., n]:
    linear_rnn[t] = a[t] * (linear_rnn[t - 1] if t > 0 else 0) + x[t]
    y[i] = tanh(linear_rnn[i])
"""


NAMES = re.compile("with_?surrogate|without_?gradient|of_?states", re.IGNORECASE)


def _code(rules: str, target: str) -> list[str]:
    """The functions and classes of the last three rules, without docstrings."""
    text = re.sub(r'""".*?"""', "", text_of(rules, target), flags=re.DOTALL)
    return [part for part in text.split("\n\n\n")[1:] if NAMES.search(part)]


@pytest.mark.parametrize("target", ["numpy", "torch", "tf", "jax"])
def test_modules_are_those_of_the_formulas_written_out(target: str) -> None:
    found = _code(CALLED, target)
    assert len(found) >= 3
    assert found == _code(WRITTEN, target)
