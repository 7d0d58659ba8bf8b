"""The reference cases on PyTorch, from rules as a user writes them."""

from __future__ import annotations

import pytest

from tests.targets.emission import RULES, imported, planned, torch_module

pytestmark = pytest.mark.torch
torch = pytest.importorskip("torch")


@pytest.fixture(scope="module")
def rules():
    return torch_module(RULES)


def _grad(y, *xs):
    return torch.autograd.grad(y, xs if len(xs) > 1 else xs[0], create_graph=True)


def test_r1_log1pexp_does_not_overflow(rules):
    x = torch.tensor(100.0, requires_grad=True)
    y = rules.log1pexp(x)
    assert y.item() == 100.0
    assert _grad(y, x)[0].item() == 1.0


def test_r2_composed_squares(rules):
    x = torch.tensor(2.0, requires_grad=True)
    a = rules.square(x)
    b = rules.square(a)
    c = rules.square(b)
    assert [t.item() for t in (a, b, c)] == [4.0, 16.0, 256.0]
    assert _grad(c, x)[0].item() == 1024.0


def test_r3_traced_squares(capsys):
    from gradspec.targets import torch as target

    text = target.traced_module(planned("rule square(x[]) -> y[]:\n    y = x**2\n"))
    traced = imported(text, "traced_square")
    x = torch.tensor(2.0, requires_grad=True)
    y = traced.square(traced.square(traced.square(x)))
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 3
    assert printed[0] == "square: x = tensor(2.), y = tensor(4.)"
    y.backward()
    lines = capsys.readouterr().out.splitlines()
    expected = [(16, 1, 32, 32), (4, 32, 8, 256), (2, 256, 4, 1024)]
    assert lines == [
        f"square: x = tensor({x}.), upstream dy = tensor({up}.),"
        f" current = tensor({local}.), downstream dx = tensor({down}.)"
        for x, up, local, down in expected
    ]
    assert x.grad.item() == 1024.0


def test_r4_product(rules):
    x = torch.tensor(2.0, requires_grad=True)
    y = torch.tensor(3.0, requires_grad=True)
    z = rules.product(x, y)
    dx, dy = _grad(z, x, y)
    assert (z.item(), dx.item(), dy.item()) == (6.0, 3.0, 2.0)
    assert torch.autograd.grad(x * 1, y, allow_unused=True) == (None,)


def test_r5_sign_with_the_slope_of_a_sigmoid(rules):
    x = torch.tensor(3.0, requires_grad=True)
    y = rules.sign_step(x)
    assert y.item() == 1.0
    assert _grad(y, x)[0].item() == pytest.approx(0.0451766551, abs=5e-9)
    loss = 0.5 * (y + 1) ** 2
    assert loss.item() == 2.0
    assert _grad(loss, x)[0].item() == pytest.approx(0.0903533101, abs=1e-8)


def test_r6_the_sign_is_trained(rules):
    x = torch.nn.Parameter(torch.tensor(-1.0))
    adam = torch.optim.Adam([x], lr=0.1, eps=1e-7)
    seen = {}
    for step in range(100):
        adam.zero_grad()
        y = rules.sign_step(x)
        loss = 0.5 * (y - 1) ** 2
        loss.backward()
        adam.step()
        if step % 10 == 0:
            seen[step] = (loss.item(), x.grad.item(), x.item())
    assert seen[0][:2] == pytest.approx((2.0, -0.393223882), abs=1e-7)
    assert seen[0][2] == pytest.approx(-0.89999783, abs=3e-4)
    after = [0.0995881185, 0.6450876, 0.855591536, 0.938390434, 0.970632374]
    after += [0.983009696, 0.987700462, 0.989459515, 0.990113616]
    for step, want in zip(range(10, 100, 10), after, strict=True):
        assert seen[step][:2] == (0.0, 0.0)
        assert seen[step][2] == pytest.approx(want, abs=3e-4)


def test_r7_elementwise_square():
    text = "rule square(x) -> y:\n    y = x**2\n    dx = dy * 2 * x\n"
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    assert _grad(torch_module(text).square(x).sum(), x)[0].tolist() == [2.0, 4.0, 6.0]


def test_r8_two_inputs_two_outputs(rules):
    x = torch.tensor(2.0, requires_grad=True)
    y = torch.tensor(3.0, requires_grad=True)
    z, w = rules.complex_op(x, y)
    dx, dy = _grad(z + w, x, y)
    assert z.item() == pytest.approx(6.9092974, abs=1e-6)
    assert w.item() == 9.0
    assert dx.item() == pytest.approx(2.5838532, abs=1e-6)
    assert dy.item() == 8.0


def test_r9_piecewise(rules):
    x = torch.tensor([-1.0, 0.0, 1.0], requires_grad=True)
    y = rules.piecewise(x)
    assert y.tolist() == [-1.0, 0.0, 2.0]
    assert _grad(y.sum(), x)[0].tolist() == [1.0, 1.0, 2.0]


def test_r12_upstream_gradients_of_several_outputs(rules):
    x = torch.randn(3, 4, requires_grad=True)
    y = torch.randn(4, requires_grad=True)
    z, w = rules.complex_op(x, y)
    dz, dw = torch.randn(3, 4), torch.randn(4)
    dx, dy = torch.autograd.grad((z, w), (x, y), (dz, dw))
    torch.testing.assert_close(dx, dz * (y + x.cos()))
    torch.testing.assert_close(dy, (dz * x).sum(0) + dw * 2 * y)


def test_r13_second_derivative(rules):
    x = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    second = _grad(_grad(rules.log1pexp(x), x)[0], x)[0]
    assert second.item() == pytest.approx(0.2350037, abs=1e-7)


def test_r14_recomputed(rules):
    x = torch.randn(5, requires_grad=True)
    y = torch.utils.checkpoint.checkpoint(rules.swish, x, use_reentrant=False)
    want = _grad(rules.swish(x).sum(), x)[0]
    torch.testing.assert_close(_grad(y.sum(), x)[0], want)
