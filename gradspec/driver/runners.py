"""Runner processes, which evaluate emitted modules in their frameworks.

A runner starts in this file, as a script, and holds one end of a pipe to the command.
When that is closed, because the block has been left or the command is gone, it ends
with all the processes that it has started.
"""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


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
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    _run()
