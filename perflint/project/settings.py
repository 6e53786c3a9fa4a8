"""What the user asked for: `[tool.perflint]` of a configuration file, checked, and which rules that selects.

Reads configuration files; runs nothing. Every message names the file, the key and the nearest valid one.
"""

from __future__ import annotations

import dataclasses
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from perflint.errors import SettingsError
from perflint.finding import Confidence, Finding, Impact
from perflint.system.time_limit import LONGEST

if TYPE_CHECKING:
    pass

T = TypeVar("T")

#: What a configuration may be called, in the order of precedence.
CONFIGURATIONS = ("perflint.toml", "pyproject.toml")

_VERSION = re.compile(r"\d+\.\d+(\.\d+)?")


class FailOn(NamedTuple):
    """What a finding needs to count for exit code 1: at least this impact and at least this confidence."""

    impact: Impact = Impact.LOW
    confidence: Confidence = Confidence.LOW

    def counts(self, finding: Finding) -> bool:
        return finding.impact >= self.impact and finding.confidence >= self.confidence

    @classmethod
    def parse(cls, text: str) -> FailOn:
        """`high` (the impact), `impact=high`, `confidence=medium`, or several of them joined by commas.

        Raises SettingsError.
        """
        impact, confidence = Impact.LOW, Confidence.LOW
        for part in text.split(","):
            axis, separator, level = part.strip().replace(":", "=").rpartition("=")
            if axis.strip() in {"", "impact"} and (separator == "" or axis.strip()):
                impact = level_of(Impact, level.strip(), "fail-on")
            elif axis.strip() == "confidence":
                confidence = level_of(Confidence, level.strip(), "fail-on")
            else:
                raise SettingsError(f"fail-on: {part.strip()!r} is neither impact=LEVEL nor confidence=LEVEL")
        return cls(impact, confidence)


@dataclass(frozen=True)
class Settings:
    """The configuration of one run. `file` is where it was read, None for the defaults.

    Paths (`exclude`, `per_file_ignores`, `cache_dir`, `baseline`, `observed`) are relative to `root`, the folder of
    `file`.
    """

    file: Path | None = None
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    extra: bool = False
    confidence: Confidence = Confidence.LOW
    #: The least impact to print; None is what the output format prints by itself.
    impact: Impact | None = None
    #: None: what formats for people print by default, or `impact` where it is given.
    fail_on: FailOn | None = None
    exclude: tuple[str, ...] = ()
    per_file_ignores: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    target_torch: str | None = None
    output_format: str = "text"
    sort: str | None = None
    group_by: str = "none"
    max_findings: int | None = None
    cache_dir: Path | None = None
    jobs: int | None = None
    baseline: Path | None = None
    observed: Path | None = None
    #: Seconds of processor time that one file may take to be read, and again to be inspected; 0 is no limit.
    time_limit: float = 30.0
    #: The table `[tool.perflint.verify]`, checked by `perflint verify`, which alone knows its keys.
    verify: Mapping[str, object] = field(default_factory=dict)
    #: Named on the command line: it governs every file, wherever that lies.
    sole: bool = False
    #: The fields that the command line decides, for every file.
    decided: tuple[str, ...] = ()

    @property
    def failing(self) -> FailOn:
        """What makes exit code 1: by default what text prints, so that no check fails for what it does not show."""
        if self.fail_on is not None:
            return self.fail_on
        return FailOn(impact=Impact.MEDIUM if self.impact is None else self.impact)

    @property
    def root(self) -> Path | None:
        return self.file.parent if self.file else None

    @cached_property
    def _per_file(self) -> list[tuple[Callable[[str], bool], tuple[str, ...]]]:
        return [(_matcher(pattern), selectors) for pattern, selectors in self.per_file_ignores.items()]

    def ignored_in(self, file: Path) -> tuple[str, ...]:
        """Selectors of the rules that `per-file-ignores` switches off in `file`."""
        if not self.per_file_ignores or self.root is None:
            return ()
        try:
            relative = Path(os.path.abspath(file)).relative_to(self.root).as_posix()  # noqa: PTH100 - links stay
        except ValueError:
            return ()
        return tuple(one for matches, selectors in self._per_file if matches(relative) for one in selectors)


def _matcher(pattern: str) -> Callable[[str], bool]:
    from perflint.system.globs import spec_of

    try:
        spec = spec_of([pattern])
    except (ValueError, re.error) as error:
        raise SettingsError(f"bad pattern {pattern!r}: {error}") from error
    return spec.match_file


# Reading


def load_settings(start: Path, config: Path | None = None) -> Settings:
    """Settings from `config`, or from the nearest configuration at or above the folder `start`.

    In each folder `perflint.toml` goes before a `pyproject.toml` with `[tool.perflint]`; the search ends at the git
    root. Raises SettingsError.
    """
    if config is not None:
        file = _absolute(config)
        return dataclasses.replace(_read(file, required=True) or Settings(file), sole=True)
    return next(iter(settings_above(start)), Settings())


