"""Inspection: shows the nodes of suspect statements to the rules that listen for them."""

from __future__ import annotations

import ast
import traceback
from collections.abc import Sequence
from typing import NamedTuple

from perflint.context import Context, callee_name
from perflint.errors import SourceError
from perflint.finding import Finding, Heat, Problem
from perflint.program.program import Program
from perflint.rule import Rule
from perflint.source.file import SourceFile
from perflint.source.parse import parse
from perflint.source.tree import Tree
from perflint.suspects import Suspects

#: Statements that hold no functions.
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Import, ast.ImportFrom, ast.Assert, ast.Delete)


class Located(NamedTuple):
    """A finding and the lines of the statement it stands in, where a comment may silence it."""

    finding: Finding
    lines: tuple[int, int]


class Inspector:
    """Runs a set of rules over the files of a program."""

    def __init__(self, program: Program, rules: Sequence[Rule]) -> None:
        self.program = program
        self.rules = rules
        self.suspects = Suspects(program, rules)
        self._table = _Table(rules)
        #: By the rules that are to see a piece of code, the classes of nodes that they want to see.
        self._classes: dict[frozenset[Rule], frozenset[type[ast.AST]]] = {}
        #: The rule that is looking at something.
        self.at_work: Rule | None = None

    def inspect(
        self, source: SourceFile, module: ast.Module | None = None, asked: Program | None = None
    ) -> tuple[list[Located], list[Problem]]:
        """Findings of all rules in one file, and the rules that failed on it. `module` is its tree, if at hand.

        The rules put their questions to `asked`, if given, instead of the program.
        """
        self.at_work = None
        if source.path not in self.program.summaries:
            return [], []
        suspects = self.suspects.statements(source.path)
        if not suspects:
            return [], []
        try:
            tree = Tree(source, module if module is not None else parse(source))
        except SourceError as error:
            return [], [Problem(source.path, error.message, error.line)]
        context = Context(tree, self.program if asked is None else asked)
        findings: dict[Finding, tuple[int, int]] = {}
        problems: list[Problem] = []
        for statement in tree.module.body:
            line = _first_line(statement)
            rules = suspects.get(line)
            if not rules:
                continue
            about = self.suspects.outside(rules, line)
            if not about and isinstance(statement, _SIMPLE):
                continue
            outside, functions = tree.link_outside(statement)
            if about:
                self._visit(outside, about, Heat.ONCE, context, findings, problems)
            for function in functions:
                scope = context.own_scope(function)
                inside = self.suspects.inside(rules, scope)
                if inside:
                    nodes, coldest = tree.link_function(function), self.suspects.coldest(scope)
                    start, end = tree.extent(function) if coldest > Heat.ONCE else (0, 0)
                    self._visit(nodes[start:end], inside, coldest, context, findings, problems)
                    # Defaults and decorators are not evaluated where the function runs.
                    self._visit([*nodes[:start], *nodes[end:]], inside, Heat.ONCE, context, findings, problems)
        context.close()
        return [Located(finding, lines) for finding, lines in findings.items()], problems

    def _visit(
        self,
        nodes: Sequence[ast.AST],
        rules: frozenset[Rule],
        coldest: Heat,
        context: Context,
        findings: dict[Finding, tuple[int, int]],
        problems: list[Problem],
    ) -> None:
        """Show `nodes`, each at least as hot as `coldest`, to the rules that listen for them."""
        table, wanted = self._table, self._wanted(rules)
        for node in nodes:
            kind = node.__class__
            if kind not in wanted:
                continue
            listeners = table.by_type[kind] if kind is not ast.Call else table.of_call(node, context)  # type: ignore[arg-type]
            for rule in listeners:
                if rule in rules and (rule.at_least <= coldest or context.heat(node) >= rule.at_least):
                    self._ask(rule, node, context, findings, problems)

    def _wanted(self, rules: frozenset[Rule]) -> frozenset[type[ast.AST]]:
        """The classes of nodes that any of `rules` listens to."""
        found = self._classes.get(rules)
        if found is None:
            found = frozenset(kind for rule in rules for listen in rule.listens for kind in listen.nodes)
            self._classes[rules] = found
        return found

    def _ask(
        self,
        rule: Rule,
        node: ast.AST,
        context: Context,
        findings: dict[Finding, tuple[int, int]],
        problems: list[Problem],
    ) -> None:
        self.at_work = rule
        try:
            for finding in rule.check(node, context):
                findings.setdefault(finding, _statement_lines(context.tree, node, finding))
        except RecursionError:
            raise
        except Exception as error:  # noqa: BLE001 - a broken rule must not hide what the others find
            line = getattr(node, "lineno", None)
            words = f"rule {rule.code} failed: {type(error).__name__}: {error}"
            problems.append(Problem(context.path, words, line, detail=traceback.format_exc()))
        self.at_work = None


def _statement_lines(tree: Tree, node: ast.AST, finding: Finding) -> tuple[int, int]:
    """First and last line of the statement a finding stands in; of a compound statement only the header counts."""
    statement = tree.statement_of(node)
    last = statement.end_lineno or statement.lineno
    body = getattr(statement, "body", None)
    if isinstance(body, list) and body:
        last = max(statement.lineno, body[0].lineno - 1)
    return min(_first_line(statement), finding.span.line), max(last, finding.span.end_line)


class _Table:
    """Which rules listen to which nodes, so that each node is looked up once for all rules."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.by_type: dict[type[ast.AST], list[Rule]] = {}
        self.by_callee: dict[str, list[Rule]] = {}
        for rule in rules:
            for listen in rule.listens:
                if listen.nodes == (ast.Call,) and listen.names:
                    for name in listen.names:
                        _add(self.by_callee.setdefault(name, []), rule)
                else:
                    for kind in listen.nodes:
                        _add(self.by_type.setdefault(kind, []), rule)

    def of_call(self, node: ast.Call, context: Context) -> Sequence[Rule]:
        general = self.by_type.get(ast.Call, ())
        name = callee_name(node)
        named: Sequence[Rule] = self.by_callee.get(name, ())
        imported = context.summary.imports.get(name) if isinstance(node.func, ast.Name) else None
        if imported is not None:
            original = imported.rpartition(".")[2]
            if original and original != name:
                named = [*named, *(rule for rule in self.by_callee.get(original, ()) if rule not in named)]
        if not general:
            return named
        return [*general, *(rule for rule in named if rule not in general)]


def _add(rules: list[Rule], rule: Rule) -> None:
    if rule not in rules:
        rules.append(rule)


def _first_line(statement: ast.stmt) -> int:
    decorators = getattr(statement, "decorator_list", None)
    return min(statement.lineno, decorators[0].lineno) if decorators else statement.lineno
