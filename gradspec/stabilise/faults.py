"""What a target's functions are known to get wrong, laid over what the model gives.

The rows of the table know them (`gradspec/primitives/measured.py`). An error is added in full and
upwards: the least that a candidate must reckon with where it takes such a function there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from gradspec.ir.expr import Apply, Expr
from gradspec.ir.rule import Declared, Derived, Override, Rule
from gradspec.ir.walk import nodes
from gradspec.primitives.lookup import rows
from gradspec.primitives.measured import Span

DTYPES = ("float32", "float64")


@lru_cache(maxsize=16)
def faults(target: str, dtype: str) -> Mapping[str, tuple[Span, ...]]:
    """By the function's name; none for ``""``, which is no target."""
    found = {row.name: row.on[target] for row in rows() if target in row.on}
    return {name: spans for name, on in found.items() if (spans := on.faults(dtype))}


def concern(rule: Rule, target: str) -> bool:
    """Whether the rule takes a function that the target has a fault in."""
    known = {name for dtype in DTYPES for name in faults(target, dtype)}
    return any(
        isinstance(node, Apply) and node.op in known
        for expr in _expressions(rule)
        for node in nodes(expr)
    )


def _expressions(rule: Rule) -> Iterator[Expr]:
    for let in (*rule.forward, *rule.backward_locals):
        yield let.value
    for entry in rule.backward:
        if isinstance(entry, Declared | Derived | Override):
            yield entry.value


def spoiled(value: Any, argument: Any, spans: tuple[Span, ...]) -> Any:
    """``value`` with the errors that the target makes at ``argument``."""
    size = np.abs(value)
    for low, high, ulp in spans:
        inside = (argument >= low) & (argument < high) & np.isfinite(value)
        if low < 0:
            inside = (argument > low) & (argument <= high) & np.isfinite(value)
        off = value + np.spacing(size) * value.dtype.type(min(ulp, 2.0**20))
        value = np.where(inside, np.nan if np.isinf(ulp) else off, value)
    return value.astype(size.dtype)
