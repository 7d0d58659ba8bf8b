"""Calls of rules with axes: their formulas become definitions of the rule that calls them.

``softmax(x)[i]`` is an element of the result, ``y = softmax(x)`` all of it. An argument
is an array: a name, a slice (``x[i, :]``) or another such call. The axes of the called
rule are those of its arguments. Axes in front of them, and indices that a slice fixes,
are further axes of the values that depend on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, count

from gradspec.ir.expr import (
    ZERO,
    Bound,
    Call,
    Const,
    Expr,
    Idx,
    Reduce,
    Ref,
    Size,
    const,
)
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
from gradspec.ir.walk import names, nodes, transform
from gradspec.lower.context import UNKNOWN, Context, NameRole, Placed, Variable
from gradspec.lower.module import Type, Value, combine, type_of_kind
from gradspec.source import Span
from gradspec.syntax import nodes as syntax

Axis = str | int

LETTERS = "ijklmpqrstuvwbcdefgh"


def letters(avoid: Iterable[str]) -> Iterable[str]:
    """Names for indices, without these."""
    known = {*avoid}
    every = chain(LETTERS, (f"i{number}" for number in count(2)))
    return (letter for letter in every if letter not in known)


def index_names(expr: Expr) -> frozenset[str]:
    """The indices of an expression, free and bound."""
    every = nodes(expr)
    bound = {b.index for n in every if isinstance(n, Reduce) for b in n.bounds}
    return frozenset(bound | {n.name for n in every if isinstance(n, Idx)})


def with_indices(expr: Expr, free: Mapping[str, Expr], avoid: Iterable[str]) -> Expr:
    """An expression at other free indices; bound ones are none of ``avoid``."""
    every = index_names(expr)
    others = {*avoid, *every, *chain.from_iterable(e.free for e in free.values())}
    bound = {b.index for n in nodes(expr) if isinstance(n, Reduce) for b in n.bounds}
    clashing = sorted(
        bound & {*avoid, *chain.from_iterable(e.free for e in free.values())}
    )
    new = dict(zip(clashing, letters(others), strict=False))
    values = {**free, **{old: Idx(name) for old, name in new.items()}}

    def visit(node: Expr) -> Expr:
        match node:
            case Idx(name=name):
                return values.get(name, node)
            case Reduce(op=op, bounds=bounds, body=body, where=where) if new:
                made = tuple(Bound(new.get(b.index, b.index), b.axis) for b in bounds)
                return Reduce(op, made, body, where, span=node.span)
            case _:
                return node

    return transform(expr, visit)


@dataclass(frozen=True, slots=True)
class Array:
    """A value for each place of its ``axes``: ``value`` at the indices ``holes``."""

    value: Value
    holes: tuple[str, ...] = ()
    axes: tuple[Axis, ...] = ()

    def at(self, indices: Iterable[Expr], avoid: Iterable[str] = ()) -> Expr:
        """The element at some indices; it binds none of the indices ``avoid``."""
        places = dict(zip(self.holes, indices, strict=True))
        return with_indices(self.value.expr, places, avoid)

    @property
    def outer(self) -> tuple[str, ...]:
        """The indices around the call that it depends on."""
        return tuple(n for n in self.value.expr.free if n not in self.holes)


# --- what is called ------------------------------------------------------------------


def _rule_of_first(name: str, inputs: tuple[Input, ...], replaced: Definition) -> Rule:
    """An elementwise rule that gives its first input, and has another gradient."""
    value = Definition("y", Role.OUTPUT, Ref("x"))
    outputs = (Output("y", Kind.FLOAT, Shape(), spans=("x",)),)
    return Rule(name, None, inputs, outputs, (value, replaced))


_SURROGATE = _rule_of_first(
    "with_surrogate",
    (Input("x", Kind.NOGRAD, Shape()), Input("soft", Kind.FLOAT, Shape())),
    Definition("y", Role.SURROGATE, Ref("soft")),
)
_STOPPED = _rule_of_first(
    "stop_gradient",
    (Input("x", Kind.FLOAT, Shape()),),
    Definition(
        "dx", Role.COTANGENT, ZERO, origin=Origin.OVERRIDE, reason="no gradient"
    ),
)


@dataclass(frozen=True, slots=True)
class Fitted:
    """A call: the inputs of the rule as arrays, and its axes as those of the caller.
    ``leads`` are further axes by index, at first those of indices around the call, then
    the ``batch``; each array has some."""

    rule: Rule
    arrays: Mapping[str, Array]
    axes: Mapping[str, Axis]
    leads: Mapping[str, Axis]
    batch: tuple[str, ...]
    span: Span

    def result(self, number: int, cx: Context) -> Array:
        """An output, over the axes of the batch and its own."""
        assert cx.placed is not None, "checked before"
        output = self.rule.outputs[number]
        let = next(d for d in self.rule.forward if d.name == output.name)
        soft = next((d for d in self.rule.surrogates if d.name == output.name), None)
        lets = (let,) if soft is None else (let, soft)
        fronts = self._fronts()
        renamed = self._new_indices(cx)
        made = self._define(lets, fronts, renamed, cx)
        front = [n for n in self.leads if any(n in fronts[d.name] for d in lets)]
        own = tuple(renamed[index] for index in let.indices)
        places = (*(n for n in self.leads if n in fronts[let.name]), *own)
        expr: Expr = Ref(made[let.name], tuple(map(Idx, places)), span=self.span)
        if soft is not None:
            at = dict(zip(soft.indices, own, strict=True))
            other = self._convert(soft.value, renamed | at, fronts, made)
            expr = Call(_SURROGATE, 0, (expr, other), span=self.span)
        elif output.kind is Kind.NOGRAD:
            expr = Call(_STOPPED, 0, (expr,), span=self.span)
        holes = (*(n for n in front if n in self.batch), *own)
        axes = (
            *(self.leads[n] for n in front if n in self.batch),
            *map(self._axis, let.axes),
        )
        parts = (array.value for array in self.arrays.values())
        value = combine(expr, type_of_kind(output.kind), *parts)
        return Array(replace(value, is_static=False), holes, axes)

    def _axis(self, axis: Axis) -> Axis:
        return self.axes[axis] if isinstance(axis, str) else axis

    def _fronts(self) -> Mapping[str, frozenset[str]]:
        """The leads on which each input and value depends."""
        found: dict[str, frozenset[str]] = {}
        for name, array in self.arrays.items():
            extra = len(array.axes) - len(self._input(name).shape.axes)
            own = self.batch[len(self.batch) - extra :]
            found[name] = frozenset((*array.outer, *own))
        lets = (*self.rule.forward, *self.rule.surrogates)
        for let in (*lets, *lets):  # twice: the values of a recurrence use later ones
            below = (found.get(name, frozenset()) for name in names(let.value))
            found[let.name] = found.get(let.name, frozenset()).union(*below)
        return found

    def _input(self, name: str) -> Input:
        return next(i for i in self.rule.inputs if i.name == name)

    def _new_indices(self, cx: Context) -> dict[str, str]:
        """New names for the indices of the rule that mean something to the caller."""
        own = _indices_of(self.rule)
        given = (index_names(a.value.expr) for a in self.arrays.values())
        avoid = {*_declared_names(cx), *self.leads, *chain(*given)}
        free = iter(letters((*avoid, *own)))
        return {name: next(free) if name in avoid else name for name in own}

    def _define(
        self,
        lets: tuple[Definition, ...],
        fronts: Mapping[str, frozenset[str]],
        renamed: Mapping[str, str],
        cx: Context,
    ) -> Mapping[str, str]:
        """The caller's names of what some values use; they are defined, if need be."""
        assert cx.placed is not None
        placed, outputs = cx.placed, {o.name for o in self.rule.outputs}
        key = (self.rule, *self.arrays.items(), *self.axes.items())
        made = placed.calls.setdefault(key, {})
        known = {d.name: d for d in self.rule.forward}
        needed = {let.name for let in lets}
        for _ in known:
            needed |= {
                n for name in needed for n in names(known[name].value)
            } & known.keys()
        new = [d for d in self.rule.forward if d.name in needed and d.name not in made]
        for let in new:
            own = f"{self.rule.name}_{let.name}"
            if len(outputs) == 1 and let.name in outputs:
                own = self.rule.name
            wanted = (own,) if let.name in outputs else (let.name, own)
            made[let.name] = placed.fresh(*wanted)
            inputs = [
                a for n, a in self.arrays.items() if n in self._names_below(let.name)
            ]
            leads = tuple(n for n in self.leads if n in fronts[let.name])
            placed.variables[made[let.name]] = Variable(
                made[let.name],
                NameRole.LOCAL,
                Type.REAL,
                (*(self.leads[n] for n in leads), *map(self._axis, let.axes)),
                any(a.value.batch for a in inputs),
                any(a.value.is_backward for a in inputs),
            )
        for let in new:
            variable = placed.variables[made[let.name]]
            leads = tuple(n for n in self.leads if n in fronts[let.name])
            start = let.start and self._convert(let.start, renamed, fronts, made)
            placed.definitions.append(
                Definition(
                    variable.name,
                    Role.BACKWARD_LOCAL if variable.is_backward else Role.LOCAL,
                    self._convert(let.value, renamed, fronts, made),
                    (*leads, *(renamed[index] for index in let.indices)),
                    variable.axes,
                    span=self.span,
                    is_equation=let.is_equation,
                    start=start,
                )
            )
            if let.name in outputs:
                placed.results[variable.name] = None
            placed.assumes += self._assumes(let.name, renamed, fronts, made)
        for name in needed:
            variable = placed.variables[made[name]]
            cx.scope.variables.setdefault(variable.name, variable)
        return made

    def _assumes(
        self,
        name: str,
        renamed: Mapping[str, str],
        fronts: Mapping[str, frozenset[str]],
        made: Mapping[str, str],
    ) -> Iterator[Assume]:
        """What the rule assumes of a value that an equation defines."""
        for one in self.rule.assumes:
            if name in names(one.condition):
                used = {n for other in names(one.condition) for n in fronts[other]}
                leads = ((n, axis) for n, axis in self.leads.items() if n in used)
                own = ((renamed[n], self._axis(axis)) for n, axis in one.indices)
                condition = self._convert(one.condition, renamed, fronts, made)
                yield Assume(condition, (*leads, *own), self.span)

    def _names_below(self, name: str) -> frozenset[str]:
        known = {d.name: d for d in self.rule.forward}
        found = {name}
        for _ in known:
            found |= {
                n for one in found & known.keys() for n in names(known[one].value)
            }
        return frozenset(found)

    def _convert(
        self,
        expr: Expr,
        renamed: Mapping[str, str],
        fronts: Mapping[str, frozenset[str]],
        made: Mapping[str, str],
    ) -> Expr:
        """An expression of the rule as one of the caller, at the place of the call."""

        def visit(node: Expr) -> Expr:
            match node:
                case Ref(name=name, indices=indices) if name in self.arrays:
                    array, input = self.arrays[name], self._input(name)
                    extra = len(array.axes) - len(input.shape.axes)
                    front = map(Idx, self.batch[len(self.batch) - extra :])
                    found = array.at((*front, *indices))
                    if input.kind is Kind.NOGRAD:
                        found = Call(_STOPPED, 0, (found,))
                    return found.at(self.span)
                case Ref(name=name, indices=indices):
                    leads = (Idx(n) for n in self.leads if n in fronts[name])
                    return Ref(made[name], (*leads, *indices), span=self.span)
                case Idx(name=name):
                    return Idx(renamed[name], span=self.span)
                case Size(axis=axis):
                    own = self._axis(axis)
                    made_ = Size(own) if isinstance(own, str) else const(own)
                    return made_.at(self.span)
                case Reduce(op=op, bounds=bounds, body=body, where=where):
                    new = tuple(
                        Bound(renamed[b.index], self._axis(b.axis)) for b in bounds
                    )
                    return Reduce(op, new, body, where, span=self.span)
                case _:
                    return node.at(self.span)

        return transform(expr, visit)


