"""What the field calls things: loaders, optimizers, epochs, sampling, tokenizers, told by their names alone.

What is known of a name's value says more; these are asked where nothing is.
"""

from __future__ import annotations

import re
from functools import lru_cache

from perflint.analysis.names.refs import EXTERNAL_INSTANCE, Scope
from perflint.analysis.names.resolver import Resolver
from perflint.ir.callees import last_name
from perflint.ir.summary import CallFacts, FunctionFacts, Value
from perflint.system.patterns import pattern
from perflint.torch_model import frameworks

_LOADER_NAME = pattern(
    r"(?:^|_)(?:data_?loader|dataloader|loader|train_?dl|val(?:id)?_?dl|test_?dl|train_?iter|data_?iter|dl)s?(?:_\w+)?$"
    r"|(?:train|val|valid|test|eval|data)_?(?:loader|iterator|batches)$|^(?:train|val|valid|test|eval)_?gen(?:erator)?$",
    re.IGNORECASE,
)
_NO_LOADER = pattern(
    r"(?:module|class|template|plugin|image|img|file|config|model|weight|yaml|checkpoint|lazy)_?loaders?$|loader_(?:names?|types?|cls|kwargs|args)",
    re.IGNORECASE,
)
#: What batches of an evaluation come from, on whatever device they are by then.
_BATCHES_NAME = pattern(r"(?:^|_)(?:val(?:id)?|test|eval|dev)_?iter$")
#: Names that leave no doubt, unlike `loader` or `dl`.
_PLAINLY_LOADER = pattern(r"data_?loader|train_?loader|val\w*_?loader|test_?loader", re.IGNORECASE)
#: Several loaders: one of them is what an index gives.
LOADERS_NAME = pattern(r"loaders(?:_\w+)?$|dls$", re.IGNORECASE)
ITERATOR_NAME = pattern(
    r"(?:data|loader|train|batch|val|eval|dl)\w*_?iter(?:ator)?$|^(?:it|iterator|train_gen|data_gen\w*)$", re.IGNORECASE
)
#: Of the names above, those that say nothing of what is iterated over.
ITERATORS_OVER_ANYTHING = frozenset({"it", "iterator"})
#: Functions that look at a batch once.
_LOOKS = pattern(
    r"plot|show|visuali[sz]|preview|sample|infer|init|test|debug|first|peek|example|calibrat|profile|warm_?up|check|log"
)
_HANDLE = pattern(r"handle|hook", re.IGNORECASE)
_OPTIMIZER_NAME = pattern(r"optim|(?:^|_|\.)opt(?:_\w+)?$|(?:^|_)(?:adam|sgd|muon|optim)\w*$", re.IGNORECASE)
_SAMPLER_NAME = pattern(r"scheduler|sampler|solver", re.IGNORECASE)
EPOCH_NAME = pattern(
    r"^_?(?:epoch|ep|fold|seed|trial|run|round|restart|cv|stage|phase|experiment|task)(?:s|_?\w{0,5})?$", re.IGNORECASE
)
#: A loop over these tries settings: what it trains on each turn is a run of its own.
SETTING_NAME = pattern(
    r"^_?(?:device|dev|backend|dtype|config|cfg|setting|hparams?|lr|learning_rate|model_?name|arch)s?$", re.IGNORECASE
)
#: The header of a loop that halves a range, or doubles a batch, until it knows the largest that works.
BISECTION = pattern(
    r"^while \(?[\w.]*batch_size <=? |"
    r"^while \(?\w*(?:low|lo|left|min)\w*(?: [-+] ?\w+)? ?<=? ?\w*(?:high|hi|right|max)\w*\b(?! and|\.)",
    re.IGNORECASE,
)
#: Names that the field has for what takes one batch: whoever calls it, does so once a step. Lightning's own names are
#: left to its classes.
TRAIN_STEPS = frozenset(
    "train_step train_batch train_on_batch training_batch optimize_parameters forward_backward train_one_step "
    "train_one_batch".split()
)
EVAL_STEPS = frozenset("val_step valid_step eval_step evaluation_step eval_batch evaluate_batch inference_step".split())
#: In the header of a loop that makes one token on each turn.
DECODE_LIMIT = pattern(
    r"max_(?:new_)?(?:tokens?|length|len|gen\w*|decod\w*|steps?_gen)|num_(?:new_)?tokens|gen(?:eration)?_len\w*",
    re.IGNORECASE,
)
#: Whose method `backward` runs one, whatever it is given.
_BACKWARD_CALLERS = frozenset({"accelerator", "fabric", "model_engine", "engine", "scaler", "amp", "optimizer", "self"})
_NOT_BATCHES = frozenset(
    "range keys values items split splitlines parameters named_parameters modules children listdir glob walk finditer "
    "open reversed map filter".split()
)
#: What picks the next token.
SAMPLING = frozenset({"multinomial", "argmax", "cat", "topk", "sample", "gumbel_softmax", "concat"})
#: Calls that make what a training run begins with.
_MAKERS = frozenset("from_pretrained from_config Adam AdamW SGD RMSprop Adagrad Adadelta configure_optimizers".split())
#: What turns a text into tokens, and what runs on them: both on each turn make a loop over texts a loop of steps.
TOKENIZERS = frozenset("tokenizer processor encode_plus batch_encode_plus to_tokens".split())
RUNNERS = frozenset("model net network lm generate run_with_cache".split())
#: What models and losses go by where nothing is known of them, and the methods that run them.
_MODELS = frozenset(
    "model net network module generator discriminator encoder decoder criterion loss_fn compute_loss forward "
    "grad".split()
)
#: A loop that counts down to nothing.
BACKWARDS = pattern(r"\breversed\(range\((?!len\b)|\brange\([^()]*, -1, -1\)")
#: Last names of all calls that may say what a loop is for.
TELLING = SAMPLING | TOKENIZERS | RUNNERS
TELLING |= frozenset("train_batch backward manual_backward step optimizer_step step_optimizer next __next__".split())


