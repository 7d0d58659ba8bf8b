"""Small vectors and matrices: rotations, cameras, determinants, smoothing of meshes."""

from __future__ import annotations

from typing import Any

import torch

from tests.corpus.ranked.case import (
    Given,
    between,
    case,
    fixed,
    label,
    positive,
    unit,
)
from tests.corpus.ranked.references.metrics import squared_distances


def cross(a: Any, b: Any) -> Any:
    return torch.linalg.cross(*torch.broadcast_tensors(a, b))


def quaternion_multiply(p: Any, q: Any) -> Any:
    a, u, b, v = p[..., :1], p[..., 1:], q[..., :1], q[..., 1:]
    real = a * b - (u * v).sum(-1, keepdim=True)
    return torch.cat([real, a * v + b * u + cross(u, v)], -1)


def quaternion_to_matrix(q: Any) -> Any:
    """Not of the author's closed form: I + 2 r K + 2 K K."""
    r, (x, y, z) = q[..., 0], q[..., 1:].unbind(-1)
    none = torch.zeros_like(r)
    rows = [none, -z, y, z, none, -x, -y, x, none]
    skew = torch.stack(rows, -1).reshape(*q.shape[:-1], 3, 3)
    return torch.eye(3).to(q) + 2 * r[..., None, None] * skew + 2 * skew @ skew


def rodrigues(v: Any, k: Any, theta: Any) -> Any:
    c, s = torch.cos(theta)[..., None], torch.sin(theta)[..., None]
    along = (k * v).sum(-1, keepdim=True)
    return v * c + cross(k, v) * s + k * along * (1 - c)


def homogeneous_transform(m: Any, p: Any) -> Any:
    h = torch.cat([p, torch.ones_like(p[..., :1])], -1) @ m.mT
    return h[..., :3] / h[..., 3:]


def pinhole(p: Any, f: Any, c: Any) -> Any:
    return f * p[..., :2] / p[..., 2:] + c


def barycentric(a: Any, b: Any, c: Any, p: Any) -> Any:
    def area(u: Any, v: Any) -> Any:
        return u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0]

    whole = area(b - a, c - a)
    wa, wb = area(b - p, c - p) / whole, area(c - p, a - p) / whole
    return torch.stack(torch.broadcast_tensors(wa, wb, 1 - wa - wb), -1)


def givens(x: Any, theta: Any, p: int, q: int) -> Any:
    theta = torch.broadcast_to(theta, torch.broadcast_shapes(theta.shape, x.shape[:-1]))
    turned = list(torch.broadcast_to(x, (*theta.shape, x.shape[-1])).unbind(-1))
    a, b = turned[p], turned[q]
    turned[p] = torch.cos(theta) * a - torch.sin(theta) * b
    turned[q] = torch.sin(theta) * a + torch.cos(theta) * b
    return torch.stack(turned, -1)


def householder(x: Any, v: Any) -> Any:
    unit_ = v / v.norm(dim=-1, keepdim=True)
    return x - 2 * (unit_ * x).sum(-1, keepdim=True) * unit_


def gram_schmidt_6d(x: Any) -> Any:
    a = x[..., 0, :] / x[..., 0, :].norm(dim=-1, keepdim=True)
    u = x[..., 1, :] - (a * x[..., 1, :]).sum(-1, keepdim=True) * a
    return torch.stack([a, u / torch.sqrt(u.square().sum(-1, keepdim=True) + 1e-3)], -2)


def skew_energy(w: Any, x: Any) -> Any:
    return cross(w[..., None, :], x).square().sum((-2, -1)) / 2


def chamfer(x: Any, z: Any) -> Any:
    s = squared_distances(x, z)
    return s.amin(-1).mean(-1) + s.amin(-2).mean(-1)


def laplacian_smoothing(v: Any, w: Any) -> Any:
    return (v - w @ v / w.sum(1, keepdim=True)).square().sum()


