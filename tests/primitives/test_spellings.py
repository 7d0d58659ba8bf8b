"""Every primitive as each target emits it, value and gradient, against balls."""

from __future__ import annotations

import importlib
import math
import re
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from gradspec.derive.complete import complete_scalars
from gradspec.driver.cache import import_module
from gradspec.ir.expr import Apply, Ref
from gradspec.ir.rule import Rule
from gradspec.measure.errors import Truth, errors
from gradspec.primitives.lookup import primitive
from gradspec.primitives.row import Infix, Prefix, Primitive, Runtime, Template
from gradspec.symbolic.points.formats import units
from gradspec.targets.emitting import emit
from tests.calling import PACKAGES, by_target, called, value
from tests.primitives.primitive_truth import (
    OPERATORS,
    Point,
    exact,
    nearest,
    partial_truth,
    points,
    precision,
    truth,
)
from tests.targets.ranked_numpy import lowered, planned

FLOAT64 = 1e-12
"""Relative error allowed of a value in float64, for every row and target."""

FLOAT32 = 4.0
"""Units in the last place allowed in float32, but for these rows. digamma: next to its
zeros between the poles on the left. sinc_slope: a cosine less a quotient. ndtr: its
argument is divided by sqrt(2) and rounded, which is a change of x by less than a unit.
lgamma_difference: about its zeros."""

_NORMAL = {
    **{"sinc_slope": 13.0, "ndtr": 65.0, "log_ndtr": 65.0, "lgamma_difference": 20.0}
}
FLOAT32_KNOWN = {
    "numpy": {"sinc_slope": 13.0},
    "torch": {**_NORMAL, "digamma": 25.0},
    "tf": {**_NORMAL, "digamma": 20.0, "sigmoid": 4.5, "erfc": 5.0},
    "jax": {
        **_NORMAL,
        **{"erfc": 5.0, "digamma": 20.0, "lgamma": 70.0, "exp2": 25.0},
        **{"sinh": 20.0, "cosh": 20.0, "erfinv": 50.0, "erfinv_slope": 50.0},
    },
}
DERIVATIVES_KNOWN = {("torch", "expm1"): 2.0}
"""Relative errors allowed of derivatives of runtime functions. torch's own of `expm1` is
its value plus 1, which is 0 below -37."""

INFINITE = {
    "exp": (0.0, np.inf),
    "expm1": (-1.0, np.inf),
    "exp2": (0.0, np.inf),
    "log": (np.nan, np.inf),
    "log1p": (np.nan, np.inf),
    "sigmoid": (0.0, 1.0),
    "logsigmoid": (-np.inf, 0.0),
    "softplus": (0.0, np.inf),
    "square": (np.inf, np.inf),
    "reciprocal": (0.0, 0.0),
    "sqrt": (np.nan, np.inf),
    "rsqrt": (np.nan, 0.0),
    "cbrt": (-np.inf, np.inf),
    "abs": (np.inf, np.inf),
    "relu": (0.0, np.inf),
    "sign": (-1.0, 1.0),
    **dict.fromkeys(("floor", "round", "trunc"), (-np.inf, np.inf)),
    **dict.fromkeys(("sinc", "sinc_slope"), (0.0, 0.0)),
    "atan": (-np.pi / 2, np.pi / 2),
    **dict.fromkeys(("sinh", "asinh"), (-np.inf, np.inf)),
    "cosh": (np.inf, np.inf),
    "tanh": (-1.0, 1.0),
    "acosh": (np.nan, np.inf),
    "erf": (-1.0, 1.0),
    "erfc": (2.0, 0.0),
    "erfcx": (np.inf, 0.0),
    "erfcx_slope": (-np.inf, 0.0),
    "ndtr": (0.0, 1.0),
    "log_ndtr": (-np.inf, 0.0),
    "inverse_mills": (np.inf, 0.0),
    **dict.fromkeys(("i0", "i1_slope"), (np.inf, np.inf)),
    "i1": (-np.inf, np.inf),
    **dict.fromkeys(("i0e", "i1e", "i0e_slope", "i1e_slope"), (0.0, 0.0)),
}
"""Limits at minus and plus infinity."""

