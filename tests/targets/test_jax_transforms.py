"""Marker rules where JAX differentiates a gradient, chooses what to save, or checks.

The other transformations are in the conformance suite.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.targets.emission import jax_module

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")
pytestmark = pytest.mark.jax

MARKERS = """
rule marker(x) -> y:
    y = log(1 + exp(x))
    override dx = 3 * dy * sigmoid(x) because "a marker"

rule clipped(x) -> y:
    y = x**2
    override dx = clip(dy, -1, 1) * x because "not linear in its upstream gradient"

rule bounded_square(x) -> y:
    y = sin(clip(x, -3, 3))
    override dx = 3 * dy * dy * x because "the same, not linear"

rule through(x) -> y:
    y = tanh(x)
    override dx = 3 * dy * (2 - y) because "a marker, in terms of the output"

rule through_rows(x[..., n]) -> y[..., n]:
    y[i] = x[i]**2 / sum(x[j]**2 for j)
    override dx[i] = 3 * dy[i] * y[i] because "the same over rows"
"""

X = np.array([0.5, -1.0, 2.0])
"""Every function below maps a vector to a number."""


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return jax_module(MARKERS)


def test_no_forward_mode_is_told_not_hidden(rules: ModuleType) -> None:
    with pytest.raises(TypeError, match="custom_vjp"):
        jax.jvp(rules.clipped, (1.0,), (1.0,))


SQUARES = {
    "carried": lambda f, x: jax.lax.scan(lambda c, _: (f(c), None), x, None, 2)[0],
    "stacked": lambda f, x: jax.lax.scan(lambda c, _: (c, f(c)), x, None, 2)[1],
    "map": lambda f, x: jax.lax.map(f, jnp.stack([x, 2 * x])),
    "fori_loop": lambda f, x: jax.lax.fori_loop(0, 2, lambda _, c: f(c), x),
    "vmap": lambda f, x: jax.vmap(lambda c: SQUARES["carried"](f, c))(x[None])[0],
    "remat": lambda f, x: jax.checkpoint(lambda c: SQUARES["carried"](f, c))(x),
}
UNROLLED = {
    "carried": lambda f, x: f(f(x)),
    "stacked": lambda f, x: jnp.stack([f(x), f(x)]),
    "map": lambda f, x: jnp.stack([f(x), f(2 * x)]),
}


@pytest.mark.parametrize("name", ["marker", "bounded_square", "through_rows"])
def test_a_scan_keeps_the_rule_where_its_gradient_is_differentiated(
    rules: ModuleType, name: str
) -> None:
    """JAX puts the bare function in the place of a `custom_jvp` there, and says nothing.
    What is squared has the second derivative of the rule; or there is an error.
    """
    rule, x = getattr(rules, name), jnp.asarray(X)
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
    rules: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    policy = jax.checkpoint_policies.save_only_these_names("residual")
    for rule in (rules.clipped, rules.marker):
        part = jax.checkpoint(lambda x, f=rule: jnp.sum(f(jnp.sin(x))), policy=policy)
        jax.ad_checkpoint.print_saved_residuals(part, jnp.asarray(X))
    assert "residual" not in capsys.readouterr().out


@pytest.mark.parametrize("name", ["through", "through_rows"])
def test_an_output_in_a_declared_gradient_is_differentiated_as_its_value(
    rules: ModuleType, name: str
) -> None:
    """Its declared gradient is for those who call the rule: difference quotients of the
    gradient know nothing of it.
    """
    gradient = jax.grad(lambda x: jnp.sum(getattr(rules, name)(x)))
    x, step = jnp.asarray(X, jnp.float32), 2.0**-7
    found = jax.jvp(gradient, (x,), (jnp.ones_like(x),))[1]
    quotient = (gradient(x + step) - gradient(x - step)) / (2 * step)
    assert np.allclose(found, quotient, atol=2e-3)
    assert np.abs(quotient).max() > 0.1


def test_checkify_of_a_gradient_by_position_finds_what_is_outside() -> None:
    from jax.experimental import checkify

    rules = jax_module(
        "rule taken(w[v, d], t[m]: int) -> y[m, d]:\n    y[i, j] = w[t[i], j]\n"
    )
    gradient = jax.grad(lambda w, t: jnp.sum(rules.taken(w, t) ** 2))
    checked = checkify.checkify(gradient, errors=checkify.index_checks)
    w = jnp.arange(6.0).reshape(3, 2)
    error, found = checked(w, jnp.array([2, 0, 2]))
    assert error.get() is None
    np.testing.assert_array_equal(found, 2 * w * jnp.array([[1.0], [0.0], [2.0]]))
    error, _ = checked(w, jnp.array([2, 3, 2]))
    assert "out-of-bounds" in error.get()
