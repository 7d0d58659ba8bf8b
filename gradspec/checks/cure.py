"""The line that would be right: the author's own with the guess put in, or the derivative
in the shortest form at hand, in the author's names."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from gradspec.checks.guess import Guess, as_it_is, as_written
from gradspec.checks.guesses_whole import agree
from gradspec.derive.build import plus, times
from gradspec.derive.linear import coefficient, is_linear
from gradspec.ir import closed
from gradspec.ir.calls import expand
from gradspec.ir.expr import ZERO, Expr, Ref
from gradspec.ir.rule import Let, Rule
from gradspec.ir.tidy import fold, tidy
from gradspec.ir.walk import (
    children,
    inline,
    names,
    nodes,
    size,
    transform,
    with_children,
)
from gradspec.symbolic.gather import gathered

if TYPE_CHECKING:
    from gradspec.checks.claims import Claim

_LONGEST = 160
"""Characters of a line beyond which it is no help to read."""

_LARGEST = 80  # nodes that are gathered into one fraction
_DEEPEST = 300


def cure(claim: Claim, guess: Guess | None) -> str:
    """How to mend a refuted cotangent."""
    meant = f'if it is meant, say `override {claim.name} = … because "…"`'
    line = _corrected(claim, guess) or f"{claim.name} = {derivative(claim)}"
    if len(line) > _LONGEST:
        return f"leave the line out and {claim.name} is derived; {meant}"
    return f"write `{line}`, or leave the line out; {meant}"


def _corrected(claim: Claim, guess: Guess | None) -> str:
    """The text that is at fault with the one place changed, if that makes it right."""
    if guess is None or guess.place is None or guess.new is None:
        return ""
    rule, name = claim.subject.rule, guess.place.within
    lets = {let.name: let.value for let in (*rule.forward, *rule.backward_locals)}
    text = claim.entry.value if name == claim.name else lets[name]
    if sum(1 for _ in islice(nodes(text), _DEEPEST)) == _DEEPEST:
        return ""
    new = _replaced(text, guess.place.node, guess.new)
    right = expand(closed.cotangents(_with(claim, name, new))[claim.name])
    points = claim.subject.points
    return f"{name} = {as_it_is(new)}" if agree(right, claim.derived, points) else ""


def _replaced(text: Expr, old: Expr, new: Expr) -> Expr:
    """One occurrence, known by its place in the source, is replaced."""
    if text == old and text.span == old.span:
        return new
    parts = tuple(_replaced(child, old, new) for child in children(text))
    changed = with_children(text, parts)
    return text if changed is text else fold(changed)


def _with(claim: Claim, name: str, value: Expr) -> Rule:
    """The rule with one text of the backward in the place of another."""
    rule = claim.subject.rule

    def changed(lets: tuple[Let, ...]) -> tuple[Let, ...]:
        return tuple(
            replace(let, value=value) if let.name == name else let for let in lets
        )

    backward = tuple(
        replace(claim.entry, value=value)
        if entry is claim.entry and name == claim.name
        else entry
        for entry in rule.backward
    )
    return replace(
        rule,
        forward=changed(rule.forward),
        backward_locals=changed(rule.backward_locals),
        backward=backward,
    )


def derivative(claim: Claim) -> str:
    """The derivative as one would write it by hand."""
    named = _named(tidy(claim.derived), _names(claim))
    return min((as_written(form) for form in _forms(claim, named)), key=len)


def _forms(claim: Claim, derived: Expr) -> tuple[Expr, ...]:
    upstream = frozenset(claim.subject.upstream)
    if size(derived) > _LARGEST or not is_linear(derived, upstream):
        return (derived,)
    total: Expr = ZERO
    for name in claim.subject.upstream:
        if name in names(derived):
            factor = coefficient(derived, name, upstream)
            total = plus(total, times(Ref(name), gathered(factor) or factor))
    return (derived, tidy(total))


def _names(claim: Claim) -> dict[Expr, str]:
    """What the author has a name for, in the inputs; outputs and forward locals."""
    rule = claim.subject.rule
    outputs = {o.name for o in rule.outputs}
    forms = {n: tidy(expand(v)) for n, v in closed.outputs(rule).items()}
    known = {form: name for name, form in forms.items() if size(form) > 1}
    for let in rule.forward:
        if let.name not in outputs:
            value = tidy(expand(inline(rule.forward, let.value)))
            if size(value) > 1:
                known.setdefault(value, let.name)
    return known


def _named(expr: Expr, known: dict[Expr, str]) -> Expr:
    return transform(expr, lambda node: Ref(known[node]) if node in known else node)
