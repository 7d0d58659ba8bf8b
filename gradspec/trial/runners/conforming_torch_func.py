"""Conformance of torch modules: the transforms of `torch.func`, alone and nested."""

from __future__ import annotations

from typing import Any

import torch
from setting_torch import Layer, Setting, derivative, feature
from torch import func
from transforms import first_of, transforms


def _grad(s: Setting) -> Any:
    return func.grad(s.total, s.every)


def _each(s: Setting, **options: Any) -> Any:
    return first_of(func.vmap(_grad(s), **options)(*s.stacked()))


_NAMES = {
    "vjp, values": "func.vjp, values",
    "jvp, values": "func.jvp, values",
    "grad": "func.grad",
    "vjp": "func.vjp",
    "jvp": "func.jvp",
    "vmap": "vmap of grad",
    "jacrev": "func.jacrev",
    "jacfwd": "func.jacfwd",
}
"""Features that JAX calls otherwise."""

feature |= {
    **{_NAMES.get(name, name): run for name, run in transforms(func).items()},
    "vmap in chunks": lambda s: _each(s, chunk_size=1),
    "vmap with randomness": lambda s: _each(s, randomness="different"),
    "grad of vmap over one input": lambda s: s.over_one(
        lambda first, floats: func.grad(first, s.every)(*floats)
    ),
    "jvp of vmap over one input": lambda s: s.over_one(
        lambda first, floats: s.along(lambda t: func.jvp(first, floats, t)[1], floats)
    ),
}


# --- batches ---------------------------------------------------------------------------


@feature("backward of vmap over one input")
def backward_around_one(s: Setting) -> Any:
    def run(first: Any, floats: Any) -> Any:
        leaves = [x.clone().requires_grad_() for x in floats]
        return derivative(first(*leaves), leaves)

    return s.over_one(run)


@feature("vmap in vmap, batches crossed")
def crossed_vmap(s: Setting) -> Any:
    """Of several inputs the first is batched within, the others without."""
    pair, *others = s.stacked()
    inner = func.vmap(_grad(s), (0, *(None for _ in others)))
    outer = func.vmap(inner, (None, *(0 for _ in others)) if others else 0)
    given = [pair if others else torch.stack([pair]), *others]
    return [g[0, 0] for g in outer(*given)]


@feature("vmap of jvp")
def vmap_of_jvp(s: Setting) -> Any:
    def push(tangents: Any) -> Any:
        each = func.vmap(lambda *floats: func.jvp(s.total, floats, tangents)[1])
        return each(*s.stacked())[0]

    return s.along(push)


@feature("vmap of hessian")
def vmap_of_hessian(s: Setting) -> Any:
    found = func.vmap(func.hessian(s.total, s.every))(*s.stacked())
    return s.contracted([[block[0] for block in row] for row in found])


@feature("jacrev in chunks")
def jacrev_in_chunks(s: Setting) -> Any:
    rows = func.jacrev(lambda *f: torch.stack([s.total(*f)] * 3), s.every, chunk_size=2)
    return [g[2] for g in rows(*s.floats)]


@feature("ensemble (stack_module_state)")
def ensemble(s: Setting) -> Any:
    layers = [Layer(s), Layer(s)]
    parameters, buffers = func.stack_module_state(layers)

    def total(weights: Any, rest: Any) -> Any:
        return func.functional_call(layers[0], (weights, rest), ())

    found = func.vmap(func.grad(total))(parameters, buffers)
    return [g[1] for g in found.values()]


@feature("functional_call")
def functional_call(s: Setting) -> Any:
    layer = Layer(s)
    weights = dict(layer.named_parameters())
    return func.grad(lambda w: func.functional_call(layer, w, ()))(weights).values()


class _Same(torch.autograd.Function):
    """The least that a user may write by hand."""

    @staticmethod
    def forward(x: Any) -> Any:
        return x.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Nothing is kept."""

    @staticmethod
    def backward(ctx: Any, upstream: Any) -> Any:
        return upstream


@feature("functionalize")
def functionalized(s: Setting) -> Any:
    """PyTorch has it for no `autograd.Function`; plain code here is one by hand."""
    total = s.total
    if s.case["way"] == "plain":
        total = lambda *floats: _Same.apply(s.total(*floats))  # noqa: E731
    return func.functionalize(func.grad(total, s.every))(*s.floats)


# --- two modes -------------------------------------------------------------------------


def _pushed(function: Any, probe: Any) -> Any:
    return lambda x: func.jvp(function, (x,), (probe,))[1]


@feature("grad of jvp")
def grad_of_jvp(s: Setting) -> Any:
    """Rows for columns where a declared gradient is not a gradient: one input alone."""
    return _each_alone(s, lambda f, x, p: func.grad(_pushed(f, p))(x))


@feature("jvp of jvp")
def jvp_of_jvp(s: Setting) -> Any:
    def twice(f: Any, x: Any, probe: Any) -> Any:
        rows = [func.jvp(_pushed(f, probe), (x,), (unit,))[1] for unit in s.units(x)]
        return torch.stack(rows).reshape(x.shape)

    return _each_alone(s, twice)


def _each_alone(s: Setting, second: Any) -> list[Any]:
    """Second derivatives by each input: its own by two modes, mixed ones in reverse."""
    found = []
    for place, x in enumerate(s.floats):
        others = list(s.floats)

        def alone(x: Any, place: int = place, others: Any = others) -> Any:
            return s.total(*others[:place], x, *others[place + 1 :])

        def mixed(x: Any, place: int = place, others: Any = others) -> Any:
            given = [*others[:place], x, *others[place + 1 :]]
            gradients = list(_grad(s)(*given))
            gradients[place] = torch.zeros_like(x)
            return s.probed(gradients)

        own = second(alone, x, s.probes[place])
        found.append(own + func.grad(mixed)(x))
    return found
