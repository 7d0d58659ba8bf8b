"""Each page of a GS4xx code shows a rule with the fault and one without."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from tests.checks.written import codes

PAGES = sorted(
    page.name[:5]
    for page in files("gradspec").joinpath("explain").iterdir()
    if page.name.startswith("GS4") and page.name != "GS490.md"
)


@pytest.mark.parametrize("code", PAGES)
def test_the_first_example_has_the_fault_and_the_second_has_none(code: str) -> None:
    text = files("gradspec").joinpath("explain", f"{code}.md").read_text("utf-8")
    assert text.startswith(f"# {code}: ")
    wrong, right = re.findall(r"```grad\n(.*?)```", text, re.DOTALL)
    assert code in codes(wrong)
    assert codes(right) == ()
