"""Softmax and what classifiers do with it."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch.special import entr

from tests.corpus.ranked.case import (
    between,
    case,
    fixed,
    flags,
    label,
    positive,
    simplex,
    unit,
    zero_one,
)


def picked(x: Any, t: Any) -> Any:
    """``x[t]`` along the last axis; batch axes broadcast."""
    return (x * F.one_hot(t, x.shape[-1])).sum(-1)


def masked_softmax_additive(x: Any, keep: Any) -> Any:
    return torch.softmax(torch.where(keep, x, -1e4), -1)


def nll_ignore_index(x: Any, t: Any, w: Any) -> Any:
    return (w * F.cross_entropy(x, t, reduction="none")).sum() / w.sum()


def class_weighted_ce(x: Any, w: Any, t: Any) -> Any:
    return -picked(w * torch.log_softmax(x, -1), t)


def poly1_ce(x: Any, t: Any, eps: float = 1.0) -> Any:
    p = picked(torch.softmax(x, -1), t)
    return -torch.log(p) + eps * (1 - p)


def focal_multiclass(x: Any, t: Any, alpha: Any, gamma: float = 2.0) -> Any:
    logp = picked(torch.log_softmax(x, -1), t)
    return (-alpha[t] * (1 - logp.exp()) ** gamma * logp).mean()


def crammer_singer(x: Any, t: Any) -> Any:
    own = F.one_hot(t, x.shape[-1]).bool()
    others = torch.where(own, -torch.inf, x - picked(x, t)[..., None] + 1)
    return torch.relu(others.amax(-1))


def multi_margin_squared(x: Any, t: Any, margin: float = 1.0) -> Any:
    violated = torch.relu(margin - picked(x, t)[..., None] + x).square()
    return (violated * (1 - F.one_hot(t, x.shape[-1]))).mean(-1)


def svm_cs231n(w: Any, x: Any, t: Any, reg: float = 0.1) -> Any:
    scores = x @ w
    margins = torch.relu(scores - picked(scores, t)[:, None] + 1)
    counted = margins * (1 - F.one_hot(t, w.shape[1]))
    return counted.sum() / len(x) + reg * w.square().sum()


def arcface_like(x: Any, t: Any, scale: float = 16.0, margin: float = 0.35) -> Any:
    z = scale * (x - margin * F.one_hot(t, x.shape[-1]).to(x))
    return -picked(torch.log_softmax(z, -1), t)


def distillation_kl(x: Any, y: Any, tau: float = 4.0) -> Any:
    p, q = torch.log_softmax(y / tau, -1), torch.log_softmax(x / tau, -1)
    return tau**2 * F.kl_div(q, p, reduction="batchmean", log_target=True)


def jensen_shannon(p: Any, q: Any) -> Any:
    m = (p + q) / 2
    return (p * (p / m).log() + q * (q / m).log()).sum(-1) / 2


def alpha_divergence(p: Any, q: Any, alpha: float = 0.5) -> Any:
    return (1 - (p**alpha * q ** (1 - alpha)).sum(-1)) / (alpha * (1 - alpha))


def brier(x: Any, t: Any) -> Any:
    return (torch.softmax(x, -1) - F.one_hot(t, x.shape[-1])).square().sum(-1)


def generalized_ce(x: Any, t: Any, q: float = 0.7) -> Any:
    return (1 - picked(torch.softmax(x, -1), t) ** q) / q


def bce_pos_weight(x: Any, t: Any, w: Any) -> Any:
    # log_sigmoid by hand: torch's own weights are not broadcast with batch axes
    positive_part = w * t * torch.log1p(torch.exp(-x))
    return (positive_part + (1 - t) * torch.log1p(torch.exp(x))).mean(-1)


CASES = {
    "softmax_with_temperature": case(
        lambda x, tau=2.0: torch.softmax(x / tau, -1), x="b c"
    ),
    "softmax_by_jacobian": case(lambda x: torch.softmax(x, -1), x="... n"),
    "softmin": case(lambda x: F.softmin(x, -1), x="... n"),
    "softmax_over_rows": case(lambda x: torch.softmax(x, -2), x="... m n"),
    "softmax_2d": case(
        lambda x: torch.softmax(x.flatten(-2), -1).reshape(x.shape), x="... h w"
    ),
    "gumbel_softmax": case(
        lambda logits, g, tau: torch.softmax((logits + g) / tau, -1),
        statics={"tau": 0.75},
        logits="... n",
        g=fixed(between(-1, 2)("... n")),
    ),
    "log_softmax_shifted": case(lambda x: torch.log_softmax(x, -1), x="... n"),
    "masked_softmax_additive": case(
        masked_softmax_additive, x="... n", keep=flags("... n")
    ),
    "nll_mean": case(lambda x, t: F.cross_entropy(x, t), x="b c", t=label("b", "c")),
    "nll_ignore_index": case(
        nll_ignore_index, x="b c", t=label("b", "c"), w=fixed(positive("b"))
    ),
    "class_weighted_ce": case(
        class_weighted_ce, x="... c", w=fixed(positive("c")), t=label("...", "c")
    ),
    "label_smoothing": case(
        lambda x, t, eps: F.cross_entropy(x, t, label_smoothing=eps),
        statics={"eps": 0.2},
        x="b c",
        t=label("b", "c"),
    ),
    "poly1_ce": case(poly1_ce, statics={"eps": 2.0}, x="... n", t=label("...", "n")),
    "focal_multiclass": case(
        focal_multiclass, x="b c", t=label("b", "c"), alpha=fixed(positive("c"))
    ),
    "soft_target_ce": case(
        lambda x, y: -(y * torch.log_softmax(x, -1)).sum(-1),
        x="... n",
        y=simplex("... n"),
    ),
    "bce_multi_hot": case(
        lambda x, t: F.binary_cross_entropy_with_logits(x, t),
        x="b c",
        t=zero_one("b c"),
    ),
    "bce_pos_weight": case(
        bce_pos_weight, x="... n", t=fixed(unit("... n")), w=fixed(positive("n"))
    ),
    "crammer_singer": case(
        crammer_singer, sizes={"c": (2, 4)}, x="... c", t=label("...", "c")
    ),
    "multi_margin_squared": case(multi_margin_squared, x="... c", t=label("...", "c")),
    "svm_cs231n": case(
        svm_cs231n, w="d c", x=fixed(positive("n d")), t=label("n", "c")
    ),
    "arcface_like": case(arcface_like, x=between(-1, 1)("... n"), t=label("...", "n")),
    "entropy_categorical": case(lambda p: entr(p).sum(-1), p=simplex("... n")),
    "distillation_kl": case(distillation_kl, x="b c", y="b c"),
    "jensen_shannon": case(jensen_shannon, p=simplex("... n"), q=simplex("... n")),
    "alpha_divergence": case(
        alpha_divergence,
        statics={"alpha": 0.3},
        p=fixed(simplex("... n")),
        q=simplex("... n"),
    ),
    "expected_calibration_brier": case(brier, x="... n", t=label("...", "n")),
    "generalized_ce": case(generalized_ce, x="... n", t=label("...", "n")),
}
