"""All rows, family by family."""

from __future__ import annotations

from gradspec.primitives import (
    table_algebraic,
    table_bessel,
    table_elementary,
    table_error,
    table_gamma,
    table_operators,
    table_trigonometric,
)
from gradspec.primitives.row import Primitive

ROWS: tuple[Primitive, ...] = (
    *table_operators.ROWS,
    *table_elementary.ROWS,
    *table_algebraic.ROWS,
    *table_trigonometric.ROWS,
    *table_error.ROWS,
    *table_gamma.ROWS,
    *table_bessel.ROWS,
)
