"""Arguments, exit codes and everything that is printed. One module a command, imported when it is called."""

from __future__ import annotations

import sys


def main() -> None:
    """The `perflint` command."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        # Editors and installers ask for it often; nothing needs to be imported to answer.
        from perflint import __version__

        sys.stdout.write(f"perflint {__version__}\n")
        return
    from perflint.cli.app import run

    sys.exit(run(sys.argv[1:]))
