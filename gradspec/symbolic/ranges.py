"""The range that a variable may still have, and numbers within it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

_LARGEST = Fraction((1 << 24) - 1) * Fraction(2) ** 104


def fractions(text: str) -> tuple[Fraction, ...]:
    """Exact numbers from their text: ``"1 1/2 -3"``."""
    return tuple(Fraction(part) for part in text.split())


def float32(value: Any) -> Fraction:
    """The float32 nearest to a fraction, or to the middle of a ball."""
    exact = value if isinstance(value, Fraction) else middle(value)
    if exact == 0:
        return exact
    top = exact.numerator.bit_length() - exact.denominator.bit_length()
    unit = Fraction(2) ** max(top - 23, -149)
    return max(-_LARGEST, min(_LARGEST, round(exact / unit) * unit))


def middle(ball: Any) -> Fraction:
    """The centre of a finite ball."""
    man, exp = ball.mid().man_exp()
    return Fraction(int(man)) * Fraction(2) ** int(exp)


@dataclass(frozen=True, slots=True)
class Range:
    """From ``low`` to ``high`` (None: no end), each end inside or not."""

    low: Fraction | None = None
    high: Fraction | None = None
    low_inside: bool = False
    high_inside: bool = False

    def within(self, op: str, ball: Any) -> Range:
        """Narrowed by ``op`` and a bound; an infinite or undefined one says nothing."""
        if not hasattr(ball, "is_finite") or not ball.is_finite():
            return self
        value = middle(ball)
        closed = op in ("le", "ge", "eq") and bool(ball.is_exact())
        result = self
        if op in ("gt", "ge", "eq") and (self.low is None or value >= self.low):
            inside = closed and (value != self.low or self.low_inside)
            result = Range(value, result.high, inside, result.high_inside)
        if op in ("lt", "le", "eq") and (self.high is None or value <= self.high):
            inside = closed and (value != self.high or self.high_inside)
            result = Range(result.low, value, result.low_inside, inside)
        return result

    def holds(self, value: Fraction) -> bool:
        if self.low is not None and not _beyond(value, self.low, self.low_inside):
            return False
        if self.high is None:
            return True
        return _beyond(-value, -self.high, self.high_inside)

    def simple_inside(self) -> tuple[Fraction, ...]:
        """A few plain numbers: by quarters between two ends, by ones from one end."""
        match (self.low, self.high):
            case (None, None):
                return ()
            case (Fraction() as low, None):
                return tuple(low + step for step in fractions("1 2 1/2 3 0 1/4"))
            case (None, Fraction() as high):
                return tuple(high - step for step in fractions("1 2 1/2 3 0 1/4"))
            case (Fraction() as low, Fraction() as high):
                parts = fractions("1/2 1/4 3/4 0 1 1/8 7/8 3/8")
                return tuple(low + (high - low) * part for part in parts)
            case _:
                return ()

    def place(self, size: Fraction, mirrored: bool) -> Fraction | None:
        """A number at the distance ``size`` from an end (from zero without ends);
        between two ends the distance is folded into the interval."""
        match (self.low, self.high):
            case (None, None):
                return float32(-size if mirrored else size)
            case (Fraction() as low, None):
                return float32(low + size)
            case (None, Fraction() as high):
                return float32(high - size)
            case (Fraction() as low, Fraction() as high):
                part = (high - low) * size / (1 + size) / (1 if size > 1 else 2)
                return float32(high - part if mirrored else low + part)
            case _:
                return None


def _beyond(value: Fraction, end: Fraction, inside: bool) -> bool:
    return value > end or (inside and value == end)
