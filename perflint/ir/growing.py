"""The facts of a function while it is read: they grow until it ends."""

from __future__ import annotations

import ast

from perflint.ir import guards
from perflint.ir.bodies import sets
from perflint.ir.branches import branches_of
from perflint.ir.computed import COVERS
from perflint.ir.multiples import counts_from_zero, multiple_of
from perflint.ir.notation import path_of
from perflint.ir.questions import Counters, Question, Told, joined
from perflint.ir.sharing import Once
from perflint.ir.summary import ENTRIES, CallFacts, Context, FunctionFacts, LoopFacts, ReadFacts, Value, record
from perflint.syntax.walk import walk

#: Characters of a loop's header that are kept to be shown.
HEADER_LENGTH = 90


class Growing:
    """A function being surveyed: facts that grow until `finish`.

    `tests` are local names that hold a guard's test, `held` the tests that names hold as written, `unset` those that
    were given False or None, `begun` in which context names that may be flags were first given something, `made` in
    which one names were first given a new container; `asked` are the calls of `isinstance`.
    """

    __slots__ = (
        "annotations", "arms", "asked", "begun", "binds", "body", "branching", "calls", "computed", "contexts",
        "counters", "facts", "handed", "held", "is_generator", "loops", "made", "mixed", "picks", "questions",
        "reads", "returns", "stores", "tested", "tests", "told", "told_elsewhere", "turning", "unclear", "unset",
        "wordless", "yields",
    )  # fmt: skip

    def __init__(self, facts: FunctionFacts, body: list[ast.stmt]) -> None:
        self.facts = facts
        self.body = body
        self.counters: Counters | None = None
        self.questions: list[Question] = []
        self.told = Told()
        self.held: dict[str, ast.expr] = {}
        self.contexts: list[Context] = []
        self.loops: list[LoopFacts] = []
        self.calls: list[CallFacts] = []
        self.asked: list[CallFacts] = []
        self.reads: dict[tuple[str, int], int] = {}
        self.binds: dict[str, dict[Value, None]] = {}
        self.unclear: set[str] = set()
        #: As `FunctionFacts` has it; the names that have no other value. Whether there is an `if`.
        self.computed: dict[str, dict[Value, None]] = {}
        self.wordless: set[str] = set()
        self.branching = False
        #: Of the names that the `if` statements around ask of, the test that each of them holds there.
        self.tested: dict[str, Value] = {}
        self.picks: list[tuple[str, str, int, int]] = []
        #: The parts of expressions that hold calls, with the tests before them and what these come to.
        self.arms: list[tuple[ast.expr, bool, ast.expr]] = []
        self.annotations: dict[str, str] = {}
        self.returns: dict[Value, None] = {}
        self.stores: dict[tuple[str, Value], None] = {}
        self.mixed: dict[tuple[str, tuple[str, ...]], None] = {}
        self.told_elsewhere: list[tuple[str, Question, Question]] = []
        self.yields: list[tuple[Value, int]] = []
        self.is_generator = False
        self.tests: guards.Tests = {}
        self.unset: set[str] = set()
        self.begun: dict[str, int] = {}
        self.made: dict[str, int] = {}
        self.handed: dict[str, int] = {}
        #: By their places in `loops`, those that are statements.
        self.turning: dict[int, ast.For | ast.AsyncFor | ast.While] = {}

    def has_parameter(self, name: str) -> bool:
        return name in [param.name.lstrip("=") for param in self.facts.params]

    def push(self, parent: int, kind: str, detail: int | str, first: ast.AST, last: ast.AST) -> int:
        begins = first.lineno, first.col_offset  # type: ignore[attr-defined]
        ends = last.end_lineno, last.end_col_offset  # type: ignore[attr-defined]
        self.contexts.append(record(Context, (parent, kind, detail, *begins, *ends)))
        return len(self.contexts) - 1

    def push_guard(self, parent: int, guard: Question, first: ast.AST, last: ast.AST) -> int:
        """A context under a guard, or under what a test asks before it is known to be one."""
        if isinstance(guard, str):
            return self.push(parent, "guard", guard, first, last)
        if guard not in self.questions:
            self.questions.append(guard)
        return self.push(parent, "asked", self.questions.index(guard), first, last)

    def guarded_by(self, context: int) -> Question:
        """The guards around a context, as one."""
        found: list[Question] = []
        while context >= 0:
            item = self.contexts[context]
            if item.kind == "guard":
                found.append(item.detail)
            elif item.kind == "asked":
                found.append(self.questions[int(item.detail)])
            context = item.parent
        return joined("all", found) if found else None

    def bind(self, name: str, value: Value) -> None:
        if value is None:
            self.unclear.add(name)
            return
        known = self.binds.get(name)
        if known is None:
            self.binds[name] = {value: None}
        else:
            known[value] = None
            if name in self.computed:
                self.computed[name].pop((COVERS, value), None)

    def compute(self, name: str, value: Value, computed: Value) -> None:
        """A name is given what `computed` says more of than `value`, the same in plain notation."""
        known = self.computed.setdefault(name, {})
        known[computed] = None
        if value is None:
            self.wordless.add(name)
            return
        if value not in self.binds.get(name, ()):
            known[COVERS, value] = None
        self.binds.setdefault(name, {})[value] = None

    def set_entry(self, path: str | None, key: ast.expr) -> None:
        """`CONFIG["fast"] = True`: what goes by the name, here or elsewhere, has another entry by then."""
        is_named = type(key) is ast.Constant and type(key.value) is str
        if path is not None and (is_named or (type(key) is ast.Name and "." not in path)):
            self.unclear.add(path + ENTRIES)

    def held_item(self, value: Value) -> Value:
        """`rows` of `table["a"]` after `table = {"a": rows}`, as far as the function is read; else the value itself."""
        if type(value) is not tuple or value[0] != "item" or type(value[1]) is not str or value[1] in self.unclear:
            return value
        made = self.binds.get(value[1], ())
        display = next(iter(made)) if len(made) == 1 else None
        if type(display) is not tuple or value[2] is None:
            return value
        if display[0] == "map":
            return next((item for key, item in reversed(display[1]) if key == value[2] and item is not None), value)
        is_place = display[0] == "seq" and type(value[2]) is int and -len(display[1]) <= value[2] < len(display[1])
        return (display[1][value[2]] or value) if is_place else value

    def in_loop(self, context: int) -> bool:
        while context >= 0:
            item = self.contexts[context]
            if item.kind == "loop":
                return True
            context = item.parent
        return False

    def around_turns(self, test: ast.expr, context: int) -> int | None:
        """The context around the innermost `for`, where `test` looks up what that counts in a collection: `if i in
        self.skips` in `for i in range(n)` thins the turns of that loop alone, and what runs the loop is as hot as ever.
        """
        if not (isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and type(test.ops[0]) is ast.In):
            return None
        while context >= 0 and self.contexts[context].kind != "loop":
            context = self.contexts[context].parent
        if context < 0 or test.left.id not in self.loops[int(self.contexts[context].detail)].targets:
            return None
        return self.contexts[context].parent

    def thins_own_loop(self, test: ast.expr, context: int) -> bool:
        """Whether `test` asks if what the innermost `for` around counts from zero is a multiple: `if i % every == 0` in
        `for i in range(n)` holds on the first iteration, so that whatever runs the loop comes to it.
        """
        while context >= 0 and self.contexts[context].kind != "loop":
            context = self.contexts[context].parent
        if context < 0:
            return False
        loop = self.loops[int(self.contexts[context].detail)]
        parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
        is_thinned = loop.targets and any(multiple_of(part) == loop.targets[0] for part in parts)
        return bool(is_thinned) and counts_from_zero(loop.iterable)

    def counts_turns(self, test: ast.expr, context: int) -> bool:
        """Whether `test` compares what the innermost `for` around counts: `if i == 0` in `for i in range(n)`."""
        if not isinstance(test, ast.Compare) or not isinstance(test.left, ast.Name):
            return False
        while context >= 0 and self.contexts[context].kind != "loop":
            context = self.contexts[context].parent
        return context >= 0 and test.left.id in self.loops[int(self.contexts[context].detail)].targets

    def equals_once(self, test: ast.expr, context: int) -> bool:
        """Whether `test` asks if what the innermost loop around only counts up has come to something that it leaves
        alone: that is so on one turn at most.
        """
        if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq)):
            return False
        while context >= 0 and self.contexts[context].kind != "loop":
            context = self.contexts[context].parent
        loop = self.turning.get(int(self.contexts[context].detail)) if context >= 0 else None
        counter, goal = path_of(test.left), path_of(test.comparators[0])
        return loop is not None and bool(counter and goal) and _only_counts(loop, str(counter), str(goal))

    def is_made_once(self, node: ast.If, context: int) -> bool:
        """Whether a test asks if a name is None that the innermost loop around gives nothing but what is made then:
        `if net is None: net = Net(image.shape)`. It was None before the loop, and is not None after that turn.
        """
        test = node.test
        if not (isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and isinstance(test.ops[0], ast.Is)):
            return False
        name = test.left.id
        if name not in self.unset or not sets(node.body, test.left) or ast.unparse(test.comparators[0]) != "None":
            return False
        while context >= 0 and self.contexts[context].kind != "loop":
            context = self.contexts[context].parent
        loop = self.turning.get(int(self.contexts[context].detail)) if context >= 0 else None
        return loop is not None and _times_set(loop, name) == _times_set(node, name)

    def equals_number_of_turn(self, test: ast.expr, context: int) -> bool:
        """Whether `test` asks if the number of the innermost `for` around is one that the loop leaves alone, or moves
        on to a later one: `if i == start` in `for i, row in enumerate(rows)`.
        """
        if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq)):
            return False
        while context >= 0 and self.contexts[context].kind != "loop":
            context = self.contexts[context].parent
        loop = self.turning.get(int(self.contexts[context].detail)) if context >= 0 else None
        counter = _number_of_turn(loop)
        sides = [path_of(test.left), path_of(test.comparators[0])]
        if not counter or counter not in sides:
            return False
        goal = next((side for side in sides if side != counter), None)
        return goal is not None and loop is not None and _is_left_alone(loop, goal, counter)

    def begun_in(self, name: str, context: int) -> int | None:
        """The innermost context around `context` in which a name was given its first value, None where nobody sees."""
        begun = self.begun.get(name)
        if begun is None:
            return -1 if any(param.name.lstrip("=") == name for param in self.facts.params) else None
        around = {-1}
        while context >= 0:
            around.add(context)
            context = self.contexts[context].parent
        while begun not in around:
            begun = self.contexts[begun].parent
        return begun

    def finish(self, once: Once) -> FunctionFacts:
        facts = self.facts
        if self.contexts:
            facts.contexts, facts.loops = tuple(self.contexts), tuple(self.loops)
        if self.calls:
            facts.calls = tuple(self.calls)
        if self.reads:
            facts.reads = tuple([record(ReadFacts, (path, line, at)) for (path, at), line in self.reads.items()])
        if self.binds:
            facts.binds = {name: once(made := tuple(values), made) for name, values in self.binds.items()}
        if self.computed:
            for name in self.unclear & self.computed.keys():
                self.computed[name][None] = None
            self.unclear |= self.wordless
            facts.computed = {name: once(made := tuple(values), made) for name, values in self.computed.items()}
        if (self.branching or self.arms) and (self.calls or self.picks):
            places = [(call.line, call.column) for call in self.calls]
            facts.branches = branches_of(self.body, places + [pick[2:] for pick in self.picks], self.arms)
        if self.picks:
            facts.picks = tuple(self.picks)
        if self.unclear:
            params = {param.name.lstrip("*=") for param in facts.params}
            known = {*self.binds, *params}
            kept = [name for name in self.unclear if name in known or "." in name or name.endswith(ENTRIES)]
            facts.unclear = tuple(sorted(kept))
        if self.annotations:
            facts.annotations = self.annotations
        if self.returns:
            returns = tuple(self.returns)
            facts.returns = once(returns, returns)
        if self.questions:
            facts.questions = tuple(self.questions)
        facts.tells = self.told.finish()
        if self.mixed:
            facts.mixed = tuple(self.mixed)
        if self.told_elsewhere:
            facts.tests = tuple(self.told_elsewhere)
        if self.stores:
            facts.stores = tuple(self.stores)
        if self.is_generator:
            facts.yields, facts.is_generator = tuple(self.yields), True
        return facts


