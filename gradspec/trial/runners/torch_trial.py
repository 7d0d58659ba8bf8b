"""Trial of torch modules: second derivatives, gradcheck and gradgradcheck."""

from __future__ import annotations

import warnings
from types import ModuleType
from typing import Any

import torch
from trying import KINDS, Adapter, Case, One, main, tuple_of


class TorchAdapter(Adapter):
    """See `trying.Adapter`."""

    def array(self, value: Any, kind: str, dtype: str) -> Any:
        tensor = torch.tensor(value, dtype=getattr(torch, KINDS.get(kind, dtype)))
        return tensor.requires_grad_(kind == "float")

    def shaped(self, values: list[float], shape: list[int], kind: str) -> Any:
        dtype = getattr(torch, KINDS.get(kind, "float64"))
        tensor = torch.tensor(values, dtype=torch.float64).to(dtype).reshape(shape)
        return tensor.requires_grad_(kind == "float")

    def restrided(self, tensor: Any) -> Any:
        if not tensor.dim():
            return tensor
        doubled = tensor.detach().repeat_interleave(2, dim=-1)
        turned = doubled.transpose(0, -1).contiguous().transpose(0, -1)[..., ::2]
        return turned.requires_grad_(tensor.requires_grad)

    def listed(self, value: Any) -> list[float]:
        return [float(v) for v in value.detach().reshape(-1).tolist()]

    def vjp(
        self, module: ModuleType, case: Case, inputs: list[Any], statics: Case
    ) -> tuple[tuple[Any, ...], Any]:
        outputs = tuple_of(getattr(module, case["rule"])(*inputs, **statics))
        pairs = zip(case["outputs"], outputs, strict=True)
        floats = tuple(output for (_, kind), output in pairs if kind == "float")
        return outputs, lambda *upstream: _gradients(floats, inputs, upstream)

    def further(self, one: One) -> None:
        """Second derivatives; torch's own finite differences against both modes."""
        if not one.call["second"]:
            return
        inputs = one.inputs()
        floats = one.floating(tuple_of(one.function(*inputs, **one.statics)))
        first = _gradients(floats, inputs, one.cotangents(), create_graph=True)
        pairs = zip(first, one.probes(), strict=True)
        whole = sum((g * p).sum() for g, p in pairs if g is not None)
        one.compare_second(
            [
                None if g is None else _derivative(whole, x)
                for g, x in zip(first, inputs, strict=True)
            ]
        )
        if one.case["exact"]:
            self._gradcheck(one)

    def _gradcheck(self, one: One) -> None:
        """With default tolerances."""
        inputs = tuple(one.inputs())
        if not any(x.requires_grad and x.numel() for x in inputs):
            return

        def floats(*given: Any) -> Any:
            return one.floating(tuple_of(one.function(*given, **one.statics)))

        checks = {
            "gradcheck": lambda: torch.autograd.gradcheck(
                floats, inputs, check_forward_ad=True
            ),
            "gradgradcheck": lambda: torch.autograd.gradgradcheck(floats, inputs),
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for name, check in checks.items():
                one.attempt(name, lambda c=check: c() and None)


def _gradients(
    outputs: tuple[Any, ...],
    inputs: list[Any],
    upstream: Any,
    create_graph: bool = False,
) -> tuple[Any, ...]:
    """One gradient an input, None where it takes none."""
    pairs = zip(outputs, upstream, strict=True)
    reached = [(o, u.detach()) for o, u in pairs if o.requires_grad]
    leaves = [x for x in inputs if x.requires_grad]
    if not leaves or not reached:
        return tuple(None for _ in inputs)
    options = {"create_graph": create_graph, "materialize_grads": True}
    found = iter(
        torch.autograd.grad(
            [o for o, _ in reached], leaves, [u for _, u in reached], **options
        )
    )
    return tuple(next(found) if x.requires_grad else None for x in inputs)


def _derivative(whole: Any, x: Any) -> Any:
    if not whole.requires_grad:
        return torch.zeros_like(x)
    (second,) = torch.autograd.grad(whole, x, retain_graph=True, materialize_grads=True)
    return second


if __name__ == "__main__":
    torch.set_num_threads(1)
    main(TorchAdapter())
