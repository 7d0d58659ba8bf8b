import torch
from torch.autograd import Function

from .s0_helpers import slope, slope_wrong, soft


class SetupGrad(Function):
    @staticmethod
    def forward(x, w):
        return torch.sin(x) * w

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, w = inputs
        ctx.save_for_backward(x, w)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        gx = gw = None
        if ctx.needs_input_grad[0]:
            gx = g * w * torch.cos(x)
        if ctx.needs_input_grad[1]:
            gw = g * torch.sin(x)
        return gx, gw


class SetupGradWrong(Function):
    @staticmethod
    def forward(x, w):
        return torch.sin(x) * w

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, w = inputs
        ctx.save_for_backward(x, w)

    @staticmethod
    def backward(ctx, g):
        x, w = ctx.saved_tensors
        gx = gw = None
        if ctx.needs_input_grad[0]:
            gx = g * torch.sin(x)
        if ctx.needs_input_grad[1]:
            gw = g * w * torch.cos(x)
        return gx, gw


class WithCount(Function):
    @staticmethod
    def forward(ctx, x, t):
        kept = x > t
        ctx.mark_non_differentiable(kept)
        ctx.save_for_backward(kept, x)
        return torch.where(kept, x * x, x), kept

    @staticmethod
    def backward(ctx, g, _):
        kept, x = ctx.saved_tensors
        return torch.where(kept, 2 * x * g, g), None


class InPlaceSaved(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.clone()
        y.neg_().exp_().add_(1).reciprocal_()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        d = y.clone()
        d.mul_(1 - y)
        return d.mul_(g)


class InPlaceSpoils(Function):
    @staticmethod
    def forward(ctx, x):
        e = torch.exp(x)
        ctx.save_for_backward(e)
        e.add_(1)
        return torch.log(e)

    @staticmethod
    def backward(ctx, g):
        (e,) = ctx.saved_tensors
        return g * e / (1 + e)


class Helped(Function):
    @staticmethod
    def forward(ctx, x, k: float = 2.0):
        ctx.save_for_backward(x)
        ctx.k = k
        return soft(x, k)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * slope(x, ctx.k), None


class HelpedWrong(Function):
    @staticmethod
    def forward(ctx, x, k: float = 2.0):
        ctx.save_for_backward(x)
        ctx.k = k
        return soft(x, k)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * slope_wrong(x, ctx.k), None


class Flagged(Function):
    @staticmethod
    def forward(ctx, x, squared=False):
        ctx.save_for_backward(x)
        ctx.flag = squared
        return x * x if squared else x.abs().sqrt()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        if ctx.flag:
            return 2 * x * g, None
        return g * torch.sign(x) / (2 * x.abs().sqrt()), None


class FlaggedWrong(Function):
    @staticmethod
    def forward(ctx, x, squared=False):
        ctx.save_for_backward(x)
        ctx.flag = squared
        return x * x if squared else x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        if not ctx.flag:
            return 2 * x * g, None
        return 3 * x * x * g, None


class OptionalScale(Function):
    @staticmethod
    def forward(ctx, x, scale=None):
        ctx.has_scale = scale is not None
        if scale is not None:
            ctx.save_for_backward(x, scale)
            return torch.tanh(x) * scale
        ctx.save_for_backward(x)
        return torch.tanh(x)

    @staticmethod
    def backward(ctx, g):
        if ctx.has_scale:
            x, scale = ctx.saved_tensors
            t = torch.tanh(x)
            return g * scale * (1 - t * t), g * t
        (x,) = ctx.saved_tensors
        return g * (1 - torch.tanh(x) ** 2), None


class GuardArg(Function):
    @staticmethod
    def forward(ctx, a, b, tol):
        ctx.save_for_backward(a, b)
        ctx.tol = tol
        return a / b

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        safe = b * b + ctx.tol
        return g * b / safe, -g * a / safe, None


class ExchangedPair(Function):
    @staticmethod
    def forward(ctx, mean, rate):
        ctx.save_for_backward(mean, rate)
        return mean * mean * torch.exp(rate)

    @staticmethod
    def backward(ctx, g):
        mean, rate = ctx.saved_tensors
        e = torch.exp(rate)
        return g * mean * mean * e, g * 2 * mean * e


class NoUpstream(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.log1p(x * x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x / (1 + x * x)


class Twice(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x * x).sum(dim=-1).sqrt()

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        n = (x * x).sum(dim=-1, keepdim=True).sqrt()
        return 2 * g.unsqueeze(-1) * x / n


class CentreRows(Function):
    @staticmethod
    def forward(ctx, x):
        return x - x.mean(dim=-1, keepdim=True)

    @staticmethod
    def backward(ctx, g):
        return g - g.mean(dim=-1, keepdim=True)


class CentreRowsDropped(Function):
    @staticmethod
    def forward(ctx, x):
        return x - x.mean(dim=-1, keepdim=True)

    @staticmethod
    def backward(ctx, g):
        return g


class LeakyWrongBranch(Function):
    @staticmethod
    def forward(ctx, x, slope=0.1):
        ctx.save_for_backward(x)
        ctx.slope = slope
        return torch.where(x > 0, x, slope * x)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return torch.where(x > 0, ctx.slope * g, g), None


class Dirty(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(3)
        return x

    @staticmethod
    def backward(ctx, g):
        return 3 * g


class RoundScale(Function):
    @staticmethod
    def forward(ctx, x, step):
        ctx.save_for_backward(x, step)
        return torch.floor(x / step + 0.5) * step

    @staticmethod
    def backward(ctx, g):
        return g, None


class MaskedDrop(Function):
    @staticmethod
    def forward(ctx, x, keep, p: float):
        ctx.save_for_backward(keep)
        ctx.p = p
        return x * keep / (1 - p)

    @staticmethod
    def backward(ctx, g):
        (keep,) = ctx.saved_tensors
        return g * keep / (1 - ctx.p), None, None
