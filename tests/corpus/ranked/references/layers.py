"""Layers: attention, gates, pooling, products."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from tests.corpus.ranked.case import case, fixed, label, positive


def scaled_attention(q: Any, r: Any, v: Any, bias: Any) -> Any:
    return torch.softmax(q @ r.mT / math.sqrt(q.shape[-1]) + bias, -1) @ v


def causal_attention(q: Any, r: Any, v: Any) -> Any:
    s = q @ r.mT / math.sqrt(q.shape[-1])
    later = torch.ones(s.shape[-2:], dtype=torch.bool).triu(1)
    return torch.softmax(s.masked_fill(later, -torch.inf), -1) @ v


def linear_attention(q: Any, r: Any, v: Any, eps: float = 1e-6) -> Any:
    z = q @ r.sum(-2)[..., None] + eps
    return q @ (r.mT @ v) / z


def additive_attention(x: Any, w: Any, u: Any) -> Any:
    p = torch.softmax(torch.tanh(x @ w.T) @ u, -1)
    return (p[..., None] * x).sum(-2)


def squeeze_excite(x: Any, u: Any, w: Any) -> Any:
    hidden = torch.relu(x.mean(-1) @ u.T)
    return x * torch.sigmoid(hidden @ w.T)[..., None]


def maxout(x: Any, w: Any, b: Any) -> Any:
    return (torch.einsum("haj,...j->...ha", w, x) + b).amax(-1)


def log_mean_exp(x: Any, r: float = 3.0) -> Any:
    return (torch.logsumexp(r * x, -1) - math.log(x.shape[-1])) / r


def attention_pool(x: Any, w: Any) -> Any:
    return (torch.softmax(x @ w, -1)[..., None] * x).sum(-2)


def soft_mixture_of_experts(g: Any, f: Any) -> Any:
    return (torch.softmax(g, -1)[..., None] * f).sum(-2)


def lora(x: Any, w: Any, a: Any, c: Any, alpha: float = 8.0) -> Any:
    return x @ w.T + alpha / a.shape[0] * (x @ a.T @ c.T)


def factorization_machine(x: Any, w: Any, v: Any, w0: Any) -> Any:
    pairs = torch.einsum("if,jf->ij", v, v).triu(1)
    return w0 + x @ w + torch.einsum("...i,ij,...j", x, pairs, x)


def gru_cell(x: Any, h: Any, wz: Any, uz: Any, wh: Any, uh: Any) -> Any:
    z = torch.sigmoid(x @ wz.T + h @ uz.T)
    c = torch.tanh(x @ wh.T + (z * h) @ uh.T)
    return (1 - z) * h + z * c


def lstm_pointwise(g: Any, c: Any) -> Any:
    i, f, a, o = g.unbind(-2)
    new = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(a)
    return torch.sigmoid(o) * torch.tanh(new), new


def glu_split(x: Any, n: int) -> Any:
    return F.glu(x, -1)


CASES = {
    "scaled_attention": case(
        scaled_attention, q="... m k", r="... n k", v="... n h", bias="m n"
    ),
    "causal_attention": case(causal_attention, q="... n k", r="... n k", v="... n h"),
    "flash_delta": case(
        lambda q, r, v, scale=0.5: torch.softmax(scale * q @ r.T, -1) @ v,
        q="m k",
        r="n k",
        v="n h",
    ),
    "linear_attention": case(
        linear_attention, q=positive("... m k"), r=positive("... n k"), v="... n h"
    ),
    "additive_attention": case(additive_attention, x="... n d", w="a d", u="a"),
    "squeeze_excite": case(squeeze_excite, x="... c s", u="h c", w="c h"),
    "film": case(
        lambda x, gamma, beta: (1 + gamma[..., None]) * x + beta[..., None],
        x="... c s",
        gamma="... c",
        beta="... c",
    ),
    "glu_split": case(
        glu_split,
        sizes={"n": (1, 3), "m": lambda s: 2 * s["n"]},
        statics={"n": lambda s: s["n"]},
        x="... m",
    ),
    "swiglu": case(
        lambda x, w, v: F.silu(x @ w.T) * (x @ v.T), x="... d", w="h d", v="h d"
    ),
    "maxout": case(maxout, x="... d", w="h p d", b="h p"),
    "max_pool_all": case(lambda x: x.amax(-1), x="... c s"),
    "average_pool_2d": case(lambda x: x.mean((-2, -1)), x="... c h w"),
    "log_mean_exp": case(log_mean_exp, x="... n"),
    "gem_pool": case(
        lambda x, p: (x**p).mean(-1) ** (1 / p), x=positive("... c s"), p=positive("")
    ),
    "attention_pool": case(attention_pool, x="... n d", w="d"),
    "soft_mixture_of_experts": case(soft_mixture_of_experts, g="... e", f="... e d"),
    "lora": case(lora, x="b k", w=fixed(positive("m k")), a="r k", c="m r"),
    "factorization_machine": case(
        factorization_machine, x="... n", w="n", v="n k", w0=""
    ),
    "dcn_cross": case(
        lambda x0, x, w, b: x0 * (x @ w)[..., None] + b + x,
        x0="... n",
        x="... n",
        w="n",
        b="n",
    ),
    "dcn_v2": case(
        lambda x0, x, w, b: x0 * (x @ w.T + b) + x,
        x0="... n",
        x="... n",
        w="n n",
        b="n",
    ),
    "gru_cell": case(
        gru_cell, x="... d", h="... k", wz="k d", uz="k k", wh="k d", uh="k k"
    ),
    "lstm_pointwise": case(lstm_pointwise, g="... 4 k", c="... k"),
    "low_rank_bilinear_pool": case(
        lambda x, z, u, v: torch.tanh((x @ u.T) * (z @ v.T)),
        x="... d",
        z="... e",
        u="k d",
        v="k e",
    ),
    "embedding_bag_mean": case(
        lambda w, t: F.embedding(t, w).mean(1), w="v k", t=label("b l", "v")
    ),
    "layer_scale": case(lambda x, g: x * g, x="... n c", g="c"),
    "row_scale": case(lambda x, v: v[:, None] * x, x="n m", v="n"),
}
