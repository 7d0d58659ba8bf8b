"""Work that does not end is stopped, also when it swallows exceptions."""

from __future__ import annotations

import gc
import signal
import sys
import time

import pytest
from flint import ctx

from gradspec.symbolic.limit import can_interrupt, within

pytestmark = pytest.mark.skipif(not can_interrupt(), reason="no signals here")


def test_a_result_in_time() -> None:
    assert within(5.0, lambda: 42) == 42


def test_endless_work_is_stopped() -> None:
    def work() -> None:
        while True:
            try:
                time.sleep(10)
            except Exception:  # what is raised is not an Exception
                continue

    start = time.monotonic()
    assert within(0.1, work) is None
    assert time.monotonic() - start < 2.0


def test_the_precision_of_balls_is_put_back() -> None:
    """Where the alarm rings while work is on the way to put it back, it does not."""
    before = ctx.prec

    def work() -> None:
        ctx.prec = before + 100
        time.sleep(5)

    assert within(0.05, work) is None
    assert ctx.prec == before


def test_errors_pass_through_and_alarms_are_put_back() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(ZeroDivisionError):
        within(5.0, lambda: 1 // 0)
    assert signal.getsignal(signal.SIGALRM) is before


def test_a_timer_that_was_running_goes_on() -> None:
    rung: list[int] = []
    handler = signal.signal(signal.SIGALRM, lambda *_: rung.append(1))
    timer = signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        within(0.05, lambda: time.sleep(5))
        time.sleep(0.4)
    finally:
        signal.setitimer(signal.ITIMER_REAL, *timer)
        signal.signal(signal.SIGALRM, handler)
    assert rung == [1]


def test_an_alarm_inside_a_collection_of_garbage_rings_again(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Python swallows what a callback of the collector raises, and says so on stderr."""
    calls = 0

    def slow(phase: str, info: dict[str, int]) -> None:
        nonlocal calls
        calls += phase == "start"
        if calls == 1:
            end = time.process_time() + 0.3
            while time.process_time() < end:
                pass

    def work() -> None:
        gc.collect()
        time.sleep(10)

    gc.callbacks.append(slow)
    start = time.monotonic()
    try:
        assert within(0.1, work) is None
    finally:
        gc.callbacks.remove(slow)
    assert calls
    assert time.monotonic() - start < 9.0
    assert capfd.readouterr().err == ""


def test_an_alarm_inside_the_hook_for_what_is_swallowed_waits(
    capfd: pytest.CaptureFixture[str],
) -> None:
    swallowed = []

    def slow(found: object) -> None:
        swallowed.append(found)
        end = time.process_time() + 0.3
        while time.process_time() < end:
            pass

    class Failing:
        def __del__(self) -> None:
            raise ValueError

    def work() -> None:
        Failing()
        time.sleep(10)

    told = sys.unraisablehook
    sys.unraisablehook = slow
    start = time.monotonic()
    try:
        assert within(0.1, work) is None
    finally:
        sys.unraisablehook = told
    assert len(swallowed) == 1
    assert time.monotonic() - start < 9.0
    assert capfd.readouterr().err == ""
