"""From `.grad` text to what lowering makes of it."""

from __future__ import annotations

from gradspec.diagnostics import Diagnostic
from gradspec.ir.expr import show
from gradspec.ir.rule import Rule
from gradspec.lower.lowering import lower, order
from gradspec.lower.module import LoweredModule
from gradspec.primitives.lookup import is_primitive, primitive
from gradspec.source import Source
from gradspec.syntax.nodes import Module
from gradspec.syntax.parse import parse
from tests.ir.well_formed import verify


def arity(op: str) -> int | None:
    return primitive(op).arity if is_primitive(op) else None


def parsed(text: str, path: str = "a.grad") -> Module:
    outcome = parse(Source(path, text))
    assert outcome.value is not None
    assert outcome.diagnostics == (), outcome.diagnostics
    return outcome.value


def lowered(text: str) -> tuple[LoweredModule, tuple[Diagnostic, ...]]:
    """What a file becomes, its rules verified, and the faults found."""
    outcome = lower(parsed(text), {})
    assert outcome.value is not None
    for rule in outcome.value.rules:
        assert verify(rule, arity) == ()
    return outcome.value, outcome.diagnostics


def rules(text: str) -> dict[str, Rule]:
    """The rules of a file without faults."""
    module, found = lowered(text)
    assert found == ()
    return {rule.name: rule for rule in module.rules}


def rule(text: str) -> Rule:
    """The last rule of a file without faults."""
    return tuple(rules(text).values())[-1]


def forward(text: str) -> dict[str, str]:
    """Name → shown value of the forward lets of the last rule."""
    return {let.name: show(let.value) for let in rule(text).forward}


def value(expression: str, header: str = "x, y, k: static = 1") -> str:
    """The expression after lowering, as text."""
    return forward(f"rule f({header}) -> out:\n    out = {expression}\n")["out"]


def faults(text: str) -> list[tuple[str, str]]:
    """Code and guilty text of each fault, in order."""
    _, found = lowered(text)
    return [guilt(d) for d in found]


def guilt(found: Diagnostic) -> tuple[str, str]:
    place = found.labels[0]
    return found.code, place.source.slice(place.span)


def program(files: dict[str, str]) -> dict[str, tuple[LoweredModule, list[str]]]:
    """All files of a program in order of imports: module and codes found in it."""
    modules = {path: parsed(text, path) for path, text in files.items()}
    done: dict[str, LoweredModule] = {}
    made: dict[str, tuple[LoweredModule, list[str]]] = {}
    for path in order(modules).value or ():
        outcome = lower(modules[path], done)
        assert outcome.value is not None
        done[path] = outcome.value
        made[path] = (outcome.value, [d.code for d in outcome.diagnostics])
    return made
