"""Text to syntax tree. What the running interpreter's parser refuses as newer syntax is rewritten and read again."""

from __future__ import annotations

import ast
import warnings

from perflint.errors import SourceError
from perflint.source.file import SourceFile


def parse(source: SourceFile) -> ast.Module:
    """The tree of `source`, with the positions of its own text.

    Raises SourceError with the line, where there is one, for what does not parse or nests too deep.
    """
    try:
        return parse_text(source.text)
    except SyntaxError as error:
        # Imported late: hardly any file needs it.
        from perflint.source.newer_syntax import parse_newer

        try:
            tree = parse_newer(source.text)
        except SyntaxError as second:
            # The rewritten text is refused further down: there is the mistake, the first was newer syntax.
            error = max(error, second, key=lambda one: one.lineno or 0)
        except RecursionError as second:
            raise SourceError("nested too deep to be parsed") from second
        else:
            if tree is not None:
                return tree
        raise SourceError(f"does not parse: {error.msg}", error.lineno) from error


def parse_text(text: str) -> ast.Module:
    """`ast.parse` without warnings about the code it reads. Raises SyntaxError, or SourceError for all else."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text)
        except (RecursionError, MemoryError) as error:
            raise SourceError("nested too deep to be parsed") from error
        except SyntaxError:
            raise
        except ValueError as error:  # null characters, lone surrogates
            raise SourceError(f"does not parse: {error}") from error
