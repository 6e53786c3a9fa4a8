"""What is known of the nodes of one file: where they stand, how hot they are, what they call, hold and do."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from perflint.analysis.effects.summary import Effects, Witness
from perflint.analysis.names.refs import EXTERNAL, EXTERNAL_INSTANCE, Ref, Refs, Scope
from perflint.analysis.phases.phase import PhaseOf
from perflint.analysis.program import Program
from perflint.finding import Confidence, Heat, Hop
from perflint.ir.callees import last_name as last_of
from perflint.ir.calls import callee_name
from perflint.ir.control_flow import Condition, ControlFlow, ScopeNode, control_flow
from perflint.ir.notation import lambda_name, last_name, value_of
from perflint.ir.rarity import PERIODIC
from perflint.ir.summary import MODULE, ByPlace, FunctionFacts, record
from perflint.syntax.file import SourceFile
from perflint.syntax.flow import Flow
from perflint.syntax.tree import FUNCTIONS, LoopNode, Tree
from perflint.syntax.walk import walk_own
from perflint.torch_model.effects import of_method
from perflint.torch_model.names import canonical

if TYPE_CHECKING:
    from typing_extensions import Self

    from perflint.analysis.call_graph.edges import Edge
    from perflint.analysis.values import Inference, Kind
    from perflint.analysis.values.frames import Frame

#: Through so many calls of a way values are followed.
_LONGEST_WAY = 8
Asked = TypeVar("Asked", bound=ast.AST)
Answer = TypeVar("Answer")


class FileFacts:
    """One file of a program. Read-only; answers are remembered for as long as the file is inspected."""

    def __init__(self, tree: Tree, program: Program, flow: Flow | None = None) -> None:
        self.tree = tree
        self._flow = flow or Flow(tree)
        self.source: SourceFile = tree.source
        self.path = tree.source.path
        self.program = program
        self.summary = program.summaries[self.path]
        self._by_line = {
            (facts.line, facts.name): qualname
            for qualname, facts in self.summary.functions.items()
            if qualname != MODULE
        }
        self._others: dict[str, Self | None] = {}
        self._scopes: dict[int, Scope] = {}
        self._around: dict[int, ScopeNode] = {}
        self._contexts: dict[int, int] = {}
        self._loops: dict[str, dict[tuple[int, int], int]] = {}
        self._by_place: dict[str, ByPlace] = {}
        self._bodies: dict[int, list[ast.AST]] = {}
        self._walked: dict[int, list[ast.AST]] = {}
        self._heats: dict[tuple[Scope, int], Heat] = {}
        self._effects: dict[int, Effects] = {}
        self._refs: dict[int, tuple[ast.expr, Refs]] = {}
        self._calls: dict[str, dict[tuple[int, int, str], int]] = {}
        self._mentioned: dict[tuple[str, ...], bool] = {}
        self._named: dict[tuple[str, tuple[str, ...]], bool] = {}
        self._once: dict[tuple[Callable[[Any, Any], Any], int], Any] = {}

    # Other files.

    def at(self, path: str) -> Self | None:
        """What may be asked about another file of the program, None where its text is not at hand."""
        if path == self.path:
            return self
        if path not in self._others:
            flow = self.program.flow(path) if path in self.program.summaries else None
            self._others[path] = type(self)(flow.tree, self.program, flow) if flow is not None else None
        return self._others[path]

    # Where a node stands.

    def scope(self, node: ast.AST) -> Scope:
        """The function whose body runs `node`. Decorators and defaults belong to the scope around their function."""
        scopes, parent = self._scopes, self.tree.parent
        key = id(node)
        if key in scopes:
            return scopes[key]
        found: Scope | None = None
        statement, always = self.tree.standing(node)
        if always and statement is not node:
            found = scopes[key] = self.scope(statement)
            return found
        # Whatever stands between a node and its function has the same scope.
        passed: list[int] = []
        child: ast.AST = node
        while found is None:
            passed.append(id(child))
            outer = parent(child)
            if outer is None:
                found = Scope(self.path, MODULE)
            elif type(outer) is ast.Lambda and child is outer.body:
                found = Scope(self.path, lambda_name(outer))
            elif (type(outer) is ast.FunctionDef or type(outer) is ast.AsyncFunctionDef) and child in outer.body:
                found = self.own_scope(outer)
            else:
                child = outer
                found = scopes.get(id(outer))
        for key in passed:
            scopes[key] = found
        return found

    def own_scope(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> Scope:
        """The scope that a function's body is."""
        return record(Scope, (self.path, self._by_line.get((function.lineno, function.name), MODULE)))

    def facts(self, node: ast.AST) -> FunctionFacts:
        return self.summary.functions[self.scope(node).function]

    def context(self, node: ast.AST) -> int:
        """The index of the innermost context of `node` in its function's facts."""
        key = id(node)
        if key in self._contexts:
            return self._contexts[key]
        place = node.lineno, node.col_offset  # type: ignore[attr-defined]
        function = self.scope(node).function
        contexts = self._by_place.get(function)
        if contexts is None:
            contexts = self._by_place[function] = ByPlace(self.summary.functions[function])
        found = self._contexts[key] = contexts.at(place)
        return found

    def heat(self, node: ast.AST) -> Heat:
        """How often `node` runs."""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return self.program.peak(self.own_scope(node))
        place = (self.scope(node), self.context(node))
        found = self._heats.get(place)
        if found is None:
            found = self._heats[place] = self.program.heat_at(*place)
        return found

    def body_heat(self, loop: LoopNode) -> Heat:
        """How often the body of a loop runs."""
        return self.heat(loop.body[0])

    def heat_and_route(self, node: ast.AST) -> tuple[Heat, tuple[Hop, ...], Confidence]:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return self.program.route(self.own_scope(node), -1)
        return self.program.route(self.scope(node), self.context(node))

    def role(self, node: ast.AST) -> str:
        """What the hot code around `node` is for: "train", "batches", "driver" (of workers that train elsewhere),
        "eval", "data", "decode", "hook", ""."""
        return self.program.role(self.scope(node), self.context(node))

    def is_for_users(self, node: ast.AST) -> bool:
        """Whether nothing makes `node` hot but a loop that users of a library may run, who call this as they like."""
        scope = self.scope(node)
        return self.program.whole.is_for_users(scope, self.context(node), scope)

    def phase(self, node: ast.AST) -> PhaseOf:
        """What part of the program `node` belongs to, with the facts that say so."""
        return self.program.phase(self.scope(node), self.context(node))

    def guards(self, node: ast.AST) -> tuple[str, ...]:
        """Names of the guards (`ir.guards`) around `node` in its function, innermost first."""
        facts, context, found = self.facts(node), self.context(node), []
        while context >= 0:
            item = facts.contexts[context]
            if item.kind == "guard" and item.detail != PERIODIC:
                found.append(str(item.detail))
            elif item.kind in ("guard", "switch") and self.program.heat_at(self.scope(node), context) < Heat.STEP:
                found.append(PERIODIC)
            context = item.parent
        return tuple(found)

    def grad_off(self, node: ast.AST) -> bool:
        """Whether gradients are certainly off where `node` runs."""
        return self.program.grad_off(self.scope(node), self.context(node))

    def effects(self, call: ast.Call) -> Effects:
        """What a call does beside giving a value, with all that it runs: `ctx.effects(call).does(Effect.WAITS)`."""
        known = self._effects.get(id(call))
        if known is None:
            known = self._effects[id(call)] = self._effects_of(call)
        return known

    def _effects_of(self, call: ast.Call) -> Effects:
        scope = self.scope(call)
        index = self.call_index(call)
        if index is not None:
            return self.program.call_effects(scope, index)
        found = of_method(call.func.attr) if isinstance(call.func, ast.Attribute) else None
        text = value_of(call.func)
        shown = text if isinstance(text, str) else last_name(call.func)
        done = tuple(Witness(effect, 0, self.path, call.lineno, shown, call.lineno, None) for effect in found or ())
        return Effects(done, found or ())

    def call_index(self, call: ast.Call) -> int | None:
        """The place of a call among those of its function's facts; None for what the survey does not write down."""
        function = self.scope(call).function
        places = self._calls.get(function)
        if places is None:
            calls = self.summary.functions[function].calls
            # `a.f().g()` begins where `a.f()` does.
            places = self._calls[function] = {
                (item.line, item.column, last_of(item.func)): at for at, item in enumerate(calls)
            }
        return places.get((call.lineno, call.col_offset, callee_name(call)))

    def is_root_loop(self, loop: LoopNode) -> bool:
        """Whether a loop is itself a root of heat: a loop over batches or steps."""
        scope = self.scope(loop)
        places = self._loops.get(scope.function)
        if places is None:
            facts = self.summary.functions[scope.function]
            places = {(item.line, item.column): index for index, item in reversed([*enumerate(facts.loops)])}
            self._loops[scope.function] = places
        index = places.get((loop.lineno, loop.col_offset))
        found = None if index is None else self.program.roots.loops.get((scope, index))
        return found is not None and found.heat >= Heat.STEP

    # What an expression means.

    def refs(self, node: ast.expr) -> Refs:
        """What an expression may refer to across files; empty where it is not plain to see."""
        known = self._refs.get(id(node))
        if known is None:
            # The node is kept as well: one that is no part of the tree leaves its number to another.
            known = self._refs[id(node)] = node, self.program.refs(value_of(node), self.scope(node))
        return known[1]

    def target(self, node: ast.expr) -> str | None:
        """The public dotted name of the one library thing that `node` names (`torch.cuda.empty_cache`), else None.

        For `obj.method` with a known library class it is `torch.utils.data.DataLoader.method`.
        """
        refs = self.refs(node)
        if len(refs) != 1 or refs[0].kind not in (EXTERNAL, EXTERNAL_INSTANCE):
            return None
        return canonical(refs[0].name.removeprefix("builtins."))

    def project_target(self, node: ast.expr) -> Ref | None:
        """The one function or class of the project that `node` names, else None."""
        refs = [ref for ref in self.refs(node) if ref.path]
        return refs[0] if len(refs) == 1 else None

    def is_call_of(self, node: ast.AST, *dotted: str) -> bool:
        """Whether `node` calls one of these library functions, however it was imported."""
        return isinstance(node, ast.Call) and self._may_name(node.func, dotted) and self.target(node.func) in dotted

    def _may_name(self, node: ast.expr, dotted: tuple[str, ...]) -> bool:
        """Whether a node may name one of some library's things: by its last name, or where the project has something of
        that name, which may stand for anything. Of most calls it tells that they are of none.
        """
        if not isinstance(node, ast.Attribute):
            return True
        known = self._named.get((node.attr, dotted))
        if known is None:
            is_last = any(name.endswith(f".{node.attr}") for name in dotted)
            known = self._named[node.attr, dotted] = is_last or self.program.may_be_own(node.attr)
        return known

    @cached_property
    def inference(self) -> Inference:
        from perflint.analysis.values.siblings import siblings_of

        return siblings_of(self.program).of(self._flow)

    def close(self) -> None:
        """Free what was remembered; nothing may be asked any more."""
        self._once.clear()
        self._refs.clear()
        self._others.clear()
        if "inference" in vars(self):
            self.inference.siblings.trim()

    def kind(self, node: ast.expr) -> Kind:
        """The abstract value of an expression."""
        return self.inference.kind(node)

    def kind_on_route(self, node: ast.expr) -> Kind:
        """The same in the call that makes the function around `node` hot, which findings print: other callers may give
        it something else.
        """
        function = self.tree.function_of(node)
        frame = None if function is None else self.once(_frame_on_route, function)
        return self.inference.kind(node, frame)

    def given_on_route(self, name: ast.expr) -> tuple[ast.expr, Self] | None:
        """What that call is written to give for a parameter, with the facts of the file where it stands."""
        bound = self.inference.flow.definitions(name) if isinstance(name, ast.Name) else ()
        function = self.tree.function_of(name)
        if len(bound) != 1 or not isinstance(bound[0].node, ast.arg) or function is None:
            return None
        edge = self.program.hottest_call(self.own_scope(function))
        other = None if edge is None or edge.callback or edge.index < 0 else self.at(edge.caller.path)
        if edge is None or other is None:
            return None
        place = self.inference.parameters.place_of(function, bound[0].name)
        given = other.inference.parameters.node_at(edge, bound[0].name, place)
        return None if given is None else (given, other)

    def mentions(self, *names: str) -> bool:
        """Whether this file uses one of the identifiers."""
        known = self._mentioned.get(names)
        if known is None:
            known = self._mentioned[names] = self.program.mentions(names, (self.path,))
        return known

    def once(self, make: Callable[[Asked, Self], Answer], node: Asked) -> Answer:
        """What `make` says of a node, worked out the first time that it is asked for in this file. For what is asked
        of one function by each of the many nodes in it: `make` must look at nothing else.
        """
        key = make, id(node)
        try:
            return self._once[key]  # type: ignore[no-any-return]
        except KeyError:
            pass
        found = self._once[key] = make(node, self)
        return found

    def control_flow(self, node: ast.AST) -> ControlFlow:
        """The control-flow graph of the function, lambda or module whose body runs `node`."""
        around, parent = self._around, self.tree.parent
        scope: ScopeNode | None = around.get(id(node))
        # Whatever stands between a node and its function has the same graph.
        passed: list[int] = []
        child = node
        while scope is None:
            passed.append(id(child))
            outer = parent(child)
            if outer is None:
                scope = self.tree.module
            elif isinstance(outer, ast.Lambda) and child is outer.body:
                scope = outer
            elif isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef)) and child in outer.body:
                scope = outer
            else:
                child = outer
                scope = around.get(id(outer))
        for key in passed:
            around[key] = scope
        return self.once(_control_flow, scope)

    def conditions(self, node: ast.AST, *, outward: bool = False, exits: bool = True) -> tuple[Condition, ...]:
        """The tests of branches that have come out so where `node` runs, outermost first (`ControlFlow.conditions`):
        those of its function, and with `outward` those under which the function itself is made. Without `exits` those
        are left out that would have left the block before. What a loop asks before each turn, and what is asserted, is
        none of them.
        """
        graph = self.control_flow(node)
        found = tuple(
            (test, holds)
            for test, holds in graph.conditions(node)
            if not isinstance(branch := self.tree.statement_of(test), (ast.While, ast.Assert))
            and (exits or _spans(branch, node))
        )
        if outward and not isinstance(graph.scope, ast.Module):
            return (*self.conditions(graph.scope, outward=True, exits=exits), *found)
        return found

    def are_exclusive(self, one: ast.AST, other: ast.AST) -> bool:
        """Whether a test of their function sends a run to either the one node or the other."""
        outcomes = {(id(test), not holds) for test, holds in self.conditions(one)}
        return any((id(test), holds) in outcomes for test, holds in self.conditions(other))

    # Text.

    def text(self, node: ast.AST) -> str:
        """The source of `node` on one line."""
        return " ".join(self.tree.text(node).split())

    def hop(self, node: ast.AST, words: str) -> Hop:
        """A related place in this file."""
        return Hop(self.path, node.lineno, words)  # type: ignore[attr-defined]

    @property
    def torch_version(self) -> tuple[int, int] | None:
        """The project's torch (major, minor), None where nothing says: then advice is for the newest."""
        return self.program.torch_of(self.path)[0]

    @property
    def pinned_torch(self) -> tuple[int, int] | None:
        """The torch (major, minor) that the project is held to, None where a newer one may be installed as well."""
        return self.program.torch_of(self.path)[1]

    def loops(self, node: ast.AST) -> list[LoopNode]:
        """Loops of the same function around `node`, innermost first."""
        return self.tree.loops_around(node)

    def walk(self, node: ast.AST) -> list[ast.AST]:
        """`node` and all below it that runs when it does: bodies of nested functions and lambdas are left out."""
        found = self._walked.get(id(node))
        if found is None:
            found = self._walked[id(node)] = walk_own(node)
        return found

    def body(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.AST]:
        """What `walk` gives of each statement of a function."""
        found = self._bodies.get(id(function))
        if found is None:
            found = self._bodies[id(function)] = self.tree.body(function)
        return found


