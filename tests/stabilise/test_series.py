"""What cancels about a zero or a removable point, and what is made of it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from gradspec.checks.check import check
from gradspec.ir import closed
from gradspec.ir.expr import Apply, Const, Expr, Ref
from gradspec.ir.rule import CheckedRule, Rule
from gradspec.ir.text import show
from gradspec.ir.tidy import fold
from gradspec.ir.walk import substitute
from gradspec.primitives.formula import formula
from gradspec.stabilise.around import Around
from gradspec.stabilise.distance import distance, split
from gradspec.stabilise.exponential import through_exponential
from gradspec.stabilise.inner import INNER, of_one
from gradspec.stabilise.model import Machine
from gradspec.stabilise.series import points_of
from gradspec.symbolic.enclose import enclose
from gradspec.symbolic.truth import nearest
from tests.derive.rules import completed
from tests.stabilise.rules import stable, unary

SILU = "sigmoid(x) + x * sigmoid(x) * sigmoid(-x)"
MISH = (
    "tanh(softplus(x)) + 4 * x * sigmoid(2 * softplus(x)) * sigmoid(-2 * softplus(x))"
    " * sigmoid(x)"
)
LISHT = "tanh(x) + 4 * x * sigmoid(2 * x) * sigmoid(-2 * x)"

POOR = [
    ("y", "x - tanh(x)"),
    ("y", "expm1(x) / x if x != 0 else 1"),
    ("dx", "expm1(x) / x if x != 0 else 1"),
    ("y", "(x - sin(x)) / x**3 if x != 0 else 1 / 6"),
    ("dx", "log1p(x) / x if x != 0 else 1"),
    ("dx", "1 if x == 0 else sin(x) / x"),
    ("dx", "x * sigmoid(x)"),
    ("dx", "x * tanh(softplus(x))"),
    ("dx", "x * ndtr(x)"),
    ("dx", "x * tanh(exp(x))"),
    ("y", "log(x) / (x - 1) if x != 1 else 1"),
    ("y", "x**3 - x - 1"),
    ("dx", "-x * log(x)"),
]


def alone(rule: Rule, name: str) -> Expr:
    """A value in x alone, for the upstream gradient 1."""
    found = closed.outputs(rule) | closed.cotangents(rule)
    return substitute(found[name], {"dy": formula("1")})


@pytest.mark.parametrize(("name", "form"), POOR)
def test_few_digits_are_lost_about_zeros_and_removable_points(
    name: str, form: str
) -> None:
    more = ("assume x > 0",) if "log(x)" in form else ()
    text = unary(form, *more)
    before, after = completed(text), stable(text).rule
    meaning, chosen = alone(before, name), alone(after, name)
    for point in points_of(meaning, "x"):
        if more and point.near == 0:
            continue
        around = Around(meaning, "x", point.near)
        assert around._beside(chosen).worst <= 4.0
        assert around.profile(chosen).worst <= 32.0


@pytest.mark.parametrize("form", [SILU, MISH, LISHT, "x / expm1(x)", "1 / cosh(x)"])
def test_through_the_exponential_it_is_the_same_function(form: str) -> None:
    meaning = formula(form)
    found = through_exponential(meaning, "x")
    assert found is not None
    for place in ("-30", "-1.3", "-0.4", "0.7", "2", "60"):
        point = {"x": Fraction(place)}
        one, other = (enclose(e, point, 200) for e in (meaning, found))
        assert abs(one - other) <= abs(one) * 2.0**-70


@pytest.mark.parametrize("form", [SILU, MISH, LISHT])
def test_through_the_exponential_nothing_overflows(form: str) -> None:
    found = through_exponential(formula(form), "x")
    assert found is not None
    sample = np.array([-3e38, -500, -88, 0, 88, 500, 3e38], dtype=np.float32)
    values = Machine({"x": sample}).run(found)
    assert np.isfinite(values).all()
    assert values[-1] == 1.0


def test_what_has_no_exponential_goes_another_way() -> None:
    assert through_exponential(formula("x - sin(x)"), "x") is None
    assert through_exponential(formula("exp(x) + x"), "x") is None  # it grows


def test_a_number_in_three_parts() -> None:
    number = -Fraction(12784645427610738, 10**16) + Fraction(1, 3 * 2**70)
    single, double, rest = split(number)
    assert Fraction(float(np.float32(float(single)))) == single
    assert (
        Fraction(float(single + double)) == single + double == Fraction(float(number))
    )
    assert abs(number - single - double - rest) < Fraction(1, 2**105)
    _, u = distance(Ref("x"), number)
    at = float(number)
    for x in (at, np.nextafter(at, 0), np.nextafter(at, -9)):
        value = Machine({"x": np.array([x])}, np.float64).run(u)[0]
        true = Fraction(float(x)) - number
        assert abs(Fraction(float(value)) / true - 1) < Fraction(1, 2**50)


def test_a_function_of_a_product_is_one_of_its_own() -> None:
    found = of_one(formula("sigmoid(b * x) + x * sigmoid(b * x) * sigmoid(-b * x) * b"))
    assert found is not None
    alone, inner = found
    assert inner == formula("b * x")
    point = {"x": Fraction(3, 7), "b": Fraction(5, 3)}
    z = {INNER: Fraction(5, 7)}
    true = formula("sigmoid(b * x) * (1 + b * x * sigmoid(-b * x))")
    assert enclose(alone, z).overlaps(enclose(true, point))
    assert of_one(formula("x * sin(b * x)")) is None


@pytest.mark.parametrize(
    ("form", "root", "power"),
    [
        ("sin(sqrt(x)) / sqrt(x)", "sqrt(x)", 2),
        ("cos(sqrt(x)) / x - sin(sqrt(x)) / x**1.5", "sqrt(x)", 2),
        ("x * rsqrt(x) + tanh(sqrt(x))", "sqrt(x)", 2),
        ("expm1(cbrt(x)) / cbrt(x) + x", "cbrt(x)", 3),
    ],
)
def test_a_function_of_a_root_is_one_of_its_own(
    form: str, root: str, power: int
) -> None:
    found = of_one(formula(form))
    assert found is not None
    alone, inner = found
    assert inner == formula(root)
    z = Fraction(5, 7)
    true = enclose(formula(form), {"x": z**power})
    assert enclose(alone, {INNER: z}).overlaps(true)


@pytest.mark.parametrize(
    ("form", "limit"),
    [
        ("sin(sqrt(x)) / sqrt(x)", -1 / 6),
        ("(sin(x) - x * cos(x)) / (x * x * x)", None),
    ],
)
def test_gradients_about_0_of_textbook_quotients(
    form: str, limit: float | None
) -> None:
    """Those of a root have a series in it; a series of the numerator alone would
    underflow before the quotient does."""
    rule = stable(unary(form, "assume 0 < x, x < 1")).rule
    sizes = np.array([1e-36, 1e-20, 1e-9, 1e-3])
    for work in (np.float32, np.float64):
        values = Machine({"x": sizes.astype(work)}, work).run(alone(rule, "dx"))
        true = -sizes / 15 if limit is None else np.full(4, limit)
        assert values == pytest.approx(true, rel=1e-2, abs=0)


def test_a_function_of_a_root_is_good_where_the_input_is() -> None:
    """``s * s - 1`` cancels beside ``s = 1``, ``x - 1`` does not: a zero of the function in
    the root is no fault of a form in the input, which stays."""
    rule = stable(unary("6 * (x - 1) / (x + 1 + 4 * sqrt(x))", "assume x > 0")).rule
    column = {"x": np.array([1.25e38, 1.0000001], dtype=np.float32)}
    values = Machine(column).run(alone(rule, "y"))
    assert values == pytest.approx([6.0, 1.1920929e-7], rel=1e-6)
    assert "polynomial" not in show(alone(rule, "y"))


def test_what_is_written_is_not_taken_back_where_it_is_bad(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Good about its zeros as it is, it overflows far out: were a series looked for about
    ``sqrt(x) = 1``, what is chosen would stay."""
    monkeypatch.setattr("gradspec.stabilise.series._is_at_zero", lambda _: True)
    rule = stable(unary("6 * (x - 1) / (x + 1 + 4 * sqrt(x))", "assume x > 0")).rule
    column = {"x": np.array([1.25e38], dtype=np.float32)}
    assert Machine(column).run(alone(rule, "y")) == pytest.approx([6.0], rel=1e-6)


