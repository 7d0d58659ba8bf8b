"""The regions into which conditionals, kinks and steps divide a claim, and a point in each.

Agreement at sampled points says nothing of a branch that no point takes. So what is not
proved has to agree in every region: along each variable the borders are isolated, and
the claim is compared on both sides of each, and on it. A region that no point reaches
has to be shown to be empty.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import islice

from gradspec.checks.evidence import Claim, Evidence, examine
from gradspec.checks.instances import Instance, Point, stem
from gradspec.ir.expr import ZERO, Apply, Expr
from gradspec.ir.rule import Kind
from gradspec.ir.walk import names, nodes
from gradspec.symbolic.borders.bounds import (
    GROUPS,
    Border,
    borders_by_path,
)
from gradspec.symbolic.borders.signs import sign_of, signs
from gradspec.symbolic.compare import Relation
from gradspec.symbolic.enclose import enclose, is_defined, program
from gradspec.symbolic.limit import Effort
from gradspec.symbolic.points.domain import Limits, constraints_of, drawing
from gradspec.symbolic.proof.prove import Exclusion, domain_of

_LINES = 192
"""Lines along which a claim is searched."""

_LARGEST = 250
"""Nodes of a claim beyond which its lines take seconds: larger instances of a rule over
axes are compared at sampled points alone."""

_BASES = 3
_WITHIN = 2  # points of an equation from which the other borders are looked for
_EXCLUDING = 1.0  # of a budget, to show that a region is empty
_TRIES = 4  # to meet the assumptions
_ELEMENTS = 2
"""Elements of one vector or matrix along which a border is looked for: they have the
same role."""

_WHOLE = (Kind.INT, Kind.STATIC_INT)


def _edges(claim: Claim) -> Iterator[Border]:
    """The ends of the domain of operations that only the declared side has."""
    shared = frozenset(nodes(claim.derived))
    for node in nodes(claim.declared):
        domain = None if node in shared else domain_of(node)
        if domain is not None:
            for border in borders_by_path(domain):
                is_order = border.groups != GROUPS["ne"]
                # A single point is looked for, and need not exist.
                yield border if is_order else replace(border, groups=())


# --- a point in each ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Reached:
    """The evidence at points of every region that was found; ``missed`` is a border
    with a region that has no point and is not known to be empty."""

    evidence: Evidence
    missed: Border | None = None


def reach(claim: Claim) -> Reached:
    """The claim compared in every region of its borders."""
    if claim.instance.equations:  # the lines along which borders are sought leave them
        return Reached(examine(claim, claim.instance.points))
    search, crossed = _search(claim)
    evidence = examine(claim, search.points)
    if evidence.refuted is not None or evidence.outside is not None:
        return Reached(evidence)
    # What differs and is not refuted is at a kink, or off by the rounding of a number.
    seen = [p for p, s in evidence.comparisons if s.relation is not Relation.UNDECIDED]
    missed = (b for b in crossed if not search.is_covered(b, seen))
    return Reached(evidence, next(missed, None))


def region_points(claim: Claim) -> tuple[Point, ...]:
    """The sampled points, and points in every region that was found and at its borders."""
    return tuple(_search(claim)[0].points)


def _search(claim: Claim) -> tuple[_Search, list[Border]]:
    """The search for points of every region, and the borders that some point may meet."""
    # The derivative's own equations are ties, where any slope between two is right.
    ties = (
        replace(border, groups=border.groups[1:])
        if border.groups == GROUPS["eq"]
        else border
        for border in borders_by_path(claim.derived)
    )
    wanted = tuple(
        dict.fromkeys((*borders_by_path(claim.declared), *ties, *_edges(claim)))
    )
    search = _Search(claim)
    crossed = [border for border in wanted if not search.is_never_met(border)]
    for border in crossed:
        # What is wrong at a single point may be hidden there by a factor that is 0.
        is_equation = border.groups == GROUPS["eq"]
        search.along(border, search.bases[: _BASES if is_equation else 1])
    for border in crossed:
        if not search.is_covered(border, search.points):
            search.along(border, search.bases[1:])
    for border in crossed:
        if border.groups == GROUPS["eq"]:
            search.within(border, crossed)
    return search, crossed


def is_always_true(instance: Instance, condition: Expr) -> bool:
    """True if a condition on one input holds at every float that is assumed (and at
    every real number up to the roots between two floats)."""
    rule = instance.rule
    free = [i for i in rule.inputs if i.name in names(condition)]
    if len(free) != 1 or free[0].kind is Kind.BOOL:
        return False
    name = free[0].name
    room = Limits(rule).room(name, {})
    for border in borders_by_path(condition):
        found = signs(program(border.gap), name, {}, room, free[0].kind in _WHOLE)
        points = ({name: value} for value in found.points)
        if not found.is_whole or not all(
            enclose(condition, p, 320) is True for p in points
        ):
            return False
    return True


class _Search:
    """Points of one claim, and the lines that are known as a whole."""

    def __init__(self, claim: Claim) -> None:
        self.claim, self.instance = claim, claim.instance
        rule = claim.instance.rule
        self.limits = Limits(rule)
        self.points: list[Point] = list(claim.instance.points)
        self.whole: dict[Expr, bool] = {}
        self.lines = 0
        numbers = (i for i in rule.inputs if i.kind is not Kind.BOOL)
        self.kinds = {i.name: i.kind for i in numbers}

    @cached_property
    def bases(self) -> list[Point]:
        """Points from which borders are looked for; those found on the way join them."""
        return [*islice(self._telling_points(), _BASES)]

    def _telling_points(self) -> Iterator[Point]:
        """The sampled points, those first at which the gradient is not 0."""
        gradient, points = program(self.claim.derived), self.instance.points
        values = {k: gradient.run(p, 64)[0] for k, p in enumerate(points[: 4 * _BASES])}
        silent = {k for k, v in values.items() if not is_defined(v) or v.contains(0)}
        yield from (p for k, p in enumerate(points) if k not in silent)
        yield from (points[k] for k in sorted(silent))

    def within(self, border: Border, others: list[Border]) -> None:
        """Add the points at the other borders within a border that is an equation, where
        what its variables are stays.
        """
        on = (p for p in self.points if border.holds(p) and _sign(border, p) == 0)
        for base in list(islice(on, _WITHIN)):
            for other in others:
                if other is not border:
                    self.along(other, [base], names(border.gap))

    def along(
        self, border: Border, bases: list[Point], kept: frozenset[str] = frozenset()
    ) -> None:
        """Add the points at the border along each of its variables but for the kept."""
        compiled = program(border.gap)
        free = tuple(n for n in self.kinds if n in names(border.gap))
        for name in few_elements(n for n in free if n not in kept):
            room = self.limits.room(name, {})
            is_integer = self.kinds[name] in _WHOLE
            for base in bases:
                if self.lines == _LINES:
                    return
                self.lines += 1
                found = signs(compiled, name, base, room, is_integer)
                if len(free) == 1:
                    self.whole[border.gap] = found.is_whole
                self._add(border, name, base, found.points)

    def _add(
        self, border: Border, name: str, base: Point, values: tuple[Fraction, ...]
    ) -> None:
        signs_seen: set[int | None] = set()
        for value in values:
            point = self._inside({**base, name: value}, name)
            if point is None:
                if self._is_coupled(name):
                    self.whole[border.gap] = False
                continue
            self.points.append(point)
            sign = _sign(border, point)
            if sign not in signs_seen and border.holds(point):
                signs_seen.add(sign)
                self.bases.append(point)

    def _inside(self, point: Point, name: str) -> Point | None:
        """The point, or one with this value of the variable at which the assumptions
        hold."""
        if self.instance.is_assumed(point):
            return point
        conditions, fixed = self.limits.conditions, frozenset((name,))
        inside = constraints_of(self.instance.rule, conditions, fixed)
        tries = (inside.settle(dict(point), drawing(k, 89, 0)) for k in range(_TRIES))
        return next((settled for settled in tries if settled is not None), None)

    def _is_coupled(self, name: str) -> bool:
        """True if an assumption speaks of the variable and another one."""
        every = map(names, self.limits.conditions)
        return any(name in used and len(used) > 1 for used in every)

    def is_never_met(self, border: Border) -> bool:
        """True if the expression is shown to be 0 nowhere and of one sign. One variable
        alone is looked at: its line tells whether other borders are known as a whole.
        """
        if len(names(border.gap) & self.kinds.keys()) <= 1:
            return False
        sides = ((-1, 0), (0, 1))
        return any(self._is_empty(border, side, with_borders=True) for side in sides)

    def is_covered(self, border: Border, seen: list[Point]) -> bool:
        """True if each region at a border has a point, or is empty."""
        missing = list(border.groups)
        for point in seen:
            if not missing:
                return True
            sign = _sign(border, point)
            if any(sign in group for group in missing) and border.holds(point):
                missing = [group for group in missing if sign not in group]
        free = names(border.gap) | names_of(border.path)
        one_variable = len(free & set(self.kinds)) <= 1
        alike = (g for g in self.whole if names(g) <= free)
        if one_variable and all(self.whole[gap] for gap in alike):
            return True
        return all(self._is_empty(border, g, with_borders=g == (0,)) for g in missing)

    def _is_empty(
        self, border: Border, group: tuple[int, ...], *, with_borders: bool
    ) -> bool:
        op = next(
            op
            for op, groups in GROUPS.items()
            if groups[0] == group or groups[1] == group
        )
        holds = GROUPS[op][0] == group
        fact = (Apply(op, (border.gap, ZERO)), holds)
        conditions = (*border.path, fact)
        effort = Effort.of(_EXCLUDING)
        exclusion = Exclusion(conditions, self.instance.whole, effort, with_borders)
        return exclusion.proof(self.instance.assumed) is not None


def few_elements(found: Iterable[str]) -> Iterator[str]:
    """All names, but only a few elements of one vector or matrix."""
    counts: Counter[str] = Counter()
    for name in found:
        counts[stem(name)] += 1
        if stem(name) == name or counts[stem(name)] <= _ELEMENTS:
            yield name


def names_of(path: tuple[tuple[Expr, bool], ...]) -> frozenset[str]:
    return frozenset().union(*(names(condition) for condition, _ in path))


def _sign(border: Border, point: Point) -> int | None:
    ball = program(border.gap).run(point, 320)[0]
    if is_defined(ball) and ball.contains(0):
        return 0
    return sign_of(ball)
