"""Points brought inside assumptions: equations, and inequalities that few points meet.

Each equation, and each inequality that does not hold where a point is, is an equation
for Newton's method with the shortest step (Gauss and Newton): an inequality is given a
place inside to aim at. So `a**2 + b**2 == 1` has points all around the circle, and
`abs(a * b - 1) < 1e-9` some on either side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

from flint import arb, arb_mat, ctx

from gradspec.ir.expr import Apply, Expr, Ref, apply
from gradspec.ir.walk import names
from gradspec.symbolic.enclose import defined, enclose, program, to_ball
from gradspec.symbolic.isolate import conjuncts
from gradspec.symbolic.ranges import middle

DEPTH = 8704
"""Bits to which an equation holds: more than any comparison looks at (compare, 8192), so
that what is equal where it holds is not told apart by what is left of it."""

_MET = 8192
_NOTHING = arb(2) ** -1024
_TINY = arb(2) ** -40
_INSIDE = 640
_FIRST = 128
_STEPS = 60
_ROUNDS = 4
"""An inequality may be violated only after another one holds."""

Point: TypeAlias = "dict[str, Fraction]"
Draw: TypeAlias = Callable[[int], int]
"""A whole number below a limit."""


class Constraints:
    """Conditions that all have to hold, and the inputs that may be moved to that end:
    the tensors; ``fixed`` ones (statics) where an equation has nothing else."""

    def __init__(
        self, conditions: Iterable[Expr], movable: frozenset[str], fixed: frozenset[str]
    ) -> None:
        self._parts = tuple(part for c in conditions for part in conjuncts(c))
        self._movable, self._fixed = movable, fixed
        sides = [_sides(part) for part in self._parts]
        self._gaps = {
            k: _gap(k, *found) for k, found in enumerate(sides) if found is not None
        }
        self._equations = tuple(k for k in self._gaps if _is_equation(self._parts[k]))

    def holds(self, point: Mapping[str, Any]) -> bool:
        return not any(self._fails(k, point) for k in range(len(self._parts)))

    def _fails(self, number: int, point: Mapping[str, Any]) -> bool:
        """Whether a part does not hold, or may not; an equation holds if its sides are
        the same to very many digits."""
        part = self._parts[number]
        if enclose(part, point) is True:
            return False
        if number in self._equations:
            assert isinstance(part, Apply)
            gap = enclose(apply("sub", *part.args), point, _MET)
            return not (defined(gap) and gap.contains(0) and abs(gap) < _NOTHING)
        return enclose(part, point, _INSIDE) is not True

    def settle(self, point: Point, draw: Draw) -> Point | None:
        """A point near this one at which all conditions hold; None if none was found."""
        aims: dict[int, Point] = {k: _aim(k, 1, 0) for k in self._equations}
        is_scaled = draw(2) == 1
        for round_ in range(_ROUNDS):
            failing = [k for k in range(len(self._parts)) if self._fails(k, point)]
            if not failing:
                return point
            if any(k not in self._gaps for k in failing):
                return None
            fresh = [k for k in failing if k not in aims]
            if round_ and not fresh:
                return None
            aims |= {k: self._inside(k, point, draw) for k in fresh}
            moved = self._solve(point, aims, is_scaled)
            if moved is None:
                return None
            point = moved
        return point if self.holds(point) else None

    def _inside(self, number: int, point: Point, draw: Draw) -> Point:
        """``l < r`` is met at ``l = part * r`` (by the signs, with a part below 1 or
        above) or at ``l = r - step``."""
        sides = _sides(self._parts[number])
        assert sides is not None
        part = Fraction(1 + draw(65535), 65536)
        left, right = (enclose(side, point) for side in sides)
        if draw(2) and defined(left) and defined(right):
            if left > 0 or right > 0:
                return _aim(number, part, 0)
            if right < 0:
                return _aim(number, 1 / part, 0)
        return _aim(number, 1, (1 + part) * Fraction(2) ** (10 - draw(90)))

    def _solve(
        self, point: Point, aims: Mapping[int, Point], is_scaled: bool
    ) -> Point | None:
        """Newton's method; ``is_scaled``: with steps in proportion to the numbers, which
        keep their signs (shares of a whole stay positive)."""
        gaps = tuple(self._gaps[k] for k in aims)
        free = sorted(self._movable & frozenset[str]().union(*map(names, gaps)))
        if any(self._movable.isdisjoint(names(gap)) for gap in gaps):
            known = self._movable | self._fixed
            free = sorted(known & frozenset[str]().union(*map(names, gaps)))
        depth = DEPTH if self._equations else 2 * _FIRST
        extra = {n: v for aim in aims.values() for n, v in aim.items()}
        at: dict[str, Any] = {n: to_ball(v) for n, v in (point | extra).items()}
        bits = _FIRST
        for _ in range(_STEPS):
            with ctx.workprec(bits):
                step = _step(gaps, at, free, bits, is_scaled)
                if step is None:
                    return None
                close = arb(2) ** (8 - bits // 2)
                is_close = all(abs(step[n]) < close * _size(at[n]) for n in free)
                at |= {n: _moved(at[n], step[n], is_scaled) for n in free}
            if is_close:
                if bits == depth:
                    return point | {n: middle(at[n]) for n in free}
                bits = min(2 * bits, depth)
        return None


@lru_cache(maxsize=64)
def constraints(
    conditions: tuple[Expr, ...], movable: frozenset[str], fixed: frozenset[str]
) -> Constraints:
    return Constraints(conditions, movable, fixed)


def _is_equation(part: Expr) -> bool:
    return isinstance(part, Apply) and part.op == "eq"


def _sides(part: Expr) -> tuple[Expr, Expr] | None:
    """The smaller and the larger side of a relation."""
    match part:
        case Apply(op="lt" | "le" | "eq", args=(left, right)):
            return left, right
        case Apply(op="gt" | "ge", args=(left, right)):
            return right, left
        case _:
            return None


def _aim(number: int, part: Fraction | int, step: Fraction | int) -> Point:
    """Names with a space are nobody's."""
    return {f"part {number}": Fraction(part), f"step {number}": Fraction(step)}


