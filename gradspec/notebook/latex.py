"""Expressions as LaTeX, as the author wrote them: nothing is reordered or simplified.

The text holds only names, numbers and our own commands, so it is safe to show.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction

from gradspec.ir.walk import deep
from gradspec.primitives.lookup import is_function, primitive
from gradspec.source import Span
from gradspec.syntax import nodes

# How tightly a text binds. A sum or product over an index takes all that follows it, so
# it stands between sums and products, and so does a product that ends in one.
_CHOICE, _OR, _AND, _NOT, _COMPARE, _SUM, _OPEN, _PRODUCT, _SIGN, _POWER, _ATOM = range(
    11
)

_GREEK = re.compile(
    "alpha|beta|gamma|delta|epsilon|zeta|eta|theta|iota|kappa|lambda|mu|nu|xi|pi|rho|sigma"
    "|tau|upsilon|phi|chi|psi|omega"
)
_RELATIONS = {"<=": r"\le", ">=": r"\ge", "==": "=", "!=": r"\ne"}
_COMMAND = re.compile(r"\\[a-zA-Z]+")
_NAMED = re.compile("a?(?:sin|cos|tan)|(?:sin|cos|tan)h|log|max|min")
_AROUND = {
    "abs": (r"\left|", r"\right|"),
    "floor": (r"\left\lfloor ", r"\right\rfloor "),
    "ceil": (r"\left\lceil ", r"\right\rceil "),
    "sqrt": (r"\sqrt{", "}"),
    "cbrt": (r"\sqrt[3]{", "}"),
}
_OVER_INDICES = {"sum": r"\sum", "prod": r"\prod", "max": r"\max", "min": r"\min"}

_TWO = nodes.Number(Fraction(2), "2", span=Span(0, 0))

_Text = tuple[str, int]


def expression(expr: nodes.Expr) -> str:
    """The LaTeX of an expression."""
    with deep():
        return _spelling(expr)[0]


def assignment(
    target: str, indices: tuple[nodes.Expr, ...] | None, value: nodes.Expr
) -> str:
    """``y_{i} = …``"""
    with deep():
        return f"{_with_indices(name(target), indices or ())} = {_spelling(value)[0]}"


def equation(node: nodes.Solve) -> str:
    """``\\text{solve } x_{i}: \\quad left = right``, with its condition."""
    assert isinstance(node.value, nodes.Compare)
    with deep():
        left, right = (_spelling(side)[0] for side in node.value.operands)
        said = rf"\text{{solve }} {_with_indices(name(node.name), node.indices or ())}"
        if node.condition is not None:
            said += rf" \text{{ if }} {_spelling(node.condition)[0]}"
        return rf"{said}: \quad {left} = {right}"


def function(definition: nodes.FunctionDef) -> str:
    """``\\sigma\\left(t\\right) = …``"""
    parameters = _in_brackets(_comma_list(each.id for each in definition.parameters))
    with deep():
        value = _spelling(definition.value)[0]
    return f"{_function(definition.name, None)}{parameters} = {value}"


def name(text: str) -> str:
    """A name: one letter, a Greek letter, a letter with a number, or a word."""
    letters = text.rstrip("0123456789")
    digits = text[len(letters) :]
    if digits:
        letters = letters.removesuffix("_")
    if _GREEK.fullmatch(letters):
        shown = f"\\{letters}"
    elif letters[:1] == "d" and _GREEK.fullmatch(letters, 1):
        shown = f"d\\{letters[1:]}"
    elif len(letters) == 1 and letters != "_":
        shown = letters
    else:
        word = text.replace("_", r"\_")
        return rf"\mathit{{{word}}}"
    return f"{shown}_{{{digits}}}" if digits else shown


def _at(expr: nodes.Expr, tightness: int) -> str:
    text, own = _spelling(expr)
    return text if own >= tightness else _in_brackets(text)


def _in_brackets(text: str) -> str:
    return rf"\left({text}\right)"


def _spelling(expr: nodes.Expr) -> _Text:
    match expr:
        case nodes.Number():
            return _number(expr)
        case nodes.Name("inf"):
            return r"\infty", _ATOM
        case nodes.Name(text):
            return name(text), _ATOM
        case nodes.Whole():
            return ":", _ATOM
        case nodes.Indexed(text, indices):
            return _with_indices(name(text), indices), _ATOM
        case nodes.Unary("not", operand):
            return rf"\lnot {_at(operand, _COMPARE + 1)}", _NOT
        case nodes.Unary(op, operand):
            part = _spelling(operand)
            return op + _second(part, _OPEN), _OPEN if part[1] == _OPEN else _SIGN
        case nodes.Binary():
            return _binary(expr)
        case nodes.Compare(operands, ops):
            first, *others = (_at(operand, _SUM) for operand in operands)
            pairs = zip(ops, others, strict=True)
            links = (f"{_RELATIONS.get(op, op)} {text}" for op, text in pairs)
            return " ".join([first, *links]), _COMPARE
        case nodes.Logical(op, operands):
            own = _OR if op == "or" else _AND
            parts = (_at(operand, own + 1) for operand in operands)
            return rf" \text{{ {op} }} ".join(parts), own
        case nodes.Conditional():
            return _cases(expr), _CHOICE
        case nodes.Call(indices=indices):
            if not indices:
                return _call(expr)
            return _with_indices(_in_brackets(_call(expr)[0]), indices), _ATOM
        case nodes.Comprehension():
            return _over_indices(expr), _OPEN


def _number(number: nodes.Number) -> _Text:
    mantissa, _, exponent = number.text.lower().replace("_", "").partition("e")
    if not exponent:
        return mantissa, _ATOM
    power = f"10^{{{int(exponent)}}}"
    return (
        (power, _POWER) if mantissa == "1" else (rf"{mantissa} \cdot {power}", _PRODUCT)
    )


def _with_indices(base: str, indices: tuple[nodes.Expr, ...]) -> str:
    if not indices:
        return base
    base = f"{{{base}}}" if "_{" in base else base
    return f"{base}_{{{', '.join(_spelling(index)[0] for index in indices)}}}"


def _binary(expr: nodes.Binary) -> _Text:
    left, right = expr.left, expr.right
    match expr.op:
        case "+" | "-" as op:
            return f"{_at(left, _SUM)} {op} {_second(_spelling(right), _OPEN)}", _SUM
        case "*":
            return _product(left, right)
        case "/":
            return rf"\frac{{{_spelling(left)[0]}}}{{{_spelling(right)[0]}}}", _POWER
        case "%":
            text = _second(_spelling(right), _PRODUCT + 1)
            return rf"{_at(left, _PRODUCT)} \bmod {text}", _PRODUCT
        case _:
            return _power(left, right)


def _second(operand: _Text, tightness: int) -> str:
    """The operand after an operator: in brackets too if it begins with a sign."""
    text, own = operand
    is_bare = own >= tightness and not text.startswith(("-", "+"))
    return text if is_bare else _in_brackets(text)


def _product(left: nodes.Expr, right: nodes.Expr) -> _Text:
    is_open = isinstance(right, nodes.Comprehension)
    factor = _second(_spelling(right), _OPEN if is_open else _PRODUCT + 1)
    is_number = isinstance(left, nodes.Number) and factor.startswith(r"\frac")
    sign = r"\cdot" if is_number or factor[0] in ".0123456789" else r"\,"
    return f"{_at(left, _PRODUCT)} {sign} {factor}", _OPEN if is_open else _PRODUCT


def _power(base: nodes.Expr, exponent: nodes.Expr) -> _Text:
    """``\\tanh^{2}\\left(x\\right)`` of a function that has a name of its own."""
    raised = f"^{{{_spelling(exponent)[0]}}}"
    is_number = isinstance(exponent, nodes.Number)
    match base:
        case nodes.Call(name, None, (part,), ()) if is_number and _COMMAND.fullmatch(
            _function(name, None)
        ):
            argument = _in_brackets(_spelling(part)[0])
            return f"{_function(name, None)}{raised}{argument}", _POWER
    return _at(base, _ATOM) + raised, _POWER


def _cases(expr: nodes.Expr) -> str:
    rows = []
    while isinstance(expr, nodes.Conditional):
        condition = _spelling(expr.condition)[0]
        rows.append(rf"{_spelling(expr.then)[0]} & \text{{if }} {condition}")
        expr = expr.otherwise
    rows.append(rf"{_spelling(expr)[0]} & \text{{otherwise}}")
    lines = r" \\ ".join(rows)
    return rf"\begin{{cases}} {lines} \end{{cases}}"


def _call(call: nodes.Call) -> _Text:
    function = call.function
    if call.output is None and not call.keywords and len(call.args) == 1:
        (argument,) = map(_spelling, call.args)
        if function == "exp":
            return f"e^{{{argument[0]}}}", _POWER
        if function in _AROUND:
            opened, closed = _AROUND[function]
            return f"{opened}{argument[0]}{closed}", _ATOM
        if function == "square":
            return _power(call.args[0], _TWO)
        if function == "rsqrt":
            return rf"\frac{{1}}{{\sqrt{{{argument[0]}}}}}", _POWER
    notation = "" if call.output or call.keywords else _notation(function)
    if "#" in notation:
        for number, part in enumerate(call.args, 1):
            notation = notation.replace(f"#{number}", _at(part, _ATOM))
        return notation, _ATOM
    return f"{_function(function, call.output)}{_in_brackets(_arguments(call))}", _ATOM


def _function(function: str, output: str | None) -> str:
    if output is None and _NAMED.fullmatch(function):
        return f"\\arc{function[1:]}" if function[0] == "a" else f"\\{function}"
    if output is None and (symbol := _notation(function)):
        return symbol
    if output is None and _GREEK.fullmatch(function):
        return name(function)
    full = function if output is None else f"{function}.{output}"
    word = full.replace("_", r"\_")
    return rf"\operatorname{{{word}}}"


def _notation(function: str) -> str:
    return primitive(function).notation if is_function(function) else ""


def _arguments(call: nodes.Call) -> str:
    named = (
        f"{name(word.name)} = {_spelling(word.value)[0]}" for word in call.keywords
    )
    return ", ".join([*(_spelling(arg)[0] for arg in call.args), *named])


def _over_indices(expr: nodes.Comprehension) -> str:
    over = ", ".join(map(_index, expr.indices))
    if expr.condition is not None:
        over += rf" \,:\, {_spelling(expr.condition)[0]}"
    op = _OVER_INDICES.get(expr.op) or rf"\operatorname*{{{expr.op}}}"
    body = _second(_spelling(expr.body), _OPEN)
    if expr.place is not None:
        body = _in_brackets(f"{_spelling(expr.place)[0]}, {body}")
    return f"{op}_{{{over}}} {body}"


def _index(index: nodes.Name) -> str:
    if isinstance(index, nodes.Ranged):
        return rf"{name(index.id)} < {_spelling(index.range)[0]}"
    return name(index.id)


def _comma_list(names: Iterable[str]) -> str:
    return ", ".join(map(name, names))
