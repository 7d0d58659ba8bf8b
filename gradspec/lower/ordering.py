"""Putting things after those that they need, and finding the circles among them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

K = TypeVar("K")


def arrange(
    keys: Iterable[K], needs: Callable[[K], Iterable[K]]
) -> tuple[tuple[K, ...], tuple[tuple[K, ...], ...]]:
    """All keys, each after what it needs (otherwise in the order given), and the
    circles met on the way, each as the keys along it.

    Depth-first with its own stack: a chain may be longer than Python's.
    """
    done: dict[K, None] = {}
    circles: list[tuple[K, ...]] = []
    for start in keys:
        trail = {} if start in done else {start: iter(needs(start))}
        while trail:
            key = next(reversed(trail))
            for need in trail[key]:
                if need in trail:
                    circles.append(_from(need, tuple(trail)))
                elif need not in done:
                    trail[need] = iter(needs(need))
                    break
            else:
                del trail[key]
                done[key] = None
    return tuple(done), tuple(circles)


def _from(key: K, trail: tuple[K, ...]) -> tuple[K, ...]:
    return trail[trail.index(key) :]
