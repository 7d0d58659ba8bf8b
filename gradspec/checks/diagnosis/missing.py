"""Hypotheses on parts missing from a declared cotangent, and on a mistaken forward."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations

from gradspec.checks.diagnosis.phrases import bare, number_text, quoted
from gradspec.checks.diagnosis.places import (
    Forms,
    Guess,
    Instead,
    Place,
    Scene,
    View,
    everywhere,
    is_at_hand,
    is_short,
    plain,
)
from gradspec.checks.instances import Instance
from gradspec.derive.build import plus, times
from gradspec.derive.chain import Underivable
from gradspec.derive.vjp import vjps
from gradspec.ir.expr import (
    ONE,
    ZERO,
    Apply,
    Expr,
    Idx,
    Reduce,
    Ref,
    Select,
    Size,
    apply,
    const,
)
from gradspec.ir.rule import Let
from gradspec.ir.text import show
from gradspec.ir.tidy import tidy
from gradspec.ir.unroll import axis_names, unroll
from gradspec.ir.walk import names, nodes, size, substitute, transform
from gradspec.primitives.formula import formula
from gradspec.primitives.lookup import primitive
from gradspec.symbolic.recognise import (
    Rough,
    Values,
    common_ratio,
    differences,
    may_be_proportional,
    narrow,
    number,
    quotients,
    reciprocals,
    rough,
    varies,
)

_MOST_KNOWN = 120
_LARGEST = 40  # nodes of something that is said to be missing
_UNLIKELY = 6
"""Nodes added to the rank of a term missing inside a product, which is less likely."""


@dataclass(frozen=True, eq=False)
class _Known:
    """An expression that may be missing, with its values; ``of`` describes it."""

    expr: Expr
    values: Values
    of: str = ""

    @cached_property
    def rough(self) -> Rough:
        return rough(self.values)

    @cached_property
    def inverse(self) -> Rough:
        return tuple(None if value is None else 1 / value for value in self.rough)


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
                yield Guess(f"{told} {quoted(place.node)}", place, new)


def contribution(scene: Scene) -> Iterator[Guess]:
    """A term of the derivative: one of the places where the input is used."""
    for term in () if scene.derived is None else _terms(scene.derived.value):
        if is_at_hand(term, scene.root.indices):
            told = f"the term {quoted(term)} is missing"
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
    """A missing factor or term; of several explanations the shortest first."""
    found: list[tuple[int, int, Guess]] = []
    pools: dict[str, tuple[_Known, ...]] = {}
    for turn, place in enumerate(scene.places):
        if place.around is not None or not names(place.node) or not place.is_short:
            continue
        if place.within not in pools:
            pools[place.within] = tuple(_pool(scene, place))
        worst = min((rank for rank, _, _ in found), default=_LARGEST) + _UNLIKELY
        some = _lacking(scene, place, pools[place.within], worst)
        found += ((rank, turn, guess) for rank, guess in some)
    yield from (guess for _, _, guess in sorted(found, key=lambda one: one[:2]))


def _lacking(
    scene: Scene, place: Place, pool: tuple[_Known, ...], worst: int
) -> Iterator[tuple[int, Guess]]:
    """Corrections that a place may need, with ranks: a missing name is likelier than a
    missing formula."""
    factor = quotients(place.meant, place.now)
    term = differences(place.meant, place.now)
    rough_factor, rough_term = rough(factor), rough(term)
    for known in pool:
        rank = size(known.expr)
        if rank > worst:
            return
        found = None
        if may_be_proportional(rough_factor, known.rough):
            found = _factor_missing(scene, place, known, factor)
        elif may_be_proportional(rough_factor, known.inverse):
            found = _factor_left_over(scene, place, known, factor)
        if found is not None:
            yield rank, found
        if may_be_proportional(rough_term, known.rough):
            found = _term_missing(place, known, term)
            if found is not None:
                yield rank + (1 if _is_term(place) else _UNLIKELY), found


def _factor_missing(
    scene: Scene, place: Place, known: _Known, factor: Values
) -> Guess | None:
    ratio = common_ratio(factor, known.values)
    scale = None if ratio is None or not varies(factor) else number(ratio)
    if scale is None:
        return None
    lacking = times(scale, known.expr)
    new, where = apply("mul", place.node, lacking), _where(scene, place)
    if isinstance(known.expr, Ref) and known.expr.name in scene.upstream:
        told = f"the upstream gradient {bare(known.expr)} is missing{where}"
        return Guess(told, place, new)
    told = f"the factor {quoted(lacking)} is missing{where}{known.of}"
    return Guess(told, place, new)


def _factor_left_over(
    scene: Scene, place: Place, known: _Known, factor: Values
) -> Guess | None:
    ratio = common_ratio(factor, reciprocals(known.values))
    if ratio is None or not varies(factor) or number(ratio) != ONE:
        return None
    told = _divided(scene, known.expr, place, _where(scene, place))
    return Guess(told, place, apply("div", place.node, known.expr))


def _divided(scene: Scene, by: Expr, place: Place, where: str) -> str:
    is_factor = any(
        node.op == "mul" and by in node.args
        for node in nodes(scene.texts[place.within].value)
        if isinstance(node, Apply)
    )
    if is_factor:
        return f"{quoted(place.node)} is multiplied by {quoted(by)} once too often"
    return f"the division by {quoted(by)} is missing{where}"


def _where(scene: Scene, place: Place) -> str:
    return "" if place is scene.root else f" in {quoted(place.node)}"


def _term_missing(place: Place, known: _Known, term: Values) -> Guess | None:
    ratio = common_ratio(term, known.values)
    scale = None if ratio is None else number(ratio)
    if scale is None or size(place.node) > _LARGEST:
        return None
    lacking = tidy(times(scale, known.expr))
    new = plus(place.node, lacking)
    told = f"the term {quoted(lacking)} is missing{known.of}"
    if not _is_term(place):
        told = f"{told}: {quoted(place.node)} should be {quoted(new)}"
    return Guess(told, place, new)


def _is_term(place: Place) -> bool:
    match place.parent:
        case None | Apply(op="add" | "sub"):
            return True
        case _:
            return False


def _pool(scene: Scene, place: Place) -> Iterator[_Known]:
    """Names, then parts of the available formulas, then common subformulas; short ones
    first."""
    seen: dict[Expr, str] = {}
    for expr, of in (
        *slopes(scene, place),
        *_of_names(scene, place),
        *_parts(scene, place),
    ):
        if expr != ZERO and size(expr) <= _LARGEST:
            seen.setdefault(expr, of)
    ordered = sorted(seen, key=size)[:_MOST_KNOWN]
    for expr, column in zip(ordered, place.rows.columns(*ordered), strict=True):
        values = tuple(map(narrow, column))
        if any(value is not None for value in values):
            yield _Known(expr, values, seen[expr])


def slopes(scene: Scene, place: Place) -> Iterator[tuple[Expr, str]]:
    """The derivatives of the parts of the forward by the input."""
    for text in scene.closed if place.within == scene.text.name else ():
        for node in nodes(text.value) if is_short(text.value) else ():
            found = [n for n in nodes(node) if isinstance(n, Ref)]
            refs = {ref for ref in found if ref.name == scene.input}
            if len(refs) == 1 and node not in refs and node != text.value:
                slope = _slope(node, *refs)
                here = None if slope is None else scene.at_hand(slope, text)
                if here is not None and names(here):
                    yield here, f", the derivative of {quoted(node)}"


def _slope(expr: Expr, by: Ref) -> Expr | None:
    """The derivative of an expression without reductions by one of its references."""
    atoms: dict[str, Expr] = {}

    def as_atom(node: Expr) -> Expr:
        if not isinstance(node, Ref) or not node.indices:
            return node
        atoms[show(node)] = node
        return Ref(show(node))

    if any(isinstance(node, Reduce) for node in nodes(expr)):
        return None
    try:
        lets = (Let("%", (), transform(expr, as_atom)),)
        found = vjps(lets, (), {"%": ONE}, (show(by),))[show(by)]
    except Underivable:
        return None
    return tidy(substitute(found, atoms))


def _of_names(scene: Scene, place: Place) -> Iterator[tuple[Expr, str]]:
    yield ONE, ""
    yield from ((Size(axis), "") for axis in axis_names(scene.rule))
    tensors = {variable.name for variable in scene.rule.tensor_inputs}
    for ref in scene.refs(place.indices):
        yield ref, ""
        if ref.name in tensors:
            for power in (2, 3):
                yield apply("pow", ref, const(power)), ""
            for scale in (1, 2, 3, -1):
                yield apply("exp", tidy(apply("mul", const(scale), ref))), ""


def _parts(scene: Scene, place: Place) -> Iterator[tuple[Expr, str]]:
    """Parts of the derivative and of the texts, and the derivatives of their parts."""
    derived = scene.derived
    axes = scene.axes[scene.input]
    found = (
        [] if derived is None else [Let("", derived.indices, derived.value, axes=axes)]
    )
    for text in (*found, *scene.closed, *scene.texts.values()):
        for node in nodes(text.value):
            if is_short(node) and names(node) and is_number(node):
                here = scene.at_hand(node, text, place.indices)
                if here is not None:
                    yield here, ""


def is_number(node: Expr) -> bool:
    match node:
        case Apply(op=op):
            return primitive(op).result == "real"
        case Select(then=then):
            return is_number(then)
        case _:
            return not isinstance(node, Idx)


def missing_inside(scene: Scene, place: Place) -> Forms:
    """A value or a size missing as a factor of a summand."""
    if place.around is None or not isinstance(place.parent, Reduce | Apply):
        return
    if isinstance(place.parent, Apply) and place.parent.op not in ("add", "sub"):
        return
    where = f" in {quoted(place.node)}"
    sizes: Iterator[Expr] = map(Size, axis_names(scene.rule))
    values: Iterator[Expr] = scene.refs(place.indices)
    for factor in (*values, *sizes, const(2)):
        told = f"the factor {quoted(factor)} is missing{where}"
        yield told, apply("mul", place.node, factor)
        yield _divided(scene, factor, place, where), apply("div", place.node, factor)


# --- the forward -------------------------------------------------------------------------


FAMILIES: tuple[tuple[tuple[str, str], ...], ...] = (
    (
        ("exact form", "0.5 * (1 + erf(x / sqrt(2)))"),
        (
            "tanh approximation",
            "0.5 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))",
        ),
        ("sigmoid approximation", "sigmoid(1.702 * x)"),
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
"""Functions that are often confused, as formulas of ``x``."""


def relative(scene: Scene) -> Iterator[Guess]:
    """The gradient of a near relative of the forward: an approximation in place of the
    exact form, another base of a logarithm, a clamp that is only in the forward."""
    for let in () if scene.rule.surrogates else scene.rule.forward:
        for node in nodes(let.value) if is_short(let.value) else ():
            if names(node):
                forms = (*_unclamped(node), *_turned(node), *_kin(scene, let, node))
                for told, new in forms:
                    changed = replace(let, value=everywhere(let.value, node, new))
                    yield Guess(told, instead=_with_forward(scene, changed))


_DERIVATION = 2_000
"""Operations that cost as much as deriving the gradients of a changed forward."""

_UNDEFINED = apply("div", ZERO, ZERO)


def _with_forward(scene: Scene, changed: Let) -> Instead:
    """The derivative of the rule with one line of its forward changed."""
    lets = tuple(changed if t.name == changed.name else t for t in scene.rule.forward)
    rule = replace(scene.rule, forward=lets)
    known: dict[Instance, Mapping[str, Expr]] = {}

    def instead(view: View) -> Expr:
        here = view.instance
        if here not in known:
            scene.effort.spend(_DERIVATION)
            made = unroll(rule, here.sizes, here.integers)
            known[here] = Instance(rule, made.rule, here.sizes, here.integers).derived
        return known[here].get(view.of(scene.input), _UNDEFINED)

    return instead


def _unclamped(node: Expr) -> Forms:
    told = f"the forward has {quoted(node)}, but the gradient goes through as if"
    match node:
        case Apply(op=op, args=args) if primitive(op).is_piecewise:
            for arg in args[:2]:
                if names(arg):
                    yield f"{told} it were {quoted(arg)}", arg
        case Select(then=then, other=other):
            for branch in (then, other):
                if names(branch):
                    yield f"{told} it were {quoted(branch)}", branch
        case _:
            return


def _turned(node: Expr) -> Forms:
    match node:
        case Apply(op=op, args=(arg,)):
            for other in primitive(op).mistaken:
                new = apply(other, arg)
                yield _in_place(new, node), new
        case Apply(op="pow" | "sub" | "div" | "atan2" as op, args=(left, right)):
            new = apply(op, right, left)
            yield _in_place(new, node), new
        case _:
            return


def _in_place(new: Expr, node: Expr) -> str:
    return f"it is the derivative with {quoted(new)} in the place of {quoted(node)}"


def _kin(scene: Scene, let: Let, node: Expr) -> Forms:
    """Other members of the family of a node, of a name or of a product."""
    here = scene.at_hand(plain(node), let)
    if here is None or isinstance(node, Ref):
        return
    held = scene.rows.values(here)
    if not varies(held):
        return
    for argument in _arguments(scene, node):
        for family in _families():
            members = [(n, substitute(form, {"x": argument})) for n, form in family]
            forms = [scene.at_hand(form, let) for _, form in members]
            known = [f is not None and scene.rows.fits(held, f) for f in forms]
            if True not in known:
                continue
            own = members[known.index(True)][0]
            for name, form in members:
                if name != own:
                    yield f"it is the derivative of the {name}, not of the {own}", form


def _arguments(scene: Scene, node: Expr) -> Iterator[Expr]:
    """Possible arguments of the function: a name in ``node``, or a product of two."""
    refs = [n for n in nodes(node) if isinstance(n, Ref)][:4]
    yield from refs
    for one, two in combinations(refs, 2):
        yield tidy(apply("mul", one, two))


@lru_cache(maxsize=1)
def _families() -> tuple[tuple[tuple[str, Expr], ...], ...]:
    """Each family, also twice as large: `0.5 * x * (1 + erf(…))` has only `1 +
    erf(…)`."""
    single = [[(name, formula(text)) for name, text in family] for family in FAMILIES]
    double = [
        [(name, tidy(apply("mul", const(2), form))) for name, form in family]
        for family in single
    ]
    return tuple(tuple(family) for family in (*single, *double))
