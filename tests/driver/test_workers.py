"""Processes: none outlives the command, and a worker that is killed costs one file."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from gradspec.driver.cache import worker_loss
from gradspec.driver.workers import Lost, WorkFailed, each
from gradspec.measure.runners import running
from gradspec.symbolic.limit import expendable, in_time

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")

LATEST = 10.0
"""Seconds until all have gone (2 on a machine with nothing else to do)."""

KILLS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGKILL")
CODES = {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129, "SIGKILL": -9}

SLOW = """
rule f{n}(x, a, b) -> y:
    assume a > {n}, b > 0
    y = log(exp(a * x) + exp(b * x)) / sqrt(1 + (a * x)**2 + (b + {n})**2)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    _write(tmp_path, 8)
    return tmp_path


def _write(folder: Path, rules: int) -> None:
    for name in "abcd":
        text = "".join(SLOW.replace("{n}", str(n)) for n in range(rules))
        (folder / f"{name}.grad").write_text(text, "utf-8")


@contextmanager
def command(folder: Path, jobs: int) -> Iterator[subprocess.Popen[str]]:
    """A compilation of about half a minute in a session of its own."""
    child = subprocess.Popen(
        [sys.executable, "-c", MAIN, "compile", ".", "--target", "numpy", f"-j{jobs}"],
        cwd=folder,
        env={**os.environ, "GRADSPEC_CACHE_DIR": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield child
    finally:
        child.kill()


MAIN = """if __name__ == "__main__":
    import signal, sys
    for kind in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        default = signal.default_int_handler if kind == signal.SIGINT else signal.SIG_DFL
        signal.signal(kind, default)  # where the tests are a job in the background
    from gradspec.cli import main
    print("begun", flush=True)
    main()
"""


@pytest.mark.parametrize("kind", KILLS)
@pytest.mark.parametrize("to_all", [False, True], ids=["alone", "group"])
def test_no_process_outlives_the_command(folder: Path, kind: str, to_all: bool) -> None:
    """Each of them holds the pipes, so their end is the end of all."""
    with command(folder, 2) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "begun\n"
        time.sleep(random.uniform(0.5, 3.0))
        number = getattr(signal, kind)
        (os.killpg if to_all else os.kill)(child.pid, number)
        begun = time.monotonic()
        _, told = child.communicate(timeout=60)
    assert time.monotonic() - begun < LATEST
    assert child.returncode == CODES[kind]
    if kind == "SIGINT" or (kind != "SIGKILL" and not to_all):
        assert told.strip() == "interrupted; no file was left half-written"
    assert "Traceback" not in told
    assert list(folder.glob("generated/*")) == []


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="Linux's children")
def test_a_killed_worker_is_one_message(tmp_path: Path) -> None:
    _write(tmp_path, 1)
    with command(tmp_path, 2) as child:
        workers: list[int] = []
        while len(workers) < 2:
            workers = _workers(child.pid)
            time.sleep(0.1)
        time.sleep(random.uniform(0.0, 1.0))
        os.kill(workers[0], signal.SIGKILL)
        shown, told = child.communicate(timeout=250)
    assert child.returncode == 1
    assert told.count("error[") == 1
    assert "error[GS615]: the process that worked on" in told
    assert "was killed (SIGKILL)" in told
    assert "1 error, " in told
    assert "Traceback" not in told
    assert shown == "begun\n"


def _workers(parent: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
            line = (path.parent / "cmdline").read_bytes()
        except OSError:
            continue
        if int(fields[1]) == parent and b"spawn_main" in line:
            found.append(int(path.parent.name))
    return sorted(found)


# --- each of some tasks ------------------------------------------------------------------


def _work(task: str) -> str:
    match task:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "end":
            sys.exit(3)
        case "fail":
            raise ValueError(task)
        case "hang in C":
            from flint import fmpz

            expendable()
            hard = (2**127 - 1) * (2**107 - 1) * (2**89 - 1)
            in_time(0.2, lambda: fmpz(hard).factor())
        case "much memory":
            expendable()
            try:
                bytearray(2 << 30)
            except MemoryError:
                return "no memory"
    return task.upper()


def _each(*tasks: str, jobs: int = 2) -> dict[str, str | Lost]:
    with closing(each(_work, tasks, jobs)) as results:
        return {tasks[number]: found for number, found in results}


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_worker_that_ends_costs_its_task_alone(jobs: int) -> None:
    found = _each("a", "kill", "b", "end", "c", "hang in C", "much memory", jobs=jobs)
    ends = {task: end.code for task, end in found.items() if isinstance(end, Lost)}
    assert ends == {"kill": -9, "end": 3, "hang in C": -signal.SIGVTALRM}
    assert [found[task] for task in "abc"] == ["A", "B", "C"]
    assert found["much memory"] == "no memory"


def test_a_fault_of_ours_is_raised() -> None:
    with pytest.raises(WorkFailed, match="ValueError: fail"):
        _each("a", "fail")


# --- what becomes of the file ------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        (-signal.SIGVTALRM, "GS461"),
        (-signal.SIGABRT, "GS461"),
        (-signal.SIGKILL, "GS615"),
        (3, "GS615"),
    ],
)
def test_a_lost_file_is_told_in_words(code: int, expected: str) -> None:
    assert worker_loss("f.grad", Lost(code)).code == expected


# --- runners -----------------------------------------------------------------------------

RUNNER = """import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print("begun", sys.argv[1:], flush=True)
time.sleep(60)
"""
PARENT = """import sys, time
from pathlib import Path
from gradspec.measure.runners import running
with running(Path(sys.argv[1]), ("a",), 1, 2):
    time.sleep(60)
"""


def test_a_runner_of_a_killed_command_ends_with_what_it_has_started(
    tmp_path: Path,
) -> None:
    script = tmp_path / "runner.py"
    script.write_text(RUNNER, "utf-8")
    parent = [sys.executable, "-c", PARENT, str(script)]
    child = subprocess.Popen(parent, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "begun ['a']\n"
    child.kill()
    begun = time.monotonic()
    child.communicate(timeout=40)
    assert time.monotonic() - begun < LATEST


def test_a_runner_ends_with_the_block(tmp_path: Path) -> None:
    script = tmp_path / "runner.py"
    script.write_text(RUNNER, "utf-8")
    with running(script, ("a",), subprocess.PIPE, subprocess.DEVNULL) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "begun ['a']\n"
        begun = time.monotonic()
    assert child.returncode == -signal.SIGKILL
    assert time.monotonic() - begun < LATEST
