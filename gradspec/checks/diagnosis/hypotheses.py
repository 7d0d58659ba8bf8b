"""Hypotheses on what is wrong with a declared cotangent, in one table, and their search.

Each takes the scene (a rule's instances, what is declared, what the derivative is
there) and gives guesses: a part of the text with what should stand in its place, or
what the cotangent is in place of the derivative. A guess that holds at every point of
every instance is reported.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from functools import cache, partial
from itertools import combinations, islice, product
from typing import TypeAlias

from gradspec.checks.diagnosis.missing import (
    clamp_operands,
    contribution,
    missing,
    missing_inside,
    numeric_factor,
    relative,
)
from gradspec.checks.diagnosis.places import (
    Exhausted,
    Forms,
    Guess,
    Place,
    Scene,
    View,
    bare,
    everywhere,
    is_at_hand,
    is_number,
    is_short,
    number_text,
    quotation,
)
from gradspec.checks.evidence import Claim, at_several_places
from gradspec.checks.instances import Instance, Point, stem
from gradspec.derive.scopes import replace_indices
from gradspec.ir.elements import OutOfRange, element
from gradspec.ir.expr import (
    ONE,
    ZERO,
    Apply,
    Const,
    Expr,
    Idx,
    Reduce,
    Ref,
    Select,
    Size,
    apply,
    show,
)
from gradspec.ir.recurrence import NotEarlier
from gradspec.ir.rule import Kind
from gradspec.ir.tidy import fold, tidy
from gradspec.ir.unroll import axis_names
from gradspec.ir.walk import children, names, nodes, substitute, transform
from gradspec.primitives.balls import truth
from gradspec.primitives.lookup import formula, is_function, rows
from gradspec.symbolic.borders.bounds import RELATIONS
from gradspec.symbolic.borders.limits import borders_at, on_border
from gradspec.symbolic.compare import decimal
from gradspec.symbolic.recognise import combine_rows, common_ratio, number, same, varies

Hypothesis: TypeAlias = Callable[[Scene], Iterator[Guess]]

# --- the whole ---------------------------------------------------------------------------


def upstream(scene: Scene) -> Iterator[Guess]:
    """An upstream gradient that does not occur."""
    views, name = scene.views, scene.input
    declared = _variables(view.instance.stated[view.of(name)] for view in views)
    needed = _variables(view.instance.derived[view.of(name)] for view in views)
    absent = [name for name in scene.upstream if name not in declared]
    missed = [name for name in absent if name in needed]
    if scene.entry.value == ZERO or not missed:
        return
    if len(absent) < len(scene.upstream):
        outputs = ", ".join(name.removeprefix("d") for name in missed)
        told = f"the contribution of {outputs} is missing"
        yield Guess(told, instead=partial(_without, name, frozenset(missed)))
        return
    for ref in scene.root.refs:
        if ref.name in missed and len(absent) == 1:
            told = (
                f"the upstream gradient {ref.name} is missing: multiply by {bare(ref)}"
            )
            yield Guess(told, scene.root, apply("mul", ref, scene.root.node))
    yield Guess(f"it does not use the upstream gradient {' or '.join(absent)}")


def _variables(exprs: Iterable[Expr]) -> frozenset[str]:
    return frozenset(stem(name) for expr in exprs for name in names(expr))


def _without(name: str, gone: frozenset[str], view: View) -> Expr:
    derived = view.instance.derived[view.of(name)]
    zero: dict[str, Expr] = {n: ZERO for n in names(derived) if stem(n) in gone}
    return substitute(derived, zero)


def vanishing(scene: Scene) -> Iterator[Guess]:
    yield Guess("it is always 0", instead=lambda view: ZERO)


_SIMPLE = 12
"""Largest product of numerator and denominator of a factor that is easily forgotten."""


def simple_factor(scene: Scene) -> Iterator[Guess]:
    """Times -1, 2, 1/2 and the like, or a size."""
    return _factor(scene, _SIMPLE)


def any_factor(scene: Scene) -> Iterator[Guess]:
    """Times any number, with its name if it has one."""
    return _factor(scene, 0)


def _factor(scene: Scene, most: int) -> Iterator[Guess]:
    """Times a number, and times or divided by one or two sizes."""
    axes = axis_names(scene.rule)
    for some in ((), *((axis,) for axis in axes), *combinations(axes, 2)):
        sizes = " * ".join(some)
        for is_divided in (False, True) if some else (False,):
            tops, bottoms = scene.root.now, scene.root.meant
            for axis in some:
                column = scene.values(Size(axis))
                if is_divided:
                    tops = combine_rows(operator.mul, tops, column)
                else:
                    bottoms = combine_rows(operator.mul, bottoms, column)
            scale = common_ratio(tops, bottoms)
            value = None if scale is None else number(scale)
            if scale is None or (most and not _is_simple(value, most)):
                continue
            text = decimal(scale, 17) if value is None else number_text(value)
            yield Guess(_factor_told(text, sizes, is_divided))


def _factor_told(text: str, sizes: str, is_divided: bool) -> str:
    shown = f"({sizes})" if "*" in sizes else sizes
    if not sizes:
        is_sign = text == "-1"
        said = f"it is {text} times the derivative everywhere"
        return "its sign is wrong everywhere" if is_sign else said
    if is_divided:
        said = f"it is {text} / {shown} times the derivative"
        return f"it is the derivative divided by {shown}" if text == "1" else said
    times = sizes if text == "1" else f"{text} * {sizes}"
    by = f"({times})" if "*" in times else times
    return f"it is {times} times the derivative: divide by {by}"


def _is_simple(value: Expr | None, most: int) -> bool:
    if not isinstance(value, Const):
        return False
    return abs(value.value.numerator * value.value.denominator) <= most


def other_element(scene: Scene) -> Iterator[Guess]:
    """The derivative by another input of the same shape, or with its two indices
    exchanged."""
    own = scene.axes[scene.input]
    for other in scene.rule.inputs:
        name = other.name
        if other.takes_gradient and scene.axes[name] == own and name != scene.input:
            told = f"it is the derivative by {name}, not by {scene.input}"
            yield Guess(told, instead=partial(_element, name, 1))
    if len(own) == 2 and own[0] == own[1]:
        exchanged = partial(_element, scene.input, -1)
        yield Guess("its two indices are exchanged", instead=exchanged)


def _element(name: str, step: int, view: View) -> Expr:
    return view.instance.derived[element(name, view.index[::step])]


def chain_factor(scene: Scene) -> Iterator[Guess]:
    """A factor of the derivative, missing as a whole."""
    derivative = scene.derived.value
    for node in nodes(derivative) if is_short(derivative) else ():
        is_product = isinstance(node, Apply) and node.op == "mul"
        for factor in children(node) if is_product else ():
            is_upstream = isinstance(factor, Ref) and factor.name in scene.upstream
            known = is_at_hand(factor, scene.derived, scene.root.indices)
            if known and not is_upstream:
                told = f"the factor {quotation(factor)} is missing"
                yield Guess(told, scene.root, apply("mul", scene.root.node, factor))


# --- sums over indices -------------------------------------------------------------------


def sums(place: Place) -> Forms:
    """A sum too many, over the wrong index, of other terms, or in the wrong order."""
    match place.node:
        case Reduce(op="sum" | "mean", bounds=(bound,), body=body, where=None):
            for index, axis in place.indices.items():
                if axis == bound.axis:
                    one = replace_indices(body, {bound.index: Idx(index)})
                    shown = f"{quotation(place.node)} should be {quotation(one)}"
                    yield f"{shown}: nothing is summed", one
        case Apply(
            op="mul",
            args=(
                Reduce("sum", (bound,), left, None),
                Reduce("sum", (other,), right, None),
            ),
        ) if bound.axis == other.axis:
            inner = replace_indices(right, {other.index: Idx(bound.index)})
            joined = Reduce("sum", (bound,), apply("mul", left, inner))
            yield f"the sum of products {quotation(joined)} is meant", joined
        case Ref(name=name, indices=(first, second)):
            told = f"the indices of {quotation(place.node)} are exchanged"
            yield told, Ref(name, (second, first))
        case _:
            return


def reductions(place: Place) -> Forms:
    """A sum for a mean, or the other way round."""
    match place.node:
        case Reduce("sum" | "mean" as op, bounds, body, where):
            other = "mean" if op == "sum" else "sum"
            told = f"{quotation(place.node)} should be a {other}"
            yield told, Reduce(other, bounds, body, where)
        case _:
            return


def one_term(scene: Scene) -> Iterator[Guess]:
    """The derivative with one element in the place of a sum."""
    whole = scene.derived.value
    for node in nodes(whole):
        if not isinstance(node, Reduce) or len(node.bounds) > 1:
            continue
        (bound,), indices = node.bounds, scene.root.indices
        own = [Idx(i) for i, axis in indices.items() if axis == bound.axis]
        every: tuple[Expr, ...] = (*own, ZERO)
        for index in every:
            told = f"of {quotation(node)} only the term with {bound.index} ="
            less = everywhere(
                whole, node, replace_indices(node.body, {bound.index: index})
            )
            instead = partial(View.close, expr=less)
            yield Guess(f"{told} {show(index)} is there", instead=instead)


# --- one part ----------------------------------------------------------------------------


_PLAIN = ("mul", "div", "neg", "pow")
"""Operations whose operands' signs are those of a term, or have no sign."""


