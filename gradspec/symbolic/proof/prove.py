"""Proofs that two expressions are equal on the whole domain.

Either both are the same text, or they have the same normal form region by region. The
steps of normal forms are counted, so that a verdict depends on no clock.

A region, on which no conditional is left, is a set of polynomials known to be positive.
It is divided when a comparison, or a root of a square, needs a sign that is not known; a
region whose facts contradict each other is empty. What happens on the borders, where two
expressions are equal, is a set without interior: for the variable that is differentiated
these are the kinks, which sampling looks at one by one. A border in the other variables
alone (``t == 1`` of a label) is a region of its own, and so is one that only the left
side tells from its surroundings (``x == 3``).

An assumption ``a <= b`` is taken for ``a < b``: what holds inside holds on the border, if
there is an inside. Two that leave none (``a <= b, b <= a``) are an equation, or there is
no proof.

That the left side is defined wherever the right one is, is a claim of its own: a root, a
logarithm or a quotient that only the left side has must be seen to exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

from gradspec.ir.expr import ZERO, Apply, Const, Expr, Key, Ref, Select
from gradspec.ir.products import conjuncts
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import deep, expand, names, nodes, substitute
from gradspec.primitives.lookup import elementary, formula, is_primitive, primitive
from gradspec.symbolic.borders.bounds import RELATIONS, bounds, tighten
from gradspec.symbolic.limit import Effort
from gradspec.symbolic.proof.kernels import OPERATIONS
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
    given: tuple[Expr, ...] = (),
) -> Search:
    """A proof that ``left`` equals ``right`` wherever that is defined and smooth, and
    the strategies that were stopped. ``effort`` is the budget, and is used up. ``wrt``:
    the variable that was differentiated; borders in it (kinks) are not part of the
    claim, borders in the others are, and those of equations that neither ``right`` nor
    ``given`` asks for. Without it all borders are left out.
    """
    if effort is None:
        effort = Effort.of(_BUDGET)
    left, right = expand(left), expand(right)
    free = (names(left) | names(right)) if wrt is None else frozenset((wrt,))
    prover = Prover(left, right, free, whole, effort, given)
    if prover.left == prover.right and not prover.own_equations:
        return Search(Proof("the same expression"))
    if effort.steps <= 0:
        return Search(None, (NORMAL,))
    proof = prover.proof(assumes)
    return Search(proof, () if proof or not prover.is_stopped else (NORMAL,))


_RESTARTS = 12
_MOST_REGIONS = 200


class Region:
    """Facts, values forced by equalities, and the normal forms on it."""

    def __init__(self, ring: Ring, facts: Facts, steps: dict[Any, Fraction]) -> None:
        self.ring, self.facts, self.steps = ring, facts, steps
        self.normal = Normal(ring, facts, steps, OPERATIONS)
        self.is_border = False

    def part(self, poly: Poly) -> Region:
        """The part where ``poly`` is positive."""
        facts = self.facts.copy()
        facts.assume(poly)
        twin = Region(self.ring, facts, self.steps)
        twin.is_border = self.is_border
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
        twin.is_border = True
        twin.facts.by_nature = self.facts.by_nature
        twin.normal.values = {
            known: _replace(self.ring, earlier, name, value)
            for known, earlier in self.normal.values.items()
        } | {name: value}
        twin.normal.whole = self.normal.whole
        for known in self.facts.positive:
            is_closed = any(known == closed for closed in self.facts.closed)
            twin.facts.assume(_put(self.ring, known, name, value), is_closed)
        return twin


class _ByRegions:
    """A claim on expressions, proved region by region within a given effort. ``wrt``: the names
    whose borders are left out; ``whole``: the names of integers.
    """

    def __init__(
        self,
        of: tuple[Expr, ...],
        wrt: frozenset[str],
        whole: frozenset[str],
        effort: Effort,
    ) -> None:
        self.variables = len(frozenset[str]().union(*map(names, of)))
        self.wrt, self.effort = wrt, effort
        self.whole = frozenset(("variable", name) for name in whole)
        self.split = self.is_stopped = False

    def _holds_on(self, region: Region) -> bool:
        raise NotImplementedError

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
        """True if the claim holds wherever the assumptions do."""
        steps: dict[Any, Fraction] = {}
        for _ in range(_RESTARTS):
            self.split = False
            try:
                return self._all(self.start(assumes, steps))
            except Refine as finer:
                steps[finer.key] = finer.step
            except (TooLarge, RecursionError):
                self.is_stopped = True
                return False
            except (NotImplementedError, Undefined):
                return False
        return False

    def start(self, assumes: tuple[Expr, ...], steps: dict[Any, Fraction]) -> Region:
        ring = Ring(self.effort, self.variables)
        region = Region(ring, Facts(ring), steps)
        region.normal.whole = self.whole
        assumes = tighten(assumes)
        for equation in _equations(assumes):
            gap = _normal_form(region, equation)
            narrowed = None if gap is None else region.border(gap.num)
            region = narrowed or region
        for fact, closed in _facts(assumes):
            gap = _normal_form(region, fact)
            if gap is None or (gap.is_zero and closed):
                continue
            if region.facts.sign(gap.den) == 1:
                region.facts.assume(gap.num, closed)
        return region

    def _all(self, start: Region) -> bool:
        """True if the claim holds on every region that the expressions need."""
        waiting = [start]
        for _ in range(_MOST_REGIONS):
            if not waiting:
                return True
            region = waiting.pop()
            if not region.facts.has_interior():
                if region.facts.is_empty():
                    continue
                return False
            try:
                if not self._holds_on(region):
                    return False
            except Empty:
                continue
            except Split as need:
                self.split = True
                parts = self._parts(region, need)
                if parts is None:
                    return False
                waiting.extend(parts)
        return False

    def _parts(self, region: Region, need: Split) -> list[Region] | None:
        parts = [region.part(need.poly), region.part(-need.poly)]
        is_apart = _variables(region.ring, need.poly).isdisjoint(self.wrt)
        if need.with_border or is_apart:
            border = region.border(need.poly)
            if border is None:
                return None
            parts.append(border)
        return parts


class Prover(_ByRegions):
    """The claim that two expressions are equal wherever both are defined."""

    def __init__(
        self,
        left: Expr,
        right: Expr,
        wrt: frozenset[str],
        whole: frozenset[str],
        effort: Effort,
        given: tuple[Expr, ...] = (),
    ) -> None:
        super().__init__((left, right), wrt, whole, effort)
        self.left, self.right = elementary(tidy(left)), elementary(tidy(right))
        shared = {node for expr in (right, *given) for node in nodes(expand(expr))}
        self.own_equations = [
            node
            for node in nodes(left)
            if isinstance(node, Apply)
            and node.op in ("eq", "ne")
            and node not in shared
        ]

    def _holds_on(self, region: Region) -> bool:
        for equation in self.own_equations:
            gap = region.normal.of(elementary(Apply("sub", equation.args)))
            if not gap.is_zero:
                for poly, _ in region.normal.signed_factors(gap)[2]:
                    raise Split(poly, with_border=True)
        left = region.normal.of(self.left)
        try:
            right = region.normal.of(self.right)
        except Undefined:
            if region.is_border:
                return True  # there is no derivative, and nothing is claimed
            raise
        return region.ring.sub(left, right).is_zero


class Definedness(_ByRegions):
    """The claim that ``left`` is defined wherever ``right`` and ``given`` are, but for
    the operations that are ``granted``; ``lacking`` is the last that was not seen to be.
    """

    def __init__(
        self,
        left: Expr,
        right: Expr,
        whole: frozenset[str],
        effort: Effort,
        given: tuple[Expr, ...] = (),
    ) -> None:
        self.left = expand(left)  # not `tidy`, which forgets what is multiplied by 0
        self.given = (expand(right), *map(expand, given))
        every = (self.left, *self.given)
        super().__init__(every, names(self.left), whole, effort)
        domains = (domain_of(node) for expr in self.given for node in nodes(expr))
        shared = frozenset(domain for domain in domains if domain is not None)
        self.own = [
            node
            for node in nodes(self.left)
            if (domain := domain_of(node)) is not None
            and names(domain)
            and domain not in shared
        ]
        self.granted: set[Key] = set()
        self.lacking: Expr | None = None

    def _holds_on(self, region: Region) -> bool:
        """In conditions first, then in the branches taken, parts before what is made of
        them. (To evaluate a root is to take its argument for positive.)"""
        for expr in self.given:
            region.normal.of(elementary(expr))
        asked = {
            part.key
            for node in nodes(self.left)
            if isinstance(node, Select)
            for part in nodes(node.condition)
        }
        return self._exist(region, asked) and self._exist(
            region, {node.key for node in region.normal.taken_nodes(self.left)}
        )

    def _exist(self, region: Region, wanted: set[Key]) -> bool:
        grounds: frozenset[str] | None = None
        for node in self.own:
            domain = domain_of(node)
            if node.key not in wanted - self.granted or domain is None:
                continue
            if _holds(region.normal, domain, frozenset()):
                continue
            grounds = self._grounds(region) if grounds is None else grounds
            if not _holds(region.normal, domain, grounds):
                self.lacking = node
                return False
        return True

    def _grounds(self, region: Region) -> frozenset[str]:
        """The factors that are not 0 where what is given is defined."""
        found: set[str] = set()
        normal = region.normal
        for expr in self.given:
            for node in normal.taken_nodes(expr):
                domain = domain_of(node)
                for relation in nodes(domain) if domain is not None else ():
                    if isinstance(relation, Apply) and relation.op in RELATIONS:
                        gap = normal.of(elementary(Apply("sub", relation.args)))
                        _, known, unknown = normal.signed_factors(gap)
                        found |= {str(poly) for poly, _ in (*known, *unknown)}
        return frozenset(found)


class Exclusion(_ByRegions):
    """The claim that conditions never have the truth values that they are given with,
    all at once; but for sets without interior, unless ``with_borders``."""

    def __init__(
        self,
        conditions: tuple[tuple[Expr, bool], ...],
        whole: frozenset[str],
        effort: Effort,
        with_borders: bool,
    ) -> None:
        self.conditions = [(elementary(expand(c)), truth) for c, truth in conditions]
        every = tuple(condition for condition, _ in conditions)
        left_out = [] if with_borders else [names(condition) for condition in every]
        wrt = frozenset[str]().union(*left_out)
        super().__init__(every, wrt, whole, effort)

    def _holds_on(self, region: Region) -> bool:
        normal = region.normal
        return any(
            normal.truth_of(normal.of(condition)) is not truth
            for condition, truth in self.conditions
        )


@lru_cache(maxsize=4096)
def domain_of(node: Expr) -> Expr | None:
    """The condition under which an operation is defined; None where it always is."""
    if not isinstance(node, Apply) or not is_primitive(node.op):
        return None
    match node:
        case Apply(op="div", args=(_, Const(value=value))) if value != 0:
            return None
        case Apply(op="pow", args=(base, Const(value=power))) if power.denominator == 1:
            return None if power >= 0 else Apply("ne", (base, ZERO))
        case Apply(op="pow", args=(base, _)):  # a base of 0 is a point beside a domain
            return Apply("ge", (base, ZERO))
        case _:
            row = primitive(node.op)
            if not row.domain:
                return None
            return substitute(
                formula(row.domain), dict(zip(row.params, node.args, strict=True))
            )


def _holds(normal: Normal, condition: Expr, grounds: frozenset[str]) -> bool:
    """True if a condition of a domain is seen to hold; ``grounds`` are factors that are
    not 0."""
    match condition:
        case Apply(op="and", args=args):
            return all(_holds(normal, arg, grounds) for arg in args)
        case Apply(op="or", args=args):
            return any(_holds(normal, arg, grounds) for arg in args)
        case Apply(op="ne", args=args):
            gap = normal.of(elementary(Apply("sub", args)))
            if gap.is_zero:
                return False
            _, _, unknown = normal.signed_factors(gap)
            return all(str(poly) in grounds for poly, _ in unknown)
        case _:
            return normal.truth_of(normal.of(elementary(condition)))


def _normal_form(region: Region, expr: Expr) -> Frac | None:
    try:
        return region.normal.of(expr)
    except (Split, NotImplementedError, Empty):
        return None


def _facts(assumes: tuple[Expr, ...]) -> Iterator[tuple[Expr, bool]]:
    """Expressions that comparisons make positive, and True of those that may be 0."""
    for condition in assumes:
        for part in conjuncts(condition):
            match part:
                case Apply(op="gt" | "ge" as op, args=(left, right)):
                    yield Apply("sub", (left, right)), op == "ge"
                case Apply(op="lt" | "le" as op, args=(left, right)):
                    yield Apply("sub", (right, left)), op == "le"
                case _:
                    continue
        for bound in bounds(condition):
            name = Ref(bound.variable)
            if bound.op in ("gt", "ge"):
                yield Apply("sub", (name, bound.value)), bound.op == "ge"
            elif bound.op in ("lt", "le"):
                yield Apply("sub", (bound.value, name)), bound.op == "le"


def _equations(assumes: tuple[Expr, ...]) -> Iterator[Expr]:
    """Expressions that equations among the assumptions make 0."""
    for part in assumes:
        if isinstance(part, Apply) and part.op == "eq":
            yield Apply("sub", part.args)


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


def _replace(ring: Ring, expr: Frac, name: str, value: Frac) -> Frac:
    """A fraction with a variable replaced by a polynomial (`_solve` gives no other)."""
    above, below = (_put(ring, part, name, value) for part in (expr.num, expr.den))
    return ring.normal(above, below)


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
