"""Factors at the same shifted positions, computed before they are shifted.

``sum(dy[k - j] * w[j] / y[k - j] for j)`` takes ``dy`` and ``y`` at positions that do not all
exist; what lies outside is 0, and 0 divided by 0 is NaN. So ``u[i] = dy[i] / y[i]`` is
computed where both exist, and ``u[k - j]`` is 0 outside. It is one window in place of two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce

from gradspec.ir import walk
from gradspec.ir.expr import ONE, Apply, Const, Expr, Idx, Reduce, Ref, Size

_Place = tuple[Expr, ...]
_PLAIN = frozenset(["add", "sub", "mul", "neg"])
"""Operations that are finite wherever their operands are."""


@dataclass(slots=True)
class Hoisted:
    """The expression with names for such factors, and these by name over the indices
    ``h0``, ``h1``, … of the axes in ``like``, an input or local of the same axes.
    """

    value: Expr
    factors: dict[str, tuple[Expr, tuple[str, ...], str]] = field(default_factory=dict)


def hoisted(value: Expr, ranks: Mapping[str, object]) -> Hoisted:
    """``value`` with such factors named; those alone whose values have equal ``ranks``
    (the sizes of their axes).
    """
    found = Hoisted(value)
    found.value = _Hoisting(ranks, found).visit(value)
    return found


class _Hoisting:
    def __init__(self, ranks: Mapping[str, object], found: Hoisted) -> None:
        self._ranks, self._found = ranks, found
        self._done: dict[Expr, Expr] = {}

    def visit(self, node: Expr) -> Expr:
        if node not in self._done:
            is_product = isinstance(node, Apply) and node.op in ("mul", "div", "neg")
            self._done[node] = self._product(node) if is_product else self._plain(node)
        return self._done[node]

    def _plain(self, node: Expr) -> Expr:
        children = tuple(map(self.visit, walk.children(node)))
        return walk.with_children(node, children)

    def _product(self, node: Expr) -> Expr:
        above, below, is_negative = _factors(node)
        places = [self._place(factor) for factor in (*above, *below)]
        risky = {
            place
            for place, factor in zip(places, (*above, *below), strict=True)
            if place and (factor in below or _is_risky(factor))
        }
        if not risky:
            return self._plain(node)
        count = len(above)
        tops: list[Expr] = []
        done: set[_Place] = set()
        for place, factor in zip(places[:count], above, strict=True):
            if place not in risky:
                tops.append(self.visit(factor))
            elif place not in done:
                done.add(place)
                tops.append(self._named(place, places, above, below))
        tops += [self._named(p, places, above, below) for p in risky - done]
        rest = [
            self.visit(factor)
            for place, factor in zip(places[count:], below, strict=True)
            if place not in risky
        ]
        value = reduce(lambda a, b: Apply("mul", (a, b)), tops)
        value = reduce(lambda a, b: Apply("div", (a, b)), rest, value)
        return Apply("neg", (value,)) if is_negative else value

    def _named(
        self,
        place: _Place,
        places: list[_Place],
        above: list[Expr],
        below: list[Expr],
    ) -> Expr:
        """The factors at one place, as a value of their own."""
        count = len(above)
        tops = [f for p, f in zip(places[:count], above, strict=True) if p == place]
        under = [f for p, f in zip(places[count:], below, strict=True) if p == place]
        value = reduce(lambda a, b: Apply("mul", (a, b)), tops) if tops else ONE
        value = reduce(lambda a, b: Apply("div", (a, b)), under, value)
        indices = tuple(f"h{k}" for k in range(len(place)))
        at = tuple(map(Idx, indices))

        def unshifted(node: Expr) -> Expr:
            return (
                Ref(node.name, at) if isinstance(node, Ref) and node.indices else node
            )

        like = next(
            n.name for n in walk.nodes(value) if isinstance(n, Ref) and n.indices
        )
        body = walk.transform(value, unshifted)
        known = {factor: name for name, (factor, *_) in self._found.factors.items()}
        name = known.get(body, f"factor@{len(self._found.factors)}")
        self._found.factors[name] = body, indices, like
        return Ref(name, place)

    def _place(self, factor: Expr) -> _Place:
        """The positions at which all that the factor is made of stands; () if there are
        several, or plain indices alone."""
        nodes = tuple(walk.nodes(factor))
        refs = [n for n in nodes if isinstance(n, Ref) and n.indices]
        places = {n.indices for n in refs}
        if len(places) != 1 or any(isinstance(n, Reduce) for n in nodes):
            return ()
        (place,) = places
        apart = walk.transform(factor, lambda n: ONE if n in refs else n)
        if any(isinstance(n, Idx | Size) for n in walk.nodes(apart)):
            return ()
        if all(isinstance(index, Idx | Const) for index in place):
            return ()
        ranks = {self._ranks.get(ref.name) for ref in refs}
        return place if len(ranks) == 1 and None not in ranks else ()


def _factors(node: Expr) -> tuple[list[Expr], list[Expr], bool]:
    """Numerators, denominators, and whether the product is negated."""
    match node:
        case Apply(op="neg", args=(arg,)):
            above, below, is_negative = _factors(arg)
            return above, below, not is_negative
        case Apply(op="mul", args=(a, b)):
            (one, under, first), (other, below, second) = _factors(a), _factors(b)
            return [*one, *other], [*under, *below], first != second
        case Apply(op="div", args=(a, b)):
            (one, under, first), (other, below, second) = _factors(a), _factors(b)
            return [*one, *below], [*under, *other], first != second
        case _:
            return [node], [], False


def _is_risky(factor: Expr) -> bool:
    """Whether it may be infinite where its operands are 0."""
    return any(isinstance(n, Apply) and n.op not in _PLAIN for n in walk.nodes(factor))
