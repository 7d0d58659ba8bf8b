"""Conformance of torch modules: what else the autograd engine offers."""

from __future__ import annotations

from typing import Any

import torch
from conforming import require, unused
from conforming_torch_setting import Setting, feature
from torch.autograd import forward_ad, functional
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

# --- checks and functional -------------------------------------------------------------


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


@feature("autograd.functional.vjp")
def functional_vjp(s: Setting) -> Any:
    return s.listed(functional.vjp(s.total, s.floats)[1])


@feature("autograd.functional.jvp")
def functional_jvp(s: Setting) -> Any:
    return s.along(lambda tangents: functional.jvp(s.total, s.floats, tangents)[1])


@feature("autograd.functional.jacobian")
def functional_jacobian(s: Setting) -> Any:
    return s.listed(functional.jacobian(s.total, s.floats))


@feature("autograd.functional.jacobian, vectorized")
def functional_vectorized(s: Setting) -> Any:
    return s.listed(functional.jacobian(s.total, s.floats, vectorize=True))


@feature("autograd.functional.jacobian, forward mode")
def functional_forward(s: Setting) -> Any:
    options = {"vectorize": True, "strategy": "forward-mode"}
    return s.listed(functional.jacobian(s.total, s.floats, **options))


@feature("autograd.functional.hessian")
def functional_hessian(s: Setting) -> Any:
    return s.contracted(functional.hessian(s.total, s.floats))


@feature("autograd.functional.hessian, vectorized")
def functional_hessian_vectorized(s: Setting) -> Any:
    return s.contracted(functional.hessian(s.total, s.floats, vectorize=True))


@feature("autograd.functional.vhp")
def functional_vhp(s: Setting) -> Any:
    return s.listed(functional.vhp(s.total, s.floats, tuple(s.probes))[1])


# --- forward mode beside reverse mode --------------------------------------------------


@feature("forward AD over a plain backward")
def forward_over_plain(s: Setting) -> Any:
    """No graph is made of the backward pass: forward mode alone goes over it."""
    return _pushed_over(s, False)


@feature("forward AD over backward")
def forward_over_backward(s: Setting) -> Any:
    return _pushed_over(s, True)


def _pushed_over(s: Setting, graph: bool) -> Any:
    def push(tangents: Any) -> Any:
        leaves = s.leaves()
        with forward_ad.dual_level():
            duals = [
                forward_ad.make_dual(x, t)
                for x, t in zip(leaves, tangents, strict=True)
            ]
            first = torch.autograd.grad(
                s.total(*duals), duals, create_graph=graph, materialize_grads=True
            )
            tangent = forward_ad.unpack_dual(s.probed(first)).tangent
        return 0.0 if tangent is None else tangent

    return s.along(push)


@feature("backward over forward AD")
def backward_over_forward(s: Setting) -> Any:
    """Gradients of tangents, one direction at a time."""
    wholes = [torch.zeros_like(x) for x in s.floats]
    for place, probe in enumerate(s.probes):
        for k in range(probe.numel()):
            leaves = s.leaves()
            unit = torch.zeros_like(probe).view(-1)
            unit[k] = probe.view(-1)[k]
            with forward_ad.dual_level():
                duals: list[Any] = list(leaves)
                duals[place] = forward_ad.make_dual(
                    duals[place], unit.view(probe.shape)
                )
                tangent = forward_ad.unpack_dual(s.total(*duals)).tangent
                found = torch.autograd.grad(tangent, leaves, materialize_grads=True)
            wholes = [a + b for a, b in zip(wholes, found, strict=True)]
    return s.listed(wholes)


# --- parts of a call -------------------------------------------------------------------


@feature("one input at a time")
def one_input(s: Setting) -> Any:
    found = []
    for place, x in enumerate(s.floats):
        given = list(s.floats)
        given[place] = x.clone().requires_grad_()
        found += torch.autograd.grad(s.total(*given), given[place])
    return s.listed(found)


@feature("one output at a time")
def one_output(s: Setting) -> Any:
    """The others have no upstream gradient; nothing is made up for them."""
    leaves = s.leaves()
    pairs = zip(s.outputs(*leaves), s.upstream, strict=True)
    for y, upstream in pairs:
        if y.requires_grad:
            (y * upstream).sum().backward(retain_graph=True)
    return s.listed([torch.zeros_like(x) if x.grad is None else x.grad for x in leaves])


