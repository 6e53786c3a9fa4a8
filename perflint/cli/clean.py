"""`perflint clean`."""

from __future__ import annotations

from pathlib import Path

import click

from perflint.cli import console, project
from perflint.cli.app import CLEAN
from perflint.engine.cache import FOLDER, clean
from perflint.project.discovery import display_path, project_root
from perflint.report.visible import visible


@click.command("clean")
@click.argument("path", default=".")
@click.option("--config", type=click.Path(path_type=Path), help="Use this configuration file.")
def command(path: str, config: Path | None) -> int:
    """Delete the cache of the project around PATH."""
    settings = project.settings_for((project.existing(path),), config, None)
    root = project_root([Path(path).absolute()])
    folder = settings.cache_dir or (root / FOLDER if root is not None else None)
    if folder is not None and clean(folder):
        console.write(f"deleted {visible(display_path(folder))}\n")
    else:
        console.write("no cache to delete\n")
    return CLEAN
