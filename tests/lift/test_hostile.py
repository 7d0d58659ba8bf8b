"""Folders that mean harm: nothing is run, nothing hangs, and each file is one line."""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from gradspec.cli import cli
from gradspec.lift import lifting, verdicts
from gradspec.lift.lifting import lift

GATE = """
import torch

class Gate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return {forward}

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return {backward}
"""

UNREADABLE = {
    "syntax.py": b"class Gate(torch.autograd.Function:\n",
    "python2.py": b"# autograd\nprint 'hello'\nexec 'x'\n",
    "nul.py": b"autograd = 1\0\n",
    "latin.py": b"# autograd \xff\nx = '\xe9'\n",
    "brackets.py": b"autograd = " + b"(" * 5000 + b")" * 5000,
    "minus.py": b"autograd = " + b"-" * 50_000 + b"1",
    "notebook.py": b'{"cells": [{"source": ["import torch.autograd"]}],\n "n": null}}',
    "digits.py": b"autograd = " + b"9" * 20_000,
}
"""Files that contain a marker, and are no Python that is read."""

COSTLY = {
    "tower": ("x * 9**9**9", "g * 9**9**9"),
    "shift": ("x * (1 << 10**9)", "g"),
    "text": ("x * len('a' * 10**10)", "g"),
    "tuple": ("sum((x,) * 10**9)", "g"),
    "range": ("sum(x for k in range(10**9))", "g"),
    "list": ("sum([x] * 10**8)", "g"),
    "deep": ("x" + " + x" * 3000, "g * 3001"),
    "factorial": ("x * 10**5000", "g * 10**5000"),
}
"""Constants and loops that must not be computed."""


def test_unreadable_files_are_lines(tmp_path: Path) -> None:
    for name, text in UNREADABLE.items():
        (tmp_path / name).write_bytes(text)
    (tmp_path / "large.py").write_bytes(b"# autograd\n" * 1_000_000)
    (tmp_path / "good.py").write_text(
        GATE.format(forward="x * x", backward="2 * x * g")
    )
    report = lift([f"{tmp_path}"])
    assert [f.verdict for f in report.findings] == ["proved"]
    told = {Path(name).name for name, _ in report.unread}
    assert "large.py" in told
    assert told >= UNREADABLE.keys() - {"minus.py"}


@pytest.mark.parametrize("name", COSTLY)
def test_nothing_costly_is_computed(name: str, tmp_path: Path) -> None:
    forward, backward = COSTLY[name]
    (tmp_path / "a.py").write_text(GATE.format(forward=forward, backward=backward))
    begun = time.process_time()
    (found,) = lift([f"{tmp_path}"]).findings
    assert found.verdict in ("not lifted", "proved", "agrees"), found
    assert time.process_time() - begun < 8


def test_effort_is_counted_in_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = GATE.format(forward="x * x", backward="3 * x * g")
    (tmp_path / "a.py").write_text(text)
    for module in (lifting, verdicts):
        with monkeypatch.context() as patch:
            patch.setattr(module, "STEPS", 5)
            (found,) = lift([f"{tmp_path}"]).findings
        assert (found.verdict, found.kind) == ("not lifted", "effort")
        assert re.search(r"takes more than [\d,]+ steps", found.reason)


CIRCLES = {
    "package": {"__init__.py": "from . import ops\nfrom .ops import double\n"},
    "itself": {"ops.py": "from ops import double\n"},
    "two": {
        "ops.py": "from .other import double\n",
        "other.py": "from .ops import *\n",
    },
    "names": {"ops.py": "double = single\nsingle = double\n"},
}
"""Files that import each other, or themselves."""


@pytest.mark.parametrize("name", CIRCLES)
def test_circles_of_imports_end_at_once(name: str, tmp_path: Path) -> None:
    folder = tmp_path / name
    folder.mkdir()
    for file, text in CIRCLES[name].items():
        (folder / file).write_text(text)
    home = "." if name == "package" else ".ops"
    text = GATE.format(forward="double(x)", backward="2 * g")
    (folder / "a.py").write_text(f"from {home} import double\n{text}")
    (found,) = lift([f"{tmp_path}"]).findings
    assert found.verdict == "not lifted"
    assert found.kind != "effort", found.reason


def test_nothing_is_run(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    (tmp_path / "__init__.py").write_text(f"open({str(canary)!r}, 'w')\n")
    (tmp_path / "conftest.py").write_text(f"open({str(canary)!r}, 'w')\n")
    text = f"import os\nos.system('touch {canary}')\nopen({str(canary)!r}, 'w')\n"
    text += f'K = eval(\'__import__("os").system("touch {canary}")\')\n'
    text += GATE.format(forward="x * K", backward="g * K")
    (tmp_path / "a.py").write_text(text)
    before = {*sys.modules}
    (found,) = lift([f"{tmp_path}"]).findings
    assert found.verdict == "not lifted"
    assert not canary.exists()
    assert not {"torch", "tensorflow", "jax"} & ({*sys.modules} - before)


def test_links_and_pipes_are_not_followed(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir(), outside.mkdir()
    text = GATE.format(forward="x * x", backward="2 * x * g")
    (outside / "secret.py").write_text(text)
    (inside / "loop").symlink_to(inside, target_is_directory=True)
    (inside / "away").symlink_to(outside, target_is_directory=True)
    (inside / "secret.py").symlink_to(outside / "secret.py")
    os.mkfifo(inside / "pipe.py")
    (inside / "a.py").write_text("from ..outside.secret import Gate\n" + text)
    report = lift([f"{inside}"])
    assert [Path(f.file).name for f in report.findings] == ["a.py"]
    assert [Path(name).name for name, _ in report.unread] == ["pipe.py"]


def test_files_are_written_to_the_folder_for_output_alone(tmp_path: Path) -> None:
    source, out = tmp_path / "source", tmp_path / "out"
    source.mkdir()
    text = GATE.format(forward="x * x", backward="3 * x * g")
    (source / "a.py").write_text(text)
    runner = CliRunner()
    plain = runner.invoke(cli, ["lift", f"{source}", "--repro"])
    assert plain.exit_code == 1 and "gradcheck(Gate.apply" in plain.output
    point = re.search(r" at x = ([-.\d]+),", plain.output)
    assert point and f"torch.tensor({point[1]}, dtype" in plain.output
    assert [p.name for p in tmp_path.rglob("*") if p.is_file()] == ["a.py"]
    runner.invoke(cli, ["lift", f"{source}", "--repro", "--out", f"{out}"])
    names = sorted(p.name for p in out.rglob("*") if p.is_file())
    assert names == ["a.grad", "repro_a_Gate.py"]
    assert [p.name for p in source.rglob("*") if p.is_file()] == ["a.py"]
