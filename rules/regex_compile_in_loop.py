"""TPL501: patterns built again and again."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator

from perflint.api import (
    Applicability,
    Calls,
    Context,
    Finding,
    Fix,
    Heat,
    Impact,
    Rule,
    argument,
    is_constant,
    is_text,
    last_name,
    pattern,
    walk,
)
from perflint.api.names import NAME_OF_PART, STATE_DICT
from perflint.api.phases import runs_rarely

from ._shared.switches import is_behind_a_switch

_FUNCTIONS = ("compile", "search", "match", "fullmatch", "findall", "finditer", "split", "sub", "subn")
_TARGETS = tuple(f"{module}.{name}" for module in ("re", "regex") for name in _FUNCTIONS)

#: Annotations of whole numbers, one or some of them.
_NUMBERS = pattern(
    r"(?=.*\bint\b)(?:typing\.)?(?:(?:int|bool|None|list|List|tuple|Tuple|Sequence|Iterable|Optional|Union)\b|[\[\]|,.\s])+"
)


class RegexCompileInLoop(Rule):
    """A regular expression is compiled, or looked up by its text, again on every iteration.

    What it does

    Reports `re` calls with a pattern on the hot path, and patterns that a loop builds again from parts that do not
    change.

    Why is this slow?

    `re` caches the last 512 patterns, so a literal pattern costs a cache look-up. A pattern built from data costs the
    formatting each time, and with more than 512 different patterns every call compiles.

    What to do

    Compile a literal pattern once at module level. Compile a pattern whose parts do not change before the loop. For a
    pattern that changes in each iteration, use string methods, or build one pattern of all alternatives before the
    loop.

    Fix safety

    Safe for a literal `re.compile` that moves to module level under a free name. Unsafe if the file has `import *`,
    if code of the project is executed outside of its file or inspects its names, and for moving a pattern before its
    loop. Same bits.

    Not reported

    - Literal patterns in code that runs once (set-up, checkpoint conversion), and patterns over a short list there.
    - Functions whose name shows that they run rarely (`save_checkpoint`, `filter_prompts`), and code that writes
      results or starts another program.
    - Code under an option that is off by default, results that are cached in a file, and compiled objects that are
      stored.
    - Cold loops of files that do not use torch.

    Known limitations

    In code that runs once, only a pattern that a loop over the names of a model builds from parts that do not change
    is reported, with low impact.

    Measured

    A literal pattern: 0.62 us per call, against 0.30 us for a compiled one. More than 512 patterns: 50 us, 156 times
    a compiled pattern. Over 288 keys of a model: 1 ms, against 0.1 ms compiled before the loop (CPython 3.11).

    References

    - re.compile: https://docs.python.org/3/library/re.html#re.compile
    """

    code, name = "TPL501", "regex-compile-in-loop"
    numerics = "same bits"
    impact = Impact.LOW
    listens = (Calls(*_FUNCTIONS),)
    needs = frozenset({"re", "regex"})

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        function = ctx.target(node.func)
        pattern = argument(node, 0, "pattern")
        if function not in _TARGETS or pattern is None:
            return
        hot = ctx.heat(node) >= Heat.STEP and not runs_rarely(node, ctx) and not is_behind_a_switch(node, ctx)
        if isinstance(pattern, ast.Constant):
            # A match by a literal text costs 0.3 us more than by a compiled pattern: never a percent of a step.
            if hot and function in ("re.compile", "regex.compile") and ctx.role(node) != "texts":
                yield self._literal(node, function, ctx)
            return
        if not hot and (not ctx.mentions("torch")):
            return  # a loop of a script that has nothing to do with training
        loops = _turns(node, ctx)
        built = _built(pattern, node, ctx)
        if built is None or _is_kept(node, ctx) or _varies_by_number(built, loops, node, ctx):
            return
        if hot or _is_update_of_metric(node, ctx):
            yield self._varying(node, built, loops, ctx)
        elif loops and _goes_over_names(loops[0]) and _is_inside(built, loops[0], ctx) and _is_same(built, loops[0]):
            yield self._same(node, loops[0], ctx)

    def _literal(self, node: ast.Call, function: str, ctx: Context) -> Finding:
        often = ctx.heat(node).phrase
        fix = None
        if function == "re.compile" and all(_is_flag(item, ctx) for item in _flags(node)) and _is_pattern(node):
            text = ctx.tree.text(node)
            hoisted, edits = ctx.edit.hoist_to_module(text, "_PATTERN", at=node)
            reason = _why_unsafe(ctx)
            fix = Fix(
                "Compile the pattern once at module level",
                Applicability.UNSAFE if reason else Applicability.SAFE,
                (*edits, ctx.edit.replace(node, hoisted)),
                reason=reason,
            )
        return self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` {often} and looks up its literal pattern each time (about 0.3 us).",
            advice="Compile it once at module level, and call the method of the compiled pattern.",
            fix=fix,
        )

    def _varying(self, node: ast.Call, built: ast.expr, loops: list[ast.AST], ctx: Context) -> Finding:
        if loops and _is_same(built, loops[0]):
            return self._same(node, loops[0], ctx)
        where = "in every iteration of the loop" if loops else f"each time ({ctx.heat(node).phrase})"
        return self.finding(
            node,
            ctx,
            (
                f"`{ctx.text(node)}` builds its pattern {where}; with more than 512 different patterns every call "
                "compiles."
            ),
            advice="Use string methods, or build one pattern of all alternatives before the loop.",
            impact=Impact.MEDIUM,
        )

    def _same(self, node: ast.Call, loop: ast.AST, ctx: Context) -> Finding:
        return self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` builds the same pattern in every iteration of the loop.",
            advice="Build and compile it once before the loop.",
            fix=_compiled_before(node, loop, ctx),
            impact=Impact.MEDIUM if ctx.heat(node) >= Heat.STEP else Impact.LOW,
        )


#: Where a function of `re` takes its flags, when they are given by position.
_FLAGS_AT = {"compile": 1, "split": 3, "sub": 4, "subn": 4}


def _compiled_before(node: ast.Call, loop: ast.AST, ctx: Context) -> Fix | None:
    """`pattern = re.compile(...)` before the loop, and `pattern.sub(...)` in it."""
    if not isinstance(loop, (ast.For, ast.AsyncFor, ast.While)) or not isinstance(node.func, ast.Attribute):
        return None
    if ctx.heat(loop) >= Heat.STEP:
        return None  # there it would be built on every step as well
    method, at = node.func.attr, _FLAGS_AT.get(node.func.attr, 2)
    if isinstance(node.args[0] if node.args else None, (ast.Name, ast.Starred, type(None))):
        return None
    if any(isinstance(item, ast.Starred) for item in node.args) or any(item.arg is None for item in node.keywords):
        return None
    if ctx.edit.would_lose_comment(node):
        return None
    flags = [*node.args[at : at + 1], *(item.value for item in node.keywords if item.arg == "flags")]
    rest = [ctx.tree.text(item) for item in node.args[1:at]]
    rest += [f"{item.arg}={ctx.tree.text(item.value)}" for item in node.keywords if item.arg != "flags"]
    given = ", ".join(ctx.tree.text(item) for item in (node.args[0], *flags))
    name = _name_of(node, ctx)
    return Fix(
        "Compile the pattern before the loop",
        Applicability.UNSAFE,
        (
            ctx.edit.insert_before(loop, f"{name} = {ctx.tree.text(node.func.value)}.compile({given})"),
            ctx.edit.replace(node, name if method == "compile" else f"{name}.{method}({', '.join(rest)})"),
        ),
        reason="a pattern that is not valid raises before the loop, even if the loop has no iteration",
    )


def _name_of(node: ast.Call, ctx: Context) -> str:
    """A name of its own for each pattern that a file builds, so that their fixes can be made together."""
    built = [
        part
        for part in walk(ctx.tree.module)
        if isinstance(part, ast.Call)
        and part.args
        and not isinstance(part.args[0], (ast.Constant, ast.Name))
        and ctx.target(part.func) in _TARGETS
    ]
    place = next(number for number, part in enumerate(built, start=1) if part is node)
    return ctx.edit.free_name("pattern" if place == 1 else f"pattern{place}")


#: What runs a file's code in other places, or looks through the names of a module.
_RUNS_ELSEWHERE = ("getsource", "getsourcelines", "FunctionType", "exec", "__code__", "__globals__")
_LOOKS_THROUGH = frozenset("globals vars dir __dict__ getmembers patch monkeypatch setattr".split())


def _why_unsafe(ctx: Context) -> str:
    """Why a new name in the file, or one compilation for all calls, may be noticed; empty where it is not."""
    if any(
        alias.name == "*" for part in walk(ctx.tree.module) for alias in getattr(part, "names", ()) if _is_from(part)
    ):
        return "names from `import *` may rebind the new name"
    if ctx.program.mentions(_RUNS_ELSEWHERE):
        return "the project executes this code outside of its file, where the new name is undefined"
    if ctx.program.mentions({"purge"}):
        return "the project clears the cache of `re`: each call may be meant to compile"
    importers = [path for path in ctx.program.summaries if _names_modules_of(path, ctx)]
    if ctx.program.mentions(_LOOKS_THROUGH, importers):
        return "code may inspect the names of the file, or replace `re`"
    return ""


def _is_from(part: ast.AST) -> bool:
    return isinstance(part, ast.ImportFrom)


def _names_modules_of(path: str, ctx: Context) -> bool:
    """Whether a file is the one at hand, or imports it."""
    name = ctx.path.removesuffix(".py").removesuffix("/__init__").rpartition("/")[2]
    return path == ctx.path or ctx.program.mentions({name}, [path])


def _varies_by_number(built: ast.expr, loops: list[ast.AST], node: ast.AST, ctx: Context) -> bool:
    """Whether all that changes in a pattern are whole numbers that callers choose: versions, layers. All of the few
    patterns that come of them are cached.
    """
    function = ctx.tree.function_of(node)
    if function is None:
        return False
    given = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    numbers = {
        item.arg for item in given if item.annotation is not None and _NUMBERS.fullmatch(ctx.text(item.annotation))
    }
    for loop in loops:
        for target, items in _pairs(loop):
            if isinstance(target, ast.Name) and isinstance(items, ast.Name) and items.id in numbers:
                numbers.add(target.id)
    names = {part.id for part in _named(built) if isinstance(part, ast.Name)} - {"str", "int"}
    return bool(names) and names <= numbers


def _is_update_of_metric(node: ast.AST, ctx: Context) -> bool:
    """Whether `node` is in the `update` of a metric, the method that is called with each batch; `compute` sums up."""
    function = ctx.tree.function_of(node)
    owner = ctx.tree.parent(function) if function is not None else None
    return (
        function is not None
        and function.name == "update"
        and isinstance(owner, ast.ClassDef)
        and any(isinstance(item, ast.FunctionDef) and item.name == "compute" for item in owner.body)
    )


def _goes_over_names(loop: ast.AST) -> bool:
    """Whether a loop goes over the names of parameters or modules, of which a model has hundreds (but few children)."""
    return any(
        isinstance(part, ast.Name) and NAME_OF_PART.search(part.id) is not None
        for target, items in _pairs(loop)
        if _is_of_a_model(items)
        for part in walk(target)
    )


def _pairs(loop: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    """The targets of a loop or comprehension, each with what it is gone over."""
    if isinstance(loop, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
        return [(item.target, item.iter) for item in loop.generators]
    return [(loop.target, loop.iter)] if isinstance(loop, (ast.For, ast.AsyncFor)) else []


def _is_of_a_model(items: ast.expr) -> bool:
    """Whether what is gone over may be all of a model: a state dict or what a model is asked for, no list of names."""
    named = {part.attr if isinstance(part, ast.Attribute) else part.id for part in _named(items)}
    return "named_children" not in named and any(STATE_DICT.search(name) for name in named)


def _named(node: ast.AST) -> Iterator[ast.Name | ast.Attribute]:
    return (part for part in walk(node) if isinstance(part, (ast.Name, ast.Attribute)))


def _is_inside(node: ast.AST, loop: ast.AST, ctx: Context) -> bool:
    return any(outer is loop for outer in ctx.tree.ancestors(node))


def _is_same(built: ast.expr, loop: ast.AST) -> bool:
    """Whether a pattern is put together from what does not change in the loop."""
    names = {part.id for part in walk(built) if isinstance(part, ast.Name)}
    return not _changes(names, loop) and not _has_calls_with_effects(built)


def _turns(node: ast.AST, ctx: Context) -> list[ast.AST]:
    """Loops and comprehensions of the same function that run `node` once a turn, innermost first."""
    found: list[ast.AST] = []
    child = node
    for outer in ctx.tree.ancestors(node):
        if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            break
        if isinstance(outer, (ast.For, ast.AsyncFor, ast.While)) and child in outer.body:
            found.append(outer)
        if isinstance(outer, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
            first = outer.generators[0]
            if child is not first:
                found.append(outer)
        child = outer
    return found


def _built(pattern: ast.expr, node: ast.Call, ctx: Context) -> ast.expr | None:
    """The expression that puts the pattern together from data, None when it is not plain to see that one does."""
    if isinstance(pattern, ast.Name):
        assigned = _assigned_in_loop(pattern.id, node, ctx)
        return _built(assigned, node, ctx) if assigned is not None and not isinstance(assigned, ast.Name) else None
    if isinstance(pattern, ast.JoinedStr):
        return pattern if any(isinstance(part, ast.FormattedValue) for part in pattern.values) else None
    if isinstance(pattern, ast.BinOp) and isinstance(pattern.op, (ast.Add, ast.Mod)):
        texts = [pattern.left, pattern.right]
        if any(isinstance(part, (ast.JoinedStr, ast.BinOp)) or is_text(part) for part in texts):
            return pattern if any(isinstance(part, ast.Name) for part in walk(pattern)) else None
        return None
    if isinstance(pattern, ast.Call) and isinstance(pattern.func, ast.Attribute):
        if pattern.func.attr in ("format", "join", "replace") or ctx.target(pattern.func) == "re.escape":
            return pattern if any(isinstance(part, ast.Name) for part in walk(pattern)) else None
    return None


def _assigned_in_loop(name: str, node: ast.AST, ctx: Context) -> ast.expr | None:
    """What a name is assigned in the innermost loop around `node`, when that is its only assignment there."""
    for loop in ctx.loops(node)[:3]:
        found = [
            statement.value
            for part in loop.body
            for statement in walk(part)
            if isinstance(statement, ast.Assign)
            and any(isinstance(target, ast.Name) and target.id == name for target in statement.targets)
        ]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def _changes(names: set[str], loop: ast.AST) -> bool:
    """Whether one of the names is bound in the loop, to more than the same constant each time."""
    constants = {
        id(target)
        for part in walk(loop)
        if isinstance(part, ast.Assign) and isinstance(part.value, ast.Constant)
        for target in part.targets
    }
    return any(
        isinstance(part, ast.Name)
        and isinstance(part.ctx, ast.Store)
        and part.id in names
        and id(part) not in constants
        for part in walk(loop)
    )


def _has_calls_with_effects(node: ast.expr) -> bool:
    for part in walk(node):
        if isinstance(part, ast.Call):
            method = part.func.attr if isinstance(part.func, ast.Attribute) else ""
            if method not in ("escape", "format", "join", "replace", "lower", "upper", "strip"):
                return True
    return False


def _is_kept(node: ast.Call, ctx: Context) -> bool:
    """Whether the compiled patterns are collected: `[re.compile(p) for p in patterns]`, `patterns.append(...)`."""
    if ctx.target(node.func) not in ("re.compile", "regex.compile"):
        return False
    parent = ctx.tree.parent(node)
    if isinstance(parent, (ast.ListComp, ast.SetComp, ast.DictComp, ast.Tuple, ast.List, ast.Dict)):
        return True
    if isinstance(parent, ast.Call) and isinstance(parent.func, ast.Attribute):
        return parent.func.attr in ("append", "add", "setdefault", "insert")
    statement = ctx.tree.statement_of(node)
    return isinstance(statement, ast.Assign) and any(
        isinstance(target, (ast.Subscript, ast.Attribute)) for target in statement.targets
    )


def _flags(node: ast.Call) -> list[ast.expr]:
    return [*node.args[1:], *(item.value for item in node.keywords if item.arg != "pattern")]


def _is_flag(node: ast.expr, ctx: Context) -> bool:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _is_flag(node.left, ctx) and _is_flag(node.right, ctx)
    if is_constant(node, 0):
        return True
    target = ctx.target(node)
    if target in ("re.DEBUG", "re.LOCALE", "re.L"):
        return False  # shown, or read from the locale, at each compilation
    return target is not None and target.startswith("re.") and target[3:].isupper()


def _is_pattern(node: ast.Call) -> bool:
    """Whether a literal compiles with its flags, without a warning: it would fail, or warn, at import in place of the
    call.
    """
    given = argument(node, 0, "pattern")
    if not isinstance(given, ast.Constant) or not isinstance(given.value, (str, bytes)):
        return False
    names = {
        last_name(part) for flag in _flags(node) for part in walk(flag) if isinstance(part, (ast.Name, ast.Attribute))
    }
    flags = 0
    for name in names - {"re"}:
        flags |= int(getattr(re, name, -1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            re.compile(given.value, flags)
        except (re.error, ValueError, OverflowError, RecursionError, Warning):
            return False
    return True
