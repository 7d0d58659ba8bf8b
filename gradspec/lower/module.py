"""The result of lowering a file, the functions that its items can call, and lowered
expressions with their types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias, assert_never

from gradspec.ir.expr import Apply, Call, Const, Expr, Idx, Reduce, Ref, Select, Size
from gradspec.ir.rule import Kind, Rule
from gradspec.ir.walk import children, nodes
from gradspec.primitives.lookup import (
    function_names,
    is_function,
    is_primitive,
    primitive,
)
from gradspec.primitives.row import Primitive
from gradspec.source import Source, Span


class Type(Enum):
    """The mathematical type of a value; an integer is a real, a truth value is not."""

    REAL = "real"
    INT = "int"
    BOOL = "bool"

    @property
    def is_number(self) -> bool:
        return self is not Type.BOOL


@dataclass(frozen=True, slots=True)
class FunctionParameter:
    """A parameter of a `def`, and what the body asks of it: a type; to be static, or of
    rank 0, because it is passed on to an input of a rule that is.
    """

    name: str
    type: Type
    is_static: bool = False
    is_rank_0: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """A `def`, resolved: a parameter is ``Ref(name)``, other defs are inlined."""

    name: str
    parameters: tuple[FunctionParameter, ...]
    body: Expr
    source: Source = field(compare=False, repr=False)
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Extern:
    """A foreign function by its name in the file; ``operation`` is all that is known of
    it (`primitives.foreign`)."""

    name: str
    operation: str


@dataclass(frozen=True, slots=True)
class LoweredModule:
    """One file, resolved: its sound rules and defs in the order written.

    ``externs`` are its foreign functions; ``imported`` are the defs and foreign functions
    of other files that it may call;
    ``failed`` are the names that the file defines but that have errors, so that a
    file which imports one is told of it in a note and nothing more.
    """

    source: Source
    rules: tuple[Rule, ...] = ()
    functions: tuple[Function, ...] = ()
    externs: tuple[Extern, ...] = ()
    imported: tuple[Function | Extern, ...] = ()
    failed: tuple[str, ...] = ()

    def find(self, name: str) -> Rule | Function | Extern | None:
        """The sound rule, def or foreign function called ``name``."""
        return next((item for item in self._items if item.name == name), None)

    @property
    def names(self) -> tuple[str, ...]:
        """All that another file can import, faulty ones too."""
        return (*(item.name for item in self._items), *self.failed)

    @property
    def defs(self) -> tuple[Function | Extern, ...]:
        """The defs and foreign functions that its rules may call."""
        return (*self.imported, *self.functions, *self.externs)

    @property
    def _items(self) -> tuple[Rule | Function | Extern, ...]:
        return (*self.rules, *self.functions, *self.externs)


@dataclass(frozen=True, slots=True)
class Failed:
    """A rule or def that exists but has errors of its own."""

    name: str


Callee: TypeAlias = Rule | Function | Primitive | Failed


@dataclass(frozen=True, slots=True)
class Library:
    """The meaning of function names inside the item called ``current``.

    ``known`` are the rules and defs of the file and those that it imports; they shadow
    built-ins, but for the item's own name, which means the built-in. ``offered`` are
    the files of rules that come with gradspec, for suggestions.
    """

    known: Mapping[str, Rule | Function | Extern | Failed] = field(default_factory=dict)
    current: str = ""
    offered: Mapping[str, str] = field(default_factory=dict)

    def find(self, name: str) -> Callee | None:
        if name in self.known and not (name == self.current and is_function(name)):
            found = self.known[name]
            return primitive(found.operation) if isinstance(found, Extern) else found
        return primitive(name) if is_function(name) else None

    def names(self) -> tuple[str, ...]:
        """Everything that can be called, for suggestions."""
        return (*self.known, *function_names())


# --- values ---------------------------------------------------------------------------

_TRUTHS = frozenset(("lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not"))
_KEEP_INTEGERS = frozenset(
    ("add", "sub", "mul", "mod", "neg", "abs", "min", "max", "square", "clip")
)
_REDUCTIONS_KEEP = frozenset(("sum", "prod", "max", "min"))


@dataclass(frozen=True, slots=True)
class Value:
    """An expression; ``batch``: it may have batch axes; ``is_backward``: it uses a
    cotangent; ``is_static``: it is known when the rule is called.
    """

    expr: Expr
    type: Type
    batch: bool = False
    is_backward: bool = False
    is_static: bool = False


def combine(expr: Expr, type: Type, *parts: Value) -> Value:
    """A value made from others."""
    return Value(
        expr,
        type,
        batch=any(p.batch for p in parts),
        is_backward=any(p.is_backward for p in parts),
        is_static=all(p.is_static for p in parts),
    )


def type_of_kind(kind: Kind) -> Type:
    """The type of an input or output."""
    match kind:
        case Kind.BOOL:
            return Type.BOOL
        case Kind.INT | Kind.STATIC_INT:
            return Type.INT
        case Kind.FLOAT | Kind.NOGRAD | Kind.STATIC:
            return Type.REAL
        case _:
            assert_never(kind)


def applied_type(op: str, args: tuple[Expr, ...], types: tuple[Type, ...]) -> Type:
    """The type of a primitive's result. Steps (floor, sign, …) count as integers."""
    if op in _TRUTHS:
        return Type.BOOL
    row = primitive(op) if is_primitive(op) else None
    if row is not None and row.result != "real":
        return Type(row.result)
    if row is not None and row.is_step:
        return Type.INT
    whole = all(t is Type.INT for t in types) and bool(types)
    if op == "pow" and whole and isinstance(args[1], Const):
        return Type.INT if args[1].value >= 0 else Type.REAL
    return Type.INT if whole and op in _KEEP_INTEGERS else Type.REAL


