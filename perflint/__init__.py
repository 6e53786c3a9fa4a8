"""perflint finds, fixes and proves performance mistakes in PyTorch training code.

Importing this package loads nothing heavy: the parts are imported where they are used.
"""

from __future__ import annotations

import os as _os

__version__ = "0.1.0"

# The built-in rules live in the top-level folder `rules/` and install as `perflint.rules`. In a
# checkout (and where the current directory's `perflint` hides the installed one) that folder is a
# sibling of this package, so the parent folder joins the search path; in a wheel it never does.
_here = _os.path.dirname(_os.path.abspath(__file__))
if not _os.path.exists(_os.path.join(_here, "rules", "__init__.py")):
    __path__.append(_os.path.dirname(_here))
