"""Walks over trees, those of the mathematics and those of arrays: children, rebuilding,
nodes. Of the mathematics also substitution, names, size, and closed forms of rules,
without locals and calls.

All are memoised by node within one call, so that shared sub-trees cost once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from operator import is_
from typing import Any, ParamSpec, TypeVar, cast

from gradspec.ir.expr import (
    ZERO,
    Apply,
    Call,
    Expr,
    Idx,
    Key,
    Numbered,
    Reduce,
    Ref,
    Select,
    reached_from,
)
from gradspec.ir.rule import Definition, Rule

P = ParamSpec("P")
T = TypeVar("T")
N = TypeVar("N", bound=Numbered)

_memos: list[Any] = []


def memo(maxsize: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Decorator that keeps results which hold nodes, and so places of a text. An equal
    node may stand elsewhere, so no rule is given what was kept for another
    (`forget`)."""

    def keep(function: Callable[P, T]) -> Callable[P, T]:
        kept: Any = lru_cache(maxsize)(function)
        _memos.append(kept)
        return cast("Callable[P, T]", kept)

    return keep


def forget() -> None:
    """Begin with another rule, as in a process that has seen none."""
    for kept in _memos:
        kept.cache_clear()


def children(node: N) -> tuple[N, ...]:
    """The direct sub-expressions (index terms included), left to right."""
    return node.below


def with_children(node: N, parts: tuple[N, ...]) -> N:
    """The node over other children; the node itself when nothing changed."""
    if all(map(is_, parts, node.below)):
        return node
    made: N = node.over(parts)
    return made


def transform(expr: N, visit: Callable[[N], N]) -> N:
    """Rebuild bottom-up: ``visit`` sees each node with its children already visited."""
    memo: dict[Key, N] = {}
    for node in nodes(expr):
        below = node.below
        if below:
            parts = tuple([memo[child.key] for child in below])
            memo[node.key] = visit(with_children(node, parts))
        else:
            memo[node.key] = visit(node)
    return memo[expr.key]


