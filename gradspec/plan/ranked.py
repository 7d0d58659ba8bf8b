"""Array operations that know axes: what named indices become.

    Reduce(op, arg, axes, keep)      op over the axes; with `keep` they stay, of size 1
    Expand(arg, axes)                new axes of size 1
    Spread(arg, axis, size)          an axis of size 1 repeated
    Permute(arg, order)              the trailing axes in another order
    Einsum(args, inputs, output)     a contraction: "...ij", "...jk" -> "...ik"
    Diagonal(arg, first, second)     both axes become one, the last
    Window(arg, axis, start, size)   positions start, start + 1, …; 0 outside if `padded`
    Pick(arg, axis, at)              one position; the axis goes
    Arange(size, like)               0, 1, … size - 1 as integers
    Take(arg, index, axis)           positions by integers without batch axes (or of an
                                     arg without batch axes)
    Gather(arg, index, axis)         positions by integers that have batch axes, as arg
    ScatterAdd(index, value, size)   sums of values by position
    Cumulative(arg, axis, reverse)   running sums
    Windows(arg, axis, start, rows, columns)
                                     positions start + i + j, or start + i - j
    ProductOfOthers(arg, axis)       of all elements but each one
    Stack(args)                      values side by side along a new last axis
    Softmax(arg, axis)               exponentials as shares of their sum
    LogSoftmax(arg, axis)            its logarithm
    Shares(arg, total, axis)         exp(arg - total), of the logarithm of their sum

A value is an array of some batch axes, which broadcast and are never named, followed by
the *core* axes, whose number planning knows. Positions count from the end: -1 is the
last axis, so that batch axes need no counting. Core axes of size 1 stand for an index
that the value does not depend on. A size is an expression of Python numbers: a name of
`RulePlan.sizes`, a static, or a literal.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from gradspec.ir.numbered import Key
from gradspec.plan.node import Node

if TYPE_CHECKING:
    from gradspec.plan.array import Expr

_KEY: Any = field(init=False, repr=False, compare=False)


class RankedNode(Node):
    """Fields are sub-expressions, tuples of them, or plain data (positions, words)."""

    __slots__ = ()

    def __post_init__(self) -> None:
        self._freeze(*self._values())

    def _values(self) -> tuple[Any, ...]:
        own: Any = self
        return tuple(getattr(self, f.name) for f in fields(own) if f.init)

    @property
    def parts(self) -> tuple[Expr, ...]:
        """The direct sub-expressions, left to right."""
        found: list[Any] = []
        for value in self._values():
            if isinstance(value, Node):
                found.append(value)
            elif _is_group(value):
                found.extend(value)
        return tuple(found)

    def with_parts(self, parts: tuple[Expr, ...]) -> Self:
        """The same over other sub-expressions."""
        rest = iter(parts)
        made: list[Any] = []
        for value in self._values():
            if isinstance(value, Node):
                made.append(next(rest))
            elif _is_group(value):
                made.append(tuple(next(rest) for _ in value))
            else:
                made.append(value)
        return type(self)(*made)


def _is_group(value: object) -> bool:
    return (
        isinstance(value, tuple)
        and bool(value)
        and all(isinstance(part, Node) for part in value)
    )


@dataclass(frozen=True, slots=True, eq=False)
class Reduce(RankedNode):
    """``op`` (sum mean prod max min logsumexp peak) over ``axes``, ascending (-2 before -1).

    With ``keep`` the axes stay and have size 1. ``peak`` is a maximum that is -inf of
    nothing; the others are of nothing what the framework makes of it.
    """

    op: str
    arg: Expr
    axes: tuple[int, ...]
    keep: bool = False
    key: Key = _KEY


@dataclass(frozen=True, slots=True, eq=False)
class Expand(RankedNode):
    """New axes of size 1; ``axes`` are their positions in the result, ascending."""

    arg: Expr
    axes: tuple[int, ...]
    key: Key = _KEY


@dataclass(frozen=True, slots=True, eq=False)
class Spread(RankedNode):
    """The axis of size 1 at ``axis`` repeated ``size`` times (a view will do)."""

    arg: Expr
    axis: int
    size: Expr
    key: Key = _KEY


@dataclass(frozen=True, slots=True, eq=False)
class Permute(RankedNode):
    """The last ``len(order)`` axes in another order: the result's k-th of them is the
    argument's axis ``order[k]`` (negative). ``(-1, -2)`` transposes.
    """

    arg: Expr
    order: tuple[int, ...]
    key: Key = _KEY


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
    key: Key = _KEY


@dataclass(frozen=True, slots=True, eq=False)
class Diagonal(RankedNode):
    """The diagonal of two axes, which go; it is the last axis of the result."""

    arg: Expr
    first: int
    second: int
    key: Key = _KEY


@dataclass(frozen=True, slots=True, eq=False)
class Window(RankedNode):
    """``size`` positions of an axis from ``start`` on (a number, perhaps negative).

    With ``padded`` a position outside is 0; otherwise it is an error when called.
    """

    arg: Expr
    axis: int
    start: Expr
    size: Expr
    padded: bool = False
    key: Key = _KEY


@dataclass(frozen=True, slots=True, eq=False)
class Pick(RankedNode):
    """One position of an axis, ``at`` (a number): the axis goes."""

    arg: Expr
    axis: int
    at: Expr
    key: Key = _KEY


@dataclass(frozen=True, slots=True, eq=False)
class Arange(RankedNode):
    """The integers from 0 to ``size`` - 1, along one axis, where ``like`` (a tensor) is."""

    size: Expr
    like: Expr
    key: Key = _KEY


@dataclass(frozen=True, slots=True, eq=False)
class Take(RankedNode):
    """Positions of ``axis`` by an array of integers, whose axes stand in its place.

    Either ``index`` has core axes only, or ``arg`` does and ``axis`` is its first: the
    batch axes of the index then come first. A position outside is an error when called;
    with ``clipped`` it is the nearest one (its value is not used).
    """

    arg: Expr
    index: Expr
    axis: int
    clipped: bool = False
    key: Key = _KEY


@dataclass(frozen=True, slots=True, eq=False)
class Gather(RankedNode):
    """Positions of ``axis`` by integers of the same number of core axes as ``arg``;
    all other axes broadcast (as `take_along_axis`).
    """

    arg: Expr
    index: Expr
    axis: int
    key: Key = _KEY


@dataclass(frozen=True, slots=True, eq=False)
class ScatterAdd(RankedNode):
    """``result[..., k, :] = sum of value[..., p, :] where index[..., p] == k``.

    ``index`` has ``count`` core axes, ``value`` these and then ``others`` more
    (``count`` may be 0: batch axes alone are summed; a target must know where batch axes
    end). The result has one axis of ``size`` in their place; its batch axes are gone
    (summed) where ``over_batch``.
    """

    index: Expr
    value: Expr
    size: Expr
    count: int
    others: int
    over_batch: bool
    key: Key = _KEY


@dataclass(frozen=True, slots=True, eq=False)
class Cumulative(RankedNode):
    """Running sums along ``axis``, from its end if ``reverse``."""

    arg: Expr
    axis: int
    reverse: bool = False
    key: Key = _KEY


@dataclass(frozen=True, slots=True, eq=False)
class Windows(RankedNode):
    """Two axes in place of ``axis``: what is at ``[i, j]`` of ``rows`` and ``columns`` was
    at ``start + i + j``, or at ``start + i - j`` if it runs ``backward``. With ``padded``
    a position outside is 0; otherwise it is an error when called.
    """

    arg: Expr
    axis: int
    start: Expr
    rows: Expr
    columns: Expr
    backward: bool = False
    padded: bool = False
    key: Key = _KEY


@dataclass(frozen=True, slots=True, eq=False)
class ProductOfOthers(RankedNode):
    """For each position of ``axis`` the product of what is at all others."""

    arg: Expr
    axis: int
    key: Key = _KEY


@dataclass(frozen=True, slots=True, eq=False)
class Stack(RankedNode):
    """Values, which broadcast (numbers among them), along a new last axis."""

    args: tuple[Expr, ...]
    key: Key = _KEY


@dataclass(frozen=True, slots=True, eq=False)
class Softmax(RankedNode):
    """Exponentials as shares of their sum along ``axis``, however large they are."""

    arg: Expr
    axis: int
    key: Key = _KEY


@dataclass(frozen=True, slots=True, eq=False)
class LogSoftmax(RankedNode):
    """The logarithm of :class:`Softmax`."""

    arg: Expr
    axis: int
    key: Key = _KEY


@dataclass(frozen=True, slots=True, eq=False)
class Shares(RankedNode):
    """:class:`Softmax`, where the logarithm of the exponentials' sum is at hand."""

    arg: Expr
    total: Expr
    axis: int
    key: Key = _KEY


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
    | Cumulative
    | Windows
    | ProductOfOthers
    | Stack
    | Softmax
    | LogSoftmax
    | Shares
)
