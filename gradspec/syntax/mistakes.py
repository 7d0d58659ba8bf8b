"""Explanations and suggested fixes for lines that cannot be parsed.

Each check looks at the tokens around the place where the parser stopped and at the
terminals expected there; the first that recognises its mistake explains it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from gradspec.diagnostics import Fix
from gradspec.source import Span
from gradspec.syntax.reserved import python_fault, reserved_word_fault
from gradspec.syntax.tokens import (
    Fault,
    Line,
    Token,
    shorten,
)

# --- words of other languages ---------------------------------------------------------

_STATEMENTS = {
    "IF": "write `y = a if condition else b`",
    "ELSE": "write `y = a if condition else b`",
    "FOR": "an index runs over its axis by itself: `y[i] = x[i]**2`, `sum(x[i] for"
    " i)`; write a few steps out, `a = …`, `b = …`",
    "NOT": "a line of a body assigns: `y = …`",
    "IMPORT": 'write `from "path.grad" import name`, outside the rules',
}
"""Statements that are none here."""

_ATTRIBUTES = {
    "shape": "a size is the name of an axis: of `x[n]` it is `n`",
    "size": "a size is the name of an axis: of `x[n]` it is `n`",
    "ndim": "the number of axes is in the head of the rule",
    "T": "a transpose is written by its indices: `x[j, i]`",
    "e": "Euler's number is `exp(1)`",
    **dict.fromkeys(("float16", "float32", "float64"), "a rule holds for every dtype"),
}
"""Parts that other languages pick with a dot."""

_DECLARING = frozenset(["let", "var", "val", "const", "local"])
"""Words before a new name in other languages."""

STOPPING = (
    'write `from "gradspec:control/gradients" import stop_gradient` at the top of the'
    " file, and `stop_gradient(x)`"
)
"""The advice for what other libraries call `stop_gradient` or `detach`."""

# --- the place ------------------------------------------------------------------------

_RESERVED = frozenset(
    ["DEF", "FROM", "IMPORT", "IF", "ELSE", "FOR", "AND", "OR", "NOT", "WITH", "IN"]
)
_KINDS = ("NOGRAD", "INT", "BOOL", "STATIC", "PARAM")
_OPERAND_ENDS = frozenset(("NAME", "NUMBER", "RPAR", "RSQB"))
_RESULT_ENDS = ("RPAR", "RSQB", "NUMBER")
_OPERATORS = frozenset(("SIGN", "SCALE", "POWER", "COMPARISON", "AND", "OR"))


@dataclass(frozen=True, slots=True)
class Stop:
    """The place where the parser stopped: at token ``index`` of a line (its end when
    there is no such token), expecting one of some terminals.
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
    def last(self) -> str:
        """The type of the last token that fits."""
        return self.at(-1).type

    @property
    def ended(self) -> bool:
        return self.index >= len(self.line.tokens)

    @property
    def in_rule(self) -> bool:
        """True in the head of a rule."""
        return self.line.first == "RULE"

    def before(self, *types: str) -> bool:
        """True if a token of one of these types comes earlier in the line."""
        return any(token.type in types for token in self.line.tokens[: self.index])

    @property
    def innermost(self) -> str:
        """The type of the bracket that is open here; empty if none is."""
        open_: list[str] = []
        for token in self.line.tokens[: self.index]:
            if token.type in ("LPAR", "LSQB"):
                open_.append(token.type)
            elif token.type in ("RPAR", "RSQB") and open_:
                open_.pop()
        return open_[-1] if open_ else ""

    def fault(
        self, code: str, headline: str, help: str, fixes: tuple[Fix, ...] = ()
    ) -> Fault:
        """A fault at the token that does not fit; for the end of a line, just there."""
        return Fault(code, headline, self.found.span, help=help, fixes=fixes)

    def replacing(self, first: int, text: str, words: str = "") -> Fix:
        """A change of the tokens from a neighbour to the one that does not fit."""
        span = Span(self.at(first).start, self.found.end)
        return Fix(words or f"write `{text.strip()}`", span, text, is_safe=True)


