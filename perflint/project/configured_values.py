"""What configuration files set, as far as their text says it plainly: `model.depth=4` of a YAML or JSON file.

A word is `:17 model.depth=4`: by the place of its file, the path of a setting and what it is set to, in JSON; a list of
more than a few says how many it holds, `[8]*`, and what is not told is `?`. YAML is read as far as configurations use
it: maps, lists and scalars, by their indentation; whatever else stands there makes what it touches unknown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from perflint.system.patterns import pattern
from perflint.torch_model.packages import SET, UNTOLD

_YAML = (".yaml", ".yml")
#: These hold commands: `train.py --config-file a.yaml MODEL.DEPTH 4`, and `model.depth=4` of Hydra.
_COMMANDS = (".sh", ".slurm", ".sbatch", ".mk", "akefile", ".md", ".rst")
_GIVEN = pattern(
    r"""(?<![\w./-])([A-Z][A-Z0-9_]*(?:\.[A-Z][A-Z0-9_]*)+(?=[ =])|\+{0,2}[a-z_]\w*(?:\.[A-Za-z_]\w*)+(?==))"""
    r"""[ =]["']?([^\s"'`=]+)"""
)
#: Larger ones hold data, and no file sets more.
_LARGEST = 64 * 1024
_MOST = 1500
_MOST_ITEMS = 8
_LONGEST = 80
_LINE = pattern(r"""^( *)(- +)?(?:(["']?)([A-Za-z_][\w./-]*)\3[ \t]*:(?=[ \t]|$))?[ \t]*(.*?)[ \t]*$""")
_COMMENT = pattern(r"(?:^|[ \t])#.*$")
_HOCON_COMMENT = pattern(r"(?m)(?:^|[ \t])(?:#|//).*$")
_HOCON = pattern(
    r"""([\w.-]+|"[\w.-]+")[ \t]*[=:]?[ \t]*\{|"""
    r"""([\w.-]+|"[\w.-]+")[ \t]*[=:][ \t]*(\[[^\[\]]*\]|"[^"\n]*"|[^\n,}]*)|\}"""
)
_INT = pattern(r"[-+]?\d+\Z")
_FLOAT = pattern(r"[-+]?(?:\d+\.\d*|\.\d+|\d+)(?:[eE][-+]?\d+)?\Z")
_WORDS: dict[str, Any] = {
    "true": True, "yes": True, "on": True, "false": False, "no": False, "off": False, "null": None, "~": None,
    "none": None,
}  # fmt: skip
_NOTHING = object()


def values(path: str, text: bytes, place: int) -> Iterator[bytes]:
    """The words of a file."""
    if len(text) > _LARGEST:
        return
    if path.endswith(_YAML):
        found = _of_yaml(text.decode("utf-8", "replace"))
    elif path.endswith(".json"):
        found = _of_json(text)
    elif path.endswith(".conf"):
        found = _of_hocon(text.decode("utf-8", "replace"))
    elif path.endswith(_COMMANDS):
        found = _of_commands(text.decode("utf-8", "replace"))
    else:
        return
    for count, (dotted, value) in enumerate(found):
        if count == _MOST:
            return
        yield f"{SET}{place} {dotted}={_written(value)}".encode("utf-8", "replace")


def setting(name: str, text: str, place: int) -> bytes:
    """The word of what a command sets: `lr=0.1`."""
    return f"{SET}{place} {name}={_written(_value(text))}".encode("utf-8", "replace")


def _written(value: Any) -> str:
    if isinstance(value, list):
        plain = all(item is None or isinstance(item, (bool, int, float, str)) for item in value)
        if not plain or len(value) > _MOST_ITEMS:
            return f"[{len(value)}]*"
        return json.dumps([item if not isinstance(item, str) or len(item) < _LONGEST else "" for item in value])
    if value is _NOTHING or (isinstance(value, str) and (len(value) > _LONGEST or not value.isascii())):
        return UNTOLD
    return json.dumps(value)


def _of_commands(text: str) -> Iterator[tuple[str, Any]]:
    for match in _GIVEN.finditer(text):
        yield match[1].lstrip("+"), _value(match[2])


def _of_json(text: bytes) -> Iterator[tuple[str, Any]]:
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return
    yield from _flat("", read)


def _flat(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """A nest of maps by the paths of what they hold."""
    if not isinstance(value, dict):
        if path:
            yield path, value
        return
    for key, item in value.items():
        if isinstance(key, str) and key and " " not in key and "=" not in key:
            yield from _flat(f"{path}.{key}" if path else key, item)


def _of_hocon(text: str) -> Iterator[tuple[str, Any]]:
    """`train { lr = 1e-3 }`, as pyhocon and Typesafe's library read it."""
    around: list[str] = []
    for match in _HOCON.finditer(_HOCON_COMMENT.sub("", text)):
        opened, key, value = match.groups()
        if opened:
            around.append(opened.strip('"'))
        elif key:
            yield ".".join([*around, key.strip('"')]), _value(value.strip())
        elif around:
            around.pop()


def _of_yaml(text: str) -> Iterator[tuple[str, Any]]:
    """By each line that sets something, its path and its value; by each list of lines, what it holds."""
    #: The maps and lists around: how far each is indented, and its path.
    around: list[tuple[int, str]] = []
    lists: dict[str, list[Any]] = {}
    text_under = -1  # a text of several lines, and whatever is not understood, goes on while lines are further in
    for line in text.splitlines():
        found = _LINE.match(line)
        if found is None or not line.strip() or line.lstrip().startswith("#"):
            continue
        indent, dash, _, key, rest = found.groups()
        here = len(indent)
        if text_under >= 0 and here > text_under:
            continue
        text_under = -1
        if line.startswith(("---", "...", "%")):
            around.clear()
            continue
        while around and (around[-1][0] > here or (around[-1][0] == here and not (dash and around[-1][1] in lists))):
            last = around.pop()
            if dash and last[0] == here and last[1] not in lists:
                around.append(last)  # a list that is no further in than the key that holds it
                break
        path = around[-1][1] if around else ""
        value = _value(rest)
        if dash:
            items = lists.setdefault(path, [])
            items.append(_NOTHING if key else value)
            if not key:
                text_under = here if value is _NOTHING else -1
                continue
            here += len(dash)
            path = f"{path}.{len(items) - 1}"
            around.append((here - 1, path))
        if not key:
            text_under = here
            continue
        path = f"{path}.{key}" if path else key
        if _COMMENT.sub("", rest).strip() and not rest.startswith(("&", "!")):
            yield path, value
            text_under = here
        else:
            if rest.startswith("!"):
                yield path, rest
            around.append((here, path))
    yield from ((path, items) for path, items in lists.items() if path)


def _value(text: str) -> Any:
    """A scalar or a list of them on one line."""
    if text[:1] in ("'", '"'):
        end = text.find(text[0], 1)
        return text[1:end] if end > 0 and "\\" not in text[:end] else _NOTHING
    text = _COMMENT.sub("", text).strip()
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if _INT.match(text):
        return int(text)
    if _FLOAT.match(text):
        return float(text)
    if text[:1] in ("[", "(") and text[-1:] in ("]", ")"):
        inner = text[1:-1].strip().rstrip(",")
        if any(mark in inner for mark in "[](){}&*"):
            return _NOTHING
        return [_value(item.strip()) for item in inner.split(",")] if inner else []
    return _NOTHING if not text or text[0] in "{|>&*!%@`" else text
