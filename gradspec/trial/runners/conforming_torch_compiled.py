"""Conformance of torch modules: compiled, exported, traced.

Compiled functions go through AOT and no further (`aot_eager`), where rules are kept or
lost; one feature goes all the way to compiled code.
"""

from __future__ import annotations

import io
from typing import Any

import torch
from conforming import require
from conforming_torch_setting import Setting, feature
from functorch.compile import aot_function, nop
from torch.fx.experimental.proxy_tensor import make_fx

# --- torch.compile ---------------------------------------------------------------------


def _compiled(function: Any, **options: Any) -> Any:
    torch._dynamo.reset()
    return torch.compile(
        function, **{"fullgraph": True, "backend": "aot_eager", **options}
    )


@feature("compile, fullgraph")
def fullgraph(s: Setting) -> Any:
    return s.backward(_compiled(s.total))


@feature("compile, dynamic shapes")
def dynamic(s: Setting) -> Any:
    return s.backward(_compiled(s.total, dynamic=True))


@feature("compile, inductor")
def inductor(s: Setting) -> Any:
    return s.backward(_compiled(s.total, backend="inductor"))


@feature("compile of func.grad")
def compiled_grad(s: Setting) -> Any:
    gradient = _compiled(torch.func.grad(s.total, s.every))
    return s.listed(gradient(*s.floats))


@feature("compile of func.jvp")
def compiled_jvp(s: Setting) -> Any:
    push = _compiled(lambda f, t: torch.func.jvp(s.total, f, t)[1])
    return s.along(lambda tangents: push(s.floats, tangents))


@feature("compile of vmap")
def compiled_vmap(s: Setting) -> Any:
    stacked = [torch.stack([x, 2 * x]) for x in s.floats]
    gradient = _compiled(torch.func.vmap(torch.func.grad(s.total, s.every)))
    return s.listed([g[0] for g in gradient(*stacked)])


@feature("compile of hessian")
def compiled_hessian(s: Setting) -> Any:
    second = _compiled(torch.func.hessian(s.total, s.every))
    return s.contracted(second(*s.floats))


@feature("compiled autograd")
def compiled_autograd(s: Setting) -> Any:
    torch._dynamo.reset()
    leaves = s.leaves()
    total = s.total(*leaves)
    with torch._dynamo.compiled_autograd._enable(_compiled):
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


# --- export and tracing ----------------------------------------------------------------


class _Exported(torch.nn.Module):
    def __init__(self, setting: Setting) -> None:
        super().__init__()
        self.setting = setting

    def forward(self, *floats: Any) -> Any:
        return self.setting.total(*floats)


@feature("export")
def export(s: Setting) -> Any:
    program = torch.export.export(_Exported(s), s.floats)
    return s.backward(program.module())


@feature("export, saved and loaded")
def saved_export(s: Setting) -> Any:
    file = io.BytesIO()
    torch.export.save(torch.export.export(_Exported(s), s.floats), file)
    file.seek(0)
    return s.backward(torch.export.load(file).module())


@feature("make_fx")
def traced(s: Setting) -> Any:
    gradient = make_fx(torch.func.grad(s.total, s.every))(*s.floats)
    return s.listed(gradient(*s.floats))


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
