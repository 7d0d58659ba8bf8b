"""Indices of reductions: substitution of expressions, equality up to index names.

An index is bound at most once on the way from the root to any node
(`tests/ir/well_formed.py`). So a substituted expression has its bound indices renamed
where they would be bound twice or would capture an index that is to stay free.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count

from gradspec.ir.expr import Bound, Expr, Idx, Reduce, Ref
from gradspec.ir.rule import Let
from gradspec.ir.walk import children, names, nodes, with_children

Scope = frozenset[str]
"""Names that a new bound index must not have: indices in scope, variables."""

_LETTERS = "jlkiqrstuvw"


def place(expr: Expr, values: Mapping[str, Expr], scope: Scope) -> Expr:
    """``expr`` with free indices replaced, to be placed where ``scope`` is in force."""
    match expr:
        case Idx(name=name):
            return values.get(name, expr)
        case Reduce(op=op, bounds=bounds, body=body, where=where):
            taken = scope.union(*(value.free for value in values.values()))
            names = dict(zip(_indices(bounds), _new(bounds, taken, body), strict=True))
            inner = {k: v for k, v in values.items() if k not in names}
            inner |= {k: Idx(v) for k, v in names.items() if k != v}
            under = scope.union(names.values())
            renamed = tuple(Bound(names[b.index], b.axis) for b in bounds)
            test = None if where is None else place(where, inner, under)
            return Reduce(op, renamed, place(body, inner, under), test, span=expr.span)
        case _:
            parts = tuple(place(child, values, scope) for child in children(expr))
            return with_children(expr, parts)


def _indices(bounds: tuple[Bound, ...]) -> tuple[str, ...]:
    return tuple(b.index for b in bounds)


def _new(bounds: tuple[Bound, ...], taken: Scope, body: Expr) -> Iterator[str]:
    """A name for each bound index: its own unless that is taken."""
    used = taken | set(_indices(bounds)) | {*body.free}
    for bound in bounds:
        name = bound.index
        if name in taken:
            name = next(n for n in _candidates() if n not in used)
            used |= {name}
        yield name


def _candidates() -> Iterator[str]:
    yield from _LETTERS
    for number in count(1):
        yield from (f"{letter}{number}" for letter in _LETTERS)


def inlined(expr: Expr, lets: Mapping[str, Let], scope: Scope) -> Expr:
    """``expr`` with lets inlined, recursively."""
    match expr:
        case Ref(name=name, indices=indices) if name in lets:
            let = lets[name]
            value = inlined(let.value, lets, Scope(let.indices))
            at = (inlined(index, lets, scope) for index in indices)
            return place(value, dict(zip(let.indices, at, strict=True)), scope)
        case Reduce(op=op, bounds=bounds, body=body, where=where):
            under = scope.union(_indices(bounds))
            test = None if where is None else inlined(where, lets, under)
            return Reduce(op, bounds, inlined(body, lets, under), test, span=expr.span)
        case _:
            parts = tuple(inlined(child, lets, scope) for child in children(expr))
            return with_children(expr, parts)


def weight(expr: Expr, lets: Mapping[str, Let]) -> int:
    """The number of nodes of :func:`inlined`'s result, without building it (it may be
    large).
    """
    known: dict[str, int] = {}
    for let in lets.values():
        known[let.name] = _weight(let.value, known)
    return _weight(expr, known)


def _weight(expr: Expr, known: Mapping[str, int]) -> int:
    found: dict[Expr, int] = {}
    for node in nodes(expr):
        own = known.get(node.name, 1) if isinstance(node, Ref) else 1
        found[node] = own + sum(found[child] for child in children(node))
    return found[expr]


def is_same(left: Expr, right: Expr) -> bool:
    """True if equal up to the names of bound indices."""
    return unify(left, right, Scope()) is not None


def unify(pattern: Expr, expr: Expr, variables: Scope) -> Mapping[str, Expr] | None:
    """The values of the index ``variables`` if ``expr`` is an instance of ``pattern``,
    up to the names of bound indices.
    """
    found: dict[str, Expr] = {}
    return found if _Unifier(variables, found).run(pattern, expr, {}) else None


class _Unifier:
    def __init__(self, variables: Scope, found: dict[str, Expr]) -> None:
        self._variables = variables
        self._found = found

    def run(self, a: Expr, b: Expr, bound: Mapping[str, str]) -> bool:
        match (a, b):
            case (Idx(name=name), _) if name in self._variables and name not in bound:
                if not set(bound.values()).isdisjoint(b.free):
                    return False
                return self._found.setdefault(name, b) == b
            case (Idx(name=name), Idx(name=other)):
                return bound.get(name, name) == other and (
                    name in bound or other not in bound.values()
                )
            case (Reduce(), Reduce()):
                return self._reduces(a, b, bound)
            case _:
                parts = children(b)
                is_alike = len(children(a)) == len(parts)
                is_alike = is_alike and with_children(a, parts) == b
                return is_alike and self._all(children(a), parts, bound)

    def _reduces(self, a: Reduce, b: Reduce, bound: Mapping[str, str]) -> bool:
        axes, others = ([x.axis for x in node.bounds] for node in (a, b))
        if a.op != b.op or axes != others or (a.where is None) != (b.where is None):
            return False
        both = zip(_indices(a.bounds), _indices(b.bounds), strict=True)
        return self._all(children(a), children(b), {**bound, **dict(both)})

    def _all(
        self, a: tuple[Expr, ...], b: tuple[Expr, ...], bound: Mapping[str, str]
    ) -> bool:
        return all(self.run(x, y, bound) for x, y in zip(a, b, strict=True))


def named(expr: Expr, lets: tuple[Let, ...]) -> Expr:
    """``expr`` with the names of lets in place of their values. A value that is no more
    than an operation on a constant is not worth a name.
    """
    worth = tuple(x for x in lets if children(x.value) and names(x.value))
    return _named(expr, worth) if worth else expr


def _named(expr: Expr, lets: tuple[Let, ...]) -> Expr:
    for let in lets:
        if type(let.value) is type(expr):
            found = unify(let.value, expr, Scope(let.indices))
            if found is not None and len(found) == len(let.indices):
                at = tuple(found[index] for index in let.indices)
                return Ref(let.name, at)
    parts = tuple(_named(child, lets) for child in children(expr))
    return with_children(expr, parts)
