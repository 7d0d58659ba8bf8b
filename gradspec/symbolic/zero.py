"""Are two expressions equal on the whole domain? A proof, or None."""

from __future__ import annotations

from dataclasses import dataclass

from gradspec.ir.calls import expand
from gradspec.ir.expr import Expr
from gradspec.ir.tidy import tidy


@dataclass(frozen=True, slots=True)
class Proof:
    """The method that found it; ``assumed``: it needs the rule's assumptions."""

    method: str
    assumed: bool = False


def prove_equal(
    left: Expr, right: Expr, assumes: tuple[Expr, ...] = (), budget: float = 10.0
) -> Proof | None:
    """Equality of ``left`` and ``right`` wherever both are smooth."""
    left, right = tidy(expand(left)), tidy(expand(right))
    if left == right:
        return Proof("the same expression")
    return None
