"""Places: values of one variable at which surfaces are met, or several variables
coincide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice

from gradspec.ir.expr import Expr, Ref
from gradspec.ir.products import conjuncts
from gradspec.symbolic.borders.bounds import bounds
from gradspec.symbolic.borders.roots import (
    Root,
    coincidences,
    exactly,
    is_root,
    is_solvable,
    isolate,
    solve,
)
from gradspec.symbolic.borders.surfaces import Origin, Surface
from gradspec.symbolic.compare import point_text

_MOST_COINCIDENCES = 24
_HAIR = Fraction(1, 2**300)


@dataclass(frozen=True, slots=True)
class Place:
    """A value of one input where surfaces are met, the other inputs as in ``point``;
    or where they have such values that ``is_coincidence``.
    """

    input: str
    root: Root
    point: Mapping[str, Fraction]
    surfaces: tuple[Surface, ...]
    is_coincidence: bool = False

    @property
    def where(self) -> str:
        """``x = threshold``; one surface of several."""
        more = ", …" if self.root.more else ""
        return f"{self.input} = {self.root.text}{more}"


def ends_of(conditions: Iterable[Expr]) -> Iterator[Surface]:
    """The ends of the domain that conditions bound."""
    for condition in conditions:
        for part in conjuncts(condition):
            for bound in bounds(part):
                if bound.op != "eq":
                    yield Surface(Ref(bound.variable), bound.value, Origin.END)


def places_along(
    name: str, met: tuple[Surface, ...], base: Mapping[str, Fraction], searched: int
) -> Iterator[Place]:
    """The places of surfaces along a variable; roots of the first so many surfaces are
    searched for where they cannot be solved."""
    all_roots: list[tuple[Root, Surface]] = []
    for number, surface in enumerate(met):
        roots = solve(surface, name, base)
        if number < searched and not is_solvable(surface, name):
            exact = {root.value for root in roots}
            more = isolate(surface, name, base)
            roots = (*roots, *(r for r in more if r.value not in exact))
        all_roots += ((root, surface) for root in roots)
    found: dict[Fraction, list[tuple[Root, Surface]]] = {}
    for root, surface in sorted(all_roots, key=lambda pair: not pair[0].exact):
        found.setdefault(_known_root(found, root), []).append((root, surface))
    for value, met_here in sorted(found.items(), key=lambda pair: pair[0]):
        root = min((root for root, _ in met_here), key=_plainness)
        point = {**base, name: value}
        on = tuple(s for r, s in met_here if _is_met(s, point, root))
        if on:
            yield Place(name, root, point, on)


def _known_root(found: Iterable[Fraction], root: Root) -> Fraction:
    """The known exact root that an isolated one approximates, else its own value."""
    if root.exact:
        return root.value
    near = (value for value in found if abs(value - root.value) < _HAIR)
    return next(near, root.value)


def _plainness(root: Root) -> tuple[bool, bool, int]:
    """A sort key: names before numbers, and short expressions before long ones."""
    has_name = any(letter.isalpha() for letter in root.text)
    return not root.exact, not has_name, len(root.text)


def _is_met(surface: Surface, point: Mapping[str, Fraction], root: Root) -> bool:
    """True if the complete condition of a kink holds at this root."""
    if surface.only is None or not root.exact:
        return True
    return exactly(surface.only, point) is True


def coincident_places(
    name: str,
    met: tuple[Surface, ...],
    bases: Iterable[Mapping[str, Fraction]],
    variables: tuple[str, ...],
    movable: tuple[str, ...],
) -> Iterator[Place]:
    """The places in some variables at which several that are movable coincide, with the
    surfaces that meet there; ``name`` is the one that is said to be there."""
    found: dict[tuple[Fraction, ...], None] = {}
    for base in bases if len(movable) > 1 else ():
        for point in coincidences(base, movable, met):
            found[tuple(point[n] for n in variables)] = None
    for values in islice(found, _MOST_COINCIDENCES):
        point = dict(zip(variables, values, strict=True))
        root = Root(point[name], point_text(point, (name,)).partition(" = ")[2])
        on = tuple(s for s in met if is_root(s, point) and _is_met(s, point, root))
        if len(frozenset[str]().union(*(s.names for s in on))) > 1:
            yield Place(name, root, point, on, is_coincidence=True)
