"""The contract of a rule: what it says about itself, what it listens to, and how it makes findings.

This is the stable, typed face for rule writers (`perflint.api` re-exports it). A rule is a subclass of `Rule` in a
module of its own; it holds no state, and `check` is a pure generator, so rules run anywhere and in any order.
"""

from __future__ import annotations

import ast
import dataclasses
import enum
import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from perflint.errors import RuleError
from perflint.finding import Confidence, Finding, Fix, Heat, Hop, Impact
from perflint.system.patterns import pattern

if TYPE_CHECKING:
    from perflint.rule_api.context import Context
    from perflint.syntax.file import SourceFile
    from perflint.syntax.suppressions import Malformed, Suppression

_SENTENCE_END = pattern(r"(?<=\.) (?=[A-Z])")
#: What stands for the pages where Python leaves docstrings out.
_NO_PAGES = (
    "No page: Python runs without docstrings here (-OO or PYTHONOPTIMIZE=2), and a rule's docstring is its page."
)


class Tier(enum.Enum):
    """`CORE` rules are on by default; `EXTRA` rules run when selected or with `--extra`."""

    CORE = "core"
    EXTRA = "extra"


class Claim(NamedTuple):
    """What a rule says happens at its findings, in words that an observed run can answer: any of `kinds`.

    The kinds are `read`, `shape`, `to-host`, `to-device`, `synchronize`, `host-allocation` and `launch`, as
    `perflint.observe.trace` defines them. `waits`: only what made the host wait counts. Waits of a kind in `adopts`
    that no rule found are reported as this rule's.
    """

    kinds: frozenset[str]
    waits: bool = True
    adopts: frozenset[str] = frozenset()


def Claims(*kinds: str, waits: bool = True, adopts: tuple[str, ...] = ()) -> Claim:  # noqa: N802 - as `Calls`
    return Claim(frozenset(kinds), waits, frozenset(adopts))


class Listen(NamedTuple):
    """What a rule wants to see, as data, so that the engine dispatches once for all rules and skips cold code.

    `nodes` are ast node types. `names` are identifiers: for calls, the last name of the callee (`deepcopy` for both
    `copy.deepcopy(x)` and `from copy import deepcopy as dc; dc(x)`); for other nodes, one of them must occur in the
    same top-level statement. Empty `names` means no such condition. What is `repeated` is of no interest in a function
    that has no loop, unless it runs at every step: such functions may be left out. So may statements in whose text none
    of the words in `written` stands, which need not be identifiers: names of keywords. `at_least` is the heat that a
    node needs, where the rule sees others that are colder. Calls of the project's own functions that have one of the
    effects in `doing` are heard as those of `names` are (`Program.names_by_effect`).
    """

    nodes: tuple[type[ast.AST], ...]
    names: frozenset[str] = frozenset()
    repeated: bool = False
    written: frozenset[str] = frozenset()
    at_least: Heat = Heat.ONCE
    doing: frozenset[str] = frozenset()

    def within(self, names_by_effect: Mapping[str, frozenset[str]]) -> Listen:
        """The same in a program whose functions have effects."""
        own = [names_by_effect.get(effect, frozenset()) for effect in self.doing]
        return self._replace(names=self.names.union(*own)) if any(own) else self


def Calls(  # noqa: N802 - reads as the type of thing listened to
    *names: str, repeated: bool = False, at_least: Heat = Heat.ONCE, doing: tuple[str, ...] = ()
) -> Listen:
    """Calls whose callee's last name is one of `names`, or that have an effect in `doing` by running a function of the
    project; every call when nothing is given.
    """
    effects = frozenset(str(getattr(effect, "value", effect)) for effect in doing)
    return Listen((ast.Call,), frozenset(names), repeated, at_least=at_least, doing=effects)


def Loops(*mentioning: str) -> Listen:  # noqa: N802
    return Listen((ast.For, ast.AsyncFor, ast.While), frozenset(mentioning))


def Functions(*mentioning: str) -> Listen:  # noqa: N802
    return Listen((ast.FunctionDef, ast.AsyncFunctionDef), frozenset(mentioning))


def Classes(*mentioning: str) -> Listen:  # noqa: N802
    return Listen((ast.ClassDef,), frozenset(mentioning))


def Nodes(  # noqa: N802
    *types: type[ast.AST],
    mentioning: tuple[str, ...] = (),
    repeated: bool = False,
    written: tuple[str, ...] = (),
) -> Listen:
    return Listen(types, frozenset(mentioning), repeated, frozenset(written))