#: Words of annotations: of a tensor, of what a function works on instead of computing with it, and of what is given
#: back for people or for a file, so that it was copied to the host for that.
_TENSOR = pattern(r"\b(?:Tensor|(?:Float|Int|Bool|Shaped|Num)\[)")
_NO_OPERAND = pattern(r"\b(?:Module|Optimizer|DataLoader|Dataset|Path|PathLike|TextIO|BinaryIO|ndarray|Image)\b")
#: Names by which a training may be started.
STARTING_CALLS = frameworks.STARTING | {"run"}
#: Names by which a backward runs, and by which an optimizer takes a step.
BACKWARD_CALLS = frozenset({"backward", "manual_backward"})
STEP_CALLS = frozenset({"optimizer_step", "step_optimizer", "train_batch", "step"})
_FOR_HOST = pattern(r"^None$|\b(?:str|bytes|ndarray|Image|Figure|Axes)\b")
#: Parts of paths and names of what is computed once for each batch of an evaluation.
_METRIC = pattern(r"(?:^|[/_.])metrics?(?:[/_.]|$)")


#: What names of functions and files say of the phase that code belongs to, and why each is trusted that far. A name
#: only makes an answer surer, or less sure: `eval` is also a mode, a `test` set is also trained on.
_PHASE_WORDS: tuple[tuple[str, re.Pattern[str], str], ...] = (
    ("train", pattern(r"(?:^|[_/.])(?:train(?:er|ing)?|fit|finetune|pretrain|learn)(?:[_/.]|$)"), "entry points"),
    (
        "evaluate",
        pattern(
            r"(?:^|[_/.])(?:eval\w*|val(?:id\w*)?|test(?:er|ing)?|infer\w*|predict\w*|extract\w*|embed|encode_all)(?:[_/.]|$)"
        ),
        "the usual names of passes without a step",
    ),
    (
        "generate",
        pattern(
            r"(?:^|[_/.])(?:generat(?:e|ion)\w*|sampl(?:e|ing)|decod(?:e|ing)|beam_search|translate|demo|render|visuali[sz]e\w*)(?:[_/.]|$)"
        ),
        "samples are made there, one after the other",
    ),
    (
        "benchmark",
        pattern(r"(?:^|[_/.])(?:bench(?:mark(?:s|ing)?)?|profil(?:e|ing)|latency|throughput|timing)(?:[_/.]|$)"),
        "what is measured",
    ),
    ("serve", pattern(r"(?:^|[_/.])(?:serv(?:e|er|ing)|app|api|endpoint)(?:[_/.]|$)"), "handlers of requests"),
    (
        "checkpoint",
        pattern(r"(?:^|[_/.])(?:save|resume|checkpoints?|ckpt|export|convert)(?:[_/.]|$)"),
        "states of models",
    ),
    (
        "data",
        pattern(r"(?:^|[_/.])(?:data(?:sets?|loaders?)?|collate|augment\w*|preprocess\w*)(?:[_/.]|$)"),
        "what makes batches",
    ),
)


