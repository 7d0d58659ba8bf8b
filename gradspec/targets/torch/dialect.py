"""PyTorch spellings that the table of primitives does not contain."""

from __future__ import annotations

from dataclasses import replace

from gradspec.plan.program import Operators, Program, Residuals
from gradspec.primitives.row import Template
from gradspec.targets.expressions import Dialect, Scope
from gradspec.targets.expressions import scope_of as scoped
from gradspec.targets.page import Page
from gradspec.targets.torch.axes import ranked

OPERATORS = Operators(
    target="torch",
    reserved=frozenset(["torch", "Tensor", "math"]),
    residuals=Residuals.SAVED,
    by_output=True,
)

TORCH = "import torch"
_TENSORS_ONLY = ("atan2", "heaviside", "hypot", "logaddexp", "max", "min")
_CLAMPED = Template("torch.clamp_max(torch.clamp_min({x}, {y}), {z})")
_TURNED = Template("torch.clamp_max(torch.clamp_min({y}, {x}), {z})")
_NUMBER = "{core:scalar_like}({like}, {x})"

# `torch.clamp` cannot be differentiated where one of two tensor bounds has more axes
# than all else.
_VARIANTS: dict[tuple[str, tuple[bool, ...]], Template] = {
    ("max", (False, True)): Template("torch.clamp_min({x}, {y})"),
    ("max", (True, False)): Template("torch.clamp_min({y}, {x})"),
    ("min", (False, True)): Template("torch.clamp_max({x}, {y})"),
    ("min", (True, False)): Template("torch.clamp_max({y}, {x})"),
    ("clip", (False, False, False)): _CLAMPED,
    ("clip", (False, False, True)): _CLAMPED,
    ("clip", (False, True, False)): _CLAMPED,
    ("clip", (True, True, False)): Template(
        f"torch.clamp_max(torch.clamp_min({_NUMBER}, {{y}}), {{z}})"
    ),
    ("clip", (True, False, False)): _TURNED,
    ("clip", (True, False, True)): _TURNED,
}


def _lifts(name: str, numbers: tuple[bool, ...]) -> tuple[bool, ...]:
    """The numbers that must be tensors: arguments of functions that require tensors,
    one of two numbers between which `torch.where` chooses, for the type of the result,
    and a number beside a tensor in a Python conditional.
    """
    match name, numbers:
        case "where", (True, True):
            return (True, False)
        case "choice", _:
            return numbers
        case _ if name in _TENSORS_ONLY:
            return numbers
        case _:
            return (False,) * len(numbers)


DIALECT = Dialect(
    target="torch",
    where="torch.where({c}, {x}, {y})",
    to_float="{x}.to({like}.dtype)",
    lift=_NUMBER,
    lifts=_lifts,
    variants=lambda node, numbers: _VARIANTS.get((node.primitive, numbers)),
    ranked=ranked,
    imports=(("torch.", TORCH),),
)
_UNTYPED = replace(
    DIALECT,
    to_float="{x}.to(torch.get_default_dtype())",
    lift="torch.scalar_tensor({x})",
)


def scope_of(program: Program, page: Page, like: str) -> Scope:
    """The scope in which the rule's expressions are printed."""
    return scoped(program, page, DIALECT if like else _UNTYPED, like)
