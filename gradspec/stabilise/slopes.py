"""Derivatives that go through a part of one variable as a whole.

Differentiated step by step ``cosh(x) * (sin(z) / z)`` has the slope ``cosh(x) / z * cos(z) -
cosh(x) * (sin(z) / z) / z``, in which no part depends on ``z`` alone, and the digits that
are lost about 0 cannot be put back. Here the part ``sin(z) / z`` is one function with one
slope, ``cosh(x) * (cos(z) / z - sin(z) / z / z)``; what follows knows what to do with
functions of one variable (`anchored.py`), or of one inner expression (`inner.py`).

A part stands as ``value + slope * inner`` in what is differentiated: with names for
``value`` and ``slope`` its derivative is ``slope``, and that sum is put back as the part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from gradspec.derive.partials import Underivable
from gradspec.derive.vjp import vjps
from gradspec.ir.expr import ONE, Apply, Call, Const, Expr, Reduce, Ref, Select
from gradspec.ir.rule import Derived, Let, Rule
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import children, inline, names, nodes, size, transform
from gradspec.stabilise.inner import INNER, of_one, put_back

_VALUE, _SLOPE = "·value", "·slope"  # no names of a rule
_MOST = 4
"""Parts of a rule."""

_LARGEST = 60  # nodes


def by_parts(rule: Rule, forward: tuple[Let, ...]) -> dict[str, Expr]:
    """The derived cotangents of the inputs through parts of one variable; none if there
    are no such parts, or if what is differentiated is not the forward."""
    if rule.surrogates or not any(isinstance(e, Derived) for e in rule.backward):
        return {}
    upstream = {o.name: Ref(f"d{o.name}") for o in rule.outputs if o.takes_gradient}
    wrt = tuple(i.name for i in rule.inputs if i.takes_gradient)
    whole = {let.name: tidy(inline(forward, let.value)) for let in forward}
    found = [*dict.fromkeys(p for name in upstream for p in _parts(whole[name]))]
    if not found or len(found) > _MOST:
        return {}
    try:
        return _through(tuple(found), forward, whole, vjps_of(upstream, wrt))
    except Underivable:
        return {}


Derive = Callable[[tuple[Let, ...]], dict[str, Expr]]


def vjps_of(upstream: Mapping[str, Expr], wrt: tuple[str, ...]) -> Derive:
    return lambda lets: vjps(lets, (), upstream, wrt)


def _through(
    parts: tuple[Expr, ...],
    forward: tuple[Let, ...],
    whole: Mapping[str, Expr],
    derive: Derive,
) -> dict[str, Expr]:
    new = {part: _linear(part, number) for number, part in enumerate(parts)}
    old = {one: part for part, one in new.items()}
    slopes = {f"{_SLOPE}{n}": _slope(part) for n, part in enumerate(parts)}
    lets = tuple(replace(x, value=_with(whole[x.name], new)) for x in forward)
    done: dict[str, Expr] = {}
    for name, form in derive(lets).items():
        known = transform(_with(form, old), lambda node: _named(node, slopes))
        if not any(used.startswith("·") for used in names(known)):
            done[name] = tidy(known)
    return done


def _with(form: Expr, new: Mapping[Expr, Expr]) -> Expr:
    return transform(form, lambda node: new.get(node, node))


def _named(node: Expr, slopes: Mapping[str, Expr]) -> Expr:
    return slopes.get(node.name, node) if isinstance(node, Ref) else node


def _linear(part: Expr, number: int) -> Expr:
    slope = Ref(f"{_SLOPE}{number}")
    step = Apply("mul", (slope, _known(part)[1]))
    return tidy(Apply("add", (Ref(f"{_VALUE}{number}"), step)))


def _slope(part: Expr) -> Expr:
    alone, inner = _known(part)
    let = Let("y", (), alone)
    return put_back(vjps((let,), (), {"y": ONE}, (INNER,))[INNER], inner)


def _known(part: Expr) -> tuple[Expr, Expr]:
    """A part as a function of :data:`INNER`, and what that is."""
    found = of_one(part)
    if found is not None:
        return found
    (name,) = names(part)
    alone = transform(part, lambda n: Ref(INNER) if n == Ref(name) else n)
    return alone, Ref(name)


def _parts(whole: Expr) -> Iterator[Expr]:
    """The largest quotients of one variable, in what depends on several."""
    todo = [whole]
    while todo:
        node = todo.pop()
        if _is_part(node, whole):
            yield node
        else:
            todo += children(node)


def _is_part(node: Expr, whole: Expr) -> bool:
    used = names(node)
    is_alone = used == names(whole) and len(used) == 1
    if not used or is_alone or size(node) > _LARGEST:
        return False
    if not any(map(_is_quotient, nodes(node))) or any(map(_is_foreign, nodes(node))):
        return False
    return len(used) == 1 or of_one(node) is not None


def _is_quotient(node: Expr) -> bool:
    """Of what is more than a variable: at 0 such may be removable."""
    match node:
        case Apply(op="div", args=(above, below)):
            used = names(above) == names(below) != frozenset()
            return used and not isinstance(below, Const) and _is_curved(node)
        case _:
            return False


def _is_curved(node: Expr) -> bool:
    return any(isinstance(n, Apply) and n.op in _CURVED for n in nodes(node))


_CURVED = frozenset(
    [
        *("exp", "expm1", "log", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh"),
        *("asin", "acos", "atan", "asinh", "acosh", "atanh", "sqrt", "cbrt", "erf"),
    ]
)


def _is_foreign(node: Expr) -> bool:
    return isinstance(node, Select | Call | Reduce)
