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
A compilation makes millions of them, so they are plain classes with final attributes:
to make a frozen dataclass takes three times as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from itertools import chain, count
from operator import attrgetter
from typing import Any, ClassVar, Final, TypeAlias, assert_never, cast
from weakref import ref

from gradspec.source import Span


class Key:
    """The identity of equal nodes, compared by `is`; it is freed with the last of
    them."""

    __slots__ = ("__weakref__", "free", "number")

    def __init__(self, number: int) -> None:
        self.number: Final = number
        self.free: tuple[str, ...] | None = None  # indices, found when first asked for


_keys: dict[tuple[object, ...], ref[Key]] = {}
"""The keys of all live nodes, by type and contents: children by number, so that an
entry keeps no node alive. Entries of dead keys are swept from time to time."""

_numbers = count()
_BETWEEN_SWEEPS = 1 << 16


def key_of(made: tuple[object, ...]) -> Key:
    """The key of a node; ``made`` says what it is, with numbers in place of nodes."""
    known = _keys.get(made)
    key = None if known is None else known()
    if key is None:
        key = Key(next(_numbers))
        _keys[made] = ref(key)
        if key.number % _BETWEEN_SWEEPS == 0:
            _sweep()
    return key


def _sweep() -> None:
    for made, known in list(_keys.items()):
        if known() is None:
            del _keys[made]


number_of = attrgetter("key.number")


class Numbered:
    """Equality by structure, decided when a node is made: equal nodes have the same
    ``key``. Neither the depth of a tree nor its sharing (``a = b + b, c = a + a, …``)
    makes it slow, and walks keep what they know of a node under its key. ``below`` are
    the nodes of which it is made, left to right.
    """

    __slots__ = ("_inner", "below", "key")

    _inner: tuple[Any, ...]
    below: tuple[Any, ...]
    key: Key
    __match_args__: ClassVar[tuple[str, ...]]

    @property
    def inner(self) -> tuple[Any, ...]:
        """Every distinct node below, children before parents; found when first asked
        for (four of five walks begin at a node from which another has begun).
        """
        try:
            return self._inner
        except AttributeError:
            object.__setattr__(self, "_inner", reached_from(self.below))
            return self._inner

    def over(self, parts: tuple[Any, ...]) -> Any:
        """The node over other nodes (of no others, unless a class says how)."""
        return self

    def __hash__(self) -> int:
        return self.key.number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Numbered) and self.key is other.key

    def __repr__(self) -> str:
        parts = (f"{n}={getattr(self, n)!r}" for n in self.__match_args__)
        return f"{type(self).__name__}({', '.join(parts)})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by construction: another process numbers its nodes by itself."""
        return type(self), tuple(getattr(self, n) for n in self.__match_args__)


class _Node(Numbered):
    """A node of the mathematics, at a place of the text."""

    __slots__ = ("span",)

    below: tuple[Expr, ...]
    span: Span | None

    @property
    def free(self) -> tuple[str, ...]:
        """Indices that it uses and does not bind, in the order of the text."""
        if self.key.free is None:
            for node in (*self.inner, cast("Expr", self)):
                if node.key.free is None:
                    node.key.free = _free(node)
        return self.key.free or ()

    def at(self, span: Span | None) -> Expr:
        """The node at another place of the text."""
        kind, fields = super().__reduce__()
        made: Expr = kind(*fields, span=span)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        kind, fields = super().__reduce__()
        return partial(kind, *fields, span=self.span), ()


class Const(_Node):
    """An exact rational: ``0.1`` in a rule is one tenth."""

    __slots__ = __match_args__ = ("value",)

    def __init__(self, value: Fraction, *, span: Span | None = None) -> None:
        self.value: Final = value
        self.below, self.span = (), span
        self.key = key_of((Const, value.numerator, value.denominator))


class Ref(_Node):
    """A value by name; ``indices`` is empty for elementwise and rank-0 values."""

    __slots__ = __match_args__ = ("name", "indices")

    def __init__(
        self, name: str, indices: tuple[Expr, ...] = (), *, span: Span | None = None
    ) -> None:
        self.name: Final = name
        self.indices: Final = indices
        self.below, self.span = indices, span
        self.key = key_of((Ref, name, *map(number_of, indices)))

    def over(self, parts: tuple[Expr, ...]) -> Expr:
        return Ref(self.name, parts, span=self.span)


