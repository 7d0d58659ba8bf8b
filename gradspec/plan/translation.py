"""Translation of expressions with indices to arrays with axes, node by node.

Each node becomes a :class:`Value`: an array and the indices that its core axes stand
for. The same array serves a value under any names of its indices, so that ``e[i]`` and
``e[j]`` are one array, and equal values are found equal whatever their indices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from fractions import Fraction
from functools import reduce
from typing import TypeAlias

from gradspec.derive.scopes import unify
from gradspec.ir import expr as ir
from gradspec.ir import walk
from gradspec.ir.products import is_index
from gradspec.plan.arrays import (
    Arange,
    Expr,
    Literal,
    Name,
    Op,
    ProductOfOthers,
    Reduce,
    Stack,
    is_whole,
)
from gradspec.plan.axes import (
    Position,
    Value,
    align,
    are_windows,
    frames,
    index_array,
    spread,
)
from gradspec.plan.operations import (
    INFINITY,
    LOWEST,
    Types,
    array_node,
    as_float,
    choose_between,
    is_scalar,
    operation,
)
from gradspec.plan.rewrites import (
    COMPARISONS,
    Sizes,
    is_within,
    undefined_at,
)
from gradspec.primitives.frameworks import FLOOR
from gradspec.primitives.lookup import primitive
from gradspec.primitives.table_operators import BROADCAST_LIKE, FLOORDIV, PLACE

_Build: TypeAlias = Callable[[tuple[Expr, ...]], Expr]

Summation: TypeAlias = (
    "Callable[[Translation, tuple[str, ...], ir.Expr, ir.Expr | None], Value]"
)
"""The reduction of an expression over indices, where a condition holds."""

_OUTSIDE: Mapping[str, Expr] = {
    "prod": Literal(Fraction(1)),
    "max": LOWEST,
    "min": INFINITY,
    "logsumexp": LOWEST,
    "peak": LOWEST,
    "norm": Literal(Fraction(0)),
}
"""The value that stands for an excluded position."""


@dataclass(frozen=True, slots=True)
class Known:
    """A visible name: its array, the sizes of its core axes, its kind, the sizes of which
    a 0 leaves it undefined, and the formula of a number that has one.
    """

    expr: Expr
    sizes: tuple[Expr, ...] = ()
    batched: bool = False
    is_number: bool = False
    undefined_at: Sizes = frozenset()
    formula: ir.Expr | None = None


def sizes_needed(value: ir.Expr, view: Mapping[str, Known]) -> Sizes:
    """The sizes of which a 0 leaves a value undefined."""
    return undefined_at(value, {name: k.undefined_at for name, k in view.items()})


@dataclass(slots=True)
class Translation:
    """The translation of one expression; each node is translated once. Sums and means
    are a subject of their own, the ``summations`` (`sums.SUMMATIONS`)."""

    view: Mapping[str, Known]
    types: Types
    like: Expr
    indices: tuple[str, ...]
    sizes: Mapping[str, Expr]
    unguarded: frozenset[ir.Expr]
    held: Set[Expr]
    summations: Mapping[str, Summation]
    _done: dict[ir.Expr, Value] = field(default_factory=dict)

    def value(self, expr: ir.Expr) -> Value:
        """The value of a sub-expression."""
        for node in walk.nodes(expr):
            if node not in self._done:
                self._done[node] = self._node(node)
        return self._done[expr]

    def combine(self, op: str, *values: Value) -> Value:
        """An operation on translated values."""
        return self._join(
            values, lambda parts: operation(op, tuple(map(self.floating, parts)))
        )

    def choice(self, condition: Value, then: Value, other: Value) -> Value:
        """One of two values by a condition; by a number, each with the axes of both."""
        if condition.is_number and {*then.axes} != {*other.axes}:
            then, other = (self._in_full(v, (then, other)) for v in (then, other))
        values = condition, then, other
        return self._join(values, lambda parts: choose_between(parts, self.types))

    def _in_full(self, value: Value, beside: Sequence[Value]) -> Value:
        order = self.frame(beside)
        expr = spread(value, order, [self.sizes[index] for index in order])
        return Value(expr, order, value.batched)

    def beside(self, values: Sequence[Value], index: str) -> Value:
        """Values stacked along a new last axis."""
        if all(value == values[0] for value in values):
            return values[0]
        order = self.frame(values)
        parts = tuple(self.floating(align(value, order)) for value in values)
        batched = any(value.batched for value in values)
        return Value(Stack(parts), (*order, index), batched)

    def floating(self, expr: Expr) -> Expr:
        """As a floating array."""
        return as_float(expr, self.types)

    def frame(self, values: Sequence[Value]) -> tuple[str, ...]:
        """An order of the values' indices."""
        return self.frames(values)[0]

    def frames(self, values: Sequence[Value]) -> list[tuple[str, ...]]:
        """The orders of the values' indices with the fewest transpositions."""
        bound = [index for index in self.sizes if index not in self.indices]
        return frames(values, (*self.indices, *bound))

    def _join(self, values: Sequence[Value], build: _Build) -> Value:
        """The values combined, as an array that is held already if there is one."""
        made = [
            (build(tuple(align(value, order) for value in values)), order)
            for order in self.frames(values)
        ]
        expr, order = next((m for m in made if m[0] in self.held), made[0])
        if is_scalar(expr, self.types):
            return Value(expr, is_number=True)
        return Value(expr, order, any(value.batched for value in values))

    def _node(self, node: ir.Expr) -> Value:
        match node:
            case ir.Const():
                return Value(Literal(node.value), is_number=True)
            case ir.Size(axis=axis):
                return Value(Name(axis), is_number=True)
            case ir.Idx(name=name):
                return Value(Arange(self.sizes[name], self.like), (name,))
            case ir.Ref():
                return self._reference(node)
            case ir.Reduce():
                return self._reduction(node)
            case ir.Apply() if node.free and is_index(node):
                return self.integer(node)  # ``i + 2 * j`` stays an integer
            case ir.Apply(op=op, args=args) if op in COMPARISONS:
                values = self._comparands(*args)
                return self._join(
                    values, lambda parts: array_node(node, parts, self.types)
                )
            case ir.Select() if self._is_decided(node):
                return self._decide(node)
            case _:
                values = [self._done[child] for child in walk.children(node)]
                return self._join(
                    values, lambda parts: array_node(node, parts, self.types)
                )

    def _comparands(self, *sides: ir.Expr) -> list[Value]:
        """Both sides of a comparison. What is compared with the extremum of its own
        kind is the array of which that is taken, at other places: in another order of
        axes a sum may be rounded in another way, and no element be the largest.
        """
        values = [self._done[side] for side in sides]
        for n, side in enumerate(sides):
            match sides[1 - n]:
                case ir.Reduce(op=op, bounds=bounds, body=body) if op in ir.EXTREMA:
                    found = unify(body, side, frozenset(b.index for b in bounds))
                    if found is not None and not isinstance(side, ir.Ref):
                        values[n] = self._value_at(self._done[body], found)
        return values

    def _value_at(self, value: Value, at: Mapping[str, ir.Expr]) -> Value:
        """A value with expressions in the places of some of its indices."""
        if at.keys().isdisjoint(value.axes):
            return value
        places = [at.get(axis, ir.Idx(axis)) for axis in value.axes]
        positions = tuple(Position(place, self.integer(place)) for place in places)
        sizes = tuple(self.sizes[axis] for axis in value.axes)
        return index_array(
            value.expr, value.batched, positions, self.sizes, sizes, True
        )

    def _is_decided(self, node: ir.Select) -> bool:
        """True if Python numbers choose between branches that have axes."""
        branches = (self._done[node.then], self._done[node.other])
        is_number = self._done[node.condition].is_number
        return is_number and any(branch.axes for branch in branches)

    def _decide(self, node: ir.Select) -> Value:
        """A choice by Python numbers: each branch has the shape of both."""
        pairs = (node.then, node.other), (node.other, node.then)
        branches = [self._in_shape(branch, other) for branch, other in pairs]
        return self.choice(self._done[node.condition], *branches)

    def _in_shape(self, branch: ir.Expr, other: ir.Expr) -> Value:
        value, known = self._done[branch], walk.names(branch)
        for tensor in _tensors(other):
            like, names = self.value(tensor), walk.names(tensor)
            is_wider = not {*like.axes} <= {*value.axes}
            if is_wider or (like.batched and not names <= known):
                value = self.combine(BROADCAST_LIKE, value, like)
                known |= names
        return value

    def _reference(self, node: ir.Ref) -> Value:
        known = self.view[node.name]
        positions = tuple(Position(i, self.integer(i)) for i in node.indices)
        if not positions:
            return Value(known.expr, (), known.batched, known.is_number)
        guarded = node not in self.unguarded
        return index_array(
            known.expr, known.batched, positions, self.sizes, known.sizes, guarded
        )

    def lost_at(self, expr: ir.Expr) -> frozenset[Expr]:
        """Sizes of which a 0 leaves a sub-expression undefined, but not empty."""
        own = {self.sizes[index] for index in self.indices}
        return sizes_needed(expr, self.view) - own

    def is_padded(self, expr: ir.Expr, condition: ir.Expr) -> bool:
        """True if a reference is already 0 where the condition does not hold."""
        if not isinstance(expr, ir.Ref) or expr in self.unguarded:
            return False
        sizes = [size_in_rules(size) for size in self.view[expr.name].sizes]
        return are_windows(expr.indices) and is_within(condition, expr, sizes)

    def integer(self, expr: ir.Expr) -> Value:
        """An index expression, in integer arithmetic throughout."""
        if isinstance(expr, ir.Ref) and (formula := self.view[expr.name].formula):
            return self.integer(formula)  # where it is a number, it need not be whole
        if not isinstance(expr, ir.Apply):
            return self.value(expr)
        if primitive(expr.op).is_step and self.value(expr).is_number:
            return Value(self._place(expr), is_number=True)
        values = [self.integer(child) for child in expr.args]
        return self._join(values, lambda parts: operation(expr.op, parts))

    def _place(self, expr: ir.Apply) -> Expr:
        """A step of a Python number as an integer; the floor of a quotient of whole
        numbers is not rounded."""
        arg, whole = self.value(expr.args[0]).expr, self.types.integers
        match arg:
            case _ if expr.op != FLOOR:
                return Op(PLACE, (self.value(expr).expr,))
            case Op("div", parts) if all(is_whole(part, whole) for part in parts):
                return Op(FLOORDIV, parts)
            case Op("mul", (Literal(value=part), of)) if is_whole(of, whole) and (
                part.numerator == 1
            ):
                return Op(FLOORDIV, (of, Literal(Fraction(part.denominator))))
            case _:
                return Op(PLACE, (arg,))

    # --- reductions ----------------------------------------------------------------

    def _reduction(self, node: ir.Reduce) -> Value:
        bounds = tuple(bound.index for bound in node.bounds)
        if node.op in self.summations:
            return self.summations[node.op](self, bounds, node.body, node.where)
        body = node.body
        value = self.value(body)
        if node.op == "prod" and (others := self._others(node, value)) is not None:
            return others
        if node.where is not None:
            outside = Value(_OUTSIDE[node.op], is_number=True)
            value = self.choice(self.value(node.where), value, outside)
        return self._reduce_value(node.op, bounds, value)

    def _others(self, node: ir.Reduce, value: Value) -> Value | None:
        """``prod(x[l] for l if l != j)``, for every ``j``: the factor of ``x[j]``."""
        match node:
            case ir.Reduce(
                bounds=(ir.Bound(index=bound),),
                where=ir.Apply(op="ne", args=(ir.Idx(name=a), ir.Idx(name=b))),
            ) if bound in (a, b) and bound in value.axes:
                free = b if a == bound else a
                if free in value.axes or self.sizes[free] != self.sizes[bound]:
                    return None
                axis = value.axes.index(bound) - len(value.axes)
                expr = ProductOfOthers(self.floating(value.expr), axis)
                axes = tuple(free if a == bound else a for a in value.axes)
                return Value(expr, axes, value.batched)
            case _:
                return None

    def _reduce_value(self, op: str, bounds: tuple[str, ...], value: Value) -> Value:
        held = tuple(bound for bound in bounds if bound in value.axes)
        absent = [self.sizes[bound] for bound in bounds if bound not in value.axes]
        if held:
            value = self.over(op, held, value)
        if not absent or op in ir.EXTREMA:
            return value
        count = Value(reduce(lambda a, b: Op("mul", (a, b)), absent), is_number=True)
        if op == "prod":
            return self.combine("pow", value, count)
        log = Value(Op("log", (count.expr,)), is_number=True)
        return self.combine("add", value, log)

    def over(self, op: str, bounds: tuple[str, ...], value: Value) -> Value:
        """``op`` over axes that the value has."""
        depth = len(value.axes)
        gone = tuple(p - depth for p, a in enumerate(value.axes) if a in bounds)
        axes = tuple(a for a in value.axes if a not in bounds)
        return Value(Reduce(op, self.floating(value.expr), gone), axes, value.batched)


def _tensors(expr: ir.Expr) -> list[ir.Expr]:
    """The elements and the reductions in an expression."""
    found: dict[ir.Expr, None] = {}
    todo, seen = [expr], {expr}
    while todo:
        node = todo.pop()
        if isinstance(node, ir.Ref | ir.Reduce):
            found[node] = None
            continue
        fresh = [child for child in reversed(walk.children(node)) if child not in seen]
        seen.update(fresh)
        todo += fresh
    return list(found)


def size_in_rules(size: Expr) -> ir.Expr:
    match size:
        case Name(id=name):
            return ir.Size(name)
        case Literal(value=value):
            return ir.Const(value)
        case _:
            raise AssertionError(size)
