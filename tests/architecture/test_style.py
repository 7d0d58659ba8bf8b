"""The gates of style and types: ruff and mypy, as configured in pyproject.toml."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "arguments",
    [["ruff", "check", "."], ["mypy", "--no-incremental"]],
    ids=lambda arguments: str(arguments[0]),
)
def test_gate(arguments: list[str]) -> None:
    child = subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 0, child.stdout + child.stderr