def _gap(number: int, left: Expr, right: Expr) -> Expr:
    """``l - part * r + step``."""
    aimed = apply("mul", Ref(f"part {number}"), right)
    return apply("add", apply("sub", left, aimed), Ref(f"step {number}"))


def _step(
    gaps: tuple[Expr, ...],
    at: Mapping[str, Any],
    free: list[str],
    bits: int,
    is_scaled: bool,
) -> dict[str, Any] | None:
    """The shortest one to where the linear parts of all gaps vanish."""
    compiled = program(*gaps)
    here = _run(compiled.run(at, bits))
    if here is None:
        return None
    columns = []
    for name in free:
        beside = (at[name] + _size(at[name]) * arb(2) ** -(bits // 2)).mid()
        there = _run(compiled.run({**at, name: beside}, bits))
        if there is None:
            return None
        width = beside - at[name]
        columns.append([(b - a) / width for a, b in zip(here, there, strict=True)])
    weights = [at[n] ** 2 if is_scaled else arb(1) for n in free]
    slopes = arb_mat([list(row) for row in zip(*columns, strict=True)]).mid()
    turned = arb_mat(
        [[w * s for s in column] for w, column in zip(weights, columns, strict=True)]
    ).mid()
    try:
        solved = (slopes * turned).mid().solve(arb_mat([[-a] for a in here]))
    except ZeroDivisionError:
        return None
    steps = [row[0].mid() for row in (turned * solved.mid()).tolist()]
    if not all(step.is_finite() for step in steps):
        return None
    return dict(zip(free, steps, strict=True))


def _run(values: tuple[Any, ...]) -> list[Any] | None:
    """The middles of balls, if all are defined."""
    return [v.mid() for v in values] if all(map(defined, values)) else None


def _moved(value: Any, step: Any, is_scaled: bool) -> Any:
    """Scaled, a number is no more than halved, or made four times as large, in a step."""
    if is_scaled and value != 0 and abs(step) > abs(value) / 2:
        most = abs(value) / 2 if step * value < 0 else 3 * abs(value)
        step = step if abs(step) < most else (most if step > 0 else -most)
    return (value + step).mid()


def _size(value: Any) -> Any:
    return abs(value) if abs(value) > _TINY else _TINY
