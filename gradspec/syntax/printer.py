"""The canonical text of a module: four spaces, lines of 88 columns, comments kept.

An expression becomes a document of Wadler's kind: texts, and groups that stand on one
line if they fit, else break at each of their line ends. Newlines are free inside
brackets only, so a long formula gets brackets around it and is broken before its
weakest operators. The lines depend on the tree alone.

A comment stays where it stood: at the end of its line, or on a line of its own before
the same statement (one from inside a statement moves above it). A blank line stands
between items, and where the author left one or more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from gradspec.source import Source, Span
from gradspec.syntax import nodes
from gradspec.syntax.tokens import docstring_literal, number_text, string_literal

WIDTH = 88
INDENT = "    "

# --- documents ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _End:
    """A place where a line may end: ``flat`` if its group stands on one line, else
    ``broken``."""

    flat: str = ""
    broken: str = "\n"


@dataclass(frozen=True, slots=True)
class _Block:
    """A document; ``is_group``: it stands on one line if it fits; else its lines are
    indented one level deeper."""

    body: _Document
    is_group: bool


_Document: TypeAlias = "str | _End | _Block | tuple[_Document, ...]"
_OPEN, _CLOSE, _COMMA = _End("", "("), _End("", ")"), _End("", ",")
_NOTHING, _BLANK = _End(), _End(" ")


def _in_brackets(body: _Document, open: _Document, close: _Document) -> _Document:
    """``body`` on lines of its own between two brackets, if it does not fit."""
    return _Block((open, _Block((_NOTHING, body), False), _NOTHING, close), True)


def _list(parts: Iterable[_Document]) -> _Document:
    """Parts with commas between them; after the last one, too, if each has a line."""
    found = [each for part in parts for each in (part, ",", _BLANK)]
    return (*found[:-2], _COMMA) if found else ()


def _render(document: _Document, indent: str, width: float = WIDTH) -> str:
    """The text of a document, its first line without the indentation."""
    done: list[str] = []
    column = len(indent)
    waiting: list[tuple[str, bool, _Document]] = [(indent, False, document)]
    while waiting:
        margin, is_flat, part = waiting.pop()
        match part:
            case _Block(body, True):
                is_flat = is_flat or _fits(body, waiting, width - column)
                waiting.append((margin, is_flat, body))
            case _Block(body):
                waiting.append((margin + INDENT, is_flat, body))
            case tuple():
                waiting += ((margin, is_flat, each) for each in reversed(part))
            case _End(broken="\n") if not is_flat:
                done.append(f"\n{margin}")
                column = len(margin)
            case _End() | str():
                done.append(_text(part, is_flat))
                column += len(done[-1])
    return "".join(done)


def _text(part: str | _End, is_flat: bool) -> str:
    if isinstance(part, str):
        return part
    return part.flat if is_flat else part.broken


def _fits(
    body: _Document, after: Sequence[tuple[str, bool, _Document]], room: float
) -> bool:
    """True if ``body`` on one line, and what follows up to a line end, take no more
    than ``room``."""
    waiting = [*((is_flat, part) for _, is_flat, part in after), (True, body)]
    while waiting and room >= 0:
        is_flat, part = waiting.pop()
        match part:
            case _Block(inner):
                waiting.append((is_flat, inner))
            case tuple():
                waiting += ((is_flat, each) for each in reversed(part))
            case _End(broken="\n") if not is_flat:
                return room >= 0
            case _End() | str():
                room -= len(_text(part, is_flat))
    return room >= 0


# --- expressions ----------------------------------------------------------------------

# How tightly an expression binds, as in the grammar: what stands at a place that asks
# for more is put in brackets.
_CHOICE, _OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(10)
_STRENGTH = {
    "or": _OR,
    "and": _AND,
    "+": _SUM,
    "-": _SUM,
    "*": _PRODUCT,
    "/": _PRODUCT,
    "%": _PRODUCT,
}


def print_expression(expr: nodes.Expr) -> str:
    """The text of an expression, on one line, with no more brackets than needed."""
    return _flat(_spelling(expr)[0])


def _flat(document: _Document) -> str:
    return _render(_Block(document, True), "", float("inf"))


def _at(expr: nodes.Expr, strength: int, *, begins: bool = False) -> _Document:
    """``expr`` where nothing that binds less than ``strength`` may stand. If it
    ``begins`` a line, it gets brackets also where it needs several lines."""
    document, own = _spelling(expr)
    if own < strength:
        return _in_brackets(document, "(", ")")
    return _in_brackets_if_long(expr, document) if begins else document


def _in_brackets_if_long(expr: nodes.Expr, document: _Document) -> _Document:
    """In brackets if it needs several lines; calls have their own."""
    if isinstance(expr, nodes.Binary | nodes.Logical | nodes.Conditional):
        return _in_brackets(document, _OPEN, _CLOSE)
    return document


def _spelling(expr: nodes.Expr) -> tuple[_Document, int]:
    """An expression, and how tightly it binds."""
    match expr:
        case nodes.Number(value, text):
            return text or number_text(value), _ATOM
        case nodes.Name(name):
            return name, _ATOM
        case nodes.Whole():
            return ":", _ATOM
        case nodes.Indexed(name, indices):
            return target_text(name, indices), _ATOM
        case nodes.Unary("not", operand):
            return ("not ", _at(operand, _NOT)), _NOT
        case nodes.Unary(op, operand):
            return (op, _at(operand, _SIGN)), _SIGN
        case nodes.Binary("**", left, right):
            return (_at(left, _ATOM), "**", _at(right, _SIGN)), _POWER
        case nodes.Binary(op):
            own = _STRENGTH[op]
            return _chain(_links(expr, own), own, own + 1), own
        case nodes.Logical(op, operands):
            own = _STRENGTH[op]
            links = [(op, operand) for operand in operands]
            return _chain(links, own + 1, own + 1), own
        case nodes.Compare(operands, ops):
            first, *others = (_at(operand, _SUM) for operand in operands)
            pairs = zip(ops, others, strict=True)
            return (first, *((f" {op} ", right) for op, right in pairs)), _COMPARE
        case nodes.Conditional():
            return _cases(expr), _CHOICE
        case nodes.Call(function, output, args, keywords, indices):
            name = function if output is None else f"{function}.{output}"
            words = ((f"{each.name}=", _spelling(each.value)[0]) for each in keywords)
            given = (_spelling(arg)[0] for arg in args)
            return (
                _call(name, _list((*given, *words))),
                target_text("", indices),
            ), _ATOM
        case nodes.Comprehension(op, body, indices, condition):
            parts: _Document = (_spelling(body)[0], _BLANK, "for ", _indices(indices))
            if expr.place is not None:
                parts = (_spelling(expr.place)[0], ",", _BLANK, parts)
            if condition is not None:
                parts = (parts, _BLANK, "if ", _at(condition, _OR))
            return _call(op, parts), _ATOM


def _call(name: str, arguments: _Document) -> _Document:
    return _in_brackets(arguments, f"{name}(", ")") if arguments else f"{name}()"


def _links(expr: nodes.Expr, strength: int) -> list[tuple[str, nodes.Expr]]:
    """The operands of operators of one strength, each after its operator."""
    links: list[tuple[str, nodes.Expr]] = []
    while isinstance(expr, nodes.Binary) and _STRENGTH.get(expr.op) == strength:
        links.append((expr.op, expr.right))
        expr = expr.left
    return [("", expr), *reversed(links)]


def _chain(
    links: Sequence[tuple[str, nodes.Expr]], first: int, others: int
) -> _Document:
    """Operands, each at the strength that its place asks for; or one on a line."""
    (_, operand), *rest = links
    parts = [_at(operand, first, begins=True)]
    for op, operand in rest:
        parts.append((_BLANK, f"{op} ", _at(operand, others, begins=True)))
    return _Block(tuple(parts), True)


def _cases(expr: nodes.Expr) -> _Document:
    """A conditional, with one case on a line: ``a if p``, ``else b if q``, ``else c``;
    on one line the later cases are in brackets."""
    parts: list[_Document] = []
    while isinstance(expr, nodes.Conditional):
        test = ("if ", _at(expr.condition, _OR))
        if parts:
            parts += [(_BLANK, "else ", _End("(", ""))]
        then = _at(expr.then, _OR, begins=True)
        parts.append(_Block((then, _BLANK, test), True))
        expr = expr.otherwise
    closing = [_End(")", "")] * (len(parts) // 2)
    last = _at(expr, _OR, begins=True)
    return _Block((*parts, _BLANK, "else ", last, *closing), True)


def target_text(name: str, indices: Iterable[nodes.Expr] | None) -> str:
    if indices is None:
        return name
    places = (
        index_text(i) if isinstance(i, nodes.Name) else print_expression(i)
        for i in indices
    )
    return f"{name}[{', '.join(places)}]"


def _expressions(exprs: Iterable[nodes.Expr]) -> str:
    return ", ".join(map(print_expression, exprs))


def _indices(indices: Iterable[nodes.Name]) -> str:
    return ", ".join(map(index_text, indices))


def index_text(index: nodes.Name) -> str:
    """An index where it is introduced: ``j``, or ``j in k``."""
    if isinstance(index, nodes.Ranged):
        return f"{index.id} in {_flat(_at(index.range, _SUM))}"
    return index.id


def _names(names: Iterable[nodes.Name]) -> str:
    return ", ".join(name.id for name in names)


# --- statements and heads -------------------------------------------------------------


def _statement(statement: nodes.Statement) -> str:
    """The text of a statement of a rule, its first line without indentation."""
    match statement:
        case nodes.Assume(conditions):
            return _fill(f"assume {_expressions(conditions)}")
        case nodes.Kernel(names, calls):
            listed = _names(names) if len(names) == 1 else f"({_names(names)})"
            return f"extern {listed} = {_calls(calls)}"
        case nodes.Keep(word, names):
            return f"{word} {_names(names)}"
        case nodes.Example(given, expected):
            return _fill(f"example {_bindings(given)}: {_bindings(expected)}")
        case nodes.Solve():
            return _equation(statement)
        case nodes.Override(reason=reason):
            word, end = "override ", f" because {string_literal(reason)}"
        case nodes.Surrogate():
            word, end = "surrogate ", ""
        case nodes.Assign(exact=exact):
            word, end = "exact " if exact else "", ""
    start = f"{word}{target_text(statement.name, statement.indices)} = "
    return _formula(start, statement.value, end, INDENT)


def _equation(statement: nodes.Solve) -> str:
    """``solve name from start if condition: left == right``; a long side is in
    brackets."""
    head: list[_Document] = ["solve ", target_text(statement.name, statement.indices)]
    if statement.start is not None:
        head += [" from ", _at(statement.start, _OR)]
    if statement.condition is not None:
        head += [" if ", _at(statement.condition, _OR)]
    assert isinstance(statement.value, nodes.Compare)
    left, right = (_at(side, _SUM) for side in statement.value.operands)
    document = _in_brackets((left, _BLANK, "== ", right), _OPEN, _CLOSE)
    return _render(_Block((*head, ": ", document), True), INDENT)


def _formula(start: str, value: nodes.Expr, end: str, indent: str) -> str:
    """A long formula is in brackets; if it is a product whose last factor has brackets,
    these serve."""
    document, _ = _spelling(value)
    *factors, (op, last) = _links(value, _PRODUCT)
    inner, strength = _spelling(last)
    if op == "*" and strength < _PRODUCT:
        before = (start, _chain(factors, _PRODUCT, _SIGN), " * ")
        if len(indent + _flat(before)) < WIDTH:
            document = (*before[1:], _in_brackets(inner, "(", ")"))
            return _render(_Block((start, document, end), True), indent)
    whole = (start, _in_brackets_if_long(value, document), end)
    return _render(_Block(whole, True), indent)


def _fill(text: str) -> str:
    """A text of bindings, broken after commas inside brackets where it is too long."""
    lines, depth, start, comma = [], 0, 0, 0
    room = WIDTH - len(INDENT)
    for at, char in enumerate(text):
        depth += (char in "([") - (char in ")]")
        if at - start >= room and comma > start:
            lines.append(text[start:comma])
            start, room = comma + 1, WIDTH - 2 * len(INDENT)
        if char == "," and depth:
            comma = at + 1
    return f"\n{INDENT * 2}".join([*lines, text[start:]])


def _bindings(bindings: Iterable[nodes.Binding]) -> str:
    return ", ".join(f"{each.name} = {_literal(each.value)}" for each in bindings)


def _literal(value: nodes.Literal) -> str:
    match value:
        case nodes.Scalar(text):
            return text
        case nodes.Vector(items):
            return f"[{', '.join(map(_literal, items))}]"


def _head(item: nodes.Item) -> str:
    """The head of a rule, or the whole of another item."""
    match item:
        case nodes.Import(path, names):
            listed = _list(name.id for name in names)
            start = f"from {string_literal(path)} import "
            head: _Document = (start, _in_brackets(listed, _OPEN, _CLOSE))
        case nodes.FunctionDef(name, parameters, value):
            return _formula(f"def {name}({_names(parameters)}) = ", value, "", "")
        case nodes.ForeignDef(name, parameters, calls, derivatives):
            start = f"extern def {name}({_names(parameters)}) = {_calls(calls)}"
            end = f"with derivative {_expressions(derivatives)}" if derivatives else ""
            gap = " " if len(start) + len(end) < WIDTH else f"\n{INDENT}"
            return f"{start}{gap}{end}".rstrip()
        case nodes.RuleDef(name, inputs, outputs):
            given = _call(f"rule {name}", _list(map(_parameter, inputs)))
            head = (given, f" -> {_results(outputs)}:")
    return _render(head, "")


def _calls(calls: Iterable[nodes.ForeignCall]) -> str:
    return ", ".join(map(_foreign_call, calls))


def _foreign_call(call: nodes.ForeignCall) -> str:
    within = "" if call.arguments is None else f"({', '.join(call.arguments)})"
    where = f" for {_names(call.targets)}" if call.targets else ""
    return string_literal(call.path + within) + where


def _results(outputs: Sequence[nodes.Parameter]) -> str:
    text = ", ".join(map(_parameter, outputs))
    return text if len(outputs) == 1 and not outputs[0].kind else f"({text})"


def _parameter(parameter: nodes.Parameter) -> str:
    text = parameter.name
    if parameter.axes is not None:
        batch = ["..."] if parameter.axes.batch else []
        text += f"[{', '.join([*batch, *map(str, parameter.axes.axes)])}]"
    if parameter.kind:
        text += f": {parameter.kind}"
    if parameter.default is not None:
        text += f" = {print_expression(parameter.default)}"
    return text


# --- modules --------------------------------------------------------------------------


def print_module(module: nodes.Module) -> str:
    """The canonical text; what is parsed from it is equal and prints the same. (Items
    that were broken are not in a module, so print only what parsed without a fault.)
    """
    writer = _Writer(module.source, list(reversed(module.comments)))
    previous: nodes.Item | None = None
    for item in module.items:
        writer.apart = previous is not None and _stands_apart(previous, item)
        for piece in _pieces(item):
            writer.write(piece)
        previous = item
    writer.comments_before(None)
    return "".join(f"{line}\n" for line in writer.lines)


def _stands_apart(previous: nodes.Item, item: nodes.Item) -> bool:
    """False among imports and among one-line functions, which may stand together."""
    return isinstance(item, nodes.RuleDef) or type(previous) is not type(item)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A line to print (several for a docstring), and the source text it comes from."""

    text: str
    span: Span
    indent: str = INDENT