def _is_name(token: Token) -> bool:
    return token.text.isidentifier() and token.type not in _RESERVED


def _begins_operand(token: Token) -> bool:
    return token.type in ("NUMBER", "LPAR") or _is_name(token)


def explain(stop: Stop) -> Fault:
    """The fault of a line that does not parse."""
    for check in _CHECKS:
        fault = check(stop)
        if fault is not None:
            return fault
    if stop.ended:
        headline = "the line ends too early"
    else:
        headline = f"`{shorten(stop.found.text)}` does not fit here"
    expected = _expected_words(stop.expected)
    return stop.fault("GS101", headline, f"expected {expected}" if expected else "")


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


def _expected_words(expected: frozenset[str]) -> str:
    """The expected terminals in words; the ten operators and the ways to begin an
    expression take one word each.
    """
    words: list[str] = []
    if {"NUMBER", "LPAR"} <= expected:
        words.append("an expression")
    elif "NAME" in expected:
        words.append("a name")
    elif "NUMBER" in expected:
        words.append("a number")
    skipped = {"BECAUSE"} if "NAME" in expected else set()  # a name, there
    if "LPAR" in expected and words:
        skipped.add("LPAR")
    if "SCALE" in expected:
        words.append("an operator")
        skipped.update(("LPAR", "LSQB", "DOT", "IF"))
    words.extend(text for name, text in _WORDS.items() if name in expected - skipped)
    *others, last = words or [""]
    return f"{', '.join(others)} or {last}" if others else last


# --- heads ----------------------------------------------------------------------------


def _kind_of_bare_output(stop: Stop) -> Fault | None:
    """``-> m: int:``"""
    if not stop.in_rule or not stop.before("ARROW") or "_NEWLINE" not in stop.expected:
        return None
    is_odd = stop.found.type == "NAME" and stop.at(1).type == "COLON"
    if stop.found.type not in _KINDS and not is_odd:
        return None
    name = next(t for t in reversed(stop.line.tokens[: stop.index]) if _is_name(t))
    headline = "an output with a kind stands in parentheses"
    output = f"({name.text}: {stop.found.text})"
    fix = Fix(f"write `{output}`", name.span.to(stop.found.span), output, is_safe=True)
    return stop.fault("GS124", headline, f"write `-> {output}:`", (fix,))


def _unknown_kind(stop: Stop) -> Fault | None:
    if not stop.in_rule or "NOGRAD" not in stop.expected:
        return None
    if stop.last != "COLON" or "NAME" in stop.expected:
        return None
    if not _is_name(stop.found):
        headline = "a kind is missing after the colon"
    else:
        headline = f"`{stop.found.text}` is not a kind"
    if stop.before("ARROW"):
        help = "an output may be `nograd`, `int` or `bool`"
    else:
        help = (
            "an input may be `nograd`, `int`, `bool`, `param`, `static` or `static int`;"
            " a real one has no kind"
        )
    return stop.fault("GS124", headline, help)


# --- statements -----------------------------------------------------------------------

_NOT_EXACT = {
    "OVERRIDE": ("an override is never rewritten", "leave `exact` out"),
    "SURROGATE": (
        "a surrogate is differentiated, not evaluated",
        "mark the output, `exact y = …`, or a cotangent that you declare, `exact dx = …`",
    ),
}
"""Statements that need no mark, with the reason."""


def _exact_place(stop: Stop) -> Fault | None:
    """``exact y``, ``exact override …``, ``save exact y``, ``y = exact x``"""
    marks = [t for t in stop.line.tokens[: stop.index] if t.type == "EXACT"]
    if not marks:
        return None
    first = stop.line.first == "EXACT" and not stop.before("EQUAL")
    if not first and not (stop.last == "EXACT" and _is_name(stop.found)):
        return None
    headline, help = _NOT_EXACT.get(
        stop.at(1 - stop.index).type if first else stop.line.first,
        ("`exact` marks a definition", "write `exact y = expression`"),
    )
    return Fault("GS750", headline, marks[-1].span, help=help)


