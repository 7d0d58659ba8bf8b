"""The closed values of a rule over arrays: locals and outputs inlined.

The backward pass refers by name to outputs that take a gradient, to locals of fewer
axes than the rule's inputs (statistics of a row: small residuals that cost a pass over
the input to recompute), and to names that the author lists in ``save``; not to those in
``recompute``. Constants (locals without tensors) keep their names everywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from gradspec.derive.chain import Underivable
from gradspec.derive.indexed import (
    NotLinear,
    in_order,
    indexed_tangents,
)
from gradspec.derive.recurrence import tangents
from gradspec.ir import expr as ir
from gradspec.ir import walk
from gradspec.ir.recurrence import (
    Recurrence,
    System,
    components,
)
from gradspec.ir.rule import (
    Complete,
    Definition,
    Input,
    Kind,
    Output,
    Rule,
    Shape,
)
from gradspec.ir.walk import children, expand, nodes, with_children
from gradspec.plan.arrays import (
    Argsort,
    Expand,
    Expr,
    LogSoftmax,
    Name,
    Op,
    Reduce,
    Softmax,
    Where,
    is_view,
    names,
)
from gradspec.plan.axes import Value, size_of
from gradspec.plan.equation import plan_system
from gradspec.plan.extents import is_condition
from gradspec.plan.operations import (
    LOWEST,
    ZERO,
    Types,
    as_float,
    operation,
    replace_whole,
    translate,
    with_values,
)
from gradspec.plan.orders import Orders, with_orders
from gradspec.plan.plan import Assign, AxisSize
from gradspec.plan.recurrence import NoLoop, plan_recurrence
from gradspec.plan.rewrites import batches, fence, parts_by_batch
from gradspec.plan.translate import array_of
from gradspec.plan.translation import Known, sizes_needed


class NotEmitted(Exception):
    """A rule that cannot be plan_recurrence yet; the message says why, for the user."""


@dataclass(frozen=True, slots=True)
class Closed:
    """The closed values; ``cotangents`` by ``d<input>``. ``tangents`` by
    ``<output>_dot``, for indexed rules only; None where ``no_tangents`` gives the
    reason.
    """

    constants: tuple[Assign, ...]
    forward: tuple[Assign, ...]
    backward_locals: tuple[Assign, ...]
    cotangents: Mapping[str, Expr]
    tangents: Mapping[str, Expr]
    no_tangents: str
    saved: tuple[str, ...]
    sizes: tuple[AxisSize, ...]


def close(rule: Complete) -> Closed:
    """All values of the rule, closed; raises :class:`NotEmitted`."""
    return _Closing(*with_orders(fence(rule))).close()


class _Closing:
    """The rule and all that is known about its names."""

    def __init__(self, rule: Complete, orders: Orders) -> None:
        self.rule, self.orders = rule, orders
        self.constants = _constants(rule)
        self.evaluated = walk.evaluated_values(rule)
        self.types = _types(rule, self.constants, orders.known)
        tensors = rule.tensor_inputs
        floats = [i.name for i in tensors if i.kind.is_real]
        if not floats and rule.has_axes:
            raise NotEmitted("it has no floating input")
        self.like = Name(floats[0] if floats else tensors[0].name)
        self.view = {i.name: _known_input(i.name, i.shape) for i in tensors}
        numbers = dict.fromkeys(s.name for s in rule.static_inputs) | self.constants
        self.view |= {
            n: Known(Name(n), is_number=True, formula=formula)
            for n, formula in numbers.items()
        }
        self.held: set[Expr] = set()  # the arrays so far
        lets = rule.forward, rule.backward_locals
        parts = (part for some in lets for part in components(some, rule.assumes))
        every = (part for part in parts if not isinstance(part, Definition))
        self.running = {name: part for part in every for name in part.names}

    def close(self) -> Closed:
        ahead = self._forward()
        behind = self._backward()
        along, reason = self._tangents()
        gradients = {entry.name for entry in self.rule.backward}
        cotangents = [name for name in behind if name in gradients]
        fixed = frozenset((*cotangents, *along, *(o.name for o in self.rule.outputs)))
        raw = _resolve(ahead, {}, frozenset())
        shown = {raw[o.name] for o in self.rule.outputs if o.takes_gradient}
        named = {o.name for o in self.rule.outputs}
        kept = frozenset(
            n
            for n in self._saved_values()
            if not is_view(raw[n]) and (n in named or raw[n] not in shown)
        )
        again = _resolve(ahead, {}, kept)
        given = {name: value for name, value in again.items() if name not in kept}
        back = _resolve(behind, given, frozenset())
        outputs = {o.name for o in self.rule.outputs} - {*self.rule.recomputes}
        outputs |= {*names(*(back[name] for name in cotangents)), *self.rule.saves}
        back = _by_name(back, [n for n in raw if n in outputs], raw, again)
        moving = {n: with_values(value, raw) for n, value in along.items()}
        raw, back, moving = with_natives(fixed | kept, raw, back, moving)
        used = names(*(back[name] for name in cotangents))
        return Closed(
            constants=tuple(
                Assign(name, translate(value, self.types))
                for name, value in self.constants.items()
            ),
            forward=tuple(Assign(n, v) for n, v in raw.items()),
            backward_locals=tuple(
                Assign(n, v) for n, v in back.items() if n not in cotangents
            ),
            cotangents={n: v for n, v in back.items() if n in cotangents},
            tangents=moving,
            no_tangents=reason,
            saved=tuple(name for name in raw if name in used),
            sizes=_sizes(self.rule),
        )

    # --- the forward pass ----------------------------------------------------------

    def _forward(self) -> dict[str, Expr]:
        """Each forward let over the names of the earlier ones."""
        outputs = {output.name: output for output in self.rule.outputs}
        found: dict[str, Expr] = {}
        for let in self.rule.forward:
            if let.name in self.constants or let.name in found:
                continue
            if let.name in self.running:
                found |= self._run(self.running[let.name], self.view, False)
                continue
            order = self.orders.known.get(let.name)
            value = self._array(
                order.key if order else let.value,
                order.indices if order else let.indices,
                let.axes,
                self.view,
                is_guarded=let.name not in self.evaluated,
            )
            if order is not None:
                expr = Argsort(value.expr, -1)
                expr = Argsort(expr, -1) if order.is_rank else expr
                value = replace(value, expr=expr)
            if let.name in outputs:
                value = self._output(outputs[let.name], value)
            found[let.name] = value.expr
            self.view[let.name] = _known_of(let, value, self.view)
        return found

    def _output(self, output: Output, value: Value) -> Value:
        if not output.takes_gradient:
            return value
        expr = as_float(value.expr, self.types)
        return Value(expr, value.axes, value.batched)

    def _array(
        self,
        value: ir.Expr,
        indices: Sequence[str],
        axes: Sequence[str | int],
        view: Mapping[str, Known],
        batched: bool = True,
        is_gradient: bool = False,
        is_guarded: bool = False,
    ) -> Value:
        found = array_of(
            value,
            indices,
            axes,
            view,
            self.types,
            self.like,
            self.held,
            batched=batched,
            is_gradient=is_gradient,
            is_guarded=is_guarded,
        )
        self.held.update(nodes(found.expr))
        return found

    # --- the backward pass ---------------------------------------------------------

    def _backward(self) -> dict[str, Expr]:
        """Locals and cotangents, each over the names of the earlier ones."""
        rule = self.rule
        view, rows = dict(self.view), batches(rule)
        for output in rule.outputs:
            if output.takes_gradient:
                known = _known_input(output.cotangent, output.shape)
                batched = view[output.name].batched or bool(rows[output.cotangent])
                view[output.cotangent] = Known(known.expr, known.sizes, batched)
        parts = parts_by_batch(rule) if rule.has_axes else {}
        found: dict[str, Expr] = {}
        for let in in_order((*rule.backward_locals, *rule.backward), rule.assumes):
            if let.name in found:
                continue
            if let.name in self.running:
                found |= self._run(self.running[let.name], view, True)
                continue
            value = self._cotangent(let, parts, view)
            found[let.name] = as_float(value.expr, self.types)
            view[let.name] = _known_of(let, value, view)
        return found

    def _run(
        self, part: Recurrence | System, view: dict[str, Known], is_gradient: bool
    ) -> dict[str, Expr]:
        """The values of a recurrence or of equations, which the view then has."""

        def array(
            value: ir.Expr,
            indices: Sequence[str],
            axes: Sequence[str | int],
            known: Mapping[str, Known],
        ) -> Value:
            made = self._array(
                value, indices, axes, known, is_gradient=is_gradient, is_guarded=True
            )
            return replace(made, expr=_floating(made.expr, self.types))

        try:
            found = (
                plan_system(part, self.rule.assumes, view, array)
                if isinstance(part, System)
                else plan_recurrence(part, view, array)
            )
        except NoLoop as reason:
            raise NotEmitted(str(reason)) from None
        for let in part.values:
            sizes = tuple(map(size_of, let.axes))
            view[let.name] = Known(Name(let.name), sizes, found[let.name].batched)
        return {name: value.expr for name, value in found.items()}

    def _cotangent(
        self,
        let: Definition,
        parts: Mapping[str, tuple[tuple[ir.Expr, bool], ...]],
        view: Mapping[str, Known],
    ) -> Value:
        """A value of the backward pass; see `rewrites.parts_by_batch` for those in parts."""
        # For an elementwise rule the framework sums to the shape of an input.
        rows = {i.cotangent: i.shape.batch for i in self.rule.inputs}
        batched = not self.rule.has_axes or rows.get(let.name, True)
        if let.name not in parts:
            return self._array(let.value, let.indices, let.axes, view, batched, True)
        found = [
            self._array(part, let.indices, let.axes, view, not is_summed, True)
            for part, is_summed in parts[let.name]
        ]
        if any(value.batched for value in found):
            raise NotEmitted(f"{let.name} has no batch axes, but a part of it has")
        terms = (as_float(value.expr, self.types) for value in found)
        total = reduce(lambda a, b: operation("add", (a, b)), terms)
        return Value(total, found[0].axes, False)

    def _tangents(self) -> tuple[dict[str, Expr], str]:
        """Tangents of the outputs, over forward values and ``<input>_dot``; or why
        there are none.
        """
        view = dict(self.view)
        for variable in self.rule.inputs:
            name = f"{variable.name}_dot"
            if name in view:
                return {}, f"{name} is a name of the rule's own"
            view[name] = _known_input(name, variable.shape)
        if not self.rule.has_axes:
            return {}, ""
        try:
            running, entries = self._tangent_rule()
            running = tuple(map(self.orders.changed, running))
            for part in components(running, self.rule.assumes):
                self._run_tangents(part, view)
        except (NotLinear, Underivable):
            return {}, "a gradient is not linear in the upstream gradients"
        found = {}
        for name, entry in zip(
            entries, map(self.orders.changed, entries.values()), strict=True
        ):
            value = self._array(entry.value, entry.indices, entry.axes, view)
            is_still = entry.value == ir.ZERO
            found[f"{name}_dot"] = (
                ZERO if is_still else as_float(value.expr, self.types)
            )
        return found, ""

    def _tangent_rule(
        self,
    ) -> tuple[tuple[Definition, ...], Mapping[str, Definition]]:
        if self.running:
            return tangents(self.rule)
        return (), indexed_tangents(self.rule)

    def _run_tangents(
        self, part: Definition | Recurrence | System, view: dict[str, Known]
    ) -> None:
        """The tangents of states, which the view then has in full."""
        if not isinstance(part, Definition):
            found = self._run(part, view, False)
        else:
            value = self._array(part.value, part.indices, part.axes, view)
            found = {part.name: as_float(value.expr, self.types)}
            view[part.name] = _known_of(part, value, view)
        for name, expr in found.items():
            view[name] = replace(view[name], expr=expr)

    def _saved_values(self) -> frozenset[str]:
        """The forward values that the backward pass refers to by name."""
        rule = self.rule
        outputs = {o.name for o in rule.outputs if o.takes_gradient}
        rank = max((len(i.shape.axes) for i in rule.tensor_inputs), default=0)
        return frozenset(
            let.name
            for let in rule.forward
            if let.name not in self.constants
            and let.name not in rule.recomputes
            and (
                let.name in rule.saves
                or let.name in outputs
                or let.name in self.running
                or let.name in self.orders.known
                or len(let.indices) < rank
            )
        )


# --- parts -----------------------------------------------------------------------------


def _resolve(
    lets: Mapping[str, Expr], known: Mapping[str, Expr], kept: frozenset[str]
) -> dict[str, Expr]:
    """Each let with the others inlined, except for residuals."""
    values = dict(known)
    found: dict[str, Expr] = {}
    for name, value in lets.items():
        found[name] = with_values(value, values)
        if name not in kept:
            values[name] = found[name]
    return found


def _by_name(
    lets: Mapping[str, Expr], names: Iterable[str], *forms: Mapping[str, Expr]
) -> dict[str, Expr]:
    """The lets with the values that the names have in some form replaced by the names:
    one referred to by name in one place is so in all, for if recomputed, it would be
    another value of that name.
    """
    places: dict[Expr, Expr] = {
        form[name]: Name(name)
        for name in names
        for form in forms
        if children(form[name])
    }
    return {name: replace_whole(value, places) for name, value in lets.items()}


def _floating(expr: Expr, types: Types) -> Expr:
    """A value of a step as a floating array, a condition as it is."""
    return expr if is_condition(expr) else as_float(expr, types)


def _known_input(name: str, shape: Shape) -> Known:
    return Known(Name(name), tuple(map(size_of, shape.axes)), shape.batch)


def _known_of(let: Definition, value: Value, view: Mapping[str, Known]) -> Known:
    sizes = tuple(map(size_of, let.axes))
    needed = sizes_needed(expand(let.value), view)
    return Known(Name(let.name), sizes, value.batched, undefined_at=needed)


def _constants(rule: Rule) -> dict[str, ir.Expr]:
    """Locals made of sizes, statics and numbers alone."""
    outputs = {output.name for output in rule.outputs}
    scalars = {static.name for static in rule.static_inputs}
    found: dict[str, ir.Expr] = {}
    for let in rule.forward:
        plain = not let.indices and not any(
            isinstance(n, ir.Reduce | ir.Idx) for n in walk.nodes(let.value)
        )
        if plain and let.name not in outputs and walk.names(let.value) <= scalars:
            found[let.name] = let.value
            scalars.add(let.name)
    return found


def _types(rule: Rule, constants: Iterable[str], orders: Iterable[str]) -> Types:
    def names_of(*kinds: Kind) -> frozenset[str]:
        return frozenset(i.name for i in rule.inputs if i.kind in kinds)

    variables: list[Input | Output] = [*rule.inputs, *rule.outputs]
    sizes = {a for v in variables for a in v.shape.axes if isinstance(a, str)}
    scalars = names_of(Kind.STATIC, Kind.STATIC_INT).union(constants, sizes)
    integers = names_of(Kind.INT, Kind.STATIC_INT).union(sizes, orders)
    return Types(scalars, integers, names_of(Kind.BOOL))


def _sizes(rule: Rule) -> tuple[AxisSize, ...]:
    """The places from which each named size can be read, unless a static gives it."""
    ends = [(i.name, i.shape) for i in rule.tensor_inputs]
    ends += [(o.name, o.shape) for o in rule.outputs]
    ends += [(o.cotangent, o.shape) for o in rule.outputs if o.takes_gradient]
    statics = {i.name for i in rule.static_inputs}
    places: dict[str, list[tuple[str, int]]] = {}
    for name, shape in ends:
        for position, axis in enumerate(shape.axes):
            if isinstance(axis, str) and axis not in statics:
                at = (name, position - len(shape.axes))
                places.setdefault(axis, []).append(at)
    return tuple(AxisSize(name, tuple(at)) for name, at in places.items())


# --- functions of frameworks ----------------------------------------------------------
#
# Operations that every framework has as one function, recognised in plan_recurrence values.
#
# One function makes one pass where its parts make four, and its own derivative is as
# stable. Where a part is needed separately, it is computed anyway, and nothing changes.


def with_natives(
    wanted: frozenset[str], *groups: Mapping[str, Expr]
) -> list[dict[str, Expr]]:
    """The values with softmax and its logarithm recognised. All are examined together,
    since a part may be needed elsewhere; only ``wanted`` ones must be kept.
    """
    values = [value for group in groups for value in group.values()]
    if not any(isinstance(n, Reduce) for n in nodes(*values)):
        return [dict(group) for group in groups]
    uses = Counter(v for group in groups for n, v in group.items() if n in wanted)
    for node in nodes(*values):
        uses.update(children(node))
    done: dict[Expr, Expr] = {}
    for node in nodes(*values):
        made = _native(node, uses) or node
        done[node] = with_children(made, tuple(done[part] for part in children(made)))
    return [{name: done[v] for name, v in group.items()} for group in groups]


def _native(node: Expr, uses: Counter[Expr]) -> Expr | None:
    match node:
        case Op(primitive="div", args=(Op(primitive="exp") as top, below)):
            total = _along_row(("sum",), below)
            shifted = _shift(("max", "peak"), top.args[0]) or _masked_max(top.args[0])
            if total is None or shifted is None or uses[top] != 2:
                return None
            is_row = total.arg == top and total.axes == shifted.axes
            return Softmax(shifted.arg, shifted.axes[0]) if is_row else None
        case Op(primitive="exp", args=(shift,)) if uses[shift] == 1:
            shifted = _shift(("logsumexp",), shift)
            alone = shifted is not None and uses[shifted] == 1
            return Softmax(shifted.arg, shifted.axes[0]) if shifted and alone else None
        case Op(primitive="sub"):
            shifted = _shift(("logsumexp",), node)
            alone = shifted is not None and uses[shifted] == 1
            found = shifted if alone else None
            return LogSoftmax(found.arg, found.axes[0]) if found else None
        case _:
            return None


def _shift(ops: tuple[str, ...], value: Expr) -> Reduce | None:
    """The reduction ``r`` of ``a`` along one axis, if the value is ``a - r``."""
    match value:
        case Op(primitive="sub", args=(arg, below)):
            found = _along_row(ops, below)
            return found if found is not None and found.arg == arg else None
        case _:
            return None


def _masked_max(value: Expr) -> Reduce | None:
    """The largest ``a`` along one axis where a mask holds, if the value is ``a`` less
    that, and -inf elsewhere.
    """
    match value:
        case Where(condition=mask, then=Op(primitive="sub", args=(arg, below))):
            found = _along_row(("max", "peak"), below)
            row = Where(mask, arg, value.other)
            is_row = found is not None and found.arg == row
            return found if is_row and value.other == LOWEST else None
        case _:
            return None


def _along_row(ops: tuple[str, ...], value: Expr) -> Reduce | None:
    """A reduction along one axis, which is kept with size 1."""
    match value:
        case Expand(arg=Reduce(op=op) as found, axes=(axis,)):
            return found if op in ops and found.axes == (axis,) else None
        case _:
            return None
