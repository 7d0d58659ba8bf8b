"""Results in arrays that are given: ``f(x, out=y)``."""

from __future__ import annotations

import inspect
import pickle
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from gradspec.targets import emit
from tests.targets.emission import imported, planned

RULES = """
rule swish(x, beta: static = 1.0) -> y:
    y = x / (1 + exp(-beta * x))

rule pair(x, y) -> (z, w):
    z = x * y + sin(x)
    w = y**2 + x

rule choice(x, n: int) -> (k: int, big: bool):
    k = n + 1
    big = x > 0

rule weights(x[..., n]) -> y[..., n]:
    y[i] = exp(x[i]) / sum(exp(x[j]) for j)

rule product(x, t) -> y:
    y = x * exp(-t**2)

rule named(out) -> y:
    y = out * exp(out)
"""
SIZES = ((), (3,), (7, 5), (2 * (1 << 17) + 1000,), (1 << 9, 1 << 9))


@pytest.fixture(scope="module")
def rules() -> ModuleType:
    module = emit(planned(RULES), "numpy").value
    assert module is not None
    return imported(module.text, "numpy_out")


def _randn(
    shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 0
) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).standard_normal(shape), dtype)


@pytest.mark.parametrize("shape", SIZES)
@pytest.mark.parametrize("dtype", (np.float16, np.float32, np.float64))
def test_the_same_bits_in_the_array_given(
    rules: ModuleType, shape: tuple[int, ...], dtype: Any
) -> None:
    x = _randn(shape, dtype)
    out = np.full_like(x, 7)
    assert rules.swish(x, beta=1.7, out=out) is out
    np.testing.assert_array_equal(out, rules.swish(x, beta=1.7))


@pytest.mark.parametrize("shape", SIZES)
def test_one_array_for_each_output(rules: ModuleType, shape: tuple[int, ...]) -> None:
    x, y = _randn(shape), _randn(shape, seed=1)
    out = np.empty_like(x), np.empty_like(x)
    found = rules.pair(x, y, out=out)
    assert all(a is b for a, b in zip(found, out, strict=True))
    for one, other in zip(out, rules.pair(x, y), strict=True):
        np.testing.assert_array_equal(one, other)


def test_outputs_of_other_kinds(rules: ModuleType) -> None:
    x, n = _randn((4,)), np.arange(4)
    out = np.empty(4, np.int64), np.empty(4, np.bool_)
    rules.choice(x, n, out=out)
    np.testing.assert_array_equal(out[0], n + 1)
    np.testing.assert_array_equal(out[1], x > 0)


def test_rules_with_named_axes(rules: ModuleType) -> None:
    x = _randn((3, 5))
    out = np.empty_like(x)
    rules.weights(x, out=out)
    np.testing.assert_array_equal(out, rules.weights(x))


@pytest.mark.parametrize("shape", SIZES[1:])
def test_the_argument_itself(rules: ModuleType, shape: tuple[int, ...]) -> None:
    x = _randn(shape)
    expected = rules.swish(x)
    rules.swish(x, out=x)
    np.testing.assert_array_equal(x, expected)


@pytest.mark.parametrize("shift", (1, 1 << 17))
@pytest.mark.parametrize("size", (1000, 1 << 18))
def test_memory_that_overlaps(rules: ModuleType, size: int, shift: int) -> None:
    memory = _randn((size + shift,))
    expected = rules.swish(memory[:size].copy())
    rules.swish(memory[:size], out=memory[shift:])
    np.testing.assert_array_equal(memory[shift:], expected)


