"""The tolerance of a quantity at each point of an audit, in any of the four formats.

In float32 and float64 it is that of :mod:`gradspec.stabilise.condition`, by balls. In
float16 and bfloat16, whose 65,536 numbers may all be asked for, slopes are differences
of the expression as computed in float64.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gradspec.audit.formats import HALF, Array, largest, rounded, unit
from gradspec.ir.expr import Apply, Expr
from gradspec.ir.walk import expand, nodes
from gradspec.primitives.lookup import primitive
from gradspec.stabilise.arithmetic_model import Machine
from gradspec.stabilise.condition import STEPS, Condition
from gradspec.symbolic.truth import FORMATS

Row = Mapping[str, Any]


def tolerances(
    forms: tuple[Expr, ...],
    rows: Sequence[Row],
    value: Array,
    inputs: frozenset[str],
    dtype: str,
) -> Array:
    """T at points where the exact value is ``value``; NaN where it is NaN or beyond the
    largest number, so that nothing is judged. Of ``forms``, equal functions, the first
    that has a value at a point tells the slopes there."""
    judged = np.abs(value) <= largest(dtype)
    if dtype in HALF:
        found = units(rounded(value, dtype), dtype) + _in_double(
            forms, rows, inputs, dtype
        )
        return np.where(judged, found, np.nan)
    found = np.full(len(rows), np.nan)
    for form in forms:
        asked = np.flatnonzero(judged & np.isnan(found))
        some = tuple(rows[place] for place in asked.tolist())
        condition = Condition(form, some, inputs, dtype, value[asked])
        for number, place in enumerate(asked.tolist()):
            found[place] = condition.tolerance(number)
    return found


def units(value: Array, dtype: str) -> Array:
    """The unit in the last place of each value, at least that of the least normal
    number."""
    found = unit(value, np.zeros(len(value)), dtype)
    return np.where(np.isnan(found), 2.0 ** FORMATS[dtype].least, found)


def _in_double(
    forms: tuple[Expr, ...], rows: Sequence[Row], inputs: frozenset[str], dtype: str
) -> Array:
    """The sum over the inputs of |∂f/∂x| · ulp(x)."""
    total = np.full(len(rows), np.nan)
    if not rows:
        return total
    columns = _columns(rows)
    for form in forms:
        if np.isnan(total).any():
            found = _changes(form, columns, inputs, dtype)
            total = np.where(np.isnan(total), found, total)
    return np.nan_to_num(total)


def _changes(
    form: Expr, columns: dict[str, Array], inputs: frozenset[str], dtype: str
) -> Array:
    """The same by one form; NaN where float64 has no value of it."""
    here = Machine(columns, np.float64).run(form)
    total = np.where(np.isfinite(here), 0.0, np.nan)
    for name in sorted(inputs & columns.keys()):
        column = columns[name]
        step = np.where(column == 0, 0.0, STEPS * units(column, dtype))
        most = np.zeros(len(column))
        for moved in (column + step, column - step):
            there = Machine({**columns, name: moved}, np.float64).run(form)
            with np.errstate(all="ignore"):
                gap = np.abs(there - here) / STEPS
            most = np.fmax(most, np.where(np.isfinite(gap), gap, 0.0))
        total = total + most
    return total


def at_sign_changes(form: Expr, rows: Sequence[Row]) -> Array:
    """Points at which the argument of a step (``sign``) is 0: the derivative of |x| is
    given the value 0 there, also where the function as a whole has a slope."""
    found = np.zeros(len(rows), dtype=bool)
    arguments = [
        node.args[0]
        for node in nodes(expand(form))
        if isinstance(node, Apply) and _jumps_at_zero(node.op)
    ]
    machine = Machine(_columns(rows), np.float64)
    for argument in arguments if rows else ():
        found |= np.asarray(machine.run(argument) == 0)
    return found


def _jumps_at_zero(op: str) -> bool:
    row = primitive(op)
    return row.is_step and row.kinks[0][0] == "x == 0"


def _columns(rows: Sequence[Row]) -> dict[str, Array]:
    names = rows[0] if rows else ()
    return {n: np.array([float(row[n]) for row in rows]) for n in names}
