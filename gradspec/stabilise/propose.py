"""What SymPy would write: proposals, to be measured like any other.

Its `simplify` harms stable forms and takes seconds; here it may only gather a sum over
one denominator and factor it, of expressions short enough that this is quick (a limit
on time would make the output depend on the machine).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from gradspec.derive.build import times
from gradspec.derive.linear import coefficient, is_linear
from gradspec.ir.expr import Apply, Call, Expr, Ref, Select
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import names, nodes, size
from gradspec.stabilise.search import replaced

_SMALLEST, _LARGEST = 6, 60
_STEPS = frozenset(["max", "min", "clip", "sign", "floor", "round", "heaviside"])


def proposals(expr: Expr, upstream: frozenset[str]) -> Iterator[Expr]:
    """Other forms of a cotangent, ``upstream`` times what SymPy makes of the factor."""
    used = [name for name in sorted(upstream) if name in names(expr)]
    if len(used) != 1 or not is_linear(expr, upstream):
        return
    factor = coefficient(expr, used[0], upstream)
    if not _SMALLEST <= size(factor) <= _LARGEST:
        return
    seen = {factor}
    for way in ("together", "factor", "cancel"):
        form = factor
        for part in _parts(factor):
            new = _asked(way, part)
            form = form if new is None else replaced(form, part, new)
        if form not in seen:
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
        elif _SMALLEST <= size(node) and node not in found:
            found.append(node)
    return found


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
