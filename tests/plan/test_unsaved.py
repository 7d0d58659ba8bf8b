"""What is saved in vain (GS464) and a backward of more axes than the forward (GS465) are told;
the pages of these codes are read.
"""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

from gradspec import compile_paths


def page(code: str) -> list[str]:
    text = files("gradspec").joinpath("explain", f"{code}.md").read_text("utf-8")
    return re.findall(r"```grad\n(.*?)```", text, re.DOTALL)


WRONG, RIGHT = page("GS464")
WIDE, NARROW = page("GS465")
UNUSED = """\
rule f(x) -> y:
    u = exp(x)
    v = x * x
    y = u * v
    save u, v
    override dx = dy * v because "without u"
"""
ROWS = """\
rule f(x[..., n]) -> y[..., n]:
    m = mean(x[j] for j)
    y[i] = x[i] - m
    save m
"""


def _warnings(text: str, folder: Path, targets: str = "numpy") -> list[str]:
    path = folder / "rules.grad"
    path.write_text(text, encoding="utf-8")
    result = compile_paths([path], targets=targets, out=folder / "out")
    return [f"{d.code} {d.headline}" for d in result.diagnostics]


@pytest.mark.parametrize(("text", "name"), [(WRONG, "u"), (UNUSED, "u"), (ROWS, "m")])
def test_what_no_gradient_uses(text: str, name: str, tmp_path: Path) -> None:
    (told,) = _warnings(text, tmp_path, "all")
    assert told == f"GS464 {name} of f is not saved: no gradient uses it"


def test_an_exact_gradient_uses_what_is_saved(tmp_path: Path) -> None:
    assert not _warnings(RIGHT, tmp_path, "torch")


def test_a_backward_of_more_axes_than_the_forward(tmp_path: Path) -> None:
    (told,) = _warnings(WIDE, tmp_path, "all")
    assert told.startswith(
        "GS465 the backward of pooled has an array over [n, p], more"
    )
    assert not _warnings(NARROW, tmp_path)
