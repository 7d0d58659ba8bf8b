"""Fractions of exponentials of several inputs, beyond the range of their parts."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.published import measured
from gradspec.ir.expr import Expr
from gradspec.ir.rule import CheckedRule
from gradspec.ir.text import show
from gradspec.ir.walk import names
from gradspec.primitives.formula import formula
from gradspec.stabilise.model import Machine
from gradspec.stabilise.peeled import peeled
from gradspec.stabilise.stabilise import stabilise
from gradspec.symbolic.truth import nearest
from tests.derive.rules import completed
from tests.stabilise.rules import stable

FRACTIONS = (
    "sinh(x) * y / cosh(x + z)",
    "exp(x) / (1 + exp(z))",
    "sinh(x) / sinh(z)",
    "tanh(x / 3) * cosh(z) / cosh(x - z)",
    "expm1(x + z) / (expm1(x) * expm1(z))",
    "y * (expm1(x * y + z * y) / (expm1(x * y) * expm1(z * y)))",
    "sigmoid(x - z) - sigmoid(x + z)",
    "-exp(x) * exp(z) / square(exp(x) + exp(y) + exp(z))",
    "(x * exp(x) + z * exp(z)) / (exp(x) + exp(z))",
    "exp(x) * exp(z / 2) / (1 + exp(x + z))",
    "exp(-square(x - z)) / (exp(-square(x)) + exp(-square(z)))",
)
FAR = (
    (0.25, 0.75, -1.5),
    (-3.0, 2.0, 0.125),
    (95.5, 0.5, 95.25),
    (-8960.0, 1.5, 8960.5),
    (1325344.5, 0.25, -1325344.25),
    (3.0, -1.25, -400.5),
)


def value(form: Expr, **given: float) -> float:
    columns = {name: np.array([number]) for name, number in given.items()}
    with np.errstate(all="ignore"):
        return float(Machine(columns, np.float64).run(form)[0])


@pytest.mark.parametrize("text", FRACTIONS)
def test_what_is_peeled_is_the_same_function_where_its_parts_overflow(
    text: str,
) -> None:
    form = formula(text)
    (found,) = peeled((form,))
    asked = 0
    for x, y, z in FAR:
        point = {
            k: v for k, v in zip("xyz", (x, y, z), strict=True) if k in names(form)
        }
        (true,) = nearest(form, [point], "float64")
        if np.isfinite(true) and abs(true) > 1e-280:
            assert value(found, **point) == pytest.approx(true, rel=1e-13), point
            asked += 1
    assert asked >= 2


def test_lowest_terms_have_nothing_left_that_cancels() -> None:
    slope = "(cosh(x) * cosh(x + z) - sinh(x) * sinh(x + z)) / square(cosh(x + z))"
    (found,) = peeled((formula(slope),))
    assert "-exp" not in show(found) and "expm1" not in show(found)
    p = "exp(p) * (exp(q) * (exp(p) - 1) - (exp(p + q) - 1)) / (exp(q) - 1)"
    (found,) = peeled((formula(f"{p} / square(exp(p) - 1)"),))
    assert not {"q"} & names(found)


def test_differences_of_large_exponents_are_taken_by_algebra() -> None:
    (found,) = peeled((formula("cosh(x) / cosh(x + z)"),))
    assert value(found, x=1e17, z=-2.0) == pytest.approx(np.exp(2.0), rel=1e-15)


def test_without_exponentials_there_is_nothing_to_peel() -> None:
    assert not [*peeled((formula("x / (1 + x * z)"),))]
    assert not [*peeled((formula("exp(x) / z if x < 0 else z"),))]


@pytest.mark.parametrize(
    "text",
    (
        "rule f(x, y, z) -> w:\n    w = sinh(x) * y / cosh(x + z)\n",
        "rule f(p, q) -> y:\n    assume p != 0, q != 0\n"
        "    y = (exp(p + q) - 1) / ((exp(p) - 1) * (exp(q) - 1))\n",
    ),
)
def test_gradients_of_such_quotients_have_no_bad_points(text: str) -> None:
    """At points that the choice has not seen."""
    known = {found.name: found for found in measured(completed(text), 150)}
    assert known.keys() & {"dx", "dp"}
    for found in (known[name] for name in known.keys() & {"dx", "dp", "dq"}):
        assert found.written.whole.bad > 0 and found.chosen.whole.bad == 0, found.name


def test_what_is_written_is_peeled_too_where_float64_overflows() -> None:
    done = stable("rule f(x, z) -> y:\n    y = cosh(x) / cosh(z)\n")
    form = done.rule.forward[-1].value
    assert done.wide and value(form, x=-1472.0, z=1473.0) == pytest.approx(np.exp(-1))


def test_targets_that_may_have_no_float64_get_none() -> None:
    """The one exponent has several inputs: in float32 it would lose digits that the
    forms as written keep."""
    text = "rule f(x, z) -> y:\n    y = cosh(x) / cosh(z)\n"
    done = stabilise(CheckedRule(completed(text), ()), "jax")
    assert show(done.rule.forward[-1].value) == "cosh(x) / cosh(z)"


N2H = "1 - ((e * cosh(n) - 2) * (e * cosh(n) - 1) - (e * sinh(n) - 2 * n) * e * sinh(n)) / (e * cosh(n) - 1)**2"


@pytest.mark.parametrize(
    "text",
    [
        N2H,
        "(exp(2 * n) + e * exp(n) + 1) / (exp(3 * n) + exp(n) + exp(-n) + e)",
        "(exp(n) - e) * (exp(n) + 3) * (exp(n) + e) / (exp(n) + exp(-n) + e)**3",
    ],
)
def test_of_exponentials_on_a_line_the_outermost_are_the_largest(text: str) -> None:
    """Five exponentials of one factor, of which two are compared."""
    meaning = formula(text)
    (form,) = peeled((meaning,))
    points = [
        {"n": n, "e": e} for n in (-900.0, -8.0, 0.5, 8.0, 900.0) for e in (2.0, 1e9)
    ]
    truths = nearest(meaning, points, "float64")
    for point, true in zip(points, truths, strict=True):
        columns = {name: np.array([number]) for name, number in point.items()}
        with np.errstate(all="ignore"):
            found = float(Machine(columns, np.float64).run(form)[0])
        assert found == pytest.approx(true, rel=1e-12, abs=1e-300)
    assert show(form).count("min(min(") <= show(form).count("exp(")
