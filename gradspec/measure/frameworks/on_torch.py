"""Rules in PyTorch: the autograd engine, `torch.func`, compiled and exported."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType
from typing import Any

import torch
import torch.nn.functional as F
from torch import func
from torch.autograd import forward_ad

from gradspec.driver.emitted import import_file
from gradspec.measure.frameworks import setting
from gradspec.measure.frameworks.audit import Library
from gradspec.measure.frameworks.setting import Register
from gradspec.measure.frameworks.shared import (
    PLAIN,
    in_format,
    one_output,
    require,
    rows,
    runtime_of,
    transforms,
    without_calls,
)


class Setting(setting.Setting):
    """A rule at one point, in PyTorch's words."""

    def tensor(self, value: Any, kind: str) -> Any:
        shape, flat = value
        tensor = torch.tensor(flat, dtype=torch.float64).reshape(shape)
        wanted = {"int": "int64", "bool": "bool"}.get(kind) or self.dtype
        return tensor.to(getattr(torch, wanted))

    def flat(self, x: Any) -> tuple[list[int], list[float]]:
        wide = x.detach().to(torch.float64).cpu()
        return list(wide.shape), wide.reshape(-1).tolist()

    def dot(self, x: Any, y: Any) -> Any:
        return (x * y).sum()

    def stack(self, tensors: Sequence[Any], axis: int = 0) -> Any:
        return torch.stack(list(tensors), axis)

    def dots(self, x: Any, matrix: Any) -> Any:
        return torch.tensordot(x, matrix, x.dim())

    def units(self, x: Any) -> Sequence[Any]:
        return [row.reshape(x.shape) for row in torch.eye(x.numel(), dtype=x.dtype)]

    def leaves(self) -> tuple[Any, ...]:
        """The floating inputs, to be differentiated by."""
        return tuple(x.detach().clone().requires_grad_() for x in self.floats)

    def gradient(self, function: Callable[..., Any], floats: Sequence[Any]) -> Any:
        """By `torch.autograd.grad`; zero where there is nothing to differentiate."""
        is_inner = any(x.requires_grad for x in floats)
        leaves = [x if is_inner else x.detach().requires_grad_() for x in floats]
        whole = function(*leaves)
        if not whole.requires_grad:
            return [torch.zeros_like(leaf) for leaf in leaves]
        return torch.autograd.grad(
            whole, leaves, create_graph=is_inner, materialize_grads=True
        )

    def backward(self, function: Callable[..., Any]) -> list[Any]:
        """The gradients of a function here, as a backward pass leaves them."""
        leaves = self.leaves()
        total = function(*leaves)
        if total.requires_grad:
            total.backward()
        return [torch.zeros_like(x) if x.grad is None else x.grad for x in leaves]

    @staticmethod
    def plain(path: str) -> ModuleType:
        """With the forward code of each `Function` in its place."""
        module = import_file(path, PLAIN)
        for rule in runtime_of(module).Rule.__subclasses__():
            rule.call = staticmethod(_forward(rule))
        return module

    @staticmethod
    def library() -> Library:
        return LIBRARY


def _forward(rule: Any) -> Any:
    """The rule's forward pass, of functions that compilers can trace."""
    converted, rounded, extra = rule._inputs, rule._rounded, rule._extra

    def call(*arguments: Any) -> Any:
        inputs = converted(*arguments)
        made = rounded(*inputs)
        outputs = made if isinstance(made, tuple) else (made,)
        count = len(outputs) - extra
        found = tuple(_attached(y, inputs) for y in outputs[:count])
        return found if count > 1 else found[0]

    return call


def _attached(output: Any, inputs: tuple[Any, ...]) -> Any:
    """A step has no graph in PyTorch; its derivative is 0 all the same."""
    if not output.requires_grad and output.is_floating_point():
        for x in inputs:
            if getattr(x, "requires_grad", False):
                output = output + 0 * x
    return output


def _each(function: Callable[..., Any]) -> Callable[..., Any]:
    """A loss without its mean over the elements."""
    return partial(function, reduction="none")


LIBRARY = Library(
    (torch, torch.special, F),
    {
        "stop": lambda x: x.detach(),
        "logsigmoid": F.logsigmoid,
        "softplus": F.softplus,
        "sinc": lambda x: torch.sinc(x / math.pi),
        "polygamma": lambda n, x: torch.polygamma(int(n), x),
    },
    {
        "softplus": lambda x, beta: F.softplus(x, beta),
        "leaky_relu": lambda x, slope: F.leaky_relu(x, slope),
        "softshrink": lambda x, threshold: F.softshrink(x, threshold),
        "hardshrink": lambda x, threshold: F.hardshrink(x, threshold),
        "hardtanh": lambda x, low, high: F.hardtanh(x, low, high),
        "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
        "bce": _each(F.binary_cross_entropy),
        "bce_with_logits": _each(F.binary_cross_entropy_with_logits),
        "gaussian_nll": lambda mu, var, t: F.gaussian_nll_loss(
            mu, t, var, full=True, eps=0.0, reduction="none"
        ),
        "poisson_nll": partial(_each(F.poisson_nll_loss), log_input=False, eps=0.0),
        "log_poisson_nll": _each(F.poisson_nll_loss),
        "kl_div": _each(F.kl_div),
        "squared_error": _each(F.mse_loss),
        "absolute_error": _each(F.l1_loss),
        "huber": _each(F.huber_loss),
        "smooth_l1": _each(F.smooth_l1_loss),
        "power": torch.pow,
        "sinc": torch.sinc,
        "trigamma": lambda x: torch.polygamma(1, x),
        "entropy": torch.special.entr,
        "log1pexp": F.softplus,
    },
)

