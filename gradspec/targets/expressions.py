"""Array expressions as Python text: fewest brackets, conventional numerals.

A value without tensors is a Python number: it is computed with `math` and chosen with
``a if c else b`` (the table's ``"python"`` spellings), because some frameworks'
functions reject Python numbers and others give them a type of their own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial

from gradspec.ir.rule import UNBOUNDED
from gradspec.ir.walk import children, nodes
from gradspec.plan.arrays import (
    MEASURES,
    Expr,
    Literal,
    Name,
    Op,
    RankedNode,
    ToFloat,
    Where,
    is_number,
    is_safe,
    is_whole,
)
from gradspec.plan.operations import Types, expander, translate
from gradspec.plan.program import Program
from gradspec.primitives.foreign import definition
from gradspec.primitives.lookup import partial as partial_of
from gradspec.primitives.lookup import primitive
from gradspec.primitives.lookup import spelling as spelling_of
from gradspec.primitives.row import Foreign, Infix, Prefix, Runtime, Spelling, Template
from gradspec.targets.target import Page

CONDITIONAL, OR, COMPARISON, SUM = 0, 1, 4, 9
PRODUCT, UNARY, POWER, ATOM = 10, 11, 12, 14
"""Precedence in Python, tightest last."""


_OWN = re.compile(r"\{(core|special):(\w+)\}")
"""A template's marker for a function of the target's runtime."""


@dataclass(frozen=True, slots=True)
class Text:
    """The text of an expression, its precedence, and whether it is a number."""

    text: str
    precedence: int
    is_scalar: bool = False

    def within(self, least: int) -> str:
        """In brackets if it binds less tightly than ``least``."""
        return self.text if self.precedence >= least else f"({self.text})"


def _lifts(name: str, numbers: tuple[bool, ...]) -> tuple[bool, ...]:
    """No number, as they are accepted beside tensors, and adopt their type; but the
    branch of a choice by a number whose other branch is a tensor.
    """
    return numbers if name == "choice" else (False,) * len(numbers)


@dataclass(frozen=True, slots=True)
class Dialect:
    """A target's spellings, and what the table of primitives does not contain.

    Attributes:
        target: its name.
        spellings: how it says each primitive that it has.
        where: with the places ``{c}``, ``{x}``, ``{y}``.
        to_float: ``{x}`` in the type of ``{like}``, the name of a floating tensor.
        lift: a tensor of a Python number ``{x}``, with ``{like}`` as above. Used for
            the arguments that ``lifts`` selects, for those of runtime functions, and
            where a function of numbers alone might raise.
        untyped: ``to_float`` and ``lift`` of a rule without floating tensors.
        ranked: emits operations on named axes, from the texts of their parts.
        lifts: from a primitive's name (``where`` for the branches of a choice by a tensor,
            ``choice`` for those of a choice by a number) and which arguments are numbers.
        variants: other spellings of a primitive where certain arguments are numbers.
        static_power: a power whose exponent is a number unknown at compile time.
        of_numbers: operations on axes that take numbers in the place of arrays.
        root_of_size: the square root of a size ``{x}``, where that is a Python number.
    """

    target: str
    spellings: Mapping[str, Spelling]
    where: str
    to_float: str
    lift: str
    untyped: tuple[str, str]
    ranked: Callable[[RankedNode, tuple[Text, ...], Scope], Text]
    lifts: Callable[[str, tuple[bool, ...]], tuple[bool, ...]] = _lifts
    variants: Callable[[Op, tuple[bool, ...]], Template | None] = lambda *_: None
    static_power: Runtime | None = None
    of_numbers: tuple[type[RankedNode], ...] = ()
    root_of_size: str = ""


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope of an expression: ``scalars`` are the names that hold Python
    numbers, ``integers`` those that hold integers, ``sizes`` those that hold sizes of
    axes, ``like`` names a floating tensor. Imports go to ``page``.
    """

    dialect: Dialect
    page: Page
    scalars: frozenset[str] = frozenset()
    integers: frozenset[str] = frozenset()
    sizes: frozenset[str] = frozenset()
    like: str = "x"


