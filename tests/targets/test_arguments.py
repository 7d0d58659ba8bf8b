"""What the functions of every target make of their arguments: types, shapes, statics, NaN."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tests.calling import by_target, called
from tests.targets.emission import ELEMENTWISE, INDEXED, module_of, own_rules, text_of

OWN = own_rules("arguments")

typed = pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])


@by_target
@typed
def test_each_result_has_its_own_type_and_shape(target: str, dtype: type) -> None:
    """Constants, too."""
    x, y = np.ones((3, 1), dtype), np.ones(4, dtype)
    found = called(target, module_of(OWN, target), "constants", (x, y))
    (z, c), (dx, dy) = found
    assert {a.dtype for a in (z, c, dx, dy)} == {np.dtype(dtype)}
    assert [a.shape for a in (z, c, dx, dy)] == [(3, 4), (3, 4), (3, 1), (4,)]
    ones = [np.ones((3, 4), dtype)] * 2
    _, (dx, dy) = called(target, module_of(OWN, target), "constants", (x, y), ones)
    assert dx.tolist() == [[8.0]] * 3  # two, in each of four places
    assert dy.tolist() == [3.0] * 4


@pytest.mark.parametrize("target", ["numpy", "torch", "jax"])
def test_mixed_types_promote_and_gradients_go_back(target: str) -> None:
    """TensorFlow promotes nothing."""
    rules = module_of(ELEMENTWISE, target)
    x, y = np.ones((3, 4), np.float16), np.ones(4, np.float64)
    (z, w), (dx, dy) = called(target, rules, "complex_op", (x, y))
    assert {z.dtype, w.dtype if target != "jax" else z.dtype} == {np.dtype(float)}
    assert (dx.dtype, dx.shape) == (x.dtype, x.shape)
    assert (dy.dtype, dy.shape) == (y.dtype, y.shape)


@by_target
def test_other_kinds_of_output(target: str) -> None:
    x = np.array([-2.0, 3.0], np.float32)
    ones = [np.ones(2, np.float32), None, None, None]
    if target == "jax":  # a nograd output has a cotangent there
        ones[1] = 5 * ones[0]
    rules = module_of(ELEMENTWISE, target)
    (y, sign, up, side), (dx,) = called(target, rules, "parts", (x,), ones)
    assert [v.dtype for v in (y, sign, up, side)] == [x.dtype, x.dtype, bool, np.int64]
    assert (side.tolist(), up.tolist()) == ([2, 1], [False, True])
    assert dx.tolist() == [-4.0, 6.0]
    (z, on, k), _ = called(
        target, module_of(OWN, target), "boolout", (np.ones((3, 1)), np.zeros(2))
    )
    assert (z.shape, on.shape, on.dtype) == ((3, 2), (3, 2), bool)
    assert (k.tolist(), k.dtype) == ([[3, 3]] * 3, np.int64)


@by_target
def test_rules_without_a_gradient(target: str) -> None:
    (y,), slopes = called(target, module_of(OWN, target), "counts", (np.array([4, 9]),))
    assert (y.tolist(), slopes) == ([2.5, 3.5], (None,))
    rules = module_of(ELEMENTWISE, target)
    given = np.array([1.0, 2.0]), np.array([True, False])
    asked = [target == "torch", False]
    (y,), slopes = called(target, rules, "labels", given, None, asked)
    assert (y.tolist(), slopes) == ([2.0, 0.1], (None, None))


@pytest.mark.parametrize("target", ["numpy", "torch", "tf"])
def test_inputs_without_gradient_have_none(target: str) -> None:
    p, t = np.array([0.3]), np.array([1.0])
    rules = module_of(ELEMENTWISE, target)
    _, (dp, dt) = called(target, rules, "bce", (p, t))
    assert dt is None and dp.tolist() == pytest.approx([-1 / 0.3])
    v, t = np.array([0.5, -0.5]), np.array([2.0, 2.0])
    _, (dv, dt) = called(target, module_of(OWN, target), "gated", (v, t), [t])
    assert dt is None
    np.testing.assert_allclose(dv, 4 / (2 + np.exp(v) + np.exp(-v)), 1e-6)


@by_target
def test_nan(target: str) -> None:
    """Where it is compared, the comparison is false."""
    rules, nan = module_of(ELEMENTWISE, target), (np.array([np.nan]),)
    for name in ("log1pexp", "swish", "tanh_of"):
        assert np.isnan(called(target, rules, name, nan)[0]).all(), name
    for name in ("spike", "guarded"):
        assert called(target, rules, name, nan)[0][0] == 0.0, name
    assert np.isnan(called(target, module_of(OWN, target), "between", nan)[0]).all()


# --- shapes --------------------------------------------------------------------------------

SHAPES = [
    (
        "linear",
        ((2, 3), (4, 5), (4,)),
        r"w must have the shape \[m, k\] with .*\(4, 5\)",
    ),
    ("linear", ((5,), (3, 5, 1), (3,)), r"w .* not \(3, 5, 1\)"),
    ("linear", ((5,), (3, 5), (2, 3)), r"b must have the shape \[m\]"),
    ("softmax", ((),), r"x must have the shape \[\.\.\., n\], not \(\)"),
    ("mse", ((2, 3), (3,)), r"x must have the shape \[n\], not \(2, 3\)"),
    ("third", ((2, 3),), r"x must have the shape \[\.\.\., 4\], not \(2, 3\)"),
    ("window", ((2, 3),), r"x must have the shape \[\.\.\., k\] with k = 2, not"),
    ("trace", ((2, 3),), r"x must have the shape \[\.\.\., n, n\] with n = 2, not"),
    ("fixed", ((4,), (2, 2)), r"x must have the shape \[\.\.\., 3\], not \(4,\)"),
]


@pytest.mark.parametrize("target", ["numpy", "torch", "tf"])
@pytest.mark.parametrize(("name", "shapes", "message"), SHAPES)
def test_shapes_other_than_declared_are_refused(
    target: str, name: str, shapes: Any, message: str
) -> None:
    given = (np.ones(shape) for shape in shapes)
    with pytest.raises(ValueError, match=f"{name}: {message}"):
        called(target, module_of(INDEXED, target), name, given)


# --- statics -------------------------------------------------------------------------------


@by_target
def test_a_static_integer_is_one_and_stays_one(target: str) -> None:
    rules = module_of(ELEMENTWISE, target)
    assert float(rules.power_of(-2.0, n=3)) == -8.0
    with pytest.raises(TypeError):
        rules.power_of(-2.0, n=2.5)
    text = text_of(OWN, target)
    assert set(re.findall(r"polygamma\((n[^,]*), x", text)) >= {"n", "n + 1"}
    assert "polygamma(n + 1.0" not in text
