"""Expressions: names, operators, comparisons, parts and attributes of values."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from gradspec.ir.expr import Apply, Expr, Ref
from gradspec.ir.walk import size
from gradspec.lift import operations
from gradspec.lift.arrays import Arrays
from gradspec.lift.conditions import Decisions
from gradspec.lift.names import FRAMEWORKS, Names
from gradspec.lift.values import (
    COMPARISONS,
    Array,
    Axes,
    CannotLift,
    Chosen,
    Class,
    Context,
    Function,
    Index,
    IsBroken,
    Library,
    Method,
    Opaque,
    Owner,
    Scope,
    Shape,
    Track,
    element,
    words,
)

STEPS = 20_000
"""Nodes of Python that all paths of a site may evaluate."""

_LARGEST = 3000

_OPERATORS = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.Pow: "pow",
    ast.Mod: "mod",
    ast.FloorDiv: "floordiv",
}
_COMPARISONS = {
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}
_CONTEXT = words(
    "save_for_backward save_for_forward mark_dirty mark_non_differentiable"
    " set_materialize_grads"
)


@dataclass(frozen=True, eq=False)
class Let:
    """A local of a rule, and the line of Python that made it."""

    name: str
    axes: Axes
    value: Expr
    phase: str
    line: int


class Expressions(Arrays):
    """The state of one path through one site. ``attribute`` gives numbers that the surroundings fix:
    attributes of `self`, locals of the enclosing function."""

    def __init__(
        self,
        framework: str,
        decisions: Decisions,
        allows_square: bool,
        project: Any,
    ) -> None:
        super().__init__(allows_square)
        self.framework, self.decisions, self.project = framework, decisions, project
        self.names = Names()
        self.lets: list[Let] = []
        self.known: dict[tuple[Expr, Axes], Expr] = {}
        self.phase = "forward"
        self.depth = 0
        self.attribute: Callable[[str], Any] | None = None
        self.axis_names: dict[str, int | None] = {}
        self.loose: set[str] = set()
        self.hints: dict[str, int] = {}
        self.spans: dict[str, tuple[Index, int, int]] = {}

    def is_loose(self, value: Array) -> bool:
        """True of a value of the surroundings, of which nothing is known."""
        return isinstance(value.value, Ref) and value.value.name in self.loose

    # --- locals -----------------------------------------------------------------------

    def let(self, hint: str, value: Any, node: ast.AST) -> Any:
        """The value under the name that the author gives it."""
        if not isinstance(value, Array) or value.is_condition:
            return value
        if isinstance(value.value, Ref) or size(value.value) < 3:
            return value
        if size(value.value) > _LARGEST:
            raise CannotLift("python", "expressions that are too large", node)
        known = self.known.get((value.value, value.axes))
        if known is None:
            name = self.names.fresh(hint)
            free = value.value.free
            loops = (loop for loop, *_ in self.spans.values() if loop.name in free)
            used = (*loops, *(i for i in value.indices if i.name in free))
            line = getattr(node, "lineno", 0)
            self.lets.append(Let(name, used, value.value, self.phase, line))
            known = element(name, used)
            self.known[value.value, value.axes] = known
        value.value = known
        return value

    # --- conditions -------------------------------------------------------------------

    def truth(self, node: ast.expr, scope: Scope) -> bool:
        match node:
            case ast.BoolOp(op=op, values=values):
                stop = isinstance(op, ast.Or)
                return next(
                    (stop for v in values if self.truth(v, scope) is stop), not stop
                )
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not self.truth(operand, scope)
            case _:
                return self.decisions.truth(self.evaluate(node, scope), node)

    # --- expressions ------------------------------------------------------------------

    def _step(self, node: ast.AST) -> None:
        if not self.project.effort.take(1):
            told = f"reading it takes more than {STEPS:,} steps"
            raise CannotLift("effort", told, node)

    def evaluate(self, node: ast.expr, scope: Scope) -> Any:
        self._step(node)
        visit = getattr(self, f"_on_{type(node).__name__}", None)
        if visit is None:
            told = f"an expression of the kind {type(node).__name__}"
            raise CannotLift("python", told, node)
        return visit(node, scope)

    def _on_Constant(self, node: ast.Constant, scope: Scope) -> Any:
        value = node.value
        if isinstance(value, float):
            if value in (float("inf"), float("-inf")):
                return value
            return Fraction(repr(value))
        if isinstance(value, complex | bytes):
            raise CannotLift("python", "a complex number", node)
        return value

    def _on_Name(self, node: ast.Name, scope: Scope) -> Any:
        where: Scope | None = scope
        while where is not None:
            if node.id in where.names:
                return where.names[node.id]
            where = where.outer
        found = self.project.global_value(node.id, scope.module, self)
        if found is not None:
            return found[0]
        if node.id in _BUILTINS:
            return Library(f"builtins.{node.id}")
        if self.attribute is not None:
            found = self.attribute(node.id)
            if found is not None:
                return found
        told = f"the name `{node.id}`, which the file does not define"
        raise CannotLift("unknown", told, node)

    def _on_Tuple(self, node: ast.Tuple, scope: Scope) -> tuple[Any, ...]:
        return tuple(self._items(node.elts, scope))

    def _on_List(self, node: ast.List, scope: Scope) -> list[Any]:
        return self._items(node.elts, scope)

    def _items(self, nodes: Sequence[ast.expr], scope: Scope) -> list[Any]:
        found: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                value = self.evaluate(node.value, scope)
                found += (
                    [value] if isinstance(value, Shape) else self.items_of(value, node)
                )
            else:
                found.append(self.evaluate(node, scope))
        return found

    def items_of(self, value: Any, node: ast.AST, wanted: int = -1) -> Sequence[Any]:
        match value:
            case tuple() | list():
                return value
            case Opaque():
                return ()
            case Shape(array=array) if self._hints_at_rank(array, wanted):
                told = f"the shape of an array that has to have {wanted} axes"
                raise CannotLift("shape", told, node)
            case Shape(array=array) if not array.is_open:
                return [self.size(array, k, node) for k in range(len(array.axes))]
            case Shape():
                raise CannotLift("shape", "the shape of an array of unknown rank", node)
            case _:
                raise CannotLift(
                    "python", "unpacking something that is not a tuple", node
                )

    def _hints_at_rank(self, array: Array, wanted: int) -> bool:
        """True if an input has to have another rank than it is taken to have."""
        if wanted < 0 or (not array.is_open and len(array.axes) == wanted):
            return False
        if isinstance(array.value, Ref):
            self.hints[array.value.name] = wanted
        return True

    def _on_Dict(self, node: ast.Dict, scope: Scope) -> dict[Any, Any]:
        if any(not isinstance(key, ast.Constant) for key in node.keys):
            raise CannotLift("python", "a dictionary of other keys than texts", node)
        keys = [key.value for key in node.keys if isinstance(key, ast.Constant)]
        values = (self.evaluate(value, scope) for value in node.values)
        return dict(zip(keys, values, strict=True))

    def _on_JoinedStr(self, node: ast.JoinedStr, scope: Scope) -> Any:
        return Opaque("python", "a text that is made")

    def _on_Lambda(self, node: ast.Lambda, scope: Scope) -> Function:
        return Function(node, scope)

    def _on_IfExp(self, node: ast.IfExp, scope: Scope) -> Any:
        chosen = node.body if self.truth(node.test, scope) else node.orelse
        return self.evaluate(chosen, scope)

    def _on_BoolOp(self, node: ast.BoolOp, scope: Scope) -> Any:
        stop = isinstance(node.op, ast.Or)
        for value in node.values[:-1]:
            if self.truth(value, scope) is stop:
                return self.evaluate(value, scope)
        return self.evaluate(node.values[-1], scope)

    def _on_UnaryOp(self, node: ast.UnaryOp, scope: Scope) -> Any:
        if isinstance(node.op, ast.Not):
            return not self.truth(node.operand, scope)
        value = self.evaluate(node.operand, scope)
        if isinstance(node.op, ast.Invert):
            return self.negation(value, node)
        if isinstance(node.op, ast.UAdd):
            return value
        if isinstance(value, int | float | Fraction):
            return -value
        return self.arithmetic("sub", 0, value, node)

    def _on_BinOp(self, node: ast.BinOp, scope: Scope) -> Any:
        left, right = self.evaluate(node.left, scope), self.evaluate(node.right, scope)
        return self._operate(node.op, left, right, node)

    def _operate(self, op: ast.operator, a: Any, b: Any, node: ast.AST) -> Any:
        if isinstance(a, tuple | list) or isinstance(b, tuple | list):
            return self._join(op, a, b, node)
        if isinstance(a, int | Fraction) and isinstance(b, int | Fraction):
            found = _exact(op, a, b)
            if found is not None:
                return found
        if isinstance(a, Chosen) or isinstance(b, Chosen):
            masks = {v.mask.value for v in (a, b) if isinstance(v, Chosen)}
            if len(masks) > 1 or any(isinstance(v, Array) and v.axes for v in (a, b)):
                raise CannotLift("indexing", "elements chosen by two masks", node)
            mask = a.mask if isinstance(a, Chosen) else b.mask
            return Chosen(self._operate(op, self.array(a), self.array(b), node), mask)
        match op:
            case ast.MatMult():
                return self.matmul(a, b, node)
            case ast.BitAnd() | ast.BitOr():
                name = "and" if isinstance(op, ast.BitAnd) else "or"
                return self.logic(name, a, b, node)
            case ast.BitXor():
                return self._exclusive(a, b, node)
            case _ if type(op) in _OPERATORS:
                return self.arithmetic(_OPERATORS[type(op)], a, b, node)
            case _:
                raise CannotLift("python", f"the operator {type(op).__name__}", node)

    def _exclusive(self, a: Any, b: Any, node: ast.AST) -> Any:
        either, both = self.logic("or", a, b, node), self.logic("and", a, b, node)
        return self.logic("and", either, self.negation(both, node), node)

    def _join(self, op: ast.operator, a: Any, b: Any, node: ast.AST) -> Any:
        if (
            isinstance(op, ast.Add)
            and isinstance(b, type(a))
            and isinstance(a, tuple | list)
        ):
            return a + b
        if isinstance(op, ast.Mult) and type(b) is int and 0 <= b <= 64:
            return a * b
        raise CannotLift("python", "arithmetic with a tuple", node)

    def _on_Compare(self, node: ast.Compare, scope: Scope) -> Any:
        left = self.evaluate(node.left, scope)
        found: Any = None
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(right_node, scope)
            one = self._comparison(op, left, right, node)
            if found is None:
                found = one
            elif isinstance(found, bool):
                found = found and one
            else:
                found = self.logic("and", found, one, node)
            left = right
        return found

    def _comparison(self, op: ast.cmpop, left: Any, right: Any, node: ast.AST) -> Any:
        match op:
            case ast.In() | ast.NotIn():
                if not isinstance(right, tuple | list):
                    raise CannotLift("python", f"`{ast.unparse(node)}`", node)
                each = (self._is_same(left, other, node) for other in right)
                return any(each) == isinstance(op, ast.In)
            case ast.Is() | ast.IsNot():
                return self._is_same(left, right, node) == isinstance(op, ast.Is)
        name = _COMPARISONS[type(op)]
        if isinstance(op, ast.Eq | ast.NotEq) and (
            _is_no_number(left) or _is_no_number(right)
        ):
            return self._is_same(left, right, node) == (name == "eq")
        if isinstance(left, int | float | Fraction) and isinstance(
            right, int | float | Fraction
        ):
            return _ORDER[name](left, right)
        if isinstance(left, Opaque) or isinstance(right, Opaque):
            one, other = (
                v.origin if isinstance(v, Opaque) else plain_text(v)
                for v in (left, right)
            )
            return Opaque("python", f"{one} {name} {other}")
        return self.compare(name, left, right, node)

    def _is_same(self, a: Any, b: Any, node: ast.AST) -> bool:
        if not isinstance(a, Opaque):
            a, b = b, a
        if isinstance(a, Opaque):
            if isinstance(b, str | int | bool | Fraction | None):
                return self.decisions.is_equal(a, b)
            text = (
                b.name
                if isinstance(b, Library)
                else b.origin
                if isinstance(b, Opaque)
                else ""
            )
            if text:
                return text == a.origin or self.decisions.is_equal(a, text)
            raise CannotLift("python", f"`{ast.unparse(node)}`", node)
        simple = str | int | bool | Fraction | float | None
        if isinstance(a, simple) and isinstance(b, simple):
            return bool(a == b and (a is None) == (b is None))
        for one, other in ((a, b), (b, a)):
            if isinstance(one, Array) and self.is_loose(one) and _is_no_number(other):
                origin = Opaque("python", plain_text(one))
                return self._is_same(origin, other, node)
        if a is None or b is None or isinstance(a, str) or isinstance(b, str):
            return False
        if isinstance(a, Library) and isinstance(b, Library):
            return a.name == b.name
        if isinstance(a, Array) and isinstance(b, bool):
            return False
        raise CannotLift("python", f"`{ast.unparse(node)}`", node)

    def _on_Slice(self, node: ast.Slice, scope: Scope) -> slice:
        ends = (node.lower, node.upper, node.step)
        return slice(
            *(None if end is None else self.evaluate(end, scope) for end in ends)
        )

    def _on_Subscript(self, node: ast.Subscript, scope: Scope) -> Any:
        base, place = self.evaluate(node.value, scope), self.evaluate(node.slice, scope)
        match base:
            case Shape(array=array) if isinstance(place, int):
                return self.size(array, place, node)
            case Shape():
                return Opaque("shape", "a part of a shape")
            case tuple() | list() if isinstance(place, int | slice):
                try:
                    return base[place]
                except (IndexError, TypeError, ValueError):
                    told = "an index outside its tuple"
                    raise CannotLift("python", told, node) from None
            case dict() if isinstance(place, str | int) and place in base:
                return base[place]
            case Opaque():
                return Opaque(base.kind, f"{base.origin}[…]")
            case Array() if isinstance(place, Array) and place.is_condition:
                return Chosen(base, place)
            case Array():
                return self._part(base, place, node)
            case Track() if place == slice(None, None, -1):
                return base.turned()
            case Track():
                return self.of_track(base, place, node)
            case _:
                raise CannotLift("python", f"`{ast.unparse(node)}`", node)

    def without_places(
        self, array: Array, places: tuple[Any, ...], node: ast.AST
    ) -> tuple[Array, tuple[Any, ...]]:
        """The elements at the places that are single ones, and the other places."""
        raise NotImplementedError

    def of_track(self, track: Track, place: Any, node: ast.AST) -> Array:
        """An element of a list that the steps of a loop fill."""
        raise NotImplementedError

    def _part(self, array: Array, place: Any, node: ast.AST) -> Array:
        """New axes, and the elements at one place of axes; other parts are not read."""
        places = place if isinstance(place, tuple) else (place,)
        array, places = self.without_places(array, places, node)
        whole = [p is None or p is Ellipsis or _is_whole(p) for p in places]
        if not all(whole):
            raise CannotLift(
                "indexing", f"the part `{ast.unparse(node)}` of an array", node
            )
        if Ellipsis not in places:
            if array.is_open and places != (slice(None),):
                told = "axes counted from the front of an array of unknown rank"
                raise CannotLift("shape", told, node)
            for k, one in enumerate(places):
                array = self.with_axis(array, k, node) if one is None else array
            return array
        after = places[places.index(Ellipsis) + 1 :]
        for k, one in enumerate(reversed(after)):
            array = self.with_axis(array, -k - 1, node) if one is None else array
        if any(p is None for p in places[: places.index(Ellipsis)]):
            raise CannotLift(
                "indexing", f"the part `{ast.unparse(node)}` of an array", node
            )
        return array

    # --- attributes -------------------------------------------------------------------

    def _on_Attribute(self, node: ast.Attribute, scope: Scope) -> Any:
        base, name = self.evaluate(node.value, scope), node.attr
        match base:
            case Context():
                return self._of_context(base, name, node)
            case Library():
                return self._of_library(base, name, node)
            case Array():
                return self._of_array(base, name, node)
            case Opaque():
                return Opaque(base.kind, f"{base.origin}.{name}")
            case Owner() if self.attribute is not None:
                found = self.attribute(name)
                if found is not None:
                    return found
            case Class():
                return self.project.attribute_of_class(base, name, self)
            case Shape() | Chosen() | tuple() | list() | dict() | Function() | Track():
                return Method(base, name)
        if self.project.is_module(base):
            return self.project.attribute_of_module(base, name, self, node)
        raise CannotLift("python", f"`{ast.unparse(node)}`", node)

    def _of_context(self, base: Context, name: str, node: ast.AST) -> Any:
        if name in ("saved_tensors", "saved_variables", "saved_for_forward"):
            return tuple(base.saved)
        if name in base.attributes:
            return base.attributes[name]
        if name == "needs_input_grad":
            return (True,) * 32
        if name in _CONTEXT:
            return Method(base, name)
        found = base.fallback(name) if base.fallback is not None else None
        if found is not None:
            return found
        if base.stored is None or name in base.stored:
            told = f"`{ast.unparse(node)}` is set elsewhere, or on another path"
            raise CannotLift("python", told, node)
        raise IsBroken("structure", f"`{ast.unparse(node)}` is never set", node)

    def _of_library(self, base: Library, name: str, node: ast.AST) -> Any:
        full = f"{base.name}.{name}"
        if name == "newaxis":
            return None
        if full.split(".", maxsplit=1)[0] in FRAMEWORKS and name in (
            "pi",
            "inf",
            "e",
        ):
            if name == "inf":
                return float("inf")
            one = Apply("exp", (self.array(1).value,))
            return Array(Apply("pi") if name == "pi" else one)
        return Library(full)

    def _of_array(self, base: Array, name: str, node: ast.AST) -> Any:
        match name:
            case "data":
                return base
            case "T" | "mT" | "H":
                return operations.transpose_matrix(self, node, base)
            case "shape":
                return Shape(base)
            case "dtype":
                return Opaque("dtype", "the dtype of an input")
            case "ndim":
                return operations.OPERATIONS["dim"](self, node, base)
            case "size" if self.framework != "torch":
                return self.count(base, None, node)
            case "requires_grad":
                return True
            case "device" | "is_cuda" | "layout" | "name" | "is_sparse" | "is_leaf":
                return Opaque("python", f"the {name} of an input")
            case _:
                return Method(base, name)


_BUILTINS = words(
    "abs max min float int len tuple list range sum isinstance round pow getattr"
    " hasattr bool zip enumerate print super callable slice reversed"
)
_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    name: getattr(operator, name) for name in COMPARISONS
}


def _is_whole(place: Any) -> bool:
    return isinstance(place, slice) and place == slice(None)


def _is_no_number(value: Any) -> bool:
    if isinstance(value, Opaque):
        return True
    return value is None or isinstance(value, str | bool | Library | tuple)


def plain_text(value: Any) -> str:
    match value:
        case Array(value=Ref(name=name)):
            return f"`{name}`"
        case Opaque(origin=origin):
            return origin
        case Library(name=name):
            return name
        case str() | int() | Fraction() | None:
            return str(value)
        case _:
            return f"a {type(value).__name__.lower()}"


_MOST_BITS = 2048


def _exact(
    op: ast.operator, a: int | Fraction, b: int | Fraction
) -> int | Fraction | None:
    """Arithmetic of numbers that are fixed, within bounds; None if it is not exact or too
    large to be computed."""
    if any(
        max(abs(v.numerator), v.denominator).bit_length() > _MOST_BITS for v in (a, b)
    ):
        return None
    match op:
        case ast.Add():
            return a + b
        case ast.Sub():
            return a - b
        case ast.Mult():
            return a * b
        case ast.Div() if b != 0:
            return Fraction(a) / Fraction(b)
        case ast.FloorDiv() if b != 0:
            return a // b
        case ast.Mod() if b != 0:
            return a % b
        case ast.Pow() if Fraction(b).denominator == 1 and 0 <= b <= 64:
            if max(abs(a.numerator), a.denominator).bit_length() * b > _MOST_BITS:
                return None
            return a ** int(b)
        case _:
            return None
