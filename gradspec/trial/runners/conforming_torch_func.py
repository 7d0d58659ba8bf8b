"""Conformance of torch modules: the transforms of `torch.func`, alone and nested."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from conforming_torch_setting import Layer, Setting, feature, slopes
from torch import func


@feature("func.vjp, values")
def vjp_values(s: Setting) -> Any:
    return s.listed(func.vjp(lambda *f: tuple(s.outputs(*f)), *s.floats)[0])


@feature("func.jvp, values")
def jvp_values(s: Setting) -> Any:
    tangents = tuple(map(torch.ones_like, s.floats))
    outputs = lambda *f: tuple(s.outputs(*f))  # noqa: E731
    return s.listed(func.jvp(outputs, s.floats, tangents)[0])


@feature("vmap, values")
def vmap_values(s: Setting) -> Any:
    made = func.vmap(lambda *f: tuple(s.outputs(*f)))(*_stacked(s))
    return s.listed([y[0] for y in made])


@feature("func.grad")
def func_grad(s: Setting) -> Any:
    return s.listed(func.grad(s.total, s.every)(*s.floats))


@feature("func.vjp")
def func_vjp(s: Setting) -> Any:
    _, pullback = func.vjp(lambda *f: tuple(s.outputs(*f)), *s.floats)
    return s.listed(pullback(tuple(s.upstream)))


@feature("func.jvp")
def func_jvp(s: Setting) -> Any:
    return s.along(lambda tangents: func.jvp(s.total, s.floats, tangents)[1])


@feature("vmap of grad")
def func_vmap(s: Setting) -> Any:
    stacked = _stacked(s)
    found = func.vmap(func.grad(s.total, s.every))(*stacked)
    return s.listed([g[0] for g in found])


@feature("func.jacrev")
def func_jacrev(s: Setting) -> Any:
    return s.listed(func.jacrev(s.total, s.every)(*s.floats))


@feature("func.jacfwd")
def func_jacfwd(s: Setting) -> Any:
    return s.listed(func.jacfwd(s.total, s.every)(*s.floats))


def _second(outer: Any, inner: Any) -> Any:
    def run(s: Setting) -> Any:
        return s.contracted(outer(inner(s.total, s.every), s.every)(*s.floats))

    return run


for _name, _outer, _inner in (
    ("jacrev of jacrev", func.jacrev, func.jacrev),
    ("jacfwd of jacrev (hessian)", func.jacfwd, func.jacrev),
    ("jacrev of jacfwd", func.jacrev, func.jacfwd),
    ("jacfwd of jacfwd", func.jacfwd, func.jacfwd),
):
    feature(_name)(_second(_outer, _inner))


# --- batches ---------------------------------------------------------------------------


def _stacked(s: Setting) -> list[Any]:
    """Two calls, of which the first counts."""
    return [torch.stack([x, 2 * x]) for x in s.floats]


def _each(s: Setting, **options: Any) -> Any:
    gradient = func.vmap(func.grad(s.total, s.every), **options)
    return s.listed([g[0] for g in gradient(*_stacked(s))])


@feature("vmap in chunks")
def chunked(s: Setting) -> Any:
    return _each(s, chunk_size=1)


@feature("vmap with randomness")
def random(s: Setting) -> Any:
    return _each(s, randomness="different")


@feature("vmap over the last axis")
def last_axis(s: Setting) -> Any:
    moved = [torch.stack([x, 2 * x], -1) for x in s.floats]
    gradient = func.vmap(func.grad(s.total, s.every), -1, -1)
    return s.listed([g[..., 0] for g in gradient(*moved)])


@feature("vmap of one input beside others")
def some_inputs(s: Setting) -> Any:
    """One batched input at a time; gradients of the others are per element."""
    gradient, found = func.grad(s.total, s.every), []
    for place, x in enumerate(s.floats):
        given = [*s.floats]
        given[place] = torch.stack([x, 2 * x])
        axes = tuple(0 if k == place else None for k in s.every)
        found.append(func.vmap(gradient, axes)(*given)[place][0])
    return s.listed(found)


@feature("grad of vmap")
def grad_of_vmap(s: Setting) -> Any:
    def whole(*floats: Any) -> Any:
        rows = func.vmap(s.total)(*(torch.stack([x, x]) for x in floats))
        return rows.sum()

    return s.listed([g / 2 for g in func.grad(whole, s.every)(*s.floats)])


@feature("grad of vmap over one input")
def grad_around_one(s: Setting) -> Any:
    """An output that depends on the others alone must not count once for each call."""
    return s.over_one(lambda first, floats: func.grad(first, s.every)(*floats))


@feature("backward of vmap over one input")
def backward_around_one(s: Setting) -> Any:
    def run(first: Any, floats: Any) -> Any:
        leaves = [x.clone().requires_grad_() for x in floats]
        return torch.autograd.grad(first(*leaves), leaves, materialize_grads=True)

    return s.over_one(run)


@feature("jvp of vmap over one input")
def jvp_around_one(s: Setting) -> Any:
    def run(first: Any, floats: Any) -> Any:
        return slopes(lambda t: func.jvp(first, floats, t)[1], floats)

    return s.over_one(run)


@feature("vmap in vmap")
def nested_vmap(s: Setting) -> Any:
    twice = [torch.stack([torch.stack([x, 2 * x])] * 3) for x in s.floats]
    found = func.vmap(func.vmap(func.grad(s.total, s.every)))(*twice)
    return s.listed([g[2, 0] for g in found])


@feature("vmap in vmap, batches crossed")
def crossed_vmap(s: Setting) -> Any:
    """Of several inputs the first is batched within, the others without."""
    first, *others = s.floats
    gradient = func.grad(s.total, s.every)
    inner = func.vmap(gradient, (0, *(None for _ in others)))
    outer = func.vmap(inner, (None, *(0 for _ in others)) if others else 0)
    pair = torch.stack([first, 2 * first])
    given = [pair if others else torch.stack([pair])]
    given += [torch.stack([x, 2 * x]) for x in others]
    return s.listed([g[0, 0] for g in outer(*given)])


@feature("vmap of jvp")
def vmap_of_jvp(s: Setting) -> Any:
    def push(tangents: Any) -> Any:
        def each(*floats: Any) -> Any:
            return func.jvp(s.total, floats, tangents)[1]

        return func.vmap(each)(*_stacked(s))[0]

    return s.along(push)


@feature("jvp of vmap")
def jvp_of_vmap(s: Setting) -> Any:
    def push(tangents: Any) -> Any:
        moved = tuple(torch.stack([t, 0 * t]) for t in tangents)
        return func.jvp(func.vmap(s.total), tuple(_stacked(s)), moved)[1][0]

    return s.along(push)


@feature("vmap of hessian")
def vmap_of_hessian(s: Setting) -> Any:
    found = func.vmap(func.hessian(s.total, s.every))(*_stacked(s))
    return s.contracted([[block[0] for block in row] for row in found])


@feature("jacrev in chunks")
def jacrev_in_chunks(s: Setting) -> Any:
    rows = func.jacrev(lambda *f: torch.stack([s.total(*f)] * 3), s.every, chunk_size=2)
    return s.listed([g[2] for g in rows(*s.floats)])


@feature("ensemble (stack_module_state)")
def ensemble(s: Setting) -> Any:
    layers = [Layer(s), Layer(s)]
    parameters, buffers = func.stack_module_state(layers)

    def total(weights: Any, rest: Any) -> Any:
        return func.functional_call(layers[0], (weights, rest), ())

    found = func.vmap(func.grad(total))(parameters, buffers)
    return s.listed([g[1] for g in found.values()])


# --- products and higher orders --------------------------------------------------------


@feature("linearize")
def linearized(s: Setting) -> Any:
    _, push = func.linearize(s.total, *s.floats)
    return s.along(lambda tangents: push(*tangents))


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
    gradient = func.functionalize(func.grad(total, s.every))
    return s.listed(gradient(*s.floats))


@feature("functional_call")
def functional_call(s: Setting) -> Any:
    layer = Layer(s)
    weights = dict(layer.named_parameters())
    found = func.grad(lambda w: func.functional_call(layer, w, ()))(weights)
    return s.listed(found.values())


@feature("grad of grad")
def grad_of_grad(s: Setting) -> Any:
    return s.listed(func.grad(_probed(s, s.total), s.every)(*s.floats))


@feature("grad of grad of grad")
def third_grad(s: Setting) -> Any:
    twice = _probed(s, _probed(s, s.total))
    return s.listed(func.grad(twice, s.every)(*s.floats))


def _probed(s: Setting, function: Callable[..., Any]) -> Callable[..., Any]:
    """The gradient of a function times the probes."""
    return lambda *floats: s.probed(func.grad(function, s.every)(*floats))


@feature("jvp of grad (hvp)")
def jvp_of_grad(s: Setting) -> Any:
    """Along one input at a time: derivatives of the probed gradient."""
    whole = _probed(s, s.total)
    return s.along(lambda tangents: func.jvp(whole, s.floats, tangents)[1])


@feature("grad of jvp")
def grad_of_jvp(s: Setting) -> Any:
    """Rows for columns where a declared gradient is not a gradient: one input alone."""
    return s.listed(_each_alone(s, lambda f, x, p: func.grad(_pushed(f, p))(x)))


@feature("jvp of jvp")
def jvp_of_jvp(s: Setting) -> Any:
    def twice(f: Any, x: Any, probe: Any) -> Any:
        rows = []
        for k in range(x.numel()):
            unit = torch.zeros_like(x).view(-1)
            unit[k] = 1
            pushed = _pushed(f, probe)
            rows.append(func.jvp(pushed, (x,), (unit.view(x.shape),))[1])
        return torch.stack(rows).reshape(x.shape)

    return s.listed(_each_alone(s, twice))


def _pushed(function: Any, probe: Any) -> Any:
    return lambda x: func.jvp(function, (x,), (probe,))[1]


def _each_alone(s: Setting, second: Any) -> list[Any]:
    """Second derivatives by each input: its own by two modes, mixed ones in reverse."""
    found = []
    for place, x in enumerate(s.floats):
        others = list(s.floats)

        def alone(x: Any, place: int = place, others: Any = others) -> Any:
            return s.total(*others[:place], x, *others[place + 1 :])

        def mixed(x: Any, place: int = place, others: Any = others) -> Any:
            given = [*others[:place], x, *others[place + 1 :]]
            gradients = list(func.grad(s.total, s.every)(*given))
            gradients[place] = torch.zeros_like(x)
            return s.probed(gradients)

        own = second(alone, x, s.probes[place])
        found.append(own + func.grad(mixed)(x))
    return found
