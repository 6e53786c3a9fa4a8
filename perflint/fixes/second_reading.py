"""A rewritten file is read by a second, independent parser before it is written: libcst, which keeps every character.

The edits are made on text and checked with the standard parser; a mistake that both of those share would show here.
Only files that are about to change are read, since a lossless tree costs ten times what the standard one does.
"""

from __future__ import annotations


def second_reading(before: str, after: str) -> str | None:
    """Why `after` cannot be what was meant, None when a second parser reads it to the last character.

    A file that this parser could not read before its change (syntax newer than it knows) is no evidence either way.
    """
    fault = _fault(after)
    return None if fault is None or _fault(before) is not None else fault


def _fault(text: str) -> str | None:
    import libcst

    try:
        return None if libcst.parse_module(text).code == text else "is not reproduced by a second parser"
    except (libcst.ParserSyntaxError, libcst.CSTValidationError, RecursionError, ValueError) as error:
        return f"a second parser rejects it: {str(error).partition(chr(10))[0]}"