def signs(place: Place) -> Forms:
    """The sign of a term, or of an argument."""
    new = fold(apply("neg", place.node))
    match place.parent:
        case Apply(op="add" | "sub"):
            is_negative = isinstance(place.node, Apply) and place.node.op == "neg"
            yield (
                f"the sign of {quotation(new if is_negative else place.node)} is wrong",
                new,
            )
        case Select() if names(place.node):
            yield f"the sign of {quotation(place.node)} is wrong", new
        case Apply(op=op) if op not in _PLAIN and names(place.node):
            yield f"the sign of the argument of {quotation(place.parent)} is wrong", new
        case _:
            return


_SURPLUS = (
    ("a + b", "a", "{b} is one term too many"),
    ("a + b", "b", "{a} is one term too many"),
    ("a - b", "a", "{b} is one term too many"),
    ("a - b", "b", "{a} is one term too many"),
    ("a * b", "a", "{b} is one factor too many"),
    ("a * b", "b", "{a} is one factor too many"),
    ("a / b", "a", "the division by {b} is one too many"),
    ("a if c else b", "b if c else a", "the branches of `… if {C} else …` are swapped"),
)
_OPERATORS = (
    ("a * b", "a / b", "it should divide by {b}, not multiply"),
    ("a * b", "b / a", "it should divide by {a}, not multiply"),
    ("a / b", "a * b", "it should multiply by {b}, not divide"),
    ("a / b", "b / a", "{whole} should be {new}"),
    ("a**b", "b**a", "{whole} should be {new}"),
)
_POWERS = (
    ("a", "square(a)", "{a} should be squared"),
    ("a", "sqrt(a)", "{a} should be {new}"),
    ("a", "1 / a", "{a} should be its reciprocal"),
)
"""A part as it is, as it should be, and the sentence; ``{C}`` has no quotes."""


