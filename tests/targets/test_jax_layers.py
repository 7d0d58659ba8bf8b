"""What JAX gets of a rule with params: the arrays to start from, as a dict."""

from __future__ import annotations

from types import ModuleType

import pytest

from tests.targets.emission import jax_module
from tests.targets.layer_rules import LEARNED

pytestmark = pytest.mark.jax
jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return jax_module(LEARNED)


def test_training_from_the_initial_arrays_lowers_a_loss(rules):
    x = jax.random.normal(jax.random.key(0), (16, 8))
    wanted = jax.random.normal(jax.random.key(1), (16, 8))
    weights = {
        "norm": rules.init_layer_norm(8),
        "slope": rules.init_prelu(shape=8),
    }

    @jax.jit
    def loss(w):
        y = rules.prelu(rules.layer_norm(x, **w["norm"]), **w["slope"])
        return jnp.mean((y - wanted) ** 2)

    losses = []
    for _ in range(5):
        value, slopes = jax.value_and_grad(loss)(weights)
        losses.append(float(value))
        weights = jax.tree.map(lambda w, d: w - 0.5 * d, weights, slopes)
    assert losses[-1] < losses[0]


def test_the_arrays_have_the_names_shapes_and_types_asked_for(rules):
    start = rules.init_mixture(3, 4, s=0.5, shape=(2, 1), dtype=jnp.bfloat16)
    assert {name: array.shape for name, array in start.items()} == {
        "w": (3, 4),
        "s": (),
        "to": (2, 1),
    }
    assert all(array.dtype == jnp.bfloat16 for array in start.values())
    assert float(start["s"]) == 0.5


def test_they_are_strongly_typed(rules):
    assert not rules.init_prelu()["a"].weak_type


def test_a_rule_that_has_the_name_keeps_it():
    text = (
        "rule prelu(x, a: param = 1) -> y:\n    y = a * x\n\n"
        "rule init_prelu(x) -> y:\n    y = 2 * x\n"
    )
    rules = jax_module(text)
    assert set(rules.__all__) == {"prelu", "init_prelu", "init_prelu2"}
    assert float(rules.init_prelu(2.0)) == 4.0
