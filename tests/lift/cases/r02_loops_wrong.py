"""Loops over time whose gradients are wrong, and loops that are not read."""

import torch


class WrongPlace(torch.autograd.Function):
    """The factor is that of the step itself, not of the later one."""

    @staticmethod
    def forward(ctx, a, x):
        B, T = x.shape
        h = torch.zeros(B)
        out = []
        for t in range(T):
            h = a[:, t] * h + x[:, t]
            out.append(h)
        y = torch.stack(out, dim=1)
        ctx.save_for_backward(a, y)
        return y

    @staticmethod
    def backward(ctx, dy):
        a, y = ctx.saved_tensors
        g = torch.zeros_like(dy[:, 0])
        da, dx = [], []
        for t in reversed(range(dy.shape[1])):
            g = a[:, t] * g + dy[:, t]
            dx.append(g)
            da.append(g * y[:, t - 1] if t > 0 else torch.zeros_like(g))
        return torch.stack(da[::-1], dim=1), torch.stack(dx[::-1], dim=1)


class NotTurned(torch.autograd.Function):
    """The list of the gradients is in the order of the steps, from the end."""

    @staticmethod
    def forward(ctx, x, decay: float):
        ctx.decay = decay
        B, T = x.shape
        h = torch.zeros(B)
        out = []
        for t in range(T):
            h = decay * h + x[:, t]
            out.append(h)
        return torch.stack(out, dim=1)

    @staticmethod
    def backward(ctx, dy):
        g = torch.zeros_like(dy[:, 0])
        dx = []
        for t in reversed(range(dy.shape[1])):
            g = ctx.decay * g + dy[:, t]
            dx.append(g)
        return torch.stack(dx, dim=1), None


class MissingTerm(torch.autograd.Function):
    """What comes from the later steps is lost."""

    @staticmethod
    def forward(ctx, x, w):
        T, D = x.shape
        h = torch.zeros(D)
        hs = torch.empty_like(x)
        for t in range(T):
            h = torch.tanh(w * h + x[t])
            hs[t] = h
        ctx.save_for_backward(w, hs)
        return hs

    @staticmethod
    def backward(ctx, dy):
        w, hs = ctx.saved_tensors
        dx, dw = torch.zeros_like(dy), torch.zeros_like(w)
        for t in range(dy.shape[0] - 1, -1, -1):
            s = dy[t] * (1 - hs[t] ** 2)
            dx[t] = s
            if t > 0:
                dw = dw + s * hs[t - 1]
        return dx, dw


class WrongDirection(torch.autograd.Function):
    @staticmethod
    def forward(ctx, r, gamma: float):
        ctx.gamma = gamma
        out = torch.zeros_like(r)
        running = torch.zeros_like(r[..., 0])
        for t in reversed(range(r.shape[-1])):
            running = r[..., t] + gamma * running
            out[..., t] = running
        return out

    @staticmethod
    def backward(ctx, dy):
        dr = torch.zeros_like(dy)
        g = torch.zeros_like(dy[..., 0])
        for t in reversed(range(dy.shape[-1])):
            g = dy[..., t] + ctx.gamma * g
            dr[..., t] = g
        return dr, None


class Around(torch.autograd.Function):
    """At the first step, `t - 1` is the last place of the axis."""

    @staticmethod
    def forward(ctx, a, x):
        B, T = x.shape
        h = torch.zeros(B)
        y = torch.empty_like(x)
        for t in range(T):
            h = a[:, t] * h + x[:, t]
            y[:, t] = h
        ctx.save_for_backward(a, y)
        return y

    @staticmethod
    def backward(ctx, dy):
        a, y = ctx.saved_tensors
        da, dx = torch.empty_like(a), torch.empty_like(a)
        g = torch.zeros_like(dy[:, 0])
        for t in reversed(range(dy.shape[1])):
            g += dy[:, t]
            dx[:, t] = g
            da[:, t] = g * y[:, t - 1]
            g *= a[:, t]
        return da, dx


class LateStart(torch.autograd.Function):
    """The gradient of the start is that after the first step, without its factor."""

    @staticmethod
    def forward(ctx, x, h0):
        T, D = x.shape
        h = h0
        for t in range(T):
            h = 2 * h + x[t]
        ctx.save_for_backward(x)
        return h

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        dx = torch.zeros_like(x)
        g = dy
        for t in range(x.shape[0] - 1, 0, -1):
            dx[t] = g
            g = g * 2
        dx[0] = g
        return dx, g


class Shared(torch.autograd.Function):
    """Each element of the list is one array, which the steps change."""

    @staticmethod
    def forward(ctx, x):
        B, T = x.shape
        h = torch.zeros(B)
        out = []
        for t in range(T):
            h += x[:, t]
            out.append(h)
        return torch.stack(out, dim=1)

    @staticmethod
    def backward(ctx, dy):
        return dy


class Unfilled(torch.autograd.Function):
    """The first element is never set."""

    @staticmethod
    def forward(ctx, x):
        y = torch.empty_like(x)
        for t in range(1, x.shape[0]):
            y[t] = x[t] - x[t - 1]
        return y

    @staticmethod
    def backward(ctx, dy):
        dx = dy.clone()
        for t in range(dy.shape[0] - 1):
            dx[t] = dy[t] - dy[t + 1]
        return dx


class Beyond(torch.autograd.Function):
    """The last step reads behind the end."""

    @staticmethod
    def forward(ctx, x):
        y = torch.zeros_like(x)
        for t in range(x.shape[0]):
            y[t] = x[t + 1]
        return y

    @staticmethod
    def backward(ctx, dy):
        return dy


class GivenLength(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, steps: int):
        ctx.steps = steps
        for _ in range(steps):
            x = x * x
        return x

    @staticmethod
    def backward(ctx, dy):
        return dy * ctx.steps, None


class Nested(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.zeros_like(x)
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                y[i, j] = x[i, j] + y[i - 1, j]
        return y

    @staticmethod
    def backward(ctx, dy):
        return dy


class PartInList(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        B, T = x.shape
        y = torch.zeros_like(x)
        out = []
        for t in range(T):
            y[:, t] = x[:, t]
            out.append(y[:, t])
            y[:, t] = 2 * x[:, t]
        return torch.stack(out, 1)

    @staticmethod
    def backward(ctx, dy):
        return dy


class MutatedPrior(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, a: float):
        ctx.a = a
        B, T = x.shape
        h = torch.zeros(B)
        out = []
        for t in range(T):
            h.mul_(a)
            h = h + x[:, t]
            out.append(h)
        return torch.stack(out, 1)

    @staticmethod
    def backward(ctx, dy):
        return dy, None
