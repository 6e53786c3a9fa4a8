"""What one requirement says of torch: the lowest and the newest version that it allows.

Requirements are read with `packaging`, imported late: most files of most projects never name torch.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

from perflint.system.patterns import pattern

if TYPE_CHECKING:
    from packaging.markers import Marker
    from packaging.requirements import Requirement
    from packaging.specifiers import Specifier

Version = tuple[int, int]

#: How a requirement is written: as pip reads it, as conda does, or as a version (and a marker) of Poetry.
PIP, CONDA, POETRY = "pip", "conda", "poetry"

#: What conda calls torch; `torch` is its name on the package index.
_CONDA_NAMES = frozenset({"pytorch", "pytorch-cpu", "pytorch-gpu"})
#: Neither `torchvision` nor `pytorch-lightning`, which need not be parsed to be passed over.
_NAMES_TORCH = pattern(r"(?<![\w.-])(?:py)?torch(?![a-z_]|-[a-z](?!pu))", re.IGNORECASE)
#: What a line of a requirements file ends with: ` --hash=sha256:...`.
_OPTIONS = pattern(r"\s--?[a-z][a-z-]*[ =].*$")
_NAMED = pattern(r"[\w.-]+\s*(?:\[[^\]]*\])?\s*@")
#: `>=1.7.*`, which pip took for long.
_STARRED = pattern(r"([<>]=?\s*[\d.]*\d)\.\*")
_QUOTED = pattern(r"['\"]([^'\"]*)['\"]")
_CARET = pattern(r"(\^|~(?!=))\s*(\d+(?:\.\d+)*)")
_CONDA_SPEC = pattern(r"(?:[\w./:-]+::)?([\w.-]+)\s*(?:\[(?:[^\]]*\b)?version=['\"]?([^'\"\]]*)['\"]?[^\]]*\]|(.*))$")
_RELEASE = pattern(r"\d+(?:\.\d+)*")
#: The last minor version of a major one that gets no more of them.
_LAST_MINOR = {1: 13}


class Line(NamedTuple):
    """A requirement as written, the way it is written, and the line (from 1) where it stands."""

    text: str
    style: str
    file: Path
    number: int


class Wanted(NamedTuple):
    """The oldest and the newest torch (major, minor) that a requirement allows; None is no bound, never both of them.

    What only refuses newer versions (`<2`) has the newest that is left as its lowest: what runs there is not newer.
    """

    lowest: Version | None
    newest: Version | None


class Pythons:
    """The interpreters and platforms that a project may be installed on."""

    def __init__(self, required: Iterable[str] = ()) -> None:
        self._required = [text for text in required if text.strip()]

    def allow(self, marker: Marker | None) -> bool:
        """Whether a marker holds on any of them, with whatever extra is asked for."""
        if marker is None:
            return True
        extras = {"", *_QUOTED.findall(str(marker))} if "extra" in str(marker) else {""}
        return any(marker.evaluate({**one, "extra": extra}) for one in self._environments for extra in extras)

    @cached_property
    def _environments(self) -> list[dict[str, str]]:
        pythons = [f"3.{minor}" for minor in range(6, 20) if self._allows(minor)]
        return [
            {
                "python_version": python,
                "python_full_version": f"{python}.{patch}",
                "implementation_version": f"{python}.{patch}",
                "implementation_name": "cpython",
                "platform_python_implementation": "CPython",
                "platform_release": "",
                "platform_version": "",
                **platform,
            }
            for python in pythons
            for patch in (0, 9)
            for platform in _PLATFORMS
        ]

    def _allows(self, minor: int) -> bool:
        from packaging.specifiers import InvalidSpecifier, SpecifierSet

        for text in self._required:
            try:
                specifiers = SpecifierSet(pep440(text))
            except InvalidSpecifier:
                continue
            if not any(specifiers.contains(f"3.{minor}.{patch}") for patch in (0, 9)):
                return False
        return True


_PLATFORMS = [
    {"os_name": os, "sys_platform": platform, "platform_system": system, "platform_machine": machine}
    for os, platform, system, machines in (
        ("posix", "linux", "Linux", ("x86_64", "aarch64", "arm64", "ppc64le")),
        ("posix", "darwin", "Darwin", ("x86_64", "arm64")),
        ("nt", "win32", "Windows", ("AMD64", "ARM64")),
    )
    for machine in machines
]


def wanted(line: Line, pythons: Pythons) -> Wanted | None:
    """What a requirement says of torch, None where it bounds it by nothing or can hold nowhere."""
    if not _NAMES_TORCH.search(line.text):
        return None
    if line.style == PIP:
        return _pip(line.text, pythons)
    return _conda(line.text) if line.style == CONDA else _poetry(line.text, pythons)


def _pip(text: str, pythons: Pythons) -> Wanted | None:
    from packaging.requirements import InvalidRequirement
    from packaging.utils import canonicalize_name

    text = _OPTIONS.sub("", f" {text}").strip()
    if ".whl" in text and not _NAMED.match(text):
        return _of_wheel(text)
    try:
        requirement = _requirement(text)
    except InvalidRequirement:
        return None
    if canonicalize_name(requirement.name) != "torch" or not pythons.allow(requirement.marker):
        return None
    return _of_wheel(requirement.url) if requirement.url else _bounds(requirement.specifier)


def _requirement(text: str) -> Requirement:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        return Requirement(text)
    except InvalidRequirement:
        return Requirement(_STARRED.sub(r"\1", text))


def _of_wheel(address: str) -> Wanted | None:
    """From `torch-2.1.0+cu118-cp310-cp310-linux_x86_64.whl`, wherever that lies."""
    from packaging.utils import InvalidWheelFilename, parse_wheel_filename

    try:
        file = unquote(urlsplit(address.split(";", maxsplit=1)[0].strip()).path).rpartition("/")[2]
        name, version, _, _ = parse_wheel_filename(file)
    except (InvalidWheelFilename, ValueError):
        return None
    return Wanted((version.major, version.minor), (version.major, version.minor)) if name == "torch" else None


def _poetry(text: str, pythons: Pythons) -> Wanted | None:
    """`torch ^2.2 || ~1.13; marker`: Poetry's signs, alternatives, and a bare version that means just that one."""
    from packaging.markers import InvalidMarker, Marker

    version, _, condition = text.removeprefix("torch").partition(";")
    try:
        if condition.strip() and not pythons.allow(Marker(condition.strip())):
            return None
    except InvalidMarker:
        return None
    return _any_of(pep440(part) for part in version.split("||"))


