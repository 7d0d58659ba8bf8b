"""Statements over several lines where one line would be too long.

Newlines are free inside brackets only, so a long formula gets brackets around it. It is
broken before its weakest operators, what stands in brackets one level deeper. Like the
one-line text, the lines depend on the tree alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gradspec.syntax import nodes
from gradspec.syntax.quoting import string_literal
from gradspec.syntax.spelling import (
    binds,
    names_text,
    operand_text,
    parameter_text,
    print_expression,
    print_head,
    print_statement,
    results_text,
    target_text,
)

WIDTH = 88
INDENT = "    "


def statement_lines(statement: nodes.Statement, indent: str) -> list[str]:
    """The lines of a statement of a rule, the first without its indentation."""
    text = print_statement(statement)
    if len(indent) + len(text) <= WIDTH:
        return [text]
    match statement:
        case nodes.Assign(name, indices, value, exact):
            start = "exact " if exact else ""
            start += f"{target_text(name, indices)} = "
            return _formula(start, value, "", indent)
        case nodes.Surrogate(name, indices, value):
            start = f"surrogate {target_text(name, indices)} = "
            return _formula(start, value, "", indent)
        case nodes.Override(name, indices, value, reason):
            start = f"override {target_text(name, indices)} = "
            end = f" because {string_literal(reason)}"
            return _formula(start, value, end, indent)
        case _:
            return _filled(text, indent)


def head_lines(item: nodes.Item) -> list[str]:
    """The first line of an item, over several where it is too long."""
    text = print_head(item)
    if len(text) <= WIDTH:
        return [text]
    match item:
        case nodes.Import(path, names):
            start = f"from {string_literal(path)} import ("
            return [start, *_listed([name.id for name in names]), ")"]
        case nodes.FunctionDef(name, parameters, value):
            return _formula(f"def {name}({names_text(parameters)}) = ", value, "", "")
        case nodes.RuleDef(name, inputs, outputs):
            listed = _listed(map(parameter_text, inputs))
            return [f"rule {name}(", *listed, f") -> {results_text(outputs)}:"]


def _listed(texts: Iterable[str]) -> list[str]:
    return [f"{INDENT}{text}," for text in texts]


def _formula(start: str, value: nodes.Expr, end: str, indent: str) -> list[str]:
    """``start``, the lines of ``value`` in brackets, ``end``."""
    if isinstance(value, nodes.Call | nodes.Comprehension):
        first, *others = _lines(value, indent, len(start) + len(end))
        lines = [start + first, *others]
        return [*lines[:-1], lines[-1] + end]
    chain = _chain(value)
    factor = chain[-1][1]
    before = start + _joined([*chain[:-1], (chain[-1][0], None)])
    if _is_product(value) and not binds(factor, value) and len(indent + before) < WIDTH:
        inner = _lines(factor, indent + INDENT, 0)
        return [f"{before}(", *(INDENT + line for line in inner), f"){end}"]
    inner = _lines(value, indent + INDENT, 0)
    return [f"{start}(", *(INDENT + line for line in inner), f"){end}"]


def _is_product(expr: nodes.Expr) -> bool:
    return isinstance(expr, nodes.Binary) and expr.op == "*"


def _joined(chain: Sequence[tuple[str, nodes.Expr | None]]) -> str:
    """The text of the first operands of a product, and the operator that follows."""
    parts = [f"{op} {operand_text(e, '*')}" if e else op for op, e in chain]
    return " ".join(part.strip() for part in parts) + " "


def _chain(expr: nodes.Expr) -> list[tuple[str, nodes.Expr]]:
    """The operands of equally weak operators, each after its operator."""
    match expr:
        case nodes.Binary(op, left, right) if op != "**":
            kin = "+-" if op in "+-" else "*/%"
            is_kin = isinstance(left, nodes.Binary) and left.op in kin
            return [*(_chain(left) if is_kin else [("", left)]), (op, right)]
        case nodes.Logical(op, operands):
            first, *others = operands
            return [("", first), *((op, operand) for operand in others)]
        case _:
            return [("", expr)]


def _lines(expr: nodes.Expr, indent: str, used: int) -> list[str]:
    """The lines of an expression that stands inside brackets; ``used``: columns taken
    by what stands before it."""
    text = print_expression(expr)
    if len(indent) + used + len(text) <= WIDTH:
        return [text]
    match expr:
        case nodes.Binary(op) if op != "**":
            return _operands(expr, indent)
        case nodes.Logical():
            return _operands(expr, indent)
        case nodes.Conditional():
            return _cases(expr, indent)
        case nodes.Call(function, output):
            name = function if output is None else f"{function}.{output}"
            return [f"{name}(", *_arguments(expr, indent + INDENT), ")"]
        case nodes.Comprehension(op, body, indices, condition):
            inner = _lines(body, indent + INDENT, 0)
            inner.append(f"for {names_text(indices)}")
            if condition is not None:
                inner.append(f"if {operand_text(condition, 'if')}")
            return [f"{op}(", *(INDENT + line for line in inner), ")"]
        case nodes.Unary(op, operand) if op != "not":
            inner = _lines(operand, indent + INDENT, 0)
            return [f"{op}(", *(INDENT + line for line in inner), ")"]
        case _:
            return [text]


def _operands(expr: nodes.Expr, indent: str) -> list[str]:
    """A chain of operators, one operand on a line."""
    (_, first), *others = _chain(expr)
    found = _operand("", first, binds(first, expr), indent)
    for op, operand in others:
        is_bare = operand_text(operand, op) == print_expression(operand)
        found += _operand(f"{op} ", operand, is_bare, indent)
    return found


def _operand(lead: str, expr: nodes.Expr, is_bare: bool, indent: str) -> list[str]:
    """``expr`` after ``lead``; ``is_bare``: it needs no brackets on one line."""
    text = print_expression(expr)
    text = text if is_bare else f"({text})"
    if len(indent) + len(lead) + len(text) <= WIDTH:
        return [lead + text]
    if isinstance(expr, nodes.Call | nodes.Comprehension):
        first, *others = _lines(expr, indent, len(lead))
        return [lead + first, *others]
    inner = _lines(expr, indent + INDENT, 0)
    return [f"{lead}(", *(INDENT + line for line in inner), ")"]


def _cases(expr: nodes.Expr, indent: str) -> list[str]:
    """A conditional, one case on a line: ``a if p``, ``else b if q``, ``else c``."""
    found: list[str] = []
    lead = ""
    while isinstance(expr, nodes.Conditional):
        test = f"if {operand_text(expr.condition, 'if')}"
        text = f"{lead}{operand_text(expr.then, 'if')} {test}"
        if len(indent) + len(text) <= WIDTH:
            found.append(text)
        else:
            is_bare = not isinstance(expr.then, nodes.Conditional)
            found += [*_operand(lead, expr.then, is_bare, indent), test]
        expr, lead = expr.otherwise, "else "
    return found + _operand(lead, expr, True, indent)


def _arguments(call: nodes.Call, indent: str) -> list[str]:
    found: list[str] = []
    for arg in call.args:
        *others, last = _lines(arg, indent, 1)
        found += [*others, f"{last},"]
    for word in call.keywords:
        first, *others = _lines(word.value, indent, len(word.name) + 2)
        *others, last = f"{word.name}={first}", *others
        found += [*others, f"{last},"]
    return [INDENT + line for line in found]


def _filled(text: str, indent: str) -> list[str]:
    """A text of bindings, broken after commas inside brackets."""
    lines, depth, start, comma = [], 0, 0, 0
    room = WIDTH - len(indent)
    for at, char in enumerate(text):
        depth += (char in "([") - (char in ")]")
        if at - start >= room and comma > start:
            lines.append(text[start:comma])
            start, room = comma + 1, WIDTH - len(indent) - len(INDENT)
        if char == "," and depth:
            comma = at + 1
    lines.append(text[start:])
    return [lines[0], *(INDENT + line for line in lines[1:])]