class Rule:
    """One kind of waste.

    The docstring is the rule's page. Its first line is the summary. The headings follow, each alone on its line:
    *What it does*, *Why is this slow?*, *What to do*, *Fix safety*, *Not reported* and, where there is something to
    write, *Known limitations*, *Measured* and *References*. The section *Example* comes from the fixtures.
    `at_least` is the heat a node needs before `check` sees it. What runs once beside a whole
    training in the same function is no step, whatever calls the function.
    """

    code: ClassVar[str]
    name: ClassVar[str]
    since: ClassVar[str] = "0.1"
    tier: ClassVar[Tier] = Tier.CORE
    impact: ClassVar[Impact]
    confidence: ClassVar[Confidence] = Confidence.HIGH
    listens: ClassVar[tuple[Listen, ...]]
    at_least: ClassVar[Heat] = Heat.ONCE
    #: Identifiers one of which must occur in the same top-level statement, besides those listened to: the module whose
    #: functions have common names (`re` for `split`).
    needs: ClassVar[frozenset[str]] = frozenset()
    #: Whether it hardly costs anything where nothing is trained and each step ends by reading its results.
    minor_beside_reads: ClassVar[bool] = False
    #: Whether what stands in code that runs once (a setting, a wrapper, an option) costs on each of the steps after it.
    lasting: ClassVar[bool] = False
    #: Whether it has a word for most programs that train; cases of other rules are not asked for it.
    widespread: ClassVar[bool] = False
    #: Whether the effect can only be measured on an accelerator.
    needs_accelerator: ClassVar[bool] = False
    #: The numerics class of fixes that do not state their own, as `Fix` has it.
    numerics: ClassVar[str] = ""
    #: What an observed run shows where a finding is right; None for a rule that no observation can confirm.
    claims: ClassVar[Claim | None] = None

    def heat_of(self, listen: Listen) -> Heat:
        """The heat that a node needs for the rule to see it by one of its `listens`."""
        return max(self.at_least, listen.at_least)

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        """Yield findings at `node`, a node of a type in `listens` whose heat is at least `at_least`."""
        raise NotImplementedError  # a subclass without `check` is refused by the registry

    def check_comments(
        self, source: SourceFile, unused: Sequence[Suppression], malformed: Sequence[Malformed]
    ) -> Iterator[Finding]:
        """Yield findings about the file's suppression comments, asked after all rules have run on it."""
        return iter(())

    def finding(
        self,
        node: ast.AST,
        ctx: Context,
        message: str,
        *,
        advice: str = "",
        fix: Fix | None = None,
        confidence: Confidence | None = None,
        impact: Impact | None = None,
        related: tuple[Hop, ...] = (),
        block: ast.AST | None = None,
    ) -> Finding:
        """The one way to make a finding. Heat and route are those of `node`; the confidence is capped by the
        route's own (a route through a guessed call is MEDIUM at most). Findings of one `block` are printed as one."""
        if not message.strip():
            raise RuleError(f"rule {self.code} made a finding without a message")
        heat, route, cap = ctx.heat_and_route(node)
        if fix is not None and not fix.numerics:
            fix = dataclasses.replace(fix, numerics=self.numerics)
        return Finding(
            code=self.code,
            name=self.name,
            path=ctx.path,
            span=ctx.span(node),
            message=message,
            confidence=min(self.confidence if confidence is None else confidence, cap),
            impact=self.impact if impact is None else impact,
            heat=heat,
            route=route,
            fix=fix if fix is None or _can_be_made(fix) else None,
            advice=advice,
            related=related,
            block=None if block is None else ctx.span(block),
        )

    def counted(self, node: ast.AST, ctx: Context) -> ast.AST:
        """The node whose runs in a step count for a finding at `node`."""
        del ctx
        return node

    @classmethod
    def page(cls) -> str:
        """The rule's page: its docstring, dedented."""
        return inspect.cleandoc(cls.__doc__ or (_NO_PAGES if sys.flags.optimize > 1 else ""))

    @classmethod
    def summary(cls) -> str:
        """The first line of the page."""
        return cls.page().partition("\n")[0]

    @classmethod
    def why_no_fix(cls) -> str:
        """The sentence of the page's *Fix safety* that says why a finding has no fix; empty where it has conditions."""
        page = cls.page()
        safety = page.partition("\nFix safety\n")[2].partition("\nNot reported\n")[0]
        sentences = _SENTENCE_END.split(" ".join(safety.split()))
        found = next((one for one in sentences if "no fix" in one.lower()), "")
        return found.removeprefix("No fix: ")


def _can_be_made(fix: Fix) -> bool:
    """Codemods give an edit on line 0 for what cannot be edited, such as a node in a string of unknown position."""
    return all(edit.span.line >= 1 for edit in fix.edits)
