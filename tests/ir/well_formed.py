"""What must be true of every rule, whatever stage made it.

A broken invariant is a fault of ours, never the user's: tests call this after each
stage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from gradspec.ir.expr import Apply, Call, Expr, Idx, Reduce, Ref, Size
from gradspec.ir.recurrence import recurrences
from gradspec.ir.rule import Role, Rule
from gradspec.ir.walk import children

REDUCTIONS = frozenset(
    ("sum", "mean", "prod", "max", "min", "logsumexp", "norm", "peak")
)

Ranks = Mapping[str, int]
Arity = Callable[[str], int | None]


def verify(rule: Rule, arity: Arity | None = None) -> tuple[str, ...]:
    """The invariants that ``rule`` breaks, none if it is well-formed.

    ``arity`` gives the number of arguments of a primitive, None for an unknown one;
    primitives are checked only if it is given.
    """
    return tuple(dict.fromkeys(_faults(rule, arity)))


def _faults(rule: Rule, arity: Arity | None) -> Iterator[str]:
    """Each value uses names above it only, or those of its own recurrence, each with as
    many indices as it has axes."""
    variables = (*rule.inputs, *rule.outputs)
    sizes = {axis for v in variables for axis in v.shape.axes}

    def faults(
        value: Expr, ranks: Ranks, bound: tuple[str, ...], place: str
    ) -> Iterator[str]:
        for fault in _expr(value, ranks, bound, sizes, arity):
            yield f"{place}: {fault}"

    inputs = {i.name: len(i.shape.axes) for i in rule.inputs}
    ranks, running = dict(inputs), recurrences(rule, rule.forward)
    for let in rule.forward:
        if let.name in ranks:
            yield f"{let.name} is assigned twice"
        own = next((part for part in running if let.name in part.names), None)
        together = own.values if own else ()
        seen = {**ranks, **{d.name: len(d.indices) for d in together}}
        yield from faults(let.value, seen, let.indices, let.name)
        ranks[let.name] = len(let.indices)
    for output in rule.outputs:
        if output.name not in ranks:
            yield f"output {output.name} is not assigned"
        elif ranks[output.name] != len(output.shape.axes):
            yield f"output {output.name} has not as many indices as axes"
    for surrogate in rule.surrogates:
        place = f"surrogate of {surrogate.name}"
        yield from faults(surrogate.value, ranks, surrogate.indices, place)
    for assume in rule.assumes:
        bound = tuple(index for index, _ in assume.indices)
        yield from faults(assume.condition, inputs, bound, "assume")
    for name in (*rule.saves, *rule.recomputes):
        if name not in ranks:
            yield f"{name} is kept and is no forward value"
    inputs = {f"d{i.name}": i for i in rule.inputs}
    ranks |= {f"d{o.name}": len(o.shape.axes) for o in rule.outputs if o.takes_gradient}
    ranks |= {let.name: len(let.indices) for let in rule.backward_locals}
    written = (entry for entry in rule.backward if not entry.is_derived)
    ranks |= {entry.name: len(inputs[entry.name].shape.axes) for entry in written}
    for let in rule.backward_locals:
        yield from faults(let.value, ranks, let.indices, let.name)
    for entry in (d for d in rule.definitions if d.role is Role.COTANGENT):
        variable = inputs.get(entry.name)
        if variable is None or not variable.takes_gradient:
            yield f"{entry.name} is the gradient of no input that takes one"
            continue
        yield from faults(entry.value, ranks, entry.indices, entry.name)
        if len(entry.indices) != len(variable.shape.axes):
            yield f"{entry.name} has not as many indices as {variable.name} has axes"


def _expr(
    expr: Expr,
    ranks: Ranks,
    indices: tuple[str, ...],
    sizes: set[str | int],
    arity: Arity | None,
) -> Iterator[str]:
    """A pair of node and indices in force is looked at once: trees share much."""
    todo: list[tuple[Expr, tuple[str, ...]]] = [(expr, indices)]
    seen: set[tuple[Expr, tuple[str, ...]]] = set()
    while todo:
        node, bound = todo.pop()
        if (node, bound) in seen:
            continue
        seen.add((node, bound))
        yield from _node(node, ranks, bound, sizes, arity)
        if isinstance(node, Reduce):
            bound = (*bound, *(b.index for b in node.bounds))
        todo.extend((child, bound) for child in children(node))


def _node(
    node: Expr,
    ranks: Ranks,
    bound: tuple[str, ...],
    sizes: set[str | int],
    arity: Arity | None,
) -> Iterator[str]:
    match node:
        case Ref(name=name, indices=indices):
            if name not in ranks:
                yield f"{name} is not in view"
            elif ranks[name] != len(indices):
                yield f"{name} has {len(indices)} indices, not {ranks[name]}"
        case Idx(name=name) if name not in bound:
            yield f"index {name} is not bound"
        case Size(axis=axis) if axis not in sizes:
            yield f"there is no axis {axis}"
        case Apply(op=op, args=args) if arity and arity(op) != len(args):
            yield f"{op} is no primitive of {len(args)} arguments"
        case Reduce(op=op, bounds=bounds):
            if op not in REDUCTIONS:
                yield f"{op} is no reduction"
            for b in bounds:
                if b.index in bound:
                    yield f"index {b.index} is bound twice"
                if isinstance(b.axis, str) and b.axis not in sizes:
                    yield f"index {b.index} ranges over no axis of the rule"
        case Call(rule=rule, output=output, args=args):
            if len(args) != len(rule.inputs):
                yield f"{rule.name} is called with {len(args)} arguments"
            if not 0 <= output < len(rule.outputs):
                yield f"{rule.name} has no output {output}"
            if rule.has_axes:
                yield f"{rule.name} is called and is not elementwise"