def scope_of(
    program: Program, page: Page, dialect: Dialect, like: str | None = None
) -> Scope:
    """The scope in which a rule's expressions are printed; ``like`` names a floating
    tensor, by default the first that the rule has.
    """
    like = next(iter(program.floats), "") if like is None else like
    if not like:
        to_float, lift = dialect.untyped
        dialect = replace(dialect, to_float=to_float, lift=lift)
        like = program.tensor_inputs[0].name
    integers = program.integers | program.positions
    sizes = program.numbers & {size.name for size in program.sizes}
    return Scope(dialect, page, program.numbers, integers, sizes, like)


def render(expr: Expr, scope: Scope) -> str:
    """The expression as Python source on one line."""
    return _render(expr, scope).text


def render_atom(expr: Expr, scope: Scope) -> str:
    """The text, in brackets where a method or an attribute could not follow."""
    return _render(expr, scope).within(ATOM)


def is_scalar(expr: Expr, scope: Scope) -> bool:
    """True if the value is a Python number: no tensor occurs in it."""
    return is_number(expr, scope.scalars)


def _render(expr: Expr, scope: Scope) -> Text:
    texts: dict[Expr, Text] = {}
    for node in nodes(expr):
        texts[node] = _node(node, texts, scope)
    return texts[expr]


def _node(node: Expr, texts: Mapping[Expr, Text], scope: Scope) -> Text:
    parts = [texts[child] for child in children(node)]
    match node:
        case Name(id=name):
            return Text(name, ATOM, name in scope.scalars)
        case Literal(value=value):
            return Text(*numeral(value), is_scalar=True)
        case Op():
            return _operation(node, parts, scope)
        case Where():
            return _choice(parts, scope)
        case ToFloat(arg=Where()) if any(scope.dialect.lifts("where", (True, True))):
            return parts[0]  # a lifted branch has told the type
        case ToFloat() if parts[0].is_scalar:
            return _lift(parts, (True,), scope)[0]
        case ToFloat():
            return _fill(scope.dialect.to_float, {"x": parts[0]}, scope)
        case RankedNode():
            return scope.dialect.ranked(node, _arrays(node, parts, scope), scope)


def _arrays(node: RankedNode, parts: list[Text], scope: Scope) -> tuple[Text, ...]:
    """The parts of an operation on axes, numbers as arrays where it needs arrays."""
    takes_numbers = isinstance(node, scope.dialect.of_numbers)
    wanted = tuple(
        part.is_scalar and not takes_numbers and k not in MEASURES.get(type(node), ())
        for k, part in enumerate(parts)
    )
    return tuple(_lift(parts, wanted, scope))


def _choice(parts: list[Text], scope: Scope) -> Text:
    condition, then, other = parts
    if not condition.is_scalar:
        numbers = (then.is_scalar, other.is_scalar)
        wanted = scope.dialect.lifts("where", numbers)
        then, other = _lift([then, other], wanted, scope)
        holes = {"c": condition, "x": then, "y": other}
        return _fill(scope.dialect.where, holes, scope)
    if then.is_scalar != other.is_scalar:
        wanted = scope.dialect.lifts("choice", (then.is_scalar, other.is_scalar))
        then, other = _lift([then, other], wanted, scope)
    text = f"{then.within(OR)} if {condition.within(OR)} else {other.text}"
    return Text(text, CONDITIONAL, then.is_scalar and other.is_scalar)


