"""TPL705: deterministic algorithms that nobody asked for."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from perflint.api import (
    CLASS,
    Calls,
    Context,
    Finding,
    Impact,
    Nodes,
    Ref,
    Rule,
    Tier,
    callee_name,
    is_constant,
    last,
    randomness,
    walk,
)
from perflint.api.names import REPRODUCIBLE
from perflint.api.phases import is_conversion, main_guard

#: Calls by which a block shows that it is about repeating a run; `seed` alone is a name of many things.
_SEEDING = frozenset(last(name) for name in randomness.SEEDING)


class DeterministicLeftOn(Rule):
    """Deterministic algorithms are enabled without an option for reproducibility.

    What it does

    Reports `torch.backends.cudnn.deterministic = True` and `torch.use_deterministic_algorithms(True)` that every run
    executes.

    Why is this slow?

    They exclude the faster algorithms for the whole run, above all for convolutions, scatters and indexed additions.

    What to do

    Enable them under an option that is off by default, for runs that must repeat bit by bit. For convolutional
    networks with inputs of one size, `torch.backends.cudnn.benchmark = True` lets cuDNN select the fastest algorithm.

    Fix safety

    No fix: runs would no longer be reproducible.

    Not reported

    - Functions and classes that seed, options for reproducible runs, and tests.
    - Code that resets the setting.
    - cuDNN's setting in scripts for language models.
    - `cudnn.benchmark = False`: it is the default, and right for inputs of many sizes.

    References

    - Reproducibility: https://docs.pytorch.org/docs/stable/notes/randomness.html
    - `torch.use_deterministic_algorithms`:
      https://docs.pytorch.org/docs/stable/generated/torch.use_deterministic_algorithms.html
    """

    code, name = "TPL705", "deterministic-left-on"
    tier = Tier.EXTRA
    impact = Impact.LOW
    listens = (
        Nodes(ast.Assign, mentioning=("deterministic",)),
        Calls(*(last(name) for name in sorted(randomness.DETERMINISTIC_SWITCHES))),
    )
    needs_accelerator = True

    def check(self, node: ast.AST, ctx: Context) -> Iterator[Finding]:
        if is_conversion(ctx) or not _switches_on(node, ctx) or _is_put_back(node, ctx):
            return
        if isinstance(node, ast.Assign) and _is_about_text(ctx):
            return
        if _is_a_trial(node, ctx):
            return
        by_default = _holds_by_default(node, ctx)
        if not by_default and (_is_conditional(node, ctx) or _is_for_reproducing(node, ctx)):
            return
        yield self.finding(
            node,
            ctx,
            f"`{ctx.text(node)}` restricts the run to slower algorithms" + (", by default." if by_default else "."),
            advice="Enable it under an option that is off by default.",
        )


def _is_a_trial(node: ast.AST, ctx: Context) -> bool:
    """Whether a file tries its modules out there, under `if __name__ == "__main__"`, and trains nothing."""
    if ctx.mentions("backward", "fit", "optim", "Trainer") or ctx.program.trains(ctx.scope(node)):
        return False
    if main_guard(node, ctx) is None:
        return False
    classes = (item.name for item in ctx.tree.module.body if isinstance(item, ast.ClassDef))
    return any(ctx.program.is_subclass(Ref(CLASS, ctx.path, name), "torch.nn.Module") for name in classes)


def _is_about_text(ctx: Context) -> bool:
    """Whether the file works with a language model and names no convolution: then cuDNN has nothing to choose."""
    return ctx.mentions("AutoTokenizer", "AutoModelForCausalLM", "AutoModelForSeq2SeqLM") and not ctx.mentions(
        "Conv1d", "Conv2d", "Conv3d", "ConvTranspose2d"
    )


def _switches_on(node: ast.AST, ctx: Context) -> bool:
    if isinstance(node, ast.Call):
        if ctx.target(node.func) not in randomness.DETERMINISTIC_SWITCHES or not node.args:
            return False
        return is_constant(node.args[0], True)  # noqa: FBT003 - the literal that is looked for
    assert isinstance(node, ast.Assign)
    return any(_is_on(value) for value in _values(node, ctx))


def _values(node: ast.Assign, ctx: Context) -> Iterator[ast.expr]:
    """What `cudnn.deterministic` is given, also among several targets."""
    for target in node.targets:
        if _is_flag(target, ctx):
            yield node.value
        elif isinstance(target, ast.Tuple):
            for index, item in enumerate(target.elts):
                if _is_flag(item, ctx):
                    yield from _parts(node.value, index)


def _parts(value: ast.expr, index: int) -> Iterator[ast.expr]:
    if isinstance(value, ast.IfExp):
        for part in _parts(value.body, index):
            yield ast.IfExp(value.test, part, value.orelse)
    elif isinstance(value, ast.Tuple) and index < len(value.elts):
        yield value.elts[index]


def _is_flag(target: ast.expr, ctx: Context) -> bool:
    return (
        isinstance(target, ast.Attribute)
        and target.attr == "deterministic"
        and ctx.text(target.value).rpartition(".")[2] == "cudnn"
    )


def _is_on(value: ast.expr) -> bool:
    """Whether a value is True, or is where its condition holds."""
    return is_constant(value.body if isinstance(value, ast.IfExp) else value, True)  # noqa: FBT003 - the literal


def _tests(node: ast.AST, ctx: Context) -> Iterator[ast.expr]:
    """The conditions under which the switch is thrown, in its function."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.IfExp):
        yield node.value.test
    yield from (test for test, _ in ctx.conditions(node) if "__name__" not in ctx.text(test))


