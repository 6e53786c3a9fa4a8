"""`perflint server` as an editor meets it: a real client, over standard input and output."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

pytest.importorskip("pygls")

from lsp_client import applied, editor, session
from lsprotocol import types

from perflint.cli import app

HOT = """import gc


def train(model, loader, optimizer):
    for batch in loader:
        model(batch).sum().backward()
        optimizer.step()
        gc.collect()
"""
COLD = HOT.replace("        gc.collect()", "    gc.collect()")
TIDY = "import gc\n\n\ndef tidy():\n    gc.collect()\n"
CALLER = HOT.replace("import gc", "from tidy import tidy").replace("gc.collect()", "tidy()")
SAVE = """import copy
import torch


def keep(model: torch.nn.Module, path):
    x = "\U0001f525"; torch.save(copy.deepcopy(model.state_dict()), path)
    torch.save(copy.deepcopy(model.state_dict()), path)
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text("")
    return tmp_path


def test_findings_follow_the_text_in_the_editor_and_not_the_one_on_disk(root: Path) -> None:
    (root / "train.py").write_text(COLD)

    async def run() -> None:
        async with editor(root) as client:
            client.open("train.py", HOT)
            (found,) = await client.diagnostics("train.py")
            assert (found.code, found.source, found.range.start.line, found.range.start.character) == (
                "TPL303",
                "perflint",
                7,
                8,
            )
            assert "Why hot: runs every step: train.py:5" in found.message
            (hop,) = list(found.related_information or [])
            assert (hop.location.uri, hop.location.range.start.line) == (client.uri("train.py"), 4)
            client.change("train.py", COLD)
            assert await client.codes("train.py") == []
            client.change("train.py", "\n" + HOT)
            assert await client.codes("train.py") == [("TPL303", 9)]
            client.save("train.py")
            assert await client.codes("train.py", again=True) == [("TPL303", 9)]
            client.type("train.py", (9, 8), (9, 18), "gc.freeze")
            assert await client.codes("train.py") == []
            client.type("train.py", (9, 8), (9, 17), "gc.collect")
            assert await client.codes("train.py") == [("TPL303", 9)]
            client.close("train.py")
            assert await client.codes("train.py", again=True) == []

    session(run())


def test_heat_comes_from_the_whole_workspace_and_from_other_open_texts(root: Path) -> None:
    (root / "tidy.py").write_text(TIDY)
    (root / "train.py").write_text(CALLER)

    async def run() -> None:
        async with editor(root) as client:
            client.open("tidy.py", TIDY)
            assert await client.codes("tidy.py") == [("TPL303", 5)]
            client.open("train.py", CALLER)
            await client.diagnostics("train.py")
            client.published.clear()
            client.change("train.py", CALLER.replace("        tidy()", "    tidy()"))
            assert await client.codes("tidy.py") == []
            # On disk the other one is as hot as before.
            client.close("train.py")
            client.save("tidy.py")
            assert await client.codes("tidy.py", again=True) == [("TPL303", 5)]
            (root / "train.py").write_text("x = 1\n")
            client.save("tidy.py")
            assert await client.codes("tidy.py", again=True) == []

    session(run())


def test_keystrokes_outrun_checks_and_the_last_text_counts(root: Path) -> None:
    async def run() -> None:
        async with editor(root) as client:
            client.open("train.py", HOT)
            for lines in range(1, 13):
                client.change("train.py", "\n" * lines + HOT)
                await asyncio.sleep(0.01 if lines % 3 else 0.3)
            assert await client.codes("train.py") == [("TPL303", 20)]

    session(run())


def test_quick_fixes_of_a_line(root: Path) -> None:
    async def run() -> None:
        async with editor(root) as client:
            client.open("save.py", SAVE)
            fix, silence = await client.actions("save.py", 6, "quickfix")
            assert fix.title == "TPL301: Pass `model.state_dict()` itself"
            assert fix.is_preferred
            assert fix.diagnostics is not None
            assert fix.diagnostics[0].code == "TPL301"
            # The column is told in UTF-16 units, and a letter before it takes two of them.
            assert fix.diagnostics[0].range.start.character == SAVE.splitlines()[5].index("copy") + 1
            assert applied(fix.edit, SAVE) == SAVE.replace("copy.deepcopy(model.state_dict())", "model.state_dict()", 1)
            assert silence.title == "TPL301: suppress on this line"
            quiet = applied(silence.edit, SAVE)
            assert quiet.splitlines()[5].endswith("path)  # perflint: ignore[TPL301]")
            client.change("save.py", quiet)
            assert await client.codes("save.py") == [("TPL301", 7)]
            assert await client.actions("save.py", 1, "quickfix") == []

    session(run())


def test_an_unsafe_fix_says_so(root: Path) -> None:
    async def run() -> None:
        async with editor(root) as client:
            client.open("train.py", HOT)
            fix = (await client.actions("train.py", 8))[0]
            assert "(unsafe: " in fix.title
            assert not fix.is_preferred
            assert "gc.collect" not in applied(fix.edit, HOT)

    session(run())


def test_all_safe_fixes_at_once_when_the_action_is_chosen(root: Path) -> None:
    mended = SAVE.replace("copy.deepcopy(model.state_dict())", "model.state_dict()")

    async def run() -> None:
        async with editor(root) as client:
            client.open("save.py", SAVE)
            for only in ("source", "source.fixAll", "source.fixAll.perflint"):
                (action,) = await client.actions("save.py", 1, only)
                assert action.edit is None
                resolved = await client.client.code_action_resolve_async(action)
                assert applied(resolved.edit, SAVE) == mended.removeprefix("import copy\n")
                change = resolved.edit.document_changes[0]
                assert change.text_document.version == 1
            client.change("save.py", mended)
            assert await client.actions("save.py", 1, "source.fixAll") == []

    session(run())


