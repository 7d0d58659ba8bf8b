"""Rules and their expressions rewritten before translation; the mathematics stays the
same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from fractions import Fraction
from functools import cache, reduce
from itertools import product
from typing import Any

from gradspec.derive.scopes import (
    Fresh,
    Value,
    extent,
    inline_values,
    replace_indices,
    shorten_names,
)
from gradspec.ir import expr as ir
from gradspec.ir import walk
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
)
from gradspec.ir.products import conjuncts, linear
from gradspec.ir.recurrence import states
from gradspec.ir.rule import Complete, Definition, Input, Kind, Output, Rule
from gradspec.ir.tidy import fold
from gradspec.ir.unroll import partial
from gradspec.plan import arrays
from gradspec.plan.axes import size_of
from gradspec.primitives.lookup import primitive
from gradspec.symbolic.enclose import enclose

# --- conditions -----------------------------------------------------------------------


_TRUTHS = {True: Apply("eq", (ZERO, ZERO)), False: Apply("ne", (ZERO, ZERO))}


def without_decided_branches(expr: Expr) -> Expr:
    """``expr`` without branches that no data select: decided among arrays, a comparison
    of constants would take the axes of such a branch away.
    """
    done: dict[Expr, Expr] = {}
    for node in walk.nodes(expr):
        parts = tuple(done[child] for child in walk.children(node))
        made = walk.with_children(node, parts)
        done[node] = made if made is node else fold(made)
        if isinstance(node, Apply) and node.op in COMPARISONS and _is_constant(node):
            done[node] = _TRUTHS.get(enclose(node, {}), node)
    return done[expr]


def _is_constant(expr: Expr) -> bool:
    return all(isinstance(node, Apply | Const) for node in walk.nodes(expr))


def is_within(condition: Expr, reference: Ref, sizes: Sequence[Expr]) -> bool:
    """True if the condition says no more than that the reference's positions exist."""
    reach = [
        (linear(position), linear(Apply("sub", (position, size))))
        for position, size in zip(reference.indices, sizes, strict=True)
    ]
    return all(
        _bound_of(conjunct)
        in [(0, low) for low, _ in reach] + [(-1, high) for _, high in reach]
        for conjunct in conjuncts(condition)
    )


def _bound_of(condition: Expr) -> tuple[int, Mapping[Expr, Fraction]] | None:
    """``(0, p)`` for ``p >= 0`` and ``(-1, p)`` for ``p < 0``, of whole numbers."""
    match condition:
        case Apply(op="ge", args=(a, b)) | Apply(op="le", args=(b, a)):
            return 0, linear(Apply("sub", (a, b)))
        case Apply(op="lt", args=(a, b)) | Apply(op="gt", args=(b, a)):
            return -1, linear(Apply("sub", (a, b)))
        case _:
            return None


# --- references beyond an axis --------------------------------------------------------
#
# Guarded references beyond an axis, where 0 would not do.
#
# ``sum(dy[k - j] * w[j] / y[k - j] for j)`` reads ``dy`` and ``y`` at positions that do
# not all exist. Elements outside are 0, and 0 divided by 0 is NaN. In a divisor, and in
# a function that may be infinite at 0, they are 1 instead.


def filled_outside(expr: Expr, sizes: Mapping[str, Sequence[Expr]]) -> Expr:
    """``expr`` with such references replaced; ``sizes`` are those of the axes."""
    done: dict[tuple[Expr, bool, bool], Expr] = {}

    def visit(node: Expr, is_guarded: bool, is_risky: bool) -> Expr:
        key = node, is_guarded, is_risky
        if key not in done:
            if isinstance(node, Ref) and is_guarded and is_risky:
                done[key] = or_one(node, sizes.get(node.name, ()))
            else:
                done[key] = walk.with_children(
                    node,
                    tuple(
                        visit(child, is_guarded or walk.guards(node, k), risk)
                        for k, child in enumerate(walk.children(node))
                        for risk in [_is_risky(node, k, is_risky)]
                    ),
                )
        return done[key]

    return visit(expr, False, False)


def _is_risky(node: Expr, position: int, is_risky: bool) -> bool:
    match node:
        case Select():
            return is_risky and position > 0
        case Apply(op=op, args=args):
            others = (a if isinstance(a, Const) else Const(Fraction(-1)) for a in args)
            return is_risky or not _is_finite(op, _with(tuple(others), position))
        case _:
            return is_risky and not isinstance(node, Ref)


def _with(args: tuple[Const, ...], position: int) -> tuple[Const, ...]:
    return (*args[:position], ZERO, *args[position + 1 :])


