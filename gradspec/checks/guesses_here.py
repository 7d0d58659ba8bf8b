"""Guesses at one part of a text, from the values that it should have.

Each is tried at every place before the next is tried: a wrong number or sign is a better
explanation than a factor that happens to be missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gradspec.checks.guess import Case, Guess, decimal_or_fraction, is_short, quoted
from gradspec.ir.expr import ONE, Apply, Const, Expr, Ref, Select, apply
from gradspec.ir.tidy import fold, tidy
from gradspec.ir.walk import names, nodes
from gradspec.primitives.lookup import is_function, primitive, rows
from gradspec.symbolic.meant import Place, evaluate, fits
from gradspec.symbolic.recognise import negated, number, same, varies


def here(case: Case) -> Guess | None:
    """The first guess that fits somewhere."""
    for look in (signs, numbers, surplus, operators, powers, other_names, functions):
        guess = look(case)
        if guess is not None:
            return guess
    return None


# --- numbers -------------------------------------------------------------------------


def numbers(case: Case) -> Guess | None:
    """A number that should be another; of several, one that the forward has too."""
    known = _numbers_of(case)
    found: list[tuple[tuple[int, int, int], Guess]] = []
    for order, place in enumerate(case.places):
        if names(place.node):
            continue
        meant = _the_number(place)
        if meant is None:
            continue
        rank = (meant not in known, _complexity(meant), order)
        guess = Guess(_number_told(case, place, meant), place, meant)
        found.append((rank, guess))
    return min(found, key=lambda pair: pair[0])[1] if found else None


def _the_number(place: Place) -> Expr | None:
    values = [value for value in place.meant if value is not None]
    if len(values) < 3 or varies(place.meant):
        return None
    if place.now[0] is not None and place.now[0].overlaps(values[0]):
        return None
    narrowest = min(values, key=lambda ball: ball.rad())
    return number(narrowest)


def _number_told(case: Case, place: Place, meant: Expr) -> str:
    text = decimal_or_fraction(meant)
    power = place.parent
    if isinstance(power, Apply) and power.op == "pow" and power.args[1] == place.node:
        return f"the exponent of {quoted(power)} should be {text}"
    shown = quoted(place.node)
    if isinstance(meant, Const):
        return f"the constant {shown} should be {text}"
    return f"{shown} should be `{text}`"


def _numbers_of(case: Case) -> frozenset[Expr]:
    texts = (*case.claim.instance.forward.values(), case.claim.derived)
    return frozenset(n for t in texts for n in nodes(t) if isinstance(n, Const))


def _complexity(value: Expr) -> int:
    if isinstance(value, Const):
        return len(str(value.value))
    return 4 + sum(_complexity(n) for n in nodes(value) if isinstance(n, Const))


# --- signs and surplus ---------------------------------------------------------------


_PLAIN = ("mul", "div", "neg", "pow")
"""Operations whose operands' signs are those of a term, or are no signs."""


def signs(case: Case) -> Guess | None:
    """The sign of a term, or of an argument."""
    for place in case.places[1:]:
        if same(place.meant, negated(place.now)):
            told = _sign_told(place)
            if told:
                return Guess(told, place, fold(apply("neg", place.node)))
    return None


def _sign_told(place: Place) -> str:
    match place.parent:
        case Apply(op="add" | "sub"):
            return f"the sign of {quoted(_unsigned(place.node))} is wrong"
        case Select() if names(place.node):
            return f"the sign of {quoted(place.node)} is wrong"
        case Apply(op=op) if op not in _PLAIN and names(place.node):
            return f"the sign of the argument of {quoted(place.parent)} is wrong"
        case _:
            return ""


def _unsigned(node: Expr) -> Expr:
    match node:
        case Apply(op="neg", args=(inner,)):
            return inner
        case _:
            return node


def surplus(case: Case) -> Guess | None:
    """A part that should not be there, or that stands on the wrong side."""
    for place, forms in _each(case, _without):
        for told, form in forms:
            if fits(place.meant, form, case.scene.points):
                return Guess(told, place, form)
    return None