@feature("two calls in one graph")
def two_calls(s: Setting) -> Any:
    found = s.backward(lambda *f: s.total(*f) + s.total(*f))
    return [[shape, [value / 2 for value in values]] for shape, values in found]


@feature("other calls between")
def calls_between(s: Setting) -> Any:
    """Nothing may stay of a call but what its own backward pass has."""
    s.rule = unused(s.rule, s.path, s.case)
    leaves = s.leaves()
    s.moved().backward()
    total = s.total(*leaves)
    s.moved().backward()
    total.backward()
    return s.listed([leaf.grad for leaf in leaves])


@feature("backward twice")
def twice(s: Setting) -> Any:
    leaves = s.leaves()
    total = s.total(*leaves)
    total.backward(retain_graph=True)
    for leaf in leaves:
        leaf.grad = None
    total.backward()
    return s.listed([leaf.grad for leaf in leaves])


@feature("in-place on a result")
def in_place(s: Setting) -> Any:
    """But for results that the backward pass has, as that of `torch.exp` has its own."""
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


@feature("views of inputs")
def views(s: Setting) -> Any:
    def view(x: Any) -> Any:
        wide = torch.stack([x, x, x])
        return wide.movedim(0, -1).contiguous().movedim(-1, 0)[1]

    return s.backward(lambda *f: s.total(*map(view, f)))


@feature("expanded upstream gradients")
def expanded(s: Setting) -> Any:
    """`sum` hands down a gradient without strides, which is as one that is written out."""
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
    """Of the outputs' shapes, with other axes first in memory; they stay as they are."""
    leaves = s.leaves()
    pairs = zip(s.outputs(*leaves), map(_turned, s.upstream), strict=True)
    outputs, upstream = zip(*((y, u) for y, u in pairs if y.requires_grad), strict=True)
    before = [u.clone() for u in upstream]
    found = torch.autograd.grad(outputs, leaves, upstream, materialize_grads=True)
    same = all(map(torch.equal, upstream, before))
    require(same, "an upstream gradient was changed in place")
    return s.listed(found)


def _turned(u: Any) -> Any:
    return u.movedim(-1, 0).contiguous().movedim(0, -1) if u.dim() else u


@feature("float64")
def float64(s: Setting) -> Any:
    s.double()
    leaves = s.leaves()
    s.total(*leaves).backward()
    require(all(x.grad.dtype == torch.float64 for x in leaves), "not float64")
    return s.listed([x.grad for x in leaves])


@feature("bfloat16")
def bfloat16(s: Setting) -> Any:
    leaves = [x.detach().bfloat16().requires_grad_() for x in s.floats]
    outputs = s.outputs(*leaves)
    s.weighed_outputs(outputs).backward()
    require(all(y.dtype == torch.bfloat16 for y in outputs), "results not bfloat16")
    require(all(x.grad.dtype == torch.bfloat16 for x in leaves), "not bfloat16")
    return s.listed([x.grad for x in leaves])


@feature("no_grad and enable_grad")
def switched(s: Setting) -> Any:
    with torch.no_grad():
        require(not s.total(*s.leaves()).requires_grad, "a graph under no_grad")
        with torch.enable_grad():
            return s.backward(s.total)


# --- checkpoints and saved tensors -----------------------------------------------------


@feature("checkpoint without early stop")
def late_stop(s: Setting) -> Any:
    with torch.utils.checkpoint.set_checkpoint_early_stop(False):
        return s.backward(lambda *f: checkpoint(s.total, *f, use_reentrant=False))


@feature("checkpoint, double backward")
def checkpointed_twice(s: Setting) -> Any:
    leaves = s.leaves()
    total = checkpoint(s.total, *leaves, use_reentrant=False)
    first = torch.autograd.grad(
        total, leaves, create_graph=True, materialize_grads=True
    )
    whole = s.probed(first)
    if not whole.requires_grad:
        return s.listed(map(torch.zeros_like, leaves))
    return s.listed(torch.autograd.grad(whole, leaves, materialize_grads=True))


@feature("checkpoint_sequential")
def sequential(s: Setting) -> Any:
    class Total(torch.nn.Module):
        def forward(self, floats: Any) -> Any:
            return s.total(*floats)

    parts = torch.nn.Sequential(torch.nn.Identity(), Total())
    return s.backward(
        lambda *f: checkpoint_sequential(parts, 2, tuple(f), use_reentrant=False)
    )


@feature("save_on_cpu")
def saved_on_cpu(s: Setting) -> Any:
    with torch.autograd.graph.save_on_cpu():
        return s.backward(s.total)