ODD = ("sin", "tan", "asin", "atan", "sinh", "tanh", "asinh", "atanh", "erf", "expm1")
"""Functions that are -0.0 at -0.0."""

names = pytest.mark.parametrize("name", OPERATORS)


# --- emitted -------------------------------------------------------------------------------


def _rule(row: Primitive) -> Rule:
    """A rule that is the primitive, also of those that no text may call; an integer
    argument (an order) is static."""
    kinds = dict(zip(row.params, row.argument_types, strict=True))
    floats = [name for name, kind in kinds.items() if kind == "real"]
    given = [*floats, *(f"{n}: static int" for n in kinds if n not in floats)]
    head = f"rule p_{row.name}({', '.join(given)}) -> out:"
    (made,) = lowered(f"{head}\n    out = {floats[0]}\n")
    (let,) = made.forward
    let = replace(let, value=Apply(row.name, tuple(map(Ref, row.params))))
    return complete_scalars(made.keep((let,)))


@cache
def emitted(target: str) -> ModuleType:
    pytest.importorskip(PACKAGES[target])
    rules = (_rule(primitive(name)) for name in (*OPERATORS, "vanishing"))
    made = emit(planned(tuple(rules)), target)
    assert made.value is not None and not made.diagnostics, made.diagnostics
    return import_module(made.value)


def _values(target: str, name: str, columns: list[Any]) -> Any:
    function = getattr(emitted(target), f"p_{name}")
    with np.errstate(all="ignore"):
        if name == "polygamma":  # the order is one number for all
            return value(target, function, columns[1:], x=int(columns[0][0]))
        return value(target, function, columns)


def _groups(name: str, stride: int) -> list[tuple[Point, ...]]:
    """The row's points, apart by order where the first argument is one."""
    chosen = points(name)[::stride]
    if name != "polygamma":
        return [chosen]
    orders = sorted({p[0] for p in chosen})
    return [tuple(p for p in chosen if p[0] == n) for n in orders]


def _largest(found: Any, true: Any, at: Any, dtype: type) -> tuple[float, Point]:
    """The largest error over the points whose value is normal: relative in float64, in
    units in the last place in float32. With it, where.
    """
    limits = np.finfo(dtype)
    low, high = float(limits.tiny) * 1e8, float(limits.max) / 1e8
    zero = true == 0
    assert np.array_equal(found[zero], true[zero])
    normal = (np.abs(true) > low) & (np.abs(true) < high)
    unit = np.spacing(np.abs(true[normal]).astype(dtype)).astype(float)
    scale = unit if dtype is np.float32 else np.abs(true[normal])
    error = np.abs(found[normal] - true[normal]) / scale
    error[~np.isfinite(error)] = np.inf
    if not error.size:
        return 0.0, ()
    where = int(error.argmax())
    return float(error[where]), tuple(np.array(at)[normal][where])


@by_target
@names
def test_values(target: str, name: str) -> None:
    room = FLOAT32_KNOWN[target].get(name, FLOAT32)
    for dtype, allowed in ((np.float64, FLOAT64), (np.float32, room)):
        for group in _groups(name, 1 if primitive(name).arity == 1 else 3):
            rounded = tuple(tuple(float(dtype(v)) for v in p) for p in group)
            columns = [np.array(c, dtype) for c in zip(*rounded, strict=True)]
            found = _values(target, name, columns)
            assert found.dtype == dtype
            true = np.array([nearest(truth(name, p)) for p in rounded])
            error, point = _largest(found.astype(float), true, rounded, dtype)
            assert error <= allowed, (dtype, point)


CANCELLING = ("i1_slope", "i0e_slope", "i1e_slope", "digamma_difference")
"""Derivatives whose own derivative cancels, by the differential equation of the Bessel
functions about 0, as a difference of polygammas far out: only second derivatives have it,
which frameworks take of the runtime function (the next test)."""


