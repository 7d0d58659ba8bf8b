"""The names that an expression can see, and the indices bound around it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum

from gradspec.lower.module import Type
from gradspec.source import Span


class Role(Enum):
    """The role of a name, in the words of messages."""

    INPUT = "an input"
    OUTPUT = "an output"
    LOCAL = "a local"
    UPSTREAM = "an upstream gradient"
    COTANGENT = "a gradient"
    PARAMETER = "a parameter"


@dataclass(frozen=True, slots=True)
class Variable:
    """A visible name. ``type`` is None where its assignment is at fault: a use of it
    is then no second fault.
    """

    name: str
    role: Role
    type: Type | None
    axes: tuple[str | int, ...] = ()
    batch: bool = False
    is_backward: bool = False
    is_static: bool = False


@dataclass(frozen=True, slots=True)
class Hidden:
    """A name that exists but must not be used here, and the reason."""

    code: str
    headline: str
    label: str = ""
    help: str = ""


@dataclass(slots=True)
class Binding:
    """An index in force. Its axis is that of the first place where it stands alone;
    failing that, of the first where it stands with an offset (``x[i + 1]``); failing
    that, the one of the indices that it is compared with (``j <= i``).
    """

    name: str
    id: str
    span: Span
    axis: str | int | None = None
    place: Span | None = None
    offset_axis: str | int | None = None
    compared: list[Binding] = field(default_factory=list, compare=False, repr=False)

    @property
    def solution(self) -> str | int | None:
        own = self.own
        if own is not None:
            return own
        axes = {b.own for b in self.compared} - {None}
        return axes.pop() if len(axes) == 1 else None

    @property
    def own(self) -> str | int | None:
        """The axis that it stands on, alone or with an offset."""
        return self.offset_axis if self.axis is None else self.axis


@dataclass(slots=True)
class Scope:
    """All that is in view; grows as a rule's body is read."""

    variables: dict[str, Variable] = field(default_factory=dict)
    sizes: dict[str, Span] = field(default_factory=dict)
    hidden: dict[str, Hidden] = field(default_factory=dict)
    indices: list[Binding] = field(default_factory=list)
    sees: str = "the rule"

    def index(self, name: str) -> Binding | None:
        """The innermost index called ``name``."""
        return next((b for b in reversed(self.indices) if b.name == name), None)

    @contextmanager
    def bind(self, bindings: tuple[Binding, ...]) -> Iterator[None]:
        """``bindings`` are in force inside the block."""
        self.indices.extend(bindings)
        yield
        del self.indices[len(self.indices) - len(bindings) :]

    def fresh(self, name: str) -> str:
        """``name``, or ``name2``, … if an index around has it already."""
        taken = {b.id for b in self.indices} | set(self.sizes) | set(self.variables)
        candidate, number = name, 2
        while candidate in taken:
            candidate, number = f"{name}{number}", number + 1
        return candidate

    def known(self) -> tuple[str, ...]:
        """The names that can be used here, for suggestions."""
        return (*self.variables, *(b.name for b in self.indices), *self.sizes)
