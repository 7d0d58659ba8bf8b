"""The spellings of every target, and their derivatives by its framework, against balls."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

from gradspec.audit.measure import Truth, errors
from gradspec.audit.tolerance import units
from gradspec.primitives.lookup import ROWS, primitive
from gradspec.primitives.row import Expand
from tests.primitives.primitive_frameworks import (
    FLOAT32,
    FLOAT64,
    INFINITE,
    ODD,
    Framework,
    at_infinity,
    at_nan,
    forward_error,
    groups,
    keeps_the_sign_of_zero,
    partial_error,
    vanishing_gives_way,
)
from tests.primitives.primitive_truth import (
    OPERATORS,
    exact,
    nearest,
    points,
    precision,
    truth,
)

# Units in the last place in float32, where more than the usual 4. digamma: next to its
# zeros between the poles on the left. sinc_slope: a cosine less a quotient. ndtr: its
# argument is divided by sqrt(2) and rounded, which is a change of x by less than a unit.
FLOAT32_KNOWN = {
    "numpy": {"sinc_slope": 13.0},
    "torch": {"digamma": 25.0, "sinc_slope": 13.0, "ndtr": 65.0, "log_ndtr": 65.0},
    "tf": {
        "digamma": 20.0,
        "sinc_slope": 13.0,
        "sigmoid": 4.5,
        "erfc": 5.0,
        "ndtr": 65.0,
        "log_ndtr": 65.0,
    },
    "jax": {
        "erfc": 5.0,
        "ndtr": 65.0,
        "log_ndtr": 65.0,
        "digamma": 20.0,
        "lgamma": 70.0,
        "erfinv_slope": 50.0,
        "exp2": 25.0,
        "sinh": 20.0,
        "cosh": 20.0,
        "erfinv": 50.0,
        "sinc_slope": 13.0,
    },
}

# Relative errors of derivatives by the frameworks, where more than the usual 1e-9: only
# where a rule's backward uses these and is differentiated again. 1 - out and out + 1 are 0
# in a tail; acosh has rsqrt(x**2 - 1) next to 1.
_TAILS = dict.fromkeys(("sigmoid", "tanh"), 2.0)
SLOPES_KNOWN = {
    "torch": {**_TAILS, "expm1": 2.0, "acosh": 1e-8},
    "tf": _TAILS,
    "jax": {**_TAILS, "expm1": 2.0, "i0": 1e-6},
}


# --- frameworks ------------------------------------------------------------------------


@cache
def _framework(target: str) -> Framework:
    match target:
        case "numpy":
            pytest.importorskip("scipy")
            return Framework("numpy", np, lambda array: array, np.where)
        case "torch":
            torch = pytest.importorskip("torch")
            tensor = lambda a: torch.from_numpy(np.array(a))  # noqa: E731
            return Framework("torch", torch, tensor, torch.where)
        case "tf":
            tf = pytest.importorskip("tensorflow")
            return Framework("tf", tf, tf.constant, tf.where)
        case _:
            jnp = pytest.importorskip("jax.numpy")
            return Framework("jax", jnp, jnp.asarray, jnp.where)


@pytest.fixture
def framework(target: str) -> Iterator[Framework]:
    """The target's framework, in both precisions."""
    found = _framework(target)
    if target != "jax":
        yield found
        return
    import jax

    with jax.enable_x64(True):
        yield found


def _torch_slope(framework: Framework, name: str, args: list[Any], at: int) -> Any:
    args[at].requires_grad_(True)
    out = framework.call(name, args).sum()
    (slope,) = framework.module.autograd.grad(out, args[at], allow_unused=True)
    return slope


def _tf_slope(framework: Framework, name: str, args: list[Any], at: int) -> Any:
    with framework.module.GradientTape() as tape:
        tape.watch(args[at])
        out = framework.call(name, args)
    return tape.gradient(out, args[at])


def _jax_slope(framework: Framework, name: str, args: list[Any], at: int) -> Any:
    import jax

    def total(x: Any) -> Any:
        return framework.call(name, [*args[:at], x, *args[at + 1 :]]).sum()

    return jax.grad(total)(args[at])


SLOPES: dict[str, Callable[..., Any]] = {
    "torch": _torch_slope,
    "tf": _tf_slope,
    "jax": _jax_slope,
}

_MARKED = [
    pytest.param(t, marks=getattr(pytest.mark, t), id=t) for t in ("torch", "tf", "jax")
]
targets = pytest.mark.parametrize("target", ["numpy", *_MARKED])
differentiating = pytest.mark.parametrize("target", _MARKED)
names = pytest.mark.parametrize("name", OPERATORS)
PARTIALS = [
    (row.name, position)
    for row in ROWS
    for position, text in enumerate(row.partials)
    if text is not None
]