@by_target
@pytest.mark.parametrize("name", [n for n in OPERATORS if n not in CANCELLING])
def test_gradients(target: str, name: str) -> None:
    row = primitive(name)
    places = [k for k, text in enumerate(row.partials) if text is not None]
    for group in _groups(name, 2 if row.arity == 1 else 5):
        columns = [np.array(column) for column in zip(*group, strict=True)]
        statics = {"x": int(columns.pop(0)[0])} if name == "polygamma" else {}
        ones = [np.ones(len(group))]
        with np.errstate(all="ignore"):
            _, slopes = called(
                target, emitted(target), f"p_{name}", columns, ones, None, statics
            )
        for place, slope in zip(places, slopes, strict=True):
            true = np.array([nearest(partial_truth(row, place, p)) for p in group])
            found = np.zeros(len(group)) if slope is None else slope
            error, point = _largest(found, true, group, np.float64)
            assert error <= 1e-9, (place, point)


RUNTIME = [
    pytest.param(target, row.name, marks=getattr(pytest.mark, target))
    for row in map(primitive, OPERATORS)
    for target in ("torch", "tf", "jax")
    if row.arity == 1 and isinstance(row.spellings.get(target), Runtime)
]


@pytest.mark.parametrize(("target", "name"), RUNTIME)
def test_derivatives_of_runtime_functions(target: str, name: str) -> None:
    """Second derivatives are those that the framework takes of the runtime's functions."""
    row = primitive(name)
    pytest.importorskip(PACKAGES[target])
    special = importlib.import_module(f"gradspec.runtime.{target}._special")
    for group in _groups(name, 2):
        columns = [np.array(column) for column in zip(*group, strict=True)]
        _, (slope,) = called(target, special, name, columns, [np.ones(len(group))])
        true = np.array([nearest(partial_truth(row, 0, p)) for p in group])
        found = np.zeros(len(group)) if slope is None else slope
        error, point = _largest(found, true, group, np.float64)
        assert error <= DERIVATIVES_KNOWN.get((target, name), 1e-9), point


@by_target
def test_infinities_signs_of_zero_and_nan(target: str) -> None:
    for name, limits in INFINITE.items():
        found = _values(target, name, [np.array([-np.inf, np.inf])])
        np.testing.assert_allclose(found, limits, rtol=1e-15, err_msg=name)
    for name in ODD:
        found = _values(target, name, [np.array([-0.0, 0.0])])
        assert found.tolist() == [0.0, 0.0]
        assert np.signbit(found).tolist() == [True, False], name
    for name in OPERATORS:
        row = primitive(name)
        for place, kind in enumerate(row.argument_types):
            if kind != "real" or (name, place) == ("heaviside", 1):  # only used at 0
                continue
            columns = [
                np.array([1.0 if t == "int" else 0.5]) for t in row.argument_types
            ]
            columns[place] = np.array([np.nan])
            if (target, name) != ("torch", "sign"):  # torch.sign(nan) is 0
                assert np.isnan(_values(target, name, columns)).all(), (name, place)


@by_target
def test_a_product_gives_way_to_zero(target: str) -> None:
    """What the stabiliser puts where an overflow times 0 has a limit."""
    x = np.array([np.inf, -np.inf, np.nan, np.inf, 2.0, -0.0])
    y = np.array([0.0, 0.0, 0.0, 2.0, 0.0, -1.0])
    found = _values(target, "vanishing", [x, y])
    np.testing.assert_array_equal(found, [0.0, 0.0, np.nan, np.inf, 0.0, 0.0])


# --- special functions: within 4 tolerances in both precisions, tails included ----------

UNIT, POSITIVE, REAL = (0.0, 1.0), (1e-37, 1e37), (-1e37, 1e37)
SPECIAL = {
    **dict.fromkeys(("erfc", "erfcx", "erfcx_slope", "ndtr", "log_ndtr"), REAL),
    **dict.fromkeys(("inverse_mills", "exp_neg_square", "exp_neg_half_square"), REAL),
    "erfinv": (-1.0, 1.0),
    "erfcinv": (0.0, 2.0),
    "ndtri": UNIT,
    "ndtri_slope": UNIT,
    "digamma": POSITIVE,
    "i1": (-88.0, 88.0),
    "i1_slope": (-88.0, 88.0),
    **dict.fromkeys(("i0e", "i1e", "i0e_slope", "i1e_slope"), REAL),
}
"""Where each is measured."""


