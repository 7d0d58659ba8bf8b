"""A rule at one point, in PyTorch's words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from conforming import Register
from setting import Setting as Shared

feature = Register()
"""All features of PyTorch, over several files."""


class Setting(Shared):
    """A rule at one point; gradients are those of ``backward``."""

    def tensor(self, value: Any, kind: str) -> Any:
        shape, flat = value
        tensor = torch.tensor(flat, dtype=torch.float64).reshape(shape)
        wanted = {"int": "int64", "bool": "bool"}.get(kind) or self.dtype
        return tensor.to(getattr(torch, wanted))

    def flat(self, x: Any) -> tuple[list[int], list[float]]:
        wide = x.detach().to(torch.float64).cpu()
        return list(wide.shape), wide.reshape(-1).tolist()

    def dot(self, x: Any, y: Any) -> Any:
        return (x * y).sum()

    def stack(self, tensors: Sequence[Any], axis: int = 0) -> Any:
        return torch.stack(list(tensors), axis)

    def dots(self, x: Any, matrix: Any) -> Any:
        return torch.tensordot(x, matrix, x.dim())

    def units(self, x: Any) -> Sequence[Any]:
        return [row.reshape(x.shape) for row in torch.eye(x.numel(), dtype=x.dtype)]

    def leaves(self) -> tuple[Any, ...]:
        """The floating inputs, to be differentiated by."""
        return tuple(x.detach().clone().requires_grad_() for x in self.floats)

    def gradient(self, function: Callable[..., Any], floats: Sequence[Any]) -> Any:
        is_inner = any(x.requires_grad for x in floats)
        leaves = [x if is_inner else x.detach().requires_grad_() for x in floats]
        return derivative(function(*leaves), leaves, is_inner)

    def backward(self, function: Callable[..., Any]) -> list[Any]:
        """The gradients of a function here, as a backward pass leaves them."""
        leaves = self.leaves()
        total = function(*leaves)
        if total.requires_grad:
            total.backward()
        return [torch.zeros_like(x) if x.grad is None else x.grad for x in leaves]

    def graph(self, leaves: Any, total: Any = None) -> Any:
        """Gradients, of a total or of that here, that can be differentiated once
        more."""
        total = self.total(*leaves) if total is None else total
        return derivative(total, leaves, True)

    def twice(self, leaves: Any, total: Any = None) -> Any:
        """Second derivatives."""
        return derivative(self.probed(self.graph(leaves, total)), leaves)

    def over_one(self, run: Callable[..., Any]) -> list[Any]:
        """Gradients from around a batch of one input, with the others outside it, each
        input in turn. ``run`` makes them of a number, which is the first of two calls,
        as a function of the floating inputs, and of these.
        """
        found = []
        for place, x in enumerate(self.inputs):
            axes = tuple(0 if k == place else None for k in range(len(self.inputs)))
            rows = torch.func.vmap(self.weighed, axes)
            given = list(self.inputs)
            given[place] = torch.stack([x, x])

            def first(*floats: Any, rows: Any = rows, given: Any = given) -> Any:
                return rows(*self.among(given, floats))[0]

            gradients = list(run(first, tuple(given[k] for k in self.places)))
            for k, own in enumerate(self.places):
                if own == place:  # the second call adds nothing
                    gradients[k] = gradients[k].sum(0)
            found.append(gradients)
        return [sum(parts) / len(found) for parts in zip(*found, strict=True)]


def derivative(whole: Any, leaves: Any, is_inner: bool = False) -> Any:
    """The gradients of a number, zero where it does not depend on the leaves; with a
    graph of their own if others are taken of them.
    """
    if not whole.requires_grad:
        return [torch.zeros_like(leaf) for leaf in leaves]
    return torch.autograd.grad(
        whole, leaves, create_graph=is_inner, materialize_grads=True
    )


class Layer(torch.nn.Module):
    """A module whose parameters are the floating inputs."""

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        parts = [torch.nn.Parameter(x.clone()) for x in setting.floats]
        self.weights = torch.nn.ParameterList(parts)
        self.setting = setting

    def forward(self) -> Any:
        return self.setting.total(*self.weights)

    def gradients(self) -> list[Any]:
        """After a backward pass, those of the parameters."""
        self().backward()
        return [weight.grad for weight in self.weights]
