"""Whether one worker has to decode and change all pictures of a program, for the rule on workers."""

from __future__ import annotations

import ast

from perflint.analysis.file_facts import FileFacts
from perflint.analysis.loading.few_items import may_have_few_items
from perflint.analysis.loading.inference_passes import is_inference_pass
from perflint.analysis.loading.loaders import is_one, option
from perflint.analysis.loading.passes import runs, use
from perflint.analysis.loading.sample_cost import samples_run
from perflint.analysis.names.refs import EXTERNAL, Scope
from perflint.analysis.naming.data import COSTLY
from perflint.ir.callees import last_name as last_of
from perflint.ir.summary import CallFacts
from perflint.torch_model import sample_work


def is_short_of_workers(call: ast.Call, ctx: FileFacts) -> bool:
    """Whether a training, or a program that infers, reads a loader of one worker whose samples are decoded and then
    changed: tens of milliseconds each.
    """
    count = option(call, "num_workers", ctx)
    if count is None or not is_one(count, ctx):
        return False
    loops = runs(call, ctx)
    if not any(use(run, ctx) == "train" for run in loops) and not is_inference_pass(call, loops, ctx):
        return False
    return samples_run(call, ctx, _decodes) and samples_run(call, ctx, _changes) and not may_have_few_items(call, ctx)


def _decodes(call: CallFacts, scope: Scope, ctx: FileFacts) -> bool:
    refs = ctx.program.refs(call.func, scope) if isinstance(call.func, str) else ()
    return any(ref.kind == EXTERNAL and ref.name in sample_work.DECODERS for ref in refs)


def _changes(call: CallFacts, scope: Scope, ctx: FileFacts) -> bool:
    return not _decodes(call, scope, ctx) and COSTLY.fullmatch(last_of(call.func).lstrip("_")) is not None
