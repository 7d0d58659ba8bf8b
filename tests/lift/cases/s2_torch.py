import torch
from torch.autograd import Function


class WeightedMean(Function):
    @staticmethod
    def forward(ctx, x, w):
        total = w.sum(-1, keepdim=True)
        y = (x * w).sum(-1, keepdim=True) / total
        ctx.save_for_backward(x, w, y, total)
        return y

    @staticmethod
    def backward(ctx, g):
        x, w, y, total = ctx.saved_tensors
        return g * w / total, g * (x - y) / total


class Standardise(Function):
    @staticmethod
    def forward(ctx, x, eps=1e-5):
        mu = x.mean(-1, keepdim=True)
        var = ((x - mu) ** 2).mean(-1, keepdim=True)
        inv = torch.rsqrt(var + eps)
        y = (x - mu) * inv
        ctx.save_for_backward(y, inv)
        return y

    @staticmethod
    def backward(ctx, g):
        y, inv = ctx.saved_tensors
        return inv * (g - g.mean(-1, keepdim=True) - y * (g * y).mean(-1, keepdim=True)), None


class StandardiseDropped(Function):
    @staticmethod
    def forward(ctx, x, eps=1e-5):
        mu = x.mean(-1, keepdim=True)
        var = ((x - mu) ** 2).mean(-1, keepdim=True)
        inv = torch.rsqrt(var + eps)
        y = (x - mu) * inv
        ctx.save_for_backward(y, inv)
        return y

    @staticmethod
    def backward(ctx, g):
        y, inv = ctx.saved_tensors
        return inv * (g - y * (g * y).mean(-1, keepdim=True)), None


class ReverseLambda(Function):
    @staticmethod
    def forward(ctx, x, lambd):
        ctx.lambd = lambd
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.neg() * ctx.lambd, None


class HardTanhSTE(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sign()

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        gi = g.clone()
        gi[x.abs() > 1] = 0
        return gi


class SafeSqrt(Function):
    @staticmethod
    def forward(ctx, x):
        y = x.clamp(min=1e-12).sqrt()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        y, = ctx.saved_tensors
        return g / (2 * y + 1e-9)


class MatVec(Function):
    @staticmethod
    def forward(ctx, w, x):
        ctx.save_for_backward(w, x)
        return x @ w.t()

    @staticmethod
    def backward(ctx, g):
        w, x = ctx.saved_tensors
        return g.t() @ x, g @ w


class SparseL1(Function):
    @staticmethod
    def forward(ctx, x, l):
        ctx.save_for_backward(x)
        ctx.l = l
        return x

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g + ctx.l * x.sign(), None


class Masked(Function):
    @staticmethod
    def forward(ctx, x, mask):
        ctx.mask = mask
        y = torch.softmax(x.masked_fill(mask, float("-inf")), dim=-1)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        y, = ctx.saved_tensors
        return y * (g - (g * y).sum(-1, keepdim=True)), None


class TwoOut(Function):
    @staticmethod
    def forward(ctx, r, t):
        ctx.save_for_backward(r, t)
        return r * torch.cos(t), r * torch.sin(t)

    @staticmethod
    def backward(ctx, gx, gy):
        r, t = ctx.saved_tensors
        gr = gt = None
        if ctx.needs_input_grad[0]:
            gr = gx * torch.cos(t) + gy * torch.sin(t)
        if ctx.needs_input_grad[1]:
            gt = r * (gy * torch.cos(t) - gx * torch.sin(t))
        return gr, gt


class MaybeNone(Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x, y)
        return x * y, x + y

    @staticmethod
    def backward(ctx, g1, g2):
        x, y = ctx.saved_tensors
        gx = gy = None
        if g1 is not None:
            gx, gy = g1 * y, g1 * x
        if g2 is not None:
            gx = g2 if gx is None else gx + g2
            gy = g2 if gy is None else gy + g2
        return gx, gy


class KL(Function):
    @staticmethod
    def forward(ctx, logits, target):
        p = torch.softmax(logits, -1)
        ctx.save_for_backward(p, target)
        return -(target * torch.log_softmax(logits, -1)).sum(-1)

    @staticmethod
    def backward(ctx, g):
        p, target = ctx.saved_tensors
        return g.unsqueeze(-1) * (p - target), None


class LogClamp(Function):
    @staticmethod
    def forward(ctx, x, lo=-15.0, hi=15.0):
        ctx.save_for_backward(x)
        return torch.exp(x)

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g * torch.exp(x.clamp(-15, 15)), None, None
