"""Products of powers and exponentials beyond the range of their factors."""

from __future__ import annotations

import numpy as np
import pytest

from gradspec.ir import closed
from gradspec.ir.expr import Expr, Ref
from gradspec.ir.text import show
from gradspec.primitives.formula import formula
from gradspec.stabilise.model import Machine
from gradspec.stabilise.united import united
from gradspec.symbolic.gather import gathered, gathered_through_roots
from gradspec.symbolic.truth import nearest
from tests.stabilise.rules import stable

GAMMA = formula("x**(k - 1) * exp(-x / t) / t**k / t - x**(k - 2) * exp(-x / t) / t**k")
INPUTS = frozenset(["x", "k", "t"])


def value(form: Expr, **given: float) -> float:
    columns = {name: np.array([number]) for name, number in given.items()}
    return float(Machine(columns, np.float64).run(form)[0])


def test_terms_have_their_powers_and_exponentials_in_common() -> None:
    form, *_ = united(GAMMA, GAMMA, INPUTS, lambda _: True)
    assert show(form).count("exp(") == 1 and show(form).count("x**k") == 1


def test_where_a_factor_leaves_the_range_there_is_one_exponential() -> None:
    forms = tuple(united(GAMMA, GAMMA, INPUTS, lambda part: isinstance(part, Ref)))
    point = {"x": 4.3e-16, "k": 37.0, "t": 4.4e-16}
    (true,) = nearest(GAMMA, [point], "float64")
    assert not np.isfinite(value(GAMMA, **point))
    assert value(forms[-1], **point) == pytest.approx(true, rel=1e-10)
    near = {"x": 2.0, "k": 3.0, "t": 1.5}
    assert value(forms[-1], **near) == pytest.approx(value(GAMMA, **near), rel=1e-14)


def test_bases_of_unknown_sign_stay() -> None:
    form = formula("x**k * exp(-t)")
    assert all(
        "log(x)" not in show(f) for f in united(form, form, INPUTS, lambda _: False)
    )


def test_what_only_float32_has_room_for_is_taken_in_its_range() -> None:
    """A sum of cubes leaves float64 at 1e103."""
    form = formula("x / (x + t) / (x + t) - 1 / (x + t)")
    ranged = tuple(united(form, form, frozenset(["x", "t"]), lambda _: False))
    assert "< 1e39" in show(ranged[-1])
    assert value(ranged[-1], x=1.0, t=1e-300) == pytest.approx(-1e-300)


def test_the_square_of_the_root_of_a_quotient_is_known() -> None:
    form = formula(
        "x / d / d / sqrt(1 + x / d * (x / d)) * x - sqrt(1 + x / d * (x / d))"
    )
    plain, found = gathered(form), gathered_through_roots(form)
    assert plain is not None and found is not None
    assert len(show(found)) < len(show(plain))
    for x, d in ((3.0, 4.0), (3.0, -4.0)):
        assert value(found, x=x, d=d) == pytest.approx(-0.8)


def test_a_density_is_right_far_out() -> None:
    """The gradient of l**k * exp(-l) where l**k alone is beyond float64."""
    text = "rule f(w, l) -> y:\n    assume l > 0\n    y = exp(-w) * l**exp(w)\n"
    done = stable(text)
    form = closed.cotangents(done.rule)["dl"]
    assert "dl" in done.wide
    assert value(form, w=-1472.0, l=4.0, dy=1.0) == pytest.approx(0.25)
