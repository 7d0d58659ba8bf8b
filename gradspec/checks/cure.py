"""Suggested fixes of a refuted cotangent: the author's line with the likely mistake undone,
or the derivative in the shortest form at hand, in the author's names. `mending` tries each
before it is shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from gradspec.checks.guess import Guess, as_it_is, as_written, plain
from gradspec.checks.mending import left_out
from gradspec.derive.build import plus, times
from gradspec.derive.linear import coefficient, is_linear
from gradspec.diagnostics import Fix
from gradspec.ir import closed
from gradspec.ir.calls import expand
from gradspec.ir.expr import ZERO, Expr, Ref
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
from gradspec.source import Span
from gradspec.symbolic.gather import gathered

if TYPE_CHECKING:
    from gradspec.checks.claims import Claim

_LONGEST = 160
"""Characters of a line beyond which it is no help to read."""

_LARGEST = 80  # nodes that are gathered into one fraction
_DEEPEST = 300


def cures(claim: Claim, guess: Guess | None) -> tuple[tuple[Fix, ...], ...]:
    """The changes that may mend a refuted cotangent: another line, or none."""
    rule, entry = claim.instance.rule, claim.entry
    line = line_fix(entry.span, f"{claim.name} = {derivative(claim)}")
    return ((*_guessed(claim, guess), line), (left_out(rule, entry.span),))


def line_fix(value: Span, line: str) -> Fix:
    """A line as it should be, in the place of a value; one too long is not shown."""
    words = f"write `{line}`" if len(line) <= _LONGEST else ""
    return Fix(words, value, line.partition(" = ")[2])


def meant(name: str) -> str:
    return f'if it is meant, say `override {name} = … because "…"`'


def _guessed(claim: Claim, guess: Guess | None) -> Iterator[Fix]:
    """The text that is at fault with the one place changed."""
    if guess is None or guess.place is None or guess.new is None:
        return
    rule, name = claim.instance.rule, guess.place.within
    lets = {let.name: let.value for let in (*rule.forward, *rule.backward_locals)}
    value = claim.entry.value if name == claim.name else lets[name]
    span = claim.entry.span if name == claim.name else value.span
    old = guess.place.node
    if old.span is not None and not rule.span.start <= old.span.start < rule.span.end:
        return  # it stands in another rule, which is not at fault
    if not any(node == old and node.span == old.span for node in nodes(value)):
        value = plain(value)  # it stands in what is called
    new = _replaced(value, old, guess.new)
    if new is not None and span is not None:
        fix = line_fix(span, f"{name} = {as_it_is(new)}")
        yield replace(fix, note=guess.sentence, guilty=guilty(claim, guess))


def guilty(claim: Claim, guess: Guess) -> Span | None:
    """The piece of text that is probably at fault, unless it is the whole."""
    return None if guess.span == claim.entry.span else guess.span


def _replaced(text: Expr, old: Expr, new: Expr) -> Expr | None:
    """One occurrence, known by its place in the source, is replaced; None in a text that
    is too large to be walked as a tree."""
    if text == old and text.span == old.span:
        return new
    if sum(1 for _ in islice(nodes(text), _DEEPEST)) == _DEEPEST:
        return None
    return _put(text, old, new)


def _put(text: Expr, old: Expr, new: Expr) -> Expr:
    if text == old and text.span == old.span:
        return new
    parts = tuple(_put(child, old, new) for child in children(text))
    changed = with_children(text, parts)
    return text if changed is text else fold(changed)


def derivative(claim: Claim) -> str:
    """The derivative as one would write it by hand."""
    named = _named(tidy(claim.derived), _names(claim))
    return min((as_written(form) for form in _forms(claim, named)), key=len)


def _forms(claim: Claim, derived: Expr) -> tuple[Expr, ...]:
    upstream = frozenset(claim.instance.upstream)
    if size(derived) > _LARGEST or not is_linear(derived, upstream):
        return (derived,)
    total: Expr = ZERO
    for name in claim.instance.upstream:
        if name in names(derived):
            factor = coefficient(derived, name, upstream)
            total = plus(total, times(Ref(name), gathered(factor) or factor))
    return (derived, tidy(total))


def _names(claim: Claim) -> dict[Expr, str]:
    """What the author has a name for, in the inputs; outputs and forward locals."""
    rule = claim.instance.rule
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
