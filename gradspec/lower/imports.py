"""The order in which the files of a program are lowered."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping

from gradspec.diagnostics import Diagnostic, Outcome, error
from gradspec.syntax.nodes import Import, Module


def resolve(importer: str, path: str) -> str:
    """The file that ``path``, written in ``importer``, means: ``a/b.grad`` and
    ``../c.grad`` give ``c.grad``.
    """
    return posixpath.normpath(posixpath.join(posixpath.dirname(importer), path))


def order(modules: Mapping[str, Module]) -> Outcome[tuple[str, ...]]:
    """The files, each after those that it imports (otherwise as given).

    Files on a cycle are reported once a cycle and left out, with all that import them.
    Imports of files that are not in ``modules`` are passed over here.
    """
    search = _Search(modules)
    for path in modules:
        search.visit(path)
    return Outcome(tuple(search.done), tuple(search.found))


class _Search:
    """A depth-first search with its trail, on an explicit stack (chains may be long)."""

    def __init__(self, modules: Mapping[str, Module]) -> None:
        self.modules = modules
        self.done: dict[str, None] = {}
        self.failed: dict[str, None] = {}
        self.found: list[Diagnostic] = []

    def visit(self, start: str) -> None:
        if start in self.done or start in self.failed:
            return
        trail = {start: self._imports(start)}
        while trail:
            path = next(reversed(trail))
            for item, target in trail[path]:
                if target in trail:
                    self._report(path, item, tuple(trail), target)
                elif target not in self.done and target not in self.failed:
                    trail[target] = self._imports(target)
                    break
                if target in self.failed:
                    self.failed[path] = None
            else:
                self._finish(path, trail)

    def _finish(self, path: str, trail: dict[str, Iterator[tuple[Import, str]]]) -> None:
        del trail[path]
        if path not in self.failed:
            self.done[path] = None
        elif trail:
            self.failed[next(reversed(trail))] = None

    def _imports(self, path: str) -> Iterator[tuple[Import, str]]:
        for item in self.modules[path].items:
            if isinstance(item, Import):
                target = resolve(path, item.path)
                if target in self.modules:
                    yield item, target

    def _report(
        self, path: str, item: Import, trail: tuple[str, ...], target: str
    ) -> None:
        cycle = trail[trail.index(target) :]
        self.failed.update(dict.fromkeys(cycle))
        self.found.append(
            error(
                "GS220",
                "files import each other in a circle: " + " -> ".join((*cycle, target)),
                self.modules[path].source,
                item.path_span,
                label="this import closes the circle",
                help="move what both files need into a third file that imports neither",
            )
        )
