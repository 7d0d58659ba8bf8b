"""What is probably wrong with a refuted cotangent, where it is cheap to tell.

Each guess is a change to what the author wrote; it is told only if the changed
cotangent then equals the derivative at the sampled points. Terms are shown in the
author's own names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from gradspec.checks.subject import Point
from gradspec.ir import closed
from gradspec.ir.calls import expand
from gradspec.ir.expr import ONE, ZERO, Apply, Const, Expr, Ref, Select, apply
from gradspec.ir.rule import Declared, Kind, Rule
from gradspec.ir.text import show
from gradspec.ir.walk import names, nodes, substitute, transform
from gradspec.primitives.lookup import primitive
from gradspec.symbolic.compare import (
    Relation,
    compare,
    decimal,
    simple_ratio,
    solve_affine,
)
from gradspec.symbolic.neighbours import on_border

if TYPE_CHECKING:
    from gradspec.checks.cotangents import Claim

_POINTS = 20
_CHANGES = 60
"""Guesses tried at most: a refutation should stay a matter of milliseconds."""


def diagnose(claim: Claim) -> tuple[str, ...]:
    """At most one sentence."""
    borders = (*claim.subject.forward.values(), claim.declared, claim.derived)
    plain = (p for p in claim.subject.points if not on_border(borders, p))
    points = tuple(point for point, _ in zip(plain, range(_POINTS), strict=False))
    if not points:
        return ()
    for guess in (_upstream, _factor, _swapped, _changed, _constant, _dropped):
        sentence = guess(claim, points)
        if sentence:
            return (sentence,)
    return ()


def _agree(left: Expr, right: Expr, points: tuple[Point, ...]) -> bool:
    """Equal wherever both are defined, and defined somewhere."""
    found = False
    for point in points:
        relation = compare(left, right, point).relation
        if relation is Relation.DIFFERENT:
            return False
        found = found or relation is Relation.EQUAL
    return found


def _upstream(claim: Claim, points: tuple[Point, ...]) -> str:
    """An upstream gradient that does not occur."""
    upstream = claim.subject.upstream
    missing = [n for n in upstream if n not in names(claim.declared)]
    needed = [n for n in missing if n in names(claim.derived)]
    if not needed:
        return ""
    if len(missing) == len(upstream):
        if len(upstream) == 1:
            scaled = apply("mul", Ref(upstream[0]), claim.declared)
            if _agree(scaled, claim.derived, points):
                return f"{upstream[0]} is missing: multiply by {upstream[0]}"
        return f"it does not use the upstream gradient {' or '.join(upstream)}"
    zero: dict[str, Expr] = dict.fromkeys(needed, ZERO)
    if _agree(claim.declared, substitute(claim.derived, zero), points):
        outputs = ", ".join(name.removeprefix("d") for name in needed)
        return f"the contribution of {outputs} is missing"
    return f"{', '.join(needed)} does not occur in it"


def _factor(claim: Claim, points: tuple[Point, ...]) -> str:
    """A constant factor, the same at all points."""
    ratio: Any = simple_ratio(claim.declared, claim.derived, points)
    if ratio is None or ratio == 1:
        return ""
    if not isinstance(ratio, Fraction):
        return f"it is {decimal(ratio, 17)} times the derivative everywhere"
    scaled = apply("mul", Const(ratio), claim.derived)
    if not _agree(claim.declared, scaled, points):
        return ""
    if ratio == -1:
        return "its sign is wrong everywhere"
    return f"it is {_number(ratio)} times the derivative everywhere"


def _swapped(claim: Claim, points: tuple[Point, ...]) -> str:
    """The derivative by another input."""
    for name, other in claim.subject.derived.items():
        if name != claim.input.name and _agree(claim.declared, other, points):
            return f"it is the derivative by {name}, not by {claim.input.name}"
    return ""


def _changed(claim: Claim, points: tuple[Point, ...]) -> str:
    """One small change in the text that makes it right."""
    count = 0
    for place, value in _texts(claim):
        for sentence, changed in _changes(value, _flags(claim.subject.rule)):
            count += 1
            if count > _CHANGES:
                return ""
            if _agree(_closed(claim, place, changed), claim.derived, points):
                return sentence
    return ""


def _texts(claim: Claim) -> Iterator[tuple[str, Expr]]:
    """What the author wrote of the backward pass: the cotangent and its locals."""
    yield claim.name, claim.entry.value
    for let in reversed(claim.subject.rule.backward_locals):
        yield let.name, let.value


def _closed(claim: Claim, place: str, value: Expr) -> Expr:
    """The cotangent with one text replaced, closed."""
    rule = claim.subject.rule
    changed = _replaced(rule, place, claim, value)
    return expand(closed.cotangents(changed)[claim.name])


def _replaced(rule: Rule, place: str, claim: Claim, value: Expr) -> Rule:
    if place != claim.name:
        lets = (
            replace(let, value=value) if let.name == place else let
            for let in rule.backward_locals
        )
        return replace(rule, backward_locals=tuple(lets))
    backward = (
        Declared(value, entry.indices) if entry is claim.entry else entry
        for entry in rule.backward
    )
    return replace(rule, backward=tuple(backward))


def _flags(rule: Rule) -> frozenset[str]:
    """The names of what is true or false: no arithmetic is to be tried on them."""
    flags = {i.name for i in rule.inputs if i.kind is Kind.BOOL}
    for let in (*rule.forward, *rule.backward_locals):
        if _is_flag(let.value, flags):
            flags.add(let.name)
    return frozenset(flags)


def _is_flag(value: Expr, flags: set[str]) -> bool:
    match value:
        case Apply(op=op):
            return primitive(op).result == "bool"
        case Ref(name=name):
            return name in flags
        case Select(then=then):
            return _is_flag(then, flags)
        case _:
            return False


def _changes(expr: Expr, flags: frozenset[str]) -> Iterator[tuple[str, Expr]]:
    for node in nodes(expr):
        if isinstance(node, Ref) and node.name in flags:
            continue
        for told, new in _near(node):
            yield told, _put(expr, node, new)


def _near(node: Expr) -> Iterator[tuple[str, Expr]]:
    """What a node may have been meant to be."""
    match node:
        case Apply(op="add" | "sub" as op, args=(left, right)):
            turned = apply("sub" if op == "add" else "add", left, right)
            yield f"the sign of `{show(right)}` is wrong", turned
            yield f"`{show(right)}` is one term too many", left
            yield f"`{show(left)}` is one term too many", right
        case Apply(op="mul", args=(left, right)):
            yield f"`{show(right)}` is one factor too many", left
            yield f"`{show(left)}` is one factor too many", right
        case Apply(op="div", args=(left, right)):
            yield f"the division by `{show(right)}` is one too many", left
            yield f"it should multiply by `{show(right)}`", apply("mul", left, right)
        case Select(condition=condition, then=then, other=other):
            told = f"the branches of `… if {show(condition)} else …` are swapped"
            yield told, Select(condition, other, then)
        case Apply(op="pow", args=(base, Const(value=power))):
            for near in (power - 1, power + 1):
                told = f"the exponent of `{show(node)}` should be {near}"
                yield told, apply("pow", base, Const(near))
        case Apply(op=op, args=(arg,)) if op not in ("neg", "not", "abs"):
            turned = apply(op, apply("neg", arg))
            yield f"the sign of the argument of `{show(node)}` is wrong", turned
        case Ref():
            yield f"`{show(node)}` should be squared", apply("mul", node, node)
        case _:
            return


def _put(expr: Expr, old: Expr, new: Expr) -> Expr:
    return transform(expr, lambda node: new if node == old else node)


def _constant(claim: Claim, points: tuple[Point, ...]) -> str:
    """A number that should be another one, found by solving for it."""
    for place, value in _texts(claim):
        for node in nodes(value):
            if not isinstance(node, Const):
                continue
            at = [
                _closed(claim, place, _put(value, node, Const(Fraction(number))))
                for number in (0, 1, 2)
            ]
            meant = solve_affine((at[0], at[1], at[2]), claim.derived, points)
            if meant is not None:
                told = f"the constant `{_number(node.value)}` should be"
                return f"{told} {_number(meant)}"
    return ""


def _number(value: Any) -> str:
    """A decimal if it is short, else a fraction if that is."""
    if not isinstance(value, Fraction):
        return decimal(value, 17)
    text = repr(float(value)).removesuffix(".0")
    exact = Fraction(text) == value
    return text if exact or value.denominator > 1000 else str(value)


def _dropped(claim: Claim, points: tuple[Point, ...]) -> str:
    """The derivative without one of its terms or factors."""
    for node in nodes(claim.derived):
        for kept, lost, what in _parts(node):
            less = _put(claim.derived, node, kept)
            if lost != ONE and _agree(claim.declared, less, points):
                return f"the {what} `{show(lost)}` is missing"
    return ""


def _parts(node: Expr) -> Iterator[tuple[Expr, Expr, str]]:
    """What is left of a node without one of its parts."""
    match node:
        case Apply(op="add" | "sub", args=(left, right)):
            yield left, right, "term"
            yield right, left, "term"
        case Apply(op="mul", args=(left, right)):
            yield left, right, "factor"
            yield right, left, "factor"
        case Apply(op="div", args=(left, right)):
            yield left, right, "division by"
        case _:
            return
