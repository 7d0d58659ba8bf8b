"""NumPy modules: types, shapes, gradients, tangents, errors."""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.targets.emission import RULES, numpy_module

MORE = """
rule saved(x) -> y:
    e = exp(-x)
    y = x * e
    save e

rule counted(n: int, x) -> y:
    y = x * n + n

rule npt(x, value) -> residuals:
    residuals = x * value

rule lambda_of(x, k: static) -> y:
    y = sqrt(k) * x if k > 0 else 0
"""


@pytest.fixture(scope="module")
def module() -> ModuleType:
    return numpy_module(RULES + MORE)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_each_result_has_its_own_type_and_shape(
    module: ModuleType, dtype: type
) -> None:
    x = np.linspace(-1, 1, 12, dtype=dtype).reshape(3, 4)
    y = np.linspace(1, 2, 4, dtype=dtype)[None]
    (z, w), pullback = module.complex_op_vjp(x, y)
    dx, dy = pullback(np.ones_like(z), 1.0)
    assert {a.dtype for a in (z, w, dx, dy)} == {np.dtype(dtype)}
    assert [a.shape for a in (z, w, dx, dy)] == [(3, 4), (1, 4), (3, 4), (1, 4)]
    expected = x.astype(np.float64).sum(0, keepdims=True) + 2.0 * y.astype(np.float64)
    np.testing.assert_allclose(dy.astype(np.float64), expected, atol=2e-3)


def test_mixed_types_promote_and_each_gradient_goes_back(module: ModuleType) -> None:
    x, y = np.ones(3, np.float16), np.ones(3, np.float64)
    (z, _), pullback = module.complex_op_vjp(x, y)
    assert z.dtype == np.float64
    assert [g.dtype for g in pullback(z, z)] == [np.float16, np.float64]


def test_float16_is_rounded_once(module: ModuleType) -> None:
    x = np.arange(0, 0x7C00, 7, np.uint16).view(np.float16)
    exact = np.logaddexp(0.0, x.astype(np.float64)).astype(np.float16)
    found = module.log1pexp(x)
    wrong = found.view(np.int16).astype(int) - exact.view(np.int16).astype(int)
    assert np.abs(wrong).max() <= 1 and np.mean(wrong != 0) < 0.001


def test_scalars_lists_and_python_numbers(module: ModuleType) -> None:
    assert module.log1pexp(np.float32(100.0)) == 100.0
    assert module.log1pexp(np.float32(100.0)).dtype == np.float32
    assert module.square(3) == 9.0
    assert module.log1pexp([0.0, 100.0])[1] == 100.0
    # A Python number does not widen the arrays beside it.
    assert module.complex_op(np.ones(2, np.float32), 2.0)[0].dtype == np.float32


def test_every_argument_by_keyword(module: ModuleType) -> None:
    z, w = module.complex_op(y=3.0, x=2.0)
    (z2, w2), pullback = module.complex_op_vjp(y=3.0, x=2.0)
    assert (z, w) == (z2, w2)
    assert pullback(dw=1.0, dz=1.0)[1] == pullback(1.0, dw=1.0)[1] == 8.0
    with pytest.raises(TypeError, match="dw"):
        pullback(dz=1.0)
    assert module.swish(x=1.0, beta=0.0) == 0.5


def test_inputs_without_gradient_have_none(module: ModuleType) -> None:
    _, pullback = module.power_vjp(
        np.full(2, 2.0), np.array([2, 3]), np.array([True, False])
    )
    dx, dn, don = pullback(1.0)
    assert dn is None and don is None
    np.testing.assert_array_equal(dx, [4.0, 0.0])


def test_integer_inputs_do_not_widen(module: ModuleType) -> None:
    y = module.counted(np.array([1, 2]), np.ones(2, np.float32))
    assert y.dtype == np.float32
    np.testing.assert_array_equal(y, [2.0, 4.0])


@pytest.mark.parametrize(
    "value", [np.array([1, 2]), [1, 2], 1j, "text", np.array([True])]
)
def test_other_types_are_refused(module: ModuleType, value: object) -> None:
    with pytest.raises(
        TypeError, match=r"log1pexp: x must be a floating array, not .*astype"
    ):
        module.log1pexp(value)


def test_discrete_inputs_are_checked(module: ModuleType) -> None:
    with pytest.raises(TypeError, match="power: n must be an integer array"):
        module.power(1.0, 1.5, True)
    with pytest.raises(TypeError, match="power: on must be a boolean array"):
        module.power(1.0, 1, 1)
    with pytest.raises(TypeError, match="integer"):
        module.power_of(1.0, n=2.5)


def test_rank_is_checked(module: ModuleType) -> None:
    expected = r"square: x must have the shape \[\], not \(2, 1\)"
    for function in (module.square, module.square_vjp):
        with pytest.raises(ValueError, match=expected):
            function(np.ones((2, 1)))
    with pytest.raises(ValueError, match=r"scaled: a must have the shape \[\]"):
        module.scaled(np.ones(2), np.ones(2))