def substitute(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """Replace un-indexed references by name. The new expressions are not searched.

    Indexed references (``x[i]``) are left alone: replacing those needs the indices
    renamed, which is lowering's and derivation's business.
    """

    def visit(node: Expr) -> Expr:
        if isinstance(node, Ref) and not node.indices:
            return values.get(node.name, node)
        return node

    return transform(expr, visit) if names(expr) & values.keys() else expr


def inline(lets: tuple[Definition, ...], expr: Expr) -> Expr:
    """``expr`` with the (elementwise) lets inlined, all the way down."""
    return substitute(expr, _resolved_values(lets))


@memo(32)
def _resolved_values(lets: tuple[Definition, ...]) -> Mapping[str, Expr]:
    """Each let's value with the earlier ones in place; asked for many expressions over
    the same lets.
    """
    values: dict[str, Expr] = {}
    for let in lets:
        if not let.is_equation:
            values[let.name] = substitute(let.value, values)
    return values


def nodes(*roots: N) -> tuple[N, ...]:
    """Every distinct node of the roots, children before parents, left to right."""
    return (*roots[0].inner, *roots) if len(roots) == 1 else reached_from(roots)


@lru_cache(maxsize=512)
def names(expr: Expr) -> frozenset[str]:
    """The names referred to."""
    return frozenset([n.name for n in nodes(expr) if isinstance(n, Ref)])


def size(expr: Expr) -> int:
    """The number of distinct nodes."""
    return len(expr.inner) + 1


# --- conditions ----------------------------------------------------------------------


def guards(node: Expr, position: int) -> bool:
    """True if a condition decides whether the child counts. ``j != t`` does not: it says
    nothing of whether ``t`` is a position.
    """
    match node:
        case Select(condition=condition):
            return position == 2 or (position == 1 and not _is_another(condition))
        case Apply(op="and" | "or"):
            return position > 0
        case Reduce(where=where):
            return where is not None and position == 0 and not _is_another(where)
        case _:
            return False


def _is_another(condition: Expr) -> bool:
    match condition:
        case Apply(op="ne", args=(Idx(), at) | (at, Idx())):
            return bool(names(at))
        case _:
            return False


def unguarded_references(expr: Expr, is_ordered: bool = True) -> frozenset[Expr]:
    """The references that no choice guards. Unless conditions are ordered, each part of
    ``a and b`` guards the other.
    """
    found: set[Expr] = set()
    seen: set[tuple[Expr, bool]] = set()
    todo = [(expr, False)]
    while todo:
        node, guarded = todo.pop()
        if (node, guarded) in seen:
            continue
        seen.add((node, guarded))
        if isinstance(node, Ref) and not guarded:
            found.add(node)
        for position, child in enumerate(children(node)):
            is_part = not is_ordered and isinstance(node, Apply) and node.op == "and"
            todo.append((child, guarded or is_part or guards(node, position)))
    return frozenset(found)


def evaluated_values(rule: Rule) -> frozenset[str]:
    """The forward values that are needed whatever holds; those that nothing else of the
    forward pass uses are.
    """
    used = frozenset[str]().union(*(names(let.value) for let in rule.forward))
    found = {let.name for let in rule.forward} - used
    found |= {output.name for output in rule.outputs}
    for let in reversed(rule.forward):
        if let.name in found:
            found |= {
                n.name for n in unguarded_references(let.value) if isinstance(n, Ref)
            }
    return frozenset(found)


# --- closed forms ---------------------------------------------------------------------
#
# An output as an expression in the inputs, a cotangent as one in the inputs and the
# upstream cotangents: that is what proof, truth and trials evaluate. For elementwise rules
# only: indexed locals need their indices renamed.


def closed_outputs(rule: Rule) -> dict[str, Expr]:
    """Every output's value in terms of the inputs, calls to other rules kept."""
    lets = {let.name: let.value for let in rule.forward}
    done = _solved_values(rule)
    return {output.name: _resolve(output.name, lets, done) for output in rule.outputs}


def _solved_values(rule: Rule) -> dict[str, Expr]:
    """What an equation defines, which has no closed form and stays."""
    solved = (d.name for d in rule.values.values() if d.is_equation)
    return {name: Ref(name) for name in solved}


def closed_cotangents(rule: Rule) -> dict[str, Expr]:
    """``d<input>`` for every input that has one, calls kept."""
    values = {name: one.value for name, one in rule.values.items()}
    done = _solved_values(rule)
    return {d.name: _resolve(d.name, values, done) for d in rule.backward}


def closed_values(rule: Rule, values: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Expressions over the names of a rule in terms of its inputs and upstream
    gradients, calls kept."""
    known = {name: one.value for name, one in rule.values.items()}
    done = _solved_values(rule)
    found = []
    for value in values:
        used = (n for n in sorted(names(value)) if n in known)
        found.append(substitute(value, {n: _resolve(n, known, done) for n in used}))
    return tuple(found)


def _resolve(name: str, lets: Mapping[str, Expr], done: dict[str, Expr]) -> Expr:
    """The value of a let with every name in it resolved; lowering has made sure that no
    name is used before its assignment, so this ends.
    """
    if name not in done:
        value = lets[name]
        inner = {n: _resolve(n, lets, done) for n in sorted(names(value)) if n in lets}
        done[name] = substitute(value, inner)
    return done[name]


# --- calls of other rules -------------------------------------------------------------


@memo(512)
def expand(expr: Expr) -> Expr:
    """``expr`` with every `Call` replaced by the callee's forward, all the way down.

    The value is the same; the callee's own backward is forgotten, so this is for
    evaluating and proving values, not for differentiating.
    """
    if not any(isinstance(node, Call) for node in nodes(expr)):
        return expr
    return transform(expr, _expand_node)


def _expand_node(node: Expr) -> Expr:
    if not isinstance(node, Call):
        return node
    names = (variable.name for variable in node.rule.inputs)
    body = forward(node.rule, node.output)
    return substitute(body, dict(zip(names, node.args, strict=True)))


def forward(rule: Rule, output: int) -> Expr:
    """An output as one expression in the (elementwise) rule's inputs, calls
    expanded."""
    return expand(inline(rule.forward, Ref(rule.outputs[output].name)))


def expressions(rule: Rule) -> tuple[Expr, ...]:
    """All that a rule states: values, gradients, surrogates and assumptions."""
    conditions = (assume.condition for assume in rule.assumes)
    return (*(one.value for one in rule.definitions), *conditions)


def stops(rule: Rule) -> bool:
    """True if a rule passes no gradient on, as its author declares it."""
    values = [entry.value for entry in rule.overrides.values()]
    return len(values) == len(rule.inputs) and all(v == ZERO for v in values)


def follows_surrogate(rule: Rule) -> bool:
    """True if derivatives go through a surrogate: the rule's own, or the surrogate or
    override of a rule that it calls. The backward is then not the derivative of the
    forward, and no difference quotient can judge it.
    """
    return bool(rule.surrogates) or calls_surrogate(rule)


def calls_surrogate(rule: Rule) -> bool:
    """True if a rule that it calls, however indirectly, has a surrogate or override."""
    values = (let.value for let in rule.forward)
    found = (n.rule for value in values for n in nodes(value) if isinstance(n, Call))
    return any(follows_surrogate(callee) or callee.overrides for callee in found)


# --- depth ----------------------------------------------------------------------------
#
# Frameworks and notebooks raise Python's limit of recursion. Within ours a proof that
# recurses once a level is found, or given up, wherever the compiler runs.


_FRAMES = 10_000


@contextmanager
def deep() -> Iterator[None]:
    """Context with room for expressions as deep as the syntax permits, some frames a
    level (frames of Python's own functions take nothing from the machine's stack).
    """
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _FRAMES))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