def _statement_of_python(stop: Stop) -> Fault | None:
    """``if x > 0:``, ``for i in …:``"""
    help = _STATEMENTS.get(stop.found.type)
    if stop.index != 0 or help is None or stop.at(1).type == "EQUAL":
        return None
    return stop.fault("GS119", f"there is no `{stop.found.text}` statement", help)


def _expression_alone(stop: Stop) -> Fault | None:
    """A line that assigns nothing."""
    if stop.line.first in ("RULE", "DEF", "FROM", "EXAMPLE") or stop.before("EQUAL"):
        return None
    if "EQUAL" not in stop.expected and stop.index != 0:
        return None
    if stop.index and stop.found.type in ("COLON", "NAME", "DOT"):
        return None
    help = f"write `{_FORMS.get(stop.line.first, 'name = expression')}`"
    text = "".join(token.text for token in stop.line.tokens)
    if quotient := re.match(r"(d\w+)/(d\w+)=", text):
        upper, lower = quotient.groups()
        seen = re.search(rf"\b{upper}/(d\w+)", text[quotient.end() :])
        given, it = (
            (seen[1], f"{upper}/{seen[1]}") if seen else (upper, "the cotangent")
        )
        help = f"write `{lower} = {given} * …`: {it} is called `{given}`"
    return Fault("GS101", "this line assigns nothing", stop.line.span, help=help)


_FORMS = {
    "ASSUME": "assume x > 0",
    "SOLVE": "solve x: left == right",
    "SURROGATE": "surrogate y = expression",
    "OVERRIDE": 'override dx = expression because "reason"',
    "EXACT": "exact y = expression",
    "SAVE": "save name, other",
    "RECOMPUTE": "recompute name, other",
    "EXAMPLE": "example x = 2: y = 4",
}
"""The forms of the statements that begin with a word."""

# --- expressions ----------------------------------------------------------------------


def _batch_index(stop: Stop) -> Fault | None:
    """``y[..., i]``"""
    if stop.found.type != "ELLIPSIS" or stop.innermost != "LSQB":
        return None
    headline = (
        "batch axes (`...`) are declared in the head and never written in the body"
    )
    tokens = stop.line.tokens[stop.index + 1 :]
    closing = next((n for n, t in enumerate(tokens) if t.type == "RSQB"), 0)
    rest = ", ".join(t.text for t in tokens[:closing] if t.type != "COMMA")
    name = stop.at(-2).text
    text = f"{name}[{rest}]" if rest else name
    end = tokens[closing].end if tokens else stop.found.end
    fix = Fix(f"write `{text}`", Span(stop.at(-2).start, end), text, is_safe=True)
    return stop.fault("GS119", headline, f"write `{text}`", (fix,))


def _missing_else(stop: Stop) -> Fault | None:
    if "ELSE" not in stop.expected or stop.found.type in ("EQUAL", "IF", "STRING"):
        return None
    if stop.last in _OPERAND_ENDS and _begins_operand(stop.found):
        return None
    opened = [token for token in stop.line.tokens[: stop.index] if token.type == "IF"]
    span = opened[-1].span if opened else stop.found.span
    help = "say what it is otherwise: `a if condition else b`"
    return Fault("GS118", "this `if` has no `else`", span, help=help)