def _control_flow(scope: ScopeNode, _: FileFacts) -> ControlFlow:
    return control_flow(scope)


def _spans(statement: ast.stmt, node: ast.AST) -> bool:
    line: int = node.lineno  # type: ignore[attr-defined]
    return statement.lineno <= line <= (statement.end_lineno or 0)


def _frame_on_route(function: ast.AST, facts: FileFacts) -> Frame | None:
    """The call that a function has its heat from, where it is one of several, or that is made in such a call. Of each
    function on the way the parameters are what the one before gives them.
    """
    from perflint.analysis.values.frames import Frame  # loaded with all that it takes to tell what values are

    assert isinstance(function, FUNCTIONS)
    scope = facts.own_scope(function)
    edge = facts.program.hottest_call(scope)
    if edge is None or edge.callback or edge.index < 0:
        return None
    before = _frame_before(edge, scope, facts)
    # A call of what is not known stands in for one of the function: what it gives is no parameter's for certain.
    if before is None and len(facts.program.callers(scope)) < 2 and not edge.stands_in:
        return None
    return Frame(function, facts.inference.parameters.given_by(edge, function, before))


def _frame_before(edge: Edge, scope: Scope, facts: FileFacts) -> Frame | None:
    """The call that the caller has its heat from. A way that comes back to where it was is not gone."""
    seen, caller = {scope}, edge.caller
    while (earlier := facts.program.hottest_call(caller)) is not None:
        if caller in seen or len(seen) > _LONGEST_WAY:
            return None
        seen.add(caller)
        caller = earlier.caller
    there = facts.at(edge.caller.path)
    node = there.inference.classes.function_node(edge.caller.function) if there is not None else None
    return there.once(_frame_on_route, node) if there is not None and isinstance(node, FUNCTIONS) else None