def _times_set(within: ast.AST, name: str) -> int:
    return sum(
        isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load) for node in walk(within)
    )


def _number_of_turn(loop: ast.AST | None) -> str:
    """What a loop binds to the number of the iteration: of `enumerate(rows)` or `range(n)`."""
    if not isinstance(loop, ast.For) or not isinstance(loop.iter, ast.Call):
        return ""
    name = path_of(loop.iter.func) or ""
    target: ast.AST | None = loop.target
    if name == "enumerate" and isinstance(target, ast.Tuple) and target.elts:
        target = target.elts[0]
    elif name != "range":
        return ""
    return target.id if isinstance(target, ast.Name) else ""


def _is_left_alone(loop: ast.AST, goal: str, counter: str) -> bool:
    """Whether a loop sets `goal` to nothing but what is further on: `start = i + 5`."""
    stores = moves = 0
    for node in walk(loop):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, (ast.Store, ast.Del)):
            written = path_of(node) or ""
            if written != goal and f"{goal}.".startswith(f"{written}."):
                return False
            stores += written == goal
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and path_of(node.targets[0]) == goal:
            value = node.value
            moves += isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) and path_of(value.left) == counter
    return stores == moves


def _only_counts(loop: ast.For | ast.AsyncFor | ast.While, counter: str, goal: str) -> bool:
    """Whether a loop adds a constant to `counter`, and gives neither that nor `goal` anything else."""
    counts = False
    for node in walk(loop):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, (ast.Store, ast.Del)):
            written = path_of(node)
            if written is not None and f"{goal}.".startswith(f"{written}."):
                return False
            if written is not None and written != counter and counter.startswith(f"{written}."):
                return False
            counts = counts or written == counter
    return counts and not any(_sets(node, counter) for node in walk(loop))


def _sets(node: ast.AST, counter: str) -> bool:
    """Whether a statement writes a counter other than by adding a positive number to it."""
    if isinstance(node, ast.AugAssign):
        steps = isinstance(node.op, ast.Add) and isinstance(node.value, ast.Constant)
        return path_of(node.target) == counter and not (steps and node.value.value > 0)  # type: ignore[attr-defined]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    return any(
        path_of(part) == counter
        for target in targets
        if target is not None
        for part in walk(target)
        if isinstance(part, (ast.Name, ast.Attribute))
    )
