"""The shipped rules: enough of them, of different names, each with its source and examples.

Their gradients are proved, and the numbers of their examples compared with exact values,
when they are compiled (`tests/contract`); both are tried in every framework (`tests/trial`).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gradspec.source import Source
from gradspec.syntax.nodes import Example, RuleDef
from gradspec.syntax.parse import parse

LIBRARY = Path(__file__).parents[2] / "rules"
LEAST = {
    **{"activations": 40, "control": 10, "losses": 30, "special": 25, "stable": 20},
    **{"linalg": 12, "surrogates": 15, "sequences": 10, "tensor": 60, "tutorial": 10},
}
"""Rules by folder."""


def _rules(folder: str) -> list[RuleDef]:
    found = []
    for path in sorted((LIBRARY / folder).glob("*.grad")):
        module = parse(Source(path.name, path.read_text("utf-8"))).value
        assert module is not None
        found += [item for item in module.items if isinstance(item, RuleDef)]
    return found


RULES = {folder: _rules(folder) for folder in LEAST}


def test_there_are_enough_of_different_names() -> None:
    names = [rule.name for rules in RULES.values() for rule in rules]
    assert len(set(names)) == len(names)
    for folder, least in LEAST.items():
        assert len(RULES[folder]) >= least, folder


def _examples(rule: RuleDef) -> list[Example]:
    return [line for line in rule.body if isinstance(line, Example)]


@pytest.mark.parametrize("folder", RULES)
def test_each_says_what_it_is_where_it_comes_from_and_what_it_gives(
    folder: str,
) -> None:
    for rule in RULES[folder]:
        first, *rest = (rule.doc or "").split("\n")
        assert first.endswith("."), rule.name
        assert any(line.strip().startswith("Source: ") for line in rest), rule.name
        assert folder in ("sequences", "tensor") or len(_examples(rule)) >= 2, rule.name
