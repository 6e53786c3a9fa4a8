"""Text to syntax tree. What the running interpreter's parser refuses as newer syntax is rewritten and read again."""

from __future__ import annotations

import ast
import sys
import warnings

from perflint.errors import SourceError
from perflint.syntax import evaluated_names, named_arguments, type_comments
from perflint.syntax.file import SourceFile
from perflint.syntax.plain_bindings import bind_plainly
from perflint.syntax.plain_calls import call_plainly
from perflint.syntax.plain_modes import say_modes_plainly


def parse(source: SourceFile) -> ast.Module:
    """The tree of `source`, with the positions of its own text.

    Raises SourceError with the line, where there is one, for what does not parse or nests too deep.
    """
    tree = _tree(source)
    type_comments.annotate(tree, source.text)
    evaluated_names.read(tree, source.text)
    named_arguments.by_place(tree, source.text)
    return tree


def plainly_parsed(source: SourceFile) -> ast.Module:
    """The same with bindings and calls in their plain form: what the analysis goes through."""
    tree = parse(source)
    bind_plainly(tree, source.text)
    call_plainly(tree, source.text)
    say_modes_plainly(tree, source.text)
    return tree


def _tree(source: SourceFile) -> ast.Module:
    try:
        return parse_text(source.text)
    except SyntaxError as error:
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


def parse_newer(text: str, version: tuple[int, int] = sys.version_info[:2]) -> ast.Module | None:
    """The tree of `text`, None when nothing in it is newer than Python `version`.

    Raises SyntaxError when the rewritten text does not parse either, and SourceError as `parse_text` does.
    """
    # Imported late: hardly any file needs it.
    from perflint.syntax.newer_syntax import NewerSyntax

    newer = NewerSyntax(text, version)
    if not newer.rewriting.changed:
        return None
    tree = parse_text(newer.rewriting.text())
    newer.restore(tree)
    return tree


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