def settings_above(start: Path) -> Iterator[Settings]:
    """Every configuration at or above the folder `start`, up to the git root, the nearest first.

    Raises SettingsError.
    """
    folder = _absolute(start)
    for parent in (folder, *folder.parents):
        found = settings_in(parent)
        if found is not None:
            yield found
        if os.path.exists(parent / ".git"):  # noqa: PTH110
            break


def settings_in(folder: Path) -> Settings | None:
    """The configuration that lies in a folder, None where there is none. Raises SettingsError."""
    for name in CONFIGURATIONS:
        file = folder / name
        if name == "perflint.toml" and os.path.isdir(file):  # noqa: PTH112
            raise SettingsError(f"{file}: is a folder, and a configuration file by its name; rename it")
        if os.path.isfile(file):  # noqa: PTH113 - pathlib raises where a folder may not be looked into
            found = _read(file, required=False)
            if found is not None:
                return found
    return None


def _absolute(path: Path) -> Path:
    """Without `..`, whose parents would be other folders than those above it, and which no found file stands under."""
    return Path(os.path.abspath(path))  # noqa: PTH100 - pathlib has no lexical normalisation


def _read(file: Path, *, required: bool) -> Settings | None:
    """None for a `pyproject.toml` without our table, which is an error when the file was asked for by name."""
    if not required and file.name == "pyproject.toml" and not _mentions_us(file):
        return None  # whatever is wrong with it, as with a template of one, is no business of ours
    table = _toml(file)
    if file.name == "pyproject.toml":
        tool = table.get("tool", {})
        ours = tool.get("perflint") if isinstance(tool, dict) else None
        if ours is None:
            if required:
                raise SettingsError(f"{file}: has no table [tool.perflint]")
            return None
        if not isinstance(ours, dict):
            raise SettingsError(f"{file}: tool.perflint must be a table")
        table = ours
    return settings_of(table, file)


def _mentions_us(file: Path) -> bool:
    try:
        return b"perflint" in file.read_bytes()
    except OSError:
        return True  # what cannot be read is told of where it is parsed


def lines_of_keys(file: Path) -> dict[str, int | None]:
    """The keys that a configuration file gives, each with its line, None where that is not plain to see.

    Raises SettingsError.
    """
    table: object = _toml(file)
    ours = file.name == "pyproject.toml"
    for name in ("tool", "perflint") if ours else ():
        table = table.get(name, {}) if isinstance(table, dict) else {}
    lines: dict[str, int | None] = dict.fromkeys(table) if isinstance(table, dict) else {}
    inside = not ours
    for number, line in enumerate(file.read_text(encoding="utf-8-sig").splitlines(), 1):
        header = re.match(r"\s*\[\s*([^\]]*?)\s*\]", line)
        if header:
            inside = header[1] == "tool.perflint"
            found = header[1].replace('"', "").replace("'", "")
            found = found.removeprefix("tool.perflint").lstrip(".") if ours else found
        else:
            found = line.partition("=")[0].strip().strip("\"'") if inside and "=" in line else ""
        if found in lines and lines[found] is None:
            lines[found] = number
    return lines


def place_of(file: Path | None, key: str) -> str:
    """`FILE:LINE` where the file gives `key`, or as much of it as is known."""
    if file is None or not file.is_file():
        return str(file)
    line = lines_of_keys(file).get(key)
    return str(file) if line is None else f"{file}:{line}"


def _toml(file: Path) -> dict[str, object]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        text = file.read_text(encoding="utf-8-sig")
        parsed: dict[str, object] = tomllib.loads(text)
    except OSError as error:
        raise SettingsError(f"{file}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{file}: not UTF-8") from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{file}: not valid TOML: {error}") from error
    except RecursionError as error:
        raise SettingsError(f"{file}: nested too deep") from error
    return parsed


def settings_of(table: Mapping[str, object], file: Path) -> Settings:
    """Settings from the keys of `[tool.perflint]`. Raises SettingsError for an unknown key or a wrong type."""
    values: dict[str, object] = {}
    for key, value in table.items():
        reader = _READERS.get(key)
        if reader is None:
            raise SettingsError(f"{place_of(file, key)}: {_unknown(key, file)}")
        try:
            values[key.replace("-", "_")] = reader(value, key, file)
        except SettingsError as error:
            raise SettingsError(f"{place_of(file, key)}: {error}") from error
    return dataclasses.replace(Settings(file), **values)  # type: ignore[arg-type]


