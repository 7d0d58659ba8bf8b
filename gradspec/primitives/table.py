"""All rows, family by family."""

from __future__ import annotations

from gradspec.primitives import (
    table_algebraic,
    table_compensated,
    table_elementary,
    table_operators,
    table_special,
    table_trigonometric,
)
from gradspec.primitives.row import Primitive

ROWS: tuple[Primitive, ...] = (
    *table_operators.ROWS,
    *table_elementary.ROWS,
    *table_compensated.ROWS,
    *table_algebraic.ROWS,
    *table_trigonometric.ROWS,
    *table_special.ROWS,
)