@lru_cache(4096)
def phases_named(function: str, path: str) -> frozenset[str]:
    """The phases that the names of a function and its file suggest."""
    name = path.rpartition("/")[2].removesuffix(".py")
    return frozenset(phase for phase, words, _ in _PHASE_WORDS if words.search(function) or words.search(name))


@lru_cache(4096)
def looks_like_loader(dotted: str) -> bool:
    """The field's own convention: `train_loader`, `self.val_dataloader`, `dl`."""
    last = dotted.rpartition(".")[2]
    return bool(_LOADER_NAME.search(last)) and not _NO_LOADER.search(last)


def looks_like_batches(dotted: str) -> bool:
    """What looks like a loader, and `valid_iter`."""
    return looks_like_loader(dotted) or bool(_BATCHES_NAME.search(dotted))


def is_plainly_loader(dotted: str) -> bool:
    """Whether nothing but a loader goes by such a name, of those that look like one's."""
    return _PLAINLY_LOADER.search(dotted) is not None


def looks_once(function: str) -> bool:
    """Whether a function of that name takes a batch for a look at it, not for a step."""
    return _LOOKS.search(function) is not None


def is_removal_of_handle(call: CallFacts) -> bool:
    """`handle.remove()`: a hook is taken off again."""
    last, receiver = callee(call.func)
    return last == "remove" and _HANDLE.search(receiver) is not None


def is_backward(func: Value, args: tuple[Value, ...]) -> bool:
    """`loss.backward()`, `scaler.scale(loss).backward()`, `accelerator.backward(loss)`, `manual_backward(loss)`."""
    # Most calls are told by their last names.
    if last_name(func) not in BACKWARD_CALLS:
        return False
    name, base = callee(func)
    if name == "manual_backward":
        return True
    if base in ("super", "ctx"):
        return False
    return not (base == "self" and not args) or base.rpartition(".")[2] in _BACKWARD_CALLERS


def is_optimizer_step(func: Value, args: tuple[Value, ...], resolver: Resolver, scope: Scope) -> bool:
    """`optimizer.step()`, `scaler.step(optimizer)`, `model_engine.step()`, `xm.optimizer_step(optimizer)`."""
    if last_name(func) not in STEP_CALLS:
        return False
    name, base = callee(func)
    if name in ("optimizer_step", "step_optimizer"):
        return True
    if name == "train_batch":
        # DeepSpeed's engines of pipelines: https://deepspeed.readthedocs.io/en/latest/pipeline.html
        known = resolver.refs(base, scope) if base and isinstance(func, str) else ()
        return base.rpartition(".")[2].endswith("engine") and not any(ref.path for ref in known)
    last = base.rpartition(".")[2]
    if _OPTIMIZER_NAME.search(last):
        return True
    if last in ("scaler", "grad_scaler", "gradscaler") or last.endswith("scaler"):
        return bool(args)
    if last in ("model_engine", "engine") and not args:
        return True
    refs = resolver.refs(base, scope) if base and isinstance(func, str) else ()
    if not refs and base and isinstance(func, str) and base in resolver.optimizers(scope):
        return True
    return any(
        ref.kind == EXTERNAL_INSTANCE and ref.name.startswith("torch.optim.") and "lr_scheduler" not in ref.name
        for ref in refs
    )