class Idx(_Node):
    """The value of a bound index, counted from 0."""

    __slots__ = __match_args__ = ("name",)

    def __init__(self, name: str, *, span: Span | None = None) -> None:
        self.name: Final = name
        self.below, self.span = (), span
        self.key = key_of((Idx, name))


class Size(_Node):
    """The size of the axis ``axis`` as a number."""

    __slots__ = __match_args__ = ("axis",)

    def __init__(self, axis: str, *, span: Span | None = None) -> None:
        self.axis: Final = axis
        self.below, self.span = (), span
        self.key = key_of((Size, axis))


class Apply(_Node):
    """The primitive ``op`` applied to ``args``."""

    __slots__ = __match_args__ = ("op", "args")

    def __init__(
        self, op: str, args: tuple[Expr, ...] = (), *, span: Span | None = None
    ) -> None:
        self.op: Final = op
        self.args: Final = args
        self.below, self.span = args, span
        self.key = key_of((Apply, op, *map(number_of, args)))

    def over(self, parts: tuple[Expr, ...]) -> Expr:
        return Apply(self.op, parts, span=self.span)


class Select(_Node):
    """``then`` where ``condition`` holds, else ``other``, element by element."""

    __slots__ = __match_args__ = ("condition", "then", "other")

    def __init__(
        self, condition: Expr, then: Expr, other: Expr, *, span: Span | None = None
    ) -> None:
        self.condition: Final = condition
        self.then: Final = then
        self.other: Final = other
        self.below, self.span = (condition, then, other), span
        self.key = key_of((Select, *map(number_of, self.below)))

    def over(self, parts: tuple[Expr, ...]) -> Expr:
        return Select(*parts, span=self.span)


@dataclass(frozen=True, slots=True)
class Bound:
    """An index and the axis that it ranges over (a name, or a fixed size)."""

    index: str
    axis: str | int


EXTREMA = frozenset(("max", "min", "peak"))
"""Reductions that pick an element."""


class Reduce(_Node):
    """``op`` over ``bounds``; op is one of ``sum mean prod max min logsumexp``, or one
    that no rule has written, which we put in to keep numbers in range:

    ``peak`` is a maximum, which of nothing is -inf where a maximum may be an error;
    ``norm`` is the root of the sum of the squares.
    """

    __slots__ = __match_args__ = ("op", "bounds", "body", "where")

    def __init__(
        self,
        op: str,
        bounds: tuple[Bound, ...],
        body: Expr,
        where: Expr | None = None,
        *,
        span: Span | None = None,
    ) -> None:
        self.op: Final = op
        self.bounds: Final = bounds
        self.body: Final = body
        self.where: Final = where
        self.below = (body,) if where is None else (body, where)
        self.span = span
        self.key = key_of((Reduce, op, bounds, *map(number_of, self.below)))

    def over(self, parts: tuple[Expr, ...]) -> Expr:
        return Reduce(self.op, self.bounds, *parts, span=self.span)


class Call(_Node):
    """Output number ``output`` of another (elementwise) rule, a `gradspec.ir.rule.Rule`
    (which is made of expressions: it is not named in the types here).

    ``args`` stand in the order of the callee's inputs, statics and defaults filled in.
    The value is the callee's forward; the derivative is the callee's own backward
    (declared, surrogate or override), which is why the call is kept until derivation.
    """

    __slots__ = __match_args__ = ("rule", "output", "args")

    def __init__(
        self,
        rule: Any,
        output: int,
        args: tuple[Expr, ...],
        *,
        span: Span | None = None,
    ) -> None:
        self.rule: Final = rule
        self.output: Final = output
        self.args: Final = args
        self.below, self.span = args, span
        self.key = key_of((Call, rule, output, *map(number_of, args)))

    def over(self, parts: tuple[Expr, ...]) -> Expr:
        return Call(self.rule, self.output, parts, span=self.span)


def reached_from(roots: tuple[Any, ...]) -> tuple[Any, ...]:
    """The roots and all below them (with our own stack: a long sum is a deep tree)."""
    seen: set[Key] = set()
    found: list[Numbered] = []
    todo: list[Any] = [*roots[::-1]]
    while todo:
        node = todo.pop()
        if node is None:  # the one below it is done but for itself
            found.append(todo.pop())
        elif node.key not in seen:
            seen.add(node.key)
            if node.below:
                todo += (node, None, *node.below[::-1])
            else:
                found.append(node)
    return tuple(found)


