"""The jobs of `gradspec test`: the calls by which emitted functions are tried, and the
one call of each rule for the conformance suite. Sizes, batch axes and arguments are
drawn at random or from points that a sampler found.

The parent process evaluates a rule's own expressions by ball arithmetic; a child
process runs the emitted function in its framework and compares. A framework that drops
a rule differentiates the forward expression instead. Where the declared gradient is
another (a surrogate, an override), that shows as a number.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from typing import Any

from gradspec.ir.elements import OutOfRange, element, extent, places
from gradspec.ir.rule import (
    Example,
    Input,
    Kind,
    Output,
    Role,
    Rule,
    Value,
)
from gradspec.ir.unroll import axis_names, count, index_inputs
from gradspec.ir.walk import names
from gradspec.measure.calls import (
    WHOLE,
    Cells,
    Drawn,
    Place,
    Point,
    Scalars,
    call,
    is_exact,
    is_smooth,
    place_in,
    signature,
    third,
)
from gradspec.symbolic.enclose import Program
from gradspec.symbolic.sampling import sample

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
    points = [p for p in sample(rule, POINTS) if _is_moderate(rule, p)]
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
    everything is defined: a few draws, one of which may be away from kinks. For an empty
    batch they are those of one element, without it.
    """
    program = Program(scalars.roots)
    filled = {n: tuple(size or 1 for size in shape) for n, shape in batches.items()}
    for _ in range(SMOOTH_DRAWS):
        for _ in range(DRAWS):
            drawn = attempt(scalars.rule, scalars.sizes, filled, rng)
            if all(scalars.is_sound(program, p) for _, p in drawn.points):
                yield drawn if filled == batches else _emptied(drawn, batches)
                break
        else:
            return


def _emptied(drawn: Drawn, batches: Mapping[str, Place]) -> Drawn:
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


# --- drawing --------------------------------------------------------------------------


SIZES = ((2, 3), (1, 2, 3), (1,), (1, 2))
"""From what the sizes of a call's axes are drawn, call by call."""

BATCHES: tuple[Place, ...] = ((), (2, 3), (2,), (0,))
"""The batches of the calls, the last one empty."""

LARGEST = 60
"""Elements of inputs and outputs of one element of a batch: scalars have their
price."""

TRIES = 60


def batch_shapes(rule: Rule, rng: random.Random) -> Iterator[Mapping[str, Place]]:
    """For each call the batch axes of every input, and of every output's cotangent."""
    batched = [i for i in rule.tensor_inputs if i.shape.batch]
    whole_outputs = all(output.shape.batch for output in rule.outputs)
    for batch in BATCHES:
        here = batch if batched and whole_outputs else ()
        shapes: dict[str, Place] = {i.name: () for i in rule.inputs}
        keeper = rng.choice(batched) if batched else None
        for variable in batched:
            shapes[variable.name] = _part(here, variable, keeper, rng)
        yield shapes | {output.cotangent: here for output in rule.outputs}


def _part(
    batch: Place, variable: Input, keeper: Input | None, rng: random.Random
) -> Place:
    """The whole batch for one input; of the others some lack axes or have size 1."""
    if variable is keeper or rng.random() < 0.3:
        return batch
    fewer = batch[rng.randrange(len(batch) + 1) :]
    return tuple(1 if rng.random() < 0.4 else size for size in fewer)


def size_choices(
    rule: Rule, number: int, rng: random.Random
) -> Iterator[dict[str, int]]:
    """Sizes to try in this order, until one makes sense for the rule."""
    names = axis_names(rule)
    choices = SIZES[number % len(SIZES)]
    for attempt in range(TRIES):
        pool = choices if attempt < TRIES // 2 else (1, 2, 3, 4)
        sizes = {name: rng.choice(pool) for name in names}
        if count(rule, sizes) <= LARGEST:
            yield sizes


def broadcast(shapes: Iterable[Place]) -> Place:
    """The joint shape of arrays that broadcast."""
    listed = list(shapes)
    rank = max(map(len, listed), default=0)
    aligned = [(1,) * (rank - len(shape)) + shape for shape in listed]
    return tuple(
        0 if 0 in sizes else max(sizes) for sizes in zip(*aligned, strict=True)
    )


# --- arguments ----------------------------------------------------------------------


