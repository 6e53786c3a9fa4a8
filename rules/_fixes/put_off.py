"""Fixes that put off reads: sums and lists of device values stay on the device, and are read behind their loop.

`total += loss.item()` becomes `total += loss.detach().double()`, `losses.append(loss.item())` becomes
`losses.append(loss.detach().clone())`. In float64 the device adds what Python would have added, bit by bit. Behind the
loop, and where a guard in it looks at the result, a line makes Python numbers of it again.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TypeAlias

from perflint.api import Applicability, Binding, Context, Definition, Dtype, Fix, Heat, Tag, callee_name, tensors, walk
from perflint.api.gradients import is_model_call
from perflint.api.waits import first_of_block, rare_branch, reads_after, waits_spared_by

from .collected import Collected, collected_by

_Loop: TypeAlias = "ast.For | ast.AsyncFor | ast.While"
_NESTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def read_after_loop(node: ast.expr, ctx: Context) -> tuple[Fix | None, str]:
    """The fix of a read whose number a loop only collects: the widest loop around it that can do without the number.
    Where a sum or list cannot wait, no fix and why; no reason where nothing is collected.
    """
    # All reads of a block go together: of those that find the device idle, one would wait instead.
    first = first_of_block(node, ctx)
    one = _collecting(first, ctx)
    if one is None:
        return None, ""
    why = ""
    for loop in reversed(ctx.loops(node)):
        if ctx.body_heat(loop) >= Heat.STEP:
            fix, reason = _behind(loop, one, ctx)
            if fix is not None:
                return fix, ""
            why = why or reason
    return None, why


def _collecting(read: ast.AST, ctx: Context) -> Collected | None:
    """The statement that does no more with a read, or a part of one, than to collect it."""
    one = collected_by(ctx.tree.statement_of(read), ctx)
    return one if one is not None and any(part is read for part in walk(one.read)) else None


def _behind(loop: _Loop, one: Collected, ctx: Context) -> tuple[Fix | None, str]:
    plan = _Plan(loop, ctx)
    # Behind a loop that runs on every step itself, the reads would be as many findings as before.
    if not plan.takes(one):
        return None, plan.why
    if plan.as_numbers() and ctx.heat(loop) >= Heat.STEP:
        return None, "the whole loop runs on every step, and so would the read after it"
    edits = [ctx.edit.replace(item.read, _kept(item, ctx)) for item in plan.statements]
    edits += [ctx.edit.insert_before(guard.body[0], plan.as_numbers(guard)) for guard in plan.guards()]
    if plan.as_numbers():
        edits.append(ctx.edit.insert_after(loop, plan.as_numbers()))
    fix = Fix(
        "Collect on the device and read after the loop",
        Applicability.UNSAFE,
        tuple(edits),
        reason=plan.reason(),
        numerics="same bits",
    )
    return fix, ""


class _Plan:
    """What has to be put off together: sums and lists of one loop, and where guards look at them."""

    def __init__(self, loop: _Loop, ctx: Context) -> None:
        self.loop, self.ctx = loop, ctx
        self.statements: list[Collected] = []
        self._into: dict[str, Collected] = {}
        self._guards: dict[str, list[ast.If]] = {}
        #: Why something cannot wait, in words.
        self.why = ""

    def _cannot(self, why: str) -> bool:
        self.why = self.why or why
        return False

    def takes(self, one: Collected) -> bool:
        """Add a sum or list with all that is added to it in the loop; False where the loop needs its numbers."""
        text = self.ctx.text(one.into)
        if text in self._into:
            return _is_alike(one, self._into[text], self.ctx)
        root = _root(one.into)
        if root is None:
            return self._cannot(f"`{text}` is part of an object, which other code may read")
        if not _begins_as_number(self.loop, one, root, self.ctx):
            return self._cannot(f"`{text}` does not begin as {'an empty list' if one.listed else 'a number'} here")
        if _may_be_read_meanwhile(root.id, self.loop, self.ctx):
            return self._cannot(f"`{text}` may be used by other code before the loop ends")
        self._into[text] = one
        guards = self._guards[text] = []
        for use in _uses(root.id, one.into, self.loop, self.ctx):
            found = collected_by(self.ctx.tree.statement_of(use), self.ctx)
            if found is None or not _is_own(use, found, self.ctx):
                guard = rare_branch(use, self.ctx)
                if guard is None:
                    return self._cannot(f"`{text}` is used on every step (line {use.lineno})")
                guards += [guard] if guard not in guards else []
            elif not _is_alike(found, one, self.ctx) or not self._takes_statement(found):
                return False
        return True

    def _takes_statement(self, found: Collected) -> bool:
        """Whether all reads in the loop that would wait instead are collected as well."""
        if any(item.statement is found.statement for item in self.statements):
            return True
        if not found.whole and _is_made_for_number(found.value, self.ctx):
            return False
        self.statements.append(found)
        again = reads_after(found.read, found.value, self.loop, self.ctx)
        spared = [item for part in walk(found.read) for item in waits_spared_by(part, self.loop, self.ctx)]
        for read in (*again, *spared):
            other = _collecting(read, self.ctx)
            if self.ctx.heat(read) >= Heat.STEP and (other is None or not self.takes(other)):
                return self._cannot(f"without this read, line {read.lineno} would wait instead")  # type: ignore[attr-defined]
        return True

    def _is_used_after(self, one: Collected) -> bool:
        """Whether the result is looked at after the loop, and not only added to."""
        root = _root(one.into)
        uses = self.ctx.inference.flow.uses_after(self.loop, root.id) if root is not None else []
        adds = [collected_by(self.ctx.tree.statement_of(use), self.ctx) for use in uses]
        return any(found is None or not _is_own(use, found, self.ctx) for use, found in zip(uses, adds))

    def guards(self) -> list[ast.If]:
        """Where the loop looks at a result."""
        return list({id(guard): guard for guards in self._guards.values() for guard in guards}.values())

    def as_numbers(self, guard: ast.If | None = None) -> str:
        """The lines that make numbers of what was collected: of all, or of what a guard looks at."""
        into = [
            one
            for text, one in self._into.items()
            if (self._is_used_after(one) if guard is None else guard in self._guards[text])
        ]
        lines = [_as_numbers(one, self.ctx) for one in sorted(into, key=lambda one: one.statement.lineno)]
        return "\n".join(lines)

    def reason(self) -> str:
        names = [f"`{text}`" for text in self._into]
        held = "is a tensor" if not any(one.listed for one in self._into.values()) else "holds tensors"
        if len(names) > 1:
            held = "are tensors" if held == "is a tensor" else "hold tensors"
        reason = f"{' and '.join(names)} {held} until the loop ends"
        summed = any(not one.whole and (one.scaled or not one.listed) for one in self._into.values())
        return reason + (", in float64, which MPS does not have" if summed else "")


def _root(into: ast.expr) -> ast.Name | None:
    """The variable that a sum or list is: a name, or the mapping whose entry it is."""
    if isinstance(into, ast.Subscript) and isinstance(into.slice, ast.Constant):
        into = into.value
    return into if isinstance(into, ast.Name) else None


def _kept(one: Collected, ctx: Context) -> str:
    """The tensor that takes the place of a number: without its graph, and nobody writes into it."""
    text = ctx.edit.receiver(one.value)
    kind = ctx.kind(one.value)
    if not one.whole and not ctx.grad_off(one.read):
        text += ".detach()"
    if one.listed and not one.scaled:
        # A name's tensor may be written into later, by this name or another one.
        is_new = isinstance(one.value, ast.Call) and (kind.fresh or callee_name(one.value) in tensors.FRESH_METHODS)
        return text if is_new else f"{text}.clone()"
    if one.whole or kind.dtype is Dtype.DOUBLE:
        return text
    return f"{text}.double()"


def _is_made_for_number(value: ast.expr, ctx: Context, depth: int = 3) -> bool:
    """Whether a model records a graph for nothing but the number that is read: gradients are to be turned off then, and
    the result is not to be detached.
    """
    if any(isinstance(part, ast.Call) and is_model_call(part, ctx) for part in walk(value)):
        return not ctx.grad_off(value)
    flow = ctx.inference.flow
    for name in walk(value) if depth else ():
        if not isinstance(name, ast.Name) or ctx.kind(name).tag in (Tag.MODULE, Tag.FUNCTION, Tag.CLASS):
            continue
        for definition in flow.definitions(name):
            uses = (use for use in flow.uses_of(definition) if use is not name)
            if definition.value is None or any(_collecting(use, ctx) is None for use in uses):
                continue
            if _is_made_for_number(definition.value, ctx, depth - 1):
                return True
    return False


def _as_numbers(one: Collected, ctx: Context) -> str:
    number, name = "int" if one.whole else "float", ctx.tree.text(one.into)
    if not one.listed:
        return f"{name} = {number}({name})"
    each = "each" if name == "value" else "value"
    return f"{name} = [{number}({each}) for {each} in {name}]"


def _is_own(use: ast.Name, found: Collected, ctx: Context) -> bool:
    """Whether a use of the name is the statement's own target, and no part of what is added."""
    if any(part is use for part in walk(found.into)):
        return True
    statement = found.statement
    return isinstance(statement, ast.Assign) and ctx.text(use) == ctx.text(found.into)


