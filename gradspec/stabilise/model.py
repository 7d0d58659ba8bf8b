"""A float32 machine on which candidates are tried, the same on every computer.

Sums, products, quotients and square roots are rounded to float32 one by one, as every
target does. Any other primitive is computed in float64 (or by balls, where NumPy does
not have it) and rounded once: the best that a target could do. So the choice depends
neither on the frameworks installed nor on the processor's vector units.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from gradspec.ir.calls import expand
from gradspec.ir.expr import Apply, Const, Expr, Ref, Select
from gradspec.ir.walk import children, names, nodes
from gradspec.primitives.lookup import primitive
from gradspec.primitives.row import Primitive

Column: TypeAlias = Any
"""A float32 or boolean array over the points (or a scalar of that type)."""

_EXACT = frozenset(["add", "sub", "mul", "div", "neg", "sqrt"])
"""Rounded correctly in float32 by every target (IEEE 754)."""


class Machine:
    """Values of expressions at fixed points; shared nodes are computed once."""

    def __init__(self, columns: Mapping[str, Column], work: Any = np.float32) -> None:
        self._columns = dict(columns)
        self._work = work
        self._wide: Machine | None = None
        self._count = max((len(c) for c in columns.values()), default=1)
        self._known: dict[Expr, Column] = {}

    def run(self, expr: Expr) -> Column:
        """The values of ``expr``, one for each point."""
        whole = expand(expr)
        with np.errstate(all="ignore"):
            for node in nodes(whole):
                if node not in self._known:
                    self._known[node] = self._value(node)
        return np.broadcast_to(self._known[whole], (self._count,))

    def in_double(self) -> Machine:
        """The same points on a machine that computes in float64."""
        if self._wide is None:
            columns = {name: _wide(c) for name, c in self._columns.items()}
            self._wide = Machine(columns, np.float64)
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
                return self._work(_float(value))
            case Ref(name=name):
                return self._columns[name]
            case Select(condition=condition, then=then, other=other):
                parts = (self._known[part] for part in (condition, then, other))
                return np.where(*parts)
            case Apply(op=op, args=args):
                given = [self._known[arg] for arg in args]
                return _apply(primitive(op), given, self._work)
            case _:
                raise NotImplementedError("indices and reductions")


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _apply(row: Primitive, args: list[Column], work: Any) -> Column:
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
    from gradspec.symbolic.truth import nearest

    shape = np.broadcast_shapes(*(np.shape(arg) for arg in args))
    wide = [np.atleast_1d(np.asarray(arg, dtype=np.float64)) for arg in args]
    columns = list(np.broadcast_arrays(*wide))
    finite = np.all(np.isfinite(columns), axis=0)
    points = [
        dict(zip(row.params, values, strict=True))
        for values in zip(*(c[finite].tolist() for c in columns), strict=True)
    ]
    form = Apply(row.name, tuple(Ref(param) for param in row.params))
    result = _beyond(row, columns).astype(work)
    result[finite] = nearest(form, points, np.dtype(work).name)
    return result.reshape(shape)


def _beyond(row: Primitive, columns: list[Column]) -> Column:
    """Values where an argument is not finite: the limit, where balls know it.

    There are few different such arguments, so each is asked for once.
    """
    from gradspec.symbolic.enclose import enclose

    form = Apply(row.name, tuple(Ref(param) for param in row.params))
    result = np.full(columns[0].shape, np.nan, dtype=np.float32)
    known: dict[tuple[float, ...], float] = {}
    for index, values in enumerate(zip(*(c.tolist() for c in columns), strict=True)):
        if all(np.isfinite(values)) or any(np.isnan(values)):
            continue
        if values not in known:
            ball = enclose(form, dict(zip(row.params, values, strict=True)))
            known[values] = float(ball.mid()) if ball.is_exact() else float("nan")
        result[index] = known[values]
    return result
