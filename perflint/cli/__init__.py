"""Arguments, exit codes and everything that is printed. One module a command, imported when it is called."""

from __future__ import annotations

import gc
import sys

#: So many objects are made before the collector looks: all that starting makes stays, so that looking finds nothing.
_MADE = 100_000


def main() -> None:
    """The `perflint` command."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        # Editors and installers ask for it often; nothing needs to be imported to answer.
        from perflint import __version__

        sys.stdout.write(f"perflint {__version__}\n")
        return
    gc.set_threshold(_MADE)
    from perflint.cli.app import run

    sys.exit(run(sys.argv[1:]))
