"""Guesses at a cotangent as a whole: its upstream gradients, a factor everywhere, another
input's derivative, names that are exchanged, the one point at which it is wrong."""

from __future__ import annotations

from itertools import combinations

from gradspec.checks.guess import Case, Guess, decimal_or_fraction, number_text
from gradspec.ir.expr import ZERO, Const, Expr, Ref, apply
from gradspec.ir.text import show
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import names, nodes, substitute
from gradspec.source import Span
from gradspec.symbolic.compare import Relation, compare, decimal
from gradspec.symbolic.enclose import Point
from gradspec.symbolic.meant import fits
from gradspec.symbolic.neighbours import borders_at
from gradspec.symbolic.recognise import common_ratio, number

_SIMPLE = 12
"""Numerator times denominator of a factor that somebody may have forgotten."""


def agree(left: Expr, right: Expr, points: tuple[Point, ...]) -> bool:
    """Equal wherever both are defined, and defined somewhere."""
    found = False
    for point in points:
        relation = compare(left, right, point).relation
        if relation is Relation.DIFFERENT:
            return False
        found = found or relation is Relation.EQUAL
    return found


def upstream(case: Case) -> Guess | None:
    """An upstream gradient that does not occur."""
    claim = case.claim
    every = claim.instance.upstream
    absent = [n for n in every if n not in names(claim.declared)]
    needed = [n for n in absent if n in names(claim.derived)]
    if claim.declared == ZERO:
        return Guess("it is always 0")
    if not needed:
        return None
    if len(absent) == len(every):
        if len(every) == 1:
            scaled = apply("mul", Ref(every[0]), claim.declared)
            if agree(scaled, claim.derived, case.points):
                return Guess(f"{every[0]} is missing: multiply by {every[0]}")
        return Guess(f"it does not use the upstream gradient {' or '.join(every)}")
    zero: dict[str, Expr] = dict.fromkeys(needed, ZERO)
    if agree(claim.declared, substitute(claim.derived, zero), case.points):
        outputs = ", ".join(name.removeprefix("d") for name in needed)
        return Guess(f"the contribution of {outputs} is missing")
    return None


def still_absent(case: Case) -> Guess | None:
    """Nothing explains the rest, but an upstream gradient does not occur."""
    every = case.claim.instance.upstream
    absent = [
        n
        for n in every
        if n not in names(case.claim.declared) and n in names(case.claim.derived)
    ]
    return Guess(f"{', '.join(absent)} does not occur in it") if absent else None


def vanishing(case: Case) -> Guess | None:
    root = case.places[0]
    known = [value for value in root.now if value is not None]
    if len(known) >= 3 and all(value.is_zero() for value in known):
        return Guess("it is always 0")
    return None


def simple_factor(case: Case) -> Guess | None:
    """Times -1, 2, 1/2 and the like."""
    ratio = _ratio(case)
    if not isinstance(ratio, Const):
        return None
    value = ratio.value
    if abs(value.numerator * value.denominator) > _SIMPLE:
        return None
    if value == -1:
        return Guess("its sign is wrong everywhere")
    return Guess(f"it is {number_text(value)} times the derivative everywhere")


def any_factor(case: Case) -> Guess | None:
    """Times any number, with its name if it has one."""
    root = case.places[0]
    ratio = common_ratio(root.now, root.meant)
    if ratio is None:
        return None
    known = number(ratio)
    told = decimal(ratio, 17) if known is None else decimal_or_fraction(known)
    if told == "1":
        return None
    return Guess(f"it is {told} times the derivative everywhere")


def _ratio(case: Case) -> Expr | None:
    root = case.places[0]
    ratio = common_ratio(root.now, root.meant)
    return None if ratio is None else number(ratio)


def exchanged(case: Case) -> Guess | None:
    """The derivative by another input, and the other has this one's."""
    other = _other_input(case)
    instance, name = case.claim.instance, case.claim.input.name
    if not other or other not in [v.name for v, _ in instance.declared()]:
        return None
    if agree(instance.stated[other], instance.derived[name], case.points):
        return Guess(f"it is the derivative by {other}, not by {name}")
    return None


def swapped(case: Case) -> Guess | None:
    other = _other_input(case)
    if not other:
        return None
    return Guess(f"it is the derivative by {other}, not by {case.claim.input.name}")


def _other_input(case: Case) -> str:
    claim = case.claim
    for name, other in claim.instance.derived.items():
        if name != claim.input.name and agree(claim.declared, other, case.points):
            return name
    return ""


# --- names ---------------------------------------------------------------------------


def swapped_names(case: Case) -> Guess | None:
    """Two names, each in the place of the other."""
    text = case.texts[case.claim.name]
    used = [name for name in case.names if name in names(text)]
    for one, two in combinations(used, 2):
        turned: dict[str, Expr] = {one: Ref(two), two: Ref(one)}
        new = substitute(text, turned)
        if _is_right(case, new):
            told = f"`{one}` and `{two}` are swapped"
            return Guess(told, case.places[0], new, _span_of(text, one))
    return None


def renamed(case: Case) -> Guess | None:
    """One name for another wherever it stands: the output for the input, say."""
    text = case.texts[case.claim.name]
    for name in case.names:
        if name not in names(text):
            continue
        for other in case.names:
            new = substitute(text, {name: Ref(other)})
            if other != name and _is_right(case, new):
                told = f"`{name}` should be `{other}`"
                return Guess(told, case.places[0], new, _span_of(text, name))
    return None


def _is_right(case: Case, text: Expr) -> bool:
    return fits(case.places[0].meant, text, case.scene.points)


def _span_of(text: Expr, name: str) -> Span | None:
    return next((n.span for n in nodes(text) if n == Ref(name)), None)


# --- one point -----------------------------------------------------------------------


def only_at(case: Case, witness: Point) -> Guess | None:
    """Right at every smooth point: only where two things are equal is it wrong."""
    claim = case.claim
    if not agree(claim.declared, claim.derived, case.points):
        return None
    pairs = borders_at((claim.declared,), witness)
    where = f" where {_equation(*pairs[0])}" if pairs else " at this point"
    return Guess(f"it is right everywhere but{where}")


def _equation(left: Expr, right: Expr) -> str:
    return f"{show(tidy(left))} = {show(tidy(right))}"
