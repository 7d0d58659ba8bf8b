"""An emitted module that is spoiled behind the compiler's back must fail its trial."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def assert_noticed(folder: Path, rule: str, old: str, new: str) -> None:
    """`gradspec test` reports the rule ``f`` when ``old`` is ``new`` in its module."""
    (folder / "a.grad").write_text(rule, "utf-8")
    program = (
        "import sys, dataclasses\n"
        "from gradspec.measure import trials\n"
        "from gradspec import cli\n"
        "run = trials.run\n"
        "def spoiled(results, *more):\n"
        "    results = [dataclasses.replace(r, modules=tuple(\n"
        f"        dataclasses.replace(m, text=m.text.replace({old!r}, {new!r}))\n"
        "        for m in r.modules)) for r in results]\n"
        f"    assert any({new!r} in m.text for r in results for m in r.modules)\n"
        "    return run(results, *more)\n"
        "trials.run = spoiled\n"
        "sys.argv = ['gradspec', 'test', 'a.grad', '--target', 'numpy']\n"
        "cli.main()\n"
    )
    child = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == 1, child.stderr
    assert "error[GS612]: f on numpy" in child.stderr