def _without(node: Expr) -> Iterator[tuple[str, Expr]]:
    match node:
        case Apply(op="add" | "sub", args=(left, right)):
            yield f"{quoted(right)} is one term too many", left
            yield f"{quoted(left)} is one term too many", right
        case Apply(op="mul", args=(left, right)):
            yield f"{quoted(right)} is one factor too many", left
            yield f"{quoted(left)} is one factor too many", right
        case Apply(op="div", args=(left, right)):
            yield f"the division by {quoted(right)} is one too many", left
        case Apply(op=op, args=args) if primitive(op).is_piecewise and len(args) > 1:
            told = f"the gradient has {quoted(node)} where {{}} is meant"
            for arg in args[:2] if len(args) == 2 else args[:1]:
                yield told.format(quoted(arg)), arg
        case Select(condition=condition, then=then, other=other):
            told = f"the branches of `… if {_bare(condition)} else …` are swapped"
            yield told, Select(condition, other, then)
        case _:
            return


def _bare(expr: Expr) -> str:
    return quoted(expr).strip("`")


# --- operators, powers, names, functions ---------------------------------------------


def operators(case: Case) -> Guess | None:
    for place, forms in _each(case, _reversed):
        for told, form in forms:
            if fits(place.meant, form, case.scene.points):
                return Guess(told, place, form)
    return None


def _reversed(node: Expr) -> Iterator[tuple[str, Expr]]:
    match node:
        case Apply(op="mul", args=(left, right)):
            yield (
                f"it should divide by {quoted(right)}, not multiply",
                apply("div", left, right),
            )
            yield (
                f"it should divide by {quoted(left)}, not multiply",
                apply("div", right, left),
            )
        case Apply(op="div" | "pow" as op, args=(left, right)):
            if op == "div":
                told = f"it should multiply by {quoted(right)}, not divide"
                yield told, apply("mul", left, right)
            turned = apply(op, right, left)
            yield f"{quoted(node)} should be {quoted(turned)}", turned
        case _:
            return


def powers(case: Case) -> Guess | None:
    """A square or a root that is missing, an exponent that is off by one."""
    for place, forms in _each(case, _raised):
        for told, form in forms:
            if fits(place.meant, form, case.scene.points):
                return Guess(told, place, form)
    return None


def _raised(node: Expr) -> Iterator[tuple[str, Expr]]:
    if isinstance(node, Apply) and node.op == "pow":
        base, exponent = node.args
        for op in ("sub", "add"):
            shifted = tidy(apply(op, exponent, ONE))
            told = f"the exponent of {quoted(node)} should be {quoted(shifted)}"
            yield told, apply("pow", base, shifted)
    yield f"{quoted(node)} should be squared", apply("square", node)
    yield f"{quoted(node)} should be cubed", apply("mul", node, apply("square", node))
    root = apply("sqrt", node)
    yield f"{quoted(node)} should be {quoted(root)}", root
    yield f"{quoted(node)} should be its reciprocal", apply("div", ONE, node)


def other_names(case: Case) -> Guess | None:
    """One name in the place of another."""
    columns = [(n, evaluate(Ref(n), case.scene.points)) for n in case.names]
    for only_names in (True, False):
        for place in case.places[1:]:
            if isinstance(place.node, Ref) is not only_names or not names(place.node):
                continue
            for name, values in columns:
                if place.node != Ref(name) and _fits(place, values):
                    told = f"{quoted(place.node)} should be `{name}`"
                    return Guess(told, place, Ref(name))
    return None


def _fits(place: Place, values: tuple[object, ...]) -> bool:
    return same(place.meant, values) and varies(place.meant)


_ONE_ARGUMENT = tuple(
    row.name for row in rows() if row.arity == 1 and is_function(row.name)
)


def functions(case: Case) -> Guess | None:
    """A function in the place of another one."""
    for place in case.places:
        arg, told = _argument(place.node)
        if arg is None or not is_short(arg) or not varies(place.meant):
            continue
        for op in _ONE_ARGUMENT:
            form = apply(op, arg)
            if form != place.node and _is_meant(place, form, case):
                return Guess(f"{told} should be {quoted(form)}", place, form)
    return None


def _argument(node: Expr) -> tuple[Expr | None, str]:
    match node:
        case Apply(op=op, args=(arg,)) if op != "neg" and primitive(op).arity == 1:
            return arg, quoted(node)
        case Ref():
            return node, quoted(node)
        case _:
            return None, ""


def _is_meant(place: Place, form: Expr, case: Case) -> bool:
    return fits(place.meant, form, case.scene.points)


Forms = Callable[[Expr], Iterator[tuple[str, Expr]]]


def _each(
    case: Case, forms: Forms
) -> Iterator[tuple[Place, Iterator[tuple[str, Expr]]]]:
    """Places whose value is no constant, with the forms to try there."""
    for place in case.places:
        if is_short(place.node) and names(place.node):
            yield place, forms(place.node)
