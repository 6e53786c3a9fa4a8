"""Why a line is hot, or why not, in words: what `perflint check --explain-heat FILE:LINE` prints."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from perflint.analysis.call_graph.edges import Edge
from perflint.analysis.frequency.reach import hot_calls_that_may_run
from perflint.analysis.frequency.routes import display_name
from perflint.analysis.names.refs import Scope
from perflint.analysis.program import Program
from perflint.finding import Confidence, Heat
from perflint.ir import guards
from perflint.ir.callees import last_name
from perflint.ir.summary import MODULE, CallFacts, FunctionFacts
from perflint.torch_model.hooks import Hook, Role

_MOST_CALLERS = 8
_ROLES = {
    "train": "training",
    "batches": "a loop over batches",
    "texts": "a loop over texts or requests",
    "eval": "evaluation",
    "infer": "inference",
    "data": "data loading",
    "optimizer": "an optimizer's step",
    "decode": "generation",
    "forward": "a model's forward pass",
    "metric": "a metric",
    "autograd": "a custom gradient",
    "hook": "a hook",
    "handler": "an event handler",
    "epoch": "a loop over epochs or configurations",
}
_SWITCH_WORDS = "runs only until its flag is switched back, or in some turns of the loop"
_HOW_OFTEN = {
    Heat.ONCE: "once for each fit, validation, test or prediction",
    Heat.EPOCH: "once for each epoch, or less often",
}
_GUARD_WORDS = {
    guards.PERIODIC: "runs only every so many turns",
    guards.EVALUATION: "runs only in evaluation",
    guards.ACCUMULATION: "runs once for each step of the optimizer",
    guards.FIRST: "runs only in the first or last turn",
    guards.TURN: "runs only in the first or last turn",
    guards.LEAVES: "leaves the loop, so it runs at most once for each pass",
    guards.LAZY: "fills something that is kept, so it runs once",
    guards.RARE: "runs when something fails or when debugging",
}


def explain_heat(program: Program, path: str, line: int) -> list[str]:
    """Lines of text: where `line` of `path` stands, how hot it is, and by which way or why not."""
    if path in program.unimportable.faults:
        return [f"{path} cannot be imported, so nothing in it runs: {program.unimportable.faults[path]}."]
    if path in program.resolver.tests:
        return [f"{path}:{line} is in a test: what tests do says nothing of training, so they are not inspected."]
    scope, context = place_of(program, path, line)
    facts = program.function(scope)
    heat, hops, confidence = program.route(scope, context)
    role = program.role(scope, context) if hops else ""
    part = f", as part of {_ROLES.get(role, role)}" if role else ""
    sure = f" (confidence: {confidence.label})" if hops else ""
    text = [f"{path}:{line} {heat.phrase}{part}{sure}."]
    text.append(f"It stands in {_named(scope, facts)}, which {program.heat(scope).phrase}.")
    text += _contexts(program, scope, facts, context)
    text += _inner_loops(program, scope, facts, line)
    if hops:
        text.append("The way there:")
        text += [f"  {hop.path}:{hop.line}  {hop.text}" for hop in hops]
    if heat < Heat.STEP:
        text += _why_not_hotter(program, scope, facts)
    if program.grad_off(scope, context):
        text.append("Gradients are off here.")
    return text


def place_of(program: Program, path: str, line: int, column: int | None = None) -> tuple[Scope, int]:
    """The function a line stands in and its innermost context there. `column` counts from 0.

    Without a column it is about the statement on the line: a comprehension or lambda that begins on it is left out.
    """
    functions = program.summaries[path].functions
    found = functions[MODULE]
    for qualname, item in functions.items():
        if qualname == MODULE or not item.line <= line <= item.end_line:
            continue
        if qualname.startswith("<lambda:") and not _inside_lambda(item, line, column):
            continue
        if (item.line, -item.end_line) >= (found.line, -found.end_line):
            found = item
    scope = Scope(path, found.qualname)
    if column is not None:
        return scope, found.context_at(line, column)
    inside = (index for index, item in enumerate(found.contexts) if _holds(found, index, line))
    return scope, max(inside, default=-1)


def _holds(facts: FunctionFacts, index: int, line: int) -> bool:
    """Whether the statement that begins on a line stands in a context."""
    item = facts.contexts[index]
    if not item.line <= line <= item.end_line:
        return False
    if item.kind == "loop":
        loop = facts.loops[int(item.detail)]
        return loop.line < line and (loop.kind != "comprehension" or item.line < line)
    return True


def _inside_lambda(facts: FunctionFacts, line: int, column: int | None) -> bool:
    begins = int(facts.qualname.rstrip(">").rpartition(":")[2])
    return line > facts.line or (column is not None and column > begins)


def _named(scope: Scope, facts: FunctionFacts) -> str:
    if scope.function == MODULE:
        return "the module's own code"
    return f"`{display_name(scope.function)}` (line {facts.line})"


def _contexts(program: Program, scope: Scope, facts: FunctionFacts, context: int) -> Iterator[str]:
    """Every loop and guard around the line, outermost first."""
    around = []
    while context >= 0:
        around.append(context)
        context = facts.contexts[context].parent
    for index in reversed(around):
        item = facts.contexts[index]
        heat = program.heat_at(scope, index).phrase
        if item.kind == "loop":
            yield _loop(program, scope, facts, int(item.detail), heat)
        elif item.kind == "guard":
            yield f"  line {item.line}: a guard: what it holds {_GUARD_WORDS[str(item.detail)]}: {heat}"
        elif item.kind == "switch":
            yield f"  line {item.line}: a guard: what it holds {_SWITCH_WORDS}: {heat}"


def _loop(program: Program, scope: Scope, facts: FunctionFacts, index: int, heat: str) -> str:
    loop = facts.loops[index]
    known = program.roots.loops.get((scope, index))
    why = {
        "train": "its turns train",
        "batches": "its turns are batches",
        "texts": "its turns run a model on one text or request each",
        "decode": "its turns run a model on what it gave before",
        "epoch": "its turns hold hot loops, or go by such a name",
    }
    words = why.get(known.role, known.role) if known is not None else "nothing says that its turns are steps"
    return f"  line {loop.line}: `{loop.text}`: {words}: {heat}"


def _inner_loops(program: Program, scope: Scope, facts: FunctionFacts, line: int) -> Iterator[str]:
    """Loops that begin on the line: their bodies may be hotter than the line itself."""
    for index, item in enumerate(facts.contexts):
        if item.kind == "loop" and facts.loops[int(item.detail)].line == line:
            yield "The loop that begins here:"
            yield _loop(program, scope, facts, int(item.detail), program.heat_at(scope, index).phrase)


def _why_not_hotter(program: Program, scope: Scope, facts: FunctionFacts) -> Iterator[str]:
    if scope.function == MODULE:
        return
    edges = program.graph.incoming.get(scope, [])
    root = program.roots.functions.get(scope)
    if edges:
        yield f"Called from ({len(edges)} in all):"
        for edge in sorted(edges, key=lambda item: -program.heat_at(item.caller, item.context))[:_MOST_CALLERS]:
            yield f"  {_caller(program, edge)}"
    hook = program.roots.hook_of(scope, facts)
    if hook is not None:
        yield _called_by_framework(*hook)
    elif root is None and not edges:
        yield "No call of it was found outside tests, and no framework is known to call it."
    if scope in program.heatmap.cached:
        yield (
            "It makes a module: what runs often is taken to run modules, not to make them."
            if facts.name == "__init__"
            else "A decorator keeps its result: only the first call runs it."
        )
    for caller, call, reached in islice(hot_calls_that_may_run(program, scope), _MOST_CALLERS):
        which = "it" if reached == scope else f"`{display_name(reached.function)}`, which comes to call it"
        yield (
            f"It would be hot if {caller.path}:{call.line} in `{display_name(caller.function)}` ran {which}: that call "
            f"could not be resolved, and {program.heat_at(caller, call.context).phrase}."
        )
    unresolved = list(_calls_by_name(program, facts.name))
    if unresolved:
        yield f"Calls by the name `{facts.name}` that could not be followed ({len(unresolved)} in all):"
        for caller, call in unresolved[:_MOST_CALLERS]:
            heat = program.heat_at(caller, call.context).phrase
            yield f"  {caller.path}:{call.line}  in `{display_name(caller.function)}`, {heat}"


def _called_by_framework(name: str, hook: Hook) -> str:
    """How often a framework calls a method."""
    words = f"The framework calls it, as `{name}`: {_HOW_OFTEN.get(hook.heat, hook.heat.phrase)}."
    if hook.role is Role.DATA and name.endswith("_dataloader"):
        words += " With `Trainer(reload_dataloaders_every_n_epochs=n)`, every n epochs."
    return words


def _caller(program: Program, edge: Edge) -> str:
    caller = edge.caller
    heat = program.heat_at(caller, edge.context).phrase
    guess = "" if edge.confidence is Confidence.HIGH else ", a guess"
    place = f"{caller.path}:{edge.line}  in `{display_name(caller.function)}`"
    return f"{place}, {heat}{guess}{_cooling(program, edge)}"


def _cooling(program: Program, edge: Edge) -> str:
    """The guard that makes a call rarer than the code around it."""
    facts = program.function(edge.caller)
    context = edge.context
    while context >= 0:
        item = facts.contexts[context]
        outer = program.heat_at(edge.caller, item.parent)
        if item.kind in ("guard", "switch") and program.heat_at(edge.caller, context) < outer:
            around = outer.phrase.removeprefix("runs ")
            words = _SWITCH_WORDS if item.kind == "switch" else _GUARD_WORDS[str(item.detail)]
            return f" (line {item.line}: a guard that {words}; around it {around})"
        context = item.parent
    return ""


def _calls_by_name(program: Program, name: str) -> Iterator[tuple[Scope, CallFacts]]:
    for caller, calls in program.graph.unresolved.items():
        for call in calls:
            if last_name(call.func) == name:
                yield caller, call
