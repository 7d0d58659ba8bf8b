"""What a rewrite rule says (`rules.py` holds the rules)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """``left -> right`` over the variables ``a``, ``b``, ``c``.

    ``detour``: not nearly always better, so not taken on the straight way (it would
    hide ``log(1 + exp(x))`` from the rows that know it).
    """

    name: str
    left: str
    right: str
    when: str = ""
    detour: bool = False
