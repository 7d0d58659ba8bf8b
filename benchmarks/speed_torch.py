"""torch: emitted rules against those that experts write, eager and compiled, and the
bytes that they keep. Run by `speed.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import experts
import torch
from timing import Thunk, emitted, medians, sized, table
from torch.nn import functional

Tensor = torch.Tensor
Inputs = tuple[Tensor, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """``composite`` is the forward in the framework's operations."""

    name: str
    file: str
    expert: Callable[..., Any]
    composite: Callable[..., Any] | None
    inputs: Callable[[int], Inputs]
    is_elementwise: bool = True


def _one(n: int) -> Inputs:
    return (torch.randn(n).requires_grad_(),)


def _two(n: int) -> Inputs:
    return (torch.randn(n).requires_grad_(), torch.randn(n).requires_grad_())


def _labelled(n: int) -> Inputs:
    return (torch.randn(n).requires_grad_(), torch.randn(n).sign())


def _rows(n: int) -> Inputs:
    size = min(1000, max(1, n // 10))
    return (torch.randn(max(1, n // size), size).requires_grad_(),)


def _affine(n: int) -> Inputs:
    (x,) = _rows(n)
    gain, shift = torch.randn(x.shape[1]), torch.randn(x.shape[1])
    return (x, gain.requires_grad_(), shift.requires_grad_())


def _mish(x: Tensor) -> Tensor:
    return x * torch.tanh(functional.softplus(x))


def _silu(x: Tensor) -> Tensor:
    return x * torch.sigmoid(x)


def _complex_op(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    return x * y + torch.sin(x), y**2


def _softmax(x: Tensor) -> Tensor:
    return torch.softmax(x, -1)


def _log_sum_exp(x: Tensor) -> Tensor:
    return torch.logsumexp(x, -1)


def _layer_norm(x: Tensor, g: Tensor, b: Tensor) -> Tensor:
    return functional.layer_norm(x, g.shape, g, b)


_SMOOTH, _SPIKES = "activations/smooth", "surrogates/spikes"
_SOFTMAX, _NORMS = "tensor/softmax", "tensor/norms"
_FOCAL, _TWO = "losses/classification", "tutorial/complex_op"
_SUM = "stable/logs"
CASES = (
    Case("softplus", _SMOOTH, experts.Softplus.apply, functional.softplus, _one),
    Case("mish", _SMOOTH, experts.Mish.apply, _mish, _one),
    Case("gelu", _SMOOTH, experts.Gelu.apply, functional.gelu, _one),
    Case("silu", _SMOOTH, experts.Swish.apply, _silu, _one),
    Case("focal_loss", _FOCAL, experts.focal_loss, experts.focal_loss, _labelled),
    Case("spike_fast_sigmoid", _SPIKES, experts.FastSigmoid.apply, None, _one),
    Case("spike_arctan", _SPIKES, experts.ATan.apply, None, _one),
    Case("complex_op", _TWO, experts.TwoInTwoOut.apply, _complex_op, _two),
    Case("logaddexp", _SUM, experts.LogAddExp.apply, torch.logaddexp, _two),
    Case("softmax", _SOFTMAX, experts.Softmax.apply, _softmax, _rows, False),
    Case("log_sum_exp", _SOFTMAX, experts.LogSumExp.apply, _log_sum_exp, _rows, False),
    Case("layer_norm", _NORMS, experts.LayerNorm.apply, _layer_norm, _affine, False),
)


@cache
def _module(file: str) -> Any:
    return emitted(file, "torch")


def _ours(case: Case) -> Callable[..., Any]:
    return getattr(_module(case.file), case.name)  # type: ignore[no-any-return]


def _pass(function: Callable[..., Any], inputs: Inputs) -> Thunk:
    """Forward and backward, with dense upstream gradients."""
    made = function(*inputs)
    outputs = made if isinstance(made, tuple) else (made,)
    upstream = [torch.ones_like(y) for y in outputs]
    leaves = [x for x in inputs if x.requires_grad]
    return lambda: torch.autograd.grad(function(*inputs), leaves, upstream)


def _ratio(
    ours: Callable[..., Any], other: Callable[..., Any], inputs: Inputs, seconds: float
) -> float:
    found = medians({"a": _pass(ours, inputs), "b": _pass(other, inputs)}, seconds)
    return found["a"] / found["b"]


# --- what is measured --------------------------------------------------------------------


class _Same(torch.autograd.Function):
    """Softplus with its emitted formulas, written by hand in the old style."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return functional.softplus(1.0 * x, threshold=40.0) / 1.0

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return dy * torch.sigmoid(1.0 * x)


def overhead(seconds: float) -> None:
    """At one element: against the same formulas in an old-style class."""
    inputs = _one(1)
    softplus = _module(_SMOOTH).softplus
    ratio = _ratio(softplus, _Same.apply, inputs, seconds)
    rows = [("softplus, the same formulas", f"{ratio:.3f}")]
    for case in CASES:
        ratio = _ratio(_ours(case), case.expert, case.inputs(1), seconds / 4)
        rows.append((f"{case.name}, an expert's", f"{ratio:.3f}"))
    table("torch: overhead at n = 1, of a hand-written rule", ("rule", "ratio"), rows)


def eager(sizes: Sequence[int], seconds: float) -> None:
    """Against the experts."""
    rows = []
    for case in CASES:
        found = [
            _ratio(_ours(case), case.expert, case.inputs(n), seconds) for n in sizes
        ]
        rows.append((case.name, *(f"{ratio:.2f}" for ratio in found)))
    head = ("rule", *(f"n = {sized(n)}" for n in sizes))
    table("torch eager: time of forward and backward, of an expert's", head, rows)


def compiled(sizes: Sequence[int], seconds: float) -> None:
    """Under `torch.compile`, against the composite under the same."""
    rows = []
    for case in CASES:
        if case.composite is None:
            continue
        torch._dynamo.reset()
        ours, other = torch.compile(_ours(case)), torch.compile(case.composite)
        found = [_ratio(ours, other, case.inputs(n), seconds) for n in sizes]
        rows.append((case.name, *(f"{ratio:.2f}" for ratio in found)))
    head = ("rule", *(f"n = {sized(n)}" for n in sizes))
    table("torch.compile: of the composite, compiled", head, rows)


def kept() -> None:
    """Bytes between forward and backward that are no input and no output."""
    rows = []
    for case in CASES:
        for inputs in [case.inputs(10_000)]:
            functions = [_ours(case), case.composite or case.expert]
            found = [_bytes_kept(function, inputs) for function in functions]
            rows.append((case.name, *(f"{count}" for count in found)))
    head = ("rule", "emitted", "composite")
    table("torch: bytes kept beside inputs and outputs, n = 1e4", head, rows)


def _bytes_kept(function: Callable[..., Any], inputs: Inputs) -> int:
    saved: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        made = function(*inputs)
    outputs = made if isinstance(made, tuple) else (made,)
    for tensor in (*inputs, *outputs):
        saved.pop(tensor.untyped_storage().data_ptr(), None)
    return sum(saved.values())


def main(sizes: Sequence[int], seconds: float, threads: int) -> None:
    torch.manual_seed(0)
    if threads:
        torch.set_num_threads(threads)
    kept()
    overhead(seconds)
    eager(sizes, seconds)
    compiled(sizes[1:], seconds)
