"""Emitted modules, runtime included, pass the linter and the type checker as they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import gradspec
from gradspec.targets import TARGETS

CASES = Path(__file__).parents[1] / "cases"
TYPED = {"numpy": "numpy", "jax": "jax"}


def _run(*arguments: str, cwd: Path) -> None:
    command = [sys.executable, "-m", *arguments]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def emitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rules, root = (tmp_path_factory.mktemp(name) for name in ("rules", "root"))
    for case in CASES.glob("*/input.grad"):
        (rules / f"{case.parent.name}.grad").write_text(case.read_text("utf-8"))
    gradspec.compile_paths(rules, "all", root / "emitted")
    return root


@pytest.mark.parametrize("target", TARGETS)
def test_ruff(emitted: Path, target: str) -> None:
    _run("ruff", "check", "--isolated", f"emitted/{target}", cwd=emitted)
    _run("ruff", "format", "--check", "--isolated", f"emitted/{target}", cwd=emitted)


@pytest.mark.parametrize("target", TYPED)
def test_mypy(emitted: Path, target: str) -> None:
    pytest.importorskip(TYPED[target])
    _run("mypy", "--strict", "-p", f"emitted.{target}", cwd=emitted)