def _free(node: Expr) -> tuple[str, ...]:
    """The free indices of a node by those of the nodes below."""
    if isinstance(node, Idx):
        return (node.name,)
    found = [part.key.free for part in node.below if part.key.free]
    if not found:
        return ()
    names = found[0] if len(found) == 1 else dict.fromkeys(chain(*found))
    if isinstance(node, Reduce):
        bound = {b.index for b in node.bounds}
        return tuple([name for name in names if name not in bound])
    return tuple(names)


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


# --- order statistics -----------------------------------------------------------------
#
# Order statistics are sums. The rank of an element is the number of elements that come
# before it: smaller ones, and equal ones at earlier places. ``nth(k, x[j] for j)`` is the
# place of the element of rank k, and -1 if there is none.


@dataclass(frozen=True, slots=True)
class Rank:
    """The rank of the ``key`` at ``place`` among those at all places of ``bound``."""

    key: Expr
    bound: Bound
    place: Expr


@dataclass(frozen=True, slots=True)
class Selection:
    """``sum(body for place if ranked == at)``; ``at`` is the same for all places."""

    body: Expr
    place: Bound
    ranked: Expr
    at: Expr


def nth(at: Expr, key: Expr, bound: Bound, place: str, exists: bool) -> Expr:
    """The place of the key of rank ``at``; it ``exists``, or may not."""
    here, there = Idx(place), Idx(bound.index)
    own = _moved(key, bound.index, here)
    tie = apply("and", apply("eq", key, own), apply("lt", there, here))
    rank = Reduce("sum", (bound,), ONE, apply("or", apply("lt", key, own), tie))
    where = apply("eq", rank, at)
    found = Reduce("sum", (Bound(place, bound.axis),), here, where)
    return found if exists else Select(exists_on(bound.axis, at), found, const(-1))


def exists_on(axis: str | int, at: Expr) -> Expr:
    """The condition that a place of an axis exists."""
    below = apply("lt", at, Size(axis) if isinstance(axis, str) else const(axis))
    return below if isinstance(at, Idx) else apply("and", apply("le", ZERO, at), below)


def _moved(expr: Expr, index: str, to: Expr) -> Expr:
    """The expression with another place for an index."""
    done: dict[Key, Expr] = {}
    for node in (*expr.inner, expr):
        parts = tuple(done[part.key] for part in node.below)
        done[node.key] = node.over(parts) if parts else node
        if isinstance(node, Idx) and node.name == index:
            done[node.key] = to
    return done[expr.key]


def rank_of(expr: Expr) -> Rank | None:
    """The rank that an expression counts. Where it counts larger elements, the keys are
    their negatives."""
    match _counted(expr):
        case (
            (Bound(index=index) as bound,),
            Const(value=1),
            Apply(
                op="or",
                args=(
                    Apply(op="lt" | "gt" as op, args=pair),
                    Apply(
                        op="and",
                        args=(
                            Apply(op="eq", args=same),
                            Apply(op="lt" | "gt" as order, args=places),
                        ),
                    ),
                ),
            ),
        ):
            less, more = pair if op == "lt" else pair[::-1]
            there, place = places if order == "lt" else places[::-1]
        case _:
            return None
    if there != Idx(index) or {*_positive(*same)} != {*_positive(less, more)}:
        return None
    for key, own, other in ((less, less, more), (apply("neg", more), more, less)):
        if index in own.free and _moved(own, index, place) == other:
            return Rank(key, bound, place)
    return None


def _positive(a: Expr, b: Expr) -> tuple[Expr, ...]:
    """Two sides of a comparison without a sign that both have."""
    signs = [isinstance(side, Apply) and side.op == "neg" for side in (a, b)]
    return (*a.below, *b.below) if all(signs) else (a, b)


def selection_of(expr: Expr) -> Selection | None:
    """An expression as a sum over the places of one rank."""
    match _counted(expr):
        case (place,), body, Apply(op="eq", args=(a, b)):
            for ranked, at in ((a, b), (b, a)):
                if place.index in ranked.free and place.index not in at.free:
                    return Selection(body, place, ranked, at)
    return None


