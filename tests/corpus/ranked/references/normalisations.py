"""Normalisations over one or several axes."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from tests.corpus.ranked.case import case, fixed, positive


def group_norm(x: Any, w: Any, b: Any, eps: float = 1e-5) -> Any:
    var, mu = torch.var_mean(x, dim=(-2, -1), correction=0, keepdim=True)
    return (x - mu) / torch.sqrt(var + eps) * w[..., None] + b[..., None]


def batch_norm(x: Any, gamma: Any, beta: Any, eps: float = 1e-5) -> Any:
    return F.batch_norm(x, None, None, gamma, beta, training=True, eps=eps)


def batch_norm_eval(
    x: Any, mean0: Any, var0: Any, w: Any, b: Any, eps: float = 1e-5
) -> Any:
    return (x - mean0) / torch.sqrt(var0 + eps) * w + b


def spectral_linear(x: Any, w: Any, u: Any, v: Any) -> Any:
    return x @ (w / (u @ w @ v)).T


def min_max_scale(x: Any) -> Any:
    lo, hi = x.amin(-1, keepdim=True), x.amax(-1, keepdim=True)
    return (x - lo) / (hi - lo + 1e-6)


def standardize_ddof(x: Any, ddof: float = 1.0, eps: float = 1e-8) -> Any:
    sd, mu = torch.std_mean(x, dim=-1, correction=ddof, keepdim=True)
    return (x - mu) / (sd + eps)


def layer_norm_two_axes(x: Any, gamma: Any, eps: float = 1e-6) -> Any:
    return F.layer_norm(x, gamma.shape, gamma, None, eps)


def pixel_norm(x: Any) -> Any:
    return x * torch.rsqrt(x.square().mean(-3, keepdim=True) + 1e-8)


def demodulate(w: Any, s: Any, eps: float = 1e-8) -> Any:
    m = w * s[..., None, :, None]
    return m * torch.rsqrt(m.square().sum((-2, -1), keepdim=True) + eps)


def global_response_norm(x: Any, gamma: Any, beta: Any, eps: float = 1e-6) -> Any:
    gx = torch.sqrt(x.square().sum(-2, keepdim=True) + eps)
    nx = gx / (gx.mean(-1, keepdim=True) + eps)
    return gamma * (x * nx) + beta + x


def filter_response_norm(
    x: Any, gamma: Any, beta: Any, tau: Any, eps: float = 1e-6
) -> Any:
    nu2 = x.square().mean(-1, keepdim=True)
    z = gamma[:, None] * x * torch.rsqrt(nu2 + eps) + beta[:, None]
    return torch.maximum(z, tau[:, None])


def weight_standardise(w: Any, gain: float = 1.0) -> Any:
    var, mu = torch.var_mean(w, dim=1, correction=0, keepdim=True)
    fan = torch.clamp(var * w.shape[1], min=1e-4)
    return gain * (w - mu) * torch.rsqrt(fan)


def local_response(x: Any, alpha: float = 0.1, k: float = 2.0) -> Any:
    padded = F.pad(x.square(), (1, 1))
    window = padded[..., :-2] + padded[..., 1:-1] + padded[..., 2:]
    return x * (k + alpha * window) ** -0.75


CASES = {
    "group_norm": case(group_norm, x="... g c s", w="g c", b="g c"),
    "instance_norm": case(
        lambda x: F.instance_norm(x, eps=1e-5), sizes={"h": (2, 3)}, x="b c h w"
    ),
    "batch_norm_cs231n": case(
        batch_norm, sizes={"n": (2, 5)}, x="n d", gamma="d", beta="d"
    ),
    "batch_norm_paper": case(
        batch_norm,
        sizes={"n": (2, 5)},
        statics={"eps": 0.1},
        x="n d",
        gamma="d",
        beta="d",
    ),
    "batch_norm_eval": case(
        batch_norm_eval,
        x="... c",
        mean0=fixed(positive("c")),
        var0=fixed(positive("c")),
        w="c",
        b="c",
    ),
    "weight_norm": case(
        lambda v, g: g[:, None] * v / v.norm(dim=1, keepdim=True), v="m k", g="m"
    ),
    "spectral_linear": case(
        spectral_linear,
        x="... k",
        w=positive("m k"),
        u=fixed(positive("m")),
        v=fixed(positive("k")),
    ),
    "normalize_eps": case(lambda x: F.normalize(x, dim=-1), x="... n"),
    "l2_normalize_hand": case(lambda x: x / x.norm(dim=-1, keepdim=True), x="... n"),
    "l1_normalize": case(lambda x: x / x.abs().sum(-1, keepdim=True), x="... n"),
    "lp_normalize": case(
        lambda x, p: F.normalize(x, p=p, dim=-1),
        statics={"p": 2.5},
        x=positive("... n"),
    ),
    "sum_normalize": case(
        lambda x: x / (x.sum(-1, keepdim=True) + 1e-8), x=positive("... n")
    ),
    "min_max_scale": case(min_max_scale, x="... n"),
    "standardize_ddof": case(
        standardize_ddof, sizes={"n": (2, 5)}, statics={"ddof": 1.0}, x="... n"
    ),
    "layer_norm_two_axes": case(layer_norm_two_axes, x="... h w", gamma="h w"),
    "pixel_norm": case(pixel_norm, x="... c h w"),
    "demodulate": case(demodulate, w="o i k", s="... i"),
    "global_response_norm": case(
        global_response_norm, x="... h c", gamma="c", beta="c"
    ),
    "filter_response_norm": case(
        filter_response_norm, x="... c s", gamma="c", beta="c", tau="c"
    ),
    "weight_standardise": case(weight_standardise, statics={"gain": 1.7}, w="o k"),
    "scale_norm": case(
        lambda x, g: g * F.normalize(x, dim=-1, eps=1e-5), x="... n", g=""
    ),
    "local_response": case(local_response, x="... c"),
}
