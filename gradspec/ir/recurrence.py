"""Recurrences: values that are defined by themselves, or by one another, at earlier places.

``h[t] = a[t] * h[t - 1] + x[t]`` has one solution if every use of ``h`` in it is at an
earlier place of one order: an axis forwards or backwards, or two axes of which the first
decides (``r[i - 1, j]`` and ``r[i, j - 1]``). Several values run together: at one place
they are computed in the order in which they use one another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations, product

from gradspec.ir.elements import Index, places
from gradspec.ir.expr import (
    ONE,
    ZERO,
    Apply,
    Const,
    Expr,
    Idx,
    Reduce,
    Ref,
    Select,
    Size,
)
from gradspec.ir.products import Terms, add_multiple, conjuncts, linear
from gradspec.ir.rule import Assume, Definition, Rule
from gradspec.ir.tidy import fold
from gradspec.ir.walk import children, memo, names, nodes, transform

"""A sum of multiples of indices, sizes and statics; the number stands under None."""


@dataclass(frozen=True, slots=True)
class Recurrence:
    """``values`` in the order of one step. ``axes`` are the places of the ordered axes
    among the indices of each, ``signs`` says which of them run backwards (-1).
    """

    values: tuple[Definition, ...]
    axes: tuple[tuple[int, ...], ...]
    signs: tuple[int, ...]

    @property
    def names(self) -> frozenset[str]:
        return frozenset(let.name for let in self.values)

    def elements(self, sizes: Mapping[str, int]) -> list[tuple[Definition, Index]]:
        """Every element of every value, each after those that it uses."""
        found = []
        for place, (let, axes) in enumerate(zip(self.values, self.axes, strict=True)):
            for index in places(let.axes, sizes):
                pairs = zip(axes, self.signs, strict=True)
                time = tuple(sign * index[axis] for axis, sign in pairs)
                found.append((time, place, index, let))
        found.sort(key=lambda one: one[:3])
        return [(let, index) for _, _, index, let in found]


@dataclass(frozen=True, slots=True)
class System:
    """``values`` that equations define together: each is equal to its value, in which
    any element of all of them may stand.
    """

    values: tuple[Definition, ...]

    @property
    def names(self) -> frozenset[str]:
        return frozenset(let.name for let in self.values)


class NotEarlier(Exception):
    """``use`` in the definition of ``let`` is at an earlier place in no order."""

    def __init__(self, let: Definition, use: Ref) -> None:
        super().__init__(f"{use.name} in {let.name}")
        self.let, self.use = let, use


def states(rule: Rule) -> frozenset[str]:
    """The names of a rule that are defined by themselves or by one another."""
    return frozenset(
        (*state_names(rule, rule.forward), *state_names(rule, rule.backward_locals))
    )


def state_names(rule: Rule, lets: tuple[Definition, ...]) -> tuple[str, ...]:
    """The names of ``lets`` that are defined by themselves or by one another."""
    parts = components(lets, rule.assumes)
    return tuple(
        n.name for p in parts if not isinstance(p, Definition) for n in p.values
    )


def recurrences(rule: Rule, lets: tuple[Definition, ...]) -> tuple[Recurrence, ...]:
    """The recurrences among ``lets``."""
    parts = components(lets, rule.assumes)
    return tuple(part for part in parts if isinstance(part, Recurrence))


def systems(rule: Rule, lets: tuple[Definition, ...]) -> tuple[System, ...]:
    """The systems of equations among ``lets``."""
    parts = components(lets, rule.assumes)
    return tuple(part for part in parts if isinstance(part, System))


@memo(64)
def components(
    lets: tuple[Definition, ...], assumes: tuple[Assume, ...]
) -> tuple[Definition | Recurrence | System, ...]:
    """The values, those that need one another as one, each after what it uses. Raises
    :class:`NotEarlier`."""
    known = {let.name: let for let in lets}
    needs = {let.name: [n for n in known if n in names(let.value)] for let in lets}
    reach = {name: _reachable(name, needs) for name in known}
    found: dict[str, Definition | Recurrence | System] = {}
    done: set[str] = set()

    def visit(let: Definition) -> None:
        if let.name in done:
            return
        own = [n for n in known if n in reach[let.name] and let.name in reach[n]]
        group = own or [let.name]
        done.update(group)
        for name in group:
            for need in needs[name]:
                visit(known[need])
        lets = tuple(known[name] for name in group)
        if any(one.is_equation for one in lets) and own:
            found[group[0]] = System(lets)
        else:
            found[group[0]] = _order_values(lets, assumes) if own else let

    for let in lets:
        visit(let)
    return tuple(found.values())


def in_step_order(
    lets: tuple[Definition, ...], assumes: tuple[Assume, ...]
) -> tuple[Definition, ...]:
    """The values as they are written; those that need one another stand together, after
    what they use. Raises :class:`NotEarlier`."""
    parts = components(lets, assumes)
    if all(isinstance(part, Definition) for part in parts):
        return lets
    groups = (
        (part,) if isinstance(part, Definition) else part.values for part in parts
    )
    return tuple(let for group in groups for let in group)


def _reachable(name: str, needs: Mapping[str, list[str]]) -> frozenset[str]:
    found: dict[str, None] = {}
    todo = [*needs[name]]
    while todo:
        one = todo.pop()
        if one not in found:
            found[one] = None
            todo += needs[one]
    return frozenset(found)


# --- the order ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Use:
    """A use of one value in the definition of another, and what holds there."""

    let: Definition
    ref: Ref
    facts: tuple[Terms, ...]


def _order_values(
    lets: tuple[Definition, ...], assumes: tuple[Assume, ...]
) -> Recurrence:
    known = {let.name for let in lets}
    least = dict(_lower_ends(assumes))
    uses = [
        _Use(let, ref, facts)
        for let in lets
        for ref, facts in _references(let.value)
        if ref.name in known
    ]
    best: tuple[int, _Use] = (-1, uses[0])
    for axes in _choices(lets):
        for signs in product((1, -1), repeat=len(next(iter(axes.values())))):
            found, failed = _steps(uses, axes, signs, least)
            order = None if failed else _step_order(lets, found)
            if order is not None:
                return Recurrence(order, tuple(axes[n.name] for n in order), signs)
            held = uses.index(failed) if failed else len(uses)
            best = max(best, (held, failed or uses[-1]), key=lambda one: one[0])
    raise NotEarlier(best[1].let, best[1].ref)


def _choices(lets: tuple[Definition, ...]) -> Iterator[dict[str, tuple[int, ...]]]:
    """Places of one axis, then of two, that every value has."""
    shared = dict.fromkeys(lets[0].axes)
    for let in lets[1:]:
        shared = {axis: None for axis in shared if axis in let.axes}
    for length in (1, 2):
        for chosen in permutations(lets[0].axes, length):
            if {*chosen} <= shared.keys():
                pools = [_places_of(chosen, let.axes) for let in lets]
                for picked in product(*pools):
                    yield {n.name: p for n, p in zip(lets, picked, strict=True)}


def _places_of(
    chosen: tuple[str | int, ...], axes: tuple[str | int, ...]
) -> list[tuple[int, ...]]:
    every = permutations(range(len(axes)), len(chosen))
    return [p for p in every if tuple(axes[k] for k in p) == chosen]


def _steps(
    uses: list[_Use],
    axes: Mapping[str, tuple[int, ...]],
    signs: tuple[int, ...],
    least: Mapping[Expr, Fraction],
) -> tuple[list[tuple[str, str]], _Use | None]:
    """Pairs of values of which the first uses the second at its own place; and a use
    that is neither there nor earlier."""
    found = []
    for use in uses:
        pairs = zip(axes[use.let.name], axes[use.ref.name], signs, strict=True)
        for own, other, sign in pairs:
            here = _linear(Idx(use.let.indices[own]))
            there = _linear(use.ref.indices[other])
            ahead = None if there is None or here is None else _minus(there, here, sign)
            if ahead is None or not _is_at_most(ahead, 0, use.facts, least):
                return [], use
            if _is_at_most(ahead, -1, use.facts, least):
                break
            if ahead:
                return [], use
        else:
            found.append((use.let.name, use.ref.name))
    return found, None


def _step_order(
    lets: tuple[Definition, ...], needs: list[tuple[str, str]]
) -> tuple[Definition, ...] | None:
    """The values so that each comes after what it uses at its own place; None if two
    need each other there."""
    left, done = list(lets), list[Definition]()
    while left:
        waiting = {let.name for let in left}
        free = [
            n for n in left if not any(a == n.name and b in waiting for a, b in needs)
        ]
        if not free:
            return None
        done += free
        left = [let for let in left if let not in free]
    return tuple(done)


def _references(expr: Expr) -> Iterator[tuple[Ref, tuple[Terms, ...]]]:
    """The references in an expression, each with what is at most -1 where it counts."""
    todo: list[tuple[Expr, tuple[Terms, ...]]] = [(expr, ())]
    seen: set[tuple[Expr, int]] = set()
    while todo:
        node, facts = todo.pop()
        if (node, len(facts)) in seen and not facts:
            continue
        seen.add((node, len(facts)))
        if isinstance(node, Ref):
            yield node, facts
        for position, child in enumerate(children(node)):
            inner = facts
            if isinstance(node, Select) and position == 1:
                inner = (*facts, *_facts(node.condition))
            if isinstance(node, Reduce) and node.where is not None and position == 0:
                inner = (*facts, *_facts(node.where))
            todo.append((child, inner))


def _facts(condition: Expr) -> Iterator[Terms]:
    """Sums that are at most -1 where the condition holds."""
    match condition:
        case Apply(op="and", args=args):
            for arg in args:
                yield from _facts(arg)
        case Apply(op="lt" | "le" | "gt" | "ge" as op, args=(left, right)):
            below, above = (left, right) if op in ("lt", "le") else (right, left)
            low, high = _linear(below), _linear(above)
            if low is not None and high is not None:
                made = _minus(low, high, 1)
                if op in ("le", "ge"):
                    made[ONE] = made.get(ONE, Fraction(0)) - 1
                yield made
        case _:
            return


def _lower_ends(assumes: Iterable[Assume]) -> Iterator[tuple[Expr, Fraction]]:
    """The least values of statics that are assumed: of ``k`` by ``assume k > 0``."""
    for assume in assumes:
        for fact in _facts(assume.condition):
            atoms = [atom for atom in fact if atom != ONE]
            if len(atoms) == 1 and fact[atoms[0]] < 0:
                limit = (fact.get(ONE, Fraction(0)) + 1) / -fact[atoms[0]]
                yield atoms[0], limit


# --- sums of indices ------------------------------------------------------------------


def _linear(expr: Expr) -> Terms | None:
    """An integer expression as a sum of multiples; None if it is none."""
    found = linear(expr)
    return found if all(map(_is_atom, found)) else None


def _is_atom(term: Expr) -> bool:
    is_static = isinstance(term, Ref) and not term.indices
    return term == ONE or is_static or isinstance(term, Idx | Size)


def _minus(left: Terms, right: Terms, sign: int) -> Terms:
    """``sign * (left - right)``."""
    return add_multiple({}, add_multiple(left, right, Fraction(-1)), Fraction(sign))


def _is_at_most(
    value: Terms,
    limit: int,
    facts: tuple[Terms, ...],
    least: Mapping[Expr, Fraction],
) -> bool:
    """True if the sum is at most ``limit``: by itself, or by one of the facts."""
    if _is_bounded(value, Fraction(limit), least):
        return True
    return any(
        _is_bounded(_minus(value, f, 1), Fraction(limit + 1), least) for f in facts
    )


def _is_bounded(value: Terms, limit: Fraction, least: Mapping[Expr, Fraction]) -> bool:
    """Indices and sizes are at least 0, statics at least what is assumed of them."""
    total = value.get(ONE, Fraction(0))
    for atom, factor in value.items():
        if atom == ONE:
            continue
        low = Fraction(0) if isinstance(atom, Idx | Size) else least.get(atom)
        if factor > 0 or low is None:
            return False
        total += factor * low
    return total <= limit


def with_plain_places(expr: Expr) -> Expr:
    """The expression with the simplest indices (``t`` for ``t + 1 - 1``), and without
    choices that all places decide (``t + 1 > 0``)."""

    def visit(node: Expr) -> Expr:
        match node:
            case Ref(name=name, indices=indices) if indices:
                return Ref(name, tuple(map(_plain_place, indices)), span=node.span)
            case Apply(op="lt" | "le" | "gt" | "ge" as op, args=(left, right)):
                below, above = (left, right) if op in ("lt", "le") else (right, left)
                holds = _is_below(below, above, strictly=op in ("lt", "gt"))
                pair = (ZERO, ONE) if holds else (ONE, ZERO)
                return node if holds is None else Apply("lt", pair)
            case Select(condition=condition, then=then, other=other):
                then = _known_in(then, condition, True)
                other = _known_in(other, condition, False)
                return fold(Select(condition, then, other, span=node.span))
            case Reduce(op=op, bounds=bounds, body=body, where=where) if (
                where is not None
            ):
                body = _known_in(body, where, True)
                return fold(Reduce(op, bounds, body, where, span=node.span))
            case _:
                return fold(node)

    return transform(expr, visit)


def _known_in(part: Expr, condition: Expr, holds: bool) -> Expr:
    """A part of an expression where a condition is known to hold, or not to."""
    facts = conjuncts(condition) if holds else (condition,)
    known = Apply("lt", (ZERO, ONE) if holds else (ONE, ZERO))
    inside = {*facts} & {*nodes(part)}

    def visit(node: Expr) -> Expr:
        return known if node in inside else fold(node)

    return transform(part, visit) if inside else part


def _is_below(left: Expr, right: Expr, strictly: bool) -> bool | None:
    """The truth of ``left < right`` (``<=``) for all indices and sizes, if it is one."""
    one, other = _linear(left), _linear(right)
    if one is None or other is None:
        return None
    ahead, limit = _minus(one, other, 1), Fraction(-1 if strictly else 0)
    if _is_bounded(ahead, limit, {}):
        return True
    return False if _is_bounded(_minus({}, ahead, 1), -limit - 1, {}) else None


def _plain_place(index: Expr) -> Expr:
    found = _linear(index)
    atoms = [atom for atom in found or () if atom != ONE]
    if found is None or len(atoms) != 1 or found[atoms[0]] != 1:
        return index
    offset = found.get(ONE, Fraction(0))
    if not offset:
        return atoms[0]
    return Apply("add" if offset > 0 else "sub", (atoms[0], Const(abs(offset))))
