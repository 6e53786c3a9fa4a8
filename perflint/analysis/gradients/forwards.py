"""What the rules about forwards that are run again share."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterable

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.names.refs import INSTANCE
from perflint.analysis.naming.models import TABLES
from perflint.analysis.naming.values import IS_COUNT
from perflint.analysis.values.kind import Tag
from perflint.ir.calls import callee_name
from perflint.ir.notation import last_name
from perflint.ir.summary import FunctionFacts
from perflint.torch_model import modules, tensors

#: What a forward does that only gives a parameter another shape.
_SHAPING = tensors.VIEW_METHODS | tensors.CAST_METHODS | {"repeat", "size", "to", "clone"}
#: Methods of models that run them, besides calling them.
FORWARD_METHODS = frozenset(
    "forward run_with_cache encode encode_image encode_text encode_prompt get_image_features get_text_features "
    "forward_features extract_features get_features embed".split()
)
#: Names of calls that draw numbers, and of those that change a model: after them, the same call gives something else.
DRAWS = frozenset("rand randn randint sample shuffle multinomial choice normal dropout permutation randperm".split())
CHANGES = frozenset(
    "load_state_dict train step fit update prune quantize merge copy_ add_ mul_ apply half register_forward_hook "
    "add_hook set_adapter requires_grad_ reset unload push append forward_".split()
)
#: What gives the same for the same input and costs little to read through.
_PURE = frozenset(
    "to_tokens tokenize to cuda cpu unsqueeze squeeze view reshape long getattr len int str float range tuple "
    "get".split()
)
#: What a model cannot look at and give something of.
_PLAIN = (Tag.NUMBER, Tag.STRING, Tag.NONE, Tag.DEVICE, Tag.DTYPE)
#: Builtin functions, and methods that texts, lists, dicts and tensors have.
_FUNCTIONS = frozenset(
    "len print range isinstance getattr setattr int float str tuple list zip enumerate super".split()
)
#: Methods of tensors that compute, by names that no layer goes by, as `norm`, `softmax` and `clip` may.
_COMPUTING = frozenset(
    "abs all amax amin any argmax argmin argsort bernoulli bincount ceil clamp clone cos count_nonzero cumprod cumsum "
    "eq exp floor gather ge gt index_add index_copy index_fill index_put index_select isfinite isinf isnan le log lt "
    "masked_fill masked_scatter masked_select max min multinomial nan_to_num ne neg nonzero pow prod reciprocal repeat "
    "repeat_interleave rsqrt scatter scatter_add sign sin sqrt sum tile topk tril triu chunk unbind".split()
)
_METHODS = (
    frozenset(name for kind in (str, list, dict) for name in dir(kind))
    | tensors.VIEW_METHODS
    | tensors.CAST_METHODS
    | tensors.NUMBER_METHODS
    | _COMPUTING
    | modules.TENSOR_ITERATORS
    | modules.NAMED_TENSOR_ITERATORS
    | modules.MODULE_ITERATORS
    | modules.NAMED_MODULE_ITERATORS
    | frozenset("to cuda cpu numpy pin_memory item tolist astype intersection to_dict state_dict eval".split())
) - FORWARD_METHODS


def is_forward(node: ast.Call, ctx: FileFacts) -> bool:
    """Whether the call runs a module: `model(x)`, `model.encode_text(x)`."""
    if isinstance(node.func, ast.Attribute) and node.func.attr in FORWARD_METHODS:
        if node.func.attr == "run_with_cache":
            return True  # a name that only models of TransformerLens have
        return ctx.kind(node.func.value).tag is Tag.MODULE
    if not isinstance(node.func, (ast.Name, ast.Attribute)) or is_method_of_values(node.func):
        return False
    return ctx.kind(node.func).tag is Tag.MODULE


def is_method_of_values(func: ast.Name | ast.Attribute) -> bool:
    """`x.permute`, `name.startswith`: nearly all calls are such, and this costs nothing. A module may hold a layer of
    this name: `self.flatten`.
    """
    if isinstance(func, ast.Name):
        return func.id in _FUNCTIONS
    return func.attr in _METHODS and not (isinstance(func.value, ast.Name) and func.value.id == "self")


def is_given_counts(model: str, given: Iterable[ast.expr], ctx: FileFacts) -> bool:
    """Whether a model is given nothing but numbers and texts, `generator(batch_size)`: it draws what it works on, and
    each run gives something else. Encoders, tables of positions and models that are analysed give the same for the
    same.
    """
    if TABLES.search(model):
        return False
    things = [item for item in given if ctx.kind(item).tag is not Tag.MODULE]
    return bool(things) and all(_is_count(item, ctx) for item in things)


def _is_count(item: ast.expr, ctx: FileFacts) -> bool:
    kind = ctx.kind(item)
    if kind.known or isinstance(item, ast.Constant):
        return isinstance(item, ast.Constant) or kind.tag in _PLAIN
    return isinstance(item, (ast.Name, ast.Attribute)) and bool(IS_COUNT.search(last_name(item)))


def arguments_by_name(call: ast.Call, facts: FunctionFacts) -> dict[str, ast.expr]:
    """The arguments of a call by the names of the parameters; those behind a star are left out."""
    names = [param.name.lstrip("=") for param in facts.params if not param.name.startswith("*")]
    if facts.in_class and names[:1] in (["self"], ["cls"]) and not _is_of_class(call, facts):
        names = names[1:]
    given = itertools.takewhile(lambda item: not isinstance(item, ast.Starred), call.args)
    found = dict(zip(names, given))
    found.update((item.arg, item.value) for item in call.keywords if item.arg is not None)
    return found


def _is_of_class(call: ast.Call, facts: FunctionFacts) -> bool:
    """`Base.method(self, x)`."""
    func = call.func
    return isinstance(func, ast.Attribute) and last_name(func.value) == facts.in_class.rpartition(".")[2]


def is_pure(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a call gives the same for the same arguments, as tokenizers and moves do."""
    if callee_name(call) in _PURE:
        return callee_name(call) != "get" or bool(call.args)  # a queue's takes no key, and gives another each time
    if isinstance(call.func, (ast.Name, ast.Attribute)) and is_method_of_values(call.func):
        return False
    return ctx.kind(call.func).tag is Tag.TOKENIZER


def only_shapes(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether the forward that is called only gives a parameter another shape: there is nothing to save."""
    for ref in ctx.refs(call.func) if isinstance(call.func, (ast.Name, ast.Attribute)) else ():
        if ref.kind != INSTANCE or ref.path not in ctx.program.summaries:
            return False
        facts = ctx.program.summaries[ref.path].functions.get(f"{ref.name}.forward")
        return facts is not None and all(last_name(item.func) in _SHAPING for item in facts.calls)
    return False
