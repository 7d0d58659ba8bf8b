"""The numbers of floating-point formats, as arrays of float64: one kind of array serves for
all four. Numbers drawn by their exponents, and those of moderate size.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from gradspec.symbolic.truth import FORMATS

Array = Any
"""A float64 array (NumPy's own types say little more)."""

HALF = ("float16", "bfloat16")

_INTEGERS = {"float16": (np.float16, np.int16), "float32": (np.float32, np.int32)}


def least_normal(dtype: str) -> float:
    """The smallest positive normal number."""
    form = FORMATS[dtype]
    return float(2.0 ** (form.least + form.bits - 1))


def largest(dtype: str) -> float:
    """The largest finite number."""
    form = FORMATS[dtype]
    return float((2.0 - 2.0 ** (1 - form.bits)) * 2.0 ** (form.top - 1))


def exponents(dtype: str) -> tuple[int, int]:
    """Exponents of the normal numbers: the first, and one beyond the last."""
    form = FORMATS[dtype]
    return form.least + form.bits - 1, form.top


def rounded(values: Array, dtype: str) -> Array:
    """The values rounded to the format, half to even."""
    values = np.asarray(values, dtype=np.float64)
    if dtype == "float64":
        return values
    form = FORMATS[dtype]
    with np.errstate(all="ignore"):
        _, top = np.frexp(values)
        unit = np.maximum(top - form.bits, form.least)
        near = np.ldexp(np.rint(np.ldexp(values, -unit)), unit)
    near = np.where(np.abs(near) > largest(dtype), np.copysign(np.inf, values), near)
    return np.where(np.isfinite(values), near, values)


def ordinals(values: Array, dtype: str) -> Array:
    """Whole numbers in the order of the numbers, neighbours differing by 1 (-0.0 and
    0.0 are one).
    """
    values = np.asarray(values, dtype=np.float64)
    bits = _bits(values, dtype)
    return np.where(np.signbit(values), -bits, bits)


def numbers(ordinal: Array, dtype: str) -> Array:
    """The inverse of :func:`ordinals`."""
    ordinal = np.asarray(ordinal, dtype=np.int64)
    size = np.abs(ordinal)
    if dtype == "float64":
        value = size.view(np.float64)
    elif dtype == "bfloat16":
        value = (size << 16).astype(np.int32).view(np.float32).astype(np.float64)
    else:
        real, whole = _INTEGERS[dtype]
        with np.errstate(invalid="ignore"):  # NaN of a kind that float64 is told of
            value = size.astype(whole).view(real).astype(np.float64)
    return np.where(ordinal < 0, -value, value)


def _bits(values: Array, dtype: str) -> Array:
    size = np.abs(values)
    if dtype == "float64":
        return size.view(np.int64)
    if dtype == "bfloat16":
        return size.astype(np.float32).view(np.int32).astype(np.int64) >> 16
    real, whole = _INTEGERS[dtype]
    return size.astype(real).view(whole).astype(np.int64)


def every(dtype: str) -> Array:
    """Every finite number of a format of 16 bits, in order (0.0 once)."""
    top = int(ordinals(np.array([largest(dtype)]), dtype)[0])
    return numbers(np.arange(-top, top + 1), dtype)


def units(value: Array, dtype: str) -> Array:
    """The unit in the last place of each value, ``2**(floor(log2|v|) - bits + 1)``, at
    least that of the least normal number, which 0 and what is not finite have."""
    form = FORMATS[dtype]
    with np.errstate(all="ignore"):
        _, top = np.frexp(value)
        size = np.ldexp(1.0, np.maximum(top - form.bits, form.least))
    is_number = np.isfinite(value) & (value != 0)
    return np.where(is_number, size, 2.0**form.least)


CORE = (2.0**-12, 128.0)
"""Magnitudes of moderate inputs (0 is moderate too)."""


def are_moderate(columns: Iterable[Array], count: int) -> Array:
    """The rows, of so many, in which every number is of the core."""
    found = np.ones(count, dtype=bool)
    for column in columns:
        size = np.abs(column)
        found &= (size >= CORE[0]) & (size <= CORE[1]) | (size == 0)
    return found


def by_exponent(
    random: np.random.Generator, count: int, span: tuple[int, int]
) -> Array:
    """So many numbers of either sign, whose exponents in a span are equally likely."""
    exponent = random.integers(span[0], span[1], count)
    sign = random.choice([-1.0, 1.0], count)
    return sign * np.ldexp(1.0 + random.random(count), exponent)