# --- results with a name of their own --------------------------------------------------


def without_copies(
    lets: tuple[Definition, ...], placed: Placed
) -> tuple[Definition, ...]:
    """Definitions in which a result of a called rule has the name of its copy:
    ``y[i] = softmax(x)[i]``. So it has in what is assumed of it."""
    for name in placed.results:
        own = next(let for let in lets if let.name == name)
        copy = next((let for let in lets if _is_copy(let, name)), None)
        if copy is None:
            continue
        kept = (let for let in lets if let is not copy)
        made = replace(own, name=copy.name, role=copy.role, span=copy.span)
        made = replace(made, origin=copy.origin, reason=copy.reason)
        lets = tuple(made if let is own else let for let in kept)
        lets = tuple(
            replace(
                let,
                value=_rename(let.value, name, copy.name),
                start=let.start and _rename(let.start, name, copy.name),
            )
            for let in lets
        )
        placed.assumes[:] = (
            replace(one, condition=_rename(one.condition, name, copy.name))
            for one in placed.assumes
        )
    return lets


def _is_copy(let: Definition, name: str) -> bool:
    is_same = let.value == Ref(name, tuple(map(Idx, let.indices)))
    return is_same and let.role is not Role.SURROGATE


def _rename(expr: Expr, old: str, new: str) -> Expr:
    """An expression with another name for a value that it uses."""

    def visit(node: Expr) -> Expr:
        is_use = isinstance(node, Ref) and node.name == old
        return Ref(new, node.below, span=node.span) if is_use else node

    return transform(expr, visit)