def edge_lengths(v: Any, a: Any, b: Any, rest: Any) -> Any:
    d = (v[a] - v[b]).square().sum(1)
    return (d - rest**2).square().sum() / 2


def stress(x: Any, d: Any) -> Any:
    return (squared_distances(x, x) - d).square().triu(1).sum()


def lennard_jones(x: Any) -> Any:
    i, j = torch.triu_indices(len(x), len(x), 1)
    r2 = (x[i] - x[j]).square().sum(1)
    return 4 * (r2**-6 - r2**-3).sum()


def coulomb_potential(q: Any, x: Any, p: Any, soft: float = 0.1) -> Any:
    return (q / torch.sqrt((x - p).square().sum(1) + soft)).sum()


def orthogonality(w: Any) -> Any:
    return (w.T @ w - torch.eye(w.shape[1]).to(w)).square().sum()


def grid(axes: str) -> Given:
    """Points on a line, more than 1 apart."""

    def draw(rng: Any, shape: Any, _: Any) -> Any:
        made = rng.uniform(-0.1, 0.1, shape)
        made[:, 0] += 1.5 * torch.arange(shape[0]).numpy()
        return made

    return Given(axes, draw)


def diagonal_heavy(axes: str) -> Given:
    def draw(rng: Any, shape: Any, _: Any) -> Any:
        return rng.uniform(0.1, 0.4, shape) + 2 * torch.eye(shape[-1]).numpy()

    return Given(axes, draw)


CASES = {
    "cross_rows": case(cross, a="... 3", b="... 3"),
    "quaternion_multiply": case(quaternion_multiply, p="... 4", q="... 4"),
    "quaternion_to_matrix": case(quaternion_to_matrix, q="... 4"),
    "determinant_2": case(lambda m: torch.linalg.det(m), m="... 2 2"),
    "determinant_3": case(lambda m: torch.linalg.det(m), m="... 3 3"),
    "inverse_2": case(lambda m: torch.linalg.inv(m), m=diagonal_heavy("... 2 2")),
    "rodrigues": case(rodrigues, v="... 3", k="... 3", theta="..."),
    "homogeneous_transform": case(
        homogeneous_transform, m=positive("... 4 4"), p=unit("... n 3")
    ),
    "pinhole": case(pinhole, p=positive("... n 3"), f=positive("2"), c="2"),
    "barycentric": case(
        barycentric,
        a=between(-1.5, -1)("... 2"),
        b=Given("... 2", lambda rng, s, _: rng.uniform((2, -2), (2.3, -1.7), s)),
        c=Given("... 2", lambda rng, s, _: rng.uniform((0, 2), (0.3, 2.3), s)),
        p="... 2",
    ),
    "givens": case(
        givens,
        sizes={"n": (2, 4)},
        statics={"p": lambda s: s["n"] - 1, "q": 0},
        x="... n",
        theta="...",
    ),
    "householder": case(householder, x="... n", v="... n"),
    "gram_schmidt_6d": case(gram_schmidt_6d, x=between(1, 2)("... 2 3")),
    "skew_energy": case(skew_energy, w="... 3", x="... n 3"),
    "chamfer": case(chamfer, x="... m 3", z="... n 3"),
    "laplacian_smoothing": case(laplacian_smoothing, v="n 3", w=fixed(positive("n n"))),
    "edge_lengths": case(
        edge_lengths,
        v="n k",
        a=label("m", "n"),
        b=label("m", "n"),
        rest=fixed(positive("m")),
    ),
    "stress": case(stress, x="n k", d=fixed(positive("n n"))),
    "lennard_jones": case(lennard_jones, x=grid("n 3")),
    "coulomb_potential": case(coulomb_potential, q="n", x="n 3", p="3"),
    "orthogonality": case(orthogonality, w="m k"),
    "outer_accumulate": case(
        lambda a, c, s: 0.9 * s + 0.1 * a.T @ c / len(a), a="b m", c="b n", s="m n"
    ),
}
