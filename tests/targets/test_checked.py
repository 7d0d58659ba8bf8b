"""Modules that check the assumptions of their rules at each call."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import gradspec
from tests.calling import by_target, called

RULES = """
rule bce(p, t: nograd, eps: static = 0.0) -> loss:
    assume 0 < p, p < 1 - eps, eps >= 0
    loss = -(t * log(p) + (1 - t) * log(1 - p))

rule share(p[..., n], k: static int = 1) -> y[...]:
    assume sum(p[i] for i) <= 1, p[i] > 0
    y = sum(p[i] * log(p[i]) for i) / k

rule free(x, holds_1) -> y:
    assume holds_1 != 0
    y = x / holds_1
"""
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any], str]] = [
    ("bce", ([0.25, 0.5], [0.0, 1.0]), {}, ""),
    ("bce", ([0.25, -0.5, 0.0], [1.0]), {}, "bce assumes 0 < p: false at 2 of 3"),
    ("bce", ([0.75], [1.0]), {"eps": 0.5}, "bce assumes p < 1 - eps: false at 1 of 1"),
    ("bce", ([float("nan")], [1.0]), {}, "bce assumes 0 < p: false at 1 of 1"),
    ("bce", ([0.5, 0.5], [1.0]), {"eps": -1.0}, "bce assumes eps >= 0: false"),
    ("bce", (np.zeros((0, 2)), [1.0, 1.0]), {}, ""),
    ("share", ([[0.5, 0.25], [0.5, 0.5]],), {"k": 2}, ""),
    (
        "share",
        ([[0.5, 0.25], [0.5, 0.75]],),
        {},
        "sum(p[i] for i) <= 1: false at 1 of 2",
    ),
    ("share", ([[0.5, -0.25]],), {}, "share assumes p[i] > 0: false at 1 of 2"),
    ("free", ([1.0], [0.0]), {}, "free assumes holds_1 != 0: false at 1 of 1"),
]


def _error(target: str) -> type[Exception]:
    if target == "tf":
        import tensorflow as tf

        return tf.errors.InvalidArgumentError
    return ValueError


@by_target
@pytest.mark.parametrize(("name", "given", "statics", "said"), CALLS)
def test_a_call_outside_the_assumptions_is_an_error(
    target: str, name: str, given: Any, statics: dict[str, Any], said: str
) -> None:
    rules = gradspec.load(RULES, target, checked=True)
    arguments = tuple(np.asarray(x, np.float64) for x in given)
    if not said:
        plain = gradspec.load(RULES, target)
        found, wanted = (
            called(target, ops, name, arguments, statics=statics)
            for ops in (rules, plain)
        )
        np.testing.assert_equal(found, wanted)
        return
    with pytest.raises(_error(target)) as caught:
        called(target, rules, name, arguments, statics=statics)
    assert said in re.sub(r"b?'|\n", " ", str(caught.value)).replace("  ", " ")


@pytest.mark.torch
def test_torch_transforms_and_compilers_check_too() -> None:
    import torch

    ops = gradspec.load(RULES, "torch", checked=True)
    good, bad = torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.0])
    slope = torch.func.vmap(torch.func.grad(ops.free), (None, 0))
    assert slope(torch.tensor(1.0), good).tolist() == [1.0, 0.5]
    with pytest.raises(ValueError, match="false at 1 of 2"):
        slope(torch.tensor(1.0), bad)
    compiled = torch.compile(ops.free, backend="aot_eager", fullgraph=True)
    assert compiled(good, good).tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="free assumes holds_1 != 0"):
        compiled(good, bad)


@pytest.mark.tf
def test_tensorflow_graphs_check_too() -> None:
    import tensorflow as tf

    free = tf.function(gradspec.load(RULES, "tf", checked=True).free)
    good, bad = tf.constant([1.0, 2.0]), tf.constant([1.0, 0.0])
    assert free(good, good).numpy().tolist() == [1.0, 1.0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="free assumes"):
        free(good, bad)


@pytest.mark.jax
def test_jax_checks_what_is_traced_inside_checkify() -> None:
    import jax
    import jax.numpy as jnp
    from jax.experimental import checkify

    free = jax.jit(gradspec.load(RULES, "jax", checked=True).free)
    good, bad = jnp.array([1.0, 2.0]), jnp.array([1.0, 0.0])
    assert free(good, bad).tolist() == [1.0, float("inf")]
    inside = checkify.checkify(free, errors=checkify.user_checks)
    inside(good, good)[0].throw()
    with pytest.raises(checkify.JaxRuntimeError, match="free assumes holds_1 != 0"):
        inside(good, bad)[0].throw()


def test_only_a_checked_module_checks() -> None:
    texts = [gradspec.compile_text(RULES, checked=flag) for flag in (False, True)]
    assert ["require" in text for text in texts] == [False, True]
    bare = "rule half(x) -> y:\n    y = x / 2\n"
    assert gradspec.compile_text(bare, checked=True) == gradspec.compile_text(bare)
