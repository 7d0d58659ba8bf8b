"""Decisions: what a path assumes of values that the files leave open. They are keyed by
where the value comes from, never by its text: `flag` and `ctx.flag` are one decision.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from gradspec.ir.expr import Apply, Const, Expr, Ref, show
from gradspec.ir.walk import nodes
from gradspec.lift.values import (
    FALSE,
    TRUE,
    Array,
    CannotLift,
    Fork,
    Function,
    Library,
    Opaque,
)

Key = tuple[str, str]
"""The origin of a value, and the text of what it is compared with ("": its truth)."""


class Decisions:
    """The decisions of one path; ``elements`` are the names of inputs with elements, on
    which no Python condition can be taken."""

    def __init__(self, taken: Mapping[Key, bool], elements: set[str]) -> None:
        self.taken, self.elements = taken, elements
        self.conditions: list[Expr] = []

    def truth(self, value: Any, node: ast.AST) -> bool:
        """The truth of a value, or a fork of the path."""
        match value:
            case bool() | None | str() | int() | float() | Fraction():
                return bool(value)
            case tuple() | list() | dict():
                return len(value) > 0
            case Function() | Library():
                return True
            case Opaque(origin=origin):
                return self._of_origin(origin, "")
            case Array():
                return self._of_number(value, node)
            case _:
                raise CannotLift(
                    "python", f"`{ast.unparse(node)}` as a condition", node
                )

    def is_equal(self, value: Opaque, other: object) -> bool:
        """True if the value is decided to be a constant; it is only one."""
        text = repr(other)
        for (origin, constant), holds in self.taken.items():
            if origin != value.origin:
                continue
            if constant == text:
                return holds
            if constant and holds:
                return False
            if not constant and holds and not other:
                return False
        return self._of_origin(value.origin, text)

    def _of_origin(self, origin: str, constant: str) -> bool:
        key = (origin, constant)
        if key in self.taken:
            return self.taken[key]
        if not constant:
            for (other, text), holds in self.taken.items():
                if other == origin and text and holds:
                    return text not in ("None", "False", "''", "0")
        raise Fork(key)

    def _of_number(self, value: Array, node: ast.AST) -> bool:
        condition = value.value
        if condition in (TRUE, FALSE):
            return condition == TRUE
        if value.axes or any(
            isinstance(n, Ref) and n.name in self.elements for n in nodes(condition)
        ):
            told = "a Python `if` on the elements of an array"
            raise CannotLift("branch", told, node)
        if not value.is_condition:
            condition = Apply("ne", (condition, Const(Fraction(0))))
        condition, is_negated = _canonical(condition)
        key = (show(condition), "")
        if key not in self.taken:
            raise Fork(key, condition)
        holds = self.taken[key]
        stated = condition if holds else _negation(condition)
        if stated not in self.conditions:
            self.conditions.append(stated)
        return holds != is_negated


def _canonical(condition: Expr) -> tuple[Expr, bool]:
    """A comparison as one of `<`, `<=` and `==`, and whether it is negated."""
    match condition:
        case Apply(op="not", args=(inner,)):
            found, is_negated = _canonical(inner)
            return found, not is_negated
        case Apply(op="ne", args=args):
            return Apply("eq", args), True
        case Apply(op="gt" | "ge" as op, args=(a, b)):
            return Apply("lt" if op == "gt" else "le", (b, a)), False
        case _:
            return condition, False


def _negation(condition: Expr) -> Expr:
    match condition:
        case Apply(op="lt", args=(a, b)):
            return Apply("le", (b, a))
        case Apply(op="le", args=(a, b)):
            return Apply("lt", (b, a))
        case Apply(op="eq", args=args):
            return Apply("ne", args)
        case _:
            return Apply("not", (condition,))