def attempt(
    rule: Rule,
    sizes: Mapping[str, int],
    batches: Mapping[str, Place],
    rng: random.Random,
) -> Drawn:
    """One draw, which the rule's assumptions may or may not allow."""
    common = rng.choice(STYLES)
    pointed = index_inputs(rule)
    cells: dict[str, Cells] = {}
    for variable in rule.inputs:
        if variable.name in sizes:
            continue
        style = common if rng.random() < 0.5 else rng.choice(STYLES)
        spots = _spots(variable, sizes, batches[variable.name])
        top = extent(pointed[variable.name], sizes) if variable.name in pointed else 3
        cells[variable.name] = _numbers(variable, spots, style, top, rng)
        if variable.takes_gradient:
            probes = _distinct(rng, len(spots), -64, 64, 32)
            cells[f"probe {variable.name}"] = dict(zip(spots, probes, strict=True))
    for output in rule.outputs:
        if output.takes_gradient:
            spots = _spots(output, sizes, batches[output.cotangent])
            numbers = _distinct(rng, len(spots), -96, 96, 32)
            cells[output.cotangent] = dict(zip(spots, numbers, strict=True))
    return Drawn(batches, cells, tuple(_points(rule, sizes, batches, cells)))


def drawn_at(rule: Rule, points: Sequence[Mapping[str, Fraction]]) -> Drawn:
    """A call of an elementwise rule at points with equal statics: a vector of them, or
    one of them where an input has no batch axes.
    """
    rng = random.Random(rule.name)
    is_batched = all(i.shape.batch for i in rule.tensor_inputs)
    batch: Place = (len(points),) if is_batched else ()
    shapes = {i.name: () if i.kind.is_static else batch for i in rule.inputs}
    shapes |= {output.cotangent: batch for output in rule.outputs}
    cells: dict[str, Cells] = {}
    for name in points[0]:
        spots = list(product(*map(range, shapes[name])))
        cells[name] = {s: points[s[0] if s else 0][name] for s in spots}
    for variable in rule.inputs:
        if variable.takes_gradient:
            spots = [*cells[variable.name]]
            probes = _distinct(rng, len(spots), -64, 64, 32)
            cells[f"probe {variable.name}"] = dict(zip(spots, probes, strict=True))
    return Drawn(shapes, cells, tuple(_points(rule, {}, shapes, cells)))


def _spots(
    variable: Input | Output, sizes: Mapping[str, int], batch: Place
) -> list[Place]:
    core = list(places(variable.shape.axes, sizes))
    return [(*place, *index) for place in product(*map(range, batch)) for index in core]


STYLES = ((-1536, 1536, 1024), (64, 1536, 1024), (32, 960, 1024), (16, 1024, 8192))
"""Numbers of both signs, positive ones, ones below 1, and small shares of a whole."""


def _numbers(
    variable: Input,
    spots: list[Place],
    style: tuple[int, int, int],
    top: int,
    rng: random.Random,
) -> Cells:
    """Distinct numbers of the style (no ties), or what the kind asks for. Half of the
    masks keep the first of each row: of nothing there may be no largest, and the others
    keep nothing of some rows if the rule says what it is then.
    """
    if variable.kind.is_static and variable.default is not None:
        return {(): variable.default}
    match variable.kind:
        case Kind.INT:
            return {spot: Fraction(rng.randrange(top)) for spot in spots}
        case Kind.BOOL:
            least = rng.choice(((0,), (-1,)))
            return {s: Fraction(rng.random() < 0.6 or s[-1:] == least) for s in spots}
        case Kind.STATIC_INT:
            return {(): Fraction(rng.randrange(1, 4))}
        case _:
            numbers = _distinct(rng, len(spots), *style)
            return dict(zip(spots, numbers, strict=True))


def _distinct(
    rng: random.Random, count: int, low: int, high: int, unit: int
) -> list[Fraction]:
    wide = max(1, 2 * count // (high - low))
    return [
        Fraction(k, unit) for k in rng.sample(range(low * wide, high * wide), count)
    ]


def _points(
    rule: Rule,
    sizes: Mapping[str, int],
    shapes: Mapping[str, Place],
    cells: Mapping[str, Cells],
) -> Iterator[tuple[Place, Point]]:
    """The scalars that one element of the whole batch sees."""
    variables: tuple[Input | Output, ...] = (*rule.inputs, *rule.outputs)
    axes = {v.name: v.shape.axes for v in variables}
    axes |= {o.cotangent: o.shape.axes for o in rule.outputs}
    for place in product(*map(range, broadcast(shapes.values()))):
        point = {}
        for name, array in cells.items():
            bare = name.removeprefix("probe ")
            prefix = "probe " if bare != name else ""
            here = place_in(place, shapes[bare])
            for index in places(axes[bare], sizes):
                point[prefix + element(bare, index)] = array[(*here, *index)]
        yield place, point
