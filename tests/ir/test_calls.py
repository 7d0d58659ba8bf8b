"""Calls of rules, put in place."""

from __future__ import annotations

from gradspec.ir.expr import Call, show
from gradspec.ir.walk import expand, nodes
from tests.lower.grad_text import rule

TEXT = """
rule inner(x, k: static = 2) -> (a, b):
    t = k * x
    a = t + 1
    b = a * t

rule outer(x, y) -> z:
    t = inner.b(y)
    z = t - inner.a(x, k=3)

rule top(y, x) -> w:
    w = outer(y + 1, x)
"""


def test_calls_are_replaced_all_the_way_down() -> None:
    value = expand(rule(TEXT).forward[0].value)
    assert not any(isinstance(node, Call) for node in nodes(value))
    assert show(value) == "(2 * x + 1) * (2 * x) - (3 * (y + 1) + 1)"


def test_what_has_no_call_is_left_alone() -> None:
    value = rule("rule f(x) -> y:\n    y = exp(x) + 1\n").forward[0].value
    assert expand(value) == value
