"""The shipped rules with axes: how many, and that each names its source. Their examples
and gradients are tried in every framework (`tests/trial`).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gradspec.source import Source
from gradspec.syntax.nodes import RuleDef
from gradspec.syntax.parse import parse

FOLDER = Path(__file__).parents[2] / "rules" / "tensor"


def _rules() -> list[RuleDef]:
    found = []
    for path in sorted(FOLDER.glob("*.grad")):
        module = parse(Source(path.name, path.read_text("utf-8"))).value
        assert module is not None
        found += [item for item in module.items if isinstance(item, RuleDef)]
    return found


RULES = _rules()


def test_there_are_enough_of_different_names() -> None:
    assert len(RULES) >= 60
    assert len({rule.name for rule in RULES}) == len(RULES)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_the_docstring_says_what_it_is_and_where_it_comes_from(rule: RuleDef) -> None:
    first, *rest = (rule.doc or "").split("\n")
    assert first.endswith(".")
    assert any(line.strip().startswith("Source: ") for line in rest)
