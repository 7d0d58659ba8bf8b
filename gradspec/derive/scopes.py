"""Bound indices: free indices, renaming without capture, inlining of locals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count

from gradspec.ir.expr import Apply, Bound, Expr, Idx, Key, Reduce, Ref, Size, const
from gradspec.ir.tidy import fold
from gradspec.ir.walk import children, nodes, transform, with_children

Axis = str | int

AT = "%at"
"""``index == place`` of a reference that is taken: the index is in range, so a sum over
the place has one term. It becomes ``eq`` in what is derived in the end."""

_LETTERS = "jlkipqrstuvw"


@dataclass(frozen=True, slots=True)
class Value:
    """``name[indices] = expr``: an output, a local, or a reduction given a name."""

    name: str
    indices: tuple[str, ...]
    axes: tuple[Axis, ...]
    expr: Expr


class Fresh:
    """Index names that no rule can contain, never twice the same from one source.

    Names from two sources meet in one expression (free indices from the one, bound ones
    from the other): such sources have marks of their own.
    """

    def __init__(self, mark: str = "%") -> None:
        self._mark, self._numbers = mark, count()

    def __call__(self) -> str:
        return f"{self._mark}{next(self._numbers)}"

    def bounds(self, bounds: tuple[Bound, ...]) -> tuple[Bound, ...]:
        return tuple(Bound(self(), b.axis) for b in bounds)


def extent(axis: Axis) -> Expr:
    """The size of an axis as a number."""
    return Size(axis) if isinstance(axis, str) else const(axis)


def uses(expr: Expr, bounds: Iterable[Bound]) -> bool:
    """True if an index of ``bounds`` is free in the expression."""
    return any(b.index in expr.free for b in bounds)


def tied(condition: Expr, bounds: tuple[Bound, ...]) -> tuple[Bound, Expr] | None:
    """The summed index that stands where a reference points, and where that is."""
    match condition:
        case Apply(op=op, args=(index, Idx(name=name))) if op == AT:
            for bound in bounds:
                if bound.index == name and name not in index.free:
                    return bound, index
    return None


def connected_groups(
    bounds: tuple[Bound, ...], parts: Iterable[Expr]
) -> list[tuple[Bound, ...]]:
    """The bounds in groups that no factor connects: these are summed apart."""
    groups: list[tuple[Bound, ...]] = [(bound,) for bound in bounds]
    for part in parts:
        touched = [group for group in groups if uses(part, group)]
        if len(touched) > 1:
            merged = tuple(b for b in bounds if any(b in g for g in touched))
            groups = [merged if g is touched[0] else g for g in groups]
            groups = [g for g in groups if g == merged or g not in touched]
    return groups


def replace_indices(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """Free indices replaced. Bound ones have names of their own everywhere."""
    if values.keys().isdisjoint(expr.free):
        return expr
    done: dict[Key, Expr] = {}
    for node in nodes(expr):
        if values.keys().isdisjoint(node.free):
            done[node.key] = node
        elif isinstance(node, Idx):
            done[node.key] = values[node.name]
        else:
            parts = tuple([done[child.key] for child in node.below])
            done[node.key] = fold(with_children(node, parts))
    return done[expr.key]


def refresh(expr: Expr, values: Mapping[str, Expr], fresh: Fresh) -> Expr:
    """The expression with free indices replaced and fresh names for bound ones."""
    match expr:
        case Idx(name=name):
            return values.get(name, expr)
        case Reduce(op=op, bounds=bounds, body=body, where=where):
            new = fresh.bounds(bounds)
            inner = dict(values)
            for old, renamed in zip(bounds, new, strict=True):
                inner[old.index] = Idx(renamed.index)
            test = None if where is None else refresh(where, inner, fresh)
            made = refresh(body, inner, fresh)
            return Reduce(op, new, made, test, span=expr.span)
        case _:
            parts = tuple(refresh(c, values, fresh) for c in expr.below)
            return with_children(expr, parts)


def inline_values(expr: Expr, values: Mapping[str, Value], fresh: Fresh) -> Expr:
    """``expr`` with the named values in place of their names, all the way down."""
    done: dict[Key, Expr] = {}
    for node in nodes(expr):
        made = with_children(node, tuple([done[part.key] for part in node.below]))
        if isinstance(made, Ref) and made.name in values:
            value = values[made.name]
            at = dict(zip(value.indices, made.indices, strict=True))
            made = inline_values(refresh(value.expr, at, fresh), values, fresh)
        done[node.key] = made
    return done[expr.key]


def shorten_names(expr: Expr, taken: frozenset[str]) -> Expr:
    """Bound indices with short names: letters that are nothing else where they
    stand."""
    match expr:
        case Reduce(op=op, bounds=bounds, body=body, where=where):
            names = _short(taken)
            new = tuple(Bound(next(names), b.axis) for b in bounds)
            pairs = zip(bounds, new, strict=True)
            values: dict[str, Expr] = {old.index: Idx(b.index) for old, b in pairs}
            inner = taken | {b.index for b in new}
            test = (
                None
                if where is None
                else shorten_names(replace_indices(where, values), inner)
            )
            return Reduce(
                op, new, shorten_names(replace_indices(body, values), inner), test
            )
        case _:
            parts = tuple(shorten_names(child, taken) for child in expr.below)
            return with_children(expr, parts)


def _short(taken: frozenset[str]) -> Iterator[str]:
    for number in count():
        for letter in _LETTERS:
            name = f"{letter}{number or ''}"
            if name not in taken:
                yield name


def rename_references(expr: Expr, to: Mapping[str, str]) -> Expr:
    """The expression with other names for what it refers to."""

    def visit(node: Expr) -> Expr:
        if isinstance(node, Ref) and node.name in to:
            return Ref(to[node.name], node.indices)
        return node

    return transform(expr, visit)


def unify(
    pattern: Expr,
    expr: Expr,
    variables: frozenset[str],
    known: Mapping[str, Expr] | None = None,
) -> Mapping[str, Expr] | None:
    """The values of the index ``variables``, those ``known`` among them, if ``expr`` is
    an instance of ``pattern``, up to the names of bound indices.
    """
    found = dict(known or {})
    return found if _is_instance(pattern, expr, {}, variables, found) else None


def _is_instance(
    a: Expr,
    b: Expr,
    bound: Mapping[str, str],
    variables: frozenset[str],
    found: dict[str, Expr],
) -> bool:
    match (a, b):
        case (Idx(), Idx()) if a.name in bound or b.name in bound.values():
            return bound.get(a.name) == b.name
        case (Idx(), _) if a.name in variables:
            is_free = set(bound.values()).isdisjoint(b.free)
            return is_free and found.setdefault(a.name, b) == b
        case (Reduce(), Reduce()):
            one, other = ([x.axis for x in node.bounds] for node in (a, b))
            if a.op != b.op or one != other:
                return False
            both = zip(a.bounds, b.bounds, strict=True)
            bound = {**bound, **{x.index: y.index for x, y in both}}
    parts = children(b)
    if len(children(a)) != len(parts):
        return False
    if not isinstance(a, Reduce) and with_children(a, parts) != b:
        return False
    pairs = zip(children(a), parts, strict=True)
    return all(_is_instance(x, y, bound, variables, found) for x, y in pairs)
