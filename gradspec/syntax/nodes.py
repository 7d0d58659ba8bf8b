"""The syntax tree of a `.grad` file before any name is resolved.

    module    ::= (import | def | extern def | rule)*
    expr      ::= Number | Name | Indexed(name, index*) | Unary(op, expr)
                | Binary(op, expr, expr) | Compare(expr, (op, expr)+)
                | Logical(op, expr*) | Conditional(then, condition, otherwise)
                | Call(function, output?, arg*, keyword*, index*?)
                | Comprehension(op, body, index+, condition?)
                | Whole
    index     ::= Name | Ranged(name, expr)

Every node has a span. Spans take no part in equality, so two texts that say the same
have equal trees. Numbers are exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias, assert_never

from gradspec.source import Source, Span


@dataclass(frozen=True, slots=True)
class Node:
    """A piece of the text."""

    span: Span = field(compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Named(Node):
    """A node with a name, which stands at ``name_span``."""

    name: str
    name_span: Span = field(compare=False, repr=False, kw_only=True)


# --- expressions ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Number(Node):
    """A literal; ``text`` is how the user wrote it (``0.10``), for messages."""

    value: Fraction
    text: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A bare name: an input, an output, a local, a size, an index, ``pi`` or
    ``inf``."""

    id: str


@dataclass(frozen=True, slots=True)
class Ranged(Name):
    """``j in k``, where an index is introduced; the span is that of the index."""

    range: Expr


@dataclass(frozen=True, slots=True)
class Indexed(Node):
    """``x[i, j + 1]``; ``x[]`` has no indices."""

    name: str
    indices: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Unary(Node):
    """``op`` is ``-``, ``+`` or ``not``."""

    op: str
    operand: Expr


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """``op`` is one of ``+ - * / % **``."""

    op: str
    left: Expr
    right: Expr


@dataclass(frozen=True, slots=True)
class Compare(Node):
    """A chain: ``operands[0] ops[0] operands[1] ops[1] …``; ops ``< <= > >= == !=``."""

    operands: tuple[Expr, ...]
    ops: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Logical(Node):
    """``op`` is ``and`` or ``or``; two or more operands (a chain of one op is flat)."""

    op: str
    operands: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Conditional(Node):
    """``then if condition else otherwise``."""

    then: Expr
    condition: Expr
    otherwise: Expr


@dataclass(frozen=True, slots=True)
class Keyword(Node):
    """``name=value`` in a call."""

    name: str
    value: Expr


@dataclass(frozen=True, slots=True)
class Whole(Node):
    """``:`` among indices, for all of an axis: ``x[i, :]``."""


@dataclass(frozen=True, slots=True)
class Call(Node):
    """``function(args, keyword=…)``; ``rule.output(args)`` picks one of several
    outputs. ``indices`` are those of an element of an array, ``softmax(x)[i]``; None for
    the whole result."""

    function: str
    output: str | None
    args: tuple[Expr, ...]
    keywords: tuple[Keyword, ...]
    indices: tuple[Expr, ...] | None = None
    function_span: Span = field(compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class Comprehension(Node):
    """``op(body for i, j in k if condition)``; op ``sum mean prod max min
    logsumexp``, or ``nth(place, body for i)``."""

    op: str
    body: Expr
    indices: tuple[Name, ...]
    condition: Expr | None
    place: Expr | None = None


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
    | Whole
)


def parts(node: Expr) -> tuple[Expr, ...]:
    """The direct sub-expressions, left to right."""
    match node:
        case Number() | Name() | Whole():
            return ()
        case Indexed(indices=indices):
            return indices
        case Unary(operand=operand):
            return (operand,)
        case Binary(left=left, right=right):
            return (left, right)
        case Compare(operands=operands) | Logical(operands=operands):
            return operands
        case Conditional(then=then, condition=condition, otherwise=otherwise):
            return (then, condition, otherwise)
        case Call(args=args, keywords=keywords, indices=indices):
            return (*args, *(k.value for k in keywords), *(indices or ()))
        case Comprehension(body=body, indices=indices):
            ranges = (i.range for i in indices if isinstance(i, Ranged))
            parts = (node.place, body, *ranges, node.condition)
            return tuple(part for part in parts if part is not None)
        case _:
            assert_never(node)


def walk(node: Expr) -> Iterator[Expr]:
    """Every node, parents first, left to right. Its own stack: long sums are deep."""
    todo = [node]
    while todo:
        found = todo.pop()
        yield found
        todo.extend(reversed(parts(found)))


