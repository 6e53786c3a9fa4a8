"""Programs that Python reads and nobody wrote: every form of syntax, filled with the words of training code."""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Sequence
from typing import Any

_NAMES = (
    "model loader optimizer batch loss x y torch nn F np self cls args scaler train evaluate epoch device data gc copy "
    "range len enumerate zip print list metrics outputs labels DataLoader Dataset é _ accelerator trainer"
).split()
_ATTRIBUTES = (
    "item cpu cuda to backward step zero_grad detach numpy tolist state_dict load_state_dict train eval parameters "
    "empty_cache synchronize no_grad autocast append mean sum float half shape grad data dataset forward __getitem__ "
    "training_step log update mul_ compile amp utils optim functional cat stack save load collect deepcopy"
).split()
_MODULES = (
    "torch torch.nn torch.nn.functional numpy torch.utils.data gc copy os.path transformers lightning accelerate . .n"
).split()
_CONSTANTS: tuple[Any, ...] = (0, 1, -1, 2.5, 1e400, 3j, True, None, "", "cuda", "é\U0001f525", b"x", ..., 10**30)
#: What most rules look for, so that they have something to say.
_HEAD = """
import copy, gc, time
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset
class Data(Dataset):
    def __getitem__(self, x):
        pass
class Net(nn.Module):
    def forward(self, x):
        pass
model = Net().cuda()
optimizer = torch.optim.Adam(model.parameters())
loader = DataLoader(Data())
def train(model, loader, optimizer, device):
    for x, y in loader:
        optimizer.zero_grad()
        outputs = model(x.to(device))
        loss = F.cross_entropy(outputs, y)
        loss.backward()
        optimizer.step()
train(model, loader, optimizer, "cuda")
"""
_PHRASES = """
gc.collect()
torch.cuda.empty_cache()
print(loss.item(), f"{loss:.3f}")
metrics.append(loss)
y = torch.zeros(3).to(device)
x = x.cpu().numpy().tolist()
best = copy.deepcopy(model.state_dict())
torch.save(model.state_dict(), "x")
nn.utils.clip_grad_norm_(model.parameters(), 1.0)
x = torch.cat([x, y])
mask = torch.tensor([1, 2, 3]).cuda()
torch.cuda.synchronize()
x = torch.from_numpy(np.array(x)).float().to("cuda")
w = F.softmax(x @ y.transpose(-2, -1) / 8, dim=-1) @ outputs
for p in model.parameters(): p.grad = None
if loss > 3: continue
with torch.autograd.detect_anomaly(): loss.backward()
scale = x.max().item() + y.sum().item()
labels = y[y.nonzero()]
torch.backends.cudnn.benchmark = False
""".strip().split("\n")
_OPERATORS = [ast.Add, ast.Sub, ast.Mult, ast.MatMult, ast.Div, ast.Mod, ast.Pow, ast.FloorDiv, ast.BitOr, ast.LShift]
_COMPARISONS = [ast.Eq, ast.NotEq, ast.Lt, ast.GtE, ast.Is, ast.IsNot, ast.In, ast.NotIn]


