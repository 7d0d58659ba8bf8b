"""NumPy modules where NumPy is unlike the others: calls, types, memory, tangents, masks."""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.targets.emission import ELEMENTWISE, INDEXED, module_of, own_rules

OWN = own_rules("numpy")


@pytest.fixture(scope="module")
def module() -> ModuleType:
    return module_of(ELEMENTWISE, "numpy")


@pytest.fixture(scope="module")
def indexed() -> ModuleType:
    return module_of(INDEXED, "numpy")


@pytest.fixture(scope="module")
def own() -> ModuleType:
    return module_of(OWN, "numpy")


# --- arguments -----------------------------------------------------------------------------


def test_long_doubles_stay_long(module: ModuleType) -> None:
    x = np.linspace(-1, 1, 12, dtype=np.longdouble).reshape(3, 4)
    (z, w), pullback = module.complex_op_vjp(x, x[:1])
    dx, dy = pullback(np.ones_like(z), 1.0)
    assert {a.dtype for a in (z, w, dx, dy)} == {x.dtype}
    assert [a.shape for a in (z, w, dx, dy)] == [(3, 4), (1, 4), (3, 4), (1, 4)]


def test_float16_is_rounded_once(module: ModuleType) -> None:
    x = np.arange(0, 0x7C00, 7, np.uint16).view(np.float16)
    exact = np.logaddexp(0.0, x.astype(np.float64)).astype(np.float16)
    found = module.log1pexp(x)
    wrong = found.view(np.int16).astype(int) - exact.view(np.int16).astype(int)
    assert np.abs(wrong).max() <= 1 and np.mean(wrong != 0) < 0.001


def test_half_sums_are_computed_in_float32(indexed: ModuleType) -> None:
    x = np.full((1, 4096), 1.0, np.float16)
    assert indexed.mean_square(x, np.zeros_like(x)) == 1.0


def test_a_factor_that_occurs_twice_counts_twice(indexed: ModuleType) -> None:
    x, z, w = (
        np.random.default_rng(0).normal(size=s) for s in ((3, 2), (4, 2), (3, 4))
    )
    wanted = np.einsum("ij,ijl->l", w, (x[:, None] - z) ** 2)
    np.testing.assert_allclose(indexed.spread_of(x, z, w), wanted)


def test_scalars_lists_and_python_numbers(module: ModuleType, own: ModuleType) -> None:
    """A Python number or an integer array does not widen the arrays beside it."""
    assert module.log1pexp(np.float32(100.0)) == 100.0
    assert module.log1pexp(np.float32(100.0)).dtype == np.float32
    assert module.square(3) == 9.0
    assert module.log1pexp([0.0, 100.0])[1] == 100.0
    assert module.complex_op(np.ones(2, np.float32), 2.0)[0].dtype == np.float32
    y = own.counted(np.array([1, 2]), np.ones(2, np.float32))
    assert (y.dtype, y.tolist()) == (np.float32, [2.0, 4.0])


def test_every_argument_by_keyword(module: ModuleType) -> None:
    z, w = module.complex_op(y=3.0, x=2.0)
    (z2, w2), pullback = module.complex_op_vjp(y=3.0, x=2.0)
    assert (z, w) == (z2, w2)
    assert pullback(dw=1.0, dz=1.0)[1] == pullback(1.0, dw=1.0)[1] == 8.0
    with pytest.raises(TypeError, match="dw"):
        pullback(dz=1.0)
    assert module.swish(x=1.0, beta=0.0) == 0.5


@pytest.mark.parametrize(
    "value", [np.array([1, 2]), [1, 2], 1j, "text", np.array([True])]
)
def test_other_types_are_refused(module: ModuleType, value: object) -> None:
    with pytest.raises(
        TypeError, match=r"log1pexp: x must be a floating array, not .*astype"
    ):
        module.log1pexp(value)


def test_discrete_inputs_and_ranks_are_checked(module: ModuleType) -> None:
    with pytest.raises(TypeError, match="power: n must be an integer array"):
        module.power(1.0, 1.5, True)
    with pytest.raises(TypeError, match="power: on must be a boolean array"):
        module.power(1.0, 1, 1)
    expected = r"square: x must have the shape \[\], not \(2, 1\)"
    for function in (module.square, module.square_vjp):
        with pytest.raises(ValueError, match=expected):
            function(np.ones((2, 1)))
    with pytest.raises(ValueError, match=r"scaled: a must have the shape \[\]"):
        module.scaled(np.ones(2), np.ones(2))


def test_a_static_that_is_a_size_is_checked_too(indexed: ModuleType) -> None:
    assert indexed.conv1d(np.ones(4), np.ones(2), m=3).shape == (3,)
    with pytest.raises(IndexError, match="axis of size 4"):
        indexed.conv1d(np.ones(4), np.ones(2), m=4)