def _is_alike(found: Collected, one: Collected, ctx: Context) -> bool:
    return ctx.text(found.into) == ctx.text(one.into) and found.listed == one.listed and found.whole == one.whole


def _uses(name: str, into: ast.expr, loop: _Loop, ctx: Context) -> Iterator[ast.Name]:
    """Where a loop names the sum or list; of a mapping, whatever may be the entry."""
    for part in walk(loop):
        if not isinstance(part, ast.Name) or part.id != name:
            continue
        entry = ctx.tree.parent(part)
        is_other = (
            isinstance(into, ast.Subscript)
            and isinstance(entry, ast.Subscript)
            and entry.value is part
            and isinstance(entry.slice, ast.Constant)
            and ctx.text(entry) != ctx.text(into)
        )
        if not is_other:
            yield part


def _begins_as_number(loop: _Loop, one: Collected, root: ast.Name, ctx: Context) -> bool:
    """Whether what is collected in begins as a number or an empty list of this function."""
    if not isinstance(one.into, (ast.Name, ast.Subscript)):
        return False
    inside = {id(part) for part in walk(loop)}
    key = root.id if one.listed else _key(one.into)
    found, may_be_unbound = ctx.inference.flow.definitions_before(key, loop)
    outside = [item for item in found if id(item.node) not in inside]
    if not outside or may_be_unbound:
        return False
    return all(_is_plain(item, one, ctx) for item in outside)


