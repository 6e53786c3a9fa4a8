"""What a guarded block does with what its own test asks about: fill it, note it, switch it off. Pure, over `ast`."""

from __future__ import annotations

import ast

from perflint.ir.words import DUMMY, LEARNER, MAKES_IT, TEACHES
from perflint.syntax.walk import statements, walk


def written_name(node: ast.expr) -> str:
    """`c` for `a.b.c` and for `a.b.c[0]`; empty for anything else."""
    while type(node) is ast.Subscript:
        node = node.value
    if type(node) is ast.Attribute:
        return node.attr
    return node.id if type(node) is ast.Name else ""


def supplies(body: list[ast.stmt], missing: ast.expr) -> bool:
    """Whether `body` makes what was found to be None: an attribute, an item, `getattr(self, "criterion", None)`."""
    if isinstance(missing, ast.Call):
        return written_name(missing.func) == "getattr" and len(missing.args) == 3 and makes(body, *missing.args[:2])
    return assigns(body, missing) or asks_for(body, missing)


def sets(body: list[ast.stmt], name: ast.expr) -> bool:
    """`plugin = build()`, as a statement of `body` itself."""
    return any(isinstance(item, ast.Assign) and _is_target(item, name) for item in body)


def stands_in(body: list[ast.stmt], missing: ast.expr) -> bool:
    """`if sample is None: sample = self.dummy_batch()`: for the turns that one process has less than the others."""
    for item in body:
        if isinstance(item, ast.Assign) and isinstance(item.value, ast.Call):
            if DUMMY.search(written_name(item.value.func)) and _is_target(item, missing):
                return True
    return False


def _is_target(assignment: ast.Assign, read: ast.expr) -> bool:
    """Whether an expression that is read elsewhere is assigned."""
    if isinstance(read, ast.Name):
        return any(isinstance(target, ast.Name) and target.id == read.id for target in assignment.targets)
    if not isinstance(read, (ast.Attribute, ast.Subscript)):
        return False
    return any(
        isinstance(target, (ast.Attribute, ast.Subscript)) and _is_same(target, read)
        for assigned in assignment.targets
        for target in (assigned.elts if isinstance(assigned, ast.Tuple) else (assigned,))
    )


def assigns(body: list[ast.stmt], target: ast.expr) -> bool:
    """Whether `body` assigns the attribute, item or global that was found to be None: what follows runs once."""
    if not isinstance(target, (ast.Attribute, ast.Subscript)):
        return False
    return any(
        isinstance(node.ctx, ast.Store) and _is_same(node, target)
        for statement in body
        for part in (statement, *statements(statement))
        for stored in _targets(part)
        for node in walk(stored)
        if type(node) is ast.Attribute or type(node) is ast.Subscript
    )


def _targets(statement: ast.stmt) -> list[ast.expr]:
    """What a statement sets: most of what stands in a block sets nothing, and need not be looked at."""
    kind = type(statement)
    if kind is ast.Assign:
        return statement.targets  # type: ignore[attr-defined, no-any-return]
    if kind is ast.With or kind is ast.AsyncWith:
        held = [item.optional_vars for item in statement.items]  # type: ignore[attr-defined]
        return [item for item in held if item is not None]
    target = getattr(statement, "target", None)  # of a loop, an annotation, an augmented assignment
    return [] if target is None else [target]


def _is_same(stored: ast.Attribute | ast.Subscript, read: ast.Attribute | ast.Subscript) -> bool:
    if isinstance(stored, ast.Attribute):
        return isinstance(read, ast.Attribute) and stored.attr == read.attr and _alike(stored.value, read.value)
    return isinstance(read, ast.Subscript) and _alike(stored.value, read.value) and _alike(stored.slice, read.slice)


def _alike(one: ast.expr, other: ast.expr) -> bool:
    return one.__class__ is other.__class__ and ast.dump(one) == ast.dump(other)


def keeps(body: list[ast.stmt], kept: ast.expr, now: ast.expr) -> bool:
    """Whether `body` notes, in what outlives the call, the value that was found to be another one."""
    private = isinstance(kept, ast.Name) and kept.id.startswith("_")
    if not (private or isinstance(kept, ast.Attribute)):
        return False
    return any(isinstance(item, ast.Assign) and _alike(item.value, now) and _is_target(item, kept) for item in body)


def hands_to_self(body: list[ast.stmt], name: str) -> bool:
    """Whether `body` makes what a name stands for anew, of something else, and keeps it in the object or in a container
    of that: `grid = make(size)`, `self.grids[k] = grid`.
    """
    made = False
    for item in body:
        if not isinstance(item, ast.Assign):
            continue
        if any(isinstance(target, ast.Name) and target.id == name for target in item.targets):
            made = not any(isinstance(part, ast.Name) and part.id == name for part in walk(item.value))
        elif made and isinstance(item.value, ast.Name) and item.value.id == name:
            if any(_is_of_self(target) for target in item.targets):
                return True
    return False


def _is_of_self(target: ast.expr) -> bool:
    root = target
    while isinstance(root, (ast.Subscript, ast.Attribute)):
        root = root.value
    return root is not target and isinstance(root, ast.Name) and root.id == "self"


