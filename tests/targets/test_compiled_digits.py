"""Digits that are put back, or kept apart, are there in compiled programs too: in graphs of
TensorFlow, whose optimiser adds constants up, and under `jax.jit`, where XLA also joins
quotients and exponentials.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import mpmath
import numpy as np
import pytest

import gradspec
from tests.targets.emission import imported

RULES = """\
rule slow(x) -> y:
    assume x > -1
    y = log(1 + x)

rule psi(x) -> y:
    assume x > 0
    y = digamma(x)

rule bessel(x) -> y:
    y = i1e(x)

rule tail(x) -> y:
    y = erfcx(x)

rule chain(x, a: static = 3e19) -> y:
    y = x / hypot(a, x) / hypot(x, a)

rule growth(x, t) -> y:
    assume abs(x) < 85, abs(t) < 85
    y = exp(x) * exp(t)

rule inverse(x) -> y:
    assume x > 0
    y = 1 / x

rule quantile(p) -> y:
    assume 0 < p, p < 1
    y = ndtri(p)

rule rare(p) -> y:
    assume 0 < p, p < 2
    y = erfcinv(p)

rule two(x, a: static = 3e19) -> (s, y):
    s = x / hypot(a, x)
    y = s / hypot(x, a)
"""


def _bessel_slope(x: Any) -> Any:
    i0e, i1e = (mpmath.besseli(n, x) * mpmath.exp(-abs(x)) for n in (0, 1))
    return i0e - (mpmath.sign(x) + 1 / x) * i1e


def _tail(x: Any) -> Any:
    return mpmath.exp(x**2) * mpmath.erfc(x)


def _quantile(p: Any) -> Any:
    return -mpmath.sqrt(2) * _rare(2 * p)


def _rare(p: Any) -> Any:
    return mpmath.erfinv(1 - p)


SLOW = (1e-30, 3e-8, -2e-12, 2.4e-4, 0.7)
PSI = (1.4616321, 1.4616678, 1.4619489, 0.3, 20.0)
BESSEL = (1.5451, -1.54509, 1.5462590456008911, 0.4)
INVERSE = (7e35, 3e36, 5.355893e36, 0.3)
TAIL = (-8.070231437683105, -5.3, 0.2)
RARE = (1.3e-38, 2e-30, 5e-8, 1e-3, 0.26, 0.9)
CHAIN = (1e20, -3e21, 2e5, 7e12)

VALUES = [
    ("slow", SLOW, mpmath.log1p),
    ("psi", PSI, mpmath.digamma),
    ("tail", TAIL, _tail),
    ("chain", CHAIN, lambda x: x / (x**2 + mpmath.mpf(3e19) ** 2)),
    ("inverse", INVERSE, lambda x: 1 / x),
    ("quantile", RARE, _quantile),
    ("rare", RARE, _rare),
]
SLOPES = [
    ("slow", SLOW, lambda x: 1 / (1 + x)),
    ("bessel", BESSEL, _bessel_slope),
]
NAMES = tuple(dict.fromkeys(name for name, *_ in VALUES + SLOPES))
MOST = 8
"""Units in the last place. What is lost is thousands, or all."""


def _ulps(got: Any, truth: Any, x: np.ndarray) -> float:
    with mpmath.workdps(70):
        truths = {v: truth(mpmath.mpf(v)) for v in set(x.tolist())}
        exact = [truths[v] for v in x.tolist()]
        units = np.spacing(np.array([abs(float(t)) for t in exact], x.dtype))
        off = [
            abs(mpmath.mpf(float(g)) - t) / float(u)
            for g, t, u in zip(np.asarray(got), exact, units, strict=True)
        ]
    return max(map(float, off))


@pytest.fixture(scope="module")
def tf_rules() -> ModuleType:
    pytest.importorskip("tensorflow")
    return imported(gradspec.compile_text(RULES, "tf"), "compiled_digits_tf")


@pytest.fixture(scope="module")
def jax_rules() -> ModuleType:
    pytest.importorskip("jax")
    return imported(gradspec.compile_text(RULES, "jax"), "compiled_digits_jax")


def _in_tf(rule: Any, x: np.ndarray, xla: bool = False) -> tuple[Any, Any]:
    import tensorflow as tf

    @tf.function(autograph=False, jit_compile=xla)
    def both(x: Any) -> tuple[Any, Any]:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = rule(x)
        return y, tape.gradient(y, x)

    return both(tf.constant(x))


def _in_jax(rule: Any, x: np.ndarray) -> tuple[Any, Any]:
    import jax

    with jax.enable_x64(x.dtype == np.float64):
        run = jax.jit(jax.vmap(jax.value_and_grad(rule)))
        return tuple(np.asarray(v) for v in run(x))


@pytest.mark.tf
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", NAMES)
def test_graphs_of_tensorflow(tf_rules: ModuleType, name: str, dtype: str) -> None:
    _compare(lambda rule, x: _in_tf(rule, x), tf_rules, name, dtype)


@pytest.mark.tf
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["quantile", "rare"])
def test_xla_in_tensorflow(tf_rules: ModuleType, name: str, dtype: str) -> None:
    """XLA's own are infinite below 3e-8."""
    _compare(lambda rule, x: _in_tf(rule, x, xla=True), tf_rules, name, dtype)


