"""Regular expressions that are compiled once: at module level, or before a loop."""

from __future__ import annotations

import ast
import re
import warnings

from perflint.api import Applicability, Context, Fix, Heat, argument, is_constant, last_name, walk

RE_NAMES = ("compile", "search", "match", "fullmatch", "findall", "finditer", "split", "sub", "subn")
RE_FUNCTIONS = tuple(f"{module}.{name}" for module in ("re", "regex") for name in RE_NAMES)
#: Where a function of `re` takes its flags, when they are given by position.
_FLAGS_AT = {"compile": 1, "split": 3, "sub": 4, "subn": 4}
#: What runs a file's code in other places, or looks through the names of a module.
_RUNS_ELSEWHERE = ("getsource", "getsourcelines", "FunctionType", "exec", "__code__", "__globals__")
_LOOKS_THROUGH = frozenset("globals vars dir __dict__ getmembers patch monkeypatch setattr".split())


def compiled_at_module_level(node: ast.Call, ctx: Context) -> Fix | None:
    """`_PATTERN = re.compile(...)` at module level, where the pattern and its flags are literal."""
    if not (all(_is_flag(item, ctx) for item in _flags(node)) and _is_pattern(node)):
        return None
    hoisted, edits = ctx.edit.hoist_to_module(ctx.tree.text(node), "_PATTERN", at=node)
    reason = _why_unsafe(ctx)
    return Fix(
        "Compile the pattern once at module level",
        Applicability.UNSAFE if reason else Applicability.SAFE,
        (*edits, ctx.edit.replace(node, hoisted)),
        reason=reason,
    )


def compiled_before_loop(node: ast.Call, loop: ast.AST, ctx: Context) -> Fix | None:
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


def _built(module: ast.Module, ctx: Context) -> list[ast.Call]:
    return [
        part
        for part in walk(module)
        if isinstance(part, ast.Call)
        and part.args
        and not isinstance(part.args[0], (ast.Constant, ast.Name))
        and ctx.target(part.func) in RE_FUNCTIONS
    ]


def _name_of(node: ast.Call, ctx: Context) -> str:
    """A name of its own for each pattern that a file builds, so that their fixes can be made together."""
    built = ctx.once(_built, ctx.tree.module)
    place = next(number for number, part in enumerate(built, start=1) if part is node)
    return ctx.edit.free_name("pattern" if place == 1 else f"pattern{place}")


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
