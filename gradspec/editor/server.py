"""The language server: what an editor asks, answered from the last texts.

Findings come in tiers. Syntax and names are looked at here, on every change. Verdicts come
from another process once nothing has changed for a moment, then what only the search of
evaluations finds. A result for an older text is dropped.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.uris import from_fs_path, to_fs_path
from pygls.workspace import TextDocument

from gradspec import arguments
from gradspec.diagnostics import Diagnostic, Fix, Severity, not_ignored
from gradspec.driver.checking import CheckResult
from gradspec.driver.fixing import safe_fixes
from gradspec.driver.load import load
from gradspec.editor import places, words
from gradspec.editor.prover import Prover, Request, reader
from gradspec.lower.lowering import resolve
from gradspec.options import Options
from gradspec.source import SHIPPED, Source, Span
from gradspec.syntax import nodes
from gradspec.syntax.parse import parse
from gradspec.syntax.printer import print_module
from gradspec.version import __version__

QUIET = 0.15
"""Seconds without a change after which a text is checked."""
LONG = 200_000
"""Characters of a text that is too long to be read on every change."""

_LEVEL = {
    Severity.ERROR: lsp.DiagnosticSeverity.Error,
    Severity.WARNING: lsp.DiagnosticSeverity.Warning,
    Severity.NOTE: lsp.DiagnosticSeverity.Information,
}


@dataclass(slots=True)
class _Known:
    """What is known of an open text: its findings, its last check, and the files that it
    imports."""

    source: Source
    found: tuple[Diagnostic, ...] = ()
    result: CheckResult = field(default_factory=lambda: CheckResult((), ()))
    imports: frozenset[str] = frozenset()


class GradServer(LanguageServer):
    """The server and the texts that are open."""

    def __init__(self) -> None:
        super().__init__("gradspec", __version__)
        self.prover = Prover()
        self.known: dict[str, _Known] = {}
        self.tasks: set[asyncio.Task[None]] = set()

    def document(self, uri: str) -> TextDocument:
        """The text as it stands in the editor."""
        return self.workspace.get_text_document(uri)

    def source(self, uri: str) -> Source:
        """The text under its path, as other files would import it."""
        return Source(_path(uri), self.document(uri).source)

    def range(self, uri: str, span: Span) -> lsp.Range:
        """A span in the units of the editor."""
        at = self.document(uri).client_position_at_offset
        return lsp.Range(at(span.start), at(span.end))

    def place(self, uri: str, position: lsp.Position) -> places.Place | None:
        """The name at a position of the text as it is now."""
        module = parse(self.source(uri)).value
        at = self.document(uri).offset_at_position(position)
        return places.place_at(module, at) if module else None

    # --- findings ---------------------------------------------------------------------

    def note_change(self, uri: str, also: bool = True) -> None:
        """Look at a text that has changed, and at the open ones that import it."""
        source = self.source(uri)
        known = self.known.setdefault(uri, _Known(source))
        known.source = source
        request = self.request(uri)
        if len(source.text) <= LONG:
            root = source.path.removesuffix(request.below).rstrip("/")
            loaded = load(source, root, reader(request.open))
            known.imports = frozenset(loaded.sources)
            early = not_ignored(loaded.diagnostics, request.options.ignored)
            if early or any(d.code < "GS3" for d in known.found):
                self.publish(uri, early)
        self.start(self.check(uri, self.document(uri).version))
        for other, one in list(self.known.items()):
            if also and source.path in one.imports:
                self.note_change(other, also=False)

    def start(self, work: Any) -> None:
        """Do something while the editor goes on."""
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def check(self, uri: str, version: int | None) -> None:
        """Check a text, and search its evaluations then, unless it changes."""
        await asyncio.sleep(QUIET)

        def is_current() -> bool:
            return uri in self.known and self.document(uri).version == version

        for searches in (False, True):
            if not is_current():
                return
            request = self.request(uri)
            options = replace(request.options, searches=searches)
            request = replace(request, options=options)
            result = await self.prover.check(request, is_current)
            if result is None or not is_current():
                return
            self.known[uri].result = result
            self.publish(uri, result.diagnostics)
        able = self.client_capabilities.workspace
        if able and able.code_lens and able.code_lens.refresh_support:
            await self.workspace_code_lens_refresh_async(None)

    def request(self, uri: str) -> Request:
        """The check of a text, with the settings that hold for its file."""
        source = self.source(uri)
        folder = Path(source.path).parent
        try:
            settings = arguments.defaults(folder).get("check", {})
        except arguments.WrongSettings:
            settings = {}
        roots = [(folder / path).resolve() for path in settings.pop("paths", ())]
        roots += [Path(_path(one)) for one in self.workspace.folders]
        root = next((r for r in roots if folder.is_relative_to(r)), folder)
        settings["ignored"] = tuple(settings.get("ignored", ()))
        texts = {_path(one): self.document(one).source for one in self.known}
        below = Path(source.path).relative_to(root).as_posix()
        return Request(source, below, Options(**settings), texts)

    def publish(self, uri: str, found: tuple[Diagnostic, ...]) -> None:
        """Show findings of the text as it is now."""
        self.known[uri].found = found
        document, source = self.document(uri), self.source(uri)
        items = [self.diagnostic(uri, source, one) for one in found]
        self.text_document_publish_diagnostics(
            lsp.PublishDiagnosticsParams(uri, items, document.version)
        )

    def diagnostic(self, uri: str, source: Source, found: Diagnostic) -> lsp.Diagnostic:
        """A finding for the editor; one of an imported file stands at the top."""
        here = [a for a in found.labels if a.source.path == source.path]
        told = [found.headline, *(a.message for a in here[:1] if a.message)]
        told += [f"note: {note}" for note in found.notes]
        told += [f"help: {found.help}"] if found.help else []
        related = [
            lsp.DiagnosticRelatedInformation(
                lsp.Location(uri, self.range(uri, a.span)), a.message
            )
            for a in here[1:]
        ]
        return lsp.Diagnostic(
            self.range(uri, here[0].span if here else Span(0, 0)),
            "\n".join(told),
            severity=_LEVEL[found.severity],
            code=found.code,
            source="gradspec",
            related_information=related,
        )

    def edits(self, uri: str, fixes: list[Fix]) -> lsp.WorkspaceEdit:
        """Changes of a text for the editor."""
        spans = ((self.range(uri, fix.span), fix.text) for fix in fixes)
        return lsp.WorkspaceEdit({uri: [lsp.TextEdit(*pair) for pair in spans]})


def _path(uri: str) -> str:
    return Path(to_fs_path(uri) or uri).as_posix()


def serve() -> None:
    """Serve the editor at standard input and output. Whatever else is printed, here and
    in the processes that check, goes to stderr."""
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    server = new_server()
    try:
        server.start_io(sys.stdin.buffer, out)
    finally:
        server.prover.stop()


def new_server() -> GradServer:
    """A server that answers everything below."""
    server = GradServer()
    for name, answer, *options in _ANSWERS:
        server.feature(name, *options)(answer)
    return server


# --- answers --------------------------------------------------------------------------


async def _did_open(server: GradServer, params: lsp.DidOpenTextDocumentParams) -> None:
    server.note_change(params.text_document.uri)


async def _did_change(
    server: GradServer, params: lsp.DidChangeTextDocumentParams
) -> None:
    server.note_change(params.text_document.uri)


async def _did_close(
    server: GradServer, params: lsp.DidCloseTextDocumentParams
) -> None:
    server.known.pop(params.text_document.uri, None)


def _hover(server: GradServer, params: lsp.HoverParams) -> lsp.Hover | None:
    uri = params.text_document.uri
    place = server.place(uri, params.position)
    if place is None:
        return None
    text = words.hover(place, server.known[uri].result)
    if not text and (found := _imported_item(server, uri, place)):
        text = words.code(found[0].slice(found[1].span))
    if not text:
        return None
    return lsp.Hover(
        lsp.MarkupContent(lsp.MarkupKind.Markdown, text),
        server.range(uri, place.token.span),
    )


def _definition(
    server: GradServer, params: lsp.DefinitionParams
) -> lsp.Location | None:
    uri = params.text_document.uri
    place = server.place(uri, params.position)
    if place is None:
        return None
    if span := places.definition(place):
        return lsp.Location(uri, server.range(uri, span))
    found = _imported_item(server, uri, place)
    if found is None:
        return None
    source, item = found
    line, column = source.position(item.name_span.start)
    start = lsp.Position(line - 1, column - 1)
    file = from_fs_path(_file(source.path))
    return lsp.Location(file, lsp.Range(start, start)) if file else None


def _imported_item(
    server: GradServer, uri: str, place: places.Place
) -> tuple[Source, nodes.Named] | None:
    """The rule or def that is imported by a name, and its text."""
    item = places.import_of(place)
    if item is None:
        return None
    key = resolve(place.module.source.path, item.path)
    read = reader(server.request(uri).open)
    source = read(key, Path(key).parent.as_posix()).value
    module = parse(source).value if source else None
    for other in module.items if module else ():
        if isinstance(other, nodes.Named) and other.name == place.name and source:
            return source, other
    return None


def _file(key: str) -> str:
    """The file of an imported path."""
    if not key.startswith(SHIPPED):
        return key
    from gradspec.driver.discover import shipped_file

    return str(shipped_file(key))


def _rename(server: GradServer, params: lsp.RenameParams) -> lsp.WorkspaceEdit:
    uri = params.text_document.uri
    place = server.place(uri, params.position)
    changes = place and places.renaming(place, params.new_name)
    if not changes:
        told = f"it cannot be called {params.new_name} here"
        raise JsonRpcInvalidParams(message=told)
    return server.edits(uri, [Fix("", span, text) for span, text in changes])


def _format(
    server: GradServer, params: lsp.DocumentFormattingParams
) -> list[lsp.TextEdit]:
    uri = params.text_document.uri
    source = server.source(uri)
    parsed = parse(source)
    if parsed.value is None or parsed.failed:
        return []
    text = print_module(parsed.value)
    whole = server.range(uri, Span(0, len(source.text)))
    return [lsp.TextEdit(whole, text)] if text != source.text else []


def _actions(server: GradServer, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
    uri = params.text_document.uri
    source, found = server.source(uri), server.known[uri].found
    actions = []
    for one in found:
        shown = server.diagnostic(uri, source, one)
        begin, end = shown.range.start.line, shown.range.end.line
        if begin > params.range.end.line or end < params.range.start.line:
            continue
        if not one.labels or one.labels[0].source.path != source.path:
            continue
        for fix in one.fixes:
            is_proved = fix.is_safe and one.code.startswith("GS4")
            actions.append(
                lsp.CodeAction(
                    fix.title + " (proved)" * is_proved,
                    lsp.CodeActionKind.QuickFix,
                    [shown],
                    fix.is_safe,
                    edit=server.edits(uri, [fix]),
                )
            )
    if safe := safe_fixes(found, source.path):
        kind, edit = lsp.CodeActionKind.SourceFixAll, server.edits(uri, safe)
        actions.append(lsp.CodeAction("fix all that is safe", kind, edit=edit))
    return actions


def _lenses(server: GradServer, params: lsp.CodeLensParams) -> list[lsp.CodeLens]:
    uri = params.text_document.uri
    told = {rule.name: words.lens(rule) for rule in server.known[uri].result.rules}
    return [
        lsp.CodeLens(at, lsp.Command(told[item.name], ""))
        for item, _, at in _items(server, uri)
        if isinstance(item, nodes.RuleDef) and item.name in told
    ]


def _symbols(
    server: GradServer, params: lsp.DocumentSymbolParams
) -> list[lsp.DocumentSymbol]:
    return [
        lsp.DocumentSymbol(item.name, lsp.SymbolKind.Function, whole, at)
        for item, whole, at in _items(server, params.text_document.uri)
    ]


def _items(
    server: GradServer, uri: str
) -> Iterator[tuple[nodes.Named, lsp.Range, lsp.Range]]:
    """The rules and defs, each with its place and that of its name."""
    source = server.source(uri)
    module = parse(source).value
    for item in module.items if module else ():
        if isinstance(item, nodes.Named):
            spans = (item.span, item.name_span)
            whole, at = (server.range(uri, span) for span in spans)
            yield item, whole, at


_ANSWERS: tuple[tuple[Any, ...], ...] = (
    (lsp.TEXT_DOCUMENT_DID_OPEN, _did_open),
    (lsp.TEXT_DOCUMENT_DID_CHANGE, _did_change),
    (lsp.TEXT_DOCUMENT_DID_CLOSE, _did_close),
    (lsp.TEXT_DOCUMENT_HOVER, _hover),
    (lsp.TEXT_DOCUMENT_DEFINITION, _definition),
    (lsp.TEXT_DOCUMENT_RENAME, _rename),
    (lsp.TEXT_DOCUMENT_FORMATTING, _format),
    (
        lsp.TEXT_DOCUMENT_CODE_ACTION,
        _actions,
        lsp.CodeActionOptions(
            [lsp.CodeActionKind.QuickFix, lsp.CodeActionKind.SourceFixAll]
        ),
    ),
    (lsp.TEXT_DOCUMENT_CODE_LENS, _lenses),
    (lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL, _symbols),
)
"""Requests and notifications, with the functions that answer them."""