def _of_library(stop: Stop) -> Fault | None:
    """``tf.math.log1p(x)``, ``np.pi``"""
    is_dotted = stop.found.type == "DOT" or stop.at(-2).type == "DOT"
    if not is_dotted or not _is_name(stop.at(-1)):
        return None
    tokens = stop.line.tokens
    first = last = stop.index - 1
    while first > 1 and tokens[first - 1].type == "DOT" and _is_name(tokens[first - 2]):
        first -= 2
    while stop.at(last + 1 - stop.index).type == "DOT" and last + 2 < len(tokens):
        last += 2
    if last - first < 2 or not _is_name(tokens[first]) or not _is_name(tokens[last]):
        return None
    name = tokens[last].text
    is_call = last + 1 < len(tokens) and tokens[last + 1].type == "LPAR"
    dotted = "".join(token.text for token in tokens[first : last + 1])
    help = f"write `{name}(…)` if there is such a built-in"
    if name == "stop_gradient":
        help = STOPPING
    if not is_call:
        help = _ATTRIBUTES.get(name, f"write `{name}`")
    span = tokens[first].span.to(tokens[last].span)
    is_plain = name not in (*_ATTRIBUTES, "stop_gradient")
    fix = Fix(f"write `{name}`", span, name, is_safe=is_call)
    return python_fault(shorten(dotted), span, help, (fix,) if is_plain else ())


def _einsum(stop: Stop) -> Fault | None:
    """``einsum('bi,oi->bo', x, w)``"""
    text = "".join(token.text for token in stop.line.tokens[stop.index - 2 :])
    found = re.match(r"einsum\(['\"]([\w.,]+)(?:->([\w.]*))?['\"]((?:,\w+)+)\)", text)
    if stop.index < 2 or found is None:
        return None
    arrays, parts = found[3].split(",")[1:], found[1].replace(".", "").split(",")
    pairs = zip(arrays, parts, strict=False)
    whole = " * ".join(f"{name}[{', '.join(indices)}]" for name, indices in pairs)
    letters = dict.fromkeys("".join(parts))
    kept = (
        [n for n in letters if found[1].count(n) == 1] if found[2] is None else found[2]
    )
    over = ", ".join(n for n in letters if n not in kept)
    help = f"write `sum({whole} for {over})`" if over else f"write `{whole}`"
    return stop.fault("GS119", "a sum of products names its indices", help)


def _method(stop: Stop) -> Fault | None:
    """``(round(x) - x).detach()``"""
    if stop.found.type != "DOT" or stop.at(2).type != "LPAR":
        return None
    name = stop.at(1).text
    help = STOPPING if name in ("detach", "stop_gradient") else f"write `{name}(…)`"
    return stop.fault("GS119", "a function stands before its argument", help)


def _keyword_as_name(stop: Stop) -> Fault | None:
    """A word of the language, reserved in Python too, where a name must stand."""
    if not stop.found.text.isalpha() or "NAME" not in stop.expected:
        return None
    if stop.found.type in ("NAME", "NUMBER") or stop.at(1).type in ("NAME", "NUMBER"):
        return None
    return reserved_word_fault(stop.found)


def _missing_operator(stop: Stop) -> Fault | None:
    if not (stop.expected & _OPERATORS) or not _begins_operand(stop.found):
        return None
    if stop.last not in _OPERAND_ENDS and not _is_name(stop.at(-1)):
        return None
    found = shorten(stop.found.text)
    help = "write `*` to multiply"
    if _is_name(stop.at(-1)):
        name = shorten(stop.at(-1).text)
        help += f"; if `{name}` is a function, `{name}({found})`"
    place = Span(stop.at(-1).end, stop.found.start)
    fixes = (Fix("write `*` to multiply", place, " * "),)
    return stop.fault("GS125", f"an operator is missing before `{found}`", help, fixes)


# --- the table of mistakes ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Mistake:
    """A mistake that is ``made`` at some places. The messages may show the token that
    does not fit, ``{0.found.text}``, and the one before it, ``{1.text}``. ``fix`` is
    the change that mends it, if that can be said.
    """

    code: str
    headline: str
    help: str
    is_made: Callable[[Stop], bool]
    fix: Callable[[Stop], Fix] | None = None

    def __call__(self, stop: Stop) -> Fault | None:
        if not self.is_made(stop):
            return None
        headline, help = (
            text.format(stop, stop.at(-1)) for text in (self.headline, self.help)
        )
        fixes = () if self.fix is None else (self.fix(stop),)
        return stop.fault(self.code, headline, help, fixes)


