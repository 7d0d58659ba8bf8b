"""Loops over time whose gradients are right."""

import torch


class Stacked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, x):
        h = torch.zeros_like(x[:, 0])
        out = []
        for t in range(x.shape[1]):
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
            g = g + dy[:, t]
            dx.append(g)
            da.append(g * y[:, t - 1] if t > 0 else torch.zeros_like(g))
            g = g * a[:, t]
        return torch.stack(da[::-1], dim=1), torch.stack(dx[::-1], dim=1)


class Written(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, x, h0):
        B, T = x.shape
        h = torch.empty_like(x)
        prev = h0
        for t in range(T):
            prev = a[:, t] * prev + x[:, t]
            h[:, t] = prev
        ctx.save_for_backward(a, h, h0)
        return h

    @staticmethod
    def backward(ctx, grad):
        a, h, h0 = ctx.saved_tensors
        B, T = grad.shape
        da = torch.zeros_like(a)
        dx = torch.zeros_like(h)
        carry = torch.zeros(B)
        for t in range(T - 1, -1, -1):
            carry = carry + grad[:, t]
            dx[:, t] = carry
            if t > 0:
                da[:, t] = carry * h[:, t - 1]
            else:
                da[:, t] = carry * h0
            carry = carry * a[:, t]
        return da, dx, carry


class InArray(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, decay: float):
        y = torch.zeros_like(x)
        y[:, 0] = x[:, 0]
        for t in range(1, x.size(1)):
            y[:, t] = decay * y[:, t - 1] + x[:, t]
        ctx.decay = decay
        return y

    @staticmethod
    def backward(ctx, dy):
        dx = dy.clone()
        for t in range(dy.size(1) - 2, -1, -1):
            dx[:, t] += ctx.decay * dx[:, t + 1]
        return dx, None


class Elman(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        T, D = x.shape
        hs = [torch.zeros(D)]
        for t in range(T):
            hs.append(torch.tanh(w @ hs[-1] + x[t]))
        ctx.hs = hs
        ctx.save_for_backward(w)
        return hs[-1]

    @staticmethod
    def backward(ctx, dy):
        (w,) = ctx.saved_tensors
        hs = ctx.hs
        dw = torch.zeros_like(w)
        dx = []
        g = dy
        for t in reversed(range(len(hs) - 1)):
            s = g * (1 - hs[t + 1] ** 2)
            dx.insert(0, s)
            dw += torch.outer(s, hs[t])
            g = w.t() @ s
        return torch.stack(dx), dw


class TwoStates(torch.autograd.Function):
    """Cell and output, gates of the output before."""

    @staticmethod
    def forward(ctx, f, i, o):
        c, h = torch.zeros_like(f[0]), torch.zeros_like(f[0])
        cs, hs, gates = [], [], []
        for t in range(len(f)):
            gate = torch.sigmoid(f[t] + h)
            c = gate * c + i[t]
            h = o[t] * torch.tanh(c)
            gates.append(gate)
            cs.append(c)
            hs.append(h)
        gate, c, h = torch.stack(gates), torch.stack(cs), torch.stack(hs)
        ctx.save_for_backward(o, gate, c)
        return h

    @staticmethod
    def backward(ctx, dh):
        o, gate, c = ctx.saved_tensors
        df, di, do = torch.zeros_like(o), torch.zeros_like(o), torch.zeros_like(o)
        dc, dnext = torch.zeros_like(o[0]), torch.zeros_like(o[0])
        for t in reversed(range(dh.shape[0])):
            g = dh[t] + dnext
            u = torch.tanh(c[t])
            do[t] = g * u
            dc = dc + g * o[t] * (1 - u * u)
            di[t] = dc
            before = c[t - 1] if t > 0 else torch.zeros_like(dc)
            df[t] = dc * before * gate[t] * (1 - gate[t])
            dnext = df[t]
            dc = dc * gate[t]
        return df, di, do


class Returns(torch.autograd.Function):
    """From the end to the start; the sum of the gradient runs the other way."""

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
        for t in range(dy.shape[-1]):
            g = dy[..., t] + ctx.gamma * g
            dr[..., t] = g
        return dr, None


class Ahead(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, x):
        B, T = x.shape
        y = x.clone()
        for t in range(T - 1):
            y[:, t + 1] = a[:, t] * y[:, t] + x[:, t + 1]
        ctx.save_for_backward(a, y)
        return y

    @staticmethod
    def backward(ctx, dy):
        a, y = ctx.saved_tensors
        g = dy.clone()
        da = torch.zeros_like(a)
        for t in range(dy.shape[1] - 1, 0, -1):
            da[:, t - 1] = g[:, t] * y[:, t - 1]
            g[:, t - 1] += g[:, t] * a[:, t - 1]
        return da, g
