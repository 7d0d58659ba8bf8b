"""Sums and quotients moved into the branches of a conditional: the same function at every
point, and one that keeps its digits."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gradspec.ir import closed
from gradspec.ir.text import show
from gradspec.primitives.formula import formula
from gradspec.stabilise.by_cases import by_cases
from gradspec.symbolic.enclose import program
from tests.derive.rules import completed
from tests.stabilise.rules import stable, texts
from tests.targets.emission import numpy_module

PIECES = "p + 1 - min(p, 0)**2 / (min(p, 0) - 1)"
FORMS = {
    PIECES: "-1 / (p - 1) if p < 0 else 1 + p",
    "1 - max(p, 0) / (max(p, 0) + 1)": "1 if p < 0 else 1 / (1 + p)",
    "p - p * abs(p) / (1 + abs(p))": "-p / (p - 1) if p < 0 else p / (1 + p)",
    "1 - (p / (1 + p) if p > 2 else -p / (5 - p))": (
        "-5 / (p - 5) if p <= 2 else 1 / (1 + p)"
    ),
    "1 + sign(p) / (2 + p)": (
        "(1 + p) / (2 + p) if p < 0 else 1 if p == 0 else (3 + p) / (2 + p)"
    ),
}
POINTS = (-7.5, -2.0, -0.25, 0.0, 0.5, 2.0, 3.0, 40.0)


@pytest.mark.parametrize("text", FORMS)
def test_each_branch_is_gathered(text: str) -> None:
    (found,) = by_cases(formula(text))
    assert show(found) == FORMS[text]


@pytest.mark.parametrize("text", [*FORMS, "p - max(p, q) / (abs(p) + 1)"])
def test_it_is_the_same_function_and_has_the_same_gradients(text: str) -> None:
    inputs = "p, q" if "q" in text else "p"
    rule = completed(f"rule f({inputs}) -> y:\n    y = {text}\n")
    every = {**closed.outputs(rule), **closed.cotangents(rule)}
    assert any(tuple(by_cases(form)) for form in every.values())
    for form in every.values():
        for other in by_cases(form):
            both = program(form, other)
            for p in POINTS:
                for q in (-2.0, 0.5):
                    first, second = both.run({"p": p, "q": q, "dy": 1.5})
                    if first.is_finite():
                        assert abs(first - second) < 1e-25, (p, q)


def test_what_is_not_a_number_stays_none() -> None:
    """The sign of a NaN is one; comparisons with it are false."""
    assert tuple(by_cases(formula("2 + sign(p)"))) == ()
    assert tuple(by_cases(formula("2 + (1 if p < 0 else 3)"))) != ()
    (kept,) = by_cases(formula("dy * (2 + sign(p) * (p + 1))"))
    assert show(kept).startswith("dy * (")


def test_what_has_none_or_too_many_is_left() -> None:
    for text in ("p * p - 1", "min(p, q) + max(q, r) - abs(r)"):
        assert tuple(by_cases(formula(text))) == ()


BIWEIGHT = """rule f(x, t: nograd, c: static = 4.685) -> y:
    assume c > 0
    u = (x - t) / c
    v = u**2
    y = c**2 / 6 * v * (3 - 3 * v + v**2) if abs(u) < 1 else c**2 / 6
    dx = dy * c * u * (1 - u**2)**2 if abs(u) < 1 else 0
"""


def test_a_division_that_still_loses_digits_is_not_taken() -> None:
    """About ``abs(x - t) = c`` the factors cancel in any form: float64 does it, in the
    author's own."""
    found = stable(BIWEIGHT)
    assert "dx" in found.wide
    assert "c**4" not in texts(found.rule)["dx"]


def test_far_out_on_either_side_nothing_cancels() -> None:
    vjp = numpy_module(f"rule f(p) -> y:\n    y = {PIECES}\n").f_vjp
    p = np.array([-1e18, -3e8, -2.0, 0.0, 5.0, 1e20], dtype=np.float32)
    y, pullback = vjp(p)
    wide = np.float64(p)
    below = 1 / (1 - np.minimum(wide, 0))
    assert np.allclose(y, np.where(wide < 0, below, 1 + wide), rtol=1e-6, atol=0)
    (dp,) = pullback(np.ones_like(p))
    assert np.allclose(dp, np.where(wide < 0, below**2, 1), rtol=1e-6, atol=0)
    y, _ = vjp(np.array([math.nan], dtype=np.float32))
    assert np.isnan(y).all()
