"""The array expressions and named statements that a target computes.

    expr ::= Name(id)                   an argument, an output, a local, `d<output>`
           | Literal(q)                 an exact rational, rounded when printed
           | Op(primitive, expr*)       a row of `gradspec.primitives`
           | Where(condition, then, other)
           | ToFloat(expr)              a condition, an integer or a choice between
                                        numbers, as an array of the working type
           | an operation on axes (`RankedNode`), which named indices become

Nodes are immutable, hash in constant time and compare by structure.

A value is an array of some batch axes, which broadcast and are never named, followed by
the *core* axes, whose number planning knows. Positions count from the end: -1 is the
last axis, so that batch axes need no counting. Core axes of size 1 stand for an index
that the value does not depend on. A size is an expression of Python numbers: a name of
`RulePlan.sizes`, a static, or a literal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeAlias

from gradspec.ir.expr import Numbered, key_of, number_of
from gradspec.ir.walk import nodes, transform
from gradspec.primitives.lookup import primitive
from gradspec.primitives.table_operators import FLOORDIV, PLACE


class Node(Numbered):
    """Fields are sub-expressions, tuples of them, or plain data (positions, strings).
    Each node knows its direct sub-expressions, left to right, and the names in it, in
    the order of their first occurrence: emitters ask of every node whether it is a
    Python number.
    """

    __slots__ = ("names",)

    below: tuple[Expr, ...]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        values = self._values()
        self._set_key(
            (type(self), *map(_key_numbers, values)), tuple(_nodes_of(values))
        )

    def _set_key(self, made: tuple[object, ...], parts: tuple[Expr, ...]) -> None:
        object.__setattr__(self, "key", key_of(made))
        object.__setattr__(self, "below", parts)
        object.__setattr__(self, "names", names(*parts))

    def _values(self) -> list[Any]:
        return [getattr(self, name) for name in self.__match_args__]

    def over(self, parts: tuple[Expr, ...]) -> Expr:
        """The node over other sub-expressions."""
        rest = iter(parts)
        made: list[Any] = []
        for value in self._values():
            if isinstance(value, Node):
                made.append(next(rest))
            elif _is_group(value):
                made.append(tuple(next(rest) for _ in value))
            else:
                made.append(value)
        kind: Any = type(self)
        new: Expr = kind(*made)
        return new


def _is_group(value: object) -> bool:
    return isinstance(value, tuple) and bool(value) and isinstance(value[0], Node)


def _nodes_of(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, Node):
            yield value
        elif _is_group(value):
            yield from value


def _key_numbers(part: object) -> object:
    match part:
        case Node(key=key):
            return key.number
        case tuple():
            return tuple(map(_key_numbers, part))
        case _:
            return part


@dataclass(frozen=True, slots=True, eq=False)
class Name(Node):
    """A value by name."""

    id: str

    def __post_init__(self) -> None:
        self._set_key((Name, self.id), ())
        object.__setattr__(self, "names", (self.id,))


@dataclass(frozen=True, slots=True, eq=False)
class Literal(Node):
    """An exact number."""

    value: Fraction


@dataclass(frozen=True, slots=True, eq=False)
class Op(Node):
    """The primitive ``primitive`` of ``args``; ``pi`` and ``inf`` have none."""

    primitive: str
    args: tuple[Expr, ...] = ()

    def __post_init__(self) -> None:
        """As of any node, in a third of the time: most nodes are operations."""
        self._set_key((Op, self.primitive, *map(number_of, self.args)), self.args)

    def over(self, parts: tuple[Expr, ...]) -> Expr:
        return Op(self.primitive, parts)


@dataclass(frozen=True, slots=True, eq=False)
class Where(Node):
    """``then`` where ``condition`` holds, else ``other``."""

    condition: Expr
    then: Expr
    other: Expr


@dataclass(frozen=True, slots=True, eq=False)
class ToFloat(Node):
    """``arg`` in the floating type that the rule computes in."""

    arg: Expr


# --- operations on axes ------------------------------------------------------------------


class RankedNode(Node):
    """An operation on named axes."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, eq=False)
