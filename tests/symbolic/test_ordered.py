"""Sums of three numbers of known signs."""

from __future__ import annotations

import numpy as np
import pytest

from gradspec.ir.expr import Expr, Ref
from gradspec.ir.text import show
from gradspec.ir.tidy import tidy
from gradspec.primitives.formula import formula
from gradspec.stabilise.arithmetic_model import Machine
from gradspec.symbolic.conjugates import conjugated
from gradspec.symbolic.ordered import Term, in_order
from gradspec.symbolic.truth import nearest

SIDES = Term(False, Ref("b")), Term(False, Ref("c")), Term(True, Ref("a"))


def value(form: Expr, **given: float) -> float:
    columns = {name: np.array([number]) for name, number in given.items()}
    return float(Machine(columns, np.float64).run(form)[0])


def test_the_larger_comes_first() -> None:
    form = in_order(SIDES)
    assert form is not None
    assert show(form) == "b - a + c if b > c else c - a + b"
    assert (
        value(form, a=1e20, b=1e20, c=1.0) == value(form, a=1e20, b=1.0, c=1e20) == 1.0
    )
    assert value(form, a=3.0, b=4.0, c=5.0) == 6.0


def test_signs_that_are_all_the_same_need_no_order() -> None:
    assert in_order(SIDES[:2]) is None
    assert in_order((*SIDES[:2], Term(False, Ref("a")))) is None


@pytest.mark.parametrize(
    ("text", "point"),
    [
        (
            "c / sqrt((a + b + c) * (b + c - a) * (a + c - b) * (a + b - c))",
            {"a": 1.5e10, "b": 1.5e10, "c": 5.0 * 2.0**-24},
        ),
        (
            "b / sqrt(1 - square((a * a + b * b - c * c) / (2 * a * b)))",
            {"a": 1.499999761581421, "b": 1.5, "c": 2.3888426881057967e-07},
        ),
        (
            "(square(b) + square(c) - square(a)) / (2 * square(b))",
            {"a": 9208302.0, "b": 9208302.0, "c": 2.0**-17},
        ),
    ],
)
def test_none_of_the_three_is_lost(text: str, point: dict[str, float]) -> None:
    written = tidy(formula(text))
    found = conjugated(written, lambda part: isinstance(part, Ref))
    assert found is not None
    (true,) = nearest(written, [point], "float64")
    with np.errstate(all="ignore"):
        assert value(written, **point) != pytest.approx(true, rel=1e-3, abs=0.0)
    assert value(found, **point) == pytest.approx(true, rel=1e-12, abs=0.0)
