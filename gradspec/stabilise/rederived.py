"""The derivative of a forward in the forms that were chosen."""

from __future__ import annotations

from gradspec.derive.partials import Underivable
from gradspec.derive.patched import filled
from gradspec.derive.vjp import vjps
from gradspec.ir.expr import Expr, Ref
from gradspec.ir.rule import Let, Rule, Surrogate


def rederived(
    rule: Rule, forward: tuple[Let, ...], surrogates: tuple[Surrogate, ...]
) -> dict[str, Expr]:
    """The cotangents by input; none where a chosen form has no derivative."""
    upstream = {o.name: Ref(f"d{o.name}") for o in rule.outputs if o.takes_gradient}
    wrt = tuple(i.name for i in rule.inputs if i.takes_gradient)
    try:
        return vjps(filled(forward), surrogates, upstream, wrt)
    except Underivable:
        return {}
