"""A feature of the conformance suite, and how the tables write it.

``order`` is what a feature gives: 1 the gradients, 2 the derivatives of their sum, 3
those of the sum of these, 0 the values, or nothing but what it checks itself.
``forward`` marks those that need a forward derivative, which a backward pass that is not
linear in its upstream gradient does not have; ``exact`` those that compare with
difference quotients, ``smooth`` those that do so for second derivatives. ``half`` is
computed in bfloat16, ``double`` in float64. Features of one group share a process.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Feature:
    """One row of a matrix."""

    group: str
    name: str
    order: int = 1
    forward: bool = False
    half: bool = False
    double: bool = False
    exact: bool = False
    smooth: bool = False


_MARKS = ("forward", "half", "double", "exact", "smooth")


def features(group: str, *texts: str) -> Iterator[Feature]:
    """``name``, ``name: 2`` for the order, ``name: 2 forward``, ``name: half``."""
    for text in texts:
        name, _, rest = text.partition(": ")
        words = rest.split()
        order = next((int(word) for word in words if word.isdigit()), 1)
        marks = {mark: mark in words for mark in _MARKS}
        yield Feature(group, name, order, **marks)
