"""Rules, found through the entry-point group `perflint.rules` and checked before the first file is read.

The group's values name packages; every module in them that does not begin with `_` is imported, and the `Rule`
subclasses it defines are collected. Built-in rules come through the same door as anybody else's.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from perflint.errors import RuleError
from perflint.finding import Confidence, Heat, Impact
from perflint.rule_api.rule import Listen, Rule, Tier
from perflint.system import entry_points
from perflint.system.patterns import pattern

if TYPE_CHECKING:
    from importlib.abc import Traversable

GROUP = "perflint.rules"
OUR_DISTRIBUTION = "torch-perflint"
_BUILT_IN_PACKAGE = "perflint.rules"
_OUR_CODE = pattern(r"TPL\d{3}")
_CODE = pattern(r"[A-Z]{2,}\d{1,5}")
_NAME = pattern(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_ATTRIBUTES: tuple[tuple[str, type], ...] = (
    ("code", str),
    ("name", str),
    ("since", str),
    ("tier", Tier),
    ("impact", Impact),
    ("confidence", Confidence),
    ("listens", tuple),
    ("at_least", Heat),
    ("needs_accelerator", bool),
)


class RulePackage(NamedTuple):
    """One entry of the group: a package of rules and the distribution that brings it."""

    package: str
    distribution: str

    @property
    def is_ours(self) -> bool:
        return self.distribution == OUR_DISTRIBUTION


@functools.cache
def load_rules() -> tuple[type[Rule], ...]:
    """All rules, by code. Imports every rule module, so ask late.

    Raises RuleError naming the distribution whose rules cannot be loaded or break the contract.
    """
    return collect(rule_packages())


def rule_packages() -> list[RulePackage]:
    """The packages that bring rules, ours first. Raises RuleError when ours is nowhere to be found."""
    found = {
        RulePackage(package, re.sub(r"[-_.]+", "-", distribution).lower())
        for package, distribution in entry_points.entry_points(GROUP)
    }
    if not any(one.is_ours for one in found):
        # A checkout that is not installed: the folder `rules/` still imports as part of this package.
        if importlib.util.find_spec(_BUILT_IN_PACKAGE) is None:
            raise RuleError('no rules found: perflint is not installed; run "pip install -e ."')
        found.add(RulePackage(_BUILT_IN_PACKAGE, OUR_DISTRIBUTION))
    return sorted(found, key=lambda one: (not one.is_ours, one.distribution, one.package))


def collect(packages: Iterable[RulePackage]) -> tuple[type[Rule], ...]:
    """The rules of `packages`, checked, by code. Raises RuleError."""
    owners: dict[str, tuple[type[Rule], str]] = {}
    rules: list[type[Rule]] = []
    for package in packages:
        for rule in _rules_of(package):
            validate(rule, package.distribution)
            for identity in (rule.code, rule.name):
                if identity in owners:
                    other, owner = owners[identity]
                    raise RuleError(
                        f"{package.distribution}: {_where(rule)} uses {identity!r}, which belongs to "
                        f"{_where(other)} of {owner}"
                    )
                owners[identity] = (rule, package.distribution)
            rules.append(rule)
    return tuple(sorted(rules, key=lambda rule: rule.code))


def _rules_of(package: RulePackage) -> Iterator[type[Rule]]:
    for module in _modules_of(package):
        for value in list(vars(module).values()):
            # An abstract parent shared by rules of one module is named with an underscore.
            if (
                inspect.isclass(value)
                and issubclass(value, Rule)
                and value.__module__ == module.__name__
                and not value.__name__.startswith("_")
            ):
                yield value


def _modules_of(package: RulePackage) -> Iterator[ModuleType]:
    top = _import(package.package, package.distribution)
    yield top
    prefix = f"{top.__name__}."
    paths = getattr(top, "__path__", None)
    if paths is None:  # a plug-in that is one module
        return

    def fail(name: str) -> None:
        raise RuleError(f"{package.distribution}: the package {name} cannot be imported")

    for info in pkgutil.walk_packages(paths, prefix, onerror=fail):
        inner = info.name[len(prefix) :].split(".")
        if not any(part.startswith("_") for part in inner):
            yield _import(info.name, package.distribution)


def _import(name: str, distribution: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except Exception as error:  # somebody else's module may raise anything
        raise RuleError(f"{distribution}: rules of {name} cannot be imported: {_one_line(error)}") from error


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _where(rule: type[Rule]) -> str:
    return f"{rule.__module__}.{rule.__qualname__}"


def validate(rule: type[Rule], distribution: str) -> None:
    """Check one rule against the contract of `perflint.rule_api.rule`. Raises RuleError naming the distribution."""
    fault = next(_faults(rule, ours=distribution == OUR_DISTRIBUTION), None)
    if fault is not None:
        raise RuleError(f"{distribution}: {_where(rule)} {fault}")


def _faults(rule: type[Rule], *, ours: bool) -> Iterator[str]:
    for attribute, kind in _ATTRIBUTES:
        value = getattr(rule, attribute, None)
        if value is None:
            yield f"has no {attribute!r}"
        elif not isinstance(value, kind):
            yield f"has {attribute!r} = {value!r}, which is no {kind.__name__}"
    if ours and not _OUR_CODE.fullmatch(rule.code):
        yield f"has the code {rule.code!r}, which is not TPL and three digits"
    if not ours and rule.code.startswith("TPL"):
        yield f"has the code {rule.code!r}, but codes that begin with TPL are perflint's own"
    if not _CODE.fullmatch(rule.code):
        yield f"has the code {rule.code!r}, which is not capital letters and digits"
    if not _NAME.fullmatch(rule.name):
        yield f"has the name {rule.name!r}, which is not lower-case words joined by dashes"
    if ours and rule.__module__.rpartition(".")[2] != rule.name.replace("-", "_"):
        yield f"is named {rule.name!r}, so its module must be {rule.name.replace('-', '_')}.py"
    if not rule.listens:
        yield "listens to nothing"
    if not all(isinstance(one, Listen) for one in rule.listens):
        yield f"has 'listens' = {rule.listens!r}, which is not made of Listen"
    if rule.check is Rule.check:
        yield "has no 'check'"
    yield from _page_faults(rule)


def _page_faults(rule: type[Rule]) -> Iterator[str]:
    from perflint.rule_api.page import HEADINGS, REQUIRED, page_of

    if sys.flags.optimize > 1:  # Python has left the docstrings out: there is nothing to see whether a page is right
        return
    # `getdoc` would find the parent's: a rule has a page of its own.
    if not (rule.__doc__ or "").strip():
        yield "has no docstring, which is its page"
        return
    page = page_of(rule)
    if not page.summary:
        yield "has a docstring without a first line"
    if missing := [heading for heading in REQUIRED if heading not in page.sections]:
        yield f"has no heading {', '.join(map(repr, missing))} in its docstring"
    if "Example" in page.sections:
        yield "has an 'Example' in its docstring; perflint shows example.py of the rule's fixtures there"
    if list(page.sections) != (ordered := [heading for heading in HEADINGS if heading in page.sections]):
        yield f"must have its headings in this order: {', '.join(ordered)}"
    for heading, text in page.sections.items():
        if not text:
            yield f"has no text under the heading {heading!r}"


def fixture_folder(rule: type[Rule]) -> Traversable | None:
    """A rule's cases: in `perflint.fixtures` for built-in rules, in `<package>.fixtures` for others, where it has any.

    The folder itself may be missing.
    """
    import importlib.resources

    package = rule.__module__.partition(".")[0]
    try:
        return importlib.resources.files(f"{package}.fixtures") / f"{rule.code}-{rule.name}"
    except (ModuleNotFoundError, TypeError):
        return None
