"""The core of the JAX runtime: arguments, types, tangents, transforms, errors."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")

from gradspec import __version__  # noqa: E402
from gradspec.runtime.jax import _gradspec  # noqa: E402
from gradspec.runtime.jax._gradspec import (  # noqa: E402
    broadcast_like,
    filled,
    floats,
    start,
    sum_to,
)
from tests.runtime.jax import rules  # noqa: E402

pytestmark = pytest.mark.jax
X = jnp.array([0.5, -1.0, 2.0])


def test_the_runtime_names_its_version() -> None:
    assert f"gradspec {__version__} " in _gradspec.__doc__.splitlines()[0]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_rounded_once(dtype: str) -> None:
    x = jnp.linspace(-4, 4, 33).astype(dtype)
    y, slope = rules.square(x), jax.vmap(jax.grad(rules.square))(x)
    assert y.dtype == slope.dtype == dtype
    wide = x.astype(jnp.float32)
    assert np.array_equal(y, (wide * wide).astype(dtype))
    assert np.array_equal(slope, (2 * wide).astype(dtype))


def test_numbers_are_weak_and_float64_is_kept() -> None:
    assert rules.square(2).weak_type and rules.square(2.0).dtype == jnp.float32
    dtype, x, y = floats("f", x=jnp.ones(2, jnp.bfloat16), y=0.1)
    assert dtype == jnp.bfloat16 and x.dtype == jnp.float32
    assert float(y) == np.float32(0.1)
    with jax.enable_x64(True), jax.numpy_dtype_promotion("strict"):
        for kind in (jnp.bfloat16, jnp.float32, jnp.float64):
            x = jnp.full(3, 0.5, kind)
            assert rules.wide_square(x).dtype == rules.square(x).dtype == kind
            assert rules.power(x, 2 * x).dtype == kind
        assert floats("f", _gradspec.WIDE, x=jnp.ones(2))[1].dtype == jnp.float64
        assert rules.square(np.float64(2)).dtype == jnp.float64


@pytest.mark.parametrize(
    ("call", "fault", "words"),
    [
        (lambda: rules.square(jnp.arange(3)), TypeError, r"astype\(jnp.float32\)"),
        (lambda: rules.square(True), TypeError, "x must be a floating array, not bool"),
        (lambda: rules.square(2j), TypeError, "not complex64"),
        (lambda: rules.rows(X, X, 1.0, True), TypeError, "n must be an integer array"),
        (lambda: rules.rows(X, X, 1, 1), TypeError, "on must be a boolean array"),
        (lambda: rules.rows(X, X, 1, True, k=2.0), TypeError, "integer"),
        (lambda: rules.rows(X, X[:2], 1, True), ValueError, r"g .* \[k\] with k = 3"),
        (lambda: rules.rows(X, X, 1, True, k=4), ValueError, r"x .* k\] with k = 4"),
        (lambda: rules.rows(X, X, jnp.ones(1, int), True), ValueError, "n .* rank 0"),
        (lambda: jax.jit(rules.spike)(X, k=2.0), TypeError, "static .* is traced"),
    ],
)
def test_errors(call, fault, words) -> None:
    with pytest.raises(fault, match=words):
        call()


def test_a_slope_that_is_infinite_does_not_meet_a_tangent_that_is_zero() -> None:
    assert float(jax.grad(lambda x: rules.power(x, 2.0))(0.0)) == 0.0
    assert jax.jvp(lambda x: rules.power(x, 2.0), (0.0,), (1.0,))[1] == 0.0
    x, y = jnp.array([[1.0], [2.0]]), jnp.array([2.0, 3.0])
    dx, dy = jax.grad(lambda x, y: rules.power(x, y).sum(), (0, 1))(x, y)
    assert np.allclose(dx, [[5.0], [16.0]])
    assert np.allclose(dy, [np.log(2) * 4, np.log(2) * 8])


def test_named_axes_integers_and_booleans() -> None:
    x, on = jnp.stack([X, 2 * X]), jnp.array([True, False, True])
    (y, at), (y_dot, at_dot) = jax.jvp(
        lambda x, g: rules.rows(x, g, 2, on), (x, X), (x, 0 * X)
    )
    assert np.allclose(y, np.where(on, X * x**3 + 6, 0))
    assert np.allclose(y_dot, np.where(on, 3 * X * x**3, 0))
    assert at.dtype == jnp.int32 and at.shape == (2, 3)
    assert at_dot.dtype == jax.dtypes.float0
    g = jax.grad(lambda g: rules.rows(x, g, 2, on)[0].sum())(X)
    assert np.allclose(g, np.where(on, (x**3).sum(0), 0))


def test_lasting_rules_last_in_scan() -> None:
    def total(x, unroll):
        def step(carry, _):
            return rules.square(carry + rules.spike(carry)), None

        return jax.lax.scan(step, x, None, 2, unroll=unroll)[0]

    def plain(x):
        for _ in range(2):
            x = rules.square(x + rules.spike(x))
        return x

    wanted = jax.grad(jax.grad(plain))(0.5)
    assert np.allclose(jax.grad(jax.grad(lambda x: total(x, 1)))(0.5), wanted)
    assert np.allclose(jax.jacfwd(jax.jacrev(plain))(0.5), wanted)


def _gated(x, w, above):
    y, z = rules.gate(x, w)
    return (y * above + 2 * z).sum()


@pytest.mark.parametrize("shared", [0, 1])
def test_vmap_of_a_shared_input(shared: int) -> None:
    """Each call has cotangents of its own."""
    axes = (None, 0) if shared == 0 else (0, None)
    each = jnp.array([1.0, 2.0, 4.0])
    given = (0.5, each) if shared == 0 else (each, 0.5)

    def whole(*given):
        return jax.vmap(partial(_gated, above=3.0), axes)(*given).sum()

    def one(k):
        own = [x if axis is None else x[k] for x, axis in zip(given, axes, strict=True)]
        return jax.grad(partial(_gated, above=3.0), shared)(*own)

    found = jax.jit(jax.grad(whole, shared))(*given)
    assert np.allclose(found, sum(one(k) for k in range(3)))


def test_shard_map_of_a_shared_input() -> None:
    devices = jax.devices()[:2]
    if len(devices) < 2:
        pytest.skip("one device")
    mesh, spec = jax.sharding.Mesh(devices, ("i",)), jax.sharding.PartitionSpec
    x = jnp.arange(1.0, 5.0)

    def total(w, x):
        return jax.lax.psum(_gated(x, w, 1.0), "i")

    whole = jax.shard_map(
        total, mesh=mesh, in_specs=(spec(), spec("i")), out_specs=spec()
    )
    wanted = jax.grad(lambda w: _gated(x, w, 1.0))(jnp.array([0.5, 2.0]).repeat(2))
    found = jax.jit(jax.grad(whole))(jnp.array([0.5, 2.0]), x)
    single = jax.grad(lambda w: sum(_gated(x[k : k + 2], w, 1.0) for k in (0, 2)))
    assert np.allclose(found, single(jnp.array([0.5, 2.0]))) and wanted.shape == (4,)


def test_shapes() -> None:
    x = jnp.ones((2, 1))
    assert np.array_equal(sum_to(jnp.ones((4, 2, 3)), x), np.full((2, 1), 12.0))
    assert np.array_equal(sum_to(2.0, x), np.full((2, 1), 2.0))
    assert sum_to(jnp.ones((0, 2, 1)), x).tolist() == [[0.0], [0.0]]
    assert filled(0.5, x, jnp.ones(3)).shape == (2, 3)
    nan = jnp.array([jnp.nan, 1.0, 2.0])
    assert np.array_equal(broadcast_like(x, nan), np.ones((2, 3)))
    assert start(0.25, (2,), None).dtype == jnp.float32
    assert start(0.25, (), jnp.bfloat16).dtype == jnp.bfloat16
    assert not start(1.0, 3, None).weak_type


@pytest.mark.parametrize("convert", [_gradspec.number, _gradspec.whole])
def test_a_static_that_is_traced_is_refused_in_words(convert) -> None:
    with pytest.raises(TypeError, match="a static of a gradspec rule is traced"):
        jax.jit(convert)(2)
    assert convert(2) == 2