def _rewritten(table: tuple[tuple[str, str, str], ...], whole: Expr) -> Forms:
    for old, new, sentence in table:
        values = _match(formula(old), whole)
        if values is not None:
            made = substitute(formula(new), values)
            parts = {**values, "whole": whole, "new": made}
            shown = {name: quotation(part) for name, part in parts.items()}
            plain = {name.upper(): bare(part) for name, part in values.items()}
            yield sentence.format(**shown, **plain), made


def _match(pattern: Expr, node: Expr) -> dict[str, Expr] | None:
    """The parts that a pattern names, if the node is one operation like it."""
    match pattern, node:
        case Ref(name=name), _:
            return {name: node}
        case Apply(op=op, args=names), Apply(op=other, args=parts) if op == other:
            return dict(zip(map(show, names), parts, strict=True))
        case Select(), Select(condition=condition, then=then, other=other):
            return {"a": then, "b": other, "c": condition}
        case _:
            return None


def surplus(place: Place) -> Forms:
    """A part that should not be there, or that stands on the wrong side."""
    parts = clamp_operands(place.node)
    for part in parts if len(children(place.node)) == 2 else parts[:1]:
        told = (
            f"the gradient has {quotation(place.node)} where {quotation(part)} is meant"
        )
        yield told, part
    yield from _rewritten(_SURPLUS, place.node)


