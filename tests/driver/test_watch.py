"""The watcher and signals: a child that does not end when it is told to is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")

# Where the tests are a job in the background, SIGINT is ignored: so each begins anew.
CHILD = """
import os, signal, sys, time
from gradspec.driver import watch

signal.signal(signal.SIGINT, {start})

def work():
    if {deaf}:
        signal.signal(signal.SIGINT, lambda *_: None)
    try:
        print("begun", flush=True)
        time.sleep({seconds})
    except KeyboardInterrupt:
        return 7
    return 0

watch.PATIENCE = {patience}
try:
    sys.exit(watch.supervised(work))
except KeyboardInterrupt:
    sys.exit(9)
"""
LISTENING = {
    "start": "signal.default_int_handler",
    "deaf": False,
    "seconds": 60,
    "patience": 30,
}
DEAF = {**LISTENING, "deaf": True, "patience": 0.5}
IGNORING = {**LISTENING, "start": "signal.SIG_IGN", "seconds": 2, "patience": 0.5}


@pytest.mark.parametrize(
    ("kind", "code"),
    [(LISTENING, 7), (DEAF, 9), (IGNORING, 0)],
    ids=["listening", "deaf", "ignoring"],
)
def test_an_interrupt_ends_the_child(kind: dict[str, object], code: int) -> None:
    """Unless it was to be ignored from the beginning, as in a job in the background."""
    command = [sys.executable, "-c", CHILD.format(**kind)]
    watcher = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        assert watcher.stdout is not None
        assert watcher.stdout.readline() == b"begun\n"
        watcher.send_signal(signal.SIGINT)
        begun = time.monotonic()
        watcher.communicate(timeout=30)  # nor does a child of its own hold the pipe
    finally:
        watcher.kill()
    assert watcher.returncode == code
    assert time.monotonic() - begun < 30


def test_an_interrupt_before_there_is_a_child_is_passed_on() -> None:
    """It is kept from the first moment on, and the child is told when it is there."""
    text = CHILD.format(**LISTENING).replace(
        "watch.PATIENCE =",
        "fork = os.fork\n"
        "os.fork = lambda: (signal.raise_signal(signal.SIGINT), fork())[1]\n"
        "watch.PATIENCE =",
    )
    command = [sys.executable, "-c", text]
    done = subprocess.run(command, capture_output=True, timeout=30, check=False)
    # 130: the child was told before its work began. 9 would be: the watcher itself fell.
    assert done.returncode in (7, 130)
