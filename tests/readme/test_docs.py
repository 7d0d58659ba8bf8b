"""The tutorial shows what gradspec does, and pages name pages that exist."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

import gradspec

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "tutorial.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
WRONG, REFUSAL, *RULES = [text for language, text in BLOCKS if not language]
PYTHON = [text for language, text in BLOCKS if language == "python"]


def test_the_wrong_rule_is_refused_as_shown() -> None:
    with pytest.raises(gradspec.CompileError) as caught:
        gradspec.compile_text(WRONG, name="rules/losses.grad")
    said = str(caught.value)
    assert all(line in said for line in REFUSAL.strip().splitlines())


@pytest.mark.parametrize("text", RULES)
def test_the_rules_compile(text: str) -> None:
    assert gradspec.compile_text(text, "torch")


def test_the_value_shown_is_the_one_emitted() -> None:
    shown = textwrap.indent(PYTHON[1], "        ").rstrip()
    assert shown in gradspec.compile_text(RULES[0], "torch")


def test_the_python_of_its_page_prints_what_is_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = (DOCS / "python.md").read_text("utf-8")
    code, said = re.findall(r"^```\w*\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    exec(code, {})
    assert capsys.readouterr().out == said


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.stem)
def test_every_page_that_is_named_exists(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
        assert (DOCS / target).exists(), target


def test_the_index_lists_every_page() -> None:
    index = (DOCS / "README.md").read_text("utf-8")
    made = DOCS / "gallery"  # by a build of the site
    found = (page for page in DOCS.rglob("*.md") if made not in page.parents)
    pages = [page.relative_to(DOCS).as_posix() for page in found]
    assert [p for p in pages if p != "README.md" and f"]({p})" not in index] == []
