"""Many expressions at one point as float64, right to the last bit or two."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import nan
from typing import Any

from flint import ctx

from gradspec.symbolic.enclose import Program, defined

PRECISION = 256
"""Bits: moderate points of sums of a few terms lose few of them."""

ACCURACY = 1e-30
"""How narrow a ball is to be: moderate points give no smaller numbers of interest."""


def floats(compiled: Program, point: Mapping[str, Any]) -> list[float | None]:
    """The middles of the balls, however large or small; None where there is no value."""
    balls = compiled.run(point, 2 * PRECISION)
    with ctx.workprec(2 * PRECISION):
        return [
            float(ball.mid()) if defined(ball) and not isinstance(ball, bool) else None
            for ball in balls
        ]


def values(program: Program, point: Mapping[str, Fraction]) -> list[float]:
    """One number for each root of the program; nan where it is undefined or not narrow."""
    balls = program.run(point, PRECISION)
    with ctx.workprec(PRECISION):
        return [
            float(ball.mid()) if ball.is_finite() and ball.rad() < ACCURACY else nan
            for ball in balls
        ]
