"""Rules from text, complete, for the tests of this folder."""

from __future__ import annotations

from textwrap import dedent

from gradspec.derive.complete import complete
from gradspec.diagnostics import Outcome
from gradspec.ir.rule import Complete, Judged, Status
from gradspec.lower.lowering import lower
from gradspec.lower.module import LoweredModule
from gradspec.mend import check_and_mend
from gradspec.source import Source
from gradspec.stabilise.explanation import loss_warnings
from gradspec.stabilise.stabilise import stabilise
from gradspec.syntax.parse import parse


def written(text: str) -> Complete:
    """The last rule of a text, its missing cotangents derived."""
    rule = complete(_lowered(text).rules[-1]).value
    assert rule is not None
    return rule


def _lowered(text: str) -> LoweredModule:
    module = parse(Source("test.grad", dedent(text).strip() + "\n"))
    assert module.value is not None, module.diagnostics
    lowered = lower(module.value, {})
    assert lowered.value is not None, lowered.diagnostics
    assert not lowered.failed, lowered.diagnostics
    return lowered.value


def checked(text: str, budget: float = 5.0) -> Outcome[Judged]:
    return check_and_mend(written(text), budget, _lowered(text).defs)


def compiled(text: str) -> tuple[str, ...]:
    """The codes of all that compiling an elementwise rule finds, evaluation included."""
    outcome = checked(text)
    found = [d.code for d in outcome.diagnostics]
    if outcome.value is not None and not outcome.failed:
        found += [d.code for d in loss_warnings(stabilise(outcome.value))]
    return tuple(found)


def codes(text: str) -> tuple[str, ...]:
    return tuple(d.code for d in checked(text).diagnostics)


def status(text: str, name: str = "x") -> Status:
    outcome = checked(text)
    assert outcome.value is not None
    return next(v.status for v in outcome.value.verdicts if v.input == name)
