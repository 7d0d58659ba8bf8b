"""Proofs that two expressions are equal on the whole domain.

The strategies stand in the order of their measured cost: the same text, the same normal
form region by region (`gradspec.symbolic.proof.regions`: a few milliseconds, no SymPy),
and at last SymPy under a time limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import process_time

from gradspec.ir.expr import Expr
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import deep, expand, names
from gradspec.primitives.formula import elementary
from gradspec.symbolic.consult import sympy_agrees
from gradspec.symbolic.limit import Effort
from gradspec.symbolic.proof.regions import Prover, Question

NORMAL, SIMPLIFY = "normal form", "simplify"
_BUDGET = 10.0


@dataclass(frozen=True, slots=True)
class Proof:
    """The method that found it; ``assumed``: it needs the rule's assumptions."""

    method: str
    assumed: bool = False


@dataclass(frozen=True, slots=True)
class Search:
    """The result of a search for a proof; ``stopped``: the strategies that ran out of
    time."""

    proof: Proof | None
    stopped: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sides:
    """Two expressions in elementary terms, and the claim about them."""

    left: Expr
    right: Expr
    question: Question


def search(
    left: Expr,
    right: Expr,
    assumes: tuple[Expr, ...] = (),
    effort: Effort | None = None,
    *,
    wrt: str | None = None,
    whole: frozenset[str] = frozenset(),
) -> Search:
    """A proof that ``left`` equals ``right`` wherever both are defined and smooth, and
    the strategies that were stopped. ``effort`` is the budget, and is used up. ``wrt``:
    the variable that was differentiated; borders in it (kinks) are not part of the
    claim, borders in the others are. Without it all borders are left out.
    """
    if effort is None:
        effort = Effort.of(_BUDGET)
    left, right = tidy(expand(left)), tidy(expand(right))
    if left == right:
        return Search(Proof("the same expression"))
    if effort.steps <= 0:
        return Search(None, (NORMAL,))
    free = (names(left) | names(right)) if wrt is None else frozenset((wrt,))
    sides = Sides(elementary(left), elementary(right), Question(free, whole))
    proof = by_normal_form(sides, assumes, effort)
    if proof is not None:
        return Search(proof)
    late = effort.steps < 0
    proof, late_too = _at_last(sides, assumes, effort)
    stopped = ((NORMAL,) if late else ()) + ((SIMPLIFY,) if late_too else ())
    return Search(proof, () if proof else stopped)


def by_normal_form(
    sides: Sides, assumes: tuple[Expr, ...], effort: Effort
) -> Proof | None:
    """A proof by normal forms, without the assumptions if they are not needed."""
    prover = Prover(sides.left, sides.right, sides.question, effort)
    for assumed in (False, True) if assumes else (False,):
        given = assumes if assumed else ()
        with deep():
            is_proved = prover.proves(given)
        if is_proved:
            method = "normal form by regions" if prover.split else NORMAL
            return Proof(method, assumed)
    return None


def _at_last(
    sides: Sides, assumes: tuple[Expr, ...], effort: Effort
) -> tuple[Proof | None, bool]:
    """A proof by SymPy; and whether it was stopped."""
    begun = process_time()
    answer = sympy_agrees(sides.left, sides.right, assumes, effort.seconds)
    effort.seconds -= process_time() - begun
    return Proof(SIMPLIFY, bool(assumes)) if answer else None, answer is None
