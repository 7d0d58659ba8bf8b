"""The jobs of `gradspec test`: the calls by which emitted functions are tried, and the
one call of each rule for the conformance suite. Their
arguments are drawn (`symbolic/points/arguments.py`) or sampled points.

The parent process evaluates a rule's own expressions by ball arithmetic; a child
process runs the emitted function in its framework and compares. A framework that drops
a rule differentiates the forward expression instead. Where the declared gradient is
another (a surrogate, an override), that shows as a number.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from gradspec.ir.elements import OutOfRange
from gradspec.ir.rule import (
    Example,
    Role,
    Rule,
    Value,
)
from gradspec.ir.walk import names
from gradspec.measure.calls import (
    WHOLE,
    Scalars,
    call,
    is_exact,
    is_smooth,
    signature,
    third,
)
from gradspec.symbolic.enclose import Program
from gradspec.symbolic.points.arguments import (
    Drawn,
    Place,
    Point,
    attempt,
    batch_shapes,
    broadcast,
    drawn_at,
    size_choices,
)
from gradspec.symbolic.points.simple import sample

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


def trial_case(rule: Rule, linear: bool = True) -> dict[str, Any]:
    """The job for one rule, as plain data for JSON; see `signature`."""
    calls = _over_axes(rule) if rule.has_axes else _at_points(rule)
    examples = [_example(rule, example) for example in rule.examples]
    return {**_signature(rule, linear), "calls": list(calls), "examples": examples}


def _signature(rule: Rule, linear: bool) -> dict[str, Any]:
    """With what features ask: the backward is ``exact`` if it is the derivative of the
    forward, and ``linear`` in the cotangents or not."""
    return {**signature(rule), "exact": is_exact(rule), "linear": linear}


# --- elementwise rules ---------------------------------------------------------------


def _at_points(rule: Rule) -> Iterator[dict[str, Any]]:
    """Sampled points; once more those at which everything is smooth. Points with equal
    statics are one call, if each input may be a vector.
    """
    scalars = Scalars.of(rule, {})
    is_batched = all(i.shape.batch for i in rule.tensor_inputs)
    sampled = (p for p in sample(scalars.unrolled, POINTS) if _is_moderate(rule, p))
    points = [p for p in sampled if scalars.solution_near(p) is not None]
    for members in _by_statics(rule, points):
        smooth = [p for p in members if is_smooth(scalars, p)][:SMOOTH]
        for chosen, checked in ((members, False), (smooth, True)):
            for run in [chosen] if is_batched else [[point] for point in chosen]:
                if run:
                    made = call(scalars, drawn_at(rule, run), checked)
                    largest = (max(map(abs, point.values())) for point in run)
                    scale = [max(1.0, float(number)) / 10 for number in largest]
                    yield made | {"checked": checked, "scale": scale}


def _is_moderate(rule: Rule, point: Point) -> bool:
    return all(
        point[i.name] == 0 or NARROWEST <= abs(point[i.name]) <= WIDEST
        for i in rule.tensor_inputs
        if i.kind.is_real
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
    everything is defined: a few draws, one of which may be away from kinks. For an empty
    batch they are those of one element, without it.
    """
    program = Program(scalars.roots)
    filled = {n: tuple(size or 1 for size in shape) for n, shape in batches.items()}
    for _ in range(SMOOTH_DRAWS):
        for _ in range(DRAWS):
            drawn = attempt(scalars.rule, scalars.sizes, filled, rng)
            if all(scalars.is_sound(program, p) for _, p in drawn.points):
                yield drawn if filled == batches else _without_elements(drawn, batches)
                break
        else:
            return


def _without_elements(drawn: Drawn, batches: Mapping[str, Place]) -> Drawn:
    """The arguments without the elements that an empty batch has not."""
    cells = {
        name: {} if 0 in batches.get(name.removeprefix("probe "), ()) else numbers
        for name, numbers in drawn.cells.items()
    }
    return Drawn(batches, cells, ())


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


