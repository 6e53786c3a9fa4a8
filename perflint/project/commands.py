"""The commands that a project writes down, by which people run its programs: `python train.py --latent-ode --lr 0.1`.

A word is `>["train.py", {"latent_ode": true, "lr": ["0.1"]}]`: the program as it is written, and for each option the
texts after it; true for a flag, null for what a variable, or a placeholder, stands for.
"""

from __future__ import annotations

import json
from typing import NamedTuple, TypeAlias

from perflint.system.patterns import pattern
from perflint.torch_model.packages import RUN

#: What is given to an option.
Given: TypeAlias = "bool | list[str | None]"

_MOST = 400
_CONTINUED = pattern(r"\\[ \t]*\r?\n")
_RUNS = pattern(
    r"""(?:(?<![\w./-])(?:[\w./-]*/)?(?:python[\d.]*|torchrun|deepspeed|accelerate[ \t]+launch)"""
    r"""|\$\{?PY\w*\}?|\$\(PY\w*\))[ \t]+"""
)
#: A word of a command, or what ends it.
_TOKEN = pattern(
    r"""(;|&&?|\|\|?|\d?>>?(?=[ \t/\w$.]|$)|`|(?<!\S)\#)"""
    r"""|((?:"[^"\n]*"|'[^'\n]*'|<[^<>\n]*>|\$\{[^}\n]*\}|\$\([^)\n]*\)|[^\s"'`;&|<>])+)"""
)
_OPTION = pattern(r"\[?--?([A-Za-z][\w.-]*?)(?:=(.*?))?\]?\Z")
_SETTING = pattern(r"\+{0,2}([A-Za-z_]\w*)=(.*)\Z")
#: What stands for something else.
_OPEN = pattern(r"[$<>{}*]|\.\.\.|\A\[")
_ABOVE = frozenset({"", ".", "..", "~"})
#: What runs another program.
_LAUNCHERS = ("torch.distributed", "accelerate", "pdb", "ipdb", "cProfile", "debugpy", "kernprof", "bagua", "scalene")


class Command(NamedTuple):
    """A program, the options that it is given, and the settings, `lr=0.1`."""

    program: str
    options: dict[str, Given]
    settings: dict[str, str]


def commands(text: str) -> tuple[list[Command], str]:
    """The commands of a text, and what else it says."""
    text = _CONTINUED.sub(" ", text)
    found: list[Command] = []
    rest, last = [], 0
    for match in _RUNS.finditer(text):
        if match.start() < last or len(found) == _MOST:
            continue
        words, end = _words(text, match.end())
        command = _read(words)
        if command is not None:
            found.append(command)
            rest.append(text[last : match.start()])
            last = end
    return found, "".join([*rest, text[last:]])


def written(command: Command) -> bytes:
    """The word of a command."""
    return f"{RUN}{json.dumps([command.program, command.options])}".encode("utf-8", "replace")


def _read(words: list[str]) -> Command | None:
    """The command that a Python is given; None where it runs no file."""
    place, program = _program(words)
    if not program:
        return None
    options: dict[str, Given] = {}
    settings: dict[str, str] = {}
    name = ""
    for word in words[place + 1 :]:
        option = _OPTION.match(word)
        setting = None if option or name else _SETTING.match(word)
        if option is not None:
            name = option[1].replace("-", "_")
            options[name] = True if option[2] is None else [_told(option[2])]
            name = name if option[2] is None else ""
        elif setting is not None:
            settings[setting[1]] = setting[2].strip("\"'")
        elif name:
            before = options[name]
            options[name] = [*(before if isinstance(before, list) else ()), _told(word)]
    return Command(program, options, settings)


def _words(text: str, start: int) -> tuple[list[str], int]:
    """The words of a command, and where it ends."""
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
    found: list[str] = []
    for match in _TOKEN.finditer(text, start, end):
        if match[1]:
            return found, match.start()
        found.append(match[2])
    return found, end


def _program(words: list[str]) -> tuple[int, str]:
    """Which word is the program that is run, and its path below whatever a variable stands for."""
    for place, word in enumerate(words):
        name = word.strip("\"'")
        if name.endswith(".py"):
            parts = name.split("/")
            while (parts[0] in _ABOVE or any(map(_OPEN.search, parts))) and len(parts) > 1:
                del parts[0]
            return place, "/".join(parts)
        if name == "-m" and place + 1 < len(words) and not words[place + 1].startswith(_LAUNCHERS):
            return place + 1, words[place + 1].replace(".", "/") + ".py"
        if name == "-c":
            break
    return 0, ""


def _told(word: str) -> str | None:
    plain = word.strip("\"'").rstrip("]")
    return None if _OPEN.search(plain) else plain
