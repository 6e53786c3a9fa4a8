"""`python -m perflint`."""

import sys
from pathlib import Path

# `-m` puts the working directory first on the search path, and what lies there is read, never run: a `torch.py` or a
# `click/` of the project must not be taken for the library. In a checkout that folder is where perflint itself is.
if not getattr(sys.flags, "safe_path", False) and Path(sys.path[0]).resolve() != Path(__file__).resolve().parent.parent:
    del sys.path[0]

from perflint.cli import main

if __name__ == "__main__":
    main()
