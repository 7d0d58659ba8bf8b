"""What an expansion about 0 is made of (`expansion.py`)."""

from __future__ import annotations

from dataclasses import dataclass

from gradspec.ir.expr import Expr
from gradspec.symbolic.ring import Frac


class NoExpansion(Exception):
    """There is none in whole powers, or none that we find."""


@dataclass(frozen=True, slots=True)
class Series:
    """``x**start * (c0 + c1 * x + …)``, as many terms as are known; ``c0`` is not 0."""

    start: int
    terms: tuple[Frac, ...]

    @property
    def end(self) -> int:
        return self.start + len(self.terms)


@dataclass(frozen=True, slots=True)
class Leading:
    """The first term of a function, ``first * x**power``, and those after it as shares of
    it: ``(k, share)`` stands for ``share * x**k``; ``is_whole`` if nothing else follows
    as far as we looked."""

    power: int
    first: Expr
    shares: tuple[tuple[int, Expr], ...]
    is_whole: bool
