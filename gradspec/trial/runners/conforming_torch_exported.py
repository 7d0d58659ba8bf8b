"""Conformance of torch modules: exported, traced, without values."""

from __future__ import annotations

import io
from typing import Any

import torch
from conforming import require, rows
from conforming_torch_setting import Setting, feature
from torch.fx.experimental.proxy_tensor import make_fx


class _Exported(torch.nn.Module):
    def __init__(self, setting: Setting) -> None:
        super().__init__()
        self.setting = setting

    def forward(self, *floats: Any) -> Any:
        return self.setting.total(*floats)


class _Outputs(_Exported):
    """All results, where the other has a number made of them."""

    def forward(self, *floats: Any) -> Any:
        return tuple(self.setting.outputs(*floats))


def _program(s: Setting, kind: Any = _Exported, **options: Any) -> Any:
    return torch.export.export(kind(s), s.floats, **options)


@feature("export, values")
def values(s: Setting) -> Any:
    return s.listed(_program(s, _Outputs).module()(*s.floats))


@feature("export")
def export(s: Setting) -> Any:
    return s.backward(_program(s).module())


@feature("export, strict")
def strict(s: Setting) -> Any:
    return s.backward(_program(s, strict=True).module())


@feature("export, dynamic sizes")
def dynamic(s: Setting) -> Any:
    """Traced at other sizes of the first axis than it is run at."""
    size, inputs, upstream = rows(s.case)
    if size < 2:
        return export(s)
    batch = torch.export.Dim("batch", min=2, max=64)
    pairs = list(zip((*s.inputs, *s.upstream), (*inputs, *upstream), strict=True))
    axes = tuple({0: batch} if has_rows else None for _, has_rows in pairs)
    given = tuple(torch.cat([x, x, x]) if has_rows else x for x, has_rows in pairs)
    traced = torch.export.export(_Whole(s), given, dynamic_shapes=(axes,)).module()
    return s.backward(lambda *f: traced(*s.among(s.inputs, f), *s.upstream))


class _Whole(_Exported):
    """Of all inputs and the upstream gradients, whose sizes would else be fixed."""

    def forward(self, *tensors: Any) -> Any:
        return self.setting.whole(*tensors)


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
def decomposed(s: Setting) -> Any:
    """An inference graph of core operations: it has values, not gradients."""
    program = _program(s, _Outputs).run_decompositions()
    names = [str(n.target) for n in program.graph.nodes if n.op == "call_function"]
    foreign = [n for n in names if not n.startswith(("aten.", "<built-in"))]
    require(not foreign, f"operations that are not torch's: {foreign}")
    return s.listed(program.module()(*s.floats))


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
