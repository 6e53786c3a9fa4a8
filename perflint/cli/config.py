"""`perflint config`: the settings that hold and where each came from, and schemas for other tools."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from perflint.cli import console, project
from perflint.cli.app import CLEAN
from perflint.project.discovery import common_folder, display_path, project_root

if TYPE_CHECKING:
    from perflint.project.settings import Settings


@click.group("config")
def command() -> None:
    """Show the effective configuration, or its schema."""


@dataclass(frozen=True, slots=True)
class _Value:
    key: str
    value: Any
    source: str


@command.command("show")
@click.argument("path", default=".", shell_complete=project.complete_files)
@click.option("--config", type=click.Path(path_type=Path), help="Use this configuration file.")
@click.option("--output-format", type=click.Choice(("text", "json")), default="text", help="Output format.")
def show(path: str, config: Path | None, output_format: str) -> int:
    """Show the effective settings for PATH: value and source of each."""
    settings = project.settings_for((project.existing(path),), config, None)
    values = list(_values(settings, common_folder([Path(path).absolute()])))
    if output_format == "json":
        file = None if settings.file is None else display_path(settings.file)
        listed = {one.key: {"value": one.value, "source": one.source} for one in values}
        console.write(json.dumps({"file": file, "settings": listed}, indent=2) + "\n")
        return CLEAN
    console.write(f"{'no configuration file' if settings.file is None else display_path(settings.file)}\n\n")
    shown = [(one.key, _toml(one.value), one.source) for one in values]
    widths = [max(len(row[column]) for row in shown) for column in (0, 1)]
    for key, value, source in shown:
        console.write(f"{key.ljust(widths[0])} = {value.ljust(min(widths[1], 40))}  # {source}\n")
    return CLEAN


@command.command("schema")
@click.argument("of", type=click.Choice(("config", "report", "observation")), default="config")
def schema(of: str) -> int:
    """Print the JSON schema of the configuration (`config`, the default), the JSON `report` or an `observation`."""
    from perflint.cli import schemas

    made = {"config": schemas.configuration, "report": schemas.report, "observation": schemas.observation}[of]
    console.write(json.dumps(made(), indent=2) + "\n")
    return CLEAN


def _values(settings: Settings, folder: Path) -> Iterator[_Value]:
    from perflint.project.settings import lines_of_keys

    given = lines_of_keys(settings.file) if settings.file is not None else {}
    for field in fields(settings):
        key = field.name.replace("_", "-")
        if key in ("file", "sole", "decided"):
            continue
        value = _plain(settings.failing if key == "fail-on" else getattr(settings, field.name), settings)
        if key in given:
            assert settings.file is not None
            line = "" if given[key] is None else f":{given[key]}"
            yield _Value(key, value, f"{display_path(settings.file)}{line}")
        else:
            yield _worked_out(key, value, folder)


def _worked_out(key: str, value: Any, folder: Path) -> _Value:
    """The effective value in a folder without a configuration file."""
    root = project_root([folder])
    if key == "target-torch":
        from perflint.engine.governing import torch_required

        found = torch_required(folder, root).lowest
        if found is not None:
            return _Value(key, "{}.{}".format(*found.version), f"{display_path(found.file)}:{found.line}")
        return _Value(key, "newest", "default")
    if key == "jobs":
        return _Value(key, project.default_jobs(), "number of processors")
    if key == "cache-dir":
        from perflint.engine.cache import FOLDER

        return _Value(key, None if root is None else display_path(root / FOLDER), "default")
    if key in {"impact", "sort"}:
        return _Value(key, "default of the output format", "default")
    if key == "select":
        return _Value(key, "all core rules", "default")
    return _Value(key, value, "default")


def _plain(value: Any, settings: Settings) -> Any:
    """As it would be written."""
    from perflint.finding import Confidence, Impact
    from perflint.project.settings import FailOn

    if isinstance(value, (Confidence, Impact)):
        return value.label
    if isinstance(value, FailOn):
        return f"impact={value.impact.label},confidence={value.confidence.label}"
    if isinstance(value, Path):
        return display_path(value)
    if isinstance(value, tuple):
        return list(value)
    return {key: _plain(one, settings) for key, one in value.items()} if hasattr(value, "items") else value


def _toml(value: Any) -> str:
    """Near enough to TOML to be read; None is what cannot be written."""
    return "none" if value is None else json.dumps(value, ensure_ascii=False)
