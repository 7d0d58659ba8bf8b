"""What is said of every rule: the kinds of its verdicts, and the codes of findings."""

from __future__ import annotations

from pathlib import Path

from gradspec.diagnostics import Diagnostic
from gradspec.driver.cache import RuleRow
from tests.contract.files import File, compiled
from tests.contract.tables import Row


def rows(file: File, path: Path, out: Path) -> list[Row]:
    """A row a rule of the file, which stands at ``path`` with the rules that are tried."""
    made = compiled(file, path, out)
    (result,) = made.files
    rules = sorted(result.rules, key=lambda rule: rule.line)
    codes: dict[str, list[str]] = {rule.name: [] for rule in rules}
    for found in made.diagnostics:
        where, line = _place(found, result.display)
        if where:
            above = [rule for rule in rules if rule.line <= line]
            codes[above[-1].name].append(f"{found.code}+{line - above[-1].line}")
    return [_row(file, rule, codes[rule.name]) for rule in rules]


def _row(file: File, rule: RuleRow, codes: list[str]) -> Row:
    verdicts = " ".join(f"d{v.input}={v.status.value}" for v in rule.verdicts)
    return {
        "file": file.name,
        "rule": rule.name,
        "verdicts": verdicts,
        "codes": " ".join(sorted(codes)),
    }


def _place(found: Diagnostic, display: str) -> tuple[bool, int]:
    """Whether a finding is in the file itself, and its line."""
    if not found.labels or found.labels[0].source.path != display:
        return False, 0
    label = found.labels[0]
    return True, label.source.position(label.span.start)[0]
