"""An independent reader of `.grad` files, for elementwise rules.

The expressions of the language are also expressions of Python, so Python's own parser
reads them; statements are lines. What is read here is run on mpmath numbers.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from mpmath import mp, mpf

from benchmarks.rule_numbers import (
    Dual,
    add,
    apply,
    divide,
    linear,
    multiply,
    power,
    subtract,
    value,
)

Number = Dual | mpf
Values = dict[str, Number]

OPERATORS = {
    ast.Add: add,
    ast.Sub: subtract,
    ast.Mult: multiply,
    ast.Div: divide,
    ast.Pow: power,
}
COMPARISONS = {
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
}


# --- what a file says ----------------------------------------------------------------


@dataclass(frozen=True)
class Formula:
    text: str
    tree: ast.expr

    @property
    def names(self) -> set[str]:
        return {node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name)}


def formula(text: str) -> Formula:
    text = f"({text})"
    return Formula(text, ast.parse(text, mode="eval").body)


@dataclass
class Function:
    file: File
    parameters: list[str]
    result: Formula

    def call(self, args: list[Number], keywords: Values) -> Number:
        return evaluate(
            self.result, self.file, None, dict(zip(self.parameters, args, strict=True))
        )


@dataclass
class Rule:
    file: File
    name: str
    kinds: dict[str, str] = field(default_factory=dict)
    defaults: dict[str, Formula] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    doc: str = ""
    assumes: list[Formula] = field(default_factory=list)
    assigned: dict[str, Formula] = field(default_factory=dict)
    surrogates: dict[str, Formula] = field(default_factory=dict)
    overrides: set[str] = field(default_factory=set)
    examples: list[str] = field(default_factory=list)

    @property
    def differentiable(self) -> list[str]:
        return [name for name, kind in self.kinds.items() if not kind]

    @property
    def upstream(self) -> list[str]:
        return [name for name, kind in self.outputs.items() if not kind]

    @property
    def declared(self) -> list[str]:
        """The inputs whose cotangent is declared, and to be true."""
        return [
            name
            for name in self.differentiable
            if f"d{name}" in self.assigned and f"d{name}" not in self.overrides
        ]

    @property
    def backward(self) -> set[str]:
        """The assigned names that depend on an upstream gradient, or are cotangents."""
        names = {f"d{name}" for name in self.kinds} & set(self.assigned)
        cotangents = {f"d{name}" for name in self.outputs}
        for name, right in self.assigned.items():
            if right.names & (names | cotangents):
                names.add(name)
        return names

    def complete(self, given: Values) -> Values:
        """The given values, and the defaults of the statics that are not given."""
        defaults = {
            name: evaluate(right, self.file, self, {})
            for name, right in self.defaults.items()
        }
        return {name: {**defaults, **given}[name] for name in self.kinds}

    def admits(self, point: Values) -> bool:
        return all(evaluate(test, self.file, self, point) for test in self.assumes)

    def forward(self, point: Values) -> Values:
        known = dict(point)
        for name, right in self.assigned.items():
            if name not in self.backward:
                known[name] = evaluate(right, self.file, self, known)
        return known

    def differentiated(self, point: Values) -> Values:
        """The outputs, or their surrogates: what the backward pass differentiates."""
        known = self.forward(point)
        return {
            name: (
                evaluate(self.surrogates[name], self.file, self, known)
                if name in self.surrogates
                else known[name]
            )
            for name in self.upstream
        }

    def true_gradient(self, point: Values, upstream: Values) -> Values:
        """The vector-Jacobian product by the chain rule, whatever is declared here."""
        seeds = {
            name: Dual(point[name], {name: mpf(1)}) for name in self.differentiable
        }
        outputs = self.differentiated({**point, **seeds})
        return {
            name: sum(
                (
                    upstream[output] * result.slopes.get(name, mpf(0))
                    for output, result in outputs.items()
                    if isinstance(result, Dual)
                ),
                mpf(0),
            )
            for name in self.differentiable
        }

    def gradient(self, point: Values, upstream: Values) -> Values:
        """The vector-Jacobian product as the rule states it."""
        known = self.forward(point)
        known |= {f"d{name}": value for name, value in upstream.items()}
        for name in self.assigned:
            if name in self.backward:
                known[name] = evaluate(self.assigned[name], self.file, self, known)
        stated = {f"d{name}" for name in self.differentiable}
        true = {} if stated <= set(known) else self.true_gradient(point, upstream)
        return {
            name: value(known[f"d{name}"]) if f"d{name}" in known else true[name]
            for name in self.differentiable
        }

    def call(self, args: list[Number], keywords: Values) -> Number:
        tensors = [name for name, kind in self.kinds.items() if "static" not in kind]
        given = {**dict(zip(tensors, args, strict=True)), **keywords}
        inputs = self.complete(given)
        point = {name: value(inner) for name, inner in inputs.items()}
        (output,) = self.outputs
        slopes = self.gradient(point, {output: mpf(1)})
        result = value(self.forward(point)[output])
        return linear(result, *((inputs[name], slopes[name]) for name in slopes))


@dataclass
class File:
    path: Path
    names: dict[str, Rule | Function] = field(default_factory=dict)
    rules: list[Rule] = field(default_factory=list)


# --- evaluating ----------------------------------------------------------------------


def evaluate(right: Formula, file: File, rule: Rule | None, known: Values) -> Number:
    return _evaluate(right.tree, right.text, file, rule, known)


def _evaluate(
    node: ast.expr, text: str, file: File, rule: Rule | None, known: Values
) -> Number:
    def at(inner: ast.expr) -> Number:
        return _evaluate(inner, text, file, rule, known)

    match node:
        case ast.Constant():
            return mpf(ast.get_source_segment(text, node))
        case ast.Name(id="pi"):
            return +mp.pi
        case ast.Name(id=name):
            return known[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return subtract(mpf(0), at(operand))
        case ast.BinOp(left=left, op=op, right=right):
            return OPERATORS[type(op)](at(left), at(right))
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return at(body) if value(at(test)) else at(orelse)
        case ast.BoolOp(op=op, values=values):
            return (all if isinstance(op, ast.And) else any)(at(v) for v in values)
        case ast.Compare(left=left, ops=ops, comparators=others):
            terms = [value(at(term)) for term in (left, *others)]
            pairs = zip(ops, terms, terms[1:], strict=False)
            return all(COMPARISONS[type(op)](a, b) for op, a, b in pairs)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
            callee = file.names.get(name)
            numbers = [at(arg) for arg in args]
            if callee is None or callee is rule:
                return apply(name, tuple(numbers))
            return callee.call(numbers, {k.arg: at(k.value) for k in keywords})
    raise AssertionError(f"not read here: {ast.dump(node)}")


# --- reading -------------------------------------------------------------------------

TOKEN = re.compile(r'"""(.*?)"""|"[^"]*"|#[^\n]*|[()\[\]]|\n|[^"#()\[\]\n]+', re.DOTALL)


def logical_lines(text: str) -> list[str]:
    """The lines, comments dropped, with what stands in brackets or quotes joined."""
    lines, line, depth = [], "", 0
    for match in TOKEN.finditer(text):
        token = match.group()
        depth += (token in "([") - (token in ")]")
        if token == "\n" and not depth:
            lines.append(line)
            line = ""
        elif not token.startswith("#"):
            line += " " if token == "\n" else token
    return [line for line in [*lines, line] if line.strip()]


def split(text: str) -> list[str]:
    """The parts between the commas that stand in no bracket."""
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return [part.strip() for part in parts if part.strip()]


def _parameters(text: str) -> list[tuple[str, str, str | None]]:
    pattern = r"(\w+)\s*(?:\[\])?\s*(?::\s*([a-z ]+?))?\s*(?:=\s*(.+))?"
    matches = [re.fullmatch(pattern, part) for part in split(text)]
    return [(m[1], m[2] or "", m[3]) for m in matches if m]


def _rule(file: File, header: str) -> Rule:
    name, inputs, outputs = re.fullmatch(
        r"rule (\w+)\s*\((.*)\) -> (.+):", header
    ).groups()
    rule = Rule(file, name)
    for parameter, kind, default in _parameters(inputs):
        rule.kinds[parameter] = kind.replace("param", "")
        if default and kind != "param":
            rule.defaults[parameter] = formula(default)
    for output, kind, _ in _parameters(outputs.strip("()")):
        rule.outputs[output] = kind
    return rule


def _statement(rule: Rule, line: str) -> None:
    word, _, rest = line.partition(" ")
    if line.startswith('"""'):
        rule.doc = line.strip('"')
    elif word == "assume":
        rule.assumes += [formula(part) for part in split(rest)]
    elif word == "example":
        rule.examples.append(rest)
    elif word == "surrogate":
        name, right = rest.split(" = ", 1)
        rule.surrogates[name] = formula(right)
    elif word == "override":
        name, right = re.fullmatch(r'(\w+) = (.+) because ".+"', rest).groups()
        rule.overrides.add(name)
        rule.assigned[name] = formula(right)
    elif word not in ("save", "recompute"):
        name, right = line.split(" = ", 1)
        rule.assigned[name] = formula(right)


@cache
def read(path: Path) -> File:
    file = File(path)
    for line in logical_lines(path.read_text(encoding="utf-8")):
        if line.startswith("from "):
            source, names = re.fullmatch(r'from "(.+)" import (.+)', line).groups()
            other = read((path.parent / source).resolve())
            file.names |= {name: other.names[name] for name in split(names)}
        elif line.startswith("def "):
            name, given, right = re.fullmatch(
                r"def (\w+)\((.+?)\) = (.+)", line
            ).groups()
            file.names[name] = Function(file, split(given), formula(right))
        elif line.startswith("rule "):
            rule = _rule(file, line)
            file.names[rule.name] = rule
            file.rules.append(rule)
        else:
            _statement(file.rules[-1], line.strip())
    return file
