"""Nothing of a project is run by reading it, whatever it holds and wherever perflint is started."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
#: Leaves its own name in the folder of markers when it is imported or run.
HOSTILE = """\
import pathlib
pathlib.Path({markers!r}, {name!r}.replace("/", "_")).write_text("was run")
"""
#: Names that perflint, Python or a tool of the project would import if the folder were on the search path.
MODULES = (
    "conftest.py sitecustomize.py usercustomize.py setup.py noxfile.py click.py pathspec.py rich.py tomli.py ast.py "
    "json.py sqlite3.py pygls/__init__.py libcst/__init__.py torch/__init__.py rules/__init__.py rules/bad.py "
    "perflint/rules/__init__.py perflint/rules/bad.py perflint_plugin/__init__.py build_hook.py"
).split()
TRAINING = """\
import torch
import gc
from torch_extra import *


def train(model, loader, optimizer):
    for batch in loader:
        loss = model(batch.to("cuda")).sum()
        loss.backward()
        optimizer.step()
        torch.cuda.empty_cache()
        gc.collect()
        print(loss.item())
        model.load_state_dict(__import__("copy").deepcopy(model.state_dict()))
"""
CONFIGURATION = """\
[build-system]
requires = []
build-backend = "build_hook"
backend-path = ["."]

[project]
name = "hostile"
version = "1"

[project.entry-points."perflint.rules"]
hostile = "perflint_plugin"

[tool.perflint]
extend-exclude-nothing = false
"""
COMMANDS = (
    ("check", "--extra"),
    ("check", "--no-cache", "--jobs", "2", "--output-format", "sarif"),
    ("fix",),
    ("fix", "--apply", "--unsafe"),
    ("fix", "--unsafe", "--diff"),
    ("baseline", "write"),
    ("check", "--fix", "--unsafe"),
    ("check", "--add-ignores", "--reason", "known"),
    ("baseline", "show"),
    ("explain", "TPL101"),
    ("rules",),
    ("config", "show"),
    ("clean",),
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder, markers = tmp_path / "project", tmp_path / "markers"
    markers.mkdir()
    for name in MODULES:
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(HOSTILE.format(markers=str(markers), name=name) + TRAINING)
    (folder / "train.py").write_text(TRAINING)
    (folder / "pyproject.toml").write_text(CONFIGURATION.replace("extend-exclude-nothing = false\n", ""))
    metadata = folder / "hostile-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: hostile\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text("[perflint.rules]\nhostile = perflint_plugin\n")
    return folder


def installed() -> list[str]:
    return [str(Path(sys.executable).with_name("perflint"))]


def as_module() -> list[str]:
    return [sys.executable, "-m", "perflint"]


def start(command: list[str], folder: Path) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, stdin=subprocess.DEVNULL, timeout=120, check=False
    )


@pytest.mark.skipif(not Path(installed()[0]).exists(), reason="perflint is not installed")
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
@pytest.mark.parametrize("inside", [True, False], ids=["from inside", "from outside"])
def test_no_command_runs_what_it_reads(project: Path, arguments: tuple[str, ...], *, inside: bool) -> None:
    paths = ["."] if inside else [project.name]
    if arguments == ("baseline", "show"):
        start([*installed(), "baseline", "write", *paths], project if inside else project.parent)
    takes_paths = arguments[0] in ("check", "fix", "baseline", "clean")
    done = start([*installed(), *arguments, *(paths if takes_paths else [])], project if inside else project.parent)
    assert b"Traceback" not in done.stderr
    assert done.returncode in (0, 1), done.stderr.decode()
    assert not list((project.parent / "markers").iterdir())


@pytest.mark.skipif(not Path(installed()[0]).exists(), reason="perflint is not installed")
@pytest.mark.parametrize("arguments", [("check", "--extra", "."), ("fix", "--apply", "--unsafe", "."), ("rules",)])
def test_run_as_a_module_it_does_not_import_from_the_working_directory(
    project: Path, arguments: tuple[str, ...]
) -> None:
    # A local package of perflint's own name is found by Python before perflint has a say.
    (project / "perflint").rename(project / "perflint_of_ours")
    done = start([*as_module(), *arguments], project)
    assert done.returncode in (0, 1), done.stderr.decode()
    assert not list((project.parent / "markers").iterdir())


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


def test_asking_git_runs_no_program_that_the_repository_names(project: Path) -> None:
    git(project, "init", "-q")
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "first")
    (project / "train.py").write_text(TRAINING + "\n\nx = 1\n")
    (project / "other.py").write_text(TRAINING)
    (project / ".gitattributes").write_text("*.py filter=bad diff=bad\n")
    program = project.parent / "program.sh"
    program.write_text(f"#!/bin/sh\ntouch {project.parent / 'markers' / 'git'}\ncat\n")
    program.chmod(0o755)
    for key in (
        "core.fsmonitor",
        "filter.bad.clean",
        "filter.bad.smudge",
        "filter.bad.process",
        "diff.external",
        "diff.bad.textconv",
        "diff.bad.command",
        "core.pager",
        "core.sshCommand",
    ):
        git(project, "config", key, str(program))
    command = [sys.executable, "-m", "perflint", "check", "--changed-since", "HEAD", str(project)]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, timeout=120, check=False)
    assert done.returncode in (0, 1), done.stderr.decode()
    assert not list((project.parent / "markers").iterdir())


def begin(command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, cwd=folder, env=environment, stdin=pipe, stdout=pipe, stderr=pipe)


class _Client:
    """As much of an editor as it takes to have a document checked."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._to, self._from = process.stdin, process.stdout

    def tell(self, method: str, params: Any, number: int | None = None) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params, **({} if number is None else {"id": number})}
        body = json.dumps(message).encode()
        self._to.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._to.flush()

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        while True:
            length = 0
            while (line := self._from.readline().strip()) or not length:
                assert line, "the server has ended"
                if line.lower().startswith(b"content-length:"):
                    length = int(line.split(b":")[1])
            message: dict[str, Any] = json.loads(self._from.read(length))
            if wanted(message):
                return message


