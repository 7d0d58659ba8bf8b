"""Conformance of torch modules: exported, traced, without values."""

from __future__ import annotations

import io
from typing import Any

import torch
from conforming import require
from conforming_torch_setting import Setting, feature
from torch.fx.experimental.proxy_tensor import make_fx


class _Exported(torch.nn.Module):
    def __init__(self, setting: Setting) -> None:
        super().__init__()
        self.setting = setting

    def forward(self, *floats: Any) -> Any:
        return self.setting.total(*floats)


def _program(s: Setting, **options: Any) -> Any:
    return torch.export.export(_Exported(s), s.floats, **options)


@feature("export")
def export(s: Setting) -> Any:
    return s.backward(_program(s).module())


@feature("export, strict")
def strict(s: Setting) -> Any:
    return s.backward(_program(s, strict=True).module())


@feature("export, dynamic sizes")
def dynamic(s: Setting) -> Any:
    """Traced at other sizes of the first axis than it is run at."""
    names, batched = [name for name, _ in s.case["inputs"]], s.case["batched"]
    sized = [names[k] in batched for k in s.places]
    if not any(sized) or sum(sized) < len(batched) or not _are_ones(s.upstream):
        return export(s)
    batch = torch.export.Dim("batch", min=2, max=64)
    pairs = list(zip(s.floats, sized, strict=True))
    axes = tuple({0: batch} if is_sized else None for _, is_sized in pairs)
    given = tuple(torch.cat([x, x, x]) if is_sized else x for x, is_sized in pairs)
    traced = torch.export.export(_Summed(s), given, dynamic_shapes=(axes,))
    return s.backward(traced.module())


class _Summed(_Exported):
    """Without upstream gradients, whose sizes would be fixed."""

    def forward(self, *floats: Any) -> Any:
        return sum(y.sum() for y in self.setting.outputs(*floats))


def _are_ones(tensors: list[Any]) -> bool:
    return all(bool((x == 1).all()) for x in tensors)


@feature("export, saved and loaded")
def saved_export(s: Setting) -> Any:
    file = io.BytesIO()
    torch.export.save(_program(s), file)
    file.seek(0)
    return s.backward(torch.export.load(file).module())


@feature("export, double backward")
def double_backward(s: Setting) -> Any:
    leaves, total = s.leaves(), _program(s).module()
    first = torch.autograd.grad(
        total(*leaves), leaves, create_graph=True, materialize_grads=True
    )
    whole = s.probed(first)
    if not whole.requires_grad:
        return s.listed(map(torch.zeros_like, leaves))
    return s.listed(torch.autograd.grad(whole, leaves, materialize_grads=True))


@feature("export, func.grad")
def exported_grad(s: Setting) -> Any:
    return s.listed(torch.func.grad(_program(s).module(), s.every)(*s.floats))


@feature("export, func.jvp")
def exported_jvp(s: Setting) -> Any:
    total = _program(s).module()
    return s.along(lambda tangents: torch.func.jvp(total, s.floats, tangents)[1])


@feature("export, compiled")
def exported_compiled(s: Setting) -> Any:
    torch._dynamo.reset()
    return s.backward(torch.compile(_program(s).module(), backend="aot_eager"))


@feature("export, decomposed")
def decomposed(s: Setting) -> None:
    """An inference graph of core operations: it has values, not gradients."""
    program = _program(s).run_decompositions()
    names = [str(n.target) for n in program.graph.nodes if n.op == "call_function"]
    foreign = [n for n in names if not n.startswith(("aten.", "<built-in"))]
    require(not foreign, f"operations that are not torch's: {foreign}")
    made, true = program.module()(*s.floats), s.total(*s.floats)
    require(bool((made - true).abs() <= 1e-4 * (1 + true.abs())), "another value")


@feature("make_fx")
def traced(s: Setting) -> Any:
    gradient = make_fx(torch.func.grad(s.total, s.every))(*s.floats)
    return s.listed(gradient(*s.floats))


@feature("make_fx of a backward pass")
def traced_backward(s: Setting) -> Any:
    def gradients(*floats: Any) -> Any:
        leaves = [x.detach().requires_grad_() for x in floats]
        return torch.autograd.grad(s.total(*leaves), leaves)

    graph = make_fx(gradients)(*s.floats)
    return s.listed(graph(*s.floats))


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
