"""Narrow arrays take float64 where that is cheaper: right to the last place, in the type and
the shape that the other way gives.
"""

from __future__ import annotations

import inspect
import warnings
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from gradspec.plan.array import Literal, Name, Op
from gradspec.targets import numpy as target
from gradspec.targets.quiet import warns_needlessly
from tests.targets.double_rules import GATED
from tests.targets.emission import imported, numpy_module, planned

RULES = f"""{GATED}
rule margin(x, t: nograd) -> loss:
    loss = log(1 + exp(-t * x))

rule square(x) -> y:
    y = x**2
"""
ZEROS = {"silu": -1.2784645, "mish": -1.1924312}
ENDS = (-np.inf, -3e38, -1000.0, -88.0, 88.0, 1000.0, 3e38, np.inf)


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return imported(target.module(planned(RULES)), "numpy_double")


def _slope(rules: ModuleType, name: str, *inputs: Any, **statics: float) -> Any:
    y, pullback = getattr(rules, f"{name}_vjp")(*inputs, **statics)
    return pullback(np.ones_like(y))


def _apart(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest distance in units in the last place of float32."""
    unit = np.spacing(np.abs(expected).astype(np.float32)).astype(np.float64)
    return float((np.abs(found.astype(np.float64) - expected) / unit).max())


@pytest.mark.parametrize("name", ZEROS)
def test_float32_has_all_its_digits_about_the_zero_and_far_out(
    rules: ModuleType, name: str
) -> None:
    near = ZEROS[name] + np.linspace(-1e-3, 1e-3, 201)
    x = np.concatenate([near, np.linspace(-85.0, 90.0, 351)]).astype(np.float32)
    (found,) = _slope(rules, name, x)
    (expected,) = _slope(rules, name, x.astype(np.float64))
    assert found.dtype == np.float32
    assert _apart(found, expected) <= 1.0


@pytest.mark.parametrize("name", ZEROS)
def test_limits_come_without_a_warning(rules: ModuleType, name: str) -> None:
    x = np.array(ENDS, np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (found,) = _slope(rules, name, x)
    assert found[0] == 0.0
    assert found[-1] == 1.0
    assert np.isfinite(found).all()


def test_float64_takes_the_other_way(
    rules: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any) -> None:
        raise AssertionError("float64 has no digits to spare")

    monkeypatch.setattr(rules, "_silu_in_double", never)
    x = np.linspace(-3.0, 3.0, 7)
    (found,) = _slope(rules, "silu", x)
    s = 1.0 / (1.0 + np.exp(-x))
    np.testing.assert_allclose(found, s * (1.0 + x * (1.0 - s)), rtol=1e-13)


def test_types_and_shapes_are_those_of_the_inputs(rules: ModuleType) -> None:
    random = np.random.default_rng(0)
    a = random.standard_normal((3, 1)).astype(np.float16)
    b = random.standard_normal(4).astype(np.float32)
    da, db = _slope(rules, "both", a, b)
    assert (da.dtype, da.shape) == (np.float16, (3, 1))
    assert (db.dtype, db.shape) == (np.float32, (4,))
    weight = 1.0 / (1.0 + np.exp(a.astype(np.float64) - b))
    np.testing.assert_allclose(db, weight.sum(0), rtol=1e-3)
    np.testing.assert_allclose(da[:, 0], (1.0 - weight).sum(1), rtol=1e-3)


def test_blocks_and_statics_take_it_too(rules: ModuleType) -> None:
    x = np.random.default_rng(1).standard_normal(200_001).astype(np.float32)
    (whole,) = _slope(rules, "swish", x, beta=1.5)
    (part,) = _slope(rules, "swish", x[:100], beta=1.5)
    assert whole.dtype == np.float32
    np.testing.assert_array_equal(whole[:100], part)


def test_what_is_short_has_one_form_and_what_ends_in_a_limit_keeps_it(
    rules: ModuleType,
) -> None:
    assert hasattr(rules, "_silu_in_double")
    assert not hasattr(rules, "_square_in_double")
    t = np.array([np.inf, -np.inf], np.float32)
    dx, none = _slope(rules, "margin", np.array([2.0, -2.0], np.float32), t)
    assert none is None
    np.testing.assert_array_equal(dx, [0.0, 0.0])


def test_two_shares_of_one_number_have_one_exponential(rules: ModuleType) -> None:
    assert inspect.getsource(rules._both_in_double).count("np.exp(") == 2  # each way
    ends = np.array([-3e38, -700, -88, -0.0, 1, 104, 600, 3e38, np.inf], np.float32)
    scales = np.array([1.0, -1e-45, 1e38, 1e-38], np.float32)
    a, b, dy = (v.ravel() for v in np.meshgrid(ends, ends, scales))
    a, b, dy = (v[~(np.isinf(a) & np.isinf(b))] for v in (a, b, dy))
    with np.errstate(all="ignore"):
        apart = np.float64(b) - a
        expected = dy / (1 + np.exp(apart)), dy / (1 + np.exp(-apart))
    with np.errstate(all="raise", under="ignore"):
        found = rules._both_in_double(a, b, dy)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other.astype(np.float32))


def test_a_logistic_function_and_a_softplus_share_an_exponential() -> None:
    text = target.module(
        planned("rule focal(x) -> y:\n    y = sigmoid(-x)**2 * softplus(-x)\n")
    )
    value = text[text.index("def focal(") : text.index("def _focal")]
    assert value.count("np.exp(") == 1
    assert "_sigmoid(" not in value
    assert "_softplus(" not in value
    focal = imported(text, "numpy_one_exponential").focal
    for dtype in (np.float32, np.float64):
        x = np.linspace(-80, 25, 3001).astype(dtype)
        wide = -x.astype(np.longdouble)
        expected = np.logaddexp(0, wide) / np.square(1 + np.exp(-wide))
        unit = np.spacing(expected.astype(dtype))
        assert np.abs((focal(x) - expected) / unit).max() <= 10.0  # exp(-x) cubed
    ends = np.array([-np.inf, -1000.0, 1000.0, np.inf], np.float32)
    np.testing.assert_array_equal(focal(ends), [np.inf, 1000.0, 0.0, 0.0])


def test_what_a_bound_keeps_finite_is_not_silenced_but_its_square_is() -> None:
    one, x = Literal(Fraction(1)), Name("x")
    bounded, wide = (
        Op("exp", (Op("min", (x, Literal(Fraction(most)))),)) for most in (88, 89)
    )
    below = {wide: True, bounded: False, Op("mul", (bounded, bounded)): True}
    for part, is_silenced in below.items():
        quotient = Op("div", (one, Op("add", (one, part))))
        assert warns_needlessly([quotient]) is is_silenced


def test_a_value_of_narrow_arrays_has_the_short_form() -> None:
    """Where float64 is taken anyway, a product that is not rounded needs no care."""
    rules = "rule quick(x) -> y:\n    y = x / (1 + exp(-1.702 * x))\n"
    made = numpy_module(rules)
    called: list[str] = []
    careful = made._sigmoid_product

    def spy(*given: Any) -> Any:
        called.append("product")
        return careful(*given)

    made._sigmoid_product = spy
    try:
        x = np.linspace(-60.0, 60.0, 5001, dtype=np.float32)
        narrow = made.quick(x)
        assert not called
        wide = made.quick(x.astype(np.float64))
        assert called
    finally:
        made._sigmoid_product = careful
    np.testing.assert_allclose(narrow, wide, rtol=6e-8, atol=1e-45)
