"""Breaks of a rule with axes: those of its elements, at two elements an axis.

One element of each variable is looked at, the others do alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from gradspec.checks import boundaries
from gradspec.checks.breaks import Break, Effort, breaks
from gradspec.checks.claims import Claim, Judgement
from gradspec.checks.cotangents_said import broken
from gradspec.checks.indexed_cases import Case
from gradspec.checks.subject import Subject
from gradspec.diagnostics import Diagnostic
from gradspec.ir.rule import Declared, Status
from gradspec.ir.walk import names

EFFORT = Effort(1, 50_000)
_QUICK = Effort(1, 2_000)
_OTHER = re.compile(r"\[.*[1-9]")


def first_breaks(subject: Subject, effort: Effort = EFFORT) -> Iterator[Break]:
    """The breaks along the first element of each input, of the first element of each
    output that depends on it."""
    firsts = frozenset(i.name for i in subject.rule.inputs if not _OTHER.search(i.name))
    for one in breaks(subject, effort, firsts):
        if _is_first(subject, one):
            yield one


def _is_first(subject: Subject, found: Break) -> bool:
    stem = found.output.name.partition("[")[0]
    alike = (o.name for o in subject.rule.outputs if o.name.partition("[")[0] == stem)
    return found.output.name == next(
        name for name in alike if found.place.input in names(subject.forward[name])
    )


def judge(
    case: Case, judgements: tuple[Judgement, ...]
) -> tuple[tuple[Judgement, ...], tuple[Diagnostic, ...]]:
    """The judgements, with those refuted whose element is wrong at a break, and what
    else breaks show."""
    seen = case.subject
    if not seen.points:
        return judgements, ()
    found = tuple(first_breaks(seen, _QUICK))
    wrong = dict(_wrong(seen, found))
    judged = tuple(
        wrong.get(one.verdict.input, one)
        if one.verdict.status is not Status.REFUTED
        else one
        for one in judgements
    )
    return judged, tuple(boundaries.check(seen, found))


def _wrong(seen: Subject, found: tuple[Break, ...]) -> Iterator[tuple[str, Judgement]]:
    """Judgements by the names of the variables with axes."""
    along = {one.place.input for one in found}
    for variable, entry in zip(seen.rule.inputs, seen.rule.backward, strict=True):
        derived = seen.derived.get(variable.name)
        if variable.name not in along or derived is None:
            continue
        if not isinstance(entry, Declared):
            continue
        stated = seen.stated[variable.name]
        judgement = broken(Claim(seen, variable, entry, stated, derived), found)
        if judgement is not None:
            stem = variable.name.partition("[")[0]
            verdict = replace(judgement.verdict, input=stem)
            yield stem, replace(judgement, verdict=verdict)
