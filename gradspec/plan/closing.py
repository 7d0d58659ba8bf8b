"""A rule's values as closed expressions over arrays: locals and outputs put in place.

What keeps its name: constants (locals that no tensor takes part in) and, in the
backward pass, what is kept for it. That is, unless the author says otherwise with
``save`` or ``recompute``, the inputs, and an output where the backward pass is written
in terms of it or multiplies with it. A factor costs half a unit when it was rounded to
half precision; under a difference (``1 - y``) that rounding may be all that is left, so
there the output is computed again unless the author wrote it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from gradspec.ir import expr as ir
from gradspec.ir import walk
from gradspec.ir.rule import Declared, Derived, Let, Override, Rule
from gradspec.plan.array import Expr, Name, Op, Where, children, names, nodes
from gradspec.plan.plan import Assign
from gradspec.plan.translate import Types, as_float, replaced, translate, types_of
from gradspec.primitives.lookup import primitive

_WORTH_KEEPING = 4.0
"""Multiplications: a cheaper value is computed again sooner than it is read."""


@dataclass(frozen=True, slots=True)
class Closed:
    """The closed values of a rule; ``cotangents`` by ``d<input>``."""

    constants: tuple[Assign, ...]
    forward: tuple[Assign, ...]
    backward_locals: tuple[Assign, ...]
    cotangents: Mapping[str, Expr]
    surrogates: tuple[Assign, ...]
    saved: tuple[str, ...]


def close(rule: Rule) -> Closed:
    """All values of the rule, closed."""
    constants = _constants(rule)
    types = _types(rule, constants)

    known: dict[ir.Expr, Expr] = {}

    def array(value: ir.Expr) -> Expr:
        return translate(value, types, known)

    ahead = _resolved([let for let in rule.forward if let.name not in constants], {})
    raw = {name: array(value) for name, value in ahead.items()}
    kept = _kept(rule)
    behind = {
        name: as_float(array(value), types)
        for name, value in _backward(rule, ahead, kept).items()
    }
    reused = _reused(rule, behind, raw, kept)
    behind = {name: replaced(value, reused) for name, value in behind.items()}
    cotangents = {n: v for n, v in behind.items() if n in _cotangents(rule)}
    used = names(*cotangents.values())
    return Closed(
        constants=tuple(Assign(n, array(v)) for n, v in constants.items()),
        forward=_forward(rule, raw, types),
        backward_locals=tuple(
            Assign(n, v) for n, v in behind.items() if n not in cotangents
        ),
        cotangents=cotangents,
        surrogates=tuple(
            Assign(s.output, as_float(array(walk.substitute(s.value, ahead)), types))
            for s in rule.surrogates
        ),
        saved=tuple(name for name in raw if name in used),
    )


def _constants(rule: Rule) -> dict[str, ir.Expr]:
    """Locals in which statics and numbers alone take part."""
    outputs = {output.name for output in rule.outputs}
    scalars = {static.name for static in rule.static_inputs}
    found: dict[str, ir.Expr] = {}
    for let in rule.forward:
        if let.name not in outputs and walk.names(let.value) <= scalars:
            found[let.name] = let.value
            scalars.add(let.name)
    return found


def _types(rule: Rule, constants: Mapping[str, ir.Expr]) -> Types:
    types = types_of(rule)
    return Types(types.scalars | set(constants), types.integers, types.booleans)


def _resolved(lets: list[Let], known: Mapping[str, ir.Expr]) -> dict[str, ir.Expr]:
    """Each let with the earlier ones, and the known values, in place."""
    values = dict(known)
    found: dict[str, ir.Expr] = {}
    for let in lets:
        found[let.name] = values[let.name] = walk.substitute(let.value, values)
    return found


def _forward(rule: Rule, raw: Mapping[str, Expr], types: Types) -> tuple[Assign, ...]:
    outputs = {output.name: output for output in rule.outputs}

    def final(name: str, value: Expr) -> Expr:
        if name in outputs and outputs[name].takes_gradient:
            return as_float(value, types)
        return value

    return tuple(Assign(name, final(name, value)) for name, value in raw.items())


# --- the backward pass -----------------------------------------------------------------


def _cotangents(rule: Rule) -> dict[str, ir.Expr]:
    return {
        f"d{variable.name}": entry.value
        for variable, entry in zip(rule.inputs, rule.backward, strict=True)
        if isinstance(entry, Declared | Derived | Override)
    }


def _kept(rule: Rule) -> tuple[str, ...]:
    """What the author keeps: what is saved, and outputs that the backward pass names."""
    outputs = {output.name for output in rule.outputs if output.takes_gradient}
    lets = (let.value for let in rule.backward_locals)
    written = [walk.names(value) for value in (*lets, *_cotangents(rule).values())]
    return tuple(
        let.name
        for let in rule.forward
        if let.name in rule.saves
        or (
            let.name in outputs
            and let.name not in rule.recomputes
            and any(let.name in names_of for names_of in written)
        )
    )


def _backward(
    rule: Rule, ahead: Mapping[str, ir.Expr], kept: tuple[str, ...]
) -> dict[str, ir.Expr]:
    """Locals and cotangents in an order in which each needs only earlier ones."""
    given = {name: value for name, value in ahead.items() if name not in kept}
    lets = {let.name: let.value for let in rule.backward_locals}
    lets |= _cotangents(rule)
    found: dict[str, ir.Expr] = {}

    def resolve(name: str) -> None:
        for other in sorted(walk.names(lets[name])):
            if other in lets and other not in found:
                resolve(other)
        found[name] = walk.substitute(lets[name], given | found)

    for name in lets:
        if name not in found:
            resolve(name)
    return found


def _reused(
    rule: Rule,
    behind: Mapping[str, Expr],
    raw: Mapping[str, Expr],
    kept: tuple[str, ...],
) -> dict[Expr, Expr]:
    """Values of the forward pass that the backward pass takes by name."""
    outputs = {output.name for output in rule.outputs if output.takes_gradient}
    found: dict[Expr, Expr] = {}
    roots = tuple(behind.values())
    for name, value in raw.items():
        free = name in outputs and name not in rule.recomputes
        worth = free and (_cost(value) >= _WORTH_KEEPING or _frees(value, roots))
        if children(value) and (name in kept or (worth and _is_factor(value, roots))):
            found.setdefault(value, Name(name))
    return found


def _frees(value: Expr, roots: tuple[Expr, ...]) -> bool:
    """Whether an argument need not be kept if ``value`` is taken by its name."""
    known = {value: Name("")}
    left = names(*(replaced(root, known) for root in roots))
    return not set(names(value)) <= set(left)


def _cost(value: Expr) -> float:
    return sum(primitive(n.primitive).cost for n in nodes(value) if isinstance(n, Op))


def _is_factor(value: Expr, roots: tuple[Expr, ...]) -> bool:
    """Whether ``value`` stands in the roots, and nowhere but as a factor."""
    ok: set[Expr] = set(roots)
    bad: set[Expr] = set()
    for node in reversed(tuple(nodes(*roots))):
        if node == value:
            continue
        passes = node in ok and node not in bad and _multiplies(node)
        (ok if passes else bad).update(_operands(node))
        if passes and isinstance(node, Where):
            bad.add(node.condition)
    return value in ok and value not in bad


def _multiplies(node: Expr) -> bool:
    match node:
        case Op(primitive="mul" | "div" | "neg" | "square") | Where():
            return True
        case _:
            return False


def _operands(node: Expr) -> tuple[Expr, ...]:
    return children(node)[1:] if isinstance(node, Where) else children(node)