class Rearranged(RankedNode):
    """Elements of ``arg`` (or 0, beyond its ends) in other places."""

    arg: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Reduce(RankedNode):
    """``op`` (sum mean prod max min logsumexp peak) over ``axes``, ascending (-2, -1).

    With ``keep`` the axes stay and have size 1. Over an empty axis ``peak``, a maximum,
    is -inf; the others give the framework's own result.
    """

    op: str
    arg: Expr
    axes: tuple[int, ...]
    keep: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Expand(Rearranged):
    """Insert axes of size 1; ``axes`` are their positions in the result, ascending."""

    axes: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Spread(Rearranged):
    """The axis of size 1 at ``axis`` repeated ``size`` times (a view suffices)."""

    axis: int
    size: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Permute(Rearranged):
    """The last ``len(order)`` axes in another order: the result's k-th of them is the
    argument's axis ``order[k]`` (negative). ``(-1, -2)`` transposes.
    """

    order: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Einsum(RankedNode):
    """A contraction of one or two arguments.

    ``inputs`` has the letters of each argument's core axes, with ``...`` in front where
    it may have batch axes. No letter stands twice in one word. Where ``output`` has no
    ``...`` and an input has, the sum is also over the (broadcast) batch axes.
    """

    args: tuple[Expr, ...]
    inputs: tuple[str, ...]
    output: str


@dataclass(frozen=True, slots=True, eq=False)
class Diagonal(Rearranged):
    """The diagonal of two axes, which go; it is the last axis of the result."""

    first: int
    second: int


@dataclass(frozen=True, slots=True, eq=False)
class Window(Rearranged):
    """``size`` positions of an axis, beginning at ``start`` (a number, perhaps
    negative).

    With ``padded`` a position outside is 0; otherwise it is an error at call time.
    """

    axis: int
    start: Expr
    size: Expr
    padded: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Pick(Rearranged):
    """One position of an axis, ``at`` (a number); the axis is removed."""

    axis: int
    at: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Arange(RankedNode):
    """The integers 0 … ``size`` - 1 along one axis, on the device of the tensor
    ``like``.
    """

    size: Expr
    like: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Take(Rearranged):
    """Elements along ``axis`` at integer positions; the axes of ``index`` replace it.

    Either ``index`` has core axes only, or ``arg`` does and ``axis`` is its first: the
    batch axes of the index then come first. A position outside is an error at call
    time; with ``clipped`` it is the nearest one (its value is not used).
    """

    index: Expr
    axis: int
    clipped: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Gather(Rearranged):
    """Elements along ``axis`` at integer positions with as many core axes as ``arg``;
    all other axes broadcast (as in `take_along_axis`). ``clipped``: see :class:`Take`.
    """

    index: Expr
    axis: int
    clipped: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ScatterAdd(RankedNode):
    """``result[..., k, :] = sum of value[..., p, :] where index[..., p] == k``: none for
    a position outside.

    ``index`` has ``count`` core axes, ``value`` these and then ``others`` more
    (``count`` may be 0: batch axes alone are summed; a target must know where batch
    axes end); axes in front of them are rows of their own. The result has one axis of ``size`` in their place; its batch axes are
    gone (summed) where ``over_batch``.
    """

    index: Expr
    value: Expr
    size: Expr
    count: int
    others: int
    over_batch: bool


@dataclass(frozen=True, slots=True, eq=False)
class Argsort(RankedNode):
    """The positions of the elements along ``axis`` in ascending order, equal ones in the
    order in which they stand."""

    arg: Expr
    axis: int


