"""True cotangents in every dress that the authors could think of: all of them proved."""

from __future__ import annotations

from pathlib import Path

import pytest

from gradspec.checks.check import check
from gradspec.derive.complete import complete
from gradspec.ir.rule import Rule, Status
from gradspec.lower.lowering import lower
from gradspec.source import Source
from gradspec.syntax.parse import parse

FILES = sorted((Path(__file__).parent / "disguised").glob("*.grad"))


def rules(path: Path) -> tuple[Rule, ...]:
    module = parse(Source(path.name, path.read_text("utf-8"))).value
    assert module is not None
    lowered = lower(module, {})
    assert lowered.value is not None
    assert not lowered.failed, lowered.diagnostics
    return tuple(r for rule in lowered.value.rules if (r := complete(rule).value))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.stem))
def test_all_are_proved(path: Path) -> None:
    found = rules(path)
    assert len(found) >= 20
    for rule in found:
        checked = check(rule, 5.0)
        assert checked.value is not None
        declared = [v for v in checked.value.verdicts if v.input in rule.declared]
        assert declared, rule.name
        assert not checked.diagnostics, rule.name
        for verdict in declared:
            assert verdict.status is Status.PROVED, rule.name
            assert verdict.points >= 8 and verdict.digits >= 30, rule.name
