"""Comparisons and failures of a trial, and the worked examples of rules."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

SINGLE = 2e-4
"""Float32, on examples: enough to see an overflow or a lost term."""


class Trial:
    """Collects what failed; one object a rule."""

    def __init__(self, rule: str) -> None:
        self.rule = rule
        self.checks = 0
        self.failures: list[dict[str, str]] = []
        self.values: list[list[float | None]] = []

    def expect(
        self, what: str, where: str, got: float, expected: float, slack: float
    ) -> None:
        """``got`` within ``slack`` of ``expected``; NaN and ±inf agree with
        themselves."""
        self.checks += 1
        if not _close(got, expected, slack):
            self.fail(what, where, f"got {got!r}, expected {expected!r}")

    def result(self) -> dict[str, Any]:
        """For the parent process."""
        return {
            "rule": self.rule,
            "checks": self.checks,
            "failures": self.failures,
            "values": self.values,
        }

    def fail(self, what: str, where: str, message: str) -> None:
        self.failures.append({"what": what, "where": where, "message": message})

    def attempt(self, what: str, where: str, action: Callable[[], None]) -> None:
        """Run a step; an exception is a failure of that step and no more."""
        self.checks += 1
        try:
            action()
        except Exception as fault:
            last = traceback.format_exception_only(fault)[-1].strip()
            self.fail(what, where, last.splitlines()[0] if last else repr(fault))


def _close(got: float, expected: float, slack: float) -> bool:
    if math.isnan(expected) or math.isinf(expected):
        return repr(float(got)) == repr(float(expected))
    return abs(got - expected) <= slack


def digits(text: str) -> float:
    """Half a unit of the last decimal written. A number without decimals is meant
    exactly, as in ``y = 4``, up to one part in a million.
    """
    mantissa, _, exponent = text.lower().lstrip("+-").partition("e")
    decimals = len(mantissa.partition(".")[2])
    if not decimals:
        return 1e-6 * max(1.0, abs(float(text)))
    unit = 10.0 ** (int(exponent or 0) - decimals)
    return 0.5 * unit * (1.0 + 1e-9) + 4e-16 * abs(float(text))


def numbers(value: Any) -> Any:
    """Texts of an example as Python numbers, nested lists kept."""
    words = {"true": True, "false": False}
    if isinstance(value, list):
        return [numbers(item) for item in value]
    return words[value.lower()] if value.lower() in words else float(value)


def flat(value: Any) -> Iterator[str]:
    """The texts of an expected value, in order."""
    if isinstance(value, list):
        for item in value:
            yield from flat(item)
    else:
        yield value


def compare_example(
    trial: Trial,
    example: dict[str, Any],
    got: dict[str, Sequence[float]],
    dtype: str,
) -> None:
    """Every expected binding against the flattened values of a run in ``dtype``."""
    for name, value in example["expected"].items():
        texts = list(flat(value))
        found = list(got[name])
        where = f"example at line {example['line']} ({dtype})"
        if len(found) != len(texts):
            trial.fail(name, where, f"got {len(found)} values, expected {len(texts)}")
            continue
        for text, number in zip(texts, found, strict=True):
            expected = float(numbers(text))
            room = 0.0 if not math.isfinite(expected) else digits(text)
            if dtype == "float32" and math.isfinite(expected):
                room = max(room, SINGLE * max(abs(expected), 1e-6))
            trial.expect(name, where, float(number), expected, room)
