"""Hypotheses on what is wrong with a declared cotangent, in one table.

Each takes the scene (a rule's instances, what is declared, what the derivative is
there) and gives guesses: a part of the text with what should stand in its place, or
what the cotangent is in place of the derivative. A guess that holds at every point of
every instance is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import combinations, product

from gradspec.checks.diagnosis.missing import (
    contribution,
    is_number,
    missing,
    missing_inside,
    numeric_factor,
    relative,
    slopes,
)
from gradspec.checks.diagnosis.phrases import bare, number_text, quoted
from gradspec.checks.diagnosis.places import (
    Forms,
    Guess,
    Hypothesis,
    Instead,
    Place,
    Rows,
    Scene,
    View,
    at,
    everywhere,
)
from gradspec.checks.instances import stem
from gradspec.ir.elements import element
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
    const,
)
from gradspec.ir.text import show
from gradspec.ir.tidy import fold, tidy
from gradspec.ir.unroll import axis_names
from gradspec.ir.walk import names, nodes, substitute, transform
from gradspec.primitives.balls import truth
from gradspec.primitives.lookup import is_function, primitive, rows
from gradspec.symbolic.breaks import RELATIONS
from gradspec.symbolic.compare import decimal
from gradspec.symbolic.recognise import (
    Values,
    common_ratio,
    number,
    products,
    same,
    varies,
)

_SIMPLE = 12
"""Largest product of numerator and denominator of a factor that is easily forgotten."""

# --- the whole ---------------------------------------------------------------------------


def upstream(scene: Scene) -> Iterator[Guess]:
    """An upstream gradient that does not occur."""
    declared, needed = _used(scene, "stated"), _used(scene, "derived")
    absent = [name for name in scene.upstream if name not in declared]
    missed = [name for name in absent if name in needed]
    if scene.entry.value == ZERO or not missed:
        return
    if len(absent) < len(scene.upstream):
        outputs = ", ".join(name.removeprefix("d") for name in missed)
        told = f"the contribution of {outputs} is missing"
        yield Guess(told, instead=partial(_without, scene, frozenset(missed)))
        return
    for ref in scene.refs(scene.root.indices):
        if ref.name in missed and len(absent) == 1:
            told = (
                f"the upstream gradient {ref.name} is missing: multiply by {bare(ref)}"
            )
            yield Guess(told, scene.root, apply("mul", ref, scene.root.node))
    yield Guess(f"it does not use the upstream gradient {' or '.join(absent)}")


def _used(scene: Scene, which: str) -> frozenset[str]:
    """The variables in the elements of the cotangent, as declared or as derived."""
    exprs = map(_element(scene.input, which), scene.rows.views)
    return frozenset(stem(name) for expr in exprs for name in names(expr))


def _without(scene: Scene, gone: frozenset[str], view: View) -> Expr:
    derived = view.instance.derived[view.of(scene.input)]
    zero: dict[str, Expr] = {n: ZERO for n in names(derived) if stem(n) in gone}
    return substitute(derived, zero)


def vanishing(scene: Scene) -> Iterator[Guess]:
    yield Guess("it is always 0", instead=lambda view: ZERO)


def simple_factor(scene: Scene) -> Iterator[Guess]:
    """Times -1, 2, 1/2 and the like, or a size."""
    yield from _factor(scene, _SIMPLE)


def any_factor(scene: Scene) -> Iterator[Guess]:
    """Times any number, with its name if it has one."""
    yield from _factor(scene, 0)


def _factor(scene: Scene, most: int) -> Iterator[Guess]:
    for sizes in _sizes(scene):
        told = " * ".join(size.axis for size in sizes)
        shown = f"({told})" if len(sizes) > 1 else told
        for is_divided in (False, True) if sizes else (False,):
            scale = _scale(scene.every, *scene.values, sizes, is_divided)
            if scale is None:
                continue
            value = number(scale)
            if most and not _is_simple(value, most):
                continue
            text = decimal(scale, 17) if value is None else number_text(value)
            if not sizes and value == const(-1):
                yield Guess("its sign is wrong everywhere")
            elif not sizes:
                yield Guess(f"it is {text} times the derivative everywhere")
            elif is_divided and value == ONE:
                yield Guess(f"it is the derivative divided by {shown}")
            elif is_divided:
                yield Guess(f"it is {text} / {shown} times the derivative")
            else:
                times = told if value == ONE else f"{text} * {told}"
                by = f"({times})" if "*" in times else times
                yield Guess(f"it is {times} times the derivative: divide by {by}")


def _is_simple(value: Expr | None, most: int) -> bool:
    if not isinstance(value, Const):
        return False
    return abs(value.value.numerator * value.value.denominator) <= most


def _sizes(scene: Scene) -> Iterator[tuple[Size, ...]]:
    """None, one or two of the sizes that differ among the instances."""
    axes = [Size(axis) for axis in axis_names(scene.rule)]
    yield from ((), *((axis,) for axis in axes), *combinations(axes, 2))


def _scale(
    rows: Rows,
    tops: Values,
    bottoms: Values,
    sizes: tuple[Size, ...],
    is_divided: bool,
) -> object:
    """The ratio of two expressions as a number, times or divided by some sizes."""
    for axis in sizes:
        values = rows.values(axis)
        if is_divided:
            tops = products(tops, values)
        else:
            bottoms = products(bottoms, values)
    return common_ratio(tops, bottoms)


def other_input(scene: Scene) -> Iterator[Guess]:
    """The derivative by another input of the same shape."""
    for other in scene.rule.inputs:
        name, axes = other.name, scene.axes[other.name]
        is_alike = other.takes_gradient and axes == scene.axes[scene.input]
        if is_alike and name != scene.input:
            told = f"it is the derivative by {name}, not by {scene.input}"
            yield Guess(told, instead=_element(name, "derived"))


def _element(name: str, which: str) -> Instead:
    """The cotangent of another input of the same shape, as stated or as derived."""

    def instead(view: View) -> Expr:
        found: Mapping[str, Expr] = getattr(view.instance, which)
        return found[view.of(name)]

    return instead


def transposed(scene: Scene) -> Iterator[Guess]:
    """A matrix's gradient with its indices exchanged."""
    axes = scene.axes[scene.input]
    if len(axes) == 2 and axes[0] == axes[1]:
        yield Guess(
            "its two indices are exchanged",
            instead=lambda view: view.instance.derived[
                element(scene.input, view.index[::-1])
            ],
        )


