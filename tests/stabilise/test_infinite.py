"""At infinities a value is its limit: no NaN by 0 times infinity."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from gradspec.ir.expr import ZERO, Apply, Expr, Ref, Select
from gradspec.ir.rule import Declared, Derived, Rule
from gradspec.ir.walk import names, nodes
from gradspec.primitives.formula import formula
from gradspec.primitives.lookup import primitive
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


def test_what_is_periodic_comes_to_no_limit() -> None:
    """``cos(pi * x)`` is 1 at all large powers of two; it is no number for that beyond."""
    rule = stable(unary("sin(pi * x)")).rule
    assert _at(rule, "dx", 10000.5) == [0.0, 0.0]
    assert _at(rule, "dx", 65163.0) == [-np.float32(np.pi), -np.pi]


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


# --- several inputs --------------------------------------------------------------------


def test_beside_another_input() -> None:
    rule = stable("rule f(x, b) -> y:\n    y = x / (1 + exp(-x)) * b\n").rule
    for b in (2.0, -3.0):
        assert _at(rule, "y", -math.inf, b=b) == [0.0, 0.0]
        assert _at(rule, "dx", math.inf, b=b) == [b, b]
        assert _at(rule, "dx", -math.inf, b=b) == [0.0, 0.0]


def test_beside_what_oscillates() -> None:
    rule = stable("rule f(x, b) -> y:\n    y = x * b + sin(x)\n").rule
    for b in (2.0, -3.0):
        assert _at(rule, "y", math.inf, b=b) == [b * math.inf] * 2
        assert _at(rule, "y", -math.inf, b=b) == [-b * math.inf] * 2


@pytest.mark.parametrize("gate", ["max(x, 0)", "min(x, 0)"])
def test_beside_a_gate(gate: str) -> None:
    """A gate that is shut lets no infinity pass; one that is open does."""
    rule = stable(f"rule f(x, b) -> y:\n    y = {gate} * b\n").rule
    way = 1.0 if "max" in gate else -1.0
    for b in ENDS:
        assert _at(rule, "y", -2 * way, b=b) == [0.0, 0.0]
        assert _at(rule, "y", 2 * way, b=b) == [way * b, way * b]
    assert np.isnan(_at(rule, "y", -2 * way, b=math.nan)).all()
    assert _at(rule, "y", way * math.inf, b=-3.0) == [-way * math.inf] * 2


def test_infinity_over_infinity() -> None:
    rule = stable("rule f(x, c) -> y:\n    y = sqrt(x * x + c * c)\n").rule
    for c in (0.5, -3.0):
        assert _at(rule, "dx", math.inf, c=c) == [1.0, 1.0]
        assert _at(rule, "dx", -math.inf, c=c) == [-1.0, -1.0]
    dc = _at(rule, "dc", math.inf, c=3.0)
    assert dc == pytest.approx([0.0, 0.0], abs=1e-37)


def test_whatever_a_static_is() -> None:
    """A bound at one end is none at the other, and the sign of a static may be another."""
    rule = stable(
        "rule f(x, beta: static = 1.0) -> y:\n    y = x / (1 + exp(-beta * x))\n"
    ).rule
    for beta in (1.0, 0.01, 30.0):
        assert _at(rule, "y", -math.inf, beta=beta) == [0.0, 0.0]
        assert _at(rule, "y", math.inf, beta=beta) == [math.inf, math.inf]
    assert _at(rule, "y", math.inf, beta=-1.0) == [0.0, 0.0]
    assert _at(rule, "y", -math.inf, beta=-1.0) == [-math.inf, -math.inf]
    assert _at(rule, "y", -1e30, beta=-1.0)[1] == -1e30


def _asks_for_nothing(condition: Expr) -> bool:
    match condition:
        case Apply(op="eq", args=args):
            return ZERO in args
        case _:
            return False


@pytest.mark.parametrize(
    "text",
    [
        "rule f(x, b) -> y:\n    y = x * sigmoid(b * x)\n",
        "rule f(x, b) -> y:\n    y = (x - b) * sigmoid(x)\n",
        "rule f(x, b) -> y:\n    y = sqrt(x * x + b * b)\n",
    ],
)
def test_no_condition_asks_whether_a_factor_is_nothing(text: str) -> None:
    """A product has a slope where a factor is 0; and gradients stay linear."""
    rule = stable(text).rule
    for name in ("y", "dx", "db"):
        for part in nodes(_value(rule, name)):
            if isinstance(part, Select):
                assert "dy" not in names(part.condition)
                assert not _asks_for_nothing(part.condition)


@pytest.mark.parametrize("op", ["finite", "vanishing", "gated"])
@pytest.mark.parametrize("work", [np.float32, np.float64])
def test_what_is_done_about_infinities_is_nothing_elsewhere(op: str, work: Any) -> None:
    row = primitive(op)
    largest = float(np.finfo(work).max)
    at = [0.0, -0.0, 1.0, -largest, largest, float(np.finfo(work).tiny)]
    form = Apply(op, tuple(map(Ref, row.params)))
    meaning = formula(row.meaning)
    columns = {"x": np.array(at, work), "y": np.array(at[::-1], work)}
    machine = Machine(columns, work)
    got, plain = machine.run(form), machine.run(meaning)
    assert got.tobytes() == plain.tobytes()


def test_what_is_done_about_infinities() -> None:
    columns = {
        "x": np.array([math.inf, -math.inf, math.nan, math.inf]),
        "y": np.array([0.0, 0.0, 0.0, 2.0]),
    }
    machine = Machine(columns, np.float64)
    largest = np.finfo(np.float64).max
    bounded = machine.run(Apply("finite", (Ref("x"),)))
    assert bounded[:2].tolist() == [largest, -largest]
    assert np.isnan(bounded[2])
    for op in ("vanishing", "gated"):
        product = machine.run(Apply(op, (Ref("x"), Ref("y"))))
        assert product[[0, 1, 3]].tolist() == [0.0, 0.0, math.inf]
        assert np.isnan(product[2])


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
        ("cos(pi * x)", Trend.UNKNOWN, None),
        ("square(sin(pi * x / 4))", Trend.UNKNOWN, None),
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
