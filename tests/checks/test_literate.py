"""Findings of rules that stand in `literate/*.md`, each with what is expected of it.

A comment before a rule says it: the codes of all that is found (or "nothing"), then
pieces of what is said, or "proved" and the like of the gradients that it declares.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gradspec.ir.rule import Status
from tests.checks.written import checked

FILES = sorted(Path(__file__).parent.glob("literate/*.md"))
STATUSES = {status.value for status in (Status.PROVED, Status.AGREES, Status.REFUTED)}


def _cases() -> dict[str, tuple[str, str]]:
    found = {}
    for path in FILES:
        titled = re.split(r"^## ", path.read_text("utf-8"), flags=re.MULTILINE)
        for part in titled[1:]:
            title, _, rest = part.partition("\n")
            for number, text in enumerate(rest.split("# expect: ")[1:], 1):
                expected, _, rule = text.partition("\n")
                name = f"{path.stem}: {title} {number}"
                found[name] = expected, rule.partition("```")[0]
    return found


CASES = _cases()


@pytest.mark.parametrize("name", CASES)
def test_findings(name: str) -> None:
    expected, text = CASES[name]
    codes, *rest = expected.split(" | ")
    outcome = checked(text)
    found = [d.code for d in outcome.diagnostics]
    assert " ".join(found or ["nothing"]) == codes
    told = [
        " ".join((d.headline, *(part.message for part in d.labels), *d.notes, d.help))
        for d in outcome.diagnostics
    ]
    verdicts = outcome.value.verdicts if outcome.value else ()
    statuses = {v.status.value for v in verdicts} & STATUSES
    for piece in rest:
        assert piece in statuses or piece in " ".join(told), (piece, statuses, told)


def test_there_are_many_of_them() -> None:
    """Kinds of findings, and rules in which nothing is found."""
    codes = {
        code
        for expected, _ in CASES.values()
        for code in expected.split(" | ")[0].split()
    }
    assert len(CASES) > 250 and len(codes) > 25
