"""The numbers of an example: nested lists, broadcasting, and the digits written."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product, zip_longest
from typing import TypeAlias

from gradspec.ir.rule import Value

Shape: TypeAlias = tuple[int, ...]
Index: TypeAlias = tuple[int, ...]

_NUMBER = re.compile(r"[+-]?(\d*)\.?(\d*)(?:[eE]([+-]?\d+))?")


@dataclass(frozen=True, slots=True)
class Array:
    """A value of an example as written: its shape and its texts in row order."""

    shape: Shape
    items: tuple[str, ...]

    def at(self, index: Index) -> str:
        """The element that stands at an index of a larger shape it broadcasts to."""
        offset = 0
        for size, place in zip(self.shape, self._own(index), strict=True):
            offset = offset * size + place
        return self.items[offset]

    def _own(self, index: Index) -> Index:
        own = index[len(index) - len(self.shape) :]
        pairs = zip(self.shape, own, strict=True)
        return tuple(0 if size == 1 else place for size, place in pairs)

    def home(self, index: Index) -> Index:
        """Where a gradient at an index of the large shape is summed to."""
        return self._own(index)


def array(value: Value) -> Array:
    """A nested value with its shape (lowering has refused ragged ones)."""
    if isinstance(value, str):
        return Array((), (value,))
    parts = [array(item) for item in value]
    inner = parts[0].shape if parts else ()
    return Array((len(parts), *inner), tuple(i for part in parts for i in part.items))


def broadcast(shapes: Iterable[Shape]) -> Shape:
    """The common shape, as in NumPy (lowering has refused those without)."""
    common: Shape = ()
    for shape in shapes:
        pairs = zip_longest(reversed(common), reversed(shape), fillvalue=1)
        sizes = [right if left == 1 else left for left, right in pairs]
        common = tuple(reversed(sizes))
    return common


def places(shape: Shape) -> Iterator[Index]:
    return product(*(range(size) for size in shape))


def value_of(text: str) -> Fraction | float | bool:
    """A given number: exact, unless it is infinite or not a number."""
    known = {"true": True, "false": False}.get(text)
    if known is not None:
        return known
    try:
        return Fraction(text)
    except ValueError:
        return float(text)


def unit(text: str) -> Fraction:
    """One in the last digit written: ``6.90`` gives 1/100."""
    match = _NUMBER.fullmatch(text)
    if match is None:
        return Fraction(0)
    exponent = int(match[3] or 0) - len(match[2])
    return Fraction(10) ** exponent