_CHECKS: tuple[Callable[[Stop], Fault | None], ...] = (
    _Mistake(
        "GS126",
        "a docstring stands first in the body of a rule, on its own lines",
        "move it there, or make it a comment with `#`",
        lambda stop: stop.found.type == "DOCSTRING",
    ),
    _Mistake(
        "GS101",
        "a def is one line, `def f(x) = expression`",
        "write `=` here; what has statements is a rule, `rule f(x) -> y:`",
        lambda stop: (
            stop.line.first == "DEF"
            and "EQUAL" in stop.expected
            and stop.found.type in ("COLON", "ARROW")
        ),
        lambda stop: stop.replacing(0, " ="),
    ),
    _Mistake(
        "GS101",
        "an import has its path in quotes, and its names one by one",
        'write `from "path.grad" import name, other`',
        lambda stop: (
            (stop.line.first == "FROM" and stop.index == 1)
            or (stop.found.type == "SCALE" and stop.last == "IMPORT")
        ),
    ),
    _kind_of_bare_output,
    _Mistake(
        "GS106",
        "the body of a rule begins on a line of its own",
        "break the line after the colon and indent the body by four spaces",
        lambda stop: stop.in_rule and "_NEWLINE" in stop.expected,
        lambda stop: Fix(
            "break the line",
            Span(stop.at(-1).end, stop.found.start),
            "\n    ",
            is_safe=True,
        ),
    ),
    _Mistake(
        "GS124",
        "the kind of an input stands after its name",
        "write `{0.found.text}: {1.text}`",
        lambda stop: (
            stop.in_rule
            and stop.last in _KINDS
            and _is_name(stop.found)
            and stop.at(-2).type in ("LPAR", "COMMA")
        ),
        lambda stop: stop.replacing(-1, f"{stop.found.text}: {stop.at(-1).text}"),
    ),
    _unknown_kind,
    _Mistake(
        "GS124",
        "an output has no default",
        "assign it in the body of the rule",
        lambda stop: (
            stop.in_rule and stop.found.type == "EQUAL" and stop.before("ARROW")
        ),
    ),
    _Mistake(
        "GS107",
        "the outputs of this rule are missing",
        "write `-> y:` after the inputs, with the names of the outputs",
        lambda stop: stop.in_rule and "ARROW" in stop.expected,
    ),
    _Mistake(
        "GS102",
        "the head of a rule ends with a colon",
        "add `:` here",
        lambda stop: stop.in_rule and "COLON" in stop.expected and stop.ended,
        lambda stop: stop.replacing(0, ":"),
    ),
    _Mistake(
        "GS102",
        "this example does not say what must come out",
        "write `example x = 2: y = 4`, a colon between what is given and what comes out",
        lambda stop: (
            stop.line.first == "EXAMPLE" and "COLON" in stop.expected and stop.ended
        ),
    ),
    _Mistake(
        "GS110",
        "an override says in quotes why it is not the derivative",
        'write `because "gradient reversal"` at the end',
        lambda stop: (
            stop.line.first == "OVERRIDE"
            and ("BECAUSE" in stop.expected or stop.last == "BECAUSE")
            and (stop.ended or stop.found.type == "STRING" or stop.last == "BECAUSE")
        ),
    ),
    _exact_place,
    _statement_of_python,
    _Mistake(
        "GS131",
        "`solve` has one equation after a colon",
        "write `solve x: left == right`",
        lambda stop: (
            stop.line.first == "SOLVE"
            and stop.at(1 - stop.index).type == "NAME"
            and (
                stop.found.type == "EQUAL" or (stop.ended and "COLON" in stop.expected)
            )
        ),
    ),
    _Mistake(
        "GS108",
        "`=` assigns; it does not compare",
        "write `==`",
        lambda stop: (
            stop.found.type == "EQUAL"
            and (
                stop.before("IF", "AND", "OR", "NOT")
                or stop.line.first == "ASSUME"
                or ("COMPARISON" in stop.expected and stop.innermost != "")
            )
        ),
        lambda stop: stop.replacing(0, "=="),
    ),
    _batch_index,
    _Mistake(  # let y = x
        "GS119",
        "`{1.text}` is not needed",
        "a name is made by its assignment: write `{0.found.text} = …`",
        lambda stop: (
            stop.index == 1 and _is_name(stop.found) and stop.at(-1).text in _DECLARING
        ),
        lambda stop: stop.replacing(-1, stop.found.text),
    ),
    _Mistake(  # backward:
        "GS119",
        "a rule has no sections",
        "write the lines below `{1.text}:` like the others: `dx = …` is a cotangent",
        lambda stop: (
            stop.found.type == "COLON"
            and stop.index == 1
            and stop.index + 1 == len(stop.line.tokens)
        ),
    ),
    _Mistake(  # y: float = x
        "GS119",
        "an assignment has no type",
        "write `{1.text} = …`",
        lambda stop: (
            stop.found.type == "COLON" and stop.index == 1 and "EQUAL" in stop.expected
        ),
    ),
    _Mistake(
        "GS119",
        "an index stands for a whole axis; there are no slices",
        "name the index, `x[i]`, and use it where it runs",
        lambda stop: stop.found.type == "COLON" and stop.innermost == "LSQB",
    ),
    _Mistake(
        "GS119",
        "only a name has indices",
        "all indices stand in one bracket, `x[i, j]`; give a result a name first",
        lambda stop: stop.found.type == "LSQB" and stop.last in _RESULT_ENDS,
    ),
    _Mistake(
        "GS127",
        "an example gives numbers, not formulas",
        "write digits, `x = 0.5`, or a vector, `x = [1, -2, inf]`",
        lambda stop: (
            stop.line.first == "EXAMPLE"
            and (
                ("NUMBER" in stop.expected and stop.last != "SIGN")
                or stop.found.type in (*_OPERATORS, "LPAR", "DOT")
            )
        ),
    ),
    _Mistake(
        "GS119",
        "there are no lists in an expression",
        "write the formula of one element: `y[i] = …`",
        lambda stop: stop.found.type == "LSQB" and "NUMBER" in stop.expected,
    ),
    _Mistake(
        "GS119",
        "`in` gives an index its range, where the index is introduced",
        "write `sum(… for j in k)` or `u[j in k] = …`; numbers are compared: `0 <= i`",
        lambda stop: stop.found.type == "IN" and "NAME" not in stop.expected,
    ),
    _missing_else,
    _Mistake(
        "GS126",
        "a text stands alone here",
        'a docstring has three quotes: `"""`',
        lambda stop: stop.found.type == "STRING" and stop.index == 0,
        lambda stop: stop.replacing(0, f'"""{stop.found.text[1:-1]}"""'),
    ),
    _einsum,
    _Mistake(
        "GS119",
        "a text has no place in an expression",
        "an expression is made of numbers and names",
        lambda stop: (
            stop.found.type == "STRING"
            and ({"NAME", "NUMBER"} <= stop.expected or stop.last in _OPERAND_ENDS)
        ),
    ),
    _of_library,
    _method,
    _Mistake(
        "GS119",
        "only a rule has parts that a `.` picks",
        "write `rule.output(arguments)`; built-ins have short names, `exp(x)`, sizes are"
        " names, `n`",
        lambda stop: stop.found.type == "DOT",
    ),
    _Mistake(  # for (i, j)
        "GS119",
        "`for` is followed by the names of indices",
        "write `for j` or `for i, j`",
        lambda stop: stop.last == "FOR" and "NAME" in stop.expected,
    ),
    _keyword_as_name,
    _missing_operator,
    _Mistake(
        "GS101",
        "one line assigns one name",
        "write each assignment on a line of its own",
        lambda stop: (
            (stop.found.type == "EQUAL" and stop.before("EQUAL"))
            or (  # z, w = …
                stop.found.type == "COMMA"
                and stop.index == 1
                and "EQUAL" in stop.expected
            )
        ),
    ),
    _expression_alone,
)
