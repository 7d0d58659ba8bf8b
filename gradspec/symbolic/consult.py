"""The last resort of a proof: SymPy, and not for longer than agreed."""

from __future__ import annotations

from gradspec.ir.expr import Expr


def sympy_agrees(
    left: Expr, right: Expr, assumes: tuple[Expr, ...], seconds: float
) -> bool:
    return False
