"""How fast emitted functions over named axes are, and what they keep for the backward.

    python benchmarks/tensor.py [--threads N]

Everything is torch, forward plus backward, in one process; both sides of a ratio are
timed in turn, and the ratio is that of the medians, so that it is free of the machine's
speed. Products of matrices are compared with the framework's own operation, rows with
what elementary operations compose (and with the framework's own operation beside it).
Bytes are what autograd saves that is no input, in units of the bytes of the first
input (so the output counts, if it is kept).
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import torch

import gradspec

ROOT = Path(__file__).parents[1]
ROUNDS = 15
Function = Callable[..., torch.Tensor]


def emitted(file: str) -> ModuleType:
    """The torch module of a shipped file."""
    return gradspec.load(ROOT / "rules" / "tensor" / f"{file}.grad", "torch")


def elapsed(function: Function, inputs: Sequence[torch.Tensor]) -> float:
    """Seconds of one forward and backward."""
    begun = time.perf_counter()
    output = function(*inputs)
    torch.autograd.grad(output, inputs, torch.ones_like(output))
    return time.perf_counter() - begun


def medians(
    functions: Sequence[Function], inputs: Sequence[torch.Tensor]
) -> list[float]:
    """Median seconds of each, taken in turn after a warm-up."""
    for function in functions:
        for _ in range(3):
            elapsed(function, inputs)
    rounds = [[elapsed(f, inputs) for f in functions] for _ in range(ROUNDS)]
    return [statistics.median(column) for column in zip(*rounds, strict=True)]


def kept(function: Function, inputs: Sequence[torch.Tensor]) -> float:
    """Bytes that the graph saves beside the inputs, over those of the first."""
    saved: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        output = function(*inputs)
    for tensor in inputs:
        saved.pop(tensor.untyped_storage().data_ptr(), None)
    held = sum(saved.values())
    assert output.requires_grad
    return held / inputs[0].untyped_storage().nbytes()


def randoms(*shapes: tuple[int, ...]) -> tuple[torch.Tensor, ...]:
    return tuple(torch.randn(shape).requires_grad_() for shape in shapes)


# --- what elementary operations compose ----------------------------------------------


def softmax(x: torch.Tensor) -> torch.Tensor:
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def log_softmax(x: torch.Tensor) -> torch.Tensor:
    c = x - x.amax(-1, keepdim=True)
    return c - torch.log(torch.exp(c).sum(-1, keepdim=True))


def layer_norm(x: torch.Tensor, g: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    c = x - x.mean(-1, keepdim=True)
    return g * c / torch.sqrt((c * c).mean(-1, keepdim=True) + 1e-5) + b


def rms_norm(x: torch.Tensor, g: torch.Tensor) -> torch.Tensor:
    return g * x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-6)


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ k.mT / q.shape[-1] ** 0.5, -1) @ v


# --- report --------------------------------------------------------------------------


def row(
    name: str,
    ours: Function,
    peers: Sequence[tuple[str, Function]],
    inputs: Sequence[torch.Tensor],
) -> None:
    mine, *others = medians([ours, *(f for _, f in peers)], inputs)
    ratios = "  ".join(
        f"{mine / other:5.2f} of {label}"
        for (label, _), other in zip(peers, others, strict=True)
    )
    sizes = "x".join(map(str, inputs[0].shape))
    keeps = [kept(ours, inputs), *(kept(f, inputs) for _, f in peers)]
    words = " ".join(f"{k:.2f}" for k in keeps)
    print(f"{name:12} {sizes:>12} {1e3 * mine:8.2f} ms  {ratios}  keeps {words}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    torch.set_num_threads(parser.parse_args().threads)
    torch.manual_seed(0)
    own = torch.nn.functional
    algebra, rows, norms = map(emitted, ("algebra", "softmax", "norms"))
    for n in (512, 768, 1024):
        square = randoms((n, n), (n, n))
        row("matmul", algebra.matmul, [("torch", torch.matmul)], square)
        wide = randoms((n, n), (n, n), (n,))
        row("linear", algebra.linear, [("torch", own.linear)], wide)
    three = randoms((512, 64), (64, 64, 64), (512, 64))
    peer = ("torch", lambda x, w, z: own.bilinear(x, z, w))
    row("bilinear", algebra.bilinear, [peer], three)
    for n in (512, 1024):
        (x,) = randoms((n, n))
        g, b = randoms((n,), (n,))
        row(
            "softmax",
            rows.softmax,
            [("composed", softmax), ("torch", lambda x: own.softmax(x, -1))],
            [x],
        )
        row(
            "log_softmax",
            rows.log_softmax,
            [("composed", log_softmax), ("torch", lambda x: own.log_softmax(x, -1))],
            [x],
        )
        peers = [
            ("composed", layer_norm),
            ("torch", lambda x, g, b, n=n: own.layer_norm(x, (n,), g, b)),
        ]
        row("layer_norm", norms.layer_norm, peers, [x, g, b])
        peers = [
            ("composed", rms_norm),
            ("torch", lambda x, g, n=n: own.rms_norm(x, (n,), g, 1e-6)),
        ]
        row("rms_norm", norms.rms_norm, peers, [x, g])
    heads = randoms((8, 256, 64), (8, 256, 64), (8, 256, 64))
    row("attention", emitted("attention").attention, [("composed", attention)], heads)


if __name__ == "__main__":
    main()
