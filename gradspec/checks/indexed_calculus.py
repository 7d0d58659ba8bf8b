"""What the index calculus says of a declared cotangent, for every size at once."""

from __future__ import annotations

from functools import lru_cache

from gradspec.derive.indexed import (
    Underivable,
    closed_cotangent,
    indexed_cotangents,
    same,
)
from gradspec.ir.rule import Declared, Derived, Rule


@lru_cache(maxsize=16)
def derived(rule: Rule) -> dict[str, Derived]:
    """The derived cotangents by input; none if something has no derivative known."""
    try:
        return indexed_cotangents(rule)
    except Underivable:
        return {}


def is_equal(rule: Rule, name: str, entry: Declared) -> bool:
    """Whether the declared cotangent is the derived one, whatever the sizes."""
    true = derived(rule).get(name)
    if true is None:
        return False
    stated = closed_cotangent(rule, name, entry)
    return same(stated, closed_cotangent(rule, name, true))
