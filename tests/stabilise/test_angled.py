"""Angles in float64: half of them, in two parts, and directions."""

from __future__ import annotations

import numpy as np
import pytest

from gradspec.ir import closed
from gradspec.ir.expr import Expr
from gradspec.ir.text import show
from gradspec.primitives.formula import formula
from gradspec.stabilise.angled import angled
from gradspec.stabilise.model import Machine
from gradspec.stabilise.quarters import with_quarters
from gradspec.stabilise.spheres import on_spheres
from gradspec.symbolic.circles import gathered_on_circles
from gradspec.symbolic.truth import nearest
from tests.stabilise.rules import completed, stable

POLAR = """rule f(r, t) -> y:
    assume 0 <= t, t <= 360
    y = r * cos(t * 0.0174532925199)
"""
HEIGHT = "sin(p) * sin(d) + cos(p) * cos(d) * cos(h)"


def in_double(form: Expr, **given: float) -> float:
    columns = {name: np.array([number]) for name, number in given.items()}
    return float(Machine(columns, np.float64).run(form)[0])


def is_right(form: Expr, meaning: Expr, **given: float) -> bool:
    (true,) = nearest(meaning, [given], "float64")
    return in_double(form, **given) == pytest.approx(true, rel=2.0**-24, abs=0)


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("(x - cos(b)) / sin(b)", {"x": 1.0, "b": 7e-16}),
        ("(x - cos(b)) / sin(b)", {"x": -1.0, "b": 9.42477798461914}),
        ("e / (1 + e * cos(b))", {"e": 1.0, "b": 9.42477798461914}),
        ("1 / (1 - sin(b))", {"b": -4.71238899230957}),
        ("1 + x * sin(b)", {"x": 1.0, "b": 4.71238899230957}),
        ("1 - x * cosh(b)", {"x": 1.0, "b": 1e-9}),
        ("1 / (1 - x * sin(b)**2)", {"x": 1.0, "b": 1.5707963705062866}),
        ("(x * sin(b) - sin(b)**2) / cos(b)**2 - 1", {"x": 1.0, "b": -4.71238899230957}),
        ("x * x + z * z - 2 * x * z * cos(b)", {"x": 3.0, "z": 3.0, "b": 1e-9}),
        ("cos(0.0174532925 * b)", {"b": 90.0}),
        ("sin(6.28318530718 * b)", {"b": 3.5}),
    ],
)  # fmt: skip
def test_a_form_keeps_what_the_usual_one_loses(
    text: str, near: dict[str, float]
) -> None:
    meaning = formula(text)
    assert not is_right(meaning, meaning, **near)
    assert any(is_right(f, meaning, **near) for f in angled(meaning, lambda _: False))


def test_nothing_is_made_of_what_has_no_angle() -> None:
    for text in ("1 - x * exp(b)", "sin(b)", "cos(0.5 * b)"):
        assert not [*angled(formula(text), lambda _: True)]


def test_other_coordinates_of_a_direction_are_what_is_left_of_one() -> None:
    meaning = formula(f"1 - ({HEIGHT})**2")
    (first, *_) = on_spheres(meaning)
    assert "1 - " not in show(first)
    near = {"p": 1e-9, "d": -3e-9, "h": 2e-9}
    assert not is_right(meaning, meaning, **near)
    assert is_right(first, meaning, **near)


def test_which_squares_are_written_is_chosen_angle_by_angle() -> None:
    form = formula("1 - sin(a)**2 - cos(a)**2 * cos(b)**2")
    found = gathered_on_circles(form, frozenset([formula("a")]))
    assert found is not None
    assert show(found).count("sin(b)") == 1 and "cos(b)" not in show(found)


def test_points_lie_beside_quarter_turns() -> None:
    rule = completed(POLAR)
    drawn, core = with_quarters(rule, formula("r * cos(t * 0.0174532925199)"))
    turns = np.float64(drawn["t"]) * 0.0174532925199 / (np.pi / 2)
    near = np.abs(turns - np.round(turns)) < 1e-6
    assert {1.0, 2.0, 3.0} <= set(np.round(turns[near]))
    assert len(core) == len(near)


def test_a_gradient_is_right_beside_quarter_turns() -> None:
    meaning = closed.cotangents(completed(POLAR))["dr"]
    done = stable(POLAR)
    given = {"r": 1.0, "t": 90.0, "dy": 1.0}
    assert not is_right(meaning, meaning, **given)
    assert is_right(closed.cotangents(done.rule)["dr"], meaning, **given)