def test_a_static_decides_in_python(own: ModuleType) -> None:
    assert own.rooted(2.0, k=4.0) == 4.0
    y, pullback = own.rooted_vjp(np.ones(3, np.float32), k=-4.0)
    assert (y.tolist(), y.dtype) == ([0.0] * 3, np.float32)
    np.testing.assert_array_equal(pullback(np.ones(3))[0], np.zeros(3))
    _, y_dot = own.rooted_jvp((np.ones(3),), (np.ones(3),), k=-4.0)
    np.testing.assert_array_equal(y_dot, np.zeros(3))
    x = np.arange(3.0)
    np.testing.assert_array_equal(own.raised_vjp(x, k=0)[1](1.0)[0], np.zeros(3))
    np.testing.assert_array_equal(own.raised_vjp(x, k=3)[1](1.0)[0], 3.0 * x**2)


def test_ordinary_values_warn_of_nothing(module: ModuleType) -> None:
    x = np.array([-1000.0, -1.0, 0.0, 1.0, 1000.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("log1pexp", "swish", "spike", "guarded", "sign_step", "tanh_of"):
            _, pullback = getattr(module, f"{name}_vjp")(x)
            assert np.isfinite(pullback(1.0)[0]).all(), name


def test_logsumexp_of_infinities(indexed: ModuleType) -> None:
    loss = indexed.cross_entropy
    assert loss(np.array([-np.inf, 1000.0]), 1) == 0.0
    assert np.isnan(loss(np.array([np.nan, 1.0]), 1))


# --- upstream gradients and tangents -------------------------------------------------------


def test_an_upstream_gradient_of_another_shape_is_refused(module: ModuleType) -> None:
    _, pullback = module.log1pexp_vjp(np.ones(3))
    with pytest.raises(ValueError, match="shape"):
        pullback(np.ones(2))


@pytest.mark.parametrize("upstream", [None, 1j, "1", np.array([1.0, None])])
def test_an_upstream_gradient_that_is_no_number_is_refused(
    module: ModuleType, upstream: Any
) -> None:
    _, pullback = module.log1pexp_vjp(np.ones(2))
    with pytest.raises(TypeError):
        pullback(upstream)


def test_numbers_broadcast_as_upstream(indexed: ModuleType, own: ModuleType) -> None:
    _, pullback = indexed.squares_vjp(np.ones((2, 2)))
    np.testing.assert_allclose(pullback(1.0, 0.0, 0.0)[0], np.eye(2))
    _, pullback = own.vanishing_vjp(np.ones((2, 3)), np.float32(1.0))
    dx, da = pullback(1.0)
    assert (dx.tolist(), da) == ([[0.0] * 3] * 2, 6.0)


def test_an_input_that_does_not_move_has_no_tangent(indexed: ModuleType) -> None:
    x, w, b = np.ones((4, 2)), np.ones((3, 2)), np.ones(3)
    y, y_dot = indexed.linear_jvp((x, w, b), (None, None, 2 * b))
    np.testing.assert_array_equal(y, np.full((4, 3), 3.0))
    np.testing.assert_array_equal(y_dot, np.full((4, 3), 2.0))


def test_what_is_not_linear_has_no_forward_mode(module: ModuleType) -> None:
    x = np.arange(3.0)
    with pytest.raises(NotImplementedError, match=r"clip_gradient_jvp.*not linear"):
        module.clip_gradient_jvp((x,), (x,))


def test_results_do_not_share_memory_with_what_was_given(
    module: ModuleType, indexed: ModuleType, own: ModuleType
) -> None:
    x, a = np.arange(3.0), np.ones((2, 2))
    y, pullback = module.reverse_gradient_vjp(x, scale=2.0)
    shared = [(x, y)]
    shared += [(a, value) for value in (*indexed.squares(a), indexed.columns(a))]
    dy = np.ones(3)
    _, summed = module.sums_vjp(x, x)
    _, rows = indexed.scaled_rows_vjp(x, 1.0)
    shared += [(dy, g) for g in (*pullback(dy), *summed(dy, 0.0), *rows(dy))]
    shared += [(a, own.turned_jvp((a,), (a,))[1])]
    for shape in ((3,), (2, 3)):
        shared += [(x, own.through_jvp((x, np.ones(shape)), (x, None))[1])]
    shared += [(x, own.still_jvp((x,), (x,))[1])]
    assert not any(np.shares_memory(*pair) for pair in shared)


# --- masked arrays: `np.asarray` would take what the mask hides, in silence ----------------


def _masked(values: Any) -> Any:
    hidden = np.zeros(np.shape(values), bool)
    hidden[..., 0] = True
    return np.ma.array(values, mask=hidden)


def test_a_masked_array_is_refused(module: ModuleType, indexed: ModuleType) -> None:
    x, t = np.ones((2, 3)), np.zeros(2, int)
    _, pull = module.swish_vjp(x)
    _, pulled = indexed.cross_entropy_vjp(x, t)
    for call in (
        lambda: module.swish(_masked(x)),
        lambda: module.swish_vjp(_masked(x)),
        lambda: module.swish_jvp((_masked(x),), (x,)),
        lambda: module.swish_jvp((x,), (_masked(x),)),
        lambda: pull(_masked(x)),
        lambda: indexed.cross_entropy(_masked(x), t),
        lambda: indexed.cross_entropy(x, _masked(t)),
        lambda: pulled(_masked(np.ones(2))),
        lambda: module.maskf(_masked(x > 0), 1, x),
    ):
        with pytest.raises(TypeError, match="would lose its mask"):
            call()
    np.testing.assert_array_equal(module.swish(np.ma.array(x)), module.swish(x))
