"""Fractions gathered where a sine and the cosine of one angle are on a circle.

Like `gather.py`, with ``sin(u)**2 + cos(u)**2 = 1`` and ``tan(u) = sin(u) / cos(u)``. Which
of the two has squares then is the caller's choice, angle by angle: ``1 - sin(a)**2 -
cos(a)**2 * cos(b)**2`` is ``cos(a)**2 * sin(b)**2`` where it is ``cos(a)`` and ``sin(b)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

from gradspec.ir.expr import Apply, Expr
from gradspec.ir.tidy import fold
from gradspec.ir.walk import nodes, transform
from gradspec.symbolic.gather import Gather
from gradspec.symbolic.ring import Frac, TooLarge, Undefined

_ANGLED = ("sin", "cos", "tan")
_MOST = 3
"""Angles of which every choice is made."""


def choices(expr: Expr) -> Iterator[frozenset[Expr]]:
    """The angles whose cosines are to be written in their squares, none first; all or none
    of them where they are many."""
    angled = (n for n in nodes(expr) if isinstance(n, Apply) and n.op in _ANGLED)
    every = tuple(dict.fromkeys(node.args[0] for node in angled))
    counts = range(len(every) + 1) if len(every) <= _MOST else (0, len(every))
    for count in counts:
        yield from map(frozenset, combinations(every, count))


def gathered_on_circles(
    expr: Expr, cosines: frozenset[Expr] = frozenset(), known: Sequence[Expr] = ()
) -> Expr | None:
    """``expr`` as one factored fraction, in squares of sines, and of the cosines of some
    angles; None where it is too large for that. Sums in it that are one of the ``known`` are
    written as these."""
    work = _OnCircles(cosines)
    try:
        found = work.back(work.of(expr))
        return transform(found, work.names_of(known)) if known else found
    except (TooLarge, Undefined):
        return None


class _OnCircles(Gather):
    def __init__(self, cosines: frozenset[Expr]) -> None:
        super().__init__()
        self._cosines = cosines

    def _convert(self, node: Expr) -> Frac:
        match node:
            case Apply(op="sin" | "cos" as op, args=(angle,)):
                return self._pair(angle)[op]
            case Apply(op="tan", args=(angle,)):
                pair = self._pair(angle)
                return self.ring.div(pair["sin"], pair["cos"])
            case _:
                return super()._convert(node)

    def _pair(self, angle: Expr) -> dict[str, Frac]:
        order = ("cos", "sin") if angle in self._cosines else ("sin", "cos")
        both = {op: Apply(op, (angle,)) for op in order}  # the older has the squares
        pair = {op: self._kernel(("kernel", n), n) for op, n in both.items()}
        self.relate_squares(pair["sin"], pair["cos"], -1)
        return pair

    def names_of(self, known: Sequence[Expr]) -> Callable[[Expr], Expr]:
        """What writes a sum as the one of the ``known`` that it is."""
        keys = {self.of(form).key: form for form in known}

        def named(node: Expr) -> Expr:
            if not isinstance(node, Apply) or node.op not in ("add", "sub"):
                return node
            found = self.of(node)
            same = keys.get(found.key)
            if same is not None:
                return same
            opposite = keys.get(self.ring.neg(found).key)
            return node if opposite is None else fold(Apply("neg", (opposite,)))

        return named
