"""Assignments: what names, attributes and items come to hold, and what is known of them from then on."""

from __future__ import annotations

import ast
from sys import intern

from perflint.ir import guards
from perflint.ir.computed import COMPUTED, of_value
from perflint.ir.expressions import ANYTHING, HANDLERS
from perflint.ir.flags import Flags
from perflint.ir.notation import DEPTH, path_of
from perflint.ir.questions import TESTS, note_kept
from perflint.ir.targets import may_be_code, parts_of


class Assignments(Flags):
    """Handlers of assignments. None of them guards what follows it."""

    def assign(self, node: ast.Assign) -> str | None:
        held = node.value
        value = HANDLERS[type(held)](self, held, DEPTH)
        computed = of_value(held) if type(held) in COMPUTED else None
        for target in node.targets:
            if type(target) is ast.Name:
                self.identifiers.add(target.id)
                self.bind_name(target.id, value, computed)
                if type(held) is ast.BinOp:
                    self.mix(target, held)
                if type(held) in TESTS:
                    self.scope.held[target.id] = held
                elif type(held) is not ast.Constant or held.value:
                    self.scope.held.pop(target.id, None)
                if self.scope.tests or not guards.is_plain(held):
                    self.keep_test(target.id, held)
                elif guards.is_new_container(held):
                    self.scope.made.setdefault(target.id, self.context)
                if type(held) is ast.Call:
                    self.scope.handed.setdefault(target.id, self.context)
            elif type(target) is ast.Attribute:
                self.target(target)
                self.bind_attribute(target, value, computed)
                if type(held) is ast.BinOp:
                    self.note_store()
                if type(target.value) is ast.Name and target.value.id == "self":
                    if type(held) is ast.Name and self.scope.branching:
                        self.scope.picks.append((target.attr, held.id, target.lineno, target.col_offset))
                    note_kept(target.attr, held, self.scope, self.context)
            else:
                self.target(target)
                self.bind(target, value)
                if type(target) is ast.Subscript:
                    self.note_store()
                    if type(held) is ast.BinOp or type(held) is ast.Call:
                        self.mix(target, held)
                    if type(target.value) is ast.Name and self.is_key_of(target):
                        self.scope.bind(target.value.id, ANYTHING)
                    if type(target.slice) is not ast.Slice and (may_be_code(value) or self.is_of_table(value)):
                        container = path_of(target.value)
                        if container is not None:
                            self.scope.stores[intern(container), value] = None
        return None

    def is_key_of(self, target: ast.Subscript) -> bool:
        """Whether `batch[k] = …` stands in a loop over the items or keys of `batch`: then it gives it new contents."""
        assert isinstance(target.value, ast.Name)
        if not isinstance(target.slice, ast.Name):
            return False
        through = f"{target.value.id}.items", f"{target.value.id}.keys"
        context = self.context
        while context >= 0:
            item = self.scope.contexts[context]
            if item.kind == "loop":
                over = self.scope.loops[int(item.detail)].iterable
                if type(over) is tuple and over[0] == "call" and over[1] in through:
                    return True
            context = item.parent
        return False

    def annotated(self, node: ast.AnnAssign) -> str | None:
        annotation = self.annotation(node.annotation)
        target = node.target
        self.target(target)
        if isinstance(target, ast.Name):
            if not self.cls or self.owner != self.cls:
                self.scope.annotations.setdefault(target.id, annotation)
        elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
            if self.cls in self.classes:
                self.classes[self.cls].annotations.setdefault(target.attr, annotation)
        if node.value is not None:
            value = self.value(node.value)
            computed = of_value(node.value) if type(node.value) in COMPUTED else None
            if isinstance(target, ast.Name):
                self.bind_name(target.id, value, computed)
            elif isinstance(target, ast.Attribute):
                self.bind_attribute(target, value, computed)
        return None

    def mix(self, target: ast.expr, value: ast.expr) -> None:
        """`noise = noise - model(noise)`, `tokens[t] = model(tokens)` in a loop: what the new value is made of."""
        while type(target) is ast.Subscript:
            target = target.value
        if type(target) is ast.Name and self.scope.in_loop(self.context):
            self.scope.mixed[target.id, parts_of(value)] = None

    def augmented(self, node: ast.AugAssign) -> str | None:
        self.mix(node.target, node.value)
        self.target(node.target)
        if type(node.target) is not ast.Name:
            self.note_store()
        self.visit(node.value)
        if type(node.target) is ast.Name and type(node.op) is ast.Add and type(node.value) is ast.List:
            self.hold(node.target.id, node.value.elts)
        self.bind(node.target, None)
        return None

    def note_store(self) -> None:
        if (later := self.scope.facts.later) is not None:
            later.stores = True
