"""Large eager tensors of functions that XLA has fewer digits for go through graphs, a block
at a time; results that a gradient uses are no obstacle to either way.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from gradspec import compile_text
from tests.targets.emission import tf_module

pytestmark = pytest.mark.tf
tf = pytest.importorskip("tensorflow")

SOURCE = """
rule log_gamma(x, n: static = 2.0) -> y:
    assume x > 0
    y = n * lgamma(x)
    dx = dy * n * digamma(x)

rule ratio(a, b) -> y:
    assume a > 0, b > 0
    y = lgamma(a) - lgamma(b)

rule factorial(x) -> y:
    assume x > 0
    y = gamma(x)
    dx = dy * y * digamma(x)

rule logistic(x) -> y:
    y = 1 / (1 + exp(-x))
    dx = dy * y * sigmoid(-x)
"""

PART = 64
SIZE = 5 * PART + 7
INPUTS = {"log_gamma": 1, "ratio": 2, "factorial": 1, "logistic": 1}


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    return tf_module(SOURCE)


@pytest.fixture
def cuts(rules: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of tensors that are large already: how many were cut, time after time."""
    made: list[int] = []
    joined = rules._joined

    def spy(compute: Callable[..., Any], tensors: tuple[Any, ...], size: int) -> Any:
        made.append(len(tensors))
        return joined(compute, tensors, size)

    for name, value in {"_LONG": PART, "_BLOCK": PART, "_PART": PART}.items():
        monkeypatch.setattr(rules, name, value)
    monkeypatch.setattr(rules, "_SHAPES", 0)
    monkeypatch.setattr(rules, "_joined", spy)
    return made


def _x(*shape: int, seed: int = 3, dtype: str = "float64") -> Any:
    draw = np.random.default_rng(seed)
    return tf.constant(draw.uniform(0.5, 4, shape or (SIZE,)).astype(dtype))


def _inputs(name: str, dtype: str = "float64") -> list[Any]:
    return [_x(seed=seed, dtype=dtype) for seed in range(INPUTS[name])]


def _derivatives(function: Callable[..., Any], *inputs: Any) -> list[Any]:
    """The value, the gradients, and those of the sum of their squares."""
    with tf.GradientTape() as outer:
        outer.watch(inputs)
        with tf.GradientTape() as inner:
            inner.watch(inputs)
            y = function(*inputs)
        first = inner.gradient(y, inputs)
        total = tf.add_n([tf.reduce_sum(g * g) for g in first])
    return [y, *first, *outer.gradient(total, inputs)]


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("dtype", ("float32", "float64", "bfloat16"))
def test_parts_give_what_whole_tensors_do(
    rules: ModuleType,
    cuts: list[int],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    dtype: str,
) -> None:
    inputs, function = _inputs(name, dtype), getattr(rules, name)
    cut = _derivatives(function, *inputs)
    assert cuts
    del cuts[:]
    monkeypatch.setattr(rules, "_LONG", 1 << 40)
    whole = _derivatives(function, *inputs)
    assert not cuts
    near = {"float32": 2e-5, "float64": 1e-12, "bfloat16": 2e-2}[dtype]
    for ours, theirs in zip(cut, whole, strict=True):
        assert ours.dtype == theirs.dtype
        both = (tf.cast(v, tf.float64) for v in (ours, theirs))
        np.testing.assert_allclose(*both, rtol=near, atol=near)


@pytest.mark.parametrize("name", INPUTS)
def test_both_passes_are_cut(rules: ModuleType, cuts: list[int], name: str) -> None:
    inputs = _inputs(name)
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = getattr(rules, name)(*inputs)
    assert cuts == [len(inputs)]
    tape.gradient(y, inputs)
    assert cuts == [len(inputs), len(inputs) + 1]


def test_statics_shapes_and_a_last_block(rules: ModuleType, cuts: list[int]) -> None:
    x = _x(9, 31)
    y = rules.log_gamma(x, n=3.5)
    assert y.shape == x.shape
    np.testing.assert_allclose(y, 3.5 * tf.math.lgamma(x), rtol=1e-12)
    assert cuts == [1]


def test_others_go_the_plain_way(rules: ModuleType, cuts: list[int]) -> None:
    rules.log_gamma(_x(4 * PART - 1))
    rules.ratio(_x(8, PART), _x(PART))
    tf.function(rules.log_gamma)(_x())
    assert not cuts


def test_forward_mode(rules: ModuleType, cuts: list[int]) -> None:
    for name, slope in (
        ("log_gamma", lambda x: 2 * tf.math.digamma(x)),
        ("logistic", lambda x: tf.sigmoid(x) * tf.sigmoid(-x)),
    ):
        x = _x()
        with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as moved:
            y = getattr(rules, name)(x)
        np.testing.assert_allclose(moved.jvp(y), slope(x), rtol=1e-10, atol=1e-12)


def test_half_precision_under_a_tape_is_cut(rules: ModuleType, cuts: list[int]) -> None:
    """The gradient has what was computed before it was rounded, and nothing records that."""
    x = _x(dtype="bfloat16")
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = rules.logistic(x)
    assert cuts == [1]
    assert tape.gradient(y, x).dtype == tf.bfloat16


def test_dear_functions_alone_are_worth_a_graph() -> None:
    text = "rule f(x) -> y:\n    assume 0 < x, x < 1\n    y = {}\n    dx = dy * {}\n"
    dear = compile_text(text.format("lgamma(x)", "digamma(x)"), "tf")
    cheap = compile_text(text.format("log1p(x) * x", "(log1p(x) + x / (1 + x))"), "tf")
    assert "@_in_parts" in dear
    assert "def _fused(" not in dear
    assert "@_in_parts" not in cheap


def test_without_the_private_module_values_are_cut(
    cuts: list[int], rules: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a tape looks on nobody can tell then: gradients are not."""
    monkeypatch.setattr(rules, "_record", None)
    for name in ("log_gamma", "logistic"):
        x = _x()
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = getattr(rules, name)(x)
        assert cuts == [1]
        assert np.isfinite(tape.gradient(y, x)).all()
        assert cuts == [1]
        del cuts[:]
