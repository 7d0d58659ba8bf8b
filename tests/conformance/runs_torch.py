"""Features of the runtime for PyTorch: the autograd engine and what stands around it, and
the transforms of `torch.func`, alone and nested."""

from __future__ import annotations

import importlib
import io
import json
import sys
import threading
from pathlib import Path
from typing import Any

import torch
from more import by_keyword, calls_between, each_alone, transforms
from torch import func
from torch.autograd import forward_ad, functional
from torch.utils.checkpoint import checkpoint

from gradspec.measure.frameworks.on_torch import NAMES, Setting, feature, pushed, start
from gradspec.measure.frameworks.setting import do_job
from gradspec.measure.frameworks.shared import around_one, first_of, require

NAMES = NAMES | {
    "vjp, values": "func.vjp, values",
    "jvp, values": "func.jvp, values",
    "vjp": "func.vjp",
    "jacrev": "func.jacrev",
}
own = dict(feature)
feature |= {NAMES.get(name, name): run for name, run in transforms(func).items()} | own


class Layer(torch.nn.Module):
    """A module whose parameters are the floating inputs."""

    def __init__(self, setting: Any) -> None:
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


# --- the engine ------------------------------------------------------------------------


def _view(x: Any) -> Any:
    wide = torch.stack([x, x, x])
    return wide.movedim(0, -1).contiguous().movedim(-1, 0)[1]


def _checkpointed(**options: Any) -> Any:
    return lambda s: s.backward(lambda *f: checkpoint(s.total, *f, **options))


def _saved(layer: Layer) -> Any:
    file = io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def _saving_hooks(s: Any) -> Any:
    """A gradient that depends on the inputs passes something through the hooks."""
    seen, leaves = [], s.leaves()

    def pack(tensor: Any) -> Any:
        seen.append(tensor.shape)
        return tensor.clone()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        made = s.outputs(*leaves)
    second = s.case["second"] or {}
    varies = any(map(any, (values for _, values in second.values())))
    require(bool(seen) or not varies, "what the backward pass needs is kept elsewhere")
    s.weighed_outputs(made).backward()
    return [leaf.grad for leaf in leaves]


def _in_threads(s: Any) -> Any:
    found: dict[int, Any] = {}

    def work(k: int) -> None:
        found[k] = s.backward(s.total)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    first, *others = (s.listed(found[k]) for k in range(3))
    require([first] * 2 == others, "threads differ")
    return found[0]


class Marked(torch.Tensor):
    """A subclass as users write them."""


def _of_subclass(s: Any) -> Any:
    leaves = [x.clone().as_subclass(Marked).requires_grad_() for x in s.floats]
    s.total(*leaves).backward()
    return [x.grad for x in leaves]


def _batched_upstream(s: Any) -> Any:
    leaves = s.leaves()
    upstream = [torch.stack([u, 2 * u]) for u in s.upstream]
    outputs = s.outputs(*leaves)
    return first_of(
        torch.autograd.grad(outputs, leaves, upstream, is_grads_batched=True)
    )


def _backward_twice(s: Any) -> Any:
    leaves = s.leaves()
    total = s.total(*leaves)
    total.backward(retain_graph=True)
    for leaf in leaves:
        leaf.grad = None
    total.backward()
    return [leaf.grad for leaf in leaves]


def _switched(s: Any) -> Any:
    with torch.no_grad():
        require(not s.total(*s.leaves()).requires_grad, "a graph under no_grad")
        with torch.enable_grad():
            return s.backward(s.total)


def _inferred(s: Any) -> Any:
    with torch.inference_mode():
        return s.outputs(*s.floats)


_RULES: list[Any] = []


@torch.fx.wrap
def _leaf(*given: Any, **statics: Any) -> Any:
    return _RULES[-1](*given, **statics)


def _traced(s: Any) -> Any:
    """As a leaf of the graph (`torch.fx.wrap`), as any function that asks for types."""
    _RULES.append(s.rule)
    s.rule = lambda *given, **statics: _leaf(*given, **statics)

    def total(floats: Any) -> Any:  # fx counts the arguments of what it traces
        return s.total(*(floats[k] for k in s.every))

    traced = torch.fx.symbolic_trace(total)
    return s.backward(lambda *floats: traced(floats))


def _pushed_over_plain(s: Any) -> Any:
    """Forward mode over a backward pass of which no graph is made."""

    def probed(*duals: Any) -> Any:
        total = s.total(*duals)
        return s.probed(torch.autograd.grad(total, duals, materialize_grads=True))

    return s.along(lambda tangents: pushed(probed, s.leaves(), tangents))


