"""A program with its own names made meaningless: parameters, locals, globals, attributes, functions or classes.

What others call a thing by keeps its name: keywords at calls that are not plainly calls of the function, arguments that
a framework or a command line gives by name, texts that name things.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections import Counter
from collections.abc import Container, Iterator, Mapping

from scopes import COMPREHENSIONS, FUNCTIONS, File, Scope, meant, read

_SCOPES = (*FUNCTIONS, *COMPREHENSIONS)
#: Bases whose users call the methods of a class by place.
_BY_PLACE = frozenset("Module Dataset IterableDataset Optimizer Function LightningModule Sampler object ABC".split())
#: Decorators that leave the arguments to the caller.
_PLAIN_DECORATORS = frozenset(
    "no_grad inference_mode compile staticmethod classmethod contextmanager script enable_grad wraps cache lru_cache "
    "override property".split()
)
#: What looks names up that stand in texts.
_BY_TEXT = frozenset("getattr setattr hasattr locals vars globals eval exec signature parametrize attrgetter".split())


class _All(Container[str]):
    def __contains__(self, _: object) -> bool:
        return True


def renamed(texts: Mapping[str, str], what: str, only: Container[str] = _All()) -> dict[str, str] | None:
    """The files with all names of a sort, or `only` some of them, made meaningless. None where nothing is to rename, or
    texts are code.
    """
    files = {path: read(text) for path, text in texts.items() if path.endswith(".py")}
    calls = [node for file in files.values() for node in ast.walk(file.module) if isinstance(node, ast.Call)]
    if any(isinstance(call.func, ast.Name) and call.func.id in ("eval", "exec", "locals") for call in calls):
        return None
    program = _Program(files, calls, only)
    {
        "parameters": program.parameters,
        "locals": program.locals,
        "globals": program.globals,
        "attributes": program.attributes,
        "functions": program.functions,
        "classes": program.classes,
    }[what]()
    if not any(file.edits for file in files.values()):
        return None
    return {path: _written(files[path]) if path in files else text for path, text in texts.items()}


class _Program:
    def __init__(self, files: dict[str, File], calls: list[ast.Call], only: Container[str]) -> None:
        self.only = only
        self.files = files
        self.calls = calls
        nodes = [node for file in files.values() for node in ast.walk(file.module)]
        self.texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
        self.texts |= {word for text in self.texts for word in re.findall(r"\w+", text)}
        self.by_text = any(_last(call.func) in _BY_TEXT for call in calls)
        self.spreads = any(keyword.arg is None for call in calls for keyword in call.keywords)
        self.imported = {
            alias.asname or alias.name.partition(".")[0]
            for node in nodes
            if isinstance(node, (ast.Import, ast.ImportFrom))
            for alias in node.names
            if not self._is_own_import(node)
        }
        self.defined = Counter(
            node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        )
        self.numbers: Counter[str] = Counter()

    def _is_own_import(self, node: ast.Import | ast.ImportFrom) -> bool:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
        own = {part for path in self.files for part in path.removesuffix(".py").split("/")}
        return bool(getattr(node, "level", 0)) or any(name.partition(".")[0] in own for name in names)

    def _new(self, prefix: str) -> str:
        self.numbers[prefix] += 1
        return f"{prefix}{self.numbers[prefix]}"

    def parameters(self) -> None:
        for file in self.files.values():
            for scope in file.scopes:
                if isinstance(scope.node, FUNCTIONS):
                    self._parameters_of(scope, file)

    def _parameters_of(self, scope: Scope, file: File) -> None:
        function = scope.node
        assert isinstance(function, FUNCTIONS)
        if not self._is_called_by_place(function, file):
            return
        args = function.args
        places = [*args.posonlyargs, *args.args]
        is_method = isinstance(file.owners.get(function), ast.ClassDef) and "staticmethod" not in _decorators(function)
        if is_method:
            places = places[1:]
        named = [item.arg for item in places if item.arg not in ("self", "cls")]
        named += [item.arg for item in args.kwonlyargs]
        spread = [item.arg for item in (args.vararg, args.kwarg) if item is not None]
        new = {name: self._new("p") for name in named if name not in scope.fixed and name in self.only}
        keywords = self._keywords(function, file, new)
        new = {name: to for name, to in new.items() if name in keywords}
        for name, several in keywords.items():
            for where, keyword in several:
                where.edits[keyword.lineno, keyword.col_offset] = (name, new[name])
        new |= {name: self._new("p") for name in spread if name not in scope.fixed and name in self.only}
        _rename(scope, new, file)

    def _keywords(
        self, function: ast.AST, file: File, names: Mapping[str, str]
    ) -> dict[str, list[tuple[File, ast.keyword]]]:
        """By parameter that may be renamed, where calls name it."""
        name = getattr(function, "name", "")
        owner = file.owners.get(function)
        if name == "__init__" and isinstance(owner, ast.ClassDef):
            name = owner.name
        unique = self.defined[name] == 1 and name not in self.imported
        found: dict[str, list[tuple[File, ast.keyword]]] = {item: [] for item in names}
        for where in self.files.values():
            for call in ast.walk(where.module):
                if not isinstance(call, ast.Call):
                    continue
                is_own = unique and _last(call.func) == name
                for keyword in call.keywords:
                    if keyword.arg in found and is_own:
                        found[keyword.arg].append((where, keyword))
                    elif not is_own and keyword.arg is not None and not self._is_foreign(call):
                        found.pop(keyword.arg, None)
        if self.spreads or self.by_text:
            found = {item: several for item, several in found.items() if item not in self.texts}
        return found

    def _is_foreign(self, call: ast.Call) -> bool:
        """Whether a call plainly calls nothing of the program."""
        func = call.func
        while isinstance(func, (ast.Attribute, ast.Call, ast.Subscript)):
            func = func.func if isinstance(func, ast.Call) else func.value
        if isinstance(func, ast.Name) and (func.id in self.imported or hasattr(builtins, func.id)):
            # `partial(step, model=model)` and `map_fn(fn, x=x)` hand the names on.
            return _last(call.func) not in ("partial", "apply", "submit", "map", "spawn")
        last = _last(call.func)
        return bool(last) and not self.defined[last] and isinstance(call.func, ast.Attribute) and last != "forward"

    def _is_called_by_place(self, function: ast.AST, file: File) -> bool:
        if isinstance(function, ast.Lambda):
            return True
        name = getattr(function, "name", "")
        if not set(_decorators(function)) <= _PLAIN_DECORATORS or name.startswith("test"):
            return False
        owner = file.owners.get(function)
        if not isinstance(owner, ast.ClassDef):
            return True
        return all(self.defined[base] or base in _BY_PLACE for base in map(_last, owner.bases))

    def locals(self) -> None:
        for file in self.files.values():
            for scope in file.scopes:
                if isinstance(scope.node, _SCOPES):
                    kept = scope.parameters | scope.fixed | ({*self.texts} if self.by_text else set())
                    names = sorted(name for name in scope.bound - kept if name in self.only)
                    _rename(scope, {name: self._new("v") for name in names}, file)

    def globals(self) -> None:
        for file in self.files.values():
            for scope in file.scopes:
                if isinstance(scope.node, ast.Module):
                    kept = scope.fixed | self._asked_elsewhere(file) | (self.texts if self.by_text else set())
                    names = sorted(
                        name for name in scope.bound - kept if name in self.only and not name.startswith("__")
                    )
                    _rename(scope, {name: self._new("g") for name in names}, file)

    def _asked_elsewhere(self, file: File) -> set[str]:
        """Names that other files import, or may read from the module."""
        found: set[str] = set()
        for other in self.files.values():
            if other is not file:
                for node in ast.walk(other.module):
                    if isinstance(node, ast.ImportFrom):
                        found |= {alias.name for alias in node.names}
                    elif isinstance(node, ast.Attribute):
                        found.add(node.attr)
        return found

    def attributes(self) -> None:
        own: set[str] = set()
        for file in self.files.values():
            for node in ast.walk(file.module):
                if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                    if isinstance(node.value, ast.Name) and node.value.id == "self":
                        own.add(node.attr)
        named = {keyword.arg for call in self.calls for keyword in call.keywords}
        taken = own & {*self.defined} | (own & self.texts) | (own & named & {*_fields(self.files)}) | _OF_LIBRARIES
        taken |= {name for name in own if name.startswith("__")}
        self._rename_attributes({name: self._new("a") for name in sorted(own - taken) if name in self.only})

    def _rename_attributes(self, new: Mapping[str, str]) -> None:
        for file in self.files.values():
            for node in ast.walk(file.module):
                if isinstance(node, ast.Attribute) and node.attr in new and not self._is_of_library(node):
                    line, end = node.end_lineno or 0, node.end_col_offset or 0
                    file.edits[line, end - len(node.attr.encode())] = (node.attr, new[node.attr])

    def _is_of_library(self, node: ast.Attribute) -> bool:
        value = node.value
        while isinstance(value, ast.Attribute):
            value = value.value
        return isinstance(value, ast.Name) and value.id in self.imported

    def functions(self) -> None:
        """Functions of modules, and methods that no class of a library knows."""
        self._definitions((ast.FunctionDef, ast.AsyncFunctionDef), "f")

    def classes(self) -> None:
        self._definitions((ast.ClassDef,), "C")

    def _definitions(self, sort: tuple[type[ast.AST], ...], prefix: str) -> None:
        taken = {*self.imported, *dir(builtins), *_OF_LIBRARIES, *(self.texts if self.by_text else ())}
        taken |= {keyword.arg for call in self.calls for keyword in call.keywords if keyword.arg}
        bound = {
            name for file in self.files.values() for scope in file.scopes for name in scope.bound | scope.parameters
        }
        names: set[str] = set()
        for file in self.files.values():
            for node in ast.walk(file.module):
                if isinstance(node, sort):
                    name = str(getattr(node, "name", ""))
                    owner = file.owners.get(node)
                    known = isinstance(owner, ast.ClassDef) and not all(
                        self.defined[_last(base)] for base in owner.bases
                    )
                    if not name.startswith("__") and not (known and self._is_contract(name)):
                        names.add(name)
        attributes = {
            node.attr
            for file in self.files.values()
            for node in ast.walk(file.module)
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        }
        new = {name: self._new(prefix) for name in sorted(names - taken - bound - attributes) if name in self.only}
        for file in self.files.values():
            for node in ast.walk(file.module):
                if isinstance(node, sort) and getattr(node, "name", "") in new:
                    self._edit_definition(node, new, file)
                elif isinstance(node, ast.Name) and node.id in new:
                    file.edits[node.lineno, node.col_offset] = (node.id, new[node.id])
                elif isinstance(node, (ast.ImportFrom, ast.Import)):
                    for alias in node.names:
                        if alias.name in new:
                            file.edits[alias.lineno, alias.col_offset] = (alias.name, new[alias.name])
        self._rename_attributes(new)

    @staticmethod
    def _is_contract(name: str) -> bool:
        return name in _HOOKS or name.startswith(("on_", "configure_", "test_", "visit_"))

    @staticmethod
    def _edit_definition(node: ast.AST, new: Mapping[str, str], file: File) -> None:
        name = str(getattr(node, "name", ""))
        line = int(getattr(node, "lineno", 0))
        column = file.lines[line - 1].find(name.encode(), int(getattr(node, "col_offset", 0)) + 4)
        file.edits[line, column] = (name, new[name])


#: Methods that classes of libraries call, and attributes that they have.
_HOOKS = frozenset(
    "forward backward training_step validation_step test_step predict_step setup train_dataloader val_dataloader "
    "test_dataloader predict_dataloader prepare_data step compute_loss update compute reset message aggregate "
    "prediction_step log state_dict load_state_dict train eval setup_context __call__ extra_repr run get len "
    "collate_fn process download save_model evaluate optimizer_step lr_scheduler_step transfer_batch_to_device "
    "log_metrics".split()
)
_OF_LIBRARIES = frozenset(
    "training device dtype grad data shape weight bias requires_grad param_groups state param defaults logits loss "
    "last_hidden_state past_key_values is_causal hparams automatic_optimization epoch global_step".split()
)


def _fields(files: Mapping[str, File]) -> Iterator[str]:
    for file in files.values():
        for node in ast.walk(file.module):
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                yield node.target.id


def _rename(scope: Scope, new: Mapping[str, str], file: File) -> None:
    """Write the new names wherever the scope, or one inside of it, means its own."""
    if not new:
        return
    for name, node in meant(scope, new, file):
        file.edits[getattr(node, "lineno", 0), getattr(node, "col_offset", 0)] = (name, new[name])


def _decorators(function: ast.AST) -> list[str]:
    return [
        _last(item.func if isinstance(item, ast.Call) else item) for item in getattr(function, "decorator_list", [])
    ]


def _last(node: ast.AST) -> str:
    if isinstance(node, ast.Subscript):
        return _last(node.value)
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _written(file: File) -> str:
    lines = list(file.lines)
    for (line, column), (old, to) in sorted(file.edits.items(), reverse=True):
        text, name = lines[line - 1], old.encode()
        if text[column : column + len(name)] != name:
            raise LookupError(f"{line}:{column}: {old} is not there: {text!r}")
        lines[line - 1] = text[:column] + to.encode() + text[column + len(name) :]
    return b"".join(lines).decode()
