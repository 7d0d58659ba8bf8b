"""Are two expressions equal on the whole domain? A proof, or None.

The strategies stand in the order of their measured cost: the same text, the same normal
form region by region (`gradspec.symbolic.regions`: a few milliseconds, no SymPy), and
at last SymPy under a time limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

from gradspec.ir.calls import expand
from gradspec.ir.expr import Expr
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import names
from gradspec.symbolic.consult import sympy_agrees
from gradspec.symbolic.meaning import elementary
from gradspec.symbolic.regions import Prover, Question


@dataclass(frozen=True, slots=True)
class Proof:
    """The method that found it; ``assumed``: it needs the rule's assumptions."""

    method: str
    assumed: bool = False


def prove_equal(
    left: Expr,
    right: Expr,
    assumes: tuple[Expr, ...] = (),
    budget: float = 10.0,
    *,
    wrt: str | None = None,
    whole: frozenset[str] = frozenset(),
) -> Proof | None:
    """Equality of ``left`` and ``right`` wherever both are defined and smooth.

    ``wrt``: the variable that was differentiated; borders in it (kinks) are not part of
    the claim, borders in the others are. Without it all borders are left out.
    """
    deadline = monotonic() + budget
    left, right = tidy(expand(left)), tidy(expand(right))
    if left == right:
        return Proof("the same expression")
    if budget <= 0:
        return None
    free = (names(left) | names(right)) if wrt is None else frozenset((wrt,))
    plain = elementary(left), elementary(right)
    prover = Prover(*plain, Question(free, whole), deadline)
    for assumed in (False, True) if assumes else (False,):
        if prover.proves(assumes if assumed else ()):
            method = "normal form by regions" if prover.split else "normal form"
            return Proof(method, assumed)
    if sympy_agrees(*plain, assumes, deadline - monotonic()):
        return Proof("simplify", bool(assumes))
    return None
