"""When what is checked: on open, change and save; one check at a time, given up when a newer text is there."""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path
from pygls.workspace import PositionCodec

from perflint import __version__
from perflint.errors import PerflintError
from perflint.finding import Applicability, Edit, Finding, Span
from perflint.lsp import convert
from perflint.lsp.analysis import Analyst, CancelledError, Result, begins_a_block, silencing
from perflint.source.file import SourceFile

T = TypeVar("T")

#: Seconds of quiet after a keystroke before it is worth looking.
_QUIET = 0.25
_FIX_ALL_COMMAND = "perflint.fixAll"


@dataclass
class _Document:
    """An open document as the editor has it, and what was found in which version."""

    uri: str
    file: Path
    text: str
    version: int | None
    result: Result | None = None
    checked: int | None = None
    settled: asyncio.Event = field(default_factory=asyncio.Event)


class Service:
    """The handlers, and the documents they are about. Its methods run on the event loop, checks on one thread."""

    def __init__(self, server: Any) -> None:
        self.server = server
        self._analyst = Analyst()
        self._documents: dict[str, _Document] = {}
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="perflint")
        self._pending: asyncio.Task[None] | None = None
        self._stop = threading.Event()
        self._complained = ""

    # The life of documents

    def initialized(self, _params: types.InitializedParams) -> None:
        """Findings name files from the folder that is open."""
        root = self.server.workspace.root_path
        if root and Path(root).is_dir():
            os.chdir(root)

    def opened(self, params: types.DidOpenTextDocumentParams) -> None:
        item = params.text_document
        path = to_fs_path(item.uri)
        if path is None or (item.language_id != "python" and not path.endswith((".py", ".pyw"))):
            return
        self._documents[item.uri] = _Document(item.uri, Path(path).absolute(), item.text, item.version)
        self._check_soon(0)

    def changed(self, params: types.DidChangeTextDocumentParams) -> None:
        document = self._documents.get(params.text_document.uri)
        if document is None or not params.content_changes:
            return
        # The whole text each time: what pygls counts as lines of an incremental change, others do not.
        document.text = params.content_changes[-1].text
        document.version = params.text_document.version
        self._check_soon(_QUIET)

    def saved(self, _params: types.DidSaveTextDocumentParams) -> None:
        self._check_soon(0)

    def files_changed(self, _params: types.DidChangeWatchedFilesParams) -> None:
        self._check_soon(_QUIET)

    def closed(self, params: types.DidCloseTextDocumentParams) -> None:
        document = self._documents.pop(params.text_document.uri, None)
        if document is not None:
            document.settled.set()
            self._publish(document.uri, [], None)

    def shut_down(self, _params: None) -> None:
        self._stop.set()
        if self._pending is not None:
            self._pending.cancel()
        self._worker.shutdown(wait=False, cancel_futures=True)

    # Checking

    def _check_soon(self, delay: float) -> None:
        """Begin again: what is being checked is no longer what the editor shows."""
        for document in self._documents.values():
            document.settled.clear()
        self._stop.set()
        if self._pending is not None:
            self._pending.cancel()
        self._stop = threading.Event()
        self._pending = asyncio.get_running_loop().create_task(self._check(delay, self._stop))

    async def _check(self, delay: float, stop: threading.Event) -> None:
        await asyncio.sleep(delay)
        documents = list(self._documents.values())
        if not documents:
            return
        texts = {one.file: one.text for one in documents}
        versions = {one.uri: one.version for one in documents}
        try:
            results = await self._in_thread(lambda: self._analyst.check(texts, stop.is_set))
        except CancelledError:
            return
        except PerflintError as error:
            self._complain(str(error))
            results = {}
        except Exception as error:  # noqa: BLE001 - requests wait for this to end, however it does
            self._complain(f"internal error, which is a bug in perflint: {type(error).__name__}: {error}")
            results = {}
        else:
            self._complained = ""
        for document in documents:
            if document.uri in self._documents and document.version == versions[document.uri]:
                document.result = results.get(document.file)
                document.checked = document.version
                document.settled.set()
                self._publish(document.uri, self._diagnostics(document.result), document.version)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._worker, work)

    async def _cancellable(self, work: Callable[[Callable[[], bool]], T]) -> T:
        """As `_in_thread`; when the request is cancelled, `work` is told by what it is given."""
        stop = threading.Event()
        try:
            return await self._in_thread(lambda: work(stop.is_set))
        except asyncio.CancelledError:
            stop.set()
            raise

    def _complain(self, message: str) -> None:
        """Once for each thing that is wrong, not once for each keystroke."""
        if message != self._complained:
            self._complained = message
            self.server.window_show_message(types.ShowMessageParams(types.MessageType.Error, f"perflint: {message}"))

    def _diagnostics(self, result: Result | None) -> list[types.Diagnostic]:
        if result is None:
            return []
        units = self._units
        found = [convert.diagnostic(finding, result.source, units) for finding in result.findings]
        return found + [convert.problem(one, result.source, units) for one in result.problems]

    def _publish(self, uri: str, diagnostics: list[types.Diagnostic], version: int | None) -> None:
        self.server.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri=uri, diagnostics=diagnostics, version=version)
        )

    @property
    def _units(self) -> convert.Units:
        return convert.Units(PositionCodec(self.server.server_capabilities.position_encoding))

    async def _settled(self, uri: str) -> _Document | None:
        """The document once its present text is checked; None for one that is not ours, or closed meanwhile."""
        document = self._documents.get(uri)
        if document is None:
            return None
        await document.settled.wait()
        return document if uri in self._documents and document.result is not None else None

    # Requests

    async def hover(self, params: types.HoverParams) -> types.Hover | None:
        document = await self._settled(params.text_document.uri)
        if document is None or document.result is None:
            return None
        for finding in document.result.findings:
            where = self._units.range(document.result.source, finding.span)
            if _touch(where, types.Range(params.position, params.position)):
                rule = next((rule for rule in self._analyst.rules if rule.code == finding.code), None)
                text = convert.hover(finding, rule)
                return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text), where)
        return await self._heat_of(document, params.position.line)

    async def _heat_of(self, document: _Document, line: int) -> types.Hover | None:
        """How often a function or loop runs and why, asked for at the line it begins on."""
        assert document.result is not None
        source = document.result.source
        if line >= len(source.lines) or not begins_a_block(source.lines[line]):
            return None
        texts = {one.file: one.text for one in self._documents.values()}
        try:
            text = await self._cancellable(lambda stop: self._analyst.heat(texts, document.file, line + 1, stop))
        except PerflintError:
            return None
        return types.Hover(types.MarkupContent(types.MarkupKind.PlainText, text))

    async def code_actions(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        document = await self._settled(params.text_document.uri)
        if document is None or document.result is None:
            return []
        result, units = document.result, self._units
        made: list[types.CodeAction] = []
        if _asks_for(params, types.CodeActionKind.QuickFix.value):
            for finding in result.findings:
                if _touch(units.range(result.source, finding.span), params.range):
                    made += self._actions_for(document, finding, result.source)
        if _asks_for(params, convert.FIX_ALL) and any(map(_is_safely_fixed, result.findings)):
            # The edit takes several checks, so it is worked out when the action is chosen.
            made.append(
                types.CodeAction(
                    "perflint: make all safe fixes",
                    kind=convert.FIX_ALL,
                    data={"uri": document.uri},
                    edit=None if self._resolves else await self._fix_all_edit(document),
                )
            )
        return made

    def _actions_for(self, document: _Document, finding: Finding, source: SourceFile) -> list[types.CodeAction]:
        diagnostics = [convert.diagnostic(finding, source, self._units)]
        made = []
        fix = finding.fix
        if fix is not None and fix.applicability is not Applicability.SHOWN:
            made.append(
                types.CodeAction(
                    convert.fix_title(finding, fix),
                    kind=types.CodeActionKind.QuickFix,
                    diagnostics=diagnostics,
                    is_preferred=fix.applicability is Applicability.SAFE,
                    edit=self._edit(document, convert.text_edits(fix.edits, source, self._units)),
                )
            )
        silence = silencing(source, finding)
        if silence is not None and finding.code != "TPL001":
            made.append(
                types.CodeAction(
                    f"{finding.code}: silence this line",
                    kind=types.CodeActionKind.QuickFix,
                    diagnostics=diagnostics,
                    edit=self._edit(document, convert.text_edits(silence.edits, source, self._units)),
                )
            )
        return made

    async def resolve(self, action: types.CodeAction) -> types.CodeAction:
        uri = action.data.get("uri") if isinstance(action.data, dict) else None
        document = await self._settled(uri) if isinstance(uri, str) else None
        if document is not None and action.kind == convert.FIX_ALL:
            action.edit = await self._fix_all_edit(document)
        return action

    async def fix_all(self, uri: str) -> None:
        """The command for clients that have no use for code actions of sources."""
        document = await self._settled(uri)
        edit = None if document is None else await self._fix_all_edit(document)
        if edit is not None:
            self.server.workspace_apply_edit(types.ApplyWorkspaceEditParams(edit, "perflint: safe fixes"))

    async def _fix_all_edit(self, document: _Document) -> types.WorkspaceEdit | None:
        assert document.result is not None
        source = document.result.source
        texts = {one.file: one.text for one in self._documents.values()}
        text = await self._cancellable(lambda stop: self._analyst.fix_all(texts, document.file, stop))
        if text == source.text:
            return None
        changed = _smallest(source, text)
        return self._edit(document, convert.text_edits([changed], source, self._units))

    def _edit(self, document: _Document, edits: list[types.TextEdit]) -> types.WorkspaceEdit:
        """With the version it is meant for, where the client can hold it against its own."""
        workspace = self.server.client_capabilities.workspace
        if workspace and workspace.workspace_edit and workspace.workspace_edit.document_changes:
            target = types.OptionalVersionedTextDocumentIdentifier(document.uri, document.checked)
            return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(target, edits)])
        return types.WorkspaceEdit(changes={document.uri: edits})

    @property
    def _resolves(self) -> bool:
        text = self.server.client_capabilities.text_document
        support = text.code_action.resolve_support if text and text.code_action else None
        return support is not None and "edit" in support.properties


