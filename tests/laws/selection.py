#!/usr/bin/env python3
"""Does a rule by itself find what it finds among all others?

usage: python tests/laws/selection.py [--rules TPL201,TPL202] [--show] TREE...

Checks each tree with all rules and with each rule alone, without a cache, and says for how many findings of a rule the
two differ: in their places, words, impact, confidence, routes, related lines or fixes. Every check starts from the same
summaries, in a process of its own, so that none profits from what another asked. Exit code 1 when any differ.
"""

from __future__ import annotations

import argparse
import os
import pickle
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from perflint import engine
from perflint.engine.worker import Surveyed, Worker
from perflint.finding import Finding
from perflint.project.discovery import Discovery, FoundFile, discover
from perflint.project.settings import Settings, load_settings
from perflint.rule_api.registry import load_rules
from perflint.rule_api.rule import Rule

_Answer = TypeVar("_Answer")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", type=Path, nargs="+")
    parser.add_argument("--rules", default="", help="codes, all when not given")
    parser.add_argument("--show", action="store_true", help="the findings that differ")
    options = parser.parse_args()
    rules = [rule() for rule in load_rules()]
    wanted = set(options.rules.split(",")) if options.rules else {rule.code for rule in rules}
    wrong = 0
    for tree in options.trees:
        began = time.monotonic()
        lost, won, total = compared(tree, rules, wanted)
        for sign, several in (("-", lost), ("+", won)) if options.show else ():
            for one in several:
                print(f"  {sign} {one.path}:{one.span.line} {one.code} {one}")
        differing = max(lost.total(), won.total())
        spent = time.monotonic() - began
        print(f"{tree}: {differing} of {total} findings differ when a rule is alone ({spent:.0f} s)", flush=True)
        wrong += differing
    return 1 if wrong else 0


def compared(tree: Path, rules: Sequence[Rule], wanted: set[str]) -> tuple[Counter[Finding], Counter[Finding], int]:
    """What is found only among others, what only alone, and how much there is with all rules."""
    before = Path.cwd()
    os.chdir(tree)
    try:
        settings = load_settings(Path.cwd())
        discovery = discover(["."], settings)
        _survey_once(discovery, settings, rules)
        together = in_a_child(lambda: found(discovery, settings, rules))
        lost, won = Counter[Finding](), Counter[Finding]()
        for rule in rules:
            if rule.code in wanted:
                among = Counter(one for one in together if one.code == rule.code)
                alone = Counter(in_a_child(lambda: found(discovery, settings, [rule])))  # noqa: B023 - asked here
                lost += among - alone
                won += alone - among
        return lost, won, len(together)
    finally:
        Worker.survey = _SURVEY  # type: ignore[method-assign]
        os.chdir(before)


_SURVEY = Worker.survey


def _survey_once(discovery: Discovery, settings: Settings, rules: Sequence[Rule]) -> None:
    """Survey the files, and have every later worker take what was found."""
    run = engine.Run(discovery, engine.Options(settings, rules, cache=False), {})
    known = {file.display: run.worker.survey(file) for file in discovery.analysed}

    def survey(self: Worker, file: FoundFile) -> Surveyed:
        return known[file.display]

    Worker.survey = survey  # type: ignore[method-assign]


def found(discovery: Discovery, settings: Settings, rules: Sequence[Rule]) -> tuple[Finding, ...]:
    """What rules find in a tree."""
    options = engine.Options(settings, rules, cache=False, everything=True, jobs=1)
    return engine.check(discovery, options).findings


def in_a_child(ask: Callable[[], _Answer]) -> _Answer:
    """An answer as a process gives it that nothing was asked of before."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            with os.fdopen(writer, "wb") as pipe:
                pickle.dump(ask(), pipe)
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer: _Answer = pickle.load(pipe)
    os.waitpid(child, 0)
    return answer


if __name__ == "__main__":
    sys.exit(main())
