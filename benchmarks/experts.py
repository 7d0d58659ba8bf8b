"""The same rules as experts write them for torch, from public implementations.

Each is an old-style `torch.autograd.Function` that keeps inputs or outputs only, or, for
the focal loss, torchvision's composition of framework operations.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

Ctx = Any
Tensor = torch.Tensor


class Softplus(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Ctx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return functional.softplus(x)

    @staticmethod
    def backward(ctx: Ctx, dy: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return dy * torch.sigmoid(x)


class Swish(torch.autograd.Function):
    """Memory-efficient Swish, as in EfficientNet-PyTorch and timm."""

    @staticmethod
    def forward(ctx: Ctx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx: Ctx, dy: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return dy * (s * (1 + x * (1 - s)))


class Mish(torch.autograd.Function):
    """Memory-efficient Mish, as in timm (`mish_jit_bwd`)."""

    @staticmethod
    def forward(ctx: Ctx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.mul(torch.tanh(functional.softplus(x)))

    @staticmethod
    def backward(ctx: Ctx, dy: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        t = functional.softplus(x).tanh()
        return dy.mul(t + x * s * (1 - t * t))


class Gelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Ctx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return 0.5 * x * (1 + torch.erf(x * 0.7071067811865476))

    @staticmethod
    def backward(ctx: Ctx, dy: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        cdf = 0.5 * (1 + torch.erf(x * 0.7071067811865476))
        return dy * (cdf + x * torch.exp(-0.5 * x * x) * 0.3989422804014327)


def focal_loss(x: Tensor, t: Tensor) -> Tensor:
    """torchvision.ops.sigmoid_focal_loss, with the labels -1 and +1 made 0 and 1."""
    targets = (t + 1) / 2
    p = torch.sigmoid(x)
    ce = functional.binary_cross_entropy_with_logits(x, targets, reduction="none")
    p_t = p * targets + (1 - p) * (1 - targets)
    alpha_t = 0.25 * targets + 0.75 * (1 - targets)
    return alpha_t * (ce * ((1 - p_t) ** 2))


class FastSigmoid(torch.autograd.Function):
    """snntorch.surrogate.FastSigmoid."""

    @staticmethod
    def forward(ctx: Ctx, v: Tensor, slope: float = 25.0) -> Tensor:
        ctx.save_for_backward(v)
        ctx.slope = slope
        return (v > 0).float()

    @staticmethod
    def backward(ctx: Ctx, ds: Tensor) -> Tensor:
        (v,) = ctx.saved_tensors
        return ds / (ctx.slope * torch.abs(v) + 1.0) ** 2


class ATan(torch.autograd.Function):
    """spikingjelly.activation_based.surrogate.atan."""

    @staticmethod
    def forward(ctx: Ctx, v: Tensor, alpha: float = 2.0) -> Tensor:
        ctx.save_for_backward(v)
        ctx.alpha = alpha
        return (v >= 0).to(v)

    @staticmethod
    def backward(ctx: Ctx, ds: Tensor) -> Tensor:
        (v,) = ctx.saved_tensors
        return ctx.alpha / 2 / (1 + (torch.pi / 2 * ctx.alpha * v).pow_(2)) * ds


class TwoInTwoOut(torch.autograd.Function):
    """The example of TensorFlow's manual on `tf.custom_gradient`."""

    @staticmethod
    def forward(ctx: Ctx, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(x, y)
        return x * y + torch.sin(x), y**2

    @staticmethod
    def backward(ctx: Ctx, dz: Tensor, dw: Tensor) -> tuple[Tensor, Tensor]:
        x, y = ctx.saved_tensors
        return dz * (y + torch.cos(x)), dz * x + dw * 2 * y


class LogAddExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Ctx, a: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(a, b)
        return torch.logaddexp(a, b)

    @staticmethod
    def backward(ctx: Ctx, dy: Tensor) -> tuple[Tensor, Tensor]:
        a, b = ctx.saved_tensors
        s = torch.sigmoid(a - b)
        return dy * s, dy * (1 - s)


class Softmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Ctx, x: Tensor) -> Tensor:
        y = torch.softmax(x, -1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Ctx, dy: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return y * (dy - (dy * y).sum(-1, keepdim=True))


class LogSumExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Ctx, x: Tensor) -> Tensor:
        y = torch.logsumexp(x, -1)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx: Ctx, dy: Tensor) -> Tensor:
        x, y = ctx.saved_tensors
        return dy.unsqueeze(-1) * torch.exp(x - y.unsqueeze(-1))


class LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Ctx, x: Tensor, g: Tensor, b: Tensor) -> Tensor:
        mean = x.mean(-1, keepdim=True)
        rstd = torch.rsqrt(x.var(-1, unbiased=False, keepdim=True) + 1e-5)
        ctx.save_for_backward(x, g, mean, rstd)
        return (x - mean) * rstd * g + b

    @staticmethod
    def backward(ctx: Ctx, dy: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x, g, mean, rstd = ctx.saved_tensors
        n = (x - mean) * rstd
        h = dy * g
        inner = (h * n).mean(-1, keepdim=True)
        dx = rstd * (h - h.mean(-1, keepdim=True) - n * inner)
        rows = tuple(range(dy.dim() - 1))
        return dx, (dy * n).sum(rows), dy.sum(rows)
