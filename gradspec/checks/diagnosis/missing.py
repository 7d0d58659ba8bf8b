"""Hypotheses on parts missing from a declared cotangent, and on a mistaken forward."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import combinations, groupby, product

from gradspec.checks.diagnosis.places import (
    Forms,
    Guess,
    Instead,
    Place,
    Scene,
    View,
    bare,
    everywhere,
    is_at_hand,
    is_number,
    is_short,
    number_text,
    plain,
    quotation,
)
from gradspec.checks.instances import Instance
from gradspec.derive.chain import plus, times
from gradspec.ir.expr import (
    ONE,
    ZERO,
    Apply,
    Expr,
    Reduce,
    Ref,
    Select,
    Size,
    apply,
    const,
)
from gradspec.ir.rule import Definition
from gradspec.ir.tidy import tidy
from gradspec.ir.unroll import axis_names, unroll
from gradspec.ir.walk import names, nodes, size, substitute
from gradspec.primitives.lookup import formula, primitive
from gradspec.symbolic.recognise import (
    Values,
    common_ratio,
    narrow,
    number,
    varies,
)

_MOST_KNOWN = 120
_LARGEST = 40  # nodes of something that is said to be missing
_FURTHER = 6
"""Nodes by which other explanations may be longer than the shortest."""


def numeric_factor(scene: Scene) -> Iterator[Guess]:
    """A term that lacks a number as a factor."""
    usual = {v.default for v in scene.rule.static_inputs if v.default}
    # A factor of the size of a static is the static.
    statics = {const(n) for v in usual for n in (v, -v, 1 / v, -1 / v)}
    for place in scene.places[1:]:
        if place.around is None and names(place.node):
            ratio = common_ratio(place.meant, place.now)
            value = None if ratio is None else number(ratio)
            if value is not None and value != ONE and value not in statics:
                told = f"the factor {number_text(value)} is missing in"
                new = apply("mul", value, place.node)
                yield Guess(f"{told} {quotation(place.node)}", place, new)


def contribution(scene: Scene) -> Iterator[Guess]:
    """A term of the derivative: one of the places where the input is used."""
    for term in _terms(scene.derived.value):
        if is_at_hand(term, scene.derived, scene.root.indices):
            told = f"the term {quotation(term)} is missing"
            yield Guess(told, scene.root, plus(scene.root.node, term))


def _terms(expr: Expr) -> tuple[Expr, ...]:
    """The terms of a sum, products with sums multiplied out."""
    match expr:
        case Apply(op="add", args=(left, right)):
            return (*_terms(left), *_terms(right))
        case Apply(op="sub", args=(left, right)):
            return (*_terms(left), *(tidy(apply("neg", t)) for t in _terms(right)))
        case Apply(op="mul", args=(left, right)):
            return tuple(times(a, b) for a in _terms(left) for b in _terms(right))
        case _:
            return (expr,)


def missing(scene: Scene) -> Iterator[Guess]:
    """A missing factor or term, the shortest first: a missing name is likelier than a
    missing formula. Terms missing inside a product are less likely than all others."""
    places = [p for p in scene.places if p.around is None and p.is_short]
    places = [place for place in places if names(place.node)]
    pool = _pool(scene.root) if places else iter(())
    limit, last = _LARGEST, list[Guess]()
    for length, group in groupby(pool, key=lambda known: size(known[0])):
        if length > limit:
            break
        for place, (expr, values) in product(places, tuple(group)):
            factor = _factor_missing(place, expr, values)
            term = _term_missing(place, expr, values) if factor is None else None
            if term is not None and not _is_term(place):
                last.append(term)
            elif factor is not None or term is not None:
                limit = min(limit, length + _FURTHER)
                yield from filter(None, (factor, term))
    yield from last


def _scale(tops: Values, bottoms: Values) -> Expr | None:
    ratio = common_ratio(tops, bottoms)
    return None if ratio is None else number(ratio)


def _is_term(place: Place) -> bool:
    return place.parent is None or _is_sum(place.parent)


def _is_sum(node: Expr | None) -> bool:
    return isinstance(node, Apply) and node.op in ("add", "sub")


def _factor_missing(place: Place, expr: Expr, values: Values) -> Guess | None:
    scale = _scale(place.factor, values) if varies(place.factor) else None
    if scale is None:
        if not varies(place.factor) or _scale(place.inverse, values) != ONE:
            return None
        return Guess(
            _missing_division(expr, place), place, apply("div", place.node, expr)
        )
    lacking = times(scale, expr)
    what, shown = "factor", quotation(lacking)
    if isinstance(lacking, Ref) and lacking.name in place.scene.upstream:
        what, shown = "upstream gradient", bare(lacking)
    told = f"the {what} {shown} is missing{_where(place)}"
    return Guess(told, place, apply("mul", place.node, lacking))


def _term_missing(place: Place, expr: Expr, values: Values) -> Guess | None:
    scale = _scale(place.term, values) if size(place.node) <= _LARGEST else None
    if scale is None:
        return None
    lacking = tidy(times(scale, expr))
    new = plus(place.node, lacking)
    told = f"the term {quotation(lacking)} is missing"
    if not _is_term(place):
        told = f"{told}: {quotation(place.node)} should be {quotation(new)}"
    return Guess(told, place, new)


def _missing_division(by: Expr, place: Place) -> str:
    is_factor = any(
        node.op == "mul" and by in node.args
        for node in nodes(place.scene.texts[place.within].value)
        if isinstance(node, Apply)
    )
    if is_factor:
        return (
            f"{quotation(place.node)} is multiplied by {quotation(by)} once too often"
        )
    return f"the division by {quotation(by)} is missing{_where(place)}"


def _where(place: Place) -> str:
    return "" if place is place.scene.root else f" in {quotation(place.node)}"


def _pool(place: Place) -> Iterator[tuple[Expr, Values]]:
    """Names, then parts of the available formulas, then common subformulas; short ones
    first."""
    every = (*_of_names(place), *_parts(place))
    short = (e for e in dict.fromkeys(every) if e != ZERO and size(e) <= _LARGEST)
    ordered = sorted(short, key=size)[:_MOST_KNOWN]
    for expr, column in zip(ordered, place.scene.columns(*ordered), strict=True):
        values = tuple(map(narrow, column))
        if any(value is not None for value in values):
            yield expr, values


def _of_names(place: Place) -> Iterator[Expr]:
    yield ONE
    yield from map(Size, axis_names(place.scene.rule))
    tensors = {variable.name for variable in place.scene.rule.tensor_inputs}
    for ref in place.refs:
        yield ref
        if ref.name in tensors:
            yield from (apply("pow", ref, const(power)) for power in (2, 3))
            for scale in (1, 2, 3, -1):
                yield apply("exp", tidy(apply("mul", const(scale), ref)))


def _parts(place: Place) -> Iterator[Expr]:
    """Parts of the derivative and of the texts."""
    for text in (place.scene.derived, *place.scene.texts.values()):
        for node in nodes(text.value):
            is_part = is_short(node) and names(node) and is_number(node)
            if is_part and is_at_hand(node, text, place.indices):
                yield node


def missing_inside(place: Place) -> Forms:
    """A value or a size missing as a factor of a summand."""
    parent = place.parent
    if place.around is None or not (isinstance(parent, Reduce) or _is_sum(parent)):
        return
    sizes: Iterator[Expr] = map(Size, axis_names(place.scene.rule))
    values: Iterator[Expr] = place.refs
    for factor in (*values, *sizes, const(2)):
        told = f"the factor {quotation(factor)} is missing in {quotation(place.node)}"
        yield told, apply("mul", place.node, factor)
        yield _missing_division(factor, place), apply("div", place.node, factor)


# --- the forward -------------------------------------------------------------------------


FAMILIES: tuple[tuple[tuple[str, str], ...], ...] = (
    (
        ("exact form", "1 + erf(x / sqrt(2))"),
        ("tanh approximation", "1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))"),
        ("sigmoid approximation", "2 * sigmoid(1.702 * x)"),
    ),
    (
        ("smooth form", "sigmoid(x)"),
        ("hard form", "clip(x / 6 + 0.5, 0, 1)"),
        ("hard form", "clip(0.2 * x + 0.5, 0, 1)"),
    ),
    (
        ("smooth form", "tanh(x)"),
        ("hard form", "clip(x, -1, 1)"),
        ("algebraic form", "x / (1 + abs(x))"),
    ),
    (("smooth form", "softplus(x)"), ("hard form", "max(x, 0)")),
)
"""Functions that are often confused, as formulas of ``x``: a name of the forward or the
product of two."""

_MOST_NAMES = 4


def relative(scene: Scene) -> Iterator[Guess]:
    """The gradient of a near relative of the forward: an approximation in place of the
    exact form, another base of a logarithm, a clamp that is only in the forward."""
    for let in () if scene.rule.surrogates else scene.rule.forward:
        for node in nodes(let.value) if is_short(let.value) else ():
            if names(node):
                forms = (
                    *_unclamped_forms(node),
                    *_similar_calls(node),
                    *_kin(scene, let, node),
                )
                for told, new in forms:
                    changed = replace(let, value=everywhere(let.value, node, new))
                    yield Guess(told, instead=_with_forward(scene, changed))


_DERIVATION = 2_000
"""Operations that cost as much as deriving the gradients of a changed forward."""

_UNDEFINED = apply("div", ZERO, ZERO)


def _with_forward(scene: Scene, changed: Definition) -> Instead:
    """The derivative of the rule with one line of its forward changed."""
    rule = scene.rule.redefine(changed)

    @cache
    def derive_at(here: Instance) -> Mapping[str, Expr]:
        scene.spend(_DERIVATION)
        made = unroll(rule, here.sizes, here.integers)
        return Instance(rule, made.rule, here.sizes, here.integers).derived

    def instead(view: View) -> Expr:
        return derive_at(view.instance).get(view.of(scene.input), _UNDEFINED)

    return instead


def _unclamped_forms(node: Expr) -> Forms:
    told = f"the forward has {quotation(node)}, but the gradient goes through as if"
    branches = (
        (node.then, node.other) if isinstance(node, Select) else clamp_operands(node)
    )
    for part in branches:
        if names(part):
            yield f"{told} it were {quotation(part)}", part


def clamp_operands(node: Expr) -> tuple[Expr, ...]:
    """The operands that a piecewise primitive may give."""
    is_piecewise = isinstance(node, Apply) and primitive(node.op).is_piecewise
    return node.args[:2] if isinstance(node, Apply) and is_piecewise else ()


def _similar_calls(node: Expr) -> Forms:
    forms: list[Expr] = []
    match node:
        case Apply(op=op, args=(arg,)):
            forms += (apply(other, arg) for other in primitive(op).mistaken)
        case Apply(op="pow" | "sub" | "div" | "atan2" as op, args=(left, right)):
            forms.append(apply(op, right, left))
    for new in forms:
        told = f"it is the derivative with {quotation(new)} in the place of {quotation(node)}"
        yield told, new


def _kin(scene: Scene, let: Definition, node: Expr) -> Forms:
    """Other members of the family of a node, which may be a member times a number."""
    here, indices = plain(node), scene.root.indices
    if isinstance(node, Ref) or not is_at_hand(here, let, indices):
        return
    held = scene.values(here)
    refs = [n for n in nodes(here) if isinstance(n, Ref)]
    refs = [ref for ref in refs if is_at_hand(ref, let, indices)][:_MOST_NAMES]
    products = (tidy(apply("mul", *two)) for two in combinations(refs, 2))
    for argument in (*refs, *products) if varies(held) else ():
        for family in FAMILIES:
            members = [(n, substitute(formula(t), {"x": argument})) for n, t in family]
            ratios = (common_ratio(held, scene.values(f)) for _, f in members)
            known = ((k, number(r)) for k, r in enumerate(ratios) if r is not None)
            own, scale = next(known, (0, None))
            for name, form in members:
                if scale is not None and name != members[own][0]:
                    told = f"it is the derivative of the {name}, not of the"
                    yield f"{told} {members[own][0]}", times(scale, form)
