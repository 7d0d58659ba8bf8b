"""The parser that lark makes from ``grammars/gradspec.lark``.

It is made once per process (about 60 ms, most of it the tables of LALR; lark's own
cache would write files that a compiler has no business to leave behind). lark is
imported here only, and only when something is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradspec.syntax.tokens import Token

if TYPE_CHECKING:
    from lark import Lark

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
    from lark.lexer import Lexer

    from gradspec.syntax.build import Builder

    class Fed(Lexer):
        """Tokens are fed one by one; there is nothing to lex."""

        def __init__(self, lexer_conf: Any) -> None: ...

        def lex(self, lexer_state: Any, parser_state: Any) -> Iterator[Any]:
            return iter(())

    return Lark(
        grammar_text(),
        parser="lalr",
        lexer=Fed,
        start=list(STARTS),
        keep_all_tokens=True,
        transformer=Builder(),
    )


# --- the loop -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Reduce:
    """``size`` values become one of rule ``origin``; ``make`` is None where it is the
    value itself (a level of precedence without its operator).
    """

    size: int
    origin: str
    make: Callable[[list[Any]], Any] | None


@dataclass(frozen=True, slots=True)
class _Table:
    """lark's table: for a state and a terminal or rule, the next state or a
    reduction."""

    start: int
    end: int
    states: dict[int, dict[str, int | _Reduce]]


@cache
def _table(start: str) -> _Table:
    """lark finds the callback of a rule by comparing rules, again and again; here they
    stand in the table, which makes the parser twice as fast.
    """
    from lark.parsers.lalr_analysis import Shift

    conf = _parser().parse_interactive(start=start).parser_state.parse_conf
    made: dict[int, _Reduce] = {}

    def entry(action: Any, argument: Any) -> int | _Reduce:
        if action is Shift:
            return int(argument)
        if id(argument) not in made:
            made[id(argument)] = _reduce(argument, conf.callbacks[argument])
        return made[id(argument)]

    states = {
        int(state): {str(symbol): entry(*action) for symbol, action in actions.items()}
        for state, actions in conf.parse_table.states.items()
    }
    return _Table(int(conf.start_state), int(conf.end_state), states)


def _reduce(rule: Any, callback: Callable[[list[Any]], Any]) -> _Reduce:
    size = len(rule.expansion)
    passes = size == 1 and rule.options.expand1 and rule.alias is None
    return _Reduce(size, str(rule.origin.name), None if passes else callback)


def run(tokens: Iterable[Token], start: str) -> Any:
    """The builder's result for ``tokens``; raises Unexpected, or what the builder
    raises."""
    table = _table(start)
    states = table.states
    stack, values = [table.start], []
    end = Token("$END", "", 0, 0)
    for count, token in enumerate(chain(tokens, (end,))):
        while True:
            action = states[stack[-1]].get(token.type)
            if action is None:
                raise Unexpected(count, _fitting(states, stack))
            if type(action) is int:
                stack.append(action)
                values.append(token)
                break
            assert isinstance(action, _Reduce)
            if action.make is not None:
                _reduce_values(action.make, action.size, stack, values)
                stack.append(0)
            goto = states[stack[-2]][action.origin]
            assert type(goto) is int
            stack[-1] = goto
            if goto == table.end and token is end:
                return values[-1]
    raise AssertionError("the end of the tokens is always shifted or refused")


def _fitting(
    states: dict[int, dict[str, int | _Reduce]], stack: Sequence[int]
) -> frozenset[str]:
    """The terminals that could come next. The table alone would name too many: a state
    of LALR stands for several places in the text.
    """
    candidates = (symbol for symbol in states[stack[-1]] if symbol.isupper())
    return frozenset(t for t in candidates if _fits(states, list(stack), t))


def _fits(
    states: dict[int, dict[str, int | _Reduce]], stack: list[int], terminal: str
) -> bool:
    while True:
        action = states[stack[-1]].get(terminal)
        if not isinstance(action, _Reduce):
            return action is not None
        if action.size:
            del stack[-action.size :]
        if action.origin not in states[stack[-1]]:
            return True  # the start rule is complete
        goto = states[stack[-1]][action.origin]
        assert type(goto) is int
        stack.append(goto)


def _reduce_values(
    make: Callable[[list[Any]], Any], size: int, stack: list[int], values: list[Any]
) -> None:
    """Takes the parts of a rule from the stacks and puts what they make on one."""
    taken = values[-size:] if size else []
    if size:
        del stack[-size:]
        del values[-size:]
    values.append(make(taken))


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