def _counted(expr: Expr) -> tuple[tuple[Bound, ...], Expr, Expr] | None:
    """The indices of a sum, its terms, and which of them count."""
    match expr:
        case Reduce(
            op="sum", bounds=bounds, body=Select(test, then, other), where=None
        ):
            return (bounds, then, test) if other == ZERO else None
        case Reduce(op="sum", bounds=bounds, body=body, where=Apply() as test):
            return bounds, body, test
        case _:
            return None


def nth_of(expr: Expr) -> tuple[Expr, Rank] | None:
    """What `nth` is asked for, and the ranks, if an expression is one of it."""
    guard = None
    if isinstance(expr, Select) and expr.other == const(-1):
        guard, expr = expr.condition, expr.then
    found = selection_of(expr)
    ranks = None if found is None else rank_of(found.ranked)
    if found is None or ranks is None or found.body != Idx(found.place.index):
        return None
    if guard is not None and guard != exists_on(found.place.axis, found.at):
        return None
    return found.at, ranks


# --- text -----------------------------------------------------------------------------
#
# In the language's own syntax, with the fewest brackets.


# Binding strength, loosest first: the order of the grammar (which is Python's).
_CONDITIONAL, _OR, _AND, _NOT, _COMPARE = range(5)
_SUM, _PRODUCT, _UNARY, _POWER, ATOM = range(5, 10)

# symbol, own strength, strength asked of the left and of the right operand
_INFIX = {
    "add": (" + ", _SUM, _SUM, _PRODUCT),
    "sub": (" - ", _SUM, _SUM, _PRODUCT),
    "mul": (" * ", _PRODUCT, _PRODUCT, _UNARY),
    "div": (" / ", _PRODUCT, _PRODUCT, _UNARY),
    "mod": (" % ", _PRODUCT, _PRODUCT, _UNARY),
    "pow": ("**", _POWER, ATOM, _UNARY),
    "lt": (" < ", _COMPARE, _SUM, _SUM),
    "le": (" <= ", _COMPARE, _SUM, _SUM),
    "gt": (" > ", _COMPARE, _SUM, _SUM),
    "ge": (" >= ", _COMPARE, _SUM, _SUM),
    "eq": (" == ", _COMPARE, _SUM, _SUM),
    "ne": (" != ", _COMPARE, _SUM, _SUM),
    # Logic is associative, so brackets on the right would say nothing.
    "and": (" and ", _AND, _AND, _AND),
    "or": (" or ", _OR, _OR, _OR),
}
_PREFIX = {"neg": ("-", _UNARY), "not": ("not ", _NOT)}

Text = tuple[str, int]
"""The text of an expression, and how tightly its outermost operator binds."""

_Known = dict[Expr, Text]
Axes: TypeAlias = "Mapping[str, tuple[str | int, ...]]"

_LONGEST = 17  # digits: what identifies a float64
_SMALLEST = -5  # the exponent from which Python, too, prints 1e-05


def show(expr: Expr, axes: Axes | None = None) -> str:
    """``expr`` in the language's syntax; a call of a rule shows as ``rule(args)``.

    A constant shows as the decimal that it is, if that is short, else as a quotient.
    ``axes`` are those of the values that it names, if known: an index shows its range if
    it has another than where it stands.
    """
    known: _Known = {}
    for node in (*expr.inner, expr):
        known[node] = _show(node, known, axes)
    return known[expr][0]


def index_text(
    index: str, axis: str | int, over: Iterable[Expr], axes: Axes | None
) -> str:
    """An index where it is introduced: ``j in k`` if it stands on no axis, or on
    another."""
    used = (node for part in over for node in (*part.inner, part))
    places = [
        (node.name, place)
        for node in used
        if isinstance(node, Ref)
        for place, one in enumerate(node.indices)
        if isinstance(one, Idx) and one.name == index
    ]
    known = axes or {}
    is_plain = all(n not in known or known[n][place] == axis for n, place in places)
    return index if axis == "" or (places and is_plain) else f"{index} in {axis}"


