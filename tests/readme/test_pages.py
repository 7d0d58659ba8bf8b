"""What docs/coming-from.md and docs/cost.md show is what happens."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import gradspec
from gradspec.cli import cli as main
from tests.calling import FRAMEWORKS, PACKAGES, called

ROOT = Path(__file__).parents[2]
COMING = (ROOT / "docs" / "coming-from.md").read_text("utf-8")
COST = (ROOT / "docs" / "cost.md").read_text("utf-8")
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BY_HAND = [text for language, text in BLOCK.findall(COMING) if language == "python"]
(RULE,) = [text for language, text in BLOCK.findall(COMING) if not language]

STATICS = {"beta": 1.5}


def _by_hand(target: str) -> SimpleNamespace:
    """The page's code for a framework, as a module with ``by_hand``."""
    pytest.importorskip(PACKAGES[target])
    (text,) = (text for text in BY_HAND if f"import {PACKAGES[target]}" in text)
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(text, "coming-from.md", "exec"), names)
    return SimpleNamespace(by_hand=names["by_hand"])


@pytest.mark.parametrize("target", FRAMEWORKS)
def test_code_by_hand_is_the_rule_where_it_does_not_overflow(target: str) -> None:
    hand, rule = _by_hand(target), gradspec.load(RULE, target)
    x = np.array([-2.0, 0.5, 3.0])
    wanted = called(target, hand, "by_hand", [x], statics=STATICS)
    found = called(target, rule, "soft", [x], statics=STATICS)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    far = [np.array([1000.0])]
    ((y,), (dx,)) = called(target, hand, "by_hand", far, [np.ones(1)], statics=STATICS)
    assert not np.isfinite([y, dx]).all()
    ((y,), (dx,)) = called(target, rule, "soft", far, [np.ones(1)], statics=STATICS)
    assert (y.item(), dx.item()) == (1000.0, 1.0)


def test_the_report_shown_is_the_one_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (rules,) = (text for language, text in BLOCK.findall(COST) if not language)
    (shown,) = (text for language, text in BLOCK.findall(COST) if language == "text")
    (tmp_path / "mish.grad").write_text(rules)
    monkeypatch.chdir(tmp_path)
    command = ["compile", "mish.grad", "--target", "torch,jax", "--report"]
    printed = CliRunner().invoke(main, command).stdout
    assert shown.rstrip() in printed


FIGURES = {
    "memory.md": ("180 of 181", "37 of 66", "55 of 56", "at most 32"),
    "speed.md": ("| softplus | **1.91** |", "| gelu | **3.86** |"),
    "accuracy.md": ("| 3068 | 2939 |", "| 792 | 545 |", "| 2532 | 1369 |"),
    "README.md": ("110 of 113", "13.5 s of CPU time for 255 rules"),
}


def test_the_figures_are_those_that_were_measured() -> None:
    """Of each figure the numbers stand on the page, in whatever order."""
    numbers = re.compile(r"\d+(?:\.\d+)?")
    known = set(numbers.findall(COST))
    for page, figures in FIGURES.items():
        measured = (ROOT / "benchmarks" / page).read_text("utf-8")
        for figure in figures:
            assert figure in measured, (page, figure)
            assert {*numbers.findall(figure)} <= known, (page, figure)
