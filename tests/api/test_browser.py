"""In a browser there are no processes, and some libraries come late or never."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

BLOCKED = """
import sys, time
for name in {missing}:
    sys.modules[name] = None
vars(time).pop("thread_time", None)
import gradspec
"""
NO_PROCESSES = ("multiprocessing", "_multiprocessing", "resource", "fcntl")
RULES = """
rule wave(x) -> y:
    y = sin(x)
    dx = dy * sin(x)

rule shares(x[..., n]) -> y[..., n]:
    y[i] = exp(x[i]) / sum(exp(x[j]) for j)
    dx[i] = y[i] * (dy[i] - sum(dy[j] * y[j] for j))

rule bell(x) -> y:
    y = exp(-x**2)
"""
CHECK = """
found = gradspec.check_text(RULES)
print(*(one.verdict.status.value for rule in found.rules for one in rule.gradients))
print(*(one.code for one in found.diagnostics))
"""
COMPILE = """
print("def bell(" in gradspec.compile_text(RULES[RULES.index("rule bell"):], "torch"))
"""


def _said(missing: tuple[str, ...], code: str, cache: Path) -> list[str]:
    """The lines that the code prints where modules cannot be imported."""
    text = f"{BLOCKED.format(missing=missing)}RULES = {RULES!r}\n{code}"
    done = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "GRADSPEC_CACHE_DIR": str(cache)},
        timeout=120,
    )
    return done.stdout.splitlines()


def test_rules_are_checked_without_processes_numpy_and_sympy(tmp_path: Path) -> None:
    missing = (*NO_PROCESSES, "numpy", "sympy", "scipy", "rich")
    assert _said(missing, CHECK, tmp_path) == ["refuted proved derived", "GS401"]


def test_rules_are_compiled_without_processes(tmp_path: Path) -> None:
    assert _said(NO_PROCESSES, COMPILE, tmp_path) == ["True"]