def _is_safely_fixed(finding: Finding) -> bool:
    return finding.fix is not None and finding.fix.applicability is Applicability.SAFE


def _asks_for(params: types.CodeActionParams, kind: str) -> bool:
    """Kinds are a tree: who asks for `source` is given `source.fixAll.perflint`."""
    only = params.context.only
    if only is None:
        return True
    words = [one.value if isinstance(one, types.CodeActionKind) else str(one) for one in only]
    return any(kind == word or kind.startswith(f"{word}.") or not word for word in words)


def _touch(one: types.Range, other: types.Range) -> bool:
    return bool(one.start <= other.end and other.start <= one.end)


def _smallest(source: SourceFile, text: str) -> Edit:
    """One edit of whole lines, without those that stay at the beginning and at the end."""
    before, after = source.lines, SourceFile(source.path, text).lines
    first = 0
    while first < min(len(before), len(after)) and before[first] == after[first]:
        first += 1
    last = 0
    while last < min(len(before), len(after)) - first and before[-1 - last] == after[-1 - last]:
        last += 1
    kept = len(before) - last
    lines = after[first : len(after) - last]
    if last:
        return Edit(Span(first + 1, 1, kept + 1, 1), "".join(f"{line}\n" for line in lines))
    span = Span(first + 1, 1, len(before), len(before[-1]) + 1)
    if first == len(before):
        span = Span(first, len(before[-1]) + 1, first, len(before[-1]) + 1)
        return Edit(span, "".join(f"\n{line}" for line in lines))
    if not lines:
        # All lines from here to the end go, and with them the line end before.
        return Edit(Span(first, len(before[first - 1]) + 1, span.end_line, span.end_column) if first else span, "")
    return Edit(span, "\n".join(lines))


