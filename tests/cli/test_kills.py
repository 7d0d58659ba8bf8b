"""Commands killed at random moments: no process stays, no file is half-written.

``KILLS=50 pytest tests/cli/test_kills.py`` kills as many.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

RULES = Path(__file__).parents[2] / "rules"
COMMANDS = ("compile", "test", "audit")
CODES = {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129, "SIGKILL": -9, "worker": 1}
MAIN = """if __name__ == "__main__":
    import signal as s
    any(s.signal(k, s.SIG_DFL) for k in (1, 15)) or s.signal(2, s.default_int_handler)
    __import__("gradspec.cli").cli.main()"""


def processes(mark: str) -> list[int]:
    """All that have inherited the environment of the command."""
    script = f"grep -sl {mark} /proc/[0-9]*/environ"
    found = subprocess.run(script, shell=True, stdout=-1, text=True, check=False).stdout
    return [int(line.split("/")[2]) for line in found.split()]


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="Linux's processes")
@pytest.mark.parametrize("number", range(int(os.environ.get("KILLS", "3"))))
def test_a_killed_command_leaves_nothing(tmp_path: Path, number: int) -> None:
    command, kind = COMMANDS[number % 3], [*CODES][number % 5]
    mark = f"KILLED_{tmp_path.name}"
    arguments = [command, str(RULES / "tutorial"), "--target", "numpy", "-j", "2"]
    arguments += ["--out", "out"] if command == "compile" else []
    child = subprocess.Popen(
        [sys.executable, "-c", MAIN, *arguments],
        env={**os.environ, mark: "1", "GRADSPEC_CACHE_DIR": ""},
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(random.uniform(1, 12))
    others = [p for p in processes(mark) if p != child.pid] or [child.pid]
    victim = random.choice(others) if kind == "worker" else child.pid
    if child.poll() is None and Path(f"/proc/{victim}").exists():
        os.kill(victim, getattr(signal, kind, signal.SIGKILL))
    begun = time.monotonic()
    told = child.communicate(timeout=300)[1]
    begun = time.monotonic() if kind == "worker" else begun
    while processes(mark) and time.monotonic() - begun < 10:
        time.sleep(0.05)
    print(f"{command} {kind}: {time.monotonic() - begun:.2f} s")
    assert not processes(mark), "processes stay"
    assert "Traceback" not in told, told
    assert child.returncode in (CODES[kind], 0, -9), told
    for path in (p for p in tmp_path.glob("out/**/*") if p.is_file()):
        assert not path.name.startswith("."), path
        assert path.suffix != ".py" or compile(path.read_text(), path, "exec")
