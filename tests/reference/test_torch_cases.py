"""The published reference cases R1 to R14 on torch, from the tutorial's rules."""

from __future__ import annotations

import pytest

import gradspec
from tests.reference.conftest import TUTORIAL, tutorial

torch = pytest.importorskip("torch")


def _leaf(*values: float, dtype: object = None) -> object:
    data = values[0] if len(values) == 1 else list(values)
    return torch.tensor(data, dtype=dtype or torch.float32, requires_grad=True)


def test_r1_log1pexp_at_100() -> None:
    x = _leaf(100.0)
    y = tutorial("log1pexp", "torch").log1pexp(x)
    y.backward()
    assert (y.item(), x.grad.item()) == (100.0, 1.0)


def test_r2_square_composed() -> None:
    square = tutorial("square", "torch").square
    x = _leaf(2.0)
    first = square(x)
    second = square(first)
    third = square(second)
    third.backward()
    assert [v.item() for v in (first, second, third, x.grad)] == [
        4.0,
        16.0,
        256.0,
        1024.0,
    ]
    with pytest.raises((ValueError, RuntimeError), match=r"square.*x"):
        square(torch.ones(3))


def test_r3_trace(capsys: pytest.CaptureFixture[str], tmp_path: object) -> None:
    module = gradspec.load(TUTORIAL / "square.grad", target="torch", trace=True)
    x = _leaf(2.0)
    module.square(module.square(module.square(x))).backward()
    told = capsys.readouterr().out
    numbers = [[float(n) for n in _numbers(line)] for line in told.splitlines()]
    forward = [[2.0, 4.0], [4.0, 16.0], [16.0, 256.0]]
    backward = [[1.0, 32.0, 32.0], [32.0, 8.0, 256.0], [256.0, 4.0, 1024.0]]
    assert [n[-2:] for n in numbers[:3]] == forward
    assert [n[-3:] for n in numbers[3:]] == backward


PUBLISHED = [
    -0.89999783,
    0.0995881185,
    0.6450876,
    0.855591536,
    0.938390434,
    0.970632374,
    0.983009696,
    0.987700462,
    0.989459515,
    0.990113616,
]


def test_r6_training() -> None:
    """L = (y - 1)²/2 by Adam, learning rate 0.1, Keras' epsilon 1e-7."""
    sign_step = tutorial("sign_step", "torch").sign_step
    x = torch.nn.Parameter(torch.tensor(-1.0))
    adam = torch.optim.Adam([x], lr=0.1, eps=1e-7)
    told = []
    for _ in range(100):
        adam.zero_grad()
        loss = (sign_step(x) - 1.0) ** 2 / 2
        loss.backward()
        gradient = x.grad.item()
        adam.step()
        told.append((loss.item(), gradient, x.item()))
    assert told[0][:2] == (2.0, pytest.approx(-0.393223882, rel=1e-6))
    assert [t[2] for t in told[::10]] == pytest.approx(PUBLISHED, abs=3e-4)
    assert all(t[:2] == (0.0, 0.0) for t in told[10::10])


def test_r10_no_gradient_is_none() -> None:
    x, t, weight = _leaf(2.0), _leaf(1.0), _leaf(0.5)
    loss = tutorial("labels", "torch").weighted_error(x, t, weight)
    found = torch.autograd.grad(loss, (x, t, weight), allow_unused=True)
    assert found[0].item() == 1.0
    assert found[1:] == (None, None)


def test_r11_parameters_learn() -> None:
    affine = tutorial("affine", "torch").affine
    weight = torch.nn.Parameter(torch.tensor(0.0))
    bias = torch.nn.Parameter(torch.tensor(0.0))
    adam = torch.optim.Adam([weight, bias], lr=0.05)
    x = torch.linspace(-1.0, 1.0, 32)
    for _ in range(400):
        adam.zero_grad()
        (affine(x, weight, bias) - (3.0 * x - 2.0)).square().mean().backward()
        adam.step()
    assert (weight.item(), bias.item()) == pytest.approx((3.0, -2.0), abs=1e-3)


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64]
)
def test_r12_vjp_sums_over_outputs_in_shape_and_dtype(dtype: torch.dtype) -> None:
    x = torch.randn(3, 4, dtype=torch.float64).to(dtype).requires_grad_()
    y = torch.randn(4, dtype=torch.float64).to(dtype).requires_grad_()
    z, w = tutorial("complex_op", "torch").complex_op(x, y)
    dz, dw = torch.randn_like(z), torch.randn_like(w)
    dx, dy = torch.autograd.grad((z, w), (x, y), (dz, dw))
    wide = [v.detach().double() for v in (x, y, dz, dw)]
    expected_x = wide[2] * (wide[1] + wide[0].cos())
    expected_y = (wide[2] * wide[0]).sum(0) + wide[3] * 2 * wide[1]
    assert (dx.shape, dx.dtype, dy.shape, dy.dtype) == (x.shape, dtype, y.shape, dtype)
    assert (z.shape, w.shape) == ((3, 4), (4,))
    room = {torch.float16: 4e-3, torch.bfloat16: 3e-2}.get(dtype, 1e-5)
    assert torch.allclose(dx.double(), expected_x, rtol=room, atol=room)
    assert torch.allclose(dy.double(), expected_y, rtol=room, atol=room)


def test_r13_second_derivative() -> None:
    x = _leaf(0.5)
    y = tutorial("log1pexp", "torch").log1pexp(x)
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    assert second.item() == pytest.approx(0.2350037, rel=1e-6)


def test_r14_recomputing_keeps_fewer_bytes() -> None:
    module = tutorial("checkpoint", "torch")
    kept, gradients = {}, {}
    for name in ("gate_recomputed", "gate_saved"):
        x = torch.linspace(-2.0, 2.0, 1000).requires_grad_()
        sizes: dict[int, int] = {}

        def pack(tensor: object, sizes: dict[int, int] = sizes) -> object:
            sizes[tensor.data_ptr()] = tensor.numel() * tensor.element_size()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            y = getattr(module, name)(x)
        kept[name] = sum(sizes.values())
        (gradients[name],) = torch.autograd.grad(y.sum(), x)
    assert kept["gate_recomputed"] < kept["gate_saved"]
    # What is kept is rounded to float32; beside the zero of the gradient that shows.
    torch.testing.assert_close(
        gradients["gate_recomputed"], gradients["gate_saved"], rtol=1e-5, atol=1e-6
    )


def _numbers(line: str) -> list[str]:
    import re

    return re.findall(r"-?\d+\.?\d*(?:e[-+]?\d+)?", re.sub(r"[A-Za-z_]\w*", " ", line))
