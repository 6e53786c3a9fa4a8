"""Which items of a result are read, where every use can be seen."""

from __future__ import annotations

import ast

from perflint.analysis.elsewhere import definition_of
from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import FUNCTION, Scope
from perflint.ir.calls import callee_name, is_constant, keyword
from perflint.syntax.bindings import Definition
from perflint.syntax.walk import walk

_DEPTH = 3


class ItemReads:
    """What is read of the result of a call, where every use can be seen."""

    def __init__(self, call: ast.Call, ctx: FileFacts, found: list[str] | None = None) -> None:
        self.call, self.ctx = call, ctx
        self.found: list[str] = [] if found is None else found
        self.items: list[ast.expr] = []
        #: The loops around the call, of which a function that is called knows nothing.
        self.around = {id(loop) for loop in ctx.tree.ancestors(call)} if found is None else set()

    def of_cache(self) -> list[str]:
        """The keys read of the cache that `run_with_cache` gives; none where it may be read in other ways."""
        parent = self.ctx.tree.parent(self.call)
        if isinstance(parent, ast.Subscript) and is_constant(parent.slice, value=1):
            return self.found if self._is_item(parent) else []
        if not isinstance(parent, ast.Assign) or len(parent.targets) != 1:
            return []
        target = parent.targets[0]
        if not isinstance(target, ast.Tuple) or len(target.elts) != 2 or not isinstance(target.elts[1], ast.Name):
            return []
        uses = self._uses(target.elts[1])
        return self.found if uses and all(self._is_item(use) for use in uses) else []

    def of_output(self) -> list[str] | None:
        """The layers read of a model's output, None where it may be read in other ways."""
        return self.found if self._is_output(self.call, _DEPTH) else None

    def _uses(self, target: ast.Name) -> list[ast.Name]:
        flow = self.ctx.inference.flow
        made = flow.definition_at(target)
        if made is None or isinstance(self.ctx.tree.scope_of(target), (ast.Module, ast.ClassDef)):
            return []
        uses = flow.uses_of(made)
        return uses if all(self._is_alike(other) for use in uses for other in flow.definitions(use)) else []

    def _is_alike(self, made: Definition) -> bool:
        """Whether another value of the same name comes from a forward of the same kind."""
        if made.value is None or made.path != ((1,) if callee_name(self.call) == "run_with_cache" else ()):
            return False
        if isinstance(made.value, ast.Call):
            name, switch = callee_name(self.call), keyword(made.value, "output_hidden_states")
            return switch is not None or callee_name(made.value) == name == "run_with_cache"
        return True

    def _is_item(self, value: ast.expr) -> bool:
        """Whether one item of a mapping or tuple is read, the same on every turn of what is around it."""
        parent = self.ctx.tree.parent(value)
        if not isinstance(parent, ast.Subscript) or parent.value is not value or not isinstance(parent.ctx, ast.Load):
            return False
        if isinstance(parent.slice, ast.Slice) or self._varies(parent.slice):
            return False
        text = self.ctx.text(parent.slice)
        if text not in self.found:
            self.found.append(text)
            self.items.append(parent.slice)
        return True

    def _varies(self, key: ast.expr) -> bool:
        """Whether a key depends on what a loop behind the call binds."""
        for part in walk(key):
            if not isinstance(part, ast.Name):
                continue
            for made in self.ctx.inference.flow.definitions(part):
                if isinstance(made.node, ast.comprehension) and id(made.node) not in self.around:
                    return True
                loops = [made.node] if isinstance(made.node, ast.For) else self.ctx.loops(made.node)
                if any(id(loop) not in self.around for loop in loops):
                    return True
        return False

    def _is_output(self, value: ast.expr, depth: int) -> bool:
        parent = self.ctx.tree.parent(value)
        if isinstance(parent, ast.Assign) and parent.value is value and len(parent.targets) == 1 and depth:
            target = parent.targets[0]
            uses = self._uses(target) if isinstance(target, ast.Name) else []
            return bool(uses) and all(self._is_output(use, depth - 1) for use in uses)
        if isinstance(parent, ast.Attribute):
            return parent.attr != "hidden_states" or self._are_states(parent, depth)
        if isinstance(parent, ast.Subscript) and parent.value is value:
            if is_constant(parent.slice, value="hidden_states"):
                return self._are_states(parent, depth)
            return isinstance(parent.slice, ast.Constant) and (
                isinstance(parent.slice.value, str) or is_constant(parent.slice, value=0)
            )
        if isinstance(parent, ast.Call) and value in parent.args:
            return callee_name(parent) in ("hasattr", "isinstance") or self._is_read_by(parent, value, depth)
        return False

    def _are_states(self, value: ast.expr, depth: int) -> bool:
        parent = self.ctx.tree.parent(value)
        if isinstance(parent, ast.IfExp) and value is not parent.test:
            value, parent = parent, self.ctx.tree.parent(parent)
        if isinstance(parent, ast.Assign) and parent.value is value and len(parent.targets) == 1 and depth:
            target = parent.targets[0]
            uses = self._uses(target) if isinstance(target, ast.Name) else []
            return bool(uses) and all(self._are_states(use, depth - 1) for use in uses)
        if isinstance(parent, ast.Compare):
            return all(isinstance(item, ast.Constant) and item.value is None for item in parent.comparators)
        return self._is_item(value)

    def _is_read_by(self, call: ast.Call, value: ast.expr, depth: int) -> bool:
        """Whether a function of the project reads one item of the output that it is given."""
        ref = self.ctx.project_target(call.func)
        found = definition_of(Scope(ref.path, ref.name), self.ctx) if ref is not None and ref.kind == FUNCTION else None
        position = call.args.index(value)
        if found is None or not depth or position >= len(found[0].args.args):
            return False
        function, there = found
        uses = there.inference.flow.uses(function, function.args.args[position].arg)
        inside = ItemReads(self.call, there, self.found)
        return bool(uses) and all(inside._is_output(use, depth - 1) for use in uses)
