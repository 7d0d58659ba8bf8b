"""At infinities a value is its limit: no NaN by 0 times infinity."""

from __future__ import annotations

import math

import numpy as np
import pytest

from gradspec.ir.expr import Expr
from gradspec.ir.rule import Declared, Derived, Rule
from gradspec.stabilise.model import Machine
from gradspec.stabilise.names import Names
from gradspec.symbolic.far import far
from gradspec.symbolic.sides import Trend
from tests.derive.rules import completed
from tests.stabilise.rules import stable, texts, unary

ENDS = (math.inf, -math.inf)


def _at(rule: Rule, name: str, value: float, **others: float) -> list[float]:
    """In float32 and float64, by the model; the upstream gradient is 1."""
    form = Names(rule).close(_value(rule, name))
    columns = {"x": value, "dy": 1.0, **others}
    return [
        float(
            Machine({k: np.array([v], work) for k, v in columns.items()}, work).run(
                form
            )[0]
        )
        for work in (np.float32, np.float64)
    ]


def _value(rule: Rule, name: str) -> Expr:
    for let in rule.forward:
        if let.name == name:
            return let.value
    entry = rule.backward[[f"d{i.name}" for i in rule.inputs].index(name)]
    assert isinstance(entry, Derived | Declared)
    return entry.value


@pytest.mark.parametrize(
    ("form", "values", "slopes"),
    [
        ("x / (1 + exp(-x))", (math.inf, 0.0), (1.0, 0.0)),
        ("x * tanh(log(1 + exp(x)))", (math.inf, 0.0), (1.0, 0.0)),
        ("0.5 * x * (1 + erf(x / sqrt(2)))", (math.inf, 0.0), (1.0, 0.0)),
        ("x * clip(x + 3, 0, 6) / 6", (math.inf, 0.0), (1.0, 0.0)),
        ("x / (1 + abs(x))", (1.0, -1.0), (0.0, 0.0)),
        ("x * tanh(x)", (math.inf, math.inf), (1.0, -1.0)),
        ("exp(-x**2)", (0.0, 0.0), (0.0, 0.0)),
        ("x * exp(-x)", (0.0, -math.inf), (0.0, math.inf)),
    ],
)
def test_one_input(
    form: str, values: tuple[float, ...], slopes: tuple[float, ...]
) -> None:
    rule = stable(unary(form)).rule
    for end, value, slope in zip(ENDS, values, slopes, strict=True):
        assert _at(rule, "y", end) == [value, value]
        assert _at(rule, "dx", end) == [slope, slope]


def test_the_bound_stands_at_the_factor_alone() -> None:
    found = texts(stable(unary("x / (1 + exp(-x))")).rule)
    assert found["y"] == "max(x, -10000) * sigmoid(x)"
    assert "(1 + clip(x, -10000, 10000))" in found["dx"]


def test_finite_inputs_are_not_concerned() -> None:
    """The bounds begin where nothing changes any more, in float64 neither."""
    rule = stable(unary("x / (1 + exp(-x))")).rule
    at = np.concatenate(
        [np.geomspace(1e-3, 1e300, 400), -np.geomspace(1e-3, 1e300, 400)]
    )
    form = _value(rule, "y")
    got = Machine({"x": at}, np.float64).run(form)
    with np.errstate(all="ignore"):
        true = at / (1 + np.exp(-at))
    np.testing.assert_allclose(got, true, rtol=1e-15, atol=0)


@pytest.mark.parametrize("form", ["sin(x)", "x * sin(x)", "cos(x) / (2 + sin(x))"])
def test_where_there_is_no_limit_nothing_is_done(form: str) -> None:
    found = texts(stable(unary(form)).rule)
    assert not any(word in str(found) for word in ("clip", "max", "inf"))


def test_an_exact_definition_is_not_bounded() -> None:
    found = texts(stable("rule f(x) -> y:\n    exact y = x * sigmoid(x)\n").rule)
    assert found["y"] == "x * sigmoid(x)"


def test_it_is_told() -> None:
    told = {r.name: r.reason for r in stable(unary("x * sigmoid(x)")).rewrites}
    assert "at x = -inf the limit" in told["y"]
    assert "at x = inf and x = -inf the limit" in told["dx"]


# --- limits ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("form", "trend", "value"),
    [
        ("x * sigmoid(-x)", Trend.FINITE, 0.0),
        ("1 / x", Trend.FINITE, 0.0),
        ("x**(-1/3)", Trend.FINITE, 0.0),
        ("x / sqrt(1 + x**2)", Trend.FINITE, 1.0),
        ("log(x)", Trend.INFINITE, 1),
        ("-x * log(x)", Trend.INFINITE, -1),
        ("exp(x) * x", Trend.INFINITE, 1),
        ("sin(x)", Trend.UNDEFINED, None),
        ("x * sin(x)", Trend.UNKNOWN, None),
        ("log(-x)", Trend.UNDEFINED, None),
    ],
)
def test_limits_at_infinity(form: str, trend: Trend, value: float | None) -> None:
    expr = completed(unary(form)).forward[0].value
    (limit,) = far((expr,), {}, "x", 1, ())
    assert limit.trend is trend
    if trend is Trend.FINITE:
        assert float(limit.value.mid()) == pytest.approx(value, abs=1e-15)
    elif trend is Trend.INFINITE:
        assert limit.value == value
