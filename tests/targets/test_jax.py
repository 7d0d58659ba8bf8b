"""What JAX modules do with types, shapes and Python numbers."""

from __future__ import annotations

import inspect
from types import ModuleType

import numpy as np
import pytest

from tests.targets.emission import (
    RULES,
    emitted_module,
    imported,
    jax_module,
    jax_text,
)

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")
pytestmark = pytest.mark.jax


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return jax_module(RULES)


def test_double_precision_stays(rules: ModuleType) -> None:
    with jax.enable_x64(True):
        x = jnp.asarray([0.5, 100.0], jnp.float64)
        y, pullback = jax.vjp(rules.log1pexp, x)
        assert y.dtype == pullback(y)[0].dtype == jnp.float64
        assert float(y[0]) == pytest.approx(0.9740769841801067, rel=1e-15)
        single = jnp.asarray([0.5], jnp.float32)
        for name in ("log1pexp", "spike", "levels", "sign_step", "swish"):
            made, pullback = jax.vjp(getattr(rules, name), single)
            assert made.dtype == pullback(made)[0].dtype == jnp.float32, name


def test_python_numbers_stay_weak_where_float64_is_computed_in() -> None:
    rules = jax_module(
        "rule f(x) -> y:\n    assume x > 0\n    y = (sqrt(1 + x) - 1 - x / 2) / x\n"
    )
    assert ", WIDE," in inspect.getsource(rules)
    with jax.enable_x64(True):
        assert rules.f(1.0).weak_type
        assert (rules.f(1.0) * jnp.float32(2)).dtype == jnp.float32


def test_types_need_no_promotion_where_float64_is_computed_in() -> None:
    rules = jax_module("rule f(x, a) -> y:\n    y = exp(x) * a - sin(x) * a - a\n")
    assert ", WIDE," in inspect.getsource(rules)
    with jax.enable_x64(True), jax.numpy_dtype_promotion("strict"):
        for dtype in (jnp.bfloat16, jnp.float32, jnp.float64):
            x = jnp.full(3, 0.5, dtype)
            slopes = jax.grad(lambda x, a: rules.f(x, a).sum(), (0, 1))(x, 2.0 * x)
            assert {slope.dtype for slope in slopes} == {jnp.dtype(dtype)}


def test_types_promote_as_jax_does(rules: ModuleType) -> None:
    half, bfloat = jnp.ones(2, jnp.float16), jnp.ones(2, jnp.bfloat16)
    z, _ = rules.complex_op(half, bfloat)
    assert z.dtype == jnp.result_type(half, bfloat)
    found = jax.grad(lambda a, b: jnp.sum(rules.complex_op(a, b)[0]), (0, 1))
    da, db = found(half, bfloat)
    assert (da.dtype, db.dtype) == (half.dtype, bfloat.dtype)


def test_each_gradient_has_its_inputs_shape(rules: ModuleType) -> None:
    shapes = ((), (3,), (2, 1), (2, 3))
    for a in (*shapes, (0, 1), (0, 3)):
        for b in shapes[:2] if 0 in a else shapes:
            x, y = jnp.full(a, 0.5), jnp.full(b, 0.25)
            outputs, pullback = jax.vjp(rules.complex_op, x, y)
            dx, dy = pullback(tuple(map(jnp.ones_like, outputs)))
            assert (dx.shape, dy.shape) == (a, b)
            z, w = outputs
            assert dx == pytest.approx(z.size / max(1, x.size) * (0.25 + np.cos(0.5)))
            share = z.size / max(1, y.size) * 0.5 + 0.5 * w.size / max(1, y.size)
            assert dy == pytest.approx(share)


def test_outputs_without_gradient(rules: ModuleType) -> None:
    x = jnp.asarray([-1.0, 2.0])
    (y, sgn, up, side), tangents = jax.jvp(rules.parts, (x,), (jnp.ones_like(x),))
    assert side.dtype == jnp.int32 and up.dtype == jnp.bool_
    assert tangents[0].tolist() == [-2.0, 4.0] and tangents[1].tolist() == [0.0, 0.0]
    assert [t.dtype for t in tangents[2:]] == [jax.dtypes.float0] * 2
    assert sgn.tolist() == [-1.0, 1.0] and y.tolist() == [1.0, 4.0]
    with jax.enable_x64(True):
        assert rules.parts(x)[3].dtype == jnp.int64
    assert float(jax.grad(lambda t: rules.labels(t, True))(1.0)) == 0.0


def test_no_gradient_for_labels(rules: ModuleType) -> None:
    dp, dt = jax.grad(rules.bce, (0, 1))(0.25, 1.0)
    assert (float(dp), float(dt)) == (-4.0, 0.0)


def test_a_static_is_a_number(rules: ModuleType) -> None:
    compiled = jax.jit(rules.swish, static_argnames="beta")
    assert float(compiled(0.5, beta=2.0)) == pytest.approx(0.36552929)
    with pytest.raises(TypeError, match="a static of a gradspec rule is traced"):
        jax.jit(rules.swish)(0.5, beta=2.0)
    double = np.float64(2.0)  # a NumPy number would promote
    assert rules.swish(jnp.float32(0.5), beta=double).dtype == jnp.float32


def test_trace_prints_what_goes_through(capfd: pytest.CaptureFixture[str]) -> None:
    text = "rule square(x[]) -> y[]:\n    y = x**2\n"
    module = imported(emitted_module(text, "jax", True))
    jax.grad(lambda x: module.square(module.square(x)))(2.0)
    jax.effects_barrier()
    assert capfd.readouterr().out.splitlines() == [
        "square: x = 2.0, y = 4.0",
        "square: x = 4.0, y = 16.0",
        "square: x = 4.0, upstream dy = 1.0, current = 8.0, downstream dx = 8.0",
        "square: x = 2.0, upstream dy = 8.0, current = 4.0, downstream dx = 32.0",
    ]


def test_the_module_imports_jax_and_its_runtime_alone() -> None:
    lines = [
        s for s in jax_text(RULES).splitlines() if s.startswith(("import", "from"))
    ]
    known = {"__future__", "functools", "typing"}
    known |= {"jax", "jax.numpy", "jax.scipy", "jax.typing"}
    known |= {"._gradspec", "._special", "._axes"}
    assert {line.split()[1] for line in lines} <= known
