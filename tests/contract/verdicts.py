"""What is said of every rule: the kinds of its verdicts, and the codes of findings."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from gradspec.diagnostics import Diagnostic
from gradspec.driver.cache import RuleRow
from gradspec.ir.rule import Status, Verdict
from tests.contract.files import File, compiled
from tests.contract.tables import Row

OF_TIME = ("GS460", "GS461", "GS463")
"""What a slower machine finds and another does not."""

SECONDS = 0.3
"""Of a proof that takes longer, a machine that is busy may come to agreement at points
instead: the table says of both that the gradient holds."""
HOLDS = "holds"
_ALIKE = (Status.PROVED.value, Status.AGREES.value)


def rows(file: File, path: Path, out: Path) -> list[Row]:
    """A row a rule of the file, which stands at ``path`` with the rules that are tried."""
    made = compiled(file, path, out)
    (result,) = made.files
    rules = sorted(result.rules, key=lambda rule: rule.line)
    codes: dict[str, list[str]] = {rule.name: [] for rule in rules}
    for found in made.diagnostics:
        where, line = _place(found, result.display)
        if where and found.code not in OF_TIME:
            above = [rule for rule in rules if rule.line <= line]
            codes[above[-1].name].append(f"{found.code}+{line - above[-1].line}")
    return [_row(file, rule, codes[rule.name]) for rule in rules]


def _row(file: File, rule: RuleRow, codes: list[str]) -> Row:
    verdicts = " ".join(f"d{v.input}={_word(v)}" for v in rule.verdicts)
    return {
        "file": file.name,
        "rule": rule.name,
        "verdicts": verdicts,
        "codes": " ".join(sorted(codes)),
    }


def _word(verdict: Verdict) -> str:
    told = verdict.status.value
    return HOLDS if told in _ALIKE and verdict.seconds > SECONDS else told


def alike(was: Iterable[Row], now: Iterable[Row]) -> tuple[list[Row], list[Row]]:
    """Both, with "holds" in place of a proof where either says no more than that."""
    pinned = {(row["file"], row["rule"]): row for row in was}
    found = {(row["file"], row["rule"]): row for row in now}
    for key in pinned.keys() & found.keys():
        pairs = [row[key]["verdicts"].split() for row in (pinned, found)]
        loose = {
            word.partition("=")[0]
            for words in pairs
            for word in words
            if word.endswith(f"={HOLDS}")
        }
        for rows in (pinned, found):
            rows[key] = rows[key] | {"verdicts": _loosened(rows[key], loose)}
    return list(pinned.values()), list(found.values())


def _loosened(row: Row, loose: set[str]) -> str:
    parts = (word.split("=") for word in row["verdicts"].split())
    return " ".join(
        f"{name}={HOLDS if name in loose and told in _ALIKE else told}"
        for name, told in parts
    )


def _place(found: Diagnostic, display: str) -> tuple[bool, int]:
    """Whether a finding is in the file itself, and its line."""
    if not found.labels or found.labels[0].source.path != display:
        return False, 0
    label = found.labels[0]
    return True, label.source.position(label.span.start)[0]
