"""What torch has one function for: fewer passes, and less to call for small tensors.

A Python number beside a tensor is made a tensor at each call, which costs more than the
operation on a short one; where torch's own functions take numbers it costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

from gradspec.plan.array import Expr, Literal, Op
from gradspec.targets.python import ATOM, Text

_SATURATED = "40.0"
"""From here on exp(-x) is nothing beside 1, in float64 too."""


def fused(node: Op, texts: Mapping[Expr, Text]) -> Text | None:
    """The call that is the whole of ``node`` and what it is made of, if there is one;
    ``texts`` are those of all that stands below it.
    """
    match node:
        case Op("div", (Literal(value=1), Op("sqrt", (below,)))):
            return _call("torch.rsqrt", texts, below)
        case Op("div", (Literal(value=1), below)):
            return _call("torch.reciprocal", texts, below)
        case Op("div", (Op("softplus", (Op("mul", (rate, x)),)), over)) if rate == over:
            return _rated("torch.nn.functional.softplus", (x,), rate, texts)
        case Op("mul", (dy, Op("sigmoid", (Op("mul", (rate, x)),)))) if dy != x:
            return _rated("torch.ops.aten.softplus_backward", (dy, x), rate, texts)
        case _:
            return None


def _call(name: str, texts: Mapping[Expr, Text], x: Expr) -> Text | None:
    if texts[x].is_scalar:
        return None
    return Text(f"{name}({texts[x].text})", ATOM)


def _rated(
    name: str, tensors: tuple[Expr, ...], rate: Expr, texts: Mapping[Expr, Text]
) -> Text | None:
    """A softplus of ``rate * x`` over ``rate``, or its slope times a tensor."""
    if not texts[rate].is_scalar or any(texts[x].is_scalar for x in tensors):
        return None
    given = [texts[x].text for x in (*tensors, rate)]
    return Text(f"{name}({', '.join(given)}, {_SATURATED})", ATOM)
