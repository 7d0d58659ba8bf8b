"""The context of lowering an expression: the names that it can see, the indices bound
around it, its demands on types, and its diagnostics."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import Enum, auto
from itertools import chain, count

from gradspec.diagnostics import Diagnostic, Fix, Label, Severity, error
from gradspec.ir.expr import Expr, Ref
from gradspec.ir.rule import Assume, Definition
from gradspec.ir.walk import names
from gradspec.lower.module import Library, Type, Value, type_of
from gradspec.primitives.lookup import CONSTANTS, is_function
from gradspec.source import Source, Span
from gradspec.syntax import nodes


class NameRole(Enum):
    """The role of a name."""

    INPUT = auto()
    OUTPUT = auto()
    LOCAL = auto()
    UPSTREAM = auto()
    COTANGENT = auto()
    PARAMETER = auto()


UNKNOWN = ""
"""An axis of a value whose definition is not read yet: it says nothing of an index."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A visible name. ``type`` is None where its assignment is at fault: a use of it
    is then no second fault.
    """

    name: str
    role: NameRole
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
    that, the one of the indices that it is compared with (``j <= i``). If it
    ``is_ranged``, its axis is the range that the author gave it.
    """

    name: str
    id: str
    span: Span
    axis: str | int | None = None
    place: Span | None = None
    offset_axis: str | int | None = None
    compared: list[Binding] = field(default_factory=list, compare=False, repr=False)
    is_ranged: bool = False

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
    """All that is in view; grows as a rule's body is read. ``compared`` are the sides of
    the comparisons that decide whether what is read counts.
    """

    variables: dict[str, Variable] = field(default_factory=dict)
    sizes: dict[str, Span] = field(default_factory=dict)
    hidden: dict[str, Hidden] = field(default_factory=dict)
    indices: list[Binding] = field(default_factory=list)
    compared: list[tuple[Expr, Expr]] = field(default_factory=list)
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

    def known_names(self) -> tuple[str, ...]:
        """The names that can be used here, for suggestions."""
        return (*self.variables, *(b.name for b in self.indices), *self.sizes)


@dataclass(slots=True)
class Demands:
    """The requirements that the body of a `def` has for its parameters, as it is
    read."""

    types: dict[str, Type] = field(default_factory=dict)
    static: dict[str, None] = field(default_factory=dict)
    rank_0: dict[str, None] = field(default_factory=dict)


@dataclass(slots=True)
class Placed:
    """The values of called rules that a rule has among its ``definitions``. ``taken`` are
    the names in its text; ``results`` those of outputs of called rules; ``calls`` has the
    rule's names for the values of each call; ``assumes`` is what holds of them.
    """

    definitions: list[Definition]
    taken: frozenset[str]
    variables: dict[str, Variable] = field(default_factory=dict)
    results: dict[str, None] = field(default_factory=dict)
    calls: dict[object, dict[str, str]] = field(default_factory=dict)
    assumes: list[Assume] = field(default_factory=list)

    def fresh(self, *wanted: str) -> str:
        """The first of some names that is free, or the last with a number."""
        numbered = (f"{wanted[-1]}{number}" for number in count(2))
        known = {*self.taken, *self.variables}
        return next(n for n in chain(wanted, numbered) if n not in known)


@dataclass(slots=True)
class Context:
    """``reader`` lowers a sub-expression (it is `expressions.lower_expression`; passed
    in because references, calls and expressions contain one another).
    """

    scope: Scope
    library: Library
    findings: Findings
    reader: Callable[[nodes.Expr, Context], Value | None]
    parameters: tuple[str, ...] = ()
    is_function: bool = False
    placed: Placed | None = None
    demands: Demands = field(default_factory=Demands)

    def lower(self, node: nodes.Expr) -> Value | None:
        """The value of ``node``; None if there is a fault (which has been reported)."""
        return self.reader(node, self)

    def number(self, node: nodes.Expr) -> Value | None:
        """``node``, which must be a number."""
        value = self.lower(node)
        return value and self.require_number(value, node.span)

    def condition(self, node: nodes.Expr) -> Value | None:
        """``node``, which must be a condition."""
        value = self.lower(node)
        return value and self.require_condition(value, node.span)

    def integer(self, node: nodes.Expr, purpose: str) -> Value | None:
        """``node``, which must be an integer; ``purpose`` says what needs it."""
        value = self.number(node)
        return value and self.require_integer(value, node.span, purpose)

    def require_number(self, value: Value, span: Span) -> Value | None:
        if self._demand(value, Type.REAL) or value.type.is_number:
            return value
        text = self._short(span)
        self.findings.error(
            "GS240",
            f"{text} is a condition, but a number is needed here",
            span,
            label="this is true or false",
            help=f"write `1 if {self.findings.text(span)} else 0` to count with it",
        )
        return None

    def require_condition(self, value: Value, span: Span) -> Value | None:
        if self._demand(value, Type.BOOL) or value.type is Type.BOOL:
            return value
        self.findings.error(
            "GS240",
            f"{self._short(span)} is a number, but a condition is needed here",
            span,
            label="this is not true or false",
            help=f"compare it with something, such as `{self.findings.text(span)} > 0`",
        )
        return None

    def require_integer(self, value: Value, span: Span, purpose: str) -> Value | None:
        if value.type is Type.INT or self._demand_integers(value.expr):
            return value
        self.findings.error(
            "GS241",
            f"{purpose} must be an integer, and {self._short(span)} need not be one",
            span,
            label="this is a real number",
            help="use integers, or one of floor, ceil, round and trunc",
        )
        return None

    def require_static(self, value: Value) -> bool:
        """True if the value is known when the rule is called (a parameter of a `def` is
        required to be).
        """
        if value.is_static:
            self.demands.static.update(self._parameters_in(value))
        return value.is_static

    def require_rank_0(self, value: Value) -> bool:
        """True if the value has no batch axes (a parameter of a `def` is required to
        have none).
        """
        self.demands.rank_0.update(self._parameters_in(value))
        return not value.batch

    def _parameters_in(self, value: Value) -> dict[str, None]:
        used = names(value.expr) if self.parameters else ()
        return dict.fromkeys(name for name in self.parameters if name in used)

    def _demand(self, value: Value, wanted: Type) -> bool:
        """Give a parameter of a `def` the type of its first use; False if it has
        another."""
        match value.expr:
            case Ref(name=name) if name in self.parameters:
                asked = self.demands.types.setdefault(name, wanted)
                return asked.is_number is wanted.is_number
            case _:
                return False

    def _demand_integers(self, expr: Expr) -> bool:
        """True if ``expr`` is an integer provided that the parameters of the `def`
        are."""
        used = tuple(n for n in self.parameters if n in names(expr))
        if not used or type_of(expr, lambda _: Type.INT) is not Type.INT:
            return False
        self.demands.types.update(dict.fromkeys(used, Type.INT))
        return True

    def _short(self, span: Span) -> str:
        text = self.findings.text(span)
        return f"`{text}`" if len(text) <= 40 and "\n" not in text else "this"


