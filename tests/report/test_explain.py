"""The pages of `gradspec explain`: every code has one, and its examples tell the truth."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gradspec.driver.run import compile_source
from gradspec.options import Options
from gradspec.report import diagnostics as explain
from gradspec.source import Source

PACKAGE = Path(__file__).parents[2] / "gradspec"
FENCE = re.compile(r"^```grad\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r'"(GS\d{3})"')
STRICT = {"GS490", "GS460", "GS461", "GS462", "GS463", "GS464", "GS465"}
"""Reported only under an option or where there is a target, or a matter of time: their
examples would need it."""


def _used() -> set[str]:
    texts = (path.read_text("utf-8") for path in PACKAGE.rglob("*.py"))
    found = {code for text in texts for code in CODE.findall(text)}
    return found | {"GS530", "GS611", "GS612", "GS701"}


def test_every_code_has_a_page_and_every_page_a_code() -> None:
    assert set(explain.codes()) == _used()


@pytest.mark.parametrize("code", explain.codes())
def test_a_page_begins_with_its_title(code: str) -> None:
    first = (explain.page(code) or "").splitlines()[0]
    assert re.fullmatch(rf"# {code}: \S.*[^.]", first)


@pytest.mark.parametrize("code", [c for c in explain.codes() if c[2] in "1234"])
def test_the_examples_of_a_page(code: str) -> None:
    examples = FENCE.findall(explain.page(code) or "")
    if code in STRICT:
        return
    assert len(examples) == 2, "a fault and its cure"
    assert code in _codes(examples[0]), "the first example has the fault"
    assert _errors(examples[1]) == [], "the second example is clean"
    assert code not in _codes(examples[1])


def _found(text: str):  # type: ignore[no-untyped-def]
    result, _ = compile_source(Source("page.grad", text), "page.grad", Options())
    return result.diagnostics


def _codes(text: str) -> list[str]:
    return [d.code for d in _found(text)]


def _errors(text: str) -> list[str]:
    return [d.headline for d in _found(text) if d.is_error]
