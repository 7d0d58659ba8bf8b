"""The values of the abstract machine: arrays as objects with identity, in index notation,
and what a Python program holds beside them.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import count
from typing import Any

from gradspec.ir.expr import Apply, Bound, Const, Expr, Idx, Reduce, Ref, Select, Size
from gradspec.ir.walk import transform

ZERO, ONE = Const(Fraction(0)), Const(Fraction(1))
TRUE, FALSE = Apply("lt", (ZERO, ONE)), Apply("lt", (ONE, ZERO))
COMPARISONS = frozenset(["lt", "le", "gt", "ge", "eq", "ne"])
CONDITIONS = COMPARISONS | {"and", "or", "not"}


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


class CannotLift(Exception):
    """A site, or a path of it, is not read further: one reason of one kind, and its
    line."""

    def __init__(self, kind: str, text: str, node: ast.AST | None = None) -> None:
        super().__init__(text)
        self.kind, self.text = kind, text
        self.line: int | None = getattr(node, "lineno", None)


class IsBroken(CannotLift):
    """The code raises whenever it is reached."""


class Fork(Exception):
    """The path depends on something that the files leave open: ``key`` says on what,
    ``condition`` says it as an expression, where it is one of numbers."""

    def __init__(self, key: tuple[str, str], condition: Expr | None = None) -> None:
        super().__init__(key)
        self.key, self.condition = key, condition


# --- axes -----------------------------------------------------------------------------


class Extent:
    """The size of an axis; unified sizes are linked."""

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.link: Extent | None = None

    @property
    def root(self) -> Extent:
        return self if self.link is None else self.link.root


_numbers = count()


class Index:
    """An index, and the size of what it ranges over."""

    __slots__ = ("extent", "name")

    def __init__(self, extent: Extent) -> None:
        self.name = f"i_{next(_numbers)}"
        self.extent = extent

    @property
    def value(self) -> Idx:
        return Idx(self.name)


Axes = tuple[Index | None, ...]
"""None is an axis of size 1."""


class Array:
    """An array: one element, at the indices of its axes. ``is_open``: any axes may stand
    in front of them. Operations in place change the object. ``is_view``: it shares its
    elements with another object in a way that is not followed; ``is_parted``: elements of
    one place have been taken out of it. ``changes`` are counted.
    """

    __slots__ = ("axes", "changes", "is_open", "is_parted", "is_view", "value")

    def __init__(self, value: Expr, axes: Axes = (), is_open: bool = False) -> None:
        self.value, self.axes, self.is_open = value, tuple(axes), is_open
        self.is_view = self.is_parted = False
        self.changes = 0

    @property
    def indices(self) -> tuple[Index, ...]:
        return tuple(i for i in self.axes if i is not None)

    @property
    def is_condition(self) -> bool:
        return is_condition(self.value)

    def copy(self) -> Array:
        return Array(self.value, self.axes, self.is_open)

    def become(self, other: Array, node: ast.AST | None) -> None:
        """The change of this object by an operation in place."""
        if self.is_view or self.is_parted:
            raise CannotLift(
                "aliasing", "a change of elements that two names share", node
            )
        if len(other.axes) > len(self.axes) or (other.is_open and not self.is_open):
            raise CannotLift("shape", "an in-place operation changes the shape", node)
        self.value, self.axes, self.is_open = other.value, other.axes, other.is_open
        self.changes += 1


def is_condition(value: Expr) -> bool:
    return isinstance(value, Apply) and value.op in CONDITIONS


def as_number(value: Expr) -> Expr:
    """1 or 0 of a condition; a number is itself."""
    if value == TRUE:
        return ONE
    if value == FALSE:
        return ZERO
    return Select(value, ONE, ZERO) if is_condition(value) else value


def as_condition(value: Expr) -> Expr:
    """The number is not 0; a condition is itself."""
    return value if is_condition(value) else Apply("ne", (value, ZERO))


def with_indices(value: Expr, names: dict[str, Expr]) -> Expr:
    """The expression with other indices."""
    if not names:
        return value

    def visit(node: Expr) -> Expr:
        return names.get(node.name, node) if isinstance(node, Idx) else node

    return transform(value, visit)


UNSET = Ref("unset element")
"""An element that has to be set before it is read."""


def element(name: str, axes: Axes) -> Ref:
    return Ref(name, tuple(i.value for i in axes if i is not None))


_EXTENTS: dict[str, Extent] = {}


def size_of(index: Index) -> Expr:
    """The size of an axis as a number; `extent_named` gives the axis back."""
    name = f"size_{index.name}"
    _EXTENTS[name] = index.extent
    return Size(name)


def extent_named(name: str) -> Extent:
    return _EXTENTS[name]


def reduction(op: str, over: tuple[Index, ...], body: Expr) -> Expr:
    return Reduce(op, tuple(Bound(i.name, "") for i in over), body)


# --- what is no array -----------------------------------------------------------------


@dataclass(frozen=True)
class Library:
    """A module, or a function of one, that an import of the file names."""

    name: str


@dataclass(eq=False)
class Scope:
    """The names of a function or of a module; ``outer`` is looked at when a name is
    read, as Python does."""

    names: dict[str, Any]
    outer: Scope | None = None
    module: Any = None


@dataclass(eq=False)
class Function:
    """A function of the files, with the scope that it was made in, and the arguments that
    it has been given (`self`)."""

    node: ast.FunctionDef | ast.Lambda
    scope: Scope
    given: tuple[Any, ...] = ()


@dataclass(eq=False)
class Class:
    """A class of the files."""

    node: ast.ClassDef
    scope: Scope


@dataclass(eq=False)
class Context:
    """The `ctx` of a torch function. ``fallback`` gives attributes that its class sets
    elsewhere; ``stored`` are all names that the file stores in some object."""

    attributes: dict[str, Any] = field(default_factory=dict)
    saved: tuple[Any, ...] = ()
    nondifferentiable: tuple[Any, ...] = ()
    fallback: Callable[[str], Any] | None = None
    stored: frozenset[str] | None = frozenset()


@dataclass(frozen=True, eq=False)
class Opaque:
    """A value that only matters if something is computed with it: a flag, a dtype.
    ``origin`` says where it comes from: decisions are keyed by it."""

    kind: str
    origin: str


@dataclass(eq=False)
class Owner:
    """`self` of a layer: its attributes are numbers that the file does not fix."""


@dataclass(frozen=True, eq=False)
class Shape:
    """The shape of an array."""

    array: Array


@dataclass(frozen=True, eq=False)
class Chosen:
    """`x[mask]`: the elements at which a condition holds."""

    array: Array
    mask: Array


@dataclass(frozen=True, eq=False)
class Method:
    """A method of a value, before it is called."""

    base: Any
    name: str


@dataclass(frozen=True, eq=False)
class Steps:
    """`range` over the places of an axis, without some at its start and at its end."""

    extent: Extent
    before: int = 0
    short: int = 0
    is_backward: bool = False


@dataclass(eq=False)
class Track:
    """A list to which each step of a loop adds an element: those from before the loop, and
    the element at the step that ``index`` names. While the loop is read, ``last`` is the last
    element so far, and ``added`` those of the step itself."""

    before: list[Any]
    last: Array
    added: list[Any] = field(default_factory=list)
    is_turned: bool = False
    """Read from its end."""
    steps: Steps | None = None
    index: Index | None = None

    def turned(self) -> Track:
        """The list from its end."""
        made = Track(self.before, self.last, self.added, not self.is_turned)
        made.steps, made.index = self.steps, self.index
        return made
