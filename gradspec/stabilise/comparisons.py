"""Values that both passes compare, each a local of its own while evaluations are selected.

The gradient of ``max(f(x[j]) for j)`` goes where ``f(x[j])`` equals the maximum: with
two evaluations of ``f`` it would often be 0. So what the forward chooses among and the
backward compares gets a name, is settled once, and is put back in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from gradspec.derive.scopes import unify
from gradspec.ir.expr import Apply, Expr, Idx, Reduce, Ref
from gradspec.ir.rule import Complete, Definition, Role, Rule
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import children, names, nodes, with_children
from gradspec.primitives.lookup import primitive, rows
from gradspec.stabilise.names import Scope, inline_lets, map_values, weight

_COMPARISONS = frozenset(("lt", "le", "gt", "ge", "eq", "ne"))
_CHOICES = frozenset(
    row.name for row in rows() if row.is_piecewise and not row.symmetry
)
_LARGEST = (
    600  # nodes of a value with its locals put in; a larger one keeps their names
)

_Axes: TypeAlias = "dict[str, str | int]"


def with_comparands(rule: Complete) -> tuple[Complete, tuple[str, ...]]:
    """The rule with a local for each value that both passes compare; their names."""
    values = {let.name: let for let in rule.forward}
    entries = [e for e in rule.backward if not e.is_override]
    behind = [e.value for e in (*rule.backward_locals, *entries)]
    sides = dict.fromkeys(side for value in behind for side in _comparands(value))
    compared = [*dict.fromkeys(_whole(side, values) for side in sides)]
    floats = frozenset(rule.real_inputs)
    made: list[Definition] = []
    forward: list[Definition] = []

    def name_comparand(owner: str, side: Expr, axes: _Axes) -> Expr:
        whole, free = _whole(side, values), Scope(side.free)
        is_shared = any(unify(whole, other, free) is not None for other in compared)
        if not is_shared or not _is_rounded(whole, floats):
            return side
        known = _reference(whole, made, values)
        if known is None:
            at = tuple(axes[index] for index in side.free)
            name = f"{owner}'{len(made)}"
            made.append(Definition(name, Role.LOCAL, side, side.free, at))
            forward.append(made[-1])
            known = Ref(made[-1].name, tuple(map(Idx, side.free)))
        return known

    for let in rule.forward:
        axes = dict(zip(let.indices, let.axes, strict=True))
        value = _name_comparands(let.value, axes, partial(name_comparand, let.name))
        forward.append(replace(let, value=value))
    hidden = tuple(let.name for let in made)
    others = (d for d in rule.definitions if not d.is_forward)
    exacts = *rule.exacts, *hidden
    named_rule = replace(rule, definitions=(*forward, *others), exacts=exacts)
    backward = map_values(
        named_rule, lambda value: with_names(value, named_rule, hidden)
    )
    return backward.redefine(*forward), hidden


def with_names(expr: Expr, rule: Rule, hidden: tuple[str, ...]) -> Expr:
    """An expression of the backward pass with these locals in its comparisons."""
    values = {let.name: let for let in rule.forward}
    lets = [values[name] for name in hidden]

    def name_side(side: Expr, axes: _Axes) -> Expr:
        return _reference(_whole(side, values), lets, values) or side

    return _name_comparands(expr, {}, name_side) if lets else expr


def without_names(
    rule: Complete, hidden: tuple[str, ...], exacts: tuple[str, ...]
) -> Complete:
    """The rule with these locals put in the places of their names."""
    values = {let.name: let for let in rule.forward if let.name in hidden}
    done = map_values(rule, lambda value: inline_lets(value, values, Scope()))
    kept = tuple(d for d in done.definitions if d.name not in hidden)
    return replace(done, definitions=kept, exacts=exacts)


def _comparands(expr: Expr) -> Iterator[Expr]:
    for node in nodes(expr):
        if isinstance(node, Apply) and node.op in _COMPARISONS:
            yield from node.args


def _name_comparands(
    expr: Expr, axes: _Axes, name: Callable[[Expr, _Axes], Expr]
) -> Expr:
    """An expression with names for what it compares or chooses among. (A sum that a
    root is taken of has evaluations that look through a bound on it.)
    """
    if isinstance(expr, Reduce):
        axes = {**axes, **{b.index: b.axis for b in expr.bounds}}
    parts = [_name_comparands(child, axes, name) for child in children(expr)]
    match expr:
        case Reduce(op="max" | "min" | "peak"):
            parts[0] = name(parts[0], axes)
        case Apply(op=op) if op in _COMPARISONS | _CHOICES:
            parts = [p if isinstance(p, Reduce) else name(p, axes) for p in parts]
    return with_children(expr, tuple(parts))


def _reference(
    whole: Expr, lets: list[Definition], values: Mapping[str, Definition]
) -> Expr | None:
    """The reference to one of the lets that has this value, locals put in."""
    for let in lets:
        found = unify(_whole(let.value, values), whole, Scope(let.indices))
        if found is not None and len(found) == len(let.indices):
            return Ref(let.name, tuple(found[index] for index in let.indices))
    return None


def _whole(expr: Expr, values: Mapping[str, Definition]) -> Expr:
    if weight(expr, values) > _LARGEST:
        return expr
    return tidy(inline_lets(expr, values, Scope()))


def _is_rounded(value: Expr, floats: frozenset[str]) -> bool:
    """True if a floating value is computed, and not just picked."""
    ops = (node.op for node in nodes(value) if isinstance(node, Apply))
    is_computed = any(not primitive(op).is_exact and op != "neg" for op in ops)
    return is_computed and not floats.isdisjoint(names(value))
