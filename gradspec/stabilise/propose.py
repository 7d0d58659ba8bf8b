"""The factor of a cotangent gathered into one fraction: a proposal, to be measured.

SymPy's `simplify` harms stable forms and takes seconds; what it is good for here,
a sum over one denominator and factored, `symbolic.gather` does in a millisecond. There is no algebra of |x|, so an expression is handed over for x > 0 and
for x < 0, and put together again.
"""

from __future__ import annotations

from collections.abc import Iterator

from gradspec.derive.build import negate, times
from gradspec.derive.linear import coefficient, is_linear
from gradspec.ir.expr import ONE, Apply, Call, Const, Expr, Ref, Select
from gradspec.ir.tidy import fold, tidy
from gradspec.ir.walk import names, nodes, size, substitute, transform
from gradspec.stabilise.search import replaced
from gradspec.symbolic.gather import gathered
from gradspec.symbolic.powers import with_powers_merged

_SMALLEST, _LARGEST = 6, 60
_GROWTH = 1.2  # how much longer a proposal may be
_STEPS = (
    *("max", "min", "clip", "sign", "abs", "floor", "ceil"),
    *("round", "trunc", "heaviside", "relu", "mod"),
)


def proposals(expr: Expr, upstream: frozenset[str]) -> Iterator[Expr]:
    """Other forms of a cotangent: ``upstream`` times the factor gathered."""
    used = [name for name in sorted(upstream) if name in names(expr)]
    if len(used) != 1 or not is_linear(expr, upstream):
        return
    factor = coefficient(expr, used[0], upstream)
    if not _SMALLEST <= size(factor) <= _LARGEST:
        return
    merged = with_powers_merged(factor)
    if merged is not None and size(merged) <= _GROWTH * size(factor):
        yield times(Ref(used[0]), _in_order(merged, factor))
    form = factor
    for part in _parts(factor):
        new = _proposed(part)
        form = form if new is None else replaced(form, part, new)
    if form != factor and size(form) <= _GROWTH * size(factor):
        yield times(Ref(used[0]), form)


def _parts(expr: Expr) -> list[Expr]:
    """The branches of (nested) conditionals at the root."""
    found: list[Expr] = []
    todo = [expr]
    while todo:
        node = todo.pop()
        if isinstance(node, Select):
            todo += (node.other, node.then)
        elif size(node) >= _SMALLEST and node not in found:
            found.append(node)
    return found


def _proposed(expr: Expr) -> Expr | None:
    """One form of an expression without conditionals, in the user's own order."""
    signed = _signed(expr)
    form = _asked(expr) if signed is None else _split(expr, signed)
    return None if form is None else _in_order(form, expr)


# --- |x| -----------------------------------------------------------------------------


def _signed(expr: Expr) -> str | None:
    """The one name whose absolute value or sign is taken."""
    found = {
        node.args[0].name
        for node in nodes(expr)
        if isinstance(node, Apply)
        and node.op in ("abs", "sign")
        and isinstance(node.args[0], Ref)
    }
    return found.pop() if len(found) == 1 else None


def _split(expr: Expr, name: str) -> Expr | None:
    """Asked for either sign: an even function is one of |x|, an odd one of |x| times
    the sign."""
    x = Ref(name)
    above = _asked(_with_sign(expr, x, x, ONE))
    # what holds for x < 0, told in |x|: the same symbol stands for -x
    flipped = _with_sign(expr, x, fold(Apply("neg", (x,))), Const(-ONE.value))
    below = _asked(tidy(substitute(flipped, {name: fold(Apply("neg", (x,)))})))
    if above is None or below is None:
        return None
    size_of = Apply("abs", (x,))
    if above == below:
        return substitute(above, {name: size_of})
    if above == negate(below) or negate(above) == below:
        return times(Apply("sign", (x,)), substitute(above, {name: size_of}))
    return None


def _with_sign(expr: Expr, x: Expr, size_of: Expr, sign: Expr) -> Expr:
    known: dict[Expr, Expr] = {Apply("abs", (x,)): size_of, Apply("sign", (x,)): sign}
    return tidy(transform(expr, lambda node: known.get(node, node)))


# --- asking --------------------------------------------------------------------------


def _asked(expr: Expr) -> Expr | None:
    if any(_is_foreign(node) for node in nodes(expr)):
        return None
    form = gathered(expr)
    return None if form is None else tidy(form)


def _is_foreign(node: Expr) -> bool:
    """What there is no algebra for here."""
    match node:
        case Select() | Call():
            return True
        case Apply(op=op):
            return op in _STEPS
        case _:
            return False


# --- the user's order ----------------------------------------------------------------


def _in_order(form: Expr, original: Expr) -> Expr:
    """The polynomials sort operands: ``x + 1`` and ``p - 1`` become ``1 + x`` and ``1 - p``
    again where the original has them so."""
    known = set(nodes(original))

    def swap(node: Expr) -> Expr:
        match node:
            case Apply(op="add" | "mul" as op, args=(a, b)) if node not in known:
                swapped = Apply(op, (b, a))
                return swapped if swapped in known else node
            case _:
                return node

    ordered = transform(form, swap)
    is_minus, turned = _turned(ordered, known)
    if not is_minus:
        return turned
    return _without_minus(turned, known) or negate(turned)


def _without_minus(expr: Expr, known: set[Expr]) -> Expr | None:
    """``-expr`` with a difference among the factors turned round, if there is one that
    the original does not have as it is."""
    match expr:
        case Apply(op="mul" | "div" as op, args=(a, b)):
            first = _without_minus(a, known)
            if first is not None:
                return Apply(op, (first, b))
            second = _without_minus(b, known)
            return None if second is None else Apply(op, (a, second))
        case Apply(op="sub", args=(a, b)) if expr not in known:
            return Apply("sub", (b, a))
        case _:
            return None


def _turned(expr: Expr, known: set[Expr]) -> tuple[bool, Expr]:
    """Differences among the factors the other way round, and whether the sign changes."""
    match expr:
        case Apply(op="neg", args=(inner,)):
            is_minus, turned = _turned(inner, known)
            return not is_minus, turned
        case Apply(op="mul" | "div" as op, args=(a, b)):
            (first, left), (second, right) = _turned(a, known), _turned(b, known)
            return first != second, fold(Apply(op, (left, right)))
        case Apply(op="sub", args=(a, b)) if expr not in known:
            swapped = Apply("sub", (b, a))
            return (True, swapped) if swapped in known else (False, expr)
        case _:
            return False, expr
