"""Diagnostics at nonsmooth points: limits, jumps, and gradients outside the slopes.

Kinks and limits of *declared* cotangents are judged in `gradients.py`, which calls
:func:`fault`; diagnostics for the forward or a derived cotangent come from
:func:`check`; questions that only the emitted program can answer are left as
:class:`Hole`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from enum import Enum
from typing import Any

from gradspec.checks.breaks import Break, Kind, has_limit, slopes_around
from gradspec.checks.instances import Instance, stem
from gradspec.derive.chain import is_linear
from gradspec.diagnostics import Diagnostic, error, warning
from gradspec.ir.expr import ONE, ZERO, Const, Expr, Select
from gradspec.ir.rule import Definition, Hole, Input
from gradspec.ir.walk import follows_surrogate, names, substitute
from gradspec.source import Span
from gradspec.symbolic.borders.limits import Limit, Trend, at, is_between, same
from gradspec.symbolic.borders.roots import exactly
from gradspec.symbolic.borders.surfaces import Origin
from gradspec.symbolic.compare import decimal, distinct_texts, point_text


class Finding(Enum):
    """The conclusion that a break permits; `measure/boundaries.py` has the messages."""

    FINE = "fine"
    MEANT = "a jump that is meant"
    JUMP = "a jump"
    PATCH = "another value than the limit"
    HOLE = "undefined, though there is a limit"
    SLOPE = "a gradient outside the slopes"
    LIMIT = "a gradient that is not the limit of the slope"
    BENT = "not linear in the upstream gradient"


def finding(instance: Instance, found: Break) -> Finding:
    """The most severe finding at a break."""
    of_value = _of_value(instance, found)
    seen = of_value
    if of_value is Finding.FINE:
        seen = _of_gradient(instance, found)
    is_hole = seen is Finding.HOLE and found.kind is not Kind.KINK
    if is_hole and not has_limit(instance, found):
        return Finding.FINE
    return seen


def _of_value(instance: Instance, found: Break) -> Finding:
    value = found.value
    match found.kind:
        case Kind.REMOVABLE if value.is_finite:
            return _finding_at_patch(instance, found)
        case Kind.REMOVABLE if value.trend is Trend.UNDEFINED:
            return Finding.HOLE
        case Kind.JUMP if value.trend is Trend.OUTSIDE:
            return Finding.FINE
        case Kind.JUMP:
            return Finding.MEANT if intended_reason(instance, found) else Finding.JUMP
        case Kind.END if _is_closed(found) and found.sides[0].is_finite:
            if value.trend is Trend.UNDEFINED:
                return Finding.HOLE
            if value.is_finite and not same(value, found.sides[0]):
                return _finding_at_patch(instance, found)
            return Finding.FINE
        case _:
            return Finding.FINE


def _finding_at_patch(instance: Instance, found: Break) -> Finding:
    """A separate value: wrong at a removable singularity, a jump where it stands
    alone."""
    if any(s.origin is Origin.EDGE for s in found.place.surfaces):
        return Finding.PATCH
    return Finding.MEANT if intended_reason(instance, found) else Finding.JUMP


def _is_closed(found: Break) -> bool:
    """True if the author has stated that an end belongs to the domain."""
    return len(found.sides) == 1 and any(
        s.origin is Origin.END for s in found.place.surfaces
    )


def _of_gradient(instance: Instance, found: Break) -> Finding:
    """The finding on the gradient at the break, compared with the one-sided slopes."""
    slopes = found.slopes
    if found.kind in (Kind.POLE, Kind.UNKNOWN) or _is_override(instance, found):
        return Finding.FINE
    if not slopes or not (found.value.is_finite or found.kind is Kind.REMOVABLE):
        return Finding.FINE
    if len(slopes) < len(found.sides):
        return Finding.FINE  # on one side only the forward could be evaluated
    if found.kind is Kind.END and not _is_closed(found):
        return Finding.FINE
    if found.stated.trend is Trend.UNDEFINED:
        is_finite = all(slope.is_finite for slope in slopes)
        return Finding.HOLE if is_finite else Finding.FINE
    if not found.stated.is_finite or _is_in_hull(found.stated, slopes):
        return Finding.FINE
    if _is_in_hull(found.stated, (*slopes, *slopes_around(instance, found))):
        return Finding.FINE
    return Finding.LIMIT if _agree(slopes) else Finding.SLOPE


def _is_in_hull(value: Limit, slopes: tuple[Limit, ...]) -> bool:
    """True between the slopes; an infinite slope leaves its side open, and a finite
    value beside two of them is a choice that nothing contradicts."""
    finite = tuple(slope for slope in slopes if slope.is_finite)
    signs = {slope.value for slope in slopes if slope.trend is Trend.INFINITE}
    if not finite or 0 in signs or len(signs) == 2:
        return True
    if not signs:
        return is_between(value, finite)
    ends = (*(one.value for one in finite), value.value)
    open_end = max(ends, key=_middle) if 1 in signs else min(ends, key=_middle)
    return is_between(value, (*finite, Limit(Trend.FINITE, open_end)))


def _middle(ball: object) -> float:
    return float(ball.mid())  # type: ignore[attr-defined]


def _agree(slopes: tuple[Limit, ...]) -> bool:
    if not all(slope.is_finite for slope in slopes):
        return False
    return all(same(slopes[0], slope) for slope in slopes[1:])


def _is_override(instance: Instance, found: Break) -> bool:
    return found.place.input in instance.rule.overrides


# --- jumps ---------------------------------------------------------------------------


_SMALL = 2.0**-13
"""Relative size of a jump below which it is the seam of an approximation (softplus as x
beyond 20, the published constants of sRGB)."""


def intended_reason(instance: Instance, found: Break) -> str:
    """The reason why a jump is intended, or not the author's; empty if there is
    none."""
    if follows_surrogate(instance.rule):
        return "surrogate"
    if _is_override(instance, found):
        return "override"
    if _is_small(found):
        return "small"
    statics = instance.rule.static_inputs
    usual = ((s.default, found.place.point[s.name]) for s in statics)
    if any(d is not None and float(d) != float(value) for d, value in usual):
        return "only for another static"
    if any(s.origin is Origin.STEP for s in found.place.surfaces):
        return "step"
    choices = [s for s in found.place.surfaces if s.origin is Origin.CHOICE]
    if not choices:
        return "singular"
    whys = [_written_step(s.node, found) for s in choices]
    return next((why for why in whys if why), "") if all(whys) else ""


def _is_small(found: Break) -> bool:
    values = [x.value for x in (*found.sides, found.value) if x.is_finite]
    return bool(_height(found) < _SMALL * max(abs(value).upper() for value in values))


def _height(found: Break) -> Any:
    """The height of the jump of the forward."""
    values = [x.value for x in (*found.sides, found.value) if x.is_finite]
    return max(values, key=_middle) - min(values, key=_middle)


_MODEST = 1.0


def _written_step(node: Expr | None, found: Break) -> str:
    """A conditional that is a step, or sets values to 0 that are no larger there than 1
    or the input, as hard shrinkage and thresholds do. A jump of -20 is no cut-off."""
    if not isinstance(node, Select):
        return ""
    name = found.place.input
    largest = max(_MODEST, abs(float(found.place.point[name])))
    branches = (node.then, node.other)
    if all(name not in names(_outer(branch)) for branch in branches):
        return "step"
    is_modest = _middle(_height(found)) <= largest * (1 + _SMALL)
    cuts = is_modest and any(branch == ZERO for branch in branches)
    return "cut off" if cuts else ""


def _outer(branch: Expr) -> Expr:
    """The branch behind nested steps: of each, the one that is not constant."""
    while isinstance(branch, Select):
        if isinstance(branch.then, Const):
            branch = branch.other
        elif isinstance(branch.other, Const):
            branch = branch.then
        else:
            return branch
    return branch


# --- what is said --------------------------------------------------------------------


def check(instance: Instance, found: tuple[Break, ...]) -> Iterator[Diagnostic]:
    """Diagnostics for the forward and the derived cotangents, one for each formula."""
    faults: dict[tuple[str, Span], tuple[Diagnostic, dict[str, None]]] = {}
    for one in found:
        fault = _fault_of(instance, one)
        if fault is not None:
            place = fault.code, fault.labels[0].span
            faults.setdefault(place, (fault, {}))[1][f"d{stem(one.place.input)}"] = None
    for fault, (_, *others) in faults.values():
        is_told = others and fault.code == "GS434"
        notes = (f"so is {' and '.join(others)}",) if is_told else ()
        yield replace(fault, notes=notes)


def _fault_of(instance: Instance, found: Break) -> Diagnostic | None:
    match finding(instance, found):
        case Finding.PATCH:
            return _patch(instance, found)
        case Finding.JUMP:
            return _jump(instance, found)
        case Finding.SLOPE | Finding.LIMIT:
            rule, name = instance.rule, found.place.input
            is_derived = name not in rule.declared and name not in rule.overrides
            return _outside(instance, found) if is_derived else None
        case _:
            return None


def place_said(instance: Instance, found: Break) -> str:
    """The place with the values of all inputs that the output depends on."""
    used = names(instance.forward[found.output.name]) | {found.place.input}
    shown = tuple(i.name for i in instance.rule.inputs if i.name in used)
    return point_text(found.place.point, shown)


def _patch(instance: Instance, found: Break) -> Diagnostic:
    name, at_it = found.output.name, place_said(instance, found)
    value, limit = distinct_texts((found.value, found.sides[0]), short, 6)
    return error(
        "GS430",
        f"{name} of {instance.rule.name} is patched with a value that is not the limit",
        instance.rule.source,
        _let(instance, name).span,
        label=f"gives {value} at {at_it}; the limit is {limit}",
        help="write the limit for this point",
    )


def _jump(instance: Instance, found: Break) -> Diagnostic:
    name, at_it = found.output.name, place_said(instance, found)
    values = (found.left, found.value, found.right)
    left, here, right = (short(limit) for limit in values)
    beside = f"{left} on the left, {right} on the right"
    if found.kind is not Kind.JUMP:
        beside = f"its limit is {short(found.sides[0])}"
    return warning(
        "GS432",
        f"{name} of {instance.rule.name} is not continuous",
        instance.rule.source,
        _let(instance, name).span,
        label=f"gives {here} at {at_it}; {beside}",
        help="correct a branch or the threshold; a jump that is meant is written as a"
        " step (`… * heaviside(…)`, `… * (1 if … else 0)`), or has a surrogate",
    )


def _outside(instance: Instance, found: Break) -> Diagnostic:
    variable, (stated, slopes) = found.place.input, slopes_said(found)
    wanted = "the slope there is" if _agree(found.slopes) else "the slopes there are"
    return warning(
        "GS434",
        f"the derived d{variable} of {instance.rule.name} is not the slope at a point",
        instance.rule.source,
        _let(instance, found.output.name).span,
        label=f"d{variable} is {stated} at {place_said(instance, found)};"
        f" {wanted} {slopes}",
        help=f"declare d{variable}, with the slope at this point, or write"
        f" {found.output.name} so that its pieces are not differentiated one by one",
    )


def _let(instance: Instance, name: str) -> Definition:
    return next(let for let in instance.rule.forward if let.name == name)


def slopes_said(found: Break) -> tuple[str, str]:
    """The gradient as it stands and the slopes, with digits that tell them apart."""
    stated, *slopes = distinct_texts((found.stated, *found.slopes), short, 6)
    return stated, " and ".join(dict.fromkeys(slopes))


def short(limit: Limit, digits: int = 6) -> str:
    """A limit in a few digits."""
    match limit.trend:
        case Trend.INFINITE:
            return {1: "inf", -1: "-inf"}.get(limit.value, "infinite")
        case Trend.FINITE:
            return _rounded_text(limit, digits)
        case Trend.OUTSIDE:
            return "-"
        case Trend.UNKNOWN:
            return "?"
        case Trend.UNDEFINED:
            return "undefined"


_HAIR = 1e-12
"""Values nearer to 0 than this are the remainder of the last approach step."""


def _rounded_text(limit: Limit, digits: int) -> str:
    if bool(abs(limit.value) < _HAIR + 2 * limit.slack):
        return "0"
    text = decimal(limit.value, digits)
    return text if "e" not in text else repr(float(text))


# --- declared cotangents -------------------------------------------------------------


def fault(
    instance: Instance, variable: Input, entry: Definition, found: tuple[Break, ...]
) -> tuple[Finding, Break] | None:
    """The first break at which a declared cotangent is wrong."""
    linear = is_linear(entry.value, frozenset(instance.rule.cotangents))
    for one in found:
        if one.place.input != variable.name:
            continue
        seen = _of_gradient(instance, one)
        if seen in (Finding.SLOPE, Finding.LIMIT):
            return seen, one
        if not linear and _is_bent(instance, one):
            return Finding.BENT, one
    return None


def _is_bent(instance: Instance, found: Break) -> bool:
    """True if, at the break itself, the cotangent is not homogeneous: scaled by 2 or
    -1, the upstream gradient does not scale it alike."""
    if not found.stated.is_finite or found.kind is Kind.POLE:
        return False
    one, two, minus = (_stated_limit(instance, found, scale) for scale in (1, 2, -1))
    if not (one.is_finite and two.is_finite and minus.is_finite):
        return False
    double = Limit(Trend.FINITE, 2 * one.value)
    opposite = Limit(Trend.FINITE, -one.value)
    return not (same(two, double) and same(minus, opposite))


def bent_said(instance: Instance, found: Break) -> str:
    """The values of the cotangent at the break for three upstream gradients, as
    text."""
    upstream = found.output.cotangent
    told = (
        f"{short(_stated_limit(instance, found, scale))} for {upstream} = {scale}"
        for scale in (1, 2, -1)
    )
    return ", ".join(told)


def _stated_limit(instance: Instance, found: Break, scale: int) -> Limit:
    factor = Const(ONE.value * scale)
    upstream = dict.fromkeys(instance.rule.cotangents, ZERO) | {
        found.output.cotangent: factor
    }
    value = substitute(instance.stated[found.place.input], upstream)
    return at(exactly(value, found.place.point))


# --- what the emitted program has to show ----------------------------------------------


def holes(instance: Instance, found: tuple[Break, ...]) -> tuple[Hole, ...]:
    """Points at which something is undefined as written, but has a limit."""
    made: dict[Hole, None] = {}
    for one in found:
        if finding(instance, one) is not Finding.HOLE:
            continue
        point, output = tuple(one.place.point.items()), one.output.name
        if one.value.trend is Trend.UNDEFINED:
            made[Hole(output, output, point, *_ends(one.sides))] = None
        if _lacks_slope(instance, one):
            name = f"d{one.place.input}"
            made[Hole(name, output, point, *_ends(one.slopes))] = None
    return tuple(made)


def _lacks_slope(instance: Instance, found: Break) -> bool:
    if _is_override(instance, found):
        return False
    if found.stated.trend is not Trend.UNDEFINED or not found.slopes:
        return False
    return all(slope.is_finite for slope in found.slopes)


def _ends(limits: tuple[Limit, ...]) -> tuple[str, str]:
    return short(limits[0]), short(limits[-1])
