"""Mistakes inside expressions: Python and other languages allow more there."""

from __future__ import annotations

from collections.abc import Callable

from gradspec.syntax.stop import (
    OPERAND_ENDS,
    OPERATORS,
    Stop,
    begins_operand,
    in_brackets,
    innermost,
    is_name,
)
from gradspec.syntax.tokens import Fault, Token, shortened

# --- expressions ----------------------------------------------------------------------


def _equality(stop: Stop) -> Fault | None:
    """``=`` where a condition is."""
    if stop.found.type != "EQUAL":
        return None
    conditional = stop.before("IF", "AND", "OR", "NOT") or stop.line.first == "ASSUME"
    if not conditional and not ("COMPARISON" in stop.expected and in_brackets(stop)):
        return None
    return stop.fault("GS108", "`=` assigns; it does not compare", "write `==`")


def _missing_else(stop: Stop) -> Fault | None:
    if "ELSE" not in stop.expected or stop.found.type in ("EQUAL", "IF", "STRING"):
        return None
    if stop.at(-1).type in OPERAND_ENDS and begins_operand(stop.found):
        return None
    headline = "this `if` has no `else`"
    opened = [token for token in stop.line.tokens[: stop.index] if token.type == "IF"]
    span = opened[-1].span if opened else stop.found.span
    help = "say what it is otherwise: `a if condition else b`"
    return Fault("GS118", headline, span, help=help)


def _string_place(stop: Stop) -> Fault | None:
    if stop.found.type != "STRING":
        return None
    if stop.index == 0:
        headline = "a text stands alone here"
        return stop.fault("GS126", headline, 'a docstring has three quotes: `"""`')
    if {"NAME", "NUMBER"} <= stop.expected or stop.at(-1).type in OPERAND_ENDS:
        headline = "a text has no place in an expression"
        return stop.fault(
            "GS119", headline, "an expression is made of numbers and names"
        )
    return None


def _slice(stop: Stop) -> Fault | None:
    if stop.found.type != "COLON" or innermost(stop) != "LSQB":
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
    is_dotted = stop.found.type == "DOT" or stop.at(-2).type == "DOT"
    named = _of_library(stop) if is_dotted and is_name(stop.at(-1)) else None
    if named is not None:
        return named
    if stop.found.type != "DOT":
        return None
    headline = "only a rule has parts that a `.` picks"
    help = "write `rule.output(arguments)`; built-ins have short names, `exp(x)`, sizes are names, `n`"
    return stop.fault("GS119", headline, help)


_ATTRIBUTES = {
    "shape": "a size is the name of an axis: of `x[n]` it is `n`",
    "size": "a size is the name of an axis: of `x[n]` it is `n`",
    "ndim": "the number of axes is in the head of the rule",
    "T": "a transpose is written by its indices: `x[j, i]`",
    "e": "Euler's number is `exp(1)`",
}


def _of_library(stop: Stop) -> Fault | None:
    """``tf.math.log1p(x)``, ``np.pi``"""
    tokens = stop.line.tokens
    first = last = stop.index - 1
    while first > 1 and tokens[first - 1].type == "DOT" and is_name(tokens[first - 2]):
        first -= 2
    while stop.at(last + 1 - stop.index).type == "DOT" and last + 2 < len(tokens):
        last += 2
    if last - first < 2 or not is_name(tokens[first]) or not is_name(tokens[last]):
        return None
    name = tokens[last].text
    is_call = last + 1 < len(tokens) and tokens[last + 1].type == "LPAR"
    dotted = "".join(token.text for token in tokens[first : last + 1])
    headline = f"`{shortened(dotted)}` is Python, not part of this language"
    help = f"write `{name}(…)` if there is such a built-in"
    if not is_call:
        help = _ATTRIBUTES.get(name, f"write `{name}`")
    span = tokens[first].span.to(tokens[last].span)
    return Fault("GS119", headline, span, help=help)


def _batch_index(stop: Stop) -> Fault | None:
    """``y[..., i]``"""
    if stop.found.type != "ELLIPSIS" or innermost(stop) != "LSQB":
        return None
    headline = (
        "batch axes (`...`) are declared in the head and never written in the body"
    )
    tokens = stop.line.tokens[stop.index + 1 :]
    closing = next((n for n, t in enumerate(tokens) if t.type == "RSQB"), 0)
    rest = " ".join(t.text for t in tokens[:closing] if t.type != "COMMA")
    name = stop.at(-2).text
    help = f"write `{name}[{rest.replace(' ', ', ')}]`" if rest else f"write `{name}`"
    return stop.fault("GS119", headline, help)


def _annotation(stop: Stop) -> Fault | None:
    """``y: float = x``"""
    if stop.found.type != "COLON" or stop.index != 1 or "EQUAL" not in stop.expected:
        return None
    headline = "an assignment has no type"
    return stop.fault("GS119", headline, f"write `{stop.at(-1).text} = …`")


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
    if not (stop.expected & OPERATORS) or not begins_operand(stop.found):
        return None
    if stop.at(-1).type in OPERAND_ENDS or is_name(stop.at(-1)):
        found = shortened(stop.found.text)
        headline = f"an operator is missing before `{found}`"
        help = "write `*` to multiply"
        if is_name(stop.at(-1)):
            name = shortened(stop.at(-1).text)
            help += f"; if `{name}` is a function, `{name}({found})`"
        return stop.fault("GS125", headline, help)
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
    after_value = stop.found.type in (*OPERATORS, "LPAR", "DOT")
    if not expects_value and not after_value:
        return None
    headline = "an example gives numbers, not formulas"
    help = "write digits, `x = 0.5`, or a vector, `x = [1, -2, inf]`"
    return stop.fault("GS127", headline, help)


CHECKS: tuple[Callable[[Stop], Fault | None], ...] = (
    _equality,
    _batch_index,
    _annotation,
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
)