def _operation(node: Op, parts: list[Text], scope: Scope) -> Text:
    if scope.dialect.root_of_size and _is_root_of_size(node, scope):
        text = scope.dialect.root_of_size.replace("{x}", parts[0].text)
        return Text(text, POWER, True)
    scalar = all(part.is_scalar for part in parts) and is_safe(node)
    spelling = primitive(node.primitive).spellings["python"] if scalar else None
    if not scalar:
        numbers = tuple(part.is_scalar for part in parts)
        spelling = scope.dialect.variants(node, numbers)
        if node.primitive == "pow" and numbers == (False, True):
            is_known = isinstance(node.args[1], Literal)
            spelling = spelling if is_known else scope.dialect.static_power or spelling
    parts = _integers(node, parts, scope)
    if spelling is None:
        spelling = spelling_of(
            node.primitive, scope.dialect.spellings, scope.dialect.target
        )
        parts = _lift_numbers(node, spelling, parts, scope)
    match spelling:
        case Infix():
            return _infix(node, spelling, parts[0], parts[1], scalar)
        case Prefix(symbol=symbol):
            return _prefix(node, symbol, spelling.precedence, parts[0], scalar)
        case Template(text=text):
            holes = dict(zip(primitive(node.primitive).params, parts, strict=True))
            return _fill(text, holes, scope, scalar)
        case Runtime(name=name, module=module):
            page = scope.page
            called = page.core(name) if module == "core" else page.special(name)
            return Text(f"{called}({', '.join(part.text for part in parts)})", ATOM)
        case Foreign(arguments=arguments):
            holes = dict(zip(primitive(node.primitive).params, parts, strict=True))
            passed = [holes[name].text for name in arguments if name in holes]
            slopes = partial(_slopes, node.primitive, arguments, scope)
            called = scope.page.foreign(spelling, slopes)
            return Text(f"{called}({', '.join(passed)})", ATOM)
        case _:
            raise AssertionError(f"{node.primitive} was not expanded: {spelling}")


def _slopes(op: str, arguments: tuple[str, ...], scope: Scope) -> tuple[str, ...]:
    """The derivatives that are given for a foreign function, as functions of what it is
    called with. (NumPy has none.)"""
    one, dialect = definition(op), scope.dialect
    if not one.derivatives or dialect.target == "numpy":
        return ()
    passed = [name for name in arguments if name in one.params]
    inner = Scope(dialect, scope.page, like=passed[0])
    none = Types(frozenset(), frozenset(), frozenset())
    written = expander(dialect.spellings, frozenset())
    found = []
    for name in passed:
        slope = partial_of(op, one.params.index(name))
        assert slope is not None
        value = written(translate(slope, none))
        found.append(f"lambda {', '.join(passed)}: {render(value, inner)}")
    return tuple(found)


def _is_root_of_size(node: Op, scope: Scope) -> bool:
    """True of ``sqrt(n)``: a size is positive, or 0, as a static may not be."""
    match node:
        case Op("sqrt", (Name(id=name),)):
            return name in scope.sizes
        case _:
            return False


def _lift_numbers(
    node: Op, spelling: Spelling | None, parts: list[Text], scope: Scope
) -> list[Text]:
    """Python numbers converted to tensors, where the target's function requires
    tensors.

    Integer arguments (the order of a polygamma) stay what they are.
    """
    if not parts:
        return parts
    types = primitive(node.primitive).types or ("real",) * len(parts)
    numbers = tuple(
        part.is_scalar and kind == "real"
        for part, kind in zip(parts, types, strict=True)
    )
    if isinstance(spelling, Infix | Prefix):
        first = all(part.is_scalar for part in parts)
        wanted = (first, *[False] * (len(parts) - 1))
    elif isinstance(spelling, Runtime | Foreign) or all(
        part.is_scalar for part in parts
    ):
        wanted = numbers
    else:
        wanted = scope.dialect.lifts(node.primitive, numbers)
    return _lift(parts, wanted, scope)


def _lift(parts: list[Text], wanted: tuple[bool, ...], scope: Scope) -> list[Text]:
    return [
        _fill(scope.dialect.lift, {"x": part}, scope) if want else part
        for part, want in zip(parts, wanted, strict=True)
    ]


def _integers(node: Op, parts: list[Text], scope: Scope) -> list[Text]:
    """Integer literals without a decimal point where an integer is meant: ``x**3``, ``n
    > 2``, the order of a polygamma.
    """
    types = primitive(node.primitive).types or ("real",) * len(parts)
    beside = any(_is_integer(arg, scope) for arg in node.args)
    wanted = [
        kind == "int" or beside or (node.primitive == "pow" and position == 1)
        for position, kind in enumerate(types)
    ]
    return [
        Text(str(arg.value.numerator), part.precedence, True)
        if want and isinstance(arg, Literal) and arg.value.denominator == 1
        else part
        for arg, part, want in zip(node.args, parts, wanted, strict=True)
    ]


