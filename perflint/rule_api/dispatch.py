"""Inspection: shows the nodes of suspect statements to the rules that listen for them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from perflint.analysis.names.refs import Scope
from perflint.analysis.phases.for_people import waits_for_person
from perflint.analysis.phases.own_training import beside_own_training
from perflint.analysis.program import Program
from perflint.errors import SourceError
from perflint.finding import Finding, Heat, Problem, Span
from perflint.ir.calls import callee_name
from perflint.rule_api.behind_waits import Behind, behind, told
from perflint.rule_api.context import Context
from perflint.rule_api.feasible import as_feasible
from perflint.rule_api.parts import part_of
from perflint.rule_api.prefilter import Suspects, Wanted, heard_in
from perflint.rule_api.rule import Listen, Rule
from perflint.rule_api.weighing import weighed
from perflint.syntax.file import SourceFile
from perflint.syntax.flow import Flow
from perflint.syntax.parse import plainly_parsed
from perflint.syntax.tree import FUNCTIONS, FunctionNode, Tree, start_of

#: Statements that hold no functions.
_SIMPLE = frozenset(
    {ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Import, ast.ImportFrom, ast.Assert, ast.Delete}
)


class Located(NamedTuple):
    """A finding and the lines of the statement it stands in, where a comment may silence it."""

    finding: Finding
    lines: tuple[int, int]


#: By what is said where: path, span, code and message.
_Found: TypeAlias = "dict[tuple[str, Span, str, str], tuple[Located, Behind | None]]"


class Inspector:
    """Runs a set of rules over the files of a program."""

    def __init__(self, program: Program, rules: Sequence[Rule]) -> None:
        self.program = program
        self.rules = rules
        self.suspects = Suspects(program, rules)
        self._table = _Table(heard_in(program, rules))
        #: The rule that is looking at something.
        self.at_work: Rule | None = None
        #: Rules that took too long on the file at hand, and are not asked again.
        self.left_out: set[Rule] = set()

    def inspect(
        self,
        source: SourceFile,
        module: ast.Module | None = None,
        asked: Program | None = None,
        flow_of: Callable[[], Flow] | None = None,
    ) -> tuple[list[Located], list[Problem]]:
        """Findings of all rules in one file, and the rules that failed on it. `module` is its tree, if at hand.

        The rules put their questions to `asked`, if given, instead of the program.
        """
        self.at_work = None
        summary = self.program.summaries.get(source.path)
        if summary is None or summary.holds_tests:
            return [], []
        suspects = self.suspects.statements(source.path)
        if not suspects or not self.suspects.anywhere(suspects):
            return [], []
        try:
            flow = (
                flow_of()
                if flow_of is not None
                else Flow(Tree(source, module if module is not None else plainly_parsed(source)))
            )
            tree = flow.tree
        except SourceError as error:
            return [], [Problem(source.path, error.message, error.line)]
        context = Context(tree, self.program if asked is None else asked, flow)
        findings: _Found = {}
        problems: list[Problem] = []
        for statement in tree.module.body:
            line = start_of(statement)[0]
            heard = suspects.get(line)
            if not heard:
                continue
            functions = [statement] if isinstance(statement, FUNCTIONS) else []
            if not functions:
                about = self.suspects.outside(heard, line)
                if not about.rules and statement.__class__ in _SIMPLE:
                    continue
                outside, functions = _divided(statement, tree)
                if about.rules:
                    # A table of settings is walked only where it names what somebody looks for.
                    inner = None if self.suspects.names_any(about, line) else frozenset[int]()
                    self._visit(outside, about, Heat.ONCE, context, findings, problems, inner)
            for function in functions:
                scope = context.own_scope(function)
                inside = self.suspects.inside(heard, scope)
                if inside.rules:
                    coldest, outline = self.suspects.coldest(scope), tree.outline(function)
                    named = self._named(inside, function, scope, context)
                    # Defaults and decorators are not evaluated where the function runs.
                    start = 1 if coldest > Heat.ONCE else len(outline)
                    self._visit(outline[start:], inside, coldest, context, findings, problems, named)
                    self._visit(outline[:start], inside, Heat.ONCE, context, findings, problems, named)
        context.close()
        return _worth_telling(findings.values()), problems

    def _visit(
        self,
        statements: Sequence[ast.AST],
        sought: Wanted,
        coldest: Heat,
        context: Context,
        findings: _Found,
        problems: list[Problem],
        named: AbstractSet[int] | None = None,
    ) -> None:
        """Show statements and what stands in them, each at least as hot as `coldest`, to the rules that listen for it.
        In statements that are not `named`, nobody listens to more than the statement.
        """
        table, rules, wanted, own = self._table, sought.rules, sought.nodes, context.tree.own
        for statement in statements:
            nodes = own(statement) if named is None or id(statement) in named else ()
            for node in (statement, *nodes):
                kind = node.__class__
                if kind not in wanted:
                    continue
                listeners = table.by_type[kind] if kind is not ast.Call else table.of_call(node, context)
                heat: Heat | None = None
                for rule, at_least in listeners.items():
                    if rule not in rules:
                        continue
                    if at_least > coldest:
                        heat = heat if heat is not None else context.heat(node)
                        if heat < at_least:
                            continue
                    self._ask(rule, node, at_least, context, findings, problems)

    def _named(self, wanted: Wanted, function: FunctionNode, scope: Scope, context: Context) -> AbstractSet[int] | None:
        """The statements of a function in which a word stands that rules look for, where they look for nothing else
        in statements; else None.
        """
        if wanted.callees is None:
            return None
        callees = wanted.callees & self.suspects.words(scope)
        called = [*callees, *self.suspects.other_names(callees)]
        words = [*called, *wanted.written]
        return set(map(id, context.tree.naming(words, function, called))) if words else frozenset()

    def _ask(
        self,
        rule: Rule,
        node: ast.AST,
        at_least: Heat,
        context: Context,
        findings: _Found,
        problems: list[Problem],
    ) -> None:
        if rule in self.left_out:
            return
        self.at_work = rule
        try:
            for finding in rule.check(node, context):
                # What two causes say in the same words at one place is one finding: the first one's.
                if finding.sort_key in findings:
                    continue
                shown = _shown(finding, node, at_least, context)
                if shown is None or shown.sort_key in findings:
                    continue
                shown = weighed(shown, node, rule, context)
                place = _at(shown.span, node, context.tree)
                shown = replace(shown, part=part_of(place, context))
                located = Located(shown, _statement_lines(context.tree, node, shown))
                wait = behind(shown, place, rule, context)
                findings[shown.sort_key] = located, wait
        except RecursionError:
            raise
        except Exception as error:  # noqa: BLE001 - a broken rule must not hide what the others find
            import traceback  # hardly any run needs it

            line = getattr(node, "lineno", None)
            words = f"rule {rule.code} failed: {type(error).__name__}: {error}"
            problems.append(Problem(context.path, words, line, detail=traceback.format_exc()))
        self.at_work = None


def _worth_telling(found: Collection[tuple[Located, Behind | None]]) -> list[Located]:
    findings = told([(item.finding, wait) for item, wait in found])
    return [item._replace(finding=finding) for (item, _), finding in zip(found, findings) if finding is not None]


def _shown(finding: Finding, node: ast.AST, at_least: Heat, context: Context) -> Finding | None:
    """A finding as it is shown; None where what is said to run on every step does not."""
    if finding.heat >= Heat.STEP <= at_least and beside_own_training(node, context):
        return None
    if finding.heat >= Heat.STEP and waits_for_person(node, context):
        return None
    return as_feasible(finding, _at(finding.span, node, context.tree), context)


def _at(span: Span, node: ast.AST, tree: Tree) -> ast.AST:
    """The part of `node` that a finding stands at: of a condition, one of its tests."""
    places = (part for part in tree.walk(node) if isinstance(part, ast.expr) and part.lineno == span.line)
    return next((part for part in places if tree.span(part) == span), node)


def _statement_lines(tree: Tree, node: ast.AST, finding: Finding) -> tuple[int, int]:
    """First and last line of the statement a finding stands in; of a compound statement only the header counts."""
    statement = tree.statement_of(node)
    last = statement.end_lineno or statement.lineno
    body = getattr(statement, "body", None)
    if isinstance(body, list) and body:
        last = max(statement.lineno, body[0].lineno - 1)
    return min(start_of(statement)[0], finding.span.line), max(last, finding.span.end_line)


#: Who listens to a node, and how hot it must be for that.
_Listeners: TypeAlias = "dict[Rule, Heat]"
_NOBODY: _Listeners = {}


class _Table:
    """Which rules listen to which nodes, so that each node is looked up once for all rules."""

    def __init__(self, heard: Sequence[tuple[Rule, Listen]]) -> None:
        self.by_type: dict[type[ast.AST], _Listeners] = {}
        self.by_callee: dict[str, _Listeners] = {}
        self._called: dict[tuple[str, str], _Listeners] = {}
        for rule, listen in heard:
            if listen.nodes == (ast.Call,) and listen.names:
                for name in listen.names:
                    _add(self.by_callee.setdefault(name, {}), rule, listen)
            else:
                for kind in listen.nodes:
                    _add(self.by_type.setdefault(kind, {}), rule, listen)

    def of_call(self, node: ast.Call, context: Context) -> _Listeners:
        name = callee_name(node)
        imported = context.summary.imports.get(name, "") if isinstance(node.func, ast.Name) else ""
        key = name, imported.rpartition(".")[2]
        known = self._called.get(key)
        if known is None:
            known = self._called[key] = self._of_names(*key)
        return known

    def _of_names(self, name: str, original: str) -> _Listeners:
        """Who listens to calls of a name that stands for another one where that is not empty."""
        named = self.by_callee.get(name, _NOBODY)
        if original and original != name:
            named = _joined(named, self.by_callee.get(original, {}))
        general = self.by_type.get(ast.Call, _NOBODY)
        return _joined(general, named) if general else named


def _joined(some: _Listeners, others: _Listeners) -> _Listeners:
    return {**some, **{rule: min(heat, some.get(rule, heat)) for rule, heat in others.items()}}


def _add(listeners: _Listeners, rule: Rule, listen: Listen) -> None:
    at_least = rule.heat_of(listen)
    listeners[rule] = min(at_least, listeners.get(rule, at_least))


def _divided(statement: ast.stmt, tree: Tree) -> tuple[list[ast.AST], list[FunctionNode]]:
    """What stands in a top-level statement outside of functions, and the functions in it."""
    outline = tree.outline(statement)
    functions = [item for item in outline if isinstance(item, FUNCTIONS)]
    return [item for item in outline if not isinstance(item, FUNCTIONS)] if functions else outline, functions
