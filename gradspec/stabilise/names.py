"""The values that names of a rule stand for, and rules with other values in place."""

from __future__ import annotations

from dataclasses import replace

from gradspec.derive.partials import Underivable
from gradspec.derive.patched import filled
from gradspec.derive.vjp import vjps
from gradspec.ir.calls import expand
from gradspec.ir.expr import Expr, Ref
from gradspec.ir.rule import Backward, Declared, Derived, Let, Override, Rule
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import names, substitute


class Names:
    """What each name of a rule stands for; a value may use other names. ``opaque``
    names stand for themselves.
    """

    def __init__(self, rule: Rule, opaque: tuple[str, ...] = ()) -> None:
        lets = (*rule.forward, *rule.backward_locals)
        self._values = {let.name: let.value for let in lets}
        for variable, entry in zip(rule.inputs, rule.backward, strict=True):
            if isinstance(entry, Declared | Derived | Override):
                self._values[f"d{variable.name}"] = entry.value
        for name in opaque:
            self._values.pop(name, None)
        self._opaque = opaque
        self._closed: dict[str, Expr] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def set(self, name: str, value: Expr) -> None:
        """Another form of the same value: closed forms are made anew."""
        if name not in self._opaque:
            self._values[name] = value
            self._closed.clear()

    def close(self, expr: Expr) -> Expr:
        """``expr`` in inputs, statics and upstream gradients alone."""
        used = [name for name in sorted(names(expr)) if name in self._values]
        if not used:
            return expr
        return substitute(expr, {name: self._close(name) for name in used})

    def _close(self, name: str) -> Expr:
        if name not in self._closed:
            self._closed[name] = self.close(self._values[name])
        return self._closed[name]


def without_calls(rule: Rule) -> Rule:
    """Calls of other rules replaced by what they compute; their own backwards are in
    the cotangents already."""
    backward = (
        replace(entry, value=expand(entry.value))
        if isinstance(entry, Derived | Declared | Override)
        else entry
        for entry in rule.backward
    )
    return replace(
        rule,
        forward=tuple(replace(x, value=expand(x.value)) for x in rule.forward),
        backward_locals=tuple(
            replace(x, value=expand(x.value)) for x in rule.backward_locals
        ),
        surrogates=tuple(replace(x, value=expand(x.value)) for x in rule.surrogates),
        backward=tuple(backward),
    )


def without_dead_locals(before: Rule, after: Rule) -> Rule:
    """Locals that only the old forms used are gone; what the user left unused, or asked
    to be saved or recomputed, stays."""
    used_before, used_after = _used(before), _used(after)
    dead = {let.name for let in before.forward if let.name in used_before - used_after}
    if not dead:
        return after
    forward = tuple(let for let in after.forward if let.name not in dead)
    return replace(after, forward=forward)


def _used(rule: Rule) -> frozenset[str]:
    """Names that outputs, cotangents or the user's own wishes need."""
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


def restored(written: Rule, done: Rule) -> Rule:
    """``done`` with its exact definitions as they stand in ``written``, tidied."""
    if not written.exacts:
        return done
    lets = (*written.forward, *written.backward_locals)
    values = {x.name: tidy(x.value) for x in lets if x.name in written.exacts}

    def let(found: Let) -> Let:
        return replace(found, value=values.get(found.name, found.value))

    def entry(name: str, first: Backward, found: Backward) -> Backward:
        if isinstance(first, Declared) and name in written.exacts:
            return replace(first, value=tidy(first.value))
        return found

    names = (f"d{variable.name}" for variable in written.inputs)
    return replace(
        done,
        forward=tuple(map(let, done.forward)),
        backward_locals=tuple(map(let, done.backward_locals)),
        backward=tuple(map(entry, names, written.backward, done.backward)),
    )


def rederived(rule: Rule, forward: tuple[Let, ...]) -> dict[str, Expr]:
    """The cotangents of the inputs, derived from a forward as it was chosen; none where a
    chosen form has no derivative."""
    upstream = {o.name: Ref(f"d{o.name}") for o in rule.outputs if o.takes_gradient}
    wrt = tuple(i.name for i in rule.inputs if i.takes_gradient)
    try:
        return vjps(filled(forward), rule.surrogates, upstream, wrt)
    except Underivable:
        return {}
