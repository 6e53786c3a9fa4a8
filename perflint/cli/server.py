"""`perflint server`."""

from __future__ import annotations

import logging

import click

from perflint.cli.app import CLEAN
from perflint.errors import PerflintError


@click.command("server")
@click.option("--stdio", is_flag=True, help="Use standard input and output (always on).")
@click.option("--debug", is_flag=True, help="Log to standard error.")
def command(*, stdio: bool, debug: bool) -> int:  # noqa: ARG001 - editors pass --stdio to every server
    """Start the language server for editors: findings while you type, fixes, and rule pages.

    It needs the extra: pip install 'torch-perflint[lsp]'.
    """
    try:
        from perflint.lsp.server import server
    except ImportError as error:
        raise PerflintError("the language server needs pygls: pip install 'torch-perflint[lsp]'") from error
    logging.basicConfig(level=logging.INFO if debug else logging.CRITICAL)
    server().start_io()
    return CLEAN