def test_the_slope_of_a_point_that_is_filled_in() -> None:
    """Piece by piece it would be 0: GS434 is said only where no series tells it."""
    for form, slope in (
        ("expm1(x) / x if x != 0 else 1", 0.5),
        ("1 if x == 0 else log1p(x) / x", -0.5),
        ("x / expm1(x) if x != 0 else 1", -0.5),
    ):
        rule = completed(unary(form))
        assert nearest(alone(rule, "dx"), [{"x": 0.0}]) == [slope]
        assert not [d for d in check(rule).diagnostics if d.code == "GS434"]
    jump = completed(unary("expm1(x) / x if x != 0 else 2"))
    assert nearest(alone(jump, "dx"), [{"x": 0.0}]) == [0.0]


def test_a_hole_is_filled_with_its_limit() -> None:
    rule = stable(unary("(exp(x) - 1) / x")).rule
    for name, limit in (("y", 1.0), ("dx", 0.5)):
        for work in (np.float32, np.float64):
            column = {"x": np.array([0.0, 1e-9], dtype=work)}
            values = Machine(column, work).run(alone(rule, name))
            assert values == pytest.approx([limit, limit], rel=1e-6)


def test_second_derivatives_are_those_of_the_function() -> None:
    """The polynomial is differentiated like the rest of the backward pass."""
    import torch

    from tests.targets.emission import torch_module

    text = "rule f(x) -> y:\n    y = {}\n"
    for form in ("x * sigmoid(x)", "x * ndtr(x)", "expm1(x) / x if x != 0 else 1"):
        module = torch_module(text.format(form))
        places = [-40.0, -1.2784, -0.7518, -0.3, 0.0, 0.2, 1.5, 30.0]
        x = torch.tensor(places, dtype=torch.float64, requires_grad=True)
        (dx,) = torch.autograd.grad(module.f(x).sum(), x, create_graph=True)
        (ddx,) = torch.autograd.grad(dx.sum(), x)
        second = _second(form)
        for place, value in zip(places, ddx.tolist(), strict=True):
            limit = 1 / 3 if place == 0 and "expm1" in form else None
            true = limit or nearest(second, [{"x": place}], "float64")[0]
            assert value == pytest.approx(true, rel=1e-6, abs=1e-12)


def _second(form: str) -> Expr:
    first = alone(completed(unary(form)), "dx")
    again = completed(unary(show(first)))
    return alone(again, "dx")


def test_the_reason_is_told() -> None:
    found: CheckedRule = stable(unary("x - tanh(x)"))
    (why,) = [r.reason for r in found.rewrites if r.name == "y"]
    assert "series about its zero x = 0" in why
    assert "now at most" in why


def test_bounds_stand_between_the_parts_of_a_distance() -> None:
    """XLA adds up constants that follow one another, and the second part is lost."""
    number = Fraction("-1.278464542761073795")
    near, *_ = split(number)
    x_less = fold(Apply("sub", (Ref("x"), Const(near))))
    for bounded, ends in (("min(x, 0)", [0]), ("clip(x, -2, -1)", [-2, -1])):
        first, whole = distance(formula(bounded), number)
        moved = (Const(end - near) for end in ends)
        assert first == Apply(bounded.split("(")[0], (x_less, *moved))
        inner = whole
        while inner.op in ("add", "sub"):
            inner = inner.args[0]
        assert inner == first != whole
    unmoved = formula("clip(x, -1, 1)")
    assert distance(unmoved, Fraction(0)) == (unmoved, unmoved)
