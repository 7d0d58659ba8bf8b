"""Rules over named axes in NumPy: values, gradients, shapes, and what is refused."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest

from tests.targets.emission import numpy_module
from tests.targets.indexed_rules import RULES


@pytest.fixture(scope="module")
def module() -> ModuleType:
    return numpy_module(RULES)


def test_tangents_do_not_share_memory_with_what_was_given() -> None:
    rule = "rule turned(a[..., n, m]) -> b[..., m, n]:\n b[i, j] = a[j, i]\n"
    a_dot = np.ones((2, 3))
    _, b_dot = numpy_module(rule).turned_jvp((np.zeros((2, 3)),), (a_dot,))
    assert not np.shares_memory(a_dot, b_dot)


def test_an_input_that_does_not_move_has_no_tangent(module: ModuleType) -> None:
    x, w, b = np.ones((4, 2)), np.ones((3, 2)), np.ones(3)
    y, y_dot = module.linear_jvp((x, w, b), (None, None, 2 * b))
    np.testing.assert_array_equal(y, np.full((4, 3), 3.0))
    np.testing.assert_array_equal(y_dot, np.full((4, 3), 2.0))


# --- shapes ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shapes", "message"),
    [
        ("linear", [(2, 5), (3, 4), (3,)], r"linear: w must have the shape \[m, k\]"),
        ("linear", [(5,), (3, 5, 1), (3,)], r"with k = 5, not \(3, 5, 1\)"),
        ("linear", [(5,), (3, 5), (2, 3)], r"linear: b must have the shape \[m\]"),
        ("linear", [(), (3, 5), (3,)], r"x must have the shape \[..., k\], not \(\)"),
        (
            "fixed",
            [(4,), (2, 2)],
            r"fixed: x must have the shape \[..., 3\], not \(4,\)",
        ),
        ("squares", [(2, 3)], r"a must have the shape \[..., n, n\] with n = 2"),
        ("scaled_rows", [(2, 3), (4,)], "broadcast"),
    ],
)
def test_shapes_that_contradict_the_declaration(
    module: ModuleType, name: str, shapes: list[tuple[int, ...]], message: str
) -> None:
    for suffix in ("", "_vjp"):
        with pytest.raises(ValueError, match=message):
            getattr(module, name + suffix)(*(np.ones(shape) for shape in shapes))


def test_a_static_that_is_a_size_is_checked_too(module: ModuleType) -> None:
    assert module.conv1d(np.ones(4), np.ones(2), m=3).shape == (3,)
    with pytest.raises(IndexError, match="axis of size 4"):
        module.conv1d(np.ones(4), np.ones(2), m=4)


@pytest.mark.parametrize("t", [-1, 3])
def test_a_position_outside_is_an_error(module: ModuleType, t: int) -> None:
    with pytest.raises(IndexError, match="axis of size 3"):
        module.cross_entropy(np.ones(3), np.array(t))
    with pytest.raises(IndexError, match="axis of size 3"):
        module.embedding(np.ones((3, 2)), np.array([0, t]))


# --- arrays ----------------------------------------------------------------------------


def test_results_do_not_share_memory_with_what_was_given(module: ModuleType) -> None:
    a = np.ones((2, 2))
    for value in (*module.squares(a), module.columns(a)):
        assert not np.shares_memory(a, value)
    _, pullback = module.scaled_rows_vjp(np.ones(3), 1.0)
    dy = np.ones(3)
    assert not any(np.shares_memory(dy, gradient) for gradient in pullback(dy))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_types_are_those_of_the_inputs(module: ModuleType, dtype: type) -> None:
    x, w, b = np.ones((4, 2), dtype), np.ones((3, 2), dtype), np.ones(3, dtype)
    y, pullback = module.linear_vjp(x, w, b)
    assert y.dtype == dtype
    assert all(gradient.dtype == dtype for gradient in pullback(y))


def test_half_sums_are_computed_in_float32(module: ModuleType) -> None:
    x = np.full(4096, 1.0, np.float16)
    loss = module.mean_square(x[None], np.zeros_like(x[None]))
    assert loss == 1.0


def test_empty_axes(module: ModuleType) -> None:
    y, pullback = module.linear_vjp(np.ones((2, 0)), np.ones((3, 0)), np.ones(3))
    np.testing.assert_array_equal(y, np.ones((2, 3)))
    assert [g.shape for g in pullback(y)] == [(2, 0), (3, 0), (3,)]
    y, pullback = module.embedding_vjp(np.ones((3, 2)), np.zeros((2, 0), int))
    assert y.shape == (2, 0, 2)
    np.testing.assert_array_equal(pullback(y)[0], np.zeros((3, 2)))
    assert module.softmax(np.ones((2, 0))).shape == (2, 0)


def test_logsumexp_of_infinities(module: ModuleType) -> None:
    loss = module.cross_entropy
    assert loss(np.array([-np.inf, 1000.0]), 1) == 0.0
    assert np.isnan(loss(np.array([np.nan, 1.0]), 1))


def test_numbers_broadcast_as_upstream(module: ModuleType) -> None:
    _, pullback = module.squares_vjp(np.ones((2, 2)))
    np.testing.assert_allclose(pullback(1.0, 0.0, 0.0)[0], np.eye(2))


def test_a_gradient_that_is_zero() -> None:
    module = numpy_module("rule f(x[..., n], a) -> y[..., n]:\n y[i] = 0 * x[i] + a\n")
    _, pullback = module.f_vjp(np.ones((2, 3)), np.float32(1.0))
    dx, da = pullback(np.ones((2, 3)))
    np.testing.assert_array_equal(dx, np.zeros((2, 3)))
    assert da == 6.0


def test_what_a_static_leaves_out_has_gradient_zero() -> None:
    module = numpy_module(
        "rule f(x[..., n], k: static int = 2) -> y[..., n]:\n y[i] = x[i]**k\n"
    )
    x = np.arange(3.0)
    np.testing.assert_array_equal(module.f_vjp(x, k=0)[1](1.0)[0], np.zeros(3))
    np.testing.assert_array_equal(module.f_vjp(x, k=3)[1](1.0)[0], 3.0 * x**2)
