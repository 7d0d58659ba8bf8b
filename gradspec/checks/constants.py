"""Constants that have no value in float64: a target would fail where it meets them."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from gradspec.checks.subject import Subject
from gradspec.diagnostics import Diagnostic, error
from gradspec.ir.expr import Apply, Const, Expr
from gradspec.ir.rule import Declared, Override, Rule
from gradspec.ir.walk import children, nodes
from gradspec.symbolic.enclose import defined, enclose


def check(subject: Subject) -> Iterator[Diagnostic]:
    rule = subject.rule
    for fault in dict.fromkeys(f for root in _written(rule) for f in _faults(root)):
        if fault.span is not None:
            what = (
                "is beyond the range of float64"
                if _has_value(fault)
                else "is not a number"
            )
            yield error(
                "GS414",
                f"a constant of {rule.name} {what}",
                rule.source,
                fault.span,
                help="correct it; infinity is written `inf`",
            )


def _written(rule: Rule) -> Iterator[Expr]:
    """What the author wrote and a target evaluates."""
    yield from (let.value for let in (*rule.forward, *rule.backward_locals))
    yield from (s.value for s in rule.surrogates)
    yield from (e.value for e in rule.backward if isinstance(e, Declared | Override))


def _faults(root: Expr) -> Iterator[Expr]:
    """The smallest operations on numbers alone that give none. (`inf` is no number: what
    is made of it is meant.)
    """
    numbers: set[Expr] = set()
    for node in nodes(root):
        is_operation = isinstance(node, Apply) and node.op != "inf"
        if isinstance(node, Const):
            numbers.add(node)
        elif is_operation and all(part in numbers for part in children(node)):
            if _is_sound(node):
                numbers.add(node)
            else:
                yield node


def _is_sound(constant: Expr) -> bool:
    value = enclose(constant, {})
    if value is None or value is True or value is False:
        return True
    return defined(value) and abs(value) < sys.float_info.max


def _has_value(constant: Expr) -> bool:
    value = enclose(constant, {})
    return not value.is_nan()
