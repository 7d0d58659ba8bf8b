"""The cotangents and tangents of an indexed rule, for all sizes, by index calculus.

Every output, local and reduction is a value with indices of its own. Its cotangent is
gathered first, whole, and then passed on through its expression: a reference ``x[e]``
under the indices of the value (and of the reduction) adds to the cotangent of ``x``
where its index is ``e``. What is found to be 0 for all sizes (the cotangent of the
maximum that a softmax is shifted by) is not passed on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

from gradspec.derive.chain import Underivable, gradient
from gradspec.derive.normal_form import Normal, is_zero, text
from gradspec.derive.scopes import (
    AT,
    Axis,
    Fresh,
    Value,
    extent,
    inline_values,
    refresh,
    rename_references,
    replace_indices,
    shorten_names,
)
from gradspec.derive.simplify import (
    Reuse,
    factor_choice,
    guard_by,
    plus,
    scatter_sum,
    solve_places,
    straighten,
    sum_over,
    times,
    with_known_extrema,
)
from gradspec.derive.vjp import is_crooked, own_backward
from gradspec.ir.expr import (
    EXTREMA,
    ONE,
    ZERO,
    Apply,
    Bound,
    Call,
    Const,
    Expr,
    Idx,
    Reduce,
    Ref,
    Select,
)
from gradspec.ir.recurrence import components, states
from gradspec.ir.rule import (
    Assume,
    Definition,
    Input,
    Kind,
    Origin,
    Output,
    Role,
    Rule,
    Shape,
)
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import (
    children,
    evaluated_values,
    expand,
    names,
    nodes,
    substitute,
    transform,
    unguarded_references,
    with_children,
)


class Values:
    """The values of a rule in order, each reduction under a name of its own."""

    def __init__(self, rule: Rule) -> None:
        self.fresh = Fresh()
        self.axes: dict[str, Axis] = {}
        self.order: list[Value] = []
        self.reductions: dict[tuple[Expr, tuple[Axis, ...]], str] = {}
        self.seeds: dict[str, str] = {}
        for let in rule.forward:
            self._add(let.name, let.indices, let.axes, let.value)
        for one in rule.surrogates:
            name = f"%surrogate {one.name}"
            self.seeds[one.name] = name
            self._add(name, one.indices, one.axes, one.value)

    def bounds(self, axes: tuple[Axis, ...]) -> tuple[Bound, ...]:
        """New indices for these axes."""
        made = tuple(Bound(self.fresh(), axis) for axis in axes)
        self.axes |= {b.index: b.axis for b in made}
        return made

    def copy_at(self, expr: Expr, values: Mapping[str, Expr]) -> Expr:
        """``expr`` at other indices, its own bound ones renamed."""
        made = refresh(expr, values, self.fresh)
        self._learn(made)
        return made

    def _learn(self, expr: Expr) -> None:
        if isinstance(expr, Reduce):
            self.axes |= {b.index: b.axis for b in expr.bounds}
        for child in children(expr):
            self._learn(child)

    def _add(
        self, name: str, indices: tuple[str, ...], axes: tuple[Axis, ...], expr: Expr
    ) -> None:
        bounds = self.bounds(axes)
        values = {old: Idx(b.index) for old, b in zip(indices, bounds, strict=True)}
        body = self._with_names(self.copy_at(tidy(expr), values))
        self.order.append(Value(name, tuple(b.index for b in bounds), axes, body))

    def _with_names(self, expr: Expr) -> Expr:
        """``expr`` with a name in place of every reduction, and of every call whose
        backward is no factor."""
        parts = tuple(self._with_names(child) for child in children(expr))
        made = with_children(expr, parts)
        if isinstance(made, Reduce) and made.op in EXTREMA:
            made = self._with_named_body(made)
        if isinstance(made, Reduce) or is_crooked_call(made):
            return self._name(made)
        return made

    def _with_named_body(self, node: Reduce) -> Reduce:
        """The node whose body is a name, too: what is compared with an extremum must be
        computed as it is under it, or rounds otherwise, and no element attains it."""
        if isinstance(node.body, Ref | Const):
            return node
        return Reduce(node.op, node.bounds, self._name(node.body), node.where)

    def _name(self, node: Expr) -> Expr:
        outer = node.free
        axes = tuple(self.axes[index] for index in outer)
        key = positional(node, outer), axes
        if key not in self.reductions:
            name = self.reductions[key] = f"%{len(self.reductions)}"
            bounds = self.bounds(axes)
            at = {o: Idx(b.index) for o, b in zip(outer, bounds, strict=True)}
            value = self.copy_at(node, at)
            self.order.append(Value(name, tuple(b.index for b in bounds), axes, value))
        return Ref(self.reductions[key], tuple(Idx(index) for index in outer))


def is_crooked_call(node: Expr) -> bool:
    return isinstance(node, Call) and is_crooked(node.rule)


def positional(node: Expr, outer: tuple[str, ...]) -> Expr:
    """A node that is one for reductions (or calls) that differ in the names of indices only."""
    values: dict[str, Expr] = {n: Idx(f"outer {p}") for p, n in enumerate(outer)}
    if not isinstance(node, Reduce):
        return replace_indices(node, values)
    bounds = tuple(Bound(f"{p}", b.axis) for p, b in enumerate(node.bounds))
    pairs = zip(node.bounds, bounds, strict=True)
    values |= {old.index: Idx(new.index) for old, new in pairs}
    where = None if node.where is None else replace_indices(node.where, values)
    return Reduce(node.op, bounds, replace_indices(node.body, values), where)


class Accumulation:
    """The cotangents of all inputs; ``is_zero`` decides for all sizes."""

    def __init__(
        self,
        rule: Rule,
        values: Values,
        is_zero: Callable[[Expr], bool],
        tidied: Callable[[Expr], Expr],
    ) -> None:
        self.rule, self.values = rule, values
        self.is_zero, self.tidied = is_zero, tidied
        self.targets: dict[str, tuple[Bound, ...]] = {}
        for value in values.order:
            pairs = zip(value.indices, value.axes, strict=True)
            self.targets[value.name] = tuple(Bound(i, a) for i, a in pairs)
        self.inputs = [i for i in rule.inputs if i.takes_gradient]
        for variable in self.inputs:
            self.targets[variable.name] = values.bounds(variable.shape.axes)
        self.active = {i.name for i in self.inputs}
        for value in values.order:
            if names(value.expr) & self.active:
                self.active.add(value.name)
        self.found: dict[str, list[Expr]] = {}

    def run(self) -> dict[str, Expr]:
        """By input, over the indices of ``targets``."""
        for output in self.rule.outputs:
            if output.takes_gradient:
                name = self.values.seeds.get(output.name, output.name)
                at = tuple(Idx(b.index) for b in self.targets[name])
                self.found[name] = [Ref(output.cotangent, at)]
        for value in reversed(self.values.order):
            above = self._total(value.name)
            if above != ZERO and value.name in self.active:
                self._pass_on(value, above)
        return {i.name: self._total(i.name) for i in self.inputs}

    def _total(self, name: str) -> Expr:
        result: Expr = ZERO
        terms = [t for t in self.found.get(name, []) if t != ZERO]
        if name not in {i.name for i in self.inputs}:
            terms = [term for term in terms if not self.is_zero(term)]
        for term in reversed(terms):
            result = plus(result, term)
        result = self.tidied(result)
        return ZERO if len(terms) > 1 and self.is_zero(result) else result

    def _pass_on(self, value: Value, above: Expr) -> None:
        scope = self.targets[value.name]
        expr = value.expr
        if isinstance(expr, Reduce):
            above = self._through(expr, value, above)
            scope, expr = (*scope, *expr.bounds), expr.body
        if isinstance(expr, Call) and is_crooked(expr.rule):
            for arg, upstream in self._arguments(expr, above):
                self._to_leaves(scope, arg, upstream)
        else:
            self._to_leaves(scope, expr, above)

    def _arguments(self, node: Call, above: Expr) -> Iterator[tuple[Expr, Expr]]:
        """The arguments of a call whose backward is no factor: all that arrives goes
        through it at once. With several outputs that would be all of theirs."""
        rule = node.rule
        if len(rule.outputs) > 1:
            raise Underivable(node)
        values = {i.name: arg for i, arg in zip(rule.inputs, node.args, strict=True)}
        values[f"d{rule.outputs[0].name}"] = above
        for position, arg in enumerate(node.args):
            if rule.inputs[position].takes_gradient:
                yield arg, tidy(substitute(own_backward(rule, position), values))

    def _to_leaves(self, scope: tuple[Bound, ...], expr: Expr, above: Expr) -> None:
        _require_linear(expr)
        found = gradient(expr, self._is_leaf, own_backward)
        for leaf, factor in found.items():
            assert isinstance(leaf, Ref)
            value, target = self.tidied(times(above, factor)), self.targets[leaf.name]
            term = scatter_sum(scope, leaf.indices, target, value, self.values.axes)
            self.found.setdefault(leaf.name, []).append(term)

    def _is_leaf(self, node: Expr) -> bool:
        return isinstance(node, Ref) and node.name in self.active

    # --- reductions ------------------------------------------------------------------

    def _through(self, node: Reduce, value: Value, above: Expr) -> Expr:
        """The cotangent of the body for each value of the bound indices."""
        out = Ref(value.name, tuple(Idx(i) for i in value.indices))
        where = () if node.where is None else (node.where,)
        match node.op:
            case "sum":
                return guard_by(where, above)
            case "mean":
                count = self._count(node.bounds, where)
                return guard_by(where, times(above, Apply("div", (ONE, count))))
            case "max" | "min" | "peak":
                reached = Apply("eq", (node.body, out))
                ties = self._count(node.bounds, (*where, reached))
                share = times(above, Apply("div", (ONE, ties)))
                return guard_by((*where, reached), share)
            case "norm":
                share = Apply("div", (node.body, out))
                return guard_by(where, times(above, share))
            case "logsumexp":
                weight = Apply("exp", (Apply("sub", (node.body, out)),))
                return guard_by(where, times(above, weight))
            case "prod":
                return guard_by(where, times(above, self._others(node)))
            case _:
                raise Underivable(node)

    def _count(self, bounds: tuple[Bound, ...], where: tuple[Expr, ...]) -> Expr:
        if not where:
            return sum_over(bounds, ONE)
        new = self.values.bounds(tuple(b.axis for b in bounds))
        at = {b.index: Idx(n.index) for b, n in zip(bounds, new, strict=True)}
        return sum_over(new, guard_by([self.values.copy_at(w, at) for w in where], ONE))

    def _others(self, node: Reduce) -> Expr:
        """The product of all other factors: safe where a factor is 0."""
        new = self.values.bounds(tuple(b.axis for b in node.bounds))
        pairs = tuple(zip(node.bounds, new, strict=True))
        at: dict[str, Expr] = {b.index: Idx(n.index) for b, n in pairs}
        other: Expr | None = None
        for old, bound in pairs:
            differs = Apply("ne", (Idx(bound.index), Idx(old.index)))
            other = differs if other is None else Apply("or", (other, differs))
        if node.where is not None and other is not None:
            other = Apply("and", (self.values.copy_at(node.where, at), other))
        return Reduce("prod", new, self.values.copy_at(node.body, at), other)


def _require_linear(expr: Expr) -> None:
    """Raise Underivable unless every call has a linear backward."""
    for node in filter(is_crooked_call, nodes(expr)):
        raise Underivable(node)


_STEPS = 6_000
"""Steps for proving that parts of a cotangent vanish, which makes it shorter."""


def indexed_cotangents(rule: Rule) -> dict[str, Definition]:
    """The derived cotangent of every floating input, whatever the rule declares.

    Raises :class:`Underivable` where a call has a backward that is no derivative.
    """
    values = Values(rule)
    known = {v.name: v for v in values.order}
    lifted = {n: v for n, v in known.items() if n.startswith("%")}

    normal = Normal(_STEPS)

    def vanishes(expr: Expr) -> bool:
        return normal.left > 0 and normal.is_zero(
            inline_values(expr, known, values.fresh)
        )

    accumulation = Accumulation(rule, values, vanishes, Reuse(_by_worth(rule, values)))
    found = accumulation.run()
    result = {}
    for name, expr in found.items():
        variable = next(i for i in rule.inputs if i.name == name)
        indices = _indices(rule, variable)
        target = accumulation.targets[name]
        at: dict[str, Expr] = {
            b.index: Idx(i) for b, i in zip(target, indices, strict=True)
        }
        whole = factor_choice(with_known_extrema(straighten(expr, values.axes)))
        whole = inline_values(whole, lifted, values.fresh)
        taken = frozenset((*indices, *_variables(rule)))
        value = shorten_names(_without_shifts(replace_indices(whole, at)), taken)
        result[name] = derived_cotangent(variable, value, indices)
    return result


def derived_cotangent(
    variable: Input, value: Expr, indices: tuple[str, ...] = ()
) -> Definition:
    """The definition of a cotangent that was derived."""
    name, axes, span = variable.cotangent, variable.shape.axes, variable.span
    return Definition(name, Role.COTANGENT, value, indices, axes, Origin.DERIVED, span)


def same(stated: Expr, true: Expr) -> bool:
    """True if a closed expression is shown to be the derivative for all sizes. Where two
    arguments of a maximum tie, it may be the slope on either side.
    """
    if stated == true:
        return True
    sides = (_one_sided(true, side) for side in (True, False))
    forms = dict.fromkeys((true, solve_places(true), *sides))
    return any(is_zero(Apply("sub", (stated, form))) for form in forms)


def _one_sided(expr: Expr, is_first: bool) -> Expr:
    """A derivative with the slope of one side in place of the mean of both sides, on
    which all ties agree: that where the first of the two is the larger, or the other.
    """

    def visit(node: Expr) -> Expr:
        match node:
            case Select(
                condition=Apply(op="gt" | "lt" as op, args=args),
                then=then,
                other=Select(
                    condition=Apply(op="eq", args=tied), then=tie, other=other
                ),
            ) if {*tied} == {*args}:
                large, small = args if op == "gt" else reversed(args)
                mean = Apply("mul", (Const(Fraction(1, 2)), plus(then, other)))
                if not is_zero(Apply("sub", (tie, mean))):
                    return node
                holds = (text(large) < text(small)) == is_first
                return Select(
                    Apply("ge" if holds else "gt", (large, small)), then, other
                )
            case _:
                return node

    return transform(expr, visit)


def closed_cotangent(rule: Rule, cotangent: Definition) -> Expr:
    """The value of a cotangent in terms of inputs, upstream gradients and states, its
    free indices called ``0``, ``1``, … in order."""
    fresh, kept = Fresh(), states(rule)
    values = {
        name: Value(name, one.indices, one.axes, one.value)
        for name, one in rule.values.items()
        if not one.is_derived and name not in kept and name != cotangent.name
    }
    at: dict[str, Expr] = {i: Idx(str(p)) for p, i in enumerate(cotangent.indices)}
    return inline_values(refresh(cotangent.value, at, fresh), values, fresh)


def _without_shifts(expr: Expr) -> Expr:
    """The expression without ``AT``, which a rule may not have."""

    def visit(node: Expr) -> Expr:
        match node:
            case Apply(op=op, args=(Const() as index, place)) if op == AT:
                return Apply("eq", (place, index))
            case Apply(op=op, args=args) if op == AT:
                return Apply("eq", args)
            case _:
                return node

    return transform(expr, visit)


def _by_worth(rule: Rule, values: Values) -> list[Value]:
    """Values worth reusing: outputs first, which exist anyway; then the later locals,
    which contain more."""
    outputs = [o.name for o in rule.outputs if o.takes_gradient]
    named_ = [v for v in reversed(values.order) if not v.name.startswith("%")]
    return [
        *(v for v in named_ if v.name in outputs),
        *(v for v in named_ if v.name not in outputs),
    ]


def _indices(rule: Rule, variable: Input) -> tuple[str, ...]:
    """The free indices of a cotangent, with the shortest names."""
    taken = _variables(rule)
    letters = [c for c in "ijklpqrstuvw" if c not in taken]
    letters += [f"i{n}" for n in range(64) if f"i{n}" not in taken]
    return tuple(letters[: len(variable.shape.axes)])


def _variables(rule: Rule) -> dict[str, None]:
    """Names that an index must not have."""
    variables: tuple[Input | Output, ...] = (*rule.inputs, *rule.outputs)
    found: dict[str, None] = {}
    for variable in variables:
        found |= {variable.name: None, variable.cotangent: None}
        found |= {a: None for a in variable.shape.axes if isinstance(a, str)}
    return found | {let.name: None for let in (*rule.forward, *rule.backward_locals)}


# --- tangents -------------------------------------------------------------------------
#
# The cotangents of a rule, transposed by index calculus: a cotangent is linear in the
# upstream gradients; what multiplies ``dy[j]`` in ``dx[i]`` multiplies ``x_dot[i]`` in
# ``y_dot[j]``. So the cotangents are read as a rule from upstream gradients to gradients,
# and derived once more. The tangents inherit what the cotangents are: proved, evaluated
# stably, those of a surrogate or an override.


_Place: TypeAlias = "tuple[Expr, Axis]"
"""An index that the forward pass reads an axis at."""


class NotLinear(Exception):
    """A cotangent that is not linear in the upstream gradients has no transpose."""


def indexed_tangents(rule: Rule) -> dict[str, Definition]:
    """By output, over inputs, forward values and ``<input>_dot``.

    Raises :class:`NotLinear`, and `Underivable` as `indexed_cotangents` does.
    """
    turned = _transpose(rule)
    found = indexed_cotangents(turned)
    upstream = {*rule.cotangents}
    if any(names(entry.value) & upstream for entry in found.values()):
        raise NotLinear
    moved = {f"d{_slot(i.name)}": f"{i.name}_dot" for i in rule.inputs}
    return {
        o.name: replace(entry, value=rename_references(entry.value, moved))
        for o in rule.outputs
        if (entry := found.get(o.cotangent))
    }


def _slot(name: str) -> str:
    """The gradient of an input as an output: no author's name looks like it."""
    return f"@{name}"