def server() -> Any:
    """A server ready to be started on any channel."""
    made = LanguageServer("perflint", __version__, text_document_sync_kind=types.TextDocumentSyncKind.Full)
    service = Service(made)
    actions = types.CodeActionOptions(
        code_action_kinds=[types.CodeActionKind.QuickFix, convert.FIX_ALL], resolve_provider=True
    )
    made.feature(types.INITIALIZED)(_function(service.initialized))
    made.feature(types.TEXT_DOCUMENT_DID_OPEN)(_function(service.opened))
    made.feature(types.TEXT_DOCUMENT_DID_CHANGE)(_function(service.changed))
    made.feature(types.TEXT_DOCUMENT_DID_SAVE)(_function(service.saved))
    made.feature(types.TEXT_DOCUMENT_DID_CLOSE)(_function(service.closed))
    made.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)(_function(service.files_changed))
    made.feature(types.SHUTDOWN)(_function(service.shut_down))
    made.feature(types.TEXT_DOCUMENT_HOVER)(_function(service.hover))
    made.feature(types.TEXT_DOCUMENT_CODE_ACTION, actions)(_function(service.code_actions))
    made.feature(types.CODE_ACTION_RESOLVE)(_function(service.resolve))

    async def fix_all(uri: str) -> None:
        await service.fix_all(uri)

    made.command(_FIX_ALL_COMMAND)(fix_all)
    return made


def _function(method: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A method as a function: pygls notes things on its handlers."""
    if inspect.iscoroutinefunction(method):

        async def later(params: Any) -> Any:
            return await method(params)

        return later

    def at_once(params: Any) -> None:
        method(params)

    return at_once
