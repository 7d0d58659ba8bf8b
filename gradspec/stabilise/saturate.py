"""Evaluations that equality saturation finds, where the straight search leaves an
expression that is not good."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from gradspec.derive.build import times
from gradspec.derive.linear import coefficient, is_linear
from gradspec.ir.expr import Apply, Call, Const, Expr, Reduce, Ref
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import names, nodes, size, transform
from gradspec.stabilise.choose import cost
from gradspec.stabilise.egraph import (
    Classes,
    Fact,
    known_operators,
    saturated,
    wanted,
)
from gradspec.stabilise.harvest import Built, Ground, harvest, representatives
from gradspec.stabilise.points import Points
from gradspec.symbolic.together import together

_LARGEST = 70
"""Nodes of an expression beyond which it is not looked at."""

_GROWTH, _ROOM = 2.0, 20.0
"""How much more a form may cost than the one that is written."""

_STARTS = 2
"""How many more expressions of the same value growth begins with, the smallest."""

_SEVERE = 1000.0  # ULP
_LITTLE, _MUCH = 2_000.0, 6_000.0
"""Work (see `harvest.Ground`) for what is a little off, and for what is wrong."""

_WORST, _SPREAD = 24, 40
"""Points that take part: those at which the form at hand is worst, and others."""


class Saturation:
    """Equal evaluations of expressions over the points of one rule."""

    def __init__(self, sample: Points) -> None:
        self._sample = sample
        self._known: dict[tuple[Expr, ...], Classes] = {}
        self._defined: dict[Expr, Any] = {}

    def forms(
        self, starts: tuple[Expr, ...], suspicion: Any, work: Any = np.float32
    ) -> Iterator[Expr]:
        """Other forms of ``starts`` (all of one value, the first as it is written): the
        accurate ones first, the cheaper first. ``suspicion`` is large at points that tell
        forms apart; ``work`` is in what they are to be computed."""
        upstream = self._upstream(starts[0])
        factors = [self._factor(start, upstream) for start in starts]
        some = [f for f in dict.fromkeys(factors) if _is_suitable(f)]
        some = [f for f in some if names(f) <= self._sample.columns.keys()]
        if not some or some[0] != factors[0]:
            return
        chosen = (some[0], *sorted(some[1:], key=size)[:_STARTS])
        most = _GROWTH * cost(some[0]) + _ROOM
        found = [
            (b.rank[:3], _in_order(b.expr)) for b in self.built(chosen, suspicion, work)
        ]
        for _, _, form in sorted(
            ((rank, cost(form), form) for rank, form in found), key=lambda f: f[:2]
        ):
            if cost(form) <= most:
                yield form if upstream is None else times(Ref(upstream), form)

    def built(
        self, starts: tuple[Expr, ...], suspicion: Any, work: Any = np.float32
    ) -> tuple[Built, ...]:
        """The same with their values at the points."""
        chosen = self._chosen(starts[0], suspicion)
        if not len(chosen):
            return ()
        rows = [self._sample.rows[n] for n in chosen]
        classes = self._classes(starts, rows)
        truths = _truths(representatives(classes), rows)
        columns = {n: c[chosen] for n, c in self._sample.columns.items()}
        ground = Ground(columns, self._sample.core[chosen], work)
        severe = np.isinf(suspicion).any() or suspicion.max() > _SEVERE
        return harvest(classes, truths, ground, _MUCH if severe else _LITTLE)

    def _chosen(self, start: Expr, suspicion: Any) -> Any:
        """The places of the points that take part, of those at which ``start`` has a
        value: the most suspicious, and every so many of the rest."""
        if start not in self._defined:
            (truth,) = _truths((start,), list(self._sample.rows))
            self._defined[start] = np.flatnonzero(np.isfinite(truth))
        defined = self._defined[start]
        if len(defined) <= _WORST + _SPREAD:
            return defined
        worst = defined[np.argsort(-suspicion[defined], kind="stable")[:_WORST]]
        spread = defined[np.linspace(0, len(defined) - 1, _SPREAD).astype(int)]
        return np.union1d(worst, spread)

    def _classes(self, starts: tuple[Expr, ...], rows: list[Any]) -> Classes:
        if starts not in self._known:
            self._known[starts] = saturated(
                starts, lambda found: self._facts(found, rows)
            )
        return self._known[starts]

    def _upstream(self, expr: Expr) -> str | None:
        """The one upstream gradient of a cotangent: it is a factor and stays outside."""
        used = sorted(names(expr) & self._sample.upstream)
        is_factor = len(used) == 1 and is_linear(expr, self._sample.upstream)
        return used[0] if is_factor else None

    def _factor(self, expr: Expr, upstream: str | None) -> Expr:
        if upstream is None:
            return tidy(expr)
        if upstream not in names(expr) or not is_linear(expr, self._sample.upstream):
            return Const(Fraction(0))
        return tidy(coefficient(expr, upstream, self._sample.upstream))

    def _facts(self, classes: Classes, rows: list[Any]) -> Iterator[tuple[Expr, Fact]]:
        """What is true of a class at all points."""
        exprs = representatives(classes)
        for expr, truth in zip(exprs, _truths(exprs, rows), strict=True):
            if expr is not None and truth is not None and not isinstance(expr, Const):
                yield from ((expr, fact) for fact in wanted() if _is_true(fact, truth))


_COMPARES = {
    "gt": np.greater,
    "ge": np.greater_equal,
    "lt": np.less,
    "le": np.less_equal,
    "ne": np.not_equal,
}


def _is_true(fact: Fact, truth: Any) -> bool:
    op, number = fact
    known = truth[~np.isnan(truth)]
    compare = _COMPARES[op]
    return len(known) > 0 and bool(compare(known, float(number)).all())


def _truths(exprs: tuple[Expr | None, ...], rows: list[Any]) -> list[Any]:
    """Column by column; None for what has no expression."""
    some = [expr for expr in exprs if expr is not None]
    table = np.array(together(some, rows), dtype=np.float64).T
    columns = iter(table)
    return [None if expr is None else next(columns) for expr in exprs]


def _is_suitable(expr: Expr) -> bool:
    if size(expr) > _LARGEST or isinstance(expr, Const):
        return False
    return not any(map(_is_foreign, nodes(expr)))


def _is_foreign(node: Expr) -> bool:
    """What the rows do not know. Polynomials have been fitted, and stay."""
    match node:
        case Call() | Reduce():
            return True
        case Ref(indices=indices):
            return bool(indices)
        case Apply(op=op):
            return op not in known_operators()
        case _:
            return False


def _in_order(expr: Expr) -> Expr:
    """Constants first, and what every reader would fold."""
    return tidy(transform(tidy(expr), _ordered))


def _ordered(node: Expr) -> Expr:
    match node:
        case Apply(op="mul", args=(a, Const() as b)) if not isinstance(a, Const):
            return Apply("mul", (b, a))
        case Apply(op="mul", args=(a, b)) if a == b:
            return Apply("square", (a,))
        case _:
            return node