def _transpose(rule: Rule) -> Rule:
    """The rule from upstream gradients to gradients; all else is given."""
    outer = {entry.name: _slot(entry.input) for entry in rule.backward}
    taken = frozenset(_positions_read(rule))
    turned = [
        replace(
            let,
            name=outer.get(let.name, let.name),
            role=Role.OUTPUT if let.name in outer else Role.LOCAL,
            value=_close(let, outer, taken),
        )
        for let in in_order((*rule.backward_locals, *rule.backward), rule.assumes)
    ]
    upstream = [
        Input(o.cotangent, Kind.FLOAT, o.shape)
        for o in rule.outputs
        if o.takes_gradient
    ]
    inputs = (*upstream, *_constants(rule))
    return Rule(
        name=rule.name,
        doc=None,
        inputs=inputs,
        outputs=tuple(
            Output(_slot(i.name), Kind.FLOAT, i.shape)
            for i in rule.inputs
            if i.cotangent in outer
        ),
        definitions=tuple(turned),
        assumes=rule.assumes,
    )


def _close(let: Definition, outer: dict[str, str], taken: frozenset[_Place]) -> Expr:
    axes = dict(zip(let.indices, let.axes, strict=True))
    return _with_points(rename_references(expand(let.value), outer), axes, taken)


