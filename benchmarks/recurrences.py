"""How fast an affine recurrence is, forward and backward, in torch.

    python benchmarks/recurrences.py [--threads N]

``h[t] = a[t] * h[t - 1] + x[t]`` over 16 rows of 2,048 places in float64: the emitted
rule, doubling with the adjoint written by hand, and autograd over a loop. All are timed
in turn in one process; the ratios are those of the least times, since a call takes
less time than the machine gives to another process.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import torch

import gradspec
from benchmarks.tensor import ROOT, elapsed

ROWS, PLACES, ROUNDS = 16, 2048, 25


def doubling(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The states from 0, in steps that double."""
    step = 1
    while step < x.shape[-1]:
        x = torch.cat(
            (x[..., :step], x[..., step:] + a[..., step:] * x[..., :-step]), -1
        )
        a = torch.cat((a[..., :step], a[..., step:] * a[..., :-step]), -1)
        step *= 2
    return x


class ByHand(torch.autograd.Function):
    """Doubling, and its adjoint from the other end."""

    @staticmethod
    def forward(ctx: Any, a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        h = doubling(a, x)
        ctx.save_for_backward(a, h)
        return h

    @staticmethod
    def backward(ctx: Any, dh: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        a, h = ctx.saved_tensors
        later = torch.cat((a[..., 1:], torch.zeros_like(a[..., :1])), -1)
        g = doubling(later.flip(-1), dh.flip(-1)).flip(-1)
        before = torch.cat((torch.zeros_like(h[..., :1]), h[..., :-1]), -1)
        return g * before, g


def loop(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """The states one after the other."""
    h, found = torch.zeros_like(x[..., 0]), []
    for t in range(x.shape[-1]):
        h = a[..., t] * h + x[..., t]
        found.append(h)
    return torch.stack(found, -1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    torch.set_num_threads(parser.parse_args().threads)
    module = gradspec.load(ROOT / "benchmarks" / "recurrences.grad", "torch")
    emitted: Callable[..., torch.Tensor] = module.affine_recurrence
    shape = ROWS, PLACES
    a = torch.rand(*shape, dtype=torch.float64).requires_grad_()
    x = torch.randn(*shape, dtype=torch.float64).requires_grad_()
    by_hand: Callable[..., torch.Tensor] = ByHand.apply
    functions = emitted, by_hand, loop
    rounds = [[elapsed(f, (a, x)) for f in functions] for _ in range(ROUNDS)]
    ours, theirs, slow = (min(column) for column in zip(*rounds, strict=True))
    print(f"emitted            {ours * 1e3:8.2f} ms")
    print(f"doubling by hand   {theirs * 1e3:8.2f} ms   ratio {ours / theirs:.2f}")
    print(f"autograd of a loop {slow * 1e3:8.2f} ms   ratio {ours / slow:.3f}")


if __name__ == "__main__":
    main()
