"""The place where the parser stopped, and a description of it."""

from __future__ import annotations

from dataclasses import dataclass

from gradspec.syntax.tokens import Fault, Line, Token, shortened

OPERAND_ENDS = frozenset(("NAME", "NUMBER", "RPAR", "RSQB"))
OPERATORS = frozenset(("SIGN", "SCALE", "POWER", "COMPARISON", "AND", "OR"))
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
    def ended(self) -> bool:
        return self.index >= len(self.line.tokens)

    def before(self, *types: str) -> bool:
        """True if a token of one of these types comes earlier in the line."""
        return any(token.type in types for token in self.line.tokens[: self.index])

    def fault(self, code: str, headline: str, help: str) -> Fault:
        """A fault at the token that does not fit; for the end of a line, just there."""
        return Fault(code, headline, self.found.span, help=help)


def generic(stop: Stop) -> Fault:
    if stop.ended:
        found = "the line ends too early"
    else:
        found = f"`{shortened(stop.found.text)}` does not fit here"
    expected = listed(stop.expected)
    help = f"expected {expected}" if expected else ""
    return stop.fault("GS101", found, help)


# --- pieces ---------------------------------------------------------------------------


def listed(expected: frozenset[str]) -> str:
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


def is_name(token: Token) -> bool:
    return token.text.isidentifier() and token.type not in _RESERVED


_RESERVED = frozenset(
    ["DEF", "FROM", "IMPORT", "IF", "ELSE", "FOR", "AND", "OR", "NOT"]
)


def begins_operand(token: Token) -> bool:
    return token.type in ("NUMBER", "LPAR") or is_name(token)


def in_brackets(stop: Stop) -> bool:
    return innermost(stop) != ""


def innermost(stop: Stop) -> str:
    """The type of the bracket that is open where the parser stopped."""
    open_: list[str] = []
    for token in stop.line.tokens[: stop.index]:
        if token.type in ("LPAR", "LSQB"):
            open_.append(token.type)
        elif token.type in ("RPAR", "RSQB") and open_:
            open_.pop()
    return open_[-1] if open_ else ""
