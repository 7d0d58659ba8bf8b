"""Equations as array operations: linear systems, and roots by Newton's method.

An equation is a value ``x = f(x)``, so its residual is ``x - f(x)``. What each element
of the residual is alone in, with an index that the state has everywhere, is no part of
a system. Where the derivative of the residual is free of the state, the equation is
linear: a quotient, or a matrix and a right side. Otherwise the derivative is the slope
of Newton's method.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from gradspec.derive.indexed import indexed_cotangents
from gradspec.derive.scopes import Fresh, inline_values, refresh, replace_indices
from gradspec.derive.scopes import Value as Inlined
from gradspec.derive.simplify import straighten
from gradspec.ir.expr import ONE, ZERO, Apply, Expr, Idx, Reduce, Ref, Select
from gradspec.ir.products import terms, total
from gradspec.ir.recurrence import NotEarlier, System, components, in_step_order
from gradspec.ir.rule import Assume, Definition, Input, Kind, Output, Role, Rule, Shape
from gradspec.ir.tidy import fold
from gradspec.ir.walk import expand, names, nodes, transform
from gradspec.plan import arrays
from gradspec.plan.axes import Value, permute, size_of
from gradspec.plan.forms import known_solution
from gradspec.plan.recurrence import NoLoop, Translate
from gradspec.plan.translation import Known

_ROW = "'"
"""The mark of an index of the residual, beside the same index of the state."""


def plan_system(
    part: System,
    assumes: Iterable[Assume],
    view: Mapping[str, Known],
    translate: Translate,
) -> dict[str, Value]:
    """The values of a system, of which one is a state: others are put into its
    equation, and computed from it. What a rule ``assumes`` of the state says which
    solution is meant."""
    state = next((one for one in part.values if _is_enough(one, part)), None)
    if state is None:
        names = " and ".join(one.name for one in part.values)
        raise NoLoop(f"{names} are solved for together")
    others = tuple(one for one in part.values if one != state)
    values = {o.name: Inlined(o.name, o.indices, o.axes, o.value) for o in others}
    whole = inline_values(state.value, values, Fresh("?")) if values else state.value
    state = replace(state, value=expand(whole))
    known_form = known_solution(state, assumes, view, translate)
    found = {state.name: known_form or _Equation.of(state).solution(view, translate)}
    sizes = tuple(map(size_of, state.axes))
    known = Known(arrays.Name(state.name), sizes, found[state.name].batched)
    inner = {**view, state.name: known}
    for one in in_step_order(others, ()):
        made = translate(one.value, one.indices, one.axes, inner)
        sizes = tuple(map(size_of, one.axes))
        inner[one.name] = Known(arrays.Name(one.name), sizes, made.batched)
        found[one.name] = made
    return found


def _is_enough(state: Definition, part: System) -> bool:
    """True if the other values of a system can be computed from one."""
    others = tuple(
        replace(one, is_equation=False) for one in part.values if one != state
    )
    try:
        return all(isinstance(one, Definition) for one in components(others, ()))
    except NotEarlier:
        return False


@dataclass(frozen=True, slots=True)
class _Equation:
    """An equation whose state has the axes of a system last.

    ``slope`` is the derivative of the residual by the state, over the indices of the
    state, those of the system also with a mark for the residual. ``order`` are the
    indices of the state as the author wrote them.
    """

    let: Definition
    residual: Expr
    slope: Expr
    system: tuple[str, ...]
    order: tuple[str, ...]

    @staticmethod
    def of(let: Definition) -> _Equation:
        order, residual = let.indices, _residual(let)
        uses = [n for n in nodes(residual) if isinstance(n, Ref) and n.name == let.name]
        joint = [
            k
            for k, index in enumerate(let.indices)
            if any(use.indices[k] != Idx(index) for use in uses)
        ]
        places = [k for k in range(len(let.indices)) if k not in joint] + joint
        let, residual = _reorder(let, residual, places)
        system = let.indices[len(let.indices) - len(joint) :]
        return _Equation(let, residual, _slope(let, residual, system), system, order)

    @property
    def is_linear(self) -> bool:
        return self.let.name not in names(self.slope)

    @property
    def sizes(self) -> dict[str, str | int]:
        """The axis of each index."""
        found = dict(zip(self.let.indices, self.let.axes, strict=True))
        return found | {i + _ROW: found[i] for i in self.system}

    @property
    def rows(self) -> tuple[str, ...]:
        return tuple(i + _ROW for i in self.system)

    @property
    def front(self) -> tuple[str, ...]:
        """The indices that are no part of the system."""
        return self.let.indices[: len(self.let.indices) - len(self.system)]

    def solution(self, view: Mapping[str, Known], translate: Translate) -> Value:
        """The value of the state."""
        found = self.quotient if self.is_linear else self.root
        return found(view, translate)

    def quotient(self, view: Mapping[str, Known], translate: Translate) -> Value:
        """The solution of a linear equation."""

        def array(expr: Expr, indices: tuple[str, ...]) -> Value:
            return translate(expr, indices, [self.sizes[i] for i in indices], view)

        right = _right_side(self.residual, self.let.name)
        if not self.system:
            return array(fold(Apply("div", (right, self.slope))), self.order)
        slope, side = _triangle(self.slope, self.rows, self.system)
        front, last = self.front, tuple[str, ...]()
        used = tuple(i for i in front if i in slope.free)
        if not used:
            front, last = front[:-1], front[-1:]
        matrix = array(slope, (*(front if used else ()), *self.rows, *self.system))
        column = array(right, (*front, *self.system, *last))
        made = matrix.expr
        if front and not used and matrix.batched:
            depth = len(front) + 2 * len(self.system)
            made = arrays.Expand(made, tuple(range(-depth, len(front) - depth)))
        batched = matrix.batched or column.batched
        solved = arrays.Solve(
            made,
            column.expr,
            len(self.system),
            bool(last),
            side,
            batched or bool(front),
        )
        return self._in_order(solved, (*front, *self.system, *last), batched)

    def root(self, view: Mapping[str, Known], translate: Translate) -> Value:
        """The solution of an equation that is not linear."""
        let, known = self.let, f"_{self.let.name}"
        order = let.indices
        axes = [self.sizes[i] for i in order]
        start = translate(
            let.start or ZERO, self.order, _axes_of(self.order, self.sizes), view
        )
        begin = (
            start.expr if start.is_number else permute(start.expr, self.order, order)
        )
        sizes, batched = tuple(map(size_of, axes)), start.batched
        for _ in range(2):  # whether the state is batched is seen in its residual
            inner = {**view, let.name: Known(arrays.Name(known), sizes, batched)}
            left = translate(self.residual, order, axes, inner)
            batched = batched or left.batched
        every = (*self.front, *self.rows, *self.system)
        slope = translate(self.slope, every, _axes_of(every, self.sizes), inner)
        iterate = not _is_difference(let)
        found = arrays.Root(
            left.expr, slope.expr, begin, known, len(self.system), iterate
        )
        return self._in_order(found, order, batched or slope.batched)

    def _in_order(
        self, expr: arrays.Expr, indices: tuple[str, ...], batched: bool
    ) -> Value:
        return Value(permute(expr, indices, self.order), self.order, batched)


def _axes_of(indices: Iterable[str], sizes: Mapping[str, str | int]) -> list[str | int]:
    return [sizes[index] for index in indices]


def _residual(let: Definition) -> Expr:
    """The difference of the two sides, without terms that cancel."""
    state = Ref(let.name, tuple(map(Idx, let.indices)))
    if _is_difference(let):
        return let.value.args[1]  # type: ignore[union-attr]
    return _without_opposites(Apply("sub", (state, let.value)))


def _without_opposites(node: Expr) -> Expr:
    """A sum without the terms that it has with both signs: ``1 - (1 - e)`` loses the
    digits of ``e``."""
    if not isinstance(node, Apply) or node.op not in ("add", "sub"):
        return node
    left: list[tuple[bool, Expr]] = []
    for is_minus, term in (found := terms(node)):
        if (not is_minus, term) in left:
            left.remove((not is_minus, term))
        else:
            left.append((is_minus, term))
    return node if len(left) == len(found) else total(left)


def _is_difference(let: Definition) -> bool:
    """True of ``x - (left - right)``, an equation on neither of whose sides the state
    stands alone."""
    state = Ref(let.name, tuple(map(Idx, let.indices)))
    match let.value:
        case Apply(op="sub", args=(first, _)):
            return first == state
        case _:
            return False


def _reorder(
    let: Definition, residual: Expr, places: list[int]
) -> tuple[Definition, Expr]:
    """The state with its axes in another order."""
    if places == sorted(places):
        return let, residual

    def visit(node: Expr) -> Expr:
        if isinstance(node, Ref) and node.name == let.name:
            return Ref(node.name, tuple(node.indices[k] for k in places))
        return node

    indices = tuple(let.indices[k] for k in places)
    axes = tuple(let.axes[k] for k in places)
    return replace(let, indices=indices, axes=axes), transform(residual, visit)


def _slope(let: Definition, residual: Expr, system: tuple[str, ...]) -> Expr:
    """The derivative of an element of the residual: its place is given as integers."""
    rows = {i: i + _ROW for i in let.indices}
    given = (Input(row, Kind.INT, Shape(False)) for row in rows.values())
    state = Input(let.name, Kind.FLOAT, Shape(False, let.axes))
    at = replace_indices(residual, {i: Ref(row) for i, row in rows.items()})
    rule = Rule(
        name=let.name,
        doc=None,
        inputs=(state, *given),
        outputs=(Output(_ROW, Kind.FLOAT, Shape(False)),),
        definitions=(Definition(_ROW, Role.OUTPUT, at),),
    )
    found = indexed_cotangents(rule)[let.name]
    pairs = zip(found.indices, let.indices, strict=True)
    at_own: dict[str, Expr] = {index: Idx(own) for index, own in pairs}
    places = {row: Idx(row if i in system else i) for i, row in rows.items()}

    def visit(node: Expr) -> Expr:
        if isinstance(node, Ref) and node.name == f"d{_ROW}":
            return ONE
        return fold(places.get(node.name, node) if isinstance(node, Ref) else node)

    made = refresh(found.value, at_own, Fresh("%"))
    axes = dict(zip(let.indices, let.axes, strict=True))
    axes |= {i + _ROW: axes[i] for i in system}
    slope = transform(transform(made, visit), _without_opposites)
    return straighten(slope, axes)


def _right_side(residual: Expr, name: str) -> Expr:
    """What a residual that is linear in its state is without it, with the other sign."""

    def visit(node: Expr) -> Expr:
        match node:
            case Ref() if node.name == name:
                return ZERO
            case Apply(op="div", args=(above, _)) if above == ZERO:
                return ZERO
            case Reduce(op="sum" | "mean", body=body) if body == ZERO:
                return ZERO
            case _:
                return fold(node)

    found = terms(transform(residual, visit))
    return total([(not is_minus, term) for is_minus, term in found if term != ZERO])


def _triangle(
    slope: Expr, rows: tuple[str, ...], columns: tuple[str, ...]
) -> tuple[Expr, str]:
    """The matrix, and the half that it has: that alone is read, so that what is 0 in
    the other half need not be put there."""
    if len(rows) != 1:
        return slope, ""
    row, column = Idx(rows[0]), Idx(columns[0])
    match slope:
        case Select(condition=Apply(op="le" | "ge" as op, args=args), other=other) if (
            other == ZERO and {*args} == {row, column}
        ):
            is_lower = (args[0] == column) == (op == "le")
            return slope.then, "lower" if is_lower else "upper"
        case _:
            return slope, ""
