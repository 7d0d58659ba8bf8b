"""The order in which the files of a program are lowered."""

from __future__ import annotations

import ntpath
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from gradspec.diagnostics import Diagnostic, Outcome, error
from gradspec.syntax.nodes import Import, Module

K = TypeVar("K")

SHIPPED = "gradspec:"
"""Prefix of the rules that come with gradspec: ``gradspec:control/gradients``."""


def resolve(importer: str, path: str) -> str:
    """The file that ``path``, written in ``importer``, means: ``a/b.grad`` and
    ``../c.grad`` give ``c.grad``. A shipped file may be named without ``.grad``.
    """
    if path.startswith(SHIPPED):
        return path if path.endswith(".grad") else f"{path}.grad"
    return posixpath.normpath(posixpath.join(posixpath.dirname(importer), path))


def is_absolute(path: str) -> bool:
    """True if ``path`` starts at a root or a drive: it would be another file on each
    machine.
    """
    return path.startswith("/") or ntpath.splitdrive(path)[0] != ""


def order(modules: Mapping[str, Module]) -> Outcome[tuple[str, ...]]:
    """The files, each after those that it imports (otherwise as given).

    Each circle is reported once; its files keep their place, so that their other faults
    are found too. Imports of files that are not in ``modules`` are passed over here.
    """

    def needs(path: str) -> Iterator[str]:
        return (target for _, target in _imports(path, modules))

    arranged, circles = arrange(modules, needs)
    return Outcome(arranged, tuple(_circle(circle, modules) for circle in circles))


def _imports(path: str, modules: Mapping[str, Module]) -> Iterator[tuple[Import, str]]:
    for item in modules[path].items:
        if isinstance(item, Import):
            target = resolve(path, item.path)
            if target in modules:
                yield item, target


def _circle(circle: tuple[str, ...], modules: Mapping[str, Module]) -> Diagnostic:
    """The diagnostic for a cycle, from its first file in alphabetical order on."""
    start = circle.index(min(circle))
    circle = circle[start:] + circle[:start]
    last, first = circle[-1], circle[0]
    closing = next(i for i, target in _imports(last, modules) if target == first)
    return error(
        "GS220",
        "files import each other in a circle: " + " -> ".join((*circle, first)),
        modules[last].source,
        closing.path_span,
        label="this import closes the circle",
        help="move what the files share into one that imports none of them",
    )


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
                    along = tuple(trail)
                    circles.append(along[along.index(need) :])
                elif need not in done:
                    trail[need] = iter(needs(need))
                    break
            else:
                del trail[key]
                done[key] = None
    return tuple(done), tuple(circles)