# --- diagnostics ----------------------------------------------------------------------


class Findings:
    """Collects diagnostics of one source. ``is_sound`` turns false with the first
    error, and with a note that says that the item cannot be used.
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.diagnostics: list[Diagnostic] = []

    @property
    def is_sound(self) -> bool:
        return not self.diagnostics

    def error(
        self,
        code: str,
        headline: str,
        span: Span,
        *,
        label: str = "",
        notes: Iterable[str] = (),
        help: str = "",
        also: Iterable[Label] = (),
        meant: Iterable[str] = (),
        fixes: Iterable[Fix] = (),
    ) -> None:
        """``meant`` are the names that may be meant at the place; each is a fix."""
        names = tuple(Fix(f"write `{name}`", span, name) for name in meant)
        self.diagnostics.append(
            error(
                code,
                headline,
                self.source,
                span,
                label=label,
                notes=notes,
                help=help,
                also=also,
                fixes=(*fixes, *names),
            )
        )

    def twice(
        self,
        code: str,
        second: nodes.Name | nodes.Named,
        first: Span,
        verb: str,
        help: str,
        headline: str = "",
    ) -> None:
        """A name that is ``verb`` (declared, assigned, …) a second time."""
        if isinstance(second, nodes.Name):
            name, span = second.id, second.span
        else:
            name, span = second.name, second.name_span
        self.error(
            code,
            headline or f"`{name}` is {verb} twice",
            span,
            label=f"{verb} here again",
            also=(self.place(first, f"first {verb} here"),),
            help=help,
        )

    def note(self, code: str, headline: str, span: Span, label: str) -> None:
        labels = (Label(self.source, span, label),)
        found = Diagnostic(code, Severity.NOTE, headline, labels)
        if all(found.headline != d.headline for d in self.diagnostics):
            self.diagnostics.append(found)

    def place(self, span: Span, message: str) -> Label:
        """A further place that explains an error."""
        return Label(self.source, span, message)

    def text(self, span: Span) -> str:
        return self.source.slice(span)


def near(name: str, known: Iterable[str]) -> str:
    """``did you mean …?``, or nothing when no known name is like it."""
    close = near_names(name, known)
    if not close:
        return ""
    return "did you mean " + " or ".join(f"`{c}`" for c in close) + "?"


def near_names(name: str, known: Iterable[str]) -> list[str]:
    """The known names that are most like a name, at most three."""
    return get_close_matches(name, list(dict.fromkeys(known)), n=3, cutoff=0.66)


# --- unknown names ---------------------------------------------------------------------


def report_unknown(
    name: str, span: Span, cx: Context, is_indexed: bool = False, help: str = ""
) -> None:
    """A name that is not in view: hidden here, or nowhere at all; ``help`` is that of its
    place."""
    hidden = cx.scope.hidden.get(name)
    if hidden is not None:
        cx.findings.error(
            hidden.code, hidden.headline, span, label=hidden.label, help=hidden.help
        )
        return
    known = (*cx.scope.known_names(), *CONSTANTS)
    told = help or _name_help(name, cx)
    meant = re.findall("is called `(.*)`", told) if told else near_names(name, known)
    help = told or near(name, known)
    if cx.is_function and not help:
        help = "a def sees its own parameters only: give it the value as an argument"
    elif is_function(name) and not (is_indexed and help):
        help = f"`{name}` is a function: call it, `{name}(…)`"
    cx.findings.error(
        "GS201",
        f"unknown name `{name}`",
        span,
        label=f"nothing that {cx.scope.sees} can see has this name",
        help=help or "declare it as an input, or assign it before its use",
        meant=meant,
    )


_GRADIENT = re.compile(r"(?:grad|gradient|upstream|cotangent|g)_?(\w*)")


def _name_help(name: str, cx: Context) -> str:
    """The name here of what another library calls so; empty if there is none."""
    if name == "e":
        return "Euler's number is `exp(1)`; write `exp(x)` for its powers"
    upstream = [
        v.name for v in cx.scope.variables.values() if v.role is NameRole.UPSTREAM
    ]
    called = _GRADIENT.fullmatch(name)
    if called is None or not upstream:
        return ""
    wanted = f"d{called[1]}"
    one = wanted if wanted in upstream else upstream[0]
    return f"the upstream gradient of `{one[1:]}` is called `{one}`"
