"""Marker rules through every transformation of JAX: the declared gradient survives.

The declared backward is three times the true one, or a surrogate: what a transformation
that lost the rule would give is another number.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
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

rule spike(v, k: static = 2.0) -> s:
    s = 1 if v > 0 else 0
    surrogate s = tanh(k * v)

rule pair(x, y) -> (z, w):
    z = x * y
    w = y**2
    override dx = 3 * dz * y because "a marker"
    override dy = 3 * dz * x + 6 * dw * y because "a marker"

rule row(x[..., n], g[n]) -> y[..., n]:
    y[i] = x[i] * g[i] / sum(x[j] for j)
    override dx[i] = 3 * dy[i] * g[i] because "a marker"
    override dg[i] = 5 * dy[i] * x[i] because "a marker"

rule clipped(x) -> y:
    y = x**2
    override dx = clip(dy, -1, 1) * x because "not linear in its upstream gradient"

rule bounded(x) -> y:
    y = sin(clip(x, -3, 3))
    override dx = 3 * dy * x because "a marker, beside constants"

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


def _functions(rules: ModuleType) -> dict[str, tuple[Callable[[Any], Any], Any]]:
    """Each function, and its gradient at X as the rules declare it."""
    y = np.array([1.5, 0.25, -0.5])
    sigmoid = 1 / (1 + np.exp(-X))
    return {
        "marker": (lambda x: jnp.sum(rules.marker(x)), 3 * sigmoid),
        "spike": (lambda v: jnp.sum(rules.spike(v)), 2 / np.cosh(2 * X) ** 2),
        "pair": (lambda x: sum(map(jnp.sum, rules.pair(x, y))), 3 * y),
        "pair, second": (lambda x: sum(map(jnp.sum, rules.pair(y, x))), 3 * y + 6 * X),
        "row": (lambda x: jnp.sum(rules.row(x, y)), 3 * y),
        "row, shared": (lambda x: jnp.sum(rules.row(np.stack([y, y]), x)), 10 * y),
        "clipped": (lambda x: jnp.sum(rules.clipped(x)), X),
    }


NAMES = ("marker", "spike", "pair", "pair, second", "row", "row, shared")
FORWARD_ONLY = "forward mode"


def _jacfwd(f: Any) -> Any:
    return jax.jacfwd(f)


def _linearize(f: Any) -> Any:
    def gradient(x: Any) -> Any:
        _, push = jax.linearize(f, x)
        return jax.vmap(push)(jnp.eye(x.size))

    return gradient


def _scan(f: Any) -> Any:
    def total(x: Any) -> Any:
        step = lambda carry, _: (carry + f(x) / 4, None)  # noqa: E731
        return jax.lax.scan(step, 0.0, None, length=4)[0]

    return jax.grad(total)


def _cond(f: Any) -> Any:
    return jax.grad(lambda x: jax.lax.cond(x[0] > 0, f, lambda x: 0.0, x))


def _while(f: Any) -> Any:
    def total(x: Any) -> Any:
        step = lambda s: (s[0] + 1, s[1] + f(x) / 2)  # noqa: E731
        return jax.lax.while_loop(lambda s: s[0] < 2, step, (0, 0.0))[1]

    return jax.jacfwd(total)


def _export(f: Any) -> Any:
    def gradient(x: Any) -> Any:
        data = jax.export.export(jax.jit(f))(x).serialize(vjp_order=1)
        return jax.grad(jax.export.deserialize(data).call)(x)

    return gradient


def _checkify(f: Any) -> Any:
    from jax.experimental import checkify

    def gradient(x: Any) -> Any:
        checked = checkify.checkify(jax.grad(f), errors=checkify.float_checks)
        error, found = checked(x)
        error.throw()
        return found

    return gradient


def _jet_of_checkify(f: Any) -> Any:
    from jax.experimental import checkify

    return jax.grad(lambda x: checkify.checkify(f)(x)[1])


REVERSE = {
    "grad": jax.grad,
    "value_and_grad": lambda f: lambda x: jax.value_and_grad(f)(x)[1],
    "vjp": lambda f: lambda x: jax.vjp(f, x)[1](jnp.ones(()))[0],
    "jacrev": jax.jacrev,
    "jit of grad": lambda f: jax.jit(jax.grad(f)),
    "grad of jit": lambda f: jax.grad(jax.jit(f)),
    "remat": lambda f: jax.grad(jax.checkpoint(f)),
    "vmap": lambda f: lambda x: jax.vmap(jax.grad(f))(jnp.stack([x, x]))[1],
    "scan": _scan,
    "cond": _cond,
    "export": _export,
    "checkify": _checkify,
    "grad of checkify": _jet_of_checkify,
}
FORWARD = {"jacfwd": _jacfwd, "linearize": _linearize, "while": _while}


@pytest.mark.parametrize("name", (*NAMES, "clipped"))
def test_reverse(rules: ModuleType, name: str) -> None:
    function, expected = _functions(rules)[name]
    for feature, transform in REVERSE.items():
        found = transform(function)(jnp.asarray(X))
        assert found == pytest.approx(expected, rel=2e-6), feature


@pytest.mark.parametrize("name", NAMES)
def test_forward(rules: ModuleType, name: str) -> None:
    function, expected = _functions(rules)[name]
    for feature, transform in FORWARD.items():
        found = transform(function)(jnp.asarray(X))
        assert found == pytest.approx(expected, rel=2e-6), feature


def test_no_forward_mode_is_told_not_hidden(rules: ModuleType) -> None:
    with pytest.raises(TypeError, match="custom_vjp"):
        jax.jvp(rules.clipped, (1.0,), (1.0,))


def test_second_derivatives_in_every_order(rules: ModuleType) -> None:
    """The gradient's own derivative, not the forward's."""
    s = 1 / (1 + np.exp(-X))
    expected = {"marker": np.diag(3 * s * (1 - s)), "pair, second": np.diag([6.0] * 3)}
    for name, second in expected.items():
        function, _ = _functions(rules)[name]
        for outer in (jax.jacfwd, jax.jacrev):
            for inner in (jax.jacfwd, jax.jacrev):
                for wrap in (jax.jit, lambda f: f):
                    found = wrap(outer(inner(function)))(jnp.asarray(X))
                    assert np.asarray(found) == pytest.approx(second, abs=2e-6)


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


@pytest.mark.parametrize(
    "name", ["marker", "spike", "bounded", "bounded_square", "through_rows"]
)
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


def test_so_does_one_in_a_module_of_linear_rules_alone() -> None:
    """Whose helpers are those that linear rules use."""
    rule = jax_module(
        'rule r(x) -> y:\n    y = sin(x)\n    override dx = 3 * dy * x because "a marker"\n'
    ).r

    def total(x: Any) -> Any:
        return jax.lax.scan(lambda c, _: (rule(c), None), x, None, 2)[0] ** 2

    found = jax.grad(jax.grad(total))(0.7)
    wanted = jax.grad(jax.grad(lambda x: rule(rule(x)) ** 2))(0.7)
    assert float(found) == pytest.approx(float(wanted), rel=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_shard_map(rules: ModuleType, name: str) -> None:
    """Devices have rows of their own: gradients of the shared input are summed."""
    if len(jax.devices()) < 8:
        pytest.skip("the process has fewer than 8 devices")
    function, expected = _functions(rules)[name]
    spec = jax.sharding.PartitionSpec
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:8]), ("i",))
    rows = jnp.stack([jnp.asarray(X)] * 8)

    def each(row: Any) -> Any:
        return function(row[0])[None]

    mapped = partial(jax.shard_map, mesh=mesh, in_specs=spec("i"), out_specs=spec("i"))
    outside = jax.grad(lambda x: jnp.sum(mapped(each)(x)))(rows)
    inside = mapped(lambda r: jax.grad(lambda r: each(r)[0])(r))(rows)
    for found in (outside, inside):
        assert np.asarray(found) == pytest.approx(np.stack([expected] * 8), rel=2e-6)


@pytest.mark.parametrize("name", ["pair", "row"])
def test_shard_map_with_an_input_that_all_devices_share(
    rules: ModuleType, name: str
) -> None:
    if len(jax.devices()) < 8:
        pytest.skip("the process has fewer than 8 devices")
    rule = getattr(rules, name)
    spec = jax.sharding.PartitionSpec
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:8]), ("i",))
    rows, shared = jnp.arange(1.0, 25.0).reshape(8, 3), jnp.asarray(X)

    def total(x: Any, g: Any) -> Any:
        made = rule(x, g)
        return jnp.sum(made[0] if isinstance(made, tuple) else made)

    whole = jax.grad(total, 1)(rows, shared)
    split = partial(jax.shard_map, mesh=mesh, in_specs=(spec("i"), spec()))
    inside = split(jax.grad(total, 1), out_specs=spec())(rows, shared)
    assert np.asarray(inside) == pytest.approx(np.asarray(whole), rel=2e-6)
    _, along = jax.jvp(partial(total, rows), (shared,), (shared,))
    push = split(
        lambda x, g: jax.jvp(partial(total, x), (g,), (g,))[1][None],
        out_specs=spec("i"),
    )
    assert float(jnp.sum(push(rows, shared))) == pytest.approx(float(along), rel=2e-6)


def test_export_for_any_size(rules: ModuleType) -> None:
    (n,) = jax.export.symbolic_shape("n")
    for rule, count in ((rules.marker, 1), (rules.pair, 2), (rules.row, 2)):
        given = [jax.ShapeDtypeStruct((n,), jnp.float32)] * count

        def total(*x: Any, rule: Any = rule) -> Any:
            return sum(map(jnp.sum, jax.tree.leaves(rule(*x))))

        exported = jax.export.export(jax.jit(jax.grad(total)))(*given)
        x = [jnp.asarray(X, jnp.float32)] * count
        again = jax.export.deserialize(exported.serialize()).call(*x)
        assert np.asarray(again) == pytest.approx(np.asarray(jax.grad(total)(*x)))


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
