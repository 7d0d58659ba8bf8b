"""Second order: is the derivative of the emitted backward the second derivative?

A framework that is asked for a second derivative differentiates the backward as it
stands. Where a first derivative is proved, both sides are one function, and so are
their derivatives, except at single points: the value patched in at a removable
singularity (``… if x != 0 else 1``) is a constant to whoever differentiates it. So at
every border the second derivative as emitted is compared with the limits of the true
one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice
from typing import Any

from gradspec.checks.evidence import Claim, examine
from gradspec.checks.gradients import Judgement, agreeing
from gradspec.checks.instances import (
    Instance,
    Point,
    few,
    stem,
)
from gradspec.checks.proofs import prove
from gradspec.derive.chain import Underivable
from gradspec.derive.vjp import cotangents, vjps
from gradspec.diagnostics import Diagnostic, error
from gradspec.ir.expr import ONE, Call, Const, Expr
from gradspec.ir.rule import (
    Definition,
    Input,
    Role,
    Rule,
    Status,
    Verdict,
)
from gradspec.ir.tidy import tidy
from gradspec.ir.unroll import is_too_large
from gradspec.ir.walk import (
    closed_cotangents,
    expand,
    names,
    nodes,
    stops,
    substitute,
)
from gradspec.primitives.foreign import foreign_operations
from gradspec.symbolic.borders.bounds import thresholds
from gradspec.symbolic.borders.limits import FINE, lies_between, meet
from gradspec.symbolic.compare import decimal, point_text, short_number
from gradspec.symbolic.enclose import enclose, is_defined, program
from gradspec.symbolic.limit import Effort

_BITS = 256
_MOST = 64
"""Pairs of inputs (or of elements) that are examined."""

_INSTANCES = 2
"""Of a rule with axes: 1 and 2 elements for every axis."""
_BASES = 3
_STEP = Fraction(1, 2**120)


@dataclass(frozen=True, slots=True)
class Pair:
    """The derivative of ``d<input>`` by another input: as emitted, and true.
    ``is_plain``: values of rules with gradients of their own are in it, which whoever
    differentiates it does not see."""

    instance: Instance
    input: Input
    by: Input
    emitted: Expr
    true: Expr
    is_plain: bool

    @property
    def name(self) -> str:
        return f"∂{self.input.cotangent}/∂{self.by.name}"


def judge(
    rule: Rule, first: tuple[Verdict, ...], budget: float
) -> tuple[Judgement, ...]:
    """A judgement for each pair of inputs; its verdict's ``input`` is ``x,z`` for the
    derivative of ``dx`` by ``z``. A ranked rule is written out at small sizes."""
    known = {verdict.input: verdict for verdict in first}
    if is_too_large(rule) or any(d.is_equation for d in rule.definitions):
        return ()
    some = few(rule).small[:_INSTANCES]
    pairs = [pair for one in some for pair in islice(_pairs(one), _MOST)]
    share = budget / max(len(pairs), 1)
    done: dict[str, Judgement] = {}
    for pair in pairs:
        judged = _judge(pair, known[stem(pair.input.name)], share)
        name = judged.verdict.input
        done[name] = _weaker(done.get(name, judged), judged)
    return tuple(done.values())


def _weaker(one: Judgement, other: Judgement) -> Judgement:
    """The judgement that is valid for both; the numbers of points are added."""
    order = (Status.REFUTED, Status.AGREES, Status.PROVED, Status.OVERRIDE)
    least = min((one, other), key=lambda j: order.index(j.verdict.status))
    if one is other or least.verdict.status is not Status.AGREES:
        return least
    points = one.verdict.points + other.verdict.points
    return replace(least, verdict=replace(least.verdict, points=points))


def _pairs(seen: Instance) -> Iterator[Pair]:
    rule = seen.rule
    inputs = [i for i in rule.inputs if i.takes_gradient]
    stated = closed_cotangents(rule)
    true = _true(rule)
    wrt = tuple(i.name for i in inputs)
    for variable in inputs:
        value = stated[variable.cotangent]
        is_override = variable.name in rule.overrides
        meant = value if is_override else true.get(variable.name)
        ours, theirs = _slopes(value, wrt), _slopes(meant, wrt)
        for by in inputs:
            emitted, right = ours.get(by.name), theirs.get(by.name)
            if emitted is not None and right is not None:
                yield Pair(seen, variable, by, emitted, right, _is_plain(value))


def _is_plain(value: Expr) -> bool:
    """True if a called rule, however indirectly, has a gradient that is declared not to
    be the derivative, and not 0."""
    called = [n.rule for n in nodes(value) if isinstance(n, Call) and not stops(n.rule)]
    return any(
        rule.surrogates
        or rule.overrides
        or any(_is_plain(let.value) for let in rule.forward)
        for rule in called
    )


def _true(rule: Rule) -> dict[str, Expr]:
    try:
        return cotangents(rule)
    except Underivable:
        return {}


def _slopes(value: Expr | None, names: tuple[str, ...]) -> dict[str, Expr]:
    """The derivatives of one expression as a framework computes them."""
    if value is None:
        return {}
    try:
        found = vjps((Definition("it", Role.LOCAL, value),), (), {"it": ONE}, names)
    except Underivable:
        return {}
    return {name: tidy(expand(slope)) for name, slope in found.items()}


def _judge(pair: Pair, first: Verdict, budget: float) -> Judgement:
    both = stem(pair.input.name), stem(pair.by.name)
    verdict = Verdict(",".join(both), Status.PROVED)
    if first.status is Status.OVERRIDE or pair.is_plain:
        method = "the derivative of the override, whatever that is"
        if pair.is_plain:
            method = "values of called rules count as plain: it is not their gradients'"
        return Judgement(replace(verdict, status=Status.OVERRIDE, method=method))
    lie = _lie(pair)
    if lie is not None:
        refuted = replace(verdict, status=Status.REFUTED, method="limits at a border")
        return Judgement(refuted, (lie,))
    if first.status in (Status.PROVED, Status.DERIVED):
        method = "derivatives of what is equal"
        proved = Verdict(
            verdict.input,
            Status.PROVED,
            method,
            sizes=first.sizes,
            on_domain=first.on_domain,
            through_surrogate=first.through_surrogate,
        )
        return Judgement(proved)
    return Judgement(_by_itself(pair, verdict, budget))


def _by_itself(pair: Pair, verdict: Verdict, budget: float) -> Verdict:
    """The verdict on a second derivative as a claim of its own: the first only
    agrees."""
    entry = Definition(pair.by.cotangent, Role.COTANGENT, pair.emitted)
    claim = Claim(pair.instance, pair.by, entry, pair.emitted, pair.true)
    seen = examine(claim, pair.instance.points)
    found = prove(claim, Effort.of(budget))
    if found.proof is None or not seen.agreeing:
        return replace(agreeing(verdict.input, (seen,)), stopped=found.stopped)
    return replace(
        agreeing(verdict.input, (seen,)),
        status=Status.PROVED,
        method=found.proof.method,
        on_domain=found.proof.assumed,
    )


# --- patched values ----------------------------------------------------------------------


def _lie(pair: Pair) -> Diagnostic | None:
    """The first border at which the emitted second derivative is not the limit of the
    true one, though the gradient itself is smooth there."""
    seen = pair.instance
    stated, true = seen.stated[pair.input.name], seen.derived.get(pair.input.name)
    if true is None or foreign_operations((pair.emitted, pair.true)):
        return None  # of a foreign function no limit is known
    for point in _at_borders(seen, (stated, true, pair.emitted)):
        value = enclose(stated, point, _BITS)
        if not is_defined(value):
            continue
        slopes = _approaches(true, point, seen)
        if not slopes or not meet((value, *slopes)):
            continue
        limits = _approaches(pair.true, point, seen)
        if len(limits) < len(slopes) or not meet(limits):
            continue
        here = enclose(pair.emitted, point, _BITS)
        if not is_defined(here) or not lies_between(here, limits):
            return _refutation(pair, point, here, limits[0])
    return None


def _refutation(pair: Pair, point: Point, here: Any, limit: Any) -> Diagnostic:
    rule = pair.instance.rule
    written = {**rule.declared, **rule.overrides}.get(pair.input.name)
    used = names(pair.true) | names(pair.emitted) | {pair.input.name, pair.by.name}
    place = point_text(point, tuple(n for n in pair.instance.shown if n in used))
    given, true, by = decimal(here, 10), decimal(limit, 10), pair.by.name
    return error(
        "GS462",
        f"the second derivative of {rule.name} ({pair.name}) is wrong at a single point",
        rule.source,
        rule.name_span if written is None else written.span,
        label=f"its derivative is {given} at {place}, where it should be {true}",
        notes=[
            "the gradient itself is right there, but it is a constant to whoever"
            " differentiates it, or a branch that ends there"
        ],
        # A straight line through the point in place of a constant.
        help=f"give the branch at {by} = {short_number(point[by])} a first-order term in {by} (a"
        " Taylor polynomial in place of a constant); first derivatives stay as they are",
    )


# --- borders -----------------------------------------------------------------------------


def _at_borders(instance: Instance, exprs: tuple[Expr, ...]) -> Iterator[Point]:
    """Points on the thresholds of the expressions, and where inputs are 0."""
    seen: set[tuple[Fraction, ...]] = set()
    for point in _candidates(instance, exprs):
        key = tuple(point.values())
        if key not in seen and instance.is_assumed(point):
            seen.add(key)
            yield point


def _candidates(instance: Instance, exprs: tuple[Expr, ...]) -> Iterator[Point]:
    bases = [dict(p) for p in instance.points[:_BASES]]
    reals = instance.rule.real_inputs
    for base in bases[:1]:
        yield {**base, **dict.fromkeys(reals, Fraction(0))}
    for base in bases:
        for name in reals:
            yield {**base, name: Fraction(0)}
        for bound in dict.fromkeys(b for e in exprs for b in thresholds(e)):
            values = {n: Const(v) for n, v in base.items() if n != bound.variable}
            value = tidy(substitute(bound.value, values))
            if bound.variable in reals and isinstance(value, Const):
                yield {**base, bound.variable: value.value}


def _approaches(expr: Expr, point: Point, instance: Instance) -> tuple[Any, ...]:
    """The values of an expression close to a point, on lines that no patch lies on."""
    found = []
    names = instance.rule.real_inputs
    for direction in _directions(len(names)):
        near = dict(point)
        for name, way in zip(names, direction, strict=True):
            near[name] += way * _STEP * max(abs(point[name]), Fraction(1))
        if not instance.is_assumed(near, FINE):
            continue
        value = program(expr).run(near, FINE)[0]
        if not is_defined(value):
            return ()
        found.append(value)
    return tuple(found)


def _directions(count: int) -> Iterator[tuple[Fraction, ...]]:
    """Opposite directions, with steps that have no simple ratio; and a slanting one."""
    forth = tuple(Fraction(7 + 3 * k * k + k, 7) for k in range(count))
    yield forth
    yield tuple(-step for step in forth)
    if count > 1:
        yield tuple(step if k % 2 else -step for k, step in enumerate(forth))
        yield tuple(-step if k % 2 else step for k, step in enumerate(forth))