def switches(body: list[ast.stmt], flag: ast.expr, *, on: bool) -> bool:
    """Whether `body` ends what its own flag lets through, by switching it on or off."""
    for item in body:
        if isinstance(item, ast.Assign) and isinstance(item.value, ast.Constant):
            if item.value.value is on and _is_target(item, flag):
                return True
    return False


def undoes(body: list[ast.stmt], state: ast.Attribute) -> bool:
    """`if self.merged: self.unmerge()`: a state that is left, and not entered again by this code."""
    for item in body:
        call = item.value if isinstance(item, ast.Expr) else None
        name = written_name(call.func).strip("_") if isinstance(call, ast.Call) else ""
        if name.startswith("un") and len(name) > 4 and state.attr.strip("_").startswith(name[2:]):
            return True
    return False


def raises(body: list[ast.stmt], limit: ast.expr) -> bool:
    """Whether `body` sets the limit that was just passed: the running maximum."""
    if isinstance(limit, ast.Name):
        targets = [target for item in body if isinstance(item, ast.Assign) for target in item.targets]
        return any(isinstance(target, ast.Name) and target.id == limit.id for target in targets)
    return assigns(body, limit)


def sets_back(body: list[ast.stmt], counter: ast.expr) -> bool:
    """Whether `body` begins a count anew that its own test compares: `self.calls = 0`, `self.calls.zero_()`."""
    for item in body:
        if isinstance(item, ast.Assign):
            if isinstance(item.value, ast.Constant) and item.value.value == 0 and _is_target(item, counter):
                return True
        elif isinstance(item, ast.Expr) and isinstance(item.value, ast.Call):
            func = item.value.func
            if isinstance(func, ast.Attribute) and func.attr == "zero_" and _alike(func.value, counter):
                return True
    return False


def asks_for(body: list[ast.stmt], target: ast.expr) -> bool:
    """`if self._buffer is None: self._fill_buffer()`: a method of the object is asked to make what it lacks."""
    if not (isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self"):
        return False
    for statement in body:
        call = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and MAKES_IT.match(call.func.attr):
            if isinstance(call.func.value, ast.Name) and call.func.value.id == "self":
                return True
    return False


def makes(body: list[ast.stmt], owner: ast.expr, attribute: ast.expr) -> bool:
    """Whether `body` gives an object the attribute that was found missing."""
    name = attribute.value if isinstance(attribute, ast.Constant) else None
    for statement in body:
        for node in walk(statement):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                if node.attr == name and ast.dump(node.value) == ast.dump(owner):
                    return True
            elif isinstance(node, ast.Call) and written_name(node.func) in {"setattr", "register_buffer"}:
                return True
    return False


def fills(body: list[ast.stmt], mapping: ast.expr) -> bool:
    """Whether `body` stores an item in the mapping that was found to lack it: one that outlives the loop's turn."""
    return isinstance(mapping, (ast.Attribute, ast.Name)) and stores(body, ast.dump(mapping))


def stores(body: list[ast.stmt], wanted: str) -> bool:
    """Whether `body` stores an item in the mapping that `ast.dump` gives as `wanted`."""
    for statement in body:
        for node in walk(statement):
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and ast.dump(node.value) == wanted:
                return True
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add":
                if ast.dump(node.func.value) == wanted:
                    return True
    return False


def counts(body: list[ast.stmt], counter: ast.expr) -> bool:
    """Whether `body` counts up what its own test compares."""
    return isinstance(counter, ast.Name) and any(
        isinstance(item, ast.AugAssign) and isinstance(item.target, ast.Name) and item.target.id == counter.id
        for item in body
    )


def takes_out(body: list[ast.stmt], key: ast.expr, collection: ast.expr) -> bool:
    """Whether `body` takes `key` out of the collection in which it was found: `pending.discard(key)`."""
    return any(
        isinstance(item, ast.Expr)
        and isinstance(item.value, ast.Call)
        and isinstance(item.value.func, ast.Attribute)
        and item.value.func.attr in ("discard", "remove", "pop")
        and bool(item.value.args)
        and _alike(item.value.args[0], key)
        and _alike(item.value.func.value, collection)
        for item in body
    )


def steps_with_gathered(body: list[ast.stmt]) -> bool:
    """Whether `body` has an optimizer step and begin anew, by what was walked back before it."""
    called = {
        written_name(part.func)
        for statement in body
        for part in walk(statement)
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute)
    }
    return {"step", "zero_grad"} <= called and not any(name.endswith("backward") for name in called)


def trains(body: list[ast.stmt]) -> bool:
    """Whether `body` walks back a loss, or has something learn."""
    calls = (part for statement in body for part in walk(statement) if isinstance(part, ast.Call))
    return any(_teaches(call.func) for call in calls)


def _teaches(func: ast.expr) -> bool:
    """`loss.backward`, `self.learn`, `agent.update`, `self._update`"""
    name = written_name(func).lstrip("_")
    if name not in {"update", "train"}:
        return TEACHES.match(name) is not None
    return isinstance(func, ast.Attribute) and LEARNER.search(written_name(func.value)) is not None
