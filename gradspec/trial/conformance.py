"""One call of a rule for the conformance suite, and what would come of it if the rule
were lost on the way.

A framework that drops a rule differentiates the forward expression instead. Where the
declared gradient is another (a surrogate, an override), that shows as a number.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from math import fsum, isfinite
from typing import Any

from gradspec.derive.complete import complete
from gradspec.ir import closed
from gradspec.ir.calls import expand, follows_surrogate
from gradspec.ir.expr import Expr, const
from gradspec.ir.rule import (
    Backward,
    CheckedRule,
    Input,
    Kind,
    NoGradient,
    Output,
    Override,
    Pending,
    Rule,
)
from gradspec.ir.walk import names, substitute
from gradspec.plan.planning import in_full, plan_rule
from gradspec.symbolic.compare import bend, slope
from gradspec.symbolic.enclose import Program, enclose
from gradspec.symbolic.truth import values
from gradspec.trial.drawing import Drawn, attempt
from gradspec.trial.shapes import Place, place_in

WHOLE = (2, 3)
"""The batch of an elementwise rule's call."""

PARTS = ((2, 1), (3,))
"""The first two inputs of several: each is broadcast along an axis of the other."""

DRAWS = 60


def lost(rule: Rule) -> Rule:
    """The rule without what it declares of its backward pass."""
    return replace(rule, backward=tuple(map(_undeclared, rule.backward)), surrogates=())


def _undeclared(entry: Backward) -> Backward:
    return entry if isinstance(entry, NoGradient) else Pending()


def elementwise_case(checked: CheckedRule) -> dict[str, Any] | None:
    """The job for one elementwise rule; None where no input is to be found."""
    rule = checked.rule
    linear = plan_rule(checked).tangents is not None
    bare = _completed(lost(rule))
    kept, without = _Meaning.of(rule), _Meaning.of(bare)
    drawn = _drawn(rule, kept, linear)
    if drawn is None:
        return None
    upstream = _upstream(rule, kept, drawn)
    return {
        "rule": rule.name,
        "exact": _is_exact(rule),
        "inputs": [[i.name, i.kind.value] for i in rule.tensor_inputs],
        "batched": [
            i.name
            for i in rule.tensor_inputs
            if len(drawn.shapes[i.name]) == len(WHOLE)
        ],
        "rows": [n for n, (s, _) in upstream.items() if len(s) == len(WHOLE)],
        "outputs": [[o.name, o.kind.value] for o in rule.outputs],
        "linear": linear,
        "statics": _statics(rule, drawn),
        "given": {
            i.name: [
                drawn.shapes[i.name],
                list(map(float, drawn.cells[i.name].values())),
            ]
            for i in rule.tensor_inputs
        },
        "upstream": upstream,
        **_derivatives(rule, kept, drawn, linear),
        "bare": _derivatives(bare, without, drawn, True),
    }


def _derivatives(
    rule: Rule, meaning: _Meaning, drawn: Drawn, linear: bool
) -> dict[str, Any]:
    """What must come out, from values to third order where that is one number."""
    smooth = None if _is_ambiguous(rule) else _second(rule, meaning, drawn, linear)
    return {
        "zeroth": _zeroth(rule, meaning, drawn),
        "first": _first(rule, meaning, drawn, linear),
        "second": smooth,
        "third": _third(rule, meaning, drawn, linear) if smooth else None,
    }


def _is_exact(rule: Rule) -> bool:
    overridden = any(isinstance(entry, Override) for entry in rule.backward)
    return not overridden and not follows_surrogate(rule)


def _completed(rule: Rule) -> Rule:
    done = complete(rule).value
    if done is None:
        raise RuntimeError(f"{rule.name}: no gradient of its forward pass")
    return done


def _is_ambiguous(rule: Rule) -> bool:
    """The step or its surrogate may be differentiated once more: both are right."""
    return follows_surrogate(rule) and not rule.surrogates


@dataclass(frozen=True, slots=True)
class _Meaning:
    """Closed expressions of a rule's outputs and cotangents; for each input the inputs
    whose shape each term of its gradient has, by upstream gradient.
    """

    outputs: Mapping[str, Expr]
    cotangents: Mapping[str, Expr]
    spans: Mapping[str, Mapping[str, tuple[str, ...]]]

    @staticmethod
    def of(rule: Rule) -> _Meaning:
        rule, _, gradients = in_full(rule)
        return _Meaning(
            {name: expand(e) for name, e in closed.outputs(rule).items()},
            {name: expand(e) for name, e in closed.cotangents(rule).items()},
            {
                g.input: {u: t.spans for t in g.terms for u in t.upstream}
                for g in gradients
                if g is not None
            },
        )


