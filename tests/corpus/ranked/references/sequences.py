"""Along an axis whose order matters, on grids and on graphs; control and transport."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from tests.corpus.ranked.case import (
    case,
    fixed,
    flags,
    label,
    positive,
    unit,
)


def total_variation_2d(x: Any) -> Any:
    down, right = x.diff(dim=-2).square(), x.diff(dim=-1).square()
    return down.sum((-2, -1)) + right.sum((-2, -1))


def replicated_gradient(x: Any) -> Any:
    padded = torch.cat([x[..., :1], x, x[..., -1:]], -1)
    return (padded[..., 2:] - padded[..., :-2]) / 2


def laplacian_stencil(x: Any, dt: float = 0.1) -> Any:
    if x.shape[-1] < 3:
        return x * 1
    inner = x[..., 1:-1] + dt * (x[..., :-2] - 2 * x[..., 1:-1] + x[..., 2:])
    return torch.cat([x[..., :1], inner, x[..., -1:]], -1)


def laplacian_2d(u: Any) -> Any:
    rolled = [u.roll(step, axis) for step in (-1, 1) for axis in (0, 1)]
    return sum(rolled) - 4 * u


def same_convolution(x: Any, w: Any, b: Any) -> Any:
    rows = x.reshape(-1, 1, x.shape[-1])
    return F.conv1d(rows, w[None, None], b[None], padding=1).reshape(x.shape)


def valid(x: Any, w: Any, stride: int = 1) -> Any:
    rows = x.reshape(-1, 1, x.shape[-1])
    return F.conv1d(rows, w[None, None], stride=stride).reshape(*x.shape[:-1], -1)


def dilated_convolution(x: Any, w: Any, m: int) -> Any:
    rows = x.reshape(-1, *x.shape[-2:])
    made = F.conv1d(rows, w, dilation=2)
    return made.reshape(*x.shape[:-2], *made.shape[-2:])


def depthwise_convolution(x: Any, w: Any, m: int) -> Any:
    rows = x.reshape(-1, *x.shape[-2:])
    made = F.conv1d(rows, w[:, None], groups=len(w))
    return made.reshape(*x.shape[:-1], made.shape[-1])


def moving_average(x: Any, k: int) -> Any:
    n = x.shape[-1]
    window = torch.ones(n, n).tril() - torch.ones(n, n).tril(-k)
    return x @ (window / window.sum(1, keepdim=True)).to(x).T


def discounted_returns(r: Any, last: Any, gamma: float = 0.9) -> Any:
    found = []
    g = last
    for reward in reversed(r.unbind(-1)):
        g = reward + gamma * g
        found.append(g)
    return torch.stack(found[::-1], -1)


def gae(r: Any, v: Any, last: Any, gamma: float = 0.99, lam: float = 0.95) -> Any:
    a, after, found = 0.0, last, []
    for reward, value in zip(
        reversed(r.unbind(-1)), reversed(v.unbind(-1)), strict=True
    ):
        a = reward + gamma * after - value + gamma * lam * a
        after = value
        found.append(a)
    return torch.stack(torch.broadcast_tensors(*found[::-1]), -1)


def picked(x: Any, t: Any) -> Any:
    return (x * F.one_hot(t, x.shape[-1])).sum(-1)


def td_error(v: Any, r: Any, a: Any, b: Any, gamma: float = 0.9) -> Any:
    return (r + gamma * picked(v, b) - picked(v, a)).square() / 2


def policy_gradient(x: Any, act: Any, adv: Any, beta: float = 0.01) -> Any:
    policy = torch.distributions.Categorical(logits=x)
    return -(adv * policy.log_prob(act) + beta * policy.entropy()).mean()


def ppo_clip(lp: Any, old: Any, adv: Any, eps: float = 0.2) -> Any:
    r = torch.exp(lp - old)
    return -torch.minimum(r * adv, r.clamp(1 - eps, 1 + eps) * adv).mean(-1)


def cox_partial(eta: Any, risk: Any, event: Any) -> Any:
    return -(event * (eta - torch.log(risk @ eta.exp()))).sum()


def graph_energy(x: Any, w: Any) -> Any:
    return (w * (x[:, None] - x[None]).square().sum(-1)).sum() / 2


def graph_attention(h: Any, u: Any, v: Any, adj: Any) -> Any:
    e = F.leaky_relu((h @ u)[:, None] + (h @ v)[None], 0.2)
    return torch.softmax(e.masked_fill(~adj, -torch.inf), 1) @ h


def complex_score(h: Any, r: Any, t: Any) -> Any:
    product = torch.view_as_complex(h) * torch.view_as_complex(r)
    return (product * torch.view_as_complex(t).conj()).sum(-1).real


def matrix_factorisation(
    p: Any, q: Any, bu: Any, bv: Any, i: Any, j: Any, r: Any, lam: float = 0.1
) -> Any:
    e = r - bu[i] - bv[j] - (p[i] * q[j]).sum(-1)
    return e.square() + lam * (p[i].square() + q[j].square()).sum(-1)


def sinkhorn_step(c: Any, f: Any, b: Any, eps: float = 0.5) -> Any:
    return eps * (b.log() - torch.logsumexp((f[:, None] - c) / eps, 0))


def entropic_cost(c: Any, f: Any, g: Any, eps: float = 0.5) -> Any:
    return (torch.exp((f[:, None] + g - c) / eps) * c).sum()


def soft_argmax_2d(x: Any, beta: float = 2.0) -> Any:
    p = torch.softmax(beta * x.flatten(-2), -1).reshape(x.shape)
    rows = torch.arange(x.shape[-2], dtype=torch.float64)
    columns = torch.arange(x.shape[-1], dtype=torch.float64)
    return p.sum(-1) @ rows, p.sum(-2) @ columns


_VALID = {
    "k": (1, 3),
    "m": (1, 3),
    "n": lambda s: s["m"] + s["k"] - 1,
}

CASES = {
    "total_variation_2d": case(total_variation_2d, x="... h w"),
    "circular_difference": case(lambda x: x.roll(-1, -1) - x, x="... n"),
    "replicated_gradient": case(replicated_gradient, x="... n"),
    "laplacian_stencil": case(laplacian_stencil, sizes={"n": (1, 5)}, x="... n"),
    "laplacian_2d": case(laplacian_2d, u="h w"),
    "same_convolution": case(same_convolution, x="... n", w="3", b=""),
    "strided_convolution": case(
        lambda x, w, m: valid(x, w, 2),
        sizes={"k": (1, 3), "m": (1, 3), "n": lambda s: 2 * (s["m"] - 1) + s["k"]},
        statics={"m": lambda s: s["m"]},
        x="... n",
        w="k",
    ),
    "dilated_convolution": case(
        dilated_convolution,
        sizes={"k": (1, 3), "m": (1, 3), "n": lambda s: s["m"] + 2 * (s["k"] - 1)},
        statics={"m": lambda s: s["m"]},
        x="... c n",
        w="o c k",
    ),
    "depthwise_convolution": case(
        depthwise_convolution,
        sizes=_VALID,
        statics={"m": lambda s: s["m"]},
        x="... c n",
        w="c k",
    ),
    "max_pool_pairs": case(
        lambda x, m: torch.maximum(x[..., ::2], x[..., 1::2]),
        sizes={"m": (1, 3), "n": lambda s: 2 * s["m"]},
        statics={"m": lambda s: s["m"]},
        x="... n",
    ),
    "moving_average": case(moving_average, statics={"k": 2}, x="... n"),
    "reversed_cumsum": case(lambda x: x.flip(-1).cumsum(-1).flip(-1), x="... n"),
    "cumulative_logsumexp": case(lambda x: torch.logcumsumexp(x, -1), x="... n"),
    "discounted_returns": case(discounted_returns, r="... n", last="..."),
    "gae": case(gae, r="... n", v="... n", last="..."),
    "td_error": case(
        td_error,
        v="... s",
        r=fixed(unit("...")),
        a=label("...", "s"),
        b=label("...", "s"),
    ),
    "policy_gradient": case(
        policy_gradient, x="b k", act=label("b", "k"), adv=fixed(unit("b"))
    ),
    "ppo_clip": case(
        ppo_clip, lp="... n", old=fixed(unit("... n")), adv=fixed(positive("... n"))
    ),
    "cox_partial": case(
        cox_partial, eta="n", risk=fixed(positive("n n")), event=fixed(unit("n"))
    ),
    "gcn_layer": case(
        lambda a, x, w: torch.relu(a @ x @ w), a=fixed(unit("n n")), x="n d", w="d h"
    ),
    "graph_energy": case(graph_energy, x="n k", w="n n"),
    "graph_attention": case(graph_attention, h="n d", u="d", v="d", adj=flags("n n")),
    "transe": case(
        lambda h, r, t: -(h + r - t).square().sum(-1), h="... k", r="... k", t="... k"
    ),
    "complex_score": case(complex_score, h="... k 2", r="... k 2", t="... k 2"),
    "matrix_factorisation": case(
        matrix_factorisation,
        p="u k",
        q="v k",
        bu="u",
        bv="v",
        i=label("...", "u"),
        j=label("...", "v"),
        r=fixed(unit("...")),
    ),
    "bpr": case(
        lambda u, a, b: -F.logsigmoid((u * (a - b)).sum(-1)),
        u="... k",
        a="... k",
        b="... k",
    ),
    "sinkhorn_step": case(sinkhorn_step, c="m n", f="m", b=fixed(positive("n"))),
    "entropic_cost": case(entropic_cost, c=positive("m n"), f="m", g="n"),
    "soft_dtw_cell": case(
        lambda r, d: d - 0.3 * torch.logsumexp(-r / 0.3, -1), r="... 3", d="..."
    ),
    "soft_argmax_2d": case(soft_argmax_2d, x="... h w"),
}
