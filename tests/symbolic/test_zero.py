"""Proofs of equality: found for identities, never for what is not one."""

from __future__ import annotations

from typing import Any

import pytest

from gradspec.ir.expr import Expr
from gradspec.primitives.lookup import formula
from gradspec.symbolic.limit import Effort
from gradspec.symbolic.proof.prove import Proof, search


def prove_equal(left: Expr, right: Expr, *given: Any, **named: Any) -> Proof | None:
    return search(left, right, *given, **named).proof


IDENTITIES = """
1 - 1 / (1 + exp(x)) | sigmoid(x)
sigmoid(x) * (1 - sigmoid(x)) | exp(-x) / (1 + exp(-x))**2
1 - tanh(x)**2 | 4 * sigmoid(2 * x) * sigmoid(-2 * x)
sqrt(x**2) | abs(x)
log(x * y) | log(x) + log(y) | x > 0 and y > 0
max(x, y) | (x + y + abs(x - y)) / 2
clip(x, a, b) | max(min(x, b), a) | a < b
ndtr(x) | (1 + erf(x / sqrt(2))) / 2
1 / sqrt(1 - x * x) | rsqrt((1 - x) * (1 + x))
rsqrt(x - 1) * rsqrt(x + 1) | 1 / sqrt(x**2 - 1)
cos(x / 2)**2 | (1 + cos(x)) / 2
sin(3 * x) | 3 * sin(x) - 4 * sin(x)**3
cos(atan(x))**2 | 1 / (1 + x * x)
cos(x + pi) | -cos(x)
digamma(x + 1) | digamma(x) + 1 / x
polygamma(1, x + 2) | polygamma(1, x) - 1 / x**2 - 1 / (1 + x)**2
gamma(x + 1) | x * exp(lgamma(x)) | x > 0
x**(a - 1) * x | x**a
exp(a * log(x)) | x**a | x > 0
log(1 + exp(x)) - x | log(1 + exp(-x))
x**0.5 * x**0.25 | x**0.75
sinh(asinh(x)) | x
cosh(2 * atanh(x)) | (1 + x * x) / (1 - x * x)
cbrt(x)**2 | abs(x)**(2 / 3)
log(8) | 3 * log(2)
relu(x) * 2 | x + abs(x)
1 if abs(x) < 1 else 0 | 1 if x > -1 and x < 1 else 0
atan(x) + atan(1 / x) | pi / 2 * sign(x)
acos(x) | pi / 2 - asin(x)
asin(x / sqrt(1 + x**2)) | atan(x)
asin(sqrt(x)) | acos(1 - 2 * x) / 2 | 0 < x and x < 1
atan(2 * x / (1 - x**2)) | 2 * atan(x) | abs(x) < 1
atan(2 * x / (1 - x**2)) | 2 * atan(x) - pi | x > 1
atan2(y, x) | 2 * atan(y / (x + hypot(x, y))) | x > 0
atan2(y, x) | pi / 2 - atan(x / y) | y > 0
asin(sin(x)) | x | abs(x) < 1.5
sqrt(1 - sin(x)**2) | cos(x) | abs(x) < pi / 2
sqrt(1 - cos(x)) | sqrt(2) * abs(sin(x / 2))
cos(atan(x) / 2) | sqrt((1 + 1 / sqrt(1 + x**2)) / 2)
sqrt(x + sqrt(x**2 - 1)) | sqrt((x + 1) / 2) + sqrt((x - 1) / 2) | x > 1
sqrt(x - sqrt(x**2 - 1)) | sqrt((x + 1) / 2) - sqrt((x - 1) / 2) | x > 1
abs(sqrt(1 + x**2) - x) | sqrt(1 + x**2) - x
erfinv(erf(x)) | x
digamma(1 - x) | digamma(x) + pi / tan(pi * x)
polygamma(3, 1 - x) + polygamma(3, x) | pi**4 * (2 + 4 * cos(pi * x)**2) / sin(pi * x)**4
lgamma(x) + lgamma(1 - x) | log(pi / sin(pi * x)) | 0 < x and x < 1
digamma(2 * x) | (digamma(x) + digamma(x + 0.5)) / 2 + log(2)
polygamma(2, x + 0.5) | 8 * polygamma(2, 2 * x) - polygamma(2, x)
gamma(2 * x) | 2**(2 * x - 1) * gamma(x) * gamma(x + 0.5) / sqrt(pi) | x > 0
max(0, a * (exp(x / a) - 1)) | a * (exp(x / a) - 1) if x > 0 else 0 | a > 0
"""

