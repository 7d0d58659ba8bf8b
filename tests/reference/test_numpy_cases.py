"""The published reference cases on NumPy, from the tutorial's rules (R11 and R13 need a
framework with variables and tapes).
"""

from __future__ import annotations

import re

import numpy as np
import pytest

import gradspec
from tests.reference.conftest import TUTORIAL, tutorial


def test_r1_log1pexp_at_100() -> None:
    module = tutorial("log1pexp", "numpy")
    y, pullback = module.log1pexp_vjp(np.float32(100.0))
    (dx,) = pullback(np.float32(1.0))
    assert (y, dx) == (100.0, 1.0)
    assert (y.dtype, dx.dtype) == (np.float32, np.float32)
    assert module.log1pexp(100.0) == 100.0


def test_r2_square_composed() -> None:
    module = tutorial("square", "numpy")
    first, back_first = module.square_vjp(2.0)
    second, back_second = module.square_vjp(first)
    third, back_third = module.square_vjp(second)
    (dx,) = back_first(*back_second(*back_third(1.0)))
    assert [first, second, third, dx] == [4.0, 16.0, 256.0, 1024.0]
    with pytest.raises(ValueError, match=r"square.*x"):
        module.square(np.ones(3))


def test_r3_trace(capsys: pytest.CaptureFixture[str]) -> None:
    module = gradspec.load(TUTORIAL / "square.grad", target="numpy", trace=True)
    first, back_first = module.square_vjp(2.0)
    second, back_second = module.square_vjp(first)
    _, back_third = module.square_vjp(second)
    back_first(*back_second(*back_third(1.0)))
    numbers = [_numbers(line) for line in capsys.readouterr().out.splitlines()]
    forward = [[2.0, 4.0], [4.0, 16.0], [16.0, 256.0]]
    backward = [[1.0, 32.0, 32.0], [32.0, 8.0, 256.0], [256.0, 4.0, 1024.0]]
    assert [n[-2:] for n in numbers[:3]] == forward
    assert [n[-3:] for n in numbers[3:]] == backward


def test_r10_no_gradient_is_none() -> None:
    _, pullback = tutorial("labels", "numpy").weighted_error_vjp(2.0, 1.0, 0.5)
    assert pullback(1.0) == (1.0, None, None)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_r12_vjp_sums_over_outputs_in_shape_and_dtype(dtype: type) -> None:
    random = np.random.default_rng(1)
    x = random.normal(size=(3, 4)).astype(dtype)
    y = random.normal(size=(4,)).astype(dtype)
    (z, w), pullback = tutorial("complex_op", "numpy").complex_op_vjp(x, y)
    dz, dw = (random.normal(size=v.shape).astype(dtype) for v in (z, w))
    dx, dy = pullback(dz, dw)
    wide = [v.astype(np.float64) for v in (x, y, dz, dw)]
    expected_x = wide[2] * (wide[1] + np.cos(wide[0]))
    expected_y = (wide[2] * wide[0]).sum(0) + wide[3] * 2 * wide[1]
    assert (dx.shape, dx.dtype, dy.shape, dy.dtype) == (x.shape, dtype, y.shape, dtype)
    assert (z.shape, w.shape) == ((3, 4), (4,))
    room = 4e-3 if dtype is np.float16 else 1e-5
    np.testing.assert_allclose(dx, expected_x, rtol=room, atol=room)
    np.testing.assert_allclose(dy, expected_y, rtol=room, atol=room)


def test_r14_recomputing_gives_the_same_gradient() -> None:
    module = tutorial("checkpoint", "numpy")
    x = np.linspace(-2.0, 2.0, 1000)
    one, other = (
        getattr(module, f"{name}_vjp")(x)[1](np.ones_like(x))[0]
        for name in ("gate_recomputed", "gate_saved")
    )
    np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-15)


def _numbers(line: str) -> list[float]:
    text = re.sub(r"[A-Za-z_]\w*", " ", line)
    return [float(n) for n in re.findall(r"-?\d+\.?\d*(?:e[-+]?\d+)?", text)]
