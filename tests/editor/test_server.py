"""The language server, asked by a real client over its pipes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException

from gradspec.driver.checking import CheckResult
from gradspec.editor import prover
from gradspec.editor.prover import Request
from gradspec.options import Options
from gradspec.source import Source
from tests.editor.client import Editor

TEXT = '''from "lib/shapes.grad" import hill

def twice(t) = 2 * t

rule wave(x, k: static = 2.0) -> y:
    """The sine of x, 𝄞."""
    assume k > 0
    s = sin(k * x)  # 𝄞
    y = s + twice(x)
    dx = dy * sin(k * x)

rule row(x[n]) -> y[n]:
    y[i] = exp(x[i]) / sum(exp(x[j]) for j)

rule both(x) -> y:
    y = hill(x) + wave(x, k=3.0)
    example x = 0: y = 0
'''
HILL = "rule hill(x) -> y:\n    y = x**2\n"


def _session(folder: Path, told: Callable[[Editor], Awaitable[None]]) -> None:
    async def run() -> None:
        editor = Editor()
        await editor.start(folder)
        try:
            await told(editor)
        finally:
            await editor.stop()

    asyncio.run(run())


def _applied(text: str, edits: list[lsp.TextEdit]) -> str:
    """The text with edits (in UTF-16 units) in it."""
    lines = text.split("\n")

    def offset(at: lsp.Position) -> int:
        before = lines[at.line].encode("utf-16-le")[: 2 * at.character]
        return sum(len(one) + 1 for one in lines[: at.line]) + len(
            before.decode("utf-16-le")
        )

    for edit in sorted(edits, key=lambda e: -offset(e.range.start)):
        start, end = offset(edit.range.start), offset(edit.range.end)
        text = text[:start] + edit.new_text + text[end:]
    return text


def test_a_session(tmp_path: Path) -> None:
    """One session, so that the server starts once; findings come by tiers, and open
    buffers stand for files."""

    async def told(editor: Editor) -> None:
        shapes = editor.open(tmp_path / "lib" / "shapes.grad", HILL)  # on no disk
        uri = editor.open(tmp_path / "mine.grad", TEXT)
        assert await editor.codes(uri, bool) == ["GS401"]
        mended = await _fix(editor, uri)
        editor.change(uri, mended)
        assert await editor.codes(uri, lambda codes: not codes) == []
        await _hover(editor, uri, mended)
        await _outline(editor, uri)
        await _define(editor, uri, mended, shapes)
        await _rename(editor, uri, mended)
        editor.change(shapes, HILL.replace("hill", "hollow"))
        assert await editor.codes(uri, bool) == ["GS221", "GS222"]
        editor.change(shapes, HILL)
        editor.change(uri, mended.replace("y = s +", "y = s +* "))
        assert "GS101" in await editor.codes(uri, bool)
        loose = "rule f(x)->y:\n    exact y=1-tanh( x )\n"
        editor.change(uri, loose)
        assert await editor.codes(uri, bool) == ["GS441"]  # evaluations tell
        edited = await editor.client.text_document_formatting_async(
            lsp.DocumentFormattingParams(
                lsp.TextDocumentIdentifier(uri), lsp.FormattingOptions(4, True)
            )
        )
        laid_out = "rule f(x) -> y:\n    exact y = 1 - tanh(x)\n"
        assert _applied(loose, [*(edited or ())]) == laid_out

    (tmp_path / "pyproject.toml").write_text("[tool.gradspec]\npaths = ['.']\n")
    _session(tmp_path, told)


async def _fix(editor: Editor, uri: str) -> str:
    """The text with its first quick fix."""
    at = editor.at(uri, TEXT, "dx = |dy * sin(k * x)")["position"]
    found = await editor.client.text_document_code_action_async(
        lsp.CodeActionParams(
            lsp.TextDocumentIdentifier(uri),
            lsp.Range(at, at),
            lsp.CodeActionContext([]),
        )
    )
    actions = [a for a in found or () if isinstance(a, lsp.CodeAction)]
    assert [(a.title.endswith("(proved)"), a.is_preferred) for a in actions] == [
        (True, True),
        (False, False),
        (False, None),
    ]
    edits = actions[0].edit
    assert edits is not None and edits.changes is not None
    mended = _applied(TEXT, [*edits.changes[uri]])
    assert "dx = dy * sin" not in mended and "cos(k * x)" in mended
    return mended


async def _hover(editor: Editor, uri: str, text: str) -> None:
    for marked, wanted in {
        "rule wa|ve(": ("rule wave(x, k", "**dx proved**", "domain `k > 0`"),
        "+ wa|ve(x": ("**dx proved**",),
        "hi|ll(x) +": ("y = x**2",),
        "rule row(|x": ("input of `row`", "dx[i] = y[i] *"),
        "s = si|n(": ("derivative by x", "cos(x)"),
        "    |s = sin": ("s = sin(k * x)",),
        "twi|ce(x)": ("def twice(t) = 2 * t",),
        "# |𝄞": (),
    }.items():
        at = editor.at(uri, text, marked)
        found = await editor.client.text_document_hover_async(lsp.HoverParams(**at))
        said = found.contents.value if found else ""
        assert all(part in said for part in wanted), (marked, said)
        assert bool(said) is bool(wanted), marked


async def _outline(editor: Editor, uri: str) -> None:
    here, client = lsp.TextDocumentIdentifier(uri), editor.client
    lenses = await client.text_document_code_lens_async(lsp.CodeLensParams(here))
    titles = [one.command.title for one in lenses or () if one.command]
    assert titles == ["dx proved", "dx derived", "dx derived"]
    asked = lsp.DocumentSymbolParams(here)
    outline = await client.text_document_document_symbol_async(asked)
    assert [one.name for one in outline or ()] == ["twice", "wave", "row", "both"]


async def _define(editor: Editor, uri: str, text: str, shapes: str) -> None:
    own = next(n for n, line in enumerate(text.splitlines()) if "s = sin" in line)
    for marked, wanted in {
        "y = |s + twice": (uri, own),
        "twi|ce(x)": (uri, 2),
        "sin(|k * x)  #": (uri, 4),
        "+ wa|ve(x": (uri, 4),
        "exp(x[|j])": (uri, 12),
        "hi|ll(x) +": (shapes, 0),
        "s = si|n(": None,
    }.items():
        at = lsp.DefinitionParams(**editor.at(uri, text, marked))
        found = await editor.client.text_document_definition_async(at)
        place = found if isinstance(found, lsp.Location) else None
        assert (place and (place.uri, place.range.start.line)) == wanted, marked


async def _rename(editor: Editor, uri: str, text: str) -> None:
    async def renamed(marked: str, new: str) -> str:
        at = lsp.RenameParams(new_name=new, **editor.at(uri, text, marked))
        answer = await editor.client.text_document_rename_async(at)
        assert answer is not None and answer.changes is not None
        return _applied(text, [*answer.changes[uri]])

    head, rest = (await renamed("rule wave(|x", "theta")).split("rule row")
    assert "wave(theta, k" in head and "dtheta = dy" in head and "x[i]" in rest
    assert "sin(k * theta)  #" in head and "twice(theta)" in head
    assert (await renamed("rule row(|x", "q")).count("q[") == 3
    waves = await renamed("rule wa|ve(", "ripple")
    assert "rule ripple(x" in waves and "+ ripple(x, k=3.0)" in waves
    gain = await renamed("wave(x, |k: static", "gain")
    assert "k=3.0" in gain and "s = sin(gain * x)" in gain
    over = await renamed("exp(x[|j])", "m")
    assert "sum(exp(x[m]) for m)" in over and "exp(x[i])" in over
    for marked, new in (("rule wave(|x", "k"), ("rule wave(|x", "2x")):
        with pytest.raises(JsonRpcException, match="cannot be called"):
            await renamed(marked, new)


# --- the process that checks ----------------------------------------------------------


def _slow_check(request: Request) -> CheckResult:
    time.sleep(60 if request.below == "slow" else 0)
    return CheckResult((), ())


def test_a_check_that_nobody_wants_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that is wanted is waited for; one for an older text is not."""
    monkeypatch.setattr(prover, "check_request", _slow_check)
    monkeypatch.setattr(prover, "PATIENCE", 0.05)

    def request(name: str) -> Request:
        return Request(Source("a.grad", ""), name, Options())

    async def run() -> None:
        wanted, one = {"slow"}, prover.Prover()
        first = asyncio.create_task(
            one.check(request("slow"), lambda: "slow" in wanted)
        )
        await asyncio.sleep(0.01)
        second = asyncio.create_task(one.check(request("quick"), lambda: True))
        done, _ = await asyncio.wait([first, second], timeout=0.5)
        assert not done
        wanted.clear()
        assert await first is None
        assert await second == CheckResult((), ())
        one.stop()

    asyncio.run(run())
