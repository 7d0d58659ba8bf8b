"""Names that cannot be names: Python's keywords, and what begins with ``_``.

A rule becomes a Python function and its inputs the arguments, so that they must be
names there too. Some keywords are no names at all but forms of Python that a user
expects here; those are recognised by the tokens beside them.
"""

from __future__ import annotations

import keyword
from collections.abc import Iterable, Sequence

from gradspec.syntax.layout import ITEM_WORDS
from gradspec.syntax.misreadings import reserved
from gradspec.syntax.tokens import Chunk, Fault, Token, shortened

_FORMS = {
    "lambda": "there are no anonymous functions: write `def f(x) = expression`",
    "in": "an index runs over the axis that it stands on: write `for j`",
    "is": "compare with `==`",
    "return": "a rule assigns its outputs by name: `y = expression`",
    "yield": "a rule assigns its outputs by name: `y = expression`",
    "pass": "a rule assigns its outputs: `y = expression`",
    "while": "there are no loops; an index runs by itself: `sum(x[i] for i)`",
    "class": "a file holds rules: `rule f(x) -> y:`",
    "import": 'write `from "path.grad" import name`',
    "elif": "write `a if c else b if d else e`",
    "assert": "what holds of the inputs is said by `assume x > 0`",
    "True": "write the condition itself; in an example write `true`",
    "False": "write the condition itself; in an example write `false`",
    "None": "there is no missing value",
}
_ALWAYS = ("True", "False", "None")


def explain_names(chunks: Sequence[Chunk], suspects: Sequence[Token]) -> list[Fault]:
    """A fault for each suspect, once for each item and name."""
    if not suspects:
        return []
    wanted = set(suspects)
    faults: list[Fault] = []
    for chunk in chunks:
        seen: set[str] = set()
        body = chunk.body if chunk.head.first in ITEM_WORDS else ()
        for line in (chunk.head, *body):
            if line.first == "FOR":  # told as the statement that it is
                continue
            for before, token, after in _with_neighbours(line.tokens):
                if token in wanted and token.text not in seen:
                    seen.add(token.text)
                    faults.append(_fault(before, token, after))
    return faults


def _with_neighbours(
    tokens: Sequence[Token],
) -> Iterable[tuple[Token | None, Token, Token | None]]:
    return zip((None, *tokens[:-1]), tokens, (*tokens[1:], None), strict=True)


def _fault(before: Token | None, token: Token, after: Token | None) -> Fault:
    if token.text[0] == "_":
        bare = token.text.strip("_")
        bare += "_" if keyword.iskeyword(bare) else ""
        headline = (
            f"`{shortened(token.text)}` begins with an underscore: such names are ours"
        )
        help = (
            f"write `{bare}`"
            if bare.isidentifier() and len(bare) <= 40
            else "begin it with a letter"
        )
        return Fault("GS116", headline, token.span, help=help)
    if token.text in _FORMS and _is_form(before, token, after):
        headline = f"`{token.text}` is Python, not part of this language"
        return Fault("GS119", headline, token.span, help=_FORMS[token.text])
    return reserved(token)


def _is_form(before: Token | None, token: Token, after: Token | None) -> bool:
    """True if the keyword is used as Python uses it, not as a name."""
    if token.text in _ALWAYS:
        return True
    operand = ("NAME", "NUMBER", "STRING", "NOT", "RPAR", "RSQB")
    beside_operand = after is not None and after.type in operand[:4]
    if token.text in ("in", "is"):
        return before is not None and before.type in operand
    return beside_operand or (
        before is None and (after is None or after.type == "COLON")
    )
