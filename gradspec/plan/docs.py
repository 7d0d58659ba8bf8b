"""The contents of a rule's generated docstring."""

from __future__ import annotations

import re
import textwrap

from gradspec.ir.rule import CheckedRule, Override, Rule, Status, Verdict
from gradspec.ir.text import show
from gradspec.plan.plan import Docs, Note

_DOCSTRING = re.compile(r'\n[ \t]*"""(?:[^\\]|\\.)*?"""[ \t]*(?=\n|$)', re.DOTALL)


def docs_of(checked: CheckedRule) -> Docs:
    """The author's words, the rule as written, domain, verdicts and reasons."""
    rule = checked.rule
    notes = (
        *_domain(rule),
        *_gradients(checked),
        *_overrides(rule),
        *_evaluation(checked),
    )
    doc = textwrap.dedent(rule.doc or "").strip() or f"The rule ``{rule.name}``."
    return Docs(doc, _definition(rule), notes)


def _definition(rule: Rule) -> str:
    """The rule's own text, without its docstring (printed above it) and without its
    examples, which are for `gradspec test`.
    """
    text, start = rule.definition, rule.span.start
    for example in sorted(rule.examples, key=lambda e: -e.span.start):
        text = text[: example.span.start - start] + text[example.span.end - start :]
    if rule.doc is not None:
        text = _DOCSTRING.sub("", text, count=1)
    lines = (line.rstrip() for line in text.strip().splitlines())
    return "\n".join(line for line in lines if line)


def _domain(rule: Rule) -> tuple[Note, ...]:
    conditions = ", ".join(show(assume.condition) for assume in rule.assumes)
    return (Note("Domain", conditions),) if conditions else ()


def _gradients(checked: CheckedRule) -> tuple[Note, ...]:
    said = [(v, _verdict(v)) for v in checked.verdicts]
    lines = "; ".join(f"d{v.input} {text}" for v, text in said if text)
    return (Note("Gradients", lines or "none"),)


def _verdict(verdict: Verdict) -> str:
    what = {
        Status.DERIVED: "derived",
        Status.PROVED: "proved",
        Status.AGREES: f"agrees at {verdict.points} points to {verdict.digits} digits",
        Status.REFUTED: "refuted",
        Status.OVERRIDE: "overridden",
        Status.NONE: "",
    }[verdict.status]
    if what and verdict.through_surrogate:
        what += " through the surrogate"
    if what and verdict.sizes:
        what += f" at {verdict.sizes}"
    if what and verdict.on_domain:
        what += " on the domain"
    return what


def _overrides(rule: Rule) -> tuple[Note, ...]:
    reasons = [
        f"d{variable.name} is not the derivative: {entry.reason}"
        for variable, entry in zip(rule.inputs, rule.backward, strict=True)
        if isinstance(entry, Override)
    ]
    return (Note("Override", "; ".join(reasons)),) if reasons else ()


def _evaluation(checked: CheckedRule) -> tuple[Note, ...]:
    if not checked.as_written:
        return ()
    return (Note("Evaluation", "as written, nothing more accurate was looked for"),)
