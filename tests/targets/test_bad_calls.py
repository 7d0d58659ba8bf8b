"""Calls with arguments that a rule does not take: each error names both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.calling import by_target
from tests.targets.emission import module_of

RULES = """
rule add(x, y) -> z:
    z = x * y + sin(x)

rule scale(x[..., n], g, u[..., n]: nograd) -> y[..., n]:
    y[i] = x[i] * g * u[i]

rule pick(x[..., n], t[m]: int) -> z[..., m]:
    z[i] = x[t[i]]

rule shift(x[n], t[]: int, k: static int = 1) -> z:
    z = x[t + k]

rule power(x, n: static int = 2, a: static = 1.5) -> z:
    z = x**n * a
"""

Call = Callable[[Any], Any]


def one(*shape: int) -> np.ndarray[Any, Any]:
    return np.ones(shape, np.float32)


APART: dict[str, Call] = {
    r"add: x and y .*\(2,\).*\(3,\)": lambda m: m.add(one(2), one(3)),
    r"add: x and y .*\(2, 1, 2\).*\(2, 3\)": lambda m: m.add(
        y=one(2, 3), x=one(2, 1, 2)
    ),
    r"scale: x and g .*\(2, 3\).*\(4,\)": lambda m: m.scale(one(2, 3), one(4), one(3)),
    r"scale: x and u .*\(2, 3\).*\(4, 3\)": lambda m: m.scale(
        one(2, 3), 1.0, one(4, 3)
    ),
    r"scale: g and u .*\(5,\).*\(4, 3\)": lambda m: m.scale(one(3), one(5), one(4, 3)),
}
OUTSIDE: dict[str, Call] = {
    "pick: .* t is from 5 to 5": lambda m: m.pick(one(2, 3), np.array([5])),
    "pick: .* t is from -1 to 0": lambda m: m.pick(one(3), np.array([0, -1])),
    "shift: .* k is 1, t is from 2 to 2": lambda m: m.shift(one(3), np.array(2)),
    "shift: .* k is 9, t is from 0 to 0": lambda m: m.shift(one(3), np.array(0), k=9),
}
NO_NUMBER = (None, True, "2", one(3), [1.0], 1j)
NO_ARRAY = (None, "abc", [[1.0], [1.0, 2.0]], {}, object(), [None, 1.0])


@by_target
def test_shapes_that_do_not_broadcast(target: str) -> None:
    rules = module_of(RULES, target)
    for message, call in APART.items():
        with pytest.raises(ValueError, match=f"^{message}"):
            call(rules)


@by_target
def test_positions_outside_of_an_axis(target: str) -> None:
    rules = module_of(RULES, target)
    for message, call in OUTSIDE.items():
        with pytest.raises(IndexError, match=f"^{message}"):
            call(rules)


@by_target
def test_statics_are_numbers(target: str) -> None:
    rules = module_of(RULES, target)
    for name, words in (("n", "integer"), ("a", "number, not ")):
        for value in NO_NUMBER if name == "a" else (*NO_NUMBER, 2.5, np.float64(2)):
            with pytest.raises(TypeError, match=rf"^power: {name} must .*{words}"):
                rules.power(one(2), **{name: value})
    for value in (2, np.float32(2), np.int64(2), np.array(2.0)):
        assert np.asarray(rules.power(one(2), a=value)).tolist() == [2.0, 2.0]


@by_target
def test_arguments_are_arrays(target: str) -> None:
    rules = module_of(RULES, target)
    for value in NO_ARRAY:
        for message, call in {
            "add: x ": lambda v: rules.add(v, 1.0),
            "add: y ": lambda v: rules.add(one(2), v),
            "pick: t ": lambda v: rules.pick(one(3), v),
        }.items():
            with pytest.raises(TypeError, match=f"^{message}"):
                call(value)


@pytest.mark.jax
def test_a_static_that_jax_traces_is_named() -> None:
    jax = pytest.importorskip("jax")
    rules = module_of(RULES, "jax")
    for name in ("n", "a"):
        with pytest.raises(TypeError, match=rf"^power: {name}, a static .* is traced"):
            jax.jit(lambda v, name=name: rules.power(one(2), **{name: v}))(2)
    for function in (jax.jit(rules.add), jax.grad(rules.add)):
        with pytest.raises(ValueError, match=r"^add: x and y"):
            function(one(2), one(3))


def test_upstream_gradients_and_tangents_of_numpy() -> None:
    rules = module_of(RULES, "numpy")
    pull = rules.add_vjp(one(2), one(2))[1]
    for call in (
        lambda: pull(one(3)),
        lambda: pull("1"),
        lambda: pull(),
        lambda: pull(one(2), one(2)),
        lambda: rules.add_jvp((one(2), one(2)), (one(3), None)),
        lambda: rules.add_jvp((one(2), one(2)), (one(2),)),
    ):
        with pytest.raises((TypeError, ValueError), match=r"^add: "):
            call()