def _constants(rule: Rule) -> Iterator[Input]:
    """Inputs and forward values, which are constants here."""
    for variable in rule.inputs:
        kind = Kind.NOGRAD if variable.takes_gradient else variable.kind
        yield replace(variable, kind=kind)
    shapes = {o.name: o.shape for o in rule.outputs}
    for let in rule.forward:
        yield Input(let.name, Kind.NOGRAD, shapes.get(let.name, Shape(axes=let.axes)))


def in_order(
    lets: tuple[Definition, ...], assumes: tuple[Assume, ...]
) -> tuple[Definition, ...]:
    """The values in order, each after those that it uses, those of a recurrence
    together."""
    parts = components(lets, assumes)
    groups = (
        (part,) if isinstance(part, Definition) else part.values for part in parts
    )
    return tuple(let for group in groups for let in group)


# --- positions that are there --------------------------------------------------------------


def _positions_read(rule: Rule) -> Iterator[_Place]:
    """Positions that the forward pass reads whatever holds: they are in range."""
    axes = {i.name: i.shape.axes for i in rule.inputs}
    axes |= {let.name: let.axes for let in rule.forward}
    for let in rule.forward:
        found = (
            unguarded_references(let.value)
            if let.name in evaluated_values(rule)
            else ()
        )
        for node in found:
            if isinstance(node, Ref):
                pairs = zip(node.indices, axes.get(node.name, ()), strict=True)
                yield from (_place(index, axis, _axes_in(let)) for index, axis in pairs)