# --- features --------------------------------------------------------------------------

NAMES = {
    "grad": "func.grad",
    "jvp": "func.jvp",
    "vmap": "vmap of grad",
    "jacfwd": "func.jacfwd",
}
"""Features that JAX calls otherwise."""


def compiled(function: Any, **options: Any) -> Any:
    """As far as AOT, as one graph, unless something else is said: there rules are kept
    or lost."""
    torch._dynamo.reset()
    return torch.compile(
        function, **{"fullgraph": True, "backend": "aot_eager", **options}
    )


def strided(x: Any) -> Any:
    """Gaps between the elements, and other axes first in memory."""
    if not x.dim():
        return x
    return x.movedim(-1, 0).repeat_interleave(2, 0)[::2].movedim(0, -1)


def pushed(function: Any, floats: Any, tangents: Any) -> Any:
    """The tangent of a number, in forward mode."""
    with forward_ad.dual_level():
        duals = map(forward_ad.make_dual, floats, tangents)
        tangent = forward_ad.unpack_dual(function(*duals)).tangent
    return 0.0 if tangent is None else tangent


class Exported(torch.nn.Module):
    """A function of the rule as a module, and as an exported program."""

    def __init__(self, setting: Setting, name: str = "total") -> None:
        super().__init__()
        self.setting, self.name = setting, name

    def forward(self, *tensors: Any) -> Any:
        return getattr(self.setting, self.name)(*tensors)

    def program(self, **options: Any) -> Any:
        return torch.export.export(self, self.setting.floats, **options)


feature = Register(
    {NAMES.get(name, name): run for name, run in transforms(func).items()}
)
feature |= {
    "values": lambda s: s.outputs(*s.leaves()),
    "backward": lambda s: s.backward(s.total),
    "double backward": lambda s: s.second(),
    "third backward": lambda s: s.third(),
    "one output at a time": one_output,
    "non-contiguous inputs": lambda s: s.backward(
        lambda *floats: s.total(*map(strided, floats))
    ),
    "empty tensors": without_calls,
    "float64": in_format("float64"),
    "bfloat16": in_format("bfloat16"),
    "forward AD": lambda s: s.along(lambda t: pushed(s.total, s.floats, t)),
    "forward AD over backward": lambda s: s.along(
        lambda t: pushed(s.probing(s.total), s.leaves(), t)
    ),
    "compile, fullgraph": lambda s: s.backward(compiled(s.total)),
    "compile, dynamic shapes": lambda s: s.backward(compiled(s.total, dynamic=True)),
    "compile, inductor": lambda s: s.backward(compiled(s.total, backend="inductor")),
    "compile of func.grad": lambda s: compiled(func.grad(s.total, s.every))(*s.floats),
    "compile of vmap": lambda s: [
        g[0] for g in compiled(func.vmap(func.grad(s.total, s.every)))(*s.stacked())
    ],
    "export": lambda s: s.backward(Exported(s).program().module()),
}


@feature("gradcheck")
def gradcheck(s: Setting) -> None:
    s.made_in("float64")
    torch.autograd.gradcheck(
        s.total, s.leaves(), check_forward_ad=True, check_batched_grad=True
    )


@feature("gradgradcheck")
def gradgradcheck(s: Setting) -> None:
    s.made_in("float64")
    if s.total(*s.leaves()).requires_grad:
        torch.autograd.gradgradcheck(
            s.total, s.leaves(), check_fwd_over_rev=s.case["linear"]
        )


@feature("upstream gradients of other strides")
def upstream_strides(s: Setting) -> Any:
    """Gradients with strided cotangents, which have the shapes of the outputs and stay
    as they are."""
    leaves = s.leaves()
    pairs = zip(s.outputs(*leaves), map(strided, s.upstream), strict=True)
    outputs, given = zip(*((y, u) for y, u in pairs if y.requires_grad), strict=True)
    before = [u.clone() for u in given]
    found = torch.autograd.grad(outputs, leaves, given, materialize_grads=True)
    same = all(map(torch.equal, given, before))
    require(same, "a cotangent was changed in place")
    return found


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


@feature("autocast to bfloat16")
def autocast(s: Setting) -> Any:
    with torch.autocast("cpu", torch.bfloat16):
        return s.backward(s.total)


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
    module = Exported(s, "whole")
    traced = torch.export.export(module, given, dynamic_shapes=(axes,)).module()
    return s.backward(lambda *f: traced(*s.among(s.inputs, f), *s.upstream))


@feature("fake tensors")
def fake(s: Setting) -> None:
    """Shapes alone, without values."""
    with torch._subclasses.FakeTensorMode() as mode:
        s.inputs = [mode.from_tensor(x) for x in s.inputs]
        leaves = s.leaves()
        sum(y.sum() for y in s.outputs(*leaves)).backward()
    shapes = [x.grad.shape == x.shape for x in leaves]
    require(all(shapes), "gradients of other shapes")


def start() -> None:
    """One thread for a process, and no warnings among its results."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")


if __name__ == "__main__":
    start()
    setting.do_job(Setting, feature)
