"""An independent reader of `.grad` files, for rules with axes.

Like `rule_reading`, it lets Python's own parser read expressions (`for j` becomes
`for j in _`), and runs them element by element on mpmath numbers with derivatives.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, reduce
from itertools import product
from pathlib import Path

from mpmath import mp, mpf

from tests.rules_library.rule_numbers import Dual, add, apply, divide, multiply, value
from tests.rules_library.rule_reading import (
    COMPARISONS,
    OPERATORS,
    logical_lines,
    split,
)

Number = Dual | mpf
Place = tuple[int, ...]
Array = dict[Place, Number]
Arrays = dict[str, Array]
Axes = tuple[str, ...]
Sizes = dict[str, int]

FOR = re.compile(r"\bfor (\w+(?:, \w+)*)(?=\s*(?:\)| if\b))")


@dataclass(frozen=True)
class Formula:
    text: str
    tree: ast.expr


def formula(text: str) -> Formula:
    text = "(" + FOR.sub(r"for \1 in _", text) + ")"
    return Formula(text, ast.parse(text, mode="eval").body)


@dataclass(frozen=True)
class Statement:
    name: str
    indices: Axes
    right: Formula

    @property
    def names(self) -> set[str]:
        tree = self.right.tree
        return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


@dataclass
class TensorRule:
    functions: dict[str, tuple[list[str], Formula]]
    name: str
    kinds: dict[str, str] = field(default_factory=dict)
    defaults: dict[str, Formula] = field(default_factory=dict)
    outputs: list[str] = field(default_factory=list)
    axes: dict[str, Axes] = field(default_factory=dict)
    doc: str = ""
    assumes: list[Formula] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    examples: list[str] = field(default_factory=list)

    @property
    def differentiable(self) -> list[str]:
        return [name for name, kind in self.kinds.items() if not kind]

    @property
    def declared(self) -> list[str]:
        written = {statement.name for statement in self.statements}
        return [name for name in self.differentiable if f"d{name}" in written]

    def _is_backward(self, statement: Statement, backward: set[str]) -> bool:
        cotangents = {f"d{name}" for name in (*self.outputs, *self.kinds)}
        return statement.name in cotangents or bool(
            statement.names & (cotangents | backward)
        )

    def passes(self) -> tuple[list[Statement], list[Statement]]:
        forward, backward = [], []
        for statement in self.statements:
            names = {later.name for later in backward}
            late = self._is_backward(statement, names)
            (backward if late else forward).append(statement)
        return forward, backward

    # --- running ---------------------------------------------------------------------

    def complete(self, given: Arrays) -> Arrays:
        reading = Reading(self, {}, {})
        missing = {n: r for n, r in self.defaults.items() if n not in given}
        return given | {n: {(): reading.at(r.tree, r.text)} for n, r in missing.items()}

    def sizes(self, inputs: Arrays) -> Sizes:
        found: Sizes = {}
        for name in self.kinds:
            for position, axis in enumerate(self.axes[name]):
                extent = 1 + max(place[position] for place in inputs[name])
                if axis.isdigit():
                    assert extent == int(axis)
                else:
                    assert found.setdefault(axis, extent) == extent
        statics = {n for n, kind in self.kinds.items() if kind == "static int"}
        return found | {n: int(value(inputs[n][()])) for n in statics}

    def forward(self, inputs: Arrays) -> Reading:
        reading = Reading(self, dict(inputs), self.sizes(inputs))
        for statement in self.passes()[0]:
            reading.run(statement)
        return reading

    def admits(self, inputs: Arrays) -> bool:
        reading = Reading(self, dict(inputs), self.sizes(inputs))
        return all(self._holds(reading, one) for one in self.assumes)

    def _holds(self, reading: Reading, condition: Formula) -> bool:
        bound = {
            name.id
            for node in ast.walk(condition.tree)
            if isinstance(node, ast.GeneratorExp)
            for name in ast.walk(node.generators[0].target)
            if isinstance(name, ast.Name)
        }
        known = bound | set(reading.known) | set(reading.sizes)
        inside = [
            part.id
            for node in ast.walk(condition.tree)
            if isinstance(node, ast.Subscript)
            for part in ast.walk(node.slice)
            if isinstance(part, ast.Name) and part.id not in known
        ]
        free = tuple(dict.fromkeys(inside))
        axes = [reading.extent(reading.axis(i, [condition.tree])) for i in free]
        return all(
            reading.at(
                condition.tree, condition.text, dict(zip(free, place, strict=True))
            )
            for place in product(*map(range, axes))
        )

    def true_gradient(self, inputs: Arrays, upstream: Arrays) -> Arrays:
        """The vector-Jacobian product by the chain rule, whatever is declared here."""
        seeded = inputs | {
            name: {p: Dual(value(v), {(name, p): mpf(1)}) for p, v in array.items()}
            for name, array in inputs.items()
            if name in self.differentiable
        }
        known = self.forward(seeded).known
        found = {n: dict.fromkeys(inputs[n], mpf(0)) for n in self.differentiable}
        for output in self.outputs:
            for place, number in known[output].items():
                for (name, where), slope in getattr(number, "slopes", {}).items():
                    found[name][where] += upstream[output][place] * slope
        return found

    def gradient(self, inputs: Arrays, upstream: Arrays) -> Arrays:
        """The declared cotangents."""
        reading = self.forward(inputs)
        for name, array in upstream.items():
            reading.known[f"d{name}"] = array
            reading.axes[f"d{name}"] = self.axes[name]
        for statement in self.passes()[1]:
            reading.run(statement)
        return {
            n: {p: value(v) for p, v in reading.known[f"d{n}"].items()}
            for n in self.declared
        }


class Reading:
    """Values by name and place, and how to work out more of them."""

    def __init__(self, rule: TensorRule, known: Arrays, sizes: Sizes) -> None:
        self.rule, self.known, self.sizes = rule, known, sizes
        self.axes = dict(rule.axes)
        for name in rule.kinds:
            self.axes[f"d{name}"] = rule.axes[name]

    def extent(self, axis: str) -> int:
        return int(axis) if axis.isdigit() else self.sizes[axis]

    def run(self, statement: Statement) -> None:
        right = statement.right
        if statement.name not in self.axes:
            found = (self.axis(i, [right.tree]) for i in statement.indices)
            self.axes[statement.name] = tuple(found)
        axes = self.axes[statement.name]
        self.known[statement.name] = {
            place: self.at(
                right.tree,
                right.text,
                dict(zip(statement.indices, place, strict=True)),
            )
            for place in product(*(range(self.extent(axis)) for axis in axes))
        }

    def axis(self, index: str, trees: list[ast.expr]) -> str:
        """That on which the index stands; where it stands alone, before all others."""
        beside = ""
        nodes = (node for tree in trees for node in ast.walk(tree))
        for node in nodes:
            if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name):
                for part, axis in zip(
                    _parts(node.slice), self.axes[node.value.id], strict=True
                ):
                    if isinstance(part, ast.Name) and part.id == index:
                        return axis
                    if index in {n.id for n in ast.walk(part) if hasattr(n, "id")}:
                        beside = axis
        assert beside, f"{index} stands on no axis"
        return beside

    def at(
        self, node: ast.expr, text: str, env: dict[str, int] | None = None
    ) -> Number:
        env = env or {}

        def inner(part: ast.expr) -> Number:
            return self.at(part, text, env)

        match node:
            case ast.Constant():
                return mpf(ast.get_source_segment(text, node))
            case ast.Name(id=name):
                return self._name(name, env)
            case ast.Subscript(value=ast.Name(id=name), slice=where):
                place = tuple(int(value(inner(part))) for part in _parts(where))
                return self.known[name][place]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return multiply(mpf(-1), inner(operand))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not inner(operand)
            case ast.BinOp(left=left, op=op, right=right):
                return OPERATORS[type(op)](inner(left), inner(right))
            case ast.IfExp(test=test, body=body, orelse=other):
                return inner(body) if value(inner(test)) else inner(other)
            case ast.BoolOp(op=op, values=values):
                return (all if isinstance(op, ast.And) else any)(map(inner, values))
            case ast.Compare(left=left, ops=ops, comparators=others):
                terms = [value(inner(term)) for term in (left, *others)]
                pairs = zip(ops, terms, terms[1:], strict=False)
                return all(COMPARISONS[type(op)](a, b) for op, a, b in pairs)
            case ast.Call(func=ast.Name(id=name), args=[ast.GeneratorExp() as each]):
                return _reduced(name, list(self._terms(each, text, env)))
            case ast.Call(func=ast.Name(id=name), args=args):
                return self._call(name, [inner(arg) for arg in args])
        raise AssertionError(f"not read here: {ast.dump(node)}")

    def _name(self, name: str, env: dict[str, int]) -> Number:
        if name == "pi":
            return +mp.pi
        if name in env:
            return mpf(env[name])
        return self.known[name][()] if name in self.known else mpf(self.sizes[name])

    def _call(self, name: str, args: list[Number]) -> Number:
        if name not in self.rule.functions:
            return apply(name, tuple(args))
        parameters, right = self.rule.functions[name]
        known = {p: {(): a} for p, a in zip(parameters, args, strict=True)}
        return Reading(self.rule, known, {}).at(right.tree, right.text)

    def _terms(
        self, each: ast.GeneratorExp, text: str, env: dict[str, int]
    ) -> Iterator[Number]:
        (loop,) = each.generators
        indices = [part.id for part in _parts(loop.target)]  # type: ignore[attr-defined]
        trees = [each.elt, *loop.ifs]
        extents = [self.extent(self.axis(index, trees)) for index in indices]
        for place in product(*map(range, extents)):
            here = env | dict(zip(indices, place, strict=True))
            if all(self.at(test, text, here) for test in loop.ifs):
                yield self.at(each.elt, text, here)


def _parts(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def _reduced(name: str, terms: list[Number]) -> Number:
    match name:
        case "sum":
            return reduce(add, terms, mpf(0))
        case "mean":
            return divide(reduce(add, terms), mpf(len(terms)))
        case "prod":
            return reduce(multiply, terms, mpf(1))
        case "logsumexp":
            total = reduce(add, [apply("exp", (term,)) for term in terms])
            return apply("log", (total,))
        case _:
            return apply(name, tuple(terms))


# --- reading -------------------------------------------------------------------------

PARAMETER = re.compile(r"(\w+)(\[[^\]]*\])?\s*(?::\s*([a-z ]+?))?\s*(?:=\s*(.+))?")


def _parameters(text: str) -> Iterator[tuple[str, Axes, str, str | None]]:
    for part in split(text):
        match = PARAMETER.fullmatch(part)
        assert match, part
        axes = [a.strip() for a in (match[2] or "[]")[1:-1].split(",")]
        yield (
            match[1],
            tuple(a for a in axes if a not in ("", "...")),
            match[3] or "",
            match[4],
        )


def _header(functions: dict[str, tuple[list[str], Formula]], line: str) -> TensorRule:
    name, inputs, outputs = re.fullmatch(
        r"rule (\w+)\s*\((.*)\) -> (.+):", line
    ).groups()  # type: ignore[union-attr]
    rule = TensorRule(functions, name)
    for parameter, axes, kind, default in _parameters(inputs):
        rule.kinds[parameter] = kind.replace("param", "")
        rule.axes[parameter] = axes
        if default and kind != "param":
            rule.defaults[parameter] = formula(default)
    inside = outputs[1:-1] if outputs.startswith("(") else outputs
    for output, axes, _, _ in _parameters(inside):
        rule.outputs.append(output)
        rule.axes[output] = axes
    return rule


def _statement(rule: TensorRule, line: str) -> None:
    word, _, rest = line.partition(" ")
    if line.startswith('"""'):
        rule.doc = line.strip('"')
    elif word == "assume":
        rule.assumes += [formula(part) for part in split(rest)]
    elif word == "example":
        rule.examples.append(rest)
    elif word not in ("save", "recompute"):
        left, right = line.split(" = ", 1)
        name, _, indices = left.partition("[")
        names = tuple(i.strip() for i in indices.rstrip("]").split(",") if i.strip())
        rule.statements.append(Statement(name, names, formula(right)))


@cache
def read(path: Path) -> tuple[TensorRule, ...]:
    rules: list[TensorRule] = []
    functions: dict[str, tuple[list[str], Formula]] = {}
    for line in logical_lines(path.read_text(encoding="utf-8")):
        if line.startswith("def "):
            name, given, right = re.fullmatch(
                r"def (\w+)\((.+?)\) = (.+)", line
            ).groups()  # type: ignore[union-attr]
            functions[name] = split(given), formula(right)
        elif line.startswith("rule "):
            rules.append(_header(functions, line))
        else:
            _statement(rules[-1], line.strip())
    return tuple(rules)