def test_an_upstream_gradient_of_another_shape_is_refused(module: ModuleType) -> None:
    _, pullback = module.log1pexp_vjp(np.ones(3))
    with pytest.raises(ValueError, match="shape"):
        pullback(np.ones(2))


@pytest.mark.parametrize("upstream", [None, 1j, "1", np.array([1.0, None])])
def test_an_upstream_gradient_that_is_no_number_is_refused(
    module: ModuleType, upstream: Any
) -> None:
    for x in (np.ones(2), np.ones(300_000)):
        _, pullback = module.log1pexp_vjp(x)
        with pytest.raises(TypeError):
            pullback(
                upstream if np.ndim(upstream) == 0 else np.resize(upstream, x.shape)
            )


def test_nan_in_nan_out(module: ModuleType) -> None:
    nan = np.array([np.nan])
    for name in ("log1pexp", "swish", "tanh_of"):
        assert np.isnan(getattr(module, name)(nan)).all(), name


def test_a_condition_with_nan_does_not_hold(module: ModuleType) -> None:
    assert module.spike(np.nan) == 0.0


def test_ordinary_values_warn_of_nothing(module: ModuleType) -> None:
    x = np.array([-1000.0, -1.0, 0.0, 1.0, 1000.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("log1pexp", "swish", "spike", "guarded", "sign_step", "tanh_of"):
            _, pullback = getattr(module, f"{name}_vjp")(x)
            assert np.isfinite(pullback(1.0)[0]).all(), name


def test_overrides(module: ModuleType) -> None:
    x = np.arange(3.0)
    y, pullback = module.reverse_gradient_vjp(x, scale=2.0)
    np.testing.assert_array_equal(pullback(np.ones(3))[0], [-2.0, -2.0, -2.0])
    assert not np.shares_memory(x, y)
    _, pullback = module.constants_vjp(np.ones(1), np.ones(4))
    dx, _ = pullback(np.ones(4), np.zeros(4))
    np.testing.assert_array_equal(dx, [8.0])  # two, in each of four places
    with pytest.raises(NotImplementedError, match=r"clip_gradient_jvp.*not linear"):
        module.clip_gradient_jvp((x,), (x,))


def test_a_tangent_is_not_what_was_given() -> None:
    text = (
        "rule through(soft, hard: nograd) -> y:\n"
        "    y = hard\n    surrogate y = soft\n\n"
        "rule still(x) -> y:\n    y = x\n"
        '    override dx = 0 because "a marker"\n'
    )
    module = numpy_module(text)
    given = np.ones(3)
    for shape in ((3,), (2, 3)):
        _, y_dot = module.through_jvp((given, np.ones(shape)), (given, None))
        y_dot += 1.0
        np.testing.assert_array_equal(y_dot, np.full(shape, 2.0))
    _, y_dot = module.still_jvp((given,), (given,))
    y_dot += 1.0
    np.testing.assert_array_equal(given, np.ones(3))


def test_what_comes_back_is_not_what_was_given(module: ModuleType) -> None:
    upstream = np.ones(3)
    _, pullback = module.sums_vjp(np.ones(3), np.ones(3))
    dx, _ = pullback(upstream, 0.0)
    dx += 1.0
    assert upstream.sum() == 3.0


def test_other_kinds_of_output(module: ModuleType) -> None:
    x = np.array([-2.0, 3.0], np.float32)
    y, sign, up, side = module.parts(x)
    assert [v.dtype for v in (y, sign, up, side)] == [
        np.float32,
        np.float32,
        bool,
        np.int64,
    ]
    _, pullback = module.parts_vjp(x)
    np.testing.assert_array_equal(pullback(1.0)[0], [-4.0, 6.0])


def test_names_of_the_text_itself_are_free_for_authors(module: ModuleType) -> None:
    outputs, pullback = module.npt_vjp(2.0, value=3.0)
    assert (outputs, *pullback(1.0)) == (6.0, 3.0, 2.0)


def test_a_static_decides_in_python(module: ModuleType) -> None:
    assert module.lambda_of(2.0, k=4.0) == 4.0
    y, pullback = module.lambda_of_vjp(np.ones(3, np.float32), k=-4.0)
    assert (y.tolist(), y.dtype) == ([0.0] * 3, np.float32)
    np.testing.assert_array_equal(pullback(np.ones(3))[0], np.zeros(3))
    _, y_dot = module.lambda_of_jvp((np.ones(3),), (np.ones(3),), k=-4.0)
    np.testing.assert_array_equal(y_dot, np.zeros(3))


def test_rules_without_a_floating_tensor(module: ModuleType) -> None:
    y, pullback = module.counts_vjp(np.array([4, 9]))
    np.testing.assert_array_equal(y, [2.5, 3.5])
    assert pullback(1.0) == (None,)
