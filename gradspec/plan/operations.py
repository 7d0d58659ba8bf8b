"""Elementwise expressions translated to array operations.

Small powers become products (``x**2`` is ``x * x``: a tenth of the time of a power, and
correctly rounded), a sum with a negative becomes a difference (the same number),
integer and boolean tensors become floating in arithmetic. Then, for a target, the
primitives that it lacks are expanded, and constants are folded.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, repeat
from typing import Any, TypeGuard, assert_never

from gradspec.ir import expr as ir
from gradspec.ir import walk
from gradspec.ir.tidy import decide, tidy
from gradspec.ir.walk import children, expand, nodes, transform
from gradspec.plan.arrays import (
    Expr,
    Literal,
    Name,
    Op,
    RankedNode,
    Rearranged,
    ToFloat,
    Where,
    is_number,
    is_whole,
    names,
    substitute,
)
from gradspec.primitives import row as rows
from gradspec.primitives.foreign import is_foreign
from gradspec.primitives.lookup import formula, primitive
from gradspec.primitives.lookup import spelling as spelling_of
from gradspec.symbolic.enclose import enclose

ZERO, ONE = Literal(Fraction(0)), Literal(Fraction(1))
INFINITY = Op("inf")
LOWEST = Op("neg", (INFINITY,))


@dataclass(frozen=True, slots=True)
class Types:
    """Names that are no floating tensors: Python numbers, tensors of other kinds. An
    integer may be one or the other.
    """

    scalars: frozenset[str]
    integers: frozenset[str]
    booleans: frozenset[str]


def translate(
    expr: ir.Expr, types: Types, known: dict[ir.Expr, Expr] | None = None
) -> Expr:
    """The expression over arrays; calls of other rules are inlined.

    ``known``: translations so far, shared by expressions with common parts.
    """
    expr = expand(expr)
    done: dict[ir.Expr, Expr] = {} if known is None else known
    for node in walk.nodes(expr):
        if node in done:
            continue
        parts = tuple(done[child] for child in walk.children(node))
        done[node] = array_node(node, parts, types)
    return done[expr]


def as_float(value: Expr, types: Types) -> Expr:
    """``value`` as a floating tensor, if it is of another kind."""
    return ToFloat(value) if _is_discrete(value, types) else value


def is_scalar(expr: Expr, types: Types) -> bool:
    """True if no tensor occurs in the value."""
    return all(name in types.scalars for name in names(expr))


def replace_whole(expr: Expr, values: Mapping[Expr, Expr]) -> Expr:
    """``expr`` with whole sub-expressions replaced, outermost first."""
    done: dict[Expr, Expr] = {}
    for node in nodes(expr):
        parts = tuple(done[child] for child in children(node))
        done[node] = values[node] if node in values else rebuilt(node, parts)
    return done[expr]


def with_values(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """Names replaced, and the result simplified where that is exact."""
    return replace_whole(expr, {Name(name): value for name, value in values.items()})


def rebuilt(node: Expr, parts: tuple[Expr, ...]) -> Expr:
    """The node over new children, simplified where that is exact."""
    match node:
        case Name() | Literal():
            return node
        case Op(primitive=op):
            return operation(op, parts)
        case Where():
            condition, then, other = parts
            return then if then == other else Where(condition, then, other)
        case ToFloat():
            return ToFloat(parts[0])
        case RankedNode():
            return node.over(parts)
        case _:
            assert_never(node)


def array_node(node: ir.Expr, parts: tuple[Expr, ...], types: Types) -> Expr:
    """One elementwise node over the arrays of its children."""
    match node:
        case ir.Const(value=value):
            return Literal(value)
        case ir.Ref(name=name) | ir.Size(axis=name):
            return Name(name)
        case ir.Apply(op="pow", args=(_, ir.Const(value=power))):
            return _power(as_float(parts[0], types), power, types)
        case ir.Apply(op="square"):
            return _square(parts[0], types)
        case ir.Apply(op="mul") if parts[0] == parts[1]:
            return _square(parts[0], types)
        case ir.Apply(op=op):
            return operation(op, _arguments(op, parts, types))
        case ir.Select():
            return choose_between(parts, types)
        case ir.Idx() | ir.Reduce() | ir.Call():
            raise AssertionError(f"not elementwise: {node}")
        case _:
            assert_never(node)


def _arguments(op: str, parts: tuple[Expr, ...], types: Types) -> tuple[Expr, ...]:
    """Discrete tensors in floating arithmetic become floating; a comparison or a
    condition takes them as they are.
    """
    row = primitive(op)
    if row.result == "bool":
        return parts
    kinds = row.types or ("real",) * len(parts)
    return tuple(
        as_float(part, types) if kind == "real" else part
        for part, kind in zip(parts, kinds, strict=True)
    )


def choose_between(parts: tuple[Expr, ...], types: Types) -> Expr:
    """A choice between numbers by a tensor has no floating type of its own."""
    condition, then, other = parts
    then, other = as_float(then, types), as_float(other, types)
    if then == other and is_scalar(then, types):
        return then
    if is_scalar(condition, types):
        return Where(condition, then, other)
    if (then, other) == (ONE, ZERO):
        return ToFloat(condition)
    chosen = Where(condition, then, other)
    numbers = is_scalar(then, types) and is_scalar(other, types)
    return ToFloat(chosen) if numbers else chosen


def _is_discrete(value: Expr, types: Types) -> bool:
    match value:
        case Rearranged(arg=arg):
            return _is_discrete(arg, types)
        case Name(id=name):
            return name in types.integers | types.booleans and name not in types.scalars
        case Op(primitive=op) if primitive(op).result == "bool":
            return not is_scalar(value, types)
        case Where(then=then, other=other):
            return _is_discrete(then, types) and _is_discrete(other, types)
        case _:
            return is_whole(value, types.integers) and not is_scalar(value, types)


def _square(base: Expr, types: Types) -> Expr:
    if is_scalar(base, types):
        return Op("mul", (base, base))
    return Op("square", (as_float(base, types),))


def _power(base: Expr, power: Fraction, types: Types) -> Expr:
    if is_scalar(base, types) or power.denominator != 1 or abs(power) > 4:
        return Op("pow", (base, Literal(power)))
    if power < 0:
        return operation("div", (ONE, _product(base, -power.numerator)))
    return _product(base, power.numerator)


def _product(base: Expr, count: int) -> Expr:
    match count:
        case 0:
            return ONE
        case 1:
            return base
        case 2:
            return Op("square", (base,))
        case 4:
            return Op("square", (_product(base, 2),))
        case _:
            return Op("mul", (_product(base, count - 1), base))


def operation(op: str, args: tuple[Expr, ...]) -> Expr:
    """``Op(op, args)``, simplified where the simple form is the same number."""
    match op, args:
        case "neg", (Literal(value=value),):
            return Literal(-value)
        case "neg", (inner,) if (positive := _negated_operand(inner)) is not None:
            return positive
        case "neg", (Op("sub", (left, right)),) if _negated_operand(left) is not None:
            return operation("add", (operation("neg", (left,)), right))
        case "mul" | "div", (left, Op("neg", (inner,))):
            return operation("neg", (operation(op, (left, inner)),))
        case "add", (left, right) if (positive := _negated_operand(right)) is not None:
            return operation("sub", (left, positive))
        case "sub", (left, right) if (positive := _negated_operand(right)) is not None:
            return operation("add", (left, positive))
        case "add", (left, right) if left == ZERO:
            return right
        case "add" | "sub", (left, right) if right == ZERO:
            return left
        case "sub", (left, right) if left == ZERO:
            return operation("neg", (right,))
        case "mul", (left, right) if left == ONE:
            return right
        case "mul" | "div", (left, right) if right == ONE:
            return left
        case "mul", (left, right) if left == Literal(Fraction(-1)):
            return operation("neg", (right,))
        case "eq" | "ne", (Literal() as left, right) if not isinstance(right, Literal):
            return Op(op, (right, left))
        case _:
            return Op(op, args)


def _negated_operand(value: Expr) -> Expr | None:
    """The operand, if ``value`` is written as a negative."""
    match value:
        case Literal(value=number) if number < 0:
            return Literal(-number)
        case Op(primitive="neg", args=(inner,)):
            return inner
        case Op(primitive="mul" | "div" as op, args=(left, right)):
            positive = _negated_operand(left)
            return None if positive is None else operation(op, (positive, right))
        case _:
            return None


# --- primitives that a target lacks -----------------------------------------------------


def expander(
    spellings: Mapping[str, rows.Spelling], numbers: frozenset[str]
) -> Callable[[Expr], Expr]:
    """A function that expands, recursively, the primitives that are spelled by a
    formula, and folds constants. ``numbers`` are the names of Python numbers.
    """

    def expand(expr: Expr) -> Expr:
        done: dict[Expr, Expr] = {}
        for node in nodes(fold(expr, numbers)):
            value = rebuilt(node, tuple(done[child] for child in children(node)))
            done[node] = written = expand_value(value)
        return fold(written, numbers)

    def expand_value(value: Expr) -> Expr:
        if not isinstance(value, Op):
            return value
        spelling = spellings.get(value.primitive)
        if not isinstance(spelling, rows.Expand) or is_number(value, numbers):
            return value
        params = primitive(value.primitive).params
        holes = dict(zip(params, value.args, strict=True))
        fixed = {p for p, arg in holes.items() if is_number(arg, numbers)}
        types = Types(frozenset(fixed), frozenset(), frozenset())
        return expand(substitute(translate(formula(spelling.formula), types), holes))

    return expand


def missing(
    exprs: Iterable[Expr], spellings: Mapping[str, rows.Spelling], target: str
) -> tuple[tuple[str, str], ...]:
    """Primitives that the target does not support, each with the reason, in order."""
    found: dict[str, str] = {}
    for node in nodes(*exprs):
        if isinstance(node, Op):
            spelling = spelling_of(node.primitive, spellings, target)
            if spelling is None:
                found[node.primitive] = "it has no such function"
            elif isinstance(spelling, rows.Missing):
                found[node.primitive] = spelling.reason
    return tuple(found.items())


# --- constants ------------------------------------------------------------------------
#
# A value of literals alone is computed here, once, to the nearest double: Python's
# `math` raises where a framework's function gives infinity or NaN (``math.log(0.0)``),
# even in a branch that is not taken.


_BITS = 200
"""Precision of constants in bits: nearly four times that of a double."""


def fold(expr: Expr, numbers: frozenset[str] = frozenset()) -> Expr:
    """``expr`` with operations on literals evaluated; ``numbers`` as in `expander`."""
    done: dict[Expr, Expr] = {}
    exact: dict[Expr, ir.Expr] = {}
    uses = Counter(child for node in nodes(expr) for child in children(node))
    inner = {c for n in nodes(expr) if _is_product(n) for c in children(n)}
    shared: set[Expr] = set()
    for node in nodes(expr):
        parts = tuple(done[child] for child in children(node))
        done[node] = _fold(rebuilt(node, parts), exact)
        if node not in inner or uses[node] > 1:
            done[node] = _with_one_constant(done[node], shared, exact)
        if uses[node] > 1 and not {*names(node)} <= numbers:
            shared.add(done[node])
    return transform(done[expr], _comparison)


def _comparison(node: Expr) -> Expr:
    """A known condition that stands alone, written as a comparison."""
    match node:
        case Op("true"):
            return Op("eq", (ZERO, ZERO))
        case Op("false"):
            return Op("ne", (ZERO, ZERO))
        case _:
            return node


def _fold(node: Expr, exact: dict[Expr, ir.Expr]) -> Expr:
    match node:
        case Where(condition=Op("true"), then=then):
            return then
        case Where(condition=Op("false"), other=other):
            return other
        case Where(Op("gt", (a, zero)), then, Where(condition, tie, other)) if (
            zero == other == ZERO
            and condition == Op("eq", (a, ZERO))
            and all(_is_part_of(a, v) for v in (then, tie))
        ):
            return then
        case ToFloat(arg=Literal() as number):
            return number
        case ToFloat(arg=Op("true")):
            return ONE
        case ToFloat(arg=Op("false")):
            return ZERO
        case Op(primitive=op, args=args) if args and all(map(_is_constant, args)):
            values = (exact.get(arg) or _constant_of(arg) for arg in args)
            return _constant(ir.Apply(op, tuple(values)), exact) or node
        case Op(primitive="and" | "or" | "not", args=args):
            return _logic(node)
        case _:
            return node


def _is_part_of(arg: Expr, value: Expr) -> bool:
    """True if a product of names contains ``max(arg, 0)``."""
    todo, found = [value], False
    while todo:
        match todo.pop():
            case Op("mul" | "neg", args):
                todo += args
            case Op("max", args):
                found = found or args in ((arg, ZERO), (ZERO, arg))
            case Name() | Literal():
                pass
            case _:
                return False
    return found


def _is_constant(value: Expr) -> bool:
    return isinstance(value, Literal) or value in (Op("pi"), INFINITY, LOWEST)


def _constant(value: ir.Apply, exact: dict[Expr, ir.Expr]) -> Expr | None:
    """The exact value, the truth of a comparison, or the nearest double, of which
    ``exact`` remembers the value; None if there is none.
    """
    truth, known = decide(value), tidy(value)
    if truth is not None:
        return Op("true" if truth else "false")
    if isinstance(known, ir.Const):
        return Literal(known.value)
    found = _in_balls(value)
    if isinstance(found, Literal):
        exact[found] = value
    return found


_LARGE = 2**20
"""Factors up to this, and down to its inverse, cannot lead to overflow."""


def _with_one_constant(
    product: Expr, shared: Set[Expr], exact: dict[Expr, ir.Expr]
) -> Expr:
    """A product whose constants, if there are several, are multiplied exactly, rounded
    once, and stand in the place of the first. ``shared`` values stay as they are.
    """
    constants: list[tuple[Expr, bool]] = []

    def visit(node: Expr, is_factor: bool, values: Iterator[Expr]) -> Expr:
        """The node with its constants replaced by the values."""
        if _is_constant(node):
            constants.append((node, is_factor))
            return next(values)
        if not _is_product(node) or (node in shared and node != product):
            return node
        op, (left, right) = node.primitive, node.args
        above = visit(left, is_factor, values)
        return operation(op, (above, visit(right, is_factor is (op == "mul"), values)))

    visit(product, True, repeat(ONE))
    value: ir.Expr = ir.ONE
    for constant, is_factor in constants:
        op = "mul" if is_factor is constants[0][1] else "div"
        value = ir.Apply(op, (value, exact.get(constant) or _constant_of(constant)))
    if not isinstance(value, ir.Apply) or len(constants) < 2:
        return product
    made = _constant(value, exact)
    every = (made, *(constant for constant, _ in constants))
    is_safe = all(v == Op("pi") or _is_moderate(v) for v in every)
    return (
        visit(product, True, chain([made], repeat(ONE)))
        if made and is_safe
        else product
    )


def _is_product(node: Expr) -> TypeGuard[Op]:
    return isinstance(node, Op) and node.primitive in ("mul", "div")


def _is_moderate(value: Expr | None) -> bool:
    return isinstance(value, Literal) and 1 <= abs(_LARGE * value.value) <= _LARGE**2


def _logic(node: Op) -> Expr:
    """Conditions with a known operand."""
    true, false = Op("true"), Op("false")
    match node:
        case Op("not", (arg,)) if arg in (true, false):
            return false if arg == true else true
        case Op("and", (a, b)):
            if false in (a, b):
                return false
            return b if a == true else a if b == true else node
        case Op("or", (a, b)):
            if true in (a, b):
                return true
            return b if a == false else a if b == false else node
        case _:
            return node


def _in_balls(value: ir.Apply) -> Expr | None:
    """The nearest double of a function of constants; None if there is none."""
    row = primitive(value.op)
    if row.result != "real" or "number" in row.types or is_foreign(value.op):
        return None
    try:
        ball: Any = enclose(value, {}, _BITS)
    except (ArithmeticError, ValueError, NotImplementedError, TypeError):
        return None
    if ball is None or ball.is_nan() or not (ball.is_finite() or ball.is_exact()):
        return None
    number = float(ball.mid()) if ball.is_finite() else float(ball)
    if abs(number) == math.inf:
        return INFINITY if number > 0 else LOWEST
    return Literal(Fraction(number))


def _constant_of(value: Expr) -> ir.Expr:
    match value:
        case Literal(value=number):
            return ir.Const(number)
        case Op("neg", (inner,)):
            return ir.Apply("neg", (_constant_of(inner),))
        case Op(name):
            return ir.Apply(name)
        case _:
            raise AssertionError(value)
