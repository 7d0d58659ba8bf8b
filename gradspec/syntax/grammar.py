"""The parser that lark makes from ``grammars/gradspec.lark``, and the nodes that it
builds.

It is made once per process (about 60 ms, most of it the tables of LALR; lark's own
cache would write files that a compiler has no business to leave behind). lark is
imported here only, and only when something is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradspec.source import Span
from gradspec.syntax import nodes
from gradspec.syntax.foreign import foreign_call
from gradspec.syntax.tokens import (
    MAX_DEPTH,
    Fault,
    FaultFound,
    Token,
    docstring_value,
    number_value,
    string_value,
    too_deep,
)

if TYPE_CHECKING:
    from lark import Lark

REDUCTIONS = ("sum", "mean", "prod", "max", "min", "logsumexp")
"""Functions that take a comprehension."""

ORDER = "nth"
"""The function that takes a place and a comprehension."""

WORDS = ("inf", "nan", "true", "false")
"""The names among the values of an example."""

MAX_SIZE = 2**31
"""No axis is longer."""

STARTS = ("module", "header", "statement", "expression")


class Unexpected(Exception):
    """A token at which no parse can continue. ``index`` counts the tokens taken,
    ``expected`` holds the terminals that could come next.
    """

    def __init__(self, index: int, expected: frozenset[str]) -> None:
        super().__init__(index)
        self.index = index
        self.expected = expected


def grammar_text() -> str:
    """The grammar: of the checkout, or as installed with the package."""
    checkout = Path(__file__).parents[2] / "grammars" / "gradspec.lark"
    if checkout.is_file():
        return checkout.read_text(encoding="utf-8")
    installed = resources.files("gradspec") / "_grammars" / "gradspec.lark"
    return installed.read_text(encoding="utf-8")


@cache
def _parser() -> Lark:
    from lark import Lark

    return Lark(
        grammar_text(),
        parser="lalr",
        lexer="basic",
        start=list(STARTS),
        keep_all_tokens=True,
        transformer=Builder(),
    )


def run(tokens: Iterable[Token], start: str) -> Any:
    """The builder's result for ``tokens``; raises Unexpected, or what the builder
    raises."""
    from lark import UnexpectedToken

    parser = _parser().parse_interactive("", start=start)
    result = None
    for count, token in enumerate(chain(tokens, (Token("$END", "", 0, 0),))):
        try:
            result = parser.feed_token(token)  # type: ignore[arg-type]
        except UnexpectedToken:
            accepted = parser.accepts()  # type: ignore[no-untyped-call]
            raise Unexpected(count, frozenset(accepted)) from None
    return result


# --- terminals ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Lexicon:
    """The terminals: one pattern whose groups are their names, and the words that a
    NAME may turn out to be.
    """

    pattern: str
    words: dict[str, str]


@cache
def lexicon() -> Lexicon:
    from lark.lexer import PatternStr

    words: dict[str, str] = {}
    shapes: list[tuple[int, int, str, str]] = []
    for terminal in _parser().terminals:
        pattern = terminal.pattern
        if isinstance(pattern, PatternStr) and pattern.value.isalpha():
            words[pattern.value] = terminal.name
            continue
        rank = (-terminal.priority, -pattern.max_width)
        shapes.append((*rank, terminal.name, pattern.to_regexp()))
    groups = [f"(?P<{name}>{regexp})" for _, _, name, regexp in sorted(shapes)]
    joined = "|".join(groups)
    re.compile(joined)  # a name that is no group's name is our fault: fail here
    return Lexicon(joined, words)


# --- nodes ----------------------------------------------------------------------------

Children = Sequence[Any]


def _over(children: Children) -> Span:
    """From the first child to the last; line ends have no width of their own."""
    present = [child for child in children if child is not None]
    return Span(present[0].span.start, present[-1].span.end)


def _without(children: Children, *types: str) -> tuple[Any, ...]:
    """The children that are neither absent nor tokens of these types."""
    return tuple(
        child
        for child in children
        if child is not None and not (type(child) is Token and child.type in types)
    )


class Builder:
    """Nodes from what the grammar's rules matched; it has no state.

    One method per rule or alias of the grammar; lark calls it with all the children in
    order: tokens, nodes, and None where an optional part is absent. Nothing here
    recurses, so that no depth of nesting can exhaust the stack.
    """

    # --- items

    def module(self, c: Children) -> tuple[nodes.Item, ...]:
        return tuple(c)

    def from_import(self, c: Children) -> nodes.Import:
        path = c[1]
        names = next(child for child in c if type(child) is tuple)
        text = string_value(path.text)
        return nodes.Import(text, names, span=_over(c), path_span=path.span)

    def function(self, c: Children) -> nodes.FunctionDef:
        _, name, _, parameters, _, _, value, _ = c
        refuse_depth(value)
        return nodes.FunctionDef(
            name.text, parameters or (), value, span=_over(c), name_span=name.span
        )

    def foreign(self, c: Children) -> nodes.ForeignDef:
        _, _, name, _, parameters, _, _, calls, derivatives, _ = c
        return nodes.ForeignDef(
            name.text,
            parameters,
            calls,
            derivatives or (),
            span=_over(c),
            name_span=name.span,
        )

    def derivatives(self, c: Children) -> tuple[nodes.Expr, ...]:
        found = _without(c[2:], "COMMA")
        for value in found:
            refuse_depth(value)
        return found

    def calls(self, c: Children) -> tuple[nodes.ForeignCall, ...]:
        found: list[nodes.ForeignCall] = []
        for token in _without(c, "FOR", "COMMA"):
            if token.type == "STRING":
                found.append(foreign_call(token))
            else:
                name = nodes.Name(token.text, span=token.span)
                targets = (*found[-1].targets, name)
                found[-1] = replace(found[-1], targets=targets)
        return tuple(found)

    def header(self, c: Children) -> nodes.RuleDef:
        _, name, _, inputs, _, _, outputs, _, _ = c
        return nodes.RuleDef(
            name.text,
            inputs or (),
            outputs,
            doc=None,
            body=(),
            span=_over(c),
            name_span=name.span,
        )

    def rule(self, c: Children) -> nodes.RuleDef:
        head, _, doc, _, *body, _ = c
        text = docstring_value(doc.text) if doc is not None else None
        span = head.span.to(body[-1].span)
        place = doc.span if doc is not None else None
        made: nodes.RuleDef = replace(
            head, doc=text, body=tuple(body), span=span, doc_span=place
        )
        return made

    # --- inputs and outputs

    def parameters(self, c: Children) -> tuple[nodes.Parameter, ...]:
        return _without(c, "COMMA")

    def parameter(self, c: Children) -> nodes.Parameter:
        name, axes, _, kind, _, default = c
        if default is not None:
            refuse_depth(default)
        words = kind.id if kind is not None else ""
        return nodes.Parameter(
            name.text, axes, words, default, span=_over(c), name_span=name.span
        )

    def kind(self, c: Children) -> nodes.Name:
        words = _without(c)
        return nodes.Name(" ".join(word.text for word in words), span=_over(words))

    output_kind = kind

    def outputs(self, c: Children) -> tuple[nodes.Parameter, ...]:
        return _without(c, "LPAR", "RPAR", "COMMA")

    def bare_output(self, c: Children) -> nodes.Parameter:
        return self.parameter([*c, None, None, None, None])

    def output(self, c: Children) -> nodes.Parameter:
        return self.parameter([*c, None, None])

    def axes(self, c: Children) -> nodes.Axes:
        tokens = _without(c, "LSQB", "RSQB", "COMMA")
        batch = bool(tokens) and tokens[0].type == "ELLIPSIS"
        axes = tuple(_axis(token) for token in tokens[batch:])
        places = tuple(token.span for token in tokens[batch:])
        return nodes.Axes(batch, axes, places, span=_over(c))

    # --- statements

    def statement(self, c: Children) -> nodes.Statement:
        made: nodes.Statement = c[0]
        return made

    def target(self, c: Children) -> tuple[Token, tuple[nodes.Expr, ...] | None]:
        """A name and its indices; nothing but these, for the statements below."""
        name, *rest = _without(c)
        if not rest:
            return name, None
        indices = _without(rest, "LSQB", "RSQB", "COMMA")
        for index in indices:
            refuse_depth(index)
        return name, indices

    def assign(self, c: Children) -> nodes.Assign:
        mark, target, _, value = c
        return nodes.Assign(
            **_assignment_fields(mark, target, value), exact=mark is not None
        )

    def solve(self, c: Children) -> nodes.Solve:
        word, target, _, start, _, condition, _, value = c
        if type(value) is not nodes.Compare or value.ops != ("==",):
            raise FaultFound(_not_an_equation(value.span))
        for part in (start, condition):
            if part is not None:
                refuse_depth(part)
        fields = _assignment_fields(word, target, value)
        return nodes.Solve(**fields, start=start, condition=condition)

    def assume(self, c: Children) -> nodes.Assume:
        conditions = _without(c[1:], "COMMA")
        for condition in conditions:
            refuse_depth(condition)
        return nodes.Assume(conditions, span=_over(c))

    def surrogate(self, c: Children) -> nodes.Surrogate:
        word, target, _, value = c
        return nodes.Surrogate(**_assignment_fields(word, target, value))

    def override(self, c: Children) -> nodes.Override:
        word, target, _, value, _, reason = c
        text = string_value(reason.text)
        made = nodes.Override(**_assignment_fields(word, target, value), reason=text)
        return replace(made, span=made.span.to(reason.span))

    def kernel(self, c: Children) -> nodes.Kernel:
        word, *_, named, calls = _without(c, "LPAR", "RPAR", "EQUAL")
        names = named if type(named) is tuple else self.names([named])
        return nodes.Kernel(names, calls, span=word.span.to(calls[-1].span))

    def keep(self, c: Children) -> nodes.Keep:
        word, names = c
        span = word.span.to(names[-1].span)
        return nodes.Keep(word.text, names, span=span)

    def example(self, c: Children) -> nodes.Example:
        word, given, _, expected = c
        span = word.span.to(expected[-1].span)
        return nodes.Example(given, expected, span=span)

    def bindings(self, c: Children) -> tuple[nodes.Binding, ...]:
        return _without(c, "COMMA")

    def binding(self, c: Children) -> nodes.Binding:
        name, _, value = c
        return nodes.Binding(name.text, value, span=_over(c))

    def scalar(self, c: Children) -> nodes.Scalar:
        sign, value = c
        if value.type == "NUMBER":
            number_value(value)
        elif value.text not in WORDS:
            raise FaultFound(_not_a_value(value))
        minus = "-" if sign is not None and sign.text == "-" else ""
        return nodes.Scalar(minus + value.text, span=_over(c))

    def vector(self, c: Children) -> nodes.Vector:
        return nodes.Vector(_without(c, "LSQB", "RSQB", "COMMA"), span=_over(c))

    # --- expressions

    def conditional(self, c: Children) -> nodes.Conditional:
        then, _, condition, _, otherwise = c
        return nodes.Conditional(then, condition, otherwise, span=_over(c))

    def logical(self, c: Children) -> nodes.Logical:
        return nodes.Logical(c[1].text, tuple(c[::2]), span=_over(c))

    def unary(self, c: Children) -> nodes.Unary:
        operator, operand = c
        return nodes.Unary(operator.text, operand, span=_over(c))

    def compare(self, c: Children) -> nodes.Compare:
        ops = tuple(operator.text for operator in c[1::2])
        return nodes.Compare(tuple(c[::2]), ops, span=_over(c))

    def binary(self, c: Children) -> nodes.Binary:
        left, operator, right = c
        return nodes.Binary(operator.text, left, right, span=_over(c))

    def number(self, c: Children) -> nodes.Number:
        token = c[0]
        return nodes.Number(number_value(token), token.text, span=token.span)

    def variable(self, c: Children) -> nodes.Name:
        return nodes.Name(c[0].text, span=c[0].span)

    def indexed(self, c: Children) -> nodes.Indexed:
        indices = _without(c[1:], "LSQB", "RSQB", "COMMA")
        return nodes.Indexed(c[0].text, indices, span=_over(c))

    def call(self, c: Children) -> nodes.Call:
        name, _, output, _, arguments, _, places = c
        arguments = arguments or ()
        return nodes.Call(
            name.text,
            output.text if output is not None else None,
            tuple(a for a in arguments if type(a) is not nodes.Keyword),
            tuple(a for a in arguments if type(a) is nodes.Keyword),
            places.indices if places is not None else None,
            span=_over(c),
            function_span=name.span.to(output.span) if output else name.span,
        )

    def elements(self, c: Children) -> nodes.Indexed:
        return self.indexed([c[0], *c])

    def whole(self, c: Children) -> nodes.Whole:
        return nodes.Whole(span=c[0].span)

    def arguments(self, c: Children) -> tuple[nodes.Expr | nodes.Keyword, ...]:
        found = _without(c, "COMMA")
        for before, after in pairwise(found):
            if type(before) is nodes.Keyword and type(after) is not nodes.Keyword:
                raise FaultFound(_after_keyword(after.span))
        return found

    def keyword(self, c: Children) -> nodes.Keyword:
        name, _, value = c
        return nodes.Keyword(name.text, value, span=_over(c))

    def comprehension(self, c: Children) -> nodes.Comprehension:
        op, _, given, _, indices, _, condition, _ = c
        fault = _comprehension_fault(op, given, indices, condition)
        if fault is not None:
            raise FaultFound(fault)
        *place, body = given
        at = place[0] if place else None
        return nodes.Comprehension(op.text, body, indices, condition, at, span=_over(c))

    def indices(self, c: Children) -> tuple[nodes.Name, ...]:
        return _without(c, "COMMA")

    def index(self, c: Children) -> nodes.Name:
        name, _, range = c
        return self.variable([name]) if range is None else self.ranged(c)

    def ranged(self, c: Children) -> nodes.Ranged:
        name, _, range = c
        return nodes.Ranged(name.text, range, span=name.span)

    def group(self, c: Children) -> nodes.Expr:
        """Brackets leave no node, but belong to the span of what they hold."""
        inner: nodes.Expr = replace(c[1], span=_over(c))
        return inner

    # --- names

    def names(self, c: Children) -> tuple[nodes.Name, ...]:
        return tuple(self.variable([name]) for name in _without(c, "COMMA"))


def _assignment_fields(
    word: Token | None, target: Any, value: nodes.Expr
) -> dict[str, Any]:
    """The fields of an assignment; it begins with ``word``, if there is one."""
    refuse_depth(value)
    name, indices = target
    span = (word or name).span.to(value.span)
    return {
        "name": name.text,
        "indices": indices,
        "value": value,
        "span": span,
        "name_span": name.span,
    }


def _axis(token: Token) -> str | int:
    if token.type != "NUMBER":
        return token.text
    size = number_value(token)
    if size.denominator != 1 or size > MAX_SIZE:
        headline = f"`{token.text}` is not the size of an axis"
        help = "a size is a whole number; or give the axis a name"
        raise FaultFound(Fault("GS121", headline, token.span, help=help))
    return int(size)


def _not_a_value(token: Token) -> Fault:
    headline = f"`{token.text}` is not a value that an example can give"
    help = "write digits: `x = -0.5`; or `inf`, `-inf`, `nan`, `true`, `false`"
    return Fault("GS127", headline, token.span, help=help)


def _after_keyword(span: Span) -> Fault:
    headline = "an argument without a name comes after one with a name"
    help = "put it before the named ones, or name it too"
    return Fault("GS128", headline, span, help=help)


def _comprehension_fault(
    op: Token,
    given: tuple[nodes.Expr | nodes.Keyword, ...],
    indices: tuple[nodes.Name, ...],
    condition: nodes.Expr | None,
) -> Fault | None:
    """The fault of ``op(given for indices if condition)``, if there is one."""
    name, number = op.text, 2 if op.text == ORDER else 1
    span, form = op.span, "`nth(k, x[j] for j)`: a place, counted from 0, and a value"
    if name not in (*REDUCTIONS, ORDER):
        what = "does not take `… for …`"
        form = f"that form belongs to {', '.join(REDUCTIONS)} and {ORDER}"
    elif len(given) != number or any(isinstance(g, nodes.Keyword) for g in given):
        what = f"takes {'two expressions' if number == 2 else 'one expression'} before `for`"
        form = form if number == 2 else f"write `{name}(… for {indices[0].id})`"
    elif name == ORDER and len(indices) > 1:
        what, span = "orders the elements of one axis", indices[1].span
    elif name == ORDER and condition is not None:
        what, span = "takes no condition", condition.span
        form = "elements that are left out come last as `inf`: `x[j] if … else inf`"
    else:
        return None
    return Fault("GS123", f"`{name}` {what}", span, help=form)


def _not_an_equation(span: Span) -> Fault:
    headline = "after the colon stands one equation"
    help = "write `solve x: left == right`, a conditional side in brackets"
    return Fault("GS131", headline, span, help=help)


# --- depth ----------------------------------------------------------------------------


def refuse_depth(expr: nodes.Expr) -> None:
    """Raise a fault at the outermost piece that lies too deep.

    Long chains are deep trees: ``a + a + …`` has a level for each sign. Later stages
    walk trees without a check of depth. The message for a chain speaks of a chain,
    since its author did not nest anything.
    """
    if expr.span.end - expr.span.start <= MAX_DEPTH:
        return  # each level takes a character at least
    waiting = [(expr, 1, 0)]
    while waiting:
        node, level, links = waiting.pop()
        if level > MAX_DEPTH:
            is_chain = level - links <= MAX_DEPTH // 2
            raise FaultFound((_too_long if is_chain else too_deep)(node.span))
        for child in nodes.parts(node):
            waiting.append((child, level + 1, links + _is_link(node, child)))


def _is_link(node: nodes.Expr, child: nodes.Expr) -> bool:
    """True if ``child`` continues the chain of terms, factors or cases of ``node``."""
    match node, child:
        case nodes.Binary(op=op, left=left), nodes.Binary(op=other):
            return child is left and any(op in s and other in s for s in ("+-", "*/%"))
        case nodes.Conditional(otherwise=otherwise), nodes.Conditional():
            return child is otherwise
    return False


def _too_long(span: Span) -> Fault:
    headline = (
        f"this has more than {MAX_DEPTH} terms, factors or cases in a row, with the levels"
        " inside a term"
    )
    help = (
        "divide it into parts with names: `first = …`, `rest = …`, `y = first + rest`"
    )
    return Fault("GS120", headline, span, help=help)