def _key(into: ast.expr) -> str:
    """What the dataflow calls a name, or the entry of a mapping."""
    if isinstance(into, ast.Subscript):
        return f"{into.value.id}[{into.slice.value!r}]"  # type: ignore[attr-defined]
    assert isinstance(into, ast.Name)
    return into.id


def _is_plain(definition: Definition, one: Collected, ctx: Context) -> bool:
    value = definition.value
    if value is None or definition.binding not in (Binding.ASSIGN, Binding.AUGMENTED):
        return False
    for index in definition.path:  # `total, losses = 0.0, []`
        if not isinstance(value, ast.Tuple) or not isinstance(index, int) or index >= len(value.elts):
            return False
        value = value.elts[index]
    if one.listed:
        return isinstance(value, ast.List) and not value.elts
    return isinstance(value, ast.Constant) or ctx.kind(value).tag is Tag.NUMBER


def _may_be_read_meanwhile(name: str, loop: _Loop, ctx: Context) -> bool:
    """Whether a result may be looked at before the line behind its loop: after an exception, or by another function."""
    around = ctx.tree.function_of(loop) or ctx.tree.module
    child: ast.AST = loop
    for outer in ctx.tree.ancestors(loop):
        if outer is around:
            break
        if isinstance(outer, ast.Try) and child in outer.body and _is_named_outside(name, outer, around):
            return True
        child = outer
    for part in walk(around):
        if isinstance(part, (ast.Global, ast.Nonlocal)) and name in part.names:
            return True
        if isinstance(part, _NESTED) and part is not around and _names(name, part):
            return True
    return False


def _is_named_outside(name: str, attempt: ast.Try, around: ast.AST) -> bool:
    """Whether a name is used where an exception leads that ends the loop."""
    inside = {id(part) for item in attempt.body for part in walk(item)}
    place = (attempt.lineno, attempt.col_offset)
    return any(
        isinstance(part, ast.Name)
        and part.id == name
        and id(part) not in inside
        and (part.lineno, part.col_offset) > place
        for part in walk(around)
    )


def _names(name: str, part: ast.AST) -> bool:
    return any(isinstance(item, ast.Name) and item.id == name for item in walk(part))
