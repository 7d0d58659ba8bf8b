"""The last polish: what rounding takes off an argument is put back.

``exp(a - b)`` has the absolute error of the difference as its relative one. Functions of a
sum or product that know what was lost (`primitives/table_compensated.py`) cost more and
are tried only on a form that is not good yet, after everything else: no rewrite knows
them, so they would stand in the way of the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from gradspec.derive.build import negate
from gradspec.ir.expr import Apply, Const, Expr
from gradspec.ir.walk import names, nodes
from gradspec.stabilise.match import instantiate, match
from gradspec.stabilise.row import Row
from gradspec.stabilise.rules import Compiled, compiled
from gradspec.stabilise.search import replaced

_MOST = 6
"""How many places are tried one by one; then all at once."""

_FUNCTIONS = tuple(
    Row(f"{name} of a {word}", f"{name}({left})", f"{name}_{right}")
    for name in ("exp", "expm1", "sigmoid", "softplus")
    for word, left, right in (
        ("difference", "a - b", "sum(a, -b)"),
        ("sum", "a + b", "sum(a, b)"),
        ("product", "a * b", "product(a, b)"),
    )
)

# sinpi and cospi take whole turns off before they multiply by pi: nothing is lost of a
# large multiple, and zeros are where they belong
_TURNS = (
    Row("sine of turns", "sin(pi * a)", "sinpi(a)"),
    Row("cosine of turns", "cos(pi * a)", "cospi(a)"),
    Row("sine of two turns", "sin(2 * pi * a)", "sinpi(2 * a)"),
    Row("cosine of two turns", "cos(2 * pi * a)", "cospi(2 * a)"),
    Row(
        "tangent of turns",
        "tan(pi * a)",
        "sinpi(a) / cospi(a) if cospi(a) != 0 else tan(pi * a)",
    ),
)

# about the unit circle: the larger one less 1 is exact
_LOGARITHMS = (
    Row(
        "log of hypot",
        "log(hypot(a, b))",
        "0.5 * log1p((max(abs(a), abs(b)) - 1) * (max(abs(a), abs(b)) + 1)"
        " + square(min(abs(a), abs(b))))"
        " if max(abs(a), abs(b)) < 1.5 and max(abs(a), abs(b)) > 0.5"
        " else log(hypot(a, b))",
    ),
)

ROWS = (
    *_FUNCTIONS,
    *_TURNS,
    *_LOGARITHMS,
    Row("logsigmoid of a difference", "logsigmoid(a - b)", "-softplus_sum(b, -a)"),
    Row("logsigmoid of a sum", "logsigmoid(a + b)", "-softplus_sum(-a, -b)"),
    Row("logsigmoid of a product", "logsigmoid(a * b)", "-softplus_product(-a, b)"),
)


def compensated(expr: Expr) -> Iterator[Expr]:
    """Forms of ``expr`` with arguments made good, everywhere and at single places."""
    found = {node: new for node in nodes(expr) if (new := _made_good(node)) is not None}
    if not found:
        return
    yield _with(expr, found)
    if len(found) > 1:
        for node, new in list(found.items())[:_MOST]:
            yield _with(expr, {node: new})


def _with(expr: Expr, found: dict[Expr, Expr]) -> Expr:
    for node, new in reversed(found.items()):
        expr = replaced(expr, node, new)
    return expr


def _made_good(node: Expr) -> Expr | None:
    if not isinstance(node, Apply) or not names(node):
        return None
    for row in _by_operator().get(node.op, ()):
        bound = match(row.left, node)
        if bound is not None and not _is_exact(node.args[0]):
            return instantiate(row.right, bound)
    return None


def _is_exact(argument: Expr) -> bool:
    """Twice a number, or half of it, is not rounded; for squares there is
    `exp_neg_square`."""
    match argument:
        case Apply(op="mul", args=(a, b)) if a == b or a == negate(b):
            return True
        case Apply(op="mul", args=(Const(value=value), _) | (_, Const(value=value))):
            size = abs(value)
            return (
                size != 0 and _is_power(size.numerator) and _is_power(size.denominator)
            )
        case _:
            return False


def _is_power(number: int) -> bool:
    return number & (number - 1) == 0


@lru_cache(maxsize=1)
def _by_operator() -> dict[str, tuple[Compiled, ...]]:
    return compiled(ROWS)
