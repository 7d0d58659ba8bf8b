"""Solutions of equations in many digits: Newton's method, enclosed by balls at its end.

Systems are small (a rule unrolled at small sizes) and the start is a sampled point, from
which the method may not converge: iterations are counted, and there is no solution then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import chain
from math import isfinite
from typing import Any

from flint import arb, arb_mat, ctx

from gradspec.ir.expr import Expr
from gradspec.symbolic.enclose import Program, is_defined, to_ball

BITS = 2560
"""Bits of a solution: more than comparisons use, so that its rounding is not seen."""

_FIRST, _STEPS, _HALVINGS = 96, 48, 6
_SMALL = 2.0**-40

Point = Mapping[str, Any]
"""A name's value: a fraction, or a ball."""


class Equations:
    """``residuals`` that are to be 0; of each its derivatives by the ``unknowns``, in
    their order."""

    def __init__(
        self,
        residuals: Sequence[Expr],
        unknowns: Sequence[str],
        slopes: Sequence[Sequence[Expr]],
    ) -> None:
        self.unknowns, self.count = tuple(unknowns), len(residuals)
        self._program = Program((*residuals, *chain.from_iterable(slopes)))

    def solution(self, point: Point) -> Point | None:
        """The point with the unknowns near it that solve the equations, as balls; None
        if there are none that Newton's method finds."""
        found = self.approximation(point)
        return None if found is None else self._enclosure(found)

    def approximation(self, point: Point) -> Point | None:
        """The point with unknowns that solve the equations to many digits: exact balls.
        Of fewer equations than unknowns, the solution that each step brings nearest."""
        if not self.count:
            return point
        given = {n: to_ball(point[n]).mid() for n in self.unknowns}
        found, bits = self._approach({**point, **given}), _FIRST
        while found is not None and bits < BITS:
            bits = min(2 * bits, BITS)
            step = self._step(found, bits)
            found = None if step is None else self._point_after(found, step, 1.0, bits)
        return found

    def _approach(self, point: Point) -> Point | None:
        """The point after steps that make the residuals smaller, until one is small."""
        size = self._size(point)
        for _ in range(_STEPS):
            step = self._step(point, _FIRST) if size is not None else None
            if step is None:
                return None
            scale = 1 + max(abs(point[name]) for name in self.unknowns)
            if all(abs(value) <= _SMALL * scale for value in step):
                return self._point_after(point, step, 1.0, _FIRST)
            factor = 1.0
            for _ in range(_HALVINGS):
                moved = self._point_after(point, step, factor, _FIRST)
                other = self._size(moved)
                if other is not None and size is not None and other < size:
                    break
                factor /= 2
            else:
                return None
            point, size = moved, other
        return None

    def _point_after(
        self, point: Point, step: list[Any], factor: float, bits: int
    ) -> Point:
        made = dict(point)
        with ctx.workprec(bits):
            for name, change in zip(self.unknowns, step, strict=True):
                made[name] = (point[name] - arb(factor) * change).mid()
        return made

    def _size(self, point: Point) -> Any:
        """The squares of the residuals, as a ball; None where they are undefined."""
        values = self._program.run(point, _FIRST)[: self.count]
        if not all(map(is_defined, values)):
            return None
        return sum((_mid(value) ** 2 for value in values), arb(0))

    def _step(self, point: Point, bits: int) -> list[Any] | None:
        """The step of Newton's method; the shortest, of fewer equations."""
        values = self._program.run(point, bits)
        if not all(map(is_defined, values)):
            return None
        width = len(self.unknowns)
        with ctx.workprec(bits):
            right = arb_mat(self.count, 1, list(map(_mid, values[: self.count])))
            matrix = arb_mat(self.count, width, list(map(_mid, values[self.count :])))
            return _linear_solution(matrix, right)

    def _enclosure(self, point: Point) -> Point | None:
        """The point with balls that certainly have a solution, the only one nearby."""
        if not self.count:
            return point
        bits = BITS
        with ctx.workprec(bits):
            radius = arb(2) ** (-BITS // 4)
            around = {name: arb(point[name], radius) for name in self.unknowns}
        inside = self._program.run({**point, **around}, bits)[self.count :]
        exact = self._program.run(point, bits)[: self.count]
        if not all(map(is_defined, (*inside, *exact))):
            return None
        with ctx.workprec(bits):
            matrix = arb_mat(self.count, self.count, list(inside))
            step = _linear_solution(matrix, arb_mat(self.count, 1, list(exact)))
            if step is None or not all(abs(change) < radius for change in step):
                return None
            moved = zip(self.unknowns, step, strict=True)
            found = {n: point[n] - change for n, change in moved}
        return self._exactly({**point, **found})

    def _exactly(self, point: Point) -> Point:
        """The point with floats for balls that hold them, if these are the solution."""
        short: dict[str, Fraction] = {}
        for name in self.unknowns:
            value = float(point[name].mid())
            if not isfinite(value) or not point[name].contains(arb(value)):
                return point
            short[name] = Fraction(value)
        values = self._program.run({**point, **short}, BITS)[: self.count]
        is_zero = all(is_defined(value) and value.is_zero() for value in values)
        return {**point, **short} if is_zero else point


def _linear_solution(matrix: Any, right: Any) -> list[Any] | None:
    """The solution of a linear system, of least length; None if it is singular."""
    try:
        if matrix.nrows() == matrix.ncols():
            found = matrix.solve(right)
        else:
            turned = matrix.transpose()
            found = turned * (matrix * turned).solve(right)
    except ZeroDivisionError:
        return None
    entries = found.entries()
    return entries if all(entry.is_finite() for entry in entries) else None


def _mid(value: Any) -> Any:
    return value.mid()
