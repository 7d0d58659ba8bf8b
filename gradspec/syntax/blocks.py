"""Logical lines to items: a line at the margin begins one, the indented lines below it
are its body. A `.grad` file has no deeper blocks. Never raises.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from gradspec.source import Span
from gradspec.syntax.layout import ITEM_WORDS
from gradspec.syntax.tokens import TABBED, Chunk, Fault, Line

_OPEN_ENDS = frozenset(
    [
        "EQUAL",
        "SIGN",
        "SCALE",
        "POWER",
        "COMPARISON",
        "COMMA",
        "IF",
        "ELSE",
        "AND",
        "OR",
        "NOT",
        "ARROW",
    ]
)
_LATE_STARTS = frozenset(
    ["SIGN", "SCALE", "POWER", "COMPARISON", "IF", "ELSE", "AND", "OR", "ARROW"]
)


@dataclass(slots=True)
class Blocks:
    """The items of a file in order, and what was wrong with their indentation."""

    chunks: list[Chunk] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)


def blocks(lines: Sequence[Line]) -> Blocks:
    """Groups lines into items."""
    found = Blocks()
    joined = _joined(lines, found)
    _refuse_tab(joined, found)
    head: Line | None = None
    body: list[Line] = []
    for line in joined:
        if head is not None and _is_below(line, head, body):
            _check_indent(line, head, body, found)
            body.append(line)
            continue
        if head is not None:
            found.chunks.append(Chunk(head, tuple(body)))
        if line.indent > 0:
            found.faults.append(unexpected_indent(line))
        head, body = line, []
    if head is not None:
        found.chunks.append(Chunk(head, tuple(body)))
    return found


def _is_below(line: Line, head: Line, body: list[Line]) -> bool:
    """Whether a line belongs to the item of ``head``. One at the margin does when it is
    a statement and the rule above it has no body yet.
    """
    if _begins_item(line):
        return False
    if line.indent == 0 and head.first not in ITEM_WORDS:
        return True  # all that stands outside is reported once
    if line.indent == 0:
        return head.first == "RULE" and (not body or body[0].indent == 0)
    return True


def _begins_item(line: Line) -> bool:
    """By its words alone: an item may have been indented by mistake."""
    if line.first != "RULE":
        return line.first in ITEM_WORDS
    second = line.tokens[1:2]
    return bool(second) and second[0].text.isidentifier()


def _check_indent(line: Line, head: Line, body: list[Line], found: Blocks) -> None:
    if head.first != "RULE":
        return  # reported with the head, or as a whole: see `parse`
    if body and body[-1].tokens[-1].type == "COLON":
        return  # a block of Python: the line with the colon is reported
    known = [above.indent for above in body if above.indent != TABBED]
    if line.indent == TABBED or (known and line.indent == known[0]):
        return
    if not known and line.indent == 0:
        headline = "the body of a rule is indented"
        help = "put four spaces before each line of the body"
        found.faults.append(_fault(line, headline, help))
    elif known and line.indent > known[0]:
        found.faults.append(unexpected_indent(line))
    elif known:
        headline = "this line is indented less than the body that it belongs to"
        found.faults.append(_fault(line, headline, _spaces(known[0])))


def unexpected_indent(line: Line) -> Fault:
    """A line that is indented for no reason."""
    if _begins_item(line):
        headline = f"`{line.tokens[0].text}` must begin at the margin"
        return _fault(line, headline, "delete the spaces before it")
    headline = "this line is indented, but nothing above it asks for that"
    help = "give it the indentation of the line above; a line goes on only in brackets"
    return _fault(line, headline, help)


def _spaces(count: int) -> str:
    return f"indent it by {count} space{'s' if count > 1 else ''}, as the lines above"


def _fault(line: Line, headline: str, help: str) -> Fault:
    return Fault("GS106", headline, line.tokens[0].span, help=help)


def _refuse_tab(lines: Sequence[Line], found: Blocks) -> None:
    """Once: what holds for one line holds for all of them."""
    tabbed = [line for line in lines if line.indent == TABBED]
    if not tabbed:
        return
    start = tabbed[0].tokens[0].start
    headline = "this line is indented with a tab"
    if len(tabbed) > 1:
        others = len(tabbed) - 1
        headline += f", and {others} more line{'s' if others > 1 else ''} of this file"
    help = "indent with spaces: a tab is not the same width everywhere"
    found.faults.append(Fault("GS105", headline, Span(start - 1, start), help=help))


def _joined(lines: Sequence[Line], found: Blocks) -> list[Line]:
    """Lines with those added that visibly go on without brackets, which is a fault."""
    groups: list[list[Line]] = []
    for line in lines:
        if not groups or not _goes_on(groups[-1], line):
            groups.append([line])
            continue
        if len(groups[-1]) == 1 and groups[-1][0].sound:
            headline = "a line goes on only inside brackets"
            help = "put the whole expression in brackets: `(`, `)`"
            found.faults.append(_fault(line, headline, help))
        groups[-1].append(line)
    return [_one(group) for group in groups]


def _one(group: list[Line]) -> Line:
    first, *more = group
    if not more:
        return first
    tokens = tuple(token for line in group for token in line.tokens)
    return replace(first, tokens=tokens, sound=False)


def _goes_on(group: list[Line], line: Line) -> bool:
    indent, above = group[0].indent, group[-1].tokens[-1].type
    if line.indent <= indent or indent == TABBED or _begins_item(line):
        return False
    return above in _OPEN_ENDS or (above != "COLON" and line.first in _LATE_STARTS)
