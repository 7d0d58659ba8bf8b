"""The table of primitives: all rows, a row by its name, and the formulas of rows as
expressions.

A formula is text in our own language, parsed on first use. Nothing in it is resolved: a
name becomes a `Ref`, a call an `Apply` of that name. The rows are our own text, so a
fault in one is an exception, and a test parses them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache, reduce
from typing import assert_never

from gradspec.ir.expr import Apply, Const, Expr, Ref, Select
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import expand, substitute, transform
from gradspec.primitives import (
    table_algebraic,
    table_elementary,
    table_operators,
    table_special,
)
from gradspec.primitives.foreign import (
    definition,
    foreign_row,
    is_foreign,
    members,
    operation,
    unknown_derivative,
)
from gradspec.primitives.row import Primitive, Spelling
from gradspec.syntax import nodes
from gradspec.syntax.parse import parse_expression

ROWS: tuple[Primitive, ...] = (
    *table_operators.ROWS,
    *table_elementary.ROWS,
    *table_algebraic.ROWS,
    *table_elementary.TRIGONOMETRIC,
    *table_special.ROWS,
)
"""All rows that users have a name or an operator for, family by family."""

_BY_NAME = {row.name: row for row in (*ROWS, *table_operators.NAMELESS)}
_NAMELESS = frozenset(row.name for row in table_operators.NAMELESS)
_OPERATORS = frozenset(row.name for row in table_operators.ROWS) | _NAMELESS


def primitive(name: str) -> Primitive:
    """The row called ``name``; KeyError when there is none (an internal error)."""
    return foreign_row(name) if is_foreign(name) else _BY_NAME[name]


def rows() -> tuple[Primitive, ...]:
    """Every row, of what users can call and of what they cannot."""
    return tuple(_BY_NAME.values())


def spellings(target: str) -> dict[str, Spelling]:
    """The spellings by primitive of one of gradspec's own targets."""
    return {
        row.name: row.spellings[target] for row in rows() if target in row.spellings
    }


def spelling(
    name: str, spellings: Mapping[str, Spelling], target: str
) -> Spelling | None:
    """How a target with these ``spellings`` says the operation ``name``."""
    if is_foreign(name):
        return foreign_row(name).spellings.get(target)
    return spellings.get(name)


def is_primitive(name: str) -> bool:
    return name in _BY_NAME or is_foreign(name)


def is_function(name: str) -> bool:
    """True if users can call it by this name (operators have names too, for internal
    use).
    """
    return name in _BY_NAME and name not in _OPERATORS


def function_names() -> tuple[str, ...]:
    """The names that a user can call, sorted."""
    return tuple(sorted(row.name for row in ROWS if is_function(row.name)))


# --- formulas -------------------------------------------------------------------------

BINARY = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "div",
    "%": "mod",
    "**": "pow",
    "<": "lt",
    "<=": "le",
    ">": "gt",
    ">=": "ge",
    "==": "eq",
    "!=": "ne",
    "and": "and",
    "or": "or",
}
"""The primitive of each infix operator."""

CONSTANTS = ("pi", "inf")
"""Names that are primitives without arguments."""


@cache
def formula(text: str) -> Expr:
    """The expression of a formula of the table; names become `Ref`, calls `Apply`."""
    return resolve(parse_expression(text))


@cache
def partial(op: str, position: int) -> Expr | None:
    """∂out/∂argument number ``position`` of ``op``, in its parameters and ``out``.

    None where that argument takes no gradient.
    """
    if is_foreign(op):
        return _given(op, position)
    row = primitive(op)
    text = row.partials[position] if row.partials else None
    return None if text is None else formula(text)


def _given(op: str, position: int) -> Expr:
    """The given derivative of a foreign function by one argument; an unknown function if
    none is given."""
    one, family = definition(op), members(op)
    if not one.derivatives:
        return Apply(unknown_derivative(one, position), tuple(map(Ref, one.params)))

    def visit(node: Expr) -> Expr:
        if isinstance(node, Apply) and node.op in family:
            return Apply(operation(node.op, family), node.args)
        return node

    return transform(formula(one.derivatives[position]), visit)


def negate(value: Expr) -> Expr:
    """Unary minus; of a literal it is the negative constant."""
    if isinstance(value, Const):
        return Const(-value.value)
    return Apply("neg", (value,))


def resolve(node: nodes.Expr) -> Expr:
    """The expression of a tree without indices; a name becomes a `Ref`."""
    match node:
        case nodes.Number(value=value):
            return Const(value)
        case nodes.Name(id=name):
            return Apply(name) if name in CONSTANTS else Ref(name)
        case nodes.Unary(op="-", operand=operand):
            return negate(resolve(operand))
        case nodes.Unary(op="not", operand=operand):
            return Apply("not", (resolve(operand),))
        case nodes.Unary(operand=operand):
            return resolve(operand)
        case nodes.Binary(op=op, left=left, right=right):
            return Apply(BINARY[op], (resolve(left), resolve(right)))
        case nodes.Compare(operands=operands, ops=ops):
            terms = tuple(resolve(o) for o in operands)
            links = zip(ops, terms, terms[1:], strict=False)
            return conjoin("and", tuple(Apply(BINARY[o], (a, b)) for o, a, b in links))
        case nodes.Logical(op=op, operands=operands):
            return conjoin(op, tuple(resolve(o) for o in operands))
        case nodes.Conditional(then=then, condition=condition, otherwise=otherwise):
            return Select(resolve(condition), resolve(then), resolve(otherwise))
        case nodes.Call(function=function, args=args):
            return Apply(function, tuple(resolve(a) for a in args))
        case nodes.Indexed() | nodes.Comprehension() | nodes.Whole():
            raise ValueError("a formula of the table has no indices")
        case _:
            assert_never(node)


def conjoin(op: str, terms: tuple[Expr, ...]) -> Expr:
    """``a and b and c`` as binary ``and``s from the left (``op`` may be ``or``)."""
    return reduce(lambda left, right: Apply(op, (left, right)), terms)


# --- elementary terms ----------------------------------------------------------------
# What is left: arithmetic, powers, ``exp log sqrt cbrt sin cos``, conditionals, and the
# functions that have no simpler form (``erf``, ``digamma``, ``floor``, …).


_KEPT = ("lgamma",)  # the logarithm of |gamma|: its own recurrence is better known


@lru_cache(maxsize=4096)
def elementary(expr: Expr) -> Expr:
    """The function in elementary terms."""
    return tidy(_elementary(expand(expr)))


def _elementary(expr: Expr) -> Expr:
    return transform(expr, _visit)


def _visit(node: Expr) -> Expr:
    if not isinstance(node, Apply) or node.op in _KEPT:
        return node
    meaning = _meaning(node.op)
    if meaning is None:
        return node
    params = primitive(node.op).params
    return substitute(meaning, dict(zip(params, node.args, strict=True)))


@cache
def _meaning(op: str) -> Expr | None:
    text = primitive(op).meaning
    return None if text is None else _elementary(formula(text))
