"""The watcher and signals: a child that does not end when it is told to is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked")

CHILD = """
import signal, sys, time
from gradspec.driver import watch

def work():
    if {deaf}:
        signal.signal(signal.SIGINT, lambda *_: None)
    try:
        print("begun", flush=True)
        time.sleep(60)
    except KeyboardInterrupt:
        return 7
    time.sleep(60)
    return 0

watch.PATIENCE = 0.5 if {deaf} else 30.0
try:
    sys.exit(watch.supervised(work))
except KeyboardInterrupt:
    sys.exit(9)
"""


@pytest.mark.parametrize(("deaf", "code"), [(False, 7), (True, 9)])
def test_an_interrupt_ends_the_child(deaf: bool, code: int) -> None:
    text = CHILD.format(deaf=deaf)
    watcher = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE)
    assert watcher.stdout is not None
    assert watcher.stdout.readline() == b"begun\n"
    watcher.send_signal(signal.SIGINT)
    begun = time.monotonic()
    watcher.communicate(timeout=30)  # nor does a child of its own hold the pipe
    assert watcher.returncode == code
    assert time.monotonic() - begun < 30


def test_an_interrupt_before_there_is_a_child_is_passed_on() -> None:
    """It is kept from the first moment on, and the child is told when it is there."""
    text = CHILD.format(deaf=False).replace(
        "watch.PATIENCE =",
        "import os; fork = os.fork\n"
        "os.fork = lambda: (signal.raise_signal(signal.SIGINT), fork())[1]\n"
        "watch.PATIENCE =",
    )
    command = [sys.executable, "-c", text]
    done = subprocess.run(command, capture_output=True, timeout=30, check=False)
    # 130: the child was told before its work began. 9 would be: the watcher itself fell.
    assert done.returncode in (7, 130)
