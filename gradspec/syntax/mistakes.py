"""Explanations and suggested fixes for lines that cannot be parsed.

Each check looks at the tokens around the place where the parser stopped and at the
terminals expected there; the first that recognises its mistake explains it.
"""

from __future__ import annotations

from collections.abc import Callable

from gradspec.syntax import misreadings
from gradspec.syntax.blocks import unexpected_indent
from gradspec.syntax.grammar import Unexpected
from gradspec.syntax.stop import Stop, generic, is_name
from gradspec.syntax.tokens import Chunk, Fault, FaultFound, Line


def explain(stop: Stop) -> Fault:
    """The fault of a line that does not parse."""
    for check in _CHECKS:
        fault = check(stop)
        if fault is not None:
            return fault
    return generic(stop)


def outside(line: Line) -> Fault:
    """A line at the margin that begins no item."""
    headline = "this line stands outside every rule"
    help = "at the margin stand `rule …`, `def …` and `from … import …`"
    if any(token.type == "ARROW" for token in line.tokens):
        help = "a rule begins with `rule`: `rule f(x) -> y:`"
    elif line.first == "DOCSTRING":
        headline = "a docstring belongs to a rule"
        help = "what concerns the whole file is said in comments, `# …`"
    elif line.first == "EXACT":
        headline = "`exact` marks a definition in the body of a rule"
        help = "a def is put in place where it is used; mark what it is used for"
        return Fault("GS750", headline, line.tokens[0].span, help=help)
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
    words = ("NOGRAD", "INT", "BOOL", "STATIC", "PARAM", "NAME")
    if stop.line.first != "RULE" or not stop.before("ARROW"):
        return None
    if "_NEWLINE" in stop.expected and stop.found.type in words:
        if stop.at(1).type != "COLON" and stop.found.type == "NAME":
            return None
        name = next(t for t in reversed(stop.line.tokens[: stop.index]) if is_name(t))
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


def _kind_before_name(stop: Stop) -> Fault | None:
    """``param beta = 1.0``"""
    kinds = ("NOGRAD", "INT", "BOOL", "STATIC", "PARAM")
    if stop.line.first != "RULE" or stop.at(-1).type not in kinds:
        return None
    if not is_name(stop.found) or stop.at(-2).type not in ("LPAR", "COMMA"):
        return None
    headline = "the kind of an input stands after its name"
    help = f"write `{stop.found.text}: {stop.at(-1).text}`"
    return stop.fault("GS124", headline, help)


def _unknown_kind(stop: Stop) -> Fault | None:
    if stop.line.first != "RULE" or "NOGRAD" not in stop.expected:
        return None
    if stop.at(-1).type != "COLON" or "NAME" in stop.expected:
        return None
    if not is_name(stop.found):
        headline = "a kind is missing after the colon"
    else:
        headline = f"`{stop.found.text}` is not a kind"
    if stop.before("ARROW"):
        help = "an output may be `nograd`, `int` or `bool`"
    else:
        help = (
            "an input may be `nograd`, `int`, `bool`, `param`, `static` or `static int`"
        )
    return stop.fault("GS124", headline, help)


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


def _exact_place(stop: Stop) -> Fault | None:
    """``exact y``, ``exact override …``, ``save exact y``, ``y = exact x``"""
    marks = [t for t in stop.line.tokens[: stop.index] if t.type == "EXACT"]
    if not marks:
        return None
    first = stop.line.first == "EXACT" and not stop.before("EQUAL")
    if not first and not (stop.at(-1).type == "EXACT" and is_name(stop.found)):
        return None
    headline, help = _NOT_EXACT.get(
        stop.at(1 - stop.index).type if first else stop.line.first,
        ("`exact` marks a definition", "write `exact y = expression`"),
    )
    return Fault("GS750", headline, marks[-1].span, help=help)


_NOT_EXACT = {
    "OVERRIDE": (
        "an override is never rewritten",
        "leave `exact` out",
    ),
    "SURROGATE": (
        "a surrogate is differentiated, not evaluated",
        "mark the output, `exact y = …`, or a cotangent that you declare, `exact dx = …`",
    ),
}
"""Statements that need no mark, with the reason."""


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


def _statement_of_python(stop: Stop) -> Fault | None:
    """``if x > 0:``, ``for i in …:``"""
    if stop.index != 0 or stop.found.type not in ("IF", "ELSE", "FOR", "NOT", "IMPORT"):
        return None
    if stop.at(1).type == "EQUAL":
        return None
    help = {
        "IF": "write `y = a if condition else b`",
        "ELSE": "write `y = a if condition else b`",
        "FOR": "an index runs over its axis by itself: `y[i] = x[i]**2`, `sum(x[i] for"
        " i)`; write a few steps out, `a = …`, `b = …`",
        "IMPORT": 'write `from "path.grad" import name`, outside the rules',
    }.get(stop.found.type, "a line of a body assigns: `y = …`")
    headline = f"there is no `{stop.found.text}` statement"
    return stop.fault("GS119", headline, help)


def _docstring_place(stop: Stop) -> Fault | None:
    if stop.found.type != "DOCSTRING":
        return None
    headline = "a docstring stands first in the body of a rule, on its own lines"
    return stop.fault("GS126", headline, "move it there, or make it a comment with `#`")


def _expression_alone(stop: Stop) -> Fault | None:
    """A line that assigns nothing."""
    if stop.line.first in ("RULE", "DEF", "FROM", "EXAMPLE") or stop.before("EQUAL"):
        return None
    if "EQUAL" not in stop.expected and stop.index != 0:
        return None
    if stop.index and stop.found.type in ("COLON", "NAME", "DOT"):
        return None
    headline = "this line assigns nothing"
    help = f"write `{_FORMS.get(stop.line.first, 'name = expression')}`"
    return Fault("GS101", headline, stop.line.span, help=help)


_FORMS = {
    "ASSUME": "assume x > 0",
    "SURROGATE": "surrogate y = expression",
    "OVERRIDE": 'override dx = expression because "reason"',
    "EXACT": "exact y = expression",
    "SAVE": "save name, other",
    "RECOMPUTE": "recompute name, other",
    "EXAMPLE": "example x = 2: y = 4",
}
"""The forms of the statements that begin with a word."""

_CHECKS: tuple[Callable[[Stop], Fault | None], ...] = (
    _docstring_place,
    _python_def,
    _import_form,
    _kind_of_bare_output,
    _body_beside_head,
    _kind_before_name,
    _unknown_kind,
    _default_of_output,
    _missing_arrow,
    _missing_colon,
    _missing_reason,
    _exact_place,
    _statement_of_python,
    *misreadings.CHECKS,
    _second_equal,
    _several_targets,
    _expression_alone,
)
