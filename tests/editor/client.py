"""An editor for tests and benchmarks: a real client of the server's process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pytest_lsp import LanguageClient


class Editor:
    """A session with `gradspec lsp`."""

    def __init__(self) -> None:
        self.client = LanguageClient()
        self.published: list[lsp.PublishDiagnosticsParams] = []
        self.news = asyncio.Event()
        self.versions: dict[str, int] = {}

        @self.client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def publish(params: lsp.PublishDiagnosticsParams) -> None:
            self.published.append(params)
            self.news.set()

    async def start(self, folder: Path) -> lsp.InitializeResult:
        """Start the server on a folder."""
        await self.client.start_io(sys.executable, "-m", "gradspec", "lsp")
        given = lsp.InitializeParams(
            capabilities=lsp.ClientCapabilities(),
            workspace_folders=[lsp.WorkspaceFolder(folder.as_uri(), folder.name)],
        )
        return await self.client.initialize_session(given)

    async def stop(self) -> None:
        """End the session."""
        await self.client.shutdown_session()
        await self.client.stop()

    def open(self, path: Path, text: str) -> str:
        """Open a file with a text; gives its URI."""
        uri = path.as_uri()
        self.versions[uri] = 1
        item = lsp.TextDocumentItem(uri, "grad", 1, text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        return uri

    def change(self, uri: str, text: str) -> None:
        """Give a file another text."""
        self.versions[uri] += 1
        whole = [lsp.TextDocumentContentChangeWholeDocument(text)]
        document = lsp.VersionedTextDocumentIdentifier(self.versions[uri], uri)
        self.client.text_document_did_change(
            lsp.DidChangeTextDocumentParams(document, whole)
        )

    async def codes(
        self, uri: str, wanted: Callable[[list[str]], bool], limit: float = 60.0
    ) -> list[str]:
        """The codes of the first findings of the text as it is now that are wanted."""
        while True:
            for one in reversed(self.published):
                found = [f"{d.code}" for d in one.diagnostics]
                is_now = (one.uri, one.version) == (uri, self.versions[uri])
                if is_now and wanted(found):
                    return found
            self.news.clear()
            await asyncio.wait_for(self.news.wait(), limit)

    def at(self, uri: str, text: str, marked: str) -> dict[str, Any]:
        """The place of a piece of the text: ``|`` in it is the cursor."""
        before, _, after = marked.partition("|")
        offset = text.index(before + after) + len(before)
        line = text.count("\n", 0, offset)
        column = offset - text.rfind("\n", 0, offset) - 1
        units = len(text[offset - column : offset].encode("utf-16-le")) // 2
        return {
            "text_document": lsp.TextDocumentIdentifier(uri),
            "position": lsp.Position(line, units),
        }