@cache
def _is_finite(op: str, args: tuple[Const, ...]) -> bool:
    if primitive(op).result == "bool":
        return True
    try:
        ball: Any = enclose(Apply(op, args), {}, 64)
    except (ArithmeticError, ValueError, NotImplementedError, TypeError):
        return False
    return bool(ball is not None and ball.is_finite())


def or_one(
    node: Ref, sizes: Sequence[Expr], ranges: Mapping[str, Expr] | None = None
) -> Expr:
    """The element, or 1 where a position is none of its axis. Without ``ranges``, the
    sizes of the indices, only positions computed from indices are examined.
    """
    inside = [
        Apply(op, (index, end))
        for index, size in zip(node.indices, sizes, strict=False)
        if not _is_position(index, size, ranges)
        for op, end in (("ge", ZERO), ("lt", size))
    ]
    if not inside:
        return node
    return Select(reduce(lambda a, b: Apply("and", (a, b)), inside), node, ONE)


def _is_position(index: Expr, size: Expr, ranges: Mapping[str, Expr] | None) -> bool:
    """True if an index expression is plainly a position of an axis."""
    match index, size:
        case Apply(), _:
            return bool(walk.names(index)) and ranges is None
        case Idx(name=name), _:
            return ranges is None or ranges.get(name) == size
        case Const(value=at), Const(value=count):
            return ranges is None or 0 <= at < count
        case _:
            return ranges is None


# --- sums with one term ----------------------------------------------------------------


def with_single_terms(expr: Expr, integers: Set[str]) -> Expr:
    """``expr`` with ``sum(a[c] for c if t[j] == c)`` as ``a[t[j]]``, or 0 where there is
    no such element; ``integers`` are the names of integer inputs.
    """
    return walk.transform(expr, lambda node: _single_term(node, integers))


def _single_term(node: Expr, integers: Set[str]) -> Expr:
    match node:
        case Reduce(op="sum", where=None, body=Select(condition, then, other)) if (
            other == ZERO
        ):
            pass
        case Reduce(op="sum", where=Apply() as condition, body=then):
            pass
        case _:
            return node
    tests = [*conjuncts(condition)]
    for bound, test in product(node.bounds, tests):
        match test:
            case Apply(op="eq", args=(Ref() as at, c) | (c, Ref() as at)) if (
                at.name in integers
                and c == Idx(bound.index)
                and bound.index not in at.free
            ):
                inside = Apply("ge", (at, ZERO)), Apply("lt", (at, extent(bound.axis)))
                # what stands before it may say that the position ``at`` exists
                first = [
                    other
                    for other in tests[: tests.index(test)]
                    if bound.index not in other.free
                ]
                rest = (t for t in tests if t is not test and t not in first)
                every = [*first, *inside, *rest]
                holds = reduce(lambda a, b: Apply("and", (a, b)), every)
                body = replace_indices(Select(holds, then, ZERO), {bound.index: at})
                others = tuple(b for b in node.bounds if b is not bound)
                return Reduce("sum", others, body) if others else body
    return node


# --- short axes -----------------------------------------------------------------------
#
# ``c[i] = (... if i == 0 else ... if i == 1 else ...)`` over an axis of size 3 is a
# stack of three values; nothing is computed and then discarded by a choice.


_MOST = 8
"""A longer axis is not treated as a list of cases."""

COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge"))


def spelled_out(expr: ir.Expr) -> ir.Expr:
    """``expr`` with sums over such an axis unrolled."""
    done: dict[ir.Expr, ir.Expr] = {}
    for node in walk.nodes(expr):
        parts = tuple(done[child] for child in walk.children(node))
        made = walk.with_children(node, parts)
        match made:
            case ir.Reduce(op="sum", bounds=(bound,), body=body, where=None) if (
                isinstance(bound.axis, int) and asks(body, bound.index, bound.axis)
            ):
                terms = at_positions(body, bound.index, bound.axis)
                done[node] = reduce(lambda a, b: fold(ir.Apply("add", (a, b))), terms)
            case _:
                done[node] = made if made is node else fold(made)
    return done[expr]


def asks(expr: ir.Expr, index: str, axis: str | int) -> bool:
    """True if a condition distinguishes positions of a short axis."""
    if not isinstance(axis, int) or not 1 < axis <= _MOST:
        return False
    return any(_compares(node, index) for node in walk.nodes(expr))


