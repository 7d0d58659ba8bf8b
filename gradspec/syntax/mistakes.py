"""What a line that cannot be parsed most likely means, and how to mend it.

Each check looks at the tokens around the place where the parser stopped and at what it
expected there; the first that recognises its mistake explains it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gradspec.syntax.blocks import unexpected_indent
from gradspec.syntax.grammar import Unexpected
from gradspec.syntax.tokens import Chunk, Fault, FaultFound, Line, Token

_ENDS = frozenset(("NAME", "NUMBER", "RPAR", "RSQB"))
_OPERATORS = frozenset(("SIGN", "SCALE", "POWER", "COMPARISON", "AND", "OR"))
_WORDS = {
    "_NEWLINE": "the end of the line",
    "COLON": "`:`",
    "COMMA": "`,`",
    "EQUAL": "`=`",
    "ARROW": "`->`",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "LSQB": "`[`",
    "RSQB": "`]`",
    "ELLIPSIS": "`...`",
    "DOT": "`.`",
    "IF": "`if`",
    "ELSE": "`else`",
    "FOR": "`for`",
    "IMPORT": "`import`",
    "BECAUSE": "`because`",
    "STRING": "a text in quotes",
}


@dataclass(frozen=True, slots=True)
class Stop:
    """Where the parser stopped: at token ``index`` of a line (its end when there is no
    such token), expecting one of some terminals.
    """

    line: Line
    index: int
    expected: frozenset[str]

    @property
    def found(self) -> Token:
        """The token that does not fit."""
        tokens = self.line.tokens
        if self.index < len(tokens):
            return tokens[self.index]
        end = tokens[-1].end
        return Token("_NEWLINE", "", end, end)

    def at(self, offset: int) -> Token:
        """A neighbour of the token that does not fit; an empty one beyond the line."""
        place = self.index + offset
        if 0 <= place < len(self.line.tokens):
            return self.line.tokens[place]
        return Token("", "", self.found.start, self.found.end)

    @property
    def ended(self) -> bool:
        return self.index >= len(self.line.tokens)

    def before(self, *types: str) -> bool:
        """Whether a token of one of these types comes earlier in the line."""
        return any(token.type in types for token in self.line.tokens[: self.index])

    def fault(self, code: str, headline: str, help: str) -> Fault:
        """A fault at the token that does not fit; for the end of a line, just there."""
        return Fault(code, headline, self.found.span, help=help)


def explain(stop: Stop) -> Fault:
    """The fault of a line that does not parse."""
    for check in _CHECKS:
        fault = check(stop)
        if fault is not None:
            return fault
    return _generic(stop)


def outside(line: Line) -> Fault:
    """A line at the margin that begins no item."""
    headline = "this line stands outside every rule"
    help = "at the margin stand `rule …`, `def …` and `from … import …`"
    if any(token.type == "ARROW" for token in line.tokens):
        help = "a rule begins with `rule`: `rule f(x) -> y:`"
    elif line.first == "DOCSTRING":
        headline = "a docstring belongs to a rule"
        help = "what concerns the whole file is said in comments, `# …`"
    elif any(token.type == "EQUAL" for token in line.tokens):
        help = "indent it by four spaces to make it part of the rule above"
    return Fault("GS112", headline, line.span, help=help)


def explain_item(chunk: Chunk, failure: Unexpected | FaultFound) -> Fault:
    """The fault of an item each of whose lines is right."""
    statements = [line for line in chunk.body if line.first != "DOCSTRING"]
    if isinstance(failure, FaultFound):
        return failure.fault
    if chunk.head.first == "RULE" and not statements:
        help = "write what it computes below it, indented: `y = x**2`"
        name = chunk.head.tokens[1]
        return Fault(
            "GS111", f"the rule `{name.text}` has no body", name.span, help=help
        )
    if chunk.head.first != "RULE" and chunk.body:
        return unexpected_indent(chunk.body[0])
    return Fault("GS101", "this item cannot be read", chunk.head.span)


# --- the head of an item --------------------------------------------------------------


def _kind_of_bare_output(stop: Stop) -> Fault | None:
    """``-> m: int:``"""
    words = ("NOGRAD", "INT", "BOOL", "STATIC", "NAME")
    if stop.line.first != "RULE" or not stop.before("ARROW"):
        return None
    if "_NEWLINE" in stop.expected and stop.found.type in words:
        if stop.at(1).type != "COLON" and stop.found.type == "NAME":
            return None
        name = next(t for t in reversed(stop.line.tokens[: stop.index]) if _named(t))
        headline = "an output with a kind stands in parentheses"
        help = f"write `-> ({name.text}: {stop.found.text}):`"
        return stop.fault("GS124", headline, help)
    return None


def _body_beside_head(stop: Stop) -> Fault | None:
    if stop.line.first != "RULE" or "_NEWLINE" not in stop.expected:
        return None
    headline = "the body of a rule begins on a line of its own"
    help = "break the line after the colon and indent the body by four spaces"
    return stop.fault("GS106", headline, help)


def _unknown_kind(stop: Stop) -> Fault | None:
    if stop.line.first != "RULE" or "NOGRAD" not in stop.expected:
        return None
    if stop.at(-1).type != "COLON" or "NAME" in stop.expected:
        return None
    shown = f"`{stop.found.text}`" if stop.found.text else "this"
    if stop.before("ARROW"):
        help = "an output may be `nograd`, `int` or `bool`"
    else:
        help = "an input may be `nograd`, `int`, `bool`, `static` or `static int`"
    return stop.fault("GS124", f"{shown} is not a kind", help)


def _default_of_output(stop: Stop) -> Fault | None:
    if (
        stop.line.first == "RULE"
        and stop.found.type == "EQUAL"
        and stop.before("ARROW")
    ):
        return stop.fault(
            "GS124", "an output has no default", "assign it in the body of the rule"
        )
    return None


def _missing_arrow(stop: Stop) -> Fault | None:
    if stop.line.first != "RULE" or "ARROW" not in stop.expected:
        return None
    headline = "the outputs of this rule are missing"
    help = "write `-> y:` after the inputs, with the names of the outputs"
    return stop.fault("GS107", headline, help)


def _missing_colon(stop: Stop) -> Fault | None:
    if "COLON" not in stop.expected or not stop.ended:
        return None
    if stop.line.first == "RULE":
        headline, help = "the head of a rule ends with a colon", "add `:` here"
        return stop.fault("GS102", headline, help)
    if stop.line.first == "EXAMPLE":
        headline = "this example does not say what must come out"
        help = "write `example x = 2: y = 4`, a colon between what is given and what comes out"
        return stop.fault("GS102", headline, help)
    return None


def _python_def(stop: Stop) -> Fault | None:
    if stop.line.first != "DEF" or "EQUAL" not in stop.expected:
        return None
    if stop.found.type not in ("COLON", "ARROW"):
        return None
    headline = "a def is one line, `def f(x) = expression`"
    help = "write `=` here; what has statements is a rule, `rule f(x) -> y:`"
    return stop.fault("GS101", headline, help)


def _import_form(stop: Stop) -> Fault | None:
    if stop.line.first != "FROM":
        return None
    if stop.index == 1:
        headline = "the file to import from is named by its path in quotes"
    elif stop.found.type == "SCALE" and stop.at(-1).type == "IMPORT":
        headline = "what is imported is named, one by one"
    else:
        return None
    return stop.fault("GS101", headline, 'write `from "path.grad" import name, other`')


# --- statements -----------------------------------------------------------------------


def _missing_reason(stop: Stop) -> Fault | None:
    if stop.line.first != "OVERRIDE":
        return None
    if "BECAUSE" in stop.expected and (stop.ended or stop.found.type == "STRING"):
        headline = "an override says why it is not the derivative"
    elif stop.at(-1).type == "BECAUSE" and "STRING" in stop.expected:
        headline = "the reason of an override stands in quotes"
    else:
        return None
    return stop.fault(
        "GS110", headline, 'write `because "gradient reversal"` at the end'
    )


def _equality(stop: Stop) -> Fault | None:
    """``=`` where a condition is."""
    if stop.found.type != "EQUAL":
        return None
    conditional = stop.before("IF", "AND", "OR", "NOT") or stop.line.first == "ASSUME"
    if not conditional and not ("COMPARISON" in stop.expected and _in_brackets(stop)):
        return None
    return stop.fault("GS108", "`=` assigns; it does not compare", "write `==`")


def _second_equal(stop: Stop) -> Fault | None:
    if stop.found.type == "EQUAL" and stop.before("EQUAL"):
        headline = "one line assigns one name"
        return stop.fault(
            "GS101", headline, "write each assignment on a line of its own"
        )
    return None


def _several_targets(stop: Stop) -> Fault | None:
    """``z, w = …``"""
    if stop.found.type == "COMMA" and stop.index == 1 and "EQUAL" in stop.expected:
        headline = "one line assigns one name"
        return stop.fault(
            "GS101", headline, "write each assignment on a line of its own"
        )
    return None


def _missing_else(stop: Stop) -> Fault | None:
    if "ELSE" not in stop.expected or stop.found.type in ("EQUAL", "IF", "STRING"):
        return None
    if stop.at(-1).type in _ENDS and _begins_operand(stop.found):
        return None
    headline = "this `if` has no `else`"
    opened = [token for token in stop.line.tokens[: stop.index] if token.type == "IF"]
    span = opened[-1].span if opened else stop.found.span
    help = "say what it is otherwise: `a if condition else b`"
    return Fault("GS118", headline, span, help=help)


def _statement_of_python(stop: Stop) -> Fault | None:
    """``if x > 0:``, ``for i in …:``"""
    if stop.index != 0 or stop.found.type not in ("IF", "ELSE", "FOR", "NOT", "IMPORT"):
        return None
    help = {
        "IF": "write `y = a if condition else b`",
        "ELSE": "write `y = a if condition else b`",
        "FOR": "an index runs by itself: `y[i] = x[i]**2`, `sum(x[i] for i)`",
        "IMPORT": 'write `from "path.grad" import name`, outside the rules',
    }.get(stop.found.type, "a line of a body assigns: `y = …`")
    headline = f"there is no `{stop.found.text}` statement"
    return stop.fault("GS119", headline, help)


def _docstring_place(stop: Stop) -> Fault | None:
    if stop.found.type != "DOCSTRING":
        return None
    headline = "a docstring stands first in the body of a rule, on its own lines"
    return stop.fault("GS126", headline, "move it there, or make it a comment with `#`")


def _string_place(stop: Stop) -> Fault | None:
    if stop.found.type != "STRING":
        return None
    if stop.index == 0:
        headline = "a text stands alone here"
        return stop.fault("GS126", headline, 'a docstring has three quotes: `"""`')
    if {"NAME", "NUMBER"} <= stop.expected or stop.at(-1).type in _ENDS:
        headline = "a text has no place in an expression"
        return stop.fault(
            "GS119", headline, "an expression is made of numbers and names"
        )
    return None


def _expression_alone(stop: Stop) -> Fault | None:
    """A line that assigns nothing."""
    if stop.line.first in ("RULE", "DEF", "FROM", "EXAMPLE") or stop.before("EQUAL"):
        return None
    if "EQUAL" not in stop.expected and stop.index != 0:
        return None
    if stop.index and stop.found.type in ("COLON", "NAME", "DOT"):
        return None
    headline = "this line assigns nothing"
    help = "write `name = expression`"
    return Fault("GS101", headline, stop.line.span, help=help)


# --- expressions ----------------------------------------------------------------------


def _slice(stop: Stop) -> Fault | None:
    if stop.found.type != "COLON" or _innermost(stop) != "LSQB":
        return None
    headline = "an index stands for a whole axis; there are no slices"
    return stop.fault(
        "GS119", headline, "name the index, `x[i]`, and use it where it runs"
    )


def _second_subscript(stop: Stop) -> Fault | None:
    if stop.found.type != "LSQB" or stop.at(-1).type not in ("RPAR", "RSQB", "NUMBER"):
        return None
    headline = "only a name has indices"
    help = "all indices stand in one bracket, `x[i, j]`; give a result a name first"
    return stop.fault("GS119", headline, help)


def _list(stop: Stop) -> Fault | None:
    if stop.found.type != "LSQB" or "NUMBER" not in stop.expected:
        return None
    headline = "there are no lists in an expression"
    return stop.fault("GS119", headline, "write the formula of one element: `y[i] = …`")


def _attribute(stop: Stop) -> Fault | None:
    if stop.found.type == "DOT":
        headline = "only a rule has parts that a `.` picks"
    elif stop.at(-2).type == "DOT" and "LPAR" in stop.expected:
        headline = "there are no attributes"
    else:
        return None
    help = "write `rule.output(arguments)`; built-ins have short names, `exp(x)`, sizes are names, `n`"
    return stop.fault("GS119", headline, help)


def _called_result(stop: Stop) -> Fault | None:
    if stop.found.type == "LPAR" and stop.at(-1).type in ("RPAR", "RSQB", "NUMBER"):
        return stop.fault(
            "GS125", "an operator is missing here", "write `*` to multiply"
        )
    return None


def _index_range(stop: Stop) -> Fault | None:
    """``for (i, j)``, ``for 1``"""
    if stop.at(-1).type == "FOR" and "NAME" in stop.expected:
        headline = "`for` is followed by the names of indices"
        return stop.fault("GS119", headline, "write `for j` or `for i, j`")
    return None


def _missing_operator(stop: Stop) -> Fault | None:
    if not (stop.expected & _OPERATORS) or not _begins_operand(stop.found):
        return None
    if stop.at(-1).type in _ENDS or _named(stop.at(-1)):
        headline = f"an operator is missing before `{_short(stop.found)}`"
        return stop.fault("GS125", headline, "write `*` to multiply")
    return None


def _keyword_as_name(stop: Stop) -> Fault | None:
    """A word of the language, reserved in Python too, where a name must stand."""
    if not stop.found.text.isalpha() or "NAME" not in stop.expected:
        return None
    if stop.found.type in ("NAME", "NUMBER") or stop.at(1).type in ("NAME", "NUMBER"):
        return None
    return reserved(stop.found)


def reserved(token: Token) -> Fault:
    """A keyword of Python as a name."""
    headline = f"`{token.text}` is a keyword of Python and cannot be a name"
    help = f"rename it, to `{token.text}_` for example"
    return Fault("GS115", headline, token.span, help=help)


def _example_value(stop: Stop) -> Fault | None:
    if stop.line.first != "EXAMPLE":
        return None
    expects_value = "NUMBER" in stop.expected and stop.at(-1).type != "SIGN"
    after_value = stop.found.type in (*_OPERATORS, "LPAR", "DOT")
    if not expects_value and not after_value:
        return None
    headline = "an example gives numbers, not formulas"
    help = "write digits, `x = 0.5`, or a vector, `x = [1, -2, inf]`"
    return stop.fault("GS127", headline, help)


def _generic(stop: Stop) -> Fault:
    if stop.ended:
        found = "the line ends too early"
    else:
        found = f"`{_short(stop.found)}` does not fit here"
    expected = _listed(stop.expected)
    help = f"expected {expected}" if expected else ""
    return stop.fault("GS101", found, help)


# --- pieces ---------------------------------------------------------------------------


def _listed(expected: frozenset[str]) -> str:
    """What could stand there, the ten operators and the ways to begin an expression
    in a word each.
    """
    words: list[str] = []
    if {"NUMBER", "LPAR"} <= expected:
        words.append("an expression")
    elif "NAME" in expected:
        words.append("a name")
    elif "NUMBER" in expected:
        words.append("a number")
    if expected & _OPERATORS:
        words.append("an operator")
    skipped = {"LPAR"} if {"NUMBER", "LPAR"} <= expected else set()
    words.extend(text for name, text in _WORDS.items() if name in expected - skipped)
    return (
        words[0]
        if len(words) == 1
        else ", ".join(words[:-1]) + " or " + words[-1]
        if words
        else ""
    )


def _named(token: Token) -> bool:
    return token.text.isidentifier() and token.type not in _RESERVED


_RESERVED = frozenset(
    ["DEF", "FROM", "IMPORT", "IF", "ELSE", "FOR", "AND", "OR", "NOT"]
)


def _begins_operand(token: Token) -> bool:
    return token.type in ("NUMBER", "LPAR") or _named(token)


def _short(token: Token) -> str:
    text = token.text.split("\n")[0]
    return text if len(text) <= 24 else text[:20] + "…"


def _in_brackets(stop: Stop) -> bool:
    return _innermost(stop) != ""


def _innermost(stop: Stop) -> str:
    """The type of the bracket that is open where the parser stopped."""
    open_: list[str] = []
    for token in stop.line.tokens[: stop.index]:
        if token.type in ("LPAR", "LSQB"):
            open_.append(token.type)
        elif token.type in ("RPAR", "RSQB") and open_:
            open_.pop()
    return open_[-1] if open_ else ""


_CHECKS: Sequence[Callable[[Stop], Fault | None]] = (
    _docstring_place,
    _python_def,
    _import_form,
    _kind_of_bare_output,
    _body_beside_head,
    _unknown_kind,
    _default_of_output,
    _missing_arrow,
    _missing_colon,
    _missing_reason,
    _statement_of_python,
    _equality,
    _second_equal,
    _several_targets,
    _slice,
    _second_subscript,
    _example_value,
    _list,
    _missing_else,
    _string_place,
    _attribute,
    _index_range,
    _called_result,
    _keyword_as_name,
    _missing_operator,
    _expression_alone,
)