@cache
def _special(name: str, dtype: str) -> tuple[Any, Truth]:
    """Some points by exponent over the whole range, some in its middle; with the truth
    and the tolerance: a unit of the result, and what a unit of x changes."""
    low, high = SPECIAL[name]
    draw = np.random.Generator(np.random.PCG64(5))
    whole = np.ldexp(1.0 + draw.random(150), draw.integers(-120, 120, 150))
    middle = draw.uniform(0.0, 30.0, 150)
    x = np.concatenate([whole, -whole, middle, -middle, draw.random(60)])
    x = x.astype(dtype).astype(float)
    x = x[(x > low) & (x < high)]
    ball = primitive(name).ball
    assert ball is not None
    with precision(400):
        balls = [ball(exact(float(v))) for v in x]
        moved = [ball(exact(float(v)) * (1 + exact(2.0**-150))) for v in x]
        first = [float(b.mid()) for b in balls]
        rest = [
            float(b.mid() - exact(h)) if abs(h) < 1e300 else 0.0
            for b, h in zip(balls, first, strict=True)
        ]
        changes = [
            abs(float(((m - b) * exact(2.0**150)).mid()))
            for b, m in zip(balls, moved, strict=True)
        ]
    with np.errstate(over="ignore"):  # beyond the range nothing is judged
        change = np.nan_to_num(np.array(changes) * (units(x, dtype) / np.abs(x)))
        tolerance = units(np.array(first), dtype) + change
    return x, Truth(np.array(first), np.array(rest), tolerance)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", SPECIAL)
@pytest.mark.parametrize("target", ["numpy", "torch", "tf"])
def test_at_most_four_tolerances_and_no_bad_point(
    target: str, name: str, dtype: str
) -> None:
    x, true = _special(name, dtype)
    values = _values(target, name, [x.astype(dtype)])
    found = errors(np.asarray(values, np.float64), true, dtype)
    assert found.judged.sum() > 100
    worst = int(found.error.argmax())
    assert found.error[worst] <= 4.0, (x[worst], values[worst])


# --- SciPy ---------------------------------------------------------------------------------


def test_scipy_is_imported_for_the_functions_that_the_page_lists(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The slopes of the inverses, which no text may call, need the inverses."""
    page = Path(__file__).parents[2] / "docs" / "evaluation.md"
    (listed,) = re.findall(r"need SciPy for(.*?)nothing else", page.read_text(), re.S)
    monkeypatch.setitem(sys.modules, "scipy", None)
    special = importlib.import_module("gradspec.runtime.numpy._special")
    needing = set()
    for row in map(primitive, OPERATORS):
        spelling = row.spellings["numpy"]
        if isinstance(spelling, Runtime) and spelling.module == "special":
            arguments = [
                2 if t == "int" else np.ones(1) / 2 for t in row.argument_types
            ]
            try:
                with np.errstate(invalid="ignore"):
                    getattr(special, spelling.name)(*arguments)
            except ModuleNotFoundError:
                needing.add(row.name)
    slopes = {"erfinv_slope", "erfcinv_slope", "ndtri_slope"}
    assert needing - slopes == {*re.findall(r"`(\w+)`", listed)}


# --- numbers -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@names
def test_one_number_keeps_its_type(name: str, dtype: type) -> None:
    """Arrays without axes too: NumPy gives scalars for these."""
    point = points(name)[len(points(name)) // 2]
    columns = [np.array(v, dtype) for v in point]
    columns[0] = columns[0][None] if name == "polygamma" else columns[0]
    assert _values("numpy", name, columns).dtype == dtype


@pytest.mark.parametrize(
    "name", [n for n in OPERATORS if "python" in primitive(n).spellings]
)
def test_python(name: str) -> None:
    """Plain numbers, for what is fixed for a whole call."""
    row = primitive(name)
    match row.spellings["python"]:
        case Infix(symbol=symbol):
            text = f"x {symbol} y"
        case Prefix(symbol=symbol):
            text = f"{symbol}x"
        case Template(text=template):
            text = template.format(x="x", y="y", z="z")
    function = eval(f"lambda {', '.join(row.params)}: {text}", {"math": math})
    for point in points(name)[::5]:
        true = nearest(truth(name, point))
        if 1e-290 < abs(true) < 1e290:
            assert math.isclose(function(*point), true, rel_tol=2e-14), point