def _pieces(item: nodes.Item) -> Iterator[_Piece]:
    if not isinstance(item, nodes.RuleDef):
        yield _Piece(_head(item), item.span, "")
        return
    head = Span(item.span.start, item.outputs[-1].span.end)
    yield _Piece(_head(item), head, "")
    if item.doc is not None:
        doc = docstring_literal(item.doc, INDENT)
        yield _Piece(doc, item.doc_span or item.name_span)
    for statement in item.body:
        yield _Piece(_statement(statement), statement.span)


@dataclass(slots=True)
class _Writer:
    """Lines so far; ``comments`` are those to come, the next one last."""

    source: Source
    comments: list[nodes.Comment]
    apart: bool = False
    """True if the next line at the margin needs a blank line above it."""
    lines: list[str] = field(default_factory=list)
    _row: int = 0
    _indent: str = ""

    def write(self, piece: _Piece) -> None:
        self.comments_before(piece)
        self._line(piece.text, piece.indent, piece.span)
        row = self._row_of(piece.span.end)
        if self.comments and self._row_of(self.comments[-1].span.start) == row:
            self.lines[-1] += f"  {self.comments.pop().text}"

    def comments_before(self, piece: _Piece | None) -> None:
        """The comments up to the end of a piece (all that are left, without one)."""
        while self.comments:
            comment = self.comments[-1]
            if piece is not None and comment.span.start >= piece.span.end:
                return
            self.comments.pop()
            indent = piece.indent if piece else ""
            self._line(
                comment.text, indent or self._kept_comment(comment), comment.span
            )

    def _kept_comment(self, comment: nodes.Comment) -> str:
        """An indented comment below the last statement of a rule belongs to the
        rule."""
        indented = self.source.position(comment.span.start)[1] > 1
        return INDENT if indented and self._indent else ""

    def _line(self, text: str, indent: str, span: Span) -> None:
        after_head = indent > self._indent
        gap = self._row and self._row_of(span.start) > self._row + 1 and not after_head
        if gap or (self.apart and not indent):
            self.lines.append("")
        self.apart = self.apart and bool(indent)
        self.lines.append(indent + text)
        self._row, self._indent = self._row_of(span.end), indent

    def _row_of(self, offset: int) -> int:
        return self.source.position(offset)[0]
