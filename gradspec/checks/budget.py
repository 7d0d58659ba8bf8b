"""Proofs that ran out of time: said, so that a verdict is never a matter of speed alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gradspec.diagnostics import Diagnostic, warning
from gradspec.ir.rule import Rule, Status, Verdict


def stopped(rule: Rule, verdicts: Iterable[Verdict]) -> Iterator[Diagnostic]:
    for entry, verdict in zip(rule.backward, verdicts, strict=True):
        if verdict.status is Status.AGREES and verdict.stopped:
            strategies = " and ".join(verdict.stopped)
            yield warning(
                "GS460",
                f"the proof of d{verdict.input} of {rule.name} was stopped when its time"
                f" was up ({strategies})",
                rule.source,
                getattr(entry, "span", rule.name_span),
                label=f"agrees with the derivative at {verdict.points} points to"
                f" {verdict.digits} digits",
                help="leave the line out, write it in a form nearer to the derivative, or"
                " give the proof more time with `--budget`",
            )