# --- drawing -------------------------------------------------------------------------


def _drawn(rule: Rule, meaning: _Meaning, linear: bool) -> Drawn | None:
    """Inputs that the assumptions allow, away from kinks if some draws find such."""
    rng = random.Random(rule.name)
    program = Program((*meaning.outputs.values(), *meaning.cotangents.values()))
    fallback, shapes = None, _shapes(rule, linear)
    for _ in range(DRAWS):
        drawn = attempt(rule, {}, shapes, rng)
        if not all(_is_sound(rule, program, point) for _, point in drawn.points):
            continue
        fallback = fallback or drawn
        if _second(rule, meaning, drawn, linear) is not None:
            return drawn
    return fallback


def _shapes(rule: Rule, linear: bool) -> dict[str, Place]:
    """All alike where a gradient is not linear: to broadcast is to add up."""
    batched = [i.name for i in rule.tensor_inputs if i.shape.batch]
    whole: Place = WHOLE if batched else ()
    shapes: dict[str, Place] = {i.name: () for i in rule.inputs}
    shapes |= dict.fromkeys(batched, whole)
    if linear and len(batched) > 1:
        shapes |= dict(zip(batched, PARTS, strict=False))
    return shapes | {f"d{output.name}": whole for output in rule.outputs}


def _is_sound(rule: Rule, program: Program, point: dict[str, Any]) -> bool:
    if not all(enclose(a.condition, point) is True for a in rule.assumes):
        return False
    return all(map(isfinite, values(program, point)))


def _statics(rule: Rule, drawn: Drawn) -> dict[str, float | int]:
    found: dict[str, float | int] = {}
    for i in rule.static_inputs:
        value = drawn.cells[i.name][()]
        found[i.name] = int(value) if i.kind is Kind.STATIC_INT else float(value)
    return found


# --- what must come out --------------------------------------------------------------


def _upstream(rule: Rule, meaning: _Meaning, drawn: Drawn) -> dict[str, Any]:
    """Upstream gradients, in the shape of each output: numbers of which no two are equal,
    since a gradient that lacks a factor is the same where that is 1.
    """
    found = {}
    for output in rule.outputs:
        if output.takes_gradient:
            shape = _shape(drawn, names(meaning.outputs[output.name]))
            points = [point for _, point in _points(drawn, shape)]
            flat = [float(point[f"d{output.name}"]) for point in points]
            found[output.name] = [shape, flat]
    return found


def _zeroth(rule: Rule, meaning: _Meaning, drawn: Drawn) -> dict[str, Any]:
    """The values of the outputs that take a gradient."""
    found = {}
    for output in rule.outputs:
        if output.takes_gradient:
            value = meaning.outputs[output.name]
            shape, program = _shape(drawn, names(value)), Program((value,))
            points = [point for _, point in _points(drawn, shape)]
            found[output.name] = [shape, [values(program, p)[0] for p in points]]
    return found


def _shape(drawn: Drawn, used: Iterable[str]) -> Place:
    """To what the inputs that are used broadcast."""
    shapes = [drawn.shapes.get(name, ()) for name in used]
    rank = max(map(len, shapes), default=0)
    aligned = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(map(max, *aligned, (1,) * rank)) if rank else ()


def _terms(
    rule: Rule, meaning: _Meaning, name: str, linear: bool
) -> Iterator[tuple[Expr, tuple[str, ...]]]:
    """What each output adds to a gradient, and the inputs whose shapes that takes."""
    whole = meaning.cotangents[f"d{name}"]
    if not linear:
        yield whole, tuple(i.name for i in rule.tensor_inputs)
        return
    for upstream, spans in meaning.spans[name].items():
        others = (o.name for o in rule.outputs if f"d{o.name}" != upstream)
        zeros = {f"d{other}": const(0) for other in others}
        yield substitute(whole, zeros), spans


def _first(rule: Rule, meaning: _Meaning, drawn: Drawn, linear: bool) -> dict[str, Any]:
    """The gradients, in the inputs' shapes."""
    found = {}
    for name in _differentiable(rule, meaning):
        parts = []
        for value, spans in _terms(rule, meaning, name, linear):
            program = Program((value,))
            for point in _points(drawn, _shape(drawn, spans)):
                parts.append((point, values(program, point[1])[0]))
        found[f"d{name}"] = _collected(drawn, name, parts)
    return found


