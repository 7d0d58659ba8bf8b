"""Powers and exponentials of a product as one exponential, where they leave the range.

``x**(k - 1) * exp(-x / t) / t**k`` is an ordinary number where its factors overflow or
vanish, in float64 too. There it is the exponential of what their logarithms add up to,
which loses digits in the type that it is computed in, and none where float32 is computed
in float64. Where all factors together stay in the range the product is as it was.

The terms of a sum have such factors in common once whole numbers are taken out of the
exponents: ``x**(k - 2)`` is ``x**k / x**2``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial, reduce
from itertools import islice

from gradspec.derive.build import plus, scale, times
from gradspec.ir.expr import ZERO, Apply, Const, Expr, Ref, Select
from gradspec.ir.tidy import fold, tidy
from gradspec.ir.walk import names, nodes, size, transform
from gradspec.primitives.table_bounds import VANISHING
from gradspec.stabilise.products import factors
from gradspec.symbolic.conjugates import conjugated
from gradspec.symbolic.gather import (
    gathered_apart,
    gathered_by_signs,
    gathered_through_roots,
)
from gradspec.symbolic.grouped import grouped

_RANGE = 700
"""What the logarithm of any factor may be: float64 ends at 709."""

_FURTHEST = Fraction(10**39)
"""Float32 ends before."""

_LEAST = Fraction(10**46)
"""Its least number is larger than one over this."""

_LARGEST = 400

_GROUPED = 3
"""Forms whose polynomials are by the powers of one input, each of another."""

IsPositive = Callable[[Expr], bool]
"""Whether an expression is positive at all points."""


def united(
    closed: Expr, meaning: Expr, inputs: frozenset[str], is_positive: IsPositive
) -> Iterator[Expr]:
    """The product of ``closed`` gathered (of any length: what cancels is gone then), and
    with one exponential where it needs it; if it has branches, that of its ``meaning``.
    """
    starts = (
        transform(start, lambda node: _plain(node, is_positive))
        for start in (closed, meaning)
        if size(start) <= _LARGEST
    )
    plain = next((start for start in starts if not _has_branches(start)), None)
    if plain is None:
        return
    ways = [_with_conjugates(is_positive), gathered_through_roots, gathered_apart]
    if any(isinstance(node, Apply) and node.op == "sign" for node in nodes(plain)):
        ways.append(gathered_by_signs)
    for found in dict.fromkeys(gather(plain) for gather in ways):
        if found is None:
            continue
        form = tidy(found)
        yield from (form, within_range(form, closed, inputs))
        if any(isinstance(node, Select) for node in nodes(form)):
            yield _within_both_ends(form, closed, inputs)
        far = _in_one(form, is_positive)
        if far is not None:
            yield from (_beyond(*far, near) for near in (closed, form))
    for form in islice(grouped(plain), _GROUPED):
        yield from (form, within_range(form, closed, inputs))


def _with_conjugates(is_positive: IsPositive) -> Callable[[Expr], Expr | None]:
    return partial(conjugated, is_positive=is_positive)


def within_range(form: Expr, usual: Expr, inputs: frozenset[str]) -> Expr:
    """``form`` where the inputs are numbers of float32, which it was found for; where only
    float64 has them, powers may leave the range: what was there."""
    used = sorted(inputs & names(usual))
    sizes: list[Expr] = [Apply("abs", (Ref(name),)) for name in used]
    near = Apply("lt", (reduce(_larger, sizes), Const(_FURTHEST)))
    return tidy(Select(near, form, usual))


def _within_both_ends(form: Expr, usual: Expr, inputs: frozenset[str]) -> Expr:
    """The same, and where none is below those of float32: squares vanish there. At 0 exactly,
    where a sum of three has but two, what was there is as good."""
    used = sorted(inputs & names(usual))
    sizes: list[Expr] = [Apply("abs", (Ref(name),)) for name in used]
    least = reduce(lambda a, b: Apply("min", (a, b)), sizes)
    inside = Apply("gt", (least, Const(1 / _LEAST)))
    return tidy(Select(inside, within_range(form, usual, inputs), usual))


def _has_branches(expr: Expr) -> bool:
    return any(isinstance(node, Select) for node in nodes(expr))


def _plain(node: Expr, is_positive: IsPositive) -> Expr:
    """A node as a product: whole numbers out of exponents; ``k * x**(k - 1)
    if k != 0 else 0`` is the product where x is positive."""
    match node:
        case Apply(op=op, args=(one, other)) if op == VANISHING:
            return Apply("mul", (one, other))
        case Apply(op="hypot", args=(a, b)):
            squares = (Apply("square", (part,)) for part in (a, b))
            return Apply("sqrt", (Apply("add", tuple(squares)),))
        case Apply(op="xlogy", args=(a, b)) if is_positive(b):
            return Apply("mul", (a, Apply("log", (b,))))
        case Apply(op="power_less_one", args=(base, exponent)) if is_positive(base):
            return Apply("div", (Apply("pow", (base, exponent)), base))
        case Apply(op="pow", args=(base, exponent)) if is_positive(base):
            return _split(base, exponent)
        case Select(condition=Apply(op="ne", args=(a, b)), then=then, other=other):
            return then if other == ZERO and b == ZERO and may_go(a, then) else node
        case _:
            return node


def may_go(asked: Expr, then: Expr) -> bool:
    """Whether a product is 0 where what is asked is, or an exponential, which is never."""
    _, found = factors(then)
    is_exp = isinstance(asked, Apply) and asked.op == "exp"
    return is_exp or any(part == asked and side > 0 for part, side in found)


def _split(base: Expr, exponent: Expr) -> Expr:
    whole, rest = _apart(exponent)
    if not whole or rest == ZERO or whole.denominator != 1:
        return Apply("pow", (base, exponent))
    power = fold(Apply("pow", (base, Const(abs(whole)))))
    op = "mul" if whole > 0 else "div"
    return Apply(op, (Apply("pow", (base, rest)), power))


def _apart(exponent: Expr) -> tuple[Fraction, Expr]:
    """A sum as a number and the rest."""
    match exponent:
        case Const(value=value):
            return value, ZERO
        case Apply(op="add" | "sub" as op, args=(a, b)):
            (one, left), (other, right) = _apart(a), _apart(b)
            number = one + other if op == "add" else one - other
            return number, fold(Apply(op, (left, right)))
        case _:
            return Fraction(0), exponent


def _in_one(form: Expr, is_positive: IsPositive) -> tuple[Expr, Expr] | None:
    """The product with one exponential, and the largest of its logarithms."""
    number, found = factors(form)
    logs: list[Expr] = []
    reaches: list[Expr] = []
    rest: Expr = number
    for part, side in found:
        log = _log(part, is_positive)
        if log is not None:
            reaches.append(Apply("abs", (log,)))
        elif is_positive(part):
            log = Apply("log", (part,))
        if log is None:
            rest = fold(Apply("mul" if side > 0 else "div", (rest, part)))
        else:
            logs.append(scale(Fraction(side), log))
    if not reaches:
        return None
    return times(rest, Apply("exp", (reduce(plus, logs),))), reduce(_larger, reaches)


def _larger(one: Expr, other: Expr) -> Expr:
    return Apply("max", (one, other))


def _beyond(far: Expr, reach: Expr, near: Expr) -> Expr:
    return tidy(Select(Apply("lt", (reach, Const(Fraction(_RANGE)))), near, far))


def _log(part: Expr, is_positive: IsPositive) -> Expr | None:
    """The logarithm of a power or an exponential."""
    match part:
        case Apply(op="exp", args=(exponent,)):
            return exponent
        case Apply(op="sigmoid", args=(value,)):
            return Apply("logsigmoid", (value,))
        case Apply(op="pow", args=(base, exponent)):
            log = _log(base, is_positive)
            if log is None and is_positive(base):
                log = Apply("log", (base,))
            return None if log is None else times(exponent, log)
        case _:
            return None
