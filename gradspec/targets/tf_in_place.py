"""Values of one use, where they are used: eagerly TensorFlow writes a sum or a product over
an operand that nothing else needs, and a name keeps its operand alive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace

from gradspec.plan.array import Expr, Name, Op, children, nodes, substitute
from gradspec.plan.plan import Assign, Block

_OVERWRITING = ("add", "sub", "mul", "div")
"""What can be written over an operand, and is short to read in the place of a name."""


def in_place(block: Block, needed: Collection[str]) -> Block:
    """``block`` without the names that stand for one such operation between names and are
    used once, in another one; those in ``needed`` are kept.
    """
    values = [*(s.value for s in block.statements), *block.results]
    every = _uses(nodes(*values)) + Counter(v.id for v in values if isinstance(v, Name))
    overwritten = _uses(node for node in nodes(*values) if _overwrites(node))
    gone: dict[str, Expr] = {}
    left: list[Assign] = []
    for s in block.statements:
        value = substitute(s.value, gone)
        is_used_once = every[s.name] == overwritten[s.name] == 1
        is_free = s.name not in needed and not s.comment
        if is_used_once and is_free and _is_short(value):
            gone[s.name] = value
        else:
            left.append(replace(s, value=value))
    return Block(tuple(left), tuple(substitute(v, gone) for v in block.results))


def _uses(found: Iterable[Expr]) -> Counter[str]:
    """How often names are operands of these."""
    parts = (part for node in found for part in children(node))
    return Counter(part.id for part in parts if isinstance(part, Name))


def _is_short(value: Expr) -> bool:
    return _overwrites(value) and all(isinstance(p, Name) for p in children(value))


def _overwrites(node: Expr) -> bool:
    return isinstance(node, Op) and node.primitive in _OVERWRITING
