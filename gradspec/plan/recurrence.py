"""Recurrences as array operations.

What does not depend on the states is computed for all places at once, in front of the
loop: a product of the inputs with their weights is one contraction. A step that is
affine in one state, elementwise, needs no loop (`LinearScan`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import TypeVar

from gradspec.derive.scopes import extent
from gradspec.ir.expr import ONE, ZERO, Apply, Const, Expr, Idx, Reduce, Ref, Select
from gradspec.ir.products import add_multiple, linear
from gradspec.ir.recurrence import Recurrence
from gradspec.ir.rule import Definition
from gradspec.ir.walk import children, expand, names, nodes, transform, with_children
from gradspec.plan import arrays
from gradspec.plan.axes import Value, size_of
from gradspec.plan.extents import Extents
from gradspec.plan.translation import Known
from gradspec.primitives.lookup import primitive

Axis = str | int

Translate = Callable[[Expr, Sequence[str], Sequence[Axis], Mapping[str, Known]], Value]
"""An expression over indices, with their axes, as an array."""


class NoLoop(Exception):
    """A recurrence that is not plan_recurrence yet; the message says why, for the user."""


def plan_recurrence(
    part: Recurrence, view: Mapping[str, Known], translate: Translate
) -> dict[str, Value]:
    """The values of a recurrence, in the order of a step."""
    if len(part.signs) > 1:
        raise NoLoop(f"{part.values[0].name} runs along two axes")
    values = tuple(replace(d, value=expand(d.value)) for d in part.values)
    if len(values) == 1:
        found = _linear_scan(values[0], part, view, translate)
        if found is not None:
            return {values[0].name: found}
    return _loop(values, part, view, translate)


# --- affine steps ---------------------------------------------------------------------


def _linear_scan(
    state: Definition, part: Recurrence, view: Mapping[str, Known], translate: Translate
) -> Value | None:
    """The state without a loop, if its step is affine, element by element."""
    ((at,),), (sign,) = part.axes, part.signs
    before = list[Expr](map(Idx, state.indices))
    before[at] = Apply("sub" if sign > 0 else "add", (before[at], ONE))
    found = _affine(state.value, state.name, tuple(before))
    if found is None:
        return None
    factor, term = (translate(expr, state.indices, state.axes, view) for expr in found)
    axis = at - len(state.indices)
    batched = factor.batched or term.batched
    made = _cumulative(found[0], state, at, sign, term.expr, axis)
    scan = arrays.LinearScan(factor.expr, term.expr, axis, sign < 0)
    return Value(made or scan, state.indices, batched)


def _cumulative(
    factor: Expr, state: Definition, at: int, sign: int, term: arrays.Expr, axis: int
) -> arrays.Expr | None:
    """Cumulative sums, if the factor is 1 wherever there is an element before."""
    match factor:
        case Select(condition=condition, then=Const(value=1), other=Const(value=0)):
            index, size = Idx(state.indices[at]), extent(state.axes[at])
            first = Apply("gt", (index, ZERO)), Apply("ge", (index, ONE))
            last = (
                Apply("lt", (index, Apply("sub", (size, ONE)))),
                Apply("lt", (Apply("add", (index, ONE)), size)),
            )
            if condition in (first if sign > 0 else last):
                return arrays.Cumulative(term, axis, sign < 0)
            return None
        case _:
            return None


def _affine(
    expr: Expr, name: str, before: tuple[Expr, ...]
) -> tuple[Expr, Expr] | None:
    """Factor and term of an expression that is affine in one element of a state."""
    if name not in names(expr):
        return ZERO, expr
    match expr:
        case Ref(indices=indices):
            same = all(
                linear(a) == linear(b) for a, b in zip(indices, before, strict=True)
            )
            return (ONE, ZERO) if same else None
        case Apply(op="neg", args=(arg,)):
            found = _affine(arg, name, before)
            return found and (_negative(found[0]), _negative(found[1]))
        case Apply(op="add" | "sub" as op, args=(left, right)):
            one, other = _affine(left, name, before), _affine(right, name, before)
            if one is None or other is None:
                return None
            return _plus(op, one[0], other[0]), _plus(op, one[1], other[1])
        case Apply(op="mul", args=(left, right)) if name not in names(left):
            found = _affine(right, name, before)
            return found and (_multiple(found[0], left), _multiple(found[1], left))
        case Apply(op="mul", args=(left, right)) if name not in names(right):
            found = _affine(left, name, before)
            return found and (_multiple(found[0], right), _multiple(found[1], right))
        case Apply(op="div", args=(left, right)) if name not in names(right):
            found = _affine(left, name, before)
            inverse = Apply("div", (ONE, right))
            return found and (
                _multiple(found[0], inverse),
                Apply("div", (found[1], right)),
            )
        case Select(condition=condition, then=then, other=other) if name not in names(
            condition
        ):
            one, two = _affine(then, name, before), _affine(other, name, before)
            if one is None or two is None:
                return None
            return _choice(condition, one[0], two[0]), _choice(
                condition, one[1], two[1]
            )
        case _:
            return None


def _negative(expr: Expr) -> Expr:
    return ZERO if expr == ZERO else Apply("neg", (expr,))


def _plus(op: str, left: Expr, right: Expr) -> Expr:
    if right == ZERO:
        return left
    if left == ZERO:
        return right if op == "add" else _negative(right)
    return Apply(op, (left, right))


def _multiple(expr: Expr, factor: Expr) -> Expr:
    """The product, in each branch of a choice: 0 times infinity is not asked for."""
    match expr:
        case Const(value=0):
            return ZERO
        case Const(value=1):
            return factor
        case Select(condition=condition, then=then, other=other) if ZERO in (
            then,
            other,
        ):
            return Select(condition, _multiple(then, factor), _multiple(other, factor))
        case _:
            return Apply("mul", (factor, expr))


def _choice(condition: Expr, then: Expr, other: Expr) -> Expr:
    return then if then == other else Select(condition, then, other)


# --- other steps ----------------------------------------------------------------------


def _loop(
    values: tuple[Definition, ...],
    part: Recurrence,
    view: Mapping[str, Known],
    translate: Translate,
) -> dict[str, Value]:
    """The states, one after the other along their axis."""
    at = {d.name: axes[0] for d, axes in zip(values, part.axes, strict=True)}
    wanted = [d.name for d in values]
    values, at = _with_registers(values, at, part.signs[0])
    step = _Step(values, at, part.signs[0], view, translate)
    steps = [step.value(d) for d in values]
    if not step.slices:
        step.time(values[0])
    batched = any(value.batched for value, _ in step.slices.values())
    inner = {**view, **step.known_names(batched)}
    made = []
    for d, expr in zip(values, steps, strict=True):
        indices, axes = _without(d.indices, at[d.name]), _without(d.axes, at[d.name])
        made.append(translate(expr, indices, axes, inner))
    batched = batched or any(value.batched for value in made)
    order = [d.name for d in values]
    loop = arrays.Loop(
        steps=tuple(value.expr for value in made),
        starts=tuple(_zeros(_without(d.axes, at[d.name])) for d in values),
        slices=tuple(value.expr for value, _ in step.slices.values()),
        before=tuple((order.index(state), lag) for state, lag in step.before),
        axes=tuple(-rank for _, rank in step.slices.values()),
        places=tuple(at[d.name] - len(d.indices) for d in values),
        reverse=part.signs[0] < 0,
    )
    return {
        d.name: Value(arrays.Item(loop, k), d.indices, batched)
        for k, d in enumerate(values)
        if d.name in wanted
    }


def _with_registers(
    values: tuple[Definition, ...], at: Mapping[str, int], sign: int
) -> tuple[tuple[Definition, ...], dict[str, int]]:
    """The values with ``y[t - j - 1]``, for each ``j`` of an axis, held by a shift
    register: a state over that axis, too, which moves on by one at each place.
    """
    made: dict[tuple[str, Axis], Definition] = {}
    known = {d.name: d for d in values}

    def shift(of: Definition, axis: Axis) -> Definition:
        name, place = f"{of.name}'{axis}", at[of.name]
        last = list[Expr](map(Idx, of.indices))
        last[place] = _place_before(last[place], sign, 1)
        index = Idx("'")
        first = Ref(of.name, tuple(last))
        before = Ref(name, (*last, Apply("sub", (index, ONE))))
        value = Select(Apply("eq", (index, ZERO)), first, before)
        indices, axes = (*of.indices, index.name), (*of.axes, axis)
        return replace(of, name=name, value=value, indices=indices, axes=axes)

    def in_register(of: Definition) -> Definition:
        bounds = {
            b.index: b.axis
            for node in nodes(of.value)
            for b in (node.bounds if isinstance(node, Reduce) else ())
        }
        time = of.indices[at[of.name]]

        def visit(node: Expr) -> Expr:
            if not isinstance(node, Ref) or node.name not in known:
                return node
            place = at[node.name]
            found = linear(node.indices[place])
            others = [term for term in found if term not in (ONE, Idx(time))]
            if len(others) != 1 or found[others[0]] != -sign:
                return node
            if not isinstance(others[0], Idx):
                return node
            index = others[0].name
            key = node.name, bounds.get(index, time)
            if index not in bounds or found.get(Idx(time)) != 1:
                return node
            if key not in made:
                made[key] = shift(known[node.name], bounds[index])
            lag = -sign * int(found.get(ONE, 0)) - 1
            indices = list(node.indices)
            indices[place] = _place_before(Idx(time), sign, lag) if lag else Idx(time)
            return Ref(made[key].name, (*indices, Idx(index)))

        return replace(of, value=transform(of.value, visit))

    changed = tuple(map(in_register, values))
    places = {d.name: at[state] for (state, _), d in made.items()}
    return (*made.values(), *changed), {**places, **at}


def _place_before(index: Expr, sign: int, lag: int) -> Expr:
    """The place some places before."""
    return Apply("sub" if sign > 0 else "add", (index, Const(Fraction(lag))))


_T = TypeVar("_T")


def _without(items: tuple[_T, ...], place: int) -> tuple[_T, ...]:
    return (*items[:place], *items[place + 1 :])


def _zeros(axes: tuple[Axis, ...]) -> arrays.Expr:
    zero = arrays.Literal(ZERO.value)
    return Extents({}).in_full(zero, tuple(map(size_of, axes)))


def _is_condition(node: Expr) -> bool:
    return isinstance(node, Apply) and primitive(node.op).result == "bool"


@dataclass(slots=True)
class _Step:
    """The values at one place; collects what they need of other places: ``before`` has
    a name for each state and lag, ``slices`` an array and its rank for each name.
    """

    values: tuple[Definition, ...]
    at: Mapping[str, int]
    sign: int
    view: Mapping[str, Known]
    translate: Translate
    before: dict[tuple[str, int], str] = field(default_factory=dict)
    slices: dict[str, tuple[Value, int]] = field(default_factory=dict)
    pieces: dict[Expr, Expr] = field(default_factory=dict)
    sizes: dict[str, tuple[arrays.Expr, ...]] = field(default_factory=dict)

    def value(self, of: Definition) -> Expr:
        """The step of a value, over names of its place alone."""
        axes = dict(zip(of.indices, of.axes, strict=True))
        return self._visit(of.value, of, axes, frozenset())

    def time(self, of: Definition) -> None:
        """A slice of nothing but the places themselves."""
        index = of.indices[self.at[of.name]]
        self._piece(Idx(index), of, dict(zip(of.indices, of.axes, strict=True)))

    def now(self, name: str) -> str:
        """A state at the place itself."""
        return f"_now[{[d.name for d in self.values].index(name)}]"

    def known_names(self, batched: bool) -> dict[str, Known]:
        """The arrays that the names stand for at one place."""
        found = {
            name: Known(arrays.Name(name), self.sizes[name], value.batched)
            for name, (value, _) in self.slices.items()
        }
        for d in self.values:
            sizes = tuple(map(size_of, _without(d.axes, self.at[d.name])))
            lagged = [n for (state, _), n in self.before.items() if state == d.name]
            for name in (self.now(d.name), *lagged):
                found[name] = Known(arrays.Name(name), sizes, batched)
        return found

    def _visit(
        self,
        node: Expr,
        of: Definition,
        axes: Mapping[str, Axis],
        summed: frozenset[str],
    ) -> Expr:
        time = of.indices[self.at[of.name]]
        if isinstance(node, Ref) and node.name in self.at:
            return self._state(node, of)
        if not names(node) & self.at.keys():
            if time not in node.free:
                return node
            is_small = len(node.free) <= len(of.indices) or not summed & {*node.free}
            if _is_condition(node):
                is_small = node.free == (time,)
            if isinstance(node, Ref | Idx) or (is_small and children(node)):
                return self._piece(node, of, axes)
        if isinstance(node, Reduce):
            axes = {**axes, **{b.index: b.axis for b in node.bounds}}
            summed |= {b.index for b in node.bounds}
        parts = (self._visit(child, of, axes, summed) for child in children(node))
        return with_children(node, tuple(parts))

    def _state(self, node: Ref, of: Definition) -> Expr:
        place = self.at[node.name]
        here = linear(Idx(of.indices[self.at[of.name]]))
        ahead = add_multiple(linear(node.indices[place]), here, Fraction(-1))
        lag = -self.sign * ahead.pop(ONE, Fraction(0))
        if ahead:
            raise NoLoop(
                f"{of.name} uses {node.name} at a varying number of places before"
            )
        others = _without(node.indices, place)
        if lag == 0:
            return Ref(self.now(node.name), others)
        new = f"_was[{len(self.before)}]"
        return Ref(self.before.setdefault((node.name, int(lag)), new), others)

    def _piece(self, node: Expr, of: Definition, axes: Mapping[str, Axis]) -> Expr:
        """A slice, at the place, of what was computed for all places before the loop."""
        if node not in self.pieces:
            time = of.indices[self.at[of.name]]
            others = tuple(index for index in node.free if index != time)
            indices = (time, *others)
            value = self.translate(node, indices, [axes[i] for i in indices], self.view)
            name = f"_at[{len(self.slices)}]"
            self.slices[name] = value, len(indices)
            self.sizes[name] = tuple(size_of(axes[i]) for i in others)
            self.pieces[node] = Ref(name, tuple(map(Idx, others)))
        return self.pieces[node]
