"""Wrong cotangents made of right ones: small changes of gradspec's own expression tree.

A mutant changes one place of one input's cotangent (its closed form: locals in place).
Most are wrong; those that are equal to the truth all the same (``sign`` of a term that is
0) are told apart by `benchmarks.exact`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from gradspec.ir.expr import ONE, ZERO, Apply, Const, Expr, Ref, Select, apply
from gradspec.ir.rule import Definition, Role, Rule
from gradspec.ir.walk import (
    children,
    closed_cotangents,
    expand,
    names,
    transform,
    with_children,
)
from gradspec.primitives.lookup import is_function

FACTORS = ("1e-3", "-1e-3", "1e-6", "-1e-6", "1e-12", "-1e-12")
SHIFT = Const(Fraction(1, 10**6))
_ROUNDED = 10**9  # the least number of ten digits
_MOST_PLACES = 400  # of one cotangent that are looked at, in reading order


@dataclass(frozen=True, slots=True)
class Mutant:
    """``values``: the cotangents to declare, by input; ``truths``: the right ones."""

    kind: str
    rule: Rule
    values: tuple[tuple[str, Expr], ...]
    truths: tuple[tuple[str, Expr], ...]

    def declared(self) -> Rule:
        """The rule with the wrong cotangents in place of its own."""
        return with_declared(self.rule, dict(self.values))


def with_declared(rule: Rule, values: dict[str, Expr]) -> Rule:
    """The rule with some cotangents declared to be ``values``."""
    return rule.redefine(
        *(
            Definition(f"d{name}", Role.COTANGENT, value, span=rule.name_span)
            for name, value in values.items()
        )
    )


def cotangents(rule: Rule) -> dict[str, Expr]:
    """The closed cotangents that claim to be derivatives: declared and derived ones."""
    stated = closed_cotangents(rule)
    return {
        entry.input: expand(stated[entry.name])
        for entry in rule.backward
        if not entry.is_override
    }


def mutants(rule: Rule) -> Iterator[Mutant]:
    """Every mutant of a complete rule, the same one only once."""
    truths = cotangents(rule)
    upstream = tuple(f"d{o.name}" for o in rule.outputs if o.takes_gradient)
    for name, value in truths.items():
        seen = {value}
        for kind, wrong in changed(value, upstream):
            if wrong not in seen:
                seen.add(wrong)
                yield Mutant(kind, rule, ((name, wrong),), ((name, value),))
        assumed = {n for a in rule.assumes for n in names(a.condition)}
        if not rule.has_axes and value != ZERO:
            for kind, wrong in hidden(
                value, upstream, None if name in assumed else name
            ):
                yield Mutant(kind, rule, ((name, wrong),), ((name, value),))
    pairs = [(a, b) for a in truths for b in truths if a < b]
    for a, b in pairs:
        if truths[a] != truths[b]:
            yield Mutant(
                "partials of two inputs swapped",
                rule,
                ((a, truths[b]), (b, truths[a])),
                ((a, truths[a]), (b, truths[b])),
            )


def changed(value: Expr, upstream: tuple[str, ...]) -> Iterator[tuple[str, Expr]]:
    """A cotangent with one thing wrong, and what."""
    for factor in FACTORS:
        number = Const(1 + Fraction(factor))
        yield f"factor 1 ± {factor.removeprefix('-')}", apply("mul", number, value)
    yield "sign of a term", apply("neg", value)
    for name in upstream:
        if name in names(value):
            yield "upstream gradient dropped", _without(value, name)
    for path, node in _places(value):
        for kind, wrong in _at(node, upstream):
            yield kind, _put(value, path, wrong)


HIDDEN = "hidden: "
"""How the kinds begin that no sampled point shows: wrong by construction."""


def hidden(
    value: Expr, upstream: tuple[str, ...], name: str | None
) -> Iterator[tuple[str, Expr]]:
    """A cotangent that is wrong where no ordinary sample is; ``name`` is its input if
    nothing is assumed of it."""
    large, far = Const(Fraction(10**9)), Const(Fraction(3 * 10**7))
    for up in (Ref(u) for u in upstream if u in names(value)):
        clipped = Apply("clip", (up, apply("neg", large), large))
        yield f"{HIDDEN}upstream clipped at 1e9", _with(value, up.name, clipped)
        at_zero = Select(Apply("eq", (up, ZERO)), ONE, ZERO)
        yield f"{HIDDEN}1 for upstream 0", apply("add", value, at_zero)
    if name is None:
        return
    x = Ref(name)
    root = apply("sqrt", apply("sub", far, x))
    yield f"{HIDDEN}undefined beyond 3e7", apply("div", apply("mul", value, root), root)
    two = apply("mul", Const(Fraction(2)), value)
    beyond = Apply("lt", (x, far))
    yield f"{HIDDEN}twice as large beyond 3e7", Select(beyond, value, two)
    point = Apply(
        "ne",
        (
            apply("add", Apply("pow", (x, Const(Fraction(3)))), x),
            Const(Fraction(3203125, 10**6)),
        ),
    )
    yield f"{HIDDEN}twice as large at 1.25", Select(point, value, two)


def _with(value: Expr, name: str, other: Expr) -> Expr:
    def visit(node: Expr) -> Expr:
        return other if isinstance(node, Ref) and node.name == name else node

    return transform(value, visit)


def _without(value: Expr, upstream: str) -> Expr:
    """1 in place of an upstream gradient, at whatever indices."""

    def visit(node: Expr) -> Expr:
        return ONE if isinstance(node, Ref) and node.name == upstream else node

    return transform(value, visit)


def _at(node: Expr, upstream: tuple[str, ...]) -> Iterator[tuple[str, Expr]]:
    """One node with one thing wrong."""
    match node:
        case Apply(op="add" | "sub" as op, args=(left, right)):
            second = right if op == "add" else apply("neg", right)
            yield "sign of a term", apply("sub" if op == "add" else "add", left, right)
            yield "a term dropped", left
            yield "a term dropped", second
            two = Const(Fraction(2))
            yield "a term doubled", apply(op, apply("mul", two, left), right)
            yield "a term doubled", apply(op, left, apply("mul", two, right))
        case Apply(op="neg", args=(inner,)):
            yield "sign of a term", inner
        case Select(condition=condition, then=then, other=other):
            yield "branches swapped", Select(condition, other, then)
        case Const(value=value):
            for wrong in (value + unit(value), value - unit(value)):
                if not is_rounding(wrong, value):
                    yield "a constant's last digit", Const(wrong)
        case Ref(name=name) if name in upstream:
            yield "upstream gradient dropped", ONE
        case Apply(op="max" | "min" as op, args=args):
            yield "branches swapped", Apply("min" if op == "max" else "max", args)
    if isinstance(node, Apply) and is_function(node.op) and node.args:
        for position, arg in enumerate(node.args):
            if names(arg):
                shifted = apply("add", arg, SHIFT)
                args = (*node.args[:position], shifted, *node.args[position + 1 :])
                yield "an argument shifted by 1e-6", Apply(node.op, args)


def unit(value: Fraction) -> Fraction:
    """A unit in the last place of a decimal; 1 of a whole number; one more or less above
    the line of any other fraction."""
    places, rest = 0, value.denominator
    for base in (2, 5):
        count = 0
        while rest % base == 0:
            rest, count = rest // base, count + 1
        places = max(places, count)
    return Fraction(1, 10**places) if rest == 1 else Fraction(1, value.denominator)


def is_rounding(short: Fraction, value: Fraction) -> bool:
    """Whether the last digit became a 0 that is not written: 0.39894228041 rounds to
    0.3989422804, and a decimal of ten digits is taken for a rounded one
    (docs/verdicts.md). That is no misprint of the longer number.
    """
    is_shorter = unit(value) < unit(short) < 1
    return is_shorter and abs(short) / unit(short) >= _ROUNDED


def _places(expr: Expr) -> Iterator[tuple[tuple[int, ...], Expr]]:
    """Every occurrence of every node with the way to it, in reading order."""
    todo: list[tuple[tuple[int, ...], Expr]] = [((), expr)]
    for _ in range(_MOST_PLACES):
        if not todo:
            return
        path, node = todo.pop()
        yield path, node
        below = [((*path, k), child) for k, child in enumerate(children(node))]
        todo.extend(reversed(below))


def _put(expr: Expr, path: tuple[int, ...], wrong: Expr) -> Expr:
    if not path:
        return wrong
    parts = list(children(expr))
    parts[path[0]] = _put(parts[path[0]], path[1:], wrong)
    return with_children(expr, tuple(parts))


def is_worth_it(rule: Rule) -> bool:
    """Whether the rule has a cotangent that claims to be a derivative, and is not 0, and
    its values are formulas (the second reading solves no equations)."""
    is_solved = any(one.is_equation for one in rule.definitions)
    return not is_solved and any(value != ZERO for value in cotangents(rule).values())
