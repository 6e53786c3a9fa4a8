"""Files inside of a package that nobody can install: what is run of that says which parts it takes, and what nothing
imports are parts that nobody took.
"""

from __future__ import annotations

from collections.abc import Container

from perflint.analysis.call_graph.references import References
from perflint.torch_model.packages import is_installed


def is_inside(path: str, files: Container[str], configured: frozenset[str]) -> bool:
    """Whether a file is such a part. Of a program of which no configuration is known, nothing is known of that."""
    if not configured or is_installed(path, configured):
        return False
    folder, inside = path.rpartition("/")[0], False
    while folder and f"{folder}/__init__.py" in files:
        folder, inside = folder.rpartition("/")[0], True
    return inside and not is_set_up(folder, files)


def is_set_up(folder: str, files: Container[str]) -> bool:
    """Whether a folder, or one around it, says how what it holds is installed."""
    while folder and f"{folder}/setup.py" not in files:
        folder = folder.rpartition("/")[0]
    return f"{folder}/setup.py".lstrip("/") in files


def is_taken_over(folder: str, references: References) -> bool:
    """Whether files outside of a folder import some of those in it: what lies there is a part of their project."""
    inside = f"{folder}/"
    return bool(folder) and any(
        any(other.startswith(inside) for other in references.imported_files(path))
        for path in references.summaries
        if not path.startswith(inside)
    )
