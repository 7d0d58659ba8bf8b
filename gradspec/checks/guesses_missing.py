"""Guesses at what is missing: a factor, a division, a term, the derivative of an inner
expression, the contribution of one of the places at which the input is used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from gradspec.checks.guess import Case, Guess, decimal_or_fraction, is_short, quoted
from gradspec.derive.build import plus, times
from gradspec.derive.partials import Underivable
from gradspec.derive.vjp import vjps
from gradspec.ir.expr import ONE, ZERO, Apply, Const, Expr, Ref, Select, apply
from gradspec.ir.rule import Let
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import children, names, nodes, size, substitute, with_children
from gradspec.primitives.lookup import primitive
from gradspec.symbolic.meant import Place, Values, evaluate
from gradspec.symbolic.recognise import (
    Rough,
    common_ratio,
    differences,
    may_be_proportional,
    number,
    products,
    quotients,
    reciprocals,
    rough,
    varies,
)

_MOST_KNOWN = 120
_UNLIKELY = 6
"""Nodes by which something else has to be longer: inside of a product it is less likely
that a term was forgotten."""

_LARGEST = 40  # nodes of something that is said to be missing


@dataclass(frozen=True, eq=False)
class _Known:
    """Something that may be missing, with its values; ``of`` says what it is."""

    expr: Expr
    values: Values
    of: str = ""

    @cached_property
    def rough(self) -> Rough:
        return rough(self.values)

    @cached_property
    def inverse(self) -> Rough:
        return tuple(None if value is None else 1 / value for value in self.rough)


def chain_factor(case: Case) -> Guess | None:
    """The derivative of an inner expression of the forward, missing as a whole."""
    root = case.places[0]
    for known in _inner_derivatives(case):
        ratio = common_ratio(root.meant, products(root.now, known.values))
        if ratio is not None and number(ratio) == ONE:
            told = f"the factor {quoted(known.expr)} is missing{known.of}"
            return Guess(told, root, apply("mul", root.node, known.expr))
    return None


def numeric_factor(case: Case) -> Guess | None:
    """A term that lacks a number as a factor."""
    for place in case.places[1:]:
        if not names(place.node):
            continue
        ratio = common_ratio(place.meant, place.now)
        value = None if ratio is None else number(ratio)
        if value is None or value == ONE or value in _parameters(case):
            continue
        told = f"the factor {decimal_or_fraction(value)} is missing in"
        new = apply("mul", value, place.node)
        return Guess(f"{told} {quoted(place.node)}", place, new)
    return None


def _parameters(case: Case) -> frozenset[Expr]:
    """Values of statics and their reciprocals: a factor of such a size is the parameter."""
    values = {v.default for v in case.rule.static_inputs if v.default}
    return frozenset(Const(n) for v in values for n in (v, -v, 1 / v, -1 / v))


def contribution(case: Case) -> Guess | None:
    """A term of the sum or product rule: one of the places where the input is used."""
    root = case.places[0]
    term = differences(root.meant, root.now)
    for expr, _ in _contributions(case):
        ratio = common_ratio(term, evaluate(expr, case.scene.points))
        if ratio is not None and number(ratio) == ONE:
            new = plus(root.node, expr)
            return Guess(f"the term {quoted(expr)} is missing", root, new)
    return None


def missing(case: Case) -> Guess | None:
    """A factor or a term; of several explanations the shortest."""
    pool = tuple(_pool(case))
    best: tuple[tuple[int, int], Guess] | None = None
    for turn, place in enumerate(case.places):
        if not names(place.node) or not is_short(place.node):
            continue
        for rank, guess in _lacking(case, place, pool, best[0][0] if best else 99):
            if best is None or (rank, turn) < best[0]:
                best = (rank, turn), guess
    return None if best is None else best[1]


def _lacking(
    case: Case, place: Place, pool: tuple[_Known, ...], worst: int
) -> Iterator[tuple[int, Guess]]:
    """What a place lacks, each with a rank: names are forgotten before formulas."""
    factor = quotients(place.meant, place.now)
    term = differences(place.meant, place.now)
    rough_factor, rough_term = rough(factor), rough(term)
    for known in pool:
        rank = size(known.expr)
        if rank > worst:
            return
        found = None
        if may_be_proportional(rough_factor, known.rough):
            found = _factor_missing(case, place, known, factor)
        elif may_be_proportional(rough_factor, known.inverse):
            found = _factor_left_over(case, place, known, factor)
        if found is not None:
            yield rank, found
        if may_be_proportional(rough_term, known.rough):
            found = _term_missing(place, known, term)
            if found is not None:
                yield rank + (1 if _is_term(place) else _UNLIKELY), found


def _factor_missing(
    case: Case, place: Place, known: _Known, factor: Values
) -> Guess | None:
    ratio = common_ratio(factor, known.values)
    scale = None if ratio is None or not varies(factor) else number(ratio)
    if scale is None:
        return None
    lacking = times(scale, known.expr)
    new = apply("mul", place.node, lacking)
    where = _where(case, place)
    if known.expr in [Ref(name) for name in case.claim.instance.upstream]:
        upstream = quoted(known.expr).strip("`")
        told = f"the upstream gradient {upstream} is missing{where}"
        return Guess(told, place, new)
    told = f"the factor {quoted(lacking)} is missing{where}{known.of}"
    return Guess(told, place, new)


def _factor_left_over(
    case: Case, place: Place, known: _Known, factor: Values
) -> Guess | None:
    ratio = common_ratio(factor, reciprocals(known.values))
    if ratio is None or not varies(factor) or number(ratio) != ONE:
        return None
    shown, new = quoted(known.expr), apply("div", place.node, known.expr)
    if _is_factor(known.expr, case, place):
        told = f"{quoted(place.node)} is multiplied by {shown} once too often"
        return Guess(told, place, new)
    told = f"the division by {shown} is missing{_where(case, place)}"
    return Guess(told, place, new)


def _where(case: Case, place: Place) -> str:
    return "" if place is case.places[0] else f" in {quoted(place.node)}"


def _is_factor(expr: Expr, case: Case, place: Place) -> bool:
    text = case.texts[place.within]
    return any(
        node.op == "mul" and expr in node.args
        for node in nodes(text)
        if isinstance(node, Apply)
    )


def _term_missing(place: Place, known: _Known, term: Values) -> Guess | None:
    ratio = common_ratio(term, known.values)
    scale = None if ratio is None else number(ratio)
    if scale is None or size(place.node) > _LARGEST:
        return None
    lacking = tidy(times(scale, known.expr))
    new = plus(place.node, lacking)
    if _is_term(place):
        told = f"the term {quoted(lacking)} is missing{known.of}"
        return Guess(told, place, new)
    return Guess(f"{quoted(place.node)} should be {quoted(new)}", place, new)


def _is_term(place: Place) -> bool:
    match place.parent:
        case None | Apply(op="add" | "sub"):
            return True
        case _:
            return False


# --- what may be missing -------------------------------------------------------------


def _pool(case: Case) -> Iterator[_Known]:
    """Names, then parts of the formulas at hand, then what formulas are often made of;
    short ones first."""
    seen: dict[Expr, str] = {}
    for expr, of in (*_contributions(case), *_of_names(case), *_parts(case)):
        if expr != ZERO and size(expr) <= _LARGEST:
            seen.setdefault(expr, of)
    ordered = sorted(seen, key=size)[:_MOST_KNOWN]
    for expr in ordered:
        values = evaluate(expr, case.scene.points)
        if any(value is not None for value in values):
            yield _Known(expr, values, seen[expr])


def _of_names(case: Case) -> Iterator[tuple[Expr, str]]:
    yield ONE, ""
    for name in case.names:
        yield Ref(name), ""
    for variable in case.rule.tensor_inputs:
        if variable.name in case.names:
            ref = Ref(variable.name)
            for power in (2, 3):
                yield apply("pow", ref, Const(Fraction(power))), ""
            for scale in (1, 2, 3, -1):
                arg = tidy(apply("mul", Const(Fraction(scale)), ref))
                yield apply("exp", arg), ""


def _parts(case: Case) -> Iterator[tuple[Expr, str]]:
    texts = (case.claim.derived, *case.claim.instance.forward.values())
    for text in (*texts, *case.texts.values()):
        for node in nodes(text):
            if is_short(node) and names(node) and _is_number(node):
                yield node, ""


def _is_number(node: Expr) -> bool:
    match node:
        case Apply(op=op):
            return primitive(op).result == "real"
        case Select(then=then):
            return _is_number(then)
        case _:
            return isinstance(node, Ref)


def _inner_derivatives(case: Case) -> Iterator[_Known]:
    """The derivatives of the parts of the forward by the input."""
    name = case.claim.input.name
    for text in case.claim.instance.forward.values():
        for node in nodes(text) if is_short(text) else ():
            if name not in names(node) or isinstance(node, Ref) or node == text:
                continue
            derivative = _derivative(node, name)
            if derivative is not None and names(derivative):
                values = evaluate(derivative, case.scene.points)
                yield _Known(derivative, values, f", the derivative of {quoted(node)}")


def _derivative(expr: Expr, name: str) -> Expr | None:
    try:
        lets = (Let("f", (), expr),)
        return tidy(vjps(lets, (), {"f": ONE}, (name,))[name])
    except Underivable:
        return None


def _contributions(case: Case) -> Iterator[tuple[Expr, str]]:
    """The gradient through one of several places at which the forward uses the input:
    a term of the product rule."""
    name = case.claim.input.name
    for output, text in case.claim.instance.backward_path().items():
        marked, marks = _marked(text, name)
        if f"d{output}" not in case.claim.instance.upstream or len(marks) < 2:
            continue
        back: dict[str, Expr] = {mark: Ref(name) for mark in marks}
        for mark in marks:
            slope = _derivative(marked, mark)
            if slope is not None:
                whole = times(Ref(f"d{output}"), substitute(slope, back))
                yield tidy(whole), ""


def _marked(text: Expr, name: str) -> tuple[Expr, list[str]]:
    """Each occurrence of a name (of a tree) with a name of its own."""
    marks: list[str] = []
    if sum(1 for _ in nodes(text)) > 60:
        return text, marks

    def walk(node: Expr) -> Expr:
        if node == Ref(name):
            marks.append(f"{name}#{len(marks)}")
            return Ref(marks[-1])
        if len(marks) > 12:
            return node
        return with_children(node, tuple(walk(child) for child in children(node)))

    return walk(text), marks
