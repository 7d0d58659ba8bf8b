"""Conformance of torch modules: compiled.

Compiled functions go through AOT and no further (`aot_eager`), where rules are kept or
lost; one feature goes all the way to compiled code.
"""

from __future__ import annotations

from typing import Any

import torch
from conforming import require, unused
from conforming_torch_setting import Layer, Setting, feature
from functorch.compile import aot_function, nop
from torch._higher_order_ops.while_loop import while_loop
from torch.utils.checkpoint import checkpoint

# --- torch.compile ---------------------------------------------------------------------


def compiled(function: Any, **options: Any) -> Any:
    """As far as AOT, as one graph, unless something else is said."""
    torch._dynamo.reset()
    return torch.compile(
        function, **{"fullgraph": True, "backend": "aot_eager", **options}
    )


@feature("compile, values")
def values(s: Setting) -> Any:
    """Of the graph that is to be differentiated."""
    return s.listed(compiled(lambda *f: tuple(s.outputs(*f)))(*s.leaves()))


@feature("compile, other calls between")
def calls_between(s: Setting) -> Any:
    """The statics are arguments of what is compiled."""
    s.rule = compiled(unused(s.rule, s.path, s.case))
    leaves = s.leaves()
    s.moved().backward()
    total = s.total(*leaves)
    s.moved().backward()
    total.backward()
    return s.listed([leaf.grad for leaf in leaves])


@feature("compile, fullgraph")
def fullgraph(s: Setting) -> Any:
    return s.backward(compiled(s.total))


@feature("compile, dynamic shapes")
def dynamic(s: Setting) -> Any:
    return s.backward(compiled(s.total, dynamic=True))


@feature("compile, inductor")
def inductor(s: Setting) -> Any:
    return s.backward(compiled(s.total, backend="inductor"))


@feature("compile of func.grad")
def compiled_grad(s: Setting) -> Any:
    gradient = compiled(torch.func.grad(s.total, s.every))
    return s.listed(gradient(*s.floats))


@feature("compile of func.jvp")
def compiled_jvp(s: Setting) -> Any:
    push = compiled(lambda f, t: torch.func.jvp(s.total, f, t)[1])
    return s.along(lambda tangents: push(s.floats, tangents))


@feature("compile of vmap")
def compiled_vmap(s: Setting) -> Any:
    stacked = [torch.stack([x, 2 * x]) for x in s.floats]
    gradient = compiled(torch.func.vmap(torch.func.grad(s.total, s.every)))
    return s.listed([g[0] for g in gradient(*stacked)])


@feature("compile of hessian")
def compiled_hessian(s: Setting) -> Any:
    second = compiled(torch.func.hessian(s.total, s.every))
    return s.contracted(second(*s.floats))


@feature("compiled autograd")
def compiled_autograd(s: Setting) -> Any:
    torch._dynamo.reset()
    leaves = s.leaves()
    total = s.total(*leaves)
    with torch._dynamo.compiled_autograd._enable(compiled):
        total.backward()
    return s.listed([leaf.grad for leaf in leaves])


@feature("AOT")
def aot(s: Setting) -> Any:
    leaves = s.leaves()
    given = list(s.inputs)
    for place, leaf in zip(s.places, leaves, strict=True):
        given[place] = leaf
    aot_function(s.whole, fw_compiler=nop)(*given, *s.upstream).backward()
    return s.listed([leaf.grad for leaf in leaves])


# --- parts of a training step ----------------------------------------------------------


@feature("compile, eager backend")
def eager_backend(s: Setting) -> Any:
    return s.backward(compiled(s.total, backend="eager"))


@feature("compile of a training step")
def training_step(s: Setting) -> Any:
    """One step of descent at rate 1: the gradient is what the weights have lost."""
    layer = Layer(s)
    optimizer = torch.optim.SGD(layer.parameters(), lr=1.0)
    call = compiled(layer)

    def step() -> None:
        optimizer.zero_grad()
        call().backward()
        optimizer.step()

    step()
    pairs = zip(s.floats, layer.weights, strict=True)
    return s.listed([x - w for x, w in pairs])


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
    outputs = compiled(lambda *f: tuple(s.outputs(*f)))(*leaves)
    found = [torch.zeros_like(x) for x in leaves]
    for y, upstream in zip(outputs, s.upstream, strict=True):
        if y.requires_grad:
            options = {"allow_unused": True, "retain_graph": True}
            parts = torch.autograd.grad((y * upstream).sum(), leaves, **options)
            found = [
                a if b is None else a + b for a, b in zip(found, parts, strict=True)
            ]
    return s.listed(found)


