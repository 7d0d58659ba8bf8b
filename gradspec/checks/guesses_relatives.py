"""Guesses at the forward: the gradient is that of a near relative of it.

An approximation in place of the exact form, another base of a logarithm, a clamp that is
only in the forward, a power with base and exponent exchanged. The forward is changed,
differentiated anew, and compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from gradspec.checks.guess import Case, Guess, put, quoted
from gradspec.derive.partials import Underivable
from gradspec.derive.vjp import vjps
from gradspec.ir.expr import Apply, Expr, Ref, Select, apply, const
from gradspec.ir.rule import Let
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import names, nodes, size, substitute
from gradspec.primitives.formula import formula
from gradspec.primitives.lookup import primitive
from gradspec.symbolic.meant import Values, evaluate, fits
from gradspec.symbolic.recognise import varies

_LARGEST = 60  # nodes of a forward whose relatives are looked for

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
"""Functions that are taken for each other, as formulas of ``x``."""


def relative(case: Case) -> Guess | None:
    """The first relative whose gradient is the declared one."""
    declared = case.places[0].now
    for told, output, changed in _relatives(case):
        derived = _gradient(case, output, changed)
        if derived is not None and fits(declared, derived, case.points):
            return Guess(told)
    return None


def _relatives(case: Case) -> Iterator[tuple[str, str, Expr]]:
    for output, form in case.claim.instance.backward_path().items():
        if size(form) > _LARGEST:
            continue
        for node in nodes(form):
            if case.claim.input.name not in names(node):
                continue
            for told, new in (*_unclamped(node), *_turned(node), *_kin(case, node)):
                yield told, output, put(form, node, new)


def _gradient(case: Case, output: str, changed: Expr) -> Expr | None:
    paths = {**case.claim.instance.backward_path(), output: changed}
    lets = tuple(Let(name, (), form) for name, form in paths.items())
    upstream: dict[str, Expr] = {
        o.name: Ref(f"d{o.name}") for o in case.rule.outputs if o.takes_gradient
    }
    name = case.claim.input.name
    try:
        return vjps(lets, (), upstream, (name,))[name]
    except Underivable:
        return None


def _unclamped(node: Expr) -> Iterator[tuple[str, Expr]]:
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


def _turned(node: Expr) -> Iterator[tuple[str, Expr]]:
    match node:
        case Apply(op=op, args=(arg,)):
            for other in primitive(op).mistaken:
                new = apply(other, arg)
                yield _instead(new, node), new
        case Apply(op="pow" | "sub" | "div" | "atan2" as op, args=(left, right)):
            new = apply(op, right, left)
            yield _instead(new, node), new
        case _:
            return


def _instead(new: Expr, node: Expr) -> str:
    return f"it is the derivative with {quoted(new)} in the place of {quoted(node)}"


def _kin(case: Case, node: Expr) -> Iterator[tuple[str, Expr]]:
    """Other members of a family that the node is one of."""
    held = evaluate(node, case.points)
    if not varies_enough(held):
        return
    for argument in _arguments(case):
        for family in _families():
            members = [(n, substitute(form, {"x": argument})) for n, form in family]
            known = [fits(held, form, case.points) for _, form in members]
            if True not in known:
                continue
            own = members[known.index(True)][0]
            for name, form in members:
                if name != own:
                    yield f"it is the derivative of the {name}, not of the {own}", form


def varies_enough(values: Values) -> bool:
    return any(value is not None for value in values) and varies(values)


def _arguments(case: Case) -> tuple[Expr, ...]:
    """What the function may be of: the input, or the input times a parameter."""
    ref = Ref(case.claim.input.name)
    others = [Ref(v.name) for v in case.rule.inputs if v.name != ref.name]
    products = [tidy(apply("mul", other, ref)) for other in others[:3]]
    return (ref, *products)


@lru_cache(maxsize=1)
def _families() -> tuple[tuple[tuple[str, Expr], ...], ...]:
    """Each also twice as large: `0.5 * x * (1 + erf(…))` has only `1 + erf(…)`."""
    plain = [[(name, formula(text)) for name, text in family] for family in FAMILIES]
    double = [
        [(name, tidy(apply("mul", const(2), form))) for name, form in family]
        for family in plain
    ]
    return tuple(tuple(family) for family in (*plain, *double))
