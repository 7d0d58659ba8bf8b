"""Runner processes, which evaluate emitted modules in their frameworks.

A runner is a script: it reads a job and writes its results, a line of JSON for each
piece of work. It starts in this file and holds one end of a pipe to the command. When
that is closed, because the block has been left or the command is gone, it ends with all
the processes that it has started.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


def run(
    runner: Path,
    job: object,
    place: Path,
    longest: float,
    heard: Callable[[Any], object],
) -> str:
    """Run a job to its end, with files beside ``place``; ``heard`` takes each result.
    The reason for which the runner ended early, if it did: it may not take longer than
    ``longest`` seconds for a result.
    """
    paths = [place.with_suffix(kind) for kind in (".job", ".result", ".log")]
    paths[0].write_text(json.dumps(job), "utf-8")
    paths[1].write_text("", "utf-8")
    with (
        paths[2].open("w") as log,
        paths[1].open(encoding="utf-8") as results,
        running(runner, paths[:2], log, log) as child,
    ):
        since, rest, is_over = time.monotonic(), "", False
        while not is_over:
            is_over = child.poll() is not None
            *lines, rest = (rest + results.read()).split("\n")
            for line in lines:
                heard(json.loads(line))
                since = time.monotonic()
            if time.monotonic() - since > longest:
                return "it took too long"
            time.sleep(0 if is_over else 0.05)
    if not child.returncode:
        return ""
    said = paths[2].read_text("utf-8", "replace").strip() or "no message"
    return f"the process ended with {child.returncode}: {said.splitlines()[-1][:160]}"


@contextmanager
def running(
    runner: Path,
    arguments: Sequence[object],
    stdout: IO[Any] | int,
    stderr: IO[Any] | int,
) -> Iterator[subprocess.Popen[str]]:
    """The process of a runner, which does not outlive the block."""
    command = [sys.executable, __file__, str(runner), *map(str, arguments)]
    theirs, ours = os.pipe()
    child = subprocess.Popen(
        command,
        stdin=theirs,
        stdout=stdout,
        stderr=stderr,
        text=True,
        start_new_session=True,  # so that what it starts is known by its group
    )
    os.close(theirs)
    _leaders.add(child.pid)
    try:
        yield child
    finally:
        _end_group(child.pid)
        child.wait()
        _leaders.discard(child.pid)
        os.close(ours)
        for stream in (child.stdout, child.stderr):
            if stream is not None:
                stream.close()


def end_all() -> None:
    """End the runners that other threads wait for."""
    for leader in tuple(_leaders):
        _end_group(leader)


_leaders: set[int] = set()


def _end_group(leader: int) -> None:
    try:
        if hasattr(os, "killpg"):
            os.killpg(leader, signal.SIGKILL)
        else:
            os.kill(leader, signal.SIGTERM)
    except (ProcessLookupError, PermissionError):
        return


# --- in the runner's process -------------------------------------------------------------


def _end_with_command() -> None:
    """Nothing is ever written to standard input: to read it is to wait for its end."""
    os.read(0, 1)
    _end_group(os.getpid())


def _run() -> None:
    threading.Thread(target=_end_with_command, daemon=True).start()
    del sys.argv[0]
    sys.path[0] = str(Path(sys.argv[0]).parent)
    sys.path.append(str(Path.cwd()))  # of foreign functions
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    _run()
