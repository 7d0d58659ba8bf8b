"""A package brings a target: the example of docs/targets.md, installed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gradspec

PAGE = Path(__file__).parents[2] / "docs" / "targets.md"
RULE = """\
rule inverse(x[n]) -> y[n]:
    y[i] = 1 / x[i]
    dx[i] = -dy[i] * y[i] / x[i]
"""
USE = """\
import numpy as np
from out.checked.f import inverse, inverse_vjp

x = np.array([1.0, 2.0])
y = inverse(x)
print(y.tolist(), inverse_vjp(x, y, np.ones(2)).tolist())
try:
    inverse(np.zeros(2))
except ZeroDivisionError as error:
    print(error)
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages with the target, among those from which Python imports."""
    folder = tmp_path / "site"
    information = folder / "gradspec_checked-1.0.dist-info"
    information.mkdir(parents=True)
    (information / "METADATA").write_text("Name: gradspec-checked\nVersion: 1.0\n")
    points = (
        "[gradspec.targets]\nchecked = gradspec_checked\nnumpy = gradspec_checked\n"
    )
    (information / "entry_points.txt").write_text(points)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    (folder / "gradspec_checked.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", f"{folder}:{PAGE.parents[1]}")
    monkeypatch.setenv("GRADSPEC_CACHE_DIR", str(tmp_path / "cache"))
    return folder


def _run(place: Path, *arguments: str) -> str:
    child = subprocess.run(
        [sys.executable, *arguments],
        cwd=place,
        capture_output=True,
        check=False,
        text=True,
    )
    assert child.returncode == 0, child.stderr
    return child.stdout


def _text(place: Path, target: str) -> str:
    return (place / "out" / target / "f.py").read_text()


def test_a_package_brings_a_target(tmp_path: Path, site: Path) -> None:
    (tmp_path / "f.grad").write_text(RULE)
    command = ("-m", "gradspec", "compile", "f.grad", "--out", "out", "--target")
    _run(tmp_path, *command, "checked,numpy")
    assert "return divide(-dy * y, x)" in _text(tmp_path, "checked")
    assert "1.0 / x" in _text(
        tmp_path, "numpy"
    )  # a name of gradspec's own is not replaced
    assert _run(tmp_path, "-c", USE) == "[1.0, 0.5] [-1.0, -0.25]\na divisor is 0\n"
    target = site / "gradspec_checked.py"  # no older result is taken from the cache
    target.write_text(target.read_text().replace("divide", "quotient"))
    _run(tmp_path, *command, "checked")
    assert "return quotient(-dy * y, x)" in _text(tmp_path, "checked")


def test_a_primitive_that_it_does_not_spell_is_refused(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = site / "gradspec_checked.py"
    target.write_text(target.read_text() + '\ndel SPELLINGS["exp"]\n')
    monkeypatch.syspath_prepend(str(site))
    module = gradspec.load(RULE, target="checked")
    assert module.inverse(np.array([2.0])) == [0.5]
    with pytest.raises(gradspec.CompileError, match="f needs exp, which checked does"):
        gradspec.load("rule f(x) -> y:\n    y = exp(x)\n", target="checked")
