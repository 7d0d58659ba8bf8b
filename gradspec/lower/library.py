"""The functions that an item can call: the file's own, the imported, the built-in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from gradspec.ir.rule import Rule
from gradspec.lower.module import Function
from gradspec.primitives.lookup import function_names, primitive
from gradspec.primitives.row import Primitive


@dataclass(frozen=True, slots=True)
class Failed:
    """A rule or def that exists but has errors of its own."""

    name: str


Callee: TypeAlias = Rule | Function | Primitive | Failed


@dataclass(frozen=True, slots=True)
class Library:
    """The meaning of function names inside the item called ``current``.

    Own names shadow imports, which shadow built-ins; its own name means the built-in.
    """

    own: Mapping[str, Rule | Function | Failed] = field(default_factory=dict)
    imported: Mapping[str, Rule | Function | Failed] = field(default_factory=dict)
    current: str = ""

    def find(self, name: str) -> Callee | None:
        if name == self.current and is_function(name):
            return primitive(name)
        if name in self.own:
            return self.own[name]
        if name in self.imported:
            return self.imported[name]
        return primitive(name) if is_function(name) else None

    def names(self) -> tuple[str, ...]:
        """Everything that can be called, for suggestions."""
        return (*self.own, *self.imported, *function_names())


def is_function(name: str) -> bool:
    """True if there is a built-in function (not an operator) of this name."""
    return name in function_names()


def signature(callee: Rule | Function | Primitive) -> str:
    """``clip(x, lo, hi)``, ``swish(x, beta: static = 1)``."""
    match callee:
        case Primitive(name=name, params=params):
            parts = list(params)
        case Function(name=name, parameters=parameters):
            parts = [p.name for p in parameters]
        case Rule(name=name, inputs=inputs):
            parts = [_input(i.name, i.kind.value, i.default) for i in inputs]
    return f"{name}({', '.join(parts)})"


def _input(name: str, kind: str, default: object) -> str:
    text = name if kind == "float" else f"{name}: {kind}"
    return text if default is None else f"{text} = {default}"
