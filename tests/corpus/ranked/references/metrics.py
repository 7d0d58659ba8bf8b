"""Distances, similarities and the losses of metric learning."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F

from tests.corpus.ranked.case import (
    between,
    case,
    fixed,
    flags,
    label,
    positive,
    unit,
)
from tests.corpus.ranked.references.classification import picked


def cosine_embedding(x: Any, z: Any, same: Any, margin: float = 0.2) -> Any:
    c = F.cosine_similarity(x, z, dim=-1, eps=0.0)
    return torch.where(same, 1 - c, torch.relu(c - margin))


def cosine_matrix(a: Any, b: Any, eps: float = 1e-8) -> Any:
    na = torch.sqrt(a.square().sum(-1, keepdim=True) + eps)
    nb = torch.sqrt(b.square().sum(-1, keepdim=True) + eps)
    return (a / na) @ (b / nb).mT


def squared_distances(x: Any, z: Any) -> Any:
    return (x[..., :, None, :] - z[..., None, :, :]).square().sum(-1)


def minkowski_weighted(x: Any, z: Any, w: Any, p: float = 3.0) -> Any:
    return ((w * (x - z) ** p).sum(-1)) ** (1 / p)


def triplet_euclid(a: Any, p: Any, q: Any, margin: float = 0.3) -> Any:
    near = torch.sqrt((a - p).square().sum(-1) + 1e-6)
    far = torch.sqrt((a - q).square().sum(-1) + 1e-6)
    return torch.relu(near - far + margin)


def contrastive_siamese(x: Any, z: Any, y: Any, margin: float = 1.5) -> Any:
    d = (x - z).norm(dim=-1)
    return (1 - y) * d**2 / 2 + y * torch.relu(margin - d) ** 2 / 2


def n_pair(a: Any, p: Any) -> Any:
    s = a @ p.T
    return F.cross_entropy(s, torch.arange(len(a)))


def clip_loss(s: Any) -> Any:
    own = torch.arange(len(s))
    return (F.cross_entropy(s, own) + F.cross_entropy(s.T, own)) / 2


def nt_xent(z: Any, tau: float, pair: int) -> Any:
    s = (z @ z.T / tau)[0]
    return torch.logsumexp(s[1:], 0) - s[pair]


def supervised_contrastive(s: Any, same: Any) -> Any:
    others = ~torch.eye(len(s), dtype=torch.bool)
    masked = torch.where(others, s, -torch.inf)
    logp = s - torch.logsumexp(masked, 1, keepdim=True)
    return -((same * others * logp).sum(1) / same.sum(1)).mean()


def circle_loss(sp: Any, sn: Any, gamma: float = 8.0, margin: float = 0.25) -> Any:
    ap, an = torch.relu(1 + margin - sp), torch.relu(sn + margin)
    lp = torch.logsumexp(-gamma * ap * (sp - 1 + margin), -1)
    ln = torch.logsumexp(gamma * an * (sn - margin), -1)
    return F.softplus(lp + ln)


def multi_similarity(
    sp: Any, sn: Any, alpha: float = 2.0, beta: float = 10.0, base: float = 0.5
) -> Any:
    pos = torch.exp(-alpha * (sp - base)).sum(-1)
    neg = torch.exp(beta * (sn - base)).sum(-1)
    return torch.log1p(pos) / alpha + torch.log1p(neg) / beta


def centre_loss(x: Any, c: Any, t: Any) -> Any:
    return (x - c[t]).square().sum() / (2 * len(x))


def prototypical(x: Any, c: Any, t: Any) -> Any:
    d = (x[..., None, :] - c).square().sum(-1)
    return -picked(torch.log_softmax(-d, -1), t)


def soft_k_means(x: Any, c: Any, beta: float = 2.0) -> Any:
    return torch.softmax(-beta * (x[..., None, :] - c).square().sum(-1), -1)


def student_t_assignment(z: Any, c: Any) -> Any:
    u = 1 / (1 + (z[..., None, :] - c).square().sum(-1))
    return u / u.sum(-1, keepdim=True)


def laplacian_kernel(x: Any, z: Any, gamma: float = 0.7) -> Any:
    apart = (x[..., :, None, :] - z[..., None, :, :]).abs().sum(-1)
    return torch.exp(-gamma * apart)


def rbf_ard(x: Any, z: Any, logl: Any, logs: Any) -> Any:
    d = squared_distances(x / logl.exp(), z / logl.exp())
    return torch.exp(2 * logs) * torch.exp(-d / 2)


def matern32(d: Any, ell: Any) -> Any:
    r = math.sqrt(3) * d / ell
    return (1 + r) * torch.exp(-r)


def mmd_rbf(x: Any, z: Any) -> Any:
    def mean(a: Any, b: Any) -> Any:
        return torch.exp(-squared_distances(a, b) / 2).mean()

    return mean(x, x) + mean(z, z) - 2 * mean(x, z)


def coral(x: Any, z: Any) -> Any:
    def covariance(a: Any) -> Any:
        centred = a - a.mean(0)
        return centred.T @ centred / len(a)

    return (covariance(x) - covariance(z)).square().sum() / (4 * x.shape[1] ** 2)


def barlow_twins(c: Any, lam: float = 0.05) -> Any:
    on = (torch.diagonal(c) - 1).square().sum()
    return on + lam * (c - torch.diag(torch.diagonal(c))).square().sum()


def vicreg_variance(z: Any) -> Any:
    sd = torch.sqrt(z.var(0, correction=0) + 1e-4)
    return torch.relu(1 - sd).mean()


CASES = {
    "cosine_similarity_hand": case(
        lambda x, z: F.cosine_similarity(x, z, dim=-1, eps=0.0), x="... n", z="... n"
    ),
    "cosine_embedding": case(cosine_embedding, x="... n", z="... n", same=flags("...")),
    "cosine_matrix": case(cosine_matrix, a="... m k", b="... n k"),
    "euclidean_distance": case(lambda x, z: (x - z).norm(dim=-1), x="... n", z="... n"),
    "cdist": case(
        lambda x, z: torch.sqrt(squared_distances(x, z)), x="... m k", z="... n k"
    ),
    "squared_distance_expanded": case(squared_distances, x="m k", z="n k"),
    "manhattan": case(lambda x, z: (x - z).abs().sum(-1), x="... n", z="... n"),
    "minkowski_weighted": case(
        minkowski_weighted,
        statics={"p": 2.5},
        x=between(2, 3)("... n"),
        z=unit("... n"),
        w=positive("n"),
    ),
    "mahalanobis": case(
        lambda x, mu, a: torch.einsum("...i,ij,...j", x - mu, a, x - mu),
        x="... n",
        mu="n",
        a="n n",
    ),
    "triplet_euclid": case(triplet_euclid, a="... n", p="... n", q="... n"),
    "contrastive_siamese": case(
        contrastive_siamese, x="... n", z="... n", y=fixed(unit("..."))
    ),
    "n_pair": case(n_pair, sizes={"b": (2, 4)}, a="b k", p="b k"),
    "info_nce": case(
        lambda q, r, tau=0.2: F.cross_entropy(q @ r.T / tau, torch.arange(len(q))),
        q="b k",
        r="b k",
    ),
    "clip_loss": case(clip_loss, s="n n"),
    "nt_xent": case(
        nt_xent,
        sizes={"n": (2, 5)},
        statics={"tau": 0.5, "pair": lambda s: s["n"] - 1},
        z="n k",
    ),
    "supervised_contrastive": case(
        supervised_contrastive,
        sizes={"n": (2, 5)},
        s="n n",
        same=fixed(positive("n n")),
    ),
    "circle_loss": case(circle_loss, sp=unit("... m"), sn=unit("... n")),
    "multi_similarity": case(multi_similarity, sp=unit("... m"), sn=unit("... n")),
    "centre_loss": case(centre_loss, x="b k", c="m k", t=label("b", "m")),
    "prototypical": case(prototypical, x="... k", c="m k", t=label("...", "m")),
    "soft_k_means": case(soft_k_means, x="... k", c="m k"),
    "student_t_assignment": case(student_t_assignment, z="... k", c="m k"),
    "laplacian_kernel": case(laplacian_kernel, x="... m k", z="... n k"),
    "rbf_ard": case(rbf_ard, x="m k", z="n k", logl="k", logs=""),
    "matern32": case(matern32, d=positive("... m n"), ell=positive("")),
    "mmd_rbf": case(mmd_rbf, x="m k", z="n k"),
    "coral": case(coral, x="m k", z="n k"),
    "barlow_twins": case(barlow_twins, c="d d"),
    "vicreg_variance": case(vicreg_variance, z="b k"),
}