# --- statements of a rule ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Assignment(Named):
    """``name = value``; ``indices`` is None for a bare name, a tuple for ``name[i, j
    in k]``."""

    indices: tuple[Expr, ...] | None
    value: Expr


@dataclass(frozen=True, slots=True)
class Assign(Assignment):
    """An output, a local or a gradient; ``exact name = value`` is to be evaluated as it
    stands."""

    exact: bool = False


@dataclass(frozen=True, slots=True)
class Surrogate(Assignment):
    """``surrogate OUT = expression`` (``OUT[i]`` for a ranked output)."""


@dataclass(frozen=True, slots=True)
class Override(Assignment):
    """``override dX = expression because "reason"``."""

    reason: str


@dataclass(frozen=True, slots=True)
class Solve(Assignment):
    """``solve name from start if condition: left == right``; the value is the
    comparison. The indices are those of one equation; None if they are left out."""

    start: Expr | None = None
    condition: Expr | None = None


@dataclass(frozen=True, slots=True)
class Assume(Node):
    """``assume condition, …``"""

    conditions: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Keep(Node):
    """``save name, …`` or ``recompute name, …`` (``word`` says which)."""

    word: str
    names: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class Binding(Node):
    """``name = value`` in an example. A value is a signed number (also ``inf``,
    ``-inf``, ``nan``, ``true``, ``false``) or a bracketed list of values, nested for
    matrices.
    """

    name: str
    value: Literal


@dataclass(frozen=True, slots=True)
class Scalar(Node):
    """A literal in an example. ``text`` keeps the digits that the user wrote: agreement
    is asked to exactly these.
    """

    text: str


@dataclass(frozen=True, slots=True)
class Vector(Node):
    """``[…]`` in an example."""

    items: tuple[Literal, ...]


Literal: TypeAlias = Scalar | Vector


@dataclass(frozen=True, slots=True)
class Example(Node):
    """``example x = 2, dz = 0.5: z = 6.9, dx = 2.5``."""

    given: tuple[Binding, ...]
    expected: tuple[Binding, ...]


@dataclass(frozen=True, slots=True)
class ForeignCall(Node):
    """``"scipy.special.gammaincc(2.5, x)" for numpy``: a function by its path, and what
    it is called with, names and numbers (None: all that there is, in order).
    ``targets`` are empty if it serves every target.
    """

    path: str
    arguments: tuple[str, ...] | None
    targets: tuple[Name, ...] = ()


@dataclass(frozen=True, slots=True)
class Kernel(Node):
    """``extern (dq, dk) = "path" for torch``: outputs, or gradients, that a foreign
    function computes on some targets."""

    names: tuple[Name, ...]
    calls: tuple[ForeignCall, ...]


Statement: TypeAlias = (
    Assign | Solve | Assume | Surrogate | Override | Kernel | Keep | Example
)


# --- declarations --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Axes(Node):
    """``[..., n, 3]``: ``batch`` says that it began with ``...``; axes are names or
    fixed sizes.
    """

    batch: bool
    axes: tuple[str | int, ...]
    places: tuple[Span, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Parameter(Named):
    """An input or an output: ``t[..., n]: static int = 3``.

    ``kind`` is the words after the colon joined by one space (``""`` when absent):
    ``nograd``, ``int``, ``bool``, ``param``, ``static``, ``static int``.
    """

    axes: Axes | None
    kind: str
    default: Expr | None


@dataclass(frozen=True, slots=True)
class RuleDef(Named):
    """``rule NAME(inputs) -> outputs:`` and its body, in the order written."""

    inputs: tuple[Parameter, ...]
    outputs: tuple[Parameter, ...]
    doc: str | None
    body: tuple[Statement, ...]
    doc_span: Span | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class FunctionDef(Named):
    """``def NAME(args) = expression``."""

    parameters: tuple[Name, ...]
    value: Expr


@dataclass(frozen=True, slots=True)
class ForeignDef(Named):
    """``extern def NAME(args) = "path" with derivative expression, …``; there is one
    derivative for each argument, or none."""

    parameters: tuple[Name, ...]
    calls: tuple[ForeignCall, ...]
    derivatives: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Import(Node):
    """``from "path.grad" import name, other``."""

    path: str
    names: tuple[Name, ...]
    path_span: Span = field(compare=False, repr=False, kw_only=True)


Item: TypeAlias = Import | FunctionDef | ForeignDef | RuleDef


@dataclass(frozen=True, slots=True)
class Comment(Node):
    """A ``#`` comment, its text with the ``#``; kept so that the printer loses
    nothing."""

    text: str


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