@pytest.mark.skipif(not Path(installed()[0]).exists(), reason="perflint is not installed")
@pytest.mark.parametrize("inside", [True, False], ids=["from inside", "from outside"])
def test_the_language_server_runs_nothing_that_it_reads(project: Path, *, inside: bool) -> None:
    pytest.importorskip("pygls")
    process = begin([*installed(), "server"], project if inside else project.parent)
    client = _Client(process)
    file = {"uri": (project / "train.py").as_uri()}
    folder = {"uri": project.as_uri(), "name": "project"}
    client.tell(
        "initialize", {"processId": None, "rootUri": folder["uri"], "capabilities": {}, "workspaceFolders": [folder]}, 1
    )
    client.until(lambda message: message.get("id") == 1)
    client.tell("initialized", {})
    client.tell(
        "textDocument/didOpen", {"textDocument": {**file, "languageId": "python", "version": 1, "text": TRAINING}}
    )
    told = client.until(lambda message: message.get("method") == "textDocument/publishDiagnostics")
    assert told["params"]["diagnostics"]
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": 30, "character": 0}}
    asked = {"textDocument": file, "range": whole, "context": {"diagnostics": told["params"]["diagnostics"]}}
    client.tell("textDocument/codeAction", asked, 2)
    assert client.until(lambda message: message.get("id") == 2)["result"]
    client.tell("textDocument/hover", {"textDocument": file, "position": {"line": 6, "character": 5}}, 3)
    client.until(lambda message: message.get("id") == 3)
    client.tell("shutdown", None, 4)
    client.until(lambda message: message.get("id") == 4)
    client.tell("exit", None)
    _, complaints = process.communicate(timeout=60)
    assert b"Traceback" not in complaints
    assert not list((project.parent / "markers").iterdir())


@pytest.mark.usefixtures("heeded_signals")
@pytest.mark.skipif(not Path(installed()[0]).exists(), reason="perflint is not installed")
@pytest.mark.skipif(os.name == "nt", reason="interrupted by a signal")
@pytest.mark.parametrize("inside", [True, False], ids=["from inside", "from outside"])
def test_watching_runs_nothing_that_it_reads(project: Path, *, inside: bool) -> None:
    paths = ["."] if inside else [project.name]
    process = begin(
        [*installed(), "check", "--watch", "--output", os.devnull, *paths], project if inside else project.parent
    )
    assert process.stderr is not None
    try:
        for turn in range(2):
            while b"watching" not in (line := process.stderr.readline()):
                assert line, "it has ended"
            (project / "train.py").write_text(TRAINING + f"\n# {turn}\n")
    finally:
        process.send_signal(signal.SIGINT)
        _, complaints = process.communicate(timeout=60)
    assert b"Traceback" not in complaints
    assert process.returncode == 0
    assert not list((project.parent / "markers").iterdir())