def _second(
    rule: Rule, meaning: _Meaning, drawn: Drawn, linear: bool
) -> dict[str, Any] | None:
    """The derivative by each input of the sum of all gradients; None at a kink."""
    wanted = list(_differentiable(rule, meaning))
    found = {}
    for by in wanted:
        parts = []
        for name in wanted:
            for value, spans in _terms(rule, meaning, name, linear):
                for point in _points(drawn, _shape(drawn, spans)):
                    curvature = slope(value, point[1], by)
                    if curvature is None:
                        return None
                    parts.append((point, curvature))
        found[f"d{by}"] = _collected(drawn, by, parts)
    if any(
        slope(e, point, by) is None
        for e in meaning.outputs.values()
        for _, point in drawn.points
        for by in wanted
    ):
        return None
    return found


def _third(
    rule: Rule, meaning: _Meaning, drawn: Drawn, linear: bool
) -> dict[str, Any] | None:
    """The derivative by each input of the sum of all second derivatives."""
    wanted = list(_differentiable(rule, meaning))
    every = dict.fromkeys(wanted, Fraction(1))
    found = {}
    for by in wanted:
        parts = []
        for name in wanted:
            for value, spans in _terms(rule, meaning, name, linear):
                for point in _points(drawn, _shape(drawn, spans)):
                    change = bend(value, point[1], by, every)
                    if change is None:
                        return None
                    parts.append((point, change))
        found[f"d{by}"] = _collected(drawn, by, parts)
    return found


def _differentiable(rule: Rule, meaning: _Meaning) -> Iterator[str]:
    return (i.name for i in rule.inputs if f"d{i.name}" in meaning.cotangents)


Point = tuple[Place, dict[str, Any]]


def _points(drawn: Drawn, shape: Place) -> Iterator[Point]:
    """One point of the batch for each element of ``shape``."""
    seen = set()
    for place, point in drawn.points:
        here = place_in(place, shape)
        if here not in seen:
            seen.add(here)
            yield place, point


def _collected(drawn: Drawn, name: str, parts: list[tuple[Point, float]]) -> list[Any]:
    """[shape, flat values]: what falls on one element of the input is added."""
    shape = drawn.shapes[name]
    sums: dict[Place, list[float]] = {p: [] for p in product(*map(range, shape))}
    for (place, _), value in parts:
        sums[place_in(place, shape)].append(value)
    return [list(shape), [fsum(terms) for terms in sums.values()]]


# --- rules with axes -----------------------------------------------------------------


def ranked_case(rule: Rule, linear: bool) -> dict[str, Any] | None:
    """The job for one rule over named axes."""
    from gradspec.trial.ranked import one_call

    call = one_call(rule, lost(rule))
    if call is None:
        return None
    given = call["given"]
    gradients = [f"d{i.name}" for i in rule.inputs if f"d{i.name}" in call["expected"]]
    values = [o.name for o in rule.outputs if o.takes_gradient]
    return {
        "rule": rule.name,
        "exact": _is_exact(rule),
        "inputs": [[i.name, i.kind.value] for i in rule.tensor_inputs],
        "batched": list(_batched(rule.tensor_inputs, "", given)),
        "rows": list(
            _batched([o for o in rule.outputs if o.takes_gradient], "d", given)
        ),
        "outputs": [[o.name, o.kind.value] for o in rule.outputs],
        "linear": linear,
        "statics": call["statics"],
        "given": {i.name: given[i.name] for i in rule.tensor_inputs},
        "upstream": {
            o.name: given[f"d{o.name}"] for o in rule.outputs if o.takes_gradient
        },
        "probes": {name[1:]: given[f"probe {name[1:]}"] for name in gradients},
        **_orders(call, gradients, values),
        "bare": _orders(call["bare"], gradients, values),
    }


def _batched(
    variables: Sequence[Input | Output], prefix: str, given: dict[str, Any]
) -> Iterator[str]:
    """Those that have the first axis of the batch, which is none of their own."""
    axes = {
        v.name: len(given[prefix + v.name][0]) - len(v.shape.axes) for v in variables
    }
    longest = max(axes.values(), default=0)
    return (name for name, count in axes.items() if longest and count == longest)


def _orders(
    call: dict[str, Any], gradients: list[str], values: list[str]
) -> dict[str, Any]:
    return {
        "zeroth": {name: call["expected"][name] for name in values},
        "first": {name: call["expected"].get(name) for name in gradients},
        "second": call["second"],
        "third": call["third"],
    }