def reduced_type(op: str, body: Type) -> Type:
    return body if op in _REDUCTIONS_KEEP else Type.REAL


def constant_type(value: Const) -> Type:
    return Type.INT if value.value.denominator == 1 else Type.REAL


def type_of(expr: Expr, names: Callable[[str], Type]) -> Type:
    """The type of a sound expression, given those of its names."""
    known: dict[Expr, Type] = {}
    for node in nodes(expr):
        known[node] = _type_of_node(node, names, known)
    return known[expr]


def _type_of_node(
    node: Expr, names: Callable[[str], Type], known: dict[Expr, Type]
) -> Type:
    match node:
        case Const():
            return constant_type(node)
        case Idx() | Size():
            return Type.INT
        case Ref(name=name):
            return names(name)
        case Apply(op=op, args=args):
            return applied_type(op, args, tuple(known[a] for a in args))
        case Select(then=then, other=other):
            return wider(known[then], known[other])
        case Reduce(op=op, body=body):
            return reduced_type(op, known[body])
        case Call(rule=rule, output=output):
            return type_of_kind(rule.outputs[output].kind)
        case _:
            assert_never(node)


def wider(left: Type, right: Type) -> Type:
    """The type of a choice between two numbers, or between two conditions."""
    return left if left is right else Type.REAL


def is_fixed(expr: Expr) -> bool:
    """True without index, size, reduction or call: the permitted parts of a static
    argument."""
    return not any(isinstance(n, Idx | Size | Reduce | Call) for n in nodes(expr))


# --- size ----------------------------------------------------------------------------
# The parser limits how deep an expression is written; defs and locals multiply that.
# Later stages visit every node many times, so there is a limit here too, far above what
# anyone writes.

LARGEST = 5000
"""Distinct operations of one expression."""

DEEPEST = 500
"""Operations inside one another."""

LONGEST = 1000
"""Statements of one rule."""


def depth(expr: Expr, below: Mapping[str, int]) -> int:
    """The number of nested operations; a name counts as ``below`` states."""
    known: dict[Expr, int] = {}
    for node in nodes(expr):
        own = below.get(node.name, 1) if isinstance(node, Ref) else 1
        known[node] = max((own, *(1 + known[c] for c in children(node))))
    return known[expr]


def is_too_large(expr: Expr, below: Mapping[str, int]) -> bool:
    """True if an expression exceeds the limits of the later stages."""
    return depth(expr, below) > DEEPEST or sum(1 for _ in nodes(expr)) > LARGEST
