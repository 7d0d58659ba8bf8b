"""Conformance of torch modules: the autograd engine and what stands around it, and the
transforms of `torch.func`, alone and nested."""

from __future__ import annotations

import copy
import io
import pickle
import threading
import warnings
from collections.abc import Callable
from typing import Any

import torch
from conforming import (
    emptied,
    first_of,
    main,
    require,
    torch_module,
    transforms,
    unused,
)
from setting_torch import Layer, Setting, derivative, feature
from torch import func
from torch.autograd import forward_ad, functional
from torch.utils.checkpoint import checkpoint, checkpoint_sequential


def _of_keyword(s: Setting) -> Any:
    s.by_keyword()
    return s.backward(s.total)


def _strided(x: Any) -> Any:
    """Gaps between the elements, and other axes first in memory."""
    if not x.dim():
        return x
    return x.movedim(-1, 0).repeat_interleave(2, 0)[::2].movedim(0, -1)


def _view(x: Any) -> Any:
    wide = torch.stack([x, x, x])
    return wide.movedim(0, -1).contiguous().movedim(-1, 0)[1]


def _of(change: Callable[[Any], Any]) -> Callable[[Setting], Any]:
    """The gradients through a change of the inputs that keeps their values."""
    return lambda s: s.backward(lambda *f: s.total(*map(change, f)))


def _within(context: Callable[[], Any]) -> Callable[[Setting], Any]:
    """The gradients within a context."""

    def run(s: Setting) -> Any:
        with context():
            return s.backward(s.total)

    return run


def _checkpointed(**options: Any) -> Callable[[Setting], Any]:
    return lambda s: s.backward(lambda *f: checkpoint(s.total, *f, **options))


def _pushed(s: Setting, function: Any) -> Any:
    def push(tangents: Any) -> Any:
        with forward_ad.dual_level():
            pairs = zip(s.floats, tangents, strict=True)
            made = function(*(forward_ad.make_dual(x, t) for x, t in pairs))
            tangent = forward_ad.unpack_dual(made).tangent
            return 0.0 if tangent is None else tangent

    return s.along(push)


def _pushed_over(s: Setting, graph: bool) -> Any:
    """Forward mode over a backward pass, of which a graph is made or not."""

    def push(tangents: Any) -> Any:
        leaves = s.leaves()
        with forward_ad.dual_level():
            pairs = zip(leaves, tangents, strict=True)
            duals = [forward_ad.make_dual(x, t) for x, t in pairs]
            first = torch.autograd.grad(
                s.total(*duals), duals, create_graph=graph, materialize_grads=True
            )
            tangent = forward_ad.unpack_dual(s.probed(first)).tangent
        return 0.0 if tangent is None else tangent

    return s.along(push)


def _saved(layer: Layer) -> Layer:
    file = io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    found: Layer = torch.load(file, weights_only=False)
    return found


def _compiled_around(s: Setting) -> Any:
    """Forward mode through compiled code, which may leave the rule out of its
    graphs."""
    torch._dynamo.reset()
    return _pushed(s, torch.compile(s.total, backend="aot_eager"))


_FORWARD = {"vectorize": True, "strategy": "forward-mode"}


def _jacobian(s: Setting, **options: Any) -> Any:
    return functional.jacobian(s.total, s.floats, **options)


def _hessian(s: Setting, **options: Any) -> Any:
    return s.contracted(functional.hessian(s.total, s.floats, **options))


class _Passing(torch.overrides.TorchFunctionMode):
    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return function(*args, **(kwargs or {}))


def _flops() -> Any:
    from torch.utils.flop_counter import FlopCounterMode

    return FlopCounterMode(display=False)