@dataclass(frozen=True, slots=True, eq=False)
class Cumulative(RankedNode):
    """Cumulative sums along ``axis``, from its end if ``reverse``."""

    arg: Expr
    axis: int
    reverse: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class LinearScan(RankedNode):
    """``h`` with ``h[t] = factor[t] * h[t - 1] + term[t]`` along ``axis``, from 0; with
    ``reverse`` ``h[t + 1]``.
    """

    factor: Expr
    term: Expr
    axis: int
    reverse: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Loop(RankedNode):
    """States computed place by place along an axis: a tuple of arrays, one for each.

    ``steps`` are their values at one place, over names that are bound here: ``_was[k]``
    is a state some places ``before`` (which, and how many; one of ``starts`` in front of
    the first), ``_at[k]`` what ``slices`` have at the place (their axes are ``axes``),
    ``_now[k]`` a state that is computed already. ``places`` are the positions of the
    axis in the states.
    """

    steps: tuple[Expr, ...]
    starts: tuple[Expr, ...]
    slices: tuple[Expr, ...]
    before: tuple[tuple[int, int], ...]
    axes: tuple[int, ...]
    places: tuple[int, ...]
    reverse: bool

    def __post_init__(self) -> None:
        RankedNode.__post_init__(self)
        free = (name for name in self.names if not is_bound(name))
        object.__setattr__(self, "names", tuple(free))


@dataclass(frozen=True, slots=True, eq=False)
class Item(RankedNode):
    """One state of a loop."""

    arg: Expr
    index: int


@dataclass(frozen=True, slots=True, eq=False)
class Solve(RankedNode):
    """``x`` with ``matrix x = right``: the last ``axes`` axes of ``right``, and twice as
    many of ``matrix``; all other axes broadcast. Of ``columns`` one more axis of
    ``right`` comes last, which the matrix lacks. ``side`` is the half of a triangular
    matrix that is read ("lower", "upper", or ""); ``batched`` tells whether others than
    the named axes may be there.
    """

    matrix: Expr
    right: Expr
    axes: int
    columns: bool
    side: str
    batched: bool


@dataclass(frozen=True, slots=True, eq=False)
class Factor(RankedNode):
    """A factor of a symmetric matrix, which the last two axes are, by the framework's
    ``routine`` ("cholesky").
    """

    arg: Expr
    routine: str


@dataclass(frozen=True, slots=True, eq=False)
class Root(RankedNode):
    """Where ``residual`` is 0, by Newton's method from ``start``. It and its derivative
    ``slope`` are functions of ``variable``, a name that is bound here: element by
    element, or of all along the last ``axes`` axes, of which the slope then has two
    each. A fixed point is iterated first (``iterate``).
    """

    residual: Expr
    slope: Expr
    start: Expr
    variable: str
    axes: int
    iterate: bool

    def __post_init__(self) -> None:
        RankedNode.__post_init__(self)
        free = (name for name in self.names if not is_bound(name))
        object.__setattr__(self, "names", tuple(free))


def is_bound(name: str) -> bool:
    """True of the names inside a loop, which no value of a rule has."""
    return name.startswith("_")


@dataclass(frozen=True, slots=True, eq=False)
class Windows(Rearranged):
    """Two axes in place of ``axis``: element ``[i, j]`` of ``rows`` and ``columns`` is
    the one at ``start + i + j``, or at ``start + i - j`` if ``backward``. With
    ``padded`` a position outside is 0; otherwise it is an error at call time.
    """

    axis: int
    start: Expr
    rows: Expr
    columns: Expr
    backward: bool = False
    padded: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class ProductOfOthers(RankedNode):
    """For each position of ``axis`` the product of the elements at all others."""

    arg: Expr
    axis: int


@dataclass(frozen=True, slots=True, eq=False)
class Stack(RankedNode):
    """Values, which broadcast (numbers among them), along a new last axis."""

    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Softmax(RankedNode):
    """Exponentials divided by their sum along ``axis``, without overflow."""

    arg: Expr
    axis: int


@dataclass(frozen=True, slots=True, eq=False)
class LogSoftmax(RankedNode):
    """The logarithm of :class:`Softmax`."""

    arg: Expr
    axis: int


Ranked: TypeAlias = (
    Reduce
    | Expand
    | Spread
    | Permute
    | Einsum
    | Diagonal
    | Window
    | Pick
    | Arange
    | Take
    | Gather
    | ScatterAdd
    | Argsort
    | Cumulative
    | LinearScan
    | Loop
    | Item
    | Solve
    | Factor
    | Root
    | Windows
    | ProductOfOthers
    | Stack
    | Softmax
    | LogSoftmax
)

