"""`--watch`: a command runs again when a rule file changes, and Ctrl-C ends it quietly."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

RULE = "rule f(x) -> y:\n    y = x * x\n"
MAIN = """if __name__ == "__main__":
    import signal
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from gradspec.cli import main
    main()"""


@pytest.mark.skipif(os.name == "nt", reason="SIGINT is another thing there")
def test_a_command_runs_again_when_a_file_changes(tmp_path: Path) -> None:
    (tmp_path / "a.grad").write_text(RULE, "utf-8")
    child = subprocess.Popen(
        [sys.executable, "-u", "-c", MAIN, "check", ".", "--watch"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert child.stdout is not None
    assert child.stdout.readline().split() == ["a.grad:1", "f", "dx", "derived"]
    wrong = f"{RULE}    dx = dy\n"
    (tmp_path / "b.grad").write_text(wrong, "utf-8")
    assert child.stdout.readline().split()[:2] == ["a.grad:1", "f"]
    assert child.stdout.readline().split() == ["b.grad:1", "f", "dx", "refuted"]
    child.send_signal(signal.SIGINT)
    _, told = child.communicate(timeout=60)
    assert child.returncode == 0 and "interrupted" not in told


def test_rules_of_a_file_are_divided_among_workers(tmp_path: Path) -> None:
    """The bytes are those of one process."""
    rules = [f"rule f{n}(x) -> y:\n    y = exp({n} * x) - 1\n" for n in range(1, 6)]
    (tmp_path / "a.grad").write_text("\n".join(rules), "utf-8")
    made = []
    for jobs, out in (("1", "one"), ("4", "four")):
        arguments = ["compile", "a.grad", "--target", "numpy", "-j", jobs, "--out", out]
        subprocess.run(
            [sys.executable, "-m", "gradspec", *arguments],
            cwd=tmp_path,
            env={**os.environ, "GRADSPEC_CACHE_DIR": str(tmp_path / f"cache{jobs}")},
            check=True,
            capture_output=True,
        )
        made.append((tmp_path / out / "numpy" / "a.py").read_bytes())
    assert made[0] == made[1]
