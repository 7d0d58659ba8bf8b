"""What is saved in vain is told (GS464); the page of that code is read."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

from gradspec import compile_paths

PAGE = files("gradspec").joinpath("explain", "GS464.md").read_text("utf-8")
WRONG, RIGHT = re.findall(r"```grad\n(.*?)```", PAGE, re.DOTALL)
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
