"""How good an expression of one input is about a point, ring by ring, in both precisions.

The points that a rule is measured on elsewhere rarely lie beside a zero of its gradient.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from random import Random
from typing import Any

import numpy as np

from gradspec.ir.expr import Expr
from gradspec.stabilise.measure import GOOD
from gradspec.stabilise.model import Machine
from gradspec.symbolic.truth import nearest

WIDTHS = tuple(
    Fraction(n, 64)
    for n in (1, 2, 4, 6, 8, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128, 192, 256)
)
"""Windows to choose from."""

_LIMITS = (2.5, 4.0, 8.0)
"""ULP that a form may be off outside of its window, the first that a window of a fair
width reaches: the machine's functions are rounded correctly, those of the targets are
off by one or two themselves."""

_FAIR = Fraction(5, 8)
_NEXT = 4  # rings beside a window that must be good
_EACH = 6  # points on either side of a ring
_WRONG = 2.0**60
_NOTHING = 2.0**-40
_TYPES: tuple[tuple[Any, int, int], ...] = (
    (np.float32, 26, 100),
    (np.float64, 56, 900),
)
"""With how far below 1 the points are from the zero, and from 0."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The largest error; the narrowest windows outside of which all is good, or fair;
    where the error is largest."""

    worst: float
    windows: tuple[Fraction, ...]
    at: float
    dtype: str

    @property
    def is_good(self) -> bool:
        return self.worst <= GOOD


class Around:
    """The points about one number, and what the function is there."""

    def __init__(self, meaning: Expr, name: str, near: Fraction) -> None:
        self._meaning, self._name, self._near = meaning, name, near

    def is_poor(self, form: Expr) -> bool:
        """Whether ``form`` loses digits beside the point (a quick look)."""
        return self._beside(form).worst > GOOD

    def is_zero(self) -> bool:
        """Whether the function is (nearly) 0 at the point."""
        return abs(float(self._truth((float(self._near),), "float64")[0])) < _NOTHING

    def is_hole(self) -> bool:
        """Whether the function has no value at the point itself."""
        return math.isnan(self._truth((float(self._near),), "float64")[0])

    def _beside(self, form: Expr) -> Profile:
        return self._profile(form, tuple(_beside(self._near, t) for t in _TYPES))

    def profile(self, form: Expr) -> Profile:
        """A thorough look."""
        beside = self._beside(form)
        rings = self._profile(form, tuple(_rings(self._near, t[0]) for t in _TYPES))
        larger = beside if beside.worst >= rings.worst else rings
        return Profile(larger.worst, rings.windows, larger.at, larger.dtype)

    def _profile(self, form: Expr, samples: tuple[tuple[float, ...], ...]) -> Profile:
        found = Profile(0.0, (), 0.0, "float32")
        outside = np.zeros(len(WIDTHS) + 1)
        for (work, *_), sample in zip(_TYPES, samples, strict=True):
            errors = self._errors(form, sample, work)
            if errors.size and errors.max() > found.worst:
                at = int(np.argmax(errors))
                name = np.dtype(work).name
                found = Profile(float(errors[at]), (), sample[at], name)
            outside = np.maximum(outside, self._by_ring(errors, sample))
        return Profile(found.worst, _windows(outside), found.at, found.dtype)

    def _by_ring(self, errors: Any, sample: tuple[float, ...]) -> Any:
        off = np.abs(np.array(sample, dtype=np.float64) - float(self._near))
        rings = np.searchsorted([float(w) for w in WIDTHS], off)
        found = np.zeros(len(WIDTHS) + 1)
        np.maximum.at(found, rings, errors)
        return found

    def _errors(self, form: Expr, sample: tuple[float, ...], work: Any) -> Any:
        machine = Machine({self._name: np.array(sample, dtype=work)}, work)
        value = np.float64(machine.run(form))
        truth = self._truth(sample, np.dtype(work).name)
        tiny = np.finfo(work).tiny
        size = np.maximum(np.abs(truth), tiny)
        with np.errstate(all="ignore"):
            unit = np.float64(np.spacing(size.astype(work)))
            off = np.abs(value - truth) / unit
        normal = np.isfinite(truth) & (np.abs(truth) >= tiny)
        off = np.where(np.isfinite(value) & ((value != 0) | ~normal), off, _WRONG)
        return np.where(normal | (np.isfinite(truth) & (off >= _WRONG)), off, 0.0)

    def _truth(self, sample: tuple[float, ...], dtype: str) -> Any:
        return np.array(_truths(self._meaning, self._name, sample, dtype))


@lru_cache(maxsize=64)
def _truths(
    meaning: Expr, name: str, sample: tuple[float, ...], dtype: str
) -> tuple[float, ...]:
    return tuple(nearest(meaning, [{name: x} for x in sample], dtype))


def _windows(outside: Any) -> tuple[Fraction, ...]:
    """The narrowest windows beyond which the rings are good; the first limit's only before
    the second's if it is of a fair width."""
    first, second, third = (_narrowest(outside, limit) for limit in _LIMITS)
    order = (first, second, third)
    if first is None or first > _FAIR:
        order = (second, first, third)
    return tuple(dict.fromkeys(width for width in order if width is not None))


def _narrowest(outside: Any, limit: float) -> Fraction | None:
    """The rings next to the window count: what is poor far away has another cause."""
    for number, width in enumerate(WIDTHS):
        if (outside[number + 1 : number + 1 + _NEXT] <= limit).all():
            return width
    return None


@lru_cache(maxsize=64)
def _beside(near: Fraction, kind: tuple[Any, int, int]) -> tuple[float, ...]:
    """Numbers beside the point: the nearest ones, and at growing distances."""
    work, least, least_at_zero = kind
    centre = work(float(near))
    found = [float(centre)] if near == 0 else []
    if near:
        for direction in (np.inf, -np.inf):
            number = centre
            for _ in range(3):
                found.append(float(number))
                number = np.nextafter(number, work(direction))
    steps = (
        range(6, least, 2)
        if near
        else (*range(6, 60, 5), *range(60, least_at_zero, 40))
    )
    for step in steps:
        for sign in (-1.0, 1.0):
            found.append(float(work(float(near) + sign * 1.37 * 2.0**-step)))
    return tuple(dict.fromkeys(found))


@lru_cache(maxsize=64)
def _rings(near: Fraction, work: Any) -> tuple[float, ...]:
    random = Random(7)
    found: list[float] = []
    for inner, outer in zip(
        (Fraction(0), *WIDTHS), (*WIDTHS, 2 * WIDTHS[-1]), strict=True
    ):
        for sign in (-1.0, 1.0):
            found += _ring(
                random, float(near), (float(inner), float(outer)), sign, work
            )
    return tuple(found)


def _ring(
    random: Random, near: float, ends: tuple[float, float], sign: float, work: Any
) -> Iterator[float]:
    inner, outer = ends
    for _ in range(_EACH):
        yield float(work(near + sign * (inner + (outer - inner) * random.random())))
