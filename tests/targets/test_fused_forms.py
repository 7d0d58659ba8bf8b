"""Where compilers fuse: series of the terms that float32 needs, one logistic function and one
exponential for both passes. All digits stay, and so do second derivatives.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from gradspec import compile_text
from gradspec.plan.array import Expr, Literal, Name, Op
from gradspec.targets.short_series import shortened
from tests.targets.emission import imported

SILU = """
rule silu(x) -> y:
    y = x / (1 + exp(-x))
"""

TOTAL = """
rule total(x[..., n]) -> y:
    y = log(sum(exp(x[j]) for j))
    dx[i] = dy * exp(x[i] - y)
"""

ZERO = -1.2784645427610738


@cache
def _text(rule: str, target: str) -> str:
    return compile_text(rule, target)


def _slope(x: Any) -> Any:
    """Of silu, in float64; about its zero by what cancels nowhere."""
    s, u = 1.0 / (1.0 + np.exp(-x)), x - ZERO
    about = s * (1.0 - s) * (math.exp(ZERO) * np.expm1(u) + u)
    return np.where(np.abs(u) < 0.5, about, s * (1.0 + x * (1.0 - s)))


def _places() -> Any:
    random = np.random.default_rng(5)
    wide = random.uniform(-90.0, 90.0, 20_000)
    near = ZERO + random.uniform(-0.5, 0.5, 20_000)
    tiny = ZERO + 2.0 ** random.uniform(-20.0, -3.0, 2_000)
    return np.concatenate([wide, near, tiny]).astype(np.float32)


def _single(*numbers: float) -> Any:
    return np.array(numbers, np.float32)


def _within(got: Any, true: Any, units: float) -> None:
    normal = np.abs(true) > 1.2e-38
    step = np.spacing(np.abs(true[normal]).astype(np.float32)).astype(np.float64)
    errors = np.abs(np.asarray(got, np.float64)[normal] - true[normal]) / step
    assert normal.sum() > 40_000
    assert errors.max() <= units


def _of_silu(gradient: Any, second: Any) -> None:
    x = _places()
    _within(gradient(x), _slope(x.astype(np.float64)), 4.0)
    assert list(gradient(_single(-np.inf, np.inf))) == [0.0, 1.0]
    assert np.isnan(gradient(_single(np.nan))).all()
    assert second(_single(0.0))[0] == 0.5
    for at in (-30.0, -2.0, ZERO, -1.0, 1.0):
        t = 1.0 / (1.0 + math.exp(-at))
        curved = t * (1.0 - t) * (2.0 + at * (1.0 - 2.0 * t))
        assert second(_single(at))[0] == pytest.approx(curved, rel=2e-6)


@pytest.mark.jax
def test_silu_in_jax() -> None:
    jax = pytest.importorskip("jax")
    text = _text(SILU, "jax")
    assert text.count("jax.nn.sigmoid(") == 2  # of one value, in both passes
    rule = imported(text, "fused_silu_jax").silu
    slope = jax.vmap(jax.grad(rule))
    second = jax.vmap(jax.grad(jax.grad(rule)))
    _of_silu(lambda x: np.asarray(jax.jit(slope)(x)), lambda x: np.asarray(second(x)))
    program = jax.jit(lambda x: (rule(x), slope(x))).lower(_places()).compile()
    assert program.as_text().count(" exponential(") == 1


@pytest.mark.tf
def test_silu_in_tensorflow() -> None:
    tf = pytest.importorskip("tensorflow")
    rule = imported(_text(SILU, "tf"), "fused_silu_tf").silu

    def slope(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = rule(x)
        return tape.gradient(y, x)

    def second(x: Any) -> Any:
        x = tf.constant(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            once = slope(x)
        return tape.gradient(once, x).numpy()

    compiled = tf.function(slope, jit_compile=True)
    _of_silu(lambda x: compiled(tf.constant(x)).numpy(), second)


def _softmax(x: Any) -> Any:
    parts = np.exp(x.astype(np.float64) - x.max())
    return parts / parts.sum()


ROW = _single(-800.0, -801.0, -799.25, -np.inf)


@pytest.mark.jax
def test_shares_in_jax() -> None:
    jax = pytest.importorskip("jax")
    text = _text(TOTAL, "jax")
    assert "_shares(x, -1)" in text
    rule = imported(text, "fused_total_jax").total
    np.testing.assert_allclose(jax.jit(jax.grad(rule))(ROW), _softmax(ROW), rtol=3e-7)
    x = _single(0.5, -1.0, 2.0)
    p = _softmax(x)
    curved = np.diag(p) - np.outer(p, p)
    np.testing.assert_allclose(jax.hessian(rule)(x), curved, rtol=1e-5, atol=1e-7)
    rows = np.zeros((8, 16), np.float32)
    both = jax.jit(jax.vmap(jax.value_and_grad(rule)))
    assert both.lower(rows).compile().as_text().count(" exponential(") == 1


@pytest.mark.tf
def test_shares_in_tensorflow() -> None:
    tf = pytest.importorskip("tensorflow")
    rule = imported(_text(TOTAL, "tf"), "fused_total_tf").total

    def slope(x: Any) -> Any:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = rule(x)
        return tape.gradient(y, x)

    compiled = tf.function(slope, jit_compile=True)
    got = compiled(tf.constant(ROW)).numpy()
    np.testing.assert_allclose(got, _softmax(ROW), rtol=3e-7)


def _value(coefficients: tuple[Fraction, ...], u: float) -> float:
    return float(sum(c * Fraction(u) ** k for k, c in enumerate(coefficients)))


def _polynomial(u: Expr, count: int) -> Op:
    terms = (Literal(Fraction((-1) ** k, 2 * k + 1)) for k in range(count))
    return Op(f"polynomial{count}", (u, *terms))


def test_a_series_is_shortened_within_its_bounds() -> None:
    low, high = (Literal(Fraction(n, 4)) for n in (-1, 1))
    long = _polynomial(Op("clip", (Name("x"), low, high)), 16)
    made = shortened(long)
    assert isinstance(made, Op)
    single, double = made.args
    assert double == long
    assert isinstance(single, Op)
    assert len(single.args) < len(long.args) - 4
    short = tuple(c.value for c in single.args[1:] if isinstance(c, Literal))
    full = tuple(c.value for c in long.args[1:] if isinstance(c, Literal))
    for k in range(-8, 9):
        u = k / 32
        assert _value(short, u) == pytest.approx(_value(full, u), rel=2.0**-26)


def test_a_series_without_bounds_is_left() -> None:
    long = _polynomial(Name("x"), 16)
    assert shortened(long) is long
