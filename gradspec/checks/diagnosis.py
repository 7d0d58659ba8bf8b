"""What is probably wrong with a refuted cotangent, where it is cheap to tell.

Each guess is a change to what the author wrote; it is told only if the changed
expression then equals the derivative at every sampled point.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from gradspec.checks.subject import Point
from gradspec.ir.expr import ONE, ZERO, Apply, Const, Expr, Ref, Select, apply
from gradspec.ir.text import show
from gradspec.ir.walk import names, nodes, substitute, transform
from gradspec.symbolic.compare import Relation, compare, decimal, simple_ratio

if TYPE_CHECKING:
    from gradspec.checks.cotangents import Claim

_POINTS = 8
_CHANGES = 24
"""Guesses tried at most: a refutation should stay a matter of milliseconds."""


def diagnose(claim: Claim) -> tuple[str, ...]:
    """At most one sentence."""
    points = _telling(claim)
    if not points:
        return ()
    for guess in (_upstream, _factor, _swapped, _changed):
        sentence = guess(claim, points)
        if sentence:
            return (sentence,)
    return ()


def _telling(claim: Claim) -> tuple[Point, ...]:
    """Points where the derivative is defined and not 0."""
    found = []
    for point in claim.subject.points:
        seen = compare(claim.derived, ZERO, point)
        if seen.relation is Relation.DIFFERENT:
            found.append(point)
    return tuple(found[:_POINTS])


def _agree(left: Expr, right: Expr, points: tuple[Point, ...]) -> bool:
    """Equal wherever both are defined, and defined somewhere."""
    seen = [compare(left, right, point).relation for point in points]
    return Relation.EQUAL in seen and Relation.DIFFERENT not in seen


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
    zero = dict.fromkeys(needed, ZERO)
    if _agree(claim.declared, substitute(claim.derived, zero), points):
        outputs = ", ".join(name.removeprefix("d") for name in needed)
        return f"the contribution of {outputs} is missing"
    return f"{', '.join(needed)} does not occur in it"


def _factor(claim: Claim, points: tuple[Point, ...]) -> str:
    """A constant factor, the same at all points."""
    ratio: Any = simple_ratio(claim.declared, claim.derived, points)
    if ratio is None:
        return ""
    if isinstance(ratio, Fraction):
        if ratio == -1:
            return "its sign is wrong everywhere"
        off = str(ratio) if ratio.denominator < 1000 else repr(float(ratio))
        return f"it is {off} times the derivative everywhere"
    return f"it is {decimal(ratio, 17)} times the derivative everywhere"


def _swapped(claim: Claim, points: tuple[Point, ...]) -> str:
    """The derivative by another input."""
    for name, other in claim.subject.derived.items():
        if name != claim.input.name and _agree(claim.declared, other, points):
            return f"it is the derivative by {name}, not by {claim.input.name}"
    return ""


def _changed(claim: Claim, points: tuple[Point, ...]) -> str:
    """One small change in the text that makes it right."""
    for count, (sentence, changed) in enumerate(_changes(claim.declared)):
        if count >= _CHANGES:
            break
        if _agree(changed, claim.derived, points):
            return sentence
    return _dropped(claim, points)


def _changes(expr: Expr) -> Iterator[tuple[str, Expr]]:
    for node in nodes(expr):
        match node:
            case Apply(op="add" | "sub" as op, args=(left, right)):
                turned = apply("sub" if op == "add" else "add", left, right)
                term = show(right)
                yield f"the sign of `{term}` is wrong", _put(expr, node, turned)
                yield f"`{term}` is one term too many", _put(expr, node, left)
            case Select(condition=condition, then=then, other=other):
                turned_select = Select(condition, other, then)
                told = f"the branches of `… if {show(condition)} else …` are swapped"
                yield told, _put(expr, node, turned_select)
            case Apply(op="pow", args=(base, Const(value=power))):
                for near in (power - 1, power + 1):
                    changed = apply("pow", base, Const(near))
                    told = f"the exponent of `{show(node)}` should be {near}"
                    yield told, _put(expr, node, changed)
            case _:
                continue


def _put(expr: Expr, old: Expr, new: Expr) -> Expr:
    return transform(expr, lambda node: new if node == old else node)


def _dropped(claim: Claim, points: tuple[Point, ...]) -> str:
    """The derivative without one of its terms."""
    for node in nodes(claim.derived):
        match node:
            case Apply(op="add" | "sub", args=(left, right)):
                for kept, lost in ((left, right), (right, left)):
                    if _agree(claim.declared, _put(claim.derived, node, kept), points):
                        return f"the term `{show(lost)}` is missing"
            case Apply(op="mul", args=(left, right)):
                for kept, lost in ((left, right), (right, left)):
                    less = _put(claim.derived, node, kept)
                    if lost != ONE and _agree(claim.declared, less, points):
                        return f"the factor `{show(lost)}` is missing"
            case _:
                continue
    return ""