def _is_integer(expr: Expr, scope: Scope) -> bool:
    return not isinstance(expr, Literal) and is_whole(expr, scope.integers)


def _infix(node: Op, how: Infix, left: Text, right: Text, scalar: bool) -> Text:
    first, second = how.precedence, how.precedence + 1
    if how.symbol == "**":
        # Right-associative, and a minus on its right needs no brackets.
        first, second = POWER + 1, UNARY
    elif how.precedence == COMPARISON:
        first = COMPARISON + 1  # `a < b < c` is a chain
    a, b = left.within(first), right.within(second)
    space = "" if how.symbol == "**" and _hugs(a) and _hugs(b) else " "
    return Text(f"{a}{space}{how.symbol}{space}{b}", how.precedence, scalar)


def _hugs(operand: str) -> bool:
    """True if there are no spaces around ``**`` (PEP 8's own example): for a name,
    attribute or number.
    """
    body = operand.removeprefix("-")
    number = body.replace(".", "", 1).replace("e-", "", 1).replace("e", "", 1)
    return number.isdigit() or all(part.isidentifier() for part in body.split("."))


def _prefix(
    node: Op, symbol: str, precedence: int, operand: Text, scalar: bool
) -> Text:
    # -(a * b) and (-a) * b are the same number in every format: no brackets.
    if node.primitive == "neg" and _is_product(node.args[0], scalar):
        return Text(f"{symbol}{operand.text}", PRODUCT, scalar)
    if operand.precedence == POWER:
        # Python needs none in -(x**2), but readers do.
        return Text(f"{symbol}({operand.text})", precedence, scalar)
    return Text(f"{symbol}{operand.within(precedence)}", precedence, scalar)


def _is_product(expr: Expr, scalar: bool) -> bool:
    """True for a chain of ``*`` and ``/`` down its left side to a tighter operator."""
    while isinstance(expr, Op) and expr.primitive in ("mul", "div"):
        expr = expr.args[0]
        if not (isinstance(expr, Op) and expr.primitive in ("mul", "div", "mod")):
            is_power = isinstance(expr, Op) and expr.primitive == "pow"
            is_negative = isinstance(expr, Literal) and expr.value < 0
            return not (is_power or is_negative)
    return False


def _fill(
    text: str, holes: dict[str, Text], scope: Scope, scalar: bool = False
) -> Text:
    """A template with its placeholders filled, in brackets if needed before a dot or an
    index.
    """
    text = _OWN.sub(lambda found: getattr(scope.page, found[1])(found[2]), text)
    text = text.replace("{like}", scope.like)
    for hole, part in holes.items():
        mark = f"{{{hole}}}"
        if mark not in text:
            continue
        after = text[text.index(mark) + len(mark) :][:1]
        text = text.replace(mark, part.within(ATOM if after in (".", "[") else 0))
    return Text(text, ATOM, scalar)


# --- numbers ---------------------------------------------------------------------------


def numeral(value: Fraction) -> tuple[str, int]:
    """The shortest text that evaluates to the nearest double, and its precedence.

    A third is ``1.0 / 3.0``: both parts are exact, so the quotient is rounded once.
    """
    if value == UNBOUNDED:
        return 'float("inf")', ATOM
    if value < 0:
        text, precedence = numeral(-value)
        return f"-{text}", min(precedence, UNARY)
    shortest = _decimal(value)
    if Fraction(shortest) == value or not _is_plain_ratio(value):
        return shortest, ATOM
    return f"{_decimal(Fraction(value.numerator))} / {value.denominator}.0", PRODUCT


def _is_plain_ratio(value: Fraction) -> bool:
    return max(value.numerator, value.denominator) <= 10**6


def _decimal(value: Fraction) -> str:
    """``repr`` of the nearest double with a short exponent: ``1e-5``, ``1e16``."""
    try:
        text = repr(float(value))
    except OverflowError:
        return "1e999"  # reads as infinity, as the number rounds
    mantissa, mark, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}" if mark else text
