"""What IPython reads and Python does not: magics, shell lines and requests for help, taken out of a cell's text.

Such a line becomes `pass` or a comment that carries the line itself, so that every other line keeps its text and its
number, and the cell can be put back together after a rewrite. Text that parses is left alone: nothing of the sort is
Python.
"""

from __future__ import annotations

from perflint.errors import SourceError
from perflint.syntax.file import SourceFile
from perflint.syntax.parse import parse
from perflint.syntax.scan import logical_line_end
from perflint.system.patterns import pattern

_CARRIED = "# <perflint keeps> "
_LINE = pattern(r"[^\n]*\n|[^\n]+")
#: The rest of a cell that begins so is Python all the same.
_PYTHON_CELLS = frozenset(
    "capture debug lprun memit memray_flamegraph mprun prun python python3 time timeit wandb".split()
)
_CELL_MAGIC = pattern(r"\s*%%\s*(\w*)")
_ESCAPE = pattern(r"\s*(?:[%!?/;,]|[\w.*\[\]]+\?{1,2}\s*(?:$|\n))")
_ASSIGNED = pattern(r"[\w\s.,\[\]'\"*()]*=\s*(?:!|%\w)")
#: Commands that IPython runs without a mark.
_COMMAND = pattern(r"(?:pip3?|conda|mamba|uv|cd|ls|mkdir|rmdir|cp|mv|rm|cat|man|less|more)\s+[^\s=(.,)]")


def python_of(text: str) -> str:
    """`text` with everything that is not Python carried in comments; line numbers stay.

    Raises SourceError with the line when the rest does not parse.
    """
    try:
        parse(SourceFile("", text))
    except SourceError:
        pass
    else:
        return text
    magic = _CELL_MAGIC.match(text)
    if magic is not None:
        lines = _LINE.findall(text)
        first = next(index for index, line in enumerate(lines) if line.strip())
        if magic[1] not in _PYTHON_CELLS:
            return hidden(text)
        head = "".join(_hidden(line) for line in lines[: first + 1])
        body = _without_lines("".join(lines[first + 1 :]))
        text = head + body
    else:
        text = _without_lines(text)
    parse(SourceFile("", text))
    return text


def hidden(text: str) -> str:
    """All lines of `text` as comments."""
    return "".join(map(_hidden, _LINE.findall(text)))


def restored(text: str) -> str:
    """What `python_of` or `hidden` were given."""
    return "".join(_restored(line) for line in _LINE.findall(text))


def _without_lines(text: str) -> str:
    """`text` with every line taken out that is for IPython only."""
    made: list[str] = []
    at = 0
    goes_on = False  # a shell's line goes on after a backslash
    while at < len(text):
        line = _LINE.match(text, at)
        assert line is not None
        if goes_on:
            made.append(_hidden(line[0]))
        elif _ASSIGNED.match(line[0]) or _ESCAPE.match(line[0]) or _COMMAND.match(line[0]):
            made.append(_carried(line[0]))
        else:
            end = logical_line_end(text, at)
            made.append(text[at:end])
            at = end
            continue
        goes_on = line[0].rstrip("\r\n").endswith("\\")
        at = line.end()
    return "".join(made)


def _carried(line: str) -> str:
    body = line.lstrip(" \t")
    return f"{line[: len(line) - len(body)]}pass  {_CARRIED}{body}"


def _hidden(line: str) -> str:
    return f"{_CARRIED}{line}" if line.strip() else line


def _restored(line: str) -> str:
    before, mark, after = line.partition(_CARRIED)
    if not mark:
        return line
    indent = before[: len(before) - len(before.lstrip(" \t"))]
    return indent + after if before.strip() in {"", "pass"} else line