feature |= {
    "values": lambda s: s.outputs(*s.leaves()),
    "backward": lambda s: s.backward(s.total),
    "double backward": lambda s: s.twice(s.leaves()),
    "keyword call": _of_keyword,
    "non-contiguous inputs": _of(_strided),
    "views of inputs": _of(_view),
    "checkpoint, reentrant": _checkpointed(use_reentrant=True),
    "checkpoint, non-reentrant": _checkpointed(use_reentrant=False),
    "autocast to bfloat16": _within(lambda: torch.autocast("cpu", torch.bfloat16)),
    "anomaly mode": _within(lambda: torch.autograd.detect_anomaly(check_nan=True)),
    "single-threaded engine": _within(
        lambda: torch.autograd.set_multithreading_enabled(False)
    ),
    "dispatch mode": _within(_flops),
    "function mode": _within(_Passing),
    "save_on_cpu": _within(torch.autograd.graph.save_on_cpu),
    "deepcopy of a module": lambda s: copy.deepcopy(Layer(s)).gradients(),
    "pickle of a module": lambda s: pickle.loads(pickle.dumps(Layer(s))).gradients(),
    "torch.save of a module": lambda s: _saved(Layer(s)).gradients(),
    "jit.trace": lambda s: s.backward(
        torch.jit.trace(s.total, s.leaves(), check_trace=False)
    ),
    "forward AD": lambda s: _pushed(s, s.total),
    "forward AD over a plain backward": lambda s: _pushed_over(s, False),
    "forward AD over backward": lambda s: _pushed_over(s, True),
    "compile, forward AD around it": _compiled_around,
    "autograd.functional.vjp": lambda s: functional.vjp(s.total, s.floats)[1],
    "autograd.functional.jvp": lambda s: s.along(
        lambda tangents: functional.jvp(s.total, s.floats, tangents)[1]
    ),
    "autograd.functional.jacobian": _jacobian,
    "autograd.functional.jacobian, vectorized": lambda s: _jacobian(s, vectorize=True),
    "autograd.functional.jacobian, forward mode": lambda s: _jacobian(s, **_FORWARD),
    "autograd.functional.hessian": _hessian,
    "autograd.functional.hessian, vectorized": lambda s: _hessian(s, vectorize=True),
    "autograd.functional.vhp": lambda s: functional.vhp(
        s.total, s.floats, tuple(s.probes)
    )[1],
}


@feature("third backward")
def third_backward(s: Setting) -> Any:
    leaves = s.leaves()
    whole = s.probed(s.graph(leaves))
    if not whole.requires_grad:
        return list(map(torch.zeros_like, leaves))
    return s.twice(leaves, whole)


@feature("gradcheck")
def gradcheck(s: Setting) -> None:
    s.double()
    torch.autograd.gradcheck(
        s.total, s.leaves(), check_forward_ad=True, check_batched_grad=True
    )


@feature("gradgradcheck")
def gradgradcheck(s: Setting) -> None:
    s.double()
    if s.total(*s.leaves()).requires_grad:
        torch.autograd.gradgradcheck(
            s.total, s.leaves(), check_fwd_over_rev=s.case["linear"]
        )


@feature("is_grads_batched")
def grads_batched(s: Setting) -> Any:
    leaves = s.leaves()
    upstream = [torch.stack([u, 2 * u]) for u in s.upstream]
    outputs = s.outputs(*leaves)
    found = torch.autograd.grad(outputs, leaves, upstream, is_grads_batched=True)
    return [g[0] for g in found]


@feature("inference mode")
def inference(s: Setting) -> Any:
    with torch.inference_mode():
        return s.outputs(*s.floats)


@feature("no_grad and enable_grad")
def switched(s: Setting) -> Any:
    with torch.no_grad():
        require(not s.total(*s.leaves()).requires_grad, "a graph under no_grad")
        with torch.enable_grad():
            return s.backward(s.total)


@feature("empty tensors")
def empty(s: Setting) -> None:
    s.inputs = emptied(s.case, s.inputs)
    leaves = s.leaves()
    sum(y.sum() for y in s.outputs(*leaves)).backward()
    require(all(x.grad.shape == x.shape for x in leaves), "gradients of other shapes")


@feature("backward over forward AD")
def backward_over_forward(s: Setting) -> Any:
    """Gradients of tangents, one direction at a time."""
    wholes = [torch.zeros_like(x) for x in s.floats]
    for place, probe in enumerate(s.probes):
        for unit in s.units(probe):
            leaves = s.leaves()
            with forward_ad.dual_level():
                duals: list[Any] = list(leaves)
                duals[place] = forward_ad.make_dual(duals[place], unit * probe)
                tangent = forward_ad.unpack_dual(s.total(*duals)).tangent
                found = torch.autograd.grad(tangent, leaves, materialize_grads=True)
            wholes = [a + b for a, b in zip(wholes, found, strict=True)]
    return wholes


# --- parts of a call -------------------------------------------------------------------


