"""The one door for rules: what is collected, and what is refused with whose name."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from perflint.errors import RuleError
from perflint.rule_api.registry import OUR_DISTRIBUTION, RulePackage, collect, load_rules

RULE = '''
from perflint.api import Calls, Impact, Rule

class {class_name}(Rule):
    """One line.

    What it does
    Reports `f()`.

    Why is this slow?
    It waits.

    What to do
    Nothing.

    Fix safety
    Safe.

    Not reported
    - Nothing.
    """

    code, name = "{code}", "{name}"
    impact = Impact.LOW
    listens = (Calls("f"),)

    def check(self, node, ctx):
        yield from ()
'''

Package = Callable[..., RulePackage]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Package]:
    """Makes a package of the given modules and returns its entry."""
    monkeypatch.syspath_prepend(str(tmp_path))
    numbers = itertools.count()
    before = set(sys.modules)

    def make(distribution: str = "acme-rules", **modules: str) -> RulePackage:
        name = f"acme_rules_{next(numbers)}"
        folder = tmp_path / name
        folder.mkdir()
        for module, text in {"__init__": "", **modules}.items():
            (folder / f"{module}.py").write_text(text, encoding="utf-8")
        return RulePackage(name, distribution)

    yield make
    for name in set(sys.modules) - before:
        del sys.modules[name]


def rule(code: str = "ACME1", name: str = "slow-thing", class_name: str = "SlowThing", change: str = "") -> str:
    """The source of a rule; `change` is `old -> new`."""
    text = RULE.format(code=code, name=name, class_name=class_name)
    if change:
        old, _, new = change.partition(" -> ")
        assert old in text
        text = text.replace(old, new)
    return text


def test_built_in_rules_load_in_order() -> None:
    codes = [one.code for one in load_rules()]

    assert codes == sorted(codes)
    assert "TPL301" in codes
    # The folder `rules/` is imported as part of perflint only; a second copy would be a second set of classes.
    assert "rules" not in sys.modules


def test_rules_of_two_distributions_stand_side_by_side(package: Package) -> None:
    ours = package(OUR_DISTRIBUTION, slow_thing=rule("TPL999"))
    theirs = package(other=rule("ACME2", "other", "Other"), more=rule("ACME1", "more", "More"))

    assert [one.code for one in collect([ours, theirs])] == ["ACME1", "ACME2", "TPL999"]


def test_helpers_and_borrowed_classes_are_no_rules(package: Package) -> None:
    entry = package(
        _helper=rule("ACME9", "helper", "Helper"),
        real=rule() + "\nfrom ._helper import Helper\n\nclass _Base(Rule): pass\n",
    )

    assert [one.code for one in collect([entry])] == ["ACME1"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (rule("TPL777"), "begin with TPL are perflint's own"),
        (rule("acme1"), "'acme1', which is not capital letters and digits"),
        (rule(name="Slow_Thing"), "'Slow_Thing', which is not lower-case words"),
        (rule(change="impact = Impact.LOW -> pass"), "has no 'impact'"),
        (rule(change="impact = Impact.LOW -> impact = 'low'"), "has 'impact' = 'low', which is no Impact"),
        (rule(change='listens = (Calls("f"),) -> listens = ()'), "listens to nothing"),
        (rule(change='listens = (Calls("f"),) -> listens = ("f",)'), "not made of Listen"),
        (rule(change="def check -> def checks"), "has no 'check'"),
        (rule(change="Why is this slow? -> Why it is slow"), "has no heading 'Why is this slow?' in its docstring"),
        (rule(change="    What to do\n    Nothing.\n -> "), "has no heading 'What to do' in its docstring"),
        (rule(change="    - Nothing.\n -> "), "has no text under the heading 'Not reported'"),
        (
            rule(change="    Fix safety\n ->     Example\n    f()\n\n    Fix safety\n"),
            "has an 'Example' in its docstring",
        ),
        (
            rule(change="    What it does\n ->     References\n    - A page.\n\n    What it does\n"),
            "must have its headings in this order: What it does, Why is this slow?, What to do, Fix safety, Not",
        ),
        ("import no_such_module_anywhere\n", "cannot be imported: ModuleNotFoundError: No module named"),
        ("def broken(:\n", "cannot be imported: SyntaxError"),
        ("raise ValueError\n", "cannot be imported: ValueError"),
    ],
)
def test_a_broken_rule_stops_the_run_and_names_its_distribution(package: Package, text: str, words: str) -> None:
    with pytest.raises(RuleError) as caught:
        collect([package(slow_thing=text)])

    assert str(caught.value).startswith("acme-rules: ")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_rule_without_a_page_is_refused(package: Package) -> None:
    text = rule()
    start, end = text.index('    """'), text.rindex('"""') + 3

    with pytest.raises(RuleError, match="has no docstring"):
        collect([package(slow_thing=text[:start] + text[end:])])


def test_built_in_rules_are_held_to_more(package: Package) -> None:
    with pytest.raises(RuleError, match="not TPL and three digits"):
        collect([package(OUR_DISTRIBUTION, slow_thing=rule("TPL1"))])
    with pytest.raises(RuleError, match=r"its module must be slow_thing\.py"):
        collect([package(OUR_DISTRIBUTION, other=rule("TPL999"))])


@pytest.mark.parametrize("second", [("ACME1", "another-thing"), ("ACME2", "slow-thing")])
def test_codes_and_names_belong_to_one_rule(package: Package, second: tuple[str, str]) -> None:
    entries = [package("first-dist", a=rule()), package("second-dist", b=rule(*second))]

    with pytest.raises(RuleError, match=r"second-dist: .* uses .* of first-dist"):
        collect(entries)


def test_a_missing_package_names_its_distribution() -> None:
    with pytest.raises(RuleError, match="acme-rules: rules of no_such_package cannot be imported"):
        collect([RulePackage("no_such_package", "acme-rules")])


def test_a_checkout_without_installation_has_its_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    from perflint.rule_api import registry

    monkeypatch.setattr("perflint.system.entry_points.entry_points", lambda group: set())

    assert registry.rule_packages() == [RulePackage("perflint.rules", OUR_DISTRIBUTION)]


def test_no_rules_anywhere_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    from perflint.rule_api import registry

    monkeypatch.setattr("perflint.system.entry_points.entry_points", lambda group: set())
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    with pytest.raises(RuleError, match="pip install -e"):
        registry.rule_packages()


def test_a_page_says_why_a_finding_has_no_fix() -> None:
    reasons = {rule.code: rule.why_no_fix() for rule in load_rules()}
    assert reasons["TPL801"] == "launcher, sampler and everything that only one process may do must change."
    assert reasons["TPL202"].startswith("Other branches have no fix: computing both sides can differ")
    assert reasons["TPL301"] == ""  # what its fix asks for stands there instead
    fixable = {rule.code for rule in load_rules() if "nsafe" in rule.page() or "Safe" in rule.page()}
    assert not [code for code, reason in reasons.items() if not reason and code not in fixable]
