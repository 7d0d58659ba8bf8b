"""The result of lowering a file, the functions that its items can call, and the order in
which the files of a program are lowered."""

from __future__ import annotations

import ntpath
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias, TypeVar

from gradspec.diagnostics import Diagnostic, Outcome, error
from gradspec.ir.expr import Expr
from gradspec.ir.rule import Rule
from gradspec.primitives.lookup import function_names, primitive
from gradspec.primitives.row import Primitive
from gradspec.source import Source, Span
from gradspec.syntax.nodes import Import, Module


class Type(Enum):
    """The mathematical type of a value; an integer is a real, a truth value is not."""

    REAL = "real"
    INT = "int"
    BOOL = "bool"

    @property
    def is_number(self) -> bool:
        return self is not Type.BOOL


@dataclass(frozen=True, slots=True)
class FunctionParameter:
    """A parameter of a `def`, and what the body asks of it: a type; to be static, or of
    rank 0, because it is passed on to an input of a rule that is.
    """

    name: str
    type: Type
    is_static: bool = False
    is_rank_0: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """A `def`, resolved: a parameter is ``Ref(name)``, other defs are inlined."""

    name: str
    parameters: tuple[FunctionParameter, ...]
    body: Expr
    source: Source = field(compare=False, repr=False)
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class LoweredModule:
    """One file, resolved: its sound rules and defs in the order written.

    ``imported`` are the defs of other files that it may call;
    ``failed`` are the names that the file defines but that have errors, so that a
    file which imports one is told of it in a note and nothing more.
    """

    source: Source
    rules: tuple[Rule, ...] = ()
    functions: tuple[Function, ...] = ()
    imported: tuple[Function, ...] = ()
    failed: tuple[str, ...] = ()

    def find(self, name: str) -> Rule | Function | None:
        """The sound rule or def called ``name``."""
        return next((item for item in self._items if item.name == name), None)

    @property
    def names(self) -> tuple[str, ...]:
        """All that another file can import, faulty ones too."""
        return (*(item.name for item in self._items), *self.failed)

    @property
    def _items(self) -> tuple[Rule | Function, ...]:
        return (*self.rules, *self.functions)


@dataclass(frozen=True, slots=True)
class Failed:
    """A rule or def that exists but has errors of its own."""

    name: str


Callee: TypeAlias = Rule | Function | Primitive | Failed


@dataclass(frozen=True, slots=True)
class Library:
    """The meaning of function names inside the item called ``current``.

    ``known`` are the rules and defs of the file and those that it imports; they shadow
    built-ins, but for the item's own name, which means the built-in.
    """

    known: Mapping[str, Rule | Function | Failed] = field(default_factory=dict)
    current: str = ""

    def find(self, name: str) -> Callee | None:
        if name in self.known and not (name == self.current and is_function(name)):
            return self.known[name]
        return primitive(name) if is_function(name) else None

    def names(self) -> tuple[str, ...]:
        """Everything that can be called, for suggestions."""
        return (*self.known, *function_names())


def is_function(name: str) -> bool:
    """True if there is a built-in function (not an operator) of this name."""
    return name in function_names()


# --- imports --------------------------------------------------------------------------


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
