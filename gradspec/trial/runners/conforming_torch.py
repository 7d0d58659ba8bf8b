"""Conformance of torch modules: eager features; all others are in files beside."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import conforming_torch_around  # noqa: F401  (registers its features)
import conforming_torch_autograd  # noqa: F401
import conforming_torch_compiled  # noqa: F401
import conforming_torch_distributed  # noqa: F401
import conforming_torch_exported  # noqa: F401
import conforming_torch_forward  # noqa: F401
import conforming_torch_func  # noqa: F401
import torch
from conforming import emptied, main, require
from conforming_plain import torch_module
from conforming_torch_setting import Layer, Setting, feature
from torch.autograd import forward_ad
from torch.utils.checkpoint import checkpoint

# --- eager -----------------------------------------------------------------------------


@feature("values")
def outputs(s: Setting) -> Any:
    return s.listed(s.outputs(*s.leaves()))


@feature("backward")
def backward(s: Setting) -> Any:
    return s.backward(s.total)


@feature("double backward")
def double_backward(s: Setting) -> Any:
    leaves = s.leaves()
    whole = s.probed(s.first(leaves))
    return s.listed(_derivative(whole, leaves))


def _derivative(whole: Any, leaves: Any) -> Any:
    if not whole.requires_grad:
        return [torch.zeros_like(leaf) for leaf in leaves]
    return torch.autograd.grad(whole, leaves, materialize_grads=True)


@feature("third backward")
def third_backward(s: Setting) -> Any:
    leaves = s.leaves()
    whole = s.probed(s.first(leaves))
    if not whole.requires_grad:
        return s.listed(map(torch.zeros_like, leaves))
    second = torch.autograd.grad(
        whole, leaves, create_graph=True, materialize_grads=True
    )
    return s.listed(_derivative(s.probed(second), leaves))


@feature("is_grads_batched")
def grads_batched(s: Setting) -> Any:
    leaves = s.leaves()
    outputs = s.outputs(*leaves)
    upstream = [torch.stack([u, 2 * u]) for u in s.upstream]
    found = torch.autograd.grad(outputs, leaves, upstream, is_grads_batched=True)
    return s.listed([g[0] for g in found])


@feature("keyword call")
def keyword_call(s: Setting) -> Any:
    names, rule = [name for name, _ in s.case["inputs"]], s.rule
    s.rule = lambda *given, **statics: rule(
        **dict(zip(names, given, strict=True)), **statics
    )
    return s.backward(s.total)


@feature("non-contiguous inputs")
def strided(s: Setting) -> Any:
    return s.backward(lambda *floats: s.total(*(_strided(x) for x in floats)))


def _strided(x: Any) -> Any:
    """Gaps between the elements, and other axes first in memory."""
    if not x.dim():
        return x
    return x.movedim(-1, 0).repeat_interleave(2, 0)[::2].movedim(0, -1)


@feature("inference mode")
def inference(s: Setting) -> Any:
    with torch.inference_mode():
        return s.listed(s.outputs(*s.floats))


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
    return s.listed([leaf.grad for leaf in leaves])


@feature("checkpoint, reentrant")
def reentrant(s: Setting) -> Any:
    return s.backward(lambda *f: checkpoint(s.total, *f, use_reentrant=True))


@feature("checkpoint, non-reentrant")
def non_reentrant(s: Setting) -> Any:
    return s.backward(lambda *f: checkpoint(s.total, *f, use_reentrant=False))


@feature("autocast to bfloat16")
def autocast(s: Setting) -> Any:
    with torch.autocast("cpu", torch.bfloat16):
        return s.backward(s.total)


@feature("deepcopy of a module")
def deepcopied(s: Setting) -> Any:
    return _learned(copy.deepcopy(Layer(s)), s)


@feature("pickle of a module")
def pickled(s: Setting) -> Any:
    return _learned(pickle.loads(pickle.dumps(Layer(s))), s)


def _learned(layer: Layer, s: Setting) -> Any:
    layer().backward()
    return s.listed([weight.grad for weight in layer.weights])


@feature("empty tensors")
def empty(s: Setting) -> None:
    s.inputs = emptied(s.case, s.inputs)
    leaves = s.leaves()
    sum(y.sum() for y in s.outputs(*leaves)).backward()
    require(all(x.grad.shape == x.shape for x in leaves), "gradients of other shapes")


@feature("forward AD")
def forward(s: Setting) -> Any:
    return _pushed(s, s.total)


@feature("compile, forward AD around it")
def forward_around_compiled(s: Setting) -> Any:
    """What is compiled is given dual numbers; it may leave the rule out of its graphs."""
    torch._dynamo.reset()
    return _pushed(s, torch.compile(s.total, backend="aot_eager"))


def _pushed(s: Setting, function: Any) -> Any:
    def push(tangents: Any) -> Any:
        with forward_ad.dual_level():
            pairs = zip(s.floats, tangents, strict=True)
            made = function(*(forward_ad.make_dual(x, t) for x, t in pairs))
            tangent = forward_ad.unpack_dual(made).tangent
            return 0.0 if tangent is None else tangent

    return s.along(push)


if __name__ == "__main__":
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    main(feature, Setting, torch_module)