# --- values ----------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@names
@targets
def test_float64(framework: Framework, name: str) -> None:
    error, point = forward_error(framework, name, np.float64)
    assert error <= FLOAT64, point


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@names
@targets
def test_float32(framework: Framework, name: str) -> None:
    error, point = forward_error(framework, name, np.float32)
    assert error <= FLOAT32_KNOWN[framework.target].get(name, FLOAT32), point


@pytest.mark.parametrize("name", INFINITE)
@targets
def test_infinities(framework: Framework, name: str) -> None:
    at_infinity(framework, name)


@pytest.mark.parametrize("name", ODD)
@targets
def test_the_sign_of_zero(framework: Framework, name: str) -> None:
    keeps_the_sign_of_zero(framework, name)


@targets
def test_a_product_gives_way_to_zero(framework: Framework) -> None:
    vanishing_gives_way(framework)


@names
@targets
def test_nan(framework: Framework, name: str) -> None:
    if (framework.target, name) != ("torch", "sign"):  # torch.sign(nan) is 0
        at_nan(framework, name)


# --- derivatives by the frameworks -------------------------------------------------------


@pytest.mark.parametrize(("name", "position"), PARTIALS)
@differentiating
def test_slopes(framework: Framework, name: str, position: int) -> None:
    target = framework.target
    spelling = primitive(name).spellings[target]
    if (
        target != "torch"
        and isinstance(spelling, Expand)
        and " if " in spelling.formula
    ):
        pytest.skip("a choice is made safe by the emitter, not by the table")
    worst: tuple[float, object] = (0.0, ())
    for group in groups(name, 2 if primitive(name).arity == 1 else 5):
        columns = [np.array(column) for column in zip(*group, strict=True)]
        args = framework.arguments(name, columns)
        slope = SLOPES[target](framework, name, args, position)
        slopes = np.zeros(len(group)) if slope is None else np.asarray(slope)
        worst = max(worst, partial_error(framework, name, position, slopes, group))
    assert worst[0] <= SLOPES_KNOWN[target].get(name, 1e-9), worst


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
def _points(name: str, dtype: str) -> tuple[Any, Truth]:
    """Some by exponent over the whole range, some in its middle; with the truth and the
    tolerance: a unit of the result, and what a unit of x changes."""
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
@pytest.mark.parametrize("target", ["numpy", *_MARKED[:2]])
def test_at_most_four_tolerances_and_no_bad_point(
    framework: Framework, name: str, dtype: str
) -> None:
    x, true = _points(name, dtype)
    with np.errstate(all="ignore"):
        values = framework.run(name, [x.astype(dtype)])
    found = errors(np.asarray(values, np.float64), true, dtype)
    assert found.judged.sum() > 100
    worst = int(found.error.argmax())
    assert found.error[worst] <= 4.0, (x[worst], values[worst])


# --- numbers, and conditions -------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@names
@pytest.mark.parametrize("target", ["numpy"])
def test_one_number_keeps_its_type(
    framework: Framework, name: str, dtype: type
) -> None:
    """Arrays without axes too: NumPy gives scalars for these."""
    chosen = points(name)[len(points(name)) // 2]
    args: list[Any] = [np.array(v, dtype) for v in chosen]
    if name == "polygamma":
        args[0] = int(chosen[0])
    with np.errstate(over="ignore", divide="ignore"):
        assert np.asarray(framework.call(name, args)).dtype == dtype


@pytest.mark.parametrize(
    "name", [n for n in OPERATORS if "python" in primitive(n).spellings]
)
@pytest.mark.parametrize("target", ["numpy"])
def test_python(framework: Framework, name: str) -> None:
    """Plain numbers, for what is fixed for a whole call."""
    for point in points(name)[::5]:
        true = nearest(truth(name, point))
        if 1e-290 < abs(true) < 1e290:
            value = framework.apply(name, list(point))
            assert math.isclose(value, true, rel_tol=2e-14), point


@pytest.mark.parametrize("target", ["numpy"])
def test_comparisons_and_logic(framework: Framework) -> None:
    x, y = np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 2.0])
    for row in ROWS:
        if row.result != "bool":
            continue
        args = [x, y] if "real" in row.argument_types else [x > y, x == y][: row.arity]
        assert row.model is not None
        assert np.array_equal(framework.call(row.name, args), row.model(np, *args))
