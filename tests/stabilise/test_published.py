"""Expressions of published accuracy benchmarks: gradients are mended, none made worse."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.fpcore import parsed, rule
from benchmarks.library import complete_rules
from benchmarks.published import HERE, measured

RULES = {found.name: found for found in complete_rules(HERE)}

MENDED = (
    "nmse_example_3_4",
    "nmse_problem_3_3_6",
    "complex_sine_and_cosine",
    "hyperbolic_secant",
    "asymptote_a",
)


@pytest.mark.parametrize("name", MENDED)
def test_gradients_are_mended_and_none_is_worse(name: str) -> None:
    found = tuple(measured(RULES[name], 100))
    assert found and not any(finding.is_worse for finding in found)
    assert any(finding.written.core for finding in found)
    assert all(finding.selected.core == 0 for finding in found)


def test_cores_become_rules() -> None:
    text = """
    (FPCore (x N)
      :name "A name" :pre (and (<= 1 x 9) (< 0 N))
      (let ([t (+ x 1/2)]) (if (> x N) (- (sqrt t)) (pow (fabs t) 3))))
    """
    (core,) = parsed(text)
    assert rule(core).splitlines() == [
        "rule a_name(x, n) -> y:",
        "    assume 1 <= x, x <= 9, 0 < n",
        "    t = (x + (1 / 2))",
        "    y = ((-sqrt(t)) if x > n else (abs(t)**3))",
    ]


def test_the_file_holds_what_it_says() -> None:
    assert len(RULES) >= 30
    assert "FPBench" in Path(HERE).read_text(encoding="utf-8")
