"""The core of the JAX runtime: arguments, types, tangents, transforms, errors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from gradspec import __version__
from tests.targets.emission import module_of

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")

from gradspec.runtime.jax import _gradspec as runtime  # noqa: E402

pytestmark = [pytest.mark.jax, pytest.mark.shared_cache]
X = jnp.array([0.5, -1.0, 2.0])
ON = jnp.array([True, False, True])


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return module_of(Path(__file__).with_name("rules.grad"), "jax")


def test_the_runtime_names_its_version() -> None:
    assert f"gradspec {__version__} " in runtime.__doc__.splitlines()[0]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_rounded_once(rules: ModuleType, dtype: str) -> None:
    x = jnp.linspace(-4, 4, 33).astype(dtype)
    y, slope = rules.square(x), jax.vmap(jax.grad(rules.square))(x)
    assert y.dtype == slope.dtype == dtype
    wide = x.astype(jnp.float32)
    assert np.array_equal(y, (wide * wide).astype(dtype))
    assert np.array_equal(slope, (2 * wide).astype(dtype))


def test_numbers_are_weak_and_float64_is_kept(rules: ModuleType) -> None:
    assert rules.square(2).weak_type and rules.square(2.0).dtype == jnp.float32
    given = {"x": jnp.ones(2, jnp.bfloat16), "y": 0.1}
    dtype, (x, y) = runtime.rule("f")(lambda x, y: x * y)._convert(given)
    assert dtype == jnp.bfloat16 and x.dtype == jnp.float32
    assert float(y) == np.float32(0.1)
    with jax.enable_x64(True), jax.numpy_dtype_promotion("strict"):
        for kind in (jnp.bfloat16, jnp.float32, jnp.float64):
            x = jnp.full(3, 0.5, kind)
            assert rules.square(x).dtype == rules.power(x, 2 * x).dtype == kind
        rule = runtime.rule("f", least=runtime.WIDE)(lambda x: x)
        (wide,) = rule._convert({"x": jnp.ones(2)})[1]
        assert wide.dtype == rules.square(np.float64(2)).dtype == jnp.float64


ERRORS: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda m: m.square(jnp.arange(3)), TypeError, r"astype\(jnp.float32\)"),
    (lambda m: m.square(True), TypeError, "x must be a floating array, not bool"),
    (lambda m: m.square(2j), TypeError, "not complex64"),
    (lambda m: m.rows(X, X, 1.0, ON), TypeError, "n must be an integer array"),
    (lambda m: m.rows(X, X, 1, X), TypeError, "on must be a boolean array"),
    (lambda m: m.rows(X, X, 1, ON, k=2.0), TypeError, "integer"),
    (lambda m: m.rows(X, X[:2], 1, ON), ValueError, r"g .* \[k\] with k = 3"),
    (lambda m: m.rows(X, X, 1, ON, k=4), ValueError, r"x .* k\] with k = 4"),
    (lambda m: m.rows(X, X, jnp.ones(1, int), ON), ValueError, "n .* rank 0"),
    (lambda m: jax.jit(m.step)(X, k=2.0), TypeError, "static .* is traced"),
]


@pytest.mark.parametrize(("call", "fault", "words"), ERRORS)
def test_errors(
    rules: ModuleType, call: Callable[[Any], Any], fault: Any, words: str
) -> None:
    with pytest.raises(fault, match=words):
        call(rules)


@pytest.mark.parametrize("kind", ["number", "whole"])
def test_a_static_that_is_traced_is_refused_in_words(kind: str) -> None:
    power = runtime.rule("power", kinds={"k": kind})(lambda x, k: x**k)
    with pytest.raises(TypeError, match="a static of a gradspec rule is traced"):
        jax.jit(power.call)(3.0, 2)
    assert power._convert({"x": 3.0, "k": 2})[1][1] == 2


def test_a_slope_that_is_infinite_does_not_meet_a_tangent_that_is_zero(
    rules: ModuleType,
) -> None:
    assert float(jax.grad(lambda x: rules.power(x, 2.0))(0.0)) == 0.0
    assert jax.jvp(lambda x: rules.power(x, 2.0), (0.0,), (1.0,))[1] == 0.0
    x, y = jnp.array([[1.0], [2.0]]), jnp.array([2.0, 3.0])
    dx, dy = jax.grad(lambda x, y: rules.power(x, y).sum(), (0, 1))(x, y)
    assert np.allclose(dx, [[5.0], [16.0]])
    assert np.allclose(dy, [np.log(2) * 4, np.log(2) * 8])


def test_named_axes_integers_and_booleans(rules: ModuleType) -> None:
    x = jnp.stack([X, 2 * X])
    (y, at), (y_dot, at_dot) = jax.jvp(
        lambda x, g: rules.rows(x, g, 2, ON), (x, X), (x, 0 * X)
    )
    assert np.allclose(y, np.where(ON, X * x**3 + 6, 0))
    assert np.allclose(y_dot, np.where(ON, 3 * X * x**3, 0))
    assert at.dtype == jnp.int32 and at_dot.dtype == jax.dtypes.float0
    g = jax.grad(lambda g: rules.rows(x, g, 2, ON)[0].sum())(X)
    assert np.allclose(g, np.where(ON, (x**3).sum(0), 0))


def test_lasting_rules_last_in_scan(rules: ModuleType) -> None:
    def total(x: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            return rules.square(carry + rules.step(carry)), None

        return jax.lax.scan(step, x, None, 2)[0]

    def plain(x: Any) -> Any:
        for _ in range(2):
            x = rules.square(x + rules.step(x))
        return x

    assert np.allclose(jax.grad(jax.grad(total))(0.5), jax.grad(jax.grad(plain))(0.5))


def _crossed(rules: ModuleType, x: Any, w: Any, above: float = 1.0) -> Any:
    y, z = rules.crossed(x, w)
    return (y * above + 2 * z).sum()


@pytest.mark.parametrize("shared", [0, 1])
def test_vmap_of_a_shared_input(rules: ModuleType, shared: int) -> None:
    """Each call has cotangents of its own."""
    axes = (None, 0) if shared == 0 else (0, None)
    each = jnp.array([1.0, 2.0, 4.0])
    given = (0.5, each) if shared == 0 else (each, 0.5)
    total = partial(_crossed, rules, above=3.0)

    def whole(*given: Any) -> Any:
        return jax.vmap(total, axes)(*given).sum()

    def one(k: int) -> Any:
        own = [x if axis is None else x[k] for x, axis in zip(given, axes, strict=True)]
        return jax.grad(total, shared)(*own)

    found = jax.jit(jax.grad(whole, shared))(*given)
    assert np.allclose(found, sum(one(k) for k in range(3)))


@pytest.mark.parametrize("word", ["pcast", "pvary"])
def test_shard_map_of_a_shared_input(
    rules: ModuleType, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its gradient is the sum over the devices; JAX 0.8 has another word for that."""
    devices = jax.devices()[:2]
    if len(devices) < 2:
        pytest.skip("one device")
    if word == "pvary":
        cast = jax.lax.pcast
        monkeypatch.delattr(jax.lax, "pcast")
        monkeypatch.setattr(
            jax.lax, "pvary", lambda x, i: cast(x, i, to="varying"), raising=False
        )
    mesh, spec = jax.sharding.Mesh(devices, ("i",)), jax.sharding.PartitionSpec
    x, w = jnp.arange(1.0, 5.0), jnp.array([0.5, 2.0])

    def total(w: Any, x: Any) -> Any:
        return jax.lax.psum(_crossed(rules, x, w), "i")

    whole = jax.shard_map(
        total, mesh=mesh, in_specs=(spec(), spec("i")), out_specs=spec()
    )
    single = jax.grad(lambda w: sum(_crossed(rules, x[k : k + 2], w) for k in (0, 2)))
    assert np.allclose(jax.jit(jax.grad(whole))(w, x), single(w))


def test_shapes() -> None:
    x = jnp.ones((2, 1))
    assert np.array_equal(runtime.sum_to(jnp.ones((4, 2, 3)), x), np.full((2, 1), 12.0))
    assert np.array_equal(runtime.sum_to(2.0, x), np.full((2, 1), 2.0))
    assert runtime.sum_to(jnp.ones((0, 2, 1)), x).tolist() == [[0.0], [0.0]]
    assert runtime.broadcast_full(0.5, x, jnp.ones(3)).shape == (2, 3)
    nan = jnp.array([jnp.nan, 1.0, 2.0])
    assert np.array_equal(runtime.broadcast_like(x, nan), np.ones((2, 3)))
    made = runtime.start(0.25, (2,), None)
    assert (made.dtype, made.tolist()) == (jnp.float32, [0.25, 0.25])
    assert runtime.start(0.25, (), jnp.bfloat16).dtype == jnp.bfloat16
    assert not runtime.start(1.0, 3, None).weak_type
