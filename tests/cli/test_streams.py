"""Standard output and standard error that are closed, full, or left by their reader."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gradspec.report.streams import tell
from gradspec.version import versions

RULE = "rule f(x) -> y:\n    y = x * x\n"
FILES = {"good": RULE, "wrong": RULE + "    dx = dy\n"}
CHECK, COMPILE = "check {}.grad", "compile {}.grad --target numpy --out out"

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the shell's way to say it")


@pytest.mark.parametrize(
    ("command", "streams", "code"),
    [
        *((c, s, 0) for c in (CHECK, COMPILE) for s in (">&-", ">&- 2>&- <&-", "2>&-")),
        *((c, "2>/dev/full", 0) for c in (CHECK, COMPILE, "explain")),
        *((c, "| true", 0) for c in (CHECK, "explain", "--help")),
        *((c, ">/dev/full", 2) for c in (CHECK, "explain", "--help")),
        (COMPILE.replace("{}", "good"), ">/dev/full", 2),
        (CHECK, ">/dev/full 2>/dev/full", 2),
        ("check {}.grad --format json", "| true", 0),
        ("compile missing.grad --target numpy", "2>&-", 1),
        ("compile {}.grad", "2>/dev/full", 2),
    ],
)
def test_a_command_ends_quietly_with_its_own_code(
    tmp_path: Path, command: str, streams: str, code: int
) -> None:
    for name, text in FILES.items():
        (tmp_path / f"{name}.grad").write_text(text)
    for name in FILES if "{}" in command else ("",):
        line = f"{sys.executable} -m gradspec {command.format(name)} {streams}"
        done = subprocess.run(
            ["bash", "-c", f"set -o pipefail; {line}"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == (code or int(name == "wrong")), line
        told = done.stderr
        assert "Traceback" not in told and "fault" not in told
        if streams == ">/dev/full":
            assert "cannot write to standard output: No space left" in told


def test_no_character_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "wrong.grad").write_text(FILES["wrong"])
    done = subprocess.run(
        [sys.executable, "-m", "gradspec", "check", "wrong.grad"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    assert b"override dx = \\u2026" in done.stderr


def test_the_file_of_a_fault_names_versions(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    tell(ZeroDivisionError("in a rule"))
    (file,) = tmp_path.glob("gradspec-*.txt")
    assert str(file) in capsys.readouterr().err
    head, _, trace = file.read_text("utf-8").partition("\nZeroDivisionError: ")
    assert head == versions() and trace == "in a rule\n"