# --- the conformance suite ---------------------------------------------------------

BATCH: Place = (2, 3)
"""The batch of an elementwise rule's call."""

PARTS: tuple[Place, ...] = ((2, 1), (3,))
"""The first two inputs of several: each is broadcast along an axis of the other."""


def conformance_case(rule: Rule, linear: bool) -> dict[str, Any] | None:
    """The job for one rule, whose gradient is ``linear`` in the cotangents or not; None
    where no arguments are to be found.
    """
    found = _call(rule, linear)
    if found is None:
        return None
    scalars, drawn, made = found
    bare = Scalars.of(lost(rule), scalars.sizes, linear and not rule.has_axes)
    upstream = [f"d{name}" for name in made["upstream"]]
    return {
        **_signature(rule, linear),
        "batched": list(_batched([*made["given"]], drawn)),
        "rows": [name.removeprefix("d") for name in _batched(upstream, drawn)],
        **_to_third(scalars, drawn, made),
        "bare": _to_third(bare, drawn, call(bare, drawn)),
    }


def lost(rule: Rule) -> Rule:
    """The rule without its declared backward pass."""
    gone = Role.COTANGENT, Role.SURROGATE
    return rule.keep(d for d in rule.definitions if d.role not in gone)


def _to_third(scalars: Scalars, drawn: Drawn, made: dict[str, Any]) -> dict[str, Any]:
    """The call with third derivatives, if it has second ones."""
    return made | {"third": third(scalars, drawn) if made["second"] else None}


def _batched(variables: list[str], drawn: Drawn) -> Iterator[str]:
    """Names of values with the first axis of the batch, which is no axis of their
    own."""
    ranks = {name: len(drawn.shapes[name]) for name in variables}
    longest = max(ranks.values(), default=0)
    return (name for name, rank in ranks.items() if longest and rank == longest)


def _call(rule: Rule, linear: bool) -> tuple[Scalars, Drawn, dict[str, Any]] | None:
    """A call with batch axes, smooth if a few draws find one."""
    rng = random.Random(rule.name)
    batches: Mapping[str, Place] = {}
    if rule.has_axes:
        batches = list(batch_shapes(rule, rng))[1]
    best = None
    for sizes in size_choices(rule, 0, rng):
        try:
            scalars = Scalars.of(rule, sizes, linear and not rule.has_axes)
            Scalars.of(lost(rule), sizes)
        except OutOfRange:
            continue
        if not rule.has_axes:
            batches = _shapes(scalars, linear)
        for drawn in draws(scalars, batches, rng):
            best = scalars, drawn, call(scalars, drawn)
            if best[2]["second"] is not None:
                return best
        if best is not None:
            return best
    return None


def _shapes(scalars: Scalars, linear: bool) -> dict[str, Place]:
    """Of an elementwise rule. All alike where a gradient is not linear: to broadcast is
    to add up. Each output has the joint shape of the inputs it depends on.
    """
    rule = scalars.rule
    batched = [i.name for i in rule.tensor_inputs if i.shape.batch]
    whole: Place = BATCH if batched else ()
    shapes: dict[str, Place] = {i.name: () for i in rule.inputs}
    shapes |= dict.fromkeys(batched, whole)
    if linear and len(batched) > 1:
        shapes |= dict(zip(batched, PARTS, strict=False))
    joint = {o.name: {*o.spans} for o in rule.outputs}
    for variable, terms in scalars.gradients.items():
        for output, term in terms:
            if output != WHOLE:
                joint[output] |= {variable, *names(term)}
    return shapes | {
        f"d{name}": _joint(inputs, shapes) if linear else whole
        for name, inputs in joint.items()
    }


def _joint(inputs: set[str], shapes: Mapping[str, Place]) -> Place:
    return broadcast(shape for name, shape in shapes.items() if name in inputs)