def _compares(node: ir.Expr, index: str) -> bool:
    match node:
        case ir.Apply(op=op, args=(ir.Idx(name=name), ir.Const())) if op in COMPARISONS:
            return name == index
        case ir.Apply(op=op, args=(ir.Const(), ir.Idx(name=name))) if op in COMPARISONS:
            return name == index
        case _:
            return False


def at_positions(expr: ir.Expr, index: str, axis: int) -> tuple[ir.Expr, ...]:
    """``expr`` at each position."""
    return tuple(replace_indices(expr, {index: ir.const(k)}) for k in range(axis))


# --- small factors first --------------------------------------------------------------
#
# Small factors of a product first: each saves a pass over a row.
#
# ``x[i] * r**2 * m`` is ``x[i] * (r**2 * m)`` where ``r`` and ``m`` are constant along
# a row: their product is one number for each row.


def regroup(expr: ir.Expr, tensors: frozenset[str]) -> ir.Expr:
    """``expr`` with its products so bracketed; ``tensors`` are the names of tensors."""
    uses = Counter(child for node in walk.nodes(expr) for child in walk.children(node))
    exact = {n for top in filter(_is_exact, walk.nodes(expr)) for n in walk.nodes(top)}
    done: dict[ir.Expr, ir.Expr] = {}
    for node in walk.nodes(expr):
        parts = tuple(done[child] for child in walk.children(node))
        made = walk.with_children(node, parts)
        alone = node not in exact and (not parts or uses[walk.children(node)[0]] == 1)
        done[node] = _bracket(made, tensors) if alone else made
    return done[expr]


def _is_exact(node: ir.Expr) -> bool:
    """True for an extremum and for a comparison with it: an element attains it only if
    it rounds alike on both sides, however often it is used on either.
    """
    match node:
        case ir.Reduce(op=op):
            return op in ir.EXTREMA
        case _:
            return isinstance(node, ir.Apply) and node.op == "eq"


def _bracket(expr: ir.Expr, tensors: frozenset[str]) -> ir.Expr:
    """One product or quotient whose left side is a product."""
    match expr:
        case ir.Apply(
            op="mul" | "div" as op,
            args=(ir.Apply(op="mul", args=(first, second)), right),
        ):
            a, b, c = (_indices(part, tensors) for part in (first, second, right))
            if op == "div" and c is not None:
                return expr  # which may be what keeps a product from overflowing
            if _is_less(b, a) and _is_less(c, a) and (b is not None or c is not None):
                return ir.apply("mul", first, ir.apply(op, second, right))
            if _is_less(a, b) and _is_less(c, b) and (a is not None or c is not None):
                return ir.apply("mul", ir.apply(op, first, right), second)
    return expr


def _indices(expr: ir.Expr, tensors: frozenset[str]) -> frozenset[str] | None:
    """The indices that a value depends on; None for a number."""
    is_data = any(
        isinstance(node, ir.Idx) or (isinstance(node, ir.Ref) and node.name in tensors)
        for node in walk.nodes(expr)
    )
    return frozenset(expr.free) if is_data else None


def _is_less(small: frozenset[str] | None, large: frozenset[str] | None) -> bool:
    """True if a value has fewer axes than another, which is not a number."""
    return large is not None and (small is None or small < large)


# --- empty axes -----------------------------------------------------------------------
#
# The mean over an empty axis is NaN, and so are values that depend on it; an empty sum
# is 0. Where ``r`` depends on a mean over rows,
# ``sum(dy[i, j] * c[i, j] * r[j] for i)`` is therefore not written
# ``r * sum(dy * c)``: without rows, that would be NaN.


Sizes = frozenset[arrays.Expr]
_NONE: Sizes = frozenset()


def undefined_at(value: ir.Expr, known: Mapping[str, Sizes]) -> Sizes:
    """The sizes of which a 0 leaves a value undefined: those of the axes of its means,
    and those by which it divides. ``known`` has those of the names in it.
    """
    found: dict[ir.Expr, Sizes] = {}
    for node in walk.nodes(value):
        at = _NONE.union(*(found[child] for child in walk.children(node)))
        match node:
            case ir.Ref(name=name):
                at |= known.get(name, _NONE)
            case ir.Reduce(op="mean" | "logsumexp", bounds=bounds):
                at |= {size_of(bound.axis) for bound in bounds}
            case ir.Apply(op="div", args=(_, ir.Size(axis=axis))):
                at |= {size_of(axis)}
            case _:
                pass
        found[node] = at
    return found[value]


# --- locals that lack elements --------------------------------------------------------
#
# ``d[i] = x[i + 1] - x[i]`` has no last element, and a rule that passes the checks does
# not use it. An array has one nevertheless: a reference beyond its axis is 1 there, at
# which most functions are finite.


