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

Nodes are immutable, hashable (the hash is computed once) and compare by structure;
spans take no part in equality.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias, assert_never

from gradspec.source import Span

if TYPE_CHECKING:
    from gradspec.ir.rule import Rule

_HASH: Any = field(init=False, repr=False, compare=False)
_SPAN: Any = field(default=None, repr=False, compare=False, kw_only=True)


class _Node:
    """Equality by structure with the hash computed once: trees share much.

    Comparing walks with its own stack and looks at each pair of nodes once: neither the
    depth of a tree nor its sharing (``a = b + b, c = a + a, …``) makes it fail.
    """

    __slots__ = ()

    def __hash__(self) -> int:
        return self._hash  # type: ignore[attr-defined, no-any-return]

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other) or self._hash != other._hash:  # type: ignore[attr-defined]
            return False
        return _same(self, other)

    def _freeze(self, *parts: object) -> None:
        object.__setattr__(self, "_hash", hash((type(self).__name__, *parts)))


@dataclass(frozen=True, slots=True, eq=False)
class Const(_Node):
    """An exact rational: ``0.1`` in a rule is one tenth."""

    value: Fraction
    span: Span | None = _SPAN
    _hash: int = _HASH

    def __post_init__(self) -> None:
        self._freeze(self.value)


@dataclass(frozen=True, slots=True, eq=False)
class Ref(_Node):
    """A value by name; ``indices`` is empty for elementwise and rank-0 values."""

    name: str
    indices: tuple[Expr, ...] = ()
    span: Span | None = _SPAN
    _hash: int = _HASH

    def __post_init__(self) -> None:
        self._freeze(self.name, self.indices)


@dataclass(frozen=True, slots=True, eq=False)
class Idx(_Node):
    """The value of a bound index, counted from 0."""

    name: str
    span: Span | None = _SPAN
    _hash: int = _HASH

    def __post_init__(self) -> None:
        self._freeze(self.name)


@dataclass(frozen=True, slots=True, eq=False)
class Size(_Node):
    """The size of the axis ``axis`` as a number."""

    axis: str
    span: Span | None = _SPAN
    _hash: int = _HASH

    def __post_init__(self) -> None:
        self._freeze(self.axis)


@dataclass(frozen=True, slots=True, eq=False)
class Apply(_Node):
    """The primitive ``op`` applied to ``args``."""

    op: str
    args: tuple[Expr, ...] = ()
    span: Span | None = _SPAN
    _hash: int = _HASH

    def __post_init__(self) -> None:
        self._freeze(self.op, self.args)


@dataclass(frozen=True, slots=True, eq=False)
class Select(_Node):
    """``then`` where ``condition`` holds, else ``other``, element by element."""

    condition: Expr
    then: Expr
    other: Expr
    span: Span | None = _SPAN
    _hash: int = _HASH

    def __post_init__(self) -> None:
        self._freeze(self.condition, self.then, self.other)


@dataclass(frozen=True, slots=True)
class Bound:
    """An index and the axis that it ranges over (a name, or a fixed size)."""

    index: str
    axis: str | int


@dataclass(frozen=True, slots=True, eq=False)
class Reduce(_Node):
    """``op`` over ``bounds``; op is one of ``sum mean prod max min logsumexp``."""

    op: str
    bounds: tuple[Bound, ...]
    body: Expr
    where: Expr | None = None
    span: Span | None = _SPAN
    _hash: int = _HASH

    def __post_init__(self) -> None:
        self._freeze(self.op, self.bounds, self.body, self.where)


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
    _hash: int = _HASH

    def __post_init__(self) -> None:
        self._freeze(self.rule.name, self.output, self.args)


Expr: TypeAlias = Const | Ref | Idx | Size | Apply | Select | Reduce | Call

ZERO = Const(Fraction(0))
ONE = Const(Fraction(1))


def _same(left: Any, right: Any) -> bool:
    """Equal by structure; see :class:`_Node`."""
    (data, parts), (other_data, other_parts) = _pieces(left), _pieces(right)
    if data != other_data or len(parts) != len(other_parts):
        return False
    todo = [
        pair for pair in zip(parts, other_parts, strict=True) if pair[0] is not pair[1]
    ]
    seen: set[tuple[int, int]] = set()
    while todo:
        a, b = todo.pop()
        if a is b or (id(a), id(b)) in seen:
            continue
        if type(a) is not type(b) or a._hash != b._hash:
            return False
        seen.add((id(a), id(b)))
        (data, parts), (other_data, other_parts) = _pieces(a), _pieces(b)
        if data != other_data or len(parts) != len(other_parts):
            return False
        todo.extend(zip(parts, other_parts, strict=True))
    return True


def _pieces(expr: Expr) -> tuple[object, tuple[Expr, ...]]:
    """What a node says of itself, and the nodes below it."""
    match expr:
        case Const(value=value):
            return value, ()
        case Ref(name=name, indices=indices):
            return name, indices
        case Idx(name=name) | Size(axis=name):
            return name, ()
        case Apply(op=op, args=args):
            return op, args
        case Select(condition=condition, then=then, other=other):
            return None, (condition, then, other)
        case Reduce(op=op, bounds=bounds, body=body, where=where):
            return (op, bounds), (body,) if where is None else (body, where)
        case Call(rule=rule, output=output, args=args):
            return (output, rule), args
        case _:
            assert_never(expr)


def const(value: int | str | Fraction) -> Const:
    """An exact constant: ``const("0.1")`` is one tenth. Floats are refused."""
    if isinstance(value, float):
        raise TypeError("a float is not exact: give a string or a Fraction")
    return Const(Fraction(value))


def apply(op: str, *args: Expr) -> Apply:
    """``Apply`` with the arguments in place."""
    return Apply(op, args)
