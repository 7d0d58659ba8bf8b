"""Medians of interleaved rounds: what is compared is timed in turn, again and again, so
that a ratio is free of the machine's speed and of what else it does.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import gradspec

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
RULES = Path(__file__).parents[1] / "rules"
Thunk = Callable[[], object]


def emitted(file: str, target: str) -> ModuleType:
    """The module of a shipped file."""
    return gradspec.load(RULES / f"{file}.grad", target)


def medians(thunks: Mapping[str, Thunk], seconds: float = 2.0) -> dict[str, float]:
    """Median seconds of one call of each; the rounds take about ``seconds`` together.

    ``SPEED_CLOCK=cpu`` in the environment counts the time of the process alone, for a
    machine that does other things as well.
    """
    clock = CLOCKS[os.environ.get("SPEED_CLOCK", "wall")]
    once = 0.0
    for thunk in thunks.values():
        thunk()
        begun = time.perf_counter()
        thunk()
        once += time.perf_counter() - begun
    calls = max(1, int(seconds / 40 / once))
    rounds = max(5, min(40, int(seconds / (calls * once))))
    taken: dict[str, list[float]] = {name: [] for name in thunks}
    for _ in range(rounds):
        for name, thunk in thunks.items():
            begun = clock()
            for _ in range(calls):
                thunk()
            taken[name].append((clock() - begun) / calls)
    return {name: statistics.median(times) for name, times in taken.items()}


def ratio(ours: Thunk, other: Thunk, seconds: float = 2.0) -> float:
    """Median time of ours over that of the other."""
    found = medians({"ours": ours, "other": other}, seconds)
    return found["ours"] / found["other"]


@dataclass(frozen=True, slots=True)
class Section:
    """A table of ratios. The geometric mean of each column is to be at most ``mean``, a
    single ratio at most ``cell``.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, tuple[float, ...]], ...]
    mean: float
    cell: float


SECTIONS: list[Section] = []
"""What this process has measured, for the page."""

LONG = ("mish", "gelu", "silu", "focal_loss")
"""Rules whose gradients have long formulas, for accuracy: shown, but not in the means."""


def ratios(
    title: str,
    head: Sequence[str],
    rows: Sequence[tuple[str, Sequence[float]]],
    mean: float,
    cell: float = 1.3,
) -> None:
    """A table of ratios, printed and kept for the page."""
    kept = [(name, tuple(values)) for name, values in rows]
    short = [values for name, values in kept if name not in LONG]
    if short:
        columns = zip(*short, strict=True)
        kept.append((MEAN, tuple(map(statistics.geometric_mean, columns))))
    SECTIONS.append(Section(title, tuple(head), tuple(kept), mean, cell))
    table(
        title,
        ("rule", *head),
        [(name, *(f"{value:.3f}" for value in values)) for name, values in kept],
    )


MEAN = "geometric mean"


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A titled table in columns, the first to the left."""
    print(f"\n{title}")
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    for row in (head, *rows):
        cells = [row[0].ljust(widths[0])]
        cells += [c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)]
        print("  ".join(cells).rstrip(), flush=True)


def sized(count: int) -> str:
    """1e7 for 10000000."""
    return f"{count:.0e}".replace("e+0", "e") if count > 1 else "1"
