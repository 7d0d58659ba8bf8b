"""The jobs of `gradspec test`: the calls by which emitted functions are tried.

The parent process evaluates a rule's own expressions by ball arithmetic; a child
process runs the emitted function in its framework and compares.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from gradspec.ir.elements import OutOfRange
from gradspec.ir.rule import Example, Kind, Rule, Value
from gradspec.symbolic.enclose import Program
from gradspec.symbolic.sampling import sample
from gradspec.trial.calls import Scalars, call, is_smooth, signature
from gradspec.trial.drawing import Drawn, Point, attempt, given
from gradspec.trial.shapes import Place, batch_shapes, size_choices

POINTS = 48
"""Points of an elementwise rule: simple ones, thresholds and a spread of magnitudes."""

WIDEST = Fraction(64)
NARROWEST = Fraction(1, 1024)
"""Trials ask whether code computes the rule, not how far floating point carries it (the
audit's question), so they stay where any sensible evaluation keeps ten digits."""

SMOOTH = 5
"""Points for second derivatives and for the framework's own checks."""

DRAWS = 400
"""Attempts at arguments that the assumptions allow."""

SMOOTH_DRAWS = 6


def trial_case(rule: Rule) -> dict[str, Any]:
    """The job for one rule, as plain data for JSON."""
    calls = _at_points(rule) if rule.is_elementwise else _over_axes(rule)
    examples = [_example(rule, example) for example in rule.examples]
    return {**signature(rule), "calls": list(calls), "examples": examples}


# --- elementwise rules ---------------------------------------------------------------


def _at_points(rule: Rule) -> Iterator[dict[str, Any]]:
    """Sampled points; once more those at which everything is smooth. Points with equal
    statics are one call, if each input may be a vector.
    """
    scalars = Scalars.of(rule, {})
    is_batched = all(i.shape.batch for i in rule.tensor_inputs)
    points = [p for p in sample(rule, POINTS) if _is_moderate(rule, p)]
    for members in _by_statics(rule, points):
        smooth = [p for p in members if is_smooth(scalars, p)][:SMOOTH]
        for chosen, checked in ((members, False), (smooth, True)):
            for run in [chosen] if is_batched else [[point] for point in chosen]:
                if run:
                    made = call(scalars, given(rule, run), checked)
                    largest = (max(map(abs, point.values())) for point in run)
                    scale = [max(1.0, float(number)) / 10 for number in largest]
                    yield made | {"checked": checked, "scale": scale}


def _is_moderate(rule: Rule, point: Point) -> bool:
    return all(
        point[i.name] == 0 or NARROWEST <= abs(point[i.name]) <= WIDEST
        for i in rule.tensor_inputs
        if i.kind in (Kind.FLOAT, Kind.NOGRAD)
    )


def _by_statics(rule: Rule, points: Sequence[Point]) -> list[list[Point]]:
    grouped: dict[tuple[Fraction, ...], list[Point]] = {}
    for point in points:
        statics = tuple(point[i.name] for i in rule.static_inputs)
        grouped.setdefault(statics, []).append(point)
    return list(grouped.values())


# --- rules over named axes -----------------------------------------------------------


def _over_axes(rule: Rule) -> Iterator[dict[str, Any]]:
    """Every choice of sizes with every batch that goes with it."""
    rng = random.Random(rule.name)
    for number, batches in enumerate(batch_shapes(rule, rng)):
        for sizes in size_choices(rule, number, rng):
            try:
                scalars = Scalars.of(rule, sizes)
            except OutOfRange:
                continue
            made = None
            for drawn in draws(scalars, batches, rng):
                made = call(scalars, drawn)
                if made["second"] is not None:
                    break
            if made is not None:
                yield made | {"checked": True}
            break


def draws(
    scalars: Scalars, batches: Mapping[str, Place], rng: random.Random
) -> Iterator[Drawn]:
    """Arguments that the assumptions allow at every element of the batch, and at which
    everything is defined: a few draws, one of which may be away from kinks.
    """
    program = Program(scalars.roots)
    for _ in range(SMOOTH_DRAWS):
        for _ in range(DRAWS):
            drawn = attempt(scalars.rule, scalars.sizes, batches, rng)
            if all(scalars.is_sound(program, p) for _, p in drawn.points):
                yield drawn
                break
        else:
            return


# --- examples ------------------------------------------------------------------------


def _example(rule: Rule, example: Example) -> dict[str, Any]:
    """A worked example as data, its numbers as written."""
    line, _ = rule.source.position(example.span.start)
    return {
        "line": line,
        "given": {name: _plain(value) for name, value in example.given},
        "expected": {name: _plain(value) for name, value in example.expected},
    }


def _plain(value: Value) -> Any:
    """JSON data; texts stay texts, since their digits set the tolerance."""
    return value if isinstance(value, str) else [_plain(item) for item in value]
