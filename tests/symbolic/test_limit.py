"""Work that does not end is stopped, also when it swallows exceptions."""

from __future__ import annotations

import gc
import signal
import sys
import time

import pytest
from flint import ctx

from gradspec.symbolic.limit import can_interrupt, hold_alarm, in_time

pytestmark = pytest.mark.skipif(not can_interrupt(), reason="no signals here")


def busy(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_a_result_in_time() -> None:
    assert in_time(5.0, lambda: 42) == 42


def test_endless_work_is_stopped() -> None:
    def work() -> None:
        while True:
            try:
                busy(10)
            except Exception:  # what is raised is not an Exception
                continue

    assert in_time(0.1, work) is None


def test_what_must_not_be_cut_short_is_not() -> None:
    done: list[int] = []

    def work() -> None:
        with hold_alarm():
            busy(0.3)
            done.append(1)
        busy(10)

    assert in_time(0.1, work) is None
    assert done == [1]


def test_the_precision_of_balls_is_put_back() -> None:
    """Where the alarm rings while work is on the way to put it back, it does not."""
    before = ctx.prec

    def work() -> None:
        ctx.prec = before + 100
        busy(5)

    assert in_time(0.05, work) is None
    assert ctx.prec == before


def test_errors_pass_through_and_alarms_are_put_back() -> None:
    before = signal.getsignal(signal.SIGPROF)
    with pytest.raises(ZeroDivisionError):
        in_time(5.0, lambda: 1 // 0)
    assert signal.getsignal(signal.SIGPROF) is before


def test_limits_nest() -> None:
    inner: list[object] = []

    def work() -> None:
        inner.append(in_time(0.05, lambda: busy(5)))
        inner.append(in_time(5.0, lambda: busy(0.1) or 42))
        busy(10)

    assert in_time(0.5, work) is None
    assert inner == [None, 42]
    assert signal.getitimer(signal.ITIMER_PROF)[0] == 0


def test_an_alarm_inside_a_collection_of_garbage_rings_again(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """Python swallows what a callback of the collector raises, and says so on stderr."""
    calls = 0

    def slow(phase: str, info: dict[str, int]) -> None:
        nonlocal calls
        calls += phase == "start"
        if calls == 1:
            busy(0.3)

    def work() -> None:
        gc.collect()
        busy(10)

    gc.callbacks.append(slow)
    try:
        assert in_time(0.1, work) is None
    finally:
        gc.callbacks.remove(slow)
    assert calls
    assert capfd.readouterr().err == ""


def test_an_alarm_inside_the_hook_for_what_is_swallowed_waits(
    capfd: pytest.CaptureFixture[str],
) -> None:
    swallowed = []

    def slow(found: object) -> None:
        swallowed.append(found)
        busy(0.3)

    class Failing:
        def __del__(self) -> None:
            raise ValueError

    def work() -> None:
        Failing()
        busy(10)

    told = sys.unraisablehook
    sys.unraisablehook = slow
    try:
        assert in_time(0.1, work) is None
    finally:
        sys.unraisablehook = told
    assert len(swallowed) == 1
    assert capfd.readouterr().err == ""
