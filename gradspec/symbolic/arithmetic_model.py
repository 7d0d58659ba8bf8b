"""A model of floating-point arithmetic on which candidates are evaluated.

In float32, sums, products, quotients and square roots are rounded one by one, as every
target does (IEEE 754). Any other primitive is computed in float64 (or by balls, where
NumPy lacks it) and rounded once: the best that a target could do. In float64 each
operation is NumPy's own, which is within 2 ULP of the truth, or a ball rounded once. So
a choice depends neither on the installed frameworks nor on the processor's vector
units.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, TypeAlias

import numpy as np

from gradspec.ir.evaluate import evaluate
from gradspec.ir.expr import Apply, Expr, Key, Ref, Select
from gradspec.ir.walk import children, expand, names, nodes
from gradspec.primitives.lookup import primitive
from gradspec.primitives.row import Primitive
from gradspec.primitives.table_operators import VANISHING
from gradspec.symbolic.truth import nearest

Column: TypeAlias = Any
"""A floating or boolean array over the points, or a scalar of that type."""

_EXACT = frozenset(["add", "sub", "mul", "div", "neg", "sqrt", VANISHING])
"""Computed in the target's type: correctly rounded by every target, or composed of such
operations.
"""

_NOWHERE = np.zeros(1, dtype=bool)


class Machine:
    """Values of expressions at fixed points; ``work`` is the NumPy dtype of arithmetic.

    Values of nodes are cached: candidates for one expression share most nodes.
    """

    def __init__(self, columns: Mapping[str, Column], work: Any = np.float32) -> None:
        self.work = work
        self._columns = dict(columns)
        self._wide: Machine | None = None
        self._count = max((len(c) for c in columns.values()), default=1)
        self._known: dict[Key, Column] = {}
        self._lost: dict[Key, Column] = {}

    def __len__(self) -> int:
        return self._count

    def run(self, expr: Expr) -> Column:
        """The values of ``expr``, one per point.

        Raises NotImplementedError for indices and reductions.
        """
        with np.errstate(all="ignore"):
            return np.broadcast_to(evaluate(expr, self, self._known), (self._count,))

    # --- the algebra of columns

    def constant(self, value: Fraction) -> Column:
        return round_to(value, self.work)

    def variable(self, name: str) -> Column:
        return self._columns[name]

    def operation(self, op: str) -> Callable[..., Column]:
        return partial(apply_rounded, primitive(op), self.work)

    def truth_of(self, condition: Column) -> None:
        """None: a condition differs from point to point."""

    def select(self, condition: Column, then: Column, other: Column) -> Column:
        return np.where(condition, then, other)

    def in_double(self) -> Machine:
        """The points on a machine that computes in float64."""
        if self._wide is None:
            columns = {name: _wide(c) for name, c in self._columns.items()}
            self._wide = Machine(columns, np.float64)
        return self._wide

    def meets_infinity(self, expr: Expr, where: Column) -> Column:
        """The points, among ``where``, at which an intermediate value that matters is
        not finite.

        A branch that is not taken does not matter, nor does a literal infinity.
        """
        whole = expand(expr)
        self.run(whole)
        met = np.zeros(self._count, dtype=bool)
        every = list(nodes(whole))
        lost = {id(mask): mask for mask in map(self._not_finite, every)}
        if not any((mask & where).any() for mask in lost.values()):
            return met
        live: dict[Key, Column] = {whole.key: where}
        for node in reversed(every):
            mask = live[node.key]
            met |= mask & self._not_finite(node)
            for child, used in self._uses(node, mask):
                key = child.key
                live[key] = live[key] | used if key in live else used
        return met

    def _not_finite(self, node: Expr) -> Column:
        """The points at which the value of a node is not finite, literals apart."""
        if node.key not in self._lost:
            found = ~np.isfinite(self._known[node.key])
            self._lost[node.key] = found if found.any() and names(node) else _NOWHERE
        return self._lost[node.key]

    def _uses(self, node: Expr, mask: Column) -> list[tuple[Expr, Column]]:
        """The children of a node, each with the points at which the node uses it."""
        match node:
            case Select(condition=condition, then=then, other=other):
                taken = np.asarray(self._known[condition.key], dtype=bool)
                return [(condition, mask), (then, mask & taken), (other, mask & ~taken)]
            case _:
                return [(child, mask) for child in children(node)]


def round_to(value: Any, work: Any = np.float32) -> Any:
    """An exact number rounded to a NumPy type; beyond its range an infinity."""
    try:
        number = float(value)
    except OverflowError:
        number = float("inf") if value > 0 else float("-inf")
    with np.errstate(over="ignore"):
        return work(number)


def apply_rounded(row: Primitive, work: Any, *args: Column) -> Column:
    """A primitive applied to columns, rounded to ``work``."""
    if row.model is None:
        return _by_balls(row, args, work)
    if row.name in _EXACT or work is np.float64:
        return row.model(np, *args)
    value = row.model(np, *(_wide(arg) for arg in args))
    return value if row.result == "bool" else np.asarray(value, work)[()]


def _wide(column: Column) -> Column:
    """In float64. ``np.float64(column)`` is a number, no column, where there is one
    point, before NumPy 2.4."""
    is_bool = np.asarray(column).dtype == np.bool_
    return column if is_bool else np.asarray(column, np.float64)[()]


def _by_balls(row: Primitive, args: tuple[Column, ...], work: Any) -> Column:
    """The correctly rounded value, point by point; limits at infinite arguments."""
    shape = np.broadcast_shapes(*(np.shape(arg) for arg in args))
    wide = [np.atleast_1d(np.asarray(arg, dtype=np.float64)) for arg in args]
    columns = list(np.broadcast_arrays(*wide))
    finite = np.all(np.isfinite(columns), axis=0)
    result = _at_infinity(row, columns).astype(work)
    given = tuple(column[finite].tobytes() for column in columns)
    result[finite] = _rounded_once(row.name, given, np.dtype(work).name)
    return result.reshape(shape)


@lru_cache(maxsize=256)
def _rounded_once(
    name: str, columns: tuple[bytes, ...], dtype: str
) -> tuple[float, ...]:
    """Cached: the candidates of a rule share functions and points."""
    params = primitive(name).params
    values = (np.frombuffer(column).tolist() for column in columns)
    points = [
        dict(zip(params, point, strict=True)) for point in zip(*values, strict=True)
    ]
    form = Apply(name, tuple(Ref(param) for param in params))
    return tuple(nearest(form, points, dtype))


def _at_infinity(row: Primitive, columns: list[Column]) -> Column:
    """The limits at infinite arguments; NaN elsewhere."""
    result = np.full(columns[0].shape, np.nan)
    for index in np.flatnonzero(~np.all(np.isfinite(columns), axis=0)).tolist():
        values = tuple(float(column[index]) for column in columns)
        if not any(map(math.isnan, values)):
            result[index] = _limit(row.name, values)
    return result


_GROWN = 100.0
_FAR = (Fraction(2) ** 3000 / 7, Fraction(2) ** 4001 / 11)
"""Beyond any float, and not integers, at which a sine has special values."""


@lru_cache(maxsize=256)
def _limit(name: str, values: tuple[float, ...]) -> float:
    """The value far out, if it has a limit there (``erf``) or grows (``digamma``)."""
    form = Apply(name, tuple(Ref(f"v{n}") for n in range(len(values))))
    places = [
        {
            f"v{n}": (far if value > 0 else -far) if math.isinf(value) else value
            for n, value in enumerate(values)
        }
        for far in _FAR
    ]
    near, far = nearest(form, places, "float64")
    if near == far:
        return near
    grows = abs(far) > abs(near) > _GROWN and (far > 0) == (near > 0)
    return math.copysign(math.inf, far) if grows else math.nan
