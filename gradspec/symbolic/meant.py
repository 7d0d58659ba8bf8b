"""What each part of a text would have to be for the whole to have the value wanted.

From the root down every operation is inverted: if ``a * b`` is to be ``w``, then ``b`` is
to be ``w / a``. So a single wrong part is known by the value that is missing there, at
every point, whatever the right part looks like; and guesses about it cost an evaluation
of the guess alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from flint import arb, ctx

from gradspec.ir.expr import Apply, Expr, Ref, Select
from gradspec.ir.walk import children, nodes
from gradspec.primitives.balls import truth
from gradspec.primitives.formula import formula
from gradspec.primitives.lookup import primitive
from gradspec.symbolic.enclose import UNDEFINED, Point, defined, program

PRECISION = 256
_MOST = 300
"""Places looked at: a text of ten thousand terms has no guilty one that anyone sees."""

_NARROW = 60
"""Bits that a value must have for an agreement with it to mean anything."""

Values = tuple[Any, ...]
"""One ball for each point; None where nothing is known or anything would do."""


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """One part of a text: ``within`` is the name of the text, ``parent`` the operation
    that it is an operand of, ``now`` its values and ``meant`` those it should have."""

    within: str
    node: Expr
    parent: Expr | None
    now: Values
    meant: Values


@dataclass(frozen=True, slots=True, eq=False)
class Scene:
    """A text with the texts of the names in it, and the points with all of them bound."""

    places: tuple[Place, ...]
    points: tuple[Point, ...]


def scene(
    name: str,
    texts: Mapping[str, Expr],
    own: frozenset[str],
    wanted: Expr,
    points: tuple[Point, ...],
) -> Scene:
    """The places of the text ``name`` and of the texts in ``own`` that it uses once.

    ``texts`` are in an order in which each uses earlier ones only; ``wanted`` is in the
    names of the points.
    """
    with ctx.workprec(PRECISION):
        bound = tuple(_bound(texts, point) for point in points)
        meant = tuple(
            _narrow(program(wanted).run(point, PRECISION)[0]) for point in points
        )
        return Scene(tuple(_places(name, texts, own, bound, meant)), bound)


def _bound(texts: Mapping[str, Expr], point: Point) -> Point:
    bound = dict(point)
    for name, text in texts.items():
        if name not in bound:
            value = program(text).run(bound, PRECISION)[0]
            bound[name] = UNDEFINED if value is None else value
    return bound


class _Tables:
    """The values of all parts of a text, found at once."""

    def __init__(self, points: tuple[Point, ...]) -> None:
        self._points = points
        self._known: dict[Expr, list[Any]] = {}

    def add(self, text: Expr) -> None:
        parts = tuple(nodes(text))
        compiled = program(*parts)
        rows = [compiled.run(point, PRECISION) for point in self._points]
        self._known.update(zip(parts, map(list, zip(*rows, strict=True)), strict=True))

    def raw(self, node: Expr) -> list[Any]:
        return self._known[node]

    def narrow(self, node: Expr) -> Values:
        return tuple(_narrow(value) for value in self._known[node])


def _places(
    name: str,
    texts: Mapping[str, Expr],
    own: frozenset[str],
    points: tuple[Point, ...],
    meant: Values,
) -> Iterator[Place]:
    uses = Counter(
        node.name
        for text in texts.values()
        for node in _tree(text)
        if isinstance(node, Ref)
    )
    tables = _Tables(points)
    tables.add(texts[name])
    todo: list[tuple[str, Expr, Expr | None, Values]] = [
        (name, texts[name], None, meant)
    ]
    for _ in range(_MOST):
        if not todo:
            return
        within, node, parent, wanted = todo.pop()
        yield Place(within, node, parent, tables.narrow(node), wanted)
        below = list(_below(node, tables, wanted))
        todo += [(within, child, node, values) for child, values in reversed(below)]
        if isinstance(node, Ref) and node.name in own and uses[node.name] == 1:
            tables.add(texts[node.name])
            todo.append((node.name, texts[node.name], None, wanted))


def _tree(text: Expr) -> Iterator[Expr]:
    """Every occurrence, up to a limit (texts are what people write)."""
    todo, count = [text], 0
    while todo and count < _MOST:
        node = todo.pop()
        count += 1
        yield node
        todo += children(node)


def evaluate(expr: Expr, points: tuple[Point, ...]) -> Values:
    """The values that are known well."""
    compiled = program(expr)
    return tuple(_narrow(compiled.run(point, PRECISION)[0]) for point in points)


def fits(meant: Values, form: Expr, points: tuple[Point, ...]) -> bool:
    """Whether a form has the values meant, wherever they are known (three at least). Most
    forms do not have the first."""
    compiled = program(form)
    count = 0
    for point, value in zip(points, meant, strict=True):
        if value is not None:
            held = _narrow(compiled.run(point, PRECISION)[0])
            if held is None or not held.overlaps(value):
                return False
            count += 1
    return count >= 3


def _narrow(value: Any) -> Any:
    if value is True or value is False or not defined(value):
        return None
    return value if value.is_zero() or value.rel_accuracy_bits() > _NARROW else None


def _below(
    node: Expr, tables: _Tables, wanted: Values
) -> Iterator[tuple[Expr, Values]]:
    """The operands that alone may be at fault, with the values they should have."""
    match node:
        case Apply(op=op, args=args) if is_invertible(op):
            rows = list(zip(*(tables.raw(arg) for arg in args), strict=True))
            for place, arg in enumerate(args):
                values = _operands(op, rows, place, wanted)
                if values is not None and _is_known(values):
                    yield arg, values
        case Select(condition=condition, then=then, other=other):
            taken = [truth(value) for value in tables.raw(condition)]
            held = tables.narrow(node)
            for branch, side in ((then, True), (other, False)):
                if _agree_outside(held, wanted, taken, side):
                    pairs = zip(wanted, taken, strict=True)
                    values = tuple(w if t is side else None for w, t in pairs)
                    if _is_known(values):
                        yield branch, values
        case _:
            return


def _operands(
    op: str, rows: list[tuple[Any, ...]], place: int, wanted: Values
) -> Values | None:
    """None if at some point no operand would do."""
    found: list[Any] = []
    for row, want in zip(rows, wanted, strict=True):
        value = None if want is None else operand(op, row, place, want)
        if isinstance(value, str) and value == NEVER:
            return None
        found.append(None if value is None else _narrow(value))
    return tuple(found)


def _agree_outside(now: Values, wanted: Values, taken: list[Any], side: bool) -> bool:
    """Nothing is to be changed where the other branch is taken."""
    return all(
        t is side or n is None or w is None or n.overlaps(w)
        for n, w, t in zip(now, wanted, taken, strict=True)
    )


def _is_known(values: Values) -> bool:
    return sum(value is not None for value in values) >= 3


# --- one operation inverted ------------------------------------------------------------

Value = Any
"""An ``arb``; see :mod:`gradspec.symbolic.enclose`."""

NEVER: Final = "never"
"""No operand gives the wanted value."""


def is_invertible(op: str) -> bool:
    return op in _BINARY or bool(primitive(op).inverse)


def operand(op: str, args: tuple[Value, ...], place: int, wanted: Value) -> Value:
    """The value for ``args[place]`` that makes ``op`` give ``wanted``; :data:`NEVER`, or
    None where any would do or none is known.

    Of several the one on the same branch as the present operand: a square root has the
    sign of what stands there now.
    """
    if not all(_is_number(a) for n, a in enumerate(args) if n != place):
        return None
    if op in _BINARY:
        found = _BINARY[op](args[0], args[1], place, wanted)
        return found if isinstance(found, str) or _is_number(found) else None
    now = args[0] if _is_number(args[0]) else arb(0)
    inverse = program(formula(primitive(op).inverse))
    bound = {"out": wanted, "x": now}
    found = inverse.run({name: bound[name] for name in inverse.names}, PRECISION)[0]
    return found if _is_number(found) else NEVER


def _is_number(value: Value) -> bool:
    return defined(value) and value is not True and value is not False


def _sum(left: Value, right: Value, place: int, wanted: Value) -> Value:
    return wanted - (left if place else right)


def _difference(left: Value, right: Value, place: int, wanted: Value) -> Value:
    return left - wanted if place else wanted + right


def _product(left: Value, right: Value, place: int, wanted: Value) -> Value:
    other = left if place else right
    if other.contains(0):
        return None if wanted.contains(0) else NEVER
    return wanted / other


def _quotient(left: Value, right: Value, place: int, wanted: Value) -> Value:
    if not place:
        return wanted * right
    if wanted.contains(0):
        return None if left.contains(0) else NEVER
    return left / wanted


def _power(base: Value, exponent: Value, place: int, wanted: Value) -> Value:
    if place:
        if not (base > 0 and wanted > 0) or base.contains(1):
            return None
        return wanted.log() / base.log()
    if exponent.contains(0):
        return None
    root = abs(wanted) ** (1 / exponent) if not wanted.contains(0) else arb(0)
    return -root if _is_number(base) and base < 0 else root


_BINARY: dict[str, Callable[[Value, Value, int, Value], Value]] = {
    "add": _sum,
    "sub": _difference,
    "mul": _product,
    "div": _quotient,
    "pow": _power,
}
