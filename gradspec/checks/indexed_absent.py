"""Declared cotangents that use elements which do not exist, at sizes that the forward
knows: ``x[i + 2]`` under ``if i + 1 < n``.

Sizes at which the forward itself lacks an element are sizes of which the rule says
nothing (a stencil is longer than its axis). But a cotangent has to have a value wherever
the forward has one: what agrees at the sizes that are left proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from gradspec.checks.claims import Judgement
from gradspec.checks.indexed_cases import Cases
from gradspec.diagnostics import Diagnostic, error
from gradspec.ir.elements import Nested, OutOfRange
from gradspec.ir.rule import Backward, Declared, NoGradient, Rule, Status
from gradspec.ir.unroll import unroll


def judge(
    rule: Rule, known: Cases, judgements: tuple[Judgement, ...]
) -> tuple[Judgement, ...]:
    """The judgements, those refuted that forget an end of an axis."""
    if not known.missed:
        return judgements
    places = {variable.name: k for k, variable in enumerate(rule.inputs)}
    return tuple(_judged(rule, places[j.verdict.input], known, j) for j in judgements)


def _judged(rule: Rule, place: int, known: Cases, given: Judgement) -> Judgement:
    entry = rule.backward[place]
    if given.verdict.status is Status.REFUTED or not isinstance(entry, Declared):
        return given
    for sizes, integers, fault in _faults(rule, place, known):
        method = "elements that do not exist"
        verdict = replace(given.verdict, status=Status.REFUTED, method=method, sizes="")
        return Judgement(verdict, (_told(rule, place, sizes, integers, fault),))
    return given


def _faults(
    rule: Rule, place: int, known: Cases
) -> Iterator[tuple[Mapping[str, int], Mapping[str, Nested], OutOfRange]]:
    """Where the cotangent lacks an element and the forward has all."""
    alone = _with_backward(rule, place)
    forward = replace(_with_backward(rule, None), backward_locals=())
    for sizes, integers in known.missed:
        fault = _fault(alone, sizes, integers)
        if fault is not None and _fault(forward, sizes, integers) is None:
            yield sizes, integers, fault


def _with_backward(rule: Rule, place: int | None) -> Rule:
    """No more than one cotangent."""
    backward: tuple[Backward, ...] = tuple(
        entry if k == place else NoGradient() for k, entry in enumerate(rule.backward)
    )
    return replace(rule, backward=backward)


def _fault(
    rule: Rule, sizes: Mapping[str, int], integers: Mapping[str, Nested]
) -> OutOfRange | None:
    try:
        unroll(rule, sizes, integers)
    except OutOfRange as fault:
        return fault
    return None


def _told(
    rule: Rule,
    place: int,
    sizes: Mapping[str, int],
    integers: Mapping[str, Nested],
    fault: OutOfRange,
) -> Diagnostic:
    entry = rule.backward[place]
    assert isinstance(entry, Declared)
    given = {**sizes, **integers}
    where = ", ".join(f"{name} = {value}" for name, value in given.items())
    name = rule.inputs[place].name
    return error(
        "GS420",
        f"d{name} of {rule.name} uses an element that does not exist",
        rule.source,
        fault.span or entry.span,
        label=f"`{fault.name}` is outside its axis" + (f" at {where}" if where else ""),
        help="narrow the condition around it, so that it holds only where the element"
        " exists; the forward has a value there, and so must its gradient",
    )
