"""True cotangents in disguise: exact identities applied everywhere in an expression."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

from gradspec.ir.expr import ONE, Apply, Const, Expr, Select, apply
from gradspec.ir.walk import size, transform

TWO = Const(Fraction(2))
_LARGEST = 300  # nodes: multiplied out, some products grow without end


def disguises(value: Expr) -> Iterator[tuple[str, Expr]]:
    """Each disguise that changes the expression, by name."""
    yield "as it stands", value
    for name, visit in DISGUISES.items():
        changed = transform(value, visit)
        if changed != value and size(changed) <= _LARGEST:
            yield name, changed


def _expanded(node: Expr) -> Expr:
    match node:
        case Apply(op="mul", args=(Apply(op="add" | "sub" as op, args=(a, b)), c)):
            return apply(
                op, _expanded(apply("mul", a, c)), _expanded(apply("mul", b, c))
            )
        case Apply(op="mul", args=(c, Apply(op="add" | "sub" as op, args=(a, b)))):
            return apply(
                op, _expanded(apply("mul", c, a)), _expanded(apply("mul", c, b))
            )
        case Apply(op="div", args=(Apply(op="add" | "sub" as op, args=(a, b)), c)):
            return apply(
                op, _expanded(apply("div", a, c)), _expanded(apply("div", b, c))
            )
        case Apply(op="neg", args=(Apply(op="add", args=(a, b)),)):
            return apply("sub", apply("neg", a), b)
        case Apply(op="square", args=(a,)) | Apply(op="pow", args=(a, Const(value=2))):
            return _expanded(apply("mul", a, a))
    return node


def _factored(node: Expr) -> Expr:
    match node:
        case Apply(op="add" | "sub" as op, args=(left, right)):
            ours, theirs = _factors(left), _factors(right)
            for factor in ours:
                if factor in theirs:
                    inner = apply(op, _without(ours, factor), _without(theirs, factor))
                    return apply("mul", factor, _factored(inner))
    return node


def _factors(expr: Expr) -> tuple[Expr, ...]:
    match expr:
        case Apply(op="mul", args=(a, b)):
            return (*_factors(a), *_factors(b))
        case Apply(op="square", args=(a,)):
            return (a, a)
    return (expr,)


def _without(factors: tuple[Expr, ...], one: Expr) -> Expr:
    rest = list(factors)
    rest.remove(one)
    product: Expr = rest.pop() if rest else ONE
    while rest:
        product = apply("mul", rest.pop(), product)
    return product


def _half(expr: Expr) -> Expr:
    return apply("div", expr, TWO)


def _by_tanh(node: Expr) -> Expr:
    match node:
        case Apply(op="sigmoid", args=(u,)):
            return _half(apply("add", ONE, apply("tanh", _half(u))))
        case Apply(op="exp", args=(u,)):
            t = apply("tanh", _half(u))
            return apply("div", apply("add", ONE, t), apply("sub", ONE, t))
    return node


def _by_sigmoid(node: Expr) -> Expr:
    match node:
        case Apply(op="tanh", args=(u,)):
            doubled = apply("sigmoid", apply("mul", TWO, u))
            return apply("sub", apply("mul", TWO, doubled), ONE)
        case Apply(op="exp", args=(u,)):
            below = apply("sigmoid", apply("neg", u))
            return apply("div", apply("sigmoid", u), below)
        case Apply(op="sigmoid", args=(Apply(op="neg", args=(u,)),)):
            return apply("sub", ONE, apply("sigmoid", u))
    return node


def _by_exp(node: Expr) -> Expr:
    match node:
        case Apply(op="tanh", args=(u,)):
            grown = apply("exp", apply("mul", TWO, u))
            return apply("div", apply("sub", grown, ONE), apply("add", grown, ONE))
        case Apply(op="sigmoid", args=(u,)):
            return apply("div", apply("exp", u), apply("add", ONE, apply("exp", u)))
        case Apply(op="cosh" | "sinh" as op, args=(u,)):
            up, down = apply("exp", u), apply("exp", apply("neg", u))
            return _half(apply("add" if op == "cosh" else "sub", up, down))
        case Apply(op="softplus", args=(u,)):
            return apply("log", apply("add", ONE, apply("exp", u)))
        case Apply(op="expm1", args=(u,)):
            return apply("sub", apply("exp", u), ONE)
        case Apply(op="log1p", args=(u,)):
            return apply("log", apply("add", ONE, u))
    return node


def _by_halves(node: Expr) -> Expr:
    match node:
        case Apply(op="exp", args=(u,)):
            return apply("square", apply("exp", _half(u)))
        case Apply(op="sin", args=(u,)):
            both = apply("mul", apply("sin", _half(u)), apply("cos", _half(u)))
            return apply("mul", TWO, both)
        case Apply(op="cos", args=(u,)):
            part = apply("mul", TWO, apply("square", apply("sin", _half(u))))
            return apply("sub", ONE, part)
        case Apply(op="tanh", args=(u,)):
            t = apply("tanh", _half(u))
            below = apply("add", ONE, apply("square", t))
            return apply("div", apply("mul", TWO, t), below)
    return node


def _by_abs(node: Expr) -> Expr:
    match node:
        case Apply(op="max" | "min" as op, args=(a, b)):
            gap = apply("abs", apply("sub", a, b))
            sum_ = apply("add", a, b)
            return _half(apply("add" if op == "max" else "sub", sum_, gap))
        case Apply(op="relu", args=(u,)):
            return _half(apply("add", u, apply("abs", u)))
        case Apply(op="square", args=(u,)):
            return apply("square", apply("abs", u))
    return node


def _turned(node: Expr) -> Expr:
    match node:
        case Apply(op="add" | "mul" as op, args=(a, b)):
            return apply(op, b, a)
        case Apply(op="sub", args=(a, b)):
            return apply("neg", apply("sub", b, a))
        case Apply(op="div", args=(a, b)):
            return apply("mul", apply("div", ONE, b), a)
        case Select(condition=condition, then=then, other=other):
            return Select(apply("not", condition), other, then)
    return node


DISGUISES: dict[str, Callable[[Expr], Expr]] = {
    "multiplied out": _expanded,
    "common factors taken out": _factored,
    "by tanh": _by_tanh,
    "by sigmoid": _by_sigmoid,
    "by exp": _by_exp,
    "half arguments": _by_halves,
    "by absolute values": _by_abs,
    "turned round": _turned,
}
