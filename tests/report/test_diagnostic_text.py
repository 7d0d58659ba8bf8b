"""How a finding looks."""

from __future__ import annotations

import json
import re

import click
import pytest

from gradspec.diagnostics import error
from gradspec.driver.discover import source_of
from gradspec.report.diagnostics import WIDEST, _lines, document, github, render
from gradspec.source import Source, Span


def _shown(text: str, start: int, end: int, message: str = "") -> list[str]:
    source = Source("rules/a.grad", text)
    found = error(
        "GS999", "wrong", source, Span(start, end), label=message, help="mend"
    )
    return click.unstyle(render(found)).splitlines()


def test_the_caret_stands_under_the_guilty_piece() -> None:
    text = "rule f(x) -> y:\n    y = sin(z)\n"
    start = text.index("z")
    assert _shown(text, start, start + 1, "not known") == [
        "error[GS999]: wrong",
        " --> rules/a.grad:2:13",
        "  |",
        "2 |     y = sin(z)",
        "  |             ^ not known",
        "  = help: mend",
    ]


def test_tabs_keep_the_caret_in_its_column() -> None:
    lines = _shown("\tx = 1\n", 1, 2)
    assert lines[3:5] == ["1 | \tx = 1", "  | \t^"]


def test_a_long_line_is_cut_around_the_caret() -> None:
    text = "y = " + "x + " * 5000 + "bad"
    lines = _shown(text, len(text) - 3, len(text))
    assert len(lines[3]) <= WIDEST + 10
    assert lines[3].endswith("bad")
    assert lines[4].index("^") == lines[3].index("bad")


ODD = {"\0": r"\x00", "\x1b": r"\x1b", "\u202e": r"\u202e", "\udcff": r"\udcff"}


@pytest.mark.parametrize("char", ODD, ids=ascii)
def test_a_caret_stands_under_the_escape_of_its_character(char: str) -> None:
    lines = _shown(f"y = {char}[31m + {char}\n", 12, 13)
    shown = ODD[char]
    assert lines[3] == f"1 | y = {shown}[31m + {shown}"
    assert lines[4] == " " * 2 + "| " + " " * (11 + len(shown)) + "^" * len(shown)


def test_bytes_that_are_no_text_are_shown() -> None:
    (found,) = source_of("a.grad", b"# \xc3\xa9 \xff\n").diagnostics
    lines = [_plain(line) for line in _lines(found)]
    assert lines[3:5] == ["1 | # é \\xff", "  |     ^^^^"]


def test_control_characters_never_reach_the_terminal() -> None:
    bad = "\x1b[31m\x9b2J\x07\u202e\udcff"
    source = Source(f"{bad}.grad", f"y = {bad}\n")
    found = error(
        "GS999", bad, source, Span(4, 5), label=bad, notes=[bad, f"a\n{bad}"], help=bad
    )
    for shown in (
        "".join(map(_plain, _lines(found))),
        *github([found]),
        *document((), (found,), ()).splitlines(),
    ):
        assert shown.isprintable()
    assert json.loads(document((), (found,), ()))["diagnostics"][0]["help"] == bad


def _plain(line: str) -> str:
    """Without the colours that are ours."""
    return re.sub("\x1b\\[[0-9;]*m", "", line)


def test_github_escapes_what_would_end_a_command() -> None:
    source = Source("a,b:c.grad", "x\n")
    found = error("GS999", "50% of\nlines", source, Span(0, 1))
    (line,) = github([found])
    assert line.startswith("::error file=a%2Cb%3Ac.grad,line=1,endLine=1,col=1,")
    assert line.endswith("title=GS999::50%25 of%0Alines")
