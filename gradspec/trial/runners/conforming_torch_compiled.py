"""Conformance of torch modules: compiled, exported, traced, without values.

Compiled functions go through AOT and no further (`aot_eager`), where rules are kept or
lost; some features go all the way to compiled code.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from typing import Any

import torch
from conforming import Run, require, rows, told, unused
from functorch.compile import aot_function, nop
from setting_torch import Layer, Setting, derivative, feature
from torch import func
from torch._higher_order_ops.while_loop import while_loop
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.checkpoint import checkpoint

# --- torch.compile ---------------------------------------------------------------------


def compiled(function: Any, **options: Any) -> Any:
    """As far as AOT, as one graph, unless something else is said."""
    torch._dynamo.reset()
    return torch.compile(
        function, **{"fullgraph": True, "backend": "aot_eager", **options}
    )


def _backward(**options: Any) -> Run:
    """The gradients of the compiled total."""
    return lambda s: s.backward(compiled(s.total, **options))


def _inferred(s: Setting, backend: str) -> Any:
    run = compiled(s.tuple_of, backend=backend)
    with torch.no_grad():
        return run(*s.leaves())


def _of_keyword(s: Setting) -> Any:
    s.by_keyword()
    return s.backward(compiled(s.total))


def _compiled_jvp(s: Setting) -> Any:
    push = compiled(lambda f, t: func.jvp(s.total, f, t)[1])
    return s.along(lambda tangents: push(s.floats, tangents))


def _checkpointed(s: Setting) -> Any:
    return compiled(lambda *f: checkpoint(s.total, *f, use_reentrant=False))


def _first_of(stacked: Any) -> list[Any]:
    """Of two calls the first."""
    return [g[0] for g in stacked]


feature |= {
    "compile, values": lambda s: compiled(s.tuple_of)(*s.leaves()),
    "compile, fullgraph": _backward(),
    "compile, dynamic shapes": _backward(dynamic=True),
    "compile, inductor": _backward(backend="inductor"),
    "compile, eager backend": _backward(backend="eager"),
    "inductor, dynamic shapes": _backward(backend="inductor", dynamic=True),
    "compile, no_grad": lambda s: _inferred(s, "aot_eager"),
    "inductor, no_grad": lambda s: _inferred(s, "inductor"),
    "compile, keyword call": _of_keyword,
    "compile, checkpoint within": lambda s: s.backward(_checkpointed(s)),
    "compile of func.grad": lambda s: compiled(func.grad(s.total, s.every))(*s.floats),
    "inductor, func.grad": lambda s: compiled(
        func.grad(s.total, s.every), backend="inductor"
    )(*s.floats),
    "compile of func.vjp": lambda s: compiled(
        lambda floats, upstream: func.vjp(s.tuple_of, *floats)[1](upstream)
    )(s.floats, tuple(s.upstream)),
    "compile of func.jvp": _compiled_jvp,
    "compile of func.jacrev": lambda s: compiled(func.jacrev(s.total, s.every))(
        *s.floats
    ),
    "compile of func.jacfwd": lambda s: compiled(func.jacfwd(s.total, s.every))(
        *s.floats
    ),
    "compile of hessian": lambda s: s.contracted(
        compiled(func.hessian(s.total, s.every))(*s.floats)
    ),
    "compile of jacrev of jacrev": lambda s: s.contracted(
        compiled(func.jacrev(func.jacrev(s.total, s.every), s.every))(*s.floats)
    ),
    "compile of vmap": lambda s: _first_of(
        compiled(func.vmap(func.grad(s.total, s.every)))(*s.stacked())
    ),
    "compile of grad of vmap over one input": lambda s: s.over_one(
        lambda first, floats: compiled(func.grad(first, s.every))(*floats)
    ),
}


@feature("compile, other calls between")
def calls_between(s: Setting) -> Any:
    """The statics are arguments of what is compiled."""
    s.rule = compiled(unused(s.rule, s.path, s.case))
    s.moved()

    def total(*leaves: Any) -> Any:
        made = s.total(*leaves)
        s.moved()
        return made

    return s.backward(total)


@feature("compile of vmap of one input")
def compiled_vmap_of_one(s: Setting) -> Any:
    first, *others = s.floats
    gradient = func.grad(s.total, s.every)
    batched = func.vmap(gradient, (0, *(None for _ in others)))
    return _first_of(compiled(batched)(torch.stack([first, 2 * first]), *others))


@feature("compile of vmap over one input, backward")
def compiled_around_one(s: Setting) -> Any:
    def run(first: Any, floats: Any) -> Any:
        leaves = [x.clone().requires_grad_() for x in floats]
        return derivative(compiled(first)(*leaves), leaves)

    return s.over_one(run)


@feature("compiled autograd")
def compiled_autograd(s: Setting) -> Any:
    torch._dynamo.reset()
    leaves = s.leaves()
    total = s.total(*leaves)
    with torch._dynamo.compiled_autograd._enable(compiled):
        total.backward()
    return [leaf.grad for leaf in leaves]


@feature("AOT")
def aot(s: Setting) -> Any:
    run = aot_function(s.whole, fw_compiler=nop)
    return s.backward(lambda *f: run(*s.among(s.inputs, f), *s.upstream))


@feature("compile of a training step")
def training_step(s: Setting) -> Any:
    """One step of descent at rate 1: the gradient is what the weights have lost."""
    layer = Layer(s)
    optimizer = torch.optim.SGD(layer.parameters(), lr=1.0)
    optimizer.zero_grad()
    compiled(layer)().backward()
    optimizer.step()
    return [x - w for x, w in zip(s.floats, layer.weights, strict=True)]


@feature("compile, graph break")
def graph_break(s: Setting) -> Any:
    def total(*floats: Any) -> Any:
        torch._dynamo.graph_break()
        whole = s.total(*floats)
        torch._dynamo.graph_break()
        return whole * 1

    return s.backward(compiled(total, fullgraph=False))


@feature("compile, one output at a time")
def one_output(s: Setting) -> Any:
    """The outputs are results of one graph; each is differentiated by itself."""
    leaves = s.leaves()
    outputs = compiled(s.tuple_of)(*leaves)
    found = [torch.zeros_like(x) for x in leaves]
    for y, upstream in zip(outputs, s.upstream, strict=True):
        if y.requires_grad:
            options = {"allow_unused": True, "retain_graph": True}
            parts = torch.autograd.grad((y * upstream).sum(), leaves, **options)
            found = [
                a if b is None else a + b for a, b in zip(found, parts, strict=True)
            ]
    return found


@feature("compile, autocast to bfloat16")
def autocast(s: Setting) -> Any:
    def total(*floats: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return s.total(*floats)

    return s.backward(compiled(total))


@feature("compile, autograd.grad within")
def grad_within(s: Setting) -> Any:
    def gradients(*leaves: Any) -> Any:
        return torch.autograd.grad(s.total(*leaves), leaves)

    with torch._dynamo.config.patch(trace_autograd_ops=True):
        return compiled(gradients)(*s.leaves())


@feature("compile, double backward")
def double_backward(s: Setting) -> Any:
    """Cubes beside the rule, so that there is something to differentiate twice."""
    leaves = s.leaves()
    total = compiled(lambda *f: s.total(*f) + sum((x**3).sum() for x in f))(*leaves)
    pairs = zip(s.twice(leaves, total), s.floats, s.probes, strict=True)
    return [g - 6 * x * p for g, x, p in pairs]


@feature("compile, cond within")
def cond_within(s: Setting) -> Any:
    def taken(*floats: Any) -> Any:
        return s.total(*floats)

    def other(*floats: Any) -> Any:
        return sum((x * 2.0).sum() for x in floats)

    def total(*floats: Any) -> Any:
        return torch.cond(floats[0].sum() < 1e30, taken, other, floats)

    return s.backward(compiled(total))


@feature("compile, while_loop within")
def while_within(s: Setting) -> None:
    def total(*floats: Any) -> Any:
        def step(k: Any, whole: Any, *given: Any) -> Any:
            return (k + 1, whole + s.total(*given), *(x.clone() for x in given))

        start = (torch.tensor(0), torch.zeros(()), *floats)
        return while_loop(lambda k, *_: k < 2, step, start)[1]

    with torch.no_grad():
        made, true = compiled(total)(*s.floats), 2 * s.total(*s.floats)
    require(bool((made - true).abs() <= 1e-4 * (1 + true.abs())), "another value")


# --- forward mode within what is compiled ----------------------------------------------


def _in_own_process(name: str) -> Callable[[Run], Run]:
    """A feature whose cells have processes of their own: what a compiler that failed
    within forward mode has left open is closed when Python collects it, in the middle
    of some later cell.
    """

    def register(run: Run) -> Run:
        def forked(s: Setting) -> Any:
            here, there = os.pipe()
            child = os.fork()
            if not child:
                try:
                    os.write(there, json.dumps(_answer(run, s)).encode())
                finally:
                    os._exit(0)  # never back into the loop over cells
            os.close(there)
            with os.fdopen(here, "rb") as end:
                text = end.read()
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            require(bool(text), f"the process ended with {code}")
            found, fault = json.loads(text)
            require(not fault, fault)
            return [s.tensor(g, "float") for g in found]

        return feature(name)(forked)

    return register


def _answer(run: Run, s: Setting) -> tuple[Any, str]:
    try:
        return s.listed(run(s)), ""
    except Exception as fault:
        return None, told(fault)


@_in_own_process("compile of func.jvp, one input at a time")
def compiled_jvp_of_one(s: Setting) -> Any:
    """The other inputs have no tangents, which are not tangents of zero."""
    found = []
    for place, x in enumerate(s.floats):

        def push(x: Any, tangent: Any, place: int = place) -> Any:
            def alone(x: Any) -> Any:
                return s.total(*s.floats[:place], x, *s.floats[place + 1 :])

            return func.jvp(alone, (x,), (tangent,))[1]

        run = compiled(push)
        slopes = [float(run(x, unit)) for unit in s.units(x)]
        found.append(torch.tensor(slopes).reshape(x.shape))
    return found


@_in_own_process("compile of jacfwd of jacfwd")
def compiled_jacfwd_twice(s: Setting) -> Any:
    second = func.jacfwd(func.jacfwd(s.total, s.every), s.every)
    return s.contracted(compiled(second)(*s.floats))


def _pushed(s: Setting, function: Any) -> Any:
    """The derivatives of several results along the probes."""
    return lambda *floats: func.jvp(function, floats, tuple(s.probes))[1]


def _weighted_sum(s: Setting, function: Any) -> Any:
    """Cotangents times results. Not within two transforms of forward mode: what they
    hold times a tensor from outside is an error of the compiler's own.
    """
    return lambda *floats: sum(
        (y * u).sum() for y, u in zip(function(*floats), s.upstream, strict=True)
    )


def _twice(s: Setting) -> Any:
    """The derivative along the probes, and of this along given tangents."""
    once = _pushed(s, s.tuple_of)

    def push(floats: Any, tangents: Any) -> Any:
        return _weighted_sum(s, lambda *f: func.jvp(once, f, tangents)[1])(*floats)

    return push


@_in_own_process("compile of jvp of jvp")
def compiled_jvp_twice(s: Setting) -> Any:
    push = compiled(_twice(s))
    return s.along(lambda tangents: push(s.floats, tangents))


@_in_own_process("compile of vmap of jvp of jvp")
def compiled_jvps_in_vmap(s: Setting) -> Any:
    push = compiled(func.vmap(_twice(s), (0, None)))
    return s.along(lambda tangents: push(tuple(s.stacked()), tangents)[0])


@_in_own_process("compile of grad of jvp of jvp")
def compiled_grad_of_jvps(s: Setting) -> Any:
    twice = _pushed(s, _pushed(s, s.tuple_of))
    return compiled(func.grad(_weighted_sum(s, twice), s.every))(*s.floats)


@_in_own_process("compile of jvp of grad of jvp")
def compiled_jvp_of_grad_of_jvp(s: Setting) -> Any:
    once = _weighted_sum(s, _pushed(s, s.tuple_of))
    return compiled(_pushed(s, func.grad(once, s.every)))(*s.floats)


# --- exported, traced, without values ----------------------------------------------------


class _Exported(torch.nn.Module):
    """A function of the rule as a module."""

    def __init__(self, setting: Setting, name: str = "total") -> None:
        super().__init__()
        self.setting, self.name = setting, name

    def forward(self, *tensors: Any) -> Any:
        return getattr(self.setting, self.name)(*tensors)


def _program(s: Setting, name: str = "total", **options: Any) -> Any:
    return torch.export.export(_Exported(s, name), s.floats, **options)


def _saved(s: Setting) -> Any:
    file = io.BytesIO()
    torch.export.save(_program(s), file)
    file.seek(0)
    return torch.export.load(file).module()


def _exported_jvp(s: Setting) -> Any:
    total = _program(s).module()
    return s.along(lambda tangents: func.jvp(total, s.floats, tangents)[1])


def _twice_exported(s: Setting) -> Any:
    leaves = s.leaves()
    return s.twice(leaves, _program(s).module()(*leaves))


def _of_leaves(s: Setting, *floats: Any) -> Any:
    leaves = [x.detach().requires_grad_() for x in floats]
    return torch.autograd.grad(s.total(*leaves), leaves)


feature |= {
    "export, values": lambda s: _program(s, "tuple_of").module()(*s.floats),
    "export": lambda s: s.backward(_program(s).module()),
    "export, strict": lambda s: s.backward(_program(s, strict=True).module()),
    "export, saved and loaded": lambda s: s.backward(_saved(s)),
    "export, double backward": _twice_exported,
    "export, func.grad": lambda s: func.grad(_program(s).module(), s.every)(*s.floats),
    "export, func.jvp": _exported_jvp,
    "export, compiled": lambda s: s.backward(
        compiled(_program(s).module(), fullgraph=False)
    ),
    "make_fx": lambda s: make_fx(func.grad(s.total, s.every))(*s.floats)(*s.floats),
    "make_fx of a backward pass": lambda s: make_fx(lambda *f: _of_leaves(s, *f))(
        *s.floats
    )(*s.floats),
}


@feature("export, dynamic sizes")
def dynamic(s: Setting) -> Any:
    """Traced at other sizes of the first axis than it is run at."""
    size, inputs, upstream = rows(s.case)
    if size < 2:
        return feature["export"](s)
    batch = torch.export.Dim("batch", min=2, max=64)
    pairs = list(zip((*s.inputs, *s.upstream), (*inputs, *upstream), strict=True))
    axes = tuple({0: batch} if has_rows else None for _, has_rows in pairs)
    given = tuple(torch.cat([x, x, x]) if has_rows else x for x, has_rows in pairs)
    program = _Exported(s, "whole")
    traced = torch.export.export(program, given, dynamic_shapes=(axes,)).module()
    return s.backward(lambda *f: traced(*s.among(s.inputs, f), *s.upstream))


@feature("export, decomposed")
def decomposed(s: Setting) -> Any:
    """An inference graph of core operations: it has values, not gradients."""
    program = _program(s, "tuple_of").run_decompositions()
    names = [str(n.target) for n in program.graph.nodes if n.op == "call_function"]
    foreign = [n for n in names if not n.startswith(("aten.", "<built-in"))]
    require(not foreign, f"operations that are not torch's: {foreign}")
    return program.module()(*s.floats)


@feature("meta tensors")
def meta(s: Setting) -> None:
    s.inputs = [x.to("meta") for x in s.inputs]
    _shapes_only(s)


@feature("fake tensors")
def fake(s: Setting) -> None:
    with torch._subclasses.FakeTensorMode() as mode:
        s.inputs = [mode.from_tensor(x) for x in s.inputs]
        _shapes_only(s)


def _shapes_only(s: Setting) -> None:
    leaves = s.leaves()
    sum(y.sum() for y in s.outputs(*leaves)).backward()
    require(all(x.grad.shape == x.shape for x in leaves), "gradients of other shapes")