@feature("compile, keyword call")
def keyword_call(s: Setting) -> Any:
    names, rule = [name for name, _ in s.case["inputs"]], s.rule
    s.rule = lambda *given, **statics: rule(
        **dict(zip(names, given, strict=True)), **statics
    )
    return s.backward(compiled(s.total))


@feature("compile, autocast to bfloat16")
def autocast(s: Setting) -> Any:
    def total(*floats: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return s.total(*floats)

    return s.backward(compiled(total))


@feature("compile, no_grad")
def no_grad(s: Setting) -> Any:
    return _inferred(s, "aot_eager")


def _inferred(s: Setting, backend: str) -> Any:
    run = compiled(lambda *f: tuple(s.outputs(*f)), backend=backend)
    with torch.no_grad():
        return s.listed(run(*s.leaves()))


@feature("compile, checkpoint within")
def checkpointed(s: Setting) -> Any:
    def total(*floats: Any) -> Any:
        return checkpoint(s.total, *floats, use_reentrant=False)

    return s.backward(compiled(total))


@feature("compile, autograd.grad within")
def grad_within(s: Setting) -> Any:
    def gradients(*leaves: Any) -> Any:
        return torch.autograd.grad(s.total(*leaves), leaves)

    with torch._dynamo.config.patch(trace_autograd_ops=True):
        return s.listed(compiled(gradients)(*s.leaves()))


@feature("compile, double backward")
def double_backward(s: Setting) -> Any:
    """Cubes beside the rule, so that there is something to differentiate twice."""
    leaves = s.leaves()
    total = compiled(lambda *f: s.total(*f) + sum((x**3).sum() for x in f))(*leaves)
    first = torch.autograd.grad(total, leaves, create_graph=True)
    found = torch.autograd.grad(s.probed(first), leaves, materialize_grads=True)
    pairs = zip(found, s.floats, s.probes, strict=True)
    return s.listed([g - 6 * x * p for g, x, p in pairs])


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


# --- more of torch.func ----------------------------------------------------------------


@feature("compile of func.vjp")
def compiled_vjp(s: Setting) -> Any:
    def pull(floats: Any, upstream: Any) -> Any:
        return torch.func.vjp(lambda *f: tuple(s.outputs(*f)), *floats)[1](upstream)

    return s.listed(compiled(pull)(s.floats, tuple(s.upstream)))


@feature("compile of func.jacrev")
def compiled_jacrev(s: Setting) -> Any:
    return s.listed(compiled(torch.func.jacrev(s.total, s.every))(*s.floats))


@feature("compile of func.jacfwd")
def compiled_jacfwd(s: Setting) -> Any:
    return s.listed(compiled(torch.func.jacfwd(s.total, s.every))(*s.floats))


@feature("compile of jacrev of jacrev")
def compiled_jacrev_twice(s: Setting) -> Any:
    second = torch.func.jacrev(torch.func.jacrev(s.total, s.every), s.every)
    return s.contracted(compiled(second)(*s.floats))


@feature("compile of vmap of one input")
def compiled_vmap_of_one(s: Setting) -> Any:
    first, *others = s.floats
    gradient = torch.func.grad(s.total, s.every)
    batched = torch.func.vmap(gradient, (0, *(None for _ in others)))
    found = compiled(batched)(torch.stack([first, 2 * first]), *others)
    return s.listed([g[0] for g in found])


@feature("compile of vmap over one input, backward")
def compiled_around_one(s: Setting) -> Any:
    def run(first: Any, floats: Any) -> Any:
        leaves = [x.clone().requires_grad_() for x in floats]
        total = compiled(first)(*leaves)
        return torch.autograd.grad(total, leaves, materialize_grads=True)

    return s.over_one(run)


@feature("compile of grad of vmap over one input")
def compiled_grad_around_one(s: Setting) -> Any:
    return s.over_one(
        lambda first, floats: compiled(torch.func.grad(first, s.every))(*floats)
    )


# --- to machine code -------------------------------------------------------------------


@feature("inductor, no_grad")
def inductor_no_grad(s: Setting) -> Any:
    return _inferred(s, "inductor")


@feature("inductor, dynamic shapes")
def inductor_dynamic(s: Setting) -> Any:
    return s.backward(compiled(s.total, backend="inductor", dynamic=True))


@feature("inductor, func.grad")
def inductor_grad(s: Setting) -> Any:
    gradient = compiled(torch.func.grad(s.total, s.every), backend="inductor")
    return s.listed(gradient(*s.floats))
