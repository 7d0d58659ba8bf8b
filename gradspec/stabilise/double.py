"""The model of float64: every operation is NumPy's own (or a ball, rounded once)."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradspec.ir.expr import Apply, Const, Expr, Ref
from gradspec.primitives.lookup import primitive
from gradspec.stabilise.model import Machine


class Double(Machine):
    """:class:`Machine`, in float64."""

    def _value(self, node: Expr) -> Any:
        match node:
            case Const(value=value):
                return np.float64(value.numerator / value.denominator)
            case Apply(op=op, args=args):
                return self._applied(op, [self._known[arg] for arg in args])
            case _:
                return super()._value(node)

    def _applied(self, op: str, args: list[Any]) -> Any:
        row = primitive(op)
        if row.model is not None:
            value = row.model(np, *args)
            return value if row.result == "bool" else np.float64(value)
        return np.array([_by_balls(op, values) for values in _rows(args)])


def _rows(args: list[Any]) -> list[tuple[float, ...]]:
    columns = np.broadcast_arrays(*(np.atleast_1d(arg) for arg in args))
    return [tuple(map(float, row)) for row in zip(*columns, strict=True)]


def _by_balls(op: str, values: tuple[float, ...]) -> float:
    """Correctly rounded; a limit where an argument is infinite and there is one."""
    from gradspec.symbolic.enclose import enclose
    from gradspec.symbolic.truth import nearest

    form = Apply(op, tuple(Ref(f"v{n}") for n in range(len(values))))
    point = {f"v{n}": value for n, value in enumerate(values)}
    if all(np.isfinite(values)):
        return nearest(form, [point], "float64")[0]
    ball = enclose(form, point)
    is_exact = hasattr(ball, "is_exact") and ball.is_exact() and not ball.is_nan()
    return float(ball.mid()) if is_exact else float("nan")