def _axes_in(let: Definition) -> Mapping[str, Axis]:
    """The axes of all indices in a definition."""
    found = dict(zip(let.indices, let.axes, strict=True))
    sums = (node for node in nodes(let.value) if isinstance(node, Reduce))
    return found | {b.index: b.axis for node in sums for b in node.bounds}


def _place(index: Expr, axis: Axis, axes: Mapping[str, Axis]) -> _Place:
    """A position on an axis, whatever its indices are called."""
    used = [node.name for node in nodes(index) if isinstance(node, Idx)]
    at: dict[str, Expr] = {
        name: Idx(f"{number} of {axes.get(name)}")
        for number, name in enumerate(dict.fromkeys(used))
    }
    return replace_indices(index, at), axis


def _with_points(
    expr: Expr, axes: Mapping[str, Axis], taken: frozenset[_Place]
) -> Expr:
    """``i == t`` as a position, known to be in range or in it by a condition, so that a
    sum over ``i`` has one term."""
    if isinstance(expr, Reduce):
        axes = {**axes, **{b.index: b.axis for b in expr.bounds}}
    match expr:
        case Apply(
            op="eq",
            args=(Idx(name=name) as place, index) | (index, Idx(name=name) as place),
        ) if name not in index.free:
            at, axis = Apply(AT, (index, place)), axes[name]
            if _is_there(index, axis, axes, taken):
                return at
            low, high = Apply("ge", (index, ZERO)), Apply("lt", (index, extent(axis)))
            return Apply("and", (at, Apply("and", (low, high))))
        case _:
            parts = tuple(_with_points(child, axes, taken) for child in children(expr))
            return with_children(expr, parts)


def _is_there(
    index: Expr, axis: Axis, axes: Mapping[str, Axis], taken: frozenset[_Place]
) -> bool:
    match index:
        case Idx(name=name):
            return axes[name] == axis
        case Const(value=value) if isinstance(axis, int):
            return value in range(axis)
        case _:
            return _place(index, axis, axes) in taken
