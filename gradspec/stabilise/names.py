"""The values of a rule, the meaning of its names, and rules with replaced values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from gradspec.derive.chain import Underivable
from gradspec.derive.vjp import filled, vjps
from gradspec.ir.expr import Expr, Ref
from gradspec.ir.rule import Declared, Derived, Let, Override, Rule
from gradspec.ir.walk import expand, names, substitute


@dataclass(frozen=True, slots=True)
class Quantity:
    """A value of a rule that is evaluated: a local, an output or a cotangent. A derived
    one may take any form; ``others`` are further initial forms of it.
    """

    name: str
    value: Expr
    indices: tuple[str, ...] = ()
    axes: tuple[str | int, ...] = ()
    is_gradient: bool = False
    is_derived: bool = False
    others: tuple[Expr, ...] = ()


def with_value(rule: Rule, name: str, value: Expr) -> Rule:
    """``rule`` with another form of one of its values."""
    forward = tuple(
        replace(let, value=value) if let.name == name else let for let in rule.forward
    )
    backward = tuple(
        replace(entry, value=value)
        if f"d{variable.name}" == name and isinstance(entry, Derived | Declared)
        else entry
        for variable, entry in zip(rule.inputs, rule.backward, strict=True)
    )
    return replace(rule, forward=forward, backward=backward)


class Names:
    """The values that the names of a rule stand for; a value may use other names.
    ``opaque`` names stand for themselves.
    """

    def __init__(self, rule: Rule, opaque: tuple[str, ...] = ()) -> None:
        lets = (*rule.forward, *rule.backward_locals)
        self._values = {let.name: let.value for let in lets}
        for variable, entry in zip(rule.inputs, rule.backward, strict=True):
            if isinstance(entry, Declared | Derived | Override):
                self._values[f"d{variable.name}"] = entry.value
        for name in opaque:
            self._values.pop(name, None)
        self._closed: dict[str, Expr] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def close(self, expr: Expr) -> Expr:
        """``expr`` in inputs, statics and cotangents alone."""
        used = [name for name in sorted(names(expr)) if name in self._values]
        if not used:
            return expr
        return substitute(expr, {name: self._close(name) for name in used})

    def _close(self, name: str) -> Expr:
        if name not in self._closed:
            self._closed[name] = self.close(self._values[name])
        return self._closed[name]


def mapped(rule: Rule, change: Callable[[Expr], Expr]) -> Rule:
    """``rule`` with all of its values changed."""

    def lets(values: tuple[Let, ...]) -> tuple[Let, ...]:
        return tuple(replace(let, value=change(let.value)) for let in values)

    backward = (
        replace(entry, value=change(entry.value))
        if isinstance(entry, Derived | Declared | Override)
        else entry
        for entry in rule.backward
    )
    return replace(
        rule,
        forward=lets(rule.forward),
        backward_locals=lets(rule.backward_locals),
        surrogates=tuple(replace(x, value=change(x.value)) for x in rule.surrogates),
        backward=tuple(backward),
    )


def without_calls(rule: Rule) -> Rule:
    """Calls of other rules replaced by their values; their declared backward passes are
    in the cotangents already.
    """
    return mapped(rule, expand)


def without_dead_locals(before: Rule, after: Rule) -> Rule:
    """``after`` without locals that only the old forms used; locals that the user left
    unused, or asked to be saved or recomputed, stay.
    """
    used_before, used_after = _used(before), _used(after)
    dead = {let.name for let in before.forward if let.name in used_before - used_after}
    if not dead:
        return after
    forward = tuple(let for let in after.forward if let.name not in dead)
    return replace(after, forward=forward)


def _used(rule: Rule) -> frozenset[str]:
    """Names that outputs, cotangents or the user's ``save`` and ``recompute`` need."""
    values = {let.name: let.value for let in (*rule.forward, *rule.backward_locals)}
    roots: list[str] = [o.name for o in rule.outputs]
    roots += [*rule.saves, *rule.recomputes]
    roots += [let.name for let in rule.backward_locals]
    for entry in (*rule.backward, *rule.surrogates):
        value = getattr(entry, "value", None)
        roots += sorted(names(value)) if value is not None else []
    found: dict[str, None] = {}
    while roots:
        name = roots.pop()
        if name in found:
            continue
        found[name] = None
        if name in values:
            roots += sorted(names(values[name]))
    return frozenset(found)


def rederived(rule: Rule, forward: tuple[Let, ...]) -> dict[str, Expr]:
    """The cotangents of the inputs, derived from the selected forward; none where a
    selected form has no derivative.
    """
    upstream = {o.name: Ref(f"d{o.name}") for o in rule.outputs if o.takes_gradient}
    wrt = tuple(i.name for i in rule.inputs if i.takes_gradient)
    try:
        return vjps(filled(forward), rule.surrogates, upstream, wrt)
    except Underivable:
        return {}
