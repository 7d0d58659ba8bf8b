"""Text to syntax tree, with every syntax fault of the text.

Scan, layout and blocks give the items of the file. Each item is parsed by the grammar;
one that fails is read again line by line, so that each of its faulty lines is reported
and explained (`gradspec.syntax.mistakes`). An item with a fault is left out of the
module and its name kept in ``Module.broken``; the other items are returned.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from gradspec.diagnostics import Diagnostic, Fix, Label, Outcome, error
from gradspec.source import Source, Span
from gradspec.syntax import nodes
from gradspec.syntax.grammar import Unexpected, refuse_depth, run
from gradspec.syntax.mistakes import (
    Stop,
    explain,
)
from gradspec.syntax.reserved import explain_names
from gradspec.syntax.scan import scan
from gradspec.syntax.tokens import (
    ITEM_WORDS,
    LINE_END,
    Chunk,
    Fault,
    FaultFound,
    Line,
    Token,
    blocks,
    layout,
    unexpected_indent,
)

MAX_LENGTH = 1 << 20
"""Longer texts are refused: a file of rules that people wrote has some kilobytes."""

MAX_FAULTS = 100
"""Limit on the faults reported for one file."""


def parse(source: Source) -> Outcome[nodes.Module]:
    """The module of a source, and its syntax faults in the order of their places."""
    if len(source.text) > MAX_LENGTH:
        return Outcome(None, (_diagnostic(_too_long(source), source),))
    module, faults, starts = _read(source)
    tried = _with_fixes_that_work(source.text, faults[:MAX_FAULTS], starts)
    return Outcome(module, tuple(_diagnostic(fault, source) for fault in tried))


def _read(source: Source) -> tuple[nodes.Module, list[Fault], list[int]]:
    """The module, its faults, and the places where its items begin."""
    scanned = scan(source.text)
    lines = layout(source.text, scanned.tokens)
    faults = [*scanned.faults, *lines.faults]
    chunks = blocks(source.text, lines.lines, faults)
    faults.extend(explain_names(chunks, scanned.suspects))
    if not chunks and not faults:
        faults.append(_nothing())
    items, broken = _items(chunks, len(source.text), faults)
    module = nodes.Module(source, tuple(items), tuple(scanned.comments), tuple(broken))
    faults.sort(key=lambda fault: (fault.span.start, fault.code))
    return module, faults, [chunk.span.start for chunk in chunks]


def parse_expression(text: str) -> nodes.Expr:
    """The tree of one expression, which may stand on several lines; ValueError when it
    is none. For formulas of our own.
    """
    scanned = scan(text)
    tokens = [token for token in scanned.tokens if token.type != LINE_END]
    faults = [*scanned.faults, *layout(text, tokens).faults]
    if faults:
        raise ValueError(f"{faults[0].headline}: {text!r}")
    try:
        expr: nodes.Expr = run(tokens, "expression")
        refuse_depth(expr)
    except FaultFound as found:
        raise ValueError(f"{found.fault.headline}: {text!r}") from None
    except Unexpected as fault:
        rest = text[tokens[fault.index].start :] if fault.index < len(tokens) else ""
        raise ValueError(f"not an expression from {rest!r} on: {text!r}") from None
    return expr


# --- items ----------------------------------------------------------------------------


def _items(
    chunks: Sequence[Chunk], end: int, faults: list[Fault]
) -> tuple[list[nodes.Item], list[str]]:
    """The sound items and the names of the others; adds the faults of the latter."""
    items: list[nodes.Item] = []
    broken: list[str] = []
    reported = sorted(fault.span.start for fault in faults)
    starts = [*(chunk.span.start for chunk in chunks), end + 1]
    for chunk, (start, stop) in zip(chunks, pairwise(starts), strict=True):
        known = _some_between(reported, start, stop)
        failure = None if known else _parse_chunk(chunk, items)
        if not known and failure is None:
            continue
        broken.extend(_name(chunk))
        if len(faults) < MAX_FAULTS:
            found = _line_faults(chunk, reported, stop)
            if failure is not None and not found:
                found = [_item_fault(chunk, failure)]
            faults.extend(found)
    return items, broken


def _some_between(places: Sequence[int], start: int, stop: int) -> bool:
    """True if one of the sorted places lies in ``[start, stop)``."""
    at = bisect_left(places, start)
    return at < len(places) and places[at] < stop


def _parse_chunk(
    chunk: Chunk, items: list[nodes.Item]
) -> Unexpected | FaultFound | None:
    """Add the item of a chunk; the fault, if there is one."""
    try:
        items.extend(run(_tokens(chunk), "module"))
    except (Unexpected, FaultFound) as failure:
        return failure
    return None


def _tokens(chunk: Chunk) -> Iterator[Token]:
    """The tokens of an item, with the layout tokens of the grammar."""
    yield from _with_end(chunk.head)
    if not chunk.body:
        return
    start, end = chunk.body[0].span.start, chunk.body[-1].span.end
    yield Token("_INDENT", "", start, start)
    for line in chunk.body:
        yield from _with_end(line)
    yield Token("_DEDENT", "", end, end)


def _with_end(line: Line) -> tuple[Token, ...]:
    end = line.tokens[-1].end
    return (*line.tokens, Token("_NEWLINE", "", end, end))


def _name(chunk: Chunk) -> Iterator[str]:
    """The names that a faulty item would have defined."""
    tokens = chunk.head.tokens
    if chunk.head.first in ("RULE", "DEF"):
        yield from (token.text for token in tokens[1:2] if token.text.isidentifier())
    elif chunk.head.first == "EXTERN":
        yield from (token.text for token in tokens[2:3] if token.text.isidentifier())
    elif chunk.head.first == "FROM":
        words = [token.type for token in tokens]
        start = words.index("IMPORT") + 1 if "IMPORT" in words else len(tokens)
        yield from (t.text for t in tokens[start:] if t.text.isidentifier())


# --- fixes ----------------------------------------------------------------------------

_TRIES = 24
"""Changes of a file that are tried, in all."""
_LONGEST = 20_000
"""Characters of an item that is read again for each change."""
_KEPT = 2
"""Changes that are offered for one fault."""


def _with_fixes_that_work(
    text: str, faults: list[Fault], starts: list[int]
) -> Iterator[Fault]:
    """The faults, each with the changes that leave its item fewer faults. Where several
    do, none is safe."""
    left = _TRIES
    places = [fault.span.start for fault in faults]
    for fault in faults:
        tried = fault.fixes[:left]
        left -= len(tried)
        good = [fix for fix in tried if _mends(text, fault, fix, places, starts)]
        if len(good) > 1:
            good = [replace(fix, is_safe=False) for fix in good[:_KEPT]]
        yield replace(fault, fixes=tuple(good))


def _mends(
    text: str, fault: Fault, fix: Fix, places: list[int], starts: list[int]
) -> bool:
    """True if the item has fewer faults with a change, or as many and none of them in
    what is written so far of the line."""
    number = bisect_right(starts, fault.span.start)
    start = text.rfind("\n", 0, starts[number - 1] if number else 0) + 1
    end = starts[number] if number < len(starts) else len(text)
    start = min(start, fix.span.start)
    end = max(text.rfind("\n", start, end) + 1, fix.span.end)
    if end - start > _LONGEST:
        return False
    changed = text[start : fix.span.start] + fix.text + text[fix.span.end : end]
    left = [one.span.start + start for one in _read(Source("", changed))[1]]
    before = bisect_left(places, end) - bisect_left(places, start)
    line = text.rfind("\n", 0, fix.span.start) + 1
    is_beyond = not any(line <= p <= fix.span.start + len(fix.text) for p in left)
    return len(left) < before + is_beyond


# --- faults ---------------------------------------------------------------------------


def _line_faults(chunk: Chunk, known: Sequence[int], end: int) -> list[Fault]:
    """The faults of the lines of an item, for each line the first; lines in which
    something is known to be wrong already are passed over.
    """
    faults: list[Fault] = []
    is_item = chunk.head.first in ITEM_WORDS
    lines = (chunk.head, *chunk.body) if is_item else (chunk.head,)
    ends = (*(line.span.start for line in lines[1:]), end)
    for number, (line, stop) in enumerate(zip(lines, ends, strict=True)):
        if not line.sound or _some_between(known, line.span.start, stop):
            continue
        if number == 1 and line.first == "DOCSTRING" and len(line.tokens) == 1:
            continue
        faults.extend(_line_fault(line, "statement" if number else _start(line)))
        if len(faults) >= MAX_FAULTS:
            break
    return faults


def _start(head: Line) -> str:
    return "header" if head.first == "RULE" else "module"


def _line_fault(line: Line, start: str) -> Iterator[Fault]:
    if start == "module" and line.first not in ITEM_WORDS:
        yield _misplaced_line(line)
        return
    try:
        run(_with_end(line), start)
    except FaultFound as found:
        yield found.fault
    except Unexpected as stopped:
        yield explain(Stop(line, stopped.index, stopped.expected))


def _misplaced_line(line: Line) -> Fault:
    """A line at the margin that begins no item."""
    headline = "this line stands outside every rule"
    fixes: tuple[Fix, ...] = ()
    help = "at the margin stand `rule …`, `def …`, `extern def …`, `from … import …`"
    if any(token.type == "ARROW" for token in line.tokens):
        help = "a rule begins with `rule`: `rule f(x) -> y:`"
        start = Span(line.span.start, line.span.start)
        fixes = (Fix("begin it with `rule`", start, "rule ", is_safe=True),)
    elif line.first == "DOCSTRING":
        headline = "a docstring belongs to a rule"
        help = "what concerns the whole file is said in comments, `# …`"
    elif line.first == "EXACT":
        headline = "`exact` marks a definition in the body of a rule"
        help = "a def is put in place where it is used; mark what it is used for"
        return Fault("GS750", headline, line.tokens[0].span, help=help)
    elif any(token.type == "EQUAL" for token in line.tokens):
        help = (
            "indent it by four spaces to make it part of the rule above; a constant"
            " is an input: `k: static = 0.5`"
        )
    return Fault("GS112", headline, line.span, help=help, fixes=fixes)


def _item_fault(chunk: Chunk, failure: Unexpected | FaultFound) -> Fault:
    """The fault of an item each of whose lines is right."""
    statements = [line for line in chunk.body if line.first != "DOCSTRING"]
    if isinstance(failure, FaultFound):
        return failure.fault
    if chunk.head.first == "RULE" and not statements:
        name = chunk.head.tokens[1]
        headline = f"the rule `{name.text}` has no body"
        help = "write what it computes below it, indented: `y = x**2`"
        return Fault("GS111", headline, name.span, help=help)
    if chunk.head.first != "RULE" and chunk.body:
        return unexpected_indent(chunk.body[0])
    return Fault("GS101", "this item cannot be read", chunk.head.span)


def _diagnostic(fault: Fault, source: Source) -> Diagnostic:
    also = [Label(source, span, text) for span, text in fault.also]
    return error(
        fault.code,
        fault.headline,
        source,
        fault.span,
        label=fault.label,
        help=fault.help,
        also=also,
        fixes=fault.fixes,
    )


def _too_long(source: Source) -> Fault:
    headline = f"this file is longer than {MAX_LENGTH // 1024} KiB"
    help = "divide it: rules of other files are imported with `from … import …`"
    return Fault("GS608", headline, Span(0, min(1, len(source.text))), help=help)


def _nothing() -> Fault:
    help = "write a rule: `rule square(x) -> y:` and below it, indented, `y = x**2`"
    return Fault("GS117", "this file holds no rule", Span(0, 0), help=help)