Expr: TypeAlias = Name | Literal | Op | Where | ToFloat | Ranked

MEASURES: Mapping[type[Node], tuple[int, ...]] = {
    Spread: (1,),
    Arange: (0,),
    ScatterAdd: (0, 2),
    Take: (1,),
    Gather: (1,),
    Window: (1, 2),
    Windows: (1, 2, 3),
    Pick: (1,),
}
"""The children that are integers: lengths of axes, positions."""


# --- walks -------------------------------------------------------------------------------


def substitute(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """Replace names. The new expressions are not searched."""

    def visit(node: Expr) -> Expr:
        return values.get(node.id, node) if isinstance(node, Name) else node

    return transform(expr, visit)


def names(*roots: Expr) -> tuple[str, ...]:
    """The names that occur, in the order of their first occurrence."""
    if len(roots) == 1:
        return roots[0].names
    return tuple(dict.fromkeys(name for root in roots for name in root.names))


# --- integers ----------------------------------------------------------------------------


_WHOLE = ("add", "sub", "mul", "neg", "max", "min", FLOORDIV)


@lru_cache(maxsize=4096)
def is_whole(expr: Expr, whole: frozenset[str]) -> bool:
    """True if the value is an integer: a name of ``whole``, positions along an axis, and
    their sums and products.
    """
    match expr:
        case Name(id=name):
            return name in whole
        case Literal(value=value):
            return value.denominator == 1
        case Op(primitive=op, args=args):
            are_whole = op in _WHOLE and all(is_whole(arg, whole) for arg in args)
            return are_whole or op == PLACE
        case Arange() | Argsort():
            return True
        case Rearranged(arg=arg):
            return is_whole(arg, whole)
        case _:
            return False


VIEWS = (Arange, Diagonal, Expand, Permute, Pick, Spread, Window)
"""Operations that cost no pass over an array."""


def is_view(expr: Expr) -> bool:
    """True if the value is a name, or a part of one in another order or shape, that
    needs no memory.
    """
    match expr:
        case Name():
            return True
        case Diagonal() | Expand() | Permute() | Pick() | Spread():
            return is_view(expr.arg)
        case Window(padded=False):
            return is_view(expr.arg)
        case _:
            return False


# --- Python numbers ----------------------------------------------------------------------


_NAMES = """
add sub mul neg abs max min pi inf lt le gt ge eq ne and or not floor ceil round trunc
atan tanh floordiv place
"""
_SAFE = frozenset(_NAMES.split())
"""Functions of finite Python numbers that do not raise."""


def is_number(expr: Expr, numbers: frozenset[str]) -> bool:
    """True if no tensor occurs in the value and Python computes it as a framework
    would. ``1.0 / k``, ``math.log(k)`` and ``k**-1`` may raise, even in a branch that
    is not taken, and are therefore computed as arrays.
    """
    for node in nodes(expr):
        match node:
            case Name(id=name):
                is_one = name in numbers
            case Op():
                is_one = is_safe(node)
            case _:
                is_one = isinstance(node, Literal | Where)
        if not is_one:
            return False
    return True


def is_safe(node: Op) -> bool:
    """True if Python computes the operation on plain numbers and never raises."""
    if "python" not in primitive(node.primitive).spellings:
        return False
    match node:
        case Op("div", (_, Literal(value=value))):
            return value != 0
        case Op("pow", (_, Literal(value=power))):
            return power in (1, 2)
        case Op("pow", (Literal(value=base), _)):
            return base > 0
        case Op(primitive=op):
            return op in _SAFE


def may_be_number(expr: Expr, numbers: frozenset[str]) -> bool:
    """True if an expression is a Python number, or a choice may make it one, or the
    elements that it repeats.
    """
    if set(names(expr)) <= numbers:
        return True
    match expr:
        case Where(condition=condition, then=then, other=other):
            chosen = set(names(condition)) <= numbers
            return chosen and any(may_be_number(v, numbers) for v in (then, other))
        case Rearranged(arg=arg):
            return may_be_number(arg, numbers)
        case _:
            return False