def _unknown(key: str, file: Path) -> str:
    if file.name == "pyproject.toml":
        return f"unknown key {key!r} in tool.perflint{nearest(key, _READERS)}"
    if key == "tool":
        return "the table [tool.perflint] is for pyproject.toml; in this file its keys stand at the top, without it"
    return f"unknown key {key!r}{nearest(key, _READERS)}"


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?`, naming the nearest of `known` however far it is; empty when nothing is known."""
    import difflib

    lowered = {option.lower(): option for option in known}
    close = difflib.get_close_matches(word.lower(), lowered, n=1, cutoff=0.0)
    return f"; did you mean {lowered[close[0]]!r}?" if close else ""


Level = TypeVar("Level", Confidence, Impact)


def level_of(levels: type[Level], word: str, key: str) -> Level:
    """The level named `word`. Raises SettingsError naming `key`."""
    known = {level.label: level for level in levels}
    if word.lower() not in known:
        raise SettingsError(f"{key}: {word!r} is not one of {', '.join(known)}{nearest(word, known)}")
    return known[word.lower()]


def _strings(value: object, key: str, _file: Path) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise SettingsError(f"{key} must be a list of strings, not {_shown(value)}")
    return tuple(value)


def _string(value: object, key: str) -> str:
    if not isinstance(value, str):
        raise SettingsError(f"{key} must be a string, not {_shown(value)}")
    return value


def _boolean(value: object, key: str, _file: Path) -> bool:
    if not isinstance(value, bool):
        raise SettingsError(f"{key} must be true or false, not {_shown(value)}")
    return value


def _whole(value: object, key: str, _file: Path) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SettingsError(f"{key} must be a whole number from 1, not {_shown(value)}")
    return value


def _time_limit(value: object, key: str, _file: Path) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise SettingsError(f"{key} must be a number of seconds, not {_shown(value)}")
    return limit_of(value, key)


def limit_of(seconds: float, key: str) -> float:
    """A time limit. Raises SettingsError naming `key` for one that no timer can be set to."""
    if not 0 <= seconds <= LONGEST:
        raise SettingsError(f"{key} must be from 0 (no limit) to {LONGEST} seconds, not {_shown(seconds)}")
    return float(seconds)


def _confidence(value: object, key: str, _file: Path) -> Confidence:
    return level_of(Confidence, _string(value, key), key)


def _impact(value: object, key: str, _file: Path) -> Impact:
    return level_of(Impact, _string(value, key), key)


def _fail_on(value: object, key: str, _file: Path) -> FailOn:
    return FailOn.parse(_string(value, key))


def _exclude(value: object, key: str, file: Path) -> tuple[str, ...]:
    patterns = _strings(value, key, file)
    for pattern in patterns:
        _matcher(pattern)
    return patterns


def _per_file_ignores(value: object, key: str, file: Path) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, dict):
        raise SettingsError(f"{key} must be a table of patterns, each with a list of rules, not {_shown(value)}")
    for pattern in value:
        _matcher(pattern)
    return {pattern: _strings(selectors, f"{key}.{pattern}", file) for pattern, selectors in value.items()}


def _target_torch(value: object, key: str, _file: Path) -> str:
    text = _string(value, key)
    if not _VERSION.fullmatch(text):
        raise SettingsError(f'{key} must be a version such as "2.4", not {_shown(value)}')
    return text


def _output_format(value: object, key: str, _file: Path) -> str:
    from perflint.report import FORMATS

    return _one_of(FORMATS, value, key)


def _sort(value: object, key: str, _file: Path) -> str:
    from perflint.report.order import SORTS

    return _one_of(SORTS, value, key)


def _group_by(value: object, key: str, _file: Path) -> str:
    from perflint.report.order import GROUPS

    return _one_of(GROUPS, value, key)


def _one_of(known: Sequence[str], value: object, key: str) -> str:
    text = _string(value, key)
    if text not in known:
        raise SettingsError(f"{key}: {text!r} is not one of {', '.join(known)}{nearest(text, known)}")
    return text


def _path(value: object, key: str, file: Path) -> Path:
    text = _string(value, key)
    if not text or "\0" in text:
        raise SettingsError(f"{key} must name a path, not {_shown(value)}")
    return file.parent / text


def _table(value: object, key: str, _file: Path) -> dict[str, object]:
    if not isinstance(value, dict):
        raise SettingsError(f"{key} must be a table, not {_shown(value)}")
    return value


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


_READERS: dict[str, Callable[[object, str, Path], object]] = {
    "select": _strings,
    "ignore": _strings,
    "extend-select": _strings,
    "extra": _boolean,
    "confidence": _confidence,
    "impact": _impact,
    "fail-on": _fail_on,
    "exclude": _exclude,
    "per-file-ignores": _per_file_ignores,
    "target-torch": _target_torch,
    "output-format": _output_format,
    "cache-dir": _path,
    "sort": _sort,
    "group-by": _group_by,
    "max-findings": _whole,
    "jobs": _whole,
    "baseline": _path,
    "observed": _path,
    "time-limit": _time_limit,
    "verify": _table,
}
