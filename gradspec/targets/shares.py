"""Exponentials of what a logarithm of their sum leaves, where compilers fuse.

The gradient of `y = logsumexp(x)` is `exp(x - y)`: as it stands a second exponential of all
elements. The forward pass has those of `x - max(x)` and their sum; written so, the compiler
makes them once. It is more accurate, too: `y` is rounded, to 2^-14 of itself at 800.
"""

from __future__ import annotations

from dataclasses import replace

from gradspec.plan.array import Expr, Name, Op, transform
from gradspec.plan.plan import Backward, Block, Nature, RulePlan
from gradspec.plan.ranked import Expand, Reduce, Shares


def with_shares(plan: RulePlan, forward: Block, backward: Backward) -> Backward:
    """The backward pass with such exponentials as shares of what the forward pass has. Of
    an override `y` has another derivative than that of a sum: there it stays."""
    if plan.nature is not Nature.EXACT:
        return backward
    known: dict[str, Expr] = {step.name: step.value for step in forward.statements}
    for output, value in zip(plan.outputs, forward.results, strict=True):
        known.setdefault(output.name, value)

    def visit(node: Expr) -> Expr:
        match node:
            case Op(
                "exp", (Op("sub", (arg, Expand(Name(id=name) as total, (axis,)))),)
            ):
                made = known.get(name)
                is_total = name not in plan.asked and made == Reduce(
                    "logsumexp", arg, (axis,)
                )
                return Shares(arg, total, axis) if is_total else node
            case _:
                return node

    return replace(
        backward,
        statements=tuple(
            replace(step, value=transform(step.value, visit))
            for step in backward.statements
        ),
        gradients=tuple(
            group and tuple(replace(t, value=transform(t.value, visit)) for t in group)
            for group in backward.gradients
        ),
    )