def test_an_editor_that_cannot_resolve_is_given_the_edit(root: Path) -> None:
    async def run() -> None:
        async with editor(root, modern=False) as client:
            client.open("save.py", SAVE.replace("\n", "\r\n"))
            (action,) = await client.actions("save.py", 1, "source.fixAll")
            wanted = SAVE.replace("copy.deepcopy(model.state_dict())", "model.state_dict()")
            wanted = wanted.removeprefix("import copy\n")
            assert applied(action.edit, SAVE.replace("\n", "\r\n")) == wanted.replace("\n", "\r\n")
            command = types.ExecuteCommandParams("perflint.fixAll", [client.uri("save.py")])
            await client.client.workspace_execute_command_async(command)
            assert applied(await client.edit(), SAVE.replace("\n", "\r\n")) == wanted.replace("\n", "\r\n")

    session(run())


def test_a_finding_shows_the_page_of_its_rule(root: Path) -> None:
    async def run() -> None:
        async with editor(root) as client:
            client.open("train.py", HOT)
            page = await client.hover("train.py", 8, 10)
            assert page is not None
            assert page.startswith("**TPL303 gc-in-hot-loop** (high impact")
            assert "## Not reported" in page
            assert await client.hover("train.py", 2, 0) is None

    session(run())


def test_a_function_or_a_loop_shows_how_often_it_runs_and_why(root: Path) -> None:
    (root / "tidy.py").write_text(TIDY)

    async def run() -> None:
        async with editor(root) as client:
            client.open("tidy.py", TIDY)
            client.open("train.py", CALLER)
            heat = await client.hover("tidy.py", 4, 5)
            assert heat is not None
            assert "runs every step" in heat
            assert "train.py:5  for batch in loader" in heat
            assert await client.hover("tidy.py", 1, 0) is None

    session(run())


def test_a_request_can_be_cancelled(root: Path) -> None:
    async def run() -> None:
        async with editor(root) as client:
            client.open("train.py", HOT)
            where = types.TextDocumentIdentifier(client.uri("train.py"))
            asked = client.client.text_document_hover_async(types.HoverParams(where, types.Position(7, 10)))
            asked = asyncio.ensure_future(asked)
            await asyncio.sleep(0)
            (number,) = client.client.protocol._request_futures
            client.client.cancel_request(types.CancelParams(number))
            with pytest.raises(Exception, match="cancel"):
                await asked
            assert await client.hover("train.py", 8, 10) is not None

    session(run())


def test_the_configuration_holds_and_a_wrong_one_is_said_once(root: Path) -> None:
    (root / "pyproject.toml").write_text('[tool.perflint]\nignore = ["TPL303"]\nexclude = ["third_party/"]\n')
    (root / "third_party").mkdir()
    (root / "third_party" / "train.py").write_text(HOT)

    async def run() -> None:
        async with editor(root) as client:
            client.open("train.py", HOT)
            assert await client.codes("train.py") == []
            client.open("third_party/train.py", HOT)
            assert await client.codes("third_party/train.py") == []
            (root / "pyproject.toml").write_text('[tool.perflint]\nselct = ["TPL303"]\n')
            for _ in range(2):
                client.save("train.py")
                assert await client.codes("train.py", again=True) == []
            assert "unknown key 'selct'" in await client.message()
            assert len(client.messages) == 1
            (root / "pyproject.toml").write_text("")
            client.save("train.py")
            assert await client.codes("train.py", again=True) == [("TPL303", 8)]

    session(run())


def test_a_text_that_does_not_parse_is_said_to_be_unchecked(root: Path) -> None:
    async def run() -> None:
        async with editor(root) as client:
            client.open("train.py", HOT + "def f(:\n")
            (found,) = await client.diagnostics("train.py")
            assert found.message.startswith("not checked: does not parse")
            assert found.severity is types.DiagnosticSeverity.Information
            assert found.range.start.line == 8
            client.change("train.py", HOT)
            assert await client.codes("train.py") == [("TPL303", 8)]

    session(run())


def test_a_bug_is_said_and_nobody_waits_for_ever(root: Path) -> None:
    (root / "sitecustomize.py").write_text(
        "import perflint.engine\ndef fail(*arguments):\n    raise KeyError('oh no')\n"
        "perflint.engine.check_overlay = fail\n"
    )

    async def run() -> None:
        async with editor(root, PYTHONPATH=f"{root}{os.pathsep}{os.environ.get('PYTHONPATH', '')}") as client:
            client.open("train.py", HOT)
            assert await client.codes("train.py") == []
            assert "bug in perflint: KeyError: 'oh no'" in await client.message()
            assert await client.hover("train.py", 8, 10) is None

    session(run())


def test_other_languages_are_left_alone(root: Path) -> None:
    async def run() -> None:
        async with editor(root) as client:
            client.open("data.json", json.dumps({}), "json")
            client.open("new.py", HOT)
            assert await client.codes("new.py") == [("TPL303", 8)]
            assert client.uri("data.json") not in client.published
            assert await client.hover("data.json", 1, 0) is None
            assert await client.actions("data.json", 1) == []

    session(run())


def test_without_the_extra_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "perflint.lsp.server", None)
    assert app.run(["server"]) == 2
    assert "torch-perflint[lsp]" in capfd.readouterr().err
