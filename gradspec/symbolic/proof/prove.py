"""Proofs that two expressions are equal on the whole domain.

Either both are the same text, or they have the same normal form region by region. The
steps of normal forms are counted, so that a verdict depends on no clock.

A region, on which no conditional is left, is a set of polynomials known to be positive.
It is divided when a comparison, or a root of a square, needs a sign that is not known; a
region whose facts contradict each other is empty. What happens on the borders, where two
expressions are equal, is a set without interior: for the variable that is differentiated
these are the kinks, which sampling looks at one by one. A border in the other variables
alone (``t == 1`` of a label) is a region of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from gradspec.ir.expr import Apply, Expr, Ref
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import deep, expand, names
from gradspec.primitives.lookup import elementary
from gradspec.symbolic.breaks import bounds, conjuncts
from gradspec.symbolic.limit import Effort
from gradspec.symbolic.proof.normal import Empty, Normal, Refine, Split
from gradspec.symbolic.proof.ring import Facts, Frac, Poly, Ring, TooLarge, Undefined

NORMAL = "normal form"
_BUDGET = 10.0


@dataclass(frozen=True, slots=True)
class Proof:
    """The method that found it; ``assumed``: it needs the rule's assumptions."""

    method: str
    assumed: bool = False


@dataclass(frozen=True, slots=True)
class Search:
    """The result of a search for a proof; ``stopped``: the strategies that ran out of
    steps."""

    proof: Proof | None
    stopped: tuple[str, ...] = ()


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
    prover = Prover(left, right, free, whole, effort)
    proof = prover.proof(assumes)
    return Search(proof, () if proof or not prover.is_stopped else (NORMAL,))


_RESTARTS = 12
_MOST_REGIONS = 200


class Region:
    """Facts, values forced by equalities, and the normal forms on it."""

    def __init__(self, ring: Ring, facts: Facts, steps: dict[Any, Fraction]) -> None:
        self.ring, self.facts, self.steps = ring, facts, steps
        self.normal = Normal(ring, facts, steps)

    def part(self, poly: Poly) -> Region:
        """The part where ``poly`` is positive."""
        facts = self.facts.copy()
        facts.assume(poly)
        twin = Region(self.ring, facts, self.steps)
        twin.normal.values = dict(self.normal.values)
        twin.normal.whole = self.normal.whole
        decided = {k: v for k, v in self.normal.known.items() if isinstance(v, bool)}
        twin.normal.known = decided  # what holds on a region holds on its parts
        return twin

    def border(self, poly: Poly) -> Region | None:
        """The part where ``poly`` is 0, by solving for a variable it is linear in."""
        solved = _solve(self.ring, poly)
        if solved is None:
            return None
        name, value = solved
        twin = Region(self.ring, Facts(self.ring), self.steps)
        twin.facts.by_nature = self.facts.by_nature
        twin.normal.values = {**self.normal.values, name: value}
        twin.normal.whole = self.normal.whole
        for known in self.facts.positive:
            twin.facts.assume(_put(self.ring, known, name, value))
        return twin


