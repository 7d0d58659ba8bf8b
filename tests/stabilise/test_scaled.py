"""What is subnormal on the way, and 0 on a target, is taken larger first."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from gradspec.ir.expr import Ref
from gradspec.ir.rule import CheckedRule, Derived
from gradspec.ir.walk import nodes
from gradspec.stabilise.brink import brinks
from gradspec.stabilise.model import Machine
from gradspec.stabilise.names import Names
from gradspec.stabilise.scaled import scaled
from gradspec.stabilise.stabilise import for_target as search_for
from tests.stabilise.rules import stable, texts, unary

SILU = unary("x / (1 + exp(-x))")


def for_target(shared: CheckedRule, target: str) -> CheckedRule:
    return scaled(search_for(shared, target), target)


def values(checked: CheckedRule, target: str, work: type, **inputs: float) -> float:
    """The first output of a rule as its target computes it."""
    columns = {name: np.array([value], work) for name, value in inputs.items()}
    names = Names(checked.rule)
    closed = names.close(Ref(checked.rule.outputs[0].name))
    return float(Machine(columns, work, target).run(closed)[0])


def test_the_model_flushes_as_the_targets_do() -> None:
    columns = {"x": np.array([2.0**-126, -(2.0**-130), 2.0**-100], np.float32)}
    half = Machine(columns, np.float32, "jax").run(Ref("x"))
    assert np.array_equal(half, columns["x"]), "a copy keeps all bits"
    closed = Names(stable(unary("x * 0.5")).rule).close(Ref("y"))
    flushed = Machine(columns, np.float32, "jax").run(closed)
    assert flushed.tolist() == [0.0, 0.0, 2.0**-101]
    assert np.signbit(flushed[1])
    kept = Machine(columns, np.float32, "numpy").run(closed)
    assert (kept != 0).all()


@pytest.mark.parametrize(("work", "x"), [(np.float32, -90.0), (np.float64, -711.0)])
def test_an_exponential_is_taken_larger(work: type, x: float) -> None:
    shared = stable(SILU)
    own = for_target(shared, "jax")
    wanted = x * float(np.exp(np.longdouble(x)))
    assert values(shared, "jax", work, x=x) == 0
    assert values(own, "jax", work, x=x) == pytest.approx(wanted, rel=1e-6)
    assert "x < -80" in texts(own.rule)["y"]
    assert "x < -80" in texts(own.rule)["dx"]
    assert any("taken larger" in rewrite.reason for rewrite in own.rewrites)


@pytest.mark.parametrize(("work", "x"), [(np.float32, 43.8), (np.float64, 354.5)])
def test_so_is_one_of_a_double(work: type, x: float) -> None:
    shared = stable(unary("4 * sigmoid(2 * x) * sigmoid(-2 * x)"))
    wanted = 4 * float(np.exp(np.longdouble(-2 * work(x))))
    assert values(shared, "tf", work, x=x) == 0
    own = for_target(shared, "tf")
    assert values(own, "tf", work, x=x) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("work", [np.float32, np.float64])
@pytest.mark.parametrize("x", [-79.9, -80.1, -20.0, 3.0, 85.0])
def test_it_changes_nothing_elsewhere(work: type, x: float) -> None:
    shared = stable(SILU)
    own = for_target(shared, "jax")
    before, after = (values(r, "jax", work, x=x) for r in (shared, own))
    assert after == pytest.approx(before, rel=8 * np.finfo(work).eps)
    assert x < -80 or after == before


def test_targets_that_keep_subnormal_numbers_keep_their_forms() -> None:
    shared = stable(SILU)
    assert for_target(shared, "numpy") is shared
    assert for_target(shared, "torch") is shared


def test_a_small_exponential_that_is_squared_stays() -> None:
    shared = stable(unary("exp(x)**2"))
    assert for_target(shared, "jax") is shared


def test_tiny_inputs_are_taken_larger() -> None:
    shared = stable(
        "rule f(a, b) -> y:\n    assume a + b > 0\n    y = (a - b) / (a + b)\n"
    )
    own = for_target(shared, "jax")
    a, b = 1.5 * 2.0**-126, 2.0**-126
    assert values(shared, "jax", np.float32, a=a, b=b) == 0
    assert values(own, "jax", np.float32, a=a, b=b) == pytest.approx(0.2)
    assert values(own, "jax", np.float32, a=3.0, b=2.0) == pytest.approx(0.2)


def test_the_sign_of_a_difference_is_compared() -> None:
    shared = stable("rule f(a, b) -> y:\n    y = abs(a - b)\n")
    own = for_target(shared, "jax")
    assert "a > b" in texts(own.rule)["da"]
    columns = {n: np.array([np.nan, 2.0, 3.0, 2.0], np.float32) for n in "ab"}
    columns |= {"a": columns["a"][::-1], "dy": np.ones(4, np.float32)}
    closed = Names(own.rule).close(own.rule.backward[0].value)
    got = Machine(columns, np.float32, "jax").run(closed)
    assert np.isnan(got[[0, 3]]).all()
    assert got[[1, 2]].tolist() == [1.0, -1.0]


def test_what_the_author_saves_stays_in_use() -> None:
    text = unary("x * tanh(e)").replace("    y", "    e = exp(x)\n    save e\n    y")
    own = for_target(stable(text), "jax")
    assert own.rule.saves == ("e",)
    assert texts(own.rule)["y"].endswith("if x < -80 else x * tanh(e)")
    wanted = -90.0 * float(np.exp(np.longdouble(-90)))
    assert values(own, "jax", np.float32, x=-90.0) == pytest.approx(wanted, rel=1e-6)
    known = Names(own.rule)
    slope = own.rule.backward[0]
    assert isinstance(slope, Derived)
    assert known.close(Ref("e")) in {*nodes(known.close(slope.value))}


FAR = [
    # all of what the exponential lacks is in its factor: no shift will do
    ("x / (1 + exp(-b * x))", {"x": -8e25, "b": 1.4e-24}, -8e25, -112.0),
    ("x * exp(-x * x / 2)", {"x": 13.25}, 13.25, -(13.25**2) / 2),
    ("x * exp(-x * x)", {"x": 9.375}, 9.375, -(9.375**2)),
]


@pytest.mark.parametrize(("text", "inputs", "factor", "exponent"), FAR)
def test_an_exponential_is_taken_in_halves(
    text: str, inputs: dict[str, float], factor: float, exponent: float
) -> None:
    head = f"rule f({', '.join(inputs)}) -> y:\n"
    own = for_target(stable(f"{head}    y = {text}\n"), "jax")
    wanted = factor * float(np.exp(np.longdouble(exponent)))
    got = values(own, "jax", np.float32, **inputs)
    assert got == pytest.approx(wanted, rel=1e-4)
    assert got != 0


def test_a_constant_is_taken_into_an_exponential() -> None:
    shared = stable(unary("1.75 * exp(x)"))
    own = for_target(shared, "tf")
    x = -87.5
    assert values(shared, "tf", np.float32, x=x) == 0
    wanted = 1.75 * float(np.exp(np.longdouble(x)))
    assert values(own, "tf", np.float32, x=x) == pytest.approx(wanted, rel=1e-5)
    assert "if" not in texts(own.rule)["y"]


def test_one_tiny_input_of_several_is_taken_larger() -> None:
    text = "rule f(a, b) -> y:\n    y = a / (1 + exp(-a)) * b\n"
    shared = stable(text)
    own = for_target(shared, "jax")
    inputs = {"a": 1.5 * 2.0**-126, "b": 1000.0}
    wanted = inputs["a"] / 2 * inputs["b"]
    assert values(shared, "jax", np.float32, **inputs) == 0
    assert values(own, "jax", np.float32, **inputs) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("work", [np.float32, np.float64])
def test_sums_with_one_stay_as_they_are(work: type) -> None:
    text = "rule f(p, t) -> y:\n    assume 0 < p, p < 1, 0 <= t, t <= 1\n    y = (p - t) / (p * (1 - p))\n"
    shared = stable(text)
    own = for_target(shared, "jax")
    least = float(np.finfo(work).tiny)
    inputs = {"p": 1.5 * least, "t": 1.25 * least}
    assert values(shared, "jax", work, **inputs) == 0
    assert values(own, "jax", work, **inputs) == pytest.approx(1 / 6, rel=1e-6)
    near = {"p": 2.0**-53, "t": 2.0**-55}
    before, after = (values(r, "jax", work, **near) for r in (shared, own))
    assert after == before


def test_the_points_are_on_the_brink() -> None:
    for sample, work in zip(
        brinks(stable(SILU).rule), (np.float32, np.float64), strict=True
    ):
        x = sample.columns["x"]
        ends = x[np.abs(x) > 50]
        assert ((ends < np.log(np.finfo(work).tiny)).sum()) >= 5
        assert (np.abs(x) < 2.0**-60).any()


@pytest.mark.parametrize(("work", "x"), [(np.float32, -13.05), (np.float64, -37.6)])
def test_the_normal_distribution_is_taken_larger(work: type, x: float) -> None:
    shared = stable(unary("x * ndtr(x)"))
    own = for_target(shared, "jax")
    wanted = float(work(x) * mpmath.ncdf(float(work(x))))
    assert values(shared, "jax", work, x=x) == 0
    assert values(own, "jax", work, x=x) == pytest.approx(wanted, rel=1e-6)
    assert "bell_raised" in texts(own.rule)["dx"], "both by the same power of e"
    for other in (-11.9, -1.0, 0.5, 20.0):
        before, after = (values(r, "jax", work, x=other) for r in (shared, own))
        assert after == before


@pytest.mark.parametrize("target", ["jax", "tf"])
def test_so_is_an_exponential_of_a_multiple(target: str) -> None:
    shared = stable(unary("x / (1 + exp(-1.702 * x))"))
    own, x = for_target(shared, target), -51.5
    wanted = x * float(np.exp(np.longdouble(1.702) * x))
    assert values(shared, target, np.float32, x=x) == 0
    assert values(own, target, np.float32, x=x) == pytest.approx(wanted, rel=1e-5)


def test_what_is_off_as_it_stands_may_be_off_taken_larger() -> None:
    cubic = "x * sigmoid(1.6 * (x + 0.0447 * x**3))"
    shared = stable(unary(cubic))
    own = for_target(shared, "jax")
    assert values(shared, "jax", np.float32, x=-10.03) == 0
    assert values(own, "jax", np.float32, x=-10.03) != 0


def test_points_are_where_parts_become_subnormal() -> None:
    rule = stable(unary("x * sigmoid(3.7 * x)")).rule
    single, double = brinks(rule)
    for points, least in ((single, 2.0**-126), (double, 2.0**-1022)):
        with np.errstate(over="ignore"):
            parts = np.exp(3.7 * np.float64(points.columns["x"]))
        assert ((parts < least) & (parts > least * 0.1)).sum() >= 2


@pytest.mark.parametrize("target", ["jax", "tf"])
def test_a_square_that_is_hardly_a_normal_number_is_taken_larger(target: str) -> None:
    shared = stable(unary("2 * square(sin(x / 2))"))
    own, x = for_target(shared, target), 1.6e-19
    assert values(shared, target, np.float32, x=x) == 0
    assert values(own, target, np.float32, x=x) == pytest.approx(x * x / 2, rel=1e-6)
    assert values(own, target, np.float32, x=1.0) == pytest.approx(1 - np.cos(1.0))