# --- shapes ---------------------------------------------------------------------------


def fit(
    node: syntax.Call, rule: Rule, arrays: Mapping[str, Array], cx: Context
) -> Fitted | None:
    """A call whose arguments have the axes that the rule asks for; None if they have
    not, which is reported. A static that is a size counts as an axis."""
    axes: dict[str, Axis] = {}
    batch: tuple[Axis, ...] = ()
    for input in rule.inputs:
        array, own = arrays[input.name], input.shape.axes
        if input.is_size:
            given = _size(array)
            if given is None:
                what = f"`{input.name}` of `{rule.name}` is the size of an axis"
                _misfit(what, "give a number, an axis or a `static int`", node, cx)
                return None
            pairs: tuple[tuple[Axis, Axis], ...] = ((input.name, given),)
        else:
            extra = len(array.axes) - len(own)
            if extra < 0 or (extra and not input.shape.batch):
                _report_count(node, rule, input, array, cx)
                return None
            front = array.axes[:extra]
            common = min(len(front), len(batch))
            if front[extra - common :] != batch[len(batch) - common :]:
                what = f"axes {_axes_text(front)} stand before those of `{input.name}`, and"
                what += (
                    f" axes {_axes_text(batch)} before those of an argument in front"
                )
                _misfit(what, "they are the same from the last one on", node, cx)
                return None
            batch = max(batch, front, key=len)
            pairs = tuple(zip(own, array.axes[extra:], strict=True))
        for one, given in pairs:
            known = axes.setdefault(one, given) if isinstance(one, str) else one
            if UNKNOWN in (known, given):
                axes[str(one)] = given if known == UNKNOWN else known
            elif known != given:
                _report_sizes(node, rule, input, one, (known, given), cx)
                return None
    captured = dict.fromkeys(chain(*(array.outer for array in arrays.values())))
    leads: dict[str, Axis] = {}
    for name in captured:
        binding = next(b for b in cx.scope.indices if b.id == name)
        if binding.solution is None:
            what = f"the axis of `{binding.name}` is not known at this call"
            help = f"give it a range where it is introduced: `{binding.name} in n`"
            _misfit(what, help, node, cx)
            return None
        leads[name] = binding.solution
    free = iter(letters((*_indices_of(rule), *captured, *_declared_names(cx))))
    names_of_batch = tuple(next(free) for _ in batch)
    leads |= dict(zip(names_of_batch, batch, strict=True))
    return Fitted(rule, arrays, axes, leads, names_of_batch, node.span)


