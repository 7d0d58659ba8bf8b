"""A machine on which candidates are tried, the same on every computer.

In float32, sums, products, quotients and square roots are rounded one by one, as every
target does. Any other primitive is computed in float64 (or by balls, where NumPy does
not have it) and rounded once: the best that a target could do. So the choice depends
neither on the frameworks installed nor on the processor's vector units. In float64 every
operation is NumPy's own, which is within two ULP of the truth, or a ball rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from gradspec.ir.calls import expand
from gradspec.ir.expr import Apply, Call, Const, Expr, Ref, Select
from gradspec.ir.walk import children, names, nodes
from gradspec.primitives.lookup import primitive
from gradspec.primitives.on_target import OnTarget
from gradspec.primitives.row import Primitive
from gradspec.primitives.table_bounds import VANISHING
from gradspec.primitives.table_polynomials import NAMES as POLYNOMIALS
from gradspec.stabilise.faults import faults, spoiled

Column: TypeAlias = Any
"""A floating or boolean array over the points (or a scalar of that type)."""

_EXACT = POLYNOMIALS | {"add", "sub", "mul", "div", "neg", "sqrt", VANISHING}
"""Computed in the target's type: rounded correctly by every target (IEEE 754), or made
of such operations."""


_NOWHERE = OnTarget()


class Machine:
    """Values of expressions at fixed points; shared nodes are computed once.

    ``work`` is the type that it computes in; of a ``target``, what its functions are
    known to get wrong is wrong here too.
    """

    def __init__(
        self, columns: Mapping[str, Column], work: Any = np.float32, target: str = ""
    ) -> None:
        self._columns = dict(columns)
        self.work, self.target = work, target
        self._faults = faults(target, np.dtype(work).name)
        self._tiny = np.finfo(work).tiny
        self._wide: Machine | None = None
        self._count = max((len(c) for c in columns.values()), default=1)
        self._known: dict[Expr, Column] = {}

    def __len__(self) -> int:
        return self._count

    def run(self, expr: Expr) -> Column:
        """The values of ``expr``, one for each point."""
        with np.errstate(all="ignore"):
            return np.broadcast_to(self._evaluated(expr), (self._count,))

    def _evaluated(self, expr: Expr) -> Column:
        for node in self._unknown(expr):
            self._known[node] = self._value(node)
        return self._known[expr]

    def _unknown(self, expr: Expr) -> Iterator[Expr]:
        """Nodes without a value yet, children first; what is below others is not looked
        at."""
        todo = [expr]
        while todo:
            node = todo[-1]
            missing = [n for n in node.below if n not in self._known]
            if node in self._known:
                todo.pop()
            elif missing:
                todo += reversed(missing)
            else:
                yield todo.pop()

    def in_double(self) -> Machine:
        """The same points on a machine that computes in float64."""
        if self._wide is None:
            columns = {name: _wide(c) for name, c in self._columns.items()}
            self._wide = Machine(columns, np.float64, self.target)
        return self._wide

    def noise(self, expr: Expr) -> Column:
        """At which points a value on the way to ``expr`` is not finite (a branch that
        is not taken is not on the way; an infinity that is written is no accident).
        """
        whole = expand(expr)
        self.run(whole)
        live: dict[Expr, Column] = {whole: np.ones(self._count, dtype=bool)}
        noisy = np.zeros(self._count, dtype=bool)
        for node in reversed(list(nodes(whole))):
            mask, value = live[node], self._known[node]
            if not np.isfinite(value).all() and names(node):
                noisy |= mask & ~np.isfinite(value)
            for child, used in self._uses(node, mask):
                live[child] = live[child] | used if child in live else used
        return noisy

    def _uses(self, node: Expr, mask: Column) -> list[tuple[Expr, Column]]:
        """The children of a node and the points at which it needs them."""
        match node:
            case Select(condition=condition, then=then, other=other):
                taken = np.asarray(self._known[condition], dtype=bool)
                return [(condition, mask), (then, mask & taken), (other, mask & ~taken)]
            case _:
                return [(child, mask) for child in children(node)]

    def _value(self, node: Expr) -> Column:
        match node:
            case Const(value=value):
                return rounded(value, self.work)
            case Ref(name=name):
                return self._columns[name]
            case Select(condition=condition, then=then, other=other):
                parts = (self._known[part] for part in (condition, then, other))
                return np.where(*parts)
            case Apply(op=op, args=args):
                given = [self._known[arg] for arg in args]
                return self._applied(op, given)
            case Call():
                return self._evaluated(expand(node))
            case _:
                raise NotImplementedError("indices and reductions")

    def _applied(self, op: str, given: list[Column]) -> Column:
        row = primitive(op)
        here = row.on.get(self.target, _NOWHERE)
        if here.flushes:
            given = [flushed(column, self._tiny) for column in given]
        value = applied(row, given, self.work)
        spans, least_ = self._faults.get(op, ()), here.vanishes
        value = spoiled(value, given[-1], spans) if spans else value
        return flushed(value, least_ * self._tiny) if least_ else value


def flushed(column: Column, least_: float) -> Column:
    """With zeros in place of what is smaller than ``least_``; they keep its sign."""
    if np.asarray(column).dtype == np.bool_:
        return column
    return np.where(np.abs(column) < least_, 0 * column, column)


def rounded(value: Any, work: Any = np.float32) -> Any:
    """An exact number as the machine holds it."""
    try:
        number = float(value)
    except OverflowError:
        number = float("inf") if value > 0 else float("-inf")
    with np.errstate(over="ignore"):
        return work(number)


def applied(row: Primitive, args: list[Column], work: Any) -> Column:
    """What a primitive makes of columns, in float32 (or as wide as ``work``)."""
    if row.model is None:
        return _by_balls(row, args, work)
    if row.name in _EXACT:
        return row.model(np, *args)
    value = row.model(np, *(_wide(arg) for arg in args))
    return value if row.result == "bool" else work(value)


def _wide(column: Column) -> Column:
    return column if np.asarray(column).dtype == np.bool_ else np.float64(column)


def _by_balls(row: Primitive, args: list[Column], work: Any) -> Column:
    """The correctly rounded value, point by point."""
    shape = np.broadcast_shapes(*(np.shape(arg) for arg in args))
    wide = [np.atleast_1d(np.asarray(arg, dtype=np.float64)) for arg in args]
    columns = list(np.broadcast_arrays(*wide))
    finite = np.all(np.isfinite(columns), axis=0)
    result = _beyond(row, columns).astype(work)
    given = tuple(column[finite].tobytes() for column in columns)
    result[finite] = _rounded_once(row.name, given, np.dtype(work).name)
    return result.reshape(shape)


@lru_cache(maxsize=256)
def _rounded_once(
    name: str, columns: tuple[bytes, ...], dtype: str
) -> tuple[float, ...]:
    """Kept: the candidates of a rule ask for the same function at the same points."""
    from gradspec.symbolic.truth import nearest

    params = primitive(name).params
    values = (np.frombuffer(column).tolist() for column in columns)
    points = [
        dict(zip(params, point, strict=True)) for point in zip(*values, strict=True)
    ]
    form = Apply(name, tuple(Ref(param) for param in params))
    return tuple(nearest(form, points, dtype))


def _beyond(row: Primitive, columns: list[Column]) -> Column:
    """Values where an argument is not finite: the limit, where there is one."""
    result = np.full(columns[0].shape, np.nan)
    for index, values in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
        if not all(np.isfinite(values)) and not any(np.isnan(values)):
            result[index] = _limit(row.name, values)
    return result


_GROWN = 100.0
_FAR = (Fraction(2) ** 3000 / 7, Fraction(2) ** 4001 / 11)
"""Beyond any float; no whole numbers, at which a sine has values of its own."""


@lru_cache(maxsize=256)
def _limit(name: str, values: tuple[float, ...]) -> float:
    """What balls say of infinite arguments; of one, else the value far out, if that is
    the same farther out (``erf``) or grows (``digamma``)."""
    from gradspec.symbolic.enclose import enclose
    from gradspec.symbolic.truth import nearest

    form = Apply(name, tuple(Ref(f"v{n}") for n in range(len(values))))
    ball = enclose(form, {f"v{n}": value for n, value in enumerate(values)})
    if hasattr(ball, "is_exact") and ball.is_exact() and not ball.is_nan():
        return float(ball.mid())
    if len(values) > 1:
        return math.nan
    signed = (far if values[0] > 0 else -far for far in _FAR)
    near, far = nearest(form, [{"v0": value} for value in signed], "float64")
    if near == far:
        return near
    grows = abs(far) > abs(near) > _GROWN and (far > 0) == (near > 0)
    return math.copysign(math.inf, far) if grows else math.nan