class Prover:
    """Two expressions, to be proved equal within a given effort. ``wrt``: the names whose
    borders are left out; ``whole``: the names of integers.
    """

    def __init__(
        self,
        left: Expr,
        right: Expr,
        wrt: frozenset[str],
        whole: frozenset[str],
        effort: Effort,
    ) -> None:
        self.left, self.right = elementary(left), elementary(right)
        self.wrt, self.effort = wrt, effort
        self.whole = frozenset(("variable", name) for name in whole)
        self.split = self.is_stopped = False

    def proof(self, assumes: tuple[Expr, ...]) -> Proof | None:
        """A proof by normal forms, without the assumptions if they are not needed."""
        for assumed in (False, True) if assumes else (False,):
            with deep():
                is_proved = self.proves(assumes if assumed else ())
            if is_proved:
                return Proof(
                    "normal form by regions" if self.split else NORMAL, assumed
                )
        return None

    def proves(self, assumes: tuple[Expr, ...]) -> bool:
        """True if both are equal wherever the assumptions hold and both are defined."""
        steps: dict[Any, Fraction] = {}
        for _ in range(_RESTARTS):
            self.split = False
            try:
                return self._all(self._start(assumes, steps))
            except Refine as finer:
                steps[finer.key] = finer.step
            except (TooLarge, RecursionError):
                self.is_stopped = True
                return False
            except (NotImplementedError, Undefined):
                return False
        return False

    def _start(self, assumes: tuple[Expr, ...], steps: dict[Any, Fraction]) -> Region:
        ring = Ring(self.effort, len(names(self.left) | names(self.right)))
        region = Region(ring, Facts(ring), steps)
        region.normal.whole = self.whole
        for fact in _facts(assumes):
            try:
                gap = region.normal.of(fact)
            except (Split, NotImplementedError, Empty):
                continue
            if region.facts.sign(gap.den) == 1:
                region.facts.assume(gap.num)
        return region

    def _all(self, start: Region) -> bool:
        """True if equality holds on every region that the expressions need."""
        waiting = [start]
        for _ in range(_MOST_REGIONS):
            if not waiting:
                return True
            region = waiting.pop()
            if region.facts.is_contradictory():
                continue
            try:
                if not self._equal(region):
                    return False
            except Empty:
                continue
            except Split as need:
                self.split = True
                parts = self._parts(region, need.poly)
                if parts is None:
                    return False
                waiting.extend(parts)
        return False

    def _equal(self, region: Region) -> bool:
        left = region.normal.of(self.left)
        right = region.normal.of(self.right)
        return region.ring.sub(left, right).is_zero

    def _parts(self, region: Region, poly: Poly) -> list[Region] | None:
        parts = [region.part(poly), region.part(-poly)]
        if _variables(region.ring, poly).isdisjoint(self.wrt):
            border = region.border(poly)
            if border is None:
                return None
            parts.append(border)
        return parts


def _facts(assumes: tuple[Expr, ...]) -> Iterator[Expr]:
    """Expressions that comparisons make positive; ``<=`` counts as ``<`` (see the
    module)."""
    for condition in assumes:
        for part in conjuncts(condition):
            match part:
                case Apply(op="gt" | "ge", args=(left, right)):
                    yield Apply("sub", (left, right))
                case Apply(op="lt" | "le", args=(left, right)):
                    yield Apply("sub", (right, left))
                case _:
                    continue
        for bound in bounds(condition):
            name = Ref(bound.variable)
            if bound.op in ("gt", "ge"):
                yield Apply("sub", (name, bound.value))
            elif bound.op in ("lt", "le"):
                yield Apply("sub", (bound.value, name))


def _variables(ring: Ring, poly: Poly) -> frozenset[str]:
    """The names that a polynomial depends on; a kernel's own are in its key."""
    degrees = poly.degrees()
    found: set[str] = set()
    for key, number in ring.found.items():
        if degrees[number]:
            found |= _names(ring, key)
    return frozenset(found)


def _names(ring: Ring, key: Any) -> frozenset[str]:
    if key[0] == "variable":
        return frozenset((key[1],))
    inner: set[str] = set()
    text = " ".join(str(part) for part in key[1:])
    for other, number in ring.found.items():
        if (
            other != key
            and f"g{number}" in text.replace("^", " ").replace("*", " ").split()
        ):
            inner |= _names(ring, other)
    return frozenset(inner)


def _solve(ring: Ring, poly: Poly) -> tuple[str, Frac] | None:
    """``poly = 0`` for a variable that it has in the first degree, with a coefficient
    that is a number, and that is in no kernel."""
    degrees = poly.degrees()
    for key, number in ring.found.items():
        if key[0] != "variable" or degrees[number] != 1:
            continue
        slope = poly.derivative(number)
        if not slope.is_constant():
            continue
        rest = poly - slope * ring.gens[number]
        return key[1], ring.normal(-rest, slope)
    return None


def _put(ring: Ring, poly: Poly, name: str, value: Frac) -> Poly:
    """``poly`` with a variable replaced, times a positive power of the denominator."""
    number = ring.found[("variable", name)]
    total = ring.zero
    degree = int(poly.degrees()[number])
    groups: dict[int, dict[tuple[int, ...], Any]] = {}
    for exponents, coefficient in poly.terms():
        rest = (*exponents[:number], 0, *exponents[number + 1 :])
        groups.setdefault(int(exponents[number]), {})[rest] = coefficient
    for power, terms in groups.items():
        part = ring.context.from_dict(terms)
        total += part * value.num**power * value.den ** (degree - power)
    return total
