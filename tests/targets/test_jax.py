"""JAX modules where JAX is unlike the others: weak types, promotion, transformations that
differentiate a gradient or choose what to save.

The other transformations are in the conformance suite.
"""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.targets.emission import ELEMENTWISE, module_of, own_rules

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")
pytestmark = pytest.mark.jax

OWN = own_rules("jax")
X = np.array([0.5, -1.0, 2.0])


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return module_of(ELEMENTWISE, "jax")


@pytest.fixture(scope="module")
def own() -> ModuleType:
    return module_of(OWN, "jax")


# --- types ---------------------------------------------------------------------------------


def test_single_precision_stays_beside_double(rules: ModuleType) -> None:
    with jax.enable_x64(True):
        single = jnp.asarray([0.5], jnp.float32)
        for name in ("log1pexp", "spike", "levels", "sign_step", "swish"):
            made, pullback = jax.vjp(getattr(rules, name), single)
            assert made.dtype == pullback(made)[0].dtype == jnp.float32, name
    double = np.float64(2.0)  # a NumPy number would promote
    assert rules.swish(jnp.float32(0.5), beta=double).dtype == jnp.float32


def test_python_numbers_stay_weak_where_float64_is_computed_in() -> None:
    wide = module_of(
        "rule f(x) -> y:\n    assume x > 0\n    y = (sqrt(1 + x) - 1 - x / 2) / x\n",
        "jax",
    )
    assert "least=WIDE" in inspect.getsource(wide)
    with jax.enable_x64(True):
        assert wide.f(1.0).weak_type
        assert (wide.f(1.0) * jnp.float32(2)).dtype == jnp.float32


def test_types_need_no_promotion_where_float64_is_computed_in() -> None:
    wide = module_of("rule f(x, a) -> y:\n    y = exp(x) * a - sin(x) * a - a\n", "jax")
    assert "least=WIDE" in inspect.getsource(wide)
    with jax.enable_x64(True), jax.numpy_dtype_promotion("strict"):
        for dtype in (jnp.bfloat16, jnp.float32, jnp.float64):
            x = jnp.full(3, 0.5, dtype)
            slopes = jax.grad(lambda x, a: wide.f(x, a).sum(), (0, 1))(x, 2.0 * x)
            assert {slope.dtype for slope in slopes} == {jnp.dtype(dtype)}


def test_types_promote_as_jax_does(rules: ModuleType) -> None:
    half, bfloat = jnp.ones(2, jnp.float16), jnp.ones(2, jnp.bfloat16)
    z, _ = rules.complex_op(half, bfloat)
    assert z.dtype == jnp.result_type(half, bfloat)
    found = jax.grad(lambda a, b: jnp.sum(rules.complex_op(a, b)[0]), (0, 1))
    da, db = found(half, bfloat)
    assert (da.dtype, db.dtype) == (half.dtype, bfloat.dtype)


def test_outputs_without_gradient(rules: ModuleType) -> None:
    x = jnp.asarray([-1.0, 2.0])
    (*_, side), tangents = jax.jvp(rules.parts, (x,), (jnp.ones_like(x),))
    assert side.dtype == jnp.int32
    assert tangents[0].tolist() == [-2.0, 4.0] and tangents[1].tolist() == [0.0, 0.0]
    assert [t.dtype for t in tangents[2:]] == [jax.dtypes.float0] * 2
    assert float(jax.grad(lambda t: rules.labels(t, True))(1.0)) == 0.0
    assert [float(g) for g in jax.grad(rules.bce, (0, 1))(0.25, 1.0)] == [-4.0, 0.0]


def test_a_static_is_a_number(rules: ModuleType) -> None:
    compiled = jax.jit(rules.swish, static_argnames="beta")
    assert float(compiled(0.5, beta=2.0)) == pytest.approx(0.36552929)
    with pytest.raises(TypeError, match="a static of a gradspec rule is traced"):
        jax.jit(rules.swish)(0.5, beta=2.0)


# --- where JAX differentiates a gradient, chooses what to save, or checks ------------------


def test_no_forward_mode_is_told_not_hidden(own: ModuleType) -> None:
    with pytest.raises(TypeError, match="custom_vjp"):
        jax.jvp(own.clipped, (1.0,), (1.0,))