def chain_factor(scene: Scene) -> Iterator[Guess]:
    """The derivative of an inner expression of the forward, missing as a whole."""
    for expr, of in slopes(scene, scene.root):
        new = apply("mul", scene.root.node, expr)
        yield Guess(f"the factor {quoted(expr)} is missing{of}", scene.root, new)


# --- sums over indices -------------------------------------------------------------------


def _sums(scene: Scene, place: Place) -> Forms:
    """A sum too many, over the wrong index, of other terms, or in the wrong order."""
    match place.node:
        case Reduce(op="sum" | "mean", bounds=(bound,), body=body, where=None):
            for index, axis in place.indices.items():
                if axis == bound.axis:
                    one = at(body, bound.index, Idx(index))
                    shown = f"{quoted(place.node)} should be {quoted(one)}"
                    yield f"{shown}: nothing is summed", one
        case Apply(op="mul", args=(Reduce() as left, Reduce() as right)) if _is_alike(
            left, right
        ):
            (bound,), (other,) = left.bounds, right.bounds
            body = apply(
                "mul", left.body, at(right.body, other.index, Idx(bound.index))
            )
            joined = Reduce("sum", left.bounds, body)
            yield f"the sum of products {quoted(joined)} is meant", joined
        case Ref(name=name, indices=(first, second)):
            told = f"the indices of {quoted(place.node)} are exchanged"
            yield told, Ref(name, (second, first))
        case _:
            return


def _reductions(scene: Scene, place: Place) -> Forms:
    node = place.node
    if not isinstance(node, Reduce):
        return
    for op in ("sum", "mean") if node.op in ("sum", "mean") else ():
        if op != node.op:
            told = f"{quoted(node)} should be a {op}"
            yield told, Reduce(op, node.bounds, node.body, node.where)
    if node.where is not None:
        told = f"{quoted(node)} should range over all elements"
        yield told, Reduce(node.op, node.bounds, node.body)


def _is_alike(left: Reduce, right: Reduce) -> bool:
    """True for two sums over one axis."""
    return (
        left.op == right.op == "sum"
        and len(left.bounds) == len(right.bounds) == 1
        and left.bounds[0].axis == right.bounds[0].axis
        and left.where is None
        and right.where is None
    )


def one_term(scene: Scene) -> Iterator[Guess]:
    """The derivative with one element in the place of a sum."""
    whole = ZERO if scene.derived is None else scene.derived.value
    for node in nodes(whole):
        if not isinstance(node, Reduce) or len(node.bounds) > 1:
            continue
        (bound,), indices = node.bounds, scene.root.indices
        own = [Idx(i) for i, axis in indices.items() if axis == bound.axis]
        every: tuple[Expr, ...] = (*own, ZERO)
        for index in every:
            told = f"of {quoted(node)} only the term with {bound.index} ="
            less = everywhere(whole, node, at(node.body, bound.index, index))
            yield Guess(f"{told} {show(index)} is there", instead=_text(less))