def test_both_arguments_in_each_others_place(rules: ModuleType) -> None:
    x, y = _randn((1 << 18,)), _randn((1 << 18,), seed=1)
    expected = rules.pair(x, y)
    rules.pair(x, y, out=(y, x))
    for one, other in zip((y, x), expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("rows", (4, 1 << 9))
def test_an_array_whose_elements_are_apart(rules: ModuleType, rows: int) -> None:
    x = _randn((rows, 1 << 9))
    out = np.zeros((rows, 1 << 10), np.float32)
    rules.swish(x, out=out[:, ::2])
    np.testing.assert_array_equal(out[:, ::2], rules.swish(x))
    assert (out[:, 1::2] == 0).all()


@pytest.mark.parametrize("size", (10, 1 << 18))
def test_what_does_not_fit_is_refused_untouched(rules: ModuleType, size: int) -> None:
    x = _randn((size,))
    wrong = {
        "float32, not float64": (TypeError, np.zeros(size)),
        "not list": (TypeError, [0.0] * size),
        "must have the shape": (ValueError, np.zeros((size, 1), np.float32)),
        "must have the shape .* not": (ValueError, np.zeros(size - 1, np.float32)),
        "1 arrays, not 2": (ValueError, (np.zeros_like(x), np.zeros_like(x))),
    }
    for message, (kind, out) in wrong.items():
        with pytest.raises(kind, match=message):
            rules.swish(x, out=out)
        for array in out if isinstance(out, tuple) else (out,):
            assert not np.any(array)
    frozen = np.zeros_like(x)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        rules.swish(x, out=frozen)
    first, second = np.zeros_like(x), np.zeros(size)
    with pytest.raises(TypeError, match="float32, not float64"):
        rules.pair(x, x, out=(first, second))
    assert not first.any()


def test_an_input_of_that_name(rules: ModuleType) -> None:
    x = _randn((3,))
    y = np.empty_like(x)
    rules.named(x, out=y)
    np.testing.assert_array_equal(y, rules.named(out_=x))


def test_a_pullback_can_be_pickled(rules: ModuleType) -> None:
    x = _randn((5,))
    _, pullback = rules.swish_vjp(x, beta=1.7)
    again = pickle.loads(pickle.dumps(pullback))
    np.testing.assert_array_equal(again(x)[0], pullback(x)[0])


def test_the_last_operation_fills_the_array(
    rules: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each block, too: nothing is copied."""

    def refuse(*_: Any) -> None:
        raise AssertionError("copied")

    monkeypatch.setattr(rules.np, "copyto", refuse)
    for shape in SIZES:
        x = _randn(shape)
        out = np.full_like(x, 7)
        assert rules.product(x, x, out=out) is out
        np.testing.assert_array_equal(out, rules.product(x, x))


@pytest.mark.parametrize(
    ("x", "t", "out"),
    (((3,), (2, 3), (3,)), ((2, 3), (3,), (3,)), ((3,), (3,), (2, 3)), ((), (3,), ())),
)
def test_the_shape_is_that_of_the_result(
    rules: ModuleType, x: tuple[int, ...], t: tuple[int, ...], out: tuple[int, ...]
) -> None:
    with pytest.raises(ValueError, match="shape"):
        rules.product(_randn(x), _randn(t), out=_randn(out))


@pytest.mark.parametrize("shape", SIZES[1:])
def test_an_array_of_another_type_is_refused(
    rules: ModuleType, shape: tuple[int, ...]
) -> None:
    x = _randn(shape)
    for dtype in (np.float64, np.float16):
        with pytest.raises(TypeError, match="float32"):
            rules.product(x, x, out=np.empty(shape, dtype))
    half = x.astype(np.float16)
    out = np.empty_like(half)
    assert rules.product(half, half, out=out) is out
    np.testing.assert_array_equal(out, rules.product(half, half))


WEIGHTS = """
rule weights(x[..., n]) -> y[..., n]:
    y[i] = exp(x[i]) / sum(exp(x[j]) for j)
"""


def test_softmax_fills_the_place_it_is_given_and_nothing_else() -> None:
    module = emit(planned(WEIGHTS), "numpy").value
    assert module is not None
    rules = imported(module.text, "numpy_softmax_out")
    assert "out=_direct(out, x)" in inspect.getsource(rules.weights)
    for scale in (1.0, 60.0):
        x = scale * np.random.default_rng(2).standard_normal((9000, 70))
        x = x.astype(np.float32)
        given, place = x.copy(), np.empty_like(x)
        whole = rules.weights(x)
        assert rules.weights(x, out=place) is place
        np.testing.assert_array_equal(x, given)
        np.testing.assert_array_equal(place, whole)
        np.testing.assert_allclose(whole.sum(axis=1), 1.0, rtol=1e-5)
        assert rules.weights(x, out=x) is x
        np.testing.assert_array_equal(x, whole)
