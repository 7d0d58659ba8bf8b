"""The shipped elementwise rules, complete."""

from __future__ import annotations

from pathlib import Path

from gradspec.derive.complete import complete_scalars
from gradspec.driver.load import load
from gradspec.ir.rule import Complete
from gradspec.source import Source

RULES = Path(__file__).parents[1] / "rules"


def library() -> tuple[Complete, ...]:
    """In the order of their files."""
    paths = sorted(RULES.rglob("*.grad"))
    return tuple(rule for path in paths for rule in complete_rules(path))


def complete_rules(path: Path) -> tuple[Complete, ...]:
    """The elementwise rules of a file."""
    loaded = load(Source(str(path), path.read_text(encoding="utf-8")), str(path.parent))
    assert loaded.module is not None, path
    return tuple(
        complete_scalars(rule) for rule in loaded.module.rules if not rule.has_axes
    )
