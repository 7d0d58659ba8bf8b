"""What SymPy would write: proposals, to be measured like any other.

Its `simplify` harms stable forms and takes seconds; here it may only gather a sum over
one denominator and factor it, of expressions short enough that this is quick (a limit
on time would make the output depend on the machine). It knows no |x|, so an expression
is handed over for x > 0 and for x < 0, and put together again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

from gradspec.derive.build import negate, times
from gradspec.derive.linear import coefficient, is_linear
from gradspec.ir.expr import ONE, Apply, Call, Const, Expr, Ref, Select
from gradspec.ir.tidy import fold, tidy
from gradspec.ir.walk import names, nodes, size, substitute, transform
from gradspec.stabilise.search import replaced

_SMALLEST, _LARGEST = 6, 60
_GROWTH = 1.2  # how much longer a proposal may be
_STEPS = frozenset(
    "max min clip sign abs floor ceil round trunc heaviside relu mod".split()  # noqa: SIM905
)
_WAYS = ("together", "factor", "cancel")

_Ask: TypeAlias = Callable[[Expr], Expr | None]


def proposals(expr: Expr, upstream: frozenset[str]) -> Iterator[Expr]:
    """Other forms of a cotangent, ``upstream`` times what SymPy makes of the factor."""
    used = [name for name in sorted(upstream) if name in names(expr)]
    if len(used) != 1 or not is_linear(expr, upstream):
        return
    factor = coefficient(expr, used[0], upstream)
    if not _SMALLEST <= size(factor) <= _LARGEST:
        return
    seen = {factor}
    for way in _WAYS:
        form = factor
        for part in _parts(factor):
            new = _proposed(part, lambda e, way=way: _asked(way, e))  # type: ignore[misc]
            form = form if new is None else replaced(form, part, new)
        if form not in seen and size(form) <= _GROWTH * size(factor):
            seen.add(form)
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


def _proposed(expr: Expr, ask: _Ask) -> Expr | None:
    """One form of an expression without conditionals, in the user's own order."""
    signed = _signed(expr)
    form = ask(expr) if signed is None else _split(expr, signed, ask)
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


def _split(expr: Expr, name: str, ask: _Ask) -> Expr | None:
    """Asked for either sign: an even function is one of |x|, an odd one of |x| times
    the sign."""
    x = Ref(name)
    above = ask(_with_sign(expr, x, x, ONE))
    # what holds for x < 0, told in |x|: the same symbol stands for -x
    flipped = _with_sign(expr, x, fold(Apply("neg", (x,))), Const(-ONE.value))
    below = ask(tidy(substitute(flipped, {name: fold(Apply("neg", (x,)))})))
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


# --- SymPy ---------------------------------------------------------------------------


def _asked(way: str, expr: Expr) -> Expr | None:
    from gradspec.symbolic.bridge import from_sympy, to_sympy

    if any(_is_foreign(node) for node in nodes(expr)):
        return None
    try:
        form = from_sympy(_ways()[way](to_sympy(expr)))
    except (NotImplementedError, ArithmeticError, ValueError, TypeError):
        return None
    except Exception as fault:
        if type(fault).__module__.startswith("sympy"):
            return None
        raise
    return None if form is None else tidy(form)


def _is_foreign(node: Expr) -> bool:
    """What SymPy has no algebra for."""
    match node:
        case Select() | Call():
            return True
        case Apply(op=op):
            return op in _STEPS
        case _:
            return False


def _ways() -> dict[str, Callable[[object], object]]:
    import sympy

    return {
        "together": sympy.together,
        "factor": sympy.factor,
        "cancel": sympy.cancel,
    }


# --- the user's order ----------------------------------------------------------------


def _in_order(form: Expr, original: Expr) -> Expr:
    """SymPy sorts operands: ``x + 1`` and ``p - 1`` become ``1 + x`` and ``1 - p``
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
    return negate(turned) if is_minus else turned


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