def _show(expr: Expr, known: _Known, axes: Axes | None) -> Text:
    """The text; those of the parts are known."""
    if isinstance(expr, Reduce | Select) and (order := nth_of(expr)) is not None:
        return _nth(*order, known, axes), ATOM
    match expr:
        case Const(value=value):
            return number_text(value)
        case Ref(name=name, indices=indices):
            inside = ", ".join(known[i][0] for i in indices)
            return (f"{name}[{inside}]" if indices else name), ATOM
        case Idx(name=name) | Size(axis=name):
            return name, ATOM
        case Apply(op=op, args=args):
            return operation_text(op, tuple(known[arg] for arg in args))
        case Select(condition=condition, then=then, other=other):
            return choice_text(known[condition], known[then], known[other])
        case Reduce():
            return _reduce(expr, known, axes), ATOM
        case Call():
            return _call(expr, known), ATOM
        case _:
            assert_never(expr)


def _within(part: Text, strength: int) -> str:
    text, own = part
    return text if own >= strength else f"({text})"


def choice_text(condition: Text, then: Text, other: Text) -> Text:
    """A conditional of such parts."""
    chosen, test = _within(then, _OR), _within(condition, _OR)
    return f"{chosen} if {test} else {other[0]}", _CONDITIONAL


def operation_text(op: str, args: tuple[Text, ...]) -> Text:
    """A primitive of arguments of such texts."""
    if op in _INFIX:
        symbol, own, left, right = _INFIX[op]
        return f"{_within(args[0], left)}{symbol}{_within(args[1], right)}", own
    if op in _PREFIX:
        symbol, own = _PREFIX[op]
        return f"{symbol}{_within(args[0], own)}", own
    if not args:
        return op, ATOM
    return f"{spoken(op)}({', '.join(text for text, _ in args)})", ATOM


def spoken(op: str) -> str:
    """The name of an operation for people. (That of a foreign function is followed by
    its definition.)"""
    return op.partition("\n")[0]


def _reduce(expr: Reduce, known: _Known, axes: Axes | None) -> str:
    over = ", ".join(index_text(b.index, b.axis, expr.below, axes) for b in expr.bounds)
    where = "" if expr.where is None else f" if {_within(known[expr.where], _OR)}"
    op = "max" if expr.op == "peak" else expr.op  # as a rule would have it
    if op == "norm":
        square = f"{_within(known[expr.body], ATOM)}**2"
        return f"sqrt(sum({square} for {over}{where}))"
    return f"{op}({known[expr.body][0]} for {over}{where})"


def _nth(at: Expr, ranks: Rank, known: _Known, axes: Axes | None) -> str:
    key, bound = ranks.key, ranks.bound
    text = known.get(key) or operation_text("neg", (known[key.below[0]],))
    over = index_text(bound.index, bound.axis, (key,), axes)
    return f"nth({known[at][0]}, {text[0]} for {over})"


def _call(expr: Call, known: _Known) -> str:
    rule = expr.rule
    parts = []
    for variable, arg in zip(rule.inputs, expr.args, strict=True):
        if not variable.kind.is_static:
            parts.append(known[arg][0])
        elif variable.default is None or arg != Const(variable.default):
            parts.append(f"{variable.name}={known[arg][0]}")
    several = len(rule.outputs) > 1
    name = f"{rule.name}.{rule.outputs[expr.output].name}" if several else rule.name
    return f"{name}({', '.join(parts)})"


def number_text(value: Fraction) -> Text:
    """A number as a decimal, if that is short, else as a quotient."""
    sign, strength = ("-", _UNARY) if value < 0 else ("", ATOM)
    digits = _decimal(abs(value))
    if digits is not None:
        return sign + digits, strength
    return f"{value.numerator} / {value.denominator}", _PRODUCT


def _decimal(value: Fraction) -> str | None:
    """The exact decimal of a value that has a short one."""
    with localcontext(prec=_LONGEST) as context:
        context.clear_flags()
        quotient = Decimal(value.numerator) / Decimal(value.denominator)
    if Fraction(quotient) != value:
        return str(value.numerator) if value.denominator == 1 else None
    shortest = quotient.normalize()
    plain = format(shortest, "f")
    if _SMALLEST <= shortest.adjusted() < _LONGEST:
        return plain
    mantissa, exponent = format(shortest, "e").split("e")
    return f"{mantissa}e{int(exponent)}"
