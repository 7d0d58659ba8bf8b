"""Where rules are measured."""

from __future__ import annotations

import numpy as np

from gradspec.derive.complete import complete
from gradspec.driver.load import load
from gradspec.ir.rule import Rule
from gradspec.measure.quantities import quantities
from gradspec.measure.truths import Question, question
from gradspec.source import Source
from gradspec.symbolic.points.formats import CORE


def _rule(text: str) -> Rule:
    module = load(Source("a.grad", text), ".").module
    assert module is not None
    return complete(module.rules[0]).value


def _question(text: str, dtype: str, count: int = 200, order: int = 1) -> Question:
    rule = _rule(text)
    return question(rule, quantities(rule, rule, order), dtype, count)


def test_every_half_is_asked_of_a_rule_of_one_input() -> None:
    asked = _question("rule f(x) -> y:\n    y = 2 * x\n", "float16")
    assert len(asked.sample) == 63487


def test_points_are_inside_the_assumptions_and_reach_the_ends() -> None:
    text = "rule f(x) -> y:\n    assume -1 < x and x < 1\n    y = log(1 - x)\n"
    x = np.asarray(_question(text, "float32").sample.columns["x"])
    assert ((x > -1) & (x < 1)).all()
    assert float(np.nextafter(np.float32(1), np.float32(0))) in x
    assert float(np.nextafter(np.float32(-1), np.float32(0))) in x


def test_both_strata_have_their_points() -> None:
    asked = _question("rule f(x) -> y:\n    y = exp(x)\n", "float64", 300)
    size = np.abs(asked.sample.columns["x"])
    core = (size >= CORE[0]) & (size <= CORE[1])
    assert (core == asked.sample.core)[size > 0].all()
    assert core.sum() >= 300
    assert (size > 1e100).sum() > 50
    assert ((size < 1e-100) & (size > 0)).sum() > 50


def test_zeros_of_the_gradient_have_neighbours() -> None:
    """silu' is 0 at -1.27846454276107…"""
    asked = _question("rule f(x) -> y:\n    y = x / (1 + exp(-x))\n", "float64")
    x = np.asarray(asked.sample.columns["x"])
    assert (np.abs(x + 1.2784645427610738) < 1e-15).sum() >= 3
    slopes = asked.truths["1:y:x"].high
    assert np.nanmin(np.abs(slopes[x != 0])) < 1e-15


def test_inputs_of_several_are_sometimes_nearly_equal() -> None:
    asked = _question("rule f(a, b) -> y:\n    y = a - b\n", "float32", 600)
    a, b = (asked.sample.columns[name] for name in "ab")
    with np.errstate(all="ignore"):
        ratio = np.abs(a / b - 1)
        extreme = np.abs(np.log2(np.abs(a / b))) > 100
    assert ((ratio > 0) & (ratio < 1e-3)).sum() > 20
    assert (a == b).sum() > 5
    assert extreme.sum() > 20


def test_second_derivatives_are_those_of_calculus() -> None:
    asked = _question("rule f(x) -> y:\n    y = exp(2 * x)\n", "float64", 50, 2)
    x = np.asarray(asked.sample.columns["x"])
    near = np.abs(x) < 100
    expected = 4 * np.exp(2 * x[near])
    assert np.allclose(asked.truths["2:y:x"].high[near], expected, rtol=1e-13)


def test_the_same_points_every_time() -> None:
    text = "rule f(a, b) -> y:\n    y = a * b\n"
    one, other = _question(text, "float32"), _question(text, "float32")
    for name in "ab":
        assert (one.sample.columns[name] == other.sample.columns[name]).all()