DIFFERENT = """
exp(x) | exp(x) + 1e-30
sqrt(x**2) | x
log(x**2) | 2 * log(x) if x > 0 else 0
(x**2)**a | x**(2 * a) if x > 0 else 1
atan(x) + atan(1 / x) | pi / 2
max(x, y) | x
clip(x, a, b) | max(min(x, b), a)
abs(x + y) | abs(x) + abs(y)
floor(x + y) | floor(x) + floor(y)
sin(x) | cos(x)
erf(x) | erf(abs(x))
cbrt(x**3) | abs(x)
sqrt(x) * sqrt(y) | sqrt(x * y) + 1e-20
asin(sin(x)) | x
acos(cos(x)) | abs(x)
atan(tan(x)) | x
atan(2 * x / (1 - x**2)) | 2 * atan(x)
atan2(y, x) | atan(y / x)
atan2(y, x) | pi / 2 - atan(x / y)
sqrt(1 - sin(x)**2) | cos(x)
sqrt(1 - cos(x)) | sqrt(2) * sin(x / 2)
sqrt(1 - sin(x)**2) | cos(x) | abs(x) < 1.6
sqrt(x - sqrt(x**2 - 1)) | sqrt((x + 1) / 2) + sqrt((x - 1) / 2)
abs(sqrt(1 + x**2) - x - 1) | sqrt(1 + x**2) - x - 1
abs(x**2 - 2 * x + 0.9999) | x**2 - 2 * x + 0.9999
digamma(1 - x) | digamma(x) - pi / tan(pi * x)
polygamma(1, 1 - x) | polygamma(1, x) - pi**2 / sin(pi * x)**2
lgamma(x) + lgamma(1 - x) | log(pi / sin(pi * x))
digamma(2 * x) | (digamma(x) + digamma(x + 0.5)) / 2
gamma(2 * x) | 2**(2 * x) * gamma(x) * gamma(x + 0.5) / sqrt(pi)
erf(erfinv(x)) | erf(x)
"""


def _lines(text: str) -> list[str]:
    return text.strip().splitlines()


def _question(line: str) -> tuple[Expr, Expr, tuple[Expr, ...]]:
    left, right, *given = line.split(" | ")
    return formula(left), formula(right), tuple(formula(g) for g in given)


@pytest.mark.parametrize("line", _lines(IDENTITIES))
def test_identities_are_proved(line: str) -> None:
    left, right, given = _question(line)
    proof = prove_equal(left, right, given, Effort.of(5.0))
    assert proof is not None
    assert "normal form" in proof.method


@pytest.mark.parametrize("line", _lines(DIFFERENT))
def test_what_differs_is_not_proved(line: str) -> None:
    left, right, given = _question(line)
    assert prove_equal(left, right, given, Effort.of(3.0)) is None


def test_the_same_text_needs_no_method() -> None:
    assert prove_equal(formula("1 * x"), formula("x")) == Proof("the same expression")


def test_borders_in_other_variables_belong_to_the_claim() -> None:
    left = formula("x if t == 1 else 0")
    right = formula("0")
    assert prove_equal(left, right, (), Effort.of(1.0), wrt="x") is None
    assert prove_equal(right, left, (), Effort.of(1.0), wrt="t") is not None


def test_equations_of_the_declared_side_alone_belong_to_the_claim() -> None:
    left = formula("x if t == 1 else 0")
    right = formula("0")
    assert prove_equal(left, right, (), Effort.of(1.0), wrt="t") is None
    given = (left,)
    found = prove_equal(left, right, (), Effort.of(1.0), wrt="t", given=given)
    assert found is not None


ADVERSARIES = (
    ("(1 + exp(x))**200 / (1 + exp(y))**100", "x**1000"),
    (
        " + ".join(f"sqrt(x + {i})" for i in range(14)),
        "1 / (" + " + ".join(f"sqrt(x + {i})" for i in range(14)) + ")",
    ),
    (" + ".join(f"exp(x * {i}) / (1 + {i + 1} * x)" for i in range(120)), "x"),
    ("exp(exp(exp(exp(x))))", "exp(exp(exp(exp(x)))) + 1e-30"),
    ("sin(x)**9 * tan(x + y)**5 * exp(sin(x * y))", "cos(x)**9 * tan(x - y)**5"),
    ("+".join("abcdefghij").join("()") + "**9", "1"),
)


@pytest.mark.parametrize(("left", "right"), ADVERSARIES)
def test_a_proof_ends_with_its_steps(left: str, right: str) -> None:
    assert prove_equal(formula(left), formula(right), (), Effort.of(0.3)) is None


def test_steps_are_counted_not_timed() -> None:
    """A proof that needs 1,000 steps is found with them, on any machine, and not without."""
    left, right = formula("(x + y + 1)**12"), formula("((x + y + 1)**6)**2")
    effort = Effort(10**6)
    assert search(left, right, (), effort).proof is not None
    needed = 10**6 - effort.steps
    assert search(left, right, (), Effort(needed)).proof is not None
    assert search(left, right, (), Effort(needed - 1)).stopped


def test_a_whole_number_is_its_own_floor_but_not_its_own_sign() -> None:
    whole = frozenset(("n",))
    assert prove_equal(formula("floor(n)"), formula("n"), whole=whole)
    assert prove_equal(formula("round(n)"), formula("n"), whole=whole)
    bounded = (formula("sign(n) <= 1"),)
    assert not prove_equal(formula("max(n, 1)"), formula("1"), bounded, whole=whole)
