"""Overlap losses, regression losses over axes, correlations."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from tests.corpus.ranked.case import (
    Given,
    case,
    fixed,
    flags,
    positive,
    unit,
    zero_one,
)


def dice_squared(p: Any, t: Any, smooth: float = 1.0) -> Any:
    inter = (p * t).sum(-1)
    union = p.square().sum(-1) + t.square().sum(-1)
    return 1 - (2 * inter + smooth) / (union + smooth)


def dice_multiclass(p: Any, t: Any, eps: float = 1e-5) -> Any:
    inter = (p * t).sum((0, 2))
    return 1 - ((2 * inter + eps) / ((p + t).sum((0, 2)) + eps)).mean()


def soft_jaccard(p: Any, t: Any, smooth: float = 1.0) -> Any:
    inter = (p * t).sum(-1)
    return 1 - (inter + smooth) / ((p + t - p * t).sum(-1) + smooth)


def focal_tversky(p: Any, t: Any, alpha: float = 0.7, gamma: float = 0.75) -> Any:
    tp, fn, fp = (p * t).sum(-1), ((1 - p) * t).sum(-1), (p * (1 - t)).sum(-1)
    return (1 - tp / (tp + alpha * fn + (1 - alpha) * fp)) ** gamma


def log_cosh_dice(p: Any, t: Any) -> Any:
    d = 2 * (p * t).sum(-1) / (p + t).sum(-1)
    return torch.log(torch.cosh(1 - d))


def lovasz_gradient(g: Any) -> Any:
    inter = g.sum() - g.cumsum(0)
    union = g.sum() + (1 - g).cumsum(0)
    jaccard = 1 - inter / union
    return torch.cat([jaccard[:1], jaccard[1:] - jaccard[:-1]])


def concordance(x: Any, t: Any) -> Any:
    cx, ct = x - x.mean(-1, keepdim=True), t - t.mean(-1, keepdim=True)
    apart = (x.mean(-1) - t.mean(-1)).square()
    cov = (cx * ct).mean(-1)
    return 1 - 2 * cov / (cx.square().mean(-1) + ct.square().mean(-1) + apart)


def pearson_loss(x: Any, t: Any, eps: float = 1e-6) -> Any:
    cx, ct = x - x.mean(-1, keepdim=True), t - t.mean(-1, keepdim=True)
    sx = torch.sqrt(cx.square().sum(-1) + eps)
    st = torch.sqrt(ct.square().sum(-1) + eps)
    return 1 - (cx * ct).sum(-1) / (sx * st)


def r_squared(x: Any, t: Any) -> Any:
    total = (t - t.mean(-1, keepdim=True)).square().sum(-1)
    return 1 - (t - x).square().sum(-1) / total


def masked_mse(x: Any, t: Any, keep: Any) -> Any:
    return ((x - t).square() * keep).sum(-1) / keep.sum(-1).clamp(min=1)


def quantile_mean(x: Any, t: Any, tau: Any) -> Any:
    e = t[..., None] - x
    return torch.maximum(tau * e, (tau - 1) * e).mean(-1)


def charbonnier(x: Any, t: Any, eps: float = 1e-3) -> Any:
    return torch.sqrt((x - t).square() + eps**2).mean((-2, -1))


def scale_invariant_log(d: Any, t: Any, lam: float = 0.5) -> Any:
    g = d.log() - t.log()
    return g.square().mean(-1) - lam * g.mean(-1).square()


def cross_correlation_coefficient(x: Any, z: Any) -> Any:
    def standard(a: Any) -> Any:
        return F.layer_norm(a, a.shape[-1:], eps=1e-5)

    return standard(x) @ standard(z).T / x.shape[1]


def gram_style_loss(x: Any, g: Any) -> Any:
    c, s = x.shape[-2:]
    return (x @ x.mT - g).square().sum((-2, -1)) / (4 * c**2 * s**2)


def ssim(x: Any, z: Any, c1: float = 0.01, c2: float = 0.03) -> Any:
    mx, mz = x.mean(-1), z.mean(-1)
    vx, vz = x.var(-1, correction=0), z.var(-1, correction=0)
    cov = ((x - mx[..., None]) * (z - mz[..., None])).mean(-1)
    top = (2 * mx * mz + c1) * (2 * cov + c2)
    return top / ((mx.square() + mz.square() + c1) * (vx + vz + c2))


def boxes(axes: str) -> Given:
    """Corners of boxes that all contain the middle."""

    def draw(rng: Any, shape: Any, _: Any) -> Any:
        made = rng.uniform(0.1, 1.0, shape)
        made[..., :2] *= -1
        return made

    return Given(axes, draw)


def box_iou(a: Any, b: Any) -> Any:
    top = torch.maximum(a[..., :2], b[..., :2])
    bottom = torch.minimum(a[..., 2:], b[..., 2:])
    shared = torch.relu(bottom - top).prod(-1)
    areas = (a[..., 2:] - a[..., :2]).prod(-1) + (b[..., 2:] - b[..., :2]).prod(-1)
    return shared / (areas - shared)


CASES = {
    "dice_squared": case(dice_squared, p=unit("... n"), t=zero_one("... n")),
    "dice_multiclass": case(dice_multiclass, p=unit("b c s"), t=zero_one("b c s")),
    "soft_jaccard": case(soft_jaccard, p=unit("... n"), t=zero_one("... n")),
    "focal_tversky": case(focal_tversky, p=unit("... n"), t=fixed(unit("... n"))),
    "log_cosh_dice": case(log_cosh_dice, p=unit("... n"), t=zero_one("... n")),
    "lovasz_hinge_sorted": case(
        lambda e, grad: torch.relu(e) @ grad, e="n", grad=fixed(positive("n"))
    ),
    "lovasz_gradient": case(lovasz_gradient, g=unit("n")),
    "concordance": case(
        concordance, sizes={"n": (2, 5)}, x="... n", t=fixed(positive("... n"))
    ),
    "pearson_loss": case(
        pearson_loss, sizes={"n": (2, 5)}, x="... n", t=fixed(unit("... n"))
    ),
    "r_squared": case(
        r_squared, sizes={"n": (2, 5)}, x="... n", t=fixed(unit("... n"))
    ),
    "masked_mse": case(masked_mse, x="... n", t="... n", keep=flags("... n")),
    "weighted_mean": case(
        lambda x, w: (w * x).sum(-1) / w.sum(-1), x="... n", w=positive("... n")
    ),
    "quantile_mean": case(
        quantile_mean, x="... q", t=fixed(unit("...")), tau=fixed(unit("q"))
    ),
    "smooth_l1_beta": case(
        lambda x, t, beta: (
            F.huber_loss(x - t, 0 * (x - t), "none", beta).sum(-1) / beta
        ),
        statics={"beta": 0.75},
        x="... n",
        t=fixed(unit("... n")),
    ),
    "charbonnier": case(charbonnier, x="... h w", t=fixed(unit("... h w"))),
    "scale_invariant_log": case(
        scale_invariant_log, d=positive("... n"), t=fixed(positive("... n"))
    ),
    "cross_correlation_coefficient": case(
        cross_correlation_coefficient, x="b n", z="b n"
    ),
    "covariance": case(
        lambda x: torch.cov(x.T).reshape(x.shape[1], x.shape[1]),
        sizes={"n": (2, 5)},
        x="n d",
    ),
    "gram_style_loss": case(gram_style_loss, x="... c s", g=fixed(unit("... c c"))),
    "l1_ssim_luminance": case(ssim, x=positive("... n"), z=positive("... n")),
    "box_iou": case(box_iou, a=boxes("... 4"), b=boxes("... 4")),
}
