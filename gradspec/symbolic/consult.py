"""SymPy's ``simplify`` as the last resort of a proof, within a time limit.

In the main thread an alarm stops it; elsewhere (a thread of a notebook, a system
without signals) it runs in a child process that is killed. A worker that was lost to it
is replaced by one that does without (`use`).
"""

from __future__ import annotations

import json
import subprocess
import sys

from gradspec.ir.expr import Expr
from gradspec.ir.text import show
from gradspec.ir.walk import size
from gradspec.primitives.formula import formula
from gradspec.symbolic.bridge import to_sympy
from gradspec.symbolic.limit import can_interrupt, in_time, uninterrupted

_LARGEST = 400
"""Nodes beyond which SymPy does not finish within any budget."""

_SHORTEST = 0.05

_is_used = [True]


def use(is_used: bool) -> None:
    """Turn SymPy on or off for further questions. If off, it counts as too slow."""
    _is_used[0] = is_used


def sympy_agrees(
    left: Expr, right: Expr, assumes: tuple[Expr, ...], seconds: float
) -> bool | None:
    """True if SymPy finds the difference to be 0; None when it does not finish in time.
    Its symbols are real, and nothing is forced: ``sqrt(x**2)`` stays ``|x|``."""
    if seconds < _SHORTEST or size(left) + size(right) > _LARGEST:
        return False
    if not _is_used[0]:
        return None
    if not can_interrupt():
        return _in_child(left, right, assumes, seconds)
    with uninterrupted():  # a half-made import stays broken
        import sympy  # noqa: F401
    return in_time(seconds, lambda: _vanishes(left, right, assumes))


def _vanishes(left: Expr, right: Expr, assumes: tuple[Expr, ...]) -> bool:
    import sympy

    try:
        gap = to_sympy(left, assumes) - to_sympy(right, assumes)
        return bool(sympy.simplify(gap) == 0)
    except Exception:  # SymPy raises many kinds; none of them is a proof
        return False


def _in_child(
    left: Expr, right: Expr, assumes: tuple[Expr, ...], seconds: float
) -> bool | None:
    question = json.dumps([show(left), show(right), [show(a) for a in assumes]])
    program = "from gradspec.symbolic.consult import answer; answer()"
    try:
        done = subprocess.run(
            [sys.executable, "-c", program],
            input=question,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    except OSError:
        return False
    return done.stdout.strip() == "yes"


def answer() -> None:
    """The child process: a question on standard input, yes or no on standard output."""
    left, right, assumes = json.load(sys.stdin)
    conditions = tuple(formula(text) for text in assumes)
    print("yes" if _vanishes(formula(left), formula(right), conditions) else "no")