def _is_conditional(node: ast.AST, ctx: Context) -> bool:
    return any(True for _ in _tests(node, ctx))


def _holds_by_default(node: ast.AST, ctx: Context) -> bool:
    """Whether the only condition compares a parameter with its own default: then nobody has asked for it."""
    tests = list(_tests(node, ctx))
    function = ctx.tree.function_of(node)
    if len(tests) != 1 or function is None or not isinstance(tests[0], ast.Compare):
        return False
    test = tests[0]
    if not isinstance(test.left, ast.Name) or len(test.ops) != 1 or not isinstance(test.ops[0], (ast.Eq, ast.Is)):
        return False
    positional = [*function.args.posonlyargs, *function.args.args]
    defaults = dict(zip((arg.arg for arg in reversed(positional)), reversed(function.args.defaults)))
    given, wanted = defaults.get(test.left.id), test.comparators[0]
    return (
        isinstance(given, ast.Constant)
        and isinstance(wanted, ast.Constant)
        and given.value == wanted.value
        and given.value is not None
    )


def _is_for_reproducing(node: ast.AST, ctx: Context) -> bool:
    """Whether seeds are set beside it, or its function is named for reproducing runs."""
    around = ctx.tree.function_of(node)
    if around is not None and REPRODUCIBLE.search(around.name):
        return True
    owner = ctx.tree.class_of(node)
    if owner is not None and any(
        isinstance(part, ast.Call) and ctx.target(part.func) in randomness.SEEDING for part in walk(owner)
    ):
        return True  # in another method of the class
    block = around.body if around is not None else ctx.tree.module.body
    return any(
        isinstance(part, ast.Call) and callee_name(part) in _SEEDING
        for statement in block
        if around is not None or not isinstance(statement, (ast.FunctionDef, ast.ClassDef))
        for part in walk(statement)
    )


def _is_put_back(node: ast.AST, ctx: Context) -> bool:
    """Whether the file also switches it off, or keeps what it was."""
    for part in walk(ctx.tree.module):
        if isinstance(part, ast.Call) and ctx.target(part.func) in randomness.DETERMINISTIC_SWITCHES:
            if part.args and not is_constant(part.args[0], True):  # noqa: FBT003 - the literal
                return True
        elif isinstance(part, ast.Assign) and part is not node:
            if any(_is_flag(target, ctx) for target in part.targets) and not _is_on(part.value):
                return True
    return False
