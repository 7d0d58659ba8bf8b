"""What must be true of every rule, whatever stage made it.

A broken invariant is a fault of ours, never the user's: tests call this after each
stage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import assert_never

from gradspec.ir.expr import (
    Apply,
    Call,
    Const,
    Expr,
    Idx,
    Reduce,
    Ref,
    Select,
    Size,
)
from gradspec.ir.rule import (
    Declared,
    Derived,
    Input,
    Let,
    NoGradient,
    Output,
    Override,
    Pending,
    Rule,
)
from gradspec.ir.walk import children, names

REDUCTIONS = frozenset(("sum", "mean", "prod", "max", "min", "logsumexp", "peak"))

Ranks = Mapping[str, int]
Arity = Callable[[str], int | None]


def verify(rule: Rule, arity: Arity | None = None) -> tuple[str, ...]:
    """The invariants that ``rule`` breaks, none if it is well-formed.

    ``arity`` gives the number of arguments of a primitive, None for an unknown one; the
    tree does not know the table, so primitives are checked only if it is given.
    """
    check = _Check(rule, arity)
    return tuple(dict.fromkeys(check.faults()))


class _Check:
    def __init__(self, rule: Rule, arity: Arity | None) -> None:
        self.rule = rule
        self.arity = arity
        variables: tuple[Input | Output, ...] = (*rule.inputs, *rule.outputs)
        self.sizes = {axis for v in variables for axis in v.shape.axes}

    def faults(self) -> Iterator[str]:
        yield from self._names()
        inputs = {i.name: len(i.shape.axes) for i in self.rule.inputs}
        forward = dict(inputs)
        yield from self._lets(self.rule.forward, forward)
        missing = (o.name for o in self.rule.outputs if o.name not in forward)
        yield from (f"output {name} is not assigned" for name in missing)
        for surrogate in self.rule.surrogates:
            place = f"surrogate of {surrogate.output}"
            yield from self._expr(surrogate.value, forward, surrogate.indices, place)
        for assume in self.rule.assumes:
            bound = tuple(index for index, _ in assume.indices)
            yield from self._expr(assume.condition, inputs, bound, "assume")
        yield from self._backward(dict(forward))
        yield from self._clauses(forward)

    # --- names -----------------------------------------------------------------------

    def _names(self) -> Iterator[str]:
        rule, seen = self.rule, set[str]()
        locals_ = {let.name for let in rule.forward} - {o.name for o in rule.outputs}
        for name in (
            *(i.name for i in rule.inputs),
            *(o.name for o in rule.outputs),
            *sorted(locals_),
            *(let.name for let in rule.backward_locals),
        ):
            if name in seen:
                yield f"{name} names two things"
            seen.add(name)
        variables: tuple[Input | Output, ...] = (*rule.inputs, *rule.outputs)
        for variable in variables:
            if variable.takes_gradient and f"d{variable.name}" in seen:
                yield f"d{variable.name} is a variable and a gradient"

    def _lets(self, lets: tuple[Let, ...], ranks: dict[str, int]) -> Iterator[str]:
        """Each value uses names above it only; adds its own name to ``ranks``."""
        assigned = {let.name for let in lets if let.name in ranks}
        yield from (f"{name} is assigned twice" for name in sorted(assigned))
        for let in lets:
            yield from self._expr(let.value, ranks, let.indices, let.name)
            if let.axes and len(let.axes) != len(let.indices):
                yield f"{let.name} has axes and indices of different number"
            ranks[let.name] = len(let.indices)
        for output in self.rule.outputs:
            if ranks.get(output.name, len(output.shape.axes)) != len(output.shape.axes):
                yield f"output {output.name} has not as many indices as axes"

    # --- backward --------------------------------------------------------------------

    def _backward(self, ranks: dict[str, int]) -> Iterator[str]:
        rule = self.rule
        if len(rule.backward) != len(rule.inputs):
            yield "backward has not one entry for each input"
            return
        ranks |= {
            f"d{o.name}": len(o.shape.axes) for o in rule.outputs if o.takes_gradient
        }
        ranks |= {let.name: len(let.indices) for let in rule.backward_locals}
        entries = list(zip(rule.inputs, rule.backward, strict=True))
        ranks |= {
            f"d{i.name}": len(i.shape.axes)
            for i, entry in entries
            if isinstance(entry, Declared | Override)
        }
        for let in rule.backward_locals:
            yield from self._expr(let.value, ranks, let.indices, let.name)
        for input, entry in entries:
            yield from self._entry(input, entry, ranks)
        yield from self._circles()

    def _entry(self, input: Input, entry: object, ranks: Ranks) -> Iterator[str]:
        match entry:
            case NoGradient() if input.takes_gradient:
                yield f"{input.name} takes a gradient and has none"
            case Pending() | Declared() | Derived() | Override() if (
                not input.takes_gradient
            ):
                yield f"{input.name} takes no gradient and has one"
            case Declared() | Derived() | Override():
                place = f"d{input.name}"
                yield from self._expr(entry.value, ranks, entry.indices, place)
                if len(entry.indices) != len(input.shape.axes):
                    yield f"{place} has not as many indices as {input.name} has axes"
            case _:
                pass

    def _circles(self) -> Iterator[str]:
        """Locals and declared gradients may use one another, but not in a circle."""
        values = {let.name: let.value for let in self.rule.backward_locals}
        for input, entry in zip(self.rule.inputs, self.rule.backward, strict=True):
            if isinstance(entry, Declared | Override):
                values[f"d{input.name}"] = entry.value
        waiting = {name: names(value) & set(values) for name, value in values.items()}
        while free := [name for name, needs in waiting.items() if not needs]:
            for name in free:
                del waiting[name]
            for name in waiting:
                waiting[name] -= set(free)
        if waiting:
            yield "the backward pass goes in a circle: " + ", ".join(waiting)

    # --- clauses ---------------------------------------------------------------------

    def _clauses(self, forward: Ranks) -> Iterator[str]:
        rule = self.rule
        gradients = {o.name for o in rule.outputs if o.takes_gradient}
        replaced = [s.output for s in rule.surrogates]
        for name in replaced:
            if name not in gradients or replaced.count(name) > 1:
                yield f"surrogate of {name}, which cannot have it"
        for name in (*rule.saves, *rule.recomputes):
            if name not in forward:
                yield f"{name} is kept and is no forward value"
        for name in rule.saves:
            if name in rule.recomputes:
                yield f"{name} is saved and recomputed"
        yield from self._examples()

    def _examples(self) -> Iterator[str]:
        rule = self.rule
        given = {i.name for i in rule.inputs}
        given |= {f"d{o.name}" for o in rule.outputs if o.takes_gradient}
        expected = {o.name for o in rule.outputs}
        expected |= {f"d{i.name}" for i in rule.inputs if i.takes_gradient}
        for example in rule.examples:
            for name, _ in example.given:
                if name not in given:
                    yield f"an example gives {name}"
            for name, _ in example.expected:
                if name not in expected:
                    yield f"an example expects {name}"

    # --- expressions -----------------------------------------------------------------

    def _expr(
        self, expr: Expr, ranks: Ranks, indices: tuple[str, ...], place: str
    ) -> Iterator[str]:
        """A pair of node and indices in force is looked at once: trees share much."""
        todo: list[tuple[Expr, tuple[str, ...]]] = [(expr, indices)]
        seen: set[tuple[Expr, tuple[str, ...]]] = set()
        while todo:
            node, bound = todo.pop()
            if (node, bound) in seen:
                continue
            seen.add((node, bound))
            yield from (f"{place}: {fault}" for fault in self._node(node, ranks, bound))
            if isinstance(node, Reduce):
                bound = (*bound, *(b.index for b in node.bounds))
            todo.extend((child, bound) for child in children(node))

    def _node(self, node: Expr, ranks: Ranks, bound: tuple[str, ...]) -> Iterator[str]:
        match node:
            case Const() | Select():
                pass
            case Ref(name=name, indices=indices):
                if name not in ranks:
                    yield f"{name} is not in view"
                elif ranks[name] != len(indices):
                    yield f"{name} has {len(indices)} indices, not {ranks[name]}"
            case Idx(name=name):
                if name not in bound:
                    yield f"index {name} is not bound"
            case Size(axis=axis):
                if axis not in self.sizes:
                    yield f"there is no axis {axis}"
            case Apply(op=op, args=args):
                if self.arity is not None and self.arity(op) != len(args):
                    yield f"{op} is no primitive of {len(args)} arguments"
            case Reduce():
                yield from self._reduce(node, bound)
            case Call():
                yield from _call(node)
            case _:
                assert_never(node)

    def _reduce(self, node: Reduce, bound: tuple[str, ...]) -> Iterator[str]:
        if node.op not in REDUCTIONS:
            yield f"{node.op} is no reduction"
        if not node.bounds:
            yield f"{node.op} has no index"
        for b in node.bounds:
            if b.index in bound:
                yield f"index {b.index} is bound twice"
            if isinstance(b.axis, str) and b.axis not in self.sizes:
                yield f"index {b.index} ranges over no axis of the rule"


def _call(node: Call) -> Iterator[str]:
    rule = node.rule
    if len(node.args) != len(rule.inputs):
        yield f"{rule.name} is called with {len(node.args)} arguments"
    if not 0 <= node.output < len(rule.outputs):
        yield f"{rule.name} has no output {node.output}"
    if not rule.is_elementwise:
        yield f"{rule.name} is called and is not elementwise"
