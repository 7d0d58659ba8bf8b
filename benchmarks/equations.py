"""How fast the solution of an equation is, forward and backward, in torch.

    python benchmarks/equations.py [--threads N]

The rules of `rules/linalg` beside `torch.linalg` under autograd, and a fixed point beside
autograd over its iteration, in float64. All are timed in turn in one process; the
ratios are those of the least times, since a call takes less time than the machine
gives to another process.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import torch
from torch import Tensor

import gradspec
from benchmarks.tensor import ROOT, elapsed

ROUNDS = 15


def solve(a: Tensor, b: Tensor) -> Tensor:
    """The solution of a linear system."""
    return torch.linalg.solve(a, b)


def lower(a: Tensor, b: Tensor) -> Tensor:
    """That of a triangular one."""
    return torch.linalg.solve_triangular(
        torch.tril(a), b.unsqueeze(-1), upper=False
    ).squeeze(-1)


def ridge(x: Tensor, y: Tensor, lam: Tensor) -> Tensor:
    """The weights of a regression."""
    eye = torch.eye(x.shape[-1], dtype=x.dtype)
    return torch.linalg.solve(x.mT @ x + lam * eye, x.mT @ y)


def iterated(w: Tensor, x: Tensor) -> Tensor:
    """A fixed point, iterated until it stands."""
    z = torch.zeros_like(x)
    while True:
        moved = torch.tanh(z @ w.mT + x)
        if bool(torch.all(torch.abs(moved - z) < 1e-14)):
            return moved
        z = moved


SIZE = 400
Case = tuple[str, str, Callable[..., Tensor], tuple[Tensor, ...]]


def cases() -> list[Case]:
    """File, rule, reference and inputs."""
    torch.manual_seed(0)
    a = torch.randn(SIZE, SIZE, dtype=torch.float64) + SIZE**0.5 * torch.eye(SIZE)
    b = torch.randn(SIZE, dtype=torch.float64)
    x = torch.randn(2 * SIZE, SIZE, dtype=torch.float64)
    y = torch.randn(2 * SIZE, dtype=torch.float64)
    lam = torch.tensor(0.5, dtype=torch.float64)
    w = torch.randn(64, 64, dtype=torch.float64) / 16
    z = torch.randn(4, 64, dtype=torch.float64)
    return [
        ("systems", "linear_solve", solve, (a, b)),
        ("systems", "lower_solve", lower, (a, b)),
        ("regression", "ridge", ridge, (x, y, lam)),
        ("fixed_points", "equilibrium_layer", iterated, (w, z)),
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    torch.set_num_threads(parser.parse_args().threads)
    for file, name, reference, inputs in cases():
        module = gradspec.load(ROOT / "rules" / "linalg" / f"{file}.grad", "torch")
        given = tuple(one.requires_grad_() for one in inputs)
        functions = getattr(module, name), reference
        rounds = [[elapsed(f, given) for f in functions] for _ in range(ROUNDS)]
        ours, theirs = (min(column) for column in zip(*rounds, strict=True))
        print(
            f"{name:18} emitted {ours * 1e3:8.2f} ms, {reference.__name__:8} under"
            f" autograd {theirs * 1e3:8.2f} ms, ratio {ours / theirs:.2f}"
        )


if __name__ == "__main__":
    main()
