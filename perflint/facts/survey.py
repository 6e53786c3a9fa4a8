"""The survey: one pass over a file's syntax tree that writes its `Summary`.

It runs on every file of the project, so it is written for speed: statements are walked by recursion along their
nesting, expressions with an explicit stack, and nothing is recorded that linking cannot use.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from sys import intern

from perflint.facts import guards
from perflint.facts.summary import (
    MODULE,
    CallFacts,
    ClassFacts,
    Context,
    FunctionFacts,
    LoopFacts,
    Param,
    StatementFacts,
    Summary,
    Value,
)

_DEPTH = 5
_MOST_BINDS = 4
_HEADER_LENGTH = 90

#: Calls that resolve to nothing a program defines and that carry nothing into it.
_DULL_CALLS = frozenset(
    "len isinstance print range str int float bool abs type id repr hasattr format ord chr round hash divmod pow "
    "issubclass vars dir locals globals ValueError TypeError RuntimeError KeyError NotImplementedError AssertionError "
    "AttributeError ImportError IndexError".split()
)
_DULL_METHODS = frozenset(
    "append extend insert join split strip lstrip rstrip startswith endswith lower upper replace format encode decode "
    "view reshape permute transpose contiguous unsqueeze squeeze flatten expand size dim numel sum mean max min float "
    "long half bool int item tolist detach clone fill_ zero_ mul_ add_ sub_ div_ copy_ masked_fill chunk keys values "
    "items get pop update setdefault add remove discard sort reverse index count type to cpu numpy warn warning info "
    "debug error exists repeat softmax sigmoid argmax argmin pow sqrt exp log abs cumsum gather scatter_ any all".split()
)

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)
_LEAVES = (ast.Constant, ast.expr_context, ast.operator, ast.unaryop, ast.cmpop, ast.boolop)
_NO_GRAD = ("no_grad", "inference_mode")

_CHILDREN: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Attribute: ("value",),
    ast.BinOp: ("left", "right"),
    ast.UnaryOp: ("operand",),
    ast.BoolOp: ("values",),
    ast.Compare: ("left", "comparators"),
    ast.Subscript: ("value", "slice"),
    ast.Starred: ("value",),
    ast.Tuple: ("elts",),
    ast.List: ("elts",),
    ast.Set: ("elts",),
    ast.Dict: ("keys", "values"),
    ast.IfExp: ("test", "body", "orelse"),
    ast.JoinedStr: ("values",),
    ast.FormattedValue: ("value", "format_spec"),
    ast.Slice: ("lower", "upper", "step"),
    ast.Await: ("value",),
    ast.keyword: ("value",),
}


def survey(module: ast.Module, lines: list[str]) -> Summary:
    """The facts of one file. `lines` are its source lines, for the text of loop headers."""
    return _Surveyor(lines).survey(module)


class _Scope:
    """A function being surveyed: facts that grow until `finish`."""

    __slots__ = (
        "annotations",
        "asked",
        "binds",
        "calls",
        "contexts",
        "facts",
        "is_generator",
        "loops",
        "returns",
        "yields",
    )

    def __init__(self, facts: FunctionFacts) -> None:
        self.facts = facts
        self.contexts: list[Context] = []
        self.loops: list[LoopFacts] = []
        self.calls: list[CallFacts] = []
        self.asked: list[tuple[ast.Call, int]] = []
        self.binds: dict[str, list[Value]] = {}
        self.annotations: dict[str, str] = {}
        self.returns: list[Value] = []
        self.yields: list[tuple[Value, int]] = []
        self.is_generator = False

    def push(self, parent: int, kind: str, detail: int | str, first: ast.AST, last: ast.AST) -> int:
        self.contexts.append(
            Context(
                parent,
                kind,
                detail,
                first.lineno,  # type: ignore[attr-defined]
                first.col_offset,  # type: ignore[attr-defined]
                last.end_lineno,  # type: ignore[attr-defined]
                last.end_col_offset,  # type: ignore[attr-defined]
            )
        )
        return len(self.contexts) - 1

    def bind(self, name: str, value: Value) -> None:
        if value is None:
            return
        known = self.binds.setdefault(name, [])
        if len(known) < _MOST_BINDS and value not in known:
            known.append(value)

    def finish(self) -> FunctionFacts:
        facts = self.facts
        facts.contexts = tuple(self.contexts)
        facts.loops = tuple(self.loops)
        facts.calls = tuple(self.calls)
        facts.binds = {name: tuple(values) for name, values in self.binds.items()}
        facts.annotations = self.annotations
        facts.returns = tuple(self.returns)
        facts.yields = tuple(self.yields)
        facts.is_generator = self.is_generator
        return facts


class _Surveyor:
    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.summary = Summary()
        self.identifiers: set[str] = set()
        self.renamed: dict[str, str] = {}
        self.classes: dict[str, ClassFacts] = {}

    def survey(self, module: ast.Module) -> Summary:
        top = _Scope(FunctionFacts(MODULE, 1, max(1, len(self.lines)), "", ""))
        statements = []
        context = -1
        for index, statement in enumerate(module.body):
            self.identifiers = set()
            after = self.statement(statement, top, context, "", "")
            if after is not None and index + 1 < len(module.body):
                context = top.push(context, "guard", after, module.body[index + 1], module.body[-1])
            for alias in self.renamed.keys() & self.identifiers:
                self.identifiers.add(self.renamed[alias])
            first = statement.lineno
            if isinstance(statement, (*_FUNCTIONS, ast.ClassDef)) and statement.decorator_list:
                first = min(first, statement.decorator_list[0].lineno)
            statements.append(StatementFacts(first, statement.end_lineno or first, " ".join(sorted(self.identifiers))))
        self.summary.functions[MODULE] = top.finish()
        self.summary.statements = tuple(statements)
        self.summary.classes = self.classes
        return self.summary

    # Statements. A handler returns the guard that the statements after it in the same block stand under, or None.

    def block(self, body: list[ast.stmt], scope: _Scope, context: int, owner: str, cls: str) -> None:
        for index, statement in enumerate(body):
            after = self.statement(statement, scope, context, owner, cls)
            if after is not None and index + 1 < len(body):
                context = scope.push(context, "guard", after, body[index + 1], body[-1])

    def statement(self, node: ast.stmt, scope: _Scope, context: int, owner: str, cls: str) -> str | None:
        handler = _STATEMENTS.get(type(node))
        if handler is not None:
            return handler(self, node, scope, context, owner, cls)
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, ast.expr):
                self.expression(value, scope, context, owner, cls)
            elif isinstance(value, list):
                for item in value:
                    if isinstance(item, ast.expr):
                        self.expression(item, scope, context, owner, cls)
        return None

    def function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: _Scope, context: int, owner: str, cls: str
    ) -> str | None:
        decorators = []
        for decorator in node.decorator_list:
            self.expression(decorator, scope, context, owner, cls)
            decorators.append(value_of(decorator))
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.expression(default, scope, context, owner, cls)
        in_class_body = bool(cls) and owner == cls
        qualname = self.fresh(
            f"{owner}.{node.name}" if in_class_body else f"{owner}.<locals>.{node.name}" if owner else node.name
        )
        facts = FunctionFacts(
            qualname,
            node.lineno,
            node.end_lineno or node.lineno,
            owner,
            cls if in_class_body else "",
            params=_params(node.args),
            decorators=tuple(decorators),
            returns_annotation=_annotation(node.returns),
        )
        self.identify_annotations(node)
        inner = _Scope(facts)
        self.summary.functions[qualname] = facts
        if in_class_body:
            self.classes[cls].methods += (node.name,)
        self.block(node.body, inner, -1, qualname, cls)
        inner.finish()
        return None

    def identify_annotations(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            if argument.annotation is not None:
                self.identify(argument.annotation)

    def identify(self, node: ast.expr) -> None:
        for part in ast.walk(node):
            if isinstance(part, ast.Name):
                self.identifiers.add(part.id)
            elif isinstance(part, ast.Attribute):
                self.identifiers.add(part.attr)

    def fresh(self, qualname: str) -> str:
        """A second definition of a name (overloads, `if`/`else` variants) gets a number."""
        if qualname not in self.summary.functions:
            return intern(qualname)
        number = 2
        while f"{qualname}~{number}" in self.summary.functions:
            number += 1
        return intern(f"{qualname}~{number}")

    def class_(self, node: ast.ClassDef, scope: _Scope, context: int, owner: str, cls: str) -> str | None:
        inside_function = bool(owner) and owner != cls
        qualname = (
            node.name if not owner else f"{owner}.<locals>.{node.name}" if inside_function else f"{owner}.{node.name}"
        )
        for part in (*node.decorator_list, *node.bases, *(item.value for item in node.keywords)):
            self.expression(part, scope, context, owner, cls)
        facts = ClassFacts(
            qualname,
            node.lineno,
            bases=tuple(value_of(base) for base in node.bases),
            keywords=tuple((item.arg or "", value_of(item.value)) for item in node.keywords),
            decorators=tuple(value_of(item) for item in node.decorator_list),
        )
        self.classes[qualname] = facts
        for statement in node.body:
            self.statement(statement, scope, context, qualname, qualname)
            if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                facts.annotations.setdefault(statement.target.id, _annotation(statement.annotation))
                self.attribute(qualname, statement.target.id, statement.value, MODULE)
            elif isinstance(statement, ast.Assign):
                for target in statement.targets:
                    if isinstance(target, ast.Name):
                        self.attribute(qualname, target.id, statement.value, MODULE)
        return None

    def attribute(self, cls: str, name: str, value: ast.expr | None, where: str) -> None:
        if value is None or cls not in self.classes:
            return
        made = value_of(value)
        known = self.classes[cls].attributes
        entries = known.get(name, ())
        if made is not None and len(entries) < _MOST_BINDS and (made, where) not in entries:
            known[name] = (*entries, (made, where))

    def if_(self, node: ast.If, scope: _Scope, context: int, owner: str, cls: str) -> str | None:
        # An `elif` chain may be thousands long: walked in a loop, not by recursion.
        while True:
            self.expression(node.test, scope, context, owner, cls)
            kind = guards.RARE if guards.is_failure(node.body) else guards.classify(node.test, node.body)
            self.block(node.body, scope, self.guarded(scope, context, kind, node.body), owner, cls)
            if not node.orelse:
                if guards.ends_block(node.body) and not guards.is_failure(node.body):
                    return guards.classify_negated(node.test)
                return None
            context = self.guarded(scope, context, guards.classify_negated(node.test, node.orelse), node.orelse)
            if len(node.orelse) == 1 and isinstance(node.orelse[0], ast.If):
                node = node.orelse[0]
                continue
            self.block(node.orelse, scope, context, owner, cls)
            return None

    @staticmethod
    def guarded(scope: _Scope, context: int, kind: str | None, body: list[ast.stmt]) -> int:
        return context if kind is None else scope.push(context, "guard", kind, body[0], body[-1])

    def for_(self, node: ast.For | ast.AsyncFor, scope: _Scope, context: int, owner: str, cls: str) -> str | None:
        self.expression(node.target, scope, context, owner, cls)
        self.expression(node.iter, scope, context, owner, cls)
        targets = tuple(part.id for part in ast.walk(node.target) if isinstance(part, ast.Name))
        iterable = value_of(node.iter)
        self.bind_each(node.target, iterable, scope, owner, cls)
        inner = self.loop(scope, node, "for", targets, iterable, context)
        self.block(node.body, scope, inner, owner, cls)
        self.block(node.orelse, scope, context, owner, cls)
        return None

    def while_(self, node: ast.While, scope: _Scope, context: int, owner: str, cls: str) -> str | None:
        inner = self.loop(scope, node, "while", (), None, context)
        self.expression(node.test, scope, inner, owner, cls)
        self.block(node.body, scope, inner, owner, cls)
        self.block(node.orelse, scope, context, owner, cls)
        return None

    def loop(
        self,
        scope: _Scope,
        node: ast.For | ast.AsyncFor | ast.While,
        kind: str,
        targets: tuple[str, ...],
        iterable: Value,
        context: int,
    ) -> int:
        text = self.lines[node.lineno - 1].strip() if node.lineno <= len(self.lines) else kind
        text = text.partition("#")[0].rstrip().rstrip(":")[:_HEADER_LENGTH]
        scope.loops.append(LoopFacts(node.lineno, node.col_offset, kind, targets, iterable, text, context))
        # A `while` test is evaluated every turn; a `for` iterable only once.
        first = node.test if isinstance(node, ast.While) else node.body[0]
        return scope.push(context, "loop", len(scope.loops) - 1, first, node.body[-1])

    def with_(self, node: ast.With | ast.AsyncWith, scope: _Scope, context: int, owner: str, cls: str) -> str | None:
        inner = context
        for item in node.items:
            self.expression(item.context_expr, scope, inner, owner, cls)
            if item.optional_vars is not None:
                self.expression(item.optional_vars, scope, inner, owner, cls)
                if isinstance(item.optional_vars, ast.Name):
                    scope.bind(item.optional_vars.id, value_of(item.context_expr))
            if is_no_grad(item.context_expr):
                inner = scope.push(inner, "no_grad", "", node.body[0], node.body[-1])
        self.block(node.body, scope, inner, owner, cls)
        return None

    def try_(self, node: ast.Try, scope: _Scope, context: int, owner: str, cls: str) -> str | None:
        self.block(node.body, scope, context, owner, cls)
        for handler in node.handlers:
            if handler.type is not None:
                self.expression(handler.type, scope, context, owner, cls)
            self.block(handler.body, scope, self.guarded(scope, context, guards.RARE, handler.body), owner, cls)
        self.block(node.orelse, scope, context, owner, cls)
        self.block(node.finalbody, scope, context, owner, cls)
        return None

    def match_(self, node: ast.Match, scope: _Scope, context: int, owner: str, cls: str) -> str | None:
        self.expression(node.subject, scope, context, owner, cls)
        for case in node.cases:
            if case.guard is not None:
                self.expression(case.guard, scope, context, owner, cls)
            self.block(case.body, scope, context, owner, cls)
        return None

    def assign(self, node: ast.Assign, scope: _Scope, context: int, owner: str, cls: str) -> str | None:
        self.expression(node.value, scope, context, owner, cls)
        for target in node.targets:
            self.expression(target, scope, context, owner, cls)
            self.bind_target(target, node.value, scope, owner, cls)
        return None

    def bind_target(self, target: ast.expr, value: ast.expr, scope: _Scope, owner: str, cls: str) -> None:
        if isinstance(target, ast.Name):
            if not cls or owner != cls:
                scope.bind(target.id, value_of(value))
        elif isinstance(target, ast.Attribute):
            if isinstance(target.value, ast.Name) and target.value.id in ("self", "cls") and cls:
                self.attribute(cls, target.attr, value, scope.facts.qualname)
            else:
                path = _path(target)
                if path is not None:
                    scope.bind(path, value_of(value))
        elif isinstance(target, (ast.Tuple, ast.List)):
            if isinstance(value, (ast.Tuple, ast.List)) and len(value.elts) == len(target.elts):
                for part, item in zip(target.elts, value.elts):
                    self.bind_target(part, item, scope, owner, cls)
            else:
                self.bind_items(target, value_of(value), scope, owner, cls)

    def bind_each(self, target: ast.expr, iterable: Value, scope: _Scope, owner: str, cls: str) -> None:
        if iterable is None:
            return
        if isinstance(target, ast.Name):
            scope.bind(target.id, ("item", iterable, None))
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.bind_items(target, ("item", iterable, None), scope, owner, cls)

    def bind_items(self, target: ast.Tuple | ast.List, value: Value, scope: _Scope, owner: str, cls: str) -> None:
        if value is None:
            return
        for index, part in enumerate(target.elts):
            item = ("item", value, index)
            if isinstance(part, ast.Starred):
                return
            if isinstance(part, ast.Name):
                scope.bind(part.id, item)
            elif (
                isinstance(part, ast.Attribute)
                and isinstance(part.value, ast.Name)
                and part.value.id == "self"
                and cls in self.classes
            ):
                known = self.classes[cls].attributes
                entries = known.get(part.attr, ())
                if len(entries) < _MOST_BINDS:
                    known[part.attr] = (*entries, (item, scope.facts.qualname))
            elif isinstance(part, (ast.Tuple, ast.List)):
                self.bind_items(part, item, scope, owner, cls)

    def annotated(self, node: ast.AnnAssign, scope: _Scope, context: int, owner: str, cls: str) -> str | None:
        self.identify(node.annotation)
        self.expression(node.target, scope, context, owner, cls)
        annotation = _annotation(node.annotation)
        if isinstance(node.target, ast.Name) and owner != cls:
            scope.annotations.setdefault(node.target.id, annotation)
        elif isinstance(node.target, ast.Attribute) and isinstance(node.target.value, ast.Name) and cls in self.classes:
            if node.target.value.id == "self":
                self.classes[cls].annotations.setdefault(node.target.attr, annotation)
        if node.value is not None:
            self.expression(node.value, scope, context, owner, cls)
            self.bind_target(node.target, node.value, scope, owner, cls)
        return None

    def return_(self, node: ast.Return, scope: _Scope, context: int, owner: str, cls: str) -> str | None:
        if node.value is not None:
            self.expression(node.value, scope, context, owner, cls)
            value = value_of(node.value)
            if len(scope.returns) < _MOST_BINDS and value not in scope.returns:
                scope.returns.append(value)
        return None

    def import_(self, node: ast.Import, scope: _Scope, context: int, owner: str, cls: str) -> str | None:
        for alias in node.names:
            if alias.asname:
                self.imported(alias.asname, alias.name, scope)
                self.renamed.setdefault(alias.asname, alias.name.rpartition(".")[2])
            else:
                first = alias.name.partition(".")[0]
                self.imported(first, first, scope)
            self.identifiers.update(alias.name.split("."))
        return None

    def import_from(self, node: ast.ImportFrom, scope: _Scope, context: int, owner: str, cls: str) -> str | None:
        module = "." * node.level + (node.module or "")
        self.identifiers.update((node.module or "").split("."))
        for alias in node.names:
            if alias.name == "*":
                self.summary.stars += (module,)
                continue
            bound = alias.asname or alias.name
            target = f"{module}{alias.name}" if module.endswith(".") else f"{module}.{alias.name}"
            self.imported(bound, target, scope)
            self.identifiers.add(alias.name)
            if bound != alias.name:
                self.renamed.setdefault(bound, alias.name)
        return None

    def imported(self, bound: str, target: str, scope: _Scope) -> None:
        # Function-level imports are taken for the whole file: a name rarely means two modules in one file.
        self.summary.imports.setdefault(bound, target)

    # Expressions.

    def expression(self, root: ast.expr, scope: _Scope, context: int, owner: str, cls: str) -> None:
        stack: list[ast.AST] = [root]
        identifiers = self.identifiers
        while stack:
            node = stack.pop()
            kind = type(node)
            if kind is ast.Name:
                identifiers.add(node.id)  # type: ignore[attr-defined]
            elif kind is ast.Call:
                self.call(node, scope, context)  # type: ignore[arg-type]
                stack.extend(node.keywords)  # type: ignore[attr-defined]
                stack.extend(node.args)  # type: ignore[attr-defined]
                stack.append(node.func)  # type: ignore[attr-defined]
            elif kind is ast.Constant:
                continue
            elif kind in _COMPREHENSIONS:
                self.comprehension(node, scope, context, owner, cls)  # type: ignore[arg-type]
            elif kind is ast.Lambda:
                self.lambda_(node, owner, cls)  # type: ignore[arg-type]
            elif kind is ast.NamedExpr:
                self.bind_target(node.target, node.value, scope, owner, cls)  # type: ignore[attr-defined]
                stack.append(node.value)  # type: ignore[attr-defined]
            elif kind is ast.Yield or kind is ast.YieldFrom:
                scope.is_generator = True
                if node.value is not None:  # type: ignore[attr-defined]
                    stack.append(node.value)  # type: ignore[attr-defined]
                    if len(scope.yields) < _MOST_BINDS:
                        value = value_of(node.value)  # type: ignore[attr-defined]
                        scope.yields.append((value if kind is ast.Yield else ("each", None, value), context))
            else:
                if kind is ast.Attribute:
                    identifiers.add(node.attr)  # type: ignore[attr-defined]
                for name in _CHILDREN.get(kind, ()):
                    value = getattr(node, name)
                    if isinstance(value, list):
                        stack.extend(item for item in value if item is not None)
                    elif value is not None:
                        stack.append(value)

    def call(self, node: ast.Call, scope: _Scope, context: int) -> None:
        func = node.func
        if type(func) is ast.Name:
            if func.id in _DULL_CALLS:
                if func.id == "isinstance":
                    scope.asked.append((node, context))
                return
        elif type(func) is ast.Attribute and func.attr in _DULL_METHODS:
            receiver = func.value
            if not (type(receiver) is ast.Name and receiver.id in ("self", "super")) and not node.args:
                return
            if func.attr not in ("to", "log") and type(receiver) is not ast.Name:
                return
        elif type(func) is ast.Attribute and func.attr == "compile":
            self.narrowing(func.value, scope)
        scope.calls.append(
            CallFacts(
                value_of(func),
                tuple(_argument(item) for item in node.args),
                tuple((item.arg or "", _argument(item.value)) for item in node.keywords),
                node.lineno,
                node.col_offset,
                context,
            )
        )

    def narrowing(self, receiver: ast.expr, scope: _Scope) -> None:
        """Record the `isinstance` tests of a module that is compiled in place: they alone tell what it is."""
        for node, context in scope.asked:
            if len(node.args) == 2 and type(receiver) is ast.Name and value_of(node.args[0]) == receiver.id:
                values = tuple(value_of(item) for item in node.args)
                scope.calls.append(CallFacts("isinstance", values, (), node.lineno, node.col_offset, context))

    def comprehension(
        self,
        node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
        scope: _Scope,
        context: int,
        owner: str,
        cls: str,
    ) -> None:
        for generator in node.generators:
            self.expression(generator.iter, scope, context, owner, cls)
            self.expression(generator.target, scope, context, owner, cls)
            targets = tuple(part.id for part in ast.walk(generator.target) if isinstance(part, ast.Name))
            iterable = value_of(generator.iter)
            self.bind_each(generator.target, iterable, scope, owner, cls)
            text = " ".join(targets)[:_HEADER_LENGTH]
            header = _path(generator.iter)
            text = f"for {text} in {header}" if header else f"for {text} in ..."
            scope.loops.append(
                LoopFacts(node.lineno, node.col_offset, "comprehension", targets, iterable, text, context)
            )
            context = scope.push(context, "loop", len(scope.loops) - 1, node, node)
            for condition in generator.ifs:
                self.expression(condition, scope, context, owner, cls)
        if isinstance(node, ast.DictComp):
            self.expression(node.key, scope, context, owner, cls)
            self.expression(node.value, scope, context, owner, cls)
        else:
            self.expression(node.elt, scope, context, owner, cls)

    def lambda_(self, node: ast.Lambda, owner: str, cls: str) -> None:
        qualname = lambda_name(node)
        facts = FunctionFacts(
            qualname, node.lineno, node.end_lineno or node.lineno, owner, "", params=_params(node.args)
        )
        inner = _Scope(facts)
        self.summary.functions[qualname] = facts
        self.expression(node.body, inner, -1, qualname, cls)
        inner.returns.append(value_of(node.body))
        inner.finish()


_Handler = Callable[..., "str | None"]
_STATEMENTS: dict[type[ast.stmt], _Handler] = {
    ast.FunctionDef: _Surveyor.function,
    ast.AsyncFunctionDef: _Surveyor.function,
    ast.ClassDef: _Surveyor.class_,
    ast.If: _Surveyor.if_,
    ast.For: _Surveyor.for_,
    ast.AsyncFor: _Surveyor.for_,
    ast.While: _Surveyor.while_,
    ast.With: _Surveyor.with_,
    ast.AsyncWith: _Surveyor.with_,
    ast.Try: _Surveyor.try_,
    ast.Match: _Surveyor.match_,
    ast.Assign: _Surveyor.assign,
    ast.AnnAssign: _Surveyor.annotated,
    ast.Return: _Surveyor.return_,
    ast.Import: _Surveyor.import_,
    ast.ImportFrom: _Surveyor.import_from,
}
if hasattr(ast, "TryStar"):
    _STATEMENTS[ast.TryStar] = _Surveyor.try_


def lambda_name(node: ast.Lambda) -> str:
    """The qualname a lambda has in `Summary.functions`: lambdas have no name, so their place names them."""
    return f"<lambda:{node.lineno}:{node.col_offset}>"


def is_no_grad(node: ast.expr) -> bool:
    """Whether a `with` item or decorator switches gradients off: `torch.no_grad()`, `inference_mode()`."""
    if isinstance(node, ast.Call):
        if node.args or node.keywords:
            first = node.args[0] if node.args else node.keywords[0].value
            if not (isinstance(first, ast.Constant) and first.value is True) and _last(node.func) in _NO_GRAD:
                return False
            if _last(node.func) == "set_grad_enabled":
                return isinstance(first, ast.Constant) and first.value is False
        node = node.func
    return _last(node) in _NO_GRAD


def value_of(node: ast.expr | None, depth: int = _DEPTH) -> Value:
    """`node` in the notation of `Summary`, None where it is not plain to see."""
    if node is None or depth <= 0:
        return None
    kind = type(node)
    if kind is ast.Name:
        return intern(node.id)  # type: ignore[attr-defined]
    if kind is ast.Attribute:
        path = _path(node)
        if path is not None:
            return intern(path)
        base = value_of(node.value, depth - 1)  # type: ignore[attr-defined]
        return None if base is None else ("attr", base, node.attr)  # type: ignore[attr-defined]
    if kind is ast.Call:
        func = value_of(node.func, depth - 1)  # type: ignore[attr-defined]
        if func is None:
            return None
        args = tuple(value_of(item, depth - 1) for item in node.args)  # type: ignore[attr-defined]
        keywords = tuple((item.arg or "", value_of(item.value, depth - 1)) for item in node.keywords)  # type: ignore[attr-defined]
        return ("call", func, args, keywords)
    if kind is ast.Constant:
        value = node.value  # type: ignore[attr-defined]
        plain = value if isinstance(value, (str, bool)) or (isinstance(value, int) and abs(value) < 2**53) else None
        return ("const", type(value).__name__, plain[:200] if isinstance(plain, str) else plain)
    if kind is ast.Subscript:
        base = value_of(node.value, depth - 1)  # type: ignore[attr-defined]
        index = node.slice.value if isinstance(node.slice, ast.Constant) else None  # type: ignore[attr-defined]
        return None if base is None else ("item", base, index if isinstance(index, (int, str)) else None)
    if kind is ast.Await or kind is ast.Starred:
        return value_of(node.value, depth)  # type: ignore[attr-defined]
    if kind is ast.Tuple or kind is ast.List:
        return ("seq", tuple(value_of(item, depth - 1) for item in node.elts[:32]))  # type: ignore[attr-defined]
    if kind is ast.Dict:
        return (
            "map",
            tuple(
                (key.value, value_of(item, depth - 1))
                for key, item in zip(node.keys[:64], node.values)
                if isinstance(key, ast.Constant) and isinstance(key.value, str)
            ),
        )  # type: ignore[attr-defined]
    if kind is ast.IfExp:
        return _either((node.body, node.orelse), depth)  # type: ignore[attr-defined]
    if kind is ast.BoolOp:
        return _either(node.values, depth)  # type: ignore[attr-defined]
    if kind is ast.NamedExpr:
        return value_of(node.value, depth)  # type: ignore[attr-defined]
    if kind is ast.ListComp or kind is ast.GeneratorExp or kind is ast.SetComp:
        return ("each", value_of(node.elt, depth - 1), value_of(node.generators[0].iter, depth - 1))  # type: ignore[attr-defined]
    if kind is ast.Lambda:
        return ("lambda", lambda_name(node))  # type: ignore[arg-type]
    return None


def _either(nodes: Iterable[ast.expr], depth: int) -> Value:
    values = tuple(value for value in (value_of(item, depth - 1) for item in nodes) if value is not None)
    return values[0] if len(values) == 1 else ("either", values) if values else None


def _argument(node: ast.expr) -> Value:
    # Arguments matter where they carry objects into the callee; numbers and formulas do not.
    return value_of(node, 4)


def _path(node: ast.AST) -> str | None:
    kind = type(node)
    if kind is ast.Name:
        return node.id  # type: ignore[attr-defined, no-any-return]
    parts = []
    while kind is ast.Attribute:
        parts.append(node.attr)  # type: ignore[attr-defined]
        node = node.value  # type: ignore[attr-defined]
        kind = type(node)
    if kind is ast.Name:
        parts.append(node.id)  # type: ignore[attr-defined]
        parts.reverse()
        return ".".join(parts)
    return None


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _annotation(node: ast.expr | None) -> str:
    """An annotation as text; strings lose their quotes. Empty when there is none or it is long."""
    if node is None:
        return ""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value[:200]
    path = _path(node)
    if path is not None:
        return path
    try:
        return ast.unparse(node)[:200]
    except (RecursionError, ValueError):
        return ""


def _params(arguments: ast.arguments) -> tuple[Param, ...]:
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults)) + list(arguments.defaults)
    made = [
        Param(item.arg, _annotation(item.annotation), value_of(default)) for item, default in zip(positional, defaults)
    ]
    if arguments.vararg is not None:
        made.append(Param("*" + arguments.vararg.arg, _annotation(arguments.vararg.annotation), None))
    made += [
        Param("=" + item.arg, _annotation(item.annotation), value_of(default))
        for item, default in zip(arguments.kwonlyargs, arguments.kw_defaults)
    ]
    if arguments.kwarg is not None:
        made.append(Param("**" + arguments.kwarg.arg, _annotation(arguments.kwarg.annotation), None))
    return tuple(made)
