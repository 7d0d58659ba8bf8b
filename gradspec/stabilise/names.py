"""Values by name: the locals, outputs and cotangents of a rule, and closed forms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gradspec.ir.expr import Expr
from gradspec.ir.rule import Backward, Declared, Derived, Let, Override, Rule
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


def with_forms(rule: Rule, forms: Mapping[str, Expr]) -> Rule:
    """``rule`` with other forms of some of its locals, outputs and gradients."""

    def let(given: Let) -> Let:
        return replace(given, value=forms.get(given.name, given.value))

    def entry(name: str, given: Backward) -> Backward:
        match given:
            case Declared() | Derived():
                return replace(given, value=forms.get(name, given.value))
            case _:
                return given

    cotangents = (f"d{variable.name}" for variable in rule.inputs)
    return replace(
        rule,
        forward=tuple(map(let, rule.forward)),
        backward=tuple(map(entry, cotangents, rule.backward)),
    )
