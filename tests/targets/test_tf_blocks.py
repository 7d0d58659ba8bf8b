"""Long eager tensors go through XLA, as they are or in blocks; short ones, graphs, and
whatever a tape looks at, do not.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from gradspec import compile_text
from tests.targets.emission import RULES, tf_module

pytestmark = pytest.mark.tf
tf = pytest.importorskip("tensorflow")

BLOCK = 64
SIZES = (BLOCK, 2 * BLOCK, 2 * BLOCK + 7)


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return tf_module(RULES)


@pytest.fixture
def blocks(rules: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tensors were cut, time after time."""
    made: list[int] = []
    joined = rules._joined

    def spy(compute: Callable[..., Any], tensors: tuple[Any, ...], size: int) -> Any:
        made.append(len(tensors))
        return joined(compute, tensors, size)

    _cut(rules, monkeypatch)
    monkeypatch.setattr(rules, "_joined", spy)
    return made


def _cut(rules: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every tensor of a block is cut into blocks."""
    monkeypatch.setattr(rules, "_LONG", BLOCK)
    monkeypatch.setattr(rules, "_BLOCK", BLOCK)
    monkeypatch.setattr(rules, "_SHAPES", 0)


def _normal(*shape: int, seed: int = 7, dtype: str = "float32") -> Any:
    return tf.constant(np.random.default_rng(seed).normal(size=shape).astype(dtype))


def _passes(function: Callable[..., Any], *inputs: Any) -> list[Any]:
    """Outputs and gradients."""
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs = tf.nest.flatten(function(*inputs))
    upstream = [
        _normal(*y.shape, seed=k, dtype=y.dtype.name) for k, y in enumerate(outputs)
    ]
    return [*outputs, *tape.gradient(outputs, inputs, output_gradients=upstream)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["log1pexp", "spike", "swish"])
def test_blocks_give_what_whole_tensors_do(
    rules: ModuleType, blocks: list[int], name: str, size: int
) -> None:
    inputs = (_normal(size),)
    cut = _passes(getattr(rules, name), *inputs)
    assert blocks
    del blocks[:]
    rules._LONG = 1 << 20
    whole = _passes(getattr(rules, name), *inputs)
    assert not blocks
    for ours, theirs in zip(cut, whole, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-7)


def test_shapes_types_and_statics_stay(rules: ModuleType, blocks: list[int]) -> None:
    x = _normal(9, 15, dtype="float16")
    y, dx = _passes(lambda x: rules.swish(x, beta=1.7), x)
    assert blocks == [1, 2]
    assert y.shape == dx.shape == x.shape
    assert y.dtype == dx.dtype == tf.float16
    expected = np.asarray(x, "f8") / (1 + np.exp(-1.7 * np.asarray(x, "f8")))
    np.testing.assert_allclose(y, expected, rtol=2e-3)


def test_second_derivatives_are_recorded(rules: ModuleType, blocks: list[int]) -> None:
    x = _normal(2 * BLOCK + 7, dtype="float64")
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = rules.log1pexp(x)
        dx = inner.gradient(y, x)
    s = 1 / (1 + np.exp(-np.asarray(x)))
    np.testing.assert_allclose(outer.gradient(dx, x), s * (1 - s), rtol=1e-12)
    assert blocks == [1]  # the values alone


def test_small_broadcast_and_graph_tensors_go_the_plain_way(
    rules: ModuleType, blocks: list[int]
) -> None:
    _passes(rules.log1pexp, _normal(BLOCK - 1))
    _passes(rules.bce, tf.fill((BLOCK, 2), 0.3), tf.fill((2,), 0.7))
    tf.function(rules.log1pexp)(_normal(BLOCK))
    assert not blocks


def test_a_few_shapes_are_compiled_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = tf_module(f"{RULES}\n\n")
    monkeypatch.setattr(module, "_LONG", BLOCK)
    monkeypatch.setattr(module, "_SHAPES", 1)
    narrow: list[Any] = []
    asked = module._is_narrow

    def spy(tensors: tuple[Any, ...]) -> Any:
        if tf.executing_eagerly():  # and is not traced for XLA
            narrow.append(tuple(tensors[0].shape))
        return asked(tensors)

    monkeypatch.setattr(module, "_is_narrow", spy)
    first, other = _normal(9, 15), _normal(15, 9)
    y, dx = _passes(module.log1pexp, first)
    np.testing.assert_array_equal(y, module.log1pexp(first))
    assert not narrow  # XLA had it, and nobody was asked about float64
    _passes(module.log1pexp, other)
    assert {*narrow} == {(15, 9)}
    x = np.asarray(first, "f8")
    np.testing.assert_allclose(y, np.log1p(np.exp(x)), rtol=1e-6)
    upstream = _normal(9, 15, seed=0)
    np.testing.assert_allclose(dx, upstream / (1 + np.exp(-x)), rtol=1e-6)


def test_without_xla_the_plain_way_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = tf_module(f"{RULES}\n\n\n")

    def refused(*_: Any) -> Any:
        raise tf.errors.UnimplementedError(None, None, "no XLA")

    x = _normal(BLOCK)
    whole = _passes(rules.log1pexp, x)
    _cut(rules, monkeypatch)
    monkeypatch.setattr(rules, "_joined", refused)
    for ours, theirs in zip(_passes(rules.log1pexp, x), whole, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.fixture
def unrecorded(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module where TensorFlow has no `record`, which is no public name."""
    from tensorflow.python import eager

    monkeypatch.delattr(eager, "record")
    monkeypatch.setitem(sys.modules, "tensorflow.python.eager.record", None)
    module = tf_module(f"{RULES}\n")
    assert module._record is None
    return module


@pytest.mark.parametrize("wrap", [lambda f: f, tf.function], ids=["eager", "graph"])
def test_rules_live_without_the_private_module(
    rules: ModuleType, unrecorded: ModuleType, wrap: Callable[..., Any]
) -> None:
    x, y = _normal(5), _normal(5, seed=8)
    for name, inputs in {
        "log1pexp": (x,),
        "spike": (x,),
        "complex_op": (x, y),
    }.items():
        ours = _passes(wrap(getattr(unrecorded, name)), *inputs)
        recorded = _passes(wrap(getattr(rules, name)), *inputs)
        for one, other in zip(ours, recorded, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-6)


def test_without_the_private_module_rules_are_differentiated_twice(
    unrecorded: ModuleType,
) -> None:
    x = _normal(5, dtype="float64")
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = unrecorded.log1pexp(x)
        dx = inner.gradient(y, x)
    s = 1 / (1 + np.exp(-np.asarray(x)))
    np.testing.assert_allclose(outer.gradient(dx, x), s * (1 - s), rtol=1e-12)


@pytest.mark.parametrize(
    "call",
    [
        "lgamma(x)",
        "log1p(x)",
        "erfcx(x)",
        "ndtri(x)",
        "asin(x)",
        "atanh(x)",
        "logit(x)",
    ],
)
def test_what_xla_computes_with_fewer_digits_goes_the_plain_way(call: str) -> None:
    text = "rule f(x) -> y:\n    assume 0 < x, x < 1\n    y = tanh(x) * {} + exp(x)\n"
    assert "@_in_blocks" not in compile_text(text.format(call), "tf")
    assert "@_in_blocks" in compile_text(text.format("erf(x)"), "tf")


def test_a_static_parameter_with_ever_new_values_is_no_longer_compiled(
    rules: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiling at every step of a schedule takes a hundred times what the step takes."""
    monkeypatch.setattr(rules, "_LONG", BLOCK)
    monkeypatch.setattr(rules, "_VALUES", 2)
    monkeypatch.setattr(rules, "_COUNTS", {})
    compiled: list[Any] = []
    fused = rules._fused

    def spy(function: Callable[..., Any]) -> Any:
        compiled.append(function)
        return fused(function)

    monkeypatch.setattr(rules, "_fused", spy)
    v = _normal(BLOCK)
    for k in (0.81, 0.82, 0.83, 0.84):
        _, slope = _passes(functools.partial(rules.spike, k=k), v)
        want = _normal(BLOCK, seed=0) / (1 + k * np.abs(v)) ** 2
        np.testing.assert_allclose(slope, want, rtol=1e-5)
    assert len(compiled) == 4  # two values, two passes
    _passes(functools.partial(rules.swish, beta=0.81), v)
    assert len(compiled) == 6  # each rule has values of its own
