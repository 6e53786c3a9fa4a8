"""Which findings of a file are not reported: comments silence them, or settings leave them out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

from perflint.engine.governing import Governed
from perflint.engine.options import Options
from perflint.finding import Finding, Silenced
from perflint.project.discovery import FoundFile
from perflint.project.selection import rank_of
from perflint.rule_api.dispatch import Located
from perflint.syntax.file import SourceFile
from perflint.syntax.suppressions import Malformed, Suppression, Suppressions, Used

#: From 0 to 1, how alike a word and a name are of which one is the other misspelt.
_NEAR = 0.8
#: Codes that no plug-in may have.
_OURS = re.compile(r"TPL\d{3}")


def silence(
    source: SourceFile, file: FoundFile, found: Sequence[Located], options: Options
) -> tuple[list[Finding], list[Silenced]]:
    """Split findings into those that are reported and those a comment silences; judge the comments themselves."""
    kept: list[Finding] = []
    silenced: list[Silenced] = []
    suppressions = Suppressions.read(source)
    if not found and not suppressions.each and not suppressions.malformed:
        return kept, silenced
    here = holding(file, options)
    switched_off = here.settings.ignored_in(file.file)
    used: list[Used] = []
    for finding, lines in found:
        if finding.code not in here.codes or is_off(switched_off, finding.code, finding.name):
            continue
        by = suppressions.silences(finding.code, finding.name, lines)
        if by is not None:
            used.append((by, finding.code, finding.name))
            silenced.append(Silenced(finding, by.line, by.reason))
        elif finding.confidence >= here.settings.confidence:
            kept.append(finding)
    kept += _comments(source, suppressions, used, switched_off, here, options)
    return kept, silenced


def holding(file: FoundFile, options: Options) -> Governed:
    """The settings of a file, and the rules that run on it."""
    nested = options.nested.get(file.file.parent)
    if nested is not None:
        return nested
    codes = frozenset(rule.code for rule in options.rules) if options.codes is None else options.codes
    return Governed(options.settings, codes, options.everything)


def _comments(
    source: SourceFile,
    suppressions: Suppressions,
    used: Sequence[Used],
    switched_off: Sequence[str],
    here: Governed,
    options: Options,
) -> Iterator[Finding]:
    """Findings of the rules that judge suppression comments."""
    running = [
        rule for rule in options.rules if rule.code in here.codes and not is_off(switched_off, rule.code, rule.name)
    ]
    ran = {rule.code for rule in running} | {rule.name for rule in running}
    ran |= _unheard_of(suppressions, ran)
    misspelt = _misspelt(suppressions, ran)
    unused = _without(misspelt, suppressions.unused(ran, used, everything_ran=here.everything))
    for rule in running:
        for finding in rule.check_comments(source, unused, (*suppressions.malformed, *misspelt)):
            line = finding.span.line
            if suppressions.silences(finding.code, finding.name, (line, line)) is None:
                yield finding


def _unheard_of(suppressions: Suppressions, ran: AbstractSet[str]) -> set[str]:
    """Codes in comments that look like ours and are no rule's. What is named otherwise may be a plug-in's."""
    words = {word for one in suppressions.each for word in one.selectors if _OURS.fullmatch(word)} - ran
    if not words:
        return set()
    from perflint.rule_api.registry import load_rules

    return words - {rule.code for rule in load_rules()}


def _misspelt(suppressions: Suppressions, ran: AbstractSet[str]) -> list[Malformed]:
    """Words in comments that are nearly the name of a rule, and no rule's. Others may be a plug-in's."""
    strange = [(one, word) for one in suppressions.each for word in one.selectors if word not in ran]
    if not strange:
        return []
    from difflib import get_close_matches

    from perflint.rule_api.registry import load_rules

    rules = load_rules()
    names = [rule.name for rule in rules]
    found = []
    for one, word in strange:
        if any(rank_of(word, rule.code, rule.name) is not None for rule in rules):
            continue
        for meant in get_close_matches(word.lower(), names, n=1, cutoff=_NEAR):
            message = f"{word!r} is not a rule; did you mean {meant!r}?"
            found.append(Malformed(one.line, one.column, message, word, meant))
    return found


def _without(misspelt: Sequence[Malformed], unused: Sequence[Suppression]) -> list[Suppression]:
    """Unused comments, but for the words that are spoken of as misspelt."""
    found = []
    for one in unused:
        words = {wrong.word for wrong in misspelt if (wrong.line, wrong.column) == (one.line, one.column)}
        rest = tuple(word for word in one.selectors if word not in words)
        if rest or not one.selectors:
            found.append(one._replace(selectors=rest, kept=(*one.kept, *words)) if words else one)
    return found


def is_off(selectors: Sequence[str], code: str, name: str) -> bool:
    return any(rank_of(selector, code, name) is not None for selector in selectors)
