"""A rule at one point, for the features of PyTorch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch
from conforming import Case, Register, elsewhere

feature = Register()
"""All features of PyTorch, over several files."""

_DTYPES = {"int": torch.int64, "bool": torch.bool}


class Setting:
    """A number made of the rule's outputs, as a function of its floating inputs."""

    def __init__(self, module: ModuleType, case: Case) -> None:
        self.rule, self.case = getattr(module, case["rule"]), case
        self.path = module.__file__
        self.inputs = [_tensor(case["given"][n], kind) for n, kind in case["inputs"]]
        names = [name for name, kind in case["inputs"] if kind == "float"]
        self.places = [k for k, (n, _) in enumerate(case["inputs"]) if n in names]
        self.upstream = [_tensor(v, "float") for v in case["upstream"].values()]
        probes = case.get("probes", {})
        self.probes = [
            _tensor(probes[n], "float") if probes else torch.ones_like(x)
            for n, x in zip(names, self.floats, strict=True)
        ]

    def double(self) -> None:
        """Everything in float64."""
        self.inputs = [x.double() if x.is_floating_point() else x for x in self.inputs]
        self.upstream = [u.double() for u in self.upstream]
        self.probes = [p.double() for p in self.probes]

    @property
    def floats(self) -> tuple[Any, ...]:
        return tuple(self.inputs[k] for k in self.places)

    @property
    def discrete(self) -> tuple[Any, ...]:
        """Integers and booleans."""
        return tuple(x for x in self.inputs if not x.is_floating_point())

    @property
    def every(self) -> tuple[int, ...]:
        return tuple(range(len(self.places)))

    def leaves(self) -> tuple[Any, ...]:
        """The floating inputs, to be differentiated by."""
        return tuple(x.clone().requires_grad_() for x in self.floats)

    def outputs(self, *floats: Any) -> list[Any]:
        """The outputs that take an upstream gradient, of the floating inputs."""
        return self.made(*self.among(self.inputs, floats))

    def among(self, inputs: Sequence[Any], floats: Sequence[Any]) -> list[Any]:
        """All inputs, of which the floating ones are others."""
        given = list(inputs)
        for place, x in zip(self.places, floats, strict=True):
            given[place] = x
        return given

    def made(self, *inputs: Any) -> list[Any]:
        """The outputs that take an upstream gradient, of all inputs."""
        made = self.rule(*inputs, **self.case["statics"])
        kinds = [kind for _, kind in self.case["outputs"]]
        made = (made,) if len(kinds) == 1 else [made[k] for k in range(len(kinds))]
        return [y for y, kind in zip(made, kinds, strict=True) if kind == "float"]

    def total(self, *floats: Any) -> Any:
        """Upstream gradients times outputs, of the floating inputs."""
        return self.weighed(*self.among(self.inputs, floats))

    def weighed(self, *inputs: Any) -> Any:
        """Upstream gradients times outputs, of all inputs."""
        return self.weighed_outputs(self.made(*inputs))

    def weighed_outputs(self, outputs: Sequence[Any]) -> Any:
        """Upstream gradients times outputs."""
        pairs = zip(outputs, self.upstream, strict=True)
        return sum((y * u).sum() for y, u in pairs)

    def moved(self) -> Any:
        """The total at another point and with other statics, to be differentiated."""
        here = copy.copy(self)
        here.case = elsewhere(self.case)
        return here.total(*(x.detach().div(2).requires_grad_() for x in self.floats))

    def whole(self, *tensors: Any) -> Any:
        """The same of all inputs, then of the upstream gradients: nothing is closed over."""
        here = copy.copy(self)
        here.inputs = list(tensors[: len(self.inputs)])
        here.upstream = list(tensors[len(self.inputs) :])
        return here.total(*here.floats)

    def backward(self, function: Callable[..., Any]) -> list[Any]:
        """The gradients of a function of the floating inputs."""
        leaves = self.leaves()
        function(*leaves).backward()
        return self.listed([leaf.grad for leaf in leaves])

    def first(self, leaves: Any) -> Any:
        """Gradients that can be differentiated once more."""
        total = self.total(*leaves)
        return torch.autograd.grad(
            total, leaves, create_graph=True, materialize_grads=True
        )

    def probed(self, gradients: Any) -> Any:
        """Probes times gradients."""
        return sum((g * p).sum() for g, p in zip(gradients, self.probes, strict=True))

    def listed(self, gradients: Any) -> list[Any]:
        """[shape, values] of each gradient."""
        arrays = [g.detach().to(torch.float64).cpu() for g in gradients]
        return [[list(a.shape), a.reshape(-1).tolist()] for a in arrays]

    def contracted(self, matrices: Any) -> list[Any]:
        """Probes times second derivatives: one row of blocks for each gradient."""
        found = []
        for by, x in enumerate(self.floats):
            parts = [
                torch.tensordot(p, matrices[k][by], p.dim())
                for k, p in enumerate(self.probes)
            ]
            found.append(sum(parts).reshape(x.shape))
        return self.listed(found)

    def over_one(self, run: Callable[..., Any]) -> list[Any]:
        """Gradients from around a batch of one input, with the others outside it, each
        input in turn. ``run`` makes them of a number, which is the first of two calls, as
        a function of the floating inputs, and of these.
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
        columns = zip(*found, strict=True)
        return self.listed([sum(parts) / len(found) for parts in columns])

    def along(self, push: Callable[[tuple[Any, ...]], Any]) -> list[Any]:
        """Gradients from tangents, one element at a time."""
        return self.listed(slopes(push, self.floats))


class Layer(torch.nn.Module):
    """A module whose parameters are the floating inputs."""

    def __init__(self, setting: Setting) -> None:
        super().__init__()
        parts = [torch.nn.Parameter(x.clone()) for x in setting.floats]
        self.weights = torch.nn.ParameterList(parts)
        self.setting = setting

    def forward(self) -> Any:
        return self.setting.total(*self.weights)


def slopes(push: Callable[[tuple[Any, ...]], Any], floats: Sequence[Any]) -> list[Any]:
    """What a tangent of 1 in each element by itself makes of a number."""
    found = []
    for place, x in enumerate(floats):
        made = []
        for k in range(x.numel()):
            tangents = [torch.zeros_like(v) for v in floats]
            tangents[place].view(-1)[k] = 1
            made.append(float(push(tuple(tangents))))
        found.append(torch.tensor(made).reshape(x.shape))
    return found


def _tensor(value: Any, kind: str) -> Any:
    shape, flat = value
    tensor = torch.tensor(flat, dtype=torch.float64).reshape(shape)
    return tensor.to(_DTYPES.get(kind, torch.float32))