def _text(value: Expr) -> Instead:
    """A text with the indices of the cotangent."""
    return lambda view: view.closed(value)


# --- one part ----------------------------------------------------------------------------


_PLAIN = ("mul", "div", "neg", "pow")
"""Operations whose operands' signs are those of a term, or have no sign."""


def _signs(scene: Scene, place: Place) -> Forms:
    """The sign of a term, or of an argument."""
    new = fold(apply("neg", place.node))
    match place.parent:
        case Apply(op="add" | "sub"):
            yield f"the sign of {quoted(_unsigned(place.node))} is wrong", new
        case Select() if names(place.node):
            yield f"the sign of {quoted(place.node)} is wrong", new
        case Apply(op=op) if op not in _PLAIN and names(place.node):
            yield f"the sign of the argument of {quoted(place.parent)} is wrong", new
        case _:
            return


def _unsigned(node: Expr) -> Expr:
    match node:
        case Apply(op="neg", args=(inner,)):
            return inner
        case _:
            return node


def _surplus(scene: Scene, place: Place) -> Forms:
    """A part that should not be there, or that stands on the wrong side."""
    match place.node:
        case Apply(op="add" | "sub" | "mul" as op, args=(left, right)):
            what = "factor" if op == "mul" else "term"
            yield f"{quoted(right)} is one {what} too many", left
            yield f"{quoted(left)} is one {what} too many", right
        case Apply(op="div", args=(left, right)):
            yield f"the division by {quoted(right)} is one too many", left
        case Apply(op=op, args=args) if primitive(op).is_piecewise and len(args) > 1:
            told = f"the gradient has {quoted(place.node)} where"
            for arg in args[:2] if len(args) == 2 else args[:1]:
                yield f"{told} {quoted(arg)} is meant", arg
        case Select(condition=condition, then=then, other=other):
            told = f"the branches of `… if {bare(condition)} else …` are swapped"
            yield told, Select(condition, other, then)
        case _:
            return


def _operators(scene: Scene, place: Place) -> Forms:
    match place.node:
        case Apply(op="mul", args=(left, right)):
            told = "it should divide by {}, not multiply"
            yield told.format(quoted(right)), apply("div", left, right)
            yield told.format(quoted(left)), apply("div", right, left)
        case Apply(op="div" | "pow" as op, args=(left, right)):
            if op == "div":
                told = f"it should multiply by {quoted(right)}, not divide"
                yield told, apply("mul", left, right)
            turned = apply(op, right, left)
            yield f"{quoted(place.node)} should be {quoted(turned)}", turned
        case _:
            return


def _powers(scene: Scene, place: Place) -> Forms:
    """A square or a root that is missing, an exponent that is off by one."""
    node = place.node
    if isinstance(node, Apply) and node.op == "pow":
        base, exponent = node.args
        for op in ("sub", "add"):
            shifted = tidy(apply(op, exponent, ONE))
            told = f"the exponent of {quoted(node)} should be {quoted(shifted)}"
            yield told, apply("pow", base, shifted)
    if isinstance(node, Apply) and node.op == "square":
        yield f"the square of {quoted(node.args[0])} is one too many", node.args[0]
    yield f"{quoted(node)} should be squared", apply("square", node)
    yield f"{quoted(node)} should be cubed", apply("mul", node, apply("square", node))
    root = apply("sqrt", node)
    yield f"{quoted(node)} should be {quoted(root)}", root
    yield f"{quoted(node)} should be its reciprocal", apply("div", ONE, node)


def _names(scene: Scene, place: Place) -> Forms:
    """One name in the place of another."""
    if isinstance(place.node, Ref):
        yield from _named(scene, place)


def _named(scene: Scene, place: Place) -> Forms:
    """A name in the place of a part."""
    if place is scene.root or not (place.around or varies(place.meant)):
        return
    for ref in scene.refs(place.indices):
        if ref != place.node:
            yield f"{quoted(place.node)} should be {quoted(ref)}", ref


_FUNCTIONS = tuple(
    row.name for row in rows() if row.arity == 1 and is_function(row.name)
)


def _functions(scene: Scene, place: Place) -> Forms:
    """A function in the place of another one."""
    if not (place.around or varies(place.meant)):
        return
    match place.node:
        case Apply(op=op, args=(arg,)) if op != "neg" and primitive(op).arity == 1:
            pass
        case Ref() as arg:
            pass
        case _:
            return
    for op in _FUNCTIONS:
        form = apply(op, arg)
        if form != place.node:
            yield f"{quoted(place.node)} should be {quoted(form)}", form


