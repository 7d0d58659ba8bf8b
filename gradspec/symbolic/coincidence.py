"""Points at which several things coincide: inputs that vanish together, differences that
are 0 all at once, inputs that are equal in pairs (two points of a plane given by their
coordinates, two boxes by their corners).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction

from gradspec.ir.expr import Apply
from gradspec.ir.walk import names, nodes
from gradspec.symbolic.breaks import Surface, solutions
from gradspec.symbolic.roots import exactly

Values = dict[str, Fraction]


def coincidences(
    point: Mapping[str, Fraction], movable: tuple[str, ...], met: Iterable[Surface]
) -> Iterator[Values]:
    """The point with inputs moved: equal in two groups, in pairs, in three groups, all;
    then of each surface all 0, and to where its differences are 0."""
    count = len(movable)
    groups = (
        [(k, k + step) for k in range(0, count - step, jump)][:most]
        for step, jump, most in (
            (count // 2, 1, count // 2),
            (1, 2, count),
            (count // 3, 1, count // 3),
        )
    )
    for equal in (*groups, [(0, k) for k in range(1, count)]):
        if equal:
            yield {**point, **{movable[b]: point[movable[a]] for a, b in equal}}
    for surface in met:
        used = names(surface.left) | names(surface.right)
        own = tuple(name for name in movable if name in used)
        yield {**point, **dict.fromkeys(own, Fraction(0))}
        yield _level(point, own, surface)


def _level(
    point: Mapping[str, Fraction], movable: tuple[str, ...], surface: Surface
) -> Values:
    """The point with each difference in the surface 0 for which an input is left that no
    earlier one uses."""
    made, fixed = dict(point), set[str]()
    for node in (n for side in (surface.left, surface.right) for n in nodes(side)):
        match node:
            case Apply(op="sub", args=(left, right)):
                pass
            case _:
                continue
        free = [n for n in movable if n in names(node) and n not in fixed]
        for name in reversed(free):
            values = (exactly(one, made) for one in solutions(left, right, name))
            exact = [value for value in values if isinstance(value, Fraction)]
            if exact:
                made[name] = exact[0]
                break
        fixed |= names(node)
    return made