def fence(rule: Complete) -> Complete:
    """The rule with no reference beyond an axis in the locals that lack elements."""
    found = partial(rule)
    if not found:
        return rule
    sizes = {n: tuple(map(extent, axes)) for n, axes in _axes_of(rule).items()}

    def visit(let: Definition) -> Definition:
        if let.name not in found:
            return let
        ranges = {index: extent(axis) for index, axis in ranges_of(let).items()}

        def inside(node: Expr) -> Expr:
            if not isinstance(node, Ref) or node.name not in sizes:
                return node
            return or_one(node, sizes[node.name], ranges)

        return replace(let, value=walk.transform(let.value, inside))

    return rule.redefine(*map(visit, (*rule.forward, *rule.backward_locals)))


def _axes_of(rule: Rule) -> dict[str, tuple[str | int, ...]]:
    """The axes of every value except flags, for which 1 is not a value."""
    variables: tuple[Input | Output, ...] = (*rule.inputs, *rule.outputs)
    known = {let.name: let.axes for let in (*rule.forward, *rule.backward_locals)}
    known |= {v.cotangent: v.shape.axes for v in variables if v.takes_gradient}
    known |= {v.name: v.shape.axes for v in variables}
    flags = {v.name for v in variables if v.kind is Kind.BOOL}
    return {name: axes for name, axes in known.items() if name not in flags}


def ranges_of(let: Definition) -> dict[str, str | int]:
    """The axis of each index; -1 for a name bound twice, over different axes."""
    found: dict[str, str | int] = dict(zip(let.indices, let.axes, strict=True))
    for node in walk.nodes(let.value):
        for bound in node.bounds if isinstance(node, Reduce) else ():
            is_same = found.get(bound.index, bound.axis) == bound.axis
            found[bound.index] = bound.axis if is_same else -1
    return found


# --- batch axes -----------------------------------------------------------------------
#
# Gradients of an input without batch axes that outputs with and without them use.
#
# The part from an output without batch axes counts once; the part from one that has
# them is summed over its batch, not over that of another output. A gradient is linear in
# the cotangents, so it is the sum of its values with all but one kind of them set to 0.


def parts_by_batch(rule: Rule) -> dict[str, tuple[tuple[Expr, bool], ...]]:
    """By ``d<input>``: its parts, each from the outputs whose batch axes are those of
    the same inputs, and True if there are such axes; only for inputs with several.
    """
    upstream = batches(rule)
    lets = _mixing(rule, upstream)
    found = {}
    for variable in rule.inputs:
        entry = rule.cotangent_of(variable)
        if variable.shape.batch or entry is None or entry.is_override:
            continue
        whole = entry.value
        if walk.names(whole) & set(lets):
            whole = shorten_names(
                inline_values(whole, lets, Fresh()), frozenset(entry.indices)
            )
        used = [name for name in upstream if name in walk.names(whole)]
        kinds = dict.fromkeys(upstream[name] for name in used)
        if len(kinds) > 1:
            found[variable.cotangent] = tuple(
                (_without(whole, [n for n in used if upstream[n] != kind]), bool(kind))
                for kind in kinds
            )
    return found


def batches(rule: Rule) -> dict[str, frozenset[str]]:
    """By upstream gradient: the inputs whose batch axes it has."""
    rows = frozenset(i.name for i in rule.inputs if i.shape.batch)
    return {
        o.cotangent: rows.intersection(o.spans if o.shape.batch else ())
        for o in rule.outputs
        if o.takes_gradient
    }


def _mixing(rule: Rule, upstream: Iterable[str]) -> dict[str, Value]:
    """The values of the backward pass that use cotangents."""
    running = states(rule)
    found = {
        d.name: Value(d.name, d.indices, d.axes, d.value)
        for d in (*rule.backward_locals, *rule.backward)
        if not d.is_override and d.name not in running
    }
    using = set(upstream)
    while more := {n for n, v in found.items() if walk.names(v.expr) & using} - using:
        using |= more
    return {name: value for name, value in found.items() if name in using}


def _without(expr: Expr, gone: Iterable[str]) -> Expr:
    """``expr`` with some cotangents set to 0."""
    zero = frozenset(gone)

    def visit(node: Expr) -> Expr:
        match node:
            case Ref(name=name) if name in zero:
                return ZERO
            case Reduce(op="sum" | "mean", body=body) if body == ZERO:
                return ZERO
            case Apply(op="div", args=(above, _)) if above == ZERO:
                return ZERO
            case _:
                return fold(node)

    return walk.transform(expr, visit)
