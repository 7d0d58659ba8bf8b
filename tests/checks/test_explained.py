"""Each page of a GS4xx code shows a rule with the fault and one without."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from tests.checks.written import codes, compiled

LATER = ("GS433", "GS461", "GS462", "GS463", "GS464", "GS465", "GS490")
"""Found in the emitted program, of time, or under an option; `tests/report` reads the
pages of those that need none."""

PAGES = sorted(
    page.name[:5]
    for page in files("gradspec").joinpath("explain").iterdir()
    if page.name.startswith("GS4") and page.name[:5] not in LATER
)


@pytest.mark.parametrize("code", PAGES)
def test_the_first_example_has_the_fault_and_the_second_has_none(code: str) -> None:
    text = files("gradspec").joinpath("explain", f"{code}.md").read_text("utf-8")
    assert text.startswith(f"# {code}: ")
    wrong, right = re.findall(r"```grad\n(.*?)```", text, re.DOTALL)
    assert code in compiled(wrong)
    assert compiled(right) == ()


def test_the_wrong_branch_of_a_static_is_found() -> None:
    """Though the default is far from it."""
    text = """
        rule f(x, mode: static int = 0, p: static = 0.5) -> y:
            assume x > 0
            y = {power}
            dx = dy * ({slope})
        """
    power = "x**2 if mode == 3 else (log(x) if p == 0 else x**p / p)"
    right = "2 * x if mode == 3 else x**(p - 1)"
    assert codes(text.format(power=power, slope=right)) == ()
    for wrong in (
        "x if mode == 3 else x**(p - 1)",
        "2 * x if mode == 3 else (x**(p - 1) if p != 0 else 1)",
        "x**(p - 1)",
    ):
        assert codes(text.format(power=power, slope=wrong)) == ("GS401",), wrong
