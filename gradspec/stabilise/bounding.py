"""Products taken apart, with upstream gradients as factors of all else."""

from __future__ import annotations

from functools import reduce

from gradspec.ir.expr import ONE, ZERO, Apply, Expr, Select
from gradspec.ir.walk import names, transform


def factors(node: Expr) -> list[Expr]:
    match node:
        case Apply(op="mul", args=(one, other)):
            return [*factors(one), *factors(other)]
        case _:
            return [node]


def product(factors: list[Expr]) -> Expr:
    return reduce(lambda one, other: Apply("mul", (one, other)), factors)


def linear(form: Expr, upstream: frozenset[str]) -> Expr:
    """With upstream gradients as factors of all else: no condition may ask them, and no
    branch that is not taken has a product of theirs."""

    def visit(node: Expr) -> Expr:
        match node:
            case Apply(op="mul"):
                ahead, rest = _apart(node, upstream)
                if ahead and len(rest) > 1:
                    return product([*ahead, product(rest)])
            case Apply(op="div", args=(top, below)) if not upstream & names(below):
                ahead, rest = _apart(top, upstream)
                if ahead:
                    inner = Apply("div", (product(rest or [ONE]), below))
                    return product([*ahead, inner])
            case Select(condition=condition, then=then, other=other):
                return _hoisted(condition, then, other, upstream) or node
        return node

    return transform(form, visit)


def _apart(node: Expr, upstream: frozenset[str]) -> tuple[list[Expr], list[Expr]]:
    """Factors with upstream gradients, and those without."""
    ahead = [f for f in factors(node) if upstream & names(f)]
    return ahead, [f for f in factors(node) if f not in ahead]


def _hoisted(
    condition: Expr, then: Expr, other: Expr, upstream: frozenset[str]
) -> Expr | None:
    """A conditional of products with the same upstream gradient, or 0."""
    parts = [_apart(branch, upstream) for branch in (then, other)]
    found = {product(ahead) for ahead, _ in parts if ahead}
    alone = [b for b, (ahead, _) in zip((then, other), parts, strict=True) if not ahead]
    if len(found) != 1 or upstream & names(condition) or any(b != ZERO for b in alone):
        return None
    one, two = (product(rest or [ONE]) if ahead else ZERO for ahead, rest in parts)
    return product([*found, Select(condition, one, two)])