def operators(place: Place) -> Forms:
    return _rewritten(_OPERATORS, place.node)


def brackets(place: Place) -> Forms:
    """A bracket in the wrong place, or one that is missing: ``(1 - tanh(x))**2`` for
    ``1 - tanh(x)**2``, ``cos(x)**2`` for ``cos(x**2)``."""
    forms: list[Expr] = []
    match place.node:
        case Apply(op=op, args=(Apply(op=inner, args=(left, right)), other)):
            forms.append(apply(inner, left, apply(op, right, other)))
            forms.append(apply(inner, apply(op, left, other), right))
        case Apply(op=op, args=(Apply(op=inner, args=(left, right)),)):
            forms.append(apply(inner, apply(op, left), right))
        case Apply(op=op, args=(Apply(op=inner, args=(left,)), right)):
            forms.append(apply(inner, apply(op, left, right)))
    match place.node:
        case Apply(op=op, args=(left, Apply(op=inner, args=(right, other)))):
            forms.append(apply(inner, apply(op, left, right), other))
    for new in forms:
        yield f"{quotation(place.node)} should be {quotation(new)}", new


def powers(place: Place) -> Forms:
    """A square or a root that is missing, an exponent that is off by one."""
    match place.node:
        case Apply(op="pow", args=(base, exponent)):
            for op in ("sub", "add"):
                shifted = tidy(apply(op, exponent, ONE))
                told = f"the exponent of {quotation(place.node)} should be {quotation(shifted)}"
                yield told, apply("pow", base, shifted)
    yield from _rewritten(_POWERS, place.node)


def name_for_name(place: Place) -> Forms:
    """One name in the place of another."""
    if not isinstance(place.node, Ref) or place is place.scene.root:
        return
    for ref in place.refs if place.around or varies(place.meant) else ():
        if ref != place.node:
            yield f"{quotation(place.node)} should be {quotation(ref)}", ref


@cache
def _functions() -> tuple[str, ...]:
    return tuple(r.name for r in rows() if r.arity == 1 and is_function(r.name))


def functions(place: Place) -> Forms:
    """A function in the place of another one."""
    if not (place.around or varies(place.meant)):
        return
    match place.node:
        case Apply(op=op, args=(arg,)) if op != "neg":
            pass
        case Ref() as arg:
            pass
        case _:
            return
    for op in _functions():
        form = apply(op, arg)
        if form != place.node:
            yield f"{quotation(place.node)} should be {quotation(form)}", form


def numbers(scene: Scene) -> Iterator[Guess]:
    """A number that should be another; of several, one that the forward has too."""
    texts = [scene.texts[let.name].value for let in scene.rule.forward]
    texts.append(scene.derived.value)
    known = {n for text in texts for n in nodes(text) if isinstance(n, Const)}
    found: list[tuple[tuple[int, int, int], Guess]] = []
    for order, place in enumerate(scene.places):
        meant = None if names(place.node) else _the_number(place)
        if meant is not None:
            rank = (meant not in known, len(show(meant)), order)
            found.append((rank, Guess(_number_told(place, meant), place, meant)))
    yield from (guess for _, guess in sorted(found, key=lambda pair: pair[0]))


def _the_number(place: Place) -> Expr | None:
    values = [value for value in place.meant if value is not None]
    if len(values) < 3 or varies(place.meant) or same(place.meant, place.now):
        return None
    return number(min(values, key=lambda ball: ball.rad()))


def _number_told(place: Place, meant: Expr) -> str:
    text, power = number_text(meant), place.parent
    if isinstance(power, Apply) and power.op == "pow" and power.args[1] == place.node:
        return f"the exponent of {quotation(power)} should be {text}"
    shown = quotation(place.node)
    if isinstance(meant, Const):
        return f"the constant {shown} should be {text}"
    return f"{shown} should be `{text}`"


