"""Features of the runtime for PyTorch: compiled, exported, traced.

Compiled functions go through AOT and no further (`aot_eager`), where rules are kept or
lost.
"""

from __future__ import annotations

import io
from typing import Any

import torch
from functorch.compile import aot_function, nop
from more import alone, calls_between
from runs_torch import around_batch, derivative
from torch import func
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.checkpoint import checkpoint

from gradspec.measure.frameworks.on_torch import Exported, compiled, feature, pushed
from gradspec.measure.frameworks.shared import first_of, one_output, require

# --- torch.compile ---------------------------------------------------------------------


def _change(change: Any, run: Any) -> Any:
    """A feature of the rule after a change of it."""

    def changed(s: Any) -> Any:
        s.rule = change(s.rule)
        return run(s)

    return changed


def _inferred(s: Any) -> Any:
    with torch.no_grad():
        return s.outputs(*s.leaves())


def _vmap_of_one(s: Any) -> Any:
    first, *others = s.floats
    batched = func.vmap(func.grad(s.total, s.every), (0, *(None for _ in others)))
    return first_of(compiled(batched)(torch.stack([first, 2 * first]), *others))


def _compiled_autograd(s: Any) -> Any:
    torch._dynamo.reset()
    leaves = s.leaves()
    total = s.total(*leaves)
    with torch._dynamo.compiled_autograd._enable(compiled):
        total.backward()
    return [leaf.grad for leaf in leaves]


def _aot(s: Any) -> Any:
    run = aot_function(s.whole, fw_compiler=nop)
    return s.backward(lambda *f: run(*s.among(s.inputs, f), *s.upstream))


def _graph_break(s: Any) -> Any:
    def total(*floats: Any) -> Any:
        torch._dynamo.graph_break()
        whole = s.total(*floats)
        torch._dynamo.graph_break()
        return whole * 1

    return s.backward(compiled(total, fullgraph=False))


def _autocast(s: Any) -> Any:
    def total(*floats: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return s.total(*floats)

    return s.backward(compiled(total))


def _twice(s: Any) -> Any:
    """Cubes beside the rule, so that there is something to differentiate twice."""
    total = compiled(lambda *f: s.total(*f) + sum((x**3).sum() for x in f))
    pairs = zip(s.of(s.probing(total)), s.floats, s.probes, strict=True)
    return [g - 6 * x * p for g, x, p in pairs]


def _cond(s: Any) -> Any:
    ways = s.total, lambda *floats: sum((x * 2.0).sum() for x in floats)

    def total(*floats: Any) -> Any:
        return torch.cond(floats[0].sum() < 1e30, *ways, floats)

    return s.backward(compiled(total))


def _around(s: Any) -> Any:
    """Forward mode through compiled code, which may leave the rule out of its
    graphs."""
    total = compiled(s.total, fullgraph=False)
    return s.along(lambda tangents: pushed(total, s.floats, tangents))


def _push(s: Any) -> Any:
    push = compiled(lambda f, t: func.jvp(s.total, f, t)[1])
    return s.along(lambda tangents: push(s.floats, tangents))


feature |= {
    "compile, values": lambda s: compiled(s.tuple_of)(*s.leaves()),
    "compile, no_grad": _change(compiled, _inferred),
    "compile, other calls between": lambda s: calls_between(s, compiled),
    "compile, one output at a time": _change(compiled, one_output),
    "compile, graph break": _graph_break,
    "compile, autocast to bfloat16": _autocast,
    "compile, checkpoint within": lambda s: s.backward(
        compiled(lambda *f: checkpoint(s.total, *f, use_reentrant=False))
    ),
    "compile, double backward": _twice,
    "compile, forward AD around it": _around,
    "compile, cond within": _cond,
    "compile of func.vjp": lambda s: compiled(
        lambda floats, upstream: func.vjp(s.tuple_of, *floats)[1](upstream)
    )(s.floats, tuple(s.upstream)),
    "compile of func.jvp": _push,
    "compile of hessian": lambda s: s.contracted(
        compiled(func.hessian(s.total, s.every))(*s.floats)
    ),
    "compile of vmap of one input": _vmap_of_one,
    "compile of vmap over one input, backward": around_batch(
        lambda s, first, floats: derivative(compiled(first), floats)
    ),
    "compile of grad of vmap over one input": around_batch(
        lambda s, first, floats: compiled(func.grad(first, s.every))(*floats)
    ),
    "compiled autograd": _compiled_autograd,
    "AOT": _aot,
}

# --- forward mode within what is compiled ----------------------------------------------


def _push_of_one(s: Any) -> Any:
    """The other inputs have no tangents, which are not tangents of zero."""
    found = []
    for place, x in enumerate(s.floats):
        total = alone(s, place)
        run = compiled(lambda x, t, f=total: func.jvp(f, (x,), (t,))[1])
        slopes = [float(run(x, unit)) for unit in s.units(x)]
        found.append(torch.tensor(slopes).reshape(x.shape))
    return found


def _pushed_twice(s: Any) -> Any:
    """The cotangents are factors outside: what two transforms of forward mode hold times
    a tensor from outside is an error of the compiler's own."""

    def once(*floats: Any) -> Any:
        return func.jvp(s.tuple_of, floats, tuple(s.probes))[1]

    push = compiled(
        lambda floats, tangents: s.weighed_outputs(func.jvp(once, floats, tangents)[1])
    )
    return s.along(lambda tangents: push(s.floats, tangents))


feature |= {
    "compile of func.jvp, one input at a time": _push_of_one,
    "compile of jacfwd of jacfwd": lambda s: s.contracted(
        compiled(func.jacfwd(func.jacfwd(s.total, s.every), s.every))(*s.floats)
    ),
    "compile of jvp of jvp": _pushed_twice,
}

# --- exported, traced -------------------------------------------------------------------


def _module(s: Any, name: str = "total", **options: Any) -> Any:
    return Exported(s, name).program(**options).module()


def _saved(s: Any) -> Any:
    file = io.BytesIO()
    torch.export.save(Exported(s).program(), file)
    file.seek(0)
    return torch.export.load(file).module()


def _exported_push(s: Any) -> Any:
    total = _module(s)
    return s.along(lambda tangents: func.jvp(total, s.floats, tangents)[1])


def _decomposed(s: Any) -> Any:
    """An inference graph of core operations: it has values, not gradients."""
    program = Exported(s, "tuple_of").program().run_decompositions()
    names = [str(n.target) for n in program.graph.nodes if n.op == "call_function"]
    foreign = [n for n in names if not n.startswith(("aten.", "<built-in"))]
    require(not foreign, f"operations that are not torch's: {foreign}")
    return program.module()(*s.floats)


feature |= {
    "export, values": lambda s: _module(s, "tuple_of")(*s.floats),
    "export, strict": lambda s: s.backward(_module(s, strict=True)),
    "export, saved and loaded": lambda s: s.backward(_saved(s)),
    "export, double backward": lambda s: s.of(s.probing(_module(s))),
    "export, func.grad": lambda s: func.grad(_module(s), s.every)(*s.floats),
    "export, func.jvp": _exported_push,
    "export, compiled": lambda s: s.backward(compiled(_module(s), fullgraph=False)),
    "export, decomposed": _decomposed,
    "make_fx": lambda s: make_fx(func.grad(s.total, s.every))(*s.floats)(*s.floats),
    "make_fx of a backward pass": lambda s: make_fx(lambda *f: derivative(s.total, f))(
        *s.floats
    )(*s.floats),
}
