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
    """The items of a file in order, and the faults in their indentation."""

    chunks: list[Chunk] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)


@dataclass(slots=True)
class _Item:
    """An item that lines are added to; ``indent`` is that of its body, once known."""

    head: Line
    body: list[Line] = field(default_factory=list)
    indent: int = TABBED

    def add(self, line: Line) -> None:
        self.body.append(line)
        if self.indent == TABBED:
            self.indent = line.indent


def blocks(lines: Sequence[Line]) -> Blocks:
    """Groups lines into items."""
    found = Blocks()
    items: list[_Item] = []
    joined = _joined(lines, found)
    _refuse_tab(joined, found)
    for line in joined:
        if items and _is_below(line, items[-1]):
            _check_indent(line, items[-1], found)
            items[-1].add(line)
            continue
        if line.indent > 0:
            found.faults.append(unexpected_indent(line))
        items.append(_Item(line))
    found.chunks.extend(Chunk(item.head, tuple(item.body)) for item in items)
    return found


def _is_below(line: Line, item: _Item) -> bool:
    """True if a line belongs to an item. A line at the margin does when it is a
    statement and the rule above it has no body yet.
    """
    if _begins_item(line):
        return False
    if line.indent == 0 and item.head.first not in ITEM_WORDS:
        return True  # all that stands outside is reported once
    if line.indent == 0:
        return item.head.first == "RULE" and (not item.body or item.indent == 0)
    return True


def _begins_item(line: Line) -> bool:
    """True by its words alone: an item may have been indented by mistake."""
    if line.first != "RULE":
        return line.first in ITEM_WORDS
    second = line.tokens[1:2]
    return bool(second) and second[0].text.isidentifier()


def _check_indent(line: Line, item: _Item, found: Blocks) -> None:
    if item.head.first != "RULE":
        return  # reported with the head, or as a whole: see `parse`
    if item.body and item.body[-1].tokens[-1].type == "COLON":
        return  # a block of Python: the line with the colon is reported
    if line.indent in (TABBED, item.indent):
        return
    if item.indent == TABBED and line.indent == 0:
        headline = "the body of a rule is indented"
        help = "put four spaces before each line of the body"
        found.faults.append(_fault(line, headline, help))
    elif line.indent > item.indent > TABBED:
        found.faults.append(unexpected_indent(line))
    elif item.indent > TABBED:
        headline = "this line is indented less than the body that it belongs to"
        found.faults.append(_fault(line, headline, _spaces(item.indent)))


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
    """Report a tab, once for the whole file."""
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