def _declared_names(cx: Context) -> frozenset[str]:
    """The names of the rule but those of indices and of values of called rules."""
    assert cx.placed is not None, "checked before a rule is called"
    names = (*cx.scope.variables, *cx.scope.hidden, *cx.scope.sizes)
    return frozenset(names) - cx.placed.variables.keys()


def _indices_of(rule: Rule) -> list[str]:
    """The indices that a rule uses."""
    lets = (*rule.forward, *rule.surrogates)
    exprs = (e for let in lets for e in (let.value, let.start) if e is not None)
    every = (*exprs, *(one.condition for one in rule.assumes))
    own = chain(*(let.indices for let in lets))
    return sorted({*own, *chain(*(index_names(expr) for expr in every))})


def _size(array: Array) -> Axis | None:
    match array.value.expr:
        case Const(value=value) if value.denominator == 1 and value >= 1:
            return int(value)
        case Size(axis=axis):
            return axis
        case Ref(name=name, indices=()) if array.value.is_static:
            return name if array.value.type is Type.INT else None
        case _:
            return None


def _axes_text(axes: Iterable[Axis]) -> str:
    return f"({', '.join(map(str, axes))})"


def _misfit(what: str, help: str, node: syntax.Call, cx: Context) -> None:
    cx.findings.error("GS219", what, node.function_span, help=help)


def _report_count(
    node: syntax.Call, rule: Rule, input: Input, array: Array, cx: Context
) -> None:
    own, given = input.shape.axes, array.axes
    shown = _axes_text(("...", *own) if input.shape.batch else own)
    has = f"axes {_axes_text(given)}" if given else "no axes"
    if len(given) < len(own):
        help = (
            "give a name without indices, a slice `x[i, :]`, or name the array first:"
        )
        help += f" `a[{', '.join(LETTERS[: len(own)])}] = …`"
    else:
        kept = [*LETTERS[: len(given) - len(own)], *(":" for _ in own)]
        help = (
            f"fix indices, such as `[{', '.join(kept)}]`, or give `{input.name}` batch"
        )
        help += f" axes: `{input.name}[{', '.join(('...', *map(str, own)))}]`"
    what = f"`{input.name}` of `{rule.name}` has axes {shown}, and the argument {has}"
    _misfit(what, help, node, cx)


def _report_sizes(
    node: syntax.Call,
    rule: Rule,
    input: Input,
    axis: Axis,
    sizes: tuple[Axis, Axis],
    cx: Context,
) -> None:
    first, second = sizes
    what = (
        f"axis `{axis}` of `{rule.name}` would be of the sizes `{first}` and `{second}`"
    )
    if isinstance(axis, int):
        what = (
            f"`{input.name}` of `{rule.name}` has an axis of size {axis}, and here it"
        )
        what += f" would be `{second}`"
    help = "if they are equal, give the axes one name in the head of the rule"
    _misfit(what, help, node, cx)
