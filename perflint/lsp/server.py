"""When what is checked: on open, change and save; one check at a time, given up when a newer text is there."""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path
from pygls.workspace import PositionCodec

from perflint import __version__
from perflint.errors import PerflintError
from perflint.finding import Applicability, Edit, Finding
from perflint.lsp import convert
from perflint.lsp.analysis import Analyst, CancelledError, Result, begins_a_block, silencing
from perflint.lsp.documents import Document, Part
from perflint.syntax.file import SourceFile
from perflint.syntax.notebook_json import SUFFIX

T = TypeVar("T")

#: Seconds of quiet after a keystroke before it is worth looking.
_QUIET = 0.25
_FIX_ALL_COMMAND = "perflint.fixAll"


class Service:
    """The handlers, and the documents they are about. Its methods run on the event loop, checks on one thread."""

    def __init__(self, server: Any) -> None:
        self.server = server
        self._analyst = Analyst()
        self._documents: dict[str, Document] = {}
        #: The document each URI belongs to: for a file its own, for a cell the notebook's.
        self._owners: dict[str, str] = {}
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
        part = Part(item.uri, item.text, item.version)
        self._open(Document(item.uri, Path(path).absolute(), item.version, [part]))

    def changed(self, params: types.DidChangeTextDocumentParams) -> None:
        document = self._document(params.text_document.uri)
        if document is None or document.is_notebook:
            return
        self._change(document.parts[0], params.text_document, params.content_changes)
        document.version = params.text_document.version
        self._check_soon(_QUIET)

    def closed(self, params: types.DidCloseTextDocumentParams) -> None:
        self._close(params.text_document.uri)

    def notebook_opened(self, params: types.DidOpenNotebookDocumentParams) -> None:
        notebook = params.notebook_document
        path = to_fs_path(notebook.uri)
        if path is None:
            return
        # A notebook that nobody saved yet has no suffix.
        file = Path(path).absolute()
        file = file if file.suffix == SUFFIX else file.with_name(f"{file.name}{SUFFIX}")
        texts = {item.uri: item for item in params.cell_text_documents}
        parts = [_part_of(cell, texts) for cell in notebook.cells]
        self._open(Document(notebook.uri, file, notebook.version, parts, is_notebook=True))

    def notebook_changed(self, params: types.DidChangeNotebookDocumentParams) -> None:
        document = self._documents.get(params.notebook_document.uri)
        if document is None:
            return
        document.version = params.notebook_document.version
        cells = params.change.cells
        if cells is not None and cells.structure is not None:
            self._rearrange(document, cells.structure)
        parts = {part.uri: part for part in document.parts}
        for data in (cells.data if cells else None) or ():
            if data.document in parts:
                parts[data.document].is_code = data.kind is types.NotebookCellKind.Code
        for content in (cells.text_content if cells else None) or ():
            if content.document.uri in parts:
                self._change(parts[content.document.uri], content.document, content.changes)
        self._check_soon(_QUIET)

    def _rearrange(self, document: Document, structure: types.NotebookDocumentCellChangeStructure) -> None:
        array = structure.array
        texts = {item.uri: item for item in structure.did_open or ()}
        there = {part.uri: part for part in document.parts}
        fresh = [there.get(cell.document) or _part_of(cell, texts) for cell in array.cells or ()]
        document.parts[array.start : array.start + array.delete_count] = fresh
        for closed in structure.did_close or ():
            self._owners.pop(closed.uri, None)
            self._publish(closed.uri, [], None)
        self._owners |= {part.uri: document.uri for part in document.parts}

    def notebook_closed(self, params: types.DidCloseNotebookDocumentParams) -> None:
        self._close(params.notebook_document.uri)

    def _document(self, uri: str) -> Document | None:
        """The document that a URI, of a cell perhaps, belongs to."""
        return self._documents.get(self._owners.get(uri, ""))

    def _open(self, document: Document) -> None:
        self._documents[document.uri] = document
        self._owners |= {part.uri: document.uri for part in document.parts}
        self._check_soon(0)

    def _close(self, uri: str) -> None:
        document = self._documents.pop(uri, None)
        if document is not None:
            document.settled.set()
            for part in document.parts:
                self._owners.pop(part.uri, None)
                self._publish(part.uri, [], None)

    def _change(self, part: Part, which: types.VersionedTextDocumentIdentifier, changes: Sequence[Any]) -> None:
        for change in changes:
            part.text = convert.changed(part.text, change, self._units.codec)
        part.version = which.version

    def saved(self, _params: Any) -> None:
        self._check_soon(0)

    def files_changed(self, _params: types.DidChangeWatchedFilesParams) -> None:
        self._check_soon(_QUIET)

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
        sources = {one.uri: one.source() for one in documents}
        texts = {one.file: sources[one.uri].text for one in documents}
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
                source, found = sources[document.uri], results.get(document.file)
                placed = () if found is None else tuple(map(source.placed, found.findings))
                document.result = None if found is None else Result(source, placed, found.problems)
                document.checked = document.version
                document.settled.set()
                for part in document.parts:
                    self._publish(part.uri, self._diagnostics(document, part), part.version)

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

    def _diagnostics(self, document: Document, part: Part) -> list[types.Diagnostic]:
        units, source = self._units, part.source
        found = [convert.diagnostic(finding, source, units) for finding, _ in document.findings_in(part.uri)]
        # What is wrong with a cell, the notebook itself shows.
        problems = document.result.problems if document.result is not None and not document.is_notebook else ()
        return found + [convert.problem(one, source, units) for one in problems]

    def _publish(self, uri: str, diagnostics: list[types.Diagnostic], version: int | None) -> None:
        self.server.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri=uri, diagnostics=diagnostics, version=version)
        )

    @property
    def _units(self) -> convert.Units:
        return convert.Units(PositionCodec(self.server.server_capabilities.position_encoding))

    async def _settled(self, uri: str) -> Document | None:
        """The document of a URI once its present text is checked; None for one not ours, or closed meanwhile."""
        document = self._document(uri)
        if document is None:
            return None
        await document.settled.wait()
        return document if document.uri in self._documents and document.result is not None else None

    # Requests

    async def hover(self, params: types.HoverParams) -> types.Hover | None:
        uri = params.text_document.uri
        document = await self._settled(uri)
        if document is None:
            return None
        for finding, part in document.findings_in(uri):
            where = self._units.range(part.source, finding.span)
            if _touch(where, types.Range(params.position, params.position)):
                rule = next((rule for rule in self._analyst.rules if rule.code == finding.code), None)
                text = convert.hover(finding, rule)
                return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, text), where)
        return None if document.is_notebook else await self._heat_of(document, params.position.line)

    async def _heat_of(self, document: Document, line: int) -> types.Hover | None:
        """How often a function or loop runs and why, asked for at the line it begins on."""
        source = document.parts[0].source
        if line >= len(source.lines) or not begins_a_block(source.lines[line]):
            return None
        texts = self._texts()
        try:
            text = await self._cancellable(lambda stop: self._analyst.heat(texts, document.file, line + 1, stop))
        except PerflintError:
            return None
        return types.Hover(types.MarkupContent(types.MarkupKind.PlainText, text))

    def _texts(self) -> dict[Path, str]:
        return {one.file: one.source().text for one in self._documents.values()}

    async def code_actions(self, params: types.CodeActionParams) -> list[types.CodeAction]:
        uri = params.text_document.uri
        document = await self._settled(uri)
        if document is None or document.result is None:
            return []
        made: list[types.CodeAction] = []
        if _asks_for(params, types.CodeActionKind.QuickFix.value):
            for finding, part in document.findings_in(uri):
                if _touch(self._units.range(part.source, finding.span), params.range):
                    made += self._actions_for(document, finding, part, document.result.source)
        if _asks_for(params, convert.FIX_ALL) and any(map(_is_safely_fixed, document.result.findings)):
            # The edit takes several checks, so it is worked out when the action is chosen.
            made.append(
                types.CodeAction(
                    "perflint: apply all safe fixes",
                    kind=convert.FIX_ALL,
                    data={"uri": uri},
                    edit=None if self._resolves else await self._fix_all_edit(document),
                )
            )
        return made

    def _actions_for(
        self, document: Document, finding: Finding, part: Part, source: SourceFile
    ) -> list[types.CodeAction]:
        diagnostics = [convert.diagnostic(finding, part.source, self._units)]
        made = []
        fix = finding.fix
        if fix is not None and fix.applicability is not Applicability.SHOWN:
            made.append(
                types.CodeAction(
                    convert.fix_title(finding, fix),
                    kind=types.CodeActionKind.QuickFix,
                    diagnostics=diagnostics,
                    is_preferred=fix.applicability is Applicability.SAFE,
                    edit=self._edit([(document.part_of(edit.cell), edit) for edit in fix.edits]),
                )
            )
        silence = silencing(source, finding)
        if silence is not None and finding.code != "TPL001":
            made.append(
                types.CodeAction(
                    f"{finding.code}: suppress on this line",
                    kind=types.CodeActionKind.QuickFix,
                    diagnostics=diagnostics,
                    edit=self._edit([(document.part_of(edit.cell), edit) for edit in silence.edits]),
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

    async def _fix_all_edit(self, document: Document) -> types.WorkspaceEdit | None:
        texts = self._texts()
        text = await self._cancellable(lambda stop: self._analyst.fix_all(texts, document.file, stop))
        edits = list(document.rewritten(text))
        return self._edit(edits) if edits else None

    def _edit(self, edits: Sequence[tuple[Part, Edit]]) -> types.WorkspaceEdit:
        """With the versions it is meant for, where the client can hold them against its own."""
        by_part: dict[str, tuple[Part, list[Edit]]] = {}
        for part, edit in edits:
            by_part.setdefault(part.uri, (part, []))[1].append(edit)
        texts = {uri: convert.text_edits(own, part.source, self._units) for uri, (part, own) in by_part.items()}
        workspace = self.server.client_capabilities.workspace
        if workspace and workspace.workspace_edit and workspace.workspace_edit.document_changes:
            return types.WorkspaceEdit(
                document_changes=[
                    types.TextDocumentEdit(
                        types.OptionalVersionedTextDocumentIdentifier(uri, by_part[uri][0].version), listed
                    )
                    for uri, listed in texts.items()
                ]
            )
        return types.WorkspaceEdit(changes=texts)

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


def _part_of(cell: types.NotebookCell, texts: Mapping[str, types.TextDocumentItem]) -> Part:
    """A cell as it is opened. One in another language is no code to us."""
    item = texts.get(cell.document)
    is_code = cell.kind is types.NotebookCellKind.Code and (item is None or item.language_id == "python")
    return Part(cell.document, item.text if item else "", item.version if item else None, is_code)


def server() -> Any:
    """A server ready to be started on any channel."""
    jupyter = types.NotebookDocumentFilterWithNotebook(types.NotebookDocumentFilterNotebookType("jupyter-notebook"))
    notebooks = types.NotebookDocumentSyncOptions([jupyter], save=True)
    made = LanguageServer("perflint", __version__, notebook_document_sync=notebooks)
    service = Service(made)
    actions = types.CodeActionOptions(
        code_action_kinds=[types.CodeActionKind.QuickFix, convert.FIX_ALL], resolve_provider=True
    )
    made.feature(types.INITIALIZED)(_function(service.initialized))
    made.feature(types.TEXT_DOCUMENT_DID_OPEN)(_function(service.opened))
    made.feature(types.TEXT_DOCUMENT_DID_CHANGE)(_function(service.changed))
    made.feature(types.TEXT_DOCUMENT_DID_SAVE)(_function(service.saved))
    made.feature(types.TEXT_DOCUMENT_DID_CLOSE)(_function(service.closed))
    made.feature(types.NOTEBOOK_DOCUMENT_DID_OPEN)(_function(service.notebook_opened))
    made.feature(types.NOTEBOOK_DOCUMENT_DID_CHANGE)(_function(service.notebook_changed))
    made.feature(types.NOTEBOOK_DOCUMENT_DID_SAVE)(_function(service.saved))
    made.feature(types.NOTEBOOK_DOCUMENT_DID_CLOSE)(_function(service.notebook_closed))
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