def numbers(scene: Scene) -> Iterator[Guess]:
    """A number that should be another; of several, one that the forward has too."""
    texts = [scene.texts[let.name].value for let in scene.rule.forward]
    texts += [] if scene.derived is None else [scene.derived.value]
    known = {n for text in texts for n in nodes(text) if isinstance(n, Const)}
    found: list[tuple[tuple[int, int, int], Guess]] = []
    for order, place in enumerate(scene.places):
        meant = None if names(place.node) else _the_number(place)
        if meant is not None:
            rank = (meant not in known, _complexity(meant), order)
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
        return f"the exponent of {quoted(power)} should be {text}"
    shown = quoted(place.node)
    if isinstance(meant, Const):
        return f"the constant {shown} should be {text}"
    return f"{shown} should be `{text}`"


def _complexity(value: Expr) -> int:
    if isinstance(value, Const):
        return len(str(value.value))
    return 4 + sum(_complexity(n) for n in nodes(value) if isinstance(n, Const))


# --- conditions and names ----------------------------------------------------------------


def condition(scene: Scene) -> Iterator[Guess]:
    """Every point has the value of the wrong branch."""
    for place in scene.places:
        if isinstance(place.node, Select) and place.around is None:
            wanted = _wanted(place, place.node)
            if wanted:
                yield from _chosen(scene, place, place.node, wanted)


def _wanted(place: Place, node: Select) -> dict[int, bool]:
    """The branch required at each point where they differ; empty if neither fits."""
    branches = place.rows.values(node.then), place.rows.values(node.other)
    wanted: dict[int, bool] = {}
    for row, values in enumerate(zip(place.meant, *branches, strict=True)):
        meant, *held = values
        if meant is None:
            continue
        fits = [v is not None and bool(v.overlaps(meant)) for v in held]
        if not any(fits):
            return {}
        if not all(fits):
            wanted[row] = fits[0]
    return wanted


def _chosen(
    scene: Scene, place: Place, node: Select, wanted: dict[int, bool]
) -> Iterator[Guess]:
    for old, new in _conditions(scene, place, node.condition):
        changed = everywhere(node.condition, old, new)
        if _chooses(place.rows, changed, wanted):
            told = f"{quoted(old)} should be {quoted(new)} in the condition"
            whole = Select(changed, node.then, node.other)
            told = f"{told} {quoted(node.condition)}"
            yield Guess(told, place, whole, part=old.span)
    told = f"the condition {quoted(node.condition)} takes the wrong branch"
    yield Guess(told, place, part=node.condition.span)


def _chooses(rows: Rows, condition: Expr, wanted: dict[int, bool]) -> bool:
    """True if the condition selects the required branch at each point, and each branch
    at some point: a branch that is always taken needs no condition."""
    sides = [truth(value) for value in rows.columns(condition)[0]]
    is_choice = any(s is True for s in sides) and any(s is False for s in sides)
    return is_choice and all(sides[row] is side for row, side in wanted.items())


def _conditions(
    scene: Scene, place: Place, condition: Expr
) -> Iterator[tuple[Expr, Expr]]:
    """Replacements of one part of a condition."""
    texts = (scene.texts[let.name].value for let in scene.rule.forward)
    found = (n for text in texts for n in nodes(text) if isinstance(n, Const))
    limits = tuple(dict.fromkeys(found))
    for node in nodes(condition):
        match node:
            case Ref():
                yield node, apply("abs", node)
                yield node, tidy(apply("neg", node))
                yield from ((node, r) for r in scene.refs(place.indices) if r != node)
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


def _at_each(forms: Callable[[Scene, Place], Forms]) -> Hypothesis:
    """A hypothesis applied to every part that is not constant."""

    def look(scene: Scene) -> Iterator[Guess]:
        for place in scene.places:
            flag = isinstance(place.node, Ref) and place.node.name not in scene.names
            if flag or not place.is_short or not is_number(place.node):
                continue
            if names(place.node) or forms is _signs:
                for told, new in forms(scene, place):
                    yield Guess(told, place, new)

    return look


HYPOTHESES: tuple[Hypothesis, ...] = (
    upstream,
    vanishing,
    simple_factor,
    chain_factor,
    other_input,
    transposed,
    _at_each(_sums),
    _at_each(_signs),
    numbers,
    _at_each(_surplus),
    _at_each(_operators),
    _at_each(_reductions),
    one_term,
    _at_each(_powers),
    _at_each(_names),
    _at_each(_named),
    _at_each(_functions),
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
