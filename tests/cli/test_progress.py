"""Progress: a bar on a terminal from the start, a line per file with `--verbose`."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

RULE = "rule f(x) -> y:\n    y = x * x\n"


def _files(folder: Path) -> list[str]:
    for name in ("a", "b"):
        (folder / f"{name}.grad").write_text(RULE, "utf-8")
    command = [sys.executable, "-m", "gradspec", "compile", ".", "--target", "numpy"]
    return [*command, "--out", "out"]


def _environment() -> dict[str, str]:
    return {**os.environ, "GRADSPEC_CACHE_DIR": "", "TERM": "xterm"}


def test_verbose_prints_a_line_per_file(tmp_path: Path) -> None:
    command = [*_files(tmp_path), "--verbose"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    lines = done.stderr.splitlines()
    assert [line.split()[0] for line in lines] == ["a.grad", "b.grad"]


def test_on_a_terminal_there_is_a_bar_and_in_a_pipe_there_is_none(
    tmp_path: Path,
) -> None:
    command, (terminal, end) = _files(tmp_path), pty.openpty()
    subprocess.run(
        command, cwd=tmp_path, env=_environment(), stderr=end, check=True, stdout=end
    )
    os.close(end)
    assert b"compiling" in os.read(terminal, 4096)
    os.close(terminal)
    piped = subprocess.run(
        command, cwd=tmp_path, env=_environment(), capture_output=True, check=True
    )
    assert piped.stderr == b""