SQUARES = {
    "carried": lambda f, x: jax.lax.scan(lambda c, _: (f(c), None), x, None, 2)[0],
    "stacked": lambda f, x: jax.lax.scan(lambda c, _: (c, f(c)), x, None, 2)[1],
    "map": lambda f, x: jax.lax.map(f, jnp.stack([x, 2 * x])),
    "fori_loop": lambda f, x: jax.lax.fori_loop(0, 2, lambda _, c: f(c), x),
    "remat": lambda f, x: jax.checkpoint(lambda c: SQUARES["carried"](f, c))(x),
}
UNROLLED = {
    "carried": lambda f, x: f(f(x)),
    "stacked": lambda f, x: jnp.stack([f(x), f(x)]),
    "map": lambda f, x: jnp.stack([f(x), f(2 * x)]),
}


@pytest.mark.parametrize("name", ["marker", "bounded_square", "through_rows"])
def test_a_scan_keeps_the_rule_where_its_gradient_is_differentiated(
    own: ModuleType, name: str
) -> None:
    """JAX puts the bare function in the place of a `custom_jvp` there, and says nothing.
    What is squared has the second derivative of the rule; or there is an error.
    """
    rule, x = getattr(own, name), jnp.asarray(X)
    for way, made in SQUARES.items():
        if name == "bounded_square" and way in ("stacked", "remat"):
            continue  # how often it is called, and a square counts, is JAX's choice

        def total(x: Any, made: Any = made) -> Any:
            return jnp.sum(made(rule, x) ** 2)

        def plain(x: Any, way: str = way) -> Any:
            return jnp.sum(UNROLLED.get(way, UNROLLED["carried"])(rule, x) ** 2)

        wanted = pytest.approx(
            np.asarray(jax.jit(jax.jacrev(jax.grad(plain)))(x)), rel=1e-5, abs=1e-5
        )
        assert np.asarray(jax.jit(jax.jacrev(jax.grad(total)))(x)) == wanted, way
        try:
            forward_over_reverse = jax.jit(jax.jacfwd(jax.grad(total)))(x)
        except TypeError as error:
            assert "custom_vjp" in str(error), way
        else:
            assert np.asarray(forward_over_reverse) == wanted, way


def test_a_policy_of_a_users_names_saves_nothing_of_a_rule(
    own: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = jax.checkpoint_policies.save_only_these_names("residual")
    for rule in (own.clipped, own.marker):
        part = jax.checkpoint(lambda x, f=rule: jnp.sum(f(jnp.sin(x))), policy=policy)
        jax.ad_checkpoint.print_saved_residuals(part, jnp.asarray(X))
    assert "residual" not in capsys.readouterr().out


@pytest.mark.parametrize("name", ["through", "through_rows"])
def test_an_output_in_a_declared_gradient_is_differentiated_as_its_value(
    own: ModuleType, name: str
) -> None:
    """Its declared gradient is for those who call the rule: difference quotients of the
    gradient know nothing of it.
    """
    gradient = jax.grad(lambda x: jnp.sum(getattr(own, name)(x)))
    x, step = jnp.asarray(X, jnp.float32), 2.0**-7
    found = jax.jvp(gradient, (x,), (jnp.ones_like(x),))[1]
    quotient = (gradient(x + step) - gradient(x - step)) / (2 * step)
    assert np.allclose(found, quotient, atol=2e-3)
    assert np.abs(quotient).max() > 0.1


def test_checkify_of_a_gradient_by_position_finds_what_is_outside(
    own: ModuleType,
) -> None:
    from jax.experimental import checkify

    gradient = jax.grad(lambda w, t: jnp.sum(own.taken(w, t) ** 2))
    checked = checkify.checkify(gradient, errors=checkify.index_checks)
    w = jnp.arange(6.0).reshape(3, 2)
    error, found = checked(w, jnp.array([2, 0, 2]))
    assert error.get() is None
    np.testing.assert_array_equal(found, 2 * w * jnp.array([[1.0], [0.0], [2.0]]))
    error, _ = checked(w, jnp.array([2, 3, 2]))
    assert "out-of-bounds" in error.get()
