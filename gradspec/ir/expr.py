"""The mathematics: one closed set of expressions.

    expr ::= Const(q)                         an exact rational
           | Ref(name, index*)                an input, output, local or cotangent
           | Idx(name)                        the value of a bound index (0, 1, …)
           | Size(axis)                       the size of an axis
           | Apply(op, expr*)                 a primitive, by name (`gradspec.primitives`)
           | Select(condition, then, other)   one branch; the other does not matter
           | Reduce(op, bound+, body, where?) over indices; `where` narrows the range
           | Call(rule, output, expr*)        another rule, with its own gradient

Every expression is a scalar that may carry free indices, so that differentiation, proof
and exact evaluation are those of scalars. An index is itself an expression of integer
type: ``x[i + 1]`` is ``Ref("x", (Apply("add", (Idx("i"), Const(1))),))``. Operators are
primitives: ``add sub mul div mod pow neg``, ``lt le gt ge eq ne``, ``and or not``; the
constants ``pi`` and ``inf`` are primitives without arguments.

Nodes are immutable, hashable and compare by structure; spans take no part in equality.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from gradspec.ir.numbered import Key, Numbered
from gradspec.source import Span

if TYPE_CHECKING:
    from gradspec.ir.rule import Rule

_KEY: Any = field(init=False, repr=False, compare=False)
_BELOW: Any = field(init=False, repr=False, compare=False)
_SPAN: Any = field(default=None, repr=False, compare=False, kw_only=True)


class _Node(Numbered):
    """A node, and the nodes of which it is made."""

    __slots__ = ("_inner",)

    _inner: tuple[Expr, ...]
    below: tuple[Expr, ...]

    @property
    def inner(self) -> tuple[Expr, ...]:
        """Every distinct node below, children before parents; found when first asked
        for (four of five walks begin at a node from which another has begun).
        """
        try:
            return self._inner
        except AttributeError:
            object.__setattr__(self, "_inner", _inner(self.below))
            return self._inner

    def _freeze(self, below: tuple[Expr, ...], *data: object) -> None:
        """``below`` are the nodes of which it is made, ``data`` the rest."""
        object.__setattr__(self, "below", below)
        self.number(*data, *[node.key.number for node in below])


@dataclass(frozen=True, slots=True, eq=False)
class Const(_Node):
    """An exact rational: ``0.1`` in a rule is one tenth."""

    value: Fraction
    span: Span | None = _SPAN
    key: Key = _KEY
    below: tuple[Expr, ...] = _BELOW

    def __post_init__(self) -> None:
        self._freeze((), self.value.numerator, self.value.denominator)


@dataclass(frozen=True, slots=True, eq=False)
class Ref(_Node):
    """A value by name; ``indices`` is empty for elementwise and rank-0 values."""

    name: str
    indices: tuple[Expr, ...] = ()
    span: Span | None = _SPAN
    key: Key = _KEY
    below: tuple[Expr, ...] = _BELOW

    def __post_init__(self) -> None:
        self._freeze(self.indices, self.name)


@dataclass(frozen=True, slots=True, eq=False)
class Idx(_Node):
    """The value of a bound index, counted from 0."""

    name: str
    span: Span | None = _SPAN
    key: Key = _KEY
    below: tuple[Expr, ...] = _BELOW

    def __post_init__(self) -> None:
        self._freeze((), self.name)


@dataclass(frozen=True, slots=True, eq=False)
class Size(_Node):
    """The size of the axis ``axis`` as a number."""

    axis: str
    span: Span | None = _SPAN
    key: Key = _KEY
    below: tuple[Expr, ...] = _BELOW

    def __post_init__(self) -> None:
        self._freeze((), self.axis)


@dataclass(frozen=True, slots=True, eq=False)
class Apply(_Node):
    """The primitive ``op`` applied to ``args``."""

    op: str
    args: tuple[Expr, ...] = ()
    span: Span | None = _SPAN
    key: Key = _KEY
    below: tuple[Expr, ...] = _BELOW

    def __post_init__(self) -> None:
        self._freeze(self.args, self.op)


@dataclass(frozen=True, slots=True, eq=False)
class Select(_Node):
    """``then`` where ``condition`` holds, else ``other``, element by element."""

    condition: Expr
    then: Expr
    other: Expr
    span: Span | None = _SPAN
    key: Key = _KEY
    below: tuple[Expr, ...] = _BELOW

    def __post_init__(self) -> None:
        self._freeze((self.condition, self.then, self.other))


@dataclass(frozen=True, slots=True)
class Bound:
    """An index and the axis that it ranges over (a name, or a fixed size)."""

    index: str
    axis: str | int


@dataclass(frozen=True, slots=True, eq=False)
class Reduce(_Node):
    """``op`` over ``bounds``; op is one of ``sum mean prod max min logsumexp`` or
    ``peak``.

    ``peak`` is the maximum that we put in to keep numbers in range, which no rule has
    written: of nothing it is -inf, where a maximum may be an error.
    """

    op: str
    bounds: tuple[Bound, ...]
    body: Expr
    where: Expr | None = None
    span: Span | None = _SPAN
    key: Key = _KEY
    below: tuple[Expr, ...] = _BELOW

    def __post_init__(self) -> None:
        below = (self.body,) if self.where is None else (self.body, self.where)
        self._freeze(below, self.op, self.bounds)


@dataclass(frozen=True, slots=True, eq=False)
class Call(_Node):
    """Output number ``output`` of another (elementwise) rule.

    ``args`` stand in the order of the callee's inputs, statics and defaults filled in.
    The value is the callee's forward; the derivative is the callee's own backward
    (declared, surrogate or override), which is why the call is kept until derivation.
    """

    rule: Rule
    output: int
    args: tuple[Expr, ...]
    span: Span | None = _SPAN
    key: Key = _KEY
    below: tuple[Expr, ...] = _BELOW

    def __post_init__(self) -> None:
        self._freeze(self.args, self.rule, self.output)


def _inner(roots: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The roots and all below them (with our own stack: a long sum is a deep tree)."""
    seen: set[Key] = set()
    found: list[Expr] = []
    todo: list[Expr | None] = [*roots[::-1]]
    while todo:
        node = todo.pop()
        if node is None:  # the one below it is done but for itself
            found.append(cast(Expr, todo.pop()))
        elif node.key not in seen:
            seen.add(node.key)
            if node.below:
                todo += (node, None, *node.below[::-1])
            else:
                found.append(node)
    return tuple(found)


Expr: TypeAlias = Const | Ref | Idx | Size | Apply | Select | Reduce | Call

ZERO = Const(Fraction(0))
ONE = Const(Fraction(1))


def const(value: int | str | Fraction) -> Const:
    """An exact constant: ``const("0.1")`` is one tenth. Floats are refused."""
    if isinstance(value, float):
        raise TypeError("a float is not exact: give a string or a Fraction")
    return Const(Fraction(value))


def apply(op: str, *args: Expr) -> Apply:
    """``Apply`` with the arguments in place."""
    return Apply(op, args)
