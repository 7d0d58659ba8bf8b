"""A machine that knows some special functions without asking balls.

`model.Machine` gets a sigmoid from balls, point by point; at some thousand points that
takes seconds. What stands here is right to a few units of float64, which is enough to
tell which points are hard in float32, not to judge a form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gradspec.ir.expr import Apply, Expr
from gradspec.primitives.lookup import primitive
from gradspec.stabilise.model import Machine


def _sigmoid(x: Any) -> Any:
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1.0) / (1.0 + small)


def _times_log(x: Any, log: Any) -> Any:
    return np.where((x == 0) & ~np.isnan(log), 0.0, x * log)


def _sinpi(x: Any) -> Any:
    turned = x - 2.0 * np.round(0.5 * x)  # exact, and within 1 in size
    far = np.abs(turned) > 0.5
    return np.sin(np.pi * np.where(far, np.sign(turned) - turned, turned))


def _cospi(x: Any) -> Any:
    turned = np.abs(x - 2.0 * np.round(0.5 * x))
    beside = np.sin(np.pi * (0.5 - turned))
    return np.where(turned < 0.25, np.cos(np.pi * turned), beside)


_KNOWN: Mapping[str, Callable[..., Any]] = {
    "sigmoid": _sigmoid,
    "logit": lambda p: np.log(p) - np.log1p(-p),
    "xlogy": lambda x, y: _times_log(x, np.log(y)),
    "xlog1py": lambda x, y: _times_log(x, np.log1p(y)),
    "sinpi": _sinpi,
    "cospi": _cospi,
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "erfc": np.vectorize(math.erfc, otypes=[np.float64]),
}


def is_slow(node: Expr) -> bool:
    """Whether balls alone know an operation."""
    if not isinstance(node, Apply) or node.op in _KNOWN:
        return False
    return primitive(node.op).model is None


class QuickMachine(Machine):
    """The same, and a few functions more."""

    def in_double(self) -> Machine:
        if self._wide is None:
            columns = {
                name: c if np.asarray(c).dtype == np.bool_ else np.float64(c)
                for name, c in self._columns.items()
            }
            self._wide = QuickMachine(columns, np.float64, self.target)
        return self._wide

    def _value(self, node: Expr) -> Any:
        match node:
            case Apply(op=op, args=args) if op in _KNOWN:
                given = (np.float64(self._known[arg]) for arg in args)
                return self.work(_KNOWN[op](*given))
            case _:
                return super()._value(node)
