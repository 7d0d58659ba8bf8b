"""The verifier finds what is broken, and nothing in sound rules."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gradspec.ir.expr import Apply, Bound, Call, Expr, Idx, Reduce, Ref, Size, const
from gradspec.ir.rule import Definition, Role, Rule
from tests.ir.well_formed import verify
from tests.lower.grad_text import arity, rule

ELEMENTWISE = rule(
    "rule f(x, t: nograd) -> y:\n    a = exp(x)\n    y = a * t\n"
    "    g = dy * a\n    dx = g * t\n"
)
RANKED = rule("rule f(x[..., n]) -> y[..., n]:\n    y[i] = x[i] / sum(x[j] for j)\n")


def with_value(value: Expr, of: Rule = ELEMENTWISE) -> Rule:
    return of.redefine(replace(of.forward[-1], value=value))


def with_cotangent(name: str, of: Rule) -> Rule:
    return of.redefine(Definition(name, Role.COTANGENT, const(1)))


def x(*indices: Expr) -> Ref:
    return Ref("x", indices)


BROKEN = [
    (with_value(Ref("q")), "q is not in view"),
    (with_value(Ref("dy")), "dy is not in view"),
    (with_value(Ref("x", (const(0),))), "x has 1 indices, not 0"),
    (with_value(Apply("exp", (x(), x()))), "exp is no primitive of 2 arguments"),
    (with_value(Apply("nope", (x(),))), "nope is no primitive of 1 arguments"),
    (with_value(Idx("i")), "index i is not bound"),
    (with_value(Size("m")), "there is no axis m"),
    (with_value(Call(ELEMENTWISE, 0, (x(),))), "f is called with 1 arguments"),
    (with_value(Call(ELEMENTWISE, 1, (x(), x()))), "f has no output 1"),
    (with_value(Call(RANKED, 0, (x(),))), "f is called and is not elementwise"),
    (
        with_value(Reduce("sum", (Bound("i", "n"),), x(Idx("i"))), RANKED),
        "index i is bound twice",
    ),
    (
        with_value(Reduce("sum", (Bound("j", "m"),), x(Idx("j"))), RANKED),
        "index j ranges over no axis",
    ),
    (with_value(Reduce("median", (), x(Idx("i"))), RANKED), "median is no reduction"),
    (replace(ELEMENTWISE, definitions=ELEMENTWISE.forward[:1]), "y is not assigned"),
    (replace(ELEMENTWISE, definitions=ELEMENTWISE.forward[::-1]), "a is not in view"),
    (with_cotangent("dt", ELEMENTWISE), "dt is the gradient of no input"),
    (with_cotangent("du", ELEMENTWISE), "du is the gradient of no input"),
    (with_cotangent("dx", RANKED), "as many indices"),
    (replace(ELEMENTWISE, saves=("g",)), "g is kept"),
]


@pytest.mark.parametrize(("broken", "fault"), BROKEN)
def test_a_broken_rule(broken: Rule, fault: str) -> None:
    assert any(fault in found for found in verify(broken, arity)), verify(broken, arity)


@pytest.mark.parametrize("sound", [ELEMENTWISE, RANKED])
def test_a_sound_rule(sound: Rule) -> None:
    assert verify(sound, arity) == ()
