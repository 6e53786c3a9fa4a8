"""Arguments, exit codes and everything that is printed. One module a command, imported when it is called."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from typing import NoReturn

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

    _end(run(sys.argv[1:]))


def _end(code: int) -> NoReturn:
    """End the process. What a check leaves is not freed: to free a program and its trees one by one takes an eighth of
    a run. It is where somebody watches what is run, and where threads are still at work.
    """
    threads = sys.modules.get("threading")
    is_watched = sys.gettrace() is not None or sys.getprofile() is not None
    if "perflint.engine" not in sys.modules or is_watched or (threads and threads.active_count() > 1):
        sys.exit(code)
    try:
        atexit._run_exitfuncs()  # noqa: SLF001 - nothing public does it; what they raise is printed
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):  # nobody is there to read it
        sys.exit(code)
    os._exit(code)
