"""Rules that come with gradspec are imported by name."""

from __future__ import annotations

import pytest

import gradspec

RULE = """\
from "gradspec:{}" import {}

rule quantised(z, e) -> q:
    q = z + {}(e - z)
"""


@pytest.mark.parametrize("path", ["control/gradients", "control/gradients.grad"])
def test_a_shipped_rule_by_name(path: str) -> None:
    text = RULE.format(path, "stop_gradient", "stop_gradient")
    assert "def quantised(" in gradspec.compile_text(text)


def test_a_shipped_file_imports_its_neighbours() -> None:
    text = 'from "gradspec:control/straight_through" import straight_through\n'
    text += "\nrule hard(x) -> y:\n    y = straight_through(x, round(x))\n"
    assert "def hard(" in gradspec.compile_text(text)


@pytest.mark.parametrize("path", ["control/none", "../pyproject", "/etc/passwd"])
def test_only_shipped_rules(path: str) -> None:
    text = RULE.format(path, "stop_gradient", "stop_gradient")
    with pytest.raises(gradspec.CompileError, match="GS609"):
        gradspec.compile_text(text)
