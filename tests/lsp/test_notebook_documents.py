"""Notebooks in an editor: each cell a document of its own, checked together as one module."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("pygls")

from lsp_client import Editor, applied, editor, session
from lsprotocol import types

SET_UP = "%matplotlib inline\nimport copy, gc\nimport torch\n"
STEP = "def step(model: torch.nn.Module, batch):\n    model(batch).sum().backward()\n    gc.collect()"
LOOP = "for batch in loader:\n    step(model, batch)\n    optimizer.step()\n"
SAVE = "def keep(model: torch.nn.Module):\n    torch.save(copy.deepcopy(model.state_dict()), 'x')\n"
CELLS = [("markdown", "# Training"), ("python", SET_UP), ("python", STEP), ("python", LOOP)]
COPIED, PLAIN = "copy.deepcopy(model.state_dict())", "model.state_dict()"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text("")
    return tmp_path


class Notebook:
    """An open notebook in the editor."""

    def __init__(self, client: Editor, cells: Sequence[tuple[str, str]]) -> None:
        self.client = client
        self.uri = client.uri("n.ipynb")
        self.version = 1
        self.cells = [f"vscode-notebook-cell:{client.root.as_posix()}/n.ipynb#{number}" for number in range(len(cells))]
        made = [self._cell(uri, kind) for uri, (kind, _) in zip(self.cells, cells)]
        texts = [types.TextDocumentItem(uri, kind, 1, text) for uri, (kind, text) in zip(self.cells, cells)]
        document = types.NotebookDocument(self.uri, "jupyter-notebook", 1, made)
        client.client.notebook_document_did_open(types.DidOpenNotebookDocumentParams(document, texts))

    @staticmethod
    def _cell(uri: str, kind: str) -> types.NotebookCell:
        code = types.NotebookCellKind.Code if kind != "markdown" else types.NotebookCellKind.Markup
        return types.NotebookCell(code, uri)

    def change(self, changes: types.NotebookDocumentCellChanges) -> None:
        self.version += 1
        self.client.published.clear()
        which = types.VersionedNotebookDocumentIdentifier(self.version, self.uri)
        event = types.NotebookDocumentChangeEvent(cells=changes)
        self.client.client.notebook_document_did_change(types.DidChangeNotebookDocumentParams(which, event))

    def write(self, cell: int, text: str) -> None:
        content = types.NotebookDocumentCellContentChanges(
            types.VersionedTextDocumentIdentifier(2, self.cells[cell]),
            [types.TextDocumentContentChangeWholeDocument(text)],
        )
        self.change(types.NotebookDocumentCellChanges(text_content=[content]))

    def insert(self, at: int, text: str) -> None:
        uri = f"{self.cells[0]}-new"
        self.cells.insert(at, uri)
        array = types.NotebookCellArrayChange(at, 0, [self._cell(uri, "python")])
        item = types.TextDocumentItem(uri, "python", 1, text)
        structure = types.NotebookDocumentCellChangeStructure(array, did_open=[item])
        self.change(types.NotebookDocumentCellChanges(structure=structure))

    def delete(self, at: int) -> None:
        uri = self.cells.pop(at)
        structure = types.NotebookDocumentCellChangeStructure(
            types.NotebookCellArrayChange(at, 1), did_close=[types.TextDocumentIdentifier(uri)]
        )
        self.change(types.NotebookDocumentCellChanges(structure=structure))

    async def codes(self) -> list[list[tuple[str, int]]]:
        """For each cell, codes and lines (from 1)."""
        found = [await self.client.published_for(uri) for uri in self.cells]
        return [[(str(one.code), one.range.start.line + 1) for one in cell] for cell in found]

    async def actions(self, cell: int, line: int, *only: str) -> list[types.CodeAction]:
        where = types.Range(types.Position(line - 1, 0), types.Position(line - 1, 200))
        context = types.CodeActionContext(diagnostics=[], only=list(only) or None)
        params = types.CodeActionParams(types.TextDocumentIdentifier(self.cells[cell]), where, context)
        return list(await asyncio.wait_for(self.client.client.text_document_code_action_async(params), 60) or [])


def test_cells_are_one_module_and_each_shows_its_own_findings(root: Path) -> None:
    async def run() -> None:
        async with editor(root) as client:
            notebook = Notebook(client, CELLS)
            assert await notebook.codes() == [[], [], [("TPL303", 3)], []]
            notebook.write(3, LOOP.replace("    step(", "step("))
            assert await notebook.codes() == [[], [], [], []]
            notebook.write(3, LOOP)
            assert await notebook.codes() == [[], [], [("TPL303", 3)], []]
            notebook.insert(1, "x = 1\n")
            assert await notebook.codes() == [[], [], [], [("TPL303", 3)], []]
            notebook.delete(4)
            assert await notebook.codes() == [[], [], [], []]

    session(run())


def test_fixes_and_comments_change_the_cells(root: Path) -> None:
    async def run() -> None:
        async with editor(root) as client:
            notebook = Notebook(client, [*CELLS, ("python", SAVE)])
            fix, silence = await notebook.actions(4, 2, "quickfix")
            assert applied(fix.edit, SAVE) == SAVE.replace(COPIED, PLAIN)
            assert applied(silence.edit, SAVE).splitlines()[1].endswith("'x')  # perflint: ignore[TPL301]")
            assert silence.edit is not None
            assert silence.edit.document_changes is not None
            assert silence.edit.document_changes[0].text_document.uri == notebook.cells[4]
            (action,) = await notebook.actions(1, 1, "source.fixAll")
            resolved = await client.client.code_action_resolve_async(action)
            assert applied(resolved.edit, SAVE) == SAVE.replace(COPIED, PLAIN)
            (unsafe, _) = await notebook.actions(2, 3, "quickfix")
            assert "gc.collect" not in applied(unsafe.edit, STEP)

    session(run())


def test_a_cell_shows_the_page_of_its_finding(root: Path) -> None:
    async def run() -> None:
        async with editor(root) as client:
            notebook = Notebook(client, CELLS)
            where = types.TextDocumentIdentifier(notebook.cells[2])
            found = await client.client.text_document_hover_async(types.HoverParams(where, types.Position(2, 6)))
            assert "TPL303" in found.contents.value

    session(run())


def test_a_cell_that_does_not_parse_leaves_the_others(root: Path) -> None:
    async def run() -> None:
        async with editor(root) as client:
            notebook = Notebook(client, [*CELLS, ("python", "x = = 1"), ("sql", "select 1")])
            assert await notebook.codes() == [[], [], [("TPL303", 3)], [], [], []]

    session(run())
