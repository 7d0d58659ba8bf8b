"""One call of a rule for the conformance suite, and its result if the rule were lost.

A framework that drops a rule differentiates the forward expression instead. Where the
declared gradient is another (a surrogate, an override), that shows as a number.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from gradspec.ir.elements import OutOfRange
from gradspec.ir.rule import Backward, NoGradient, Pending, Rule
from gradspec.ir.walk import names
from gradspec.trial.calls import WHOLE, Scalars, call, signature, third
from gradspec.trial.cases import draws
from gradspec.trial.drawing import Drawn
from gradspec.trial.shapes import Place, batch_shapes, broadcast, size_choices

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
    bare = Scalars.of(lost(rule), scalars.sizes, linear and rule.is_elementwise)
    given = made["given"]
    floats = [o for o in rule.outputs if o.takes_gradient]
    gradients = [i.name for i in scalars.differentiable]
    return {
        **signature(rule),
        "batched": list(_batched([i.name for i in rule.tensor_inputs], drawn)),
        "rows": [
            name.removeprefix("d")
            for name in _batched([f"d{o.name}" for o in floats], drawn)
        ],
        "linear": linear,
        "statics": made["statics"],
        "given": {i.name: given[i.name] for i in rule.tensor_inputs},
        "upstream": {o.name: given[f"d{o.name}"] for o in floats},
        "probes": {name: given[f"probe {name}"] for name in gradients},
        **_orders(scalars, drawn, made),
        "bare": _orders(bare, drawn, call(bare, drawn)),
    }


def lost(rule: Rule) -> Rule:
    """The rule without its declared backward pass."""
    return replace(rule, backward=tuple(map(_undeclared, rule.backward)), surrogates=())


def _undeclared(entry: Backward) -> Backward:
    return entry if isinstance(entry, NoGradient) else Pending()


def _orders(scalars: Scalars, drawn: Drawn, made: dict[str, Any]) -> dict[str, Any]:
    """The expected results, from values to third derivatives."""
    expected = made["expected"]
    floats = [o.name for o in scalars.rule.outputs if o.takes_gradient]
    gradients = [f"d{i.name}" for i in scalars.differentiable]
    return {
        "zeroth": {name: expected[name] for name in floats},
        "first": {name: expected[name] for name in gradients},
        "second": made["second"],
        "third": third(scalars, drawn) if made["second"] else None,
    }


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
    if not rule.is_elementwise:
        batches = list(batch_shapes(rule, rng))[1]
    best = None
    for sizes in size_choices(rule, 0, rng):
        try:
            scalars = Scalars.of(rule, sizes, linear and rule.is_elementwise)
            Scalars.of(lost(rule), sizes)
        except OutOfRange:
            continue
        if rule.is_elementwise:
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
