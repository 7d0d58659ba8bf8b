"""Equality saturation: all that the rewrite rules make of some expressions, at once.

An e-graph (the `egglog` package) holds classes of equal expressions; a rewrite adds a
form to a class and takes none away, so that terms can be moved about until a named
identity matches. What is known of values at the points (`a > 0`) is told as facts, on
which rows with a condition wait.

Growth is explosive, so rounds end when there are too many forms (NUMERICS: 600 to 2500
are enough); a round that goes far beyond is taken back. That is counted and not timed,
so every machine finds the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import chain, count
from typing import Any, TypeAlias

from gradspec.ir.expr import Apply, Const, Expr, Ref, Select
from gradspec.ir.tidy import tidy
from gradspec.ir.walk import children, nodes
from gradspec.primitives.formula import formula
from gradspec.stabilise.row import Row
from gradspec.stabilise.rules import ROWS
from gradspec.stabilise.rules_folding import FOLDING
from gradspec.stabilise.rules_graph import IDENTITIES, SHAPE

Fact: TypeAlias = tuple[str, Fraction]
"""A comparison of a class with a number: ``("gt", 0)``."""

Form: TypeAlias = tuple[str, tuple[int, ...]]
"""A node of the e-graph: an operator over classes (see :class:`Classes`)."""

_ROUNDS = 6
_ENOUGH = 600
_LONGEST = 2**200
"""Constants beyond this are no part of any form that a reader would want."""

_SELECT = "select"
_SHAPES = tuple(f"shape{n}" for n in range(len(SHAPE)))


@dataclass(frozen=True, slots=True)
class Classes:
    """What an e-graph holds: the forms of each class, by their numbers. A constant is
    ``("const", ())`` with its value in ``numbers``, a name ``("ref", ())`` in ``names``.
    """

    root: int
    forms: tuple[tuple[Form, ...], ...]
    numbers: Mapping[int, Fraction]
    names: Mapping[int, str]


Facts: TypeAlias = Callable[[Classes], Iterable[tuple[Expr, Fact]]]
"""What is known of the classes: expressions that stand for them, and facts."""


def saturated(starts: tuple[Expr, ...], facts: Facts) -> Classes:
    """The classes of ``starts`` (all equal) and their parts, grown by the rows."""
    graph = _emptied()
    _in_use.append(graph)
    _run(graph, "(push)")
    try:
        return _grown(graph, starts, facts)
    finally:
        _run(graph, "(pop)")
        _in_use.clear()


_in_use: list[Any] = []
"""The e-graph, from before it is filled until it is empty again."""


def _emptied() -> Any:
    """The e-graph with nothing but the rows. When time runs out the alarm may ring once
    more just as it is being emptied (`symbolic.limit`): what is left of another rule, and
    of what is true of its inputs, would then count for this one. So it is made anew."""
    if _in_use:
        _program.cache_clear()
        _parsed.cache_clear()
        _in_use.clear()
    return _program()


@lru_cache(maxsize=1)
def wanted() -> tuple[Fact, ...]:
    """The facts on which rows wait."""
    found = {f: None for row in _rows() for _, f in _conditions(row)}
    return tuple(found)


@lru_cache(maxsize=1)
def known_operators() -> frozenset[str]:
    """What an expression may be made of."""
    from gradspec.primitives.table import ROWS as primitives

    return frozenset(row.name for row in primitives)


def _grown(graph: Any, starts: tuple[Expr, ...], facts: Facts) -> Classes:
    text = _Text()
    roots = [text.of(start) for start in starts]
    _run(graph, *text.taken())
    _run(graph, *(f"(union {roots[0]} {root})" for root in roots[1:]))
    for turn in range(_ROUNDS):
        if turn in (0, 2):
            for expr, fact in facts(_read(graph, roots[0])):
                name = text.of(expr)
                _run(graph, *text.taken(), f"({_relation(fact)} {name})")
        if not _grows(graph):
            break
    _run(graph, f"(run fold 1)(run {_SHAPES[0]} 1)(run fold 1)")
    return _read(graph, roots[0])


def _grows(graph: Any) -> bool:
    """One round of all rows; False as soon as there are enough forms."""
    for ruleset in ("numbers", "better", *_SHAPES):
        _again(graph, "(run known 1)")  # says what is true of classes, and adds none
        for step in ("fold", "fold", ruleset, "fold"):
            sizes = _again(graph, f"(run {step} 1)(print-size)")
            if _size(sizes) > _ENOUGH:
                return False
    return True


def _run(graph: Any, *texts: str) -> None:
    """Programs one after the other: egglog keeps the text of a program with each of its
    commands, which for all rows in one is 1.3 GB.
    """
    commands = (one for text in texts for one in graph.parse_program(text))
    graph.run_program(*commands)


def _again(graph: Any, text: str) -> Any:
    """One of a few programs that are run often: the last of what it tells."""
    return graph.run_program(*_parsed(text))[-1]


@lru_cache(maxsize=32)
def _parsed(text: str) -> Any:
    return _program().parse_program(text)


def _size(told: Any) -> int:
    """How many forms there are."""
    return sum(n for name, n in told.sizes if name.startswith(("op_", _SELECT)))


# --- the program ---------------------------------------------------------------------


def _rows() -> tuple[Row, ...]:
    return (*ROWS, *IDENTITIES, *chain(*SHAPE))


@lru_cache(maxsize=1)
def _program() -> Any:
    """An empty e-graph with all rows."""
    from egglog.bindings import EGraph

    graph = EGraph()
    _run(graph, *_declarations())
    return graph


def _declarations() -> Iterable[str]:
    from gradspec.primitives.table import ROWS as primitives

    yield "(sort M)(constructor Num (BigRat) M)(constructor Var (String) M)"
    yield f"(constructor {_SELECT} (M M M) M)"
    for known in primitives:
        yield f"(constructor op_{known.name} ({' '.join(['M'] * known.arity)}) M)"
    for fact in wanted():
        yield f"(relation {_relation(fact)} (M))"
    for name in ("known", "fold", "numbers", "better", *_SHAPES):
        yield f"(ruleset {name})"
    yield FOLDING
    for known in primitives:
        if known.arity:
            yield from _constants(known.name, known.arity)
    yield from _inferences()
    for row in (*ROWS, *IDENTITIES):
        yield from _rewrite(row, _SHAPES[-1] if row.detour else "better")
    for ruleset, rows in zip(_SHAPES, SHAPE, strict=True):
        for row in rows:
            yield from _rewrite(row, ruleset)


def _constants(op: str, arity: int) -> Iterable[str]:
    """A constant is written in no other way: products of constants would be written as
    products of ever more."""
    form = f"(op_{op} {' '.join('abc'[:arity])})"
    yield f"(rule ((= (Num q) {form})) ((subsume {form})) :ruleset fold)"


def _rewrite(row: Row, ruleset: str) -> Iterable[str]:
    left, right = tidy(formula(row.left)), tidy(formula(row.right))
    conditions = [f"({_relation(fact)} {name})" for name, fact in _conditions(row)]
    when = f" :when ({' '.join(conditions)})" if conditions else ""
    target = _pattern(right)
    for form in dict.fromkeys((left, *_turned(left))):
        yield f"(rewrite {_pattern(form)} {target}{when} :ruleset {ruleset})"


def _turned(left: Expr) -> Iterable[Expr]:
    """The left side with the operands of its own sum or product the other way round:
    deeper ones are turned by the row that says so."""
    match left:
        case Apply(op="add" | "mul" as op, args=(a, b)):
            yield Apply(op, (b, a))
        case _:
            for node in nodes(left):
                if (
                    isinstance(node, Apply)
                    and node.op in ("add", "mul")
                    and node != left
                ):
                    turned = Apply(node.op, node.args[::-1])
                    yield _with(left, node, turned)


def _with(expr: Expr, old: Expr, new: Expr) -> Expr:
    from gradspec.ir.walk import transform

    return transform(expr, lambda node: new if node == old else node)


def _conditions(row: Row) -> list[tuple[str, Fact]]:
    """The variables of a row of which something must be known."""
    if not row.when:
        return []
    found, todo = [], [formula(row.when)]
    while todo:
        match todo.pop():
            case Apply(op="and", args=args):
                todo += args
            case Apply(op=op, args=(Ref(name=name), Const(value=value))):
                found.append((name, (op, value)))
            case _:
                raise ValueError(f"{row.name}: a condition compares with a number")
    return found


def _relation(fact: Fact) -> str:
    op, value = fact
    return f"{op}_{value.numerator}_{value.denominator}".replace("-", "m")


def _inferences() -> Iterable[str]:
    """What follows of a value from those of its parts."""
    positive, some, nonzero = "gt_0_1", "ge_0_1", "ne_0_1"
    for op in ("exp", "cosh", "sigmoid", "softplus", "erfc", "ndtr"):
        yield f"(rule ((= e (op_{op} a))) (({positive} e)) :ruleset known)"
    for op in ("square", "abs", "sqrt", "hypot"):
        args = "a b" if op == "hypot" else "a"
        yield f"(rule ((= e (op_{op} {args}))) (({some} e)) :ruleset known)"
    for op in ("square", "abs"):
        yield (
            f"(rule ((= e (op_{op} a)) ({nonzero} a)) (({positive} e)) :ruleset known)"
        )
    for op in ("sqrt", "rsqrt", "cbrt"):
        yield (
            f"(rule ((= e (op_{op} a)) ({positive} a)) (({positive} e)) :ruleset known)"
        )
    for op in ("mul", "div", "add", "pow"):
        yield (
            f"(rule ((= e (op_{op} a b)) ({positive} a) ({positive} b))"
            f" (({positive} e)) :ruleset known)"
        )
    for op in ("mul", "div"):
        yield (
            f"(rule ((= e (op_{op} a b)) ({nonzero} a) ({nonzero} b))"
            f" (({nonzero} e)) :ruleset known)"
        )
    yield (
        f"(rule ((= e (op_add a b)) ({positive} a) ({some} b))"
        f" (({positive} e)) :ruleset known)"
    )
    yield f"(rule (({positive} a)) (({some} a) ({nonzero} a)) :ruleset known)"


# --- expressions as text -------------------------------------------------------------


def _pattern(expr: Expr) -> str:
    done: dict[Expr, str] = {}
    for node in nodes(expr):
        done[node] = _node(node, tuple(done[child] for child in children(node)))
    return done[expr]


def _node(node: Expr, parts: tuple[str, ...]) -> str:
    match node:
        case Const(value=value):
            return _number(value)
        case Ref(name=name):
            return name
        case Apply(op=op):
            return f"(op_{' '.join((op, *parts))})"
        case Select():
            return f"({_SELECT} {' '.join(parts)})"
        case _:
            raise NotImplementedError("indices and reductions")


def _number(value: Fraction) -> str:
    parts = (f'(from-string "{n}")' for n in (value.numerator, value.denominator))
    return f"(Num (bigrat {' '.join(parts)}))"


class _Text:
    """Bindings for expressions: each node once. Names are not used again, since a
    program remembers them when its e-graph is taken back."""

    _count = count()

    def __init__(self) -> None:
        self._names: dict[Expr, str] = {}
        self._lines: list[str] = []

    def of(self, expr: Expr) -> str:
        for node in nodes(expr):
            if node not in self._names:
                name = f"$e{next(self._count)}"
                self._lines.append(f"(let {name} {self._text(node)})")
                self._names[node] = name
        return self._names[expr]

    def taken(self) -> tuple[str, ...]:
        """The bindings since the last time."""
        lines = tuple(self._lines)
        self._lines.clear()
        return lines

    def _text(self, node: Expr) -> str:
        if isinstance(node, Ref):
            return f'(Var "{node.name}")'
        return _node(node, tuple(self._names[child] for child in children(node)))


# --- reading -------------------------------------------------------------------------


def _read(graph: Any, root: str) -> Classes:
    """The rows of the e-graph, classes numbered."""
    functions = graph.freeze().functions
    number: dict[Any, int] = {}

    def place(value: Any) -> int:
        return number.setdefault(value, len(number))

    forms: dict[int, list[Form]] = {}
    numbers: dict[int, Fraction] = {}
    names: dict[int, str] = {}
    for name in sorted(functions):
        function = functions[name]
        if name.startswith("op_") or name == _SELECT:
            for row in function.rows:
                if row.subsumed:
                    continue
                parts = tuple(map(place, row.inputs))
                op = name.removeprefix("op_")
                forms.setdefault(place(row.output), []).append((op, parts))
        elif name == "Num":
            for row in function.rows:
                rational = graph.value_to_bigrat(row.inputs[0])
                if max(abs(rational.numerator), rational.denominator) < _LONGEST:
                    numbers[place(row.output)] = Fraction(rational)
        elif name == "Var":
            for row in function.rows:
                names[place(row.output)] = graph.value_to_string(row.inputs[0])
    start = place(functions[root].rows[0].output)
    every = tuple(tuple(sorted(forms.get(n, ()))) for n in range(len(number)))
    return Classes(start, every, numbers, names)
