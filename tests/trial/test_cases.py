"""What a trial asks of an emitted function, and that it can fail."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from gradspec.ir.expr import Ref, apply, const
from gradspec.primitives.formula import formula
from gradspec.symbolic.compare import slope

RULE = "rule f(x) -> y:\n    y = x * sin(x)\n    example x = 2: y = 1.8185949\n"


def test_slopes_are_those_of_calculus() -> None:
    point = {"x": Fraction(1, 2)}
    assert slope(formula("sin(x)"), point, "x") == pytest.approx(0.8775825618903728)
    assert slope(apply("mul", Ref("x"), Ref("x")), point, "x") == pytest.approx(1.0)
    assert slope(const(3), point, "x") == 0.0


@pytest.mark.parametrize(
    "text", ["abs(x - 0.5)", "sign(x - 0.5)", "log(x - 0.5)", "abs(x - 0.500001)"]
)
def test_there_is_no_slope_at_or_beside_a_kink(text: str) -> None:
    assert slope(formula(text), {"x": Fraction(1, 2)}, "x") is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("np.sin(x)", "np.sin(1.0000001 * x)"),
        ("np.cos(x)", "np.cos(-1.0000001 * x)"),
    ],
)
def test_a_wrong_module_fails_its_trial(tmp_path: Path, old: str, new: str) -> None:
    """The emitted text is spoiled behind the compiler's back."""
    (tmp_path / "a.grad").write_text(RULE)
    program = (
        "import sys, dataclasses\n"
        "from gradspec.driver import trials\n"
        "from gradspec import cli\n"
        "job = trials._job\n"
        "def spoiled(folder, target, results, cases):\n"
        "    results = [dataclasses.replace(r, modules=tuple(\n"
        f"        dataclasses.replace(m, text=m.text.replace({old!r}, {new!r}))\n"
        "        for m in r.modules)) for r in results]\n"
        f"    assert any({new!r} in m.text for r in results for m in r.modules)\n"
        "    return job(folder, target, results, cases)\n"
        "trials._job = spoiled\n"
        "sys.argv = ['gradspec', 'test', 'a.grad', '--target', 'numpy']\n"
        "cli.main()\n"
    )
    child = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 1, child.stderr
    assert "error[GS612]: f on numpy" in child.stderr