def _conda(text: str) -> Wanted | None:
    """`pytorch=2.1`, `conda-forge::pytorch >=2,<3`, `pytorch[version='2.1.*']`, each perhaps with a build."""
    found = _CONDA_SPEC.match(text.strip())
    if not found or found[1].lower() not in _CONDA_NAMES:
        return None
    spec = (found[2] or found[3] or "").strip()
    parts = re.split(r"(?<=[\w*.])(?:\s+|=)(?=[\w*])", spec)  # a build: `2.1 py3.10_cuda`, `=2.1=*_cuda`
    return _any_of(pep440(_conda_sign(part)) for part in parts[0].split("|"))


def _conda_sign(text: str) -> str:
    text = text.strip()
    return f"=={text[1:].rstrip('.*')}.*" if re.match(r"=\d", text) else text


def pep440(text: str) -> str:
    """Specifiers as `packaging` reads them: without Poetry's `^2.2` and `~2.2`, and with `==` before a bare version."""

    def bounded(found: re.Match[str]) -> str:
        numbers = [int(part) for part in found[2].split(".")]
        # `^0.4.1` holds the first number that is not zero, `~2.2.1` the second, `~2` the first.
        last = 0 if found[1] == "^" else min(1, len(numbers) - 1)
        if found[1] == "^":
            last = next((index for index, number in enumerate(numbers) if number), len(numbers) - 1)
        upper = [*numbers[:last], numbers[last] + 1]
        return f">={found[2]},<{'.'.join(map(str, upper))}"

    parts = [part.strip() for part in _CARET.sub(bounded, text).split(",")]
    return ",".join(f"=={part}" if part[:1].isdigit() else part for part in parts if part != "*")


def _any_of(alternatives: Iterable[str]) -> Wanted | None:
    """What any of several sets of specifiers allows. One that cannot be read says nothing."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    found = []
    for text in alternatives:
        try:
            bounds = _bounds(SpecifierSet(_STARRED.sub(r"\1", text)))
        except InvalidSpecifier:
            return None
        if bounds is None:
            return None
        found.append(bounds)
    lowest = [one.lowest for one in found if one.lowest is not None]
    newest = [one.newest for one in found if one.newest is not None]
    return Wanted(min(lowest, default=None), max(newest) if len(newest) == len(found) else None) if found else None


def _bounds(specifiers: Iterable[Specifier]) -> Wanted | None:
    """The lowest and newest of all that every specifier allows."""
    lowest: list[Version] = []
    newest: list[Version] = []
    for one in specifiers:
        found = _RELEASE.match(one.version.lstrip("vV"))
        if not found:
            continue
        release = [int(part) for part in found[0].split(".")]
        version = (release[0], release[1] if len(release) > 1 else 0)
        if one.operator in (">=", ">", "~=", "==", "==="):
            lowest.append(version)
        bound = _upper(one, release)
        if bound is not None:
            newest.append(bound)
    if not lowest and not newest:
        return None
    return Wanted(max(lowest) if lowest else min(newest), min(newest, default=None))


def _upper(one: Specifier, release: list[int]) -> Version | None:
    """The newest (major, minor) that a specifier allows, None where that is not known."""
    version = (release[0], release[1] if len(release) > 1 else 0)
    if one.operator == "==" and one.version.endswith(".*"):
        return version if len(release) > 1 else _before((release[0] + 1, 0))
    if one.operator in ("==", "===", "<="):
        return version
    if one.operator == "~=":
        return version if len(release) > 2 else _before((release[0] + 1, 0))
    if one.operator == "<":
        return version if any(release[2:]) else _before(version)
    return None


def _before(version: Version) -> Version | None:
    """The last (major, minor) before another."""
    major, minor = version
    if minor:
        return major, minor - 1
    return (major - 1, _LAST_MINOR[major - 1]) if major - 1 in _LAST_MINOR else None
