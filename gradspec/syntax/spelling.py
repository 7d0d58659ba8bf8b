"""The canonical text of expressions and statements: ``parse`` of it is the same
tree."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from gradspec.syntax import nodes
from gradspec.syntax.quoting import string_literal

# How tightly an expression binds, as in the grammar: what stands at a place that asks
# for more is put in brackets.
_CHOICE, _OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(10)
_BINARY = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "%": _PRODUCT}
_LOGICAL = {"or": _OR, "and": _AND}


def print_expression(expr: nodes.Expr) -> str:
    """The text of an expression, on one line, with no more brackets than needed."""
    return _at(expr, _CHOICE)


def _at(expr: nodes.Expr, tightness: int) -> str:
    """The text of ``expr`` where nothing that binds less than ``tightness`` may
    stand."""
    text, own = _spelled(expr)
    return text if own >= tightness else f"({text})"


_PLACES = _BINARY | _LOGICAL | {"if": _OR, "else": _OR}


def operand_text(expr: nodes.Expr, word: str) -> str:
    """The text of ``expr`` as the operand after ``word``: an operator, ``if``,
    ``else``."""
    after = word in _BINARY or word in _LOGICAL
    return _at(expr, _PLACES[word] + after)


def binds(expr: nodes.Expr, outer: nodes.Expr) -> bool:
    """True if ``expr`` needs no brackets as an operand of ``outer``."""
    own = _spelled(outer)[1]
    return _spelled(expr)[1] >= (_OR if own == _CHOICE else own)


def _spelled(expr: nodes.Expr) -> tuple[str, int]:
    match expr:
        case nodes.Number(value, text):
            return text or number_text(value), _ATOM
        case nodes.Name(name):
            return name, _ATOM
        case nodes.Indexed(name, indices):
            return f"{name}[{_list(indices)}]", _ATOM
        case nodes.Unary("not", operand):
            return f"not {_at(operand, _NOT)}", _NOT
        case nodes.Unary(op, operand):
            return op + _at(operand, _SIGN), _SIGN
        case nodes.Binary("**", left, right):
            return f"{_at(left, _ATOM)}**{_at(right, _SIGN)}", _POWER
        case nodes.Binary(op, left, right):
            own = _BINARY[op]
            return f"{_at(left, own)} {op} {_at(right, own + 1)}", own
        case nodes.Compare(operands, ops):
            first, *others = (_at(operand, _SUM) for operand in operands)
            pairs = zip(ops, others, strict=True)
            return " ".join([first, *(f"{op} {text}" for op, text in pairs)]), _COMPARE
        case nodes.Logical(op, operands):
            own = _LOGICAL[op]
            return f" {op} ".join(_at(part, own + 1) for part in operands), own
        case nodes.Conditional(then, condition, otherwise):
            tested = f"{_at(then, _OR)} if {_at(condition, _OR)}"
            return f"{tested} else {_at(otherwise, _OR)}", _CHOICE
        case nodes.Call():
            return _call(expr), _ATOM
        case nodes.Comprehension(op, body, indices, condition):
            text = f"{_at(body, _CHOICE)} for {names_text(indices)}"
            if condition is not None:
                text += f" if {_at(condition, _OR)}"
            return f"{op}({text})", _ATOM


def _call(call: nodes.Call) -> str:
    name = call.function if call.output is None else f"{call.function}.{call.output}"
    named = (f"{word.name}={print_expression(word.value)}" for word in call.keywords)
    return f"{name}({', '.join([*map(print_expression, call.args), *named])})"


def _list(exprs: Iterable[nodes.Expr]) -> str:
    return ", ".join(map(print_expression, exprs))


def names_text(names: Iterable[nodes.Name]) -> str:
    """``i, j``"""
    return ", ".join(name.id for name in names)


def number_text(value: Fraction) -> str:
    """The literal of a value that has one: no sign, finitely many decimals."""
    digits, scale = value.numerator, 0
    while digits % value.denominator and scale < 1100:
        digits, scale = digits * 10, scale + 1
    if value < 0 or digits % value.denominator:
        raise ValueError(f"{value} has no literal")
    text = str(digits // value.denominator).zfill(scale + 1)
    return f"{text[:-scale]}.{text[-scale:]}" if scale else text


# --- statements -----------------------------------------------------------------------


def print_statement(statement: nodes.Statement) -> str:
    """The text of a statement, on one line."""
    match statement:
        case nodes.Assign(name, indices, value, exact):
            assigned = f"{target_text(name, indices)} = {print_expression(value)}"
            return f"exact {assigned}" if exact else assigned
        case nodes.Assume(conditions):
            return f"assume {_list(conditions)}"
        case nodes.Surrogate(name, indices, value):
            return f"surrogate {target_text(name, indices)} = {print_expression(value)}"
        case nodes.Override(name, indices, value, reason):
            assigned = f"{target_text(name, indices)} = {print_expression(value)}"
            return f"override {assigned} because {string_literal(reason)}"
        case nodes.Keep(word, names):
            return f"{word} {names_text(names)}"
        case nodes.Example(given, expected):
            return f"example {_bindings(given)}: {_bindings(expected)}"


def target_text(name: str, indices: tuple[nodes.Expr, ...] | None) -> str:
    return name if indices is None else f"{name}[{_list(indices)}]"


def _bindings(bindings: Iterable[nodes.Binding]) -> str:
    return ", ".join(f"{each.name} = {_literal(each.value)}" for each in bindings)


def _literal(value: nodes.Literal) -> str:
    match value:
        case nodes.Scalar(text):
            return text
        case nodes.Vector(items):
            return f"[{', '.join(map(_literal, items))}]"


# --- declarations ---------------------------------------------------------------------


def print_head(item: nodes.Item) -> str:
    """The first line of an item; all of it, but for a rule."""
    match item:
        case nodes.Import(path, names):
            return f"from {string_literal(path)} import {names_text(names)}"
        case nodes.FunctionDef(name, parameters, value):
            return f"def {name}({names_text(parameters)}) = {print_expression(value)}"
        case nodes.RuleDef(name, inputs, outputs):
            listed = ", ".join(map(parameter_text, inputs))
            return f"rule {name}({listed}) -> {results_text(outputs)}:"


def results_text(outputs: tuple[nodes.Parameter, ...]) -> str:
    text = ", ".join(map(parameter_text, outputs))
    return text if len(outputs) == 1 and not outputs[0].kind else f"({text})"


def parameter_text(parameter: nodes.Parameter) -> str:
    text = parameter.name
    if parameter.axes is not None:
        batch = ["..."] if parameter.axes.batch else []
        text += f"[{', '.join([*batch, *map(str, parameter.axes.axes)])}]"
    if parameter.kind:
        text += f": {parameter.kind}"
    if parameter.default is not None:
        text += f" = {print_expression(parameter.default)}"
    return text
