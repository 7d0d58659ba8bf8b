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
from timing import Thunk, emitted, ratio, ratios, sized, table
from torch.nn import functional

Tensor = torch.Tensor
Inputs = tuple[Tensor, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """``composite`` is the forward in the framework's operations."""

    name: str
    file: str
    expert: Callable[..., Any]
    composite: Callable[..., Any]
    inputs: Callable[[int], Inputs]


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


def _spike(v: Tensor) -> Tensor:
    """The surrogate without a rule: a step with the slope of something smooth."""
    smooth = v / (25.0 * torch.abs(v) + 1.0)
    return ((v > 0).to(v.dtype) - smooth).detach() + smooth


def _arctan_spike(v: Tensor) -> Tensor:
    smooth = torch.atan(torch.pi * v) / torch.pi
    return ((v >= 0).to(v.dtype) - smooth).detach() + smooth


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
    Case("spike_fast_sigmoid", _SPIKES, experts.FastSigmoid.apply, _spike, _one),
    Case("spike_arctan", _SPIKES, experts.ATan.apply, _arctan_spike, _one),
    Case("complex_op", _TWO, experts.TwoInTwoOut.apply, _complex_op, _two),
    Case("logaddexp", _SUM, experts.LogAddExp.apply, torch.logaddexp, _two),
    Case("softmax", _SOFTMAX, experts.Softmax.apply, _softmax, _rows),
    Case("log_sum_exp", _SOFTMAX, experts.LogSumExp.apply, _log_sum_exp, _rows),
    Case("layer_norm", _NORMS, experts.LayerNorm.apply, _layer_norm, _affine),
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
    return ratio(_pass(ours, inputs), _pass(other, inputs), seconds)


# --- what is measured --------------------------------------------------------------------


def overhead(cases: Sequence[Case], seconds: float) -> None:
    """At one element, where a call takes what surrounds the formulas."""
    rows = [
        (case.name, (_ratio(_ours(case), case.expert, case.inputs(1), seconds),))
        for case in cases
    ]
    ratios("torch eager: of an expert's rule, one element", ("n = 1",), rows, 1.15)


def eager(cases: Sequence[Case], sizes: Sequence[int], seconds: float) -> None:
    """Against the experts."""
    rows = [
        (c.name, [_ratio(_ours(c), c.expert, c.inputs(n), seconds) for n in sizes])
        for c in cases
    ]
    head = [f"n = {sized(n)}" for n in sizes]
    ratios("torch eager: of an expert's rule", head, rows, 1.1)


def compiled(cases: Sequence[Case], sizes: Sequence[int], seconds: float) -> None:
    """Under `torch.compile`, against the composite under the same."""
    rows = []
    for case in cases:
        torch._dynamo.reset()
        ours, other = torch.compile(_ours(case)), torch.compile(case.composite)
        found = [_ratio(ours, other, case.inputs(n), seconds) for n in sizes]
        rows.append((case.name, found))
    head = [f"n = {sized(n)}" for n in sizes]
    title = "torch.compile: of the composite, compiled"
    ratios(title, head, rows, 1.05)


def kept() -> None:
    """Bytes between forward and backward that are no input and no output."""
    rows = []
    for case in CASES:
        for inputs in [case.inputs(10_000)]:
            functions = [_ours(case), case.composite]
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


def main(
    sizes: Sequence[int], seconds: float, threads: int, only: Sequence[str] = ()
) -> None:
    torch.manual_seed(0)
    if threads:
        torch.set_num_threads(threads)
    cases = [case for case in CASES if not only or case.name in only]
    kept()
    overhead(cases, seconds)
    eager(cases, sizes, seconds)
    compiled(cases, sizes, seconds)
