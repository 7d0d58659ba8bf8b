"""The result of lowering a file, and the functions that its items can call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from gradspec.ir.expr import Expr
from gradspec.ir.rule import Rule
from gradspec.primitives.lookup import function_names, primitive
from gradspec.primitives.row import Primitive
from gradspec.source import Source, Span


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
