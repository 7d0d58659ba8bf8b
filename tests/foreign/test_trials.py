"""`gradspec test` calls foreign functions, and does not believe what is given."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

RULES = Path(__file__).parent / "bessel.grad"

WRONG = {
    'extern def f(x) = "scipy.special.j0" with derivative g(x)': (
        "given is 0.1483188 at x = 0.3, where the slope is -0.1483188"
    ),
    'extern def f(x) = "numpy.sin" with derivative 1': "GS617",
    'extern def f(x) = "numpy.nosuch" with derivative g(x)': "`numpy` has no `nosuch`",
    'extern def f(x) = "kernels.absent" with derivative g(x)': "No module named 'kernels'",
}


def _tested(folder: Path, text: str, targets: str = "numpy") -> tuple[int, str]:
    (folder / "a.grad").write_text(text, "utf-8")
    command = [sys.executable, "-m", "gradspec", "test", "a.grad", "--target", targets]
    child = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False
    )
    return child.returncode, child.stdout + child.stderr


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_given_is_refused(text: str, tmp_path: Path) -> None:
    pytest.importorskip("scipy")
    rest = '\nextern def g(x) = "scipy.special.j1"\n\nrule r(x) -> y:\n    y = f(x)\n'
    code, told = _tested(tmp_path, text + rest)
    assert code == 1
    assert WRONG[text] in told


@pytest.mark.timeout(600)
def test_rules_with_foreign_functions_pass_their_trials(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("scipy")
    code, told = _tested(tmp_path, RULES.read_text("utf-8"), "numpy,torch")
    assert code == 0, told


def test_a_module_beside_the_rules_is_found(tmp_path: Path) -> None:
    (tmp_path / "kernels.py").write_text("def cube(x):\n    return x * x * x\n")
    text = 'extern def cube(x) = "kernels.cube" with derivative 3 * x**2\n\n'
    text += "rule r(x) -> y:\n    y = cube(x) + 1\n    example x = 2: y = 9, dx = 12\n"
    code, told = _tested(tmp_path, text)
    assert code == 0, told
    code, told = _tested(tmp_path, text.replace("dx = 12", "dx = 13"))
    assert code == 1
