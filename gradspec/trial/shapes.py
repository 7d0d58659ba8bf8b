"""The sizes and the batch axes at which a rule is tried."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping

from gradspec.ir.rule import Input, Rule
from gradspec.ir.unroll import axis_names, count

Place = tuple[int, ...]

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
        yield shapes | {f"d{output.name}": here for output in rule.outputs}


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


def place_in(place: Place, shape: Place) -> Place:
    """The index into an array of batch shape ``shape`` for the element at ``place`` of
    the whole batch.
    """
    last = place[len(place) - len(shape) :]
    return tuple(0 if n == 1 else k for k, n in zip(last, shape, strict=True))


def broadcast(shapes: Iterable[Place]) -> Place:
    """The joint shape of arrays that broadcast."""
    listed = list(shapes)
    rank = max(map(len, listed), default=0)
    aligned = [(1,) * (rank - len(shape)) + shape for shape in listed]
    return tuple(
        0 if 0 in sizes else max(sizes) for sizes in zip(*aligned, strict=True)
    )
