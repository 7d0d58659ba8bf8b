"""What torch has one function for: fewer passes, and less to call for small tensors.

A Python number beside a tensor is made a tensor at each call, which costs more than the
operation on a short one; where torch's own functions take numbers it costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gradspec.plan.array import Expr, Literal, Name, Op, children, nodes
from gradspec.primitives.row import Helper
from gradspec.targets.python import ATOM, PRODUCT, SUM, UNARY, Text
from gradspec.targets.torch_addcmul import ADD_PRODUCT, added_product

_SATURATED = "40.0"
"""From here on exp(-x) is nothing beside 1, in float64 too."""


_RATE = "-0.7071067811865476"


@dataclass(frozen=True, slots=True)
class Call:
    """A function with its tensors, and numbers after them (as texts, or as values)."""

    name: str
    tensors: tuple[Expr, ...]
    rate: Expr | None = None


def whole(node: Expr) -> Call | None:
    """The call that is the whole of ``node``, if there is one."""
    match node:
        case Op("div", (Literal(value=1), Op("sqrt", (below,)))):
            return Call("torch.rsqrt", (below,))
        case Op("div", (Literal(value=1), below)):
            return Call("torch.reciprocal", (below,))
        case Op("div", (Op("softplus", (Op("mul", (rate, x)),)), over)) if rate == over:
            return Call("torch.nn.functional.softplus", (x,), rate)
        case Op("mul", (dy, Op("sigmoid", (Op("mul", (rate, x)),)))) if dy != x:
            return Call("torch.ops.aten.softplus_backward", (dy, x), rate)
        case _:
            return None


def whole_forward(node: Expr) -> Call | None:
    """The same in a forward pass, which nothing differentiates: silu and mish have no
    forward mode over their backward."""
    match node:
        case Op("mul", (Op("max", (x, Literal())) as t, Op("sigmoid", (y,)))) if x == y:
            return Call("torch.nn.functional.silu", (t,))
        case Op(
            "mul", (Op("max", (x, Literal())) as t, Op("tanh", (Op("softplus", (y,)),)))
        ) if x == y:
            return Call("torch.nn.functional.mish", (t,))
        case _:
            return whole(node)


def whole_in_double(node: Expr) -> Call | None:
    """The same where float64 is taken for narrower arguments: what torch's own functions
    lose by cancellation does not show."""
    match node:
        case Op("mul", (dy, Op("silu_slope", (x,)))):
            return Call("torch.ops.aten.silu_backward", (dy, x))
        case Op("mul", (dy, Op("mish_slope", (x,)))):
            return Call("_mish_backward", (dy, x))
        case _:
            return whole(node)


# --- text ----------------------------------------------------------------------------------


def fused(node: Op, texts: Mapping[Expr, Text]) -> Text | None:
    """The call that is the whole of ``node`` and what it is made of, if there is one;
    ``texts`` are those of all that stands below it.
    """
    return _text(whole(node), texts) or added_product(node, texts)


def fused_forward(node: Op, texts: Mapping[Expr, Text]) -> Text | None:
    """The same in a forward pass."""
    return _text(whole_forward(node), texts) or added_product(node, texts)


def fused_in_double(node: Op, texts: Mapping[Expr, Text]) -> Text | None:
    """The same where float64 is taken for narrower arguments. The framework's own
    `ndtr` is 1 + erf, which cancels there too."""
    match node:
        case Op("ndtr", (x,)) if not texts[x].is_scalar:
            inner = f"{_RATE} * {texts[x].within(PRODUCT + 1)}"
            return Text(f"0.5 * torch.erfc({inner})", PRODUCT)
        case Op("div", (over, Op("add", (Literal(value=1), Op("exp", (u,)))))):
            return _logistic(over, u, texts)
        case _:
            whole_call = _text(whole_in_double(node), texts)
            return whole_call or added_product(node, texts)


def _logistic(over: Expr, u: Expr, texts: Mapping[Expr, Text]) -> Text | None:
    """A value over 1 + exp(u): one call where there were three."""
    if texts[over].is_scalar or texts[u].is_scalar:
        return None
    match u:
        case Op("sub", (a, b)):
            inner = f"{texts[b].within(SUM)} - {texts[a].within(SUM + 1)}"
        case Op("neg", (a,)):
            inner = texts[a].text
        case _:
            inner = f"-{texts[u].within(UNARY)}"
    return Text(f"{texts[over].within(PRODUCT)} * torch.sigmoid({inner})", PRODUCT)


def _text(call: Call | None, texts: Mapping[Expr, Text]) -> Text | None:
    if call is None or any(texts[x].is_scalar for x in call.tensors):
        return None
    given = [texts[x].text for x in call.tensors]
    if call.rate is not None:
        if not texts[call.rate].is_scalar:
            return None
        given += [texts[call.rate].text, _SATURATED]
    return Text(f"{call.name}({', '.join(given)})", ATOM)


# --- passes ----------------------------------------------------------------------------------


def operations(
    values: tuple[Expr, ...],
    whole: Callable[[Expr], Call | None],
    scalars: frozenset[str],
) -> tuple[Expr, ...]:
    """The values that are computed, one for each call of torch."""
    found: dict[Expr, None] = {}
    todo = list(values)
    while todo:
        node = todo.pop()
        if node in found or isinstance(node, Name | Literal):
            continue
        if is_number(node, scalars):
            continue
        found[node] = None
        call = whole(node)
        is_whole = call is not None and _takes(call, scalars)
        todo += call.tensors if call is not None and is_whole else children(node)
    return tuple(found)


def _takes(call: Call, scalars: frozenset[str]) -> bool:
    numbers = (is_number(x, scalars) for x in call.tensors)
    return not any(numbers) and (call.rate is None or is_number(call.rate, scalars))


def is_number(node: Expr, scalars: frozenset[str]) -> bool:
    """Whether no tensor takes part."""
    return {n.id for n in nodes(node) if isinstance(n, Name)} <= scalars


# --- private functions -----------------------------------------------------------------------

MISH_BACKWARD = Helper(
    "_mish_backward",
    '''\
def _mish_backward(dy: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """dy times the slope of mish in float64, through one exponential: torch's own takes
    three, which is less than the calls for a short tensor alone.
    """
    x = torch.clamp(x, -1e4, 40.0)  # the slope is 0 and 1 beyond
    if x.numel() < 2048:
        return torch.ops.aten.mish_backward(dy, x)
    e = torch.exp(x)
    p = 1.0 + e
    d = torch.square(p).add_(1.0)
    q = e.div_(d)
    return x.mul_(p).div_(d).mul_(4.0).add_(p).add_(1.0).mul_(q).mul_(dy)
''',
)
"""With e the exponential, mish is x * (e**2 + 2e) / d, where d is e**2 + 2e + 2."""

HELPERS = (MISH_BACKWARD, ADD_PRODUCT)