@feature("one input at a time")
def one_input(s: Setting) -> Any:
    found = []
    for place, x in enumerate(s.floats):
        given = list(s.floats)
        given[place] = x.clone().requires_grad_()
        found += torch.autograd.grad(s.total(*given), given[place])
    return found


@feature("one output at a time")
def one_output(s: Setting) -> Any:
    """The others have no cotangent; nothing is made up for them."""
    leaves = s.leaves()
    for y, u in zip(s.outputs(*leaves), s.upstream, strict=True):
        if y.requires_grad:
            s.dot(y, u).backward(retain_graph=True)
    return [torch.zeros_like(x) if x.grad is None else x.grad for x in leaves]


@feature("two calls in one graph")
def two_calls(s: Setting) -> Any:
    return [g / 2 for g in s.backward(lambda *f: s.total(*f) + s.total(*f))]


@feature("other calls between")
def calls_between(s: Setting) -> Any:
    """Nothing may stay of a call but what its own backward pass has."""
    s.rule = unused(s.rule, s.path, s.case)
    s.moved()

    def total(*leaves: Any) -> Any:
        made = s.total(*leaves)
        s.moved()
        return made

    return s.backward(total)


@feature("backward twice")
def twice(s: Setting) -> Any:
    leaves = s.leaves()
    total = s.total(*leaves)
    total.backward(retain_graph=True)
    for leaf in leaves:
        leaf.grad = None
    total.backward()
    return [leaf.grad for leaf in leaves]


@feature("in-place on a result")
def in_place(s: Setting) -> Any:
    """But for results that the backward pass has, as that of `torch.exp` has its
    own."""
    kept: list[int] = []

    def pack(tensor: Any) -> Any:
        kept.append(tensor.data_ptr())
        return tensor

    def total(*floats: Any) -> Any:
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
            outputs = s.outputs(*floats)
        free = [y.data_ptr() not in kept for y in outputs]
        twice = [y.mul_(2) if f else y * 2 for y, f in zip(outputs, free, strict=True)]
        return s.weighed_outputs(twice) / 2

    return s.backward(total)


@feature("expanded upstream gradients")
def expanded(s: Setting) -> Any:
    """`sum` hands down a gradient without strides, which is as one that is written
    out."""
    leaves, options = s.leaves(), {"retain_graph": True, "materialize_grads": True}
    outputs = [y for y in s.outputs(*leaves) if y.requires_grad]
    ones = list(map(torch.ones_like, outputs))
    short = torch.autograd.grad(sum(y.sum() for y in outputs), leaves, **options)
    written = torch.autograd.grad(outputs, leaves, ones, **options)
    alike = all(map(torch.allclose, short, written))
    require(alike, f"{s.listed(short)}, of ones {s.listed(written)}")
    return s.backward(s.total)


@feature("upstream gradients of other strides")
def upstream_strides(s: Setting) -> Any:
    """Of the outputs' shapes, with other axes first in memory; they stay as they
    are."""
    leaves = s.leaves()
    pairs = zip(s.outputs(*leaves), map(_turned, s.upstream), strict=True)
    outputs, upstream = zip(*((y, u) for y, u in pairs if y.requires_grad), strict=True)
    before = [u.clone() for u in upstream]
    found = torch.autograd.grad(outputs, leaves, upstream, materialize_grads=True)
    same = all(map(torch.equal, upstream, before))
    require(same, "a cotangent was changed in place")
    return found


def _turned(u: Any) -> Any:
    return u.movedim(-1, 0).contiguous().movedim(0, -1) if u.dim() else u


@feature("float64")
def float64(s: Setting) -> Any:
    s.double()
    found = s.backward(s.total)
    require(all(g.dtype == torch.float64 for g in found), "not float64")
    return found


@feature("bfloat16")
def bfloat16(s: Setting) -> Any:
    leaves = [x.detach().bfloat16().requires_grad_() for x in s.floats]
    outputs = s.outputs(*leaves)
    s.weighed_outputs(outputs).backward()
    require(all(y.dtype == torch.bfloat16 for y in outputs), "results not bfloat16")
    require(all(x.grad.dtype == torch.bfloat16 for x in leaves), "not bfloat16")
    return [x.grad for x in leaves]


# --- checkpoints and saved tensors -----------------------------------------------------


@feature("saved-tensor hooks")
def saved_tensor_hooks(s: Setting) -> Any:
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


