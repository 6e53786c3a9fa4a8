"""TPL501: patterns built again and again."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    Calls,
    Context,
    Finding,
    Heat,
    Impact,
    Rule,
    argument,
    walk,
)
from perflint.api.loops import (
    are_numbers_of_callers,
    built_text,
    goes_over_names_of_parts,
    is_same_text,
    regions_of_turns,
)
from perflint.api.phases import runs_rarely

from ._fixes.compiled_patterns import RE_FUNCTIONS, RE_NAMES, compiled_at_module_level, compiled_before_loop
from ._shared.switches import is_behind_a_switch


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
    listens = (Calls(*RE_NAMES),)
    needs = frozenset({"re", "regex"})

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        assert isinstance(node, ast.Call)
        function = ctx.target(node.func)
        pattern = argument(node, 0, "pattern")
        if function not in RE_FUNCTIONS or pattern is None:
            return
        hot = ctx.heat(node) >= Heat.STEP and not runs_rarely(node, ctx) and not is_behind_a_switch(node, ctx)
        if isinstance(pattern, ast.Constant):
            # A match by a literal text costs 0.3 us more than by a compiled pattern, and so does a look-up once in a
            # step: never a percent of it. Samples are many.
            if hot and function in ("re.compile", "regex.compile") and _is_of_many(node, ctx):
                yield self._literal(node, function, ctx)
            return
        if not hot and (not ctx.mentions("torch")):
            return  # a loop of a script that has nothing to do with training
        loops = regions_of_turns(node, ctx)
        built = built_text(pattern, node, ctx)
        if built is None or _is_kept(node, ctx):
            return
        # All of the few patterns that come of such numbers are cached.
        if are_numbers_of_callers(set(_own_names(built)) - {"str", "int"}, loops, node, ctx):
            return
        if hot or _is_update_of_metric(node, ctx):
            yield self._varying(node, built, loops, ctx)
        elif (
            loops
            and goes_over_names_of_parts(loops[0])
            and _is_inside(built, loops[0], ctx)
            and is_same_text(built, loops[0])
        ):
            yield self._same(node, loops[0], ctx)

    def _literal(self, node: ast.Call, function: str, ctx: Context) -> Finding:
        often = ctx.heat(node).phrase
        return self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` {often} and looks up its literal pattern each time (about 0.3 us).",
            advice="Compile it once at module level, and call the method of the compiled pattern.",
            fix=compiled_at_module_level(node, ctx) if function == "re.compile" else None,
        )

    def _varying(self, node: ast.Call, built: ast.expr, loops: list[ast.AST], ctx: Context) -> Finding:
        if loops and is_same_text(built, loops[0]):
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
            fix=compiled_before_loop(node, loop, ctx),
            impact=Impact.MEDIUM if ctx.heat(node) >= Heat.STEP else Impact.LOW,
        )


def _is_of_many(node: ast.Call, ctx: Context) -> bool:
    """Whether `node` is for a sample of a data set, or in a loop of the step."""
    role = ctx.role(node)
    inner = ctx.heat(node) > Heat.STEP or any(ctx.heat(loop) >= Heat.STEP for loop in ctx.loops(node))
    return role == "data" or (role != "texts" and inner)


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


def _own_names(node: ast.AST) -> Iterator[str]:
    return (part.id for part in walk(node) if isinstance(part, ast.Name))


def _is_inside(node: ast.AST, loop: ast.AST, ctx: Context) -> bool:
    return any(outer is loop for outer in ctx.tree.ancestors(node))


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