class Grammar:
    def __init__(self, dice: random.Random) -> None:
        self._dice = dice
        self._left = 0

    def program(self) -> str:
        """Raises whatever `ast.unparse` does for the few forms it cannot write."""
        self._left = self._dice.choice((20, 60, 150, 400))
        module = ast.Module(self._body(0, most=12), [])
        if self._maybe(0.7):
            module.body = [*ast.parse(_HEAD).body, *module.body]
            for node in list(ast.walk(module)):
                if isinstance(node, (ast.For, ast.FunctionDef)) and self._maybe(0.8):
                    place = self._dice.randint(0, len(node.body))
                    said = ast.parse(self._pick(_PHRASES)).body if self._maybe(0.7) else self._body(2, 3)
                    node.body[place:place] = said
        return ast.unparse(ast.fix_missing_locations(module)) + "\n"

    # Words

    def _pick(self, words: Sequence[str]) -> str:
        return self._dice.choice(words)

    def _name(self, context: ast.expr_context | None = None) -> ast.Name:
        return ast.Name(self._pick(_NAMES), context or ast.Load())

    def _maybe(self, chance: float = 0.5) -> bool:
        return self._dice.random() < chance

    def _some(self, make: Callable[[], ast.expr], most: int = 3, least: int = 0) -> list[ast.expr]:
        return [make() for _ in range(self._dice.randint(least, most))]

    # Expressions

    def _value(self) -> ast.expr:
        self._left -= 1
        if self._left < 0 or self._maybe(0.25):
            return self._name() if self._maybe(0.7) else ast.Constant(self._dice.choice(_CONSTANTS))
        return self._dice.choice(self._FORMS)(self)

    def _call(self) -> ast.expr:
        callee: ast.expr = self._attribute() if self._maybe(0.8) else self._name()
        arguments = [
            ast.Starred(self._value(), ast.Load()) if self._maybe(0.1) else one for one in self._some(self._value, 2)
        ]
        keywords = [
            ast.keyword(self._pick(_NAMES) if self._maybe(0.9) else None, self._value())
            for _ in range(self._dice.choice((0, 0, 0, 1, 2)))
        ]
        return ast.Call(callee, arguments, keywords)

    def _attribute(self) -> ast.expr:
        return ast.Attribute(self._value(), self._pick(_ATTRIBUTES), ast.Load())

    def _subscript(self) -> ast.expr:
        index: ast.expr = self._value()
        if self._maybe(0.3):
            index = ast.Slice(*(self._value() if self._maybe() else None for _ in range(3)))
        return ast.Subscript(self._value(), index, ast.Load())

    def _comprehension(self) -> ast.expr:
        made = [
            ast.comprehension(self._target(), self._value(), self._some(self._value, 1), is_async=int(self._maybe(0.1)))
            for _ in range(self._dice.randint(1, 2))
        ]
        if self._maybe(0.2):
            return ast.DictComp(self._value(), self._value(), made)
        return self._dice.choice([ast.ListComp, ast.SetComp, ast.GeneratorExp])(self._value(), made)

    def _joined(self) -> ast.expr:
        inner = ast.FormattedValue(self._name(), -1, ast.JoinedStr([ast.Constant(".3f")]) if self._maybe() else None)
        return ast.JoinedStr([ast.Constant("é loss "), inner])

    def _dictionary(self) -> ast.expr:
        keys: list[ast.expr | None] = [*self._some(self._value, 2), *([None] if self._maybe(0.2) else [])]
        return ast.Dict(keys, [self._value() for _ in keys])

    def _compare(self) -> ast.expr:
        operators = [self._dice.choice(_COMPARISONS)() for _ in range(self._dice.randint(1, 2))]
        return ast.Compare(self._value(), operators, [self._value() for _ in operators])

    def _unary(self) -> ast.expr:
        return ast.UnaryOp(self._dice.choice([ast.Not, ast.USub, ast.Invert])(), self._value())

    def _yielding(self) -> ast.expr:
        kinds: list[type[ast.Yield | ast.YieldFrom | ast.Await]] = [ast.Yield, ast.YieldFrom, ast.Await]
        return self._dice.choice(kinds)(self._value())

    _FORMS: tuple[Callable[[Grammar], ast.expr], ...] = (
        _call,
        _call,
        _call,
        _call,
        _attribute,
        _attribute,
        _subscript,
        _comprehension,
        _joined,
        _dictionary,
        _compare,
        _unary,
        _yielding,
        lambda self: ast.BinOp(self._value(), self._dice.choice(_OPERATORS)(), self._value()),
        lambda self: ast.BoolOp(self._dice.choice([ast.And, ast.Or])(), self._some(self._value, 3, 2)),
        lambda self: ast.IfExp(self._value(), self._value(), self._value()),
        lambda self: ast.Lambda(self._arguments(), self._value()),
        lambda self: ast.NamedExpr(self._name(ast.Store()), self._value()),
        lambda self: ast.Tuple(self._some(self._value), ast.Load()),
        lambda self: ast.List(self._some(self._value), ast.Load()),
        lambda self: ast.Set(self._some(self._value, 3, 1)),
    )

    def _target(self) -> ast.expr:
        way = self._dice.random()
        if way < 0.6:
            return self._name(ast.Store())
        if way < 0.75:
            return ast.Tuple([self._name(ast.Store()), ast.Starred(self._name(ast.Store()), ast.Store())], ast.Store())
        if way < 0.9:
            return ast.Attribute(self._name(), self._pick(_ATTRIBUTES), ast.Store())
        return ast.Subscript(self._name(), self._value(), ast.Store())

    def _arguments(self) -> ast.arguments:
        names = self._dice.sample(_NAMES, self._dice.randint(0, 5))
        made = [ast.arg(name, self._value() if self._maybe(0.2) else None) for name in names]
        first, second = sorted((self._dice.randint(0, len(made)), self._dice.randint(0, len(made))))
        return ast.arguments(
            posonlyargs=made[:first],
            args=made[first:second],
            vararg=ast.arg("rest") if self._maybe(0.2) else None,
            kwonlyargs=made[second:],
            kw_defaults=[self._value() if self._maybe() else None for _ in made[second:]],
            kwarg=ast.arg("others") if self._maybe(0.2) else None,
            defaults=[self._value() for _ in range(self._dice.randint(0, second))],
        )

    # Statements

    def _body(self, depth: int, most: int = 4) -> list[ast.stmt]:
        return [self._statement(depth) for _ in range(self._dice.randint(1, most))]

    def _statement(self, depth: int) -> ast.stmt:
        self._left -= 1
        if self._left < 0 or depth > 7 or self._maybe(0.5):
            return self._simple()
        return self._dice.choice(self._COMPOUND)(self, depth + 1)

    def _simple(self) -> ast.stmt:
        way = self._dice.randrange(14)
        if way < 5:
            return ast.Expr(self._call())
        if way < 9:
            return ast.Assign([self._target() for _ in range(self._dice.choice((1, 1, 2)))], self._value(), lineno=1)
        if way == 9:
            return ast.AugAssign(self._name(ast.Store()), self._dice.choice(_OPERATORS)(), self._value())
        if way == 10:
            return ast.AnnAssign(self._name(ast.Store()), self._value(), self._value() if self._maybe() else None, 1)
        if way == 11:
            return ast.Import([ast.alias(self._pick(_MODULES[:-2]), self._pick(_NAMES) if self._maybe() else None)])
        if way == 12:
            module = self._pick(_MODULES)
            level = len(module) - len(module.lstrip("."))
            names = [ast.alias(self._pick([*_NAMES, *_ATTRIBUTES]))] if self._maybe(0.8) else [ast.alias("*")]
            return ast.ImportFrom(module.lstrip(".") or None, names, level)
        return self._dice.choice(
            [
                ast.Pass(),
                ast.Break(),
                ast.Continue(),
                ast.Return(self._value() if self._maybe() else None),
                ast.Raise(self._value() if self._maybe() else None, None),
                ast.Global([self._pick(_NAMES)]),
                ast.Nonlocal([self._pick(_NAMES)]),
                ast.Delete([self._target()]),
                ast.Assert(self._value(), self._value() if self._maybe() else None),
            ]
        )

    def _loop(self, depth: int) -> ast.stmt:
        otherwise = self._body(depth, 2) if self._maybe(0.15) else []
        if self._maybe(0.2):
            return ast.While(self._value(), self._body(depth), otherwise)
        kind = ast.AsyncFor if self._maybe(0.1) else ast.For
        return kind(self._target(), self._value(), self._body(depth), otherwise, lineno=1)

    def _choice(self, depth: int) -> ast.stmt:
        return ast.If(self._value(), self._body(depth), self._body(depth, 2) if self._maybe(0.4) else [])

    def _with(self, depth: int) -> ast.stmt:
        items = [
            ast.withitem(self._value(), self._target() if self._maybe(0.3) else None)
            for _ in range(self._dice.randint(1, 2))
        ]
        return (ast.AsyncWith if self._maybe(0.1) else ast.With)(items, self._body(depth), lineno=1)

    def _try(self, depth: int) -> ast.stmt:
        handlers = [
            ast.ExceptHandler(self._value(), self._pick(_NAMES) if self._maybe() else None, self._body(depth, 2))
            for _ in range(self._dice.randint(1, 2))
        ]
        rest = [self._body(depth, 2) if self._maybe(0.3) else [] for _ in range(2)]
        return ast.Try(self._body(depth), handlers, *rest)

    def _function(self, depth: int) -> ast.stmt:
        kind = ast.AsyncFunctionDef if self._maybe(0.15) else ast.FunctionDef
        decorators = self._some(self._value, 2) if self._maybe(0.4) else []
        made = kind(
            name=self._pick([*_NAMES[10:], *_ATTRIBUTES]),
            args=self._arguments(),
            body=self._body(depth, 6),
            decorator_list=decorators,
            returns=self._value() if self._maybe(0.2) else None,
            lineno=1,
        )
        vars(made)["type_params"] = []  # of newer Pythons
        return made

    def _class(self, depth: int) -> ast.stmt:
        made = ast.ClassDef(
            name=self._pick(["Net", "Trainer", "Data", "é"]),
            bases=self._some(self._value, 2),
            keywords=[ast.keyword("metaclass", self._value())] if self._maybe(0.1) else [],
            body=self._body(depth, 6),
            decorator_list=self._some(self._value, 1),
        )
        vars(made)["type_params"] = []  # of newer Pythons
        return made

    def _match(self, depth: int) -> ast.stmt:
        patterns: list[ast.pattern] = [
            ast.MatchAs(None, self._pick(_NAMES[:5])),
            ast.MatchClass(self._name(), [ast.MatchAs()], ["shape"], [ast.MatchSingleton(None)]),
            ast.MatchSequence([ast.MatchValue(ast.Constant(1)), ast.MatchStar("rest")]),
            ast.MatchMapping([ast.Constant("x")], [ast.MatchAs(None, "y")], "others"),
            ast.MatchOr([ast.MatchValue(ast.Constant("cuda")), ast.MatchValue(ast.Constant(2))]),
        ]
        cases = [
            ast.match_case(pattern, self._value() if self._maybe(0.5) else None, self._body(depth, 2))
            for pattern in self._dice.sample(patterns, 2)
        ]
        return ast.Match(self._value(), cases)

    _COMPOUND: tuple[Callable[[Grammar, int], ast.stmt], ...] = (
        _loop,
        _loop,
        _loop,
        _choice,
        _with,
        _try,
        _function,
        _function,
        _class,
        _match,
    )


def programs(dice: random.Random, number: int) -> list[bytes]:
    """As many programs, all of which this Python reads."""
    made: list[bytes] = []
    while len(made) < number:
        try:
            text = Grammar(dice).program()
            ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            continue
        made.append(text.encode())
    return made