@pytest.mark.jax
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", NAMES)
def test_jit_of_jax(jax_rules: ModuleType, name: str, dtype: str) -> None:
    _compare(lambda rule, x: _in_jax(rule, x), jax_rules, name, dtype)


def _compare(run: Any, rules: ModuleType, name: str, dtype: str) -> None:
    cases = [(0, *v[1:]) for v in VALUES if v[0] == name]
    cases += [(1, *v[1:]) for v in SLOPES if v[0] == name]
    assert cases
    for order, points, truth in cases:
        x = np.tile(np.array(points, dtype), 16)  # whole vectors
        assert _ulps(run(getattr(rules, name), x)[order], truth, x) < MOST


@pytest.mark.jax
def test_exponentials_are_multiplied(jax_rules: ModuleType) -> None:
    import jax

    x, t = np.float32([80.1, -70.3]), np.float32([0.337, 0.001717])
    pairs = zip(x.tolist(), t.tolist(), strict=True)
    exact = np.array([float(mpmath.exp(mpmath.mpf(a) + b)) for a, b in pairs])
    got = np.asarray(jax.jit(jax_rules.growth)(x, t), np.float64)
    assert np.abs(got / exact - 1).max() < 3e-7
    joined = np.exp((x + t).astype(np.float64))
    assert np.abs(joined / exact - 1).max() > 1e-6, "what that would lose"


@pytest.mark.jax
def test_a_quotient_does_not_vanish_before_its_time() -> None:
    """exp(-88.5) is subnormal, exp(88.5) is not."""
    jax = pytest.importorskip("jax")
    rule = "rule f(x, t) -> y:\n    y = x / exp(t)\n"
    text = gradspec.compile_text(rule, "jax", as_written=True)
    assert "x / _rounded(jnp.exp(t))" in text
    x, t = np.float32([1e30, -2e31]), np.float32([88.5, 88.0])
    exact = x.astype(np.float64) * np.exp(-t.astype(np.float64))
    got = jax.jit(imported(text, "compiled_decay").f)(x, t)
    np.testing.assert_allclose(got, exact, rtol=1e-6)
    plain = jax.jit(lambda x, t: x / jax.numpy.exp(t))(x, t)
    assert not np.any(plain), "what XLA makes of it"


@pytest.mark.jax
def test_a_quotient_with_a_name_is_rounded_too(jax_rules: ModuleType) -> None:
    import jax

    x = np.float32([2e5, 7e12, 1e20])
    _, y = jax.jit(jax_rules.two)(x)
    exact = x.astype(np.float64) / (x.astype(np.float64) ** 2 + 3e19**2)
    np.testing.assert_allclose(y, exact, rtol=1e-6)


@pytest.mark.tf
def test_a_graph_divides_by_roots() -> None:
    """In float64 single operations and a graph have the same operations, and bits."""
    tf = pytest.importorskip("tensorflow")
    text = gradspec.compile_text(
        "rule f(x) -> y:\n    y = x / sqrt(1 + x * x)\n", "tf", as_written=True
    )
    rule = imported(text, "compiled_roots").f
    x = tf.constant(np.random.default_rng(0).standard_normal(4096))
    graph = tf.function(rule, autograph=False)(x)
    np.testing.assert_array_equal(graph, rule(x))
    plain = tf.function(lambda x: x / tf.sqrt(1.0 + x * x), autograph=False)(x)
    assert np.any(plain != rule(x)), "what a graph makes of it"


def test_what_is_joined_by_nothing_is_as_written() -> None:
    plain = gradspec.compile_text("rule f(x, t) -> y:\n    y = x * t\n", "jax")
    assert "_rounded" not in plain
    assert "_rounded(" in gradspec.compile_text(RULES, "jax")
