"""A real client that speaks to `perflint server` over its standard input and output."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

pytest.importorskip("pygls")

from lsprotocol import types
from pygls.lsp.client import LanguageClient
from pygls.workspace import TextDocument

T = TypeVar("T")
_PATIENCE = 60


class Editor:
    """A client with open documents, and the diagnostics last published for each."""

    def __init__(self, client: Any, root: Path) -> None:
        self.client = client
        self.root = root
        self.published: dict[str, types.PublishDiagnosticsParams] = {}
        self.messages: list[str] = []
        self.edits: list[types.WorkspaceEdit] = []
        self._news = asyncio.Event()
        self._versions: dict[str, int] = {}

    def uri(self, name: str) -> str:
        return (self.root / name).as_uri()

    def open(self, name: str, text: str, language: str = "python") -> None:
        self._versions[name] = 1
        item = types.TextDocumentItem(self.uri(name), language, 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))

    def change(self, name: str, text: str) -> None:
        self._versions[name] += 1
        which = types.VersionedTextDocumentIdentifier(self._versions[name], self.uri(name))
        change = types.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(which, [change]))

    def type(self, name: str, start: tuple[int, int], end: tuple[int, int], text: str) -> None:
        """Change a part of a document, between a line (from 1) and character and another."""
        self._versions[name] += 1
        which = types.VersionedTextDocumentIdentifier(self._versions[name], self.uri(name))
        where = types.Range(types.Position(start[0] - 1, start[1]), types.Position(end[0] - 1, end[1]))
        change = types.TextDocumentContentChangePartial(range=where, text=text)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(which, [change]))

    def save(self, name: str) -> None:
        self.client.text_document_did_save(types.DidSaveTextDocumentParams(self._identifier(name)))

    def close(self, name: str) -> None:
        self.client.text_document_did_close(types.DidCloseTextDocumentParams(self._identifier(name)))

    def _identifier(self, name: str) -> types.TextDocumentIdentifier:
        return types.TextDocumentIdentifier(self.uri(name))

    async def diagnostics(self, name: str, *, again: bool = False) -> list[types.Diagnostic]:
        """Those of the present version; `again` waits for the next ones even so."""
        if again:
            self.published.pop(self.uri(name), None)
        return list((await self._when(lambda: self._present(name))).diagnostics)

    async def codes(self, name: str, *, again: bool = False) -> list[tuple[str, int]]:
        """Code and line (from 1)."""
        found = await self.diagnostics(name, again=again)
        return [(str(one.code), one.range.start.line + 1) for one in found]

    def _present(self, name: str) -> types.PublishDiagnosticsParams | None:
        published = self.published.get(self.uri(name))
        return published if published is not None and published.version in {None, self._versions[name]} else None

    async def published_for(self, uri: str) -> list[types.Diagnostic]:
        """What is published next, or was already, for a URI."""
        return list((await self._when(lambda: self.published.get(uri))).diagnostics)

    async def message(self) -> str:
        return await self._when(lambda: self.messages[-1] if self.messages else None)

    async def edit(self) -> types.WorkspaceEdit:
        return await self._when(lambda: self.edits[-1] if self.edits else None)

    async def _when(self, there: Callable[[], T | None]) -> T:
        async def wait() -> T:
            while (found := there()) is None:
                self._news.clear()
                await self._news.wait()
            return found

        return await asyncio.wait_for(wait(), _PATIENCE)

    async def hover(self, name: str, line: int, character: int) -> str | None:
        params = types.HoverParams(self._identifier(name), types.Position(line - 1, character))
        found = await asyncio.wait_for(self.client.text_document_hover_async(params), _PATIENCE)
        return None if found is None else str(found.contents.value)

    async def actions(self, name: str, line: int, *only: str) -> list[types.CodeAction]:
        where = types.Range(types.Position(line - 1, 0), types.Position(line - 1, 200))
        context = types.CodeActionContext(diagnostics=[], only=list(only) or None)
        params = types.CodeActionParams(self._identifier(name), where, context)
        found = await asyncio.wait_for(self.client.text_document_code_action_async(params), _PATIENCE)
        return list(found or [])

    def news(self, params: Any) -> None:
        if isinstance(params, types.PublishDiagnosticsParams):
            self.published[params.uri] = params
        elif isinstance(params, types.ApplyWorkspaceEditParams):
            self.edits.append(params.edit)
        else:
            self.messages.append(params.message)
        self._news.set()


def applied(edit: types.WorkspaceEdit | None, text: str) -> str:
    """What the client makes of `text`, an open document."""
    assert edit is not None
    if edit.document_changes:
        (change,) = edit.document_changes
        assert isinstance(change, types.TextDocumentEdit)
        edits = list(change.edits)
    else:
        ((_, found),) = (edit.changes or {}).items()
        edits = list(found)
    for one in sorted(edits, key=lambda one: (one.range.start.line, one.range.start.character), reverse=True):
        document = TextDocument("file:///x.py", text)
        document.apply_change(types.TextDocumentContentChangePartial(range=one.range, text=one.new_text))
        text = document.source
    return text


@asynccontextmanager
async def editor(root: Path, *, modern: bool = True, **variables: str) -> AsyncIterator[Editor]:
    """An editor with `root` open. A `modern` one resolves code actions and checks the versions of edits."""
    client = LanguageClient("test", "1")
    made = Editor(client, root)

    def published(params: types.PublishDiagnosticsParams) -> None:
        made.news(params)

    def said(params: types.ShowMessageParams) -> None:
        made.news(params)

    def apply(params: types.ApplyWorkspaceEditParams) -> types.ApplyWorkspaceEditResult:
        made.news(params)
        return types.ApplyWorkspaceEditResult(applied=True)

    client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(published)
    client.feature(types.WINDOW_SHOW_MESSAGE)(said)
    client.feature(types.WORKSPACE_APPLY_EDIT)(apply)
    await client.start_io(sys.executable, "-m", "perflint", "server", "--stdio", env={**os.environ, **variables})
    capabilities = types.ClientCapabilities()
    if modern:
        capabilities = types.ClientCapabilities(
            workspace=types.WorkspaceClientCapabilities(
                workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True)
            ),
            text_document=types.TextDocumentClientCapabilities(
                code_action=types.CodeActionClientCapabilities(
                    resolve_support=types.ClientCodeActionResolveOptions(["edit"])
                )
            ),
        )
    await client.initialize_async(types.InitializeParams(capabilities, root_uri=root.as_uri()))
    client.initialized(types.InitializedParams())
    try:
        yield made
    finally:
        await asyncio.wait_for(client.shutdown_async(None), _PATIENCE)
        client.exit(None)
        await asyncio.wait_for(client.stop(), _PATIENCE)


def session(run: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(run, 2 * _PATIENCE))
