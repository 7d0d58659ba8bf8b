"""Names that cannot be names: words of Python, and those that begin with an underscore."""

from __future__ import annotations

import keyword
from collections.abc import Sequence

from gradspec.diagnostics import Fix
from gradspec.source import Span
from gradspec.syntax.tokens import ITEM_WORDS, Chunk, Fault, Token, shorten

# A rule becomes a Python function and its inputs the arguments, so that they must be
# names there too. Some keywords are no names at all but forms of Python that a user
# expects here; those are recognised by the tokens beside them.

_KEYWORDS = {
    "lambda": "there are no anonymous functions: write `def f(x) = expression`",
    "is": "compare with `==`",
    "return": "a rule assigns its outputs by name: `y = expression`",
    "yield": "a rule assigns its outputs by name: `y = expression`",
    "pass": "a rule assigns its outputs: `y = expression`",
    "while": "there are no loops; an index runs by itself: `sum(x[i] for i)`",
    "class": "a file holds rules: `rule f(x) -> y:`",
    "import": 'write `from "path.grad" import name`',
    "as": "functions of Python cannot be imported; `exp`, `log` … are built in",
    "elif": "write `a if c else b if d else e`",
    "assert": "what holds of the inputs is said by `assume x > 0`",
    "True": "write the condition itself; in an example write `true`",
    "False": "write the condition itself; in an example write `false`",
    "None": "an input without a gradient is declared in the header: `t: nograd`",
}


def explain_names(chunks: Sequence[Chunk], suspects: Sequence[Token]) -> list[Fault]:
    """A fault for each suspect, once for each item and name."""
    wanted, none = set(suspects), Token("", "", 0, 0)
    faults: list[Fault] = []
    for chunk in chunks if wanted else ():
        seen: set[str] = set()
        body = chunk.body if chunk.head.first in ITEM_WORDS else ()
        for line in (chunk.head, *body):
            if line.first == "FOR":  # told as the statement that it is
                continue
            tokens = (none, *line.tokens, none)
            for before, token, after in zip(
                tokens, tokens[1:], tokens[2:], strict=False
            ):
                if token in wanted and token.text not in seen:
                    seen.add(token.text)
                    faults.append(_no_name(token, before, after))
    return faults


def _no_name(token: Token, before: Token, after: Token) -> Fault:
    if token.text[0] == "_":
        bare = token.text.strip("_")
        bare += "_" if keyword.iskeyword(bare) else ""
        is_short = bare.isidentifier() and len(bare) <= 40
        text = shorten(token.text)
        headline = f"`{text}` begins with an underscore: such names are ours"
        help = f"write `{bare}`" if is_short else "begin it with a letter"
        return Fault("GS116", headline, token.span, help=help)
    if token.text in _KEYWORDS and _is_form(token, before, after):
        help = _KEYWORDS[token.text].format(before.text if before.text != ")" else "j")
        equal = Fix("write `==`", token.span, "==", is_safe=True)
        fixes = (equal,) if token.text == "is" else ()
        return python_fault(token.text, token.span, help, fixes)
    return reserved_word_fault(token)


def _is_form(token: Token, before: Token, after: Token) -> bool:
    """True if the keyword is used as Python uses it, not as a name."""
    operand = ("NAME", "NUMBER", "STRING", "NOT", "RPAR", "RSQB")
    if token.text == "is":
        return before.type in operand
    is_statement = before.type == "" and after.type in ("", "COLON")
    return token.text.istitle() or after.type in operand[:4] or is_statement


def python_fault(
    text: str, span: Span, help: str, fixes: tuple[Fix, ...] = ()
) -> Fault:
    headline = f"`{text}` is Python, not part of this language"
    return Fault("GS119", headline, span, help=help, fixes=fixes)


def reserved_word_fault(token: Token) -> Fault:
    headline = f"`{token.text}` is a keyword of Python and cannot be a name"
    help = f"rename it, to `{token.text}_` for example"
    return Fault("GS115", headline, token.span, help=help)