# --- conditions and names ----------------------------------------------------------------


def condition(scene: Scene) -> Iterator[Guess]:
    """Every point has the value of the wrong branch."""
    for place in scene.places:
        node = place.node
        wanted = _required_branches(place) if place.around is None else {}
        if not wanted or not isinstance(node, Select):
            continue
        shown = quotation(node.condition)
        for old, new in _conditions(place, node.condition):
            changed = everywhere(node.condition, old, new)
            # A branch that is always taken needs no condition.
            sides = [truth(value) for value in place.scene.columns(changed)[0]]
            is_choice = any(s is True for s in sides) and any(s is False for s in sides)
            if is_choice and all(sides[row] is side for row, side in wanted.items()):
                told = f"{quotation(old)} should be {quotation(new)} in the condition {shown}"
                whole = Select(changed, node.then, node.other)
                yield Guess(told, place, whole, part=old.span)
        told = f"the condition {shown} takes the wrong branch"
        yield Guess(told, place, part=node.condition.span)


def _required_branches(place: Place) -> dict[int, bool]:
    """The branch required at each point where they differ; empty if neither fits."""
    if not isinstance(place.node, Select):
        return {}
    branches = (place.scene.values(b) for b in (place.node.then, place.node.other))
    wanted: dict[int, bool] = {}
    for row, (meant, *held) in enumerate(zip(place.meant, *branches, strict=True)):
        if meant is None:
            continue
        fits = [v is not None and bool(v.overlaps(meant)) for v in held]
        if not any(fits):
            return {}
        if not all(fits):
            wanted[row] = fits[0]
    return wanted


def _conditions(place: Place, condition: Expr) -> Iterator[tuple[Expr, Expr]]:
    """Replacements of one part of a condition."""
    texts = (place.scene.texts[let.name].value for let in place.scene.rule.forward)
    found = (n for text in texts for n in nodes(text) if isinstance(n, Const))
    limits = tuple(dict.fromkeys(found))
    for node in nodes(condition):
        match node:
            case Ref():
                yield node, apply("abs", node)
                yield node, tidy(apply("neg", node))
                yield from ((node, r) for r in place.refs if r != node)
            case Apply(op=op, args=(left, right)) if op in RELATIONS:
                yield node, apply(op, right, left)
                yield node, apply(op, apply("abs", left), right)
                yield node, apply(op, apply("neg", left), right)
                new = (apply(op, left, limit) for limit in limits)
                yield from ((node, changed) for changed in new if changed != node)
            case _:
                continue


def other_names(scene: Scene) -> Iterator[Guess]:
    """Two names, each in the place of the other, or one for another wherever it stands:
    the output for the input, say."""
    used = [name for name in scene.names if name in names(scene.text.value)]
    for one, two in combinations(used, 2):
        if scene.axes[one] == scene.axes[two]:
            told = f"`{one}` and `{two}` are swapped"
            yield _with_names(scene, told, {one: two, two: one})
    for one, two in product(used, scene.names):
        if one != two and scene.axes[one] == scene.axes[two]:
            yield _with_names(scene, f"`{one}` should be `{two}`", {one: two})


def _with_names(scene: Scene, told: str, others: Mapping[str, str]) -> Guess:
    def visit(node: Expr) -> Expr:
        if isinstance(node, Ref) and node.name in others:
            return Ref(others[node.name], node.indices)
        return node

    text, first = scene.text.value, next(iter(others))
    refs = (n for n in nodes(text) if isinstance(n, Ref) and n.name == first)
    return Guess(told, scene.root, transform(text, visit), part=next(refs).span)


# --- the table ---------------------------------------------------------------------------


def _at_each(forms: Callable[[Place], Forms]) -> Hypothesis:
    """A hypothesis applied to every part that is not constant."""

    def look(scene: Scene) -> Iterator[Guess]:
        for place in scene.places:
            flag = isinstance(place.node, Ref) and place.node.name not in scene.names
            if flag or not place.is_short or not is_number(place.node):
                continue
            if names(place.node) or forms is signs:
                for told, new in forms(place):
                    yield Guess(told, place, new)

    return look