def runs_a_model(func: Value) -> bool:
    """Whether what a call goes by is what models and losses go by."""
    return last_name(func) in _MODELS


def starts_training(func: Value, resolver: Resolver, scope: Scope) -> bool:
    """`trainer.fit(model)`; `run` of what a framework has made a runner."""
    name = last_name(func)
    if name not in STARTING_CALLS:
        return False
    if name in frameworks.STARTING:
        return True
    base = callee(func)[1]
    if not base:
        return False
    made = resolver.refs(base, scope)
    return any(ref.kind == EXTERNAL_INSTANCE and ref.name.partition(".")[0] in frameworks.RUNNER_ROOTS for ref in made)


def callee(func: Value) -> tuple[str, str]:
    """The last name of a callee and its receiver as text ("" where the receiver is not plain)."""
    if isinstance(func, str):
        base, _, name = func.rpartition(".")
        return name, base
    if isinstance(func, tuple) and func[0] == "attr":
        inner = func[1]
        if isinstance(inner, tuple) and inner[0] == "item" and isinstance(inner[1], str):
            return func[2], inner[1]
        if isinstance(inner, tuple) and inner[0] == "call" and isinstance(inner[1], str):
            return func[2], inner[1]
        return func[2], ""
    return "", ""


def is_denoising(call: CallFacts) -> bool:
    """`scheduler.step(noise, t, sample)`: one step of a sampler of a diffusion model. One of learning rates takes at
    most a metric.
    """
    last, receiver = callee(call.func)
    return last == "step" and len(call.args) >= 3 and bool(_SAMPLER_NAME.search(receiver))


def is_whole_run(facts: FunctionFacts) -> bool:
    """Whether a function makes the model or the optimizer that it trains: a loop around it tries models, not steps."""
    return any(map(makes_trained, facts.calls))


def makes_trained(call: CallFacts) -> bool:
    """Whether a call makes a model or an optimizer."""
    return last_name(call.func) in _MAKERS


def is_look_at_one(call: CallFacts) -> bool:
    """`next(iter(loader))`: a look at one batch, not a step through them."""
    first = call.args[0] if call.args else None
    return isinstance(first, tuple) and first[0] == "call" and first[1] == "iter"


def may_give_batches(value: Value) -> bool:
    """Whether what an iterator is made from may be a loader, by all that is plain to see."""
    if isinstance(value, tuple) and value[0] == "call":
        name = last_name(value[1])
        if name == "iter" and value[2]:
            return may_give_batches(value[2][0])
        return name not in _NOT_BATCHES
    return not (isinstance(value, tuple) and value[0] in ("seq", "map", "const", "each", "table", "item"))


def is_range(value: Value) -> bool:
    return isinstance(value, tuple) and value[0] == "call" and value[1] in ("range", "trange")


def is_literal(value: Value) -> bool:
    """`for flag in (False, True)`: the turns of such a loop are configurations, not steps."""
    return isinstance(value, tuple) and value[0] in ("seq", "map")


def says_tensor(annotation: str) -> bool:
    return _TENSOR.search(annotation) is not None


def is_no_operand(annotation: str) -> bool:
    """Whether what is annotated so is a model, a file or an array, which a function does not compute with."""
    return _NO_OPERAND.search(annotation) is not None


def is_for_host(annotation: str) -> bool:
    """Whether a result that is annotated so was made on the host, for people or a file."""
    return _FOR_HOST.search(annotation) is not None


def is_metric(dotted: str) -> bool:
    return _METRIC.search(dotted) is not None
