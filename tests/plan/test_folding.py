"""Constants are folded: nothing that is emitted raises in a branch that is not taken."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from gradspec.plan.arrays import Expr, Literal, Op
from gradspec.plan.operations import Types, fold, translate
from gradspec.primitives.lookup import formula
from tests.calling import by_target, called
from tests.targets.emission import module_of


def array(text: str) -> Expr:
    return translate(formula(text), Types(frozenset(), frozenset(), frozenset()))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2 * 3 - 1 / 4", Literal(Fraction(23, 4))),
        ("exp(0)", Literal(Fraction(1))),
        ("log(2)", Literal(Fraction(math.log(2)))),
        ("logaddexp(0, 1e30)", Literal(Fraction(1e30))),
        ("exp(1000)", Op("inf")),
        ("x if 1 < 2 else 1 / x", array("x")),
        ("1 / x if 2 < 1 and x > 0 else x", array("x")),
    ],
)
def test_values_of_literals(text: str, value: Expr) -> None:
    assert fold(array(text)) == value


@pytest.mark.parametrize("text", ["log(0)", "log(-1)", "1 / 0", "sqrt(-1)"])
def test_what_has_no_value_stays(text: str) -> None:
    assert isinstance(fold(array(text)), Op)


RULES = """
rule self_power(x) -> z:
    assume x > 0
    z = x**x

rule large(x) -> y:
    y = x * logaddexp(0, 1e30)

rule by_logarithm(x, k: static = 0.0) -> y:
    y = x * log(k) if k > 0 else x

rule by_quotient(x, beta: static = 0.0) -> y:
    y = x**2 / (2 * beta) if abs(x) < beta else abs(x)

rule by_powers(x, k: static = 0.0) -> y:
    y = x * (1 / k + sqrt(k - 1) + k**(-0.5) + exp(1e3 / k)) if k > 0 else 2 * x
"""
EXPECTED = {
    "self_power": lambda x: (x**x, x**x * (np.log(x) + 1)),
    "large": lambda x: (x * 1e30, 1e30 + 0 * x),
    "by_logarithm": lambda x: (x, 1 + 0 * x),
    "by_quotient": lambda x: (x, 1 + 0 * x),
    "by_powers": lambda x: (2 * x, 2 + 0 * x),
}


@by_target
@pytest.mark.parametrize("name", EXPECTED)
def test_nothing_raises_in_a_branch_that_is_not_taken(name: str, target: str) -> None:
    x = np.array([0.5, 1.0, 2.0])
    with np.errstate(all="raise"):
        (y,), (dx,) = called(target, module_of(RULES, target), name, (x,))
    value, slope = EXPECTED[name](x)
    upstream: Any = np.cos(np.arange(3))
    assert dx is not None
    np.testing.assert_allclose(y, value, rtol=1e-6)
    np.testing.assert_allclose(dx, upstream * slope, rtol=1e-6)