def _backward_over_forward(s: Any) -> Any:
    """Gradients of tangents, one direction at a time."""
    wholes = [torch.zeros_like(x) for x in s.floats]
    for place, probe in enumerate(s.probes):
        for unit in s.units(probe):
            leaves = s.leaves()
            with forward_ad.dual_level():
                duals = list(leaves)
                duals[place] = forward_ad.make_dual(duals[place], unit * probe)
                tangent = forward_ad.unpack_dual(s.total(*duals)).tangent
                found = torch.autograd.grad(tangent, leaves, materialize_grads=True)
            wholes = [a + b for a, b in zip(wholes, found, strict=True)]
    return wholes


def _jacobian(s: Any, **options: Any) -> Any:
    return functional.jacobian(s.total, s.floats, vectorize=True, **options)


feature |= {
    "is_grads_batched": _batched_upstream,
    "keyword call": lambda s: s.backward(by_keyword(s).total),
    "one input at a time": each_alone,
    "other calls between": calls_between,
    "backward twice": _backward_twice,
    "views of inputs": lambda s: s.backward(lambda *f: s.total(*map(_view, f))),
    "no_grad and enable_grad": _switched,
    "inference mode": _inferred,
    "checkpoint, reentrant": _checkpointed(use_reentrant=True),
    "checkpoint, non-reentrant": _checkpointed(use_reentrant=False),
    "checkpoint, double backward": lambda s: s.of(
        s.probing(lambda *f: checkpoint(s.total, *f, use_reentrant=False))
    ),
    "saved-tensor hooks": _saving_hooks,
    "threads": _in_threads,
    "tensor subclass": _of_subclass,
    "torch.save of a module": lambda s: _saved(Layer(s)).gradients(),
    "jit.trace": lambda s: s.backward(
        torch.jit.trace(s.total, s.leaves(), check_trace=False)
    ),
    "fx.symbolic_trace, wrapped": _traced,
    "forward AD over a plain backward": _pushed_over_plain,
    "backward over forward AD": _backward_over_forward,
    "autograd.functional.jvp": lambda s: s.along(
        lambda tangents: functional.jvp(s.total, s.floats, tangents)[1]
    ),
    "autograd.functional.jacobian, vectorized": _jacobian,
    "autograd.functional.jacobian, forward mode": lambda s: _jacobian(
        s, strategy="forward-mode"
    ),
    "autograd.functional.hessian, vectorized": lambda s: s.contracted(
        functional.hessian(s.total, s.floats, vectorize=True)
    ),
}

# --- torch.func ------------------------------------------------------------------------


def _grad(s: Any) -> Any:
    return func.grad(s.total, s.every)


def around_batch(run: Any) -> Any:
    """Gradients from around a batch of one input."""
    return lambda s: around_one(s, func.vmap, lambda first, f: run(s, first, f))


def derivative(function: Any, floats: Any) -> Any:
    """The gradients of a function, by the engine; the floats may be within a trace."""
    leaves = [x.detach().clone().requires_grad_() for x in floats]
    return torch.autograd.grad(function(*leaves), leaves, materialize_grads=True)


def _crossed(s: Any) -> Any:
    """Of several inputs the first is batched within, the others without."""
    pair, *others = s.stacked()
    inner = func.vmap(_grad(s), (0, *(None for _ in others)))
    outer = func.vmap(inner, (None, *(0 for _ in others)) if others else 0)
    given = [pair if others else torch.stack([pair]), *others]
    return [g[0, 0] for g in outer(*given)]


def _ensemble(s: Any) -> Any:
    layers = [Layer(s), Layer(s)]
    parameters, buffers = func.stack_module_state(layers)

    def total(weights: Any, rest: Any) -> Any:
        return func.functional_call(layers[0], (weights, rest), ())

    found = func.vmap(func.grad(total))(parameters, buffers)
    return [g[1] for g in found.values()]


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


def _functionalized(s: Any) -> Any:
    """PyTorch has it for no `autograd.Function`; plain code here is one by hand."""
    is_plain = s.case["way"] == "plain"
    total = (lambda *floats: _Same.apply(s.total(*floats))) if is_plain else s.total
    return func.functionalize(func.grad(total, s.every))(*s.floats)


feature |= {
    "vmap in vmap, batches crossed": _crossed,
    "backward of vmap over one input": around_batch(
        lambda s, first, floats: derivative(first, floats)
    ),
    "jvp of vmap over one input": around_batch(
        lambda s, first, floats: s.along(
            lambda t: func.jvp(first, floats, t)[1], floats
        )
    ),
    "ensemble (stack_module_state)": _ensemble,
    "functionalize": _functionalized,
}

if __name__ == "__main__":
    start()
    sys.modules["runs_torch"] = sys.modules["__main__"]
    job = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    if not {one["name"] for one in job["features"]} <= {*feature}:
        importlib.import_module("torch_compiled")  # which takes seconds
        importlib.import_module("torch_processes")
    do_job(Setting, feature)