HYPOTHESES: tuple[Hypothesis, ...] = (
    upstream,
    vanishing,
    simple_factor,
    chain_factor,
    other_element,
    _at_each(sums),
    _at_each(signs),
    numbers,
    _at_each(surplus),
    _at_each(operators),
    _at_each(reductions),
    one_term,
    _at_each(brackets),
    _at_each(powers),
    _at_each(name_for_name),
    _at_each(functions),
    any_factor,
    condition,
    other_names,
    numeric_factor,
    contribution,
    relative,
    missing,
    _at_each(missing_inside),
)
"""Hypotheses, most convincing first: a wrong number or sign is a better explanation
than a factor that happens to be missing."""

# --- the search --------------------------------------------------------------------------

_MOST_ROWS = 240
"""Points times elements: several instances have at least a few points each.
`wording` checks the result at all of them."""

_LEAST_POINTS, _FEW = 4, 22
_VARIED = 6
_MORE = 3
"""Guesses besides the first, which may be wrong at a point that is not sampled."""


def likely_causes(
    claim: Claim, witness: Point, instances: tuple[Instance, ...]
) -> tuple[Guess, ...]:
    """The guesses of the first hypothesis that holds at every point, the witness
    included. ``instances`` begin with that of the claim."""
    first, name = instances[0], stem(claim.input.name)
    room, points = _MOST_ROWS // len(instances), {}
    for one in instances:
        smooth = _smooth(one, name, (witness,) if one is first else ())
        elements = max(1, sum(stem(other) == name for other in one.derived))
        if smooth:
            points[one] = smooth[: max(_LEAST_POINTS, min(_FEW, room // elements))]
    if not at_several_places(claim, points.get(first, ()), 3):
        return ()
    scene = Scene(first.written, name, points)
    try:
        is_at_border = on_border(_borders(first, name), witness)
        if is_at_border and same(scene.root.meant, scene.root.now):
            return (_only_at(claim, witness),)
        return _guesses(scene)
    except Exhausted:
        return ()


def _guesses(scene: Scene) -> tuple[Guess, ...]:
    for hypothesis in HYPOTHESES:
        guesses = (guess for guess in hypothesis(scene) if guess.holds(scene))
        try:
            first = next(guesses, None)
            if first is not None:
                more = islice(guesses, _MORE) if first.new is not None else ()
                return (first, *more)
        except (OutOfRange, NotEarlier):  # what it looks at does not exist everywhere
            continue
    return ()


def _only_at(claim: Claim, witness: Point) -> Guess:
    """The guess that it is wrong only where two values are equal."""
    pairs = borders_at((claim.declared,), witness)
    where = " at this point"
    if pairs:
        left, right = (show(tidy(side)) for side in pairs[0])
        where = f" where {left} = {right}"
    return Guess(f"it is right everywhere but{where}")


def _smooth(
    instance: Instance, name: str, begin: tuple[Point, ...]
) -> tuple[Point, ...]:
    """The points that lie on no border, and some of them with other values of the
    statics, so that a parameter is distinguished from a number."""
    borders = _borders(instance, name)
    statics = [v.name for v in instance.rule.inputs if v.kind is Kind.STATIC]
    points = (*begin, *instance.points)
    found = [point for point in points if not on_border(borders, point)]
    moved = [
        {**p, **{n: p[n] * Fraction(7 - k, 8) for k, n in enumerate(statics)}}
        for p in (found[:_VARIED] if statics else ())
    ]
    other = [
        point
        for point in moved
        if instance.is_assumed(point) and not on_border(borders, point)
    ]
    return (*found[:_LEAST_POINTS], *other, *found[_LEAST_POINTS:])


def _borders(instance: Instance, name: str) -> tuple[Expr, ...]:
    elements = [other for other in instance.derived if stem(other) == name]
    return (
        *instance.forward.values(),
        *(instance.stated[one] for one in elements),
        *(instance.derived[one] for one in elements),
    )
