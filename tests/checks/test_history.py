"""What a process has seen before plays no part in what is said of a rule."""

from __future__ import annotations

import pytest

from gradspec.driver.run import compile_source
from gradspec.options import Options
from gradspec.source import Source
from tests.checks.shipped import shipped

TEXTS = {
    "a loss": """
rule f(x, alpha: static = 1.0) -> y:
    assume alpha > 0
    exact y = x / sqrt(1 + alpha * x**2)
""",
    "a difference": """
rule f(a, b) -> y:
    assume a > 0, b > 0
    y = exp(lgamma(a + b) - lgamma(a) - lgamma(b))
""",
    "a call": """
rule g(a) -> y:
    y = sqrt(1 + a**2)

rule f(a) -> y:
    exact y = a / g(a)
""",
} | {one.name: one.text for one in shipped()[::8]}


def _findings(text: str, before: str = "") -> list[object]:
    """All that is said, with the places as they are without ``before``."""
    source = Source("f.grad", before + text)
    found = compile_source(source, "f.grad", Options(("numpy",)))[0].diagnostics
    return [
        (d.code, d.headline, d.notes, d.help, label.span.start - len(before))
        for d in found
        for label in d.labels
    ]


@pytest.mark.parametrize("name", TEXTS)
def test_the_same_rule_further_down_has_its_own_places(name: str) -> None:
    text = TEXTS[name]
    found = _findings(text)
    assert found
    assert _findings(text, "# Moved.\n\n") == found