@feature("checkpoint without early stop")
def late_stop(s: Setting) -> Any:
    with torch.utils.checkpoint.set_checkpoint_early_stop(False):
        return s.backward(lambda *f: checkpoint(s.total, *f, use_reentrant=False))


@feature("checkpoint, double backward")
def checkpointed_twice(s: Setting) -> Any:
    leaves = s.leaves()
    return s.twice(leaves, checkpoint(s.total, *leaves, use_reentrant=False))


@feature("checkpoint_sequential")
def sequential(s: Setting) -> Any:
    class Total(torch.nn.Module):
        def forward(self, floats: Any) -> Any:
            return s.total(*floats)

    parts = torch.nn.Sequential(torch.nn.Identity(), Total())
    return s.backward(
        lambda *f: checkpoint_sequential(parts, 2, tuple(f), use_reentrant=False)
    )


# --- hooks, threads, subclasses, tracers -----------------------------------------------


@feature("hooks on tensors")
def tensor_hooks(s: Setting) -> Any:
    leaves = s.leaves()
    for leaf in leaves:
        leaf.register_hook(lambda g: 3 * g)
        leaf.register_post_accumulate_grad_hook(_divide)
    s.total(*leaves).backward()
    return [leaf.grad for leaf in leaves]


def _divide(leaf: Any) -> None:
    leaf.grad.div_(3)


@feature("hooks on modules")
def module_hooks(s: Setting) -> Any:
    layer, seen = Layer(s), []
    layer.register_full_backward_hook(lambda *_: seen.append("after"))
    layer.register_full_backward_pre_hook(lambda *_: seen.append("before"))
    found = layer.gradients()
    require("before" in seen, f"hooks called: {seen}")
    return found


@feature("threads")
def threads(s: Setting) -> Any:
    found: dict[int, Any] = {}

    def work(k: int) -> None:
        found[k] = s.backward(s.total)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    listed = [s.listed(found[k]) for k in sorted(found)]
    require(len(listed) == 3 and listed[0] == listed[1] == listed[2], "threads differ")
    return found[0]


class Marked(torch.Tensor):
    """A subclass as users write them."""


@feature("tensor subclass")
def subclass(s: Setting) -> Any:
    leaves = [x.clone().as_subclass(Marked).requires_grad_() for x in s.floats]
    s.total(*leaves).backward()
    return [x.grad for x in leaves]


@feature("deterministic algorithms")
def deterministic(s: Setting) -> Any:
    torch.use_deterministic_algorithms(True)
    try:
        return s.backward(s.total)
    finally:
        torch.use_deterministic_algorithms(False)


_RULES: list[Any] = []


@torch.fx.wrap
def _leaf(*given: Any, **statics: Any) -> Any:
    return _RULES[-1](*given, **statics)


def _called(*given: Any, **statics: Any) -> Any:
    return _leaf(*given, **statics)


@feature("fx.symbolic_trace, wrapped")
def symbolic_trace(s: Setting) -> Any:
    """As a leaf of the graph (`torch.fx.wrap`), as any function that asks for types."""
    _RULES.append(s.rule)
    s.rule = _called

    def total(floats: Any) -> Any:  # fx counts the arguments of what it traces
        return s.total(*(floats[k] for k in s.every))

    traced = torch.fx.symbolic_trace(total)
    return s.backward(lambda *floats: traced(floats))


# --- torch.func -----------------------------------------------------------------------


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


def _tangent(function: Any, probe: Any) -> Any:
    return lambda x: func.jvp(function, (x,), (probe,))[1]


@feature("grad of jvp")
def grad_of_jvp(s: Setting) -> Any:
    """Rows for columns where a declared gradient is not a gradient: one input alone."""
    return _each_alone(s, lambda f, x, p: func.grad(_tangent(f, p))(x))


@feature("jvp of jvp")
def jvp_of_jvp(s: Setting) -> Any:
    def twice(f: Any, x: Any, probe: Any) -> Any:
        rows = [func.jvp(_tangent(f, probe), (x,), (unit,))[1] for unit in s.units(x)]
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


_COMPILED = "conforming_torch_compiled"
PARTS = {
    **dict.fromkeys(("compile", "inductor", "export"), _COMPILED),
    "distributed": "conforming_torch_distributed",
}
"""The module that holds the features of a group, if it is not this one."""

if __name__ == "__main__":
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    main(feature, Setting, torch_module, PARTS)
