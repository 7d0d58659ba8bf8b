"""Sums that cancel about a root, over their conjugates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradspec.ir.expr import Expr
from gradspec.ir.text import show
from gradspec.ir.tidy import tidy
from gradspec.primitives.formula import formula
from gradspec.stabilise.arithmetic_model import Machine
from gradspec.symbolic.conjugates import conjugated
from gradspec.symbolic.enclose import defined, enclose
from gradspec.symbolic.truth import nearest


def unknown(_: Expr) -> bool:
    return False


def form_of(text: str) -> Expr:
    found = conjugated(tidy(formula(text)), unknown)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "form"),
    [
        (
            "(g - sqrt(g * g - h * h)) / h",
            "h / (g + sqrt(g * g - h * h)) if g > 0 else (g - sqrt(g * g - h * h)) / h",
        ),
        (
            "(-b + sqrt(b * b - 4 * a * c)) / (2 * a)",
            "-2 * c / (b + sqrt(b * b - 4 * a * c)) if b > 0"
            " else -0.5 * (b - sqrt(b * b - 4 * a * c)) / a",
        ),
        (
            "1 - x / sqrt(x * x + y)",
            "y / sqrt(x * x + y) / (x + sqrt(x * x + y)) if x > 0"
            " else -(x - sqrt(x * x + y)) / sqrt(x * x + y)",
        ),
        (
            "1 / sqrt(1 + square(x + t)) - 1 / sqrt(1 + square(x))",
            "-t * (2 * x + t) / (sqrt(1 + square(x + t)) * sqrt(1 + square(x)))"
            " / (sqrt(1 + square(x + t)) + sqrt(1 + square(x)))",
        ),
        (
            "cbrt(x + t) - cbrt(x)",
            "t / (square(cbrt(x + t)) + cbrt(x + t) * cbrt(x) + square(cbrt(x)))",
        ),
        (
            "0.5 + 0.5 * (a - c) / sqrt(square(a - c) + b * b)",
            "-0.5 * square(b) / sqrt(square(a - c) + b * b)"
            " / (a - c - sqrt(square(a - c) + b * b)) if a - c < 0"
            " else 0.5 * (a - c + sqrt(square(a - c) + b * b))"
            " / sqrt(square(a - c) + b * b)",
        ),
        ("x / (1 - sqrt(x)) - x / (1 - x)", "-x * sqrt(x) / (x - 1)"),
        (
            "1 / sqrt(f * f + x) - f * f / (f * f + x)**1.5",
            "x / (sqrt(f * f + x) * (f * f + x))",
        ),
    ],
)
def test_what_cancels_is_gone(text: str, form: str) -> None:
    assert show(form_of(text)) == form


def test_where_a_sign_is_0_its_square_is_not_1() -> None:
    slope = formula("sign(p) - (p - r) / sqrt(square(p - r) + square(q))")
    at = {"p": np.array([0.0]), "r": np.array([2.0]), "q": np.array([0.0])}
    assert Machine(at, np.float64).run(form_of(show(slope)))[0] == 1.0


def test_where_the_sign_is_known_there_is_no_conditional() -> None:
    found = conjugated(tidy(formula("g - sqrt(g * g - h)")), lambda _: True)
    assert found is not None
    assert show(found) == "h / (g + sqrt(g * g - h))"


def test_what_is_under_a_root_has_its_conjugate_too() -> None:
    """The slope of a sum of two cubic roots, each of which holds a square root."""
    root = "sqrt(g * g - h * h)"
    text = " + ".join(
        f"(-1 {sign} g / {root}) / square(cbrt((-g {sign} {root}) / a))"
        for sign in ("+", "-")
    )
    found = form_of(text)
    point = {"g": 7552.0, "h": 5.34e-05, "a": -6.625}
    column = {name: np.array([number]) for name, number in point.items()}
    (true,) = nearest(tidy(formula(text)), [point], "float64")
    assert not np.isfinite(Machine(column, np.float64).run(formula(text))[0])
    assert Machine(column, np.float64).run(found)[0] == pytest.approx(true, rel=1e-12)


def test_nothing_is_made_that_nobody_could_read() -> None:
    assert conjugated(formula("x + y * z"), unknown) is None
    second = formula("sqrt(x + 1) - 2 * sqrt(x) + sqrt(x - 1)")
    assert conjugated(second, unknown) is None


_ATOMS = st.sampled_from(["x", "z", "1", "2", "(x + z)", "(x * z)"])
_SUMS = st.tuples(_ATOMS, st.sampled_from("+-*/"), _ATOMS).map(
    lambda t: f"({t[0]} {t[1]} {t[2]})"
)
_ROOTS = st.tuples(_SUMS, st.sampled_from(["sqrt(#)", "cbrt(#)", "#**0.75"])).map(
    lambda t: t[1].replace("#", t[0])
)
_TERMS = st.one_of(_ATOMS, _SUMS, _ROOTS)


@given(st.tuples(_ROOTS, st.sampled_from("+-/"), _TERMS, st.sampled_from("-/"), _ROOTS))
def test_the_value_is_the_same(parts: tuple[str, str, str, str, str]) -> None:
    expr = formula(f"({' '.join(parts[:3])}) {' '.join(parts[3:])}")
    found = conjugated(tidy(expr), unknown)
    if found is None:
        return
    for x, z in ((1.5, 0.75), (0.25, 3.0), (-0.5, 1.25), (2.5, -0.75)):
        before = enclose(expr, {"x": x, "z": z}, 400)
        after = enclose(found, {"x": x, "z": z}, 400)
        if defined(before) and defined(after):
            assert before.overlaps(after), (show(expr), show(found))
