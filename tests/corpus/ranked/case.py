"""What a rule over axes must compute: plain torch code in float64, and inputs for it.

Nothing here knows the compiler: the gradient is autograd's. Axes are words in a text,
``"... n k"``, where ``...`` stands for batch axes that broadcast.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Sizes = dict[str, int]
Draw = Callable[[np.random.Generator, tuple[int, ...], Sizes], Array]


@dataclass(frozen=True)
class Given:
    """An input: its axes, how its values are drawn, whether it takes a gradient."""

    axes: str
    draw: Draw
    is_differentiated: bool = True

    @property
    def has_batch(self) -> bool:
        return self.axes.startswith("...")

    def shape(self, sizes: Sizes, batch: tuple[int, ...]) -> tuple[int, ...]:
        own = [word for word in self.axes.split() if word != "..."]
        fixed = tuple(int(w) if w.isdigit() else sizes[w] for w in own)
        return (batch if self.has_batch else ()) + fixed


def normal(axes: str) -> Given:
    return Given(axes, lambda rng, shape, _: rng.standard_normal(shape))


def between(low: float, high: float) -> Callable[[str], Given]:
    return lambda axes: Given(axes, lambda rng, shape, _: rng.uniform(low, high, shape))


positive = between(0.3, 2.5)
unit = between(0.05, 0.95)


def simplex(axes: str) -> Given:
    """Positive, and sums to one along the last axis."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...], _: Sizes) -> Array:
        weights = rng.uniform(0.1, 1.0, shape)
        return np.asarray(weights / weights.sum(-1, keepdims=True))

    return Given(axes, draw)


def label(axes: str, of: str) -> Given:
    """Numbers of places on the axis ``of``."""
    return Given(
        axes,
        lambda rng, shape, sizes: np.asarray(rng.integers(0, sizes[of], shape)),
        is_differentiated=False,
    )


def flags(axes: str) -> Given:
    """Booleans; the first of the last axis is true, so that something is kept."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...], _: Sizes) -> Array:
        made = np.asarray(rng.random(shape) < 0.6)
        if shape and axes != "...":
            made[..., 0] = True
        return made

    return Given(axes, draw, is_differentiated=False)


def fixed(given: Given) -> Given:
    """The same without a gradient."""
    return Given(given.axes, given.draw, is_differentiated=False)


def zero_one(axes: str) -> Given:
    """Multi-hot targets: floating, without a gradient."""
    return Given(
        axes,
        lambda rng, shape, _: np.asarray(rng.random(shape) < 0.5).astype(float),
        is_differentiated=False,
    )


Static = float | int | Callable[[Sizes], Any]


@dataclass(frozen=True)
class Case:
    """``forward`` takes tensors and statics by name. ``sizes`` bounds an axis (2 to 4
    unless told) or computes it from the others; ``statics`` are values or functions of
    the sizes.
    """

    forward: Callable[..., Any]
    inputs: Mapping[str, Given]
    sizes: Mapping[str, Any] = field(default_factory=dict)
    statics: Mapping[str, Static] = field(default_factory=dict)


def case(
    forward: Callable[..., Any],
    sizes: Mapping[str, Any] | None = None,
    statics: Mapping[str, Static] | None = None,
    **inputs: str | Given,
) -> Case:
    """An input that is only a text is normally distributed."""
    made = {n: normal(g) if isinstance(g, str) else g for n, g in inputs.items()}
    return Case(forward, made, sizes or {}, statics or {})


# --- trials --------------------------------------------------------------------------

_BATCHES: tuple[tuple[tuple[int, ...], ...], ...] = (
    ((),),
    ((2,),),
    ((2, 1), (3,), (), (1, 3)),
    ((1, 3), (2, 1), (2, 3), ()),
)
"""By trial: the batch axes of the inputs in turn. The second trial has axes of size 1."""


@dataclass(frozen=True)
class Trial:
    arrays: Mapping[str, Array]
    statics: Mapping[str, Any]


def trials(name: str, spec: Case) -> tuple[Trial, ...]:
    """One of each kind; without batch axes two are enough."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    batched = sum(given.has_batch for given in spec.inputs.values())
    count = 2 if not batched else 3 if batched == 1 else 4
    return tuple(_trial(spec, number, rng) for number in range(count))


def _trial(spec: Case, number: int, rng: np.random.Generator) -> Trial:
    sizes = _sizes(spec, number == 1, rng)
    batches = _BATCHES[number]
    arrays: dict[str, Array] = {}
    turn = 0
    for name, given in spec.inputs.items():
        batch = batches[turn % len(batches)]
        turn += given.has_batch
        arrays[name] = given.draw(rng, given.shape(sizes, batch), sizes)
    statics = {n: v(sizes) if callable(v) else v for n, v in spec.statics.items()}
    return Trial(arrays, statics)


def _sizes(spec: Case, is_least: bool, rng: np.random.Generator) -> Sizes:
    words = [w for g in spec.inputs.values() for w in g.axes.split()]
    named = [w for w in words if w != "..." and not w.isdigit()]
    sizes: Sizes = {}
    for word in dict.fromkeys([*named, *spec.sizes]):
        bound = spec.sizes.get(word, (1, 4))
        if not callable(bound):
            low, high = bound
            sizes[word] = low if is_least else int(rng.integers(max(low, 2), high + 1))
    for word, bound in spec.sizes.items():
        if callable(bound):
            sizes[word] = bound(sizes)
    return sizes
