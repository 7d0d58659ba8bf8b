"""The syntax tree of a `.grad` file before any name is resolved.

    module    ::= (import | def | rule)*
    expr      ::= Number | Name | Indexed(name, index*) | Unary(op, expr)
                | Binary(op, expr, expr) | Compare(expr, (op, expr)+)
                | Logical(op, expr*) | Conditional(then, condition, otherwise)
                | Call(function, output?, arg*, keyword*)
                | Comprehension(op, body, index+, condition?)

Every node has a span. Spans take no part in equality, so two texts that say the same
have equal trees. Numbers are exact.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from gradspec.source import Source, Span

# --- expressions ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Number:
    """A literal; ``text`` is how the user wrote it (``0.10``), for messages."""

    value: Fraction
    text: str = field(compare=False)
    span: Span = field(compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Name:
    """A bare name: an input, an output, a local, a size, an index, ``pi`` or
    ``inf``."""

    id: str
    span: Span = field(compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Indexed:
    """``x[i, j + 1]``; ``x[]`` has no indices."""

    name: str
    indices: tuple[Expr, ...]
    span: Span = field(compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Unary:
    """``op`` is ``-``, ``+`` or ``not``."""

    op: str
    operand: Expr
    span: Span = field(compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Binary:
    """``op`` is one of ``+ - * / % **``."""

    op: str
    left: Expr
    right: Expr
    span: Span = field(compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Compare:
    """A chain: ``operands[0] ops[0] operands[1] ops[1] …``; ops ``< <= > >= == !=``."""

    operands: tuple[Expr, ...]
    ops: tuple[str, ...]
    span: Span = field(compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Logical:
    """``op`` is ``and`` or ``or``; two or more operands (a chain of one op is flat)."""

    op: str
    operands: tuple[Expr, ...]
    span: Span = field(compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Conditional:
    """``then if condition else otherwise``."""

    then: Expr
    condition: Expr
    otherwise: Expr
    span: Span = field(compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Keyword:
    """``name=value`` in a call."""

    name: str
    value: Expr
    span: Span = field(compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Call:
    """``function(args, keyword=…)``; ``rule.output(args)`` picks one of several
    outputs."""

    function: str
    output: str | None
    args: tuple[Expr, ...]
    keywords: tuple[Keyword, ...]
    span: Span = field(compare=False, repr=False, kw_only=True)
    function_span: Span = field(compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Comprehension:
    """``op(body for i, j if condition)``; op ``sum mean prod max min logsumexp``."""

    op: str
    body: Expr
    indices: tuple[Name, ...]
    condition: Expr | None
    span: Span = field(compare=False, repr=False, kw_only=True)


Expr: TypeAlias = (
    Number
    | Name
    | Indexed
    | Unary
    | Binary
    | Compare
    | Logical
    | Conditional
    | Call
    | Comprehension
)


# --- statements of a rule ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Assign:
    """``name = value``; ``indices`` is None for a bare name, a tuple for ``name[i,
    j]``. ``exact name = value`` is to be evaluated as it stands.
    """

    name: str
    indices: tuple[Expr, ...] | None
    value: Expr
    exact: bool = False
    span: Span = field(compare=False, repr=False, kw_only=True)
    name_span: Span = field(compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Assume:
    """``assume condition, …``"""

    conditions: tuple[Expr, ...]
    span: Span = field(compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Surrogate:
    """``surrogate OUT = expression`` (``OUT[i]`` for a ranked output)."""

    name: str
    indices: tuple[Expr, ...] | None
    value: Expr
    span: Span = field(compare=False, repr=False, kw_only=True)
    name_span: Span = field(compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Override:
    """``override dX = expression because "reason"``."""

    name: str
    indices: tuple[Expr, ...] | None
    value: Expr
    reason: str
    span: Span = field(compare=False, repr=False, kw_only=True)
    name_span: Span = field(compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Keep:
    """``save name, …`` or ``recompute name, …`` (``word`` says which)."""

    word: str
    names: tuple[Name, ...]
    span: Span = field(compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Binding:
    """``name = value`` in an example. A value is a signed number (also ``inf``,
    ``-inf``, ``nan``, ``true``, ``false``) or a bracketed list of values, nested for
    matrices.
    """

    name: str
    value: Literal
    span: Span = field(compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A literal in an example. ``text`` keeps the digits that the user wrote: agreement
    is asked to exactly these.
    """

    text: str
    span: Span = field(compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Vector:
    """``[…]`` in an example."""

    items: tuple[Literal, ...]
    span: Span = field(compare=False, repr=False, kw_only=True)


Literal: TypeAlias = Scalar | Vector


@dataclass(frozen=True, slots=True)
class Example:
    """``example x = 2, dz = 0.5: z = 6.9, dx = 2.5``."""

    given: tuple[Binding, ...]
    expected: tuple[Binding, ...]
    span: Span = field(compare=False, repr=False, kw_only=True)


Statement: TypeAlias = Assign | Assume | Surrogate | Override | Keep | Example


# --- declarations --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Axes:
    """``[..., n, 3]``: ``batch`` says that it began with ``...``; axes are names or
    fixed sizes.
    """

    batch: bool
    axes: tuple[str | int, ...]
    span: Span = field(compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Parameter:
    """An input or an output: ``t[..., n]: static int = 3``.

    ``kind`` is the words after the colon joined by one space (``""`` when absent):
    ``nograd``, ``int``, ``bool``, ``param``, ``static``, ``static int``.
    """

    name: str
    axes: Axes | None
    kind: str
    default: Expr | None
    span: Span = field(compare=False, repr=False, kw_only=True)
    name_span: Span = field(compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class RuleDef:
    """``rule NAME(inputs) -> outputs:`` and its body, in the order written."""

    name: str
    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    doc: str | None
    body: tuple[Statement, ...]
    span: Span = field(compare=False, repr=False, kw_only=True)
    name_span: Span = field(compare=False, repr=False, kw_only=True)
    doc_span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class FunctionDef:
    """``def NAME(args) = expression``."""

    name: str
    parameters: tuple[Name, ...]
    value: Expr
    span: Span = field(compare=False, repr=False, kw_only=True)
    name_span: Span = field(compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Import:
    """``from "path.grad" import name, other``."""

    path: str
    names: tuple[Name, ...]
    span: Span = field(compare=False, repr=False, kw_only=True)
    path_span: Span = field(compare=False, repr=False, kw_only=True)


Item: TypeAlias = Import | FunctionDef | RuleDef


@dataclass(frozen=True, slots=True)
class Comment:
    """A ``#`` comment, its text with the ``#``; kept so that the printer loses
    nothing."""

    text: str
    span: Span = field(compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Module:
    """One file.

    ``broken`` are the names of items that could not be read: they have been reported,
    and a use of one of them is no fault of its own.
    """

    source: Source
    items: tuple[Item, ...]
    comments: tuple[Comment, ...] = field(default=(), compare=False)
    broken: tuple[str, ...] = field(default=(), compare=False)
